"""How regular the integers and pointers of a block are: what decides how wide an access can be.

For each dimension of a value, three powers of two:

- *contiguity*: the block falls into runs of so many consecutive values,
- *divisibility*: the first value of each run is a multiple of it (of a pointer: its bytes),
- *constancy*: the block falls into runs of so many equal values.

For example the block [8, 9, 10, 11, 20, 21, 22, 23] has contiguity 4, divisibility 4, and
constancy 1. Runs start at multiples of their length. A quotient has *steps*, too: [4, 4, 5, 5, 6,
6, 7, 7] has four of width 2, the first a multiple of 4. The analysis goes forward through a
function once, through loops until nothing changes, and over the call graph from callers to callees:
what a function's parameter is, is what all of its call sites agree on. axis_rules.py has the rule
of each op.

Source: the analysis of the same name in Triton, whose definitions are these but for steps.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod

from proton.analysis.axis_rules import (
    GUESSES,
    RULES,
    AxisInfo,
    Infos,
    element_bytes,
    elementwise,
    power,
    quotient,
    unknown,
)
from proton.analysis.call_graph import callee_name, callers_first, function_name
from proton.analysis.dataflow import ForwardDataflow
from proton.base.chips.chip import ACCESS_BYTES
from proton.dialect import isa, tt, ttg
from proton.dialect.attributes import DIVISIBILITY, KERNEL
from proton.dialect.diagnostics import shape_of
from proton.dialect.mlir import Module, Operation, Type, Value, arith, func, ir, scf
from proton.dialect.regions import Branch, ForLoop
from proton.dialect.traits import Combines, has
from proton.dialect.tt import is_pointer_like
from proton.dialect.tt_memory import mask_of
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import defining_op
from proton.layout.linear import log2
from proton.layout.tensor_map import ROW_BYTES

_HINTED = ("contiguity", "divisibility", "constancy")
_HINTS = tuple(f"tt.{name}" for name in _HINTED)


class AxisInfos(ForwardDataflow[None]):
    """The analysis of a module: `infos[value]`. As a `guess` it says what is most often so, as if
    an index that `x % n` or `minimum(x, n)` holds inside of a range were inside of it anyway: that
    is good enough to choose a layout, and no reason for a wide access."""

    def __init__(self, module: Module, *, guess: bool = False) -> None:
        self._rules = RULES | GUESSES if guess else RULES
        self._infos: dict[object, AxisInfo] = {}
        self._arguments: dict[str, list[AxisInfo]] = {}  # of functions that were called so far
        for function in callers_first(module):
            self._function(function)

    def __getitem__(self, value: Value) -> AxisInfo:
        return self._infos.get(value) or unknown(value)

    def _function(self, function: Operation) -> None:
        block = function.regions[0].blocks[0]
        given = self._arguments.get(function_name(function))
        attributes = function.attributes
        hints = ir.ArrayAttr(attributes["arg_attrs"]) if "arg_attrs" in attributes else ()
        for number, argument in enumerate(block.arguments):
            info = given[number] if given else unknown(argument)
            if number < len(hints) and DIVISIBILITY in hints[number]:
                multiple = ir.IntegerAttr(ir.DictAttr(hints[number])[DIVISIBILITY]).value
                info = AxisInfo(info.contiguity, (power(multiple),), info.constancy)
            self._infos[argument] = info
        self.block(block, None)

    def enter(self, op: Operation) -> None:
        if isa(op, scf.ForOp):
            loop = ForLoop(op)
            lower, _, step = loop.bounds
            multiple = gcd(self[lower].divisibility[0], self[step].divisibility[0])
            self._infos[loop.induction_var] = AxisInfo((1,), (multiple,), (1,))

    def flow(self, branch: Branch) -> bool:
        """What holds for all values that a block argument or a result may be."""
        is_new = False
        for source, target in zip(branch.passed, branch.received, strict=True):
            known, info = self._infos.get(target), self[source]
            joined = info if known is None else known.join(info)
            if joined != known:
                self._infos[target], is_new = joined, True
        return is_new

    def transfer(self, op: Operation, state: None) -> None:
        rule = self._rules.get(op.name)
        if rule is None:
            if isa(op, func.CallOp):
                self._call(op)
                return
            if op.regions and not has(op, Combines):  # of control flow that nobody knows
                for region in op.regions:
                    for block in region.blocks:
                        self.block(block, None)
                return
        found = [result for result in op.results if _is_followed(result.type)]
        info = (rule or elementwise)(op, self) if found else None
        for result in found:
            self._infos[result] = _with_hints(op, info) if info else unknown(result)

    def _call(self, op: Operation) -> None:
        infos = [self[value] for value in op.operands]
        name = callee_name(op)
        before = self._arguments.get(name)
        self._arguments[name] = (
            [a.join(b) for a, b in zip(before, infos, strict=True)] if before else infos
        )


@RULES.of(tt.DescriptorStrideOp)
def _stride(op: Operation, infos: Infos) -> AxisInfo | None:
    """A launcher passes tensors whose rows are multiples of 16 bytes apart."""
    descriptor, axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value
    block = descriptor.type.target
    is_passed = defining_op(descriptor) is None and KERNEL in descriptor.owner.owner.attributes
    if not is_passed or axis == len(block.shape) - 1:
        return None
    multiple = max(1, ROW_BYTES * 8 // block.element_type.width)
    return AxisInfo((1,), (multiple,), (1,))


@functools.cache
def _is_followed(type_: Type) -> bool:
    """True if values of a type have numbers: integers and pointers, and blocks of them."""
    element = getattr(type_, "element_type", type_)
    return isinstance(element, ir.IntegerType) or is_pointer_like(type_)


def _with_hints(op: Operation, info: AxisInfo) -> AxisInfo:
    """What the kernel's author promised (`tl.multiple_of`, ...) counts where it says more."""
    attributes = op.attributes
    if not len(attributes) or not any(name in attributes for name in _HINTS):
        return info
    values = {}
    for name in _HINTED:
        own = getattr(info, name)
        if f"tt.{name}" in attributes:
            hint = tuple(ir.DenseI64ArrayAttr(attributes[f"tt.{name}"]))
            own = tuple(max(a, power(b)) for a, b in zip(own, hint, strict=True))
        values[name] = own
    return replace(info, **values)


