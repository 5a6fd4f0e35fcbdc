"""What a `proton.record` or `proton.mark` says, and which scopes have conditions."""

from collections.abc import Iterable
from dataclasses import dataclass

from proton.dialect.attributes import ORIGIN
from proton.dialect.builtin import i32_attr, string_attr
from proton.dialect.mlir import Attribute, Operation, Value, ir
from proton.trace.scope_path import ScopePath

ENTRIES = "entries"  # which openings of its scopes a record is of, of each member's one
SAMPLED = "sampled"  # a record of each iteration that its code runs in: which one was chosen before
WAITS = "waits"  # a record of nothing but waits for asynchronous work
BEGUN = "begun"  # a record of work for another iteration than the one that runs
ITERATION_FIELD = "#iteration"  # a payload value that is no user's (number_iterations.py)


@dataclass(frozen=True)
class Origin:
    """What a record is of that the compiler placed: the fields of a `Scope` (trace/model.py)."""

    kind: str = "slice"
    work: str = ""
    queue: str = ""
    pendings: int = 0

    @classmethod
    def of(cls, record: Operation) -> "Origin":
        """What a record says; of one that the user wrote it is a plain slice."""
        if ORIGIN not in record.attributes:
            return cls()
        return cls.read(record.attributes[ORIGIN])

    @classmethod
    def read(cls, attribute: Attribute) -> "Origin":
        """What `attribute` has written."""
        fields = ir.DictAttr(attribute)
        return cls(*(fields[name].value for name in ("kind", "work", "queue", "pendings")))

    @property
    def attribute(self) -> Attribute:
        """It as an attribute."""
        texts = {name: string_attr(getattr(self, name)) for name in ("kind", "work", "queue")}
        return ir.DictAttr.get(texts | {"pendings": i32_attr(self.pendings)})

    def write(self, record: Operation) -> None:
        """Writes it on a record."""
        record.attributes[ORIGIN] = self.attribute

    @property
    def is_flight_edge(self) -> bool:
        """True if it is an end of asynchronous work: all are needed to pair them."""
        return bool(self.queue)


def scope_of(record: Operation) -> ScopePath:
    """The scope that a record starts or ends."""
    return ScopePath(record.attributes["scope"].value)


def is_start(record: Operation) -> bool:
    """True if a record starts its scope."""
    return bool(record.attributes["phase"].value == "start")


def conditional(records: Iterable[Operation]) -> frozenset[ScopePath]:
    """The scopes of which some record has a condition."""
    return frozenset(scope_of(op) for op in records if op.opview.when is not None)


def payload_of(op: Operation) -> list[tuple[str, str, Value]]:
    """(name, kind, value) of each payload value of a record or mark that is the user's."""
    return [field for field in _fields(op) if field[0] != ITERATION_FIELD]


def iteration_of(op: Operation) -> Value | None:
    """The number of a record's iteration, i64, where the record has it; else None."""
    return next((value for name, _, value in _fields(op) if name == ITERATION_FIELD), None)


def _fields(op: Operation) -> list[tuple[str, str, Value]]:
    columns = op.attributes["names"], op.attributes["kinds"], op.opview.payload
    return [(name.value, kind.value, value) for name, kind, value in zip(*columns, strict=True)]
