"""Rules of what came with Hopper: TMA, barriers that count bytes, dots of warp groups."""

from math import prod
from typing import Any, cast

from proton.base.chips.chip import MMAKind
from proton.base.targets import GPUTarget
from proton.base.words import shown
from proton.dialect import tt_block, ttg, ttng
from proton.dialect.builtin import i32_attr, string_attr
from proton.dialect.emit import number_of
from proton.dialect.mlir import Type, Value, ir
from proton.dialect.walk import defining_op
from proton.frontend.blocks import integers, listed
from proton.frontend.builder import as_tensor, error, memory_type, to_ir, wrap
from proton.frontend.gluon.ampere import (
    accumulator,
    always,
    arrive,
    barrier,
    check_least,
    check_own_cta,
    check_sides,
    condition,
    count_of,
    needs_hopper,
    operand_of,
    version_of,
)
from proton.frontend.gluon.memory import accessed, check_begin, stored, type_of
from proton.frontend.gluon.tensors import converted, hint_l2
from proton.frontend.interface import CodeGenerator
from proton.frontend.promotion import cast as cast_to
from proton.frontend.promotion import to_bool
from proton.frontend.rules import generator_rule, rule
from proton.frontend.shapes import item
from proton.language import types as ty
from proton.language.gluon.core import shared_memory_descriptor
from proton.language.gluon.layouts import (
    DistributedLinearLayout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
)
from proton.language.gluon.nvidia import hopper
from proton.language.gluon.nvidia.hopper import cluster, mbarrier, tma
from proton.language.gluon.types import (
    distributed_type,
    im2col_descriptor_type,
    layout_descriptor_type,
    warpgroup_mma_accumulator_type,
)
from proton.language.value import tensor
from proton.layout.linear import LinearLayout
from proton.layout.shared_view import matrix_of
from proton.layout.tensor_cores import (
    GROUP_ROWS,
    K_BITS,
    MMA_COLUMNS,
    WarpGroupTiling,
    group_tiling_of,
)
from proton.layout.tensor_map import CORNER_BITS, MAX_BOX, MAX_PIXELS, ROW_BYTES, box_in

# Barriers


@generator_rule(mbarrier.expect)
def _expect(
    g: CodeGenerator,
    mbarrier: object,
    bytes_per_cta: object = None,
    pred: object = True,
    from_cta: object = None,
) -> None:
    check_own_cta(from_cta, "expect")
    size = count_of(bytes_per_cta, 0, "mbarrier.expect: bytes (as of desc.block_type.nbytes)")
    if g.num_warps > 1:
        ttg.BarrierOp()  # no warp is left behind by a phase
    place = barrier(mbarrier, "expect")
    ttng.BarrierExpectOp(place, condition(pred), i32_attr(size))


@rule(mbarrier.arrive)
def _arrive(
    mbarrier: object, count: object = 1, pred: object = True, from_cta: object = None
) -> None:
    arrive(mbarrier, count, pred, from_cta)


@rule(hopper.fence_async_shared)
def _fence(cluster: object = False) -> None:
    ttng.FenceAsyncSharedOp()


@generator_rule(hopper.async_store)
def _store_and_complete(g: CodeGenerator, dst: object, value: object, mbarrier: object) -> None:
    needs_hopper(g, "async_store")
    size = stored(dst, value, "async_store").nbytes_per_cta
    ttng.FenceAsyncSharedOp()
    place = barrier(mbarrier, "async_store")
    ttng.BarrierCompleteOp(place, condition(True), i32_attr(size))


@rule(cluster.barrier)
def _cluster_barrier(relaxed: object = False) -> None:
    ttg.BarrierOp()


# Descriptors


