// SPDX-License-Identifier: Apache-2.0
// Memory steps: SMEM, GLOBAL, FLAT, SCRATCH, MUBUF, DS. Every byte of every active lane is checked against the allocations, the
// workgroup's LDS or the lane's scratch. Addresses are host addresses. Source: CDNA3 ISA, "Scalar Memory", "Vector Memory Buffer
// Instructions", "FLAT/GLOBAL/SCRATCH", "Local Data Share". Cache bits (sc0, sc1, nt, glc) change nothing here.
#include "scalar.c"

// Upper halves of the addresses that FLAT instructions send to LDS and scratch (the driver chooses them; kernels read them
// from src_shared_base and src_private_base). No user address of Linux has them.
enum { SHARED_APERTURE = 0x10000, PRIVATE_APERTURE = 0x20000, MASKED_OFFSET = 0x7fffffff };
enum Narrow { SIGNED = 1, D16 = 2, HIGH_HALF = 4 };
enum Atomic { ADD, SUB, SMIN, UMIN, SMAX, UMAX, AND, OR, XOR, INC, DEC, SWAP, COMPARE_SWAP, ADD_F32 };

typedef struct { uint8_t *bytes, *undefined; } Place;  // where an access of one lane lands

static Region *region_of(Machine *m, uint64_t address, uint32_t size) {
    Region *last = &m->regions[m->last_region];
    if (m->region_count && address >= last->address && address + size <= last->address + last->size && address + size > address) return last;
    uint32_t low = 0, high = m->region_count;
    while (low < high) {  // the first region that starts beyond the address
        uint32_t middle = (low + high) / 2;
        if (m->regions[middle].address <= address) low = middle + 1;
        else high = middle;
    }
    if (low == 0) return 0;
    Region *found = &m->regions[low - 1];
    uint64_t offset = address - found->address;
    if (offset > found->size || found->size - offset < size) return 0;
    m->last_region = low - 1;
    return found;
}

static void fault_bounds(Machine *m, const Wave *w, int kind, int lane, uint64_t address, uint64_t size, int store) {
    if (m->fault.kind != NO_FAULT) return;
    fault(m, w, kind, lane);
    m->fault.address = address;
    m->fault.size = size;
    m->fault.reason = (uint32_t)store;
}

static void touch_lds(Machine *m, Wave *w, int lane, uint32_t at, uint32_t size, int store, const uint8_t *before);

static int place(Machine *m, Wave *w, const Step *i, int lane, int space, uint64_t address, Place *where) {
    int store = i->access != LOAD;
    where->undefined = 0;
    if (space == LDS) {
        if (address + i->size > m->lds_bytes) {
            fault_bounds(m, w, OUT_OF_BOUNDS_LDS, lane, address, i->size, store);
            return 0;
        }
        where->bytes = m->lds + address;
        if (m->checks) {
            where->undefined = m->lds_undefined + address;
            if (i->access != STORE) touch_lds(m, w, lane, (uint32_t)address, i->size, store, 0);
        }
        return 1;
    }
    if (space == SCRATCH) {
        if (address > m->scratch_bytes || m->scratch_bytes - address < i->size) {
            fault_bounds(m, w, OUT_OF_BOUNDS_SCRATCH, lane, address, i->size, store);
            return 0;
        }
        size_t at = (size_t)lane * m->scratch_bytes + address;
        where->bytes = w->scratch + at;
        if (m->checks) where->undefined = w->scratch_undefined + at;
        return 1;
    }
    Region *region = region_of(m, address, i->size);
    if (!region) {
        fault_bounds(m, w, OUT_OF_BOUNDS, lane, address, i->size, store);
        return 0;
    }
    region->written |= (uint64_t)store;
    where->bytes = region->bytes + (address - region->address);
    if (m->checks && region->undefined) where->undefined = region->undefined + (address - region->address);
    return 1;
}

// Undefined bits of `row` in the lanes that use it as an address are a fault.
static int address_defined(Machine *m, Wave *w, uint32_t row, uint64_t lanes) {
    if (!m->checks || !w->dirty[row]) return 1;
    const uint32_t *bits = vector_row(w, UNDEFINED, row);
    for (int lane = 0; lane < LANES; lane++)
        if (lanes >> lane & 1 && bits[lane]) {
            fault_undefined(m, w, lane, USED_ADDRESS, w->origin[row]);
            return 0;
        }
    return 1;
}
static int scalar_defined(Machine *m, Wave *w, uint32_t row, int count, int use) {
    for (int n = 0; m->checks && n < count; n++)
        if (w->s_undefined[row + (uint32_t)n]) {
            fault_undefined(m, w, -1, use, w->s_origin[row + (uint32_t)n]);
            return 0;
        }
    return 1;
}

