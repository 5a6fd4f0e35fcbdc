"""Products of matrices by descriptors, with an epilogue, and in groups, against numpy."""

from typing import Any

import numpy as np
import pytest

import proton
from kernels import grouped_gemm as grouped
from kernels import matmul_fused as fused
from kernels import matmul_persistent as persistent
from kernels.grouped_gemm import grouped_gemm
from kernels.matmul_fused import matmul_fused
from kernels.matmul_persistent import matmul_persistent
from proton.base.errors import LaunchError
from tests.pairs import chosen, covering

BOUNDS = {"float16": 2.0**-10, "float32": 2.0**-20}  # of a result's rounding, and of sums
SMALL = {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16}


def matrix(rng: np.random.Generator, rows: int, columns: int, dtype: str) -> np.ndarray:
    """A matrix whose rows lie multiples of 16 bytes apart, with NaN in between."""
    lane = 16 // np.dtype(dtype).itemsize
    whole = np.full((rows, proton.cdiv(columns, lane) * lane + lane), np.nan, dtype)
    whole[:, :columns] = rng.standard_normal((rows, columns))
    return whole[:, :columns]


def assert_close(got: np.ndarray, want: np.ndarray, size: np.ndarray, dtype: str) -> None:
    """Within the bounds of the dtype; `size`: of what was added up."""
    assert got.dtype == np.dtype(dtype)
    assert (np.abs(got - want) <= BOUNDS[dtype] * (np.abs(want) + size)).all()


def wide(*arrays: np.ndarray) -> list[np.ndarray]:
    return [x.astype(np.float64) for x in arrays]


HALF, WIDENED, SINGLE = ("float16",) * 2, ("float16", "float32"), ("float32",) * 2


@pytest.mark.parametrize(
    "dtypes, transposed, host",
    covering(
        {"dtypes": [HALF, WIDENED, SINGLE], "transposed": [False, True], "host": [False, True]},
        "dtypes transposed",
        "dtypes host",
        "transposed host",
    ),
    ids=str,
)
def test_matmul_persistent(
    rng: np.random.Generator, dtypes: tuple[str, str], transposed: bool, host: bool
) -> None:
    dtype, out_dtype = dtypes
    for m, n, k in [(1, 1, 1), (70, 65, 50), (129, 33, 7), (64, 64, 64)]:
        a = matrix(rng, m, k, dtype)
        b = matrix(rng, n, k, dtype).T if transposed else matrix(rng, k, n, dtype)
        around = matrix(rng, m, n, out_dtype)
        around[:] = np.nan
        want, size = persistent.reference(*wide(a, b)), np.matmul(*wide(np.abs(a), np.abs(b)))
        for programs in (1, 3, 1000):
            got = matmul_persistent(a, b, out=around, host=host, programs=programs, GROUP_M=2,
                                    **SMALL)  # fmt: skip
            assert got is around
            assert_close(got, want, size, out_dtype)
        assert np.isnan(around.base[:, n:]).all()
    if not transposed:
        assert matmul_persistent(a, b, host=host).dtype == dtype


def test_matmul_persistent_of_int8(rng: np.random.Generator) -> None:
    """Sums that 24 bits do not hold."""
    a, b = (rng.integers(-128, -100, shape, np.int8) for shape in ((33, 2048), (2048, 48)))
    out = np.zeros((33, 48), np.int32)
    matmul_persistent(a, b, out, **SMALL)
    assert np.array_equal(out, a.astype(np.int64) @ b)


def test_what_a_descriptor_of_a_matrix_cannot_be(rng: np.random.Generator) -> None:
    a = rng.standard_normal((8, 9), dtype=np.float32)
    for host in (True, False):
        with pytest.raises(LaunchError, match="multiples of 16 bytes, got 9 x 4 bytes"):
            matmul_persistent(a, np.ascontiguousarray(a.T), host=host)


def test_sizes_that_do_not_fit() -> None:
    a, b = np.ones((8, 8), np.float32), np.ones((16, 8), np.float32)
    for launch in (matmul_persistent, matmul_fused, lambda a, b: grouped_gemm([a], [b])):
        with pytest.raises(ValueError, match="a @ b: a has 8 columns, and b has 16 rows"):
            launch(a, b)


