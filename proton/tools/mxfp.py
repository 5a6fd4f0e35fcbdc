"""Numbers in the MX formats (OCP Microscaling Formats 1.0) as tensors of torch: FP4 (E2M1) and the
powers of two (E8M0) that scale blocks of 32.

They make the operands of `tl.dot_scaled` on the host, and what to compare with. The names are those
of `triton.tools.mxfp`. Torch is imported when it is asked for.
"""

import importlib
import itertools
import math
import types
from typing import Any

Tensor = Any  # of torch, on any of its devices

_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of the codes 0 to 7 of E2M1
_SIGN = 8
_BIAS = 127  # of E8M0, which has no sign
_NAN = 255
_LARGEST = 254


def _torch() -> types.ModuleType:
    return importlib.import_module("torch")


def _shape_of(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return size if isinstance(size, tuple) else (size,)


class NoSuchDimension(ValueError, AssertionError):
    """A tensor does not have the dimension that it is to be packed along."""


class _Codes:
    """Codes of a format, in `data`: a tensor of uint8, one for each number.

    They are those next to the floats of `data`, or, of a `size`, what `random` draws. Raises
    TypeError for data that is no tensor, ValueError where both are missing.
    """

    data: Tensor

    def __init__(
        self,
        data: Tensor | None = None,
        size: int | tuple[int, ...] | None = None,
        device: object = None,
    ) -> None:
        if data is not None:
            if not isinstance(data, _torch().Tensor):
                raise TypeError(f"data must be a tensor of torch, got a {type(data).__name__}")
            self.device, self.size = data.device, tuple(data.shape)
            self.data = self._from_float(data)
        elif size is not None:
            self.device, self.size = device, _shape_of(size)
        else:
            raise ValueError(f"{type(self).__name__} needs data or size")

    def _from_float(self, values: Tensor) -> Tensor:
        raise NotImplementedError

    def _drawn(self, low: int, high: int) -> Tensor:
        """Codes from `low` to `high`."""
        torch = _torch()
        return torch.randint(low, high + 1, self.size, dtype=torch.uint8, device=self.device)


class MXFP4Tensor(_Codes):
    """Numbers in FP4: sign, two bits of exponent, one of mantissa, in the lower half of each byte.

    Floats round to nearest, ties to even, and saturate at 6, infinities and NaN included.
    """

    def _from_float(self, values: Tensor) -> Tensor:
        torch = _torch()
        magnitude = values.to(torch.float64).abs().nan_to_num(nan=math.inf)
        codes = torch.signbit(values).to(torch.uint8) * _SIGN
        for code, (low, high) in enumerate(itertools.pairwise(_MAGNITUDES)):
            middle = (low + high) / 2  # exact, as is what is compared with it
            codes += magnitude >= middle if code % 2 else magnitude > middle
        return codes

    def random(self) -> "MXFP4Tensor":
        """Draws all 16 codes alike; returns itself."""
        self.data = self._drawn(0, 2 * _SIGN - 1)
        return self

    def to(self, dtype: object) -> Tensor:
        """The numbers, exactly, in a dtype of floats that torch computes with."""
        values = [sign * magnitude for sign in (1.0, -1.0) for magnitude in _MAGNITUDES]
        return _torch().tensor(values, dtype=dtype, device=self.data.device)[self.data.long()]

    def to_packed_tensor(self, dim: int) -> Tensor:
        """Two neighbours along `dim` in each byte, the first in the lower half; a last one without
        a neighbour has 0 beside it."""
        torch, data = _torch(), self.data
        if not 0 <= dim < data.ndim:
            raise NoSuchDimension(f"dim must be from 0 to {data.ndim - 1}, got {dim}")
        if data.shape[dim] % 2:
            data = torch.cat([data, torch.zeros_like(data.narrow(dim, 0, 1))], dim)
        pairs = data.unflatten(dim, (data.shape[dim] // 2, 2))
        return pairs.select(dim + 1, 0) | pairs.select(dim + 1, 1) << 4

    def unpack_packed_tensor(
        self, packed_tensor: Tensor, dim: int, original_shape: tuple[int, ...]
    ) -> Tensor:
        """The codes of a packed tensor, one in each byte, in the shape that they had."""
        halves = _torch().stack([packed_tensor & 0xF, packed_tensor >> 4], dim + 1)
        return halves.flatten(dim, dim + 1).narrow(dim, 0, original_shape[dim])


class MXScaleTensor(_Codes):
    """Powers of two in E8M0: code 127 is 1, code 255 is NaN.

    Floats are rounded down; what has no logarithm (0, negative numbers, infinities, NaN) is NaN.
    """

    def _from_float(self, values: Tensor) -> Tensor:
        torch = _torch()
        is_power = torch.isfinite(values) & (values > 0)
        # frexp's fraction is from 1/2 up to 1.
        exponent = torch.frexp(values.to(torch.float64)).exponent.to(torch.int32) - 1
        codes = torch.where(is_power, (exponent + _BIAS).clamp(0, _LARGEST), _NAN)
        return codes.to(torch.uint8)

    def random(self, low: float | None = None, high: float | None = None) -> "MXScaleTensor":
        """Draws the powers of two from `low` to `high` alike, by default all; returns itself.

        Raises ValueError where there is none between them."""
        first = 0 if low is None else max(0, math.ceil(math.log2(low)) + _BIAS)
        last = _LARGEST if high is None else min(_LARGEST, math.floor(math.log2(high)) + _BIAS)
        if first > last:
            raise ValueError(f"no power of two of E8M0 lies between {low} and {high}")
        self.data = self._drawn(first, last)
        return self

    def to(self, dtype: object) -> Tensor:
        """The scales as float32, which has all of them."""
        if dtype != _torch().float32:
            raise TypeError(f"scales are given as torch.float32, not {dtype}")
        return fp8e8m0_to_float32(self.data)


def fp8e8m0_to_float32(scale: Tensor) -> Tensor:
    """Powers of two from their codes, which are bytes of any dtype."""
    torch = _torch()
    powers = [2.0 ** (code - _BIAS) for code in range(_NAN)] + [math.nan]
    table = torch.tensor(powers, dtype=torch.float32, device=scale.device)
    return table[scale.view(torch.uint8).long()]
