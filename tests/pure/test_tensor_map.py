"""Boxes of TMA: where each element of a block lies when all of its copies have arrived."""

import itertools
import math

import numpy as np
import pytest

from proton.layout.encodings import nvmma_memory
from proton.layout.tensor_map import ALIGNMENT, MAX_BOX, MAX_PIXELS, Box, box_in, box_of

SIZES = (0, 32, 64, 128)  # of swizzles


def arrived(box: Box) -> dict[int, tuple[int, ...]]:
    """byte -> index, by what the PTX ISA says of a copy: rows of a box lie one behind the other,
    and the 16-byte chunks of a row are permuted by bits of the address."""
    found = {}
    for start, place in box.pieces:
        for number, inner in enumerate(itertools.product(*map(range, box.sizes))):
            at = place + number * box.element_bytes
            if box.swizzle:
                mask = box.swizzle // 16 - 1
                at ^= ((at >> 7) & mask) << 4
            found[at] = tuple(a + b for a, b in zip(start, inner, strict=True))
    return found


@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
def test_elements_lie_where_the_layout_says(rng: np.random.Generator, element_bytes: int) -> None:
    shapes = [(8, 16), (512, 32), (4, 64), (64, 256), (1024,), (2, 4, 8, 16), (1, 1, 1, 2, 512)]
    for block in shapes:
        box = box_of(block, element_bytes)
        if box is None:
            assert math.prod(block) * element_bytes < ALIGNMENT
            continue
        assert max(box.sizes) <= 256
        assert box.sizes[-1] * element_bytes <= (box.swizzle or 256 * element_bytes)
        assert all(place % ALIGNMENT == 0 for _, place in box.pieces)
        places = arrived(box)
        assert len(places) == math.prod(block)
        for at in rng.choice(list(places), 50):
            index = box.layout.apply(offset=int(at) // element_bytes)
            assert tuple(index.values()) == places[int(at)]


@pytest.mark.parametrize("rows", [MAX_BOX, MAX_PIXELS])
def test_blocks_in_a_layout_lie_where_it_says_or_have_none(
    rng: np.random.Generator, rows: int
) -> None:
    cases = itertools.product((1, 2, 4, 8, 512), (16, 64, 512), (1, 4), SIZES)
    for height, width, element_bytes, swizzle in cases:
        block = height, width
        if width * element_bytes < swizzle or height == width:
            continue  # of 512 either is beyond a box
        layout = nvmma_memory(block, element_bytes, swizzle, False)
        box = box_in(block, element_bytes, layout, rows)
        if box is None:  # a box would be too wide, or begin in the middle of a pattern
            is_wide = not swizzle and width > MAX_BOX
            assert is_wide or (1 < height < 8 and width * element_bytes > swizzle)
            continue
        assert box.sizes[0] == min(height, rows)
        places = arrived(box)
        assert len(places) == math.prod(block)
        for at in rng.choice(list(places), 20):
            index = layout.apply(offset=int(at) // element_bytes)
            assert tuple(index.values()) == places[int(at)], (block, element_bytes, swizzle)


def test_small_blocks_have_none() -> None:
    assert box_of((1, 16), 2) is None
