"""Random loops on states that they carry, as the text of a kernel; numpy runs the same text.

Products add to states, rows are summed, results are stored in rows and columns. Numbers, rows,
masks and pointers that the loop carries say what it loads. All that may stand in branches, as where
one loop goes over the tiles of a persistent kernel.
"""

import itertools
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.cpu.harness import decode, encode, kernels_of
from tests.cpu.test_float8 import FORMATS, rounded, values

BLOCKS = 5  # of x and of w that numbers say; pointers go on from there
BEGINS = (
    "tl.zeros((M, N), TYPE)",
    "tl.load(begin_ptr + {number} * M * N + at)",
    "tl.zeros((M, N), TYPE) + tl.load(begin_ptr + {number} * M * N + at)",
)
# What becomes of states a and b; `narrow` rounds to the type of x.
DOTS = "{a} = tl.dot(x, y, {a})", "{a} += tl.dot(x, narrow(tl.dot(w, y)))"
SUMS = (
    "{a} += tl.sum(wide(x), 1)[:, None]",
    "{a} += tl.sum(wide(x) * wide(w), 0)[:, None]",
)
PRODUCTS = (
    *DOTS,
    "{a} = tl.dot(x, narrow({b}), {a})",
    "{a} += tl.dot(x, narrow(tl.dot(w, narrow({b}))))",
)
STORE = "tl.store(rows_ptr + i * M * N + at, narrow({a}))"
STEPS = (
    *PRODUCTS,
    *SUMS,
    STORE,
    "tl.store(columns_ptr + i * M * N + j[None, :] * M + m[:, None], narrow({a}))",
    "{a} = tl.where(s[:, None] > MIDDLE, {a}, {b})",
    "{a} = {a} * s[:, None]",
    "boxes_desc.store([i * M, 0], narrow({a}))",
    "{a} = tl.zeros((M, N), TYPE)",
    "{a} = tl.where(i % 3 == 0, 0, {a})",
)
FLOAT_STEPS = (
    "{a} = {a} * 0.5 + {b} * 0.25",
    "size = tl.sum({a} * {a}, 1); size = size / (1 + size); {b} = {b} * 0.5 + size[:, None]",
    "size = tl.sum({a}, 1); size = size / (1 + tl.abs(size))",
)
# Where x is loaded from, or w. Of p, q and r each stands for any of these numbers.
PLACES = (
    "tl.load(x_ptr + p * M * M + square)",
    "tl.load(x_ptr + (p + i) % BLOCKS * M * M + square)",
    "tl.load(x_at + square)",
    "tl.load(x_at + p % 2 * M * M + square, mask=(m < keep)[:, None], other=0)",
    "tl.load(x_ats)",
    "tl.load(x_ats, mask=kept[:, None], other=1)",
    "tl.load(x_ptr + rows[:, None] * M + m[None, :],"
    " mask=(rows < keep * BLOCKS)[:, None], other=0)",
    "tl.load(x_ptr + rows[:, None] * M + m[None, :],"
    " mask=kept[:, None] & (m < keep // 8 * 8)[None, :], other=0)",
    "x_desc.load([p * M, 0])",
    "x_desc.load([(p + i) % BLOCKS * M, 0])",
    "x_desc.load([x_row, 0])",
)
# Lines that change what places are made of.
CHANGES = (
    "p = (p + {c}) % BLOCKS",
    "p = (q * {c} + p) % BLOCKS",
    "p = (i * 2 + q) % BLOCKS",
    "p = tl.where(q == {c}, p, r)",
    "p = tl.minimum(q + 1, BLOCKS - 1)",
    "p, q = q, p",
    "p = tl.max(rows, 0) % BLOCKS",
    "p = q // r % BLOCKS if r > 0 else p",
    "x_at = x_ptr + p * M * M",
    "x_ats = x_ptr + p * M * M + square",
    "x_ats = x_at + square",
    "x_ats += {c} * M * M",
    "x_row = p * M + {c}",
    "rows = p * M + m",
    "rows = p + m",
    "rows = tl.maximum(rows - {c}, 0)",
    "keep = M - p * {c}",
    "kept = m < p * M // 3",
    "kept = kept & (m != q)",
    "flag = p > q",
)
EFFECTS = (
    "p = tl.load(table_ptr + q)",
    "rows = tl.load(table_ptr + (m + p) % BLOCKS) * M + m",
    "tl.store(log_ptr + i, p)",
)
CONDITIONS = (
    "p == {c}",
    "p > q",
    "(p == {c}) | (q == r)",
    "i % 2 == {c} % 2",
    "i % 3 < {c}",
    "i == 0",
    "i < {c}",
    "flag",
)
# All places are others from here on, as where a tile begins.
TILE = (
    "q = (q + 1) % BLOCKS",
    "x_at, w_at = x_ptr + p * M * M, w_ptr + q * M * M",
    "x_ats, w_ats = x_ptr + q * M * M + square, w_ptr + r * M * M + square",
    "rows, keep, kept = p * M + m, M - q, m < M - r",
    "x_row, w_row = r * M, p * M",
)
LOOPS = {
    "counted": ("for i in range(first, last):",),
    "down": ("for i in range(last - 1, first - 1, -1):",),
    "few": ("for i in range(3):",),
    "strided": ("for k in range(3 + 5 * first, 3 + 5 * last, 5):", "i = k // 5"),
    "roles": ("for i in tl.range(first, last, warp_specialize=True):",),
    "stages": ("for i in tl.range(first, last, num_stages=4):",),
    "unrolled": ("for i in tl.range(first, last, loop_unroll_factor=2):",),
    "while": ("i = first - 1", "while i < last - 1:", "i += 1"),
    "nested": (
        "for o in range(2):", "outer", "half = (first + last) // 2",
        "for i in range(half if o > 0 else first, last if o > 0 else half):",
    ),
    "flat": (
        "for o in tl.range(0, 3, flatten=True):", "outer", "v = (o * 3 + 1) % BLOCKS",
        "for k in range((last - first) // 3):", "i = first + o * ((last - first) // 3) + k",
    ),
}  # fmt: skip
KERNEL = """
TYPE: tl.constexpr = tl.constexpr({total})
BLOCKS: tl.constexpr = tl.constexpr({blocks})
MIDDLE: tl.constexpr = tl.constexpr({middle})

@proton.jit
def narrow(value):
    return value.to({element})

@proton.jit
def wide(value):
    return value.to(TYPE)

@proton.jit
def kernel(
    x_ptr, w_ptr, x_desc, w_desc, boxes_desc, y_ptr, s_ptr, table_ptr, begin_ptr, log_ptr, rows_ptr,
    columns_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr
):
    m, j = tl.arange(0, M), tl.arange(0, N)
    at, square = m[:, None] * N + j[None, :], m[:, None] * M + m[None, :]
    size, y = tl.zeros((M,), TYPE), tl.load(y_ptr + at)
    p, q, r, x_at, w_at, x_row, w_row, flag = 0, 1, 2, x_ptr, w_ptr, 0, M, n > 2
    x_ats, w_ats, rows, keep, kept = x_ptr + square, w_ptr + square, m + 1, M - 3, m < M - 1
{lines}
"""