// Raw buffers (stride 0, no swizzle): base + soffset + voffset + offset. Compilers mask lanes with an offset that no tensor has
// (MASKED_OFFSET and beyond): those read 0 and write nothing. Any other lane beyond num_records is a fault, because hardware
// would drop it silently. Whether soffset and each dword count in that comparison is told differently (ISA "Range checking";
// MLIR amdgpu.raw_buffer_load: "may or may not"); here an access must lie inside by every reading.
static uint64_t buffer_addresses(Machine *m, Wave *w, const Step *i, uint64_t exec, uint64_t address[LANES]) {
    if (!scalar_defined(m, w, i->saddr, 4, USED_DESCRIPTOR)) return 0;
    const uint32_t *d = w->s + i->saddr;
    // word 1: stride, swizzle; word 3: DATA_FORMAT 32 and nothing above it (NUM_FORMAT and DST_SEL act on formatted loads)
    if (d[1] >> 16 || d[3] >> 15 != 4) {
        fault(m, w, UNSUPPORTED, -1);
        m->fault.reason = 1, m->fault.address = d[1], m->fault.extra = d[3];
        return 0;
    }
    uint64_t base = d[0] | (uint64_t)d[1] << 32, records = d[2], lanes = 0, scalar = scalar_bits(w, &i->source[1], VALUES);
    for (int lane = 0; lane < LANES; lane++) {
        if (!(exec >> lane & 1)) continue;
        uint64_t within = (uint64_t)(uint32_t)i->offset + (i->has_vaddr ? vector_row(w, VALUES, i->vaddr)[lane] : 0);
        address[lane] = base + scalar + within;
        if (within + scalar + i->size <= records && within <= ALL_BITS) lanes |= (uint64_t)1 << lane;
        else if (within >= records && within <= ALL_BITS && (within >= MASKED_OFFSET || !m->checks)) continue;
        else {
            fault_bounds(m, w, OUT_OF_BOUNDS_BUFFER, lane, within + scalar, i->size, i->access != LOAD);
            m->fault.extra = records;
            return 0;
        }
    }
    return lanes;
}

// Addresses of the active lanes; lanes that do not access memory (masked buffer lanes) are missing from the result.
static uint64_t addresses(Machine *m, Wave *w, const Step *i, uint64_t exec, uint64_t address[LANES]) {
    const uint32_t *low = i->has_vaddr ? vector_row(w, VALUES, i->vaddr) : 0;
    int wide = i->space == FLAT || (i->space == GLOBAL && !i->has_saddr);
    if (i->has_vaddr && (!address_defined(m, w, i->vaddr, exec) || (wide && !address_defined(m, w, i->vaddr + 1, exec)))) return 0;
    if (i->space == BUFFER) {
        if (i->source[1].kind == SCALAR && !scalar_defined(m, w, i->source[1].row, 1, USED_ADDRESS)) return 0;
        return buffer_addresses(m, w, i, exec, address);
    }
    uint64_t base = 0;
    if (i->has_saddr) {
        if (!scalar_defined(m, w, i->saddr, i->space == GLOBAL ? 2 : 1, USED_ADDRESS)) return 0;
        base = i->space == GLOBAL ? scalar64(w->s, i->saddr) : w->s[i->saddr];
    }
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t own = low ? low[lane] : 0;
        if (wide) own |= (uint64_t)low[LANES + lane] << 32;
        address[lane] = base + own + (uint64_t)(int64_t)i->offset;
        // LDS addresses wrap at 32 bits (LLVM relies on it: hasUsableDSOffset); a negative scratch offset is out of bounds
        if (i->space == LDS) address[lane] &= ALL_BITS;
    }
    return exec;
}

static int space_of(const Step *i, uint64_t *address) {
    if (i->space != FLAT) return i->space == BUFFER ? GLOBAL : i->space;
    uint64_t aperture = *address >> 32;
    if (aperture != SHARED_APERTURE && aperture != PRIVATE_APERTURE) return GLOBAL;
    *address &= ALL_BITS;
    return aperture == SHARED_APERTURE ? LDS : SCRATCH;
}

