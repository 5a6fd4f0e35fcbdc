"""Random kernels (random_programs.py), compiled and interpreted, against numpy, bit for bit."""

import numpy as np
from hypothesis import given

import proton
from tests.cpu.harness import assert_number, kernels_of
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


def check(drawn: Drawn) -> None:
    run(drawn)
    with proton.knobs.scope(interpret=True):
        run(drawn)


def run(drawn: Drawn) -> None:
    program, source, dtype = drawn.program, drawn.source(), drawn.result.dtype
    out = np.full(GRID * drawn.span, 77, dtype)  # what lies in gaps stays
    arrays = [*program.arrays, out]
    *inputs, out = in_one_buffer(arrays) if drawn.shared else arrays
    arguments = [array[MARGIN:] for array in inputs]
    kernels_of(source).kernel[(GRID,)](*arguments, out[drawn.start :], *program.scalars.values())
    want = np.full_like(out, 77)
    want[drawn.places()] = np.broadcast_to(drawn.result.value, (GRID, *program.shape))
    try:
        assert_number(out, want, dtype)
    except AssertionError as problem:
        how = "interpreted" if proton.knobs.interpret else "compiled"
        raise AssertionError(f"{how}: {problem}\nwith {program.scalars} in\n{source}") from None


@kernels(PROGRAMS // 2)
@given(programs())
def test_random_programs(drawn: Drawn) -> None:
    check(drawn)
