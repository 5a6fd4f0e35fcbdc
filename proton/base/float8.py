"""The 8-bit floats: what their codes stand for.

A code is a sign, an exponent and a mantissa, as in other floats. Formats differ in the bias of the
exponent, and in which codes are no numbers:

    float8e5     1-5-2, bias 15   infinity and NaN as in IEEE 754
    float8e4nv   1-4-3, bias 7    the top code is NaN
    float8e5b16  1-5-2, bias 16   0x80, which would be -0, is NaN
    float8e4b8   1-4-3, bias 8    the same
    float8e4b15  1-4-3, bias 15   all are numbers; conversions give up to 1.75
"""

import math
import struct
from dataclasses import dataclass

BIAS_32, MANTISSA_32 = 127, 23  # of fp32


@dataclass(frozen=True)
class Float8:
    """A format, by its name in the language and that of its type in MLIR."""

    name: str
    mlir: str
    mantissa: int  # bits
    bias: int
    largest_bits: int  # of what conversions saturate at
    infinity_bits: int | None = None
    nan_bits: int | None = None  # the positive one, if there are two

    @property
    def least(self) -> int:
        """The exponent of the least normal number."""
        return 1 - self.bias

    @property
    def largest(self) -> float:
        """The number that conversions saturate at."""
        fraction = self.largest_bits & ((1 << self.mantissa) - 1)
        exponent = (self.largest_bits >> self.mantissa) - self.bias
        return float((1 + fraction / (1 << self.mantissa)) * 2.0**exponent)

    @property
    def has_negative_zero(self) -> bool:
        """True if 0x80 is -0; otherwise it is the NaN, and the only one."""
        return self.nan_bits != 0x80

    @property
    def has_top_nan(self) -> bool:
        """True if codes above the largest number's are infinity and NaN."""
        return self.nan_bits is not None and self.has_negative_zero

    @property
    def not_a_number(self) -> int:
        """What NaN becomes: the largest number where there is none."""
        return self.largest_bits if self.nan_bits is None else self.nan_bits

    def decode(self, code: int) -> float:
        """The number that a code stands for."""
        magnitude = code & 0x7F
        if magnitude == self.infinity_bits:
            return -math.inf if code & 0x80 else math.inf
        if (code == 0x80 and not self.has_negative_zero) or (
            self.has_top_nan and magnitude > self.largest_bits
        ):
            return math.nan
        exponent, fraction = divmod(magnitude, 1 << self.mantissa)
        if exponent:
            fraction += 1 << self.mantissa
        scale = max(exponent, 1) - self.bias - self.mantissa
        return math.copysign(math.ldexp(fraction, scale), -1.0 if code & 0x80 else 1.0)

    def encode(self, number: float) -> int:
        """The code of a number that the format has, or saturates."""
        if number != number:
            return self.not_a_number
        sign = 0x80 if struct.pack(">d", number)[0] & 0x80 else 0
        magnitude = abs(number)
        if magnitude >= self.largest:
            return sign | self.largest_bits
        if magnitude < 2.0**self.least:
            code = round(magnitude / 2.0 ** (self.least - self.mantissa))
            return code | (sign if code or self.has_negative_zero else 0)
        rebias = (BIAS_32 - self.bias) << self.mantissa
        return sign | ((bits_of(magnitude) >> (MANTISSA_32 - self.mantissa)) - rebias)


FORMATS = (
    Float8("float8e5", "f8E5M2", 2, 15, 0x7B, infinity_bits=0x7C, nan_bits=0x7F),
    Float8("float8e4nv", "f8E4M3FN", 3, 7, 0x7E, nan_bits=0x7F),
    Float8("float8e5b16", "f8E5M2FNUZ", 2, 16, 0x7F, nan_bits=0x80),
    Float8("float8e4b8", "f8E4M3FNUZ", 3, 8, 0x7F, nan_bits=0x80),
    # MLIR has none of bias 15: nothing of upstream may look into such a value.
    Float8("float8e4b15", "f8E4M3B11FNUZ", 3, 15, 0x7E),
)
BY_NAME = {format_.name: format_ for format_ in FORMATS}
BY_TYPE = {format_.mlir: format_ for format_ in FORMATS}


def bits_of(number: float) -> int:
    """The bits of an fp32."""
    return int(struct.unpack(">I", struct.pack(">f", number))[0])
