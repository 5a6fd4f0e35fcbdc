"""Rules of what came with Ampere: copies that go on, barriers in shared memory, `mma`."""

from collections.abc import Sequence

from proton.base.chips.chip import MMAKind
from proton.base.targets import GPUTarget
from proton.base.words import shown
from proton.dialect import tt, ttg, ttng
from proton.dialect.builtin import i32_attr, string_attr
from proton.dialect.mlir import Value, ir
from proton.frontend.builder import (
    agreed,
    as_tensor,
    broadcast_all,
    error,
    memory_type,
    to_ir,
    wrap,
)
from proton.frontend.contractions import dot_type
from proton.frontend.gluon.memory import accessed, type_of
from proton.frontend.gluon.tensors import caching, converted
from proton.frontend.interface import CodeGenerator
from proton.frontend.promotion import cast, to_bool
from proton.frontend.rules import generator_rule, rule
from proton.frontend.shapes import item
from proton.language import types as ty
from proton.language.gluon import core
from proton.language.gluon.core import shared_memory_descriptor
from proton.language.gluon.layouts import (
    BlockedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    NVMMADistributedLayout,
)
from proton.language.gluon.nvidia import ampere
from proton.language.gluon.nvidia.ampere import async_copy, mbarrier
from proton.language.gluon.types import distributed_type
from proton.language.value import tensor
from proton.layout.tensor_cores import K_BITS, MMA_LEAST_COLUMNS, MMA_ROWS, mma_tiling_of

# Copies


@rule(async_copy.async_load)
def _async_load(
    smem: object,
    pointer: object,
    mask: object = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: object = False,
    cache_policy: object = None,
) -> None:
    what = "async_copy.async_load"
    caching(cache_policy, cache_modifier, eviction_policy)  # hints, which are not taken
    target = accessed(smem, what)
    own = type_of(target)
    if not isinstance(pointer, tensor) or not pointer.dtype.is_ptr():
        raise error(
            f"{what}: pointer must be a block of pointers, got {shown(pointer)}", "add gl.arange"
        )
    pointers, chosen = agreed(pointer, mask)
    if chosen is not None:
        pointers, chosen = broadcast_all(pointers, to_bool(chosen))
    if pointers.shape != own.shape:
        raise error(
            "expected smem shape to match pointer shape but got smem.shape = "
            f"{list(own.shape)}, pointer.shape = {list(pointers.shape)}",
            "copy to memory.index(i), or to memory.slice(...)",
        )
    pointee = pointers.dtype.element_ty
    if pointee != own.element_ty:
        raise error(f"{what}: pointers to {pointee}, and memory of {own.element_ty}", "cast one")
    stored = memory_type(pointee)
    assert stored == memory_type(own.element_ty)
    token = ttg.AsyncTokenType.get()
    ttg.AsyncCopyOp(
        pointers.handle, target.handle, token, mask=None if chosen is None else chosen.handle
    )


@rule(async_copy.mbarrier_arrive)
def _copies_arrive(mbarrier: object, increment_count: object = True) -> None:
    increments = ir.BoolAttr.get(bool(increment_count))
    ttng.ArriveBehindCopiesOp(barrier(mbarrier, "mbarrier_arrive"), increments)


@rule(async_copy.commit_group)
def _commit() -> None:
    ttg.AsyncCommitGroupOp([], ttg.AsyncTokenType.get())


@rule(async_copy.wait_group)
def _wait_group(num_outstanding: object = 0) -> None:
    pendings = count_of(num_outstanding, 0, "async_copy.wait_group: num_outstanding")
    ttg.AsyncWaitGroupOp(i32_attr(pendings))


def count_of(value: object, least: int, what: str) -> int:
    """A count from the user, which is known while compiling."""
    if not isinstance(value, int):
        raise error(f"{what} must be a constexpr, got {shown(value)}", f"write {least}")
    if value < least:
        raise error(f"{what} must be at least {least}, got {value}", f"write {least}")
    return value


def needs_hopper(g: CodeGenerator, what: str) -> None:
    """Raises CompilationError on a GPU without what came with it."""
    if isinstance(g.target, GPUTarget) and not g.target.facts.has_tma:
        raise error(
            f"{what} needs compute capability 9.0, and this is for {g.target}", "see nvidia.ampere"
        )


# Barriers


