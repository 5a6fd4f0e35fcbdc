"""What is said of barriers on which a wait never ends, and of kernels that are right: nothing."""

import re
from typing import Any

import pytest

import proton
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.ampere import async_copy
from proton.gluon.language.nvidia.hopper import (
    async_store,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

TARGET = proton.GPUTarget("cuda", 90)
ROWS = gl.constexpr(gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]))
MEMORY = gl.constexpr(gl.NVMMASharedLayout(128, 32, 2))
HALVES = gl.constexpr(gl.NVMMASharedLayout(128, 16, 2))
DOTS = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16]))


@gluon.jit
def one_barrier(x, n, WHAT: gl.constexpr):
    desc = tma.make_tensor_descriptor(x, [n, 32], [32, 1], [32, 32], MEMORY)
    buffer = gl.allocate_shared_memory(gl.float32, [32, 32], MEMORY)
    ready = mbarrier.allocate_mbarrier()
    if WHAT != "no init":
        mbarrier.init(ready, count=2 if WHAT in ("two", "both") else 1)
    if WHAT == "early":
        mbarrier.wait(ready, 0)
    if WHAT == "too many":
        mbarrier.arrive(ready, count=2)
    if WHAT == "in a branch":
        if n > 3:
            mbarrier.arrive(ready)
        mbarrier.wait(ready, 0)
    if WHAT == "both":
        mbarrier.arrive(ready)
    if WHAT not in ("nothing", "in a branch"):
        mbarrier.expect(ready, 4096 * (2 if WHAT == "bytes" else 1))
        tma.async_load(desc, [0, 0], ready, buffer)
    if WHAT != "unread":
        mbarrier.wait(ready, 1 if WHAT == "phase 1" else 0)
    if WHAT == "again" or WHAT == "next":
        mbarrier.expect(ready, 4096)
        tma.async_load(desc, [32, 0], ready, buffer)
        mbarrier.wait(ready, 0 if WHAT == "again" else 1)
    if WHAT == "loop" or WHAT == "wrong loop":
        for k in range(1, n):
            mbarrier.expect(ready, 4096)
            tma.async_load(desc, [32 * k, 0], ready, buffer)
            mbarrier.wait(ready, (k & 1) if WHAT == "loop" else (k & 1) ^ 1)
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, ROWS))[:, None]
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, ROWS))[None, :]
    gl.store(x + i * 32 + j, buffer.load(ROWS) + 1)


@gluon.jit
def copying(x, n, WAITS: gl.constexpr):
    buffer = gl.allocate_shared_memory(gl.float32, [32, 32], MEMORY)
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, ROWS))[:, None]
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, ROWS))[None, :]
    async_copy.async_load(buffer, x + i * 32 + j)
    async_copy.commit_group()
    if WAITS:
        async_copy.wait_group(0)
    gl.store(x + i * 32 + j, buffer.load(ROWS) + 1)


@gluon.jit
def reading(buffers, ready, ARRIVES: gl.constexpr):
    mbarrier.wait(ready, 0)


@gluon.jit
def writing(buffers, ready, ARRIVES: gl.constexpr):
    for _ in gl.static_range(ARRIVES):
        mbarrier.arrive(ready)


@gluon.jit
def between_roles(x, n, ARRIVES: gl.constexpr):
    ready = mbarrier.allocate_mbarrier()
    mbarrier.init(ready, count=2)
    gl.warp_specialize([(reading, (x, ready, ARRIVES)), (writing, (x, ready, ARRIVES))], [1])


@gluon.jit
def waiting_for_both(buffer, ready, done):
    mbarrier.wait(done, 0)
    buffer.load(ROWS)


@gluon.jit
def handing_on(buffer, ready, done):
    mbarrier.wait(ready, 0)
    mbarrier.arrive(done)


@gluon.jit
def by_another_role(x, n, WHAT: gl.constexpr):
    """The worker waits for a copy, and the default group for the worker."""
    desc = tma.make_tensor_descriptor(x, [n, 32], [32, 1], [32, 32], MEMORY)
    buffer = gl.allocate_shared_memory(gl.float32, [32, 32], MEMORY)
    pair = gl.allocate_shared_memory(gl.int64, [2], mbarrier.MBarrierLayout())
    mbarrier.init(pair, count=1)
    ready, done = pair.slice(0, 1), pair.slice(1, 1)
    mbarrier.expect(ready, 4096)
    tma.async_load(desc, [0, 0], ready, buffer)
    args = (buffer, ready, done)
    gl.warp_specialize([(waiting_for_both, args), (handing_on, args)], [1])


