"""Instrument: `proton` records become the ops of a strategy.

A scope's start only reads the clock; at its end one op writes the record with both edges. Edges
with nothing between them are one read: adjacent scopes share it, nested ones too. The pass adds
`proton_gpu.init` at entry and `proton_gpu.finalize` before the return, also where optimisation has
left no record of what was written, and leaves a kernel without annotations as it is. The scope
table goes onto the kernel (proton/dialect/profile.py).
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar

from proton.base.errors import CompilationError
from proton.conversion.pieces import WHOLE, PieceOfVisit, number_pieces
from proton.dialect import isa, proton
from proton.dialect import proton_gpu as pg
from proton.dialect.attributes import KERNEL, SCOPES
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.emit import constant, is_multiple, iteration_number
from proton.dialect.mlir import Block, Module, Operation, Value, arith, ir, scf
from proton.dialect.profile import set_table
from proton.dialect.proton import RECORDS
from proton.dialect.records import BEGUN, SAMPLED, WAITS, Origin, iteration_of, payload_of
from proton.dialect.regions import end_of
from proton.dialect.traits import NamesMemory, NoInstruction, TileIndex, has
from proton.dialect.walk import before, functions, kernel_functions, ops_named, source_span
from proton.passes import Pass, register
from proton.trace.model import PayloadField, Scope
from proton.trace.profile import ScopeTable
from proton.trace.scope_path import ScopePath
from proton.trace.strategy import Strategy
from proton.trace.wire import MAX_PAYLOAD_SLOTS, NO_ITERATION, RecordKind


@dataclass
class _Edge:
    """What is known at the end of a scope (or at a mark)."""

    start: Value
    end: Value
    iteration: Callable[[], Value]
    payload: list[Value]
    scope_id: int
    kind: RecordKind
    when: Value | None  # an i1; None where there is a record always


@register
@dataclass(frozen=True)
class ProtonToProtonGPU(Pass):
    """Rewrites `proton.record`, `proton.mark` and `proton.event` for a strategy.

    Of records and marks in a loop that counts only iterations 0, `every`, 2 * `every`, ... are
    kept; of events all are, whose starts and ends may be in different loops, and so are the ends of
    asynchronous work.
    """

    name: ClassVar[str] = "convert-proton-to-proton-gpu"

    strategy: str = "circular"
    every: int = 1

    def run(self, module: Module) -> None:
        strategy = Strategy(self.strategy)
        kernels = kernel_functions(module)
        others = [function for function in functions(module) if function not in kernels]
        called = [function for function in others if _has_records(function)]
        for kernel in kernels:
            annotated = [f for f in (kernel, *others) if SCOPES in f.attributes]
            if annotated or called or _has_records(kernel):
                paths = [path.value for f in annotated for path in f.attributes[SCOPES]]
                _instrument(kernel, called, dict.fromkeys(paths), strategy, self.every)


def _has_records(function: Operation) -> bool:
    return bool(ops_named(function, *RECORDS))


def _instrument(
    kernel: Operation,
    called: list[Operation],
    wanted: Iterable[str],
    strategy: Strategy,
    every: int,
) -> None:
    """A kernel and the functions that it calls, which record as it does, into its segment. Of the
    scopes `wanted` those that have no record are optimized out."""
    table, seen = _Table(number_pieces((kernel, *called))), set[str]()
    for function in (kernel, *called):
        instrumenter = _Instrumenter(function, strategy, table, every)
        instrumenter.run()
        seen |= instrumenter.seen
    optimized_out = tuple(path for path in wanted if path not in seen)
    set_table(kernel, ScopeTable(scopes=tuple(table.entries), optimized_out=optimized_out))


@dataclass
class _Open:
    """A scope that has started in the block being walked."""

    record: Operation
    counter: Value


@dataclass
class _Table:
    """The scope table being built: one entry for each distinct path, kind, payload and piece."""

    pieces: dict[Operation, PieceOfVisit]
    entries: list[Scope] = field(default_factory=list)
    ids: dict[Scope, int] = field(default_factory=dict)  # of entries without their places

    def add(self, op: Operation, kind: RecordKind) -> int:
        """The id of a record's scope."""
        is_mark = kind is RecordKind.MARK
        path = ScopePath(op.attributes["mark" if is_mark else "scope"].value)
        payload = tuple(PayloadField(name=n, kind=k) for n, k, _ in payload_of(op))
        if len(payload) > MAX_PAYLOAD_SLOTS:
            raise CompilationError(
                f"a record holds at most {MAX_PAYLOAD_SLOTS} payload values, and {path} has "
                f"{len(payload)}",
                source_span(op.location),
                "drop some, or use several scopes",
            )
        is_fused = len(op.attributes.get("members", ())) > 1
        of = asdict(Origin.of(op)) | ({"kind": "mark"} if is_mark else {})
        of |= asdict(self.pieces.get(op, WHOLE))
        of |= {"waits": WAITS in op.attributes, "ahead": BEGUN in op.attributes}
        scope = Scope(name=path.name, path=path, fused=is_fused, payload=payload, **of)
        return self._id(scope, op)

    def add_event(self, op: Operation) -> int:
        """The id of an event: its starts and ends have one, wherever they are."""
        name = op.attributes["event"].value
        return self._id(Scope(name=name, path=name, kind="event"), op)

    def _id(self, scope: Scope, op: Operation) -> int:
        if scope not in self.ids:
            self.ids[scope] = len(self.entries)
            span = source_span(op.location)
            self.entries.append(replace(scope, file=span.file, line=span.line))
        return self.ids[scope]


