"""The `tt` dialect, whole: each op is a class of this module."""

from proton.dialect.tt_block import *
from proton.dialect.tt_collective import *
from proton.dialect.tt_core import *
from proton.dialect.tt_elementwise import *
from proton.dialect.tt_memory import *
from proton.dialect.tt_scaled import *
