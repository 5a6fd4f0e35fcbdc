"""Pointers become addresses, and what is still unstructured becomes loops over elements.

A scalar `!tt.ptr` becomes `!llvm.ptr`, a tensor of pointers a tensor of i64 addresses. Loads,
stores and atomics that `triton-to-structured` left (gathers, scatters, scalars) become `scf`
loops with one `llvm` access an element, guarded by the element's mask; LLVM turns the ones
that it can into gathers. Program ids become arguments of the kernel, prints calls of `printf`.

The arguments that this adds are listed in `proton.dialect.abi`: the program's place and the
grid, with assertions in the kernel a status word, and with `check_bounds` the table of arrays
by which each access is checked (bounds.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.base.errors import CompilationError
from proton.conversion.triton_pointers_to_llvm.bounds import AccessCheck, BoundsChecks
from proton.conversion.triton_pointers_to_llvm.printing import lower_print
from proton.dialect import OpRules, isa, names_of, tt, tts
from proton.dialect.abi import AddedArgument, argument, pass_arguments, update_type
from proton.dialect.attributes import ASSERTIONS, PARTITION
from proton.dialect.builtin import i64_attr, integer, is_pointer, string_attr
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import constant, emit_if, for_each_element, zero_of
from proton.dialect.memory import element_pointer, pointer_type, to_tensor
from proton.dialect.mlir import Block, Module, Operation, Type, Value, ir
from proton.dialect.upstream import arith, builtin, llvm, memref, tensor
from proton.dialect.walk import (
    all_ops,
    before,
    called_functions,
    kernel_functions,
    ops_named,
    replace,
    source_span,
)
from proton.passes import Pass, register

GRID = (
    AddedArgument.PROGRAM_X,
    AddedArgument.PROGRAM_Y,
    AddedArgument.PROGRAM_Z,
    AddedArgument.GRID_X,
    AddedArgument.GRID_Y,
    AddedArgument.GRID_Z,
)

_ATOMIC_KINDS = {  # tt rmw_op -> the number of LLVM's AtomicBinOp in MLIR
    "xchg": 0,
    "add": 1,
    "and": 3,
    "or": 5,
    "xor": 6,
    "max": 7,
    "min": 8,
    "umax": 9,
    "umin": 10,
    "fadd": 11,
    "fmax": 13,
    "fmin": 14,
}
_ORDERINGS = {"relaxed": 2, "acquire": 4, "release": 5, "acq_rel": 6}  # LLVM's AtomicOrdering


_RULES = OpRules[Callable[[Operation, Type | None], None]]()


_ACCESSES = OpRules[Callable[[Operation, Type, AccessCheck | None], None]]()


@register
@dataclass(frozen=True)
class TritonPointersToLLVM(Pass):
    """Turns pointers into addresses and unstructured accesses into loops."""

    name: ClassVar[str] = "triton-pointers-to-llvm"

    check_bounds: bool = False

    def run(self, module: Module) -> None:
        for kernel in kernel_functions(module):
            functions = [kernel, *called_functions(kernel)]
            for function in functions:
                _refuse_blocks(function)
                if self.check_bounds and PARTITION in function.attributes:
                    raise CompilationError(
                        "PROTON_CHECK_BOUNDS of a kernel with warp_specialize is not supported",
                        source_span(function.location),
                        "check the functions of its partitions in a kernel of their own",
                    )
            pass_arguments(kernel, dict.fromkeys(GRID, integer(32)))
            status = None
            if any(ops_named(function, tt.AssertOp) for function in functions):
                status = _Status(kernel)
            for function in functions:
                _convert(function, status, self.check_bounds)


def _refuse_blocks(function: Operation) -> None:
    """Block pointers and tensor descriptors are no addresses yet."""
    for op in all_ops(function):
        for value in (*op.operands, *op.results):
            is_descriptor = tt.is_descriptor(value.type)
            if is_descriptor or tt.is_block_pointer(value.type):
                kind = "tensor-descriptor-to" if is_descriptor else "tensor"
                raise CompilationError(
                    f"{op.name} of {value.type}, which is no address yet",
                    source_span(op.location),
                    f"run rewrite-{kind}-pointer first: it makes pointers and masks of them",
                )


def _convert(function: Operation, status: "_Status | None", check_bounds: bool) -> None:
    ops = all_ops(function)
    # The pointees are read, and pointers followed, before the types change.
    bounds = BoundsChecks(function, ops) if check_bounds else None
    pointees = [
        _in_memory(tt.pointee_of(op.operands[0]), shape_of(op.operands[0]))
        if op.name in _POINTER_OPS
        else None
        for op in ops
    ]
    addresses = [
        [tt.is_pointer_like(value.type) for value in op.operands] if isa(op, tt.PrintOp) else []
        for op in ops
    ]
    block = function.regions[0].blocks[0]
    grid = [argument(function, kind) for kind in GRID]
    checks: list[AccessCheck | None] = [None] * len(ops)
    if bounds is not None:
        checks = bounds.prepare(grid[:3], [bytes_of(p) if p else 0 for p in pointees])
    _convert_types(block)
    for op in ops:
        for region in op.regions:
            for inner in region.blocks:
                _convert_types(inner)
    for op in ops:
        for result in op.results:
            result.set_type(_converted(result.type))
    for op, pointee, check, printed in zip(ops, pointees, checks, addresses, strict=True):
        if isa(op, tt.GetProgramIdOp, tt.GetNumProgramsOp):
            offset = 3 if isa(op, tt.GetNumProgramsOp) else 0
            replace(op, [grid[offset + op.attributes["axis"].value]])
        elif isa(op, tt.PrintOp):
            with before(op):
                lower_print(op, grid[:3], printed)
        elif isa(op, tt.AssertOp):
            assert status is not None
            status.lower(op, function)
        elif op.name in _RULES:
            with before(op):
                _RULES[op.name](op, pointee)
        elif op.name in _ACCESSES:
            assert pointee is not None, "of every op on pointers"
            with before(op):
                _ACCESSES[op.name](op, pointee, check)
    update_type(function)


def _convert_types(block: Block) -> None:
    for value in block.arguments:
        value.set_type(_converted(value.type))


def _converted(type_: Type) -> Type:
    if isinstance(type_, tts.StructuredPointerType):
        return tts.StructuredPointerType.get(_converted(type_.target))
    if not tt.is_pointer_like(type_):
        return type_
    if isinstance(type_, ir.RankedTensorType):
        return ir.RankedTensorType.get(type_.shape, integer(64))
    return pointer_type()


def _in_memory(pointee: Type, shape: tuple[int, ...]) -> Type:
    """What an element is in memory: a pointer is one, and in a tensor an address."""
    if not isinstance(pointee, tt.PointerType):
        return pointee
    return integer(64) if shape else pointer_type()


def bytes_of(type_: Type) -> int:
    """Bytes of one element in memory."""
    return 8 if type_ == pointer_type() else max(1, type_.width // 8)


# Pointer arithmetic


def _i64(value: Value) -> Value:
    """An integer, index or tensor of integers, sign-extended to i64."""
    i64 = integer(64)
    if isinstance(value.type, ir.IndexType):
        return arith.IndexCastOp(i64, value).result
    if element_of(value).width == 64:
        return value
    shape = shape_of(value)
    return arith.ExtSIOp(ir.RankedTensorType.get(shape, i64) if shape else i64, value).result


@_RULES.of(tt.AddPtrOp)
def _addptr(op: Operation, pointee: Type | None) -> None:
    assert pointee is not None, "of every op on pointers"
    pointer, offset = op.operands[0], _i64(op.operands[1])
    if not shape_of(pointer):
        replace(op, [element_pointer(pointer, offset, pointee)])
        return
    scale = ir.DenseElementsAttr.get_splat(offset.type, i64_attr(bytes_of(pointee)))
    scaled = arith.MulIOp(offset, constant(scale, offset.type)).result
    replace(op, [arith.AddIOp(pointer, scaled).result])


@_RULES.of(tt.SplatOp)
def _splat(op: Operation, pointee: Type | None) -> None:
    if is_pointer(op.operands[0].type):
        address = llvm.PtrToIntOp(integer(64), op.operands[0]).result
        op.operands[0] = address


@_RULES.of(tt.UnsplatOp)
def _unsplat(op: Operation, pointee: Type | None) -> None:
    if is_pointer(op.results[0].type):
        i64 = integer(64)
        address = tt.UnsplatOp(op.operands[0], i64).result
        replace(op, [_pointer(address)])


def _pointer(address: Value) -> Value:
    return llvm.IntToPtrOp(pointer_type(), address).result


@_RULES.of(tt.IntToPtrOp)
def _int_to_ptr(op: Operation, pointee: Type | None) -> None:
    value = op.operands[0]
    replace(op, [value if shape_of(value) else _pointer(value)])


@_RULES.of(tt.PtrToIntOp)
def _ptr_to_int(op: Operation, pointee: Type | None) -> None:
    value = op.operands[0]
    if shape_of(value):
        replace(op, [value])
    else:
        replace(op, [llvm.PtrToIntOp(integer(64), value).result])


@_RULES.of(builtin.UnrealizedConversionCastOp)
def _cast(op: Operation, pointee: Type | None) -> None:
    """One of a pointer to an address, which `structured-to-memref` leaves where it runs first."""
    if op.operands[0].type == op.results[0].type:
        replace(op, [op.operands[0]])


@_RULES.of(tt.BitcastOp)
def _bitcast(op: Operation, pointee: Type | None) -> None:
    if is_pointer(op.operands[0].type) or op.operands[0].type == op.results[0].type:
        replace(op, [op.operands[0]])


# Element loops


def _at(value: Value, indices: list[Value]) -> Value:
    """An element of a tensor; a scalar is its own."""
    return tensor.ExtractOp(value, indices).result if shape_of(value) else value


def _address(value: Value, indices: list[Value]) -> Value:
    element = _at(value, indices)
    return element if is_pointer(element.type) else _pointer(element)


@dataclass(frozen=True)
class _Element:
    """How one element of an access is done: only where its mask and its check let it."""

    pointer: Value
    mask: Value | None
    check: AccessCheck | None

    def guarded(
        self,
        indices: list[Value],
        types: list[Type],
        access: Callable[[Callable[[], Value]], list[Value]],
        without: Callable[[], list[Value]] = list,
    ) -> list[Value]:
        """The values, of `types`, of `access`, which is given what emits the address; or of
        `without`."""

        def checked() -> list[Value]:
            if self.check is None:
                return access(lambda: _address(self.pointer, indices))
            address = _address(self.pointer, indices)
            return self.check.guarded(address, types, lambda: access(lambda: address), without)

        if self.mask is None:
            return checked()
        return emit_if(_at(self.mask, indices), types, checked, without)

    def value(
        self,
        indices: list[Value],
        type_: Type,
        access: Callable[[Callable[[], Value]], Value],
        other: Value | None = None,
    ) -> Value:
        """What `access` gives; `other`'s element, or 0, without it."""

        def without() -> list[Value]:
            return [_at(other, indices) if other is not None else zero_of(type_)]

        return self.guarded(indices, [type_], lambda address: [access(address)], without)[0]