// A narrow value in its register. A d16 load keeps the other half of `old`: with SRAM ECC, which MI300 has, compilers may not
// count on that (LLVM: d16PreservesUnusedBits), so that half counts as undefined when checks are on.
INLINE uint32_t widen(const Step *i, uint32_t bits, uint32_t old) {
    if (i->size >= 4) return bits;
    if (i->narrow & SIGNED) bits = i->size == 1 ? (uint32_t)(int8_t)bits : (uint32_t)(int16_t)bits;
    if (i->narrow & D16) return i->narrow & HIGH_HALF ? (old & 0xffff) | bits << 16 : (old & 0xffff0000u) | (bits & 0xffff);
    return bits;
}

// The second element of ds_read2 and ds_write2 has an offset of its own.
INLINE uint64_t element_address(const Step *i, uint64_t first, uint32_t element) {
    return element ? (first + (uint64_t)(int64_t)(i->offset2 - i->offset)) & ALL_BITS : first;
}

static void load(Machine *m, Wave *w, const Step *i, const uint64_t base[LANES], uint64_t lanes, uint64_t exec) {
    uint32_t out[4 * LANES], undefined[4 * LANES], total = (uint32_t)i->elements * i->dwords, any = 0;
    for (uint32_t n = 0; n < total; n++)  // masked lanes of a buffer read 0
        for (uint32_t lane = 0; lane < LANES; lane++) {
            out[n * LANES + lane] = i->narrow & D16 ? widen(i, 0, vector_row(w, VALUES, i->vdst + n)[lane]) : 0;
            undefined[n * LANES + lane] = i->narrow & D16 ? widen(i, 0, ALL_BITS) : 0;
        }
    if (i->narrow & D16) any = 1;
    for (uint64_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctzll(rest);
        for (uint32_t e = 0; e < i->elements; e++) {
            uint64_t address = element_address(i, base[lane], e);
            Place where;
            int space = space_of(i, &address);
            if (!place(m, w, i, lane, space, address, &where)) return;
            uint32_t words[4] = {0}, missing[4] = {0};
            memcpy(words, where.bytes, i->size);
            if (where.undefined) memcpy(missing, where.undefined, i->size);
            for (uint32_t n = 0; n < i->dwords; n++) {
                uint32_t row = i->vdst + e * i->dwords + n, at = (e * i->dwords + n) * LANES + (uint32_t)lane;
                out[at] = widen(i, words[n], i->narrow & D16 ? vector_row(w, VALUES, row)[lane] : 0);
                if (!m->checks) continue;
                undefined[at] = widen(i, missing[n], ALL_BITS);
                any |= undefined[at];
            }
        }
    }
    for (uint32_t n = 0; n < total; n++) {
        merge(vector_row(w, VALUES, i->vdst + n), out + n * LANES, exec);
        if (m->checks) set_undefined(w, i->vdst + n, any ? undefined + n * LANES : 0, exec, w->step + 1);
    }
}

// Visit what the lanes of a store hit in LDS: keep the bytes as they were, or tell the race check how they changed. Lanes of one
// instruction may store to one address; what counts for other waves is what the whole instruction leaves.
static void lds_bytes_of(Machine *m, Wave *w, const Step *i, const uint64_t base[LANES], uint64_t lanes, uint8_t *before, int touch) {
    if (!m->checks || (i->space != LDS && i->space != FLAT)) return;
    for (uint64_t rest = lanes; rest; rest &= rest - 1)
        for (uint32_t e = 0; e < i->elements; e++) {
            int lane = __builtin_ctzll(rest);
            uint64_t address = element_address(i, base[lane], e);
            if (space_of(i, &address) != LDS || address + i->size > m->lds_bytes) continue;
            uint8_t *bytes = before + (e * LANES + (uint32_t)lane) * 16;
            if (touch) touch_lds(m, w, lane, (uint32_t)address, i->size, 1, bytes);
            else memcpy(bytes, m->lds + address, i->size);
        }
}

