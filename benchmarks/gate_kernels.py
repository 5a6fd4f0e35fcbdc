"""What one process of benchmarks/gate.py measures: `gate_kernels.py STEPS RUN`."""

import sys

import numpy as np

import proton
import proton.language as tl

STEPS = 100
LAUNCHES, ELEMENTS, BLOCK = 50, 32 * 1024, 1024


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


def main(steps: int, out: str) -> None:
    """A kernel with two scopes of work, and another one beside, in turns."""
    x = np.random.default_rng(0).random(ELEMENTS, np.float32)
    y = np.empty_like(x)
    grid = (ELEMENTS // BLOCK,)
    with proton.profile("gate", placement="program") as run:
        for _ in range(LAUNCHES):
            work[grid](x, y, steps, STEPS, BLOCK=BLOCK)
            reference[grid](x, y, STEPS, BLOCK=BLOCK)
    run.save(out)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