def _check_element(op: Operation, type_: Type) -> None:
    if isinstance(type_, ir.FloatType) and type_.width < 16:
        raise CompilationError(
            f"{op.name} of {type_}: fp8 is not supported on the CPU (at {op.location})",
            hint="load it as int8, or convert to fp16",
        )


def _gather(op: Operation, indices_to_value: Callable[[list[Value]], Value], element: Type) -> None:
    """Replaces an op by a buffer that a loop over its elements fills."""
    shape = shape_of(op.results[0])
    if not shape:
        replace(op, [indices_to_value([])])
        return
    buffer = memref.AllocOp(ir.MemRefType.get(shape, element), [], []).result

    def body(indices: list[Value]) -> None:
        memref.StoreOp(indices_to_value(indices), buffer, indices)

    for_each_element(shape, body)
    replace(op, [to_tensor(buffer)])


@_ACCESSES.of(tt.LoadOp)
def _load(op: Operation, pointee: Type, check: AccessCheck | None) -> None:
    view = op.opview
    other, element = view.other, _Element(view.ptr, view.mask, check)
    volatile = view.volatile.value or None
    _check_element(op, pointee)

    def access(address: Callable[[], Value]) -> Value:
        return llvm.LoadOp(pointee, address(), volatile_=volatile).result

    _gather(op, lambda indices: element.value(indices, pointee, access, other), pointee)


