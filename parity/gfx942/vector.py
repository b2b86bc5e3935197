# SPDX-License-Identifier: Apache-2.0
"""Vector ALU tables: what each instruction computes. How sources are read and results written: vector_forms.py.

A row is (result type, source types, function). Types: u, i, f = 32-bit unsigned, signed, float; h = the low 16 bits, unsigned;
U, I = 64-bit; m = lane mask from an SGPR pair (bool). Functions take numpy arrays of those types that broadcast to [waves, 64].
Source: CDNA3 ISA chapter 12, "VOP1/VOP2/VOP3/VOPC Instructions". fp32 is IEEE 754, round to nearest even, denormals kept
(launch.py refuses any other MODE); nothing is contracted but what is a fused instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parity.gfx942 import native

Array = np.ndarray
U32, I32, U64, I64, F32 = np.uint32, np.int32, np.uint64, np.int64, np.float32

# Results that the manual only bounds (1 ulp): their use is counted, and no output may depend on one for a verdict to be exact.
APPROXIMATE = frozenset({"v_rcp_f32", "v_rcp_iflag_f32"})
LOW16 = np.uint32(0xFFFF)


def max_f32(left: Array, right: Array) -> Array:
    """IEEE maxNum: a quiet NaN loses against a number, +0 is greater than -0 (ISA: v_max_f32)."""
    result = np.fmax(left, right)
    both_zero = (left == 0) & (right == 0)
    result = np.where(both_zero, (left.view(U32) & right.view(U32)).view(F32), result)
    return np.where(_signaling(left) | _signaling(right), F32(np.nan), result)


def min_f32(left: Array, right: Array) -> Array:
    """IEEE minNum: a quiet NaN loses against a number, -0 is less than +0 (ISA: v_min_f32)."""
    result = np.fmin(left, right)
    both_zero = (left == 0) & (right == 0)
    result = np.where(both_zero, (left.view(U32) | right.view(U32)).view(F32), result)
    return np.where(_signaling(left) | _signaling(right), F32(np.nan), result)


def _signaling(value: Array) -> Array:
    """Signaling NaNs: with MODE.IEEE, which launch.py requires, v_min and v_max turn them into quiet ones."""
    bits = value.view(U32) & U32(0x7FFFFFFF)
    return (bits > U32(0x7F800000)) & (bits < U32(0x7FC00000))


def f32_to_u32(value: Array) -> Array:
    """Truncates; clamps to 0..2^32-1; NaN gives 0 (ISA: v_cvt_u32_f32)."""
    clean = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=2.0**32, neginf=0.0)
    return np.clip(np.trunc(clean), 0, 2**32 - 1).astype(U32)


def f32_to_i32(value: Array) -> Array:
    """Truncates; clamps to -2^31..2^31-1; NaN gives 0 (ISA: v_cvt_i32_f32)."""
    clean = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=2.0**31, neginf=-(2.0**31))
    return np.clip(np.trunc(clean), -(2**31), 2**31 - 1).astype(I32)


def bit_reverse(value: Array) -> Array:
    ascending = np.ascontiguousarray(value).astype("<u4").view(np.uint8)
    bits = np.unpackbits(ascending.reshape(*value.shape, 4), axis=-1, bitorder="little")
    return np.packbits(bits, axis=-1, bitorder="big").view(">u4")[..., 0].astype(U32)


def bfe_u32(value: Array, offset: Array, width: Array) -> Array:
    mask = (U64(1) << (width & U32(31)).astype(U64)) - U64(1)
    return (value >> (offset & U32(31))) & mask.astype(U32)


def bfe_i32(value: Array, offset: Array, width: Array) -> Array:
    """Signed field; one that reaches beyond bit 31 is filled with the sign (ISA: v_bfe_i32 shifts S0.i32)."""
    width = (width & U32(31)).astype(I64)
    field = (value.view(I32) >> (offset & U32(31)).astype(I32)) & ((I64(1) << width) - 1)
    sign = I64(1) << np.maximum(width - 1, 0)
    return ((field ^ sign) - sign).astype(I32)


def perm_b32(high: Array, low: Array, selector: Array) -> Array:
    """v_perm_b32: byte i of the result is byte selector[i] of {S0, S1}, S1 the low dword; 0xc is 0x00, above 0xc 0xff."""
    both = low.astype(U64) | (high.astype(U64) << U64(32))
    both, selector = np.broadcast_arrays(both, selector)
    result = np.zeros(both.shape, U32)
    for position in range(4):
        choice = (selector >> U32(8 * position)) & U32(0xFF)
        byte = ((both >> ((choice & U32(7)).astype(U64) * U64(8))) & U64(0xFF)).astype(U32)
        sign = ((both >> (((choice - U32(8)) & U32(3)).astype(U64) * U64(16) + U64(15))) & U64(1)).astype(U32) * U32(
            0xFF
        )
        byte = np.where(choice < 8, byte, np.where(choice < 12, sign, np.where(choice == 12, U32(0), U32(0xFF))))
        result |= byte << U32(8 * position)
    return result


def mul_hi_u32(left: Array, right: Array) -> Array:
    return ((left.astype(U64) * right.astype(U64)) >> U64(32)).astype(U32)


def _u24(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda left, right: function(left & U32(0xFFFFFF), right & U32(0xFFFFFF))


def alignbit(high: Array, low: Array, amount: Array) -> Array:
    both = low.astype(U64) | (high.astype(U64) << U64(32))
    return (both >> (amount & U32(31)).astype(U64)).astype(U32)


def _shift5(amount: Array) -> Array:
    return amount & U32(31)


def _ashr(amount: Array, value: Array) -> Array:
    return value >> (amount & U32(31)).astype(I32)


def _byte_to_f32(index: int) -> Callable[[Array], Array]:
    return lambda value: ((value >> U32(8 * index)) & U32(0xFF)).astype(F32)


def _reciprocal(value: Array) -> Array:
    return (F32(1.0) / value).astype(F32)


TABLE: dict[str, tuple[str, str, Callable[..., Any]]] = {
    # VOP1
    "v_mov_b32": ("u", "u", lambda x: x),
    "v_mov_b64": ("U", "U", lambda x: x),
    "v_not_b32": ("u", "u", lambda x: ~x),
    "v_bfrev_b32": ("u", "u", bit_reverse),
    "v_cvt_f32_u32": ("f", "u", lambda x: x.astype(F32)),
    "v_cvt_f32_i32": ("f", "i", lambda x: x.astype(F32)),
    "v_cvt_u32_f32": ("u", "f", f32_to_u32),
    "v_cvt_i32_f32": ("i", "f", f32_to_i32),
    "v_rcp_f32": ("f", "f", _reciprocal),
    "v_rcp_iflag_f32": ("f", "f", _reciprocal),
    # VOP2
    "v_cndmask_b32": ("u", "uum", lambda x, y, mask: np.where(mask, y, x)),
    "v_add_f32": ("f", "ff", np.add),
    "v_sub_f32": ("f", "ff", np.subtract),
    "v_subrev_f32": ("f", "ff", lambda x, y: y - x),
    "v_mul_f32": ("f", "ff", np.multiply),
    "v_min_f32": ("f", "ff", min_f32),
    "v_max_f32": ("f", "ff", max_f32),
    "v_min_i32": ("i", "ii", np.minimum),
    "v_max_i32": ("i", "ii", np.maximum),
    "v_min_u32": ("u", "uu", np.minimum),
    "v_max_u32": ("u", "uu", np.maximum),
    "v_mul_u32_u24": ("u", "uu", _u24(np.multiply)),
    "v_lshrrev_b32": ("u", "uu", lambda n, x: x >> _shift5(n)),
    "v_ashrrev_i32": ("i", "ui", _ashr),
    "v_lshlrev_b32": ("u", "uu", lambda n, x: x << _shift5(n)),
    "v_and_b32": ("u", "uu", np.bitwise_and),
    "v_or_b32": ("u", "uu", np.bitwise_or),
    "v_xor_b32": ("u", "uu", np.bitwise_xor),
    "v_xnor_b32": ("u", "uu", lambda x, y: ~(x ^ y)),
    "v_add_u32": ("u", "uu", np.add),
    "v_sub_u32": ("u", "uu", np.subtract),
    "v_subrev_u32": ("u", "uu", lambda x, y: y - x),
    # 16-bit VOP2: on GFX9 the high half of the destination becomes 0 (LLVM: zeroesHigh16BitsOfDest)
    "v_lshlrev_b16": ("u", "hh", lambda n, x: (x << (n & U32(15))) & LOW16),
    "v_lshrrev_b16": ("u", "hh", lambda n, x: (x & LOW16) >> (n & U32(15))),
    # VOP3
    "v_fma_f32": ("f", "fff", native.fma_f32),
    "v_mad_u32_u24": ("u", "uuu", lambda x, y, z: _u24(np.multiply)(x, y) + z),
    "v_bfe_u32": ("u", "uuu", bfe_u32),
    "v_bfe_i32": ("i", "uuu", bfe_i32),
    "v_bfi_b32": ("u", "uuu", lambda x, y, z: (x & y) | (~x & z)),
    "v_alignbit_b32": ("u", "uuu", alignbit),
    "v_perm_b32": ("u", "uuu", perm_b32),
    "v_xad_u32": ("u", "uuu", lambda x, y, z: (x ^ y) + z),
    "v_lshl_add_u32": ("u", "uuu", lambda x, n, z: (x << _shift5(n)) + z),
    "v_add_lshl_u32": ("u", "uuu", lambda x, y, n: (x + y) << _shift5(n)),
    "v_add3_u32": ("u", "uuu", lambda x, y, z: x + y + z),
    "v_lshl_or_b32": ("u", "uuu", lambda x, n, z: (x << _shift5(n)) | z),
    "v_and_or_b32": ("u", "uuu", lambda x, y, z: (x & y) | z),
    "v_or3_b32": ("u", "uuu", lambda x, y, z: x | y | z),
    "v_mul_lo_u32": ("u", "uu", np.multiply),
    "v_mul_hi_u32": ("u", "uu", mul_hi_u32),
    "v_lshlrev_b64": ("U", "uU", lambda n, x: x << (n & U32(63)).astype(U64)),
    "v_lshrrev_b64": ("U", "uU", lambda n, x: x >> (n & U32(63)).astype(U64)),
    "v_ashrrev_i64": ("I", "uI", lambda n, x: x >> (n & U32(63)).astype(I64)),
    "v_lshl_add_u64": ("U", "UuU", lambda x, n, z: (x << (n & U32(7)).astype(U64)) + z),
}
for _index in range(4):
    TABLE[f"v_cvt_f32_ubyte{_index}"] = ("f", "u", _byte_to_f32(_index))

# Instructions whose destination is also a source: the function's last argument.
ACCUMULATE = {"v_fmac_f32": ("f", "fff", native.fma_f32)}


# numpy's comparisons are false for NaN, as the ordered conditions want
_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lg": lambda x, y: (x < y) | (x > y),
    "o": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
    "f": lambda x, y: np.zeros(np.broadcast_shapes(x.shape, y.shape), bool),
}  # fmt: skip
_NEGATED = {"nlt": "lt", "neq": "eq", "nle": "le", "ngt": "gt", "nge": "ge", "nlg": "lg", "u": "o", "tru": "f"}
_INTEGER = {"lt": "lt", "eq": "eq", "le": "le", "gt": "gt", "ge": "ge", "f": "f"}


def _negate(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, y: ~function(x, y)


# VOPC: (source types, condition). v_cmpx writes EXEC too (vector_forms.py).
COMPARE: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {}
for _prefix in ("v_cmp", "v_cmpx"):
    for _name, _function in _ORDERED.items():
        COMPARE[f"{_prefix}_{_name}_f32"] = ("ff", _function)
    for _name, _positive in _NEGATED.items():
        COMPARE[f"{_prefix}_{_name}_f32"] = ("ff", _negate(_ORDERED[_positive]))
    for _type, _kinds in {"i32": "ii", "u32": "uu", "i64": "II", "u64": "UU"}.items():
        for _name in _INTEGER:
            COMPARE[f"{_prefix}_{_name}_{_type}"] = (_kinds, _ORDERED[_name])
        COMPARE[f"{_prefix}_ne_{_type}"] = (_kinds, _negate(np.equal))
        COMPARE[f"{_prefix}_t_{_type}"] = (_kinds, _negate(_ORDERED["f"]))


def _low16(function: Callable[[Array, Array], Array], dtype: Any) -> Callable[[Array, Array], Array]:
    """A comparison of the low 16 bits of both sources, as uint16 or int16."""
    return lambda x, y: function((x & LOW16).astype(dtype), (y & LOW16).astype(dtype))


for _prefix in ("v_cmp", "v_cmpx"):
    for _type, _dtype in {"u16": np.uint16, "i16": np.int16}.items():
        for _name in _INTEGER:
            COMPARE[f"{_prefix}_{_name}_{_type}"] = ("hh", _low16(_ORDERED[_name], _dtype))
        COMPARE[f"{_prefix}_ne_{_type}"] = ("hh", _low16(np.not_equal, _dtype))
        COMPARE[f"{_prefix}_t_{_type}"] = ("hh", _negate(_ORDERED["f"]))


# VOP3P on two packed fp32 (ISA: v_pk_fma_f32, v_pk_mul_f32, v_pk_add_f32); applied to each half.
PACKED_F32: dict[str, tuple[int, Callable[..., Array]]] = {
    "v_pk_fma_f32": (3, native.fma_f32),
    "v_pk_mul_f32": (2, np.multiply),
    "v_pk_add_f32": (2, np.add),
}

# 64-bit sums with a carry beside the result: (source types, function -> (result, carry mask)).
CARRY: dict[str, tuple[str, str, Callable[..., tuple[Array, Array]]]] = {
    "v_add_co_u32": ("u", "uu", lambda x, y: _carry(x.astype(U64) + y)),
    "v_sub_co_u32": ("u", "uu", lambda x, y: _borrow(x.astype(I64) - y.astype(I64))),
    "v_subrev_co_u32": ("u", "uu", lambda x, y: _borrow(y.astype(I64) - x.astype(I64))),
    "v_addc_co_u32": ("u", "uum", lambda x, y, c: _carry(x.astype(U64) + y + c.astype(U64))),
    "v_subb_co_u32": ("u", "uum", lambda x, y, c: _borrow(x.astype(I64) - y.astype(I64) - c.astype(I64))),
    "v_subbrev_co_u32": ("u", "uum", lambda x, y, c: _borrow(y.astype(I64) - x.astype(I64) - c.astype(I64))),
    "v_mad_u64_u32": ("U", "uuU", lambda x, y, z: _wide_mad(x, y, z)),
}


def _carry(total: Array) -> tuple[Array, Array]:
    return total.astype(U32), total > U64(0xFFFFFFFF)


def _borrow(total: Array) -> tuple[Array, Array]:
    return total.astype(U32), total < 0


def _wide_mad(left: Array, right: Array, addend: Array) -> tuple[Array, Array]:
    product = left.astype(U64) * right.astype(U64)
    total = product + addend
    return total, total < product
