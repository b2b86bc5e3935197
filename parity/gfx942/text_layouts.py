# SPDX-License-Identifier: Apache-2.0
"""Which operands an instruction's text has: one table a format, the first matching pattern counts.

A layout is a list of `field:type`. The type is a letter and a number of bits: f (a float, takes neg and abs), i u b (others),
s (scalar registers alone), v (vector registers alone), a (AGPRs alone), c (vector registers or an inline constant), l (scalar registers
or an inline constant), p (no modifier at all). A word ":" is printed as it is; text.py and text_modifiers.py have the types that are words.
Source: CDNA3 ISA chapter 12 and LLVM "Syntax of GFX940 Instructions".
"""

from __future__ import annotations

import re

from parity.gfx942 import opcodes
from parity.gfx942.faults import Unsupported

Table = tuple[tuple[str, str], ...]

# fmt: off
_SCALAR: dict[str, Table] = {
    "SOP2": ((r"s_(lshl|lshr|ashr|bfe)_[bui]64", "sdst:b64 ssrc0:b64 ssrc1:b32"), (r"s_bfm_b64", "sdst:b64 ssrc0:b32 ssrc1:b32"),
             (r".*64", "sdst:b64 ssrc0:b64 ssrc1:b64"), (r".*", "sdst:b32 ssrc0:b32 ssrc1:b32")),
    "SOP1": ((r"s_getpc_b64", "sdst:b64"), (r"s_setpc_b64", "ssrc0:s64"), (r"s_bitset[01]_b64", "sdst:b64 ssrc0:b32"),
             (r".*_i32_[bi]64", "sdst:b32 ssrc0:b64"), (r".*64", "sdst:b64 ssrc0:b64"), (r".*", "sdst:b32 ssrc0:b32")),
    "SOPC": ((r"s_bitcmp[01]_b64", "ssrc0:b64 ssrc1:b32"), (r".*64", "ssrc0:b64 ssrc1:b64"), (r".*", "ssrc0:b32 ssrc1:b32")),
    "SOPK": ((r"s_getreg_b32", "sdst:b32 simm16:hwreg"), (r"s_setreg_b32", "simm16:hwreg sdst:b32"), (r".*", "sdst:b32 simm16:hex")),
    "SOPP": ((r"s_waitcnt", "simm16:counters"), (r"s_endpgm", "simm16:optional"),
             (r"s_(barrier|wakeup|icache_inv|ttracedata|endpgm_saved|set_gpr_idx_off)", ""), (r".*", "simm16:number")),
    "SMEM": ((r"s_mem(real)?time", "sdst:b64"), (r"s_dcache_.*", ""), (r"s_buffer_load_.*", "sdst:data sbase:b128 offset:smem"),
             (r"s_load_.*", "sdst:data sbase:b64 offset:smem")),
}
_VECTOR: dict[str, Table] = {
    "VOP1": ((r"v_nop", ""), (r"v_readfirstlane_b32", "vdst:s32 src0:v32"), (r"v_accvgpr_mov_b32", "vdst:a32 src0:a32"), (r"v_swap_b32", "vdst:v32 src0:v32"),
             (r".*", "vdst:D src0:0")),
    "VOP2": ((r"v_cndmask_b32", "vdst:D src0:0 vsrc1:1 vcc"), (r"v_(add|sub|subrev)_co_u32", "vdst:D vcc src0:0 vsrc1:1"),
             (r"v_(addc|subb|subbrev)_co_u32", "vdst:D vcc src0:0 vsrc1:1 vcc"), (r"v_fmamk_f32", "vdst:D src0:0 literal:hex vsrc1:1"),
             (r"v_fmaak_f32", "vdst:D src0:0 vsrc1:1 literal:hex"), (r".*", "vdst:D src0:0 vsrc1:1")),
    "VOPC": ((r".*", "vcc src0:0 vsrc1:1"),),
    "VOP3": ((r"v_readlane_b32", "vdst:s32 src0:v32 src1:l32"), (r"v_writelane_b32", "vdst:b32 src0:l32 src1:l32"), (r"v_(div_scale|mad_u64|mad_i64)_.*", "vdst:D sdst:s64 src0:0 src1:1 src2:2"),
             (r"v_(add|sub)_i32|v_(add|mul)_f64|v_mul_(lo|hi)_[iu]32|v_(ldexp|bcnt|mbcnt|bfm|pack)_.*|v_\w+rev_[bi]64"
              r"|v_cvt_(pknorm|pkrtz|sr)_.*|v_cvt_pk_(u16|i16|fp8|bf8)_.*", "vdst:D src0:0 src1:1"),
             (r".*", "vdst:D src0:0 src1:1 src2:2")),
    "VOP3P": ((r"v_accvgpr_read_b32", "vdst:b32 src0:a32"), (r"v_accvgpr_write_b32", "vdst:a32 src0:b32"), (r"v_pk_(mad|fma)_.*|v_fma_mix_.*|v_dot.*|v_mfma_.*", "vdst:D src0:0 src1:1 src2:2"),
              (r".*", "vdst:D src0:0 src1:1")),
}
# Types of destination and sources where the mnemonic does not end in them (there: one for all, or destination_source).
_TYPES: Table = (
    (r"v_cvt_pk_f32_(fp8|bf8)", "f64 p32"), (r"v_cvt_f32_(fp8|bf8)", "f32 p32"), (r"v_cvt_f32_ubyte\d", "f32 b32"), (r"v_cvt_pk_(fp8|bf8)_f32", "b32 f32 f32"),
    (r"v_cvt_sr_(fp8|bf8)_f32", "b32 f32 b32"), (r"v_cndmask_b32", "b32 f32 f32"),
    (r"v_(lshlrev|lshrrev|ashrrev)_[bi]64", "b64 b32 b64"), (r"v_lshl_add_u64", "u64 u64 u32 u64"), (r"v_mad_[ui]64_[ui]32", "u64 u32 u32 u64"),
    (r"v_cmpx?_class_f32", "b32 f32 b32"), (r"v_ldexp_f32", "f32 f32 i32"), (r"v_cvt_pk_u8_f32", "b32 f32 u32 u32"),
    (r"v_mad_(u32_u16|i32_i16)", "u32 u16 u16 u32"), (r"v_pk_\w+_f32", "f64 f64 f64 f64"), (r"v_pk_mov_b32", "b64 b64 b64"),
    (r"v_dot4_i32_i8", "i32 i32 i32 i32"), (r"v_fma_mix_f32", "f32 f32 f32 f32"), (r"v_sad_u8|v_lerp_u8", "u32 u32 u32 u32"),
    (r"v_mfma_f32_16x16x4_f32", "b128 v32 v32 c128"), (r"v_mfma_f32_32x32x2_f32", "b512 v32 v32 c512"),
    (r"v_mfma_\w+_16x16x.*", "b128 v64 v64 c128"), (r"v_mfma_\w+_32x32x.*", "b512 v64 v64 c512"),
)
_MEMORY: dict[str, Table] = {
    "DS": ((r"ds_(read2|read2st64)_.*", "vdst:twice addr:b32"), (r"ds_(read|swizzle)_.*", "vdst:data addr:b32"),
           (r"ds_(write2|write2st64)_.*", "addr:b32 data0:data data1:data"), (r"ds_b?permute_b32|ds_\w+_rtn_(?<!cmpst_rtn_)\w+", "vdst:data addr:b32 data0:data"),
           (r"ds_cmpst_rtn_.*", "vdst:data addr:b32 data0:data data1:data"), (r"ds_cmpst_.*", "addr:b32 data0:data data1:data"),
           (r".*", "addr:b32 data0:data")),
    "FLAT": ((r"flat_load_.*", "vdst:data addr:b64"), (r"flat_store_.*", "addr:b64 data:data"), (r".*", "vdst:returned addr:b64 data:data")),
    "GLOBAL": ((r"global_load_.*", "vdst:data addr:global saddr:off"), (r"global_store_.*", "addr:global data:data saddr:off"),
               (r".*", "vdst:returned addr:global data:data saddr:off")),
    "SCRATCH": ((r"scratch_load_.*", "vdst:data addr:scratch saddr:off"), (r".*", "addr:scratch data:data saddr:off")),
    "MUBUF": ((r"buffer_(wbl2|inv)", ""), (r".*", "vdata:data vaddr:index srsrc:b128 soffset:b32")),
}
# fmt: on


