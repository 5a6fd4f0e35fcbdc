"""How many bytes of shared memory an op needs while it runs, or makes.

The lowering of an op and the allocation of its memory read one plan: both come here, or to the
plans in `proton/layout` that this module adds up.
"""

import functools
from math import prod

from proton.base.chips.chip import ACCESS_BYTES
from proton.dialect import isa, tt, ttg, ttng
from proton.dialect.attributes import EXCHANGE_PARTS
from proton.dialect.builtin import is_pointer
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Operation, Type, Value, func, ir
from proton.dialect.traits import AllocatesShared, PassesMemory, has
from proton.dialect.walk import users
from proton.layout import LinearLayout
from proton.layout.conversion import Exchange, Parts, Permutation, exchange, in_parts, plan
from proton.layout.gather import gather_in_warp
from proton.layout.matrix_memory import ALIGNMENT as MATRIX_ALIGNMENT
from proton.layout.reduction import Reduction, plan_reduction
from proton.layout.shared_view import matrix_of
from proton.layout.tensor_map import ALIGNMENT as BOX_ALIGNMENT

ALIGNMENT = ACCESS_BYTES


def alignment(op: Operation) -> int:
    """What the bytes of an op must begin at a multiple of: swizzles count from there."""
    if isa(op, func.CallOp):
        return MATRIX_ALIGNMENT
    return max(ALIGNMENT, *_asked(op.results[0])) if has(op, AllocatesShared) else ALIGNMENT


def is_exchanged(value: Value, layout: LinearLayout) -> bool:
    """True if threads pass elements of a tensor on for it to have a layout."""
    way = plan(ttg.layout_of(value.type), layout, stored_bytes(element_of(value)))
    return not isinstance(way, Permutation)


def _asked(memory: Value) -> list[int]:
    """What memory, or a part of it, asks of the address: a swizzled matrix that its pattern begins
    there, TMA that boxes begin where it can. What control flow or a call passes on may become
    either."""
    shape, element = ttg.mem_desc_block(memory.type)
    bytes_ = stored_bytes(element)
    is_matrix = matrix_of(ttg.mem_desc_view(memory.type), bytes_) is not None
    found = [MATRIX_ALIGNMENT if is_matrix else 0]
    for user in users(memory):
        if isa(user, ttng.AsyncTMACopyOp, ttng.AsyncTMAStoreOp):
            is_flat = len(ttg.mem_desc_view(memory.type).shape) == 1
            found.append(BOX_ALIGNMENT if is_flat else MATRIX_ALIGNMENT)
        elif isa(user, ttng.TensorMapCreateOp):
            found.append(BOX_ALIGNMENT)
        elif has(user, PassesMemory) and user.results:
            found += _asked(user.results[0])
        elif has(user, PassesMemory) or isa(user, func.CallOp) or user.regions:
            found.append(min(MATRIX_ALIGNMENT, prod(shape) * bytes_))
    return found


def stored_bytes(element: Type) -> int:
    """The bytes of an element in shared memory; a bit takes one."""
    if isinstance(element, tt.PointerType) or is_pointer(element):
        return 8
    return max(1, int(element.width) // 8)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def exchange_bytes(exchange: Exchange, element: Type) -> int:
    """The scratch memory of one exchange."""
    return _aligned(exchange.elements * stored_bytes(element))


def axis_of(op: Operation) -> int:
    """The `axis` attribute."""
    return int(ir.IntegerAttr(op.attributes["axis"]).value)


def reduction_of(op: Operation, source: LinearLayout) -> Reduction:
    """The plan of a reduction, or of a scan for its scratch memory, of a layout."""
    type_ = op.results[0].type
    is_scattered = isa(op, tt.ReduceOp) and ttg.is_tensor(type_)
    result = ttg.layout_of(type_) if is_scattered else None
    return plan_reduction(source, axis_of(op), result=result)


def partials_bytes(op: Operation) -> list[int]:
    """For each operand of a reduction or scan the bytes of its warps' partial results."""
    result = []
    for operand in op.operands:
        partials = reduction_of(op, ttg.layout_of(operand.type)).exchange
        if partials is None:
            return []
        element = element_of(operand)
        result.append(exchange_bytes(partials.plan(stored_bytes(element)), element))
    return result


def has_copies(layout: LinearLayout) -> bool:
    """True if several threads hold an element."""
    free = layout.free_bits()
    return bool(free.get("lane", 0) or free.get("warp", 0))


def conversion_parts(op: Operation) -> Parts | None:
    """The parts of a conversion through shared memory, where it has some."""
    if EXCHANGE_PARTS not in op.attributes:
        return None
    source, target = ttg.layout_of(op.operands[0].type), ttg.layout_of(op.results[0].type)
    return in_parts(source, target, int(ir.IntegerAttr(op.attributes[EXCHANGE_PARTS]).value))


def _conversion_bytes(op: Operation) -> int:
    """What a conversion needs: as much as its lowering's, which may have stmatrix."""
    source, target = op.operands[0], op.results[0]
    element, bytes_ = element_of(source), stored_bytes(element_of(source))
    if (parts := conversion_parts(op)) is not None:
        return exchange_bytes(exchange(parts.source, parts.target, bytes_), element)
    way = plan(ttg.layout_of(source.type), ttg.layout_of(target.type), bytes_)
    return exchange_bytes(way, element) if isinstance(way, Exchange) else 0


def scratch_bytes(op: Operation) -> int:
    """The shared memory that an op needs for itself, or that it allocates."""
    match op.name:
        case ttg.ConvertLayoutOp.OPERATION_NAME:
            return _conversion_bytes(op)
        case tt.ReduceOp.OPERATION_NAME | tt.ScanOp.OPERATION_NAME:
            return sum(partials_bytes(op))
        case tt.HistogramOp.OPERATION_NAME:
            (bins,) = shape_of(op.results[0])
            return _aligned(bins * 4)
        case tt.GatherOp.OPERATION_NAME:
            source, index = op.operands
            layouts = ttg.layout_of(source.type), ttg.layout_of(index.type)
            if gather_in_warp(*layouts, axis_of(op)) is not None:
                return 0
            return _aligned(prod(shape_of(source)) * stored_bytes(element_of(source)))
        case (
            tt.AtomicRMWOp.OPERATION_NAME
            | tt.AtomicCASOp.OPERATION_NAME
            | ttg.LocalAtomicScatterOp.OPERATION_NAME
        ):
            return _atomic_bytes(op)
    return desc_bytes(op.results[0].type) if has(op, AllocatesShared) else 0


def desc_bytes(type_: Type) -> int:
    """The bytes of a tensor in shared memory."""
    return _aligned(held_bytes(type_))


@functools.cache
def held_bytes(type_: Type) -> int:
    """Those that a part of several has, with what lies between them."""
    (shape, element), view = ttg.mem_desc_block(type_), ttg.mem_desc_view(type_)
    count = prod(shape[: len(shape) - len(view.shape)])
    return count * view.padded(view.size) * stored_bytes(element)


def _atomic_bytes(op: Operation) -> int:
    """One thread does an atomic; where others hold copies they read what it got."""
    result = op.results[0]
    if not list(result.uses):
        return 0
    if not ttg.is_tensor(result.type):
        return ALIGNMENT
    layout = ttg.layout_of(result.type)
    if not has_copies(layout):
        return 0
    return _aligned((1 << layout.total_out_bits) * stored_bytes(element_of(result)))
