"""Files of Triton's Proton for tests: a tree by CUPTI, and a trace of the same program.

    TRITON_PYTHON scripts/triton_files.py tests/pure/data

It is run by a Python with torch and Triton, on a GPU. Those of tests/pure/data are from 2026-11-30:
Triton 3.6, torch 2.11, one NVIDIA H200.
"""

import sys
from pathlib import Path

import torch
import triton
import triton.language as tl
import triton.profiler

SIZES = (1 << 16, 1 << 22)
BLOCK, SIDE, TILE, STEP = 1024, 1024, 128, 64
LAYERS = 2


def work_of_add(grid, metadata, args):
    """What a launch of `add` is called, moves and computes."""
    n = args["n"]
    return {"name": f"add_{n}", "bytes": 12 * n, "flops32": n}


@triton.jit(launch_metadata=work_of_add)
def add(a, b, c, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(c + i, tl.load(a + i, i < n) + tl.load(b + i, i < n), i < n)


@triton.jit
def mm(a, b, c, K, S: tl.constexpr, T: tl.constexpr, P: tl.constexpr):
    i = tl.program_id(0) * T + tl.arange(0, T)
    j = tl.program_id(1) * T + tl.arange(0, T)
    acc = tl.zeros((T, T), tl.float32)
    for k in range(0, K, P):
        kk = k + tl.arange(0, P)
        x = tl.load(a + i[:, None] * S + kk[None])
        acc = tl.dot(x, tl.load(b + kk[:, None] * S + j[None]), acc)
    tl.store(c + i[:, None] * S + j[None], acc)


def model() -> None:
    """Kernels of Triton, and of torch, in scopes."""
    with triton.profiler.scope("model", metrics={"tokens": 4096.0}):
        for layer in range(LAYERS):
            with triton.profiler.scope(f"layer{layer}"):
                for n in SIZES:
                    a = torch.randn(n, device="cuda")
                    b, c = torch.randn_like(a), torch.empty_like(a)
                    add[(triton.cdiv(n, BLOCK),)](a, b, c, n, BLOCK)
                x = torch.randn(SIDE, SIDE, device="cuda", dtype=torch.float16)
                y = torch.empty(SIDE, SIDE, device="cuda")
                mm[(SIDE // TILE, SIDE // TILE)](x, x, y, SIDE, SIDE, TILE, STEP)
                torch.softmax(y, 1).sum().item()


def main(folder: Path) -> None:
    """Writes both files."""
    model()  # compiles
    for data in ("tree", "trace"):
        session = triton.profiler.start(str(folder / "triton"), hook="triton", data=data)
        model()
        torch.cuda.synchronize()
        triton.profiler.finalize(session)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
