"""What comes with Rubin: as of Blackwell, there by name."""

from proton.language.gluon.core import absent
from proton.language.gluon.nvidia.blackwell import TensorMemoryScalesLayout as _Scales
from proton.language.gluon.nvidia.hopper import mbarrier as mbarrier

_OPS = ("add4", "sub4", "mul4", "fma4")


class RubinScalesLayout(_Scales):
    """Where the scales of a dot lie."""


TensorMemoryScalesLayout = RubinScalesLayout
globals().update({name: absent(name, "an op of Rubin", "use the op of tensors") for name in _OPS})
