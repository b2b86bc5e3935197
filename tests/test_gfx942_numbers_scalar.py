# SPDX-License-Identifier: Apache-2.0
"""Scalar ALU, the rarer half: bit fields, counts, packs and the other saveexec forms. Rows as in test_gfx942_scalar.py."""

from __future__ import annotations

import pytest

from parity.gfx942 import Kernel, Unsupported
from tests.gfx942_state import UNTOUCHED, Before, execute, kernels, run

# instruction: rows
WAVES: dict[str, str] = {
    # -- fields: offset in bits [4:0] or [5:0] of the second source, width in [22:16]
    "s_bfe_i32 s16, s8, s9": """deadbeef 00080008 : ffffffbe scc=1; deadbeef 00070008 : 3e scc=1; deadbeef 0 : 0 scc=0;
        deadbeef 00010000 : ffffffff scc=1; deadbeee 00010000 : 0 scc=0;
        deadbeef 0004001c : fffffffd scc=1; deadbeef 00080028 : ffffffbe scc=1; 7fffffff 001f0001 : 3fffffff scc=1""",
    "s_bfe_u64 s[16:17], s[8:9], s10": """89abcdef 01234567 0010001c : 5678 0 scc=1; 89abcdef 01234567 0 : 0 0 scc=0;
        89abcdef 01234567 0028000c : 56789abc 34 scc=1;
        0 80000000 0001003f : 1 0 scc=1; 0 80000000 0001007f : 1 0 scc=1; 0 80000000 003f0000 : 0 0 scc=0""",
    "s_bfe_i64 s[16:17], s[8:9], s10": """89abcdef 01234567 00100010 : ffff89ab ffffffff scc=1; 89abcdef 01234567 000f0010 : 9ab 0 scc=1;
        0 80000000 0001003f : ffffffff ffffffff scc=1;
        89abcdef 81234567 00200020 : 81234567 ffffffff scc=1; 89abcdef 01234567 0 : 0 0 scc=0; 1 0 00030001 : 0 0 scc=0""",
    "s_bfm_b32 s16, s8, s9": "8 4 : ff0; 0 4 : 0; 1f 0 : 7fffffff; 1 1f : 80000000; 20 0 : 0; 28 24 : ff0; 1f 1 : fffffffe",
    "s_bfm_b64 s[16:17], s8, s9": """8 1c : f0000000 f; 3f 0 : ffffffff 7fffffff; 40 0 : 0 0; 1 3f : 0 80000000; 0 5 : 0 0;
        48 5c : f0000000 f""",
    "s_bitcmp0_b64 s[8:9], s10": "0 1 20 : scc=0; 0 1 60 : scc=0; ffffffff fffffffe 20 : scc=1; 1 0 0 : scc=0; 1 0 20 : scc=1",
    "s_bitcmp1_b64 s[8:9], s10": "0 1 20 : scc=1; 0 1 60 : scc=1; ffffffff fffffffe 20 : scc=0; 1 0 0 : scc=1; 0 80000000 3f : scc=1",
    "s_mov_b32 s16, s8\ns_bitset0_b32 s16, s9": "ffffffff 4 : ffffffef; ffffffff 3f : 7fffffff; 10 4 : 0; 0 4 : 0",
    "s_mov_b32 s16, s8\ns_bitset1_b32 s16, s9": "0 4 : 10; 12345678 3f : 92345678; 10 4 : 10",
    "s_mov_b64 s[16:17], s[8:9]\ns_bitset0_b64 s[16:17], s10": "ffffffff ffffffff 24 : ffffffff ffffffef; 3 3 40 : 2 3; 3 3 3f : 3 3",
    "s_mov_b64 s[16:17], s[8:9]\ns_bitset1_b64 s[16:17], s10": "0 0 24 : 0 10; 0 0 40 : 1 0; 5 6 3f : 5 80000006; 0 0 1f : 80000000 0",
    # -- counts and first bits; all ones is the answer of a search that finds nothing
    "s_bcnt0_i32_b32 s16, s8": "ffffffff : 0 scc=0; 0 : 20 scc=1; 12345678 : 13 scc=1; fffffffe : 1 scc=1",
    "s_bcnt1_i32_b32 s16, s8": "ffffffff : 20 scc=1; 0 : 0 scc=0; 12345678 : d scc=1; 80000000 : 1 scc=1",
    "s_bcnt0_i32_b64 s16, s[8:9]": "ffffffff ffffffff : 0 scc=0; 0 0 : 40 scc=1; ffffffff 0 : 20 scc=1; ffffffff 7fffffff : 1 scc=1",
    "s_bcnt1_i32_b64 s16, s[8:9]": "ffffffff ffffffff : 40 scc=1; 0 0 : 0 scc=0; 12345678 1 : e scc=1; 0 80000000 : 1 scc=1",
    "s_ff0_i32_b32 s16, s8": "ffffffff : ffffffff; 0 : 0; 0000ffff : 10; 7fffffff : 1f; 1 : 1",
    "s_ff0_i32_b64 s16, s[8:9]": "ffffffff ffffffff : ffffffff; ffffffff 0 : 20; 0 ffffffff : 0; ffffffff 7fffffff : 3f",
    "s_ff1_i32_b32 s16, s8": "0 : ffffffff; ffff0000 : 10; 80000000 : 1f; 3 : 0; c : 2",
    "s_ff1_i32_b64 s16, s[8:9]": "0 0 : ffffffff; 0 1 : 20; 0 80000000 : 3f; 8 1 : 3",
    "s_flbit_i32_b32 s16, s8": "0 : ffffffff; 0000cccc : 10; ffff3333 : 0; 7fffffff : 1; 1 : 1f; ffffffff : 0",
    "s_flbit_i32_b64 s16, s[8:9]": "0 0 : ffffffff; 1 0 : 3f; 0 1 : 1f; 0 80000000 : 0; cccc 0 : 30",
    "s_flbit_i32 s16, s8": """0 : ffffffff; 0000cccc : 10; ffff3333 : 10; 7fffffff : 1; 80000000 : 1; ffffffff : ffffffff; 1 : 1f;
        fffffffe : 1f""",
    "s_flbit_i32_i64 s16, s[8:9]": """0 0 : ffffffff; ffffffff ffffffff : ffffffff; 1 0 : 3f; 0 ffffffff : 20; 0 80000000 : 1;
        ffffffff 7fffffff : 1; fffffffe ffffffff : 3f""",
    "s_brev_b32 s16, s8": "1 : 80000000; 12345678 : 1e6a2c48; f0000000 : f",
    "s_brev_b64 s[16:17], s[8:9]": "1 0 : 0 80000000; 12345678 0 : 0 1e6a2c48; f0000000 1 : 80000000 f; 0 80000000 : 1 0",
    # -- arithmetic and packs
    "s_abs_i32 s16, s8": "ffffffff : 1 scc=1; 0 : 0 scc=0; 80000000 : 80000000 scc=1; 7fffffff : 7fffffff scc=1; 80000001 : 7fffffff scc=1",
    "s_absdiff_i32 s16, s8, s9": """2 5 : 3 scc=1; 5 2 : 3 scc=1; ffffffff 1 : 2 scc=1; 80000000 0 : 80000000 scc=1;
        80000000 1 : 7fffffff scc=1; 80000000 ffffffff : 7fffffff scc=1; 80000000 fffffffe : 7ffffffe scc=1; 7 7 : 0 scc=0""",
    "s_sext_i32_i8 s16, s8": "80 : ffffff80; ffffff7f : 7f; ff : ffffffff; 12345600 : 0",
    "s_sext_i32_i16 s16, s8": "8000 : ffff8000; ffff7fff : 7fff; ffff : ffffffff; 12340000 : 0",
    "s_pack_ll_b32_b16 s16, s8, s9": "12345678 9abcdef0 : def05678",
    "s_pack_lh_b32_b16 s16, s8, s9": "12345678 9abcdef0 : 9abc5678",
    "s_pack_hh_b32_b16 s16, s8, s9": "12345678 9abcdef0 : 9abc1234",
    # -- moves that SCC decides
    "s_mov_b32 s16, s9\ns_cmov_b32 s16, s8": "1 2 scc=1 : 1; 1 2 scc=0 : 2",
    "s_mov_b64 s[16:17], s[10:11]\ns_cmov_b64 s[16:17], s[8:9]": "1 2 3 4 scc=1 : 1 2; 1 2 3 4 scc=0 : 3 4",
    "s_mov_b32 s16, s8\ns_cmovk_i32 s16, 0x8000": "7 scc=1 : ffff8000; 7 scc=0 : 7",
    "s_mov_b32 s16, s8\ns_cmovk_i32 s16, 0x7fff": "7 scc=1 : 7fff; ffffffff scc=0 : ffffffff",
}
# EXEC before is ff00ff00000000cc, the source 0ff0000000000f0a; EXEC after
EXEC_BEFORE = 0xFF00FF00000000CC
SOURCE = [0x00000F0A, 0x0FF00000]
SAVEEXEC = {
    "orn2": 0x0FFF00FFFFFFFF3B,  # source | ~EXEC
    "nand": 0xF0FFFFFFFFFFFFF7,
    "nor": 0x000F00FFFFFFF031,
    "xnor": 0x0F0F00FFFFFFF039,
    "andn1": 0xF000FF00000000C4,  # ~source & EXEC
    "orn1": 0xFF0FFFFFFFFFF0FD,  # ~source | EXEC
}
MNEMONICS = {line.split()[0] for body in WAVES for line in body.split("\n")} | {
    f"s_{name}_saveexec_b64" for name in SAVEEXEC
}


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    names = {f"k{number}": body for number, body in enumerate(WAVES)}
    return {names[name]: kernel for name, kernel in kernels(names).items()}