@_ACCESSES.of(tt.StoreOp)
def _store(op: Operation, pointee: Type, check: AccessCheck | None) -> None:
    view = op.opview
    stored, element = view.value, _Element(view.ptr, view.mask, check)
    _check_element(op, pointee)

    def body(indices: list[Value]) -> None:
        def write(address: Callable[[], Value]) -> list[Value]:
            llvm.StoreOp(_at(stored, indices), address())
            return []

        element.guarded(indices, [], write)

    for_each_element(shape_of(view.ptr), body)
    op.erase()


@_ACCESSES.of(tt.AtomicRMWOp)
def _atomic_rmw(op: Operation, pointee: Type, check: AccessCheck | None) -> None:
    view = op.opview
    operand, element = view.value, _Element(view.ptr, view.mask, check)
    kind = i64_attr(_ATOMIC_KINDS[view.rmw_op.value])
    ordering = i64_attr(_ORDERINGS[view.sem.value])

    def value(indices: list[Value]) -> Value:
        def access(address: Callable[[], Value]) -> Value:
            return llvm.AtomicRMWOp(kind, address(), _at(operand, indices), ordering).result

        return element.value(indices, pointee, access)

    _gather(op, value, pointee)


@_ACCESSES.of(tt.AtomicCASOp)
def _atomic_cas(op: Operation, pointee: Type, check: AccessCheck | None) -> None:
    view = op.opview
    expected, desired, element = view.cmp, view.value, _Element(view.ptr, None, check)
    ordering = _ORDERINGS[view.sem.value]
    success = i64_attr(ordering)
    failure = i64_attr({5: 2, 6: 4}.get(ordering, ordering))
    bits = integer(pointee.width)

    def value(indices: list[Value]) -> Value:
        def access(address: Callable[[], Value]) -> Value:
            pair = [_at(expected, indices), _at(desired, indices)]
            if pointee != bits:
                pair = [arith.BitcastOp(bits, v).result for v in pair]
            exchange = llvm.AtomicCmpXchgOp(address(), *pair, success, failure)
            old = llvm.ExtractValueOp(bits, exchange.result, ir.DenseI64ArrayAttr.get([0])).result
            return old if pointee == bits else arith.BitcastOp(pointee, old).result

        return element.value(indices, pointee, access)

    _gather(op, value, pointee)