def layout(name: str, format_name: str) -> list[str]:
    """`field:type` of every operand of the text, in its order."""
    family = format_name.partition("-")[0]
    if family in _SCALAR:
        return _first(_SCALAR[family], name).replace(":data", f":b{data_bits(name)}").split()
    if family in _MEMORY:
        return _memory(name, _first(_MEMORY[family], name)).split()
    if family == "VOP3":
        return _typed(name, _wide(name))
    return _typed(name, _first(_VECTOR[family], name))


def narrow_format(name: str) -> str:
    """The 32-bit format that has `name`, "" for those with a 64-bit encoding only."""
    tables = {"VOP1": opcodes.VOP1, "VOP2": opcodes.VOP2, "VOPC": opcodes.VOPC}
    return next((family for family, table in tables.items() if name in table.values()), "")


def _wide(name: str) -> str:
    """VOP3: its own instructions, or the other formats' with any register in the places of vsrc1 and VCC."""
    family = narrow_format(name)
    words = _first(_VECTOR[family or "VOP3"], name).split()
    for position, word in enumerate(words):
        if word == "vcc":
            words[position] = ("vdst:s64", "sdst:s64")[position] if position < 2 else "src2:s64"
    return " ".join(words).replace("vsrc1", "src1")


def _typed(name: str, words: str) -> list[str]:
    types = next((types.split() for pattern, types in _TYPES if re.fullmatch(pattern, name)), None)
    if types is None:
        found = re.findall(r"(?<=_)[biuf](?:8|16|24|32|64)(?=_|$)", name)
        found = [re.sub(r"8$|24$", "32", kind) for kind in found]  # parts of a 32-bit register
        types = [found[0], *[found[-1]] * 3] if found else []
    place = dict(zip(("D", "0", "1", "2"), types, strict=False))
    return [re.sub(r"(?<=:)[D012]$", lambda match: place[match[0]], word) for word in words.split()]


def _memory(name: str, words: str) -> str:
    bits = data_bits(name)
    returned = bits // 2 if "cmpswap" in name else bits
    for word, width in ((":data", bits), (":twice", 2 * bits), (":returned", returned)):
        words = words.replace(word, f":{'r' if word == ':returned' else 'b'}{width}")
    return words


def data_bits(name: str) -> int:
    """Bits of the registers that a memory instruction loads or stores; a cmpswap has two values side by side."""
    if name.startswith("ds_"):
        found = re.search(r"_[biuf](64|96|128)$", name)
        return int(found[1]) if found else 32
    found = re.search(r"(?:dword|_)x(\d+)$", name)
    return 32 * (int(found[1]) if found else 1) * (2 if "cmpswap" in name else 1)


def _first(table: Table, name: str) -> str:
    for pattern, found in table:
        if re.fullmatch(pattern, name):
            return found
    raise Unsupported(f"{name} has no operand layout")
