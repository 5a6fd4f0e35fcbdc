"""Random dots in Gluon, of random views of memory, and random copies, against numpy: on the machine
for PTX and on a CPU. What is refused must be refused by both, in words that name the op."""

import contextlib
import itertools
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pytest

import proton
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.ampere import async_copy
from tests.compile.ptx.emulation import Emulation
from tests.cpu.harness import kernels_once
from tests.draws import times

_HEADER = """
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.ampere import mma_v2
from proton.gluon.language.nvidia.hopper import (
    fence_async_shared, warpgroup_mma, warpgroup_mma_wait
)

@gluon.jit
def kernel(a, b, c, yes, layout: gl.constexpr, other: gl.constexpr):
"""
_BITS = {"float16": 16, "bfloat16": 16, "float8e4nv": 8, "float8e5": 8, "int8": 8, "float32": 32}
_MANTISSA = {"float8e4nv": (3, 7), "float8e5": (2, 15)}  # bits, and the exponent of 1


@dataclass
class _Writer:
    """Writes the lines of a kernel."""

    rng: np.random.Generator
    lines: list[str] = field(default_factory=list)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def add(self, *lines: str) -> None:
        self.lines += [f"    {line}" for line in lines]

    def memory(self, name: str, source: str, shape: list[int], dtype: str, inner: int) -> None:
        """A view of memory, made from the last of its steps to the first, that has what `source`
        has. Rows run along dimension `inner`, but those of 16 bits along either."""
        bits, pick = _BITS[dtype], self.pick
        fast = pick(0, 1) if bits == 16 else inner
        steps: list[str] = []
        for step in self.rng.integers(0, 3, 3):
            if step == 1:
                shape, fast = shape[::-1], 1 - fast
                steps.append(".permute([1, 0])")
            elif step == 2 and prod(shape) <= 4096:  # shared memory has room for three
                axis = pick(0, 1)
                start = pick(0, shape[axis])
                steps.append(f".slice({start}, {shape[axis]}, dim={axis})")
                shape = [size * (1 + (n == axis)) for n, size in enumerate(shape)]
        row = shape[fast] * bits // 8
        swizzle = pick(*[width for width in (32, 64, 128) if width <= row] or [0])
        layout = f"gl.NVMMASharedLayout({swizzle}, {bits}, 2, transposed={fast == 0})"
        parts, whole = pick(1, 3), prod(shape)
        match pick("whole", "parts", "flat"):
            case "whole":
                self.add(f"{name} = gl.allocate_shared_memory(gl.{dtype}, {shape}, {layout})")
            case "parts":
                at = pick(f"{parts - 1}", f"yes * {parts - 1}")
                sizes = [parts, *shape]
                self.add(f"{name} = gl.allocate_shared_memory(gl.{dtype}, {sizes}, {layout})",
                         f"{name} = {name}.index({at})")  # fmt: skip
            case "flat":
                pieces = pick(1, 1, 4, 16)
                sizes = [parts + pieces - 1, whole // pieces]
                flat = "gl.SwizzledSharedLayout(1, 1, 1, [0])"
                self.add(f"{name} = gl.allocate_shared_memory(gl.{dtype}, {sizes}, {flat})",
                         f"{name} = {name}.index({parts - 1})",
                         f"{name} = {name}.reinterpret(gl.{dtype}, {shape}, {layout})")  # fmt: skip
        self.add(f"{name} = {name}{''.join(reversed(steps))}", f"{name}.store({source})")


def _numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> tuple[Any, Any]:
    """(an argument, its numbers): small integers."""
    numbers = rng.integers(-3, 4, shape).astype(np.float32)
    if dtype == "bfloat16":
        bits: Any = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    elif dtype in _MANTISSA:
        mantissa, bias = _MANTISSA[dtype]
        power = np.maximum(np.frexp(numbers)[1] - 1, 0)
        of_one = np.abs(numbers) / 2.0**power
        bits = ((power + bias) << mantissa) + ((of_one - 1) * 2**mantissa).astype(int)
        bits = np.where(numbers == 0, 0, bits | np.where(numbers < 0, 128, 0)).astype(np.uint8)
    else:
        return numbers.astype(dtype), numbers
    return proton.reinterpret(bits, getattr(gl, dtype)), numbers


def _dots(writer: _Writer, m: int, n: int, left: str, call: str) -> list[tuple[int, int]]:
    """Three dots in a row, some of which go on: (begin, factor) of each result that is stored."""
    pick, found = writer.pick, []
    begin, times, waits = 0, 0, ""
    for number in range(3):
        adds = pick("True", "False", "yes > 0", "yes < 0") if call == "warpgroup_mma" else "True"
        if not number or pick(True, False):
            begin, times = pick(-2, 5), 0
            source = f"gl.full([{m}, {n}], {begin}, acc_dtype, layout)"
            found.append((0, 0))
        else:
            source = f"acc{len(found) - 1}"
        if adds not in ("True", "yes > 0"):
            begin, times = 0, 0
        times += 1
        found[-1] = begin, times
        waits = pick("True", "False")
        how = f", use_acc={adds}, is_async={waits}" if call == "warpgroup_mma" else ""
        writer.add(f"acc{len(found) - 1} = {call}({left}, right, {source}{how})")
    for number in writer.rng.permutation(len(found)) if call == "warpgroup_mma" else ():
        writer.add(f"acc{number} = warpgroup_mma_wait(0, deps=(acc{number},))")
    return found


def check(seed: int, number: int) -> bool:
    """Runs a random kernel; false if it is refused."""
    rng = np.random.default_rng([seed, number])
    writer = _Writer(rng)
    pick, dtype = writer.pick, writer.pick("float16", *_BITS)
    bits, by_groups = _BITS[dtype], pick(True, True, False)
    warps = pick(4, 8) if by_groups else pick(1, 2, 4)
    m = pick(64, 128) if by_groups else pick(8, 16, 32)
    n = pick(8, 16, 32) if by_groups else pick(1, 2, 8, 32)
    k = pick(*[size // bits for size in (128, 256, 256, 512, 1024)])
    across = pick(1, warps // 4) if by_groups else pick(1, warps)
    instruction = [16, max(8, n // across), 256 // bits] if by_groups else [16, 8]
    version, spread = [3 if by_groups else 2, 0], [warps // across, across]
    layout = gl.NVMMADistributedLayout(version, spread, instruction)
    (a, left), (b, right) = _numbers(rng, (m, k), dtype), _numbers(rng, (k, n), dtype)
    acc = {"int8": "int32", "float16": pick("float32", "float16")}.get(dtype, "float32")
    writer.add(
        f"acc_dtype: gl.constexpr = gl.{acc}",
        f"at = a + gl.arange(0, {m})[:, None] * {k} + gl.arange(0, {k})[None, :]",
        f"bt = b + gl.arange(0, {k})[:, None] * {n} + gl.arange(0, {n})[None, :]",
        "left = gl.load(gl.set_auto_layout(at, other))",
        "right = gl.load(gl.set_auto_layout(bt, other))",
    )
    held = pick("left", "a_memory") if by_groups else "left"
    width = max(1, pick(32 // bits, 1, 2, 4))
    if held == "left":
        writer.add(f"left = gl.convert_layout(left, gl.DotOperandLayout(0, layout, {width}))")
    else:
        writer.memory("a_memory", "left", [m, k], dtype, 1)
    if by_groups:
        writer.memory("b_memory", "right", [k, n], dtype, 0)
        writer.add("right = b_memory", "fence_async_shared()")
    else:
        writer.add(f"right = gl.convert_layout(right, gl.DotOperandLayout(1, layout, {width}))")
    results = _dots(writer, m, n, held, "warpgroup_mma" if by_groups else "mma_v2")
    for number_ in range(len(results)):
        rows = f"(gl.arange(0, {m})[:, None] + {number_ * m}) * {n}"
        writer.add(f"gl.store(c + {rows} + gl.arange(0, {n})[None, :], acc{number_})")
    other = gl.BlockedLayout([1, pick(1, 4)], [4, 8], [warps, 1], [1, 0])
    product, refusals = left.astype(np.float64) @ right, []
    source = _HEADER + "\n".join(writer.lines)
    for on_gpu in (True, False):
        c = np.zeros((len(results), m, n), acc)
        machine = Emulation(warps, rng).installed() if on_gpu else contextlib.nullcontext()
        with kernels_once(source) as module, machine:
            try:
                module.kernel[(1,)](a, b, c, 1, layout, other, num_warps=warps)
            except proton.CompilationError as problem:
                refusals.append(str(problem).partition(":")[2])
                continue
        for sums, (begin, count) in zip(c, results, strict=True):
            np.testing.assert_array_equal(sums, begin + count * product, source)
    assert not refusals or len(refusals) == 2, (source, refusals)
    for said in refusals:
        assert any(word in said for word in ("warpgroup_mma", "mma_v2", "reinterpret")), said
    return not refusals


@pytest.mark.usefixtures("no_assembler")
def test_random_dots(session_seed: int) -> None:
    wanted = times(4)
    runs = (check(session_seed, number) for number in range(10 * wanted))
    assert len([*itertools.islice(filter(None, runs), wanted)]) == wanted


@gluon.jit
def copied(x, y, m, n, M: gl.constexpr, N: gl.constexpr, pitch: gl.constexpr, begin: gl.constexpr,
           waits: gl.constexpr, layout: gl.constexpr, memory: gl.constexpr,
           after: gl.constexpr):  # fmt: skip
    """Blocks that lie one behind the other, of which one has two masks, one the rows', one none."""
    count: gl.constexpr = len(waits)
    buffers = gl.allocate_shared_memory(x.dtype.element_ty, [count, M, N], memory)
    i, j = gl.arange(0, M)[:, None], gl.arange(0, N)[None, :]
    at = gl.set_auto_layout(i * pitch + j, layout)
    rows, both = gl.set_auto_layout(i < m, layout), gl.set_auto_layout((i < m) & (j < n), layout)
    for k in gl.static_range(count):
        mask = both if k == 0 else rows if k == 1 else None
        async_copy.async_load(buffers.index(k), x + begin + k * M * pitch + at, mask)
        async_copy.commit_group()
    out = gl.set_auto_layout(i * N + j, after)
    for k in gl.static_range(count):
        async_copy.wait_group(waits[k])
        gl.store(y + k * M * N + out, buffers.index(k).load(after))


def _power(rng: np.random.Generator, low: int, high: int) -> int:
    return 1 << int(rng.integers(low, high))


def _blocked(rng: np.random.Generator, warps: int) -> gl.BlockedLayout:
    lanes, down = _power(rng, 0, 6), _power(rng, 0, warps.bit_length())
    per_thread, order = [_power(rng, 0, 3) for _ in range(2)], rng.permutation(2).tolist()
    return gl.BlockedLayout(per_thread, [lanes, 32 // lanes], [down, warps // down], order)


def check_copies(seed: int, number: int) -> None:
    """Copies by threads in groups, which are waited for as late as may be, or earlier."""
    rng = np.random.default_rng([seed, number])
    dtype = rng.choice([np.int8, np.float16, np.float32, np.int64])
    m, n, warps = _power(rng, 1, 6), _power(rng, 1, 6), _power(rng, 0, 3)
    pitch, begin = n + int(rng.choice([0, 0, 8, 3])), int(rng.choice([0, 4, 16]))
    order = rng.permutation(2).tolist()
    memory = gl.SwizzledSharedLayout(*(_power(rng, 0, 4) for _ in range(3)), order)
    if number % 3 == 0:
        memory = gl.PaddedSharedLayout.with_identity_for([[16, 4]], [m, n], order)
    waits = tuple(int(rng.integers(0, 3 - k)) for k in range(3))
    x, y = rng.integers(-99, 99, 3 * m * pitch + begin).astype(dtype), np.zeros((3, m, n), dtype)
    rows, columns = int(rng.integers(0, m + 1)), int(rng.integers(0, n + 1))
    layouts = _blocked(rng, warps), memory, _blocked(rng, warps)
    wanted = x[begin:].reshape(3, m, pitch)[..., :n].copy()
    wanted[:2, rows:] = wanted[0, :, columns:] = 0
    for on_gpu in (True, False):
        y[:] = 77
        with Emulation(warps, rng).installed() if on_gpu else contextlib.nullcontext():
            given = rows, columns, m, n, pitch, begin, waits, *layouts
            copied[(1,)](x, y, *given, num_warps=warps)
        assert (y == wanted).all(), (dtype, on_gpu, given)


@pytest.mark.usefixtures("no_assembler")
def test_random_copies(session_seed: int) -> None:
    for number in range(0, 2 * times(8), 2):
        check_copies(session_seed, number)
