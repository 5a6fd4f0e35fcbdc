"""Lower: the code that writes records on the CPU (a GPU's is in ttg_to_llvm/records/profile.py).

Each op becomes plain stores: the count of records lives in a local variable that LLVM keeps in a
register, and where functions that a kernel calls record, too, in its place in the block. The clock
is the time stamp counter, read by inline assembly that clobbers memory, so that no memory access of
the work moves across it.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.base.errors import CompilationError
from proton.conversion.strategies import CODE
from proton.dialect import by_name
from proton.dialect import proton_gpu as pg
from proton.dialect.abi import AddedArgument, argument
from proton.dialect.attributes import PARTITION
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, effect, emit_if
from proton.dialect.memory import byte_pointer, element_pointer, pointer_type
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir, llvm
from proton.dialect.profile import profile_of
from proton.dialect.regions import in_loop
from proton.dialect.walk import (
    all_ops,
    before,
    called_functions,
    kernel_functions,
    ops_named,
    source_span,
)
from proton.passes import Pass, register
from proton.trace import wire
from proton.trace.profile import KernelProfile


@register
@dataclass(frozen=True)
class ProtonGPUToLLVM(Pass):
    """Lowers `proton_gpu` ops to the llvm dialect for x86-64."""

    name: ClassVar[str] = "convert-proton-gpu-to-llvm"

    def run(self, module: Module) -> None:
        for kernel in kernel_functions(module):
            profile = profile_of(kernel)
            if profile is not None:
                called = called_functions(kernel)
                called = [f for f in called if ops_named(f, pg.AttachOp)]
                _check_partitions(called)
                for function in (kernel, *called):
                    _Lowering(function, profile, called=bool(called)).run()


def _check_partitions(called: list[Operation]) -> None:
    """Raises CompilationError where what partitions call records: whose records are they?"""
    for partition in called:
        if PARTITION not in partition.attributes:
            continue
        for function in called_functions(partition):
            if ops_named(function, pg.AttachOp):
                raise CompilationError(
                    "scopes in a noinline function that a partition calls are not supported on a "
                    "CPU",
                    source_span(function.location),
                    "decorate the function with gluon.jit alone",
                )


def _i(bits: int) -> Type:
    return integer(bits)


def _store(value: Value, base: Value, offset: int) -> None:
    llvm.StoreOp(value, byte_pointer(base, offset))


class _Lowering:
    """The rules for one kernel, or a function that it calls; `called`: whether there are some."""

    def __init__(self, function: Operation, profile: KernelProfile, called: bool) -> None:
        self.function, self.layout, self.called = function, profile.block, called
        self.block = argument(function, AddedArgument.PROFILE)
        number = function.attributes.get(PARTITION)
        self.unit = 0 if number is None else int(ir.IntegerAttr(number).value)
        self.segment = self.layout.segment(self.unit)
        self.capacity, self.schema = profile.capacity, profile.schema
        records = ops_named(function, *pg.RECORDS)
        self.may_wrap = called or len(records) > self.capacity or any(map(in_loop, records))
        self.count: Value  # address of the number of records so far
        self.rules = by_name(
            {
                pg.InitOp: self._init,
                pg.AttachOp: self._attach,
                pg.FinalizeOp: self._finalize,
                pg.ReadCounterOp: self._read_counter,
                **dict.fromkeys(pg.RECORDS, self._record),
            }
        )

    def run(self) -> None:
        for op in all_ops(self.function):
            if op.name in self.rules:
                with before(op):
                    self.rules[op.name](op)
                op.erase()

    def _header(self, name: str, value: Value) -> None:
        _store(value, self.block, wire.header_offset(name))

    def _init(self, op: Operation) -> None:
        self.count = self._shared_count() if self.called else _local_count()
        llvm.StoreOp(constant(0, _i(64)), self.count)
        for unit in range(1, self.layout.units):
            _store(constant(0, _i(64)), self.block, self._count_offset(unit))
        for name, kind in (
            ("program_x", AddedArgument.PROGRAM_X),
            ("program_y", AddedArgument.PROGRAM_Y),
            ("program_z", AddedArgument.PROGRAM_Z),
            ("thread", AddedArgument.THREAD),
        ):
            self._header(name, argument(self.function, kind))
        constants = {
            "version": wire.VERSION,
            "state": wire.ProgramState.STARTED,
            "units": self.layout.units,
            "capacity": self.capacity,
            "payload_slots": self.schema.payload_slots,
            "clock_bits": self.schema.clock_bits,
        }
        for name, value in constants.items():
            width = wire.HEADER[name].itemsize * 8
            self._header(name, constant(int(value), _i(width)))
        now, core = _read_clock_and_core()
        self._header("hardware", core)
        self._header("clock_start", now)
        # The magic comes last: a block that has it has a whole header.
        self._header("magic", constant(wire.MAGIC, _i(32)))
        self._replace_segment(op)

    def _attach(self, op: Operation) -> None:
        self.count = self._shared_count()
        self._replace_segment(op)

    def _shared_count(self) -> Value:
        return byte_pointer(self.block, self._count_offset(self.unit))

    def _count_offset(self, unit: int) -> int:
        return self.layout.table + unit * wire.COUNT_BYTES

    def _replace_segment(self, op: Operation) -> None:
        """The segment is a place known to this lowering; its value only carried the order."""
        op.results[0].set_type(pointer_type())
        op.results[0].replace_all_uses_with(self.block)

    def _finalize(self, op: Operation) -> None:
        if not self.called:
            _store(llvm.LoadOp(_i(64), self.count).result, self.block, self.layout.table)
        self._header("clock_end", _read_clock())
        self._header("state", constant(int(wire.ProgramState.FINISHED), _i(16)))

    def _read_counter(self, op: Operation) -> None:
        op.results[0].replace_all_uses_with(_read_clock())

    def _record(self, op: Operation) -> None:
        """What keeps a record, where the record's condition is true."""

        def keep() -> list[Value]:
            CODE[op.name].on_cpu(_Record(self, op))
            return []

        if op.opview.when is None:
            keep()
        else:
            emit_if(op.opview.when, [], keep, list)


