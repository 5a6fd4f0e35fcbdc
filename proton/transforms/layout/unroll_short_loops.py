"""Has LLVM write out loops of a few iterations, so that their loads are under way at once.

A reduction of a row takes it in blocks, of which there are often two to eight: a number that is
known where a kernel is compiled for a shape. In a loop each block waits for memory by itself, and a
loop with some arithmetic is too long for LLVM to write out unasked.

    scf.for %i = %c0 to %c6272 step %c2048 {...}  =>  the same, {llvm.loop_annotation = full}

Threads must not meet in such a loop: what they exchange orders the iterations anyway. But one that
copies blocks ahead, for products, is written out: which buffer is whose, whether there is another
copy and where it comes from is known then.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.loop_iterations import iterations_of
from proton.dialect import isa, names_of, tt, ttg, ttng
from proton.dialect.attributes import LOOP_ANNOTATION, UNROLLED
from proton.dialect.mlir import Module, Operation, ir, scf
from proton.dialect.regions import ForLoop
from proton.dialect.traits import Elementwise, has
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import all_ops
from proton.passes import Pass, register

MOST_ITERATIONS = 8
# Iterations of a loop without tensors, as Triton's LLVM has it: a scan down a column of 64 is the
# same instructions then (`column_sums` of benchmarks/engine_kernels.py).
MOST_OF_SCALARS = 64
MOST_RESULTS = 1024  # of a thread, in all iterations: code of about so many instructions
_FULL = "#llvm.loop_annotation<unroll = <full = true>>"
_OTHERS = names_of(
    *(tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.MakeRangeOp, tt.AddPtrOp, scf.YieldOp),
    *(tt.LoadOp, tt.StoreOp),
)
_OF_PRODUCTS = names_of(
    *(ttg.AsyncCopyOp, ttg.AsyncCommitGroupOp, ttg.AsyncWaitOp, ttg.MemDescIndexOp),
    *(ttg.MemDescTransOp, ttg.LocalLoadOp, tt.TransOp, ttng.MmaSyncOp, ttng.WarpGroupDotOp),
    *(ttng.WarpGroupDotWaitOp, ttng.FenceAsyncSharedOp),
)


@register
@dataclass(frozen=True)
class UnrollShortLoops(Pass):
    """Sets `llvm.loop_annotation` of loops with a known, small number of iterations that load, or
    copy."""

    name: ClassVar[str] = "tritongpu-unroll-short-loops"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp)

    def run(self, module: Module) -> None:
        for op in all_ops(module):
            if isa(op, scf.ForOp) and UNROLLED not in op.attributes and _is_short(ForLoop(op)):
                op.attributes[LOOP_ANNOTATION] = ir.Attribute.parse(_FULL)


def _is_short(loop: ForLoop) -> bool:
    iterations, ops = iterations_of(loop.op), all_ops(loop.op)
    are_scalars = not any(is_tensor(result.type) for op in ops for result in op.results)
    most = MOST_OF_SCALARS if are_scalars else MOST_ITERATIONS
    if iterations is None or not 2 <= iterations <= most:
        return False
    loads = any(isa(op, tt.LoadOp) and is_tensor(op.results[0].type) != are_scalars for op in ops)
    copies = any(isa(op, ttg.AsyncCopyOp) for op in ops)
    size = sum(_results(op) for op in ops)
    return (loads or copies) and all(map(_is_of_threads, ops)) and size * iterations <= MOST_RESULTS


def _is_of_threads(op: Operation) -> bool:
    """True of what each thread does by itself."""
    if isa(op, scf.IfOp):
        return True
    is_number = op.name.startswith(("arith.", "math.")) or has(op, Elementwise)
    return not op.regions and (is_number or op.name in _OTHERS or op.name in _OF_PRODUCTS)


def _results(op: Operation) -> int:
    """The registers of a thread that an op fills."""
    return sum(
        layout_of(result.type).in_size("register") if is_tensor(result.type) else 1
        for result in op.results
    )