@gluon.jit
def slots(x, n, S: gl.constexpr):
    """Copies that are one buffer ahead; a part of the memory has the bytes of a part."""
    desc = tma.make_tensor_descriptor(x, [n * 32, 32], [32, 1], [32, 32], MEMORY)
    whole = gl.allocate_shared_memory(gl.float32, [64, 32], MEMORY)
    bars = mbarrier.allocate_mbarrier(batch=2)
    for k in gl.static_range(2):
        mbarrier.init(bars.index(k), count=1)
        mbarrier.expect(bars.index(k), 4096)
        tma.async_load(desc, [32 * k, 0], bars.index(k), whole.slice(32 * k, 32))
    for k in range(n):
        if k >= 2:
            mbarrier.expect(bars.index(k % 2), 4096)
            tma.async_load(desc, [32 * k, 0], bars.index(k % 2), whole.slice(0, 32))
        mbarrier.wait(bars.index(k % 2), (k // 2 + S) & 1)
    whole.load(ROWS)


@gluon.jit
def waiting_in_a_ring(ring, others, n):
    for k in range(n):
        mbarrier.wait(ring.index(k % 2), 0)


@gluon.jit
def arriving_in_a_ring(ring, others, n):
    for k in range(n):
        mbarrier.arrive(others.index(k % 2))


@gluon.jit
def two_rings(x, n, SAME: gl.constexpr):
    """Both rings lie in one allocation; one group waits at one of them."""
    bars = mbarrier.allocate_mbarrier(batch=4)
    for k in gl.static_range(4):
        mbarrier.init(bars.index(k), count=1)
    one, other = bars.slice(0, 2), bars.slice(2, 2)
    args = (one, one if SAME else other, n)
    gl.warp_specialize([(waiting_in_a_ring, args), (arriving_in_a_ring, args)], [1])


@gluon.jit
def multiplying(x, n, WAITS: gl.constexpr):
    a = gl.allocate_shared_memory(gl.float16, [64, 64], HALVES)
    acc = warpgroup_mma(a, a, gl.zeros([64, 64], gl.float32, DOTS), is_async=True)
    if WAITS:
        acc = warpgroup_mma_wait(0, (acc,))
    i = gl.arange(0, 64, layout=gl.SliceLayout(1, DOTS))[:, None]
    j = gl.arange(0, 64, layout=gl.SliceLayout(0, DOTS))[None, :]
    gl.store(x + i * 64 + j, acc + 1.0)


@gluon.jit
def signalling(x, n, TIMES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    memory = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ready = mbarrier.allocate_mbarrier()
    mbarrier.init(ready, count=1)
    mbarrier.expect(ready, TIMES * memory.nbytes_per_cta)
    async_store(memory, gl.zeros([128], gl.float32, layout), ready)
    mbarrier.wait(ready, 0)
    gl.store(x + gl.arange(0, 128, layout=layout), memory.load(layout))


REFUSED: list[tuple[Any, Any, str]] = [
    (one_barrier, "no init", "is waited for, and never initialised"),
    (one_barrier, "nothing", "this wait never ends: nothing arrives at its barrier"),
    (one_barrier, "early", "phase 0 is the first, and nothing has arrived"),
    (one_barrier, "two", "only 1 of 2 arrivals come"),
    (one_barrier, "too many", "2 arrivals at once at a barrier whose phase has 1"),
    (one_barrier, "bytes", "its barrier expects 4096 bytes more than the copies bring"),
    (one_barrier, "phase 1", "the last phase that ended at its barrier is 0, not 1"),
    (one_barrier, "again", "the last phase that ended at its barrier is 1, not 0"),
    (one_barrier, "unread", "is read while a copy to it may be under way"),
    (copying, False, r"is read while a copy to it may(.|\n)*async_copy.wait_group"),
    (between_roles, 0, "nothing arrives at its barrier"),
    (between_roles, 1, "only 1 of 2 arrivals come"),
    (two_rings, False, "this wait never ends: nothing arrives at its barrier"),
    (signalling, 2, "its barrier expects 512 bytes more than the copies bring"),
    (multiplying, False, "which a dot may still write(.|\n)*warpgroup_mma_wait"),
]
WARNED: list[tuple[Any, Any, str]] = [  # loops that may be empty
    (one_barrier, "wrong loop", "the last phase that ended at its barrier is 1, not 0"),
    (slots, 1, "the last phase that ended at its barrier is 0, not 1"),
]
ACCEPTED: list[tuple[Any, Any]] = [
    *((one_barrier, what) for what in ("", "next", "loop", "both", "in a branch")),
    (copying, True),
    (between_roles, 2),
    (by_another_role, 0),
    (signalling, 1),
    (two_rings, True),
    (slots, 0),
    (multiplying, True),
]


@pytest.mark.parametrize(("kernel", "what", "said"), REFUSED)
def test_what_is_certainly_wrong_is_refused(kernel: Any, what: Any, said: str) -> None:
    x = gl.float32
    with pytest.raises(proton.CompilationError) as raised:
        kernel.warmup(x, 3, what, grid=(1,), num_warps=4, target=TARGET)
    text = str(raised.value)
    assert re.search(said, text), text
    assert __file__ in text
    assert "/language/" not in text
    if kernel is one_barrier and what != "unread":
        assert "`ready = mbarrier.allocate_mbarrier()`" in text


def test_loops_that_may_be_empty_are_not_refused() -> None:
    for kernel, what, said in WARNED:
        with pytest.warns(UserWarning, match=f"if the loop runs, this wait never ends: {said}"):
            kernel.warmup(gl.float32, 3, what, grid=(1,), num_warps=4, target=TARGET)


@pytest.mark.usefixtures("no_ptx")
def test_what_may_be_right_is_accepted() -> None:
    for kernel, what in ACCEPTED:
        kernel.warmup(gl.float32, 3, what, grid=(1,), num_warps=4, target=TARGET)


def test_a_cpu_refuses_it_too() -> None:
    for what, said in (("nothing", "nothing arrives"), ("again", "is 1, not 0")):
        with pytest.raises(proton.CompilationError, match=said):
            one_barrier.warmup(gl.float32, 3, what, grid=(1,), num_warps=4)