class _Instrumenter:
    def __init__(self, function: Operation, strategy: Strategy, table: _Table, every: int) -> None:
        self.function, self.strategy, self.table = function, strategy, table
        self.every = every
        self.segment: Value
        self.seen: set[str] = set()

    def run(self) -> None:
        entry = self.function.regions[0].blocks[0]
        is_kernel = KERNEL in self.function.attributes
        with ir.InsertionPoint.at_block_begin(entry), self.function.location:
            op = pg.InitOp if is_kernel else pg.AttachOp
            self.segment = op(pg.SegmentType.get()).result
        self._walk(entry, None)
        if is_kernel:
            terminator = end_of(entry)
            with before(terminator):
                pg.FinalizeOp(self.segment)

    def _walk(self, block: Block, iteration: Callable[[], Value] | None) -> None:
        """Rewrites a block's records; `iteration` emits the enclosing loop's count, None outside
        of loops that count."""
        open_scopes: list[_Open] = []
        done: list[Operation] = []
        counter: Value | None = None  # the last read, while nothing that takes time has come since
        for op in [operation.operation for operation in block.operations]:
            if op.name not in RECORDS:
                for region in op.regions:
                    for inner in region.blocks:
                        self._walk(inner, _loop_iteration(op, iteration))
                counter = counter if _is_free(op) else None
                continue
            with before(op):
                counter = counter or pg.ReadCounterOp(integer(64)).counter
                if isa(op, proton.MarkOp):
                    self._record(op, RecordKind.MARK, counter, counter, iteration, op.opview.when)
                elif isa(op, proton.EventOp):
                    self._event(op, counter, iteration)
                elif op.attributes["phase"].value == "start":
                    open_scopes.append(_Open(op, counter))
                else:
                    self._close(op, open_scopes, counter, iteration)
            done.append(op)
        if open_scopes:
            self._unpaired(open_scopes[-1].record)
        for op in done:
            op.erase()

    def _close(
        self,
        op: Operation,
        open_scopes: list[_Open],
        counter: Value,
        iteration: Callable[[], Value] | None,
    ) -> None:
        path = op.attributes["scope"].value
        if not open_scopes or open_scopes[-1].record.attributes["scope"].value != path:
            self._unpaired(op)
        start = open_scopes.pop()
        opened, closed = start.record.opview.when, op.opview.when
        when = opened if closed is None else closed
        self._record(start.record, RecordKind.SLICE, start.counter, counter, iteration, when)

    def _record(
        self,
        op: Operation,
        kind: RecordKind,
        start: Value,
        end: Value,
        iteration: Callable[[], Value] | None,
        when: Value | None,
    ) -> None:
        if kind is RecordKind.SLICE:
            members = [member.value for member in op.attributes.get("members", ())]
            for path in (op.attributes["scope"].value, *members):
                self.seen |= {path, *ScopePath(path).around}
        scope_id = self.table.add(op, kind)
        own = iteration_of(op)
        payload = [value for _, _, value in payload_of(op)]
        if own is not None:
            iteration = functools.partial(_truncated, own)
        number = functools.cache(iteration or _no_iteration)
        is_chosen = SAMPLED in op.attributes or Origin.of(op).is_flight_edge
        if iteration is not None and self.every > 1 and not is_chosen:
            sampled = is_multiple(number(), self.every)
            when = sampled if when is None else arith.AndIOp(when, sampled).result
        self._keep(_Edge(start, end, number, payload, scope_id, kind, when))

    def _event(self, op: Operation, now: Value, iteration: Callable[[], Value] | None) -> None:
        is_start = op.attributes["phase"].value == "start"
        kind = RecordKind.EVENT_START if is_start else RecordKind.EVENT_END
        number = functools.cache(iteration or _no_iteration)
        scope_id = self.table.add_event(op)
        self._keep(_Edge(now, now, number, [], scope_id, kind, None))

    def _keep(self, edge: _Edge) -> None:
        """Emits the strategy's op; one that only counts has no use for what is in the record."""
        values = []
        if self.strategy.stores:
            values = [edge.start, edge.end, edge.iteration(), edge.payload]
        numbers = i32_attr(edge.scope_id), i32_attr(edge.kind)
        pg.RECORD_OPS[self.strategy](self.segment, *values, *numbers, when=edge.when)

    def _unpaired(self, op: Operation) -> None:
        raise CompilationError(
            f"scope {op.attributes['scope'].value!r} does not start and end in one block",
            source_span(op.location),
            "use `with proton.scope(...)`",
        )


def _is_free(op: Operation) -> bool:
    if has(op, TileIndex, NamesMemory):
        return True
    if any(isinstance(result.type, ir.RankedTensorType) for result in op.results):
        return False
    return has(op, NoInstruction)


def _no_iteration() -> Value:
    return constant(_signed(NO_ITERATION), integer(32))


def _truncated(number: Value) -> Value:
    """An i64 that fits, as i32."""
    return arith.TruncIOp(integer(32), number).result


def _loop_iteration(op: Operation, outer: Callable[[], Value] | None) -> Callable[[], Value] | None:
    """What emits the number of the current iteration, counted from 0, as i32; None where the loop
    does not count."""
    if isa(op, scf.WhileOp):
        return None
    if not isa(op, scf.ForOp):
        return outer
    return functools.partial(iteration_number, op, 32)


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
