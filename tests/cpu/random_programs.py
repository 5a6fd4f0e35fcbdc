"""Draws random kernels, and evaluates them with numpy.

`programs` draws a `Drawn`: a program whose result is an expression tree. `text` writes a node
as the kernel has it, `value` computes it with numpy on whole tensors: nothing of Proton takes
part in the reference. Floats are summed as integers of a size that makes every order exact.

A kind of node is a function with `@kind(weight)`; it gets a `Maker`, which draws operands.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from tests.cpu.harness import FLOATS, ordinary

DTYPES = ("int8", "int32", "int64", "uint8", "uint32", "float16", "float32", "float64")
SIZES = (1, 2, 4, 8, 16, 32)
GRID = 2
MARGIN = 1 << 15  # elements before and behind the one that a pointer points to
MAX_ELEMENTS = 4096  # of a block

# operator -> whether it is for integers only
BINARY = {
    "+": False, "-": False, "*": False, "&": True, "|": True, "^": True, "//": True, "%": True,
}  # fmt: skip
FUNCTIONS = {"tl.maximum": np.fmax, "tl.minimum": np.fmin}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclasses.dataclass(frozen=True)
class Node:
    """A tensor: how the kernel writes it, and its value in numpy.

    The first axis of the value is the program of the grid.
    """

    text: str
    value: np.ndarray
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape[1:]


@dataclasses.dataclass
class Program:
    """What a kernel consists of while it is drawn."""

    rng: np.random.Generator
    shape: tuple[int, ...]
    lines: list[str] = dataclasses.field(default_factory=list)
    arrays: list[np.ndarray] = dataclasses.field(default_factory=list)
    scalars: dict[str, int] = dataclasses.field(default_factory=dict)

    def scalar(self, value: int) -> str:
        """A run-time argument."""
        name = f"s{len(self.scalars)}"
        self.scalars[name] = value
        return name

    def stride(self, value: int) -> str:
        """A stride: a run-time argument, or a number in the source."""
        return self.scalar(value) if self.rng.random() < 0.5 else f"({value})"

    def name(self, node: Node) -> Node:
        """Gives a node a variable, so that it can have several users."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {node.text}")
        return dataclasses.replace(node, text=name)

    def indices(self, axis: int) -> tuple[str, np.ndarray]:
        """The index along an axis, in the kernel and in numpy, in the rank of the program."""
        place = ", ".join(":" if d == axis else "None" for d in range(len(self.shape)))
        ones = [1, *(size if d == axis else 1 for d, size in enumerate(self.shape))]
        index = np.arange(self.shape[axis]).reshape(ones)
        return f"tl.arange(0, {self.shape[axis]})[{place}]", index


def dense_strides(rng: np.random.Generator, shape: tuple[int, ...]) -> list[int]:
    """The strides of a block without gaps: its dimensions in any order, each in either
    direction, with gaps between its lines now and then."""
    strides, size = [0] * len(shape), 1
    for axis in rng.permutation(len(shape)):
        strides[axis] = size * int(rng.choice([1, -1]))
        size *= shape[axis] * int(rng.choice([1, 1, 2]))
    return strides


