"""Tensor maps that the kernel makes.

What is in a map only the driver and the assembler know: `tensormap.replace` sets its fields, one by
one, in shared memory that was filled with zeros. `tensormap.cp_fenceproxy` copies it to global
memory, in which TMA looks for it by a way of its own, the *tensormap proxy*: the copy releases to
that what was written, and the fence behind it takes what TMA may have kept of the map before. A
thread of another warp may use the map when it has met this one at a barrier.

Source: PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy", "membar/fence".
"""

from dataclasses import dataclass
from functools import reduce

from proton.analysis.scratch import stored_bytes
from proton.analysis.tensor_maps import box_of_map
from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.conversion.ttg_to_llvm.nvidia.debug import fail_where
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import Kind, ttng
from proton.dialect.abi import AddedArgument, argument
from proton.dialect.attributes import GLOBAL_SCRATCH_BYTES, GLOBAL_SCRATCH_OFFSETS
from proton.dialect.mlir import Type, Value, ir, llvm
from proton.dialect.tt import PointerType
from proton.layout.tensor_map import ROW_BYTES, TENSOR_MAP_BYTES, Box

# PTX ISA, "tensormap.replace", the table of new values. 8-bit floats are bytes to TMA.
_ELEMENTS = {
    "i16": 1,
    "i32": 2,
    "si32": 3,
    "i64": 4,
    "si64": 5,
    "f16": 6,
    "f32": 7,
    "f64": 9,
    "bf16": 10,
    "tf32": 11,
}
_BYTES_ELEMENT = 0
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # by the bytes that they are over
# What lies outside of a tensor, as often as 8 bytes have it.
_NANS = {
    "f16": 0x7E007E007E007E00,
    "bf16": 0x7FC07FC07FC07FC0,
    "f32": 0x7FC000007FC00000,
    "f64": 0x7FF8000000000000,
}
_STRIDE_BITS = 40  # of a stride in bytes


@dataclass(frozen=True)
class _Tensor:
    """What a map says of a tensor, the fastest dimension first; `steps` are the bytes from one
    index to the next of the others. An empty one is 16 bytes with what lies outside, of which the
    first element counts: TMA knows no empty tensors."""

    base: Value  # i64
    sizes: list[Value]  # i32
    steps: list[Value]  # i64
    is_empty: Value


@lowers(ttng.TensorMapCreateOp)
def _create(ctx: Lowering, site: Site) -> list[Value]:
    memory, base, *numbers = site.operands
    type_ = site.result_type
    box = box_of_map(type_)
    assert box is not None, "as the pass chose it"
    rank = len(box.block)
    map_at, spare_at = ir.DenseI32ArrayAttr(site.op.attributes[GLOBAL_SCRATCH_OFFSETS])
    scratch = _of_program(ctx)
    place, spare = (_bytes_behind(scratch, v.i32(offset)) for offset in (map_at, spare_at))

    def make() -> None:
        tensor = _tensor(base, numbers[:rank], numbers[rank:], box.element_bytes, spare)
        _emit(ctx, memory, place, spare, tensor, box, type_)

    v.when(_is_warp(ctx, site.number("warp")), make)
    return [v.create(llvm.AddrSpaceCastOp, v.pointer(), place)]


def _is_warp(ctx: Lowering, number: int) -> Value | None:
    """Whether this is the warp of a number; None where it is the only one."""
    if ctx.threads.warps == 1:
        return None
    return v.compare("eq", ctx.threads.warp, v.i32(number))


def _bytes_behind(pointer: Value, offset: Value) -> Value:
    return v.offset_pointer(pointer, offset, v.integer(8))


def _of_program(ctx: Lowering) -> Value:
    """Where the global scratch memory of the program begins."""
    size = int(ctx.function.attributes[GLOBAL_SCRATCH_BYTES].value)
    i64 = v.integer(64)

    def wide(value: Value) -> Value:
        return v.create(llvm.ZExtOp, i64, value)

    number = wide(nvidia.program_id(2))
    for axis in (1, 0):
        rows = v.binary(llvm.MulOp, number, wide(nvidia.program_count(axis)))
        number = v.add(rows, wide(nvidia.program_id(axis)))
    offset = v.binary(llvm.MulOp, number, v.constant(size, i64))
    return _bytes_behind(argument(ctx.function, AddedArgument.GLOBAL_SCRATCH), offset)


def _tensor(
    base: Value, sizes: list[Value], strides: list[Value], element_bytes: int, spare: Value
) -> _Tensor:
    i64 = v.integer(64)
    address, instead = (v.create(llvm.PtrToIntOp, i64, pointer) for pointer in (base, spare))
    steps = _in_bytes(strides, element_bytes)
    is_empty = _is_empty(sizes)

    def unless_empty(value: Value, other: Value) -> Value:
        return v.select(is_empty, other, value)

    return _Tensor(
        unless_empty(address, instead),
        [unless_empty(size, v.i32(1)) for size in reversed(sizes)],
        [unless_empty(step, v.constant(ROW_BYTES, i64)) for step in reversed(steps)],
        is_empty,
    )


