"""The `ttg` dialect, whole: each op is a class of this module."""

from proton.dialect.ttg_assembly import *
from proton.dialect.ttg_core import *
from proton.dialect.ttg_memory import *
