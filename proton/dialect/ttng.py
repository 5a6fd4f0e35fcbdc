"""The `ttng` dialect, whole: each op is a class of this module."""

from proton.dialect.ttng_core import *
from proton.dialect.ttng_memory import *
