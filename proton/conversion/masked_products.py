"""Products of blocks that a mask cuts are as deep as the mask says.

    a = load rows x depth, of which d columns are there, the others 0
    b = load depth x columns, of which d rows are there, the others 0
    a @ b  is  a[:, :d] @ b[:d, :]

So the last iteration of a loop over K does not multiply zeros, and a buffer for a block that
nothing else reads, and nothing else cuts, needs none. One value has to cut both blocks: 0 times
what stands in the other one otherwise may be NaN.
"""

from proton.dialect import isa, tts
from proton.dialect.linalg import matmul
from proton.dialect.memory import DYNAMIC
from proton.dialect.mlir import Operation, Value, arith, ir, tensor
from proton.dialect.walk import before, defining_op, replace, users


def cut_products(products: list[Operation]) -> list[tuple[Operation, Value]]:
    """Those of two blocks that are loaded, and how much a mask leaves of the dimension that they
    sum over."""
    found = []
    for product in products:
        a, b, _ = product.operands
        left, right = _left(a, 1), _left(b, 0)
        if left is not None and right is not None and left == right:
            found.append((product, left))
    return found


def is_all_read(load: Operation, cut: list[tuple[Operation, Value]]) -> bool:
    """True if something may read what a mask leaves out of a block: not if all that use it are
    products to be shortened, and the other dimension is not cut."""
    block = load.results[0]
    products = [product for product, _ in cut]
    for user in users(block):
        other = 0 if user.operands[0] == block else 1
        if user not in products or not _is_full(load, other):
            return True
    return False


def _is_full(load: Operation, axis: int) -> bool:
    """True if no mask cuts a dimension."""
    size, starts = defining_op(load.opview.dims[axis]), load.opview.starts
    if not isa(size, arith.ConstantOp):
        return False
    full = load.results[0].type.shape[axis]
    return size.attributes["value"].value == full and (not len(starts) or _is_zero(starts[axis]))


def _left(block: Value, axis: int) -> Value | None:
    """How much a mask leaves of a dimension of a block, which is 0 elsewhere; None where that is
    all, or not known."""
    op = defining_op(block)
    if not isa(op, tts.StructuredLoadOp):
        return None
    load = op.opview
    if load.mask is not None or not len(load.dims) or not _is_zero(load.other):
        return None
    if len(load.starts) and not _is_zero(load.starts[axis]):
        return None
    size = load.dims[axis]
    producer = defining_op(size)
    return None if isa(producer, arith.ConstantOp) else size


def _is_zero(value: Value | None) -> bool:
    op = None if value is None else defining_op(value)
    if value is None or op is None:
        return value is None
    return isa(op, arith.ConstantOp) and op.attributes["value"].value == 0


def shorten(product: Operation, depth: Value) -> None:
    """Has a product take so many columns of its left factor, and rows of its right one."""
    a, b, total = product.operands
    with before(product):
        replace(product, [matmul(_part(a, 1, depth), _part(b, 0, depth), total)])


def _part(block: Value, axis: int, size: Value) -> Value:
    shape = list(block.type.shape)
    shape[axis] = DYNAMIC
    type_ = ir.RankedTensorType.get(shape, block.type.element_type)
    return tensor.ExtractSliceOp(type_, block, [], [size], [], [0, 0], shape, [1, 1]).result
