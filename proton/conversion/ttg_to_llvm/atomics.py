"""Atomics: LLVM's own instructions, one an element, by the one thread that owns the element.

LLVM knows all kinds, widths, orderings and scopes, and makes a loop of compare-and-swap of what
the chip lacks. Where other threads hold copies of a result they read it from shared memory.
"""

from collections.abc import Callable
from typing import Any

from proton.analysis.scratch import has_copies, stored_bytes
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.layouts import read_shared, write_shared
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.memory import both, first_thread
from proton.dialect.builtin import i64_attr, string_attr
from proton.dialect.emit import emit_if
from proton.dialect.mlir import Attribute, Value
from proton.dialect.ttg import is_tensor, layout_of
from proton.layout import LinearLayout
from proton.layout.named import shared_row_major

# tt's name -> LLVM's AtomicBinOp
_KINDS = {
    "add": "add",
    "fadd": "fadd",
    "max": "max",
    "umax": "umax",
    "fmax": "fmax",
    "min": "min",
    "umin": "umin",
    "fmin": "fmin",
    "and": "_and",
    "or": "_or",
    "xor": "_xor",
    "xchg": "xchg",
}
_BIN_OPS = {  # LLVM dialect, enum AtomicBinOp
    "xchg": 0,
    "add": 1,
    "_and": 3,
    "_or": 5,
    "_xor": 6,
    "max": 7,
    "min": 8,
    "umax": 9,
    "umin": 10,
    "fadd": 11,
    "fmax": 13,
    "fmin": 14,
}
_ORDERINGS = {"relaxed": 2, "acquire": 4, "release": 5, "acq_rel": 6}  # enum AtomicOrdering
_SCOPES = {"cta": "block", "gpu": "device", "sys": ""}


def _attributes(site: Site) -> dict[str, Attribute]:
    result = {}
    if scope := _SCOPES[site.text("scope")]:
        result["syncscope"] = string_attr(scope)
    return result


@lowers("tt.atomic_rmw")
def _rmw(ctx: Lowering, site: Site) -> list[Value]:
    pointers, value, mask = site.optional(3)
    kind, ordering, attributes = site.text("rmw_op"), site.text("sem"), _attributes(site)

    def one(address: Value, operand: Value) -> Value:
        return _combined(kind, ordering, address, operand, attributes)

    return _each(ctx, site, [pointers, value], mask, one)


def relaxed(kind: str, address: Value, operand: Value) -> Value:
    """One element, combined with the GPU's memory by what `tt` calls `kind`; what it was before."""
    scope = {"syncscope": string_attr(_SCOPES["gpu"])}
    return _combined(kind, "relaxed", address, operand, scope)


def _combined(
    kind: str, ordering: str, address: Value, operand: Value, attributes: dict[str, Attribute]
) -> Value:
    return v.create(
        "llvm.atomicrmw",
        operand.type,
        address,
        operand,
        bin_op=i64_attr(_BIN_OPS[_KINDS[kind]]),
        ordering=i64_attr(_ORDERINGS[ordering]),
        **attributes,
    )


@lowers("tt.atomic_cas")
def _cas(ctx: Lowering, site: Site) -> list[Value]:
    success = _ORDERINGS[site.text("sem")]
    # A failed exchange only loads: the ordering without its release half.
    failure = {2: 2, 4: 4, 5: 2, 6: 4}[success]

    def one(address: Value, expected: Value, desired: Value) -> Value:
        type_ = expected.type
        bits = v.integer(v.bits_of(type_))
        pair = v.create(
            "llvm.cmpxchg",
            v.struct([bits, v.integer(1)]),
            address,
            v.bitcast(expected, bits),
            v.bitcast(desired, bits),
            success_ordering=i64_attr(success),
            failure_ordering=i64_attr(failure),
            **_attributes(site),
        )
        return v.bitcast(v.member(pair, 0, bits), type_)

    return _each(ctx, site, site.operands, None, one)


def _each(
    ctx: Lowering, site: Site, operands: list[Value], mask: Value | None, one: Callable[..., object]
) -> list[Value]:
    """The atomic for every element this thread owns, and the results for all that hold one."""
    type_ = site.operand_types[0]
    if not is_tensor(type_):
        predicate = both(mask, first_thread(ctx))
        old = _guarded(predicate, operands, one)
        return [_share_scalar(ctx, site, old)]
    layout = layout_of(type_)
    owner = ctx.threads.owns(layout)
    results = []
    for register in range(v.count_of(operands[0])):
        scalars = [v.extract(operand, register) for operand in operands]
        predicate = both(None if mask is None else v.extract(mask, register), owner)
        results.append(_guarded(predicate, scalars, one))
    whole = v.from_elements(results)
    if has_copies(layout) and list(site.op.results[0].uses):
        return [_share(ctx, site, whole, layout)]
    return [whole]


def _guarded(predicate: Value | None, operands: list[Value], one: Callable[..., Any]) -> Value:
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
    v.when(ctx.threads.owns(layout), lambda: write_shared(ctx, value, layout, shared, 1, base))
    ctx.threads.barrier()
    return read_shared(ctx, v.element(value), layout, shared, 1, base)


def _share_scalar(ctx: Lowering, site: Site, old: Value) -> Value:
    if not list(site.op.results[0].uses):
        return old
    base, size = ctx.shared(ctx.scratch(site)), stored_bytes(old.type)
    v.when(first_thread(ctx), lambda: v.store(base, old, size))
    ctx.threads.barrier()
    return v.load(base, old.type, size)
