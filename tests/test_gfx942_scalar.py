# SPDX-License-Identifier: Apache-2.0
"""Scalar ALU: one instruction, literal operands, literal result and SCC, worked by hand from the CDNA3 ISA (chapter 12).

A row is one wave: values of s8, s9, ... (hex), a colon, values of s16, s17, ... and `scc=`. A row that names no SCC before
the colon runs with both; one that names none after it expects SCC to stay.
"""

from __future__ import annotations

import pytest

from parity.gfx942 import Kernel, Unsupported, native
from tests import test_gfx942_numbers_scalar
from tests.gfx942_state import UNTOUCHED, Before, execute, kernels, run

# instruction: rows
WAVES: dict[str, str] = {
    "s_mov_b32 s16, s8": "deadbeef : deadbeef",
    "s_mov_b64 s[16:17], s[8:9]": "12345678 9abcdef0 : 12345678 9abcdef0",
    "s_mov_b64 s[16:17], -2": " : fffffffe ffffffff",
    "s_mov_b64 s[16:17], 0x7fffffff": " : 7fffffff 0",
    "s_mov_b32 s16, 0x80000000": " : 80000000",
    "s_mov_b32 s16, 1.0": " : 3f800000",
    "s_mov_b32 s16, src_scc": "scc=1 : 1; scc=0 : 0",
    "s_not_b32 s16, s8": "ffffffff : 0 scc=0; 0 : ffffffff scc=1; 12345678 : edcba987 scc=1",
    "s_not_b64 s[16:17], s[8:9]": "ffffffff ffffffff : 0 0 scc=0; ffffffff fffffffe : 0 1 scc=1; fffffffe ffffffff : 1 0 scc=1",
    "s_add_u32 s16, s8, s9": "ffffffff 1 : 0 scc=1; fffffffe 1 : ffffffff scc=0; ffffffff ffffffff : fffffffe scc=1",
    "s_addc_u32 s16, s8, s9": """ffffffff 0 scc=1 : 0 scc=1; 1 1 scc=0 : 2 scc=0; 1 1 scc=1 : 3 scc=0;
        ffffffff ffffffff scc=1 : ffffffff scc=1""",
    "s_sub_u32 s16, s8, s9": "0 1 : ffffffff scc=1; 1 1 : 0 scc=0; 80000000 1 : 7fffffff scc=0",
    "s_subb_u32 s16, s8, s9": "1 1 scc=1 : ffffffff scc=1; 2 1 scc=1 : 0 scc=0; 0 ffffffff scc=1 : 0 scc=1; 1 1 scc=0 : 0 scc=0",
    "s_add_i32 s16, s8, s9": "7fffffff 1 : 80000000 scc=1; ffffffff 1 : 0 scc=0; 80000000 ffffffff : 7fffffff scc=1; 5 6 : b scc=0",
    "s_sub_i32 s16, s8, s9": "80000000 1 : 7fffffff scc=1; 0 80000000 : 80000000 scc=1; 1 2 : ffffffff scc=0",
    "s_mov_b32 s16, s8\ns_addk_i32 s16, 0xff80": "80 : 0 scc=0; 80000000 : 7fffff80 scc=1; 0 : ffffff80 scc=0",
    "s_mov_b32 s16, s8\ns_addk_i32 s16, 0x7fff": "7fffffff : 80007ffe scc=1; 1 : 8000 scc=0",
    "s_mov_b32 s16, s8\ns_mulk_i32 s16, 0xfffe": "3 : fffffffa; 80000000 : 0",
    "s_movk_i32 s16, 0x8000": " : ffff8000",
    "s_movk_i32 s16, 0x7fff": " : 7fff",
    "s_mul_i32 s16, s8, s9": "ffffffff ffffffff : 1; 00010001 00010001 : 00020001; 80000000 2 : 0",
    "s_mul_hi_u32 s16, s8, s9": "ffffffff ffffffff : fffffffe; 00010000 00010000 : 1",
    "s_mul_hi_i32 s16, s8, s9": "ffffffff ffffffff : 0; 80000000 80000000 : 40000000; 80000000 1 : ffffffff; 00010000 00010000 : 1",
    "s_min_i32 s16, s8, s9": "ffffffff 1 : ffffffff scc=1; 1 ffffffff : ffffffff scc=0; 5 5 : 5 scc=0",
    "s_min_u32 s16, s8, s9": "ffffffff 1 : 1 scc=0; 1 2 : 1 scc=1; 5 5 : 5 scc=0",
    "s_max_i32 s16, s8, s9": "ffffffff 1 : 1 scc=0; 1 ffffffff : 1 scc=1; 5 5 : 5 scc=1",
    "s_max_u32 s16, s8, s9": "ffffffff 1 : ffffffff scc=1; 1 2 : 2 scc=0; 5 5 : 5 scc=1",
    "s_cselect_b32 s16, s8, s9": "1 2 scc=1 : 1; 1 2 scc=0 : 2",
    "s_cselect_b64 s[16:17], s[8:9], s[10:11]": "1 2 3 4 scc=1 : 1 2; 1 2 3 4 scc=0 : 3 4",
    "s_cselect_b64 s[16:17], -1, 0": "scc=1 : ffffffff ffffffff; scc=0 : 0 0",
    "s_lshl_b32 s16, s8, s9": "1 21 : 2 scc=1; 80000000 1 : 0 scc=0; 3 20 : 3 scc=1",
    "s_lshr_b32 s16, s8, s9": "80000000 3f : 1 scc=1; 1 1 : 0 scc=0",
    "s_ashr_i32 s16, s8, s9": "80000000 1f : ffffffff scc=1; 1 1 : 0 scc=0; 70000000 4 : 07000000 scc=1",
    "s_lshl_b64 s[16:17], s[8:9], s10": "1 0 41 : 2 0 scc=1; 80000000 0 1 : 0 1 scc=1; 0 80000000 1 : 0 0 scc=0; 5 6 20 : 0 5 scc=1",
    "s_lshr_b64 s[16:17], s[8:9], s10": "0 1 1 : 80000000 0 scc=1; 0 80000000 3f : 1 0 scc=1; 1 0 1 : 0 0 scc=0; 7 8 40 : 7 8 scc=1",
    "s_ashr_i64 s[16:17], s[8:9], s10": "0 80000000 3f : ffffffff ffffffff scc=1; 0 80000001 1 : 80000000 c0000000 scc=1; 1 0 1 : 0 0 scc=0",
    "s_bfe_u32 s16, s8, s9": "deadbeef 00080008 : be scc=1; deadbeef 0 : 0 scc=0; deadbeef 00100018 : de scc=1; deadbeef 001f0000 : 5eadbeef scc=1",
    "s_bitcmp0_b32 s8, s9": "2 21 : scc=0; fffffffd 1 : scc=1",
    "s_bitcmp1_b32 s8, s9": "2 21 : scc=1; fffffffd 1 : scc=0; 80000000 1f : scc=1",
    "s_cmp_eq_u64 s[8:9], s[10:11]": "1 2 1 2 : scc=1; 1 2 1 3 : scc=0; 1 2 0 2 : scc=0",
    "s_cmp_lg_u64 s[8:9], s[10:11]": "1 2 1 2 : scc=0; 1 2 1 3 : scc=1; 1 2 0 2 : scc=1",
    "s_lshl1_add_u32 s16, s8, s9": "80000000 1 : 1 scc=1; 1 2 : 4 scc=0; 7fffffff 2 : 0 scc=1; ffffffff ffffffff : fffffffd scc=1",
    "s_lshl2_add_u32 s16, s8, s9": "40000000 1 : 1 scc=1; 3 2 : e scc=0",
    "s_lshl3_add_u32 s16, s8, s9": "20000000 1 : 1 scc=1; 3 2 : 1a scc=0",
    "s_lshl4_add_u32 s16, s8, s9": "10000000 1 : 1 scc=1; 3 2 : 32 scc=0",
    "s_add_u32 s16, s8, 0x12345678": "1 : 12345679 scc=0",
    "s_add_u32 vcc_lo, s8, 1\ns_mov_b32 s16, vcc_lo": "4 : 5 scc=0",
}
_LOGIC = {  # ff00ff00 and 12345678; then operands whose result is 0
    "and": ("12005600", "0f0f f0f0"), "or": ("ff34ff78", "0 0"), "xor": ("ed34a978", "1234 1234"), "andn2": ("ed00a900", "5 7"),
    "orn2": ("ffcbff87", "0 ffffffff"), "nand": ("edffa9ff", "ffffffff ffffffff"), "nor": ("00cb0087", "ffffffff 0"),
    "xnor": ("12cb5687", "0 ffffffff"),
}  # fmt: skip
for _stem, (_result, _zero) in _LOGIC.items():
    WAVES[f"s_{_stem}_b32 s16, s8, s9"] = f"ff00ff00 12345678 : {_result} scc=1; {_zero} : 0 scc=0"
    _x, _y = _zero.split()
    WAVES[f"s_{_stem}_b64 s[16:17], s[8:9], s[10:11]"] = (
        f"{_x} ff00ff00 {_y} 12345678 : 0 {_result} scc=1; ff00ff00 {_x} 12345678 {_y} : {_result} 0 scc=1; {_x} {_x} {_y} {_y} : 0 0 scc=0"
    )
