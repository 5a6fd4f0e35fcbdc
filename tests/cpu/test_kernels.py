"""The kernels that Proton ships, against numpy, on sizes that fit no block."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import proton
from proton.kernels import CASES, LAYER_NORM, MATMUL, SOFTMAX, VECTOR_ADD, Case
from proton.kernels.cases import error
from proton.kernels.matmul import matmul
from proton.kernels.softmax import reference, softmax
from proton.kernels.vector_add import vector_add

ROOT = Path(__file__).parents[2]
SIZES = {
    VECTOR_ADD: [(0,), (1,), (777,), (16384,), (40_001,)],
    SOFTMAX: [(0, 5), (1, 1), (3, 17), (67, 129), (130, 1000)],
    LAYER_NORM: [(0, 5), (1, 1), (3, 17), (67, 129), (130, 1000)],
    MATMUL: [(1, 1, 1), (17, 5, 3), (128, 128, 64), (129, 131, 65), (257, 40, 200), (5, 6, 0)],
}
PLACES = [(case, sizes) for case in CASES for sizes in SIZES[case]]


@pytest.mark.parametrize("case, sizes", PLACES, ids=lambda p: getattr(p, "name", str(p)))
def test_kernels_agree_with_numpy(
    rng: np.random.Generator, case: Case, sizes: tuple[int, ...]
) -> None:
    assert case.check(case.inputs(rng, *sizes)) <= case.tolerance


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_element_of_the_outputs_is_written(rng: np.random.Generator, case: Case) -> None:
    inputs = case.inputs(rng, *SIZES[case][3])
    out = case.launch(*inputs)
    for array in out if isinstance(out, tuple) else (out,):
        array.fill(np.nan)
    assert case.check(inputs, out) <= case.tolerance


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_profiling_changes_no_bit(rng: np.random.Generator, case: Case) -> None:
    inputs = case.inputs(rng, *SIZES[case][3])
    plain = case.launch(*inputs)
    with proton.profile("test") as run:
        profiled = case.launch(*inputs)
    pairs = zip(plain, profiled, strict=True) if isinstance(plain, tuple) else [(plain, profiled)]
    assert all(a.tobytes() == b.tobytes() for a, b in pairs)
    assert run.totals.slices > 0
    assert run.totals.lost == 0


def test_rows_with_nan_and_infinities_have_the_softmax_of_numpy(rng: np.random.Generator) -> None:
    (x,) = SOFTMAX.inputs(rng, 8, 100)
    x[1, 3], x[2, 99], x[3, 0], x[5, 7] = np.nan, np.inf, -np.inf, 1e-40
    x[4], x[6], x[7] = -np.inf, x[6] * 1e3, 3e38
    with np.errstate(invalid="ignore"):
        want = reference(x)
    assert error(softmax(x), want) <= SOFTMAX.tolerance


def test_addition_keeps_nan_infinities_and_denormals() -> None:
    x = np.array([np.nan, np.inf, np.inf, -np.inf, 1e-45, -0.0, 3e38], np.float32)
    y = np.array([1.0, 1.0, -np.inf, -np.inf, 1e-45, -0.0, 3e38], np.float32)
    with np.errstate(all="ignore"):
        want = x + y
    np.testing.assert_array_equal(vector_add(x, y), want)


def test_addition_in_place(rng: np.random.Generator) -> None:
    x, y = VECTOR_ADD.inputs(rng, 40_001)
    want = x + y
    assert vector_add(x, y, out=x) is x
    assert (x == want).all()


def test_matmul_takes_any_strides(rng: np.random.Generator) -> None:
    a, b = MATMUL.inputs(rng, 70, 65, 130)
    out = np.full((65, 70), np.nan, np.float32)
    matmul(b.T, a.T, out=out)
    assert error(out, b.T @ a.T) <= MATMUL.tolerance
    wide = np.full((140, 260), np.nan, np.float32)
    wide[::2, ::2] = a.repeat(1, axis=0)[:70, :130]
    assert error(matmul(wide[::2, ::2], b), a @ b) <= MATMUL.tolerance


def test_the_error_sees_a_missing_nan() -> None:
    numbers, with_nan = np.array([1.0, 2.0]), np.array([1.0, np.nan])
    assert error(numbers, numbers) == 0
    assert error(with_nan, with_nan) == 0
    assert error(numbers, with_nan) == math.inf
    assert error(with_nan, numbers) == math.inf
    assert error(numbers * 1.5, numbers) == 0.5


@pytest.mark.parametrize("name", ["vector_add", "softmax", "layer_norm", "matmul"])
def test_the_scripts_check_and_profile(tmp_path: Path, name: str) -> None:
    trace = tmp_path / "trace.pftrace"
    done = subprocess.run(
        [sys.executable, ROOT / "kernels" / f"{name}.py", "--profile", trace],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert trace.stat().st_size > 0
