"""Code for a processor with AVX2 and nothing newer, which this one runs as well."""

import subprocess
import sys
from pathlib import Path

import pytest

from proton.backends.cpu import llvm

ROOT = Path(__file__).parent.parent.parent
NEWER = ("avx512", "avxvnni", "avxneconvert", "avxifma", "amx", "avx10")
# What is selected of a file, by names of tests: where code depends on the processor. That is the
# width of vectors, masks, gathers, conversions of narrow floats, and products; and not profiling,
# launches, random numbers, the interpreter, or numbers of 0 and 1, which are constants.
SELECTED = {
    "test_dot.py": r"matmul\[float16|matmul\[b.*-nn|dtype\[(16|64)-b?float16|halves|accum.*float16",
    "test_reductions.py": r"bfloat16|float32",
    "test_atomics.py": r"\[b?float16",
    "test_kernels.py": r"agree_with_numpy.*-\((?![01],|\d, )|nan_and_inf|nan_inf|fp64|strides?",
}

SCRIPT = """
import re
import sys
import pytest
from proton.backends.cpu import llvm

features = [
    "-" + f[1:] if f[1:].startswith({newer!r}) else f for f in llvm.host_features().split(",")
]
llvm.host_cpu = lambda: "haswell"
llvm.host_features = lambda: ",".join(features)

class Select:
    @staticmethod
    def pytest_collection_modifyitems(items):
        selected = {selected!r}
        items[:] = [item for item in items if re.search(selected[item.path.name], item.name)]

words = ["-q", "-x", "-p", "no:cacheprovider", "-rpf", *{files!r}]
sys.exit(pytest.main(words, plugins=[Select]))
"""


@pytest.mark.skipif(
    "+avx2" not in llvm.host_features().split(","), reason="this processor lacks AVX2"
)
def test_the_suite_passes_with_avx2_alone() -> None:
    files = [str(Path(__file__).parent / file) for file in SELECTED]
    script = SCRIPT.format(newer=NEWER, files=files, selected=SELECTED)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-3000:]
    for file in SELECTED:
        assert f"PASSED tests/cpu/{file}::" in done.stdout, f"nothing was selected of {file}"
