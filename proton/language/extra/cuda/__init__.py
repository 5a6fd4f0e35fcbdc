"""What NVIDIA's GPUs have; under the name that Triton has for it."""

import sys

from proton.language.extra import libdevice as libdevice
from proton.language.function import builtin

# It is imported as a module of this package, too.
sys.modules[f"{__name__}.libdevice"] = libdevice


@builtin
def globaltimer():
    """The GPU's timer, which all SMs share: int64 ns, in steps of the timer's resolution. GPUs
    only."""


@builtin
def num_threads():
    """The threads of a program, known while compiling: 32 for each warp."""


@builtin
def num_warps():
    """The warps of a program, known while compiling: the launch option, by default 4. On the CPU,
    too, where it means nothing else: what the host lays out for so many warps is read so."""


@builtin
def gdc_wait():
    """Waits until all that the kernel before this one wrote can be seen, where the launch was told
    not to wait for it (`launch_pdl=True`). On the CPU, and before compute capability 9.0, launches
    wait for each other in any case."""


@builtin
def gdc_launch_dependents():
    """Lets the next kernel of the stream begin, if its launch was told `launch_pdl=True`, once all
    programs have called this or ended. What is written afterwards it sees after `gdc_wait`, too."""


@builtin
def smid():
    """The number of the SM that the program runs on, int32. GPUs only."""
