"""The `tt` dialect, whole: each op is a class of this module."""

from proton.dialect.kinds import by_name
from proton.dialect.tt_block import *
from proton.dialect.tt_collective import *
from proton.dialect.tt_core import *
from proton.dialect.tt_core import TT
from proton.dialect.tt_elementwise import *
from proton.dialect.tt_memory import *
from proton.dialect.tt_scaled import *

# What ops are in `arith`, by their names.
IN_ARITH = by_name({op: op.in_arith for op in TT.operations if hasattr(op, "in_arith")})
