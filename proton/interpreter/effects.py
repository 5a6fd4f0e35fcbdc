"""What ops are that do something besides computing: prints, assertions, records."""

import sys
from collections.abc import Callable

import numpy as np

from proton.base.errors import DeviceAssertionError
from proton.base.words import index_widths
from proton.dialect import isa, proton, tt
from proton.dialect.mlir import Operation, ir
from proton.dialect.records import payload_of
from proton.interpreter.formats import POINTER, Array, Format, format_of, unsigned
from proton.interpreter.interface import RunningProgram
from proton.interpreter.plan import (
    Function,
    Registers,
    Step,
    StepPlanner,
    evaluates,
    evaluates_regions,
)


@evaluates(tt.AssertOp)
def _assert(op: Operation) -> Function:
    message = op.attributes["message"].value

    def check(program: RunningProgram, condition: Array) -> None:
        if not np.all(condition):
            raise DeviceAssertionError(message)

    return check


@evaluates(tt.PrintOp)
def _print(op: Operation) -> Function:
    """A line for each element, as compiled code has it."""
    prefix, in_hex = op.attributes["prefix"].value, bool(op.attributes["hex"].value)
    signs = list(op.attributes["signed"])
    formats = [format_of(value.type) for value in op.operands]
    shows = [_shown(f, bool(s), in_hex) for f, s in zip(formats, signs, strict=True)]

    def show(program: RunningProgram, *values: Array) -> None:
        head = f"pid ({', '.join(map(str, program.place))})"
        lines = [] if values else [f"{head}{prefix}\n"]
        for number, (value, text) in enumerate(zip(values, shows, strict=True)):
            which = f"(operand {number}) " if len(values) > 1 else ""
            widths = index_widths(np.shape(value))
            for place in np.ndindex(np.shape(value)):
                pairs = zip(place, widths, strict=True)
                index = ", ".join(f"{number:{width}}" for number, width in pairs)
                lines.append(f"{head} idx ({index}){prefix}{which}{text(value[place])}\n")
        sys.stdout.write("".join(lines))
        sys.stdout.flush()

    return show


def _shown(form: Format, is_signed: bool, in_hex: bool) -> Callable[..., object]:
    """How an element is written."""
    if form.storage == POINTER:
        return lambda x: f"0x{int(x['address']) & (1 << 64) - 1:016x}"
    if form.is_float:
        written = _like_c_hex if in_hex else _like_c
        return lambda x: written(float(form.widen(x)))
    if in_hex:
        return lambda x: f"0x{int(unsigned(x)):0{max(1, form.bits // 4)}x}"
    return lambda x: str(int(x if is_signed else unsigned(x)))


def _like_c(number: float) -> str:
    """A number as C's %f writes it."""
    if number != number:
        return "-nan" if np.signbit(number) else "nan"
    return f"{number:f}"


def _like_c_hex(number: float) -> str:
    """A number as C's %a writes it."""
    if not np.isfinite(number):
        return _like_c(number)
    digits, exponent = number.hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}"


# Records


@evaluates(proton.EventOp)
def _event(op: Operation) -> Function:
    name, is_start = op.attributes["event"].value, op.attributes["phase"].value == "start"
    return lambda program: program.recorder.event(name, is_start)


@evaluates_regions(proton.RecordOp, proton.MarkOp)
def _record(planner: StepPlanner, op: Operation) -> Step:
    is_mark = isa(op, proton.MarkOp)
    path = op.attributes["mark" if is_mark else "scope"].value
    fields = payload_of(op)
    kinds = tuple((name, kind) for name, kind, _ in fields)
    slots = [planner.slot(value) for _, _, value in fields]
    when = None if op.opview.when is None else planner.slot(op.opview.when)
    phase = "mark" if is_mark else ir.StringAttr(op.attributes["phase"]).value

    def step(program: RunningProgram, registers: Registers) -> None:
        payload = [int(registers[slot]) for slot in slots]
        holds = when is None or bool(registers[when])
        getattr(program.recorder, phase)(path, kinds, payload, holds)

    return step
