"""The functions by which Triton's reductions combine two elements, by Triton's names.

Kernels pass them on as `tl.reduce(x, 0, tl.standard._elementwise_max)`. They are those of
`proton/language/standard.py`: numbers win over NaN, and the lower index over equal ones, where
Triton says nothing of NaN.
"""

from proton.language import standard
from proton.language.function import DeviceFunction

_sum_combine, _xor_combine, _or_combine = standard._add, standard._xor, standard._or
_elementwise_max, _elementwise_min = standard._maximum, standard._minimum
_argmax_combine_tie_break_left = standard._argmax_left
_argmax_combine_tie_break_fast = standard._argmax_any
_argmin_combine_tie_break_left = standard._argmin_left
_argmin_combine_tie_break_fast = standard._argmin_any


@DeviceFunction
def _prod_combine(a, b):
    return a * b
