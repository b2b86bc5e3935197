# SPDX-License-Identifier: Apache-2.0
"""engine/engine.h in Python: the structures that pass between translate*.py, launch.py and the engine, field by field."""

from __future__ import annotations

import ctypes
from enum import IntEnum

U8, U16, U32, I32, U64, I64 = (
    ctypes.c_uint8,
    ctypes.c_uint16,
    ctypes.c_uint32,
    ctypes.c_int32,
    ctypes.c_uint64,
    ctypes.c_int64,
)
POINTER = ctypes.c_void_p
NO_ROW = 0xFFFFFFFF
VCC, M0, EXEC, SGPRS, LANES, MAX_WAVES = 106, 124, 126, 128, 64, 16
WHOLE_DWORD = 6  # SDWA select code

SourceKind = IntEnum("SourceKind", "NONE CONSTANT SCALAR VECTOR SCC LANE_MASK", start=0)
WIDE, NEGATE, ABSOLUTE, SIGN_EXTEND, DPP = 1, 2, 4, 8, 16
Role = IntEnum("Role", "READ_V WRITE_V READ_S WRITE_S MATRIX_AB MATRIX_C MATRIX_D", start=0)
Family = IntEnum(
    "Family",
    "SCALAR_ALU VECTOR_ALU PACKED_ALU COMPARE CARRY LANE_MOVE MATRIX MEMORY LDS_MOVE BRANCH WAIT NOP BARRIER END REFUSED",
    start=0,
)
Space = IntEnum("Space", "GLOBAL SCRATCH LDS FLAT BUFFER CONSTANTS", start=0)
Access = IntEnum("Access", "LOAD STORE ATOMIC", start=0)
Precision = IntEnum("Precision", "EXACT MANUAL APPROXIMATE", start=0)
SIGNED, D16, HIGH_HALF = 1, 2, 4
ATOMICS = ["add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec", "swap", "cmpswap", "add_f32"]
LANE_MOVES = [
    "v_readfirstlane_b32",
    "v_readlane_b32",
    "v_writelane_b32",
    "v_mbcnt_lo_u32_b32",
    "v_mbcnt_hi_u32_b32",
    "v_swap_b32",
]
BRANCHES = [
    "s_branch",
    "s_cbranch_scc0",
    "s_cbranch_scc1",
    "s_cbranch_vccz",
    "s_cbranch_vccnz",
    "s_cbranch_execz",
    "s_cbranch_execnz",
]
LDS_MOVES = ["ds_swizzle_b32", "ds_bpermute_b32", "ds_permute_b32"]


class SourceRecord(ctypes.Structure):
    _fields_ = [("kind", U8), ("flags", U8), ("select", U8), ("sign_bit", U8), ("row", U32), ("value", U64)]


class RangeRecord(ctypes.Structure):
    _fields_ = [("first", U16), ("count", U8), ("role", U8)]


class Step(ctypes.Structure):
    """One instruction, ready to execute."""

    _fields_ = [
        *((name, U16) for name in ("op", "family")),
        *((name, U32) for name in ("pc", "next", "target")),
        ("source", SourceRecord * 3),
        *((name, U32) for name in ("vdst", "sdst", "lanes")),
        *((name, U8) for name in ("row_mask", "bank_mask", "bound_control", "clamp")),
        *((name, U8) for name in ("sdwa_select", "sdwa_unused", "opsel", "opsel_hi")),
        *((name, U8) for name in ("neg", "neg_hi", "space", "access")),
        *((name, U8) for name in ("size", "dwords", "narrow", "returns")),
        *((name, U8) for name in ("elements", "has_vaddr", "has_saddr", "writes_exec")),
        *((name, U8) for name in ("reads_scc", "spare0", "spare1", "spare2")),
        *((name, U32) for name in ("vaddr", "saddr", "vdata", "vdata2")),
        *((name, I32) for name in ("offset", "offset2")),
        *((name, U8) for name in ("rows", "left_bf8", "right_bf8", "passes")),
        *((name, U8) for name in ("vm_count", "lgkm_count", "ranges", "fidelity")),
        ("wait_states", U32),
        ("range", RangeRecord * 8),
    ]


