"""Barriers of a kernel in Gluon between what threads do to parts of memory: there where the parts
may meet, and not where they are others."""

import re
from typing import Any

import numpy as np
import pytest

from proton import gluon
from proton.gluon import language as gl
from tests.compile.ptx.emulation import Emulation

ROWS = gl.constexpr(gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0]))
COLUMNS = gl.constexpr(gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1]))
PLAIN = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
SWIZZLED = gl.constexpr(gl.NVMMASharedLayout(128, 32, rank=2))


@gluon.jit
def written_and_read(x, y, n, WHAT: gl.constexpr, layout: gl.constexpr):
    i = gl.arange(0, 32, gl.SliceLayout(1, ROWS))[:, None]
    j = gl.arange(0, 64, gl.SliceLayout(0, ROWS))[None, :]
    memory = gl.allocate_shared_memory(gl.int32, [4, 32, 64], layout)
    for k in gl.static_range(4):
        memory.index(k).store(gl.load(x + k * 2048 + i * 64 + j))
    if WHAT == "halves":
        to, of = memory.slice(0, 2).index(n), memory.slice(2, 2).index(1 - n)
    elif WHAT == "the first":
        to, of = memory.index(0), memory.slice(1, 3).index(n + 1)
    elif WHAT == "any":
        to, of = memory.index(n), memory.slice(2, 2).index(1)
    elif WHAT == "rows":
        to, of = memory.index(1).slice(0, 16), memory.index(1).slice(16, 16)
    elif WHAT == "rows of any":
        to, of = memory.index(n).slice(0, 16), memory.index(2).slice(16, 16)
    elif WHAT == "columns":
        to, of = memory.index(1).slice(0, 32, dim=1), memory.index(1).slice(32, 32, dim=1)
    else:
        to = memory.index(2).reinterpret(gl.int16, [32, 128], PLAIN).slice(0, 16)
        of = memory.index(2).slice(16, 16)
    gl.barrier()
    to.store(gl.full(to.shape, -1, to.dtype, ROWS))
    value = of.load(COLUMNS)
    r = gl.arange(0, of.shape[0], gl.SliceLayout(1, COLUMNS))[:, None]
    c = gl.arange(0, of.shape[1], gl.SliceLayout(0, COLUMNS))[None, :]
    gl.store(y + r * of.shape[1] + c, value)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("what", "layout", "read", "meet"),
    [
        ("halves", PLAIN, np.s_[3], False),
        ("the first", PLAIN, np.s_[2], False),
        ("any", PLAIN, np.s_[3], True),
        ("rows", PLAIN, np.s_[1, 16:], False),
        ("rows", SWIZZLED, np.s_[1, 16:], True),  # between each other's columns
        ("rows of any", PLAIN, np.s_[2, 16:], True),
        ("columns", SWIZZLED, np.s_[1, :, 32:], False),
        ("columns", PLAIN, np.s_[1, :, 32:], True),
        ("as others", PLAIN, np.s_[2, 16:], False),
    ],
)
def test_parts_of_memory_meet_where_they_may_be_the_same(
    what: str, layout: Any, read: Any, meet: bool, rng: np.random.Generator
) -> None:
    x = rng.integers(0, 99, (4, 32, 64)).astype(np.int32)
    y = np.zeros_like(x[read])
    with Emulation(4, rng).installed():
        kernel = written_and_read[(1,)](x, y, 0, what, layout, num_warps=4)
    assert (y == x[read]).all()
    behind = re.split(r"st\.shared|stmatrix", kernel.asm["ptx"])[-1].partition("ld.shared")[0]
    assert ("bar.sync" in behind) == meet
