// SPDX-License-Identifier: Apache-2.0
// The fp8/bf8 and f16 matrix instructions, bit-exact to MMA-Sim's rules.
#include "memory.c"

// ---- fp8/bf8 MFMA --------------------------------------------------------------------------------------------------
// Rules: MMA-Sim (arXiv 2511.10909), restated in fixtures/mfma/README.md; the numbers below refer to its steps. Sixteen
// outputs of one row are computed at once. Host floats serve as exact integers: every scaling is by a power of two, every
// product of two significands has 8 bits, every sum fits the format, and each rounding that the rules ask for is explicit.
enum { ZERO_EXPONENT = -126, PRODUCT_BITS = 24, JOIN_BITS = 24, SUM_BITS = 31, ACC_BITS = 24, ACC_CUTOFF = 25, GROUP = 16, OUTPUTS = 16 };

typedef float F32 __attribute__((vector_size(4 * OUTPUTS)));
typedef double F64 __attribute__((vector_size(8 * OUTPUTS)));
typedef int32_t I32 __attribute__((vector_size(4 * OUTPUTS)));
typedef int64_t I64 __attribute__((vector_size(8 * OUTPUTS)));
#define CONVERT(value, type) __builtin_convertvector(value, type)
#define MAX(x, y) __builtin_elementwise_max(x, y)
#define MIN(x, y) __builtin_elementwise_min(x, y)
#define EACH(x) ((I32){0} + (x))

INLINE I32 read16(const void *from) { I32 x; __builtin_memcpy(&x, from, sizeof x); return x; }
INLINE F32 read16_f32(const float *from) { return (F32)read16(from); }
INLINE I32 choose(I32 mask, I32 yes, I32 no) { return (mask & yes) | (~mask & no); }
INLINE F64 power_of_two(I32 exponent) { return (F64)(CONVERT(exponent + 1023, I64) << 52); }

// One operand matrix of a wave, [k][row of A or column of B]; nan[g] tells which rows have a NaN in group g of 16 k.
typedef struct { float value[512]; int32_t exponent[512], nan[2][32]; } Operand;

// FNUZ: e4m3 has bias 8, e5m2 bias 16; no infinity, 0x80 is the only NaN, subnormals keep the minimum exponent (step 2).
// Lane layout: row = lane % rows, its 8 bytes are k = 8 * (lane / rows) ..+7, so one k of all rows is one stretch of lanes.
INLINE void operand(const uint32_t *registers, int64_t stride, int bf8, int rows, Operand *x) {
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
    I32 top = EACH(2 * ZERO_EXPONENT), sum = {0};
    for (int k = first; k < first + GROUP; k += 2) top = MAX(top, a->exponent[k * rows + i] + read16(&b->exponent[k * rows + j]));
    F32 scale = (F32)((PRODUCT_BITS - MAX(top, EACH(-100)) + 127) << 23);  // below -100 all products are 0; no overflow there
    for (int k = first; k < first + GROUP; k += 2) {
        F32 product = a->value[k * rows + i] * read16_f32(&b->value[k * rows + j]);
        sum += CONVERT(product * scale, I32);  // the conversion truncates toward zero
    }
    *largest = top;
    return sum;
}

// Steps 4 to 6: join the halves (floor), bring the accumulator in (floor), round to nearest even once.
INLINE I32 join(I32 even, I32 odd, I32 e_even, I32 e_odd, I32 acc, int cutoff) {
    I32 top = MAX(e_even, e_odd);
    I32 halves = (even >> MIN(top - e_even, EACH(31))) + (odd >> MIN(top - e_odd, EACH(31)));
    I32 field = acc >> 23 & 0xff, acc_exponent = MAX(field, EACH(1)) - 127, common = MAX(top, acc_exponent);
    F64 sum = __builtin_elementwise_floor(CONVERT(halves, F64) * power_of_two(SUM_BITS - JOIN_BITS + top - common));
    F64 addend = __builtin_elementwise_floor(CONVERT((F32)acc, F64) * power_of_two(ACC_BITS - common));
    addend = (F64)((I64)addend & CONVERT(acc_exponent >= common - cutoff, I64));
    F64 total = sum + addend * (1 << (SUM_BITS - ACC_BITS));  // below 2^53 in units of 2^-31: exact
    I32 rounded = (I32)CONVERT(total * power_of_two(common - SUM_BITS), F32);
    return choose(field == 255, acc, rounded);  // step 1: an infinite or NaN accumulator stays
}

