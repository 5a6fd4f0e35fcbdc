"""What the machine code of 9.0 says of its loads, and kernels whose loads the assembler would put
behind waits for others, to fit more threads than half of an SM's."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from benchmarks.assembled_kernels import states
from proton.backends.nvidia import compiler
from proton.backends.nvidia.machine_code import GlobalLoads, loads_of
from proton.backends.nvidia.ptx import (
    with_loads_together,
    with_most_registers,
    with_stores_behind_loads,
)
from proton.backends.nvidia.target import GPUKernel
from proton.base.targets import GPUTarget
from proton.compiler import CompiledKernel
from tests.compile.ptx.emulation import Emulation
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)


@proton.jit
def chain(x_ptr, out_ptr, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    """Each address is what was loaded before."""
    at = tl.arange(0, BLOCK)
    for _ in tl.static_range(LENGTH):
        at = tl.load(x_ptr + at)
    tl.store(out_ptr + tl.arange(0, BLOCK), at)


@proton.jit
def sum_of_blocks(x_ptr, out_ptr, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for block in tl.static_range(LENGTH):
        total += tl.load(x_ptr + block * BLOCK + at)
    tl.store(out_ptr + at, total)


@proton.jit
def weighted_rows(x_ptr, w_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows by weights that threads exchange."""
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    w = tl.load(w_ptr + tl.program_id(0) * ROWS + row)
    w = tl.exp2(w - tl.max(w))
    x = tl.load(x_ptr + row[:, None] * COLUMNS + column[None, :])
    tl.store(out_ptr + column, tl.sum(x * w[:, None], 0) / tl.sum(w))


