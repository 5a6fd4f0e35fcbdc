"""What NVIDIA's GPUs have, by the generation that it came with."""

from proton.language.gluon.nvidia import ampere as ampere
from proton.language.gluon.nvidia import blackwell as blackwell
from proton.language.gluon.nvidia import hopper as hopper
from proton.language.gluon.nvidia import rubin as rubin
