"""The kernels that Proton ships on torch tensors, and where their scripts find no GPU."""

import inspect
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
from kernels.cases import CASES as FIRST_CASES
from kernels.cases import DROPOUT, MATMUL, MORE_CASES
from kernels.dropout import dropout
from kernels.harness import Arrays, Case, error, outputs
from kernels.matmul import matmul
from kernels.transpose import transpose
from tests.processes import python

CASES = FIRST_CASES + MORE_CASES
ROOT = Path(__file__).parents[2]
SIZES = {1: [(0,), (1,), (777,), (300_001,)], 2: [(1, 1), (67, 129), (5, 1030)]}
SIZES[3] = [(1, 1, 1), (17, 5, 3), (129, 131, 65)]  # m, n, k


def places(sizes: dict[int, list[tuple[int, ...]]]) -> list[tuple[Case, tuple[int, ...]]]:
    """Each case with each of the sizes that it takes so many of."""
    count = {case: len(inspect.signature(case.shapes).parameters) for case in CASES}
    return [(case, chosen) for case in CASES for chosen in sizes[count[case]]]


def check(case: Case, inputs: Arrays, device: str, tolerance: float) -> None:
    """Launches on torch tensors: what is allocated, then the same again, its contents spoilt."""
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(array).to(device) for array in inputs]
    want = outputs(case.reference(*inputs))
    out = None
    for _ in range(2):
        out = case.launch(*tensors, out=out)
        for got, expected in zip(outputs(out), want, strict=True):
            assert got.device == tensors[0].device
            assert error(got.cpu().numpy(), expected) <= tolerance
            got.fill_(float("nan") if got.is_floating_point() else -1)


def check_strides(rng: np.random.Generator, device: str) -> None:
    """Views of tensors are read, and written, where they are."""
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(x).to(device) for x in MATMUL.inputs(rng, 70, 65, 130))
    wide = torch.full((80, 200), float("nan"), device=device)
    want = b.cpu().numpy().T @ a.cpu().numpy().T
    assert error(matmul(b.T, a.T).cpu().numpy(), want) <= MATMUL.tolerance
    assert error(matmul(b.T, a.T, out=wide[:65, 1:71]).cpu().numpy(), want) <= MATMUL.tolerance
    assert int(wide.isnan().sum()) == 80 * 200 - 65 * 70
    assert torch.equal(transpose(a[:, 3:64]), a[:, 3:64].T)
    assert torch.equal(transpose(a[:, 3:64], out=wide[:61, 5:75]), a[:, 3:64].T)
    assert torch.equal(transpose(a.to(torch.float16)), a.to(torch.float16).T)


def check_options(rng: np.random.Generator, device: str) -> None:
    """Options of the caller come before those that suit the device."""
    torch = pytest.importorskip("torch")
    (x,) = (torch.from_numpy(a).to(device) for a in DROPOUT.inputs(rng, 5000))
    assert torch.equal(dropout(x, block=256, num_warps=2), dropout(x))
    with pytest.raises(proton.LaunchError, match="nonsense"):
        dropout(x, nonsense=1)


@pytest.mark.parametrize("case, sizes", places(SIZES), ids=lambda p: getattr(p, "name", str(p)))
def test_tensors_of_the_cpu(rng: np.random.Generator, case: Case, sizes: tuple[int, ...]) -> None:
    check(case, case.inputs(rng, *sizes), "cpu", case.tolerance)


def test_strides_of_tensors(rng: np.random.Generator) -> None:
    check_strides(rng, "cpu")


def test_options_of_launches_on_tensors(rng: np.random.Generator) -> None:
    check_options(rng, "cpu")


def run(script: str, *arguments: Any, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs one of the scripts in kernels/."""
    return python(ROOT / "kernels" / script, *arguments, env={"PYTHONPATH": str(ROOT), **variables})


def test_a_script_says_what_it_lacks_for_a_gpu() -> None:
    done = run("softmax.py", "--device", "cuda", CUDA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stdout) == (2, "")
    assert "softmax.py: error: --device cuda needs " in done.stderr
    assert "torch" in done.stderr


def test_a_script_compares_with_numpy() -> None:
    done = run("matmul.py", "--device", "cpu", "--benchmark", "--seed", "7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("matmul, seed 7\n")
    assert "FAIL" not in done.stdout
    for word in ("1000 x 1000 x 1000", "proton, ms", "numpy, ms"):
        assert word in done.stdout
