"""`tl.target_info`: what a kernel is compiled for, known while compiling."""

from proton.language.function import builtin


@builtin
def current_target():
    """The target: `backend` ("cuda" or "cpu") and `arch`, the compute capability times ten."""


@builtin
def is_cuda():
    """Whether it is an NVIDIA GPU."""


@builtin
def cuda_capability_geq(major, minor=0):
    """Whether it is an NVIDIA GPU of at least this compute capability."""


@builtin
def is_hip():
    """Whether it is a GPU of AMD: never."""


@builtin
def is_hip_cdna3():
    """Whether it is a CDNA3 of AMD: never."""


@builtin
def is_hip_cdna4():
    """Whether it is a CDNA4 of AMD: never."""


@builtin
def is_hip_gfx1250():
    """Whether it is a GFX1250 of AMD: never."""
