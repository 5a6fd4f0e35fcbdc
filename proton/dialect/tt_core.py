"""The `tt` dialect: Triton's tile IR. Ops on scalars and on `tensor<...>` of static shape.

Arithmetic is upstream `arith` and `math` on tensors; `tt` adds what those lack: programs,
pointers, shape changes and products (tt_memory.py: accesses to memory; tt_collective.py:
reductions, scans, what else works along an axis). Every op that has no memory effect is declared
pure, so upstream CSE, LICM and DCE work on it.
"""

import math

from proton.dialect import traits as t
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import (
    check_block,
    check_choice,
    check_element,
    check_product,
    check_shape,
    check_type,
    element_of,
    is_power_of_two,
    reject,
    shape_of,
)
from proton.dialect.mlir import (
    AnyAttr,
    AnyType,
    Operand,
    Operation,
    OpView,
    Result,
    Type,
    Value,
    ext,
    ir,
)

INPUT_PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
ANY_IMPRECISE_ACC = 1 << 30  # as `maxNumImpreciseAcc`: all of them
ROUNDINGS = ("rtne", "rtz")
GRID_DEPENDENCIES = ("wait", "launch_dependents")
SPECIAL_REGISTERS = {"globaltimer": 64, "smid": 32}  # name -> bits
MAX_PRINTED = 8  # values of one print
MAX_EXTERN = 4  # operands of an external function


class TT(ext.Dialect, name="tt"):
    """Triton's tile ops."""


_CAST = [t.Pure, t.Speculatable, t.Elementwise, t.KeepsNumber]
_SHAPE_CHANGE = [t.Pure, t.Speculatable, t.TileIndex, t.PassesPointers]


class PointerType(TT.Type, name="ptr"):
    """`!tt.ptr<f32>`: a pointer to elements in global memory; `!tt.ptr<tensor<16x8xf32>>` to a
    block of a tensor there."""

    pointee: ir.TypeAttr

    @property
    def target(self) -> Type:
        """The type that is pointed to."""
        return ir.TypeAttr(self.pointee).value


def is_pointer_like(type_: Type) -> bool:
    """True if the type is a pointer or a tensor of pointers."""
    return isinstance(getattr(type_, "element_type", type_), PointerType)


def is_block_pointer(type_: Type) -> bool:
    """True if the type is a pointer to a block of a tensor (tt_block.py)."""
    return isinstance(type_, PointerType) and isinstance(type_.target, ir.RankedTensorType)


def pointee_of(value: Value) -> Type:
    """The type that a pointer, or each pointer of a tensor, points to."""
    return pointee_of_type(value.type)


def pointee_of_type(type_: Type) -> Type:
    """The same of a pointer's type, or of a tensor's of pointers."""
    return getattr(type_, "element_type", type_).target


def _verify_axis(op: OpView) -> bool:
    return 0 <= op.axis.value <= 2 or reject(op, f"axis must lie in [0, 2], got {op.axis.value}")


class GetProgramIdOp(
    TT.Operation, name="get_program_id", traits=[t.Pure, t.Speculatable, t.TileIndex]
):
    """`tt.get_program_id {axis}`: this program's index along a grid axis."""

    axis: ir.IntegerAttr
    result: Result[ir.IntegerType[32]]

    verify_invariants = staticmethod(_verify_axis)


class GetNumProgramsOp(
    TT.Operation, name="get_num_programs", traits=[t.Pure, t.Speculatable, t.TileIndex]
):
    """`tt.get_num_programs {axis}`: the grid's size along an axis."""

    axis: ir.IntegerAttr
    result: Result[ir.IntegerType[32]]

    verify_invariants = staticmethod(_verify_axis)


class MakeRangeOp(TT.Operation, name="make_range", traits=[t.Pure, t.Speculatable, t.TileIndex]):
    """`tt.make_range {start, end}`: the tensor<(end - start) x i32> of consecutive values."""

    start: ir.IntegerAttr
    end: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "MakeRangeOp") -> bool:
        size = op.end.value - op.start.value
        if not is_power_of_two(size):
            return reject(op, f"end - start must be a power of two, got {size}")
        return check_block(op, "result", op.result, (size,), integer(32))


class SplatOp(
    TT.Operation,
    name="splat",
    traits=[*(t.Pure, t.Speculatable, t.TileIndex, t.PassesPointers)],
):
    """`tt.splat %scalar`: a tensor filled with one value."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "SplatOp") -> bool:
        is_tensor = isinstance(op.result.type, ir.RankedTensorType)
        return (is_tensor and op.result.type.element_type == op.src.type) or reject(
            op, f"operand of type {op.src.type} cannot fill {op.result.type}"
        )


class UnsplatOp(
    TT.Operation, name="unsplat", traits=[t.Pure, t.Speculatable, t.TileIndex, t.PassesPointers]
):
    """`tt.unsplat %tensor`: the element of a tensor of one element."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "UnsplatOp") -> bool:
        if any(size != 1 for size in shape_of(op.src)):
            return reject(op, f"operand must have one element, got shape {shape_of(op.src)}")
        return check_type(op, "result", op.result, element_of(op.src))


