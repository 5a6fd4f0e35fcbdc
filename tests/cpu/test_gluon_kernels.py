"""Kernels in Gluon on a CPU, where nothing goes on by itself."""

import numpy as np
import pytest

import proton
from tests.gluon_kernels import CHECKS

PARTITIONS = ("a_product_by_roles", "three_roles_in_a_row")


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in PARTITIONS])
def test_on_a_cpu(name: str, rng: np.random.Generator) -> None:
    CHECKS[name](rng)


@pytest.mark.parametrize("name", PARTITIONS)
def test_partitions_need_a_gpu(name: str, rng: np.random.Generator) -> None:
    with pytest.raises(proton.CompilationError, match="warp_specialize is not supported on a CPU"):
        CHECKS[name](rng)
