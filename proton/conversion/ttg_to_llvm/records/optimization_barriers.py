"""Barriers for those who order instructions: on data empty inline assembly.

LLVM and the assembler move no arithmetic across it.
"""

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, lowers
from proton.dialect import proton_gpu as pg
from proton.dialect.mlir import Value


@lowers(pg.OptimizationBarrierOp)
def _optimization_barrier(ctx: Lowering, site: Site) -> list[Value]:
    return [_kept(ctx, site.operands[0])]


@lowers(pg.SchedBarrierOp)
def _sched_barrier(ctx: Lowering, site: Site) -> list[Value]:
    ctx.recording.sched_barrier()
    return []


def _kept(ctx: Lowering, value: Value) -> Value:
    """The value through empty inline assembly, word by word."""
    if not v.is_vector(value.type):
        alone = v.insert(v.poison(v.vector(1, value.type)), value, 0)
        return v.extract(_kept(ctx, alone), 0)
    words = ctx.recording.optimization_barrier(v.to_elements(v.to_words(value)))
    return v.from_words(v.from_elements(words), value.type)