@dataclass
class Loop:
    """A kernel of loops on so many states, for x and w of a type."""

    text: str
    states: int
    element: str

    @property
    def kernel(self) -> Any:
        return kernels_of(self.text).kernel


class Writer:
    """Writes lines."""

    def __init__(self, rng: np.random.Generator, element: str) -> None:
        self.rng, self.element, self.is_whole = rng, element, element == "int8"
        self.states = [f"h{number}" for number in range(rng.integers(1, 4))]
        self.has_branches, self.has_boxes, self.has_dots = True, False, self.has(0.8)

    def loop(self) -> Loop:
        lines = [f"{h} = {self.pick(BEGINS).format(number=n)}" for n, h in enumerate(self.states)]
        bounds = ("0", "n // 2", "n") if self.has(0.2) else ("0", "n")
        kinds = sorted(LOOPS if len(bounds) == 2 else LOOPS.keys() - {"few"})
        for first, last in itertools.pairwise(bounds):
            kind = "counted" if self.has(0.4) else self.pick(kinds)
            lines += [f"first, last = {first}, {last}", *self.one_loop(kind)]
        for number, h in enumerate(self.states):
            lines.append(f"tl.store(out_ptr + {number} * M * N + at, {h} + size[:, None])")
        text = KERNEL.format(
            lines=textwrap.indent("\n".join(lines), " " * 4), element=f"tl.{self.element}",
            total="tl.int32" if self.is_whole else "tl.float32", blocks=BLOCKS,
            middle=0 if self.is_whole else 0.5,
        )  # fmt: skip
        return Loop(text, len(self.states), self.element)

    def one_loop(self, kind: str) -> list[str]:
        found: list[str] = []
        depth = 0
        for line in LOOPS[kind]:
            own = self.outer() if line == "outer" else [line]
            found += [" " * depth + one for one in own]
            depth += 4 * line.endswith(":")
        self.has_branches = kind != "roles" or self.has(0.3)  # no producer takes part in any
        return [*found, *(" " * depth + line for line in self.body(kind == "flat"))]

    def outer(self) -> list[str]:
        lines = (re.sub(r"tl\.store.*", "pass", line) for line in self.changes(0, 2))
        return [re.sub(r"\bi\b", "o", line) for line in lines]

    def body(self, is_flat: bool) -> list[str]:
        turn = ["p = (p + 1) % BLOCKS"]
        if self.has_branches and self.has(0.7):
            turn += self.branch(lambda: [self.named(line) for line in TILE])
        ahead, behind = (turn, []) if self.has(0.5) else ([], turn)
        x, w = (self.named(self.pick(PLACES)) for _ in "xw")
        if is_flat and self.has(0.7):  # of what the loop around says, and nothing that is carried
            ahead = ["t, u = o, v", *self.branch(lambda: [self.named("t = (v + k) % BLOCKS")])]
            ahead += self.branch(lambda: [self.named("u = (o + k * {c} + t) % BLOCKS")])
            ahead = [_renamed(line, {"p": "t", "q": "v", "r": "k"}) for line in ahead]
            x, w = "x_desc.load([t * M, 0])", "x_desc.load([u * M, 0])"
        steps = self.step(DOTS if self.has_dots else SUMS) if self.has(0.8) else []
        steps += [STORE.format(a=step[:2]) for step in steps]  # whatever becomes of it
        steps += [line for _ in range(self.rng.integers(1, 4)) for line in self.steps()]
        return [
            *ahead, *self.changes(0, 3), f"x = {x}", f"w = {w.replace('x_', 'w_')}",
            "s = tl.load(s_ptr + i * M + m)", *steps, *self.changes(0, 3), *behind,
        ]  # fmt: skip

    def steps(self) -> list[str]:
        options = STEPS if self.is_whole else STEPS + FLOAT_STEPS
        if self.has(0.25):
            return self.branch(lambda: self.step(options))
        return self.step(options)

    def step(self, options: tuple[str, ...]) -> list[str]:
        # Of two copies to one place either may be the last.
        gone = ["boxes"] * self.has_boxes + ["dot"] * (not self.has_dots)
        options = tuple(line for line in options if not any(word in line for word in gone))
        line = self.pick(options).format(a=self.pick(self.states), b=self.pick(self.states))
        if "dot" in line and self.element in FORMATS and self.has(0.5):
            line = f"{line[:-1]}, max_num_imprecise_acc={self.pick((0, 16, 32, 'M'))})"
        self.has_boxes |= "boxes" in line
        return [line]

    def changes(self, depth: int, most: int) -> list[str]:
        return [line for _ in range(self.rng.integers(most + 1)) for line in self.change(depth)]

    def change(self, depth: int) -> list[str]:
        if self.has_branches and depth < 2 and self.has(0.5):
            return self.branch(lambda: self.changes(depth + 1, 2))
        return [self.named(self.pick(EFFECTS if self.has(0.04) else CHANGES))]

    def branch(self, inside: Callable[[], list[str]]) -> list[str]:
        found = [f"if {self.named(self.pick(CONDITIONS))}:", *_indented(inside())]
        return [*found, "else:", *_indented(inside())] if self.has(0.5) else found

    def named(self, line: str) -> str:
        """A line of other numbers, and of x or w."""
        names = dict(zip("pqr", self.rng.permutation(list("pqr")), strict=True))
        line = _renamed(line, names)
        line = line.replace("x_", "w_") if self.has(0.5) and "w_" not in line else line
        return line.replace("{c}", str(self.rng.integers(5)))

    def pick(self, options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def has(self, share: float) -> bool:
        return bool(self.rng.random() < share)


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines or ["pass"]]