def cast(value: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return value.astype(dtype)


@st.composite
def loads(draw: st.DrawFn, whole: Program, dtype: str) -> Node:
    """A load with a random stride and wrap-around of each dimension, and a random mask.

    Its shape is the program's, or has some dimensions of size 1.
    """
    shape = tuple(1 if draw(st.integers(0, 4)) == 0 else size for size in whole.shape)
    program = dataclasses.replace(whole, shape=shape)
    programs = np.arange(GRID).reshape([GRID, *(1 for _ in shape)])
    array = ordinary(program.rng, dtype, 2 * MARGIN)
    pointer = f"p{len(program.arrays)}"
    program.arrays.append(array)
    step = draw(st.integers(-5, 40))
    place, offsets = f"pid * {program.scalar(step)}", np.zeros((GRID, *shape), np.int64)
    offsets += programs * step
    mask_texts, mask = [], np.ones((GRID, *shape), bool)
    dense = dense_strides(program.rng, shape)
    for axis, size in enumerate(shape):
        text, index = program.indices(axis)
        shift = draw(st.integers(0, 40))
        if draw(st.booleans()):
            ring = draw(st.integers(1, 2 * size))
            text = f"(({text} + {program.scalar(shift)} + pid) % {program.scalar(ring)})"
            index = (index + shift + programs) % ring
        stride = draw(st.sampled_from([0, 1, 1, 2, -1, -2, 7, -7, dense[axis], dense[axis]]))
        place += f" + {text} * {program.stride(stride)}" if stride != 1 else f" + {text}"
        offsets = offsets + index * stride
        bound = draw(st.none() | st.integers(-1, size + 1))
        if bound is not None:
            text, index = program.indices(axis)
            symbol = draw(st.sampled_from(["<", "<", "<=", ">="]))
            mask_texts.append(f"({text} {symbol} {program.scalar(bound)} - pid)")
            limit = bound - programs
            mask &= {"<": index < limit, "<=": index <= limit, ">=": index >= limit}[symbol]
    values = array[MARGIN + offsets]
    if not mask_texts:
        return program.name(Node(f"tl.load({pointer} + ({place}))", values, dtype))
    other = draw(st.sampled_from([None, 1]))
    access = f"tl.load({pointer} + ({place}), mask={' & '.join(mask_texts)}"
    access += ")" if other is None else f", other={other})"
    return program.name(Node(access, np.where(mask, values, np.array(other or 0, dtype)), dtype))


def binary(symbol: str, left: Node, right: Node) -> Node:
    """Both of one dtype; divisors become positive first."""
    a, b, right_text = left.value, right.value, right.text
    with np.errstate(all="ignore"):
        if symbol in ("//", "%"):
            b = np.maximum(b, np.array(1, b.dtype))
            right_text = f"tl.maximum({right_text}, 1)"
            quotient = a // b
            quotient = quotient + ((a % b != 0) & (a < 0)).astype(a.dtype)
            value = quotient if symbol == "//" else a - quotient * b
        else:
            value = eval(f"a {symbol} b", {}, {"a": a, "b": b})
    return Node(f"({left.text} {symbol} {right_text})", value.astype(left.dtype), left.dtype)


@dataclasses.dataclass(frozen=True)
class Maker:
    """What a kind of node is made from."""

    draw: st.DrawFn
    program: Program
    dtype: str
    depth: int

    def operand(self, dtype: str | None = None) -> Node:
        """A tree one lower."""
        return self.draw(trees(self.program, dtype or self.dtype, self.depth - 1))

    def chosen(self, values: tuple[str, ...] | list[str]) -> str:
        return self.draw(st.sampled_from(values))


KINDS: list[Callable[[Maker], Node]] = []  # each as often as its weight says


def kind(weight: int = 1) -> Callable[[Callable[[Maker], Node]], Callable[[Maker], Node]]:
    """Makes a function a kind of node; it gives a node of the maker's dtype."""

    def add(make: Callable[[Maker], Node]) -> Callable[[Maker], Node]:
        KINDS.extend([make] * weight)
        return make

    return add


@st.composite
def trees(draw: st.DrawFn, program: Program, dtype: str, depth: int) -> Node:
    """A tensor of the program's shape, or one that broadcasts to it."""
    if depth == 0 or draw(st.integers(0, 19)) == 0:
        return draw(loads(program, dtype))
    node = draw(st.sampled_from(KINDS))(Maker(draw, program, dtype, depth))
    return program.name(node) if draw(st.booleans()) else node


@kind(weight=2)
def _binary(maker: Maker) -> Node:
    integers = maker.dtype not in FLOATS
    symbol = maker.chosen([s for s, only in BINARY.items() if integers or not only])
    return binary(symbol, maker.operand(), maker.operand())


@kind()
def _function(maker: Maker) -> Node:
    name, a, b = maker.chosen(sorted(FUNCTIONS)), maker.operand(), maker.operand()
    return Node(f"{name}({a.text}, {b.text})", FUNCTIONS[name](a.value, b.value), maker.dtype)


@kind()
def _where(maker: Maker) -> Node:
    compared = maker.chosen(DTYPES)
    left, right = maker.operand(compared), maker.operand(compared)
    a, b, symbol = maker.operand(), maker.operand(), maker.chosen(COMPARISONS)
    condition = eval(f"a {symbol} b", {}, {"a": left.value, "b": right.value})
    text = f"tl.where({left.text} {symbol} {right.text}, {a.text}, {b.text})"
    return Node(text, np.where(condition, a.value, b.value), maker.dtype)


@kind()
def _reduce(maker: Maker) -> Node:
    return reduction(maker.draw, maker.program, maker.operand())


@kind()
def _cast(maker: Maker) -> Node:
    return conversion(maker.operand(maker.chosen(DTYPES)), maker.dtype)


@kind()
def _unary(maker: Maker) -> Node:
    a, is_float = maker.operand(), maker.dtype in FLOATS
    with np.errstate(all="ignore"):
        value = np.abs(a.value) if is_float else -a.value
    return Node(f"tl.abs({a.text})" if is_float else f"(-{a.text})", value, maker.dtype)


def common(a: str, b: str) -> str:
    """The type in which two integer types meet: the wider; of one width the unsigned one."""
    widths = np.dtype(a).itemsize, np.dtype(b).itemsize
    if widths[0] != widths[1]:
        return a if widths[0] > widths[1] else b
    return a if a.startswith("u") else b


@kind()
def _mixed(maker: Maker) -> Node:
    """Integers of two types, signed and unsigned."""
    types = [dtype for dtype in DTYPES if dtype not in FLOATS]
    a, b = maker.operand(maker.chosen(types)), maker.operand(maker.chosen(types))
    out, symbol = common(a.dtype, b.dtype), maker.chosen(["+", "-", "*", "&", "|", "^"])
    mixed = binary(symbol, *(Node(n.text, cast(n.value, out), out) for n in (a, b)))
    return conversion(mixed, maker.dtype)


@kind()
def _shift(maker: Maker) -> Node:
    """The left side's own sign says what comes in from the left."""
    types = [dtype for dtype in DTYPES if dtype not in FLOATS]
    a, b = maker.operand(maker.chosen(types)), maker.operand(maker.chosen(types))
    amount, out = b.value & np.array(7, b.dtype), common(a.dtype, b.dtype)
    symbol = maker.chosen(["<<", ">>"])
    if symbol == "<<":
        value = np.left_shift(cast(a.value, out), cast(amount, out))
    else:
        wide = "uint64" if a.dtype.startswith("u") else "int64"
        value = np.right_shift(cast(a.value, wide), cast(amount, wide))
    node = Node(f"({a.text} {symbol} ({b.text} & 7))", cast(value, out), out)
    return conversion(node, maker.dtype)


@kind()
def _extremum_with_index(maker: Maker) -> Node:
    """Of floats with some NaN, which lose; integers ask for the index."""
    is_float = maker.dtype in ("float32", "float64")
    a = maker.operand(maker.dtype if is_float else maker.chosen(["float32", "float64"]))
    limit = maker.chosen(["-1000", "0", "3", "1000"])
    shape = np.broadcast_shapes(a.shape, maker.program.shape)
    numbers = np.broadcast_to(np.where(a.value > int(limit), np.nan, a.value), (GRID, *shape))
    name, place = maker.chosen(["max", "min"]), maker.draw(st.integers(0, len(shape) - 1))
    best = {"max": np.fmax, "min": np.fmin}[name].reduce(numbers, place + 1, keepdims=True)
    is_best = (numbers == best) | (np.isnan(numbers) & np.isnan(best))
    a = maker.program.name(a)
    text = f"tl.broadcast_to(tl.where({a.text} > {limit}, float('nan'), {a.text}), {shape})"
    pair = f"tl.{name}({text}, {place}, return_indices=True, keep_dims=True)"
    if is_float:
        return Node(f"{pair}[0]", cast(best, maker.dtype), maker.dtype)
    index = is_best.argmax(place + 1, keepdims=True).astype("int32")
    return conversion(Node(f"{pair}[1]", index, "int32"), maker.dtype)


@kind()
def _loop(maker: Maker) -> Node:
    return loop(maker.draw, maker.program, maker.operand(), maker.operand())


@kind()
def _share(maker: Maker) -> Node:
    """A value with two users."""
    a = maker.program.name(maker.operand())
    return binary("+", binary("-", a, maker.operand()), a)


def reduction(draw: st.DrawFn, program: Program, a: Node) -> Node:
    """A reduction along one axis, or all, that keeps its dimensions."""
    shape = np.broadcast_shapes(a.shape, program.shape)
    name = draw(st.sampled_from(["sum", "max", "min"]))
    if name == "sum" and a.dtype in FLOATS:
        a = conversion(conversion(a, "int32"), a.dtype)
    value = np.broadcast_to(a.value, (GRID, *shape))
    place = draw(st.sampled_from([None, *range(len(shape))]))
    axis = tuple(range(1, len(shape) + 1)) if place is None else place + 1
    if name == "sum":
        wide = np.float64 if a.dtype in FLOATS else np.int64
        result = cast(value.astype(wide).sum(axis, keepdims=True), a.dtype)
    else:
        result = {"max": np.fmax, "min": np.fmin}[name].reduce(value, axis, keepdims=True)
    whole = f"tl.broadcast_to({a.text}, {shape})"
    if name == "sum" and a.dtype == "float16":  # a GPU adds in fp16, which rounds above 2048
        whole = f"{whole}.to(tl.float32)"
    return Node(f"tl.{name}({whole}, {place}, keep_dims=True).to(tl.{a.dtype})", result, a.dtype)


def conversion(a: Node, dtype: str) -> Node:
    """A cast; floats become integers by way of a range in which that is defined."""
    text, value = a.text, a.value
    if a.dtype in FLOATS and dtype not in FLOATS:
        text = f"tl.where(tl.abs({text}) < 100, {text}, 1)"
        value = np.where(np.abs(value) < 100, value, np.array(1, value.dtype))
        if dtype.startswith("u"):
            text, value = f"tl.abs({text})", np.abs(value)
    return Node(f"({text}).to(tl.{dtype})", cast(value, dtype), dtype)


def loop(draw: st.DrawFn, program: Program, a: Node, b: Node) -> Node:
    """A loop that carries a tensor: x = x + b or x = max(x, b - i), n times."""
    count, shape = draw(st.integers(0, 3)), np.broadcast_shapes(a.shape, b.shape)
    name = f"x{len(program.lines)}"
    program.lines += [
        f"{name} = tl.broadcast_to({a.text}, {shape})",
        f"for i in range({program.scalar(count)}):",
    ]
    value = np.broadcast_to(a.value, (GRID, *shape))
    kind = draw(st.sampled_from(["add", "max"]))
    step = f"{name} + {b.text}" if kind == "add" else f"tl.maximum({name}, {b.text})"
    program.lines.append(f"    {name} = {step}")
    with np.errstate(all="ignore"):
        for _ in range(count):
            value = value + b.value if kind == "add" else np.fmax(value, b.value)
    return Node(name, value.astype(a.dtype), a.dtype)


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A program, what it stores, and where: element i lies at `start + pid * span + i * strides`.

    `shared`: its arrays are views of one buffer, so the compiler must take them for overlapping.
    """

    program: Program
    result: Node
    strides: list[int]
    stride_texts: list[str]
    shared: bool

    @property
    def start(self) -> int:
        """How many elements lie before the first one."""
        return sum(-s * (n - 1) for s, n in self._dimensions() if s < 0)

    @property
    def span(self) -> int:
        """Elements from the lowest to the highest, both included."""
        return 1 + sum(abs(s) * (n - 1) for s, n in self._dimensions())

    def _dimensions(self) -> list[tuple[int, int]]:
        return list(zip(self.strides, self.program.shape, strict=True))

    def places(self) -> np.ndarray:
        """Where each element of each program is stored in the output."""
        shape = (GRID, *self.program.shape)
        steps = (self.span, *self.strides)
        return self.start + sum(
            index * step for index, step in zip(np.indices(shape), steps, strict=True)
        )

    def source(self) -> str:
        """The kernel."""
        program, shape = self.program, self.program.shape
        pointers = [f"p{n}" for n in range(len(program.arrays))]
        parameters = ", ".join([*pointers, "out_ptr", *program.scalars])
        place = f"pid * {self.span}"
        for axis, text in enumerate(self.stride_texts):
            place += f" + {program.indices(axis)[0]} * {text}"
        lines = [
            "pid = tl.program_id(0)",
            *program.lines,
            f"result = tl.broadcast_to({self.result.text}, {shape})",
            f"tl.store(out_ptr + ({place}), result)",
        ]
        body = "".join(f"    {line}\n" for line in lines)
        return f"\n@proton.jit\ndef kernel({parameters}):\n{body}"


@st.composite
def programs(draw: st.DrawFn) -> Drawn:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)))
    while np.prod(shape) > MAX_ELEMENTS:
        shape = shape[:-1]
    program = Program(rng, shape)
    result = draw(trees(program, draw(st.sampled_from(DTYPES)), draw(st.integers(2, 4))))
    strides = dense_strides(program.rng, shape)
    texts = [program.stride(stride) for stride in strides]
    return Drawn(program, result, strides, texts, shared=draw(st.integers(0, 3)) == 0)
