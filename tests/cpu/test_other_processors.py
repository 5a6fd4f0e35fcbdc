"""Code for a processor with AVX2 and nothing newer, which this one runs as well."""

import subprocess
import sys
from pathlib import Path

import pytest

from proton.backends.cpu import llvm

ROOT = Path(__file__).parent.parent.parent
NEWER = ("avx512", "avxvnni", "avxneconvert", "avxifma", "amx", "avx10")
SELECTED = {
    "test_dot.py": "bfloat16 or float16",
    "test_reductions.py": "bfloat16 or float32",
    "test_atomics.py": "bfloat16 or float16",
    "test_kernels.py": "not scripts and not traces",  # other processes; no code of the processor
}
# Interpreted kernels are no code of the processor, either.
SELECT = " or ".join(f"({file} and ({words}))" for file, words in SELECTED.items())
SELECT = f"not interpreted and ({SELECT})"

SCRIPT = """
import sys
import pytest
from proton.backends.cpu import llvm

features = [
    "-" + f[1:] if f[1:].startswith({newer!r}) else f for f in llvm.host_features().split(",")
]
llvm.host_cpu = lambda: "haswell"
llvm.host_features = lambda: ",".join(features)
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-rpf", *{files!r}, "-k", {select!r}]))
"""


@pytest.mark.skipif(
    "+avx2" not in llvm.host_features().split(","), reason="this processor lacks AVX2"
)
def test_the_suite_passes_with_avx2_alone() -> None:
    files = [str(Path(__file__).parent / file) for file in SELECTED]
    script = SCRIPT.format(newer=NEWER, files=files, select=SELECT)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-3000:]
    for file in SELECTED:
        assert f"PASSED tests/cpu/{file}::" in done.stdout, f"nothing was selected of {file}"