def _renamed(line: str, names: dict[str, str]) -> str:
    return re.sub(r"\b[pqr]\b", lambda found: names[found[0]], line)


# The same text, run by numpy in 64 bits


class _Pointer:
    """Points into an array."""

    def __init__(self, array: np.ndarray, at: Any = 0) -> None:
        self.array, self.at = array, at

    def __add__(self, distance: Any) -> "_Pointer":
        return _Pointer(self.array, self.at + distance)


class _Descriptor:
    """Of blocks of rows, with zeros behind the end."""

    def __init__(self, array: np.ndarray, rows: int) -> None:
        self.array, self.rows = array, rows

    def load(self, place: list[int]) -> np.ndarray:
        found = np.zeros((self.rows, self.array.shape[1]), self.array.dtype)
        part = self.array[place[0] : place[0] + self.rows]
        found[: len(part)] = part
        return found

    def store(self, place: list[int], value: np.ndarray) -> None:
        self.array[place[0] : place[0] + self.rows] = value


class _Tiles:
    """`tl`."""

    class constexpr:
        def __new__(cls, value: Any) -> Any:
            return value

    float32, int32 = np.float64, np.int64
    float16, bfloat16, float8e4nv, float8e5, int8 = range(5)  # `narrow` is another one
    abs, arange, zeros = np.abs, np.arange, np.zeros
    minimum, maximum, sum = np.minimum, np.maximum, np.sum

    @staticmethod
    def range(first: int, last: int, **options: Any) -> Any:
        return range(first, last)

    @staticmethod
    def max(values: np.ndarray, axis: int) -> int:
        return int(values.max(axis))

    @staticmethod
    def where(condition: Any, left: Any, right: Any) -> Any:
        found = np.where(condition, left, right)
        return found if found.ndim else int(found)

    @staticmethod
    def dot(left: np.ndarray, right: np.ndarray, total: Any = 0, **options: Any) -> np.ndarray:
        return total + left @ right

    @staticmethod
    def load(pointer: _Pointer, mask: Any = True, other: Any = 0) -> Any:
        mask = np.broadcast_to(mask, np.shape(pointer.at))
        found = np.where(mask, pointer.array.ravel()[np.where(mask, pointer.at, 0)], other)
        return found if found.ndim else int(found)

    @staticmethod
    def store(pointer: _Pointer, value: Any) -> None:
        pointer.array.reshape(-1)[pointer.at] = value