def barrier(value: object, what: str) -> Value:
    """The SSA value of barriers."""
    found = accessed(value, f"mbarrier.{what}")
    if type_of(found).element_ty != ty.int64:
        raise error(
            f"mbarrier.{what}: a barrier is memory of int64, got {type_of(found)}",
            "make one with mbarrier.allocate_mbarrier()",
        )
    return found.handle


def condition(pred: object) -> Value:
    """The SSA value of a predicate."""
    return item(to_bool(as_tensor(pred))).handle


def always(pred: object) -> bool:
    """True if a predicate is known to hold."""
    return not isinstance(pred, tensor) and bool(pred)


def check_own_cta(from_cta: object, what: str) -> None:
    """Raises CompilationError for arrivals from another block of a cluster."""
    if from_cta not in (None, 0):
        raise error(
            f"mbarrier.{what}: from_cta={shown(from_cta)} is for clusters, which are not made",
            "a program runs in one block of threads: leave it out",
        )


@rule(mbarrier.init)
def _init(mbarrier: object, count: object) -> None:
    arrivals = count_of(count, 1, "mbarrier.init: count")
    ttng.InitBarrierOp(barrier(mbarrier, "init"), i32_attr(arrivals))


@rule(mbarrier.invalidate)
def _invalidate(mbarrier: object) -> None:
    ttng.InvalBarrierOp(barrier(mbarrier, "invalidate"))


@rule(mbarrier.wait)
def _wait(mbarrier: object, phase: object, pred: object = True, deps: object = ()) -> None:
    parity = cast(item(as_tensor(phase)), ty.int32)
    place = barrier(mbarrier, "wait")
    if always(pred):
        ttng.WaitBarrierOp(place, parity.handle)
    else:
        ttng.WaitBarrierIfOp(place, parity.handle, condition(pred))


@rule(mbarrier.arrive)
def _arrive(mbarrier: object, pred: object = True, from_cta: object = None) -> None:
    arrive(mbarrier, 1, pred, from_cta)


def arrive(mbarrier: object, count: object, pred: object, from_cta: object) -> None:
    """One thread arrives for all."""
    check_own_cta(from_cta, "arrive")
    arrivals = count_of(count, 1, "mbarrier.arrive: count")
    ttng.ArriveOnceOp(barrier(mbarrier, "arrive"), condition(pred), i32_attr(arrivals))


# Dots


def operand_of(value: object, side: int, acc: distributed_type, what: str) -> tensor:
    """An operand of a dot, whose layout is that of the accumulator's operand."""
    name = "ab"[side]
    layout = value.type.layout if isinstance(value, tensor) else None  # type: ignore[attr-defined]
    if not isinstance(layout, DotOperandLayout):
        raise error(
            f"{what}: {name} must have a DotOperandLayout, got {shown(layout)}",
            f"gl.convert_layout({name}, gl.DotOperandLayout({side}, acc.type.layout, k_width))",
        )
    if layout.parent != acc.layout:
        raise error(
            f"{what}: {name}'s parent layout must be the same as acc's layout, got "
            f"{layout.parent} and {acc.layout}",
            f"gl.convert_layout({name}, gl.DotOperandLayout({side}, acc.type.layout, k_width))",
        )
    if layout.operand_index != side:
        raise error(f"{what}: {name}'s operand index must be {side}", "exchange a and b")
    assert isinstance(value, tensor)
    return value


def accumulator(acc: object, kind: type, what: str) -> distributed_type:
    """The type of an accumulator, whose layout must be of a class."""
    type_ = acc.type if isinstance(acc, tensor) else None
    if not isinstance(type_, distributed_type) or not isinstance(type_.layout, kind):
        found = shown(acc) if type_ is None else type_
        raise error(f"{what}: acc must have a layout {kind.__name__}, got {found}", "gl.zeros")
    return type_


def version_of(acc: distributed_type) -> list[int]:
    """The generation of tensor cores that a result's layout is of."""
    assert isinstance(acc.layout, NVMMADistributedLayout)
    return acc.layout.version