class _Record:
    """A record while it is lowered."""

    def __init__(self, of: _Lowering, op: Operation) -> None:
        self.of, self.op = of, op
        self.following: Value  # the number of the next record

    def count(self) -> Value:
        """The number of this record; that of the next one is stored."""
        number = llvm.LoadOp(_i(64), self.of.count).result
        self.following = arith.AddIOp(number, constant(1, _i(64))).result
        llvm.StoreOp(self.following, self.of.count)
        return number

    def store(self, number: Value) -> None:
        """Writes the record into its slot."""
        of, view, slot = self.of, self.op.opview, number
        if of.may_wrap:
            slot = arith.RemUIOp(number, constant(of.capacity, _i(64))).result
        offset = arith.MulIOp(slot, constant(of.schema.bytes, _i(64))).result
        place = element_pointer(byte_pointer(of.block, of.segment), offset, _i(8))
        tag = wire.tag(wire.RecordKind(view.kind.value), view.scope_id.value)
        values = {"start": view.start, "end": view.end, "iteration": view.iteration}
        values |= {wire.payload_field(slot): value for slot, value in enumerate(view.payload)}
        for name, at in of.schema.offsets.items():
            if name == "tag":
                _store(constant(_signed(tag, 32), _i(32)), place, at)
            elif name in values:
                _store(values[name], place, at)

    def hand_over(self) -> None:
        """Hands the segment over when this record was its last."""
        size = constant(self.of.capacity, _i(64))
        used = arith.RemUIOp(self.following, size).result
        full = arith.CmpIOp(arith.CmpIPredicate.eq, used, constant(0, _i(64))).result
        emit_if(full, [], lambda: self._call_host(arith.SubIOp(self.following, size).result), list)

    def _call_host(self, first: Value) -> list[Value]:
        """flush(block, number of the first record, segment, bytes)"""
        of = self.of
        operands = [
            argument(of.function, AddedArgument.FLUSH),
            of.block,
            first,
            byte_pointer(of.block, of.segment),
            constant(of.layout.segment_bytes, _i(64)),
        ]
        effect(
            llvm.CallOp,
            *operands,
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )
        return []


def _local_count() -> Value:
    return llvm.AllocaOp(pointer_type(), constant(1, _i(32)), _i(64)).result


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _read_clock() -> Value:
    """The time stamp counter, i64."""
    return _time_stamp("rdtsc", "={ax},={dx},~{memory},~{dirflag},~{fpsr},~{flags}", 2)[0]


def _read_clock_and_core() -> tuple[Value, Value]:
    """(time stamp counter, i64; core number, i32). Linux keeps the core in TSC_AUX's low bits."""
    now, aux = _time_stamp("rdtscp", "={ax},={dx},={cx},~{memory},~{dirflag},~{fpsr},~{flags}", 3)
    return now, arith.AndIOp(aux, constant(0xFFF, _i(32))).result


def _time_stamp(instruction: str, constraints: str, count: int) -> list[Value]:
    """The time stamp counter, i64, and what the instruction gives in further registers, i32."""
    struct = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")
    registers = llvm.InlineAsmOp(struct, [], instruction, constraints, has_side_effects=True).res

    def part(position: int) -> Value:
        place = ir.DenseI64ArrayAttr.get([position])
        return llvm.ExtractValueOp(_i(32), registers, place).result

    low, high = (arith.ExtUIOp(_i(64), part(position)).result for position in (0, 1))
    high = arith.ShLIOp(high, constant(32, _i(64))).result
    return [arith.OrIOp(low, high).result, *map(part, range(2, count))]
