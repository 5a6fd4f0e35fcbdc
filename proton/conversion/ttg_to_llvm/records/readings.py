"""Which readings of a GPU's clock store a pending record, wait for a barrier, or are of each lane:
found before a function is lowered, along all ways that control takes, and marked on the ops."""

from proton.analysis.dataflow import ForwardDataflow
from proton.conversion.ttg_to_llvm.core.lowering import Lowering
from proton.dialect import isa, names_of
from proton.dialect import proton_gpu as pg
from proton.dialect.attributes import BEHIND_BARRIER, CARRIED, STORES
from proton.dialect.mlir import Block, Operation, func, ir
from proton.dialect.traits import Barrier, Loop, Pure, Records, Terminates, has
from proton.dialect.walk import producer_of, users
from proton.trace.strategy import Strategy

# What makes a record pending, and what nothing is pending behind.
_KEEPING = names_of(*pg.RECORDS, pg.KeepReadingsOp)
_ENDS = names_of(
    *(pg.ReadCounterOp, pg.BeginIterationsOp, pg.EndIterationsOp, pg.WritePendingOp),
    pg.FinalizeOp,
)


def _is_end(op: Operation) -> bool:
    """Whether an op leaves nothing pending. The end of an iteration of several records does: a
    register that is carried to the next one is read late, and its loop is not unrolled (decision
    138). So does that of an iteration behind which records are written."""
    if not isa(op, pg.EndIterationOp):
        return op.name in _ENDS
    begin = producer_of(op.operands[0])
    return int(begin.attributes["slots"].value) > 1 or is_written_in_loop(begin)


def is_written_in_loop(begin: Operation) -> bool:
    """Whether the loop of a `proton_gpu.begin_iterations` writes its records itself."""
    return any(isa(user, pg.KeptIterationsOp) for user in users(begin.results[0]))


class _Places(ForwardDataflow[bool]):
    """Marks ops by whether something may have come before them, along any way."""

    def join(self, left: bool, right: bool) -> bool:
        return left or right


class _Stores(_Places):
    """Marks what a pending record may come before, and which stores it: readings, records (several
    may share a reading), and the end. `calls_record`: functions that are called record, too."""

    def __init__(self, calls_record: bool) -> None:
        self.recording = (*_KEEPING, func.CallOp) if calls_record else _KEEPING

    def enter(self, op: Operation) -> None:
        for region in op.regions if has(op, Loop) else ():
            for block in region.blocks:
                _mark_carried(block)

    def transfer(self, op: Operation, state: bool) -> bool:
        is_end = _is_end(op)
        if state and (is_end or op.name in _KEEPING):
            op.attributes[STORES] = ir.UnitAttr.get()
        return op.name in self.recording or (state and not is_end)


class _BehindBarriers(_Places):
    """Marks readings that have only what is pure between them and a barrier ahead of them; another
    reading in between is behind it already.

    A barrier takes effect some cycles after it was issued. The assembler keeps memory accesses as
    far away, and reads the clock in the next cycle: before any warp has waited. A barrier of the
    warp, which costs it no more than that distance, keeps it there (decision 129).
    """

    def transfer(self, op: Operation, state: bool) -> bool:
        if isa(op, pg.ReadCounterOp):
            if state:
                op.attributes[BEHIND_BARRIER] = ir.UnitAttr.get()
            return False
        return has(op, Barrier) or (state and has(op, Pure, Records, Terminates))


def mark_readings(ctx: Lowering, strategy: Strategy, pending: bool) -> None:
    """Marks what the records of a function ask of its ops; `pending`: whether one may be pending
    where it begins."""
    entry = ctx.function.regions[0].blocks[0]
    _BehindBarriers().block(entry, False)
    if strategy.stores:
        _Stores(ctx.called_record).block(entry, pending)


def _mark_carried(block: Block) -> None:
    """Marks the readings that the last record of a loop's block has, if it has several: a loop of
    one is unrolled where that is possible, so few of its iterations carry a record to the next."""
    records = [view.operation for view in block.operations if view.operation.name in pg.RECORDS]
    for reading in list(records[-1].operands)[1:3] if len(records) > 1 else ():
        if isinstance(reading, ir.OpResult):
            reading.owner.operation.attributes[CARRIED] = ir.UnitAttr.get()
