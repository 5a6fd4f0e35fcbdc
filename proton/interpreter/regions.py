"""Control flow, and what combines elements along an axis by a function of the kernel's author.

A region on scalars runs on whole arrays here: all elements take a step at once. Where they go
different ways, each way is gone for all of them, and each takes the values of its own.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from proton.conversion.triton_arith_to_linalg.assembly import packed_elements, run_assembly
from proton.conversion.triton_arith_to_linalg.extern import rule_of
from proton.dialect import tt
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Operation, Value, func, ir, scf
from proton.dialect.regions import block_of, yield_values
from proton.interpreter.arithmetic import c_function
from proton.interpreter.formats import Array, format_of, fp32_in_place_of_16_bits
from proton.interpreter.interface import RunningProgram
from proton.interpreter.plan import (
    Body,
    Function,
    Registers,
    Step,
    StepPlanner,
    empty_function,
    evaluates,
    evaluates_regions,
)
from proton.interpreter.shapes import number
from proton.transforms.tile.widening import OF_BITS


def _slots(planner: StepPlanner, values: Iterable[Value]) -> list[int]:
    return [planner.slot(value) for value in values]


def _read(registers: Registers, slots: list[int]) -> list[Any]:
    return [registers[slot] for slot in slots]


def _write(registers: Registers, slots: list[int], values: list[object]) -> None:
    for slot, value in zip(slots, values, strict=True):
        registers[slot] = value


def _chosen(condition: Array, new: list[Any], old: list[Any]) -> list[Any]:
    """Of each value `new` where the condition holds."""
    return [np.where(condition, a, b) for a, b in zip(new, old, strict=True)]


@evaluates_regions(scf.IfOp)
def _if(planner: StepPlanner, op: Operation) -> Step:
    (condition,), results = _slots(planner, op.operands), _slots(planner, op.results)
    blocks = [block_of(op, region) for region in range(len(op.regions))]
    then, *other = [planner.body(block) for block in blocks if block is not None]

    def step(program: RunningProgram, registers: Registers) -> None:
        holds = registers[condition]
        if np.ndim(holds):
            new = then.run(program, registers)
            found = _chosen(holds, new, other[0].run(program, registers)) if results else []
        elif holds:
            found = then.run(program, registers)
        else:
            found = other[0].run(program, registers) if other else []
        _write(registers, results, found)

    return step


@evaluates_regions(scf.ForOp)
def _for(planner: StepPlanner, op: Operation) -> Step:
    operands, results = _slots(planner, op.operands), _slots(planner, op.results)
    block = block_of(op, 0)
    assert block is not None
    body = planner.body(block)

    def step(program: RunningProgram, registers: Registers) -> None:
        index, upper, stride, *carried = _read(registers, operands)
        active = index < upper
        while np.any(active):
            new = body.run(program, registers, [index, *carried])
            carried = _chosen(active, new, carried) if np.ndim(active) else new
            index = index + stride
            active = index < upper
        _write(registers, results, carried)

    return step


@evaluates_regions(scf.WhileOp)
def _while(planner: StepPlanner, op: Operation) -> Step:
    operands, results = _slots(planner, op.operands), _slots(planner, op.results)
    before, after = (planner.body(op.regions[n].blocks[0]) for n in (0, 1))

    def step(program: RunningProgram, registers: Registers) -> None:
        carried = _read(registers, operands)
        condition, *passed = before.run(program, registers, carried)
        active = condition
        while np.any(active):
            new = after.run(program, registers, passed)
            condition, *new = before.run(program, registers, new)
            if np.ndim(active) or np.ndim(condition):
                new = _chosen(active, new, passed)
                active = active & condition
            else:
                active = condition
            passed = new
        _write(registers, results, passed)

    return step


# Along an axis


def _combining(planner: StepPlanner, op: Operation) -> tuple[Body, list[Any]]:
    """The function that combines, and for each source how its numbers go in and come out: fp16
    and bf16 are combined in fp32, as compiled code does."""
    block = block_of(op, 0)
    assert block is not None
    keeps_bits = any(inner.operation.name in OF_BITS for inner in block.operations)
    formats = [format_of(value.type) for value in op.operands]
    if keeps_bits:
        return planner.body(block), [(_same, _same)] * len(formats)
    with fp32_in_place_of_16_bits():
        body = planner.body(block)
    ways = [
        (form.widen_to_fp32, form.narrow) if form.is_narrow_float else (_same, _same)
        for form in formats
    ]
    return body, ways


def _same(value: Array) -> Array:
    return value


@evaluates_regions(tt.ReduceOp)
def _reduce(planner: StepPlanner, op: Operation) -> Step:
    operands, results = _slots(planner, op.operands), _slots(planner, op.results)
    axis = number(op, "axis")
    body, ways = _combining(planner, op)

    def step(program: RunningProgram, registers: Registers) -> None:
        values = [
            np.moveaxis(way[0](value), axis, 0)
            for value, way in zip(_read(registers, operands), ways, strict=True)
        ]
        while len(values[0]) > 1:  # neighbours meet, so the order of elements is kept
            pairs = [*(value[0::2] for value in values), *(value[1::2] for value in values)]
            values = [np.asarray(v) for v in body.run(program, registers, pairs)]
        found = [way[1](value[0]) for value, way in zip(values, ways, strict=True)]
        _write(registers, results, found)

    return step


@evaluates_regions(tt.ScanOp)
def _scan(planner: StepPlanner, op: Operation) -> Step:
    operands, results = _slots(planner, op.operands), _slots(planner, op.results)
    axis, reverse = number(op, "axis"), bool(number(op, "reverse"))
    body, ways = _combining(planner, op)

    def step(program: RunningProgram, registers: Registers) -> None:
        values = [
            np.moveaxis(way[0](value), axis, 0)
            for value, way in zip(_read(registers, operands), ways, strict=True)
        ]
        places = range(len(values[0]))
        found: list[list[Any]] = []
        for place in reversed(places) if reverse else places:
            elements = [value[place] for value in values]
            if found:
                elements = body.run(program, registers, [*found[-1], *elements])
            found.append(elements)
        if reverse:
            found.reverse()
        columns = zip(*found, strict=True)
        stacked = [np.moveaxis(np.stack(column), 0, axis) for column in columns]
        _write(registers, results, [w[1](v) for v, w in zip(stacked, ways, strict=True)])

    return step


# Functions of elements


@evaluates_regions(tt.MapElementwiseOp)
def _map_elementwise(planner: StepPlanner, op: Operation) -> Step:
    """The function on whole arrays: each of its values has their shape in the end."""
    operands, results = _slots(planner, op.operands), _slots(planner, op.results)
    body = planner.body(op.regions[0].blocks[0])

    def step(program: RunningProgram, registers: Registers) -> None:
        sources = _read(registers, operands)
        found = body.run(program, registers, sources)
        _write(registers, results, [np.broadcast_to(v, np.shape(sources[0])) for v in found])

    return step


# Functions of libraries


@evaluates_regions(tt.ExternElementwiseOp)
def _extern(planner: StepPlanner, op: Operation) -> Step:
    """The rule that the CPU has for the function, in ops on scalars."""
    operands, results = _slots(planner, op.operands), _slots(planner, op.results)
    rule, types = rule_of(op), [element_of(value) for value in op.operands]
    _, block = empty_function(types)
    with ir.InsertionPoint(block):
        yield_values([rule(*block.arguments, type_=element_of(op.results[0]))])
    body = planner.body(block)

    def step(program: RunningProgram, registers: Registers) -> None:
        _write(registers, results, body.run(program, registers, _read(registers, operands)))

    return step


@evaluates_regions(*tt.ASSEMBLY)
def _assembly(planner: StepPlanner, op: Operation) -> Step:
    """What the CPU makes of the text, in ops on scalars: an array for each of the elements that it
    works on at a time."""
    operands, results = _slots(planner, op.operands), _slots(planner, op.results)
    pack = packed_elements(op)
    types = [element_of(value) for value in op.operands]
    _, block = empty_function([type_ for type_ in types for _ in range(pack)])
    with ir.InsertionPoint(block):
        given = list(block.arguments)
        groups = [given[n : n + pack] for n in range(0, len(given), pack)]
        yield_values([value for values in run_assembly(op, groups) for value in values])
    body = planner.body(block)

    def step(program: RunningProgram, registers: Registers) -> None:
        sources = _read(registers, operands)
        shape = np.shape(sources[0]) if sources else ()
        columns = [np.reshape(source, (-1, pack)) for source in sources]
        parts = [column[:, place] for column in columns for place in range(pack)]
        found = body.run(program, registers, parts)
        groups = [found[n : n + pack] for n in range(0, len(found), pack)]
        size = max(1, math.prod(shape)) // pack
        rows = [np.stack([np.broadcast_to(v, size) for v in group], axis=1) for group in groups]
        _write(registers, results, [row.reshape(shape) for row in rows])

    return step


@evaluates(func.CallOp)
def _call_of_c(op: Operation) -> Function:
    """A function of C's math library; it is what the rules of libraries call."""
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    types = [str(format_of(value.type).storage) for value in (*op.operands, *op.results)]
    function: Callable[..., object] = c_function(name, tuple(types[:-1]), types[-1])
    return lambda program, *x: function(*x)
