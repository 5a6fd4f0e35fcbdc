"""Fences between the two ways to shared memory.

Threads, and the copies that `cp.async` begins, write through the *generic proxy*; `wgmma` reads
through the *asynchronous proxy*, which sees such writes only behind a fence of the thread that
made them (PTX ISA, "Async proxy").
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from proton.analysis.shared_alias import SharedAliases
from proton.dialect.ttg import is_mem_desc
from proton.dialect.ttng import FenceAsyncSharedOp
from proton.dialect.walk import before, functions, ops_named
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class FenceInsertion(Pass):
    """`ttng.fence_async_shared` before each product of a warp group that reads what threads wrote.
    It comes ahead of the barrier that `membar` puts before the product: each thread fences what it
    wrote, and then they meet."""

    name: ClassVar[str] = "triton-nvidia-gpu-fence-insertion"

    def run(self, module: Any) -> None:
        for function in functions(module):
            products = ops_named(function, "ttng.warp_group_dot")
            aliases = SharedAliases(function) if products else None
            for op in products:
                assert aliases is not None
                named = [v for v in op.operands if is_mem_desc(v.type)]
                if any(aliases.memory.get(value) for value in named):
                    with before(op):
                        FenceAsyncSharedOp()
