"""What `tl.standard` has for reductions by name, against numpy."""

import numpy as np
import pytest

import proton
import proton.language as tl

BLOCK = 64


@proton.jit
def combined(x, out, NAME: tl.constexpr, BLOCK: tl.constexpr):
    values = tl.load(x + tl.arange(0, BLOCK))
    tl.store(out, tl.reduce(values, 0, getattr(tl.standard, NAME)))


@proton.jit
def found(x, out, NAME: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value, index = tl.reduce((tl.load(x + at), at), 0, getattr(tl.standard, NAME))
    tl.store(out, value)
    tl.store(out + 1, index)


def test_what_is_not_there_is_an_attribute_error() -> None:
    for name in ("_nothing", "nothing", "__path__", "__nothing__"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(tl.standard, name)


@pytest.fixture
def x() -> np.ndarray:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    values = np.random.default_rng(seed).integers(-4, 5, BLOCK).astype(np.int32)
    return values | 1  # no 0: a product of zero would say nothing


REDUCTIONS = {
    "_sum_combine": np.add,
    "_prod_combine": np.multiply,
    "_xor_combine": np.bitwise_xor,
    "_or_combine": np.bitwise_or,
    "_elementwise_max": np.maximum,
    "_elementwise_min": np.minimum,
}


@pytest.mark.interpreted
@pytest.mark.parametrize("name", REDUCTIONS)
def test_two_elements_are_combined_as_numpy_does(name: str, x: np.ndarray) -> None:
    out = np.zeros(1, np.int32)
    combined[(1,)](x, out, NAME=name, BLOCK=BLOCK)
    assert out[0] == REDUCTIONS[name].reduce(x, dtype=np.int32)


@pytest.mark.interpreted
@pytest.mark.parametrize("ties", ["left", "fast"])
@pytest.mark.parametrize("which", ["max", "min"])
def test_the_place_of_an_extremum(which: str, ties: str, x: np.ndarray) -> None:
    """On "left" it is the first of equal ones."""
    out = np.zeros(2, np.int32)
    found[(1,)](x, out, NAME=f"_arg{which}_combine_tie_break_{ties}", BLOCK=BLOCK)
    value, index = out
    assert value == x[index] == getattr(x, which)()
    if ties == "left":
        assert index == getattr(x, f"arg{which}")()
