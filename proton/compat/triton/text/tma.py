"""Triton's `ttng` ops on the tensor memory accelerator and its barriers: how each is written, and
what it is here."""

from proton.base.targets import WARP_SIZE
from proton.compat.triton.text.made import (
    Context,
    Made,
    Rule,
    Step,
    Value,
    described,
    i32,
    segments,
    string,
)
from proton.compat.triton.text.syntax import ParsedOp
from proton.compat.triton.text.types import MemDesc, Scalar

_I1, _I32 = Scalar("i1"), Scalar("i32")
_ORDERED = ("min", "max")


def _barrier(op: ParsedOp) -> Value:
    return op.value("alloc"), op.type_of("alloc")


def _init_barrier(context: Context, op: ParsedOp) -> list[Step | Made]:
    """TMA, too, has to see that it is one."""
    said = {"count": i32(int(op.words["count"]))}
    made = Made("ttng.init_barrier", [_barrier(op)], [], said)
    return [made, Made("ttng.fence_async_shared")]


def _inval_barrier(context: Context, op: ParsedOp) -> list[Step | Made]:
    return [Made("ttng.inval_barrier", [_barrier(op)])]


def _barrier_expect(context: Context, op: ParsedOp) -> list[Step | Made]:
    if "fromCTA" in op.attributes:
        context.unsupported(op, "of another CTA is not supported", _ONE_CTA)
    values = [_barrier(op), (op.value("pred"), _I1)]
    said = {
        "bytes": i32(int(op.words["size"])),
        "operandSegmentSizes": segments([1, 1, 0]),
    }
    return [Made("ttng.barrier_expect", values, [], said)]


def _wait_barrier(context: Context, op: ParsedOp) -> list[Step | Made]:
    """All memory counts as what the barrier's copies write."""
    if op.values.get("pred"):
        context.unsupported(op, "with a predicate is not supported", "put it into an scf.if")
    waited = Made("ttng.wait_barrier", [_barrier(op), (op.value("phase"), _I32)])
    # Of a group no warp may be left behind by two phases: it would take them for none.
    return [waited, Made("ttg.barrier")] if context.in_group else [waited]


def _arrive_barrier(context: Context, op: ParsedOp) -> list[Step | Made]:
    """Triton has a thread arrive for all, behind a barrier of them; here each arrives."""
    if op.values.get("pred"):
        context.unsupported(op, "with a predicate is not supported", "put it into an scf.if")
    if int(op.words["count"]) != WARP_SIZE * context.warps:
        context.unsupported(
            op,
            f"of {op.words['count']} arrivals is not supported, and each of the "
            f"{WARP_SIZE * context.warps} threads arrives once",
            "have the barrier wait for as many",
        )
    return [Made("ttng.arrive_barrier", [_barrier(op)])]


def _load(context: Context, op: ParsedOp) -> list[Step | Made]:
    if op.flag("multicast"):
        context.unsupported(op, "to several CTAs is not supported", _ONE_CTA)
    indices = op.values["coord"]
    values = [
        (op.value("desc"), described(context, op)),
        (op.value("barrier"), op.type_of("barrier")),
        (op.value("dst"), op.type_of("dst")),
        (op.value("pred"), _I1),
        *((index, _I32) for index in indices),
    ]
    said = {"operandSegmentSizes": segments([1, 1, 1, 1, len(indices)])}
    return [Made("ttng.async_tma_copy_global_to_local", values, [], said)]


def _store(context: Context, op: ParsedOp) -> list[Step | Made]:
    desc, memory, indices = described(context, op), op.of("src", MemDesc), op.values["coord"]
    values: list[Value] = [(op.value("desc"), desc), (op.value("src"), memory)]
    values += [(index, _I32) for index in indices]
    kind = op.words.get("kind", "none")
    if kind in _ORDERED and not desc.element.is_float:
        # Text does not say signs, and the host makes another tensor map for those that have one.
        context.unsupported(
            op, f"of the {kind} of integers is not supported", "compile the .ttir of the kernel"
        )
    if kind != "none" and desc.element.is_float:
        kind = f"f{kind}"
    said = {
        "reduction": string(kind),
        "operandSegmentSizes": segments([1, 1, len(indices)]),
    }
    return [Made("ttng.async_tma_copy_local_to_global", values, [], said)]


def _store_wait(context: Context, op: ParsedOp) -> list[Step | Made]:
    said = {
        "pendings": i32(op.number("pendings")),
        "landed": "false" if op.flag("read_only") else "true",
    }
    return [Made("ttng.tma_store_wait", [], [], said)]


def _by_index(context: Context, op: ParsedOp) -> list[Step | Made]:
    context.unsupported(
        op,
        "is not supported: TMA of 9.0 takes no rows by index",
        "compile the .ttir of the kernel, whose gathers and scatters are accesses of the threads",
    )


_ONE_CTA = "compile the kernel with num_ctas=1"
_STORE = "$desc [ $coord* ] $src {} : <desc> , <src>"

FORMS: dict[str, tuple[str, Rule]] = {
    "ttng.init_barrier": ("$alloc , @count {} : <alloc>", _init_barrier),
    "ttng.inval_barrier": ("$alloc {} : <alloc>", _inval_barrier),
    "ttng.barrier_expect": ("$alloc , @size {} , $pred : <alloc>", _barrier_expect),
    "ttng.wait_barrier": (
        "$alloc , $phase (, $pred)? (deps $deps*)? {} : <alloc> (, <deps*>)?",
        _wait_barrier,
    ),
    "ttng.arrive_barrier": ("$alloc , @count (, $pred)? {} : <alloc>", _arrive_barrier),
    "ttng.async_tma_copy_global_to_local": (
        "$desc [ $coord* ] $dst , $barrier , $pred {} : <desc> , <barrier> -> <dst>",
        _load,
    ),
    "ttng.async_tma_copy_local_to_global": (_STORE, _store),
    "ttng.async_tma_reduce": (f"@kind , {_STORE}", _store),
    "ttng.async_tma_gather": ("", _by_index),
    "ttng.async_tma_scatter": ("", _by_index),
    "ttng.async_tma_store_wait": ("{}", _store_wait),
}
