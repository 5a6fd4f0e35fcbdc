"""IR as a list of numpy calls: what a rule of the front end emitted, ready to be run again.

A `StepPlanner` visits a block once and makes a `Step` of each op: a Python function that reads the
op's operands from a list of registers and writes its results there. What an op means is in a
table from its class to a maker, which sees the op (its attributes and types) once and returns the
function on arrays; the modules beside this one fill the table with `@evaluates`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from proton.base.errors import UnsupportedLanguageConstruct
from proton.dialect import OpRules, tt
from proton.dialect.mlir import Block, Module, Operation, Type, Value, func, ir
from proton.dialect.regions import holder, yield_values
from proton.dialect.traits import Terminates, has
from proton.dialect.walk import before, source_span
from proton.interpreter.interface import RunningProgram

Registers = list[Any]
Step = Callable[[RunningProgram, Registers], None]  # (the running program, its registers)
Function = Callable[..., Any]  # takes the running program, and an array for each operand

MAKERS = OpRules[Callable[[Operation], Function]]()
REGION_MAKERS = OpRules[
    Callable[["StepPlanner", Operation], Step]
]()  # of a step, as it runs blocks
evaluates, evaluates_regions = MAKERS.of, REGION_MAKERS.of


class Body:
    """A block: its steps, and where its arguments and what it passes on lie."""

    def __init__(self, arguments: list[int], steps: list[Step], passed: list[int]) -> None:
        self.arguments, self.steps, self.passed = arguments, steps, passed

    def run(
        self, program: RunningProgram, registers: Registers, arguments: Sequence[object] = ()
    ) -> list[Any]:
        """What the terminator passes on."""
        for slot, value in zip(self.arguments, arguments, strict=True):
            registers[slot] = value
        for step in self.steps:
            step(program, registers)
        return [registers[slot] for slot in self.passed]


class StepPlanner:
    """Makes steps of IR; values of the IR get places among the registers."""

    def __init__(self) -> None:
        self.slots: dict[Value, int] = {}

    def slot(self, value: Value) -> int:
        """The place of a value."""
        return self.slots.setdefault(value, len(self.slots))

    def body(self, block: Block) -> Body:
        """A block with its terminator, if it has one."""
        arguments = [self.slot(argument) for argument in block.arguments]
        steps, passed = [], list[int]()
        for view in block.operations:
            op = view.operation
            if has(op, Terminates):
                passed = [self.slot(value) for value in op.operands]
            else:
                steps.append(self._step(op))
        return Body(arguments, steps, passed)

    def _in_arith(self, op: Operation) -> Step:
        """What an op is in `arith`, as a block of its own."""
        with before(op):
            block = holder().regions[0].blocks[0]
        inputs = [block.add_argument(value.type, op.location) for value in op.operands]
        with ir.InsertionPoint(block), op.location:
            yield_values([tt.IN_ARITH[op.name](*inputs)])
        body, result = self.body(block), self.slot(op.results[0])
        operands = [self.slot(value) for value in op.operands]

        def step(program: RunningProgram, registers: Registers) -> None:
            (registers[result],) = body.run(program, registers, [registers[n] for n in operands])

        return step

    def _step(self, op: Operation) -> Step:
        if op.name in REGION_MAKERS:
            return REGION_MAKERS[op.name](self, op)
        if op.name in tt.IN_ARITH:
            return self._in_arith(op)
        if op.name not in MAKERS:
            raise UnsupportedLanguageConstruct(
                f"the interpreter has no {op.name}", source_span(op.location), "compile the kernel"
            )
        function = MAKERS[op.name](op)
        operands = [self.slot(value) for value in op.operands]
        results = [self.slot(value) for value in op.results]
        return _call(function, operands, results)


def empty_function(inputs: list[Type]) -> tuple[Module, Block]:
    """A module with one function of such arguments, and its block, to be filled and planned."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("step", (inputs, []))
        block = function.add_entry_block([ir.Location.unknown()] * len(inputs))
    return module, block


def _call(function: Function, operands: list[int], results: list[int]) -> Step:
    """The step of an op without regions."""
    if len(results) == 1:
        (result,) = results

        def one(program: RunningProgram, registers: Registers) -> None:
            registers[result] = function(program, *[registers[slot] for slot in operands])

        return one

    def several(program: RunningProgram, registers: Registers) -> None:
        found = function(program, *[registers[slot] for slot in operands])
        for slot, value in zip(results, found or (), strict=True):
            registers[slot] = value

    return several