class AddPtrOp(
    TT.Operation,
    name="addptr",
    traits=[t.Pure, t.Speculatable, t.Elementwise, t.TileIndex, t.PassesPointers],
):
    """`tt.addptr %ptr, %offset`: pointers moved by `offset` elements."""

    ptr: Operand[AnyType]
    offset: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "AddPtrOp") -> bool:
        if not is_pointer_like(op.ptr.type):
            return reject(op, f"operand 0 must be pointers, got {op.ptr.type}")
        return check_type(op, "result", op.result, op.ptr.type) and check_shape(
            op, "offset", op.offset, shape_of(op.ptr)
        )


class BroadcastOp(TT.Operation, name="broadcast", traits=[*_SHAPE_CHANGE]):
    """`tt.broadcast %src`: dimensions of size 1 repeated."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "BroadcastOp") -> bool:
        source, target = shape_of(op.src), shape_of(op.result)
        fits = len(source) == len(target) and all(
            a in (1, b) for a, b in zip(source, target, strict=True)
        )
        if not fits:
            return reject(op, f"shape {source} cannot be broadcast to {target}")
        return check_element(op, "result", op.result, element_of(op.src))


class ExpandDimsOp(TT.Operation, name="expand_dims", traits=[*_SHAPE_CHANGE]):
    """`tt.expand_dims %src {axis}`: a dimension of size 1 inserted."""

    src: Operand[AnyType]
    axis: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "ExpandDimsOp") -> bool:
        source, axis = shape_of(op.src), op.axis.value
        if not 0 <= axis <= len(source):
            return reject(op, f"axis must lie in [0, {len(source)}], got {axis}")
        expected = (*source[:axis], 1, *source[axis:])
        return check_block(op, "result", op.result, expected, element_of(op.src))


class ReshapeOp(TT.Operation, name="reshape", traits=[*_SHAPE_CHANGE]):
    """`tt.reshape %src`: the same elements in row-major order, in another shape."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "ReshapeOp") -> bool:
        source, target = shape_of(op.src), shape_of(op.result)
        if math.prod(source) != math.prod(target):
            return reject(op, f"number of elements must stay, got {source} to {target}")
        return check_element(op, "result", op.result, element_of(op.src))


class TransOp(TT.Operation, name="trans", traits=[*_SHAPE_CHANGE]):
    """`tt.trans %src {order}`: dimension i of the result is dimension order[i] of `src`."""

    src: Operand[AnyType]
    order: AnyAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "TransOp") -> bool:
        source, order = shape_of(op.src), tuple(ir.DenseI64ArrayAttr(op.order))
        if sorted(order) != list(range(len(source))):
            return reject(op, f"order must permute {len(source)} dimensions, got {order}")
        expected = tuple(source[axis] for axis in order)
        return check_block(op, "result", op.result, expected, element_of(op.src))


class JoinOp(TT.Operation, name="join", traits=[t.Pure, t.Speculatable, t.PassesPointers]):
    """`tt.join %a, %b`: both along a new last dimension of size 2."""

    lhs: Operand[AnyType]
    rhs: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "JoinOp") -> bool:
        shape = (*shape_of(op.lhs), 2)
        return check_type(op, "rhs", op.rhs, op.lhs.type) and check_block(
            op, "result", op.result, shape, element_of(op.lhs)
        )


class SplitOp(TT.Operation, name="split", traits=[t.Pure, t.Speculatable, t.PassesPointers]):
    """`tt.split %src`: the halves along a last dimension of size 2."""

    src: Operand[AnyType]
    lhs: Result[AnyType]
    rhs: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "SplitOp") -> bool:
        shape = shape_of(op.src)
        if shape[-1:] != (2,):
            return reject(op, f"the last dimension must have size 2, got shape {shape}")
        return all(
            check_block(op, "result", half, shape[:-1], element_of(op.src))
            for half in (op.lhs, op.rhs)
        )


class DotOp(TT.Operation, name="dot", traits=[t.Pure, t.Multiplies]):
    """`tt.dot %a, %b, %acc {inputPrecision, maxNumImpreciseAcc}`: (M, K) x (K, N) + (M, N),
    with or without one more dimension ahead, in which each product stands for itself.

    At most `maxNumImpreciseAcc` products of 8-bit floats may be added up in less than fp32 before
    they go into the accumulator. Both names are Triton's.
    """

    a: Operand[AnyType]
    b: Operand[AnyType]
    acc: Operand[AnyType]
    inputPrecision: ir.StringAttr
    maxNumImpreciseAcc: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "DotOp") -> bool:
        return (
            check_product(op, shape_of(op.a), shape_of(op.b), shape_of(op.acc))
            and check_type(op, "result", op.result, op.acc.type)
            and check_choice(op, "inputPrecision", op.inputPrecision, INPUT_PRECISIONS)
        )


