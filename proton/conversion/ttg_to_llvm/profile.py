"""The records of a GPU's program: each warp is a unit, and its first lane writes for it.

A record is stored once, at the end of its slice, in the warp's own ring in global memory; the
number of records so far lives in a register. No arithmetic is done on a clock value, so nothing
waits for one; the stores are predicated, so nothing branches. The header and the table are those
of proton/trace/wire.py.
"""

from dataclasses import dataclass
from typing import Any

from proton.base.targets import WARP_SIZE
from proton.conversion.proton_gpu_to_llvm import profile_layout
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.memory import first_thread
from proton.dialect.abi import Argument, argument
from proton.dialect.mlir import ir
from proton.trace import wire

MOST_PINNED = 16  # words that one piece of inline assembly takes


@dataclass
class _Unit:
    """What the records of a function know: made by `proton_gpu.init`."""

    block: Any  # address of the program's block
    segment: Any  # address of this warp's ring
    table: Any  # address of this warp's number of records
    count: Any  # where that number is meanwhile
    is_writer: Any  # whether this lane writes
    capacity: int
    record_bytes: int
    clock_bits: int


def _unit(ctx: Lowering) -> _Unit:
    unit: _Unit = ctx.mapped["profile"]
    return unit


def _register(name: str, bits: int) -> Any:
    """A special register that changes while the kernel runs."""
    letter = {32: "r", 64: "l"}[bits]
    text = f"mov.u{bits} $0, %{name};"
    return v.assembly(text, f"={letter}", v.integer(bits), effects=True)


def _wide(value: Any) -> Any:
    return v.create("llvm.zext", v.integer(64), value)


def _byte(base: Any, offset: Any) -> Any:
    """The address `offset` (a number or an i64) bytes behind `base`."""
    if isinstance(offset, int):
        offset = v.constant(offset, v.integer(64))
    return v.offset_pointer(base, offset, v.integer(8))


def _program() -> Any:
    """The linear number of this program, i64."""
    place, size = (
        [_wide(v.create(f"nvvm.read.ptx.sreg.{name}.{axis}", v.integer(32))) for axis in "xyz"]
        for name in ("ctaid", "nctaid")
    )
    row = v.add(v.binary("llvm.mul", place[2], size[1]), place[1])
    return v.add(v.binary("llvm.mul", row, size[0]), place[0])


@lowers("proton_gpu.init")
def _init(ctx: Lowering, site: Site) -> list[Any]:
    layout = profile_layout(ctx.function)
    assert layout is not None
    capacity, bits = layout["capacity"], layout["clock_bits"]
    size = wire.record_bytes(layout["payload_slots"], bits)
    buffer = argument(ctx.function, Argument.PROFILE)
    i64 = v.integer(64)
    block = _byte(buffer, v.binary("llvm.mul", _program(), v.constant(layout["block_bytes"], i64)))
    warp = _wide(v.binary("llvm.lshr", ctx.thread, v.i32(WARP_SIZE.bit_length() - 1)))
    ring = v.binary("llvm.mul", warp, v.constant(capacity * size, i64))
    entry = v.binary("llvm.mul", warp, v.constant(8, i64))
    lane = v.binary("llvm.and", ctx.thread, v.i32(WARP_SIZE - 1))
    count = v.create(
        "llvm.alloca", v.pointer(0), v.i32(1), elem_type=ir.TypeAttr.get(v.integer(32))
    )
    v.store(count, v.i32(0), 4)
    ctx.mapped["profile"] = _Unit(
        block=block,
        segment=_byte(_byte(block, wire.segments_offset(layout["units"])), ring),
        table=_byte(_byte(block, wire.table_offset()), entry),
        count=count,
        is_writer=v.compare("eq", lane, v.i32(0)),
        capacity=capacity,
        record_bytes=size,
        clock_bits=bits,
    )
    v.when(first_thread(ctx), lambda: _begin(block, layout))
    return [block]


def _begin(block: Any, layout: dict[str, Any]) -> None:
    """The header; its magic comes last: a block that has it has a whole header."""
    fields: dict[str, Any] = {
        f"program_{axis}": v.create(f"nvvm.read.ptx.sreg.ctaid.{axis}", v.integer(32))
        for axis in "xyz"
    }
    fields["hardware"] = _register("smid", 32)
    numbers = {
        "version": wire.VERSION,
        "state": wire.State.STARTED,
        "units": layout["units"],
        "capacity": layout["capacity"],
        "payload_slots": layout["payload_slots"],
        "clock_bits": layout["clock_bits"],
    }
    for name, number in numbers.items():
        fields[name] = v.constant(int(number), v.integer(8 * wire.HEADER[name].itemsize))
    fields["timer_start"] = _register("globaltimer", 64)
    fields["clock_start"] = _register("clock64", 64)
    fields["magic"] = v.i32(wire.MAGIC)
    for name, value in fields.items():
        _store_field(block, name, value)