# operands: (signed relation, unsigned relation)
_PAIRS = {"1 2": ("lt", "lt"), "80000000 7fffffff": ("lt", "gt"), "7fffffff 80000000": ("gt", "lt"), "5 5": ("eq", "eq"),
          "ffffffff ffffffff": ("eq", "eq"), "ffffffff 0": ("lt", "gt"), "2 1": ("gt", "gt")}  # fmt: skip
_TRUE = {"eq": "eq", "lg": "lt gt", "gt": "gt", "ge": "gt eq", "lt": "lt", "le": "lt eq"}
# s8 against the 16-bit immediate 0xfff0: -16 when signed, 65520 when not (ISA 12.2)
_IMMEDIATE = {"fffffff0": ("eq", "gt"), "fffffff1": ("gt", "gt"), "ffffffef": ("lt", "gt"), "0000fff0": ("gt", "eq"),
              "0000ffef": ("gt", "lt"), "0": ("gt", "lt")}  # fmt: skip
for _name, _true in _TRUE.items():
    for _index, _letter in enumerate("iu"):
        WAVES[f"s_cmp_{_name}_{_letter}32 s8, s9"] = "; ".join(
            f"{pair} : scc={int(relations[_index] in _true.split())}" for pair, relations in _PAIRS.items()
        )
        WAVES[f"s_cmpk_{_name}_{_letter}32 s8, 0xfff0"] = "; ".join(
            f"{value} : scc={int(relations[_index] in _true.split())}" for value, relations in _IMMEDIATE.items()
        )
