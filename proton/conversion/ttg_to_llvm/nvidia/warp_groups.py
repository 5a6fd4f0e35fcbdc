"""Warps that work together: where they meet, and groups of them that run code of their own."""

from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import ttg, ttng
from proton.dialect.mlir import Value
from proton.dialect.regions import If, yield_values


@lowers(ttg.WarpSpecializeOp)
def _warp_specialize(ctx: Lowering, site: Site) -> list[Value]:
    """A branch that all threads of a warp take alike."""
    ctx.threads.barrier()
    is_first = ctx.threads.is_warp_below(site.number("warps"))
    assert is_first is not None, "the second group has a warp"
    branch = If.create(is_first)
    for number, region in enumerate(site.op.regions):
        region.blocks[0].append_to(branch.op.regions[number])
    ctx.threads.barrier()
    return []


@lowers(ttg.MeetOp)
def _meet(ctx: Lowering, site: Site) -> list[Value]:
    """At the barrier of the program, which no group has for itself. Each group comes to it at an
    instruction of its own, which those that are `.aligned` do not allow (PTX: `barrier`)."""
    nvidia.assembly("barrier.sync 0;", "~{memory}", None)
    return []


@lowers(ttng.SetRegistersOp)
def _set_registers(ctx: Lowering, site: Site) -> list[Value]:
    way = "inc" if site.op.attributes["is_more"].value else "dec"
    text = f"setmaxnreg.{way}.sync.aligned.u32 {site.number('count')};"
    nvidia.assembly(text, "~{memory}", None)
    return []


@lowers(ttng.DelayOp)
def _delay(ctx: Lowering, site: Site) -> list[Value]:
    text = (
        "{ .reg .u32 begin, passed; .reg .pred waits; mov.u32 begin, %clock; "
        "again: mov.u32 passed, %clock; sub.u32 passed, passed, begin; "
        f"setp.lt.u32 waits, passed, {site.number('cycles')}; @waits bra again; }}"
    )
    nvidia.assembly(text, "~{memory}", None)
    return []


@lowers(ttg.WarpReturnOp)
def _warp_return(ctx: Lowering, site: Site) -> list[Value]:
    yield_values()
    return []
