"""What comes with Rubin: as of Blackwell, there by name."""

from typing import ClassVar

from proton.language.gluon.core import ForeignModule, absent
from proton.language.gluon.nvidia import blackwell
from proton.language.gluon.nvidia.hopper import mbarrier as _mbarrier

_WHAT, _INSTEAD = "an op of Rubin", "use the op of tensors"
_OPS = ("add4", "sub4", "mul4", "fma4")

globals().update({name: of for name, of in vars(blackwell).items() if not name.startswith("_")})


class RubinScalesLayout(blackwell.TensorMemoryScalesLayout):
    """Where the scales of a dot lie."""

    FIELDS: ClassVar = {"cga_layout": [], "block_rep_order": "mnThenK"}


TensorMemoryScalesLayout = RubinScalesLayout
_OF_MBARRIER = {name: of for name, of in vars(_mbarrier).items() if not name.startswith("_")}
mbarrier = ForeignModule(f"{__name__}.mbarrier", _WHAT, _INSTEAD, _OF_MBARRIER)
globals().update({name: absent(name, _WHAT, _INSTEAD) for name in _OPS})
