"""Faults of kernels that `explain` has rules for: each with the same work done without the fault.

Arrays come from a factory, so that cases run on a GPU and on a CPU, and compile for a GPU that is
not there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import faulty_kernels as kernels
import numpy as np
import recorded_kernels

from proton.tools.tensor_descriptor import TensorDescriptor

SIZE = 4096  # of products
COLUMNS = 8192  # that are added up, of as many rows: more than an L2 cache holds
SUMS = {"cuda": 4, "cpu": 64}  # of a program
HEADS, LENGTH, DEPTH = 16, 4096, 128


class Arrays(Protocol):
    """Where cases run: `places` SMs or threads, and arrays there."""

    device: str
    places: int

    def random(self, *shape: int, dtype: str = "float32") -> Any:
        """An array of random numbers."""

    def of(self, values: np.ndarray) -> Any:
        """An array of these."""


@dataclass(frozen=True)
class Side:
    """Launches of a kernel. `calls` are the grid and the arguments of each, `out` is where their
    results are."""

    kernel: Any
    calls: list[tuple[tuple[int, ...], tuple[Any, ...]]]
    out: Any
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> None:
        for grid, given in self.calls:
            self.kernel[grid](*given, **self.options)


@dataclass(frozen=True)
class Case:
    """A fault that a rule finds in a session with some options: with the fault, and without. Of
    several findings of the rule the sentence of the one that is meant has the word `says`.

    With `recorded` sides are timed in a session, since recording is the fault; with `graph` the
    fix is to launch all at once, so the time between launches counts.
    """

    rule: str
    sides: Callable[[Arrays], tuple[Side, Side]]
    session: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    devices: tuple[str, ...] = ("cuda",)
    recorded: bool = False
    graph: bool = False


def _outputs(arrays: Arrays, size: int, dtype: type = np.float32) -> list[Any]:
    """Zeros for the results of both sides."""
    return [arrays.of(np.zeros(size, dtype)) for _ in range(2)]


def rows_of(array: Any, shape: tuple[int, int], block: tuple[int, int]) -> TensorDescriptor:
    """A descriptor of an array in rows."""
    return TensorDescriptor(array, list(shape), [shape[1], 1], list(block))


def product(m: int, n: int, **options: tuple[Any, Any]) -> Callable[[Arrays], tuple[Side, Side]]:
    """Products by TMA that differ in options of the launch: (with the fault, without)."""

    def sides(arrays: Arrays) -> tuple[Side, Side]:
        a, b = (arrays.random(SIZE, SIZE, dtype="float16") for _ in range(2))

        def side(which: int) -> Side:
            c = arrays.random(SIZE, SIZE, dtype="float16")
            pairs = ((a, (m, 64)), (b, (64, n)), (c, (m, n)))
            given = [rows_of(x, (SIZE, SIZE), block) for x, block in pairs]
            own = {"num_warps": 8, "num_stages": 3} | {k: v[which] for k, v in options.items()}
            calls: Any = [((SIZE // m, SIZE // n), (*given, SIZE, m, n, 64))]
            return Side(recorded_kernels.product_by_tma, calls, c, own)

        return side(0), side(1)

    return sides


def product_by_pointers(arrays: Arrays) -> tuple[Side, Side]:
    """Operands that are loaded when they are needed, against loads ahead of dots."""
    a, b, *out = (arrays.random(SIZE, SIZE, dtype="float16") for _ in range(4))
    grid = SIZE // 128, SIZE // 256

    def side(c: Any, stages: int) -> Side:
        calls = [(grid, (a, b, c, SIZE, 128, 256, 64))]
        return Side(kernels.product, calls, c, {"num_warps": 8, "num_stages": stages})

    return side(out[0], 1), side(out[1], 3)


def attention(arrays: Arrays) -> tuple[Side, Side]:
    """Blocks of one warp group, against two groups that take turns at dots and softmax."""
    shape = HEADS * LENGTH, DEPTH
    q, k, v, *out = (arrays.random(*shape, dtype="float16") for _ in range(5))

    def side(o: Any, m: int, warps: int) -> Side:
        rows = [
            rows_of(x, shape, (n, DEPTH))
            for x, n in zip((q, k, v, o), (m, 128, 128, m), strict=True)
        ]
        calls: Any = [((LENGTH // m, HEADS), (*rows, LENGTH, 0.1, m, 128, DEPTH))]
        return Side(
            recorded_kernels.attention_by_tma, calls, o, {"num_warps": warps, "num_stages": 3}
        )

    return side(out[0], 64, 4), side(out[1], 128, 8)


def uneven(arrays: Arrays) -> tuple[Side, Side]:
    """Neighbouring sums, each longer than the one before, for each program, against sums in
    turns."""
    places, count, block = arrays.places, SUMS[arrays.device], 1024
    x, *out = arrays.random(count * places * block), *_outputs(arrays, count * places)
    first, second = (
        Side(kernels.prefix_sums, [((places,), (x, o, *order, count, block))], o)
        for o, order in zip(out, ((count, 1), (1, places)), strict=True)
    )
    return first, second


def waves(arrays: Arrays) -> tuple[Side, Side]:
    """One and a half waves of programs with two tiles each, against one wave with three."""
    programs, block, steps = 3 * arrays.places // 2, 16384, 2000
    x, *out = (arrays.random(2 * programs * block) for _ in range(3))
    first, second = (
        Side(kernels.iterated, [((grid,), (x, o, tiles, steps, block))], o, {"num_warps": 16})
        for o, grid, tiles in zip(out, (programs, arrays.places), (2, 3), strict=True)
    )
    return first, second


def few(arrays: Arrays) -> tuple[Side, Side]:
    """A program for each of few long rows, against several."""
    rows, columns = max(arrays.places // 4, 1), 1 << 22
    parts = arrays.places // rows
    x, *out = arrays.random(rows, columns), *_outputs(arrays, rows)
    first, second = (
        Side(kernels.split_sums, [((rows, n), (x, o, columns, columns // n, 1024))], o)
        for o, n in zip(out, (1, parts), strict=True)
    )
    return first, second


def strided(arrays: Arrays) -> tuple[Side, Side]:
    """A column for each program, against blocks whose rows lie together."""
    x, out = arrays.random(COLUMNS, COLUMNS), _outputs(arrays, COLUMNS)
    by_column = (COLUMNS, 1), (x, out[0], COLUMNS, COLUMNS, 1024, 1)
    by_block = (COLUMNS // 128, COLUMNS // 128), (x, out[1], 128, COLUMNS, 32, 128)
    return Side(kernels.column_sums, [by_column], out[0]), Side(
        kernels.column_sums, [by_block], out[1]
    )


def many_launches(arrays: Arrays) -> tuple[Side, Side]:
    """A launch for each row. On a GPU the fix is a graph of them, which keeps them apart."""
    rows, columns = 200, 1000
    x, out = arrays.random(rows, columns), _outputs(arrays, rows)

    def each(o: Any) -> Side:
        return Side(
            kernels.row_sums, [((1,), (x, o, row, columns, 1024)) for row in range(rows)], o
        )

    if arrays.device == "cuda":
        return each(out[0]), each(out[1])
    once = (rows,), (x, out[1], 0, columns, 1024)
    return each(out[0]), Side(kernels.row_sums, [once], out[1])


def fine(arrays: Arrays) -> tuple[Side, Side]:
    """Scopes in each of many short steps, against one around all of them."""
    steps, programs = 10000, arrays.places
    x, *out = arrays.random(programs, steps), *_outputs(arrays, programs)
    first, second = (
        Side(kernels.recurrence, [((programs,), (x, o, steps, is_fine))], o, {"num_warps": 1})
        for o, is_fine in zip(out, (True, False), strict=True)
    )
    return first, second


def late(arrays: Arrays) -> tuple[Side, Side]:
    """Numbers whose sines take long are all in the first warp's part of each block, against an
    equal share of them for each: a thread has four neighbours, four warps have 512 numbers."""
    block, turns, places = 2048, 200, arrays.places
    number, out = np.arange(block), _outputs(arrays, places)
    sides: list[Side] = []
    for is_long in ((number // 128) % 4 == 0, number < 512):
        x = arrays.of(np.tile(np.where(is_long, 2e6, 1.0), places).astype(np.float32))
        calls: Any = [((places,), (x, out[len(sides)], turns, block))]
        sides.append(Side(kernels.sines, calls, out[len(sides)]))
    return sides[0], sides[1]


BOTH = ("cuda", "cpu")
WARP: dict[str, Any] = {"sample_warps": (0,)}  # is enough where warps do the same
CASES: dict[str, Case] = {
    "one stage": Case(
        "copies", product(128, 256, num_stages=(1, 4)), {"auto": "copies,dots", **WARP}
    ),
    "two stages": Case(
        "copies", product(128, 256, num_stages=(2, 4)), {"auto": "copies,dots", **WARP}
    ),
    "two stages, no auto": Case("waits", product(128, 256, num_stages=(2, 4)), WARP, "load"),
    "loads when needed": Case("dot-gaps", product_by_pointers, {"auto": "dots", **WARP}),
    "softmax exposed": Case("exposed", attention, {"auto": "dots", **WARP}, "softmax"),
    "spills: few warps": Case("spills", product(128, 256, num_warps=(4, 8)), WARP),
    "spills: maxnreg": Case(
        "spills", product(128, 128, num_warps=(4, 4), maxnreg=(96, None)), WARP
    ),
    "uneven sums": Case("unequal-programs", uneven, devices=BOTH),
    "half a last wave": Case("tail", waves, devices=BOTH),
    "few programs": Case("few-programs", few, devices=BOTH),
    "one late warp": Case("late-warp", late, {"auto": "barriers"}),
    "strided loads": Case("utilization", strided),
    "many launches": Case("launch-gaps", many_launches, devices=BOTH, graph=True),
    "scopes too fine": Case("fine-scopes", fine, devices=BOTH, recorded=True),
    "scopes too fine, timed": Case(
        "fine-scopes", fine, {"compare_run_time": True}, devices=BOTH, recorded=True
    ),
    # Last, as CUPTI's sampling may get in the way of its times.
    "strided loads, sampled": Case("stalls", strided, {"pc_sampling": 1024}),
}
