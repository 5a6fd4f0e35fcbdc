"""The passes of the ttir stage keep what programs compute: random programs, run before and after.

`Machine` runs IR on numpy arrays. Floats are exact there (Python integers in object arrays), so
that a sum in another order is the same sum; integers wrap around as in the hardware; a pointer
is an i64 index into one memory. `Programs` writes random programs as MLIR text.
"""

import functools
import itertools
import operator
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import proton.language as tl
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.walk import ops_named
from proton.frontend import Signature, build_module
from proton.language.function import DeviceFunction
from proton.passes import Pipeline, parse_pipeline
from proton.transforms.records.strip_mine import strip_mine
from proton.transforms.tile.combine import Combine
from proton.transforms.tile.loop_unroll import LoopUnroll
from proton.transforms.tile.reorder_broadcast import ReorderBroadcast
from tests.draws import examples

PASSES = ("tt-combine", "tt-reorder-broadcast", "tt-loop-unroll")
STAGE = (
    "canonicalize,tt-combine,canonicalize,tt-reorder-broadcast,canonicalize,cse,"
    "loop-invariant-code-motion,tt-loop-unroll,tt-combine,canonicalize,cse"
)
POINTER = tl.pointer_type(tl.float32)
assert (Combine.name, ReorderBroadcast.name, LoopUnroll.name) == PASSES

# The machine

DTYPES = {"i1": bool, "i8": np.int8, "i32": np.int32, "i64": np.int64, "index": np.int64}
MEMORY_SIZE = 97  # addresses wrap around in it
UNDEFINED = 12345  # what a masked load gives where it has no `other`


def dtype_of(type_: Any) -> Any:
    element = str(getattr(type_, "element_type", type_))
    if element.startswith("!tt.ptr"):
        return np.int64
    return DTYPES.get(element, object)


def shape_of(type_: Any) -> tuple[int, ...]:
    return tuple(type_.shape) if hasattr(type_, "shape") else ()


@functools.lru_cache(1024)
def kind_of(type_: Any) -> tuple[tuple[int, ...], Any]:
    """(shape, dtype) of a type."""
    return shape_of(type_), np.dtype(dtype_of(type_))


def as_value(value: Any, kind: tuple[tuple[int, ...], Any]) -> Any:
    """An array of a kind, of what is one already or can be."""
    shape, dtype = kind
    array = np.asarray(value)
    array = array if array.dtype is dtype else array.astype(dtype)
    return array if array.shape == shape else np.broadcast_to(array, shape)


def unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function on the same bits without a sign."""

    def apply(a: Any, b: Any) -> Any:
        plain = a.dtype.str.replace("i", "u")
        return function(a.view(plain), b.view(plain)).astype(a.dtype)

    return apply


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.andi": operator.and_,
    "arith.xori": operator.xor,
    "arith.ori": operator.or_,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": unsigned(np.maximum),
    "arith.minui": unsigned(np.minimum),
    "arith.divui": unsigned(operator.floordiv),
    "arith.remui": unsigned(operator.mod),
    "arith.addf": operator.add,
    "arith.subf": operator.sub,
    "arith.mulf": operator.mul,
    "arith.negf": operator.neg,
    "math.absf": abs,
    "arith.select": np.where,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a,
    "arith.trunci": lambda a: a,
    "arith.index_cast": lambda a: a,
    "tt.splat": lambda a: a,
    "tt.broadcast": lambda a: a,
    "tt.addptr": lambda p, offset: p + offset.astype(np.int64),
}
SIGNED = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
COMPARE_INTEGERS = (*SIGNED, *(unsigned(f) for f in SIGNED[2:]))
COMPARE_FLOATS = {1: operator.eq, 2: operator.gt, 3: operator.ge, 4: operator.lt, 5: operator.le}


class Plan:
    """A block, read once: loops run it in each iteration. Values have numbers."""

    def __init__(self, block: Any, numbers: dict[Any, int]) -> None:
        def made(values: Any) -> list[tuple[int, Any]]:
            return [(numbers.setdefault(v, len(numbers)), kind_of(v.type)) for v in values]

        self.arguments = made(block.arguments)
        self.steps: list[tuple[Any, list[int], list[tuple[int, Any]]]] = []
        self.bodies: dict[Any, Plan] = {}  # of loops
        for op in block.operations:
            op = op.operation
            operands = [numbers[value] for value in op.operands]
            if op.name in ("scf.yield", "func.return"):
                self.given = operands
                return
            if op.name == "scf.for":
                self.bodies[op] = Plan(op.regions[0].blocks[0], numbers)
            self.steps.append((op, operands, made(op.results)))


class Machine:
    """Runs the one function of a module."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory.copy()
        self.values: dict[int, Any] = {}

    def call(self, module: Any, arguments: list[Any]) -> list[Any]:
        block = module.body.operations[0].regions[0].blocks[0]
        with np.errstate(over="ignore"):
            return self.run(Plan(block, {}), arguments)

    def run(self, plan: Plan, arguments: list[Any]) -> list[Any]:
        """Runs a block; the operands of its terminator."""
        values = self.values
        for (number, kind), value in zip(plan.arguments, arguments, strict=True):
            values[number] = as_value(value, kind)
        for op, operands, results in plan.steps:
            given = [values[number] for number in operands]
            body = plan.bodies.get(op) if plan.bodies else None
            found = self.step(op, given) if body is None else self.loop(op, body, *given)
            for (number, kind), value in zip(results, found, strict=True):
                values[number] = as_value(value, kind)
        return [values[number] for number in plan.given]

    def step(self, op: Any, operands: list[Any]) -> list[Any]:
        """The results of one op."""
        attributes = op.attributes
        if op.name in ELEMENTWISE:
            return [ELEMENTWISE[op.name](*operands)]
        match op.name:
            case "arith.constant":
                return [constant(attributes["value"])]
            case "arith.cmpi":
                return [COMPARE_INTEGERS[attributes["predicate"].value](*operands)]
            case "arith.cmpf":
                return [COMPARE_FLOATS[attributes["predicate"].value](*operands)]
            case "tt.make_range":
                return [np.arange(attributes["start"].value, attributes["end"].value)]
            case "tt.expand_dims":
                return [np.expand_dims(operands[0], attributes["axis"].value)]
            case "tt.reshape":
                return [operands[0].reshape(shape_of(op.results[0].type))]
            case "tt.trans":
                return [operands[0].transpose(list(attributes["order"]))]
            case "tt.dot":
                return [operands[0] @ operands[1] + operands[2]]
            case "tt.load":
                return [self.load(*operands)]
            case "tt.store":
                return self.store(*operands)
        raise NotImplementedError(op.name)

    def load(self, pointer: Any, mask: Any = True, other: Any = UNDEFINED) -> Any:
        found = np.asarray(self.memory[pointer % MEMORY_SIZE], dtype=object)  # of any size
        return np.where(mask, found, other)

    def store(self, pointer: Any, value: Any, mask: Any = True) -> list[Any]:
        places = (pointer % MEMORY_SIZE).ravel()
        chosen = np.broadcast_to(mask, pointer.shape).ravel()
        for place, item, is_chosen in zip(places, value.ravel(), chosen, strict=True):
            if is_chosen:  # one by one: places may repeat
                self.memory[place] = item
        return []

    def loop(
        self, op: Any, body: Plan, lower: Any, upper: Any, step: Any, *carried: Any
    ) -> list[Any]:
        compare = unsigned(operator.lt) if "unsignedCmp" in op.attributes else operator.lt
        index, values = lower, list(carried)
        while compare(index, upper):
            values = self.run(body, [index, *values])
            index = (index + step).astype(lower.dtype)
        return values


def constant(attribute: Any) -> Any:
    if not isinstance(attribute, ir.DenseElementsAttr):
        value = ir.IntegerAttr(attribute).value if "i1" in str(attribute.type) else attribute.value
    elif attribute.is_splat:
        return constant(attribute.get_splat_value())
    else:
        value = list(attribute)
    return np.array(value).astype(int) if isinstance(value, float) else np.array(value)


