"""`tl.math`: the elementwise functions of the language by their other name, and those of libdevice
that the language has no op for."""

from proton.language import core, standard
from proton.language.extra import libdevice

_OPS = """
    abs ceil clamp cos div_rn erf exp exp2 fdiv floor fma log log2 maximum minimum rsqrt sin sqrt
    sqrt_rn umulhi
"""
_FUNCTIONS = "cdiv sigmoid softmax"

globals().update(
    libdevice.FUNCTIONS
    | {name: getattr(core, name) for name in _OPS.split()}
    | {name: getattr(standard, name) for name in _FUNCTIONS.split()}
)
