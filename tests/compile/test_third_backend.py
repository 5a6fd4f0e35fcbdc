"""A back end from outside: kernels are compiled, cached and launched there, and nowhere else."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import LaunchError, ProtonError
from proton.runtime.backend import register, unregister
from tests.compile.toy_backend import TOY, ToyArray, ToyTarget


@pytest.fixture(autouse=True)
def toy(cache_dir: Path) -> Iterator[None]:
    register(TOY)
    yield
    unregister("toy")


def on_toy(x: np.ndarray, y: np.ndarray, room: int = 0) -> tuple[ToyArray, ...]:
    """The inputs, and an output of zeros with some room behind it."""
    out = np.zeros(x.size + room, np.float32)
    return ToyArray(0, x), ToyArray(x.nbytes, y), ToyArray(2 * x.nbytes, out)


def add() -> proton.JITFunction:
    """The kernel, defined anew: so it knows no launcher yet, and the back end's options."""

    @proton.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)

    return add


PAIR_BLOCK = tl.constexpr(64)


def add_pair() -> proton.JITFunction:
    @proton.jit
    def add_pair(pair, out_ptr, n):
        offsets = tl.arange(0, PAIR_BLOCK)
        mask = offsets < n
        x = tl.load(pair[0] + offsets, mask=mask)
        y = tl.load(pair[1] + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)

    return add_pair


@pytest.mark.parametrize("size", [1, 1000, 1024, 2049])
def test_vector_add_runs_where_its_arrays_are(rng: np.random.Generator, size: int) -> None:
    x, y = rng.standard_normal((2, size)).astype(np.float32)
    toys = on_toy(x, y, room=7)
    grid, kernel = (proton.cdiv(size, 256),), add()
    compiled = kernel[grid](*toys, size, BLOCK=256)
    np.testing.assert_array_equal(toys[2].numbers, np.append(x + y, np.zeros(7, np.float32)))
    assert compiled.metadata["target"] == "toy"

    out = np.zeros(size, np.float32)  # the same kernel, on the CPU
    assert kernel[grid](x, y, out, size, BLOCK=256).metadata["target"] == "cpu"
    np.testing.assert_array_equal(out, x + y)


def test_its_launches_are_part_of_a_run(rng: np.random.Generator) -> None:
    """Beside those of the CPU, in their order, with the facts of both."""
    x, y = rng.standard_normal((2, 64)).astype(np.float32)
    toys, kernel = on_toy(x, y), add()
    with proton.profile("two") as run, proton.scope("pass"):
        kernel[(1,)](*toys, 64, BLOCK=64)
        kernel[(1,)](x, y, np.zeros_like(x), 64, BLOCK=64)
        kernel[(1,)](*toys, 64, BLOCK=64)
    kernel[(1,)](*toys, 64, BLOCK=64)
    launches = run.raw.launches
    assert [run.kernels[launch.kernel].target for launch in launches] == ["toy", "cpu", "toy"]
    assert [launch.path for launch in launches] == ["pass"] * 3
    assert run.raw.machine["beads"] == 100
    assert "cpu" in run.raw.machine
    assert (run.totals.launches, run.totals.dropped_launches) == (3, 0)


def test_a_launch_option_of_the_back_end(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((2, 64)).astype(np.float32)
    toys = on_toy(x, y)
    add()[(1,)](*toys, 64, BLOCK=64, decimals=1)
    np.testing.assert_array_equal(toys[2].numbers, np.round(x + y, 1))
    with pytest.raises(LaunchError, match="'decimal'; did you mean decimals"):
        add()[(1,)](*toys, 64, BLOCK=64, decimal=1)


def test_its_kernels_are_cached_beside_those_of_others() -> None:
    stand_ins = (tl.float32,) * 3
    for target, levels in (
        (ToyTarget(), ["source", "ttir"]),
        (
            proton.GPUTarget("cuda", 90),
            ["source", "ttir", "ttgir", "llir", "ptx", "cubin", "schedule", "sass"],
        ),
    ):
        for from_cache in (False, True):
            kernel = add().warmup(*stand_ins, 100, BLOCK=64, target=target)
            assert kernel.from_cache == from_cache
            assert list(kernel.asm) == levels
            assert kernel.metadata["target"].startswith(target.backend)
    text = add().warmup(*stand_ins, 100, BLOCK=64, target=ToyTarget()).asm["ttir"]
    assert re.search(r'^ +.* = "tt.load"', text, re.MULTILINE)


def test_a_plain_launcher_looks_at_tuples_and_at_what_code_holds() -> None:
    """What is no tensor stays out of the arguments; a constant that changed is an error."""
    x = np.arange(64, dtype=np.float32)
    toys, kernel = on_toy(x, x), add_pair()
    kernel[(1,)]((toys[0], toys[1]), toys[2], 64)
    np.testing.assert_array_equal(toys[2].numbers, 2 * x)
    kernel.fn.__globals__["PAIR_BLOCK"] = tl.constexpr(32)
    try:
        with pytest.raises(LaunchError, match=r"PAIR_BLOCK has changed .*64.* to .*32"):
            kernel[(1,)]((toys[0], toys[1]), toys[2], 64)
    finally:
        kernel.fn.__globals__["PAIR_BLOCK"] = tl.constexpr(64)


def test_where_kernels_without_arrays_run() -> None:
    @proton.jit
    def nothing(n):
        pass

    with proton.knobs.scope(backend="toy"):
        assert nothing[(2,)](3).metadata["target"] == "toy"
    with (
        proton.knobs.scope(backend="abacus"),
        pytest.raises(ProtonError, match=r"PROTON_BACKEND='abacus': .* cpu, cuda, hip, toy"),
    ):
        nothing[(2,)](4)


def test_arrays_of_two_back_ends_are_refused() -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(LaunchError, match="argument y_ptr"):
        add()[(1,)](ToyArray(0, x), x, ToyArray(256, x), 64, BLOCK=64)


def test_elements_of_its_arrays_read_as_another_type() -> None:
    with pytest.raises(LaunchError, match="the array's have 4 bytes, fp16 has 2"):
        proton.reinterpret(ToyArray(0, np.zeros(4, np.float32)), tl.float16)