def _in_bytes(strides: list[Value], element_bytes: int) -> list[Value]:
    size = v.constant(element_bytes, v.integer(64))
    return [v.binary(llvm.MulOp, stride, size) for stride in strides]


def _any(kind: Kind, values: list[Value]) -> Value:
    return reduce(lambda x, y: v.binary(kind, x, y), values)


def _is_empty(sizes: list[Value]) -> Value:
    return _any(llvm.OrOp, [v.compare("sle", size, v.i32(0)) for size in sizes])


@lowers(ttng.TensorCheckOp)
def _check(ctx: Lowering, site: Site) -> list[Value]:
    base, *numbers = site.operands
    rank = len(numbers) // 2 + 1
    i64, pointer = v.integer(64), PointerType(site.operand_types[0])
    steps = _in_bytes(numbers[rank:], stored_bytes(pointer.target))
    address = v.create(llvm.PtrToIntOp, i64, base)
    rest = v.binary(llvm.AndOp, _any(llvm.OrOp, [address, *steps]), v.constant(ROW_BYTES - 1, i64))
    if steps:
        high = v.binary(llvm.LShrOp, _any(llvm.OrOp, steps), v.constant(_STRIDE_BITS, i64))
        rest = v.binary(llvm.OrOp, rest, high)
    is_wrong = v.compare("ne", rest, v.constant(0, i64))
    has_some = v.binary(llvm.XOrOp, _is_empty(numbers[:rank]), v.constant(1, v.integer(1)))
    failed = v.binary(llvm.AndOp, is_wrong, has_some)
    if message := site.text("message"):
        fail_where(ctx, failed, message)
    else:
        nvidia.trap(failed)
    return []


class _Text:
    """Inline PTX and its operands, which are named as they are added."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.operands: list[Value] = []
        self.constraints: list[str] = []

    def operand(self, value: Value, constraint: str) -> str:
        self.operands.append(value)
        self.constraints.append(constraint)
        return f"${len(self.operands) - 1}"


def _emit(
    ctx: Lowering,
    memory: Value,
    place: Value,
    spare: Value,
    tensor: _Tensor,
    box: Box,
    type_: Type,
) -> None:
    """All threads of a warp make a map. It is one piece of assembly: LLVM may not part them."""
    text = _Text()
    lane = v.binary(llvm.AndOp, ctx.threads.number, v.i32(WARP_SIZE - 1))
    own = v.offset_pointer(memory, lane, v.integer(32))
    local = text.operand(nvidia.shared_address(memory), "r")
    word = text.operand(nvidia.shared_address(own), "r")
    target = text.operand(place, "l")
    one = text.operand(v.compare("eq", lane, v.i32(0)), "b")
    instead = v.binary(llvm.AndOp, tensor.is_empty, v.compare("eq", lane, v.i32(0)))
    empty = text.operand(instead, "b")
    spare_ = text.operand(spare, "l")
    outside = _NANS[str(type_.element)] if type_.outside == "nan" else 0
    fill = text.operand(v.constant(outside, v.integer(64)), "l")
    text.lines += [
        f"@{empty} st.global.v2.b64 [{spare_}], {{{fill}, {fill}}};",
        f"@{empty} fence.proxy.async.global;",
        f"st.shared.b32 [{word}], 0;",
        "bar.warp.sync -1;",
    ]
    for field, bits, ordinal, value in _fields(tensor, box, type_.loaded, type_.outside):
        new = str(value)
        if not isinstance(value, int):
            new = text.operand(value, "l" if bits == 64 else "r")
        number = "" if ordinal is None else f" {ordinal},"
        name = f"tensormap.replace.tile.{field}.shared::cta.b1024.b{bits}"
        text.lines.append(f"@{one} {name} [{local}],{number} {new};")
    text.lines += [
        "bar.warp.sync -1;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        f"[{target}], [{local}], {TENSOR_MAP_BYTES};",
        f"fence.proxy.tensormap::generic.acquire.gpu [{target}], {TENSOR_MAP_BYTES};",
    ]
    constraints = ",".join([*text.constraints, "~{memory}"])
    nvidia.assembly(" ".join(text.lines), constraints, None, *text.operands)


def _fields(
    tensor: _Tensor, box: Box, element: str, outside: str
) -> list[tuple[str, int, int | None, int | Value]]:
    """(field, bits, dimension, value) of all that a map has."""
    rank = len(box.block)
    fields: list[tuple[str, int, int | None, int | Value]] = [
        ("global_address", 64, None, tensor.base),
        ("rank", 32, None, rank - 1),  # counted from zero
    ]
    for axis in range(rank):
        fields.append(("box_dim", 32, axis, box.sizes[rank - 1 - axis]))
        fields.append(("global_dim", 32, axis, tensor.sizes[axis]))
        fields.append(("element_stride", 32, axis, 1))
    fields += [("global_stride", 64, axis, step) for axis, step in enumerate(tensor.steps)]
    return [
        *fields,
        ("elemtype", 32, None, _ELEMENTS.get(element, _BYTES_ELEMENT)),
        ("interleave_layout", 32, None, 0),
        ("swizzle_mode", 32, None, _SWIZZLES[box.swizzle]),
        ("fill_mode", 32, None, int(outside == "nan")),
    ]