class _Status:
    """Assertions: the first that fails leaves its number in the status word."""

    def __init__(self, kernel: Operation) -> None:
        self.kernel = kernel
        self.messages: list[str] = []
        pass_arguments(kernel, {AddedArgument.STATUS: pointer_type()})

    def lower(self, op: Operation, function: Operation) -> None:
        """Replaces a `tt.assert` of the kernel, or of what it calls, by a loop that checks each
        element."""
        pointer = argument(function, AddedArgument.STATUS)
        self.messages.append(op.attributes["message"].value)
        number, i64 = len(self.messages), integer(64)

        def body(indices: list[Value]) -> None:
            def fail() -> list[Value]:
                before = llvm.LoadOp(i64, pointer).result
                none = arith.CmpIOp(arith.CmpIPredicate.eq, before, constant(0, i64)).result
                first = arith.SelectOp(none, constant(number, i64), before).result
                llvm.StoreOp(first, pointer)
                return []

            emit_if(_at(op.operands[0], indices), [], list, fail)

        with before(op):
            for_each_element(shape_of(op.operands[0]), body)
        op.erase()
        self.kernel.attributes[ASSERTIONS] = ir.ArrayAttr.get(
            [string_attr(message) for message in self.messages]
        )


_POINTER_OPS = names_of(tt.AddPtrOp, *_ACCESSES)
