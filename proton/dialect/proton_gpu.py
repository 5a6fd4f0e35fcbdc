"""The `proton_gpu` dialect: how a measurement is taken. A strategy's own ops, by what they do.

The name is the field's; the CPU uses the same ops: a program there has one unit.
"""

from collections.abc import Sequence

from proton.dialect.diagnostics import reject
from proton.dialect.mlir import AnyType, Operand, OpView, Result, ext, ir
from proton.dialect.traits import PassesPointers, Records
from proton.trace.strategy import Strategy
from proton.trace.wire import MAX_SCOPE_ID


class ProtonGPU(ext.Dialect, name="proton_gpu"):
    """Clocks, segments and records."""


class SegmentType(ProtonGPU.Type, name="segment"):
    """The place where a unit's records go, with the count of records so far."""


class IterationsType(ProtonGPU.Type, name="iterations"):
    """What a loop has kept of its records."""


class InitOp(ProtonGPU.Operation, name="init", traits=[Records]):
    """`proton_gpu.init`: writes the header of this program's block; gives its segment."""

    result: Result[SegmentType]


class AttachOp(ProtonGPU.Operation, name="attach", traits=[Records]):
    """`proton_gpu.attach`: in a function that a kernel calls, the segment of its caller."""

    result: Result[SegmentType]


class FinalizeOp(ProtonGPU.Operation, name="finalize", traits=[Records]):
    """`proton_gpu.finalize %segment`: closes the header and writes the table."""

    segment: Operand[SegmentType]


class WritePendingOp(ProtonGPU.Operation, name="write_pending", traits=[Records]):
    """`proton_gpu.write_pending`: a record that waits for the next clock sample is written. What
    follows carries none in registers, until it records itself."""


class SampledOp(ProtonGPU.Operation, name="sampled", traits=[Records]):
    """`%sampled = proton_gpu.sampled`: whether records of this program are kept, and of this warp,
    where warps do not share tensor cores; the same in all lanes."""

    result: Result[ir.IntegerType[1]]


class OptimizationBarrierOp(
    ProtonGPU.Operation, name="optimization_barrier", traits=[Records, PassesPointers]
):
    """`proton_gpu.optimization_barrier %value`: the same value, computed before the clock is read
    on one side of it and used after it on the other. No instruction comes of it."""

    value: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "OptimizationBarrierOp") -> bool:
        given, kept = op.value.type, op.result.type
        return given == kept or reject(op, f"result must have type {given}, got {kept}")


class SchedBarrierOp(ProtonGPU.Operation, name="sched_barrier", traits=[Records]):
    """`proton_gpu.sched_barrier`: the assembler moves nothing across it, as across a clock
    sample."""


class ReadCounterOp(ProtonGPU.Operation, name="read_counter", traits=[Records]):
    """`proton_gpu.read_counter`: the clock now; work does not move across it."""

    counter: Result[ir.IntegerType[64]]


class BeginIterationsOp(ProtonGPU.Operation, name="begin_iterations", traits=[Records]):
    """`%loop = proton_gpu.begin_iterations %segment {slots = 2, words = 4, iterations = 128}`:
    ahead of a loop, each iteration of which makes the same `slots` records, and keeps `words`
    readings for them. The readings of the newest `iterations` are kept: of all that are not
    written, where the loop has `kept_iterations`."""

    segment: Operand[SegmentType]
    slots: ir.IntegerAttr
    words: ir.IntegerAttr
    iterations: ir.IntegerAttr
    loop: Result[IterationsType]


class KeptIterationsOp(ProtonGPU.Operation, name="kept_iterations", traits=[Records]):
    """`%iterations = proton_gpu.kept_iterations %loop`: behind the end of an iteration or of the
    loop, how many iterations are kept whose records are not written, i32; all lanes have the
    same."""

    loop: Operand[IterationsType]
    iterations: Result[ir.IntegerType[32]]


class KeepReadingsOp(ProtonGPU.Operation, name="keep_readings", traits=[Records]):
    """`proton_gpu.keep_readings %loop, %readings {first = 4}`: keeps readings of an iteration, one,
    two or four, side by side behind its `first`."""

    loop: Operand[IterationsType]
    readings: Sequence[Operand[ir.IntegerType[64]]]
    first: ir.IntegerAttr

    @staticmethod
    def verify_invariants(op: "KeepReadingsOp") -> bool:
        count = len(op.readings)
        return count in (1, 2, 4) or reject(op, f"keeps 1, 2 or 4 readings at once, got {count}")


class EndIterationOp(ProtonGPU.Operation, name="end_iteration", traits=[Records]):
    """`proton_gpu.end_iteration %loop`: the end of an iteration."""

    loop: Operand[IterationsType]


class EndIterationsOp(ProtonGPU.Operation, name="end_iterations", traits=[Records]):
    """`proton_gpu.end_iterations %loop`: behind the loop; its records are counted."""

    loop: Operand[IterationsType]


