"""AxisInfo: every claim about random programs holds when they run, and known ones are sharp."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from proton.analysis.axis_info import AxisInfos, adjacent_elements, vector_elements
from proton.analysis.axis_rules import AxisInfo, element_bytes
from proton.analysis.signs import is_non_negative
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.tt import is_pointer_like
from tests.draws import times
from tests.ir.tile_interpreter import TileInterpreter

LARGE = 1 << 31  # 32-bit arithmetic of larger numbers would wrap: the analysis rules that out


class TooLarge(Exception):
    """A program's numbers do not fit."""


def assert_holds(info: AxisInfo, numbers: np.ndarray, step: int, what: str) -> None:
    """The definitions at the head of axis_info.py, word for word."""
    numbers = np.atleast_1d(numbers).astype(np.int64)
    if info.constant is not None:
        assert (numbers == info.constant).all(), f"{what} is not {info.constant}: {numbers}"
    for axis in range(numbers.ndim):
        along = np.moveaxis(numbers, axis, -1)
        run, equal = info.contiguity[axis], info.constancy[axis]
        assert along.shape[-1] % run == 0, f"{what}: runs of {run} of {along.shape[-1]}"
        assert along.shape[-1] % equal == 0, f"{what}: {equal} equal ones of {along.shape[-1]}"
        runs = along.reshape(-1, run)
        assert (runs - runs[:, :1] == step * np.arange(run)).all(), (
            f"{what} has no runs of {run} along {axis}:\n{numbers}"
        )
        divisibility = info.divisibility[axis]
        assert (runs[:, 0] % divisibility == 0).all(), (
            f"{what}: runs along {axis} do not start at multiples of {divisibility}:\n{numbers}"
        )
        same = along.reshape(-1, equal)
        assert (same == same[:, :1]).all(), f"{what} is not constant along {axis}:\n{numbers}"
        if (steps := info.steps_of(axis)) is not None:
            several = along.reshape(-1, steps.count, steps.width)
            climbing = several[:, :1, :1] + step * np.arange(steps.count)[:, None]
            assert (several == climbing).all(), f"{what} has no steps along {axis}:\n{numbers}"
            assert (several[:, 0] % steps.multiple == 0).all(), f"{what}: {steps}\n{numbers}"


def check_program(text: str, arguments: list[int], stepped: list[str] | None = None) -> int:
    """Runs `@kernel`; how many claims that say something were checked. `stepped`: gets what has
    steps."""
    with mlir_context():
        module = ir.Module.parse(text)
        infos = AxisInfos(module)
        sharp = 0

        def check(value: Any, numbers: np.ndarray) -> None:
            nonlocal sharp
            if numbers.dtype != bool and np.abs(numbers).max() >= LARGE:
                raise TooLarge
            info = infos[value]
            is_pointer = is_pointer_like(value.type)
            step = element_bytes(value) if is_pointer else 1
            assert_holds(info, numbers, step, f"{value}\n{info}")
            sharp += max(*info.contiguity, *info.divisibility, *info.constancy) > 1
            if stepped is not None and any(info.steps):
                stepped.append(str(value))

        TileInterpreter(module, check).run("kernel", arguments)
    return sharp


# Random programs


