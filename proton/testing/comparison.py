"""Whether two arrays of any libraries hold about the same."""

from collections.abc import Callable
from typing import Any

import numpy as np

from proton.runtime.launch.arguments import is_torch

Tolerance = float | Callable[[Any], float] | None


def assert_close(
    x: object, y: object, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = ""
) -> None:
    """Raises AssertionError unless |x - y| <= atol + rtol * |y| for all elements; NaN equals NaN.

    Arrays are numpy's, torch's on any device, CuPy's, or numbers. `atol` (by default 0.01) and
    `rtol` (by default 0) may be functions of the dtype of `x`.
    """
    absolute = 1e-2 if atol is None else atol(_dtype(x)) if callable(atol) else atol
    relative = 0.0 if rtol is None else rtol(_dtype(x)) if callable(rtol) else rtol
    np.testing.assert_allclose(
        _numbers(x), _numbers(y), atol=absolute, rtol=relative, equal_nan=True, err_msg=err_msg
    )


def _dtype(value: object) -> object:
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def _numbers(value: Any) -> np.ndarray:
    """The elements on the host, in a type that numpy compares."""
    if is_torch(value):
        value = value.detach().cpu()
        if str(value.dtype).startswith(("torch.bfloat16", "torch.float8")):
            value = value.float()
        return np.asarray(value.numpy())
    return np.asarray(value.get() if hasattr(value, "get") else value)