def _descriptor(value: object, what: str, is_im2col: bool) -> layout_descriptor_type:
    type_ = value.type if isinstance(value, tensor) else None
    found = shown(value) if type_ is None else type_
    if is_im2col and not isinstance(type_, im2col_descriptor_type):
        raise error(
            f"{what}: expected a tensor descriptor in im2col mode, got {found}",
            "pass gluon.nvidia.hopper.TensorDescriptorIm2Col",
        )
    if not isinstance(type_, layout_descriptor_type):
        raise error(
            f"{what}: expected a tensor descriptor with a layout, got {found}",
            "pass gluon.nvidia.hopper.TensorDescriptor, or make one with "
            "tma.make_tensor_descriptor",
        )
    if isinstance(type_, im2col_descriptor_type) and not is_im2col:
        raise error(
            f"{what}: expected a tensor descriptor of tiles, got {found}",
            "tma.async_load_im2col is what takes it",
        )
    return type_


@generator_rule(tma.make_tensor_descriptor)
def _make(
    g: CodeGenerator,
    base: Any,
    shape: object,
    strides: object,
    block_shape: object,
    layout: object,
    padding_option: str = "zero",
) -> tensor:
    what = "tma.make_tensor_descriptor"
    needs_hopper(g, what)
    pointer = base.type if isinstance(base, tensor) else None
    if not isinstance(pointer, ty.pointer_type):
        raise error(f"{what}: base must be a pointer, got {shown(base)}", "pass the tensor's")
    sizes, element = listed(block_shape), pointer.element_ty
    if not isinstance(layout, NVMMASharedLayout):
        raise error(
            f"{what}: Expected layout to be a NVMMASharedLayout, got {shown(layout)}",
            "get_default_for",
        )
    last = listed(strides)[-1:]
    if isinstance(last[0] if last else None, tensor) or last != (1,):
        raise error(
            f"{what}: Tensor descriptor last dim must be 1 but got {shown(last)}", "write 1"
        )
    try:
        ty.check_descriptor_block(element, sizes)
    except ValueError as problem:
        raise error(f"{what}: {problem}", "use pointers for smaller blocks") from None
    if padding_option == "nan" and not element.is_floating():
        raise error("Padding option `nan` is not supported for integer blocks", '"zero"')
    for stride in listed(strides)[:-1]:
        if isinstance(stride, int) and stride * element.itemsize % ty.DESCRIPTOR_ROW_BYTES:
            raise error(
                f"{what}: strides must be 16-byte aligned, got {stride} x {element.itemsize} bytes",
                "pad the rows, or load through pointers",
            )
    block = ty.block_type(element, tuple(sizes))
    type_ = layout_descriptor_type(block, layout, padding_option)
    op = tt_block.MakeTensorDescOp(
        base.handle,
        integers("shape", shape, ty.int32, len(sizes), cut=True),
        integers("strides", strides, ty.int64, len(sizes)),
        to_ir(type_),
    )
    return wrap(op, type_)


def _map(desc: tensor, type_: layout_descriptor_type, *, is_signed: bool, loads: bool) -> Value:
    """The tensor map of a descriptor, where that is made: the copies of one share it."""
    memory_ = memory_type(type_.block_type)
    element: Type = to_ir(memory_.scalar)
    if is_signed:
        element = ir.IntegerType.get_signed(memory_.scalar.primitive_bitwidth)
    attribute = ttg.shared_attr(_linear(type_))
    block = ir.RankedTensorType.get(memory_.shape, element, encoding=attribute)
    # A store by a map that fills with NaN is an illegal instruction.
    said = ir.TypeAttr.get(block), string_attr(type_.padding if loads else "zero")
    map_type: Type = ttng.TensorMapType.get(*said)
    if isinstance(type_, im2col_descriptor_type):
        map_type = ttng.TensorMapIm2colType.get(*said, i32_attr(type_.rank))
    value = desc.handle
    op = defining_op(value)
    if op is None:
        place = ir.InsertionPoint.at_block_begin(ir.BlockArgument(value).owner)
    else:
        place = ir.InsertionPoint.after(op)
    with place:
        return ttng.TensorMapOp(value, [], [], [], map_type).result


def _linear(type_: layout_descriptor_type) -> LinearLayout:
    """How a block of a descriptor lies in memory."""
    block = memory_type(type_.block_type)
    try:
        return type_.layout.linear(block.shape, block.scalar.primitive_bitwidth)
    except ValueError as problem:
        raise error(f"{type_.layout} is no layout of {list(block.shape)}: {problem}", "") from None


