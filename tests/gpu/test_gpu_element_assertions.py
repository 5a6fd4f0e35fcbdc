"""tests/cpu/test_element_assertions.py on the GPU. A failed assertion ends a CUDA context for good,
so those are asked for in a process of their own."""

import numpy as np
import pytest

from tests.cpu.test_element_assertions import KERNELS, N, _led, leads
from tests.gpu.test_gpu_launch import run

STAGED = True


@pytest.mark.parametrize("name", KERNELS)
def test_assertions_of_elements_that_hold(rng: np.random.Generator, name: str) -> None:
    kernel, of = KERNELS[name]
    x = rng.integers(14, 100, (N, 4), dtype=np.int32)
    out = np.zeros(of(x).shape, np.int32)
    for debug in (True, False):
        out[:] = 0
        kernel[(1,)](x, out, N, debug=debug)
        np.testing.assert_array_equal(out, of(x))


def test_several_blocks_with_assertions_that_hold(rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 50, N * 4, dtype=np.int32), np.zeros(2, np.int32)
    leads[(1,)](x, out, N, debug=True)
    np.testing.assert_array_equal(out, _led(x))


@pytest.mark.parametrize("name", KERNELS)
def test_an_assertion_of_elements_that_fails(name: str) -> None:
    done = run(
        f"""
    import torch
    from tests.cpu.test_element_assertions import KERNELS, N

    kernel, x = KERNELS[{name!r}][0], torch.full((N, 4), 50, device="cuda", dtype=torch.int32)
    out = torch.zeros(N * 4, device="cuda", dtype=torch.int32)
    kernel[(1,)](x, out, N, debug=True)
    torch.cuda.synchronize()
    print("first is fine", flush=True)
    x[N // 2] = 250
    kernel[(1,)](x, out, N)
    torch.cuda.synchronize()
    print("without debug mode, too", flush=True)
    kernel[(1,)](x, out, N, debug=True)
    try:
        torch.cuda.synchronize()
    except Exception:
        print("raised", flush=True)
    """
    )
    assert done.stdout.splitlines() == ["first is fine", "without debug mode, too", "raised"]
    assert "too large" in done.stderr
