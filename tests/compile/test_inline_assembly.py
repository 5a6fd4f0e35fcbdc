"""Inline assembly in PTX: how often it stands there, and what it takes."""

import re

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation
from tests.cpu.test_assembly import NIBBLES, SHIFT, nibbles, rotated
from tests.gpu.test_gpu_map_elementwise import halves, reversed_by_barrier


@pytest.mark.parametrize("arch", [80, 90])
def test_assembly_takes_as_many_elements_as_it_packs(arch: int) -> None:
    target = proton.GPUTarget("cuda", arch)
    args = (tl.uint32, tl.uint32, tl.uint32)
    one = rotated.warmup(*args, ASM=SHIFT, N=1024, target=target, num_warps=4)
    assert one.asm["ptx"].count("shf.l.wrap.b32") == 1024 // 128
    assert one.asm["cubin"][:4] == b"\x7fELF"
    args = (tl.uint8, tl.uint8, tl.int8)
    packed = nibbles.warmup(*args, ASM=NIBBLES, N=2048, target=target, num_warps=4)
    assert len(re.findall("and.b32 .*, 0x0F0F0F0F", packed.asm["ptx"])) == 2 * 2048 // 128 // 4
    assert packed.asm["cubin"][:4] == b"\x7fELF"


def test_assembly_with_effects_stays() -> None:
    target = proton.GPUTarget("cuda", 90)
    kernel = halves.warmup(tl.float16, tl.float16, N=64, target=target)
    assert "%laneid" in kernel.asm["ptx"]
    assert "add.rn.f16" in kernel.asm["ptx"]


def test_assembly_without_operands_stands_once_between_the_accesses_around_it() -> None:
    target = proton.GPUTarget("cuda", 90)
    kernel = reversed_by_barrier.warmup(tl.int32, tl.int32, N=512, target=target)
    lines = [line.strip() for line in kernel.asm["ptx"].splitlines()]
    kinds = [
        kind
        for line in lines
        for kind in ("ld.global", "st.global", "bar.sync 0;")
        if re.search(rf"(^|\s){re.escape(kind)}", line)
    ]
    barrier = kinds.index("bar.sync 0;")
    assert {"ld.global", "st.global"} <= set(kinds[:barrier])
    assert {"ld.global", "st.global"} <= set(kinds[barrier + 1 :])
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    with pytest.raises(proton.CompilationError, match="pack must be 1 for scalars, got 2"):
        packed_nothing.warmup(tl.int32, target=target)


@proton.jit
def packed_nothing(x_ptr):
    tl.store(x_ptr, tl.inline_asm_elementwise("mov.b32 $0, 3;", "=r", [], tl.int32, True, 2))


@proton.jit
def larger(a, b):
    return tl.inline_asm_elementwise("max.f32 $0, $1, $2;", "=f,f,f", [a, b], tl.float32, True, 1)


@proton.jit
def combined(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    most = tl.reduce(x, 0, larger)
    tl.store(out_ptr + tl.arange(0, N), tl.associative_scan(x, 0, larger) - most)


def test_assembly_combines_in_scans_and_reductions(rng: np.random.Generator) -> None:
    """What it takes there are scalars to the region, and registers of a thread to it."""
    for size, warps in ((32, 1), (256, 2), (1024, 4)):
        x, out = rng.standard_normal(size).astype(np.float32), np.empty(size, np.float32)
        with Emulation(warps, rng).installed():
            combined[(1,)](x, out, size, num_warps=warps)
        np.testing.assert_array_equal(out, np.maximum.accumulate(x) - x.max())