class Writer:
    """Writes random tile code; `blocks` are values by shape."""

    SHAPES = ((16,), (8, 16), (16, 8), (4, 4, 8))

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.lines, self.count = rng, [], 0
        self.blocks: dict[tuple[int, ...], list[str]] = {shape: [] for shape in self.SHAPES}
        self.scalars: list[str] = []

    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    @staticmethod
    def type_of(shape: tuple[int, ...], element: str = "i32") -> str:
        return f"tensor<{'x'.join(map(str, shape))}x{element}>" if shape else element

    def leaf(self) -> None:
        shape = self.pick(self.SHAPES)
        type_ = self.type_of(shape)
        match self.rng.integers(4):
            case 0:
                start = int(self.pick([0, 2, 3, 16, 24]))
                value = self.new(
                    f'"tt.make_range"() {{start = {start} : i32, end = {start + 16} : i32}} '
                    ": () -> tensor<16xi32>"
                )
                if self.rng.integers(2):
                    number = int(self.pick([2, 3, 4, 8]))
                    by = self.new(f"arith.constant dense<{number}> : tensor<16xi32>")
                    name = self.pick(["divsi", "divui"])
                    several = self.new(f"arith.{name} {value}, {by} : tensor<16xi32>")
                    self.blocks[16,].append(several)
                    self._pointers((16,), several)
                self.blocks[16,].append(value)
            case 1:
                number = int(self.pick([0, 1, 2, 3, 4, 8, 12, 16, 64, -4]))
                self.blocks[shape].append(self.new(f"arith.constant dense<{number}> : {type_}"))
            case _:
                scalar = self.pick(self.scalars)
                self.blocks[shape].append(self.new(f'"tt.splat"({scalar}) : (i32) -> {type_}'))

    def reshaped(self) -> None:
        if not self.blocks[16,]:
            return
        one = self.pick(self.blocks[16,])
        wide = self.pick([(8, 16), (4, 4, 8)])
        if wide == (8, 16):
            thin = self.new(
                f'"tt.expand_dims"({one}) {{axis = 0 : i32}} : (tensor<16xi32>) -> tensor<1x16xi32>'
            )
            self.blocks[wide].append(
                self.new(f'"tt.broadcast"({thin}) : (tensor<1x16xi32>) -> tensor<8x16xi32>')
            )
            if self.rng.integers(2):
                thin = self.new(
                    f'"tt.expand_dims"({one}) {{axis = 1 : i32}} '
                    ": (tensor<16xi32>) -> tensor<16x1xi32>"
                )
                self.blocks[16, 8].append(
                    self.new(f'"tt.broadcast"({thin}) : (tensor<16x1xi32>) -> tensor<16x8xi32>')
                )
        if self.blocks[8, 16]:
            block = self.pick(self.blocks[8, 16])
            if self.rng.integers(2):
                self.blocks[16, 8].append(
                    self.new(
                        f'"tt.trans"({block}) {{order = array<i64: 1, 0>}} '
                        ": (tensor<8x16xi32>) -> tensor<16x8xi32>"
                    )
                )
            target = self.pick([(16, 8), (4, 4, 8)])
            self.blocks[target].append(
                self.new(
                    f'"tt.reshape"({block}) {{allow_reorder = false}} '
                    f": (tensor<8x16xi32>) -> {self.type_of(target)}"
                )
            )

    def arithmetic(self) -> None:
        shape = self.pick([s for s, values in self.blocks.items() if values] or [None])
        if shape is None:
            return
        values, type_ = self.blocks[shape], self.type_of(shape)
        left, right = self.pick(values), self.pick(values)
        name = self.pick(
            "addi addi subi muli divsi remsi divui remui shli shrui andi minsi maxsi select "
            "wrap".split()
        )
        if name in ("divsi", "remsi") and self.rng.integers(4) == 0:
            number = int(self.pick([-1, -3, -8]))
            right = self.new(f"arith.constant dense<{number}> : {type_}")
        elif name in ("divsi", "remsi", "divui", "remui"):
            right = self._positive(right, type_)
        if name in ("divui", "remui", "shrui"):
            left = self._positive(left, type_)
        if name in ("shli", "shrui"):
            number = int(self.rng.integers(0, 5))
            right = self.new(f"arith.constant dense<{number}> : {type_}")
        if name == "wrap":
            narrow = self.type_of(shape, self.pick(["i8", "i4"]))
            less = self.new(f"arith.trunci {left} : {type_} to {narrow}")
            extend = self.pick(["extsi", "extui"])
            made = self.new(f"arith.{extend} {less} : {narrow} to {type_}")
        elif name == "select":
            predicate = self.pick("slt sle sgt sge eq ne ult uge".split())
            one, other = self.pick(values), self.pick(values)
            if predicate.startswith("u"):
                one, other = self._positive(one, type_), self._positive(other, type_)
            condition = self.new(f"arith.cmpi {predicate}, {one}, {other} : {type_}")
            made = self.new(
                f"arith.select {condition}, {left}, {right} : {self.type_of(shape, 'i1')}, {type_}"
            )
        else:
            made = self.new(f"arith.{name} {left}, {right} : {type_}")
        values.append(made)
        if self.rng.integers(4) == 0:
            self._pointers(shape, made)

    def _positive(self, value: str, type_: str) -> str:
        """At least 1; often a plain constant, which is where the analysis knows most."""
        if self.rng.integers(2):
            number = int(self.pick([1, 2, 3, 4, 6, 8, 16]))
            return self.new(f"arith.constant dense<{number}> : {type_}")
        one = self.new(f"arith.constant dense<1> : {type_}")
        return self.new(f"arith.maxsi {value}, {one} : {type_}")

    def _pointers(self, shape: tuple[int, ...], offsets: str) -> None:
        type_ = self.type_of(shape, "!tt.ptr<f32>")
        base = self.new(f'"tt.splat"(%p) : (!tt.ptr<f32>) -> {type_}')
        first = self.new(
            f'"tt.addptr"({base}, {offsets}) : ({type_}, {self.type_of(shape)}) -> {type_}'
        )
        more = self.pick(self.blocks[shape])
        self.new(f'"tt.addptr"({first}, {more}) : ({type_}, {self.type_of(shape)}) -> {type_}')

    def body(self, steps: int) -> None:
        for _ in range(steps):
            step: Callable[[], None] = self.pick(
                [self.leaf, self.leaf, self.reshaped, self.arithmetic, self.arithmetic]
            )
            step()

    def straight(self) -> str:
        self.body(int(self.rng.integers(4, 25)))
        return "\n".join(self.lines)


