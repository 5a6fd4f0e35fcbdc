"""Dots that run beside special functions are waited for behind them, without records as with them.

    %w = math.exp2 %x                    %w = math.exp2 %x
    ttng.warp_group_dot_wait %d    =>    proton_gpu.sched_barrier
                                         ttng.warp_group_dot_wait %d

A clock sample is a place that the assembler moves nothing across. In a version of a loop that has
none left it puts the wait for a dot ahead of the exponentials beside which the dot runs: attention
took 1.16 of its time so where few programs were recorded, and 1.05 with the wait held
(benchmarks/gpu_modes.py, H200, eb1c0362 and 0ccd119c).
"""

from proton.analysis.cost import Cost, cost
from proton.dialect import isa, ttng
from proton.dialect.mlir import Operation
from proton.dialect.proton import RECORDS
from proton.dialect.proton_gpu import SchedBarrierOp
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import before, ops_named


def hold_waits(root: Operation) -> None:
    """Holds the waits in an op or a function that no record holds."""
    for wait in ops_named(root, ttng.WarpGroupDotWaitOp):
        ops = [view.operation for view in wait.block.operations]
        for op in reversed(ops[: ops.index(wait)]):
            if isa(op, ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp) or op.name in RECORDS:
                break
            if cost(op) == Cost.SPECIAL and is_tensor(op.results[0].type):
                with before(wait), wait.location:
                    SchedBarrierOp()
                break
