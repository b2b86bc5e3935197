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
// Rules: MMA-Sim (arXiv 2511.10909), restated in fixtures/mfma/README.md; the numbers below refer to its steps.
enum { ZERO_EXPONENT = -126, PRODUCT_BITS = 24, JOIN_BITS = 24, SUM_BITS = 31, ACC_BITS = 24, ACC_CUTOFF = 25, GROUP = 16 };

typedef struct { int32_t significand, exponent, nan; } Operand;  // value = significand * 2^(exponent - 3)

// FNUZ: e4m3 has bias 8, e5m2 bias 16; no infinity, 0x80 is the only NaN, subnormals keep the minimum exponent.
static Operand decode_byte(uint8_t byte, int bf8) {
    int mantissa_bits = bf8 ? 2 : 3, bias = bf8 ? 16 : 8;
    int field = (byte & 0x7f) >> mantissa_bits, mantissa = byte & ((1 << mantissa_bits) - 1);
    Operand x = {0, ZERO_EXPONENT, byte == 0x80};
    if ((byte & 0x7f) == 0) return x;
    int hidden = field ? 1 << mantissa_bits : 0;
    x.significand = (hidden + mantissa) << (3 - mantissa_bits);
    x.exponent = (field ? field : 1) - bias;
    if (byte & 0x80) x.significand = -x.significand;
    return x;
}

static inline int32_t at_most(int32_t value, int32_t limit) { return value < limit ? value : limit; }

// Steps 2 and 3: exact sum of the eight products of one half (even or odd k), each truncated toward zero at 24 fractional
// bits of the half's largest exponent. `COLUMNS` outputs of one row at a time.
#define HALF_SUM(COLUMNS)                                                                                                  \
    for (int j = 0; j < COLUMNS; j++) { exponent[h][j] = -1000; sum[h][j] = 0; }                                           \
    for (int k = first + h; k < first + GROUP; k += 2)                                                                     \
        for (int j = 0; j < COLUMNS; j++) {                                                                                \
            int32_t e = row_e[k] + col_e[k][j];                                                                            \
            exponent[h][j] = e > exponent[h][j] ? e : exponent[h][j];                                                      \
        }                                                                                                                  \
    for (int k = first + h; k < first + GROUP; k += 2)                                                                     \
        for (int j = 0; j < COLUMNS; j++) {                                                                                \
            int32_t product = row_s[k] * col_s[k][j], e = row_e[k] + col_e[k][j];                                          \
            int32_t size = (product < 0 ? -product : product) << (PRODUCT_BITS - 6); /* products are in 2^-6 */            \
            size >>= at_most(exponent[h][j] - e, 31);                                                                      \
            sum[h][j] += product < 0 ? -size : size;                                                                       \
        }

// Steps 4 to 6 for one output: join the halves (floor), bring the accumulator in (floor), round to nearest even once.
static inline uint32_t join(int32_t even, int32_t odd, int32_t e_even, int32_t e_odd, uint32_t acc) {
    int32_t top = e_even > e_odd ? e_even : e_odd;
    int64_t halves = (int64_t)(even >> at_most(top - e_even, 31)) + (odd >> at_most(top - e_odd, 31));
    int32_t field = (acc >> 23) & 0xff, acc_exponent = field ? field - 127 : -126;
    int64_t acc_size = (int64_t)((acc & 0x7fffff) | (field ? 0x800000 : 0)) << (ACC_BITS - 23);
    int32_t common = top > acc_exponent ? top : acc_exponent;
    int64_t total = (halves * (1 << (SUM_BITS - JOIN_BITS))) >> at_most(common - top, 63);
    int64_t addend = (acc >> 31 ? -acc_size : acc_size) >> at_most(common - acc_exponent, 63);
    if (acc_exponent >= common - ACC_CUTOFF) total += addend * (1 << (SUM_BITS - ACC_BITS));
    uint64_t scale_bits = (uint64_t)(common - SUM_BITS + 1023) << 52;
    double scale;
    __builtin_memcpy(&scale, &scale_bits, 8);
    float rounded = (float)((double)total * scale);  // |total| < 2^53: the product is exact, the cast is the one rounding
    uint32_t bits;
    __builtin_memcpy(&bits, &rounded, 4);
    return field == 255 ? acc : bits;  // step 1: an infinite or NaN accumulator stays
}