class _Proton:
    @staticmethod
    def jit(function: Any) -> Any:
        return function


def run_by_numpy(loop: Loop, arrays: dict[str, np.ndarray], n: int) -> None:
    """Changes arrays, of 64 bits, as the kernel changes its own."""
    names: dict[str, Any] = {"proton": _Proton, "tl": _Tiles}
    exec(loop.text, names)
    names["narrow"] = lambda numbers: rounding(numbers, loop.element)
    names["wide"] = lambda numbers: numbers
    given: dict[str, Any] = {f"{name}_ptr": _Pointer(array) for name, array in arrays.items()}
    _, m, size_n = arrays["out"].shape
    for name in ("x", "w", "boxes"):
        given[f"{name}_desc"] = _Descriptor(arrays[name].reshape(-1, arrays[name].shape[-1]), m)
    del given["boxes_ptr"]
    with np.errstate(all="ignore"):
        names["kernel"](**given, n=n, M=m, N=size_n)


# Types


def in_memory(numbers: np.ndarray, element: str) -> np.ndarray:
    """Numbers of 64 bits as an array of a type; those of 8-bit floats, and of bf16, as bits."""
    return rounded(numbers, element) if element in FORMATS else encode(numbers, element)


def from_memory(array: np.ndarray, element: str) -> np.ndarray:
    found = values(element)[array] if element in FORMATS else decode(array, element)
    return found.astype(np.int64 if element == "int8" else np.float64)


def rounding(numbers: np.ndarray, element: str) -> np.ndarray:
    """Numbers as a type has them."""
    return from_memory(in_memory(numbers, element), element)