static void store(Machine *m, Wave *w, const Step *i, const uint64_t base[LANES], uint64_t lanes) {
    uint8_t before[2 * LANES * 16];
    lds_bytes_of(m, w, i, base, lanes, before, 0);
    for (uint64_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctzll(rest);
        for (uint32_t e = 0; e < i->elements; e++) {
            uint64_t address = element_address(i, base[lane], e);
            uint32_t words[4], missing[4] = {0}, row = e ? i->vdata2 : i->vdata, unknown = 0;
            for (uint32_t n = 0; n < i->dwords; n++) {
                words[n] = vector_row(w, VALUES, row + n)[lane] >> (i->narrow & HIGH_HALF ? 16 : 0);
                if (m->checks && w->dirty[row + n]) missing[n] = vector_row(w, UNDEFINED, row + n)[lane] >> (i->narrow & HIGH_HALF ? 16 : 0);
                unknown |= i->size < 4 ? missing[n] & ((1u << 8 * i->size) - 1) : missing[n];
            }
            int space = space_of(i, &address);
            Place where;
            if (unknown && space == GLOBAL) {
                uint32_t n = 0;
                while (n + 1 < i->dwords && !missing[n]) n++;
                fault_undefined(m, w, lane, USED_STORE, w->origin[row + n]);
                m->fault.address = address;
                return;
            }
            if (!place(m, w, i, lane, space, address, &where)) return;
            memcpy(where.bytes, words, i->size);
            if (where.undefined) memcpy(where.undefined, missing, i->size);
        }
    }
    lds_bytes_of(m, w, i, base, lanes, before, 1);
}

INLINE uint64_t atomic_result(const Step *i, uint64_t old, uint64_t data, uint64_t compare) {
    int small = i->size == 4;
    int64_t a = small ? (int32_t)old : (int64_t)old, b = small ? (int32_t)data : (int64_t)data;
    switch (i->op) {
        case ADD: return old + data;
        case SUB: return old - data;
        case SMIN: return a < b ? old : data;
        case SMAX: return a > b ? old : data;
        case UMIN: return old < data ? old : data;
        case UMAX: return old > data ? old : data;
        case AND: return old & data;
        case OR: return old | data;
        case XOR: return old ^ data;
        case INC: return old >= data ? 0 : old + 1;
        case DEC: return old == 0 || old > data ? data : old - 1;
        case COMPARE_SWAP: return old == compare ? data : old;
        case ADD_F32: return raw(real((uint32_t)old) + real((uint32_t)data));
        default: return data;
    }
}

// Lanes act one after another, the lowest first (hardware promises no order).
static void atomic(Machine *m, Wave *w, const Step *i, const uint64_t base[LANES], uint64_t lanes) {
    uint32_t out[2 * LANES], undefined[2 * LANES], any = 0;
    memset(undefined, 0, sizeof undefined);
    for (uint64_t rest = lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctzll(rest);
        uint64_t address = base[lane], old = 0, missing = 0, data = 0, compare = 0;
        for (uint32_t n = 0; n < i->dwords; n++) {
            data |= (uint64_t)vector_row(w, VALUES, i->vdata + n)[lane] << 32 * n;
            if (i->op == COMPARE_SWAP) compare |= (uint64_t)vector_row(w, VALUES, i->vdata2 + n)[lane] << 32 * n;
            if (m->checks && (vector_row(w, UNDEFINED, i->vdata + n)[lane] || (i->op == COMPARE_SWAP && vector_row(w, UNDEFINED, i->vdata2 + n)[lane]))) {
                uint32_t row = vector_row(w, UNDEFINED, i->vdata + n)[lane] ? i->vdata + n : i->vdata2 + n;
                fault_undefined(m, w, lane, USED_STORE, w->origin[row]);
                return;
            }
        }
        int space = space_of(i, &address);
        if (space == SCRATCH && i->size == 8) {  // FLAT atomics of 64 bits do not work there (LLVM expands them)
            fault(m, w, UNSUPPORTED, lane);
            m->fault.reason = 3;
            return;
        }
        Place where;
        if (!place(m, w, i, lane, space, address, &where)) return;
        memcpy(&old, where.bytes, i->size);
        if (where.undefined) memcpy(&missing, where.undefined, i->size);
        uint64_t result = atomic_result(i, old, data, compare);
        memcpy(where.bytes, &result, i->size);
        if (missing && i->op != SWAP) missing = ~(uint64_t)0;
        if (where.undefined) {
            uint64_t kept = i->op == SWAP ? 0 : missing;
            memcpy(where.undefined, &kept, i->size);
        }
        for (uint32_t n = 0; n < i->dwords; n++) {
            out[n * LANES + (uint32_t)lane] = (uint32_t)(old >> 32 * n);
            undefined[n * LANES + (uint32_t)lane] = (uint32_t)(missing >> 32 * n);
        }
        any |= missing != 0;
    }
    for (uint32_t n = 0; i->returns && n < i->dwords; n++) {
        merge(vector_row(w, VALUES, i->vdst + n), out + n * LANES, lanes);
        if (m->checks) set_undefined(w, i->vdst + n, any ? undefined + n * LANES : 0, lanes, w->step + 1);
    }
}

