// SPDX-License-Identifier: Apache-2.0
// Sources and destinations of vector steps: 64 lanes of raw bits, with DPP, SDWA, abs, neg and EXEC applied. Every function
// works on one of two planes: the values, or the bits that nobody defined.
#include "engine.h"

enum Plane { VALUES, UNDEFINED };
typedef uint32_t U32x16 __attribute__((vector_size(64)));
typedef int32_t I32x16 __attribute__((vector_size(64)));
typedef uint8_t U8x64 __attribute__((vector_size(64)));
typedef _Bool Bits64 __attribute__((ext_vector_type(64)));
typedef _Bool Bits16 __attribute__((ext_vector_type(16)));

// Bit l of the result: byte l is not 0.
INLINE uint64_t pack(const uint8_t *bytes) {
    U8x64 all;
    memcpy(&all, bytes, 64);
    Bits64 bits = __builtin_convertvector(all, Bits64);
    uint64_t result;
    memcpy(&result, &bits, 8);
    return result;
}

// Write 64 lanes where `mask` says so.
INLINE void merge(uint32_t *to, const uint32_t *from, uint64_t mask) {
    if (mask == ALL_LANES) {
        memcpy(to, from, 4 * LANES);
        return;
    }
    for (int part = 0; part < 4; part++) {
        uint16_t some = (uint16_t)(mask >> 16 * part);
        Bits16 bits;
        memcpy(&bits, &some, 2);
        U32x16 keep = (U32x16)__builtin_convertvector(bits, I32x16) - 1, old, new;  // 0 where written, all ones elsewhere
        memcpy(&old, to + 16 * part, 64);
        memcpy(&new, from + 16 * part, 64);
        new = (old & keep) | (new & ~keep);
        memcpy(to + 16 * part, &new, 64);
    }
}

INLINE uint64_t scalar64(const uint32_t *s, uint32_t row) { return s[row] | (uint64_t)s[row + 1] << 32; }
INLINE uint64_t exec_of(const Wave *w) { return scalar64(w->s, EXEC); }
INLINE uint32_t first_lane(uint64_t mask) { return mask ? (uint32_t)__builtin_ctzll(mask) : 0; }
INLINE uint32_t *vector_row(const Wave *w, int plane, uint32_t row) { return (plane == VALUES ? w->v : w->undefined) + (size_t)row * LANES; }

// Bits of a scalar source on a plane: constants are defined, SCC has one bit.
INLINE uint64_t scalar_bits(const Wave *w, const Source *source, int plane) {
    switch (source->kind) {
        case CONSTANT: return plane == VALUES ? source->value : 0;
        case SCALAR: return source->flags & WIDE ? scalar64(plane == VALUES ? w->s : w->s_undefined, source->row) : (plane == VALUES ? w->s : w->s_undefined)[source->row];
        case LANE_MASK: return scalar64(plane == VALUES ? w->s : w->s_undefined, source->row);
        case SCC_SOURCE: return plane == VALUES ? w->scc : w->scc_undefined;
        default: return 0;
    }
}

// DPP (ISA "DPP"): lanes read other lanes of the row. A lane whose source lies outside the pattern or is inactive reads 0 with
// bound_ctrl, else it is not written; row_mask and bank_mask switch rows and banks of four lanes off. *written loses those lanes.
static const uint32_t *dpp_source(const Machine *m, const Wave *w, const Step *i, const uint32_t *from, uint32_t *to, uint64_t *written) {
    const uint8_t *pattern = m->patterns + (size_t)i->lanes * LANES;
    uint64_t exec = exec_of(w);
    for (int lane = 0; lane < LANES; lane++) {
        int valid = pattern[lane] < LANES && (exec >> (pattern[lane] & 63) & 1);
        to[lane] = valid ? from[pattern[lane]] : 0;
        int enabled = (i->row_mask >> (lane / 16) & 1) && (i->bank_mask >> (lane / 4 % 4) & 1);
        if (!enabled || (!valid && !i->bound_control)) *written &= ~((uint64_t)1 << lane);
    }
    return to;
}

// SDWA (ISA "SDWA"): a byte or word of the dword, zero- or sign-extended. Works on undefined bits too: copies of a sign are.
static void sdwa_source(uint32_t *lanes, const Source *source) {
    int width = source->select < 4 ? 8 : 16, shift = source->select < 4 ? 8 * source->select : 16 * (source->select - 4);
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t part = lanes[lane] >> shift & ((1u << width) - 1);
        lanes[lane] = source->flags & SIGN_EXTEND ? (uint32_t)((int32_t)(part << (32 - width)) >> (32 - width)) : part;
    }
}

