"""Kernels in Gluon on a GPU of 9.0, against numpy."""

import numpy as np
import pytest

from tests.gluon_kernels import CHECKS
from tests.gpu.staging import Staging


@pytest.mark.parametrize("name", CHECKS)
def test_kernels_in_gluon(name: str, rng: np.random.Generator) -> None:
    with Staging(4).installed():
        CHECKS[name](rng)