// D = A B + C of one wave. D column = lane % rows; D row = 8 * (r / 4) + 4 * (lane / rows) + r % 4 (r: register).
INLINE void multiply(const Operand *a, const Operand *b, int rows, const uint32_t *c, int64_t c_stride, uint32_t *d, int64_t d_stride) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < rows; j += OUTPUTS) {
            int r = i / 8 * 4 * (rows == 32) + i % 4, lane = (rows == 32 ? i / 4 % 2 : i / 4) * rows + j;
            I32 acc = read16(&c[r * c_stride + lane]);
            for (int group = 0; group < 512 / rows / GROUP; group++) {
                I32 e_even, e_odd;
                I32 even = half_sum(a, b, rows, i, j, group * GROUP, &e_even), odd = half_sum(a, b, rows, i, j, group * GROUP + 1, &e_odd);
                I32 nan = a->nan[group][i] | read16(&b->nan[group][j]);  // step 1: NaN times anything, zero too, is NaN
                acc = choose(nan, EACH(0x7fc00000), join(even, odd, e_even, e_odd, acc, ACC_CUTOFF));
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
            operand(a + at, a_stride, a_bf8, 16, &left);
            operand(b + at, b_stride, b_bf8, 16, &right);
            multiply(&left, &right, 16, c + at, c_stride, d + at, d_stride);
        } else {
            operand(a + at, a_stride, a_bf8, 32, &left);
            operand(b + at, b_stride, b_bf8, 32, &right);
            multiply(&left, &right, 32, c + at, c_stride, d + at, d_stride);
        }
    }
}

// ---- f16 MFMA --------------------------------------------------------------------------------------------------------
// The same steps with these differences: groups of eight consecutive k, whose products are summed together (no halves); the
// accumulator is never cut off; infinities exist: if the sum in exact arithmetic is infinite or NaN, that is the result.
enum { F16_GROUP = 8, NO_CUTOFF = 10000 };

// row = lane % rows, its four halves are k = 4 * (lane / rows) ..+3.
INLINE void operand_f16(const uint32_t *registers, int64_t stride, int rows, Operand *x) {
    for (int i = 0; i < 2 * 32; i++) x->nan[i / 32][i % 32] = 0;
    for (int k = 0; k < 256 / rows; k++)
        for (int i = 0; i < rows; i++) {
            uint32_t half = registers[k % 4 / 2 * stride + k / 4 * rows + i] >> 16 * (k % 2) & 0xffff, field = half >> 10 & 31;
            x->value[k * rows + i] = f16_to_f32(half);
            x->exponent[k * rows + i] = half & 0x7fff ? (int32_t)(field ? field : 1) - 15 : ZERO_EXPONENT;
            x->nan[k / F16_GROUP][i] |= field == 31 ? -1 : 0;  // infinite or NaN
        }
}

INLINE I32 group_f16(const Operand *a, const Operand *b, int rows, int i, int j, int first, I32 acc) {
    I32 top = EACH(2 * ZERO_EXPONENT), sum = {0};
    F64 exact = CONVERT((F32)acc, F64);
    for (int k = first; k < first + F16_GROUP; k++) {
        top = MAX(top, a->exponent[k * rows + i] + read16(&b->exponent[k * rows + j]));
        exact += CONVERT(a->value[k * rows + i] * read16_f32(&b->value[k * rows + j]), F64);
    }
    F32 scale = (F32)((PRODUCT_BITS - MAX(top, EACH(-100)) + 127) << 23);
    for (int k = first; k < first + F16_GROUP; k++) sum += CONVERT(a->value[k * rows + i] * read16_f32(&b->value[k * rows + j]) * scale, I32);
    I32 result = join(sum, EACH(0), top, EACH(2 * ZERO_EXPONENT), acc, NO_CUTOFF), special = (I32)CONVERT(exact, F32);
    I32 special_operands = a->nan[first / F16_GROUP][i] | read16(&b->nan[first / F16_GROUP][j]) | ((acc >> 23 & 0xff) == 255);
    special = choose((special & 0x7fffffff) > 0x7f800000, EACH(0x7fc00000), special);
    return choose(special_operands != 0, special, result);
}