def _verify_same_shape(op: OpView) -> bool:
    return check_shape(op, "result", op.result, shape_of(op.src))


def verify_same_type(op: Operation) -> bool:
    return all(check_type(op, "result", op.result, value.type) for value in op.operands)


class IntToPtrOp(TT.Operation, name="int_to_ptr", traits=_CAST):
    """`tt.int_to_ptr %i64`: an address as a pointer."""

    src: Operand[AnyType]
    result: Result[AnyType]

    verify_invariants = staticmethod(_verify_same_shape)


class PtrToIntOp(TT.Operation, name="ptr_to_int", traits=_CAST):
    """`tt.ptr_to_int %ptr`: the address as i64."""

    src: Operand[AnyType]
    result: Result[AnyType]

    verify_invariants = staticmethod(_verify_same_shape)


class BitcastOp(TT.Operation, name="bitcast", traits=[*_CAST, t.PassesPointers]):
    """`tt.bitcast %ptr`: a pointer to another type of element."""

    src: Operand[AnyType]
    result: Result[AnyType]

    verify_invariants = staticmethod(_verify_same_shape)


class ExternElementwiseOp(
    TT.Operation, name="extern_elementwise", traits=[t.Pure, t.PureByAttribute, t.Elementwise]
):
    """`tt.extern_elementwise %x, %y?, ... {symbol, libname, libpath, pure}`: `symbol` applied to
    each element. The bindings cannot give an op its effects by an attribute: `pure` is true.
    """

    symbol: ir.StringAttr
    libname: ir.StringAttr
    libpath: ir.StringAttr
    pure: ir.IntegerAttr
    result: Result[AnyType]
    for _position in range(MAX_EXTERN):
        __annotations__[f"src{_position}"] = Operand[AnyType] | None
        locals()[f"src{_position}"] = None
    del _position

    @staticmethod
    def verify_invariants(op: "ExternElementwiseOp") -> bool:
        sources = list(op.operation.operands)
        if not sources:
            return reject(op, "must have an operand, got none")
        if not op.pure.value:
            return reject(op, "pure must be true: functions with effects are not supported")
        return all(check_shape(op, "operand", value, shape_of(op.result)) for value in sources)


class FpToFpOp(TT.Operation, name="fp_to_fp", traits=[t.Pure, t.Speculatable, t.Elementwise]):
    """`tt.fp_to_fp %src {rounding}`: a conversion that `arith` lacks ("rtz"), or that upstream
    must not fold into another ("rtne" to 8-bit floats, which saturate).
    """

    src: Operand[AnyType]
    rounding: ir.StringAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "FpToFpOp") -> bool:
        return _verify_same_shape(op) and check_choice(op, "rounding", op.rounding, ROUNDINGS)


class AssertOp(TT.Operation, name="assert", traits=[t.Writes]):
    """`tt.assert %condition {message}`: stops the kernel where the condition is false."""

    condition: Operand[AnyType]
    message: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "AssertOp") -> bool:
        return check_element(op, "condition", op.condition, integer(1))


class PrintOp(TT.Operation, name="print", traits=[t.Writes]):
    """`tt.print %value0, ... {prefix, hex, signed}`: a line for each element of each value.

    `signed` has a flag for each value; it tells how an integer is shown.
    """

    prefix: ir.StringAttr
    hex: ir.IntegerAttr
    signed: AnyAttr
    for _position in range(MAX_PRINTED):
        __annotations__[f"value{_position}"] = Operand[AnyType] | None
        locals()[f"value{_position}"] = None
    del _position

    @staticmethod
    def verify_invariants(op: "PrintOp") -> bool:
        count, flags = len(op.operation.operands), len(op.signed)
        return count == flags or reject(op, f"signed must have {count} flags, got {flags}")


class SpecialRegisterOp(TT.Operation, name="special_register", traits=[t.Reads]):
    """`tt.special_register {register}`: what a register of a GPU's processor says now."""

    register: ir.StringAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "SpecialRegisterOp") -> bool:
        name = op.register.value
        if name not in SPECIAL_REGISTERS:
            return reject(op, f"register must be one of {tuple(SPECIAL_REGISTERS)}, got {name}")
        return check_element(op, "result", op.result, integer(SPECIAL_REGISTERS[name]))


class GridDependencyOp(TT.Operation, name="grid_dependency", traits=[t.Writes, t.Orders]):
    """`tt.grid_dependency {kind}`: "wait" for what earlier kernels wrote, or "launch_dependents":
    the next one may begin."""

    kind: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "GridDependencyOp") -> bool:
        return check_choice(op, "kind", op.kind, GRID_DEPENDENCIES)


class DebugBarrierOp(TT.Operation, name="debug_barrier", traits=[t.Writes, t.Barrier, t.Orders]):
    """`tt.debug_barrier`: all threads of the program arrive before any goes on."""