@pytest.mark.parametrize(
    "activation, dtype",
    chosen(
        {"activation": ["none", "relu", "gelu", "silu"], "dtype": ["float16", "float32"]}, least=1
    ),
)
def test_matmul_fused(rng: np.random.Generator, dtype: str, activation: str) -> None:
    """Sizes of 0 and 1 are constants, each a kernel of its own, in which activations are alike, as
    they are in blocks of the size that is chosen."""
    constants = [(0, 5, 3), (1, 1, 1), (5, 6, 0)] if activation == "gelu" else []
    for m, n, k in [*constants, (70, 65, 50), (129, 33, 7)]:
        a = rng.standard_normal((m, k)).astype(dtype)
        b = rng.standard_normal((n, k)).astype(dtype).T
        bias = (10 * rng.standard_normal(n)).astype(dtype)  # beyond where activations are flat
        for added in (bias, None):
            want = fused.reference(*wide(a, b), added, activation)
            out = np.full((n, m), np.nan, dtype).T
            assert matmul_fused(a, b, added, activation, out, GROUP_M=2, **SMALL) is out
            assert_close(out, want, np.matmul(*wide(np.abs(a), np.abs(b))) + 10, dtype)
    if activation in ("none", "gelu"):
        assert matmul_fused(a, b, bias, activation).dtype == dtype


def test_an_unknown_activation() -> None:
    x = np.ones((4, 4), np.float32)
    with pytest.raises(proton.CompilationError, match="ACTIVATION is none, relu, gelu or silu"):
        matmul_fused(x, x, activation="tanh")


GROUPS = {
    "ugly": [(1, 1, 1), (70, 65, 50), (129, 33, 7), (0, 5, 3), (3, 4, 0), (16, 200, 40)],
    "aligned": [(32, 48, 16), (65, 16, 64)],
    "one": [(40, 30, 20)],
}


@pytest.mark.parametrize(
    "name, dtype, descriptors",
    covering(
        {"name": GROUPS, "dtype": ["float16", "float32"], "descriptors": [False, True]},
        "name dtype",
        "name descriptors",
        "dtype descriptors",
    ),
)
def test_grouped_gemm(rng: np.random.Generator, name: str, dtype: str, descriptors: bool) -> None:
    sizes, options = GROUPS[name], {**SMALL, "descriptors": descriptors}
    a = [rng.standard_normal((m, k)).astype(dtype) for m, n, k in sizes]
    b = [rng.standard_normal((k, n)).astype(dtype) for m, n, k in sizes]
    want = grouped.reference(wide(*a), wide(*b))
    bounds = grouped.reference(wide(*map(np.abs, a)), wide(*map(np.abs, b)))
    for programs in (1, 5, 1000):
        out = [np.full((m, n), np.nan, dtype) for m, n, k in sizes]
        assert grouped_gemm(a, b, out, programs=programs, **options) is out
        for got, expected, size in zip(out, want, bounds, strict=True):
            assert_close(got, expected, size, dtype)
    views = [x[:, ::1][: x.shape[0] // 2] for x in a]
    found = grouped_gemm(views, b, descriptors=descriptors)
    for got, x, y in zip(found, views, b, strict=True):
        assert_close(got, np.matmul(*wide(x, y)), np.matmul(*wide(np.abs(x), np.abs(y))), dtype)


def test_what_a_group_cannot_be(rng: np.random.Generator) -> None:
    x: Any = rng.standard_normal((4, 4)).astype(np.float32)
    assert grouped_gemm([], []) == []
    with pytest.raises(ValueError, match=r"a and b must be of one dtype, got \['float16', 'float3"):
        grouped_gemm([x, x], [x, x.astype(np.float16)])
    with pytest.raises(ValueError, match="rows must be contiguous, got strides 1 and 4"):
        grouped_gemm([x], [x.T])
    with pytest.raises(ValueError, match="zip"):
        grouped_gemm([x, x], [x])
