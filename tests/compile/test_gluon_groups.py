"""Groups of warps that begin several times in a kernel, on the machine for PTX."""

import re
from typing import Any

import numpy as np
import pytest

import proton
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.hopper import mbarrier
from proton.language import int32
from tests.compile.ptx.emulation import Emulation
from tests.cpu.test_gluon_partitions import add, put


@gluon.jit
def several(y, first, second):
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    gl.warp_specialize([(add, (y, bar, 0)), (put, (y, bar, first))], [1])
    gl.warp_specialize([(add, (y + 1, bar, 1)), (put, (y + 1, bar, second))], [4])
    gl.warp_specialize([(add, (y, bar, 1))], [])


@gluon.jit
def without_workers(y, first, second):
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    put(y, bar, first)
    gl.store(y + 1, second + 1)
    gl.warp_specialize([(add, (y, bar, 0))], [])
    gl.warp_specialize([(add, (y, bar, 0))], [])


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("kernel", [several, without_workers])
def test_groups_may_begin_several_times(kernel: Any, warps: int, rng: np.random.Generator) -> None:
    first, second = (int(n) for n in rng.integers(-99, 99, 2))
    y = np.zeros(2, np.int32)
    with Emulation(warps, rng, checks_races=False).installed():
        kernel[(1,)](y, first, second, num_warps=warps)
    assert y.tolist() == [first + 2, second + 1]


def test_the_schedule_has_the_warps_of_each_time() -> None:
    compiled = several.warmup(int32, 1, 2, num_warps=4, grid=(1,),
                              target=proton.GPUTarget("cuda", 90))  # fmt: skip
    groups = re.findall(r"^\S.*$", str(compiled.asm["schedule"]), re.MULTILINE)
    assert sorted(groups) == ["warp 4", "warps 0 to 3", "warps 4 to 7"]