#define MFMA(NAME, N, K)                                                                                                   \
    static void NAME(const Operand a[N][K], const Operand b[N][K], uint32_t acc[N][N]) {                                   \
        int32_t col_s[K][N], col_e[K][N];                                                                                  \
        for (int k = 0; k < K; k++)                                                                                        \
            for (int j = 0; j < N; j++) { col_s[k][j] = b[j][k].significand; col_e[k][j] = b[j][k].exponent; }             \
        for (int i = 0; i < N; i++) {                                                                                      \
            int32_t row_s[K], row_e[K];                                                                                    \
            for (int k = 0; k < K; k++) { row_s[k] = a[i][k].significand; row_e[k] = a[i][k].exponent; }                   \
            for (int first = 0; first < K; first += GROUP) {                                                               \
                int32_t sum[2][N], exponent[2][N];                                                                         \
                for (int h = 0; h < 2; h++) { HALF_SUM(N) }                                                                \
                for (int j = 0; j < N; j++)                                                                                \
                    acc[i][j] = join(sum[0][j], sum[1][j], exponent[0][j], exponent[1][j], acc[i][j]);                     \
                for (int k = first; k < first + GROUP; k++) /* step 1: NaN times anything, zero too, is NaN */             \
                    for (int j = 0; j < N; j++)                                                                            \
                        if (a[i][k].nan | b[j][k].nan) acc[i][j] = 0x7fc00000;                                             \
            }                                                                                                              \
        }                                                                                                                  \
    }
MFMA(mfma_16, 16, 32)
MFMA(mfma_32, 32, 16)

// One v_mfma_f32_{16x16x32,32x32x16}_{fp8,bf8}_{fp8,bf8} on `waves` waves. `rows` is 16 or 32. Each pointer is to a
// register of all waves, [waves][64] dwords; registers of one operand lie `stride` dwords apart. Lane layout (AMD matrix
// instruction calculator): A row = lane % rows, its 8 bytes are k = 8 * (lane / rows) ..+7, B the same with columns;
// D column = lane % rows, D row = 8 * (r / 4) + 4 * (lane / rows) + r % 4 for 32 rows, 4 * (lane / 16) + r for 16.
void mfma_f8(const uint32_t *a, int64_t a_stride, int a_bf8, const uint32_t *b, int64_t b_stride, int b_bf8,
             const uint32_t *c, int64_t c_stride, uint32_t *d, int64_t d_stride, int64_t waves, int rows) {
    Operand table[2][256];
    for (int byte = 0; byte < 256; byte++) {
        table[0][byte] = decode_byte((uint8_t)byte, a_bf8);
        table[1][byte] = decode_byte((uint8_t)byte, b_bf8);
    }
    int registers = rows * rows / 64;
    for (int64_t wave = 0; wave < waves; wave++) {
        union { Operand r16[16][32]; Operand r32[32][16]; } left, right;
        union { uint32_t r16[16][16]; uint32_t r32[32][32]; } acc;
        Operand *l = rows == 16 ? &left.r16[0][0] : &left.r32[0][0], *r = rows == 16 ? &right.r16[0][0] : &right.r32[0][0];
        uint32_t *t = rows == 16 ? &acc.r16[0][0] : &acc.r32[0][0];
        int depth = rows == 16 ? 32 : 16;
        for (int lane = 0; lane < 64; lane++)
            for (int byte = 0; byte < 8; byte++) {
                int at = (lane % rows) * depth + 8 * (lane / rows) + byte;
                l[at] = table[0][(a[(byte / 4) * a_stride + wave * 64 + lane] >> (8 * (byte % 4))) & 0xff];
                r[at] = table[1][(b[(byte / 4) * b_stride + wave * 64 + lane] >> (8 * (byte % 4))) & 0xff];
            }
        for (int g = 0; g < registers; g++)
            for (int lane = 0; lane < 64; lane++) {
                int row = 8 * (g / 4) * (rows == 32) + 4 * (lane / rows) + g % 4;
                t[row * rows + lane % rows] = c[g * c_stride + wave * 64 + lane];
            }
        if (rows == 16) mfma_16((const Operand(*)[32])left.r16, (const Operand(*)[32])right.r16, acc.r16);
        else mfma_32((const Operand(*)[16])left.r32, (const Operand(*)[16])right.r32, acc.r32);
        for (int g = 0; g < registers; g++)
            for (int lane = 0; lane < 64; lane++) {
                int row = 8 * (g / 4) * (rows == 32) + 4 * (lane / rows) + g % 4;
                d[g * d_stride + wave * 64 + lane] = t[row * rows + lane % rows];
            }
    }
}