class KeptRecordsOp(ProtonGPU.Operation, name="kept_records", traits=[Records]):
    """`%first, %end = proton_gpu.kept_records %loop`: of the loop's records, counted from 0, those
    that are not written yet and that a lane writes are `first` and each 32nd behind it, below
    `end`; i32."""

    loop: Operand[IterationsType]
    first: Result[ir.IntegerType[32]]
    end: Result[ir.IntegerType[32]]


class KeptReadingsOp(ProtonGPU.Operation, name="kept_readings", traits=[Records]):
    """`%start, %end = proton_gpu.kept_readings %loop, %iteration, %slot {starts = [0, 1], ends =
    [1, 2]}`: the readings of a record of the loop, which may be none: which of its iteration's they
    are, by its slot."""

    loop: Operand[IterationsType]
    iteration: Operand[ir.IntegerType[32]]
    slot: Operand[ir.IntegerType[32]]
    starts: ir.ArrayAttr
    ends: ir.ArrayAttr
    start: Result[ir.IntegerType[64]]
    end: Result[ir.IntegerType[64]]


class WriteRecordOp(ProtonGPU.Operation, name="write_record", traits=[Records]):
    """`proton_gpu.write_record %loop, %iteration, %slot, %when, %start, %end, %slot_iterations
    {scope_ids, kinds}`: writes a record of a loop, whole, to its place in the ring buffer, if
    `%when`. There is an iteration number for each slot, a scope and a kind."""

    loop: Operand[IterationsType]
    iteration: Operand[ir.IntegerType[32]]
    slot: Operand[ir.IntegerType[32]]
    when: Operand[ir.IntegerType[1]]
    start: Operand[ir.IntegerType[64]]
    end: Operand[ir.IntegerType[64]]
    slot_iterations: Sequence[Operand[ir.IntegerType[32]]]
    scope_ids: ir.ArrayAttr
    kinds: ir.ArrayAttr

    @staticmethod
    def verify_invariants(op: "WriteRecordOp") -> bool:
        count = len(op.slot_iterations)
        for what in ("scope_ids", "kinds"):
            if len(op.attributes[what]) != count:
                given = len(op.attributes[what])
                return reject(op, f"{what} must have {count} entries, got {given}")
        return True


class WriteBatchOp(ProtonGPU.Operation, name="write_batch", traits=[Records]):
    """`proton_gpu.write_batch %loop, %first {number = 0}`: writes the readings of the iterations
    that are kept, 32 at most, as a batch (proton/trace/iterations.py) of the loop with this number
    in the profile; `%first` iterations of the loop came before `begin_iterations`."""

    loop: Operand[IterationsType]
    first: Operand[ir.IntegerType[32]]
    number: ir.IntegerAttr


class ForgetIterationsOp(ProtonGPU.Operation, name="forget_iterations", traits=[Records]):
    """`proton_gpu.forget_iterations %loop`: the loop's records are written; its next iterations, or
    the next loop, may take their place."""

    loop: Operand[IterationsType]


def _verify_record(op: OpView) -> bool:
    return 0 <= op.scope_id.value <= MAX_SCOPE_ID or reject(
        op, f"scope_id must lie in [0, {MAX_SCOPE_ID}], got {op.scope_id.value}"
    )


def _storing_op(strategy: Strategy) -> type[OpView]:
    class StoringOp(ProtonGPU.Operation, name=f"{strategy.value}_record", traits=[Records]):
        """Writes one record where the strategy keeps it.

        `kind` is a wire kind, `iteration` an i32, `payload` i64 values (the bits of a float). Where
        `when` is false there is no record, and none is counted.
        """

        segment: Operand[SegmentType]
        start: Operand[ir.IntegerType[64]]
        end: Operand[ir.IntegerType[64]]
        iteration: Operand[ir.IntegerType[32]]
        payload: Sequence[Operand[ir.IntegerType[64]]]
        scope_id: ir.IntegerAttr
        kind: ir.IntegerAttr
        when: Operand[ir.IntegerType[1]] | None = None

        verify_invariants = staticmethod(_verify_record)

    return StoringOp


def _counting_op(strategy: Strategy) -> type[OpView]:
    class CountingOp(ProtonGPU.Operation, name=f"{strategy.value}_record", traits=[Records]):
        """Counts one record, where `when` is true, and stores nothing."""

        segment: Operand[SegmentType]
        scope_id: ir.IntegerAttr
        kind: ir.IntegerAttr
        when: Operand[ir.IntegerType[1]] | None = None

        verify_invariants = staticmethod(_verify_record)

    return CountingOp


# The op that keeps one record under each strategy, and what these ops are called.
RECORD_OPS: dict[Strategy, type[OpView]] = {
    strategy: _storing_op(strategy) if strategy.stores else _counting_op(strategy)
    for strategy in Strategy
}
RECORDS = tuple(f"proton_gpu.{strategy.value}_record" for strategy in Strategy)
