"""Records in kernels in Gluon: of each group of warps, by what the machine for PTX leaves in the
ring buffers."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import proton
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.hopper import mbarrier
from proton.trace import wire
from proton.trace.instrumentation import Instrumentation
from proton.trace.iterations import expand
from tests.compile.ptx.machine import run_on_arrays
from tests.compile.test_gpu_records import compiled

WARP = gl.constexpr(gl.BlockedLayout([1], [32], [1], [0]))


@gluon.jit
def produce(buffers, ready, empty, n, S: gl.constexpr):
    for k in range(n):
        with proton.scope("empty"):
            mbarrier.wait(empty.index(k % S), (k // S & 1) ^ 1)
        with proton.scope("fill"):
            buffers.index(k % S).store(gl.full([32], k, gl.int32, WARP))
            mbarrier.arrive(ready.index(k % S), count=1)


@gluon.jit
def consume(buffers, ready, empty, n, S: gl.constexpr, layout: gl.constexpr):
    total = gl.zeros([32], gl.int32, layout)
    for k in range(n):
        with proton.scope("ready"):
            mbarrier.wait(ready.index(k % S), k // S & 1)
        with proton.scope("add", k=k):
            total += buffers.index(k % S).load(layout)
            mbarrier.arrive(empty.index(k % S), count=1)
    return total


@gluon.jit(do_not_specialize=["n"])
def summed(out, n, S: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    buffers = gl.allocate_shared_memory(gl.int32, [S, 32], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ready, empty = mbarrier.allocate_mbarrier(batch=S), mbarrier.allocate_mbarrier(batch=S)
    for k in gl.static_range(S):
        mbarrier.init(ready.index(k), count=1)
        mbarrier.init(empty.index(k), count=1)
    total = gl.warp_specialize(
        [
            (consume, (buffers, ready, empty, n, S, layout)),
            (produce, (buffers, ready, empty, n, S)),
        ],
        [1],
    )
    with proton.scope("store"):
        gl.store(out + gl.arange(0, 32, layout=layout), total)


N, WARPS, ALL_WARPS = 12, 4, 8
OF_CONSUMERS = {"ready": N, "add": N, "store": 1}
OF_PRODUCERS = {"empty": N, "fill": N}


@pytest.mark.parametrize(
    ("options", "consumers", "producers"),
    [
        ({}, OF_CONSUMERS, OF_PRODUCERS),
        ({"placement": "program"}, OF_CONSUMERS, OF_PRODUCERS),
        (
            {"every": 3},
            {"ready": N // 3, "add": N // 3, "store": 1},
            {"empty": N // 3, "fill": N // 3},
        ),
        ({"granularity": "warp_group"}, OF_CONSUMERS, OF_PRODUCERS),
        ({"sample_warps": (1, 4)}, OF_CONSUMERS, OF_PRODUCERS),
    ],
    ids=str,
)
def test_each_group_has_its_records(
    options: dict[str, Any],
    consumers: dict[str, int],
    producers: dict[str, int],
    rng: np.random.Generator,
) -> None:
    instrumentation = Instrumentation(capacity=64, **options)
    kernel = compiled(summed, gl.int32, N, 2, num_warps=WARPS, instrumentation=instrumentation)
    profile = kernel.profile
    assert profile is not None
    buffer, out = np.zeros(profile.block.bytes, np.uint8), np.zeros(32, np.int32)
    unit_warps = instrumentation.unit_warps(ALL_WARPS)
    threads = 32 * ALL_WARPS
    given = [out, N, buffer]
    run_on_arrays(
        kernel.asm["ptx"], (1, 1, 1), threads, kernel.shared, given, rng, unit=32 * unit_warps
    )
    assert (out == N * (N - 1) // 2).all()
    expand(buffer, profile.block, profile.loops)
    paths = [scope.name for scope in profile.table.scopes]
    counts = profile.block.tables(buffer)[0].tolist()
    for unit, count in enumerate(counts):
        start = profile.block.segment(unit)
        ring = buffer[start : start + profile.block.segment_bytes].view(profile.schema.dtype)
        found = Counter(paths[tag & wire.MAX_SCOPE_ID] for tag in ring["tag"][:count].tolist())
        first = unit * unit_warps
        is_sampled = first in options.get("sample_warps", range(ALL_WARPS))
        wanted = consumers if first < WARPS else producers if first == WARPS else {}
        assert dict(found) == (wanted if is_sampled else {})
        role = "consume" if first < WARPS else "produce" if first == WARPS else ""
        assert profile.roles[unit] == role