def check_sides(
    g: CodeGenerator,
    left: tensor,
    right: tensor,
    acc: distributed_type,
    what: str,
    kind: MMAKind | None = None,
) -> None:
    """Raises CompilationError where sizes do not fit, or types: those of tensor cores for a kind of
    instruction (on a CPU of Hopper's)."""
    (a, dtype), (b, other) = _side(left), _side(right)
    rank = len(acc.shape)
    fits = len(a) == len(b) == rank and a[-1] == b[-2]
    if not fits or (*a[:-1], b[-1]) != acc.shape or (*b[:-2],) != acc.shape[:-2]:
        raise error(
            f"{what}: shapes must fit, got {list(a)}, {list(b)} and {list(acc.shape)}",
            "(M, K), (K, N) and (M, N)",
        )
    if kind is None and dtype.is_int() and dtype == other == acc.scalar:
        return
    dot_type(what, dtype, other, acc.scalar)
    target = g.target if isinstance(g.target, GPUTarget) else GPUTarget("cuda", 90)
    if kind is not None and target.facts.mma_of(kind, to_ir(dtype)) is None:
        raise error(f"{what}: no tensor core of {target} takes {dtype}", "convert the operands")


def check_least(sizes: Sequence[int], least: Sequence[int], what: str) -> None:
    """Raises CompilationError where M, N or K are less than an instruction has."""
    if any(size < need for size, need in zip(sizes, least, strict=True)):
        raise error(
            f"{what}: M, N and K must be at least {list(least)}, got {list(sizes)}",
            "pad the operands, or use gl.dot_fma",
        )


def _side(value: tensor) -> tuple[Sequence[int], ty.dtype]:
    """The sizes and the element of an operand, a tensor or memory."""
    if isinstance(value, shared_memory_descriptor):
        return type_of(value).shape, type_of(value).element_ty
    return value.shape, value.dtype


@generator_rule(ampere.mma_v2)
def _mma_v2(
    g: CodeGenerator, a: object, b: object, acc: tensor, input_precision: object = None
) -> tensor:
    what = "mma_v2"
    type_ = accumulator(acc, NVMMADistributedLayout, what)
    version = version_of(type_)
    if version != [2, 0]:
        raise error(
            f"{what}: MMA layout must have version 2.0, got {version}",
            "version=[2, 0], or hopper.warpgroup_mma for [3, 0]",
        )
    left, right = (operand_of(value, side, type_, what) for side, value in enumerate((a, b)))
    check_sides(g, left, right, type_, what, MMAKind.WARP)
    if len(type_.shape) != 2:
        raise error(f"{what} of {len(type_.shape)} dimensions is not supported", "loop over them")
    bits = left.dtype.primitive_bitwidth
    precision = g.dot_precision if input_precision is None else input_precision
    if bits == 32 and left.dtype.is_floating() and precision != "tf32":
        return _by_threads(g, left, right, acc, type_)
    depth = left.shape[1]
    check_least((*type_.shape, depth), (MMA_ROWS, MMA_LEAST_COLUMNS, K_BITS // bits), what)
    tiling = mma_tiling_of(type_.layout.linear(type_.shape))
    if tiling is None:
        raise error(
            f"{what}: {type_.layout} is no result of `mma` of {list(type_.shape)}",
            "instr_shape=[16, 8]",
        )
    sides = (
        tiling.operand_a(depth, bits),
        tiling.operand_b(depth, bits),
    )
    operands = [
        converted(value, DistributedLinearLayout.of(side))
        if value.type.layout.linear(value.shape) != side  # type: ignore[attr-defined]
        else value
        for value, side in zip((left, right), sides, strict=True)
    ]
    op = ttng.MmaSyncOp(operands[0].handle, operands[1].handle, acc.handle, to_ir(type_))
    return wrap(op, type_)


def _by_threads(
    g: CodeGenerator, a: tensor, b: tensor, acc: tensor, type_: distributed_type
) -> tensor:
    """A dot in fp32, which no tensor core has, in the layout that is asked for."""
    op = tt.DotOp(a.handle, b.handle, acc.handle, string_attr("ieee"), i32_attr(0), to_ir(type_))
    return wrap(op, type_)


@generator_rule(core.dot_fma)
def _dot_fma(g: CodeGenerator, a: object, b: object, acc: tensor) -> tensor:
    what = "dot_fma"
    type_ = accumulator(acc, BlockedLayout, what)
    left, right = (operand_of(value, side, type_, what) for side, value in enumerate((a, b)))
    check_sides(g, left, right, type_, what)
    return _by_threads(g, left, right, acc, type_)
