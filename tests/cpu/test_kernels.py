"""The kernels that Proton ships, against numpy, on sizes that fit no block."""

import math
from pathlib import Path

import numpy as np
import pytest

import proton
from kernels.cases import CASES as FIRST_CASES
from kernels.cases import (
    DROPOUT,
    HISTOGRAM,
    LAYER_NORM,
    LAYER_NORM_BACKWARD,
    MATMUL,
    MATRIX_SUM_COLUMNS,
    MATRIX_SUM_ROWS,
    MORE_CASES,
    SOFTMAX,
    TRANSPOSE,
    VECTOR_ADD,
    VECTOR_SUM,
)
from kernels.dropout import dropout
from kernels.dropout import reference as dropout_reference
from kernels.harness import Case, error
from kernels.histogram import histogram
from kernels.layer_norm import reference as layer_norm_reference
from kernels.layer_norm_backward import layer_norm_backward
from kernels.matmul import matmul
from kernels.matmul_persistent import matmul_persistent
from kernels.softmax import reference, softmax
from kernels.transpose import transpose
from kernels.vector_add import vector_add
from tests import draws, processes
from tests.perfetto_equality import assert_trace_equals_tables
from tests.tables import check_rows

CASES = FIRST_CASES + MORE_CASES
ROOT = Path(__file__).parents[2]
SIZES = {
    VECTOR_ADD: [(0,), (1,), (777,), (16384,), (40_001,)],
    SOFTMAX: [(0, 5), (1, 1), (3, 17), (67, 129), (130, 1000)],
    LAYER_NORM: [(0, 5), (1, 1), (3, 17), (67, 129), (130, 1000)],
    LAYER_NORM_BACKWARD: [(0, 5), (1, 1), (3, 17), (67, 129), (130, 1000)],
    DROPOUT: [(0,), (1,), (777,), (4096,), (40_001,)],
    VECTOR_SUM: [(0,), (1,), (777,), (4096,), (300_001,)],
    MATRIX_SUM_ROWS: [(0, 5), (1, 1), (3, 17), (67, 129), (130, 1000)],
    MATRIX_SUM_COLUMNS: [(5, 0), (1, 1), (3, 17), (67, 129), (130, 1030)],
    TRANSPOSE: [(0, 5), (1, 1), (3, 17), (67, 129), (130, 1000)],
    HISTOGRAM: [(0,), (1,), (777,), (2048,), (300_001,)],
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
        array.fill(np.nan if array.dtype.kind == "f" else -1)
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_traces_of_kernels_equal_their_tables(
    rng: np.random.Generator, tmp_path: Path, case: Case
) -> None:
    with proton.profile("test") as run:
        case.launch(*case.inputs(rng, *SIZES[case][3]))
    assert_trace_equals_tables(run, tmp_path / "run.pftrace")


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


def test_products_of_fp64_are_added_up_in_fp64(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((70, 90)), rng.standard_normal((90, 50))
    for product in (matmul, matmul_persistent):
        got = product(a, b, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
        assert got.dtype == np.float64
        assert (np.abs(got - a @ b) <= 2.0**-48 * (np.abs(a) @ np.abs(b))).all()


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


def test_the_gradients_are_those_of_differences(rng: np.random.Generator) -> None:
    """Of f(x, weight, bias) = sum(dy * layer_norm(x, weight, bias)), in fp64 by numpy."""
    dy, x, weight = (rng.standard_normal(s) for s in ((5, 33), (5, 33), (33,)))
    bias, step = rng.standard_normal(33), 1e-5

    def f(*inputs: np.ndarray) -> float:
        return float((dy * layer_norm_reference(*inputs)[0]).sum())

    _, mean, rstd = layer_norm_reference(x, weight, bias)
    given = [a.astype(np.float32) for a in (dy, x, weight, mean, rstd)]
    for place, got in enumerate(layer_norm_backward(*given)):
        for index in [tuple(rng.integers(0, got.shape)) for _ in range(20)]:
            inputs = [x.copy(), weight.copy(), bias.copy()]
            inputs[place][index] += step
            above = f(*inputs)
            inputs[place][index] -= 2 * step
            slope = (above - f(*inputs)) / (2 * step)
            assert abs(got[index] - slope) < 1e-3 * max(1.0, abs(slope))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("seed", [0, -1, 1 << 40])
def test_dropout_drops_the_same_elements_in_every_block_size(
    rng: np.random.Generator, p: float, seed: int
) -> None:
    (x,) = DROPOUT.inputs(rng, 50_001)
    x[x == 0] = 1
    want = dropout_reference(x, p=p, seed=seed)
    for block in (4, 256, 4096):
        got = dropout(x, p=p, seed=seed, block=block)
        np.testing.assert_array_equal(got, want)
    # Six standard deviations: one run in 500 million fails by chance.
    dropped = (want == 0).mean()
    assert abs(dropped - p) <= 6 * np.sqrt(p * (1 - p) / x.size)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int64"])
def test_transpose_takes_any_dtype_and_row_stride(rng: np.random.Generator, dtype: str) -> None:
    wide = (rng.standard_normal((50, 70)) * 50).astype(dtype)
    out = np.zeros((60, 64), dtype)
    np.testing.assert_array_equal(transpose(wide[:, 3:63], out[:, :50]), wide[:, 3:63].T)
    assert not out[:, 50:].any()


@pytest.mark.parametrize("bins", [1, 10, 300])
def test_a_histogram_of_any_number_of_bins(rng: np.random.Generator, bins: int) -> None:
    x = rng.integers(-bins, 2 * bins, 10_007, dtype=np.int32)
    want = np.bincount(x[(x >= 0) & (x < bins)], minlength=bins)
    np.testing.assert_array_equal(histogram(x, bins=bins), want)


def test_launch_options_are_passed_on(rng: np.random.Generator) -> None:
    (x,) = DROPOUT.inputs(rng, 100)
    np.testing.assert_array_equal(dropout(x, num_warps=8), dropout(x))
    with pytest.raises(proton.LaunchError, match="nonsense"):
        dropout(x, nonsense=1)


SHARED = {"__init__", "arrays", "cases", "harness"}
SCRIPTS = sorted({p.stem for p in (ROOT / "kernels").glob("*.py")} - SHARED)


# Of the sizes of a case the first two and the last: those between are other tests' too, and take
# most of the time, which is that of compiling attention.
RUN_ALL = """
import dataclasses, pathlib, runpy, sys, traceback
from kernels import harness
folder, seed, *names = sys.argv[1:]
check = harness.check
def check_few(case, *given):
    few = dict.fromkeys((*case.ugly[:2], case.ugly[-1]))
    return check(dataclasses.replace(case, ugly=tuple(few)), *given)
harness.check = check_few
for name in names:
    sys.argv = [name, "--profile", name + ".pftrace", "--small", "--seed", seed]
    try:
        runpy.run_path(f"{folder}/{name}.py", run_name="__main__")
    except BaseException:
        traceback.print_exc()
    else:
        pathlib.Path(name + ".ended").touch()
    sys.stdout.flush()
"""


def test_the_scripts_check_and_profile(tmp_path: Path) -> None:
    """All in one process, which starts once; one that fails leaves the others alone."""
    given = [ROOT / "kernels", str(draws.SEED), *SCRIPTS]
    done = processes.python("-c", RUN_ALL, *given, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr

    def check(name: str) -> None:
        assert (tmp_path / f"{name}.ended").exists()
        assert (tmp_path / f"{name}.pftrace").stat().st_size > 0

    print(done.stdout, done.stderr)
    assert "FAIL" not in done.stdout
    check_rows(check, [(name,) for name in SCRIPTS])