def _checked(
    desc: object, memory_: object, coord: object, what: str, is_im2col: bool = False
) -> tuple[Any, tensor, list[object]]:
    """(type of the descriptor, memory, indices) of a copy, which fit each other."""
    type_ = _descriptor(desc, what, is_im2col)
    found = accessed(memory_, what)
    own, block = type_of(found), type_.block_type
    if own.shape != block.shape or own.element_ty != block.element_ty:
        raise error(
            f"{what}: memory of {own} does not hold a block of {block}",
            "take memory.index(i) of several buffers",
        )
    if own.layout != type_.layout:
        raise error(
            f"{what}: the memory has the layout {own.layout}, and the descriptor {type_.layout}",
            "allocate it with layout=desc.layout",
        )
    linear, size = _linear(type_), own.nbytes_per_cta // prod(own.shape)
    box = box_in(own.shape, size, linear, MAX_PIXELS if is_im2col else MAX_BOX)
    if box is None:
        raise error(
            f"{what}: TMA copies no blocks of {list(own.shape)} to memory in {own.layout}",
            f"with a swizzle take 8 rows or more, else up to {MAX_BOX} columns",
        )
    if box.pieces_in(ttg.mem_desc_view(to_ir(own))) is None:
        raise error(
            f"{what}: a block of {list(own.shape)} in {own.layout} does not lie in one piece here",
            "slice whole rows, or columns of the swizzle's width, and multiples of 8 rows",
        )
    check_begin(found, box.alignment, what)
    indices = integers("coord", coord, ty.int32, type_.rank)
    last = number_of(cast(Value, indices[-1]))
    if last is not None and last * size % ROW_BYTES:
        raise error(
            f"{what}: rows begin at index {last}, {last * size} bytes from the tensor's",
            f"TMA copies what begins at multiples of {ROW_BYTES} bytes",
        )
    return type_, found, indices


@generator_rule(tma.async_load)
def _async_load(
    g: CodeGenerator,
    tensor_desc: tensor,
    coord: object,
    barrier: object,
    result: object,
    pred: object = True,
    multicast: object = False,
    cache_policy: object = None,
) -> None:
    _load(g, tensor_desc, coord, None, barrier, result, pred, cache_policy, "tma.async_load")


@generator_rule(tma.async_load_im2col)
def _async_load_im2col(
    g: CodeGenerator,
    tensor_desc: tensor,
    coord: object,
    offsets: object,
    barrier: object,
    result: object,
    pred: object = True,
    multicast: object = False,
    cache_policy: object = None,
) -> None:
    what = "tma.async_load_im2col"
    _load(g, tensor_desc, coord, listed(offsets), barrier, result, pred, cache_policy, what)


def _load(
    g: CodeGenerator,
    desc: tensor,
    coord: object,
    offsets: tuple[Any, ...] | None,
    place: object,
    result: object,
    pred: object,
    policy: object,
    what: str,
) -> None:
    """A copy to memory, which has offsets in im2col mode."""
    needs_hopper(g, what)
    type_, target, indices = _checked(desc, result, coord, what, offsets is not None)
    element = type_.block_type.element_ty
    if type_.padding == "nan" and element.is_fp8() and isinstance(g.target, GPUTarget):
        raise error(f"{what}: TMA fills nothing with a NaN of {element}", 'padding="zero"')
    if offsets is not None:
        indices += _offsets(offsets, type_.rank - 2, what)
    map_ = _map(desc, type_, is_signed=False, loads=True)
    at = barrier(place, what.removeprefix("tma."))
    op = ttng.AsyncTMACopyOp(map_, at, target.handle, condition(pred), indices)
    hint_l2(op.operation, policy)


