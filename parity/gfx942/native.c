// SPDX-License-Identifier: Apache-2.0
// The two pieces of gfx942 arithmetic that numpy cannot do exactly or quickly enough: the fp8/bf8 matrix instructions and
// the fused multiply-add. Built by native.py with ziglang's clang; plain C, no library, no host fast-math.

// clang's own names for these types: the build uses no header, so it needs no C library on the machine.
typedef __UINT8_TYPE__ uint8_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;

// Fused multiply-add, one rounding (v_fma_f32, v_fmac_f32, v_pk_fma_f32: ISA 6.2, IEEE 754 fusedMultiplyAdd).
void fma_f32(const float *restrict a, const float *restrict b, const float *restrict c, float *restrict d, int64_t count) {
    for (int64_t i = 0; i < count; i++) d[i] = __builtin_fmaf(a[i], b[i], c[i]);
}

// ---- fp8/bf8 MFMA --------------------------------------------------------------------------------------------------
// Rules: MMA-Sim (arXiv 2511.10909), restated in fixtures/mfma/README.md; the numbers below refer to its steps. Sixteen
// outputs of one row are computed at once. Host floats serve as exact integers: every scaling is by a power of two, every
// product of two significands has 8 bits, every sum fits the format, and each rounding that the rules ask for is explicit.
enum { ZERO_EXPONENT = -126, PRODUCT_BITS = 24, JOIN_BITS = 24, SUM_BITS = 31, ACC_BITS = 24, ACC_CUTOFF = 25, GROUP = 16, LANES = 16 };

typedef float F32 __attribute__((vector_size(4 * LANES)));
typedef double F64 __attribute__((vector_size(8 * LANES)));
typedef int32_t I32 __attribute__((vector_size(4 * LANES)));
typedef int64_t I64 __attribute__((vector_size(8 * LANES)));
#define CONVERT(value, type) __builtin_convertvector(value, type)
#define MAX(x, y) __builtin_elementwise_max(x, y)
#define MIN(x, y) __builtin_elementwise_min(x, y)
#define ALL(x) ((I32){0} + (x))
#define INLINE static inline __attribute__((always_inline))

INLINE I32 load(const void *from) { I32 x; __builtin_memcpy(&x, from, sizeof x); return x; }
INLINE F32 load_f32(const float *from) { return (F32)load(from); }
INLINE I32 select(I32 mask, I32 yes, I32 no) { return (mask & yes) | (~mask & no); }
INLINE F64 power_of_two(I32 exponent) { return (F64)(CONVERT(exponent + 1023, I64) << 52); }

// One operand matrix of a wave, [k][row of A or column of B]; nan[g] tells which rows have a NaN in group g of 16 k.
typedef struct { float value[512]; int32_t exponent[512], nan[2][32]; } Operand;

// FNUZ: e4m3 has bias 8, e5m2 bias 16; no infinity, 0x80 is the only NaN, subnormals keep the minimum exponent (step 2).
// Lane layout: row = lane % rows, its 8 bytes are k = 8 * (lane / rows) ..+7, so one k of all rows is one stretch of lanes.
INLINE void decode(const uint32_t *registers, int64_t stride, int bf8, int rows, Operand *x) {
    int bits = bf8 ? 2 : 3, bias = bf8 ? 16 : 8;
    for (int i = 0; i < 2 * 32; i++) x->nan[i / 32][i % 32] = 0;
    for (int k = 0; k < 512 / rows; k++)
        for (int i = 0; i < rows; i++) {
            int32_t byte = registers[k % 8 / 4 * stride + k / 8 * rows + i] >> 8 * (k % 4) & 0xff;
            int32_t field = (byte & 0x7f) >> bits, mantissa = byte & ((1 << bits) - 1);
            int32_t significand = mantissa + (field ? 1 << bits : 0), exponent = (field ? field : 1) - bias;
            uint32_t scale_bits = (uint32_t)(exponent - bits + 127) << 23;
            float scale;
            __builtin_memcpy(&scale, &scale_bits, 4);
            x->value[k * rows + i] = (float)(byte & 0x80 ? -significand : significand) * scale;
            x->exponent[k * rows + i] = significand ? exponent : ZERO_EXPONENT;
            x->nan[k / GROUP][i] |= byte == 0x80 ? -1 : 0;
        }
}

