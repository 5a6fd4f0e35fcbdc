"""Inline assembly in PTX: how often it stands there, and what it takes."""

import re

import pytest

import proton
import proton.language as tl
from tests.gpu.test_gpu_map_elementwise import NIBBLES, SHIFT, halves, nibbles, rotated


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
