// SPDX-License-Identifier: Apache-2.0
// The engine's data: decoded steps, waves, memory, faults. translate*.py fills Step; launch.py fills Machine; the mirror of
// these structures in Python is records.py, which compares their sizes with layout_sizes().
#pragma once

// clang's own names for these types: the build uses no header, so it needs no C library on the machine.
typedef __UINT8_TYPE__ uint8_t;
typedef __INT8_TYPE__ int8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);

#define INLINE static inline __attribute__((always_inline))
enum { LANES = 64, SGPRS = 128, VGPRS = 512, VCC = 106, M0 = 124, EXEC = 126, MAX_WAVES = 16 };
#define ALL_LANES (~(uint64_t)0)
#define ALL_BITS 0xffffffffu

// ---- one instruction, ready to execute -----------------------------------------------------------------------------
enum SourceKind { NO_SOURCE, CONSTANT, SCALAR, VECTOR, SCC_SOURCE, LANE_MASK };
enum SourceFlags { WIDE = 1, NEGATE = 2, ABSOLUTE = 4, SIGN_EXTEND = 8, DPP = 16, WHOLE_DWORD = 6 };
typedef struct {
    uint8_t kind, flags, select, sign_bit;  // select: SDWA part (0-3 bytes, 4-5 words, 6 all); sign_bit: what NEGATE flips
    uint32_t row;
    uint64_t value;
} Source;

enum RangeRole { READ_V, WRITE_V, READ_S, WRITE_S, MATRIX_AB, MATRIX_C, MATRIX_D };
typedef struct { uint16_t first; uint8_t count, role; } Range;  // registers that a step touches, for watch.c

enum Family { SCALAR_ALU, VECTOR_ALU, PACKED_ALU, COMPARE, CARRY, LANE_MOVE, MATRIX, MEMORY, LDS_MOVE, BRANCH, WAIT, NOP, BARRIER, END, REFUSED };
enum Space { GLOBAL, SCRATCH, LDS, FLAT, BUFFER, CONSTANTS };
enum Access { LOAD, STORE, ATOMIC };
enum Fidelity { EXACT, MANUAL, APPROXIMATE };

typedef struct {
    uint16_t op, family;
    uint32_t pc, next, target;       // pc in bytes of .text; next and target are indices of steps
    Source source[3];
    uint32_t vdst, sdst;             // rows; NO_ROW where there is none
    uint32_t lanes;                  // index of the DPP or swizzle pattern
    uint8_t row_mask, bank_mask, bound_control, clamp;
    uint8_t sdwa_select, sdwa_unused, opsel, opsel_hi;
    uint8_t neg, neg_hi, space, access;
    uint8_t size, dwords, narrow, returns;  // memory: bytes an element, registers an element; narrow: see memory.c
    uint8_t elements, has_vaddr, has_saddr, writes_exec;
    uint8_t reads_scc, spare[3];
    uint32_t vaddr, saddr, vdata, vdata2;   // rows
    int32_t offset, offset2;
    uint8_t rows, left_bf8, right_bf8, passes;  // matrix
    uint8_t vm_count, lgkm_count, ranges, fidelity;
    uint32_t wait_states;
    Range range[8];
} Step;
enum { NO_ROW = 0xffffffffu };

// ---- memory --------------------------------------------------------------------------------------------------------
// undefined: one mask byte per byte (bits that nobody wrote), or null when the whole allocation counts as written.
typedef struct { uint64_t address, size; uint8_t *bytes, *undefined; uint64_t written; } Region;

// ---- faults --------------------------------------------------------------------------------------------------------
enum FaultKind {
    NO_FAULT, OUT_OF_BOUNDS, OUT_OF_BOUNDS_BUFFER, OUT_OF_BOUNDS_LDS, OUT_OF_BOUNDS_SCRATCH, UNINITIALISED, LDS_RACE,
    MISSING_WAIT, MFMA_HAZARD, BARRIER_DIVERGENCE, STEP_LIMIT, UNSUPPORTED
};
typedef struct {
    uint32_t kind, step;
    int32_t wave, lane;
    uint64_t address;
    int64_t group;
    uint32_t other_step, other_wave;  // origin of undefined bits, the other side of a race, the load that was not awaited
    uint32_t reason, registers;       // what detail text applies (kind by kind), register concerned
    uint64_t size, extra;
} Fault;

// ---- waves ---------------------------------------------------------------------------------------------------------
enum WaveStatus { RUNNABLE, AT_BARRIER, ENDED };
// What watch.c knows of a register: sequence numbers of the loads that fill it (0 none), clocks of writes and reads, and their steps.
typedef struct { uint32_t vm_load, lds_load, scalar_load, load_step; uint64_t matrix_write, valu_write, matrix_c_read; uint32_t matrix_step, c_step; } Watched;
typedef struct {
    uint32_t *v, *undefined;   // [vgprs][64]; undefined bits of the same
    uint8_t *dirty;            // [vgprs] some lane may have undefined bits
    uint32_t *origin;          // [vgprs] step whose result was undefined first, 0 = never written
    uint8_t *scratch, *scratch_undefined;  // [64][scratch_bytes]
    Watched *watched;          // [vgprs + SGPRS]
    uint32_t s[SGPRS], s_undefined[SGPRS], s_origin[SGPRS];
    uint64_t start_exec, steps;
    uint32_t step, status, scc, scc_undefined, scc_origin, index;
    uint32_t vm_issued, vm_done, lds_issued, lds_done, scalar_issued, scalar_done, flat_vm, flat_lds;
    uint64_t clock, last_matrix, last_exec_write;
    uint32_t flushed, lds_write_at, arrived_at;
} Wave;

// Who touched an LDS byte since the last barrier: the waves, and the last two of them with their steps.
typedef struct { uint32_t epoch, step, other_step, sequence; uint16_t waves; uint8_t wave, other_wave; } Touch;

typedef struct {
    Step *steps;
    uint64_t *counts;               // executions of each step, in waves
    uint32_t step_count, entry;
    Region *regions;
    uint32_t region_count, last_region;
    const uint8_t *patterns;        // [n][64] source lanes, 255 = outside
    uint32_t vgprs, accum_offset, lds_bytes, scratch_bytes, waves_per_group, checks;
    uint64_t step_limit, schedule, nudge;
    // initial state: SGPRs of a group (workgroup ids still to be filled in), v0 and EXEC of each of its waves
    uint32_t initial_s[SGPRS], initial_known;   // initial_known: SGPRs below it are defined
    uint32_t group_id_row[3], grid[3], spare;
    const uint32_t *initial_v0;     // [waves][64]
    const uint64_t *initial_exec;   // [waves]
    // working storage of one group, allocated by launch.py
    uint8_t *lds, *lds_undefined;
    Touch *lds_writer, *lds_reader, *lds_atomic;
    uint32_t *vector_storage;       // [waves][vgprs][64], then the undefined bits if checks
    uint8_t *byte_storage;          // dirty flags and scratch
    uint32_t *origin_storage;
    Watched *watched_storage;
    uint64_t random;
    uint32_t epoch, wave_count;
    Wave wave[MAX_WAVES];
    Fault fault;
} Machine;