# EXEC before is 0xff00ff0000000000 | 0xcc; source s[8:9]; after: EXEC and the old EXEC in s[16:17]
EXEC_BEFORE = 0xFF00FF00000000CC
_SAVEEXEC = {  # source 0x0ff0000000000f0a
    "and": 0x0F00000000000008, "or": 0xFFF0FF0000000FCE, "xor": 0xF0F0FF0000000FC6, "andn2": 0x00F0000000000F02,
}  # fmt: skip

ELSEWHERE = test_gfx942_numbers_scalar.MNEMONICS


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    names = {f"k{number}": body for number, body in enumerate(WAVES)}
    return {names[name]: kernel for name, kernel in kernels(names).items()}


def _cases(row: str) -> list[tuple[Before, list[int], int]]:
    """(registers before, expected s16.., expected SCC) of a row, for one or both values of SCC."""
    left, right = (part.split() for part in row.split(":"))
    values = [int(token, 16) for token in left if not token.startswith("scc=")]
    expected = [int(token, 16) for token in right if not token.startswith("scc=")]
    before = [int(token[4:]) for token in left if token.startswith("scc=")] or [0, 1]
    after = [int(token[4:]) for token in right if token.startswith("scc=")]
    return [(Before(scalars=values, scc=scc), expected, after[0] if after else scc) for scc in before]


