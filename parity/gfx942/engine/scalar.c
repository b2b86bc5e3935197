// SPDX-License-Identifier: Apache-2.0
// Scalar steps: the lines of scalar.def, and branches.
#include "vector.c"

// Fields of s_bfe: `bits` wide values, a width that reaches beyond the top takes what is there.
INLINE uint64_t field(uint64_t x, uint32_t offset, uint32_t width, int bits) {
    (void)bits;
    return width >= 64 ? x >> offset : x >> offset & (((uint64_t)1 << width) - 1);
}
INLINE uint64_t signed_field(uint64_t x, uint32_t offset, uint32_t width, int bits) {
    int64_t shifted = (bits == 32 ? (int64_t)(int32_t)x : (int64_t)x) >> offset;
    return width == 0 ? 0 : width >= 64 ? (uint64_t)shifted : (uint64_t)((int64_t)((uint64_t)shifted << (64 - width)) >> (64 - width));
}

// Whether undefined bits can change `x op y`: they leave each side a range; no if the ranges share at most one value and all four
// pairs of ends compare alike. `top` is the sign bit of a signed type, whose undefined value 1 is the least.
#define LEAST(v, n, top) (((v) & ~(n)) | ((n) & (top)))
#define MOST(v, n, top) (((v) | (n)) & ~((n) & (top)))
#define UNDECIDED(type, top, op) ({ \
    type low = (type)LEAST(x, p, top), high = (type)MOST(x, p, top), from = (type)LEAST(y, q, top), to = (type)MOST(y, q, top); \
    int hits = (low op from) + (low op to) + (high op from) + (high op to); \
    !((low >= to || high <= from) && (hits == 0 || hits == 4)); })

#define T_0 uint32_t
#define T_32 uint32_t
#define T_64 uint64_t
enum { NO_SCC = 2 };

static int is_saveexec(uint16_t op) { return op >= OP_s_and_saveexec_b64 && op <= OP_s_orn1_saveexec_b64; }

// SCC of a result with undefined bits is known when a defined bit is set (SCC = result is not zero).
static uint32_t scc_unknown(uint64_t value, uint64_t undefined) { return undefined != 0 && (value & ~undefined) == 0; }

static void write_scalar(Machine *m, Wave *w, uint32_t row, int bits, uint64_t value, uint64_t undefined, uint32_t origin) {
    set_scalar(w, row, (uint32_t)value, (uint32_t)undefined, origin);
    if (bits == 64) set_scalar(w, row + 1, (uint32_t)(value >> 32), (uint32_t)(undefined >> 32), origin);
    if (row >= EXEC && undefined) fault_undefined(m, w, bits == 64 ? (int)first_lane(undefined) : -1, USED_EXEC, origin);
}

static void scalar_alu(Machine *m, Wave *w, const Step *i) {
    uint64_t a = scalar_bits(w, &i->source[0], VALUES), b = scalar_bits(w, &i->source[1], VALUES), exec = exec_of(w);
    uint64_t result = 0, undefined = 0, unknown_source = 0, c = 0, e = 0;
    uint32_t scc = w->scc, new_scc = NO_SCC, origin = 0;
    int bits = 0;
    if (m->checks && (source_dirty(w, &i->source[0], &origin) || source_dirty(w, &i->source[1], &origin))) {
        c = scalar_bits(w, &i->source[0], UNDEFINED), e = scalar_bits(w, &i->source[1], UNDEFINED);
        unknown_source = c | e;
    }
    switch (i->op) {
#define SALU(name, D, A, B, value, condition, undefined_bits) \
    case OP_##name: { \
        T_##A x = (T_##A)a, p = (T_##A)c; T_##B y = (T_##B)b, q = (T_##B)e; T_##D d = (T_##D)(value); const uint32_t r = 0; \
        bits = D; result = d; new_scc = (uint32_t)(condition); if (unknown_source) undefined = (T_##D)(undefined_bits); \
        if (D == 0 && unknown_source) undefined = (undefined_bits) != 0; (void)x; (void)y; (void)p; (void)q; (void)r; break; }
#include "scalar.def"
#undef SALU
    }
    if (i->narrow && (b >> 16 & 127) > i->narrow) {  // s_bfe: the manual's (1 << width) - 1 has no meaning from there on
        fault(m, w, UNSUPPORTED, -1);
        return;
    }
    if (i->reads_scc && w->scc_undefined) {
        undefined = ~(uint64_t)0, origin = w->scc_origin;
        if (bits == 32) undefined = ALL_BITS;
    }
    if (is_saveexec(i->op)) {
        write_scalar(m, w, i->sdst, 64, exec, 0, 0);
        write_scalar(m, w, EXEC, 64, result, undefined, origin);
    } else if (bits) {
        write_scalar(m, w, i->sdst, bits, result, undefined, origin);
    }
    if (new_scc != NO_SCC) {
        w->scc = new_scc;
        w->scc_undefined = bits == 0 ? undefined != 0 : scc_unknown(result, undefined);
        w->scc_origin = origin;
    }
}

enum Branch { ALWAYS, SCC0, SCC1, VCCZ, VCCNZ, EXECZ, EXECNZ };
static void branch(Machine *m, Wave *w, const Step *i) {
    uint64_t vcc = scalar64(w->s, VCC), vcc_undefined = scalar64(w->s_undefined, VCC);
    int taken = 1;
    switch (i->op) {
        case SCC0: taken = !w->scc; break;
        case SCC1: taken = w->scc != 0; break;
        case VCCZ: taken = vcc == 0; break;
        case VCCNZ: taken = vcc != 0; break;
        case EXECZ: taken = exec_of(w) == 0; break;
        case EXECNZ: taken = exec_of(w) != 0; break;
        default: break;
    }
    if (m->checks && (i->op == SCC0 || i->op == SCC1) && w->scc_undefined) fault_undefined(m, w, -1, USED_BRANCH, w->scc_origin);
    if (m->checks && (i->op == VCCZ || i->op == VCCNZ) && scc_unknown(vcc, vcc_undefined))
        fault_undefined(m, w, (int)first_lane(vcc_undefined), USED_BRANCH, w->s_origin[VCC]);
    if (taken) w->step = i->target;
    else w->step = i->next;
}