// Step 3: exact sum of the eight products of one half (even or odd k), each truncated toward zero at 24 fractional bits of
// the half's largest exponent, which goes to *largest. Row `i` of A, 16 columns of B from `j`, k from `first` in twos.
INLINE I32 half_sum(const Operand *a, const Operand *b, int rows, int i, int j, int first, I32 *largest) {
    I32 top = ALL(2 * ZERO_EXPONENT), sum = {0};
    for (int k = first; k < first + GROUP; k += 2) top = MAX(top, a->exponent[k * rows + i] + load(&b->exponent[k * rows + j]));
    F32 scale = (F32)((PRODUCT_BITS - MAX(top, ALL(-100)) + 127) << 23);  // below -100 all products are 0; no overflow there
    for (int k = first; k < first + GROUP; k += 2) {
        F32 product = a->value[k * rows + i] * load_f32(&b->value[k * rows + j]);
        sum += CONVERT(product * scale, I32);  // the conversion truncates toward zero
    }
    *largest = top;
    return sum;
}

// Steps 4 to 6: join the halves (floor), bring the accumulator in (floor), round to nearest even once.
INLINE I32 join(I32 even, I32 odd, I32 e_even, I32 e_odd, I32 acc) {
    I32 top = MAX(e_even, e_odd);
    I32 halves = (even >> MIN(top - e_even, ALL(31))) + (odd >> MIN(top - e_odd, ALL(31)));
    I32 field = acc >> 23 & 0xff, acc_exponent = MAX(field, ALL(1)) - 127, common = MAX(top, acc_exponent);
    F64 sum = __builtin_elementwise_floor(CONVERT(halves, F64) * power_of_two(SUM_BITS - JOIN_BITS + top - common));
    F64 addend = __builtin_elementwise_floor(CONVERT((F32)acc, F64) * power_of_two(ACC_BITS - common));
    addend = (F64)((I64)addend & CONVERT(acc_exponent >= common - ACC_CUTOFF, I64));
    F64 total = sum + addend * (1 << (SUM_BITS - ACC_BITS));  // below 2^53 in units of 2^-31: exact
    I32 rounded = (I32)CONVERT(total * power_of_two(common - SUM_BITS), F32);
    return select(field == 255, acc, rounded);  // step 1: an infinite or NaN accumulator stays
}

// D = A B + C of one wave. D column = lane % rows; D row = 8 * (r / 4) + 4 * (lane / rows) + r % 4 (r: register).
INLINE void multiply(const Operand *a, const Operand *b, int rows, const uint32_t *c, int64_t c_stride, uint32_t *d, int64_t d_stride) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < rows; j += LANES) {
            int r = i / 8 * 4 * (rows == 32) + i % 4, lane = (rows == 32 ? i / 4 % 2 : i / 4) * rows + j;
            I32 acc = load(&c[r * c_stride + lane]);
            for (int group = 0; group < 512 / rows / GROUP; group++) {
                I32 e_even, e_odd;
                I32 even = half_sum(a, b, rows, i, j, group * GROUP, &e_even), odd = half_sum(a, b, rows, i, j, group * GROUP + 1, &e_odd);
                I32 nan = a->nan[group][i] | load(&b->nan[group][j]);  // step 1: NaN times anything, zero too, is NaN
                acc = select(nan, ALL(0x7fc00000), join(even, odd, e_even, e_odd, acc));
            }
            __builtin_memcpy(&d[r * d_stride + lane], &acc, sizeof acc);
        }
}

// One v_mfma_f32_{16x16x32,32x32x16}_{fp8,bf8}_{fp8,bf8} on `waves` waves. `rows` is 16 or 32. Each pointer is to a
// register of all waves, [waves][64] dwords; registers of one operand lie `stride` dwords apart.
void mfma_f8(const uint32_t *a, int64_t a_stride, int a_bf8, const uint32_t *b, int64_t b_stride, int b_bf8,
             const uint32_t *c, int64_t c_stride, uint32_t *d, int64_t d_stride, int64_t waves, int rows) {
    Operand left, right;
    for (int64_t at = 0; at < 64 * waves; at += 64) {
        if (rows == 16) {
            decode(a + at, a_stride, a_bf8, 16, &left);
            decode(b + at, b_stride, b_bf8, 16, &right);
            multiply(&left, &right, 16, c + at, c_stride, d + at, d_stride);
        } else {
            decode(a + at, a_stride, a_bf8, 32, &left);
            decode(b + at, b_stride, b_bf8, 32, &right);
            multiply(&left, &right, 32, c + at, c_stride, d + at, d_stride);
        }
    }
}
