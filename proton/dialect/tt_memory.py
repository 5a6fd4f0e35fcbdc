"""Ops of the `tt` dialect that access global memory through pointers."""

from proton.dialect.attributes import EVICT_FIRST_FROM_L1, EVICT_LAST_FROM_L1
from proton.dialect.builtin import integer, optional_operand
from proton.dialect.diagnostics import check_block, check_choice, check_type, reject, shape_of
from proton.dialect.mlir import AnyType, Operand, Operation, OpView, Result, Value, ir
from proton.dialect.traits import Accesses, LayoutAnchor, Loads, Orders, Reads, Writes
from proton.dialect.tt_core import TT, is_block_pointer, is_pointer_like, pointee_of

RMW_OPS = ("add", "fadd", "max", "umax", "fmax", "min", "umin", "fmin", "and", "or", "xor", "xchg")
MEMORY_SEMANTICS = ("relaxed", "acquire", "release", "acq_rel")
MEMORY_SCOPES = ("cta", "gpu", "sys")
CACHE_MODIFIERS = ("", ".ca", ".cg", ".wb", ".cs", ".wt", ".cv")
# The operand that is the mask of an access.
MASKS = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}
MASKS |= {"ttg.async_copy_global_to_local": 2, "ttg.local_atomic_scatter": 3}
EVICTION_POLICIES = ("", "evict_normal", "evict_first", "evict_last")
_EVICTIONS = (*EVICTION_POLICIES, EVICT_FIRST_FROM_L1, EVICT_LAST_FROM_L1)


def _verify_access(op: OpView, mask: Value | None = None, **values: Value | None) -> bool:
    """Each of the values (None: not there) is what the pointers point to."""
    if not is_pointer_like(op.ptr.type):
        return reject(op, f"operand 0 must be pointers, got {op.ptr.type}")
    if is_block_pointer(op.ptr.type):
        return _verify_block_access(op, mask, **values)
    shape, element = shape_of(op.ptr), pointee_of(op.ptr)
    i1 = integer(1)
    return all(
        check_block(op, what, value, shape, element)
        for what, value in values.items()
        if value is not None
    ) and (mask is None or check_block(op, "mask", mask, shape, i1))


def _verify_block_access(op: OpView, mask: object, **values: Value | None) -> bool:
    """The only value is the whole block."""
    given = {what: value for what, value in values.items() if value is not None}
    if mask is not None or len(given) > 1:
        return reject(op, "a pointer to a block takes neither mask nor other")
    return all(check_type(op, what, value, pointee_of(op.ptr)) for what, value in given.items())


def _verify_caching(op: OpView) -> bool:
    return check_choice(op, "cache", op.cache, CACHE_MODIFIERS) and check_choice(
        op, "evict", op.evict, _EVICTIONS
    )


def _verify_ordering(op: OpView) -> bool:
    return check_choice(op, "sem", op.sem, MEMORY_SEMANTICS) and check_choice(
        op, "scope", op.scope, MEMORY_SCOPES
    )


class LoadOp(TT.Operation, name="load", traits=[Reads, Accesses, Loads, LayoutAnchor]):
    """`tt.load %ptr, %mask?, %other?`: values in memory; `other` where the mask is false.

    Of a pointer to a block, `{boundaryCheck, padding}`: the dimensions in which the block may
    reach over the tensor's ends, and "zero" or "nan" for what lies there.
    """

    ptr: Operand[AnyType]
    cache: ir.StringAttr
    evict: ir.StringAttr
    volatile: ir.IntegerAttr
    result: Result[AnyType]
    mask: Operand[AnyType] | None = None
    other: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: "LoadOp") -> bool:
        return _verify_caching(op) and _verify_access(op, op.mask, result=op.result, other=op.other)


class StoreOp(TT.Operation, name="store", traits=[Writes, Accesses]):
    """`tt.store %ptr, %value, %mask?`: writes where the mask is true; to a pointer to a block
    `{boundaryCheck}` as in a load."""

    ptr: Operand[AnyType]
    value: Operand[AnyType]
    cache: ir.StringAttr
    evict: ir.StringAttr
    mask: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: "StoreOp") -> bool:
        return _verify_caching(op) and _verify_access(op, op.mask, value=op.value)


class AtomicRMWOp(TT.Operation, name="atomic_rmw", traits=[Writes, Accesses, Orders, LayoutAnchor]):
    """`tt.atomic_rmw %ptr, %value, %mask? {rmw_op, sem, scope}`: the values before."""

    ptr: Operand[AnyType]
    value: Operand[AnyType]
    rmw_op: ir.StringAttr
    sem: ir.StringAttr
    scope: ir.StringAttr
    result: Result[AnyType]
    mask: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: "AtomicRMWOp") -> bool:
        return (
            check_choice(op, "rmw_op", op.rmw_op, RMW_OPS)
            and _verify_ordering(op)
            and _verify_access(op, op.mask, value=op.value, result=op.result)
        )


class AtomicCASOp(TT.Operation, name="atomic_cas", traits=[Writes, Accesses, Orders, LayoutAnchor]):
    """`tt.atomic_cas %ptr, %cmp, %value {sem, scope}`: the values before."""

    ptr: Operand[AnyType]
    cmp: Operand[AnyType]
    value: Operand[AnyType]
    sem: ir.StringAttr
    scope: ir.StringAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "AtomicCASOp") -> bool:
        return _verify_ordering(op) and _verify_access(
            op, cmp=op.cmp, value=op.value, result=op.result
        )


def is_volatile(op: Operation) -> bool:
    """True of a load that stays ahead of those behind it: what it reads may be a flag."""
    return op.name == LoadOp.OPERATION_NAME and bool(op.attributes["volatile"].value)


def mask_of(op: Operation) -> Value | None:
    """The mask of an access; None where there is none."""
    number = MASKS.get(op.name)
    return None if number is None else optional_operand(op, number)
