"""What is linked leaves no memory behind, and is valid as long as somebody has it."""

import ctypes
import gc

import numpy as np
import pytest

from proton.backends.cpu import llvm
from tests.processes import python

_ADD = "define i32 @add(i32 %x) {{\n  %y = add i32 %x, {}\n  ret i32 %y\n}}\n"
_LINKS = """
import ctypes, gc
from tests.cpu.test_linked_code import bytes_in_use, linked
linked(0)
before = bytes_in_use()
for number in range(1000):
    linked(number % 3)
gc.collect()
print((bytes_in_use() - before) / 1000)
"""


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]


def bytes_in_use() -> int:
    """Of what the C library gave."""
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = _Mallinfo
    found = ask()
    return int(found.e + found.h)  # in pieces of their own, and in the heap


def linked(number: int) -> llvm.LinkedCode:
    """A function that adds a number."""
    return llvm.linker().link(llvm.emit_object(_ADD.format(number))[0], "add")


def test_code_of_the_past_takes_no_memory() -> None:
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("needs glibc 2.33")
    ended = python("-c", _LINKS)
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) < 4000  # a new JIT for each 128 leaves 1.2 KB of each


def test_code_outlives_others(rng: np.random.Generator) -> None:
    """Whichever are kept of many, in whatever order the others end."""
    kept = {number: linked(number % 7) for number in range(600)}
    for number in rng.permutation(600)[:570]:
        del kept[int(number)]
    gc.collect()
    for number, code in kept.items():
        assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.address)(1000) == 1000 + number % 7
