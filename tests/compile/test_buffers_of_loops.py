"""Loops of a few iterations, whose number is known: each has a buffer, and all copies begin ahead
of the loop. On the machine for PTX, which finds races."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_gpu_records import compiled
from tests.draws import kernels, times


@proton.jit
def products_of_rows(
    x_ptr, w_ptr, at_ptr, out_ptr, rows, inside, INDEXED: tl.constexpr, CARRIED: tl.constexpr,
    COUNT: tl.constexpr, M: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Of each row of blocks the product of its parts, whose number is known, with those of w."""
    m, k = tl.arange(0, M), tl.arange(0, K)
    for row in range(rows):
        w_ptrs = w_ptr + k[:, None] * M + m[None, :]
        acc = tl.zeros((M, M), tl.float32)
        for part in range(row * COUNT, (row + 1) * COUNT):
            place = part
            if INDEXED:
                place = tl.load(at_ptr + part)
            x = tl.load(
                x_ptr + place * M * K + m[:, None] * K + k[None, :],
                mask=(k[None, :] < inside) & (place >= 0), other=0.0,
            )  # fmt: skip
            if CARRIED:
                w = tl.load(w_ptrs)
                w_ptrs += K * M
            else:
                first = (part - row * COUNT) * K * M
                w = tl.load(w_ptr + first + k[:, None] * M + m[None, :])
            acc = tl.dot(x, w, acc)
        tl.store(out_ptr + row * M * M + m[:, None] * M + m[None, :], acc)


@pytest.mark.usefixtures("no_assembler")
@kernels(times(16))
@given(
    count=st.integers(1, 5), stages=st.integers(1, 5), rows=st.integers(0, 3),
    element=st.sampled_from(["float16", "float32"]), warps=st.sampled_from([1, 2, 4, 8]),
    sizes=st.sampled_from([(16, 16), (32, 64), (64, 32), (64, 64)]),
    is_indexed=st.booleans(), is_carried=st.booleans(), inside=st.integers(0, 64),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_a_known_number_of_iterations(
    count: int, stages: int, rows: int, element: str, warps: int, sizes: tuple[int, int],
    is_indexed: bool, is_carried: bool, inside: int, seed: int,
) -> None:  # fmt: skip
    """Numbers have the bits of fp16, so that tf32 has them, too. A place below 0 is masked."""
    rng, (m, k) = np.random.default_rng(seed), sizes
    parts = max(rows, 1) * count
    x = rng.standard_normal((parts, m, k)).astype(np.float16).astype(element)
    w = rng.standard_normal((count, k, m)).astype(np.float16).astype(element)
    at = rng.permutation(parts).astype(np.int32)
    at[rng.random(parts) < 0.1] = -1
    out = np.full((max(rows, 1), m, m), 7, np.float32)
    with Emulation(warps, rng).installed():
        products_of_rows[(1,)](
            x, w, at, out, rows, inside, is_indexed, is_carried, count, m, k, num_warps=warps,
            num_stages=stages,
        )  # fmt: skip
    places = at if is_indexed else np.arange(parts)
    taken = np.where((places >= 0)[:, None, None] & (np.arange(k) < inside), x[places], 0)
    each = taken.astype(np.float64).reshape(-1, count, m, k) @ w
    np.testing.assert_allclose(out[:rows], each.sum(1)[:rows], rtol=0, atol=1e-2 * k**0.5)
    assert (out[rows:] == 7).all()


def buffers(kernel: Any) -> list[int]:
    """How many each load of a kernel has."""
    found = re.findall(r"!ttg.mutable_memdesc<\[(\d+), \d+, \d+\]", kernel.asm["ttgir"])
    return [int(number) for number in dict.fromkeys(found)]


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize(("count", "stages", "warps"), [(2, 3, 1), (3, 3, 4), (2, 4, 2)])
def test_as_many_buffers_as_iterations(count: int, stages: int, warps: int) -> None:
    x, out = np.zeros((4, 64, 64), np.float16), np.zeros((4, 64, 64), np.float32)
    found = compiled(
        products_of_rows, x, x, np.zeros(8, np.int32), out, 1, 64, INDEXED=False, CARRIED=False,
        COUNT=count, M=64, K=64, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    assert buffers(found) == [count]
    text = found.asm["ttgir"]
    _, inner = text[: text.rindex("scf.yield")].rsplit("scf.for", 1)
    assert "ttg.async_wait" in inner
    assert "ttg.async_copy_global_to_local" not in inner
    assert "begin copies" not in found.asm["schedule"]