def written(rng: np.random.Generator) -> tuple[str, list[int]]:
    """A kernel of two integers and a pointer, and arguments that keep its promises."""
    writer = Writer(rng)
    writer.scalars = ["%n", "%m"]
    multiples = [int(rng.choice([1, 2, 8, 16])) for _ in range(3)]
    body = writer.straight()
    signs = [*rng.integers(2, size=2), 0]  # 1: it may be negative, and says nothing of it
    said = ["" if sign or number == 2 else ", tt.non_negative" for number, sign in enumerate(signs)]
    n, m, p = (
        f"{{tt.divisibility = {multiple} : i32{more}}}"
        for multiple, more in zip(multiples, said, strict=True)
    )
    text = (
        f"func.func @kernel(%n: i32 {n}, %m: i32 {m}, %p: !tt.ptr<f32> {p}) {{\n{body}\nreturn\n}}"
    )
    values = [
        int(rng.integers(-20 * sign, 20)) * multiple
        for multiple, sign in zip(multiples, signs, strict=True)
    ]
    return text, values


def test_every_claim_holds_in_random_programs(rng: np.random.Generator) -> None:
    sharp, large, stepped = 0, 0, list[str]()
    count = times(250)
    for _ in range(count):
        text, arguments = written(rng)
        try:
            sharp += check_program(text, arguments, stepped)
        except TooLarge:
            large += 1
        except AssertionError:
            print(text, arguments)
            raise
    assert sharp > 8 * count
    assert large < count / 2
    assert len(stepped) > 0.16 * count
    assert any("tt.addptr" in value for value in stepped)


# Loops, branches and calls

RANGE = '"tt.make_range"() {start = 0 : i32, end = 16 : i32} : () -> tensor<16xi32>'


def info_of_last(text: str, name: str = "last") -> AxisInfo:
    """What is known of the op that has the attribute `name`."""
    with mlir_context():
        module = ir.Module.parse(text)
        infos = AxisInfos(module)
        found: list[AxisInfo] = []

        def visit(op: Any) -> Any:
            if name in op.attributes:
                found.append(infos[op.results[0]])
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
    (info,) = found
    return info


LOOP = f"""
func.func @kernel(
    %n: i32 {{tt.divisibility = 16 : i32}}, %s: i32 {{tt.divisibility = %STEP% : i32}}) {{
  %zero = arith.constant 0 : i32
  %range = {RANGE}
  %step = "tt.splat"(%s) : (i32) -> tensor<16xi32>
  %r = scf.for %i = %zero to %n step %s iter_args(%x = %range) -> (tensor<16xi32>) : i32 {{
    %k = "tt.splat"(%i) : (i32) -> tensor<16xi32>
    %q = arith.addi %range, %k : tensor<16xi32>
    %y = arith.addi %x, %step {{last}} : tensor<16xi32>
    scf.yield %y : tensor<16xi32>
  }}
  return
}}
"""


@pytest.mark.parametrize("step", [2, 8, 16])
def test_what_a_loop_carries_keeps_what_each_step_keeps(step: int) -> None:
    text = LOOP.replace("%STEP%", str(step))
    assert check_program(text, [64, step]) > 20
    info = info_of_last(text)
    assert (info.contiguity, info.divisibility) == ((16,), (step,))


def test_a_loop_that_loses_runs_is_followed_to_the_end() -> None:
    """Divisible by 16 at first, by 4 from the second iteration, by 1 from the fourth."""
    text = """
func.func @kernel(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %many = arith.constant 16 : i32
  %r:3 = scf.for %i = %zero to %n step %one iter_args(%a = %many, %b = %four, %c = %one)
      -> (i32, i32, i32) : i32 {
    %d = arith.addi %a, %zero {last} : i32
    scf.yield %b, %c, %c : i32, i32, i32
  }
  return
}"""
    check_program(text, [5])
    assert info_of_last(text).divisibility == (1,)


