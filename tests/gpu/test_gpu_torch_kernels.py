"""The kernels that Proton ships on torch tensors of a GPU, and their scripts there."""

from pathlib import Path

import numpy as np
import pytest

from kernels.harness import Case
from tests.cpu.test_torch_kernels import check, check_options, check_strides, places, run

ROOT = Path(__file__).parents[2]
SIZES = {1: [(0,), (1,), (777,), (10_000_019,)], 2: [(1, 1), (67, 129), (4099, 1025), (37, 5003)]}
SIZES[3] = [(1, 1, 1), (129, 131, 65), (1025, 1023, 777)]
SMALL = {1: [(1 << 16,)], 2: [(256, 512)], 3: [(128, 128, 128)]}


@pytest.mark.parametrize("case, sizes", places(SIZES), ids=lambda p: getattr(p, "name", str(p)))
def test_tensors_of_a_gpu(rng: np.random.Generator, case: Case, sizes: tuple[int, ...]) -> None:
    check(case, case.inputs(rng, *sizes), "cuda", case.tolerance + case.approximation)


def test_strides_of_tensors(rng: np.random.Generator) -> None:
    check_strides(rng, "cuda")


def test_options_of_launches_on_tensors(rng: np.random.Generator) -> None:
    check_options(rng, "cuda")


@pytest.mark.parametrize("case, sizes", places(SMALL), ids=lambda p: getattr(p, "name", str(p)))
def test_every_kernel_has_its_benchmark(
    rng: np.random.Generator,
    capsys: pytest.CaptureFixture[str],
    case: Case,
    sizes: tuple[int, ...],
) -> None:
    pytest.importorskip("torch")
    from kernels.harness import compare_on_gpu

    compare_on_gpu(case, rng, [sizes])
    assert " x ".join(map(str, sizes)) in capsys.readouterr().out


@pytest.mark.parametrize("name", ["vector_add", "layer_norm_backward"])
def test_a_script_on_the_gpu(name: str) -> None:
    pytest.importorskip("torch")
    done = run(f"{name}.py", "--device", "cuda", "--benchmark")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert "torch, ms" in done.stdout
