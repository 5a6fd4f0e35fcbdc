"""What Triton's `isinstance` asks of values and types: `tl.core.base_value`, `tl.core.base_type`.

Values that are known while compiling, and tuples, are Python's own in a kernel, so neither is a
base in Python's sense: classes are registered, not derived.
"""

from abc import ABC

from proton.language.aggregate import Aggregate
from proton.language.constants import constexpr
from proton.language.descriptor import tensor_descriptor
from proton.language.types import dtype
from proton.language.value import tensor


class base_type(ABC):  # noqa: B024 - nothing derives from it
    """The type of a value in a kernel."""


class base_value(ABC):  # noqa: B024
    """A value in a kernel: a tensor, a tuple, a descriptor, an aggregate, a constexpr."""


base_type.register(dtype)
for _kind in (tensor, constexpr, tuple, tensor_descriptor, Aggregate):
    base_value.register(_kind)