def test_a_branch_is_what_both_sides_are() -> None:
    text = """
func.func @kernel(%n: i32 {tt.divisibility = 8 : i32}, %c: i1) {
  %a = arith.constant 12 : i32
  %r = scf.if %c -> (i32) {
    scf.yield %n : i32
  } else {
    scf.yield %a : i32
  } {last}
  return
}"""
    for taken in (0, 1):
        check_program(text, [24, taken])
    assert info_of_last(text) == AxisInfo((1,), (4,), (1,))


@pytest.mark.parametrize(
    "name, multiple", [("minsi", 8), ("maxsi", 8), ("minui", 8), ("maxui", 8), ("andi", 16)]
)
def test_the_end_of_a_range_is_a_multiple(name: str, multiple: int) -> None:
    """`min(length, whole)`, of which a loop's loads begin, and what `n & -16` cuts off."""
    text = f"""
func.func @kernel(%n: i32 {{tt.divisibility = 16 : i32}}, %m: i32 {{tt.divisibility = 8 : i32}}) {{
  %r = arith.{name} %n, %m {{last}} : i32
  return
}}"""
    for arguments in ([48, 24], [16, 40], [0, 8]):
        check_program(text, arguments)
    assert info_of_last(text) == AxisInfo((1,), (multiple,), (1,))


@pytest.mark.parametrize(
    "name, by, multiple", [("divsi", 4, 16), ("divsi", 48, 1), ("remsi", 24, 8)]
)
def test_a_multiple_that_may_be_negative_is_divided_exactly(
    name: str, by: int, multiple: int
) -> None:
    """A stride times a block, of which two values share a byte: its sign is not known."""
    text = f"""
func.func @kernel(%n: i32 {{tt.divisibility = 64 : i32}}) {{
  %by = arith.constant {by} : i32
  %r = arith.{name} %n, %by {{last}} : i32
  %s = "tt.splat"(%r) : (i32) -> tensor<16xi32>
  return
}}"""
    for stride in (-192, -64, 0, 64, 320):
        check_program(text, [stride])
    assert info_of_last(text) == AxisInfo((1,), (multiple,), (1,))


CALLS = """
func.func private @inner(%x: i32) -> i32 {
  %s = "tt.splat"(%x) {last} : (i32) -> tensor<16xi32>
  return %x : i32
}
func.func private @outer(%x: i32) -> i32 {
  %four = arith.constant 4 : i32
  %y = arith.muli %x, %four : i32
  %r = func.call @inner(%y) : (i32) -> i32
  return %r : i32
}
func.func @kernel(%n: i32 {tt.divisibility = 16 : i32}, %m: i32 {tt.divisibility = 2 : i32}) {
  %a = func.call @inner(%n) : (i32) -> i32
  %b = func.call @outer(%m) : (i32) -> i32
  return
}
"""


DIVIDED = """
func.func @kernel(%n: i32 {{tt.divisibility = 8 : i32{said}}}, %m: i32) {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %eight = arith.constant 8 : i32
  %range = {range}
  %by = arith.constant dense<{divisor}> : tensor<16xi32>
  %r = scf.for %i = %zero to %m step %one iter_args(%x = %n) -> (i32) : i32 {{
    %k = arith.subi %i, %zero : i32
    %far = arith.muli %k, %eight : i32
    %start = arith.addi %x, %far : i32
    %all = "tt.splat"(%start) : (i32) -> tensor<16xi32>
    %index = arith.addi %range, %all : tensor<16xi32>
    %d = arith.{name} %index, %by {{last}} : tensor<16xi32>
    %y = arith.addi %x, %eight : i32
    scf.yield %y : i32
  }}
  return
}}"""


@pytest.mark.parametrize("divisor", [2, 8, 32])
@pytest.mark.parametrize("name", ["remsi", "divsi"])
def test_an_argument_that_says_its_sign_has_regular_quotients(name: str, divisor: int) -> None:
    """Others may be negative, and division rounds to zero: -8 % 8, -7 % 8 is 0, -7."""

    def text(said: str) -> str:
        return DIVIDED.format(said=said, divisor=divisor, name=name, range=RANGE)

    for n in range(-64, 64, 8):
        check_program(text(""), [n, 3])
        if n >= 0:
            check_program(text(", tt.non_negative"), [n, 3])
    unknown, known = info_of_last(text("")), info_of_last(text(", tt.non_negative"))
    runs = min(divisor, 8)
    assert (unknown.contiguity, unknown.constancy) == ((1,), (1,))
    sharp = known.constancy if name == "divsi" else known.contiguity
    assert sharp == (runs,)