static void scalar_load(Machine *m, Wave *w, const Step *i) {
    uint64_t address = scalar64(w->s, i->saddr) + (uint64_t)(int64_t)i->offset, bytes = 4u * i->dwords, records = 0;
    int buffer = i->narrow;
    if (!scalar_defined(m, w, i->saddr, buffer ? 4 : 2, buffer ? USED_DESCRIPTOR : USED_ADDRESS)) return;
    if (i->source[1].kind == SCALAR && !scalar_defined(m, w, i->source[1].row, 1, USED_ADDRESS)) return;
    address += scalar_bits(w, &i->source[1], VALUES);
    if (buffer) {
        const uint32_t *d = w->s + i->saddr;
        uint64_t base = (d[0] | (uint64_t)d[1] << 32) & 0xffffffffffff, within = ((uint64_t)(int64_t)i->offset + scalar_bits(w, &i->source[1], VALUES)) & ~(uint64_t)3;
        records = d[2];
        address = base + within;
        if (d[1] >> 16) {
            fault(m, w, UNSUPPORTED, -1);
            m->fault.reason = 1, m->fault.address = d[1], m->fault.extra = d[3];
            return;
        }
        if (within + bytes > records) {
            fault_bounds(m, w, OUT_OF_BOUNDS_BUFFER, -1, within, bytes, 0);
            m->fault.extra = records;
            return;
        }
    }
    address &= ~(uint64_t)3;
    Region *region = region_of(m, address, (uint32_t)bytes);
    if (!region) {
        fault_bounds(m, w, OUT_OF_BOUNDS, -1, address, bytes, 0);
        return;
    }
    for (uint32_t n = 0; n < i->dwords; n++) {
        uint32_t value, undefined = 0;
        uint64_t at = address - region->address + 4 * n;
        memcpy(&value, region->bytes + at, 4);
        if (m->checks && region->undefined) memcpy(&undefined, region->undefined + at, 4);
        set_scalar(w, i->sdst + n, value, undefined, w->step + 1);
        if (i->sdst + n >= EXEC && undefined) fault_undefined(m, w, -1, USED_EXEC, w->step + 1);
    }
}

static void memory(Machine *m, Wave *w, const Step *i) {
    if (i->space == CONSTANTS) {
        scalar_load(m, w, i);
        return;
    }
    uint64_t address[LANES], exec = exec_of(w), lanes = addresses(m, w, i, exec, address);
    if (m->fault.kind != NO_FAULT) return;
    if (i->access == LOAD) load(m, w, i, address, lanes, exec);
    else if (i->access == STORE) store(m, w, i, address, lanes);
    else atomic(m, w, i, address, lanes);
}

// ds_swizzle (a fixed pattern), ds_bpermute (pull: lane reads lane address / 4), ds_permute (push). No LDS is touched; an
// inactive lane gives 0.
enum LdsMove { SWIZZLE, BPERMUTE, PERMUTE };
static void lds_move(Machine *m, Wave *w, const Step *i) {
    uint64_t exec = exec_of(w);
    const uint8_t *pattern = m->patterns + (size_t)i->lanes * LANES;
    for (int plane = m->checks ? UNDEFINED : VALUES; plane >= VALUES; plane--) {
        const uint32_t *from = vector_row(w, plane, i->vdata), *address = vector_row(w, VALUES, i->vaddr), *unknown = vector_row(w, UNDEFINED, i->vaddr);
        uint32_t out[LANES] = {0};
        for (int lane = 0; lane < LANES; lane++) {
            uint32_t other = i->op == SWIZZLE ? pattern[lane] : (address[lane] + (uint32_t)i->offset) >> 2 & 63;
            if (i->op == PERMUTE) {
                if (exec >> lane & 1) out[other] = from[lane];
            } else if (exec >> other & 1) {
                out[lane] = from[other];
            }
            if (plane == UNDEFINED && i->op != SWIZZLE && w->dirty[i->vaddr] && unknown[lane]) out[lane] = ALL_BITS;
        }
        if (plane == VALUES) merge(vector_row(w, VALUES, i->vdst), out, exec);
        else if (w->dirty[i->vdata] || (i->op != SWIZZLE && w->dirty[i->vaddr])) set_undefined(w, i->vdst, out, exec, w->origin[w->dirty[i->vdata] ? i->vdata : i->vaddr]);
        else set_undefined(w, i->vdst, 0, exec, 0);
    }
}
