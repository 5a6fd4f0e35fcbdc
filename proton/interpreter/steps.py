"""One step of an interpreted kernel: a rule of the front end, evaluated at once.

The rule gets tensors whose SSA values are the arguments of an empty function, and emits IR into
it. A plan (plan.py) of that IR is kept and run on the operands' elements, now and whenever the same
piece of source meets operands of the same types and constants. So types, errors and messages are
those of the compiler.
"""

import ast
from collections.abc import Callable
from typing import Any

from proton.compiler import compile_lock
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.scopes import ScopeEntry
from proton.frontend.attributes import Method
from proton.frontend.builder import to_ir
from proton.frontend.numbers import is_typed
from proton.frontend.trees import leaves, parts_of, tensors, with_handles, with_leaves
from proton.interpreter import (
    accesses,  # noqa: F401 - fills the tables of plan.py, as do the others marked so
    arithmetic,  # noqa: F401
    descriptors,  # noqa: F401
    effects,  # noqa: F401
    regions,  # noqa: F401
    shapes,  # noqa: F401
)
from proton.interpreter.debugging import InterpretedGenerator
from proton.interpreter.interface import RunningProgram
from proton.interpreter.plan import Body, StepPlanner, empty_function
from proton.interpreter.values import Value
from proton.language.surroundings import describe, is_told_by_text
from proton.language.value import tensor

Rule = Callable[..., Any]  # takes the front end's generator, and the operands


class Plan:
    """What a step does, and gives; `scopes` are open afterwards."""

    def __init__(
        self, body: Body, planner: StepPlanner, result: Any, scopes: tuple[ScopeEntry, ...]
    ) -> None:
        self.body, self.scopes = body, scopes
        self.function = result.function if isinstance(result, Method) else None
        self.result = result.owner if isinstance(result, Method) else result
        self.leaves = [
            (planner.slot(leaf.handle), leaf.type) if isinstance(leaf, tensor) else (None, leaf)
            for leaf in leaves(self.result)
        ]
        self.is_leaf, self.size = parts_of(self.result) is None, len(planner.slots)

    def run(self, program: RunningProgram, operands: list[object]) -> Any:
        """The result, given the elements of the tensors among the operands."""
        registers: list[Any] = [None] * self.size
        self.body.run(program, registers, operands)
        found = [
            what if slot is None else Value(registers[slot], what) for slot, what in self.leaves
        ]
        value: Any = found[0] if self.is_leaf else with_leaves(self.result, iter(found))
        return value if self.function is None else Method(value, self.function)


def key_of(value: Any, data: list[Any]) -> Any:
    """What a step depends on of an operand: its type; of what is no tensor the value. Adds the
    elements of the tensors in it to `data`."""
    kind = type(value)
    if kind is Value:
        data.append(value.data)
        return value.type.short
    if kind in _PLAIN:
        return kind, value
    if (parts := parts_of(value)) is not None:
        return kind, tuple([key_of(part, data) for part in parts])
    if is_typed(value):
        return kind, value.dtype, repr(value)
    if kind is float:
        return float, repr(value)  # 0.0 and -0.0 differ
    if kind is slice:
        return slice, key_of((value.start, value.stop, value.step), data)
    if is_told_by_text(value):
        return kind, describe(value)
    return kind, value


_PLAIN = (int, str, bool, type(None))


def plan(g: InterpretedGenerator, node: ast.AST, rule: Rule, operands: tuple[object, ...]) -> Plan:
    """The plan of a rule, for operands like these."""
    with compile_lock, mlir_context():
        module, block = empty_function([to_ir(value.type) for value in tensors(operands)])
        given = with_handles(operands, iter(block.arguments))
        with ir.InsertionPoint(block), g.at(node):
            result = rule(g, *given)
            planner = StepPlanner()
            body = planner.body(block)
            made = Plan(body, planner, result, tuple(g.scopes))
        del module
        return made


def result_of(
    g: InterpretedGenerator, node: ast.AST, rule: Rule, operands: tuple[object, ...]
) -> Any:
    """What a rule gives, for its types alone: nothing is evaluated, and SSA values are gone."""
    with compile_lock, mlir_context():
        module, block = empty_function([to_ir(value.type) for value in tensors(operands)])
        given = with_handles(operands, iter(block.arguments))
        with ir.InsertionPoint(block), g.at(node):
            result = rule(g, *given)
        new = (tensor(None, v.type) if isinstance(v, tensor) else v for v in leaves(result))
        result = with_leaves(result, new)
        del module
        return result