COUNTED_BACK = """
func.func @kernel(%lower: i32, %upper: i32) {{
  %step = arith.constant {step} : i32
  %other = arith.constant {other} : i32
  scf.for %i = %lower to %upper step %step : i32 {{
    %start = arith.{kind} %upper, %other : i32
    %left = arith.subi %start, %i : i32
    %there = arith.subi %lower, %i : i32
  }}
  return
}}
"""


@pytest.mark.parametrize("kind", ["addi", "subi"])
@pytest.mark.parametrize("ahead", [-3, -1, 0, 1, 2])
def test_what_is_left_of_a_loop_is_not_negative(
    kind: str, ahead: int, rng: np.random.Generator
) -> None:
    """From its end, or one less; two less are, in the last iteration of some loops."""
    step = int(rng.integers(1, 4))
    other = ahead if kind == "subi" else -ahead
    with mlir_context():
        module = ir.Module.parse(COUNTED_BACK.format(step=step, other=other, kind=kind))
        loop = module.body.operations[0].regions[0].blocks[0].operations[2]
        _, left, there, _ = loop.regions[0].blocks[0].operations
        assert is_non_negative(left.result) == (ahead <= 1)
        assert not is_non_negative(there.result)
    lower, upper = np.sort(rng.integers(-20, 20, 2))
    numbers = upper - ahead - np.arange(lower, upper, step)
    assert ahead > 1 or (numbers >= 0).all()


def test_a_parameter_is_what_all_call_sites_agree_on() -> None:
    """16 from the kernel, 2 * 4 by way of another function that comes later in the order."""
    assert check_program(CALLS, [48, 6]) > 3
    assert info_of_last(CALLS) == AxisInfo((1,), (8,), (16,))
    alone = CALLS.replace("%b = func.call @outer(%m) : (i32) -> i32\n", "").replace(
        "%r = func.call @inner(%y) : (i32) -> i32", "%r = arith.addi %y, %y : i32"
    )
    assert info_of_last(alone) == AxisInfo((1,), (16,), (16,))


def test_what_a_call_returns_is_unknown() -> None:
    text = CALLS.replace(
        "return\n}", '%s = "tt.splat"(%b) {second} : (i32) -> tensor<4xi32>\nreturn\n}'
    )
    assert info_of_last(text, "second") == AxisInfo((1,), (1,), (4,))


# Sharpness: what coalescing lives on

KERNEL = f"""
func.func @kernel(
    %p: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %n: i32 {{tt.divisibility = %N% : i32}}) {{
  %c = arith.constant 16 : i32
  %d = arith.muli %n, %c : i32
  %s = "tt.splat"(%d) : (i32) -> tensor<16xi32>
  %i = {RANGE}
  %o = arith.addi %s, %i : tensor<16xi32>
  %b = "tt.splat"(%p) : (!tt.ptr<f16>) -> tensor<16x!tt.ptr<f16>>
  %q = "tt.addptr"(%b, %o) {{pointer}}
      : (tensor<16x!tt.ptr<f16>>, tensor<16xi32>) -> tensor<16x!tt.ptr<f16>>
  %k = "tt.splat"(%n) : (i32) -> tensor<16xi32>
  %m = arith.cmpi slt, %o, %k {{mask}} : tensor<16xi32>
  return
}}
"""


@pytest.mark.parametrize(("multiple", "expected"), [(16, 8), (4, 4), (1, 1)])
def test_a_masked_block_is_as_wide_as_its_mask_allows(multiple: int, expected: int) -> None:
    with mlir_context():
        module = ir.Module.parse(KERNEL.replace("%N%", str(multiple)))
        infos = AxisInfos(module)
        ops = list(module.body.operations[0].regions[0].blocks[0].operations)
        pointer, mask = (
            next(op.results[0] for op in ops if name in op.attributes)
            for name in ("pointer", "mask")
        )
        assert vector_elements(pointer, mask, infos) == (expected,)
        assert vector_elements(pointer, None, infos) == (8,)
        assert adjacent_elements(pointer, infos) == (8,)
