"""What the reference of tests/cpu says of instructions of PTX is what a GPU does.

What a GPU approximates is left out: how near it is differs by instruction. The machine of
tests/compile/ptx has not all of them.
"""

import random

import pytest

from proton.conversion.triton_arith_to_linalg.assembly.forms import forms
from tests.cpu.test_assembly_instructions import GROUPS, Sample, is_chosen, run
from tests.gpu.conftest import EMULATED

STAGED = True
APPROXIMATE = {"approx", "full"}
pytestmark = pytest.mark.skipif(bool(EMULATED), reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_instructions_are_what_the_reference_says(group: int, session_seed: int) -> None:
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    rng = random.Random(session_seed + group)
    names = [name for name in GROUPS[group] if not APPROXIMATE & set(name.split("."))]
    wrong = run([Sample(forms()[name], rng) for name in names if is_chosen(name, rng)])
    assert not wrong, "\n".join(wrong)
