"""Kernels whose programs wait for each other, for smaller numbers or for larger ones."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import knobs

LOOKS = ("add", "or", "cas", "load", "volatile")


@proton.jit
def _look(flag, LOOK: tl.constexpr):
    if LOOK == "add":
        return tl.atomic_add(flag, 0, sem="acquire")
    elif LOOK == "or":
        return tl.atomic_or(flag, 0)
    elif LOOK == "cas":
        return tl.atomic_cas(flag, 7, 7)
    elif LOOK == "load":
        return tl.atomic_load(flag)
    else:
        return tl.load(flag, volatile=True)


@proton.jit
def sums_of_all(x_ptr, parts_ptr, sem_ptr, out_ptr, n, BLOCK: tl.constexpr, LOOK: tl.constexpr):
    """Each program writes the sum of what all programs of its row have added up."""
    row, part, parts = tl.program_id(1), tl.program_id(0), tl.num_programs(0)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(part * BLOCK, n, parts * BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + at, mask=at < n, other=0)
    tl.store(parts_ptr + row * parts + part, tl.sum(total, 0))
    tl.debug_barrier()
    seen = tl.atomic_add(sem_ptr + row, 1, sem="release") + 1
    looks = 0
    while (seen < parts) & (looks < 4194304):
        seen = _look(sem_ptr + row, LOOK)
        looks += 1
    whole = tl.zeros((), tl.float64)
    for other in range(parts):
        whole += tl.load(parts_ptr + row * parts + other, volatile=True)
    tl.store(out_ptr + row * parts + part, whole)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_all_programs_meet(rng: np.random.Generator, look: str, threads: int | None) -> None:
    for rows, parts in ((1, 2), (3, 5), (1, 37), (40, 8)):  # of the last not all run at once
        x = rng.integers(-99, 99, (rows, 1000)).astype(np.float64)
        out, semaphores = np.zeros((rows, parts)), np.zeros(rows, np.int32)
        arguments = x, np.zeros((rows, parts)), semaphores, out, 1000
        with knobs.scope(num_threads=threads):
            sums_of_all[(parts, rows)](*arguments, BLOCK=16, LOOK=look)
        assert (out == x.sum(1, keepdims=True)).all()
        assert (semaphores == parts).all()


def test_all_programs_meet_in_a_session(rng: np.random.Generator) -> None:
    x = rng.integers(-99, 99, (2, 100)).astype(np.float64)
    out = np.zeros((2, 6))
    with proton.profile() as run:
        arguments = x, np.zeros((2, 6)), np.zeros(2, np.int32), out, 100
        sums_of_all[(6, 2)](*arguments, BLOCK=16, LOOK="add")
    assert (out == x.sum(1, keepdims=True)).all()
    assert len(run.launches) == 1


@proton.jit
def backwards(x_ptr, out_ptr, ready_ptr, ORDER: tl.constexpr):
    """A sum of all that programs in front have, handed from each to the next."""
    at, programs = tl.program_id(0), tl.num_programs(0)
    before = at - 1 if ORDER > 0 else at + 1
    total = tl.load(x_ptr + at)
    if (before >= 0) & (before < programs):
        while tl.atomic_add(ready_ptr + before, 0, sem="acquire") == 0:
            pass
        total += tl.load(out_ptr + before, volatile=True)
    tl.store(out_ptr + at, total)
    tl.debug_barrier()
    tl.atomic_xchg(ready_ptr + at, 1, sem="release")


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("programs", [1, 2, 100])
def test_a_chain_of_programs(rng: np.random.Generator, programs: int, order: int) -> None:
    x = rng.integers(-99, 99, programs)
    out: Any = np.zeros(programs, np.int64)
    backwards[(programs,)](x, out, np.zeros(programs, np.int32), ORDER=order)
    assert (out[::order] == np.cumsum(x[::order])).all()


def test_many_programs_that_wait_for_those_before(rng: np.random.Generator) -> None:
    x = rng.integers(-99, 99, 3000)
    out: Any = np.zeros(3000, np.int64)
    backwards[(3000,)](x, out, np.zeros(3000, np.int32), ORDER=1)
    assert (out == np.cumsum(x)).all()
