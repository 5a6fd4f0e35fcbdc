"""What copies in Gluon tell the second-level cache."""

import re
from typing import Any

import numpy as np
import pytest

from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia import hopper
from proton.gluon.language.nvidia.hopper import mbarrier, tma
from tests.compile.ptx.emulation import Emulation
from tests.gluon_kernels import described


@gluon.jit
def moved(x_desc, y_desc, BRINGS: gl.constexpr, TAKES: gl.constexpr):
    memory = gl.allocate_shared_memory(x_desc.dtype, x_desc.block_type.shape, x_desc.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x_desc.block_type.nbytes)
    tma.async_load(x_desc, [0, 0], bar, memory, cache_policy=BRINGS)
    mbarrier.wait(bar, 0)
    tma.async_store(y_desc, [0, 0], memory, cache_policy=TAKES)
    tma.store_wait(0)


LAST = hopper.CachePolicy(l2=hopper.FractionalEvictionPolicy("evict_last", 0.5, "evict_first"))
NORMAL = hopper.CachePolicy(l2=hopper.FractionalEvictionPolicy("evict_normal", 1.0))


@pytest.mark.parametrize(
    ("brings", "takes", "found"),
    [
        (None, None, ([], [False, False])),
        (gl.CachePolicy(), gl.CachePolicy(eviction_policy="evict_normal"), ([], [False, False])),
        (
            gl.CachePolicy(eviction_policy="evict_first"),
            None,
            (["L2::evict_first 1"], [True, False]),
        ),
        (
            NORMAL,
            LAST,
            (
                [
                    "L2::evict_normal 1",
                    "L2::evict_last.L2::evict_first 0.5",
                ],
                [True, True],
            ),
        ),
    ],
)
def test_copies_by_tma_have_their_hints(
    brings: Any, takes: Any, found: Any, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((32, 64), np.float32)
    y = np.zeros_like(x)
    with Emulation(4, rng).installed():
        arrays = (described(array, [32, 64], gl.float32) for array in (x, y))
        kernel = moved[(1,)](*arrays, brings, takes, num_warps=4)
    assert (y == x).all()
    ptx = kernel.asm["ptx"]
    made = re.findall(r"createpolicy\.fractional\.(\S+)\.b64 \S+ ([\d.]+);", ptx)
    names = re.findall(r"cp\.async\.bulk\.tensor\S+", ptx)
    hints = list(dict.fromkeys((".shared::cluster" in n, "cache_hint" in n) for n in names))
    assert [f"{words} {float(share):g}" for words, share in made] == found[0]
    assert [has for _, has in hints] == found[1]
