"""What all threads of a warp execute together is not copied into both ways of a branch by LLVM."""

import re
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.runtime.nvidia.arguments import stand_in
from proton.runtime.nvidia.launch import GPULauncher
from proton.trace.instrumentation import Instrumentation


@proton.jit
def sums(x, y, count, N: tl.constexpr):
    """One thread adds to `count`, before and behind what all do."""
    with proton.scope("sum"):
        tl.atomic_add(count, tl.sum(tl.load(x + tl.arange(0, N)).to(tl.int32), 0))
    with proton.scope("again"):
        tl.atomic_add(count, 1)


@proton.jit
def products(x, y, count, N: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.atomic_add(count, 1)
    with proton.scope("product"):
        out = tl.dot(tl.load(x + places), tl.load(y + places))
    tl.atomic_add(count, 1)
    tl.store(x + places, out.to(tl.float16))
    tl.atomic_add(count, 1)


@proton.jit
def blocks(x, y, count, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [N, N], [N, 1], [N, N])
    target = tl.make_tensor_descriptor(y, [N, N], [N, 1], [N, N])
    tl.store(count, 1)
    with proton.scope("copy"):
        target.store([0, 0], source.load([0, 0]))
    tl.store(count, 2)


TOGETHER = re.compile(
    r"(?<!nvvm\.)\b(bar(?:\.warp)?\.sync|elect\.sync|(?:mma|wgmma|ldmatrix|stmatrix)[\w.:]*\.sync)[\w.:]*"
)
LEVELS = {  # of the llvm dialect's ops that become one of these
    "nvvm.barrier": "bar.sync",
    "nvvm.bar.warp.sync": "bar.warp.sync",
    "nvvm.elect.sync": "elect.sync",
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("capacity", [0, 8, 64, 1024])
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("kernel", [sums, products, blocks], ids=lambda k: k.__name__)
def test_nothing_is_there_twice(kernel: Any, arch: int, capacity: int) -> None:
    values = [tl.float16, tl.float16, tl.int32, 64]
    described = [stand_in(p, v) for p, v in zip(kernel.params, values, strict=True)]
    instrumentation = Instrumentation(capacity=capacity) if capacity else None
    found = GPULauncher(kernel).compile_described(
        proton.GPUTarget("cuda", arch), described, {"num_warps": 4}, instrumentation
    )
    llir = found.asm["llir"].replace(r"\0A", "\n").replace(r"\09", "\t")
    wanted = TOGETHER.findall(llir)
    for op, instruction in LEVELS.items():
        wanted += [instruction] * len(re.findall(rf"\b{re.escape(op)}(?![\w.])", llir))
    assert wanted or not instrumentation
    assert sorted(TOGETHER.findall(found.asm["ptx"])) == sorted(wanted)