def _store_field(block: Any, name: str, value: Any) -> None:
    """Volatile: neither dropped nor moved behind what a later one says."""
    bits = value.type.width
    letter = {16: "h", 32: "r", 64: "l"}[bits]
    place = _byte(block, wire.header_offset(name))
    v.assembly(
        f"st.volatile.global.b{bits} [$0], $1;", f"l,{letter}", None, place, value, effects=True
    )


@lowers("proton_gpu.finalize")
def _finalize(ctx: Lowering, site: Site) -> list[Any]:
    """Each warp leaves its number of records; the clock at the end is later than all of them."""
    unit = _unit(ctx)
    number = _wide(v.load(unit.count, v.integer(32), 4))
    v.assembly(
        "@$2 st.volatile.global.b64 [$0], $1;",
        "l,l,b",
        None,
        unit.table,
        number,
        unit.is_writer,
        effects=True,
    )
    v.barrier()

    def end() -> None:
        _store_field(unit.block, "clock_end", _register("clock64", 64))
        _store_field(unit.block, "timer_end", _register("globaltimer", 64))
        state = v.constant(int(wire.State.FINISHED), v.integer(16))
        _store_field(unit.block, "state", state)

    v.when(first_thread(ctx), end)
    return []


@lowers("proton_gpu.read_counter")
def _read_counter(ctx: Lowering, site: Site) -> list[Any]:
    bits = _unit(ctx).clock_bits
    return [_register("clock" if bits == 32 else "clock64", bits)]


def _next(unit: _Unit) -> Any:
    """The number of this record, i32; the next one is stored."""
    number = v.load(unit.count, v.integer(32), 4)
    v.store(unit.count, v.add(number, v.i32(1)), 4)
    return number


@lowers("proton_gpu.counting_record")
def _counting(ctx: Lowering, site: Site) -> list[Any]:
    _next(_unit(ctx))
    return []


@lowers("proton_gpu.circular_record")
def _circular(ctx: Lowering, site: Site) -> list[Any]:
    unit = _unit(ctx)
    slot = v.binary("llvm.and", _next(unit), v.i32(unit.capacity - 1))
    offset = v.binary("llvm.mul", slot, v.i32(unit.record_bytes))
    place = _byte(unit.segment, _wide(offset))
    _, start, end, iteration, *payload = site.operands
    tag = v.i32(_signed(wire.tag(wire.Kind(site.number("kind")), site.number("scope_id"))))
    if unit.clock_bits == 32 and unit.record_bytes % wire.RECORD_ALIGNMENT == 0:
        _write(unit, place, ".v4.b32", "r", [start, end, tag, iteration])
    elif unit.clock_bits == 32:
        _write(unit, place, ".v2.b32", "r", [start, end])
        _write(unit, _byte(place, 8), ".v2.b32", "r", [tag, iteration])
    else:
        _write(unit, place, ".b64", "l", [start])
        _write(unit, _byte(place, 8), ".b64", "l", [end])
        _write(unit, _byte(place, 16), ".v2.b32", "r", [tag, iteration])
    first = wire.record_offset("payload", unit.clock_bits)
    for position, value in enumerate(payload):
        _write(unit, _byte(place, first + 8 * position), ".b64", "l", [value])
    return []


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def _write(unit: _Unit, place: Any, suffix: str, letter: str, values: list[Any]) -> None:
    listed = ", ".join(f"${1 + n}" for n in range(len(values)))
    listed = f"{{{listed}}}" if len(values) > 1 else listed
    text = f"@${1 + len(values)} st.global{suffix} [$0], {listed};"
    constraints = f"l{f',{letter}' * len(values)},b"
    v.assembly(text, constraints, None, place, *values, unit.is_writer, effects=True)


@lowers("proton_gpu.pin")
def _pin(ctx: Lowering, site: Site) -> list[Any]:
    return [_pinned(value) for value in site.operands]


def _pinned(value: Any) -> Any:
    """The value through empty inline assembly, word by word."""
    if not v.is_vector(value.type):
        alone = v.insert(v.poison(v.vector(1, value.type)), value, 0)
        return v.extract(_pinned(alone), 0)
    words = v.to_elements(v.to_words(value))
    kept: list[Any] = []
    for first in range(0, len(words), MOST_PINNED):
        part = words[first : first + MOST_PINNED]
        outputs = ",".join(["=r"] * len(part))
        constraints = f"{outputs},{','.join(map(str, range(len(part))))}"
        if len(part) == 1:
            kept.append(v.assembly("", constraints, v.integer(32), *part, effects=True))
            continue
        type_ = v.struct([v.integer(32)] * len(part))
        result = v.assembly("", constraints, type_, *part, effects=True)
        kept += [v.member(result, number, v.integer(32)) for number in range(len(part))]
    return v.from_words(v.from_elements(kept), value.type)