class Region(ctypes.Structure):
    _fields_ = [("address", U64), ("size", U64), ("bytes", POINTER), ("undefined", POINTER), ("written", U64)]


class FaultRecord(ctypes.Structure):
    _fields_ = [
        ("kind", U32),
        ("step", U32),
        ("wave", I32),
        ("lane", I32),
        ("address", U64),
        ("group", I64),
        *((name, U32) for name in ("other_step", "other_wave", "reason", "registers")),
        ("size", U64),
        ("extra", U64),
    ]


class Wave(ctypes.Structure):
    _fields_ = [
        *((name, POINTER) for name in ("v", "undefined", "dirty", "origin", "scratch", "scratch_undefined", "watched")),
        *((name, U32 * SGPRS) for name in ("s", "s_undefined", "s_origin")),
        ("start_exec", U64),
        ("steps", U64),
        *((name, U32) for name in ("step", "status", "scc", "scc_undefined", "scc_origin", "index")),
        *(
            (name, U32)
            for name in (
                "vm_issued",
                "vm_done",
                "lds_issued",
                "lds_done",
                "scalar_issued",
                "scalar_done",
                "flat_vm",
                "flat_lds",
            )
        ),
        *((name, U64) for name in ("clock", "last_matrix", "last_exec_write")),
        *((name, U32) for name in ("flushed", "lds_write_at", "arrived_at")),
    ]


class Touch(ctypes.Structure):
    _fields_ = [
        *((name, U32) for name in ("epoch", "step", "other_step", "sequence")),
        ("waves", U16),
        ("wave", U8),
        ("other_wave", U8),
    ]


class Watched(ctypes.Structure):
    _fields_ = [
        *((name, U32) for name in ("vm_load", "lds_load", "scalar_load", "load_step")),
        *((name, U64) for name in ("matrix_write", "valu_write", "matrix_c_read")),
        *((name, U32) for name in ("matrix_step", "c_step")),
    ]


class Machine(ctypes.Structure):
    """One launch: steps, memory, initial state, and the working storage of one workgroup."""

    _fields_ = [
        ("steps", POINTER),
        ("counts", POINTER),
        *((name, U32) for name in ("step_count", "entry")),
        ("regions", POINTER),
        *((name, U32) for name in ("region_count", "last_region")),
        ("patterns", POINTER),
        *((name, U32) for name in ("vgprs", "accum_offset", "lds_bytes", "scratch_bytes", "waves_per_group", "checks")),
        *((name, U64) for name in ("step_limit", "schedule", "nudge")),
        ("initial_s", U32 * SGPRS),
        ("initial_known", U32),
        ("group_id_row", U32 * 3),
        ("grid", U32 * 3),
        ("spare", U32),
        *(
            (name, POINTER)
            for name in ("initial_v0", "initial_exec", "lds", "lds_undefined", "lds_writer", "lds_reader", "lds_atomic")
        ),
        *((name, POINTER) for name in ("vector_storage", "byte_storage", "origin_storage", "watched_storage")),
        ("random", U64),
        *((name, U32) for name in ("epoch", "wave_count")),
        ("wave", Wave * MAX_WAVES),
        ("fault", FaultRecord),
    ]


class Operation(ctypes.Structure):
    """One line of engine/vector.def or scalar.def. `types`: V + result and sources, S (sums), P (packed), O (orders), D (scalar)."""

    _fields_ = [("name", ctypes.c_char_p), ("types", ctypes.c_char_p), ("fidelity", U32), ("sources", U32)]


SIZES = [ctypes.sizeof(part) for part in (Step, Region, FaultRecord, Machine, Touch, Watched)]