// One v_mfma_f32_{16x16x16,32x32x8}_f16 of one wave; D and C as above.
static void mfma_f16(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d, int rows) {
    Operand left, right;
    operand_f16(a, LANES, rows, &left);
    operand_f16(b, LANES, rows, &right);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < rows; j += OUTPUTS) {
            int r = i / 8 * 4 * (rows == 32) + i % 4, lane = (rows == 32 ? i / 4 % 2 : i / 4) * rows + j;
            I32 acc = read16(&c[r * LANES + lane]);
            for (int first = 0; first < 256 / rows; first += F16_GROUP) acc = group_f16(&left, &right, rows, i, j, first, acc);
            __builtin_memcpy(&d[r * LANES + lane], &acc, sizeof acc);
        }
}

// D = A B + C on all 64 lanes, whatever EXEC says. C is copied first: D may overlap it anyhow.
static void matrix(Machine *m, Wave *w, const Step *i) {
    uint32_t registers = i->rows * i->rows / 64u, origin = 0, addend[16 * LANES], missing[16 * LANES];
    const Source *c = &i->source[2];
    for (uint32_t n = 0; n < registers; n++)
        for (int lane = 0; lane < LANES; lane++) {
            addend[n * LANES + (uint32_t)lane] = c->kind == VECTOR ? vector_row(w, VALUES, c->row + n)[lane] : (uint32_t)c->value;
            missing[n * LANES + (uint32_t)lane] = m->checks && c->kind == VECTOR && w->dirty[c->row + n] ? vector_row(w, UNDEFINED, c->row + n)[lane] : 0;
        }
    uint8_t row_lost[32] = {0}, column_lost[32] = {0}, any = 0;
    for (uint32_t n = 0; m->checks && n < 2; n++)
        for (int side = 0; side < 2; side++) {
            uint32_t at = i->source[side].row + n;
            if (!w->dirty[at]) continue;
            any = 1, origin = w->origin[at];
            for (int lane = 0; lane < LANES; lane++) (side ? column_lost : row_lost)[lane % i->rows] |= vector_row(w, UNDEFINED, at)[lane] != 0;
        }
    for (uint32_t n = 0; m->checks && c->kind == VECTOR && n < registers; n++)
        if (w->dirty[c->row + n]) any = 1, origin = w->origin[c->row + n];
    if (i->narrow) mfma_f16(vector_row(w, VALUES, i->source[0].row), vector_row(w, VALUES, i->source[1].row), addend, vector_row(w, VALUES, i->vdst), i->rows);
    else mfma_f8(vector_row(w, VALUES, i->source[0].row), LANES, i->left_bf8, vector_row(w, VALUES, i->source[1].row), LANES, i->right_bf8,
            addend, LANES, vector_row(w, VALUES, i->vdst), LANES, 1, i->rows);
    for (uint32_t n = 0; m->checks && n < registers; n++) {
        uint32_t lost[LANES];
        for (uint32_t lane = 0; any && lane < LANES; lane++) {
            uint32_t row = i->rows == 16 ? 4 * (lane / 16) + n : 8 * (n / 4) + 4 * (lane / 32) + n % 4;
            lost[lane] = row_lost[row] | column_lost[lane % i->rows] | missing[n * LANES + lane] ? ALL_BITS : 0;
        }
        set_undefined(w, i->vdst + n, any ? lost : 0, ALL_LANES, origin);
    }
}