@pytest.mark.parametrize("body", list(WAVES), ids=lambda body: body.replace("\n", "; "))
def test_waves(body: str, built: dict[str, Kernel]) -> None:
    cases = [case for row in WAVES[body].split(";") for case in _cases(row)]
    results = run(built[body], [before for before, _, _ in cases])
    for (before, expected, scc), after in zip(cases, results, strict=True):
        given = f"{[hex(value) for value in before.scalars]} SCC {before.scc}"
        actual = [after.s[16 + number] for number in range(len(expected))]
        assert [hex(value) for value in actual] == [hex(value) for value in expected], given
        assert after.scc == scc, f"{given}: SCC"
        assert after.s[16 + len(expected)] == UNTOUCHED + 16 + len(expected), f"{given}: wrote too many registers"


@pytest.mark.parametrize("name", list(_SAVEEXEC))
def test_saveexec(name: str) -> None:
    scalars = [0x00000F0A, 0x0FF00000]
    after = execute(f"s_{name}_saveexec_b64 s[16:17], s[8:9]", Before(scalars=scalars, execute=EXEC_BEFORE))
    assert (after.s[16] | after.s[17] << 32, after.execute, after.scc) == (EXEC_BEFORE, _SAVEEXEC[name], 1)


def test_saveexec_clears_scc_when_no_lane_is_left() -> None:
    after = execute(
        "s_and_saveexec_b64 s[16:17], s[8:9]\nv_mov_b32 v10, 1", Before(scalars=[0xF0, 0], execute=0x0F, scc=1)
    )
    assert (after.s[16], after.execute, after.scc) == (0x0F, 0, 0)
    assert after.lanes(10) == [UNTOUCHED + 10] * 64


def test_saveexec_in_place() -> None:
    after = execute(
        "s_mov_b64 s[16:17], s[8:9]\ns_and_saveexec_b64 s[16:17], s[16:17]", Before(scalars=[0xF0, 0], execute=0xFF)
    )
    assert (after.s[16], after.execute) == (0xFF, 0xF0)


def test_every_instruction_with_semantics_has_rows() -> None:
    tested = {line.split()[0] for body in WAVES for line in body.split("\n")} | {
        f"s_{name}_saveexec_b64" for name in _SAVEEXEC
    }
    assert {name for name, entry in native.semantics().items() if entry.kind == "D"} - ELSEWHERE <= tested


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("s_getreg_b32 s16, hwreg(HW_REG_MODE)", "no semantics"),
        ("s_setreg_b32 hwreg(HW_REG_MODE), s8", "no semantics"),
        ("s_getpc_b64 s[16:17]", "no semantics"),
        ("s_sendmsg sendmsg(MSG_INTERRUPT)", "no semantics"),
        ("s_trap 2", "no semantics"),
        ("s_memtime s[16:17]", "no semantics"),
        ("s_mov_b32 s16, src_execz", "scalar operand 252"),
        ("s_mov_b32 s16, src_private_base", "scalar operand 237"),
        (".long 0xbee60008", "scalar operand 102"),  # s_mov_b32 s102, s8, which clang refuses
        (".long 0xbe910108", "scalar operand 17, 2 registers"),  # s_mov_b64 s[17:18], s[8:9]
        (".long 0xbe900109", "scalar operand 9, 2 registers"),  # s_mov_b64 s[16:17], s[9:10]
        ("s_mov_b64 s[16:17], 1.0", "floating-point inline constant in a 64-bit integer operand"),
        ("s_mov_b64 s[16:17], 0x80000001", "literal"),  # sign- or zero-extended: the manual does not say for b64
        ("s_mov_b32 s8, 0x00200000\ns_bfe_u32 s16, s9, s8", "s_bfe_u32 .*wider than the manual"),
    ],
)
def test_refused(body: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        execute(body)