def _offsets(offsets: tuple[Any, ...], rank: int, what: str) -> list[object]:
    """Offsets in im2col mode, as 32 bits: of 16 bits that a kernel computes none is a sign."""
    found, end = [], 1 << CORNER_BITS[rank]
    for offset in offsets:
        if isinstance(offset, tensor):
            if offset.is_block() or not offset.dtype.is_int() or offset.dtype.itemsize != 2:
                raise error(
                    f"{what}: offsets are 16-bit integers, got {offset.type}", "x.to(gl.int16)"
                )
            offset = cast_to(cast_to(offset, ty.uint16), ty.int32)
        elif isinstance(offset, int) and not 0 <= offset < end:
            raise error(
                f"{what}: of {rank} dimensions of pixels offsets are from 0 to {end - 1}, got "
                f"{offset}",
                "take what is below 0 from coord, and from the descriptor's corners",
            )
        found.append(offset)
    return integers("offsets", tuple(found), ty.int32, rank)


def _store(
    g: CodeGenerator,
    desc: tensor,
    coord: object,
    src: object,
    kind: str,
    what: str,
    policy: object = None,
) -> None:
    needs_hopper(g, what)
    type_, source, indices = _checked(desc, src, coord, what)
    element = type_.block_type.element_ty
    is_extremum = kind in ("min", "max")
    is_signed = is_extremum and element.is_int_signed()
    reduction = kind
    if element.is_floating() and kind != ttng.NO_REDUCTION:
        reduction = f"f{kind}"
    elif is_extremum and not is_signed:
        reduction = f"u{kind}"
    map_ = _map(desc, type_, is_signed=is_signed, loads=False)
    op = ttng.AsyncTMAStoreOp(map_, source.handle, indices, string_attr(reduction))
    hint_l2(op.operation, policy)


@generator_rule(tma.async_store)
def _async_store(
    g: CodeGenerator, tensor_desc: tensor, coord: object, src: object, cache_policy: object = None
) -> None:
    _store(g, tensor_desc, coord, src, ttng.NO_REDUCTION, "tma.async_store", cache_policy)


def _define_reduction(kind: str) -> None:
    op = getattr(tma, f"async_atomic_{kind}")

    @generator_rule(op)
    def _(g: CodeGenerator, tensor_desc: tensor, coord: object, src: object) -> None:
        _store(g, tensor_desc, coord, src, kind, f"tma.{op.__name__}")


for _kind in ("add", "min", "max", "and", "or", "xor"):
    _define_reduction(_kind)


@rule(tma.store_wait)
def _store_wait(pendings: object, read_only: object = True) -> None:
    count = count_of(pendings, 0, "tma.store_wait: pendings")
    ttng.TMAStoreWaitOp(i32_attr(count), ir.BoolAttr.get(not read_only))


# Dots of warp groups


@rule(hopper.warpgroup_mma_init)
def _init(value: tensor) -> tensor:
    type_ = accumulator(value, NVMMADistributedLayout, "warpgroup_mma_init")
    return tensor(value.handle, warpgroup_mma_accumulator_type(type_))


def _tensor_type(acc: object, what: str) -> distributed_type:
    if isinstance(acc, tensor) and isinstance(acc.type, warpgroup_mma_accumulator_type):
        return acc.type.tensor_type
    return accumulator(acc, NVMMADistributedLayout, what)


