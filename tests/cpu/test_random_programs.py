"""Random kernels against an evaluation of the same expression in numpy.

hypothesis draws an expression tree. `text` writes it as a kernel, `value` computes it with
numpy on whole tensors: nothing of Proton takes part in the reference. Results are compared bit
for bit: floats are summed as integers of a size that makes every order of a sum exact.
"""

import dataclasses
import os

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cpu.harness import FLOATS, assert_number, kernels_of, ordinary

PROGRAMS = int(os.environ.get("PROTON_TEST_PROGRAMS", "500"))
DTYPES = ("int8", "int32", "int64", "uint8", "uint32", "float16", "float32", "float64")
SIZES = (1, 2, 4, 8, 16, 32)
GRID = 2
MARGIN = 2048

# operator -> whether it is for integers only
BINARY = {
    "+": False, "-": False, "*": False, "&": True, "|": True, "^": True, "//": True, "%": True,
}  # fmt: skip
FUNCTIONS = {"tl.maximum": np.fmax, "tl.minimum": np.fmin}
KINDS = ("binary", "binary", "function", "where", "reduce", "cast", "unary", "loop", "share")
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
    for axis, size in enumerate(shape):
        text, index = program.indices(axis)
        shift = draw(st.integers(0, 40))
        if draw(st.booleans()):
            ring = draw(st.integers(1, 2 * size))
            text = f"(({text} + {program.scalar(shift)} + pid) % {program.scalar(ring)})"
            index = (index + shift + programs) % ring
        stride = draw(st.sampled_from([0, 1, 1, 2, -1, 7]))
        place += f" + {text} * {program.scalar(stride)}" if stride != 1 else f" + {text}"
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


@st.composite
def trees(draw: st.DrawFn, program: Program, dtype: str, depth: int) -> Node:
    """A tensor of the program's shape, or one that broadcasts to it."""
    if depth == 0 or draw(st.integers(0, 19)) == 0:
        return draw(loads(program, dtype))

    def operand(kind: str = dtype) -> Node:
        return draw(trees(program, kind, depth - 1))

    match draw(st.sampled_from(KINDS)):
        case "binary":
            integers = dtype not in FLOATS
            symbols = [s for s, only in BINARY.items() if integers or not only]
            symbol = draw(st.sampled_from(symbols))
            node = binary(symbol, operand(), operand())
        case "function":
            name, (a, b) = draw(st.sampled_from(sorted(FUNCTIONS))), (operand(), operand())
            value = FUNCTIONS[name](a.value, b.value)
            node = Node(f"{name}({a.text}, {b.text})", value, dtype)
        case "where":
            kind = draw(st.sampled_from(DTYPES))
            left, right, a, b = operand(kind), operand(kind), operand(), operand()
            symbol = draw(st.sampled_from(COMPARISONS))
            condition = eval(f"a {symbol} b", {}, {"a": left.value, "b": right.value})
            text = f"tl.where({left.text} {symbol} {right.text}, {a.text}, {b.text})"
            value = np.where(condition, a.value, b.value)
            node = Node(text, value, dtype)
        case "reduce":
            node = reduction(draw, program, operand())
        case "cast":
            node = conversion(operand(draw(st.sampled_from(DTYPES))), dtype)
        case "unary":
            a = operand()
            with np.errstate(all="ignore"):
                value = np.abs(a.value) if dtype in FLOATS else -a.value
            text = f"tl.abs({a.text})" if dtype in FLOATS else f"(-{a.text})"
            node = Node(text, value, dtype)
        case "loop":
            node = loop(draw, program, operand(), operand())
        case _:
            a = program.name(operand())
            node = binary("+", binary("-", a, operand()), a)
    return program.name(node) if draw(st.booleans()) else node


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


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, Node, bool]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)))
    while np.prod(shape) > 4096:
        shape = shape[:-1]
    program = Program(rng, shape)
    result = draw(trees(program, draw(st.sampled_from(DTYPES)), draw(st.integers(2, 4))))
    return program, result, draw(st.integers(0, 3)) == 0


def source_of(program: Program, result: Node) -> str:
    pointers = [f"p{n}" for n in range(len(program.arrays))]
    parameters = ", ".join([*pointers, "out_ptr", *program.scalars])
    place, size = f"pid * {np.prod(program.shape)}", 1
    for axis in reversed(range(len(program.shape))):
        place += f" + {program.indices(axis)[0]} * {size}"
        size *= program.shape[axis]
    lines = [
        "pid = tl.program_id(0)",
        *program.lines,
        f"result = tl.broadcast_to({result.text}, {program.shape})",
        f"tl.store(out_ptr + ({place}), result)",
    ]
    body = "".join(f"    {line}\n" for line in lines)
    return f"\n@proton.jit\ndef kernel({parameters}):\n{body}"


def in_one_buffer(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Copies that are views of one array: the compiler must take them for overlapping."""
    pool = np.zeros(sum(array.nbytes for array in arrays) + 8 * len(arrays), np.uint8)
    views, place = [], 0
    for array in arrays:
        view = pool[place : place + array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        views.append(view)
        place += -(-array.nbytes // 8) * 8
    return views


def check(program: Program, result: Node, shared: bool) -> None:
    source = source_of(program, result)
    shape = (GRID, *program.shape)
    out = np.zeros(shape, result.dtype)
    arrays = [*program.arrays, out]
    *inputs, out = in_one_buffer(arrays) if shared else arrays
    arguments = [array[MARGIN:] for array in inputs]
    kernels_of(source).kernel[(GRID,)](*arguments, out, *program.scalars.values())
    want = np.ascontiguousarray(np.broadcast_to(result.value, shape))
    try:
        assert_number(out, want, result.dtype)
    except AssertionError as problem:
        raise AssertionError(f"{problem}\nwith {program.scalars} in\n{source}") from None


@settings(
    max_examples=PROGRAMS,
    deadline=None,
    derandomize=False,
    print_blob=True,
    database=None,
    phases=[Phase.generate],  # a smaller program is seldom clearer, and costs minutes
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_random_programs(drawn: tuple[Program, Node, bool]) -> None:
    check(*drawn)
