"""The `ttng` dialect: what the tensor cores of NVIDIA's GPUs do, and what their memory asks for.

`ttng.mma_sync` multiplies tiles in the registers of a warp (Ampere and later). On Hopper a *warp
group*, four warps, multiplies matrices in shared memory: `ttng.warp_group_dot` issues the product,
which goes on by itself, and `ttng.warp_group_dot_wait` gives its result when it is there.
"""

from proton.dialect import traits as t
from proton.dialect.asynchronous import DOTS, Issues, Retires
from proton.dialect.diagnostics import check_product, reject, shape_of
from proton.dialect.mlir import AnyType, Operand, OpView, Result, Value, ext, ir
from proton.dialect.ttg_core import is_mem_desc, is_tensor, mem_desc_block


class TTNG(ext.Dialect, name="ttng"):
    """Tensor cores."""


def _matrix_shape(value: Value) -> tuple[int, ...]:
    """The shape of a tensor, or of one in shared memory."""
    return mem_desc_block(value.type)[0] if is_mem_desc(value.type) else shape_of(value)


def _verify_product(op: OpView) -> bool:
    fits = check_product(op, *map(_matrix_shape, (op.a, op.b, op.acc)))
    return fits and (op.acc.type == op.result.type or reject(op, "the result has acc's type"))


class MmaSyncOp(TTNG.Operation, name="mma_sync", traits=[t.Pure, t.LayoutAnchor, t.Multiplies]):
    """`ttng.mma_sync %a, %b, %acc`: the product of tensors in the layouts of `mma`'s operands."""

    a: Operand[AnyType]
    b: Operand[AnyType]
    acc: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "MmaSyncOp") -> bool:
        if not (is_tensor(op.a.type) and is_tensor(op.b.type)):
            return reject(op, f"operands must be tensors, got {op.a.type} and {op.b.type}")
        return _verify_product(op)


class WarpGroupDotOp(
    TTNG.Operation,
    name="warp_group_dot",
    traits=[
        t.Writes,
        t.LayoutAnchor,
        t.Multiplies,
        Issues(DOTS),
        t.SharedEffects(reads=(0, 1), reads_later="products"),
    ],
):
    """`ttng.warp_group_dot %a, %b, %acc, %adds {imprecise}`: issues a product. %b lies in shared
    memory, %a there or in registers. Where %adds is given and false, what %acc holds is
    overwritten. Nothing but `ttng.warp_group_dot_wait` and the next product takes the result. fp8
    products are summed in registers of their own every `imprecise` numbers (0: never)."""

    a: Operand[AnyType]
    b: Operand[AnyType]
    acc: Operand[AnyType]
    imprecise: ir.IntegerAttr
    result: Result[AnyType]
    adds: Operand[ir.IntegerType[1]] | None = None

    @staticmethod
    def verify_invariants(op: "WarpGroupDotOp") -> bool:
        if not is_mem_desc(op.b.type):
            return reject(op, f"the right operand lies in shared memory, got {op.b.type}")
        return _verify_product(op)


class WarpGroupDotWaitOp(
    TTNG.Operation,
    name="warp_group_dot_wait",
    traits=[t.Writes, t.LayoutAnchor, Retires(DOTS), t.SharedEffects(ends_reads="products")],
):
    """`ttng.warp_group_dot_wait %acc {pendings}`: waits until at most so many products are under
    way; the result of one that has ended."""

    acc: Operand[AnyType]
    pendings: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "WarpGroupDotWaitOp") -> bool:
        return op.acc.type == op.result.type or reject(op, "the result has acc's type")


class ZerosOp(TTNG.Operation, name="zeros", traits=[t.Writes, t.LayoutAnchor]):
    """`ttng.zeros`: zeros that are written to registers where the op stands, not ahead of it."""

    result: Result[AnyType]


class FenceAsyncSharedOp(TTNG.Operation, name="fence_async_shared", traits=[t.Writes]):
    """`ttng.fence_async_shared`: what this thread wrote to shared memory is seen by tensor cores
    and bulk copies (PTX: `fence.proxy.async`)."""


class SetRegistersOp(TTNG.Operation, name="set_registers", traits=[t.Writes]):
    """`ttng.set_registers {count}`: a thread of the warp group has so many registers from here on
    (PTX: `setmaxnreg`); `is_more` says that it has had fewer."""

    count: ir.IntegerAttr
    is_more: ir.IntegerAttr


class DelayOp(TTNG.Operation, name="delay", traits=[t.Writes]):
    """`ttng.delay {cycles}`: a warp goes on when its SM's clock has counted so many cycles."""

    cycles: ir.IntegerAttr


# Warp groups that alternate. `ttng.order_begin`, then `order_pass` and `order_wait` by turns, then
# `ttng.order_end`: every warp of the program comes by each of them equally often.


class OrderBeginOp(TTNG.Operation, name="order_begin", traits=[t.Writes]):
    """`ttng.order_begin`: from here on the program's warp groups alternate, the first one first;
    it is the group's turn then."""


class OrderPassOp(TTNG.Operation, name="order_pass", traits=[t.Writes]):
    """`ttng.order_pass`: it is the next warp group's turn."""


class OrderWaitOp(TTNG.Operation, name="order_wait", traits=[t.Writes, t.AwaitsOrder]):
    """`ttng.order_wait`: until it is the warp group's turn. What each other group did to shared
    memory ahead of its last `ttng.order_pass` is done."""


class OrderEndOp(TTNG.Operation, name="order_end", traits=[t.Writes]):
    """`ttng.order_end`: the group whose turn it is passes it on for the last time."""