@generator_rule(hopper.warpgroup_mma)
def _warpgroup_mma(
    g: CodeGenerator,
    a: object,
    b: object,
    acc: tensor,
    use_acc: object = True,
    precision: object = None,
    max_num_imprecise_acc: int | None = None,
    is_async: object = False,
) -> tensor:
    what = "warpgroup_mma"
    needs_hopper(g, what)
    type_ = _tensor_type(acc, what)
    if version_of(type_)[0] != 3:
        raise error(
            f"{what}: acc's layout must be of version [3, 0], got {type_.layout}",
            "NVMMADistributedLayout",
        )
    tiling = group_tiling_of(type_.layout.linear(type_.shape))
    if tiling is None:
        raise error(
            f"{what}: {type_.layout} is no result of `wgmma` of {list(type_.shape)}",
            "warps_per_cta=[4, 1] (or [8, 1]), instr_shape=[16, N, K], with 64 rows for four warps",
        )
    left = _left(a, type_, tiling, what)
    right = accessed(b, f"{what}: b")
    check_sides(g, left, right, type_, what, MMAKind.WARP_GROUP)
    element, depth = type_of(right).element_ty, type_of(right).shape[0]
    least = GROUP_ROWS, MMA_COLUMNS, K_BITS // element.primitive_bitwidth
    check_least((*type_.shape, depth), least, what)
    _check_matrix(right, 1, tiling, what)
    imprecise = 0
    if element.is_fp8():
        asked = max_num_imprecise_acc
        imprecise = (1 << 30) if asked is None else max(1, asked)  # one instruction's, for none
        if max_num_imprecise_acc is not None and imprecise > depth:
            raise error(f"max_num_imprecise_acc ({imprecise}) must be <= K ({depth})", "leave it")
    adds = None if always(use_acc) else item(to_bool(as_tensor(use_acc))).handle
    ir_type = to_ir(type_)
    op = ttng.WarpGroupDotOp(
        left.handle, right.handle, acc.handle, i32_attr(imprecise), ir_type, adds=adds
    )
    issued = op.operation.result
    if is_async:
        return tensor(issued, warpgroup_mma_accumulator_type(type_))
    return wrap(ttng.WarpGroupDotWaitOp(issued, i32_attr(0), ir_type), type_)


def _left(a: object, acc: distributed_type, tiling: WarpGroupTiling, what: str) -> tensor:
    """The left operand: in swizzled memory, or in registers as `wgmma` takes it."""
    if isinstance(a, shared_memory_descriptor):
        found = accessed(a, what)
        _check_matrix(found, 0, tiling, what)
        return found
    value = operand_of(a, 0, acc, what)
    wanted = tiling.operand_a(value.shape[1], value.dtype.primitive_bitwidth)
    if value.type.layout.linear(value.shape) == wanted:  # type: ignore[attr-defined]
        return value
    return converted(value, DistributedLinearLayout.of(wanted))


def _check_matrix(value: tensor, axis: int, tiling: WarpGroupTiling, what: str) -> None:
    """Raises CompilationError where memory of an operand, the left (0) or right (1) one, is no
    matrix as `wgmma` reads it, or is one whose rows run along dimension `axis`, which only elements
    of 16 bits may."""
    own = type_of(value)
    bits = own.element_ty.primitive_bitwidth
    read = tiling.read(axis, max(8, bits))
    found = matrix_of(ttg.mem_desc_view(to_ir(own)), max(1, bits // 8), read)
    if found is None:
        raise error(
            f"{what}: memory in the layout {own.layout} is no operand of `wgmma`",
            "NVMMASharedLayout.get_default_for(shape, dtype), with rows of 32 bytes at least",
        )
    if bits != 16 and found.order[0] == axis:
        raise error(
            f"{what}: rows of {own.element_ty} must run along the inner dimension",
            "store it transposed, and pass memory.permute((1, 0))",
        )
    check_begin(value, found.alignment, what)


@rule(hopper.warpgroup_mma_wait)
def _warpgroup_mma_wait(num_outstanding: object = 0, deps: object = None) -> Any:
    if deps is None:
        raise error("warpgroup_mma_wait deps must be given", "deps=(acc,)")
    pendings = count_of(num_outstanding, 0, "warpgroup_mma_wait: num_outstanding")
    results = [_waited(dep, pendings) for dep in listed(deps)]
    return results[0] if len(results) == 1 else tuple(results)


def _waited(dep: object, pendings: int) -> Any:
    if not isinstance(dep, tensor) or isinstance(dep, shared_memory_descriptor):
        return dep
    type_ = dep.type
    if isinstance(type_, warpgroup_mma_accumulator_type):
        type_ = type_.tensor_type
    elif not isinstance(getattr(type_, "layout", None), NVMMADistributedLayout):
        return dep
    return wrap(ttng.WarpGroupDotWaitOp(dep.handle, i32_attr(pendings), to_ir(type_)), type_)
