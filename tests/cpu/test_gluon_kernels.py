"""Kernels in Gluon on a CPU, where nothing goes on by itself."""

import numpy as np
import pytest

import proton
from tests.gluon_kernels import CHECKS

GPU_ONLY = {
    "a_product_by_roles": "warp_specialize is not supported on a CPU",
    "three_roles_in_a_row": "warp_specialize is not supported on a CPU",
    "assembly_of_threads": "inline_asm is not supported on a CPU",
}


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in GPU_ONLY])
def test_on_a_cpu(name: str, rng: np.random.Generator) -> None:
    CHECKS[name](rng)


@pytest.mark.parametrize("name", GPU_ONLY)
def test_what_needs_a_gpu(name: str, rng: np.random.Generator) -> None:
    with pytest.raises(proton.CompilationError, match=GPU_ONLY[name]):
        CHECKS[name](rng)
