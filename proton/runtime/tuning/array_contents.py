"""Filling and copying arrays of any library: what autotuning does to what kernels write."""

from typing import Any

from proton.base.errors import LaunchError
from proton.base.words import shown
from proton.runtime.launch.arguments import ArrayArgument, is_torch


def clear(name: str, value: object) -> None:
    """Stores zeros."""
    array = _array(name, value)
    if is_torch(array):
        array.zero_()
    else:
        array[...] = 0


def copy_of(name: str, value: object) -> Any:
    """A copy to `restore` from."""
    array = _array(name, value)
    return array.clone() if is_torch(array) else array.copy()


def restore(name: str, value: object, copy: object) -> None:
    """Stores what a copy has."""
    array = _array(name, value)
    if is_torch(array):
        array.copy_(copy)
    else:
        array[...] = copy


def _array(name: str, value: object) -> Any:
    """The array that has the elements of an argument."""
    array: Any = value
    while isinstance(array, ArrayArgument):
        array = array.base
    if is_torch(array):
        return array.detach()  # whose contents may change where a gradient is asked for
    if all(hasattr(array, needed) for needed in ("__setitem__", "copy")):
        return array
    raise LaunchError(
        f"argument {name} can be neither cleared nor restored, got {shown(value)}: pass a numpy, "
        "torch or CuPy array, or do it in a pre_hook"
    )
