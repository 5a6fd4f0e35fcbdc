"""Blocks with strides of either sign, or 0, in any order of dimensions, against numpy.

One kernel moves a block from memory to memory, in a loop that moves on by steps of either
sign; strides come at run time or are constants of the source. Memory that no element of the
block lies in must stay as it is. Where elements share a place (a stride of 0), any of them may
be there at the end.
"""

import itertools
import re
from typing import Any

import numpy as np
import pytest

import proton.language as tl
from kernels.cases import CASES, MORE_CASES
from proton.runtime.cpu import launch
from tests.cpu.harness import kernels_of
from tests.pairs import covering

SIZES = (1, 2, 4, 8, 16)
LAUNCHES = 6  # of each kernel
UNTOUCHED = -7
SMALL = {"vector add": (3000,), "dropout": (3000,), "vector sum": (3000,), "histogram": (3000,)}

MASKS = {
    "none": "",
    "box": "({i} < n{d})",
    "other": "(({i} + n{d}) % 3 != 0)",
}


def source_of(rank: int, mask: str, moves: bool, is_constant: bool) -> str:
    """The kernel: x + sum of i_d * s_d to o + sum of i_d * t_d, (3 * x + 1) on the way."""
    dims = range(rank)
    index = [
        f"tl.arange(0, S{d})" + (f"[{', '.join(':' if a == d else 'None' for a in dims)}]")
        for d in dims
    ]
    if rank == 1:
        index = ["tl.arange(0, S0)"]
    kind = ": tl.constexpr" if is_constant else ""
    strides = [f"{name}{d}{kind}" for name in "st" for d in dims]
    bounds = [f"n{d}" for d in dims]
    sizes = [f"S{d}: tl.constexpr" for d in dims]
    parameters = ["x_ptr", "o_ptr", "steps", "sx", "so", *bounds, *strides, *sizes]
    masks = [MASKS[mask].format(i=index[d], d=d) for d in dims if MASKS[mask]]
    given = f", mask={' & '.join(masks)}" if masks else ""
    other = f"{given}, other=5" if masks else ""
    lines = [
        f"xs = x_ptr + {' + '.join(f'{index[d]} * s{d}' for d in dims)}",
        f"os = o_ptr + {' + '.join(f'{index[d]} * t{d}' for d in dims)}",
    ]
    body = [f"tl.store(os, tl.load(xs{other}) * 3 + 1{given})"]
    if moves:
        lines.append("for k in range(steps):")
        lines += [f"    {line}" for line in (*body, "xs += sx", "os += so")]
    else:
        lines += body
    text = "".join(f"    {line}\n" for line in lines)
    return f"\n@proton.jit\ndef kernel({', '.join(parameters)}):\n{text}"


def random_strides(rng: np.random.Generator, shape: tuple[int, ...]) -> list[int]:
    """Without gaps in any order, or anything, each with either sign."""
    if rng.random() < 0.5:
        return [int(s) for s in rng.integers(-9, 10, len(shape))]
    strides, size = [0] * len(shape), 1
    for axis in rng.permutation(len(shape)):
        strides[axis] = size * int(rng.choice([1, -1]))
        size *= shape[axis]
    return strides


def places_of(shape: tuple[int, ...], strides: list[int], steps: int, step: int) -> np.ndarray:
    """The place of each element in each turn, counted from the lowest one."""
    index = np.indices((steps, *shape))
    place = sum(i * s for i, s in zip(index, (step, *strides), strict=True))
    return place - place.min()


@pytest.mark.parametrize(
    "rank, mask, moves, is_constant",
    covering(
        {"rank": [1, 2, 3], "mask": MASKS, "moves": [False, True], "is_constant": [False, True]},
        "rank moves is_constant",
        "rank mask",
        "mask moves",
        "mask is_constant",
    ),
)
def test_any_strides(
    rng: np.random.Generator, rank: int, mask: str, moves: bool, is_constant: bool
) -> None:
    kernel = kernels_of(source_of(rank, mask, moves, is_constant)).kernel
    shape = tuple(int(s) for s in rng.choice(SIZES, rank))
    for _ in range(2 if is_constant else LAUNCHES):
        steps = int(rng.integers(1, 4)) if moves else 1
        given, taken = random_strides(rng, shape), random_strides(rng, shape)
        sx, so = (int(v) for v in rng.integers(-40, 40, 2))
        bounds = [int(rng.integers(-1, s + 2)) for s in shape]
        source, target = places_of(shape, given, steps, sx), places_of(shape, taken, steps, so)
        x = rng.integers(-1000, 1000, source.max() + 1).astype(np.int32)
        out = np.full(target.max() + 65, UNTOUCHED, np.int32)
        kept = np.ones((steps, *shape), bool)
        for bound, index in zip(bounds, np.indices(shape), strict=True):
            kept &= {"none": True, "box": index < bound, "other": (index + bound) % 3 != 0}[mask]
        sizes = {f"S{d}": s for d, s in enumerate(shape)}
        first = (0,) * (rank + 1)
        arguments = [x[source[first] :], out[target[first] :], steps, sx, so, *bounds]
        kernel[(1,)](*arguments, *given, *taken, **sizes)
        check(out, target, x[source] * 3 + 1, kept, (shape, given, taken, steps, sx, so, bounds))


