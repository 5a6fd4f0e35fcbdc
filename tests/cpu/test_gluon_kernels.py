"""Kernels in Gluon on a CPU, where nothing goes on by itself."""

import re
from pathlib import Path

import numpy as np
import pytest

import proton
from tests import gluon_kernels, processes
from tests.gluon_kernels import CHECKS

GPU_ONLY = {
    "assembly_of_threads": "inline_asm is not supported on a CPU",
    "assembly_of_elements_and_memory": "inline_asm is not supported on a CPU",
}


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in GPU_ONLY])
def test_on_a_cpu(name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon_kernels, "LAYOUTS_SAY_NOTHING", True)
    CHECKS[name](rng)


@pytest.mark.parametrize("name", GPU_ONLY)
def test_what_needs_a_gpu(name: str, rng: np.random.Generator) -> None:
    with pytest.raises(proton.CompilationError, match=GPU_ONLY[name]):
        CHECKS[name](rng)


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/gluon.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    (tmp_path / "example.py").write_text(f"{code}\nassert (y == 2).all()\n")
    done = processes.python("example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for scope in ("fetch", "scale", "store"):
        assert re.search(rf"scale +{scope} +8 ", done.stdout), done.stdout
