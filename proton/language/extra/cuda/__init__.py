"""What NVIDIA's GPUs have; under the name that Triton has for it."""

from proton.language.extra import libdevice as libdevice
from proton.language.function import builtin


@builtin
def globaltimer():
    """The GPU's timer, which all SMs share: int64 ns, in steps of the timer's resolution. GPUs
    only."""


@builtin
def smid():
    """The number of the SM that the program runs on, int32. GPUs only."""