// 64 lanes of source n: uint32_t[64], or uint64_t[64] if WIDE; a LANE_MASK gives the one uint64_t. `room` is 128 dwords.
static const void *fetch(const Machine *m, const Wave *w, const Step *i, int n, int plane, uint32_t *room, uint64_t *written) {
    const Source *source = &i->source[n];
    if (source->kind == LANE_MASK) {
        uint64_t mask = scalar_bits(w, source, plane);
        memcpy(room, &mask, 8);
        return room;
    }
    if (source->flags & WIDE) {
        uint64_t *wide = (uint64_t *)room;
        if (source->kind == VECTOR) {
            const uint32_t *low = vector_row(w, plane, source->row), *high = low + LANES;
            for (int lane = 0; lane < LANES; lane++) wide[lane] = low[lane] | (uint64_t)high[lane] << 32;
        } else {
            uint64_t bits = scalar_bits(w, source, plane);
            for (int lane = 0; lane < LANES; lane++) wide[lane] = bits;
        }
        if (plane == VALUES && source->flags & (NEGATE | ABSOLUTE))
            for (int lane = 0; lane < LANES; lane++) {
                if (source->flags & ABSOLUTE) wide[lane] &= ~((uint64_t)1 << 63);
                if (source->flags & NEGATE) wide[lane] ^= (uint64_t)1 << 63;
            }
        return room;
    }
    const uint32_t *from;
    if (source->kind == VECTOR) {
        from = vector_row(w, plane, source->row);
        if (!(source->flags & ~WIDE) && source->select == WHOLE_DWORD) return from;
    } else {
        uint32_t bits = (uint32_t)scalar_bits(w, source, plane);
        for (int lane = 0; lane < LANES; lane++) room[lane] = bits;
        from = room;
    }
    if (source->flags & DPP) from = dpp_source(m, w, i, from, room, written);
    if (from != room) memcpy(room, from, 4 * LANES);
    if (source->select != WHOLE_DWORD) sdwa_source(room, source);
    if (plane == VALUES && source->flags & (NEGATE | ABSOLUTE)) {
        uint32_t sign = 1u << source->sign_bit;
        uint32_t clear = source->flags & ABSOLUTE ? ~sign : ALL_BITS, flip = source->flags & NEGATE ? sign : 0;
        for (int lane = 0; lane < LANES; lane++) room[lane] = (room[lane] & clear) ^ flip;
    }
    return room;
}

// Whether any lane of source n may have undefined bits; *origin gets the step that they come from.
static int source_dirty(const Wave *w, const Source *source, uint32_t *origin) {
    switch (source->kind) {
        case VECTOR:
            for (uint32_t row = source->row; row < source->row + (source->flags & WIDE ? 2u : 1u); row++)
                if (w->dirty[row]) {
                    *origin = w->origin[row];
                    return 1;
                }
            return 0;
        case SCALAR: case LANE_MASK:
            if (scalar_bits(w, source, UNDEFINED) == 0) return 0;
            *origin = w->s_origin[w->s_undefined[source->row] ? source->row : source->row + 1];
            return 1;
        case SCC_SOURCE:
            *origin = w->scc_origin;
            return w->scc_undefined;
        default: return 0;
    }
}

// Undefined bits of a row in the lanes of `mask` become `bits` (null: none).
static void set_undefined(Wave *w, uint32_t row, const uint32_t *bits, uint64_t mask, uint32_t origin) {
    uint32_t *to = vector_row(w, UNDEFINED, row);
    if (bits) {
        merge(to, bits, mask);
        uint32_t any = 0;
        for (int lane = 0; lane < LANES; lane++) any |= to[lane];
        w->dirty[row] = any != 0;
        w->origin[row] = origin;
    } else if (w->dirty[row]) {
        static const uint32_t none[LANES];
        merge(to, none, mask);
        uint32_t any = 0;
        for (int lane = 0; lane < LANES; lane++) any |= to[lane];
        w->dirty[row] = any != 0;
    }
}

static void set_scalar(Wave *w, uint32_t row, uint32_t value, uint32_t undefined, uint32_t origin) {
    w->s[row] = value;
    w->s_undefined[row] = undefined;
    w->s_origin[row] = origin;
}

static void fault(Machine *m, const Wave *w, int kind, int lane) {
    if (m->fault.kind != NO_FAULT) return;
    m->fault = (Fault){.kind = (uint32_t)kind, .step = w->step, .wave = (int32_t)w->index, .lane = lane};
}

// Undefined bits are used: by an address, EXEC, a branch, a store (`reason`, the order of UNDEFINED_USES in launch.py).
enum Use { USED_ADDRESS, USED_EXEC, USED_BRANCH, USED_STORE, USED_LANE, USED_DESCRIPTOR };
static void fault_undefined(Machine *m, const Wave *w, int lane, int use, uint32_t origin) {
    if (m->fault.kind != NO_FAULT) return;
    fault(m, w, UNINITIALISED, lane);
    m->fault.reason = (uint32_t)use;
    m->fault.other_step = origin;
}
