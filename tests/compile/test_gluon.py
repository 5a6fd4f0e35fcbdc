"""Kernels in Gluon on the machine for PTX: what they compute, and that no thread races."""

import numpy as np
import pytest

from tests.compile.ptx.emulation import Emulation
from tests.gluon_kernels import CHECKS


@pytest.mark.parametrize("name", CHECKS)
def test_code_for_a_gpu(name: str, rng: np.random.Generator) -> None:
    with Emulation(4, rng).installed():
        CHECKS[name](rng)
