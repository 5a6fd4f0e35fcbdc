"""The random functions of tests/cpu/test_random_returns.py, compiled for a GPU.

Branches, selections and calls that no kernel of ours has: they once ended the process in a pass.
"""

import random

import proton
import proton.language as tl
from tests.cpu.harness import kernels_of
from tests.cpu.test_random_returns import Source
from tests.draws import PROGRAMS

TARGET = proton.GPUTarget("cuda", 90)


def test_early_returns_compile(session_seed: int) -> None:
    rng = random.Random(session_seed)
    for _ in range(PROGRAMS // 10):
        source = Source(rng).text()
        static = {"S0": rng.random() < 0.5, "S1": rng.random() < 0.5}
        num_warps = rng.choice([1, 4])
        kernel = kernels_of(source).kernel
        compiled = kernel.warmup(tl.int32, tl.int32, **static, target=TARGET, num_warps=num_warps)
        assert compiled.asm["cubin"][:4] == b"\x7fELF", source
