"""Random loops on states that they carry (random_loops.py), right on the machine for PTX."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation
from tests.compile.random_loops import (
    BLOCKS,
    Loop,
    Writer,
    from_memory,
    in_memory,
    rounding,
    run_by_numpy,
)
from tests.draws import times

ELEMENTS = "float16", "float32", "bfloat16", "float8e4nv", "float8e5", "int8"


def drawn(seed: int, number: int) -> tuple[Loop, dict[str, np.ndarray], int, dict[str, int]]:
    """(a loop, arrays of 64 bits, how many iterations, options)."""
    rng = np.random.default_rng([seed, number])
    pick: Any = lambda *options: options[rng.integers(len(options))]  # noqa: E731
    loop = Writer(rng, pick(*ELEMENTS)).loop()
    warps, stages = pick(4, 8, 4, 1), pick(1, 2, 3, 3, 4, 5)
    most = 32 if warps == 1 else 64  # registers
    m, size_n, n = pick(32, most, most), pick(32, most), pick(0, 1, 2, 3, 5, 6, 6, 9, 9)
    if loop.element in ("float16", "bfloat16", "float32"):
        m, size_n = pick(16, m), pick(16, size_n)
    is_whole, count = loop.element == "int8", max(n, 3)
    exact = "int8" if is_whole else "float16"

    def new(element: str, scale: float, *shape: int) -> np.ndarray:
        numbers = rng.normal(0, 5 if is_whole else scale, shape)
        return rounding(numbers.round() if is_whole else numbers, element)

    zeros = np.zeros((count, m, size_n), np.int64 if is_whole else np.float64)
    blocks = BLOCKS + 1 + 4 * max(n, 3) * loop.text.count("_ats +=")
    x, w = (new(loop.element, 0.5 / m**0.5, blocks, m, m) for _ in "xw")
    arrays = {
        "x": x, "w": w,
        "s": new(exact, 1, count, m), "table": rng.integers(0, BLOCKS, BLOCKS),
        "log": np.full(count, 77), "rows": zeros, "columns": zeros.swapaxes(1, 2).copy(),
        "boxes": zeros.copy(), "y": new(loop.element, 1, m, size_n),
        "begin": new(exact, 1, loop.states, m, size_n),
    }  # fmt: skip
    arrays["out"] = np.zeros_like(arrays["begin"])
    return loop, arrays, n, {"num_warps": warps, "num_stages": stages}


def check(loop: Loop, arrays: dict[str, np.ndarray], n: int, options: dict[str, int]) -> None:
    element = loop.element
    types = dict.fromkeys(("x", "w", "y", "rows", "columns", "boxes"), element)
    total = "int32" if element == "int8" else "float32"
    types |= {"s": total, "begin": total, "out": total, "table": "int32", "log": "int32"}
    memory = {name: in_memory(array, types[name]) for name, array in arrays.items()}

    def given(name: str, *shape: int) -> Any:
        array = memory[name].reshape(shape or memory[name].shape)
        is_bits = types[name] in ("bfloat16", "float8e4nv", "float8e5")
        return proton.reinterpret(array, getattr(tl, types[name])) if is_bits else array

    _, m, size_n = arrays["out"].shape
    arguments = {f"{name}_ptr": given(name) for name in arrays if name != "boxes"}
    for name, width in {"x": m, "w": m, "boxes": size_n}.items():
        of_blocks = TensorDescriptor.from_tensor(given(name, -1, width), [m, width])
        arguments[f"{name}_desc"] = of_blocks
    with Emulation(options["num_warps"], np.random.default_rng(0)).installed():
        loop.kernel[(1,)](**arguments, n=n, M=m, N=size_n, **options)
    run_by_numpy(loop, arrays, n)
    for name in ("log", "rows", "columns", "boxes", "out"):
        want, found = arrays[name], from_memory(memory[name], types[name])
        if element == "int8" and name == "out":
            found, want = memory[name], want.astype(np.int32)
        inside = np.abs(want) < 6e4  # fp16's
        scale = max(1.0, np.abs(want[inside]).max(initial=0))
        error = np.abs(found - want)[inside].max(initial=0)
        assert error <= (element != "int8") * 0.02 * scale, f"{name} is off by {error} of {scale}"


@pytest.mark.usefixtures("fuzz_assembler")
@pytest.mark.parametrize("number", range(times(8)))
def test_random_loops(session_seed: int, number: int) -> None:
    loop, arrays, n, options = drawn(session_seed, number)
    print(f"{loop.text}\n{n} iterations of {arrays['out'].shape}, {loop.element}, {options}")
    check(loop, arrays, n, options)


@proton.jit
def last_size(x_ptr, out_ptr, sizes_ptr, n, M: tl.constexpr):
    """Each iteration makes a size anew; the last one is taken behind the loop."""
    m = tl.arange(0, M)
    at = m[:, None] * M + m[None, :]
    total = tl.zeros((M, M), tl.float32)
    size = m * 0.5
    for i in range(n):
        x = tl.load(x_ptr + i * M * M + at)
        total = tl.dot(x, x, total)
        size = tl.sum(total, 1)
    tl.store(out_ptr + at, total)
    tl.store(sizes_ptr + m, size)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_what_only_the_last_iteration_gives(rng: np.random.Generator, stages: int, n: int) -> None:
    """A pipeline gave what was there ahead of the loop."""
    x = rng.integers(-2, 3, (max(n, 1), 16, 16)).astype(np.float16)
    out, sizes = np.full((16, 16), np.nan, np.float32), np.full(16, np.nan, np.float32)
    with Emulation(1, rng).installed():
        last_size[(1,)](x, out, sizes, n, 16, num_warps=1, num_stages=stages)
    want = sum((a @ a for a in x[:n].astype(np.float32)), np.zeros((16, 16), np.float32))
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(sizes, want.sum(1) if n else np.arange(16) * 0.5)