def _cases(row: str) -> list[tuple[Before, list[int], int]]:
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


@pytest.mark.parametrize("name", list(SAVEEXEC))
def test_saveexec(name: str) -> None:
    after = execute(f"s_{name}_saveexec_b64 s[16:17], s[8:9]", Before(scalars=SOURCE, execute=EXEC_BEFORE))
    assert after.s[16] | after.s[17] << 32 == EXEC_BEFORE
    assert (hex(after.execute), after.scc) == (hex(SAVEEXEC[name]), 1)


@pytest.mark.parametrize(("name", "source", "execute_before"), [
    ("nand", 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF), ("nor", 0x0F, 0xFFFFFFFFFFFFFFF0), ("xnor", 0x0F, 0xFFFFFFFFFFFFFFF0),
    ("andn1", 0xFF, 0x3C), ("orn1", 0xFFFFFFFFFFFFFFFF, 0), ("orn2", 0, 0xFFFFFFFFFFFFFFFF),
])  # fmt: skip
def test_saveexec_that_leaves_no_lane_clears_scc(name: str, source: int, execute_before: int) -> None:
    before = Before(scalars=[source & 0xFFFFFFFF, source >> 32], execute=execute_before, scc=1)
    after = execute(f"s_{name}_saveexec_b64 s[16:17], s[8:9]\nv_mov_b32 v10, 1", before)
    assert (after.s[16] | after.s[17] << 32, after.execute, after.scc) == (execute_before, 0, 0)
    assert after.lanes(10) == [UNTOUCHED + 10] * 64


@pytest.mark.parametrize(("body", "message"), [
    ("s_mov_b32 s8, 0x00200000\ns_bfe_i32 s16, s9, s8", "s_bfe_i32 .*wider than the manual"),
    ("s_mov_b32 s8, 0x00400000\ns_bfe_u64 s[16:17], s[10:11], s8", "s_bfe_u64 .*wider than the manual"),
])  # fmt: skip
def test_refused(body: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        execute(body)