@proton.jit
def gated(x_ptr, w_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Values by weights that take many instructions, from 16 bits."""
    at = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)) * COLUMNS
    at = at[:, None] + tl.arange(0, COLUMNS)[None, :]
    w = tl.load(w_ptr + at).to(tl.float32)
    x = tl.load(x_ptr + at)
    w = 0.5 * w * (tl.erf(w * 0.7071) + 1.0)
    tl.store(out_ptr + at, w.to(tl.bfloat16) * x)


@proton.jit
def scaled_in_place(x_ptr, n, scale, BLOCK: tl.constexpr):
    """One access of each thread at a time: nothing to keep together."""
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(x_ptr + at, tl.load(x_ptr + at, at < n) * scale, at < n)


def found_loads(kernel: CompiledKernel) -> GlobalLoads:
    return loads_of(kernel.asm["cubin"], kernel.metadata["symbol"])


@pytest.mark.parametrize("length", [1, 3, 5])
def test_loads_that_wait_for_each_other_and_loads_that_do_not(length: int) -> None:
    of: dict[str, Any] = {"LENGTH": length, "target": HOPPER, "num_warps": 1}
    narrow = chain.warmup(tl.int32, tl.int32, BLOCK=32, **of)
    assert found_loads(narrow) == GlobalLoads(length, 4, 4 * length)
    wide = sum_of_blocks.warmup(tl.int32, tl.int32, BLOCK=128, **of)
    assert found_loads(wide) == GlobalLoads(1, 16 * length, 16 * length)


@pytest.mark.parametrize(
    ("kernel", "dtype", "rows", "columns", "warps", "most"),
    [
        (weighted_rows, tl.float32, 32, 256, 4, 64), (gated, tl.bfloat16, 1, 1024, 4, 64),
        (gated, tl.bfloat16, 4, 2048, 4, 128), (gated, tl.float32, 32, 256, 2, 255),
    ],
)  # fmt: skip
def test_loads_stay_together(
    kernel: Any,
    dtype: Any,
    rows: int,
    columns: int,
    warps: int,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the registers of a half, a quarter and an eighth of the threads that an SM takes."""
    of: dict[str, Any] = {"ROWS": rows, "COLUMNS": columns, "target": HOPPER, "num_warps": warps}
    monkeypatch.setattr(compiler, "with_loads_together", lambda ptx: ptx)
    with proton.knobs.scope(always_compile=True):
        found = kernel.warmup(*[dtype] * 3, **of)
        monkeypatch.setattr(compiler, "_more_loads", lambda fn, ptx, cubin, *_: (ptx, cubin))
        before = kernel.warmup(*[dtype] * 3, **of)
    assert 2 * found_loads(found).waits <= found_loads(before).waits
    assert found_loads(found).most_bytes > found_loads(before).most_bytes
    assert before.n_regs < found.n_regs <= most
    assert not found.n_spills


@proton.jit
def paged(x_ptr, size_ptr, out_ptr, BLOCK: tl.constexpr):
    """Each element by its page, of which 16 have one."""
    size = tl.load(size_ptr)
    for first in range(tl.cdiv(size, BLOCK)):
        at = first * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(x_ptr + at // 16)
        tl.store(out_ptr + at, x * 16 + at % 16, at < size)


@pytest.mark.parametrize(("block", "warps"), [(512, 1), (1024, 2), (2048, 4)])
def test_nothing_stands_between_loads(
    block: int, warps: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many threads on an SM a thread waits less often, and gives the same."""
    of: dict[str, Any] = {"BLOCK": block, "target": HOPPER, "num_warps": warps}
    monkeypatch.setattr(compiler, "_more_loads", lambda fn, ptx, cubin, *_: (ptx, cubin))
    with proton.knobs.scope(always_compile=True):
        found = paged.warmup(*[tl.int64] * 3, **of)
        monkeypatch.setattr(compiler, "with_loads_together", lambda ptx: ptx)
        before = paged.warmup(*[tl.int64] * 3, **of)
    assert "pmevent" in found.asm["ptx"]
    after, plain = found_loads(found), found_loads(before)
    assert after.waits < plain.waits
    assert after.all_bytes == plain.all_bytes
    rooms = [HOPPER.facts.programs_by_registers(k.n_regs, 32 * warps) for k in (found, before)]
    assert rooms[0] >= rooms[1]
    size = int(rng.integers(block, 2 * block))
    x, out = rng.integers(-99, 99, 2 * block // 16), np.zeros(2 * block, np.int64)
    numbers = [x, np.array([size]), out]
    run_on_arrays(found.asm["ptx"], (1, 1, 1), 32 * warps, found.shared, numbers, rng)
    at = np.arange(size)
    np.testing.assert_array_equal(out[:size], x[at // 16] * 16 + at % 16)
    assert not out[size:].any()


def test_where_loads_are_together() -> None:
    """Behind the last of several that nothing stands between but arithmetic."""
    load, event = "\t@%p1 ld.global.b32 %r1, [%rd1];", "\tpmevent 0;"
    for lines, places in (
        ([load, "\tadd.s32 %r2, %r1, 1;", load, "\tst.global.b32 [%rd2], %r1;"], [3]),
        ([load, "\tst.shared.b32 [%rd2], %r1;", load, "\tret;"], []),
        ([load, load, "$L__BB0_1:", load, load, load, "\t@%p1 bra \t$L__BB0_1;"], [2, 7]),
        ([load, load], []),
    ):
        found = with_loads_together("\n".join(lines)).split("\n")
        assert [n for n, line in enumerate(found) if line == event] == places
        assert [line for line in found if line != event] == lines


@pytest.mark.parametrize(("rows", "columns", "warps"), [(64, 128, 2), (128, 128, 4)])
def test_stores_in_place_stand_behind_loads(
    rows: int, columns: int, warps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait for loads brings more bytes, and next to nothing is spilled for that."""
    of: dict[str, Any] = {"M": rows, "N": columns, "target": HOPPER, "num_warps": warps}
    given = tl.float32, tl.float32, 17, 0.5
    with proton.knobs.scope(always_compile=True):
        found = states.warmup(*given, **of)
        monkeypatch.setattr(compiler, "with_stores_behind_loads", lambda ptx: ptx)
        before = states.warmup(*given, **of)
    assert "bar.warp.sync" in found.asm["ptx"]
    assert "bar.warp.sync" not in before.asm["ptx"]
    after, plain = found_loads(found), found_loads(before)
    assert 2 * after.waits <= plain.waits
    assert after.all_bytes == plain.all_bytes
    assert 8 * found.n_spills <= after.all_bytes


def test_stores_in_place_that_stay() -> None:
    """Where a thread loads a block in one access, and where more registers may be too many."""
    of: dict[str, Any] = {"target": HOPPER, "num_warps": 4}
    one = scaled_in_place.warmup(tl.float32, 4096, 0.5, BLOCK=512, **of)
    all_ = states.warmup(
        tl.float32, tl.float32, 17, 0.5, M=128, N=128, launch_cooperative_grid=True, **of
    )
    assert "bar.warp.sync" not in one.asm["ptx"] + all_.asm["ptx"]


def test_where_stores_in_place_stand() -> None:
    """Behind several loads from one register in a block of instructions."""
    loads = [f"\tld.global.v4.b32 {{%r{n}, %r1, %r2, %r3}}, [%rd1+{16 * n}];" for n in range(2)]
    store, other = "\tst.global.b32 [%rd1], %r1;", "\tst.global.b32 [%rd2], %r1;"
    for lines, places in (
        ([*loads, store, store], [2]), ([loads[0], store], []), ([*loads, other, store], [3]),
        ([*loads, "$L__BB0_1:", store], []), ([*loads, "\t@%p1 bra \t$L__BB0_1;", store], []),
        ([*loads, store, *loads, store], [2, 5]), ([*loads, "\tbar.sync \t0;", store], []),
    ):  # fmt: skip
        found = with_stores_behind_loads("\n".join(lines)).split("\n")
        assert [line for line in found if "bar.warp" not in line] == lines
        fences = [number for number, line in enumerate(found) if "bar.warp" in line]
        assert [number - more for more, number in enumerate(fences)] == places


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_states(steps: int, rng: np.random.Generator) -> None:
    """With the barriers of warps among stores in place, by lanes in any order."""
    x = rng.integers(-8, 8, (2, steps, 64, 128)).astype(np.float32)
    first = rng.integers(-8, 8, (2, 64, 128)).astype(np.float32)
    found, last = x.copy(), first.copy()
    with Emulation(2, rng).installed():
        states[(2,)](found, last, steps, 0.5, M=64, N=128)
    ahead = first
    for step in range(steps):
        np.testing.assert_array_equal(found[:, step], ahead)
        ahead = ahead * np.float32(0.5) + x[:, step]
    np.testing.assert_array_equal(last, ahead)


@proton.jit
def gated_in_scopes(x_ptr, w_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("load"):
        w = tl.load(w_ptr + at).to(tl.float32)
        x = tl.load(x_ptr + at)
    with proton.scope("gate"):
        w = 0.5 * w * (tl.erf(w * 0.7071) + 1.0)
        tl.store(out_ptr + at, w.to(tl.bfloat16) * x)


@pytest.mark.parametrize(("block", "warps"), [(1024, 4), (2048, 8)])
def test_a_kernel_with_records_has_no_more_programs(
    block: int, warps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would: its loads need fewer registers."""
    of: dict[str, Any] = {"BLOCK": block, "target": HOPPER, "num_warps": warps}

    def programs(**more: Any) -> int:
        found = gated_in_scopes.warmup(*[tl.bfloat16] * 3, **of, **more)
        return HOPPER.facts.programs_by_registers(found.n_regs, 32 * warps)

    plain = programs()
    assert programs(profile={}) == plain
    monkeypatch.setattr(GPUKernel, "has_most_registers", False)
    assert programs(profile={}) > plain


@pytest.mark.parametrize(
    ("options", "limit"), [({}, 48), ({"maxnreg": 48}, 0), ({"launch_cooperative_grid": True}, 0)]
)
def test_programs_that_have_to_fit_stay(
    options: dict[str, Any], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that a limit makes room for, the author's or the compiler's own, and all of a
    cooperative grid. Nothing is assembled again for more loads."""
    if limit:
        of_limit = lambda fn, ptx, cubin, *_: (with_most_registers(ptx, limit), cubin)  # noqa: E731
        monkeypatch.setattr(compiler, "_one_more", of_limit)
    monkeypatch.setattr(compiler, "with_loads_together", lambda ptx: ptx)
    monkeypatch.setattr(compiler, "_assembled", lambda *_: pytest.fail("was assembled again"))
    of: dict[str, Any] = {"ROWS": 1, "COLUMNS": 1024, "target": HOPPER, "num_warps": 4}
    with proton.knobs.scope(always_compile=True):
        found = gated.warmup(*[tl.bfloat16] * 3, **of, **options)
    assert found.asm["ptx"].count(".maxnreg") == bool(limit or "maxnreg" in options)


@proton.jit
def chosen_rows(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Rows that an index names, if it does."""
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for number in range(n):
        row = tl.load(index_ptr + number)
        if row >= 0:
            total += tl.load(x_ptr + row * BLOCK + at)
    tl.store(out_ptr + at, total)


def test_loads_behind_a_branch_of_a_loop_are_under_way_for_four_iterations(
    rng: np.random.Generator,
) -> None:
    kernel = chosen_rows.warmup(*[tl.float32, tl.int32, tl.float32], 9, BLOCK=64, target=HOPPER)
    assert str(kernel.asm["sass"]).count("LDG.E ") >= 2 * 4
    x, out = rng.standard_normal((8, 64), np.float32), np.zeros(64, np.float32)
    index = np.array([3, -1, 7, 7, 0, -1, -1, 2, 5], np.int32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 128, kernel.shared, [x, index, out, 9], rng)
    np.testing.assert_allclose(out, x[index[index >= 0]].sum(0), rtol=1e-5)


@proton.jit
def spread(x_ptr, w_ptr, grad_ptr, out_ptr, rows, n, BLOCK: tl.constexpr):
    """Weighted sums of four neighbours, and the gradients of these, each behind a fence."""
    at = tl.arange(0, BLOCK)
    here, total = tl.load(x_ptr + at), tl.zeros((BLOCK,), tl.float32)
    for row in range(n):
        w, first = tl.load(w_ptr + row), row * BLOCK + at
        for side in tl.static_range(4):
            there = (at < BLOCK) & (row + side < rows)
            total += w * tl.load(x_ptr + first + side * BLOCK, mask=there, other=0.0)
        for side in tl.static_range(4):
            there = (at < BLOCK) & (row + side < rows)
            tl.atomic_add(grad_ptr + first + side * BLOCK, w * here, mask=there)
    tl.store(out_ptr + at, total)


def test_threads_that_wait_for_fences_are_not_fewer(rng: np.random.Generator) -> None:
    """With half of the threads each would wait for loads half as often, and as often at fences."""
    kernel = spread.warmup(*[tl.float32] * 4, 6, 5, BLOCK=512, target=HOPPER)
    assert found_loads(kernel).waits > 4
    assert ".maxnreg" not in kernel.asm["ptx"]
    x, w = rng.standard_normal((6, 512), np.float32), rng.standard_normal(5, np.float32)
    out, grads = np.zeros(512, np.float32), np.zeros((6, 512), np.float32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 128, kernel.shared, [x, w, grads, out, 6, 5], rng)
    near = [(n, row) for n in range(5) for row in range(n, min(n + 4, 6))]
    np.testing.assert_allclose(out, sum(w[n] * x[row] for n, row in near), rtol=1e-3, atol=1e-4)
    sums = [sum(w[n] for n, other in near if other == row) for row in range(6)]
    np.testing.assert_allclose(grads, np.outer(sums, x[0]), rtol=1e-3, atol=1e-4)
