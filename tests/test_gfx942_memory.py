# SPDX-License-Identifier: Apache-2.0
"""Global memory: every width, offsets, buffers with their bounds, scalar loads, faults with their place, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from gfx942_assembly import Source, allocations, pointer, text_of
from gfx942_state import UNTOUCHED, Before, execute, halves, kernels, run

from parity.gfx942 import Allocation, ExecutionFault, Memory, Unsupported, launch, load
from parity.gfx942.code_object import assemble

WORD3 = 0x00027000  # of a raw buffer descriptor
# kind: (bytes read, signed, registers)
LOADS = {"ubyte": (1, False, 1), "sbyte": (1, True, 1), "ushort": (2, False, 1), "sshort": (2, True, 1), "dword": (4, False, 1),
         "dwordx2": (8, False, 2), "dwordx3": (12, False, 3), "dwordx4": (16, False, 4)}  # fmt: skip
STORES = {"byte": (1, 1), "short": (2, 1), "dword": (4, 1), "dwordx2": (8, 2), "dwordx3": (12, 3), "dwordx4": (16, 4)}


def pattern(size: int) -> np.ndarray:
    """Bytes that tell their position and have both signs."""
    return ((np.arange(size) * 37 + 0x81) & 0xFF).astype(np.uint8)


def vector(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def expected_registers(data: np.ndarray, offset: int, size: int, signed: bool) -> list[int]:
    raw = data[offset : offset + size].tobytes()
    if size < 4:
        return [int.from_bytes(raw, "little", signed=signed) & 0xFFFFFFFF]
    return [int.from_bytes(raw[n : n + 4], "little") for n in range(0, size, 4)]


# -- loads and stores ----------------------------------------------------------------------------------------------------
ADDRESSINGS = {
    "scalar base": ("v2, s[8:9]", "v2, {}, s[8:9]"),
    "address pair": ("v[4:5], off", "v[4:5], {}, off"),
    "buffer": ("v2, s[12:15], 0 offen", "{}, v2, s[12:15], 0 offen"),
}
OFFSETS = {"": 0, " offset:-40": -40, " offset:300": 300}


def registers(data: np.ndarray, offsets: list[int]) -> Before:
    """v2: offsets, v[4:5]: addresses; s[8:9]: base; s[12:15]: buffer descriptor."""
    pairs = [halves(data, offset) for offset in offsets]
    vectors = {2: offsets, 4: [low for low, _ in pairs], 5: [high for _, high in pairs]}
    return Before(vectors=vectors, scalars=[*halves(data), 0, 0, *halves(data), data.nbytes, WORD3], execute=(1 << len(offsets)) - 1)


@pytest.fixture(scope="module")
def access_kernels() -> dict[str, object]:
    bodies = {}
    for way, (load_text, store_text) in ADDRESSINGS.items():
        stem = "buffer" if way == "buffer" else "global"
        for number, modifier in enumerate(OFFSETS):
            if way == "buffer" and OFFSETS[modifier] < 0:
                continue
            for kind, (_, _, count) in LOADS.items():
                bodies[f"{way} load {kind} {number}"] = f"{stem}_load_{kind} {vector(10, count)}, {load_text}{modifier}"
            for kind, (_, count) in STORES.items():
                bodies[f"{way} store {kind} {number}"] = f"{stem}_store_{kind} {store_text.format(vector(6, count))}{modifier}"
    names = {f"k{number}": name for number, name in enumerate(bodies)}
    return {names[key]: kernel for key, kernel in kernels({key: bodies[name] for key, name in names.items()}).items()}


@pytest.mark.parametrize("way", list(ADDRESSINGS))
def test_loads_of_every_width(way: str, access_kernels: dict[str, object]) -> None:
    data, offsets = pattern(512), [40, 44, 61, 90, 43, 120, 48, 52]  # some unaligned
    for number, extra in enumerate(OFFSETS.values()):
        for kind, (size, signed, count) in LOADS.items():
            if way == "buffer" and extra < 0:
                continue
            after = run(access_kernels[f"{way} load {kind} {number}"], [registers(data, offsets)], data=data)[0]  # type: ignore[arg-type]
            for lane, offset in enumerate(offsets):
                actual = [int(after.v[10 + n][lane]) for n in range(count)]
                assert actual == expected_registers(data, offset + extra, size, signed), f"{kind} offset {offset}{extra:+}"
            assert after.lanes(10 + count)[: len(offsets)] == [UNTOUCHED + 10 + count] * len(offsets)
            assert after.v[10][len(offsets)] == UNTOUCHED + 10, "an inactive lane was written"


@pytest.mark.parametrize("way", list(ADDRESSINGS))
def test_stores_of_every_width(way: str, access_kernels: dict[str, object]) -> None:
    offsets = [48, 80, 113, 150]
    for number, extra in enumerate(OFFSETS.values()):
        for kind, (size, count) in STORES.items():
            if way == "buffer" and extra < 0:
                continue
            data, expected = pattern(512), pattern(512)
            before = registers(data, offsets)
            vectors = {6 + n: [0xA0B0C000 + 256 * n + lane for lane in range(64)] for n in range(min(count, 4))}
            run(access_kernels[f"{way} store {kind} {number}"], [Before(before.vectors | vectors, before.scalars, execute=before.execute)], data=data)  # type: ignore[arg-type]
            for lane, offset in enumerate(offsets):
                raw = b"".join((0xA0B0C000 + 256 * n + lane).to_bytes(4, "little") for n in range(count))[:size]
                expected[offset + extra : offset + extra + size] = np.frombuffer(raw, np.uint8)
            assert data.tobytes() == expected.tobytes(), f"{way} {kind} offset {extra}"


def test_global_offset_range() -> None:
    data = pattern(16384)
    body = "global_load_dword v10, v2, s[8:9] offset:4095\nglobal_load_dword v11, v2, s[8:9] offset:-4096"
    after = execute(body, registers(data, [4096, 8192]), data=data)
    assert after.lanes(10, 2) == [expected_registers(data, at + 4095, 4, False)[0] for at in (4096, 8192)]
    assert after.lanes(11, 2) == [expected_registers(data, at - 4096, 4, False)[0] for at in (4096, 8192)]


def test_vector_offset_is_unsigned_and_added_in_64_bits() -> None:
    """v2 = 0xfffffff0 with a base 4 GiB lower reaches data[-16 + 32]; as a signed offset it would not."""
    data = pattern(64)
    low, high = halves(data, 16)
    after = execute("global_load_dword v10, v2, s[8:9]", Before(vectors={2: [0xFFFFFFF0]}, scalars=[(low + 16) & 0xFFFFFFFF, high - 1], execute=1), data=data)
    assert after.lanes(10, 1) == expected_registers(data, 16, 4, False)


def test_loads_may_overwrite_their_own_address() -> None:
    data = pattern(64)
    body = "v_mov_b32 v10, v4\nv_mov_b32 v11, v5\nglobal_load_dwordx4 v[10:13], v[10:11], off"
    after = execute(body, registers(data, [0, 16]), data=data)
    assert [after.lanes(10 + n, 2) for n in range(4)] == [[expected_registers(data, at, 16, False)[n] for at in (0, 16)] for n in range(4)]


def test_no_active_lane_no_access() -> None:
    after = execute("global_load_dword v10, v[4:5], off\nglobal_store_dword v[4:5], v2, off", Before(execute=0))
    assert after.lanes(10) == [UNTOUCHED + 10] * 64


def test_cache_bits_change_nothing() -> None:
    data = pattern(64)
    after = execute("global_load_dword v10, v[4:5], off sc0 sc1 nt\nbuffer_load_dword v11, v2, s[12:15], 0 offen sc0 sc1 nt", registers(data, [8]), data=data)
    assert after.lanes(10, 1) == after.lanes(11, 1) == expected_registers(data, 8, 4, False)


# -- buffers -----------------------------------------------------------------------------------------------------------
def buffer(data: np.ndarray, records: int, *, soffset: int = 0, offsets: list[int]) -> Before:
    return Before(vectors={2: offsets}, scalars=[soffset, 0, 0, 0, *halves(data), records, WORD3], execute=(1 << len(offsets)) - 1)


def test_buffer_address_is_base_plus_soffset_plus_voffset_plus_offset() -> None:
    data = pattern(512)
    body = "buffer_load_dword v10, v2, s[12:15], s8 offen offset:12\nbuffer_load_dword v11, off, s[12:15], s8 offset:12\nbuffer_load_dword v12, off, s[12:15], 4"
    after = execute(body, buffer(data, 512, soffset=64, offsets=[0, 100]), data=data)
    assert after.lanes(10, 2) == [expected_registers(data, 64 + 12 + at, 4, False)[0] for at in (0, 100)]
    assert after.lanes(11, 2) == expected_registers(data, 64 + 12, 4, False) * 2
    assert after.lanes(12, 2) == expected_registers(data, 4, 4, False) * 2


def test_lanes_beyond_num_records_read_zero_and_write_nothing() -> None:
    data = pattern(64)
    outside = [32, 36, 0x80000000, 0xFFFFFFFC]
    body = "buffer_load_dwordx2 v[10:11], v2, s[12:15], 0 offen\nbuffer_store_dword v2, v2, s[12:15], 0 offen"
    after = execute(body, buffer(data, 32, offsets=[0, 24, *outside]), data=data)
    assert after.lanes(10, 6) == [*(expected_registers(pattern(64), at, 4, False)[0] for at in (0, 24)), 0, 0, 0, 0]
    assert after.lanes(11, 6) == [*(expected_registers(pattern(64), at, 4, False)[0] for at in (4, 28)), 0, 0, 0, 0]
    expected = pattern(64)
    expected[0:4] = 0
    expected[24:28] = [24, 0, 0, 0]
    assert data.tobytes() == expected.tobytes()


def test_num_records_does_not_replace_the_allocation() -> None:
    """The usual descriptor has 2^32 - 1 records: it stops nothing, the allocation does."""
    data = pattern(64)
    with pytest.raises(ExecutionFault, match="read of 4 bytes at offset 64 of data"):
        execute("buffer_load_dword v10, v2, s[12:15], 0 offen", buffer(data, 0xFFFFFFFF, offsets=[0, 64]), data=data)


@pytest.mark.parametrize(
    ("body", "records", "soffset", "offsets"),
    [
        ("buffer_load_dwordx4 v[10:13], v2, s[12:15], 0 offen", 24, 0, [16]),  # its first dwords are inside
        ("buffer_load_dword v10, v2, s[12:15], 0 offen", 30, 0, [28]),  # its first bytes are inside
        ("buffer_store_dwordx2 v[2:3], v2, s[12:15], 0 offen", 28, 0, [24]),
        ("buffer_load_dword v10, v2, s[12:15], s8 offen", 32, 16, [20]),  # inside without soffset, outside with it
        ("buffer_load_dword v10, v2, s[12:15], 0 offen offset:16", 32, 0, [0xFFFFFFF4]),  # 4 if the sum wraps at 2^32
    ],
)
def test_lanes_across_the_end_of_a_buffer_are_refused(body: str, records: int, soffset: int, offsets: list[int]) -> None:
    data = pattern(64)
    with pytest.raises(Unsupported, match="across the end of its buffer"):
        execute(body, buffer(data, records, soffset=soffset, offsets=offsets), data=data)
    inactive = buffer(data, records, soffset=soffset, offsets=offsets)
    execute(body, Before(inactive.vectors, inactive.scalars, execute=0), data=data)


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [(1, 0x00100000, "stride or swizzle"), (1, 0x80000000, "stride or swizzle"), (3, 0x00027000 | 1 << 23, "word 3 0x827000"),
     (3, 0, "word 3 0x0"), (3, 0xC0027000, "word 3 0xc0027000")],
)  # fmt: skip
def test_unusual_buffer_descriptors_are_refused(word: int, value: int, message: str) -> None:
    data = pattern(64)
    before = buffer(data, 64, offsets=[0])
    scalars = list(before.scalars)
    scalars[4 + word] |= value
    scalars[4 + word] = value if word == 3 else scalars[4 + word]
    with pytest.raises(Unsupported, match=message):
        execute("buffer_load_dword v10, v2, s[12:15], 0 offen", Before(before.vectors, scalars, execute=1), data=data)


# -- scalar loads ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_scalar_loads_of_every_width(count: int) -> None:
    data = pattern(256)
    kind = {1: "dword", 2: "dwordx2", 4: "dwordx4", 8: "dwordx8"}[count]
    target = "s16" if count == 1 else f"s[16:{15 + count}]"
    after = execute(f"s_load_{kind} {target}, s[8:9], 0x14", Before(scalars=halves(data, 8), execute=0), data=data)
    assert [after.s[16 + n] for n in range(count)] == expected_registers(data, 28, 4 * count, False)
    assert count == 8 or after.s[16 + count] == UNTOUCHED + 16 + count


def test_scalar_load_of_16_dwords() -> None:
    data = pattern(256)
    body = "s_load_dwordx16 s[32:47], s[8:9], 0x8\n" + "\n".join(f"s_mov_b32 s{16 + n}, s{32 + 2 * n}" for n in range(8))
    after = execute(body, Before(scalars=halves(data)), data=data)
    assert [after.s[16 + n] for n in range(8)] == expected_registers(data, 8, 64, False)[::2]


def test_scalar_load_offsets() -> None:
    data = pattern(256)
    body = """s_load_dword s16, s[8:9], -16
    s_load_dword s17, s[8:9], s10
    s_load_dword s18, s[8:9], s10 offset:0x8
    s_load_dword s19, s[8:9], s10 offset:-8
    s_load_dword s20, s[8:9], 0x3
    s_mov_b32 m0, 12
    s_load_dword s21, s[8:9], m0"""
    after = execute(body, Before(scalars=[*halves(data, 64), 32]), data=data)
    offsets = [48, 96, 104, 88, 64, 76]  # the two low bits of the address are ignored
    assert [after.s[16 + n] for n in range(6)] == [expected_registers(data, at, 4, False)[0] for at in offsets]


def test_scalar_load_of_each_wave_its_own() -> None:
    data = pattern(256)
    results = run(kernels({"k": "s_load_dword s16, s[8:9], 0x0"})["k"], [Before(scalars=halves(data, at)) for at in (0, 100, 4)], data=data)
    assert [after.s[16] for after in results] == [expected_registers(data, at, 4, False)[0] for at in (0, 100, 4)]


# -- faults ------------------------------------------------------------------------------------------------------------
def fault_of(body: str, *, grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (64, 1, 1), **memory: np.ndarray) -> ExecutionFault:
    """Run a kernel whose s[4:5] is the first array, v1 the flat work-item times 4; return its fault."""
    prologue = "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32_e32 v1, 2, v0\n"
    kernel = load(assemble(text_of(Source("faulty", prologue + body, ((8, "global_buffer"),), workgroup_ids="xyz"))))
    first = next(iter(memory.values()))
    with pytest.raises(ExecutionFault) as caught:
        launch(kernel, [pointer(first)], grid, block, allocations(**memory))
    return caught.value


def test_fault_names_its_place() -> None:
    """Only workgroup (2, 1, 0), wave 1, lane 5 reaches beyond the 256 bytes."""
    body = """s_cmp_lg_u32 s2, 2
    s_cbranch_scc1 end
    s_cmp_lg_u32 s3, 1
    s_cbranch_scc1 end
    v_cmp_eq_u32 vcc, 69, v0
    v_cndmask_b32 v1, 0, v1, vcc
    global_load_dword v2, v1, s[4:5]
    end: s_nop 0"""
    q = np.zeros(64, np.uint32)
    fault = fault_of(body, grid=(3, 2, 1), block=(128, 1, 1), q=q)
    assert (fault.kind, fault.kernel, fault.workgroup, fault.wave, fault.lane) == ("out-of-bounds", "faulty", (2, 1, 0), 1, 5)
    assert fault.address == q.ctypes.data + 69 * 4
    assert fault.pc == 8 + 4 + 4 + 4 * 4 + 8 + 4  # the comparison has a literal
    assert fault.instruction.startswith("global_load_dword [GLOBAL dc508000 ")
    assert str(fault) == (
        f"out-of-bounds: read of 4 bytes at offset 276 of q (256 bytes) (faulty+0x2c {fault.instruction}, workgroup (2, 1, 0), "
        f"wave 1, lane 5, address {fault.address:#x})"
    )


def test_fault_in_a_later_batch_of_workgroups_names_its_workgroup() -> None:
    """More workgroups than run together; the one at (2, 3, 4) of a 5 x 6 x 20 grid stores outside."""
    body = """v_lshlrev_b32 v1, 2, v0
    s_load_dwordx2 s[6:7], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    s_cmp_lg_u32 s2, 2
    s_cbranch_scc1 end
    s_cmp_lg_u32 s3, 3
    s_cbranch_scc1 end
    s_cmp_lg_u32 s4, 4
    s_cbranch_scc1 end
    global_store_dword v1, v0, s[6:7] offset:-4
    end: s_nop 0"""
    source = Source("late", body, ((8, "global_buffer"),), workgroup_ids="xyz")
    out = np.zeros(64, np.uint32)
    with pytest.raises(ExecutionFault, match="write of 4 bytes at offset -4 of out") as caught:
        launch(load(assemble(text_of(source))), [pointer(out)], (5, 6, 20), (64, 1, 1), allocations(out=out))
    assert (caught.value.workgroup, caught.value.wave, caught.value.lane) == ((2, 3, 4), 0, 0)


@pytest.mark.parametrize(
    ("body", "message", "lane"),
    [
        ("global_load_dword v2, v1, s[4:5] offset:1", "read of 4 bytes at offset 253 of data", 63),
        ("global_load_dwordx4 v[2:5], v1, s[4:5]", "read of 16 bytes at offset 244 of data", 61),
        ("global_load_ubyte v2, v1, s[4:5] offset:-1", "read of 1 bytes at offset -1 of data", 0),
        ("global_store_short v1, v0, s[4:5] offset:3", "write of 2 bytes at offset 255 of data", 63),
        ("global_store_byte v1, v0, s[4:5] offset:4", "write of 1 bytes at offset 256 of data", 63),
        ("v_mov_b32 v2, 0\nv_mov_b32 v3, 0\nglobal_load_dword v2, v[2:3], off", "read of 4 bytes at offset -", 0),
        ("v_mov_b32 v2, -1\nv_mov_b32 v3, -1\nglobal_load_dword v2, v[2:3], off", "read of 4 bytes at offset", 0),
        ("s_load_dword s6, s[4:5], 0x100", "read of 4 bytes at offset 256 of data", -1),
        ("s_load_dwordx8 s[8:15], s[4:5], 0xe4", "read of 32 bytes at offset 228 of data", -1),
    ],
)
def test_out_of_bounds(body: str, message: str, lane: int) -> None:
    fault = fault_of(body, data=np.zeros(64, np.uint32))
    assert fault.kind == "out-of-bounds"
    assert message in str(fault)
    assert (fault.wave, fault.lane, fault.workgroup) == (0, lane, (0, 0, 0))


def test_a_kernel_may_not_read_between_allocations() -> None:
    whole = np.zeros(96, np.uint32)
    low, high = whole[:32], whole[64:]
    fault = fault_of("global_load_dword v2, v1, s[4:5] offset:64", low=low, high=high)
    assert "read of 4 bytes at offset 128 of low (128 bytes)" in str(fault)
    assert fault.lane == 16


def test_an_access_may_not_span_two_adjoining_allocations() -> None:
    whole = np.zeros(64, np.uint32)
    body = "v_and_b32 v1, 0x7f, v1\nglobal_load_dwordx2 v[2:3], v1, s[4:5]"
    assert "read of 8 bytes at offset 124 of low" in str(fault_of(body, low=whole[:32], high=whole[32:]))


def test_lanes_may_read_different_allocations() -> None:
    low, high = pattern(64), pattern(64)[::-1].copy()
    pairs = [halves(low, 4), halves(high, 8), halves(low, 20)]
    after = execute("global_load_dword v10, v[2:3], off", Before(vectors={2: [p[0] for p in pairs], 3: [p[1] for p in pairs]}, execute=7), low=low, high=high)
    assert after.lanes(10, 3) == [expected_registers(a, at, 4, False)[0] for a, at in ((low, 4), (high, 8), (low, 20))]


def test_the_highest_lane_wins_a_common_address() -> None:
    data = np.zeros(4, np.uint32)
    execute("v_mov_b32 v3, 0\nglobal_store_dword v3, v2, s[8:9]", Before(vectors={2: range(64)}, scalars=halves(data)), data=data)
    assert data.tolist() == [63, 0, 0, 0]


# -- allocations -------------------------------------------------------------------------------------------------------
def test_allocations_are_checked() -> None:
    array = np.zeros(16, np.uint32)
    with pytest.raises(ValueError, match="first and second overlap"):
        Memory(allocations(first=array[:8], second=array[7:]))
    with pytest.raises(ValueError, match="not C-contiguous"):
        Allocation.of_array("strided", array[::2])
    assert len(Memory(allocations(same=array, again=array, empty=array[:0])).allocations) == 1


def test_allocation_at_an_odd_address() -> None:
    raw = pattern(65)
    data = raw[1:65]
    after = execute("global_load_dwordx2 v[10:11], v2, s[8:9]", registers(data, [0, 5, 8]), data=data)
    assert after.lanes(11, 3) == [expected_registers(data, at + 4, 4, False)[0] for at in (0, 5, 8)]


# -- refused -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("flat_load_dword v10, v[4:5]", "flat_load_dword .*no semantics"),
        ("flat_store_dword v[4:5], v2", "flat_store_dword .*no semantics"),
        ("scratch_load_dword v10, v2, off", "scratch_load_dword .*no semantics"),
        ("scratch_store_dword off, v2, s8", "scratch_store_dword .*no semantics"),
        ("global_atomic_add v[4:5], v2, off", "global_atomic_add .*no semantics"),
        ("global_atomic_add_f32 v[4:5], v2, off", "no semantics"),
        ("buffer_atomic_add v2, off, s[12:15], 0", "no semantics"),
        ("global_load_short_d16 v10, v[4:5], off", "no semantics"),
        ("global_load_ubyte_d16_hi v10, v[4:5], off", "no semantics"),
        ("global_store_short_d16_hi v[4:5], v2, off", "no semantics"),
        ("global_load_dword a10, v[4:5], off", "modifier acc=1"),
        ("global_load_lds_dword v[4:5], off", "GLOBAL opcode 42"),
        ("buffer_load_dword v10, v2, s[12:15], 0 idxen", "modifier idxen=1"),
        ("buffer_load_dword off, s[12:15], 0 lds", "modifier lds=1"),
        ("buffer_load_dword a10, off, s[12:15], 0", "modifier acc=1"),
        ("s_buffer_load_dword s16, s[12:15], 0x0", "no semantics"),
        ("s_dcache_inv", "no semantics"),
        (".long 0xc00a1904, 0", "scalar operand 103"),  # s_load_dwordx4 s[100:103], s[8:9], 0x0
    ],
)
def test_refused(body: str, message: str) -> None:
    data = pattern(64)
    with pytest.raises(Unsupported, match=message):
        execute(body, registers(data, [0]), data=data)