# What passes ask


def order_of(info: AxisInfo) -> tuple[int, ...]:
    """Dimensions, the most contiguous first, of equal ones those with the most steps first, then
    the last."""

    def key(axis: int) -> tuple[int, int, int]:
        steps = info.steps_of(axis)
        return info.contiguity[axis], steps.count if steps else 1, axis

    return tuple(sorted(range(len(info.contiguity)), key=key, reverse=True))


def adjacent_elements(pointer: Value, infos: AxisInfos) -> tuple[int, ...]:
    """For each dimension, how many consecutive elements lie side by side from a multiple of their
    size on, so that no address among theirs wraps around."""
    info, size = infos[pointer], element_bytes(pointer)
    return tuple(
        _floor_power(max(1, min(run, divisibility // size)))
        for run, divisibility in zip(info.contiguity, info.divisibility, strict=True)
    )


def vector_elements(pointer: Value, mask: Value | None, infos: AxisInfos) -> tuple[int, ...]:
    """For each dimension, how many consecutive elements one access may take at most:
    they lie side by side, the address is a multiple of their size, and one mask is for all."""
    most_of_all = max(1, ACCESS_BYTES // element_bytes(pointer))
    result = []
    for axis, run in enumerate(adjacent_elements(pointer, infos)):
        most = min(run, most_of_all)
        if mask is not None:
            most = min(most, infos[mask].constancy[axis])
        result.append(_floor_power(most))
    return tuple(result)


def step_elements(op: Operation, axis: int, infos: AxisInfos) -> tuple[int, int]:
    """(width, count): one access of a load may take so many elements along a dimension at most, of
    which each is wanted `width` times; (1, 1) where addresses have no steps."""
    pointer, mask = op.operands[0], mask_of(op)
    steps = infos[pointer].steps_of(axis) if isa(op, tt.LoadOp) else None
    if steps is None or equal_addresses(op, infos)[axis] % steps.width:
        return 1, 1
    size = element_bytes(pointer)
    most = min(steps.count, steps.multiple // size, ACCESS_BYTES // size)
    if mask is not None:
        most = min(most, infos[mask].constancy[axis] // steps.width)
    return (steps.width, _floor_power(most)) if most > 1 else (1, 1)


def access_steps(op: Operation, infos: AxisInfos) -> tuple[int, int]:
    """(width, count): so many registers of a load in a row have one address, and so many addresses
    one access."""
    axis, run = _register_run(op.operands[0])
    width, count = step_elements(op, axis, infos)
    return (width, min(count, run // width)) if run >= 2 * width > 2 else (1, 1)


def access_elements(op: Operation, infos: AxisInfos) -> int:
    """How many consecutive registers one access of a load or store may take."""
    pointer = op.operands[0]
    axis, run = _register_run(pointer)
    return 1 if run == 1 else min(run, vector_elements(pointer, mask_of(op), infos)[axis])


def adjacent_registers(pointer: Value, infos: AxisInfos) -> int:
    """How many consecutive registers of pointers are one address and constants more."""
    axis, run = _register_run(pointer)
    return 1 if run == 1 else min(run, adjacent_elements(pointer, infos)[axis])


def equal_quotients(op: Operation, infos: AxisInfos) -> tuple[int, ...]:
    """For each dimension of a remainder, in runs of how many elements the quotients are equal. By a
    power of two there is no quotient to compute."""
    divisor, found = infos[op.operands[1]].constant, quotient(op, infos)
    if found is None or (divisor is not None and divisor == power(divisor)):
        return (1,) * len(infos[op.operands[0]].constancy)
    return found.constancy


def equal_addresses(op: Operation, infos: AxisInfos) -> tuple[int, ...]:
    """For each dimension of a load, in runs of how many elements addresses, masks and what stands
    for masked elements are equal."""
    constancy = infos[op.operands[0]].constancy
    if ir.IntegerAttr(op.attributes["volatile"]).value:
        return (1,) * len(constancy)
    for other in list(op.operands)[1:]:
        if not isa(defining_op(other), arith.ConstantOp):
            constancy = tuple(map(gcd, constancy, infos[other].constancy))
    return constancy


def equal_registers(value: Value, constancy: Sequence[int]) -> tuple[int, ...]:
    """For each register of a block the first with the same value, where runs of so many elements
    are equal; () if all may differ."""
    if not is_tensor(value.type):
        return ()
    bases = layout_of(value.type).bases("register")
    same = sum(
        1 << bit
        for bit, basis in enumerate(bases)
        if all(x < run for x, run in zip(basis, constancy, strict=True))
    )
    return tuple(register & ~same for register in range(1 << len(bases))) if same else ()


def is_index(value: Value, axis: int, infos: AxisInfos) -> bool:
    """True of a block of indices along an axis: of a range, which does not wrap around."""
    is_run = infos[value].contiguity[axis] >= shape_of(value)[axis]
    while isa(op := defining_op(value), tt.BroadcastOp, tt.ExpandDimsOp, ttg.ConvertLayoutOp):
        value = op.operands[0]
    return is_run and isa(op, tt.MakeRangeOp)


def _register_run(pointer: Value) -> tuple[int, int]:
    """The dimension along which a thread's first registers go, and how many do, from a multiple of
    their number on."""
    if not is_tensor(pointer.type):
        return 0, 1
    layout = layout_of(pointer.type)
    bases = layout.bases("register")
    if not bases or not any(bases[0]):
        return 0, 1
    axis = next(a for a, value in enumerate(bases[0]) if value)
    run = 1
    for bit, basis in enumerate(bases):
        if basis != tuple((1 << bit) * (a == axis) for a in range(len(basis))):
            break
        run *= 2
    every = [basis for _, found in layout.ins for basis in found]  # registers first
    starts = [value & -value for basis in every[log2(run) :] if (value := basis[axis])]
    return axis, min([run, *starts])


def _floor_power(value: int) -> int:
    return 1 << (value.bit_length() - 1)


def elements(value: Value) -> int:
    """The number of elements of a block."""
    return prod(shape_of(value))