# Random programs

Type = tuple[tuple[int, ...], str]  # shape, element
ARGUMENTS: tuple[tuple[str, Type], ...] = (
    ("%p", ((), "p")),
    ("%q", ((4, 8), "p")),
    ("%a", ((), "i32")),
    ("%b", ((), "i32")),
    ("%w", ((), "i64")),
    ("%c", ((), "i1")),
    ("%x", ((), "f32")),
    ("%r", ((4, 1), "i32")),
    ("%y", ((1, 8), "f32")),
    ("%z", ((4, 8), "f32")),
    ("%m", ((4, 8), "i1")),
)
SHAPES = ((), (), (4,), (8,), (4, 1), (1, 8), (4, 8), (4, 8), (8, 4))
OFFSETS = (-5, 0, 1, 3, 40, 2**31 - 1, -(2**31))


def text_of(type_: Type) -> str:
    shape, element = type_
    element = "!tt.ptr<f32>" if element == "p" else element
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>" if shape else element


class Programs:
    """One random program: `value` writes the ops that make a value of a type."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0
        self.lines: list[str] = []
        self.pool: list[tuple[str, Type]] = list(ARGUMENTS)

    def program(self) -> str:
        for _ in range(self.random.randint(1, 4)):
            self.statement(2)
        results = [self.type("f32"), self.type("i32"), self.type("p")]
        names = [self.value(type_, 4) for type_ in results]
        types = ", ".join(map(text_of, results))
        parameters = ", ".join(f"{name}: {text_of(type_)}" for name, type_ in ARGUMENTS)
        body = "\n  ".join([*self.lines, f"return {', '.join(names)} : {types}"])
        return f"func.func @f({parameters}) -> ({types}) {{\n  {body}\n}}\n"

    def type(self, element: str) -> Type:
        return self.random.choice(SHAPES), element

    def emit(self, text: str, type_: Type) -> str:
        self.count += 1
        self.lines.append(f"%{self.count} = {text}")
        self.pool.append((f"%{self.count}", type_))
        return f"%{self.count}"

    def statement(self, depth: int) -> None:
        if depth and self.random.random() < 0.4:
            self.loop(depth - 1)
        else:
            shape = self.random.choice(SHAPES)
            operands = [((), "p"), ((), "f32"), ((), "i1")][: self.random.choice((2, 3))]
            types = [(shape, element) for _, element in operands]
            names = [self.value(type_, 3) for type_ in types]
            segments = "1, 1, 1" if len(names) == 3 else "1, 1, 0"
            self.lines.append(
                f'"tt.store"({", ".join(names)}) {{cache = "", evict = "", '
                f"operandSegmentSizes = array<i32: {segments}>}} : "
                f"({', '.join(map(text_of, types))}) -> ()"
            )

    def loop(self, depth: int) -> None:
        """A loop of at most ten iterations, with up to two carried values."""
        constants = [self.random.randint(-3, 6), self.random.randint(-3, 6)]
        bounds = [self.emit(f"arith.constant {n} : i32", ((), "i32")) for n in constants]
        if self.random.random() < 0.5:  # hide a bound from the pass
            bounds[1] = self.emit(f"arith.select %c, {bounds[0]}, {bounds[1]} : i32", ((), "i32"))
        step = self.emit(f"arith.constant {self.random.randint(1, 3)} : i32", ((), "i32"))
        elements = self.random.choices(("f32", "p"), k=self.random.randint(0, 2))
        types = [self.type(element) for element in elements]
        initial = [self.value(type_, 2) for type_ in types]
        self.count += 1
        index, outside = f"%i{self.count}", list(self.pool)
        carried = [f"%k{self.count}_{number}" for number in range(len(types))]
        result = f"%f{self.count}"
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(carried, initial, strict=True))
        shown = ", ".join(map(text_of, types))
        self.lines.append(
            (f"{result}:{len(types)} = " if types else "")
            + f"scf.for {index} = {bounds[0]} to {bounds[1]} step {step} "
            + (f"iter_args({pairs}) -> ({shown}) " if types else "")
            + ": i32 {"
        )
        self.pool += [(index, ((), "i32")), *zip(carried, types, strict=True)]
        self.statement(depth)
        yielded = [self.value(type_, 3) for type_ in types]
        if types:
            self.lines.append(f"scf.yield {', '.join(yielded)} : {shown}")
        factor = self.random.randint(1, 4)
        self.lines.append(f"}} {{tt.loop_unroll_factor = {factor} : i32}}" if factor > 1 else "}")
        self.pool = outside
        self.pool += [(f"{result}#{number}", type_) for number, type_ in enumerate(types)]

    def value(self, type_: Type, depth: int) -> str:
        """The name of a value of the type, old or new."""
        shape, element = type_
        known = [name for name, known_type in self.pool if known_type == type_]
        if known and self.random.random() < (0.25 if depth else 0.9):
            return self.random.choice(known)
        if depth == 0:
            return self.leaf(type_)
        if shape and self.random.random() < 0.45:
            return self.reshaped(type_, depth - 1)
        makers = {"i1": self.bit, "p": self.pointer, "f32": self.float}
        return makers.get(element, self.integer)(type_, depth - 1)

    def leaf(self, type_: Type) -> str:
        shape, element = type_
        if element == "p":
            return self.splat("%p", type_) if shape else "%p"
        if element == "i32" and len(shape) == 1 and self.random.random() < 0.5:
            start = self.random.randint(-2, 2)
            attributes = f"{{end = {start + shape[0]} : i32, start = {start} : i32}}"
            return self.emit(f'"tt.make_range"() {attributes} : () -> {text_of(type_)}', type_)
        number = {
            "i1": self.random.choice(("true", "false")),
            "f32": f"{self.random.choice((-3, 0, 0, 2))}.0",
        }.get(element, str(self.random.choice(OFFSETS)))
        if shape and self.random.random() < 0.5:
            return self.emit(f"arith.constant dense<{number}> : {text_of(type_)}", type_)
        typed = number if element == "i1" else f"{number} : {element}"
        name = self.emit(f"arith.constant {typed}", ((), element))
        return self.splat(name, type_) if shape else name

    def splat(self, scalar: str, type_: Type) -> str:
        source = text_of(((), type_[1]))
        return self.emit(f'"tt.splat"({scalar}) : ({source}) -> {text_of(type_)}', type_)

    def reshaped(self, type_: Type, depth: int) -> str:
        """A change of shape that ends in the type."""
        shape, element = type_
        axis = self.random.randrange(len(shape))
        attributes, kind = "", self.random.choice(("splat", "broadcast", "view", "trans"))
        if kind == "splat":
            return self.splat(self.value(((), element), depth), type_)
        source = shape
        if kind == "broadcast":
            source = (*shape[:axis], 1, *shape[axis + 1 :])
        elif kind == "trans":
            order = self.random.sample(range(len(shape)), len(shape))
            source = tuple(shape[order.index(d)] for d in range(len(shape)))
            attributes = f"{{order = array<i64: {', '.join(map(str, order))}>}} "
        elif shape[axis] == 1:
            kind, source = "expand_dims", shape[:axis] + shape[axis + 1 :]
            attributes = f"{{axis = {axis} : i32}} "
        else:
            kind, source = "reshape", self.random.choice((shape, shape[::-1]))
        name = self.value((source, element), depth)
        types = f"({text_of((source, element))}) -> {text_of(type_)}"
        return self.emit(f'"tt.{kind}"({name}) {attributes}: {types}', type_)

    def binary(self, name: str, type_: Type, depth: int) -> str:
        left, right = self.value(type_, depth), self.value(type_, depth)
        return self.emit(f"{name} {left}, {right} : {text_of(type_)}", type_)

    def select(self, type_: Type, depth: int) -> str:
        shape = self.random.choice(((), type_[0]))
        mask = self.value((shape, "i1"), depth)
        left, right = self.value(type_, depth), self.value(type_, depth)
        condition = f"{text_of((shape, 'i1'))}, " if shape else ""
        text = f"arith.select {mask}, {left}, {right} : {condition}{text_of(type_)}"
        return self.emit(text, type_)

    def bit(self, type_: Type, depth: int) -> str:
        shape, kind = type_[0], self.random.randrange(4)
        if kind == 0:
            return self.binary("arith.andi", type_, depth)
        if kind == 1:
            return self.leaf(type_)
        element, op = ("f32", "arith.cmpf olt") if kind == 2 else ("i32", "arith.cmpi sle")
        left, right = (self.value((shape, element), depth) for _ in range(2))
        return self.emit(f"{op}, {left}, {right} : {text_of((shape, element))}", type_)

    def integer(self, type_: Type, depth: int) -> str:
        shape, element = type_
        name = self.random.choice(("arith.addi", "arith.subi", "arith.muli", "select", "ext"))
        if name == "select":
            return self.select(type_, depth)
        if name == "ext" and element == "i64":
            source = (shape, "i32")
            value = self.value(source, depth)
            return self.emit(f"arith.extsi {value} : {text_of(source)} to {text_of(type_)}", type_)
        return self.binary("arith.addi" if name == "ext" else name, type_, depth)

    def pointer(self, type_: Type, depth: int) -> str:
        offset = (type_[0], self.random.choice(("i32", "i64")))
        base, moved = self.value(type_, depth), self.value(offset, self.random.choice((0, depth)))
        types = f"({text_of(type_)}, {text_of(offset)}) -> {text_of(type_)}"
        return self.emit(f'"tt.addptr"({base}, {moved}) : {types}', type_)

    def float(self, type_: Type, depth: int) -> str:
        kind = self.random.choice(("arith.addf", "arith.mulf", "negf", "select", "load", "dot"))
        if kind == "negf":
            return self.emit(f"arith.negf {self.value(type_, depth)} : {text_of(type_)}", type_)
        if kind == "select":
            return self.select(type_, depth)
        if kind == "load":
            return self.load(type_, depth)
        if kind == "dot" and len(type_[0]) == 2:
            return self.product(type_, depth)
        return self.binary("arith.addf" if kind == "dot" else kind, type_, depth)

    def load(self, type_: Type, depth: int) -> str:
        """A load of one to three operands, maybe under a select with its mask."""
        kinds = [(type_[0], "p"), (type_[0], "i1"), type_][: self.random.randint(1, 3)]
        names = [self.value(kind, depth) for kind in kinds]
        segments = ", ".join(str(int(number < len(kinds))) for number in range(3))
        volatile = "true" if self.random.random() < 0.1 else "false"
        loaded = self.emit(
            f'"tt.load"({", ".join(names)}) {{cache = "", evict = "", '
            f"operandSegmentSizes = array<i32: {segments}>, volatile = {volatile}}} : "
            f"({', '.join(map(text_of, kinds))}) -> {text_of(type_)}",
            type_,
        )
        if len(names) == 1 or self.random.random() < 0.3:
            return loaded
        other, shape = self.value(type_, self.random.choice((0, depth))), type_[0]
        condition = f"{text_of(kinds[1])}, " if shape else ""
        text = f"arith.select {names[1]}, {loaded}, {other} : {condition}{text_of(type_)}"
        return self.emit(text, type_)

    def product(self, type_: Type, depth: int) -> str:
        """A dot, mostly from zero and mostly under a sum."""
        rows, columns = type_[0]
        types = [((rows, 4), "f32"), ((4, columns), "f32"), type_]
        names = [self.value(kind, min(depth, 1)) for kind in types[:2]]
        if self.random.random() < 0.7:
            names.append(self.emit(f"arith.constant dense<0.0> : {text_of(type_)}", type_))
        else:
            names.append(self.value(type_, depth))
        signature = f"({', '.join(map(text_of, types))}) -> {text_of(type_)}"
        precision = '{inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32}'
        dot = self.emit(f'"tt.dot"({", ".join(names)}) {precision} : {signature}', type_)
        if self.random.random() < 0.2:
            return dot
        pair = [dot, self.value(type_, depth)]
        self.random.shuffle(pair)
        return self.emit(f"arith.addf {', '.join(pair)} : {text_of(type_)}", type_)


# Running


def random_arguments(random: Random) -> list[Any]:
    def item(element: str) -> int:
        if element == "i1":
            return random.randrange(2)
        return random.randint(-9, 9)

    return [
        np.array([item(element) for _ in range(int(np.prod(shape)))]).reshape(shape)
        for _, (shape, element) in ARGUMENTS
    ]


def outcome(module: Any, arguments: list[Any]) -> list[Any]:
    """What a program returns, and the memory that it leaves."""
    machine = Machine(np.array([(i * 7) % 11 - 5 for i in range(MEMORY_SIZE)], dtype=object))
    results = machine.call(module, arguments)
    return [[value.tolist() for value in results], machine.memory.tolist()]


def check(pipeline: str, random: Random) -> bool:
    """Asserts that the pipeline keeps a random program's outcome; whether it rewrote it."""
    text = Programs(random).program()
    arguments = random_arguments(random)
    with mlir_context():
        module = ir.Module.parse(text)
        before = printed(module)
        expected = outcome(module, arguments)
        module = Pipeline(parse_pipeline(pipeline)).run(module)
        module.operation.verify()
        assert outcome(module, arguments) == expected, f"{pipeline}\n{before}\nbecame\n{module}"
        return printed(module) != before


