"""Random kernels (random_programs.py), compiled and interpreted, against numpy, bit for bit."""

from typing import Any

import numpy as np
from hypothesis import given

import proton
from tests.cpu.harness import assert_number, kernels_once
from tests.cpu.random_programs import GRID, MARGIN, Drawn, programs
from tests.draws import PROGRAMS, kernels


def in_one_buffer(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Copies that are views of one array: the compiler must take them for overlapping."""
    pool = np.zeros(sum(array.nbytes for array in arrays) + 8 * len(arrays), np.uint8)
    views, place = [], 0
    for array in arrays:
        view = pool[place : place + array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        views.append(view)
        place += -(-array.nbytes // 8) * 8
    return views


def run(drawn: Drawn, *modes: bool) -> None:
    """`modes`: compiled, and interpreted."""
    with kernels_once(drawn.source()) as module:
        for interpret in modes or (False,):
            with proton.knobs.scope(interpret=interpret):
                check(drawn, module.kernel)


def check(drawn: Drawn, kernel: Any) -> None:
    program, dtype = drawn.program, drawn.result.dtype
    out = np.full(GRID * drawn.span, 77, dtype)  # what lies in gaps stays
    arrays = [*program.arrays, out]
    *inputs, out = in_one_buffer(arrays) if drawn.shared else arrays
    arguments = [array[MARGIN:] for array in inputs]
    kernel[(GRID,)](*arguments, out[drawn.start :], *program.scalars.values())
    want = np.full_like(out, 77)
    want[drawn.places()] = np.broadcast_to(drawn.result.value, (GRID, *program.shape))
    try:
        assert_number(out, want, dtype)
    except AssertionError as problem:
        how = "interpreted" if proton.knobs.interpret else "compiled"
        raise AssertionError(
            f"{how}: {problem}\nwith {program.scalars} in\n{drawn.source()}"
        ) from None


@kernels(PROGRAMS // 2)
@given(programs())
def test_random_programs(drawn: Drawn) -> None:
    run(drawn, False, True)