@pytest.mark.parametrize("signs", list(itertools.product([1, -1], repeat=3)))
def test_a_small_block_without_gaps(rng: np.random.Generator, signs: tuple[int, ...]) -> None:
    """LLVM makes whole vectors of these, and shuffles."""
    kernel = kernels_of(source_of(3, "none", moves=False, is_constant=True)).kernel
    shape, strides = (2, 2, 4), [s * t for s, t in zip(signs, (8, 4, 1), strict=True)]
    target = places_of(shape, strides, 1, 0)[0]
    x, out = rng.integers(-99, 99, shape).astype(np.int32), np.zeros(16, np.int32)
    sizes = {f"S{d}": s for d, s in enumerate(shape)}
    steps_and_bounds = [0] * 6
    kernel[(1,)](x, out[target[0, 0, 0] :], *steps_and_bounds, 1, 2, 2, *strides, **sizes)
    want = x.ravel()[places_of(shape, [1, 2, 2], 1, 0)[0]]
    assert (out[target] == want * 3 + 1).all(), strides


def check(out: np.ndarray, places: np.ndarray, values: np.ndarray, kept: Any, what: Any) -> None:
    """Each place holds one of the values that go there in the last turn that writes it."""
    touched = np.zeros(out.size, bool)
    for turn in reversed(range(len(places))):
        at, value = places[turn][kept[turn]], values[turn][kept[turn]]
        is_right = touched.copy()
        np.logical_or.at(is_right, at, out[at] == value)
        assert is_right[at].all(), (what, turn)
        touched[at] = True
    assert (out[~touched] == UNTOUCHED).all(), what


# The flags themselves: what is right by luck today is wrong with the next LLVM.

NO_WRAP = re.compile(r"(getelementptr[^=\n]*\b(inbounds|nuw|nusw)\b.*|overflow<.*)")


def assert_wraps(kernel: Any) -> None:
    """No promise about offsets before LLVM, and none about addresses after it."""
    assert not NO_WRAP.search(kernel.asm["llvm"]), NO_WRAP.search(kernel.asm["llvm"])
    llir = kernel.asm["llir"]
    # Of its own buffers LLVM knows the bounds by itself.
    if not re.search(r"\balloca\b|@aligned_alloc|^@", llir, re.M):
        assert not NO_WRAP.search(llir), NO_WRAP.search(llir)


@pytest.mark.parametrize("case", [*CASES, *MORE_CASES], ids=lambda case: case.name)
def test_the_kernels_promise_nothing_about_addresses(case: Any, rng: np.random.Generator) -> None:
    compiled: list[Any] = []
    ranks = len(case.shapes.__code__.co_varnames)
    inputs = case.inputs(rng, *SMALL.get(case.name, (40, 50, 60)[:ranks]))
    with pytest.MonkeyPatch.context() as patch:
        original = launch.compile_function

        def compile_function(*arguments: Any) -> Any:
            compiled.append(original(*arguments))
            return compiled[-1]

        patch.setattr(launch, "compile_function", compile_function)
        case.launch(*inputs)
    for kernel in compiled:
        assert_wraps(kernel)


@pytest.mark.parametrize("rank", [1, 3])
def test_strided_blocks_promise_nothing_about_addresses(rank: int) -> None:
    for mask, moves in itertools.product(MASKS, [False, True]):
        kernel = kernels_of(source_of(rank, mask, moves, is_constant=False)).kernel
        sizes = {f"S{d}": 4 for d in range(rank)}
        assert_wraps(kernel.warmup(tl.int32, tl.int32, *[7] * (3 + 3 * rank), **sizes))
