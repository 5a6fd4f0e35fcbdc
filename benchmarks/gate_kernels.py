"""The kernels that benchmarks/gate.py measures."""

import proton
import proton.language as tl


@proton.jit
def work(x_ptr, out_ptr, steps, tail, BLOCK: tl.constexpr):
    """Two scopes of arithmetic between a load and a store."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("load"):
        x = tl.load(x_ptr + offs)
    with proton.scope("iterate"):
        for _i in range(steps):
            x = x * 0.999 + 0.5
    with proton.scope("tail"):
        for _k in range(tail):
            x = x * 0.998 + 0.25
    with proton.scope("store"):
        tl.store(out_ptr + offs, x)


@proton.jit
def reference(x_ptr, out_ptr, steps, BLOCK: tl.constexpr):
    """Work that does not change."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    with proton.scope("beside"):
        for _i in range(steps):
            x = x * 0.999 + 0.5
    tl.store(out_ptr + offs, x)
