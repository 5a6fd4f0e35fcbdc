"""The `proton` dialect: what the user asked to measure, for any target."""

from collections.abc import Sequence

from proton.dialect.builtin import string_attr
from proton.dialect.diagnostics import check_choice, reject
from proton.dialect.mlir import Operand, OpView, ext, ir
from proton.dialect.traits import Records

PHASES = ("start", "end")
# Of the name locations in which an op's membership in scopes travels: their path, and which opening
# of each of them it is.
SCOPE_PREFIX, ENTRY_PREFIX = "scope:", "entry:"
PAYLOAD_KINDS = ("int", "float")  # a float travels as the bits of its f64
RECORDS = ("proton.record", "proton.mark", "proton.event")


class Proton(ext.Dialect, name="proton"):
    """Named scopes, marks and events. No clock, no buffer, no target."""


def _verify_payload(op: OpView) -> bool:
    count = len(op.payload)
    for what in ("names", "kinds"):
        if len(op.attributes[what]) != count:
            return reject(op, f"{what} must have {count} entries, got {len(op.attributes[what])}")
    known = [string_attr(kind) for kind in PAYLOAD_KINDS]
    wrong = [str(kind) for kind in op.kinds if kind not in known]
    return not wrong or reject(op, f"kinds must be of {PAYLOAD_KINDS}, got {wrong[0]}")


class RecordOp(Proton.Operation, name="record", traits=[Records]):
    """One edge of a scope: `proton.record {scope = "load", phase = "start"} %payload, %when?`.

    Payload is i64; `names` and `kinds` ("int", or "float" for the bits of an f64) have one
    entry for each value. Only a start carries payload. There is a record only where `when` is
    true; a scope has it at its start, or at its end where it is not known before.
    """

    payload: Sequence[Operand[ir.IntegerType[64]]]
    scope: ir.StringAttr
    phase: ir.StringAttr
    names: ir.ArrayAttr
    kinds: ir.ArrayAttr
    when: Operand[ir.IntegerType[1]] | None = None

    @staticmethod
    def verify_invariants(op: "RecordOp") -> bool:
        if not check_choice(op, "phase", op.phase, PHASES):
            return False
        if op.phase.value == "end" and len(op.payload):
            return reject(op, f"only a start carries payload, got {len(op.payload)} values")
        return _verify_payload(op)


class MarkOp(Proton.Operation, name="mark", traits=[Records]):
    """An instant: `proton.mark {mark = "done"} %payload, %when?`, both as in a record."""

    payload: Sequence[Operand[ir.IntegerType[64]]]
    mark: ir.StringAttr
    names: ir.ArrayAttr
    kinds: ir.ArrayAttr
    when: Operand[ir.IntegerType[1]] | None = None

    verify_invariants = staticmethod(_verify_payload)


class EventOp(Proton.Operation, name="event", traits=[Records]):
    """One edge of an event: `proton.event {event = "tile", phase = "start"}`.

    An event may start and end in different blocks, functions and warps; who reads the records
    pairs its starts and ends in order of time.
    """

    event: ir.StringAttr
    phase: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "EventOp") -> bool:
        return check_choice(op, "phase", op.phase, PHASES)
