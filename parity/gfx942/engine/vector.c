// SPDX-License-Identifier: Apache-2.0
// Vector steps: the lines of vector.def, run over 64 lanes.
#include "lanes.c"

double exp2(double);
double log2(double);

#define MIN2(x, y) ((x) < (y) ? (x) : (y))
#define MAX2(x, y) ((x) > (y) ? (x) : (y))
INLINE uint32_t raw(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
INLINE float real(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
INLINE double double_of(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
INLINE uint64_t bits_of(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
INLINE uint64_t join64(uint32_t low, uint32_t high) { return low | (uint64_t)high << 32; }
INLINE uint64_t pair_of(float low, float high) { return join64(raw(low), raw(high)); }
INLINE int64_t signed24(uint32_t x) { return (int32_t)(x << 8) >> 8; }
INLINE int32_t clamp_i16(int32_t x) { return MAX2(MIN2(x, 32767), -32768); }
INLINE uint32_t keep_half(uint32_t half, uint32_t old, uint8_t opsel) { return opsel & 8 ? (old & 0xffff) | half << 16 : (old & 0xffff0000u) | half; }

INLINE uint32_t bfe_u32(uint32_t x, uint32_t offset, uint32_t width) { return x >> (offset & 31) & ((1u << (width & 31)) - 1); }
// A field that reaches beyond bit 31 is filled with the sign (ISA: v_bfe_i32 shifts S0.i32).
INLINE int32_t bfe_i32(uint32_t x, uint32_t offset, uint32_t width) {
    width &= 31;
    int32_t shifted = (int32_t)x >> (offset & 31);
    return width ? (int32_t)((uint32_t)shifted << (32 - width)) >> (32 - width) : 0;
}

// v_perm_b32: byte n of the result is byte selector[n] of {high, low}; 8-11 are signs of words; 12 is 0x00, above it 0xff.
INLINE uint32_t perm(uint32_t high, uint32_t low, uint32_t selector) {
    uint64_t both = join64(low, high);
    uint32_t result = 0;
    for (int n = 0; n < 4; n++) {
        uint32_t choice = selector >> 8 * n & 0xff;
        uint32_t byte = (uint32_t)(both >> 8 * (choice & 7)) & 0xff, sign = both >> (16 * (choice & 3) + 15) & 1 ? 0xff : 0;
        result |= (choice < 8 ? byte : choice < 12 ? sign : choice == 12 ? 0 : 0xff) << 8 * n;
    }
    return result;
}

INLINE uint32_t sad_u8(uint32_t x, uint32_t y) {
    uint32_t sum = 0;
    for (int n = 0; n < 32; n += 8) {
        int32_t off = (int32_t)(x >> n & 0xff) - (int32_t)(y >> n & 0xff);
        sum += (uint32_t)(off < 0 ? -off : off);
    }
    return sum;
}

// IEEE minNum and maxNum: a quiet NaN loses against a number, -0 < +0 (ISA: v_min_f32, v_max_f32). With MODE.IEEE, which launch.py
// requires, a signaling NaN gives a quiet one.
INLINE int is_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }
INLINE int is_signaling(uint32_t bits) { return is_nan(bits) && !(bits & 0x400000); }
INLINE float pick_f32(float x, float y, uint32_t sign_if_zeros, int take_x) {
    uint32_t a = raw(x), b = raw(y);
    uint32_t number = ((a | b) & 0x7fffffff) == 0 ? sign_if_zeros : take_x ? a : b;
    uint32_t result = is_nan(a) ? (is_nan(b) ? a | 0x400000 : b) : is_nan(b) ? a : number;
    return real(is_signaling(a) || is_signaling(b) ? 0x7fc00000 : result);
}
INLINE float max_f32(float x, float y) { return pick_f32(x, y, raw(x) & raw(y), x > y); }
INLINE float min_f32(float x, float y) { return pick_f32(x, y, raw(x) | raw(y), x < y); }
// ISA: with a NaN among them the least of the three, else the one between the others.
INLINE float med3_f32(float x, float y, float z) {
    if (is_nan(raw(x)) || is_nan(raw(y)) || is_nan(raw(z))) return min_f32(min_f32(x, y), z);
    float top = max_f32(max_f32(x, y), z);
    return raw(top) == raw(x) ? max_f32(y, z) : raw(top) == raw(y) ? max_f32(x, z) : max_f32(x, y);
}
INLINE float fract_f32(float x) {  // below 1 also where the subtraction rounds up (ISA: v_fract_f32)
    float part = x - __builtin_floorf(x);
    return part >= 1.0f ? real(0x3f7fffff) : part;
}
INLINE float flush(float x) { return (raw(x) & 0x7f800000) == 0 ? real(raw(x) & 0x80000000u) : x; }
INLINE float ldexp_f32(float x, int32_t n) {  // exact in double, then one rounding
    n = MAX2(MIN2(n, 600), -600);
    double scaled = (double)x * double_of((uint64_t)(n / 2 + 1023) << 52);
    return (float)(scaled * double_of((uint64_t)(n - n / 2 + 1023) << 52));
}
INLINE int32_t frexp_exp(float x) {
    uint32_t size = raw(x) & 0x7fffffff;
    if (size == 0 || size >= 0x7f800000) return 0;
    return size < 0x800000 ? 32 - __builtin_clz(size) - 149 : (int32_t)(size >> 23) - 126;
}
INLINE float frexp_mant(float x) {
    uint32_t size = raw(x) & 0x7fffffff;
    if (size == 0 || size >= 0x7f800000) return is_nan(size) ? real(raw(x) | 0x400000) : x;
    if (size < 0x800000) size <<= __builtin_clz(size) - 8;
    return real((raw(x) & 0x80000000u) | (size & 0x7fffff) | 0x3f000000);
}
INLINE uint32_t class_f32(uint32_t bits, uint32_t wanted) {
    uint32_t size = bits & 0x7fffffff, negative = bits >> 31;
    uint32_t kind = is_nan(bits) ? (is_signaling(bits) ? 0 : 1) : size == 0x7f800000 ? (negative ? 2 : 9) : size >= 0x800000 ? (negative ? 3 : 8)
                    : size ? (negative ? 4 : 7) : (negative ? 5 : 6);
    return wanted >> kind & 1;
}

// Truncation; out of range clamps, NaN gives 0 (ISA: v_cvt_u32_f32, v_cvt_i32_f32).
INLINE uint32_t f32_to_u32(float x) { return !(x > -1.0f) ? 0 : x >= 4294967296.0f ? ALL_BITS : (uint32_t)x; }
INLINE int32_t f32_to_i32(float x) { return x != x ? 0 : x >= 2147483648.0f ? 0x7fffffff : x <= -2147483648.0f ? (int32_t)0x80000000 : (int32_t)x; }

// Round `significand` to `keep` fewer bits, to nearest even.
INLINE uint32_t round_even(uint32_t significand, uint32_t drop) {
    if (drop > 31) return 0;
    if (drop == 0) return significand;
    uint32_t half = 1u << (drop - 1), rest = significand & ((half << 1) - 1), kept = significand >> drop;
    return kept + (rest > half || (rest == half && (kept & 1)));
}
INLINE uint32_t f32_to_f16(float x) {
    uint32_t bits = raw(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return sign | 0x7e00 | (size >> 13 & 0x3ff);
    if (size >= 0x477ff000) return sign | 0x7c00;  // rounds to 65536 or is infinite
    if (size >= 0x38800000) return sign | (round_even(size, 13) - (112 << 10));
    uint32_t exponent = size >> 23, significand = (size & 0x7fffff) | 0x800000;
    return sign | (exponent < 101 ? 0 : round_even(significand, 126 - exponent));
}
INLINE float f16_to_f32(uint32_t half) {
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (exponent == 31) return real(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    if (exponent == 0) return real(sign | raw((float)fraction * real(0x33800000)));  // 2^-24
    return real(sign | (exponent + 112) << 23 | fraction << 13);
}
// FNUZ formats: e4m3 (3 mantissa bits, bias 8) and e5m2 (2, bias 16); 0x80 is the only NaN, there is no infinity and no -0.
INLINE float fp8_to_f32(uint32_t byte, int mantissa) {
    if (byte == 0x80) return real(0x7fc00000);
    uint32_t field = (byte & 0x7f) >> mantissa, fraction = byte & ((1u << mantissa) - 1), bias = mantissa == 3 ? 8 : 16;
    uint32_t significand = fraction + (field ? 1u << mantissa : 0), scale = (field ? field : 1) - bias - (uint32_t)mantissa + 127;
    float size = (float)significand * real(scale << 23);
    return byte & 0x80 ? -size : size;
}
// To nearest even; what rounds beyond the largest value, infinities and NaN give NaN (MODE.FP16_OVFL = 0); no -0.
INLINE uint32_t f32_to_fp8(float x, uint32_t mantissa) {
    uint32_t size = raw(x) & 0x7fffffff, sign = raw(x) >> 24 & 0x80, bias = mantissa == 3 ? 8 : 16;
    int32_t exponent = (int32_t)(size >> 23) - 127 + (int32_t)bias;
    uint32_t drop = 23 - mantissa, significand = (size & 0x7fffff) | 0x800000;
    uint32_t byte = exponent >= 1 ? round_even(significand, drop) + ((uint32_t)(exponent - 1) << mantissa)
                                  : round_even(significand, drop + (uint32_t)MIN2(1 - exponent, 31));
    if (size > 0x7f800000 || byte > 0x7f) return 0x80;
    return byte ? byte | sign : 0;
}
INLINE int mad_i64_overflows(int32_t x, int32_t y, int64_t z) {
    int64_t product = (int64_t)x * y, sum;
    return __builtin_add_overflow(product, z, &sum);
}

#define T_u uint32_t
#define T_i int32_t
#define T_f float
#define T_h uint32_t
#define T_s int32_t
#define T_m uint32_t
#define T_U uint64_t
#define T_I int64_t
#define T__ uint32_t
#define IN_u(n) (((const uint32_t *)in[n])[l])
#define IN_i(n) (((const int32_t *)in[n])[l])
#define IN_f(n) (((const float *)in[n])[l])
#define IN_h(n) (((const uint32_t *)in[n])[l] & 0xffff)
#define IN_s(n) ((int16_t)((const uint32_t *)in[n])[l])
#define IN_m(n) ((uint32_t)(*(const uint64_t *)in[n] >> l) & 1)
#define IN_U(n) (((const uint64_t *)in[n])[l])
#define IN_I(n) (((const int64_t *)in[n])[l])
#define IN__(n) 0u
#define RAW_u(n) (((const uint32_t *)not[n])[l])
#define RAW_i RAW_u
#define RAW_f RAW_u
#define RAW_h(n) (RAW_u(n) & 0xffff)
#define RAW_s RAW_h
#define RAW_m(n) ((uint32_t)(*(const uint64_t *)not[n] >> l) & 1)
#define RAW_U(n) (((const uint64_t *)not[n])[l])
#define RAW_I RAW_U
#define RAW__(n) 0u
#define T_RAW_u uint32_t
#define T_RAW_i uint32_t
#define T_RAW_f uint32_t
#define T_RAW_h uint32_t
#define T_RAW_s uint32_t
#define T_RAW_m uint32_t
#define T_RAW_U uint64_t
#define T_RAW_I uint64_t
#define T_RAW__ uint32_t

#define LEFTWARD(bits) ((bits) | (0 - (bits)))
#define ANY ((p | q | r) ? ~(uint64_t)0 : 0)
#define ANY64 ANY
#define SUM LEFTWARD(p | q | r)
#define CTL(control, bits) (((control) & (bits)) ? ~(uint64_t)0 : 0)
#define UNDEFINED_AND(x, p, y, q) (((p) | (q)) & ((x) | (p)) & ((y) | (q)))

// Operation numbers: the lines of the two tables in order.
enum Op {
#define VALU(name, ...) OP_##name,
#define SUMS(name, ...) OP_##name,
#define PACKED(name, ...) OP_##name,
#define ORDER(name, ...) OP_cmp_##name,
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
#define SALU(name, ...) OP_##name,
#include "scalar.def"
#undef SALU
    OPERATIONS
};

static void values(const Step *i, const void *const in[3], void *out) {
    switch (i->op) {
#define VALU(name, R, A, B, C, fidelity, value, undefined) \
    case OP_##name: \
        for (int l = 0; l < LANES; l++) { T_##A x = IN_##A(0); T_##B y = IN_##B(1); T_##C z = IN_##C(2); ((T_##R *)out)[l] = (T_##R)(value); } \
        break;
#define SUMS(...)
#define PACKED(...)
#define ORDER(...)
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
    }
}

// Undefined bits of a result, from those of the sources: rarely run, so kept small.
static void undefined_values(const Step *i, const void *const in[3], const void *const not[3], void *out) {
    switch (i->op) {
#define VALU(name, R, A, B, C, fidelity, value, undefined) \
    case OP_##name: \
        _Pragma("clang loop vectorize(disable) unroll(disable)") for (int l = 0; l < LANES; l++) { \
            T_##A x = IN_##A(0); T_##B y = IN_##B(1); T_##C z = IN_##C(2); T_RAW_##A p = RAW_##A(0); T_RAW_##B q = RAW_##B(1); T_RAW_##C r = RAW_##C(2); \
            ((T_RAW_##R *)out)[l] = (T_RAW_##R)(undefined); } \
        break;
#define SUMS(...)
#define PACKED(...)
#define ORDER(...)
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
    }
}

// Results that the manual only bounds move by up to one ulp when `nudge` asks: an output that depends on one then changes.
INLINE int is_denormal(uint32_t bits) { return (bits & 0x7fffffff) != 0 && (bits & 0x7f800000) == 0; }

// v_rcp, v_rsq and v_sqrt have no stated result for denormals, in or out (LLVM lowers around them); v_exp and v_log flush them.
static int beyond_the_bound(const Step *i, const uint32_t *in, const uint32_t *out, uint64_t mask) {
    if (i->op == OP_v_exp_f32 || i->op == OP_v_log_f32) return 0;
    for (int lane = 0; lane < LANES; lane++)
        if (mask >> lane & 1 && (is_denormal(in[lane]) || is_denormal(out[lane]))) return 1;
    return 0;
}

static void nudge(Machine *m, uint32_t *out) {
    for (int lane = 0; lane < LANES; lane++) {
        m->random = m->random * 6364136223846793005u + 1442695040888963407u;
        uint32_t size = out[lane] & 0x7fffffff;
        if (size > 0x800000 && size < 0x7f7fffff) out[lane] += (uint32_t)(m->random >> 33) % 3 - 1;
    }
}

// SDWA destination: the result goes to a byte or word; the rest is 0 (dst_unused 0) or stays (2).
static void sdwa_place(const Wave *w, const Step *i, int plane, uint32_t *out) {
    int width = i->sdwa_select < 4 ? 8 : 16, shift = i->sdwa_select < 4 ? 8 * i->sdwa_select : 16 * (i->sdwa_select - 4);
    uint32_t field = ((1u << width) - 1) << shift;
    const uint32_t *old = vector_row(w, plane, i->vdst);
    for (int lane = 0; lane < LANES; lane++) out[lane] = (out[lane] << shift & field) | (i->sdwa_unused ? old[lane] & ~field : 0);
}

// Clamp of fp32 to 0..1; DX10_CLAMP, which launch.py requires, makes NaN 0.
static void clamp(float *out) {
    for (int lane = 0; lane < LANES; lane++) out[lane] = out[lane] > 0 ? MIN2(out[lane], 1.0f) : 0.0f;
}

static void write_result(Wave *w, const Step *i, int wide, int plane, const uint32_t *out, uint64_t mask, uint32_t origin) {
    uint32_t part[LANES];
    for (int half = 0; half <= wide; half++) {
        const uint32_t *lanes = out;
        if (wide) {
            for (int lane = 0; lane < LANES; lane++) part[lane] = out[2 * lane + half];
            lanes = part;
        }
        if (plane == VALUES) merge(vector_row(w, VALUES, i->vdst + (uint32_t)half), lanes, mask);
        else set_undefined(w, i->vdst + (uint32_t)half, lanes, mask, origin);
    }
}

static int any_dirty(const Wave *w, const Step *i, uint32_t *origin) {
    return source_dirty(w, &i->source[0], origin) || source_dirty(w, &i->source[1], origin) || source_dirty(w, &i->source[2], origin);
}

static void vector_alu(Machine *m, Wave *w, const Step *i) {
    uint32_t room[3][2 * LANES], lost[3][2 * LANES], out[2 * LANES] __attribute__((aligned(64))), undefined[2 * LANES], origin = 0;
    uint64_t mask = exec_of(w), ignored;
    const void *in[3], *not[3];
    for (int n = 0; n < 3; n++) in[n] = fetch(m, w, i, n, VALUES, room[n], &mask);
    values(i, in, out);
    int wide = i->dwords == 2;
    if (i->clamp) clamp((float *)out);
    if (i->fidelity == APPROXIMATE && beyond_the_bound(i, in[0], out, mask)) {
        fault(m, w, UNSUPPORTED, -1);
        m->fault.reason = 2;
        return;
    }
    if (i->fidelity == APPROXIMATE && m->nudge) nudge(m, out);
    if (m->checks) {
        int dirty = any_dirty(w, i, &origin);
        int keeps = i->sdwa_select != WHOLE_DWORD && i->sdwa_unused && w->dirty[i->vdst];
        if (dirty || keeps) {
            if (keeps && !dirty) origin = w->origin[i->vdst];
            for (int n = 0; n < 3; n++) not[n] = fetch(m, w, i, n, UNDEFINED, lost[n], &ignored);
            undefined_values(i, in, not, undefined);
            if (i->sdwa_select != WHOLE_DWORD) sdwa_place(w, i, UNDEFINED, undefined);
            if (i->sdwa_select != WHOLE_DWORD) sdwa_place(w, i, VALUES, out);
            write_result(w, i, wide, VALUES, out, mask, 0);
            write_result(w, i, wide, UNDEFINED, undefined, mask, origin);
            return;
        }
        for (int half = 0; half <= wide; half++) set_undefined(w, i->vdst + (uint32_t)half, 0, mask, 0);
    }
    if (i->sdwa_select != WHOLE_DWORD) sdwa_place(w, i, VALUES, out);
    write_result(w, i, wide, VALUES, out, mask, 0);
}

// A lane mask as the result: bits of inactive lanes are 0 and defined.
static void write_mask(Machine *m, Wave *w, const Step *i, uint64_t mask, uint64_t undefined, uint32_t origin) {
    set_scalar(w, i->sdst, (uint32_t)mask, (uint32_t)undefined, origin);
    set_scalar(w, i->sdst + 1, (uint32_t)(mask >> 32), (uint32_t)(undefined >> 32), origin);
    if (i->writes_exec || i->sdst == EXEC) {
        if (undefined) fault_undefined(m, w, (int)first_lane(undefined), USED_EXEC, origin);
        w->s[EXEC] = (uint32_t)mask, w->s[EXEC + 1] = (uint32_t)(mask >> 32);
    }
}

static uint64_t lanes_undefined(const Machine *m, const Wave *w, const Step *i, uint32_t *origin) {
    uint8_t hit[LANES] = {0};
    if (!any_dirty(w, i, origin)) return 0;
    for (int n = 0; n < 3; n++) {
        uint32_t room[2 * LANES];
        uint64_t ignored;
        const void *bits = fetch(m, w, i, n, UNDEFINED, room, &ignored);
        int wide = i->source[n].flags & WIDE, mask = i->source[n].kind == LANE_MASK;
        for (int lane = 0; lane < LANES; lane++)
            hit[lane] |= mask ? *(const uint64_t *)bits >> lane & 1 : wide ? ((const uint64_t *)bits)[lane] != 0 : ((const uint32_t *)bits)[lane] != 0;
    }
    return pack(hit) & exec_of(w);
}

// The least and greatest value that undefined bits `p` leave to x.
#define LEAST_u(x, p) ((x) & ~(p))
#define MOST_u(x, p) ((x) | (p))
#define LEAST_h LEAST_u
#define MOST_h MOST_u
#define LEAST_U LEAST_u
#define MOST_U MOST_u
#define LEAST_i(x, p) ((int32_t)(((uint32_t)(x) & ~(p)) | ((p) & 0x80000000u)))
#define MOST_i(x, p) ((int32_t)(((uint32_t)(x) | (p)) & ~((p) & 0x80000000u)))
#define LEAST_s(x, p) ((int16_t)(((uint32_t)(x) & ~(p)) | ((p) & 0x8000u)))
#define MOST_s(x, p) ((int16_t)(((uint32_t)(x) | (p)) & ~((p) & 0x8000u)))
#define LEAST_I(x, p) ((int64_t)(((uint64_t)(x) & ~(p)) | ((p) & (uint64_t)1 << 63)))
#define MOST_I(x, p) ((int64_t)(((uint64_t)(x) | (p)) & ~((p) & (uint64_t)1 << 63)))
#define LEAST_f(x, p) ((p) ? -__builtin_inff() : (x))
#define MOST_f(x, p) ((p) ? __builtin_inff() : (x))

// Lanes where no undefined bit can change an integer comparison: the two ranges have at most one value in common, and the
// condition is the same at all their ends. Floats: never (v_cmp_class is no order at all).
static uint64_t decided(const Step *i, const void *const in[3], const void *const not[3]) {
    uint8_t same[LANES] = {0};
    switch (i->op) {
#define VALU(...)
#define SUMS(...)
#define PACKED(...)
#define ORDER(name, A, condition) \
    case OP_cmp_##name: \
        _Pragma("clang loop vectorize(disable) unroll(disable)") for (int l = 0; l < LANES; l++) { \
            T_##A a = IN_##A(0), b = IN_##A(1); T_RAW_##A p = RAW_##A(0), q = RAW_##A(1); \
            T_##A low = LEAST_##A(a, p), high = MOST_##A(a, p), from = LEAST_##A(b, q), to = MOST_##A(b, q); \
            int hits = 0; \
            for (int end = 0; end < 4; end++) { T_##A x = end & 1 ? low : high, y = end & 2 ? from : to; hits += (condition) ? 1 : 0; } \
            same[l] = (low >= to || high <= from) && (hits == 0 || hits == 4); \
        } \
        break;
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
    }
    return i->op == OP_cmp_class_f32 || (i->op >= OP_cmp_f_f32 && i->op <= OP_cmp_tru_f32) ? 0 : pack(same);
}

static void compare(Machine *m, Wave *w, const Step *i) {
    uint32_t room[3][2 * LANES], origin = 0;
    uint64_t exec = exec_of(w), ignored;
    uint8_t hit[LANES];
    const void *in[3];
    for (int n = 0; n < 2; n++) in[n] = fetch(m, w, i, n, VALUES, room[n], &ignored);
    switch (i->op) {
#define VALU(...)
#define SUMS(...)
#define PACKED(...)
#define ORDER(name, A, condition) \
    case OP_cmp_##name: \
        for (int l = 0; l < LANES; l++) { T_##A x = IN_##A(0), y = IN_##A(1); hit[l] = (condition) ? 1 : 0; } \
        break;
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
        default: return;
    }
    uint64_t undefined = m->checks ? lanes_undefined(m, w, i, &origin) : 0;
    if (undefined) {
        uint32_t lost[2][2 * LANES];
        const void *not[3];
        for (int n = 0; n < 2; n++) not[n] = fetch(m, w, i, n, UNDEFINED, lost[n], &ignored);
        undefined &= ~decided(i, in, not);
    }
    write_mask(m, w, i, pack(hit) & exec, undefined, origin);
}

// Undefined bits of a sum or product go upwards; the carry out is undefined when any bit is.
static void undefined_sums(const Step *i, const void *const not[3], void *out) {
    switch (i->op) {
#define VALU(...)
#define PACKED(...)
#define ORDER(...)
#define SUMS(name, R, A, B, C, ...) \
    case OP_##name: \
        _Pragma("clang loop vectorize(disable) unroll(disable)") for (int l = 0; l < LANES; l++) \
            ((T_RAW_##R *)out)[l] = LEFTWARD((T_RAW_##R)RAW_##A(0) | (T_RAW_##R)RAW_##B(1) | (T_RAW_##R)RAW_##C(2)); \
        break;
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
    }
}

static void carry(Machine *m, Wave *w, const Step *i) {
    uint32_t room[3][2 * LANES], out[2 * LANES], bits[2 * LANES], origin = 0;
    uint64_t mask = exec_of(w);
    uint8_t hit[LANES];
    const void *in[3];
    for (int n = 0; n < 3; n++) in[n] = fetch(m, w, i, n, VALUES, room[n], &mask);
    switch (i->op) {
#define VALU(...)
#define PACKED(...)
#define ORDER(...)
#define SUMS(name, R, A, B, C, value, over) \
    case OP_##name: \
        for (int l = 0; l < LANES; l++) { T_##A x = IN_##A(0); T_##B y = IN_##B(1); T_##C z = IN_##C(2); ((T_##R *)out)[l] = (T_##R)(value); hit[l] = (over) ? 1 : 0; } \
        break;
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
        default: return;
    }
    int wide = i->dwords == 2;
    uint64_t undefined = 0;
    if (m->checks && (undefined = lanes_undefined(m, w, i, &origin))) {
        uint32_t lost[3][2 * LANES];
        uint64_t ignored;
        const void *not[3];
        for (int n = 0; n < 3; n++) not[n] = fetch(m, w, i, n, UNDEFINED, lost[n], &ignored);
        undefined_sums(i, not, bits);
        write_result(w, i, wide, UNDEFINED, bits, mask, origin);
    } else if (m->checks) {
        for (int half = 0; half <= wide; half++) set_undefined(w, i->vdst + (uint32_t)half, 0, mask, 0);
    }
    write_result(w, i, wide, VALUES, out, mask, 0);
    write_mask(m, w, i, pack(hit) & mask, undefined, origin);
}

// -- packed ------------------------------------------------------------------------------------------------------------
// One half of a packed source: of two dwords (fp32 forms) or of one dword (16-bit forms), chosen by a bit of op_sel.
static void packed_half(const Wave *w, const Step *i, int n, int upper, int wide, int negate, int plane, uint32_t *to) {
    const Source *source = &i->source[n];
    uint32_t shift = !wide && upper ? 16 : 0, row = source->row + (wide && upper ? 1u : 0u), mask = wide ? ALL_BITS : 0xffff;
    if (source->kind == VECTOR) {
        const uint32_t *from = vector_row(w, plane, row);
        for (int lane = 0; lane < LANES; lane++) to[lane] = from[lane] >> shift & mask;
    } else {
        Source one = *source;
        one.row = row;
        one.flags = 0;
        uint32_t bits = (uint32_t)scalar_bits(w, &one, plane) >> shift & mask;
        for (int lane = 0; lane < LANES; lane++) to[lane] = bits;
    }
    if (negate && plane == VALUES)
        for (int lane = 0; lane < LANES; lane++) to[lane] ^= wide ? 0x80000000u : 0x8000;
}

static void packed_values(const Step *i, const void *const in[3], uint32_t *out) {
    switch (i->op) {
#define VALU(...)
#define SUMS(...)
#define ORDER(...)
#define PACKED(name, A, sources, fidelity, value) \
    case OP_##name: \
        for (int l = 0; l < LANES; l++) { T_##A x = IN_##A(0), y = IN_##A(1), z = IN_##A(2); ((T_##A *)out)[l] = (T_##A)(value); } \
        break;
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
    }
}

// Undefined bits of one packed result: shifts move them, all else spreads them over the half.
static uint32_t packed_undefined(const Step *i, uint32_t amount, uint32_t p, uint32_t q, uint32_t r, uint32_t all) {
    if (i->op >= OP_v_pk_lshlrev_b16 && i->op <= OP_v_pk_ashrrev_i16 && !p) {
        uint32_t n = amount & 15;
        return (i->op == OP_v_pk_lshlrev_b16 ? q << n : i->op == OP_v_pk_lshrrev_b16 ? q >> n : (uint32_t)((int16_t)q >> n)) & all;
    }
    return p | q | r ? all : 0;
}

static void packed_alu(Machine *m, Wave *w, const Step *i) {
    int wide = i->dwords == 2, move = i->op == OP_v_pk_mov_b32, dirty = 0;
    uint32_t room[3][LANES], out[2][LANES] __attribute__((aligned(64))), undefined[2][LANES], amount[LANES], origin = 0;
    for (int n = 0; n < i->elements; n++) {
        Source both = i->source[n];
        if (wide && both.kind == VECTOR) both.flags |= WIDE;
        if (wide && both.kind == SCALAR) both.flags |= WIDE;
        if (m->checks && source_dirty(w, &both, &origin)) dirty = 1;
    }
    for (int half = 0; half < 2; half++) {
        const void *in[3] = {room[0], room[1], room[2]};
        for (int plane = VALUES; plane <= (dirty ? UNDEFINED : VALUES); plane++) {
            for (int n = 0; n < i->elements; n++) {
                int upper = (half && !move ? i->opsel_hi : i->opsel) >> n & 1, negate = (half ? i->neg_hi : i->neg) >> n & 1;
                packed_half(w, i, n, upper, wide, negate, plane, room[n]);
            }
            if (plane == VALUES) memcpy(amount, room[0], sizeof amount);
            if (plane == VALUES && move) memcpy(out[half], room[half], 4 * LANES);  // low from source 0, high from source 1
            else if (plane == VALUES) packed_values(i, in, out[half]);
            else
                for (int lane = 0; lane < LANES; lane++) {
                    uint32_t third = i->elements > 2 ? room[2][lane] : 0, all = wide ? ALL_BITS : 0xffff;
                    undefined[half][lane] = move ? room[half][lane] : packed_undefined(i, amount[lane], room[0][lane], room[1][lane], third, all);
                }
        }
    }
    uint64_t mask = exec_of(w);
    for (int half = 0; half < (wide ? 2 : 1); half++) {
        if (!wide)
            for (int lane = 0; lane < LANES; lane++) {
                out[0][lane] = (out[0][lane] & 0xffff) | out[1][lane] << 16;
                undefined[0][lane] = dirty ? undefined[0][lane] | undefined[1][lane] << 16 : 0;
            }
        if (m->checks) set_undefined(w, i->vdst + (uint32_t)half, dirty ? undefined[half] : 0, mask, origin);
        merge(vector_row(w, VALUES, i->vdst + (uint32_t)half), out[half], mask);
    }
}

// -- lanes to scalars and back -------------------------------------------------------------------------------------------
enum LaneMove { READ_FIRST_LANE, READ_LANE, WRITE_LANE, MBCNT_LOW, MBCNT_HIGH, SWAP_VECTORS };
static void lane_move(Machine *m, Wave *w, const Step *i) {
    uint32_t room[2 * LANES], lost[2 * LANES], origin = 0;
    uint64_t exec = exec_of(w), ignored;
    const uint32_t *from = fetch(m, w, i, 0, VALUES, room, &ignored), *bits = 0;
    if (m->checks && source_dirty(w, &i->source[0], &origin)) bits = fetch(m, w, i, 0, UNDEFINED, lost, &ignored);
    uint32_t control = (uint32_t)scalar_bits(w, &i->source[1], VALUES);
    if (m->checks && (i->op == READ_LANE || i->op == WRITE_LANE) && scalar_bits(w, &i->source[1], UNDEFINED) & 63)
        fault_undefined(m, w, -1, USED_LANE, w->s_origin[i->source[1].row]);
    if (i->op == READ_FIRST_LANE || i->op == READ_LANE) {
        uint32_t lane = i->op == READ_LANE ? control & 63 : first_lane(exec);  // EXEC = 0 reads lane 0
        set_scalar(w, i->sdst, from[lane], bits ? bits[lane] : 0, origin);
    } else if (i->op == WRITE_LANE) {  // whatever EXEC says
        uint64_t one = (uint64_t)1 << (control & 63);
        if (m->checks) set_undefined(w, i->vdst, bits, one, origin);
        merge(vector_row(w, VALUES, i->vdst), from, one);
    } else if (i->op == SWAP_VECTORS) {
        uint32_t other = i->source[0].row, kept[LANES];
        for (int plane = VALUES; plane <= (m->checks ? UNDEFINED : VALUES); plane++) {
            memcpy(kept, vector_row(w, plane, i->vdst), 4 * LANES);
            merge(vector_row(w, plane, i->vdst), vector_row(w, plane, other), exec);
            merge(vector_row(w, plane, other), kept, exec);
        }
        if (m->checks) w->dirty[other] = w->dirty[i->vdst] = w->dirty[other] | w->dirty[i->vdst];
    } else {  // v_mbcnt: bits of the mask below this lane, in its low or high half, plus source 1
        uint32_t more[2 * LANES], lost_too[2 * LANES], out[LANES], undefined[LANES];
        const uint32_t *addend = fetch(m, w, i, 1, VALUES, more, &ignored), *missing = 0;
        if (m->checks && source_dirty(w, &i->source[1], &origin)) missing = fetch(m, w, i, 1, UNDEFINED, lost_too, &ignored);
        for (int lane = 0; lane < LANES; lane++) {
            int below = i->op == MBCNT_LOW ? MIN2(lane, 32) : MAX2(lane - 32, 0);
            uint32_t counted = (uint32_t)(((uint64_t)1 << below) - 1);
            out[lane] = (uint32_t)__builtin_popcount(from[lane] & counted) + addend[lane];
            undefined[lane] = (bits ? bits[lane] & counted : 0) | (missing ? missing[lane] : 0) ? ALL_BITS : 0;
        }
        if (m->checks) set_undefined(w, i->vdst, bits || missing ? undefined : 0, exec, origin);
        merge(vector_row(w, VALUES, i->vdst), out, exec);
    }
}