def printed(module: Any) -> str:
    """What MLIR prints of a module that was verified."""
    text: str = module.operation.get_asm(assume_verified=True)
    return text


@pytest.mark.parametrize("pipeline", [*PASSES, STAGE])
@examples(60)
@given(seed=st.integers(0, 2**32))
def test_a_random_program_means_the_same(pipeline: str, seed: int) -> None:
    check(pipeline, Random(seed))


@pytest.mark.parametrize("name", PASSES)
def test_random_programs_give_the_pass_work(name: str) -> None:
    rewritten = [check(name, Random(seed)) for seed in range(25)]
    assert sum(rewritten) >= 5


@DeviceFunction
def strided_sum(x, out, n, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    total = tl.zeros((SIZE,), dtype=tl.float32)
    for i in tl.range(1, n, 3, loop_unroll_factor=2):
        total += tl.load(x + i + offsets, mask=(offsets < 2) & (i < n - 4), other=1.0)
        tl.store(out + i + offsets, total, mask=offsets < n)


def test_a_kernel_of_the_front_end_means_the_same() -> None:
    signature = Signature({"x": POINTER, "out": POINTER, "n": tl.int32}, {"SIZE": 4})
    with mlir_context():
        before, after = (build_module(strided_sum, signature) for _ in range(2))
        Pipeline(parse_pipeline(STAGE)).run(after)
        assert str(before).count("tt.store") == 1
        assert str(after).count("tt.store") == 3, "two copies and the rest"
        for n in (-1, 2, 4, 5, 11, 20):
            assert outcome(after, [0, 50, n]) == outcome(before, [0, 50, n])


# Loops

LOOP = """
func.func @f(%lower: {t}, %upper: {t}, %step: {t}) -> ({t}, {t}, {t}) {{
  %zero = arith.constant 0 : {t}
  %one = arith.constant 1 : {t}
  %three = arith.constant 3 : {t}
  {bounds}
  %r:3 = scf.for {unsigned} %i = %l to %u step %s iter_args(%n = %zero, %h = %one, %o = %zero)
      -> ({t}, {t}, {t}) : {t} {{
    %m = arith.addi %n, %one : {t}
    %g = arith.muli %h, %three : {t}
    %k = arith.xori %g, %i : {t}
    scf.yield %m, %k, %h : {t}, {t}, {t}
  }} {{tt.loop_unroll_factor = {factor} : i32}}
  return %r#0, %r#1, %r#2 : {t}, {t}, {t}
}}
"""  # counts its iterations, hashes its indices in order, and carries a value one step late
HIDDEN = "\n  ".join(
    f"%{name[0]} = arith.addi %{name}, %zero : {{t}}" for name in ("lower", "upper", "step")
)


def known(lower: int, upper: int, step: int) -> str:
    """Bounds as constants."""
    numbers = {"l": lower, "u": upper, "s": step}
    return "\n  ".join(f"%{key} = arith.constant {n} : {{t}}" for key, n in numbers.items())


def loop_module(bounds: str, factor: int, type_: str, unsigned: bool = False) -> Any:
    sign = "unsigned" if unsigned else ""
    text = LOOP.format(bounds=bounds.format(t=type_), factor=factor, t=type_, unsigned=sign)
    return ir.Module.parse(text)


def unrolled(module: Any) -> Any:
    return Pipeline([LoopUnroll()]).run(module)


@pytest.mark.parametrize("factor", [2, 3, 7])
@pytest.mark.parametrize("is_unsigned", [False, True])
def test_every_bound_of_a_byte_is_right(factor: int, is_unsigned: bool) -> None:
    """Bounds at both ends of the type, wherever the loop itself does not overflow."""
    low, high = (0, 255) if is_unsigned else (-128, 127)
    ends = [low, low + 1, low + 5, low + 90, high - 90, high - 5, high - 1, high]
    with mlir_context():
        plain = loop_module(HIDDEN, factor, "i8", is_unsigned)
        changed = unrolled(loop_module(HIDDEN, factor, "i8", is_unsigned))
        assert "loop_unroll_factor" not in str(changed)
        for lower in ends:
            for upper in ends:
                for step in (1, 3, 64, 100):
                    trips = max(0, -((lower - upper) // step))
                    if lower + trips * step > high:
                        continue
                    bounds = [np.array(n).astype(np.int8) for n in (lower, upper, step)]
                    expected = outcome(plain, bounds)
                    assert expected[0][0] % 256 == trips
                    assert outcome(changed, bounds) == expected, (lower, upper, step)


@pytest.mark.parametrize("type_", ["i32", "index"])
@pytest.mark.parametrize(
    "bounds", [(0, 8, 1), (-3, 9, 3), (2, 13, 2), (0, 3, 1), (5, 5, 1), (5, 1, 2)]
)
@pytest.mark.parametrize("factor", [2, 4])
def test_known_bounds_are_right(type_: str, bounds: tuple[int, int, int], factor: int) -> None:
    with mlir_context():
        plain = loop_module(known(*bounds), factor, type_)
        changed = unrolled(loop_module(known(*bounds), factor, type_))
        assert outcome(changed, [0, 0, 0]) == outcome(plain, [0, 0, 0])
        trips = len(range(*bounds))
        loops = 1 if trips < factor or trips % factor == 0 else 2
        assert str(changed).count("scf.for") == loops
        copies = str(changed).count("arith.xori")
        assert copies == (1 if trips < factor else factor + loops - 1)


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("is_unsigned", [False, True])
def test_a_loop_in_chunks_runs_as_before(size: int, is_unsigned: bool) -> None:
    low, high = (0, 255) if is_unsigned else (-128, 127)
    ends = [low, low + 1, low + 5, low + 90, high - 90, high - 5, high - 1, high]
    with mlir_context():
        plain, changed = (loop_module(HIDDEN, 1, "i8", is_unsigned) for _ in range(2))
        (loop,) = ops_named(changed, "scf.for")
        strip_mine(loop, size)
        assert str(changed).count("scf.for") == 2
        assert changed.operation.verify()
        for lower, upper, step in itertools.product(ends, ends, (1, 3, 64, 100)):
            trips = max(0, -((lower - upper) // step))
            if lower + trips * step > high:
                continue
            bounds = [np.array(n).astype(np.int8) for n in (lower, upper, step)]
            assert outcome(changed, bounds) == outcome(plain, bounds), (lower, upper, step)
