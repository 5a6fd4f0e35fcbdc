"""Atomics, by the one thread that owns an element.

Where the chip has an instruction it is that, under a predicate and not behind a branch, so that a
loop around it stays one block; of floats that are added up side by side one for several elements.
Maxima and minima of floats are two of integers. Of the rest LLVM makes a loop of
compare-and-swap.

Of a block the fences that its ordering takes are around all of its atomics, which are relaxed:
each element's has what came before the op before it, and what follows behind it.

Where other threads hold copies of a result they read it from shared memory.
"""

from collections.abc import Callable

from proton.analysis.atomics import is_native, is_store
from proton.analysis.scratch import has_copies, stored_bytes
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.layouts import read_shared, write_shared
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.core.memory import both, first_thread, group
from proton.conversion.ttg_to_llvm.core.shared_memory import element_addresses
from proton.dialect import tt, ttg
from proton.dialect.attributes import READS
from proton.dialect.builtin import i64_attr, string_attr
from proton.dialect.emit import emit_if
from proton.dialect.mlir import Attribute, Value, arith, llvm
from proton.dialect.ttg import is_tensor, layout_of
from proton.layout import LinearLayout
from proton.layout.named import shared_row_major

_BIN_OPS = {  # tt's name -> LLVM's enum AtomicBinOp
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
# Kinds of floats -> those of integers that do it for values from zero on, and below zero.
_BY_INTEGERS = {"fmax": ("max", "umin"), "fmin": ("min", "umax")}
WORD_BITS = 32  # of the narrowest integers that atomics compare
ORDERINGS = {"relaxed": 2, "acquire": 4, "release": 5, "acq_rel": 6}  # enum AtomicOrdering


def _attributes(ctx: Lowering, site: Site) -> dict[str, Attribute]:
    result = {}
    if scope := ctx.primitives.SCOPES[site.text("scope")]:
        result["syncscope"] = string_attr(scope)
    return result


@lowers(tt.AtomicRMWOp)
def _rmw(ctx: Lowering, site: Site) -> list[Value]:
    pointers, value = site.operands[:2]
    mask = site.optional(2)
    kind, ordering, attributes = site.text("rmw_op"), site.text("sem"), _attributes(ctx, site)
    native = is_native(kind, v.element(value), ctx.chip)
    is_read, is_written = READS in site.op.attributes, is_store(site.op)
    # Of one instruction the ordering is its own; a load or a store has it of one element.
    several = v.count_of(value) > (1 if is_read or is_written else site.access)
    inner = "relaxed" if several else ordering

    def one(predicate: Value | None, address: Value, operand: Value) -> Value:
        if is_read:
            return ctx.primitives.atomic_load(
                inner, site.text("scope"), address, operand.type, predicate
            )
        if is_written:
            ctx.primitives.atomic_store(inner, site.text("scope"), address, operand, predicate)
            return v.poison(operand.type)
        if native:
            return ctx.primitives.atomic(
                kind, inner, site.text("scope"), address, operand, predicate
            )
        if kind in _BY_INTEGERS and v.bits_of(operand.type) >= WORD_BITS:
            return _by_integers(ctx, kind, inner, site.text("scope"), address, operand, predicate)

        def alone(address: Value, operand: Value) -> Value:
            return combined(ctx, kind, inner, address, operand, attributes)

        return _guarded(predicate, [address, operand], alone)

    if several and ordering in ("release", "acq_rel"):
        _fence(attributes)
    found = _each(ctx, site, [pointers, value], mask, one)
    if several and ordering in ("acquire", "acq_rel"):
        _fence(attributes)
    return found


def _by_integers(
    ctx: Lowering,
    kind: str,
    ordering: str,
    scope: str,
    address: Value,
    value: Value,
    predicate: Value | None,
) -> Value:
    """A maximum or minimum of floats by two instructions for integers, of which one runs: floats
    are ordered as their bits are, those below zero the other way round. A value that is no number
    changes nothing."""
    type_, bits = value.type, v.integer(v.bits_of(value.type))
    above, below = _BY_INTEGERS[kind]
    is_number = arith.CmpFOp(arith.CmpFPredicate.ORD, value, value).result
    neutral = v.constant(float("-inf") if kind == "fmax" else float("inf"), type_)
    given = v.bitcast(v.select(is_number, value, neutral), bits)
    is_negative = v.compare("slt", given, v.constant(0, bits))
    is_positive = v.compare("sge", given, v.constant(0, bits))
    found = [
        ctx.primitives.atomic(name, ordering, scope, address, given, both(predicate, condition))
        for name, condition in ((above, is_positive), (below, is_negative))
    ]
    return v.bitcast(v.select(is_negative, found[1], found[0]), type_)


def _fence(attributes: dict[str, Attribute]) -> None:
    """What is before it is before what is behind it, for all of a scope."""
    ordering = i64_attr(ORDERINGS["acq_rel"])
    v.effect(llvm.FenceOp, ordering=ordering, **attributes)


def relaxed(ctx: Lowering, kind: str, address: Value, operand: Value) -> Value:
    """One element, combined with the GPU's memory by what `tt` calls `kind`; what it was before."""
    scope = {"syncscope": string_attr(ctx.primitives.SCOPES["gpu"])}
    return combined(ctx, kind, "relaxed", address, operand, scope)


def combined(
    ctx: Lowering,
    kind: str,
    ordering: str,
    address: Value,
    operand: Value,
    attributes: dict[str, Attribute],
) -> Value:
    """LLVM's atomic for `kind`; `attributes` are of its scope. What was there before.

    Of half a word LLVM makes a loop (AtomicExpand). Where it knows which half, it takes each time
    the number that it has loaded ahead of the loop: a value that several edges give is simplified
    when it has one of them.
    """
    if v.bits_of(operand.type) < WORD_BITS:
        address = v.offset_pointer(address, ctx.primitives.copied(v.i32(0)), v.integer(8))
    return read_modify_write(kind, ordering, address, operand, attributes)


def read_modify_write(
    kind: str, ordering: str, address: Value, operand: Value, attributes: dict[str, Attribute]
) -> Value:
    """LLVM's atomic as it is."""
    return v.create(
        llvm.AtomicRMWOp,
        operand.type,
        address,
        operand,
        bin_op=i64_attr(_BIN_OPS[kind]),
        ordering=i64_attr(ORDERINGS[ordering]),
        **attributes,
    )


@lowers(ttg.LocalAtomicScatterOp)
def _scatter(ctx: Lowering, site: Site) -> list[Value]:
    base, values, indices = site.operands[:3]
    mask, kind = site.optional(3), site.text("rmw_op")
    layout = layout_of(site.operand_types[1])
    desc, axis = site.operand_types[0], site.number("axis")
    places = element_addresses(ctx, base, desc, indices, axis, layout)
    scope = {"syncscope": string_attr(ctx.primitives.SCOPES["cta"])}
    owner = ctx.threads.owns(layout)

    def alone(address: Value, operand: Value) -> Value:
        return combined(ctx, kind, "relaxed", address, operand, scope)

    results: list[Value] = []
    for register, (place, first) in enumerate(zip(places, layout.first_registers(), strict=True)):
        if first != register:
            results.append(results[first])
            continue
        predicate = both(None if mask is None else v.extract(mask, register), owner)
        operands = [place, v.extract(values, register)]
        results.append(_guarded(predicate, operands, alone))
    whole = v.from_elements(results)
    if has_copies(layout) and list(site.op.results[0].uses):
        return [_share(ctx, site, whole, layout)]
    return [whole]


@lowers(tt.AtomicCASOp)
def _cas(ctx: Lowering, site: Site) -> list[Value]:
    ordering, scope = site.text("sem"), site.text("scope")

    def one(predicate: Value | None, *operands: Value) -> Value:
        return ctx.primitives.compare_and_swap(ordering, scope, operands, predicate)

    return _each(ctx, site, site.operands, None, one)


def _each(
    ctx: Lowering, site: Site, operands: list[Value], mask: Value | None, one: Callable[..., Value]
) -> list[Value]:
    """The atomic, under a predicate, for every element this thread owns, or for as many as one
    takes; and the results for all that hold one."""
    type_ = site.operand_types[0]
    if not is_tensor(type_):
        old = one(both(mask, first_thread(ctx)), *operands)
        return [_share_scalar(ctx, site, old)]
    layout, count = layout_of(type_), site.access
    owner = ctx.threads.owns(layout)
    results: list[Value] = []
    for start, first in list(enumerate(layout.first_registers()))[::count]:
        if first != start:
            results.append(results[first // count])
            continue
        address = ctx.scalars.element(operands[0], start)
        values = [_registers(operand, start, count) for operand in operands[1:]]
        predicate = both(None if mask is None else v.extract(mask, start), owner)
        results.append(one(predicate, address, *values))
    whole = v.from_elements(results) if count == 1 else v.concatenate(results)
    if has_copies(layout) and list(site.op.results[0].uses):
        return [_share(ctx, site, whole, layout)]
    return [whole]


def _registers(value: Value, start: int, count: int) -> Value:
    """One register, or a vector of several."""
    return v.extract(value, start) if count == 1 else group(value, start, count)


def _guarded(predicate: Value | None, operands: list[Value], one: Callable[..., Value]) -> Value:
    """The atomic behind a branch; where it is not taken the value is 0."""
    if predicate is None:
        return one(*operands)
    type_ = operands[1].type
    (value,) = emit_if(predicate, [type_], lambda: [one(*operands)], lambda: [v.constant(0, type_)])
    return value


def _share(ctx: Lowering, site: Site, value: Value, layout: LinearLayout) -> Value:
    """The owners' results in all copies: owners write, everybody reads."""
    shape = tuple(size for _, size in layout.outs)
    shared = shared_row_major(shape, tuple(reversed(range(len(shape)))))
    base = ctx.shared(ctx.scratch(site))
    places = layout.invert_and_compose(shared)
    v.when(ctx.threads.owns(layout), lambda: write_shared(ctx, value, places, 1, base))
    ctx.threads.barrier()
    return read_shared(ctx, v.element(value), places, 1, base)


def _share_scalar(ctx: Lowering, site: Site, old: Value) -> Value:
    if not list(site.op.results[0].uses):
        return old
    base, size = ctx.shared(ctx.scratch(site)), stored_bytes(old.type)
    v.when(first_thread(ctx), lambda: v.store(base, old, size))
    ctx.threads.barrier()
    return v.load(base, old.type, size)
