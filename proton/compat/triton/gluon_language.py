"""`triton.experimental.gluon.language`: names of `triton.language`, and those of Gluon's own."""

from typing import Any, NoReturn

import proton.language
from proton.base.errors import UnsupportedLanguageConstruct

HINT = "write the kernel in triton.language, or run it with Triton"
# What Gluon has of its own that stands in annotations, defaults and modules.
_OWN = (
    "AutoLayout",
    "BlockedLayout",
    "CoalescedLayout",
    "DistributedLinearLayout",
    "DotOperandLayout",
    "NVMMADistributedLayout",
    "NVMMASharedLayout",
    "PaddedSharedLayout",
    "SharedLinearLayout",
    "SliceLayout",
    "SwizzledSharedLayout",
    "allocate_shared_memory",
    "convert_layout",
    "distributed_type",
    "set_auto_layout",
    "shared_memory_descriptor",
    "shared_memory_descriptor_type",
    "to_linear_layout",
    "warp_specialize",
)


class Absent:
    """A name of Gluon: it may annotate, and calling it is an error."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise UnsupportedLanguageConstruct(f"{self!r} is not supported", hint=HINT)

    def __repr__(self) -> str:
        return f"gluon.language.{self.__name__}"


def __getattr__(name: str) -> Any:
    if name in _OWN:
        return Absent(name)
    try:
        return getattr(proton.language, name)
    except AttributeError:
        raise AttributeError(
            f"gluon.language.{name} is not there: kernels in Gluon are not supported", name=name
        ) from None


def __dir__() -> list[str]:
    return sorted({*_OWN, *dir(proton.language)})
