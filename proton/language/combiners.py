"""The functions by which Triton's reductions combine two elements.

Kernels pass them on by their names in `triton.language.standard`:
`tl.reduce(x, 0, tl.standard._elementwise_max)`.
"""

from proton.language import core
from proton.language.function import DeviceFunction


@DeviceFunction
def _sum_combine(a, b):
    return a + b


@DeviceFunction
def _prod_combine(a, b):
    return a * b


@DeviceFunction
def _xor_combine(a, b):
    return a ^ b


@DeviceFunction
def _or_combine(a, b):
    return a | b


@DeviceFunction
def _elementwise_max(a, b):
    return core.maximum(a, b)


@DeviceFunction
def _elementwise_min(a, b):
    return core.minimum(a, b)


@DeviceFunction
def _argmax_combine_tie_break_left(value1, index1, value2, index2):
    first = (value1 > value2) | ((value1 == value2) & (index1 < index2))
    return core.where(first, value1, value2), core.where(first, index1, index2)


@DeviceFunction
def _argmax_combine_tie_break_fast(value1, index1, value2, index2):
    first = value1 > value2
    return core.where(first, value1, value2), core.where(first, index1, index2)


@DeviceFunction
def _argmin_combine_tie_break_left(value1, index1, value2, index2):
    first = (value1 < value2) | ((value1 == value2) & (index1 < index2))
    return core.where(first, value1, value2), core.where(first, index1, index2)


@DeviceFunction
def _argmin_combine_tie_break_fast(value1, index1, value2, index2):
    first = value1 < value2
    return core.where(first, value1, value2), core.where(first, index1, index2)
