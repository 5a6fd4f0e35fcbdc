"""Matrix descriptors against the PTX ISA's text, and what products' layouts have in common."""

import itertools
import math

import pytest

from proton.base.targets import ARCHITECTURES
from proton.layout.matrix_memory import (
    UNIT,
    matrix_layout,
    matrix_memory,
    transposing_layout,
)
from proton.layout.tensor_cores import warp_group_tiling, warp_tiling

SHAPES = [(64, 16), (64, 64), (128, 64), (16, 256), (8, 32), (64, 128), (256, 32)]


def canonical(row: int, column: int, swizzle: int, bits: int, order: tuple[int, int],
              shape: tuple[int, int]) -> int:  # fmt: skip
    """The byte of an element of a canonical layout, by the descriptor's own rules.

    PTX ISA, "Strides" and "Swizzling modes": a block is rows of `swizzle` bytes; groups of 8 rows
    are the stride byte offset apart, blocks the leading one. Address bits 4 to 6 are XORed with
    bits 7 to 9.
    """
    size = bits // 8
    fast, slow = (column, row) if order == (1, 0) else (row, column)
    slow_size = shape[order[1]]
    block, inside = divmod(fast * size, swizzle)
    byte = block * slow_size * swizzle + slow // 8 * 8 * swizzle + slow % 8 * swizzle + inside
    return byte ^ (byte >> 7 & (swizzle // 16 - 1)) << 4


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
@pytest.mark.parametrize("shape", SHAPES)
def test_memory_is_what_the_descriptor_says(
    shape: tuple[int, int], order: tuple[int, int], bits: int
) -> None:
    layout = matrix_layout(shape, bits // 8, order)
    row = shape[order[0]] * bits // 8
    if row < 32 or shape[order[1]] < 8:
        assert layout is None
        return
    assert layout is not None
    memory = matrix_memory(layout, bits // 8)
    assert memory is not None
    assert memory.swizzle == min(128, row)
    if memory.order == order:  # a matrix may be one in both orders, where it is one block
        for r, c in itertools.product(range(0, shape[0], 3), range(0, shape[1], 5)):
            expected = canonical(r, c, memory.swizzle, bits, order, shape)
            assert memory.offset(r, c) == expected
    for k_axis in (0, 1):
        found = memory.descriptor(k_axis)
        stride, mode = (found >> 32 & 0x3FFF) * 16, found >> 62
        assert stride == 8 * memory.swizzle
        assert {1: 128, 2: 64, 3: 32}[mode] == memory.swizzle
        if memory.order[0] != k_axis:
            assert (found >> 16 & 0x3FFF) * 16 == shape[memory.order[1]] * memory.swizzle
        assert found & 0xFFFF == 0, "the address is added"


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("shape", [(64, 128), (128, 64), (32, 32), (128, 256), (8, 16)])
@pytest.mark.parametrize("fast", [0, 1])
def test_bytes_are_transposed_by_words(shape: tuple[int, int], fast: int, warps: int) -> None:
    layout = transposing_layout(shape, 1, fast, warps)
    assert layout.is_surjective
    assert layout.in_size("warp") == warps
    steps = {1: (1, 0), 2: (2, 0), 4: (0, 1), 8: (0, 2)}
    for register, step in steps.items():
        place = layout.apply(register=register)
        assert (place[f"dim{fast}"], place[f"dim{1 - fast}"]) == step


def test_descriptors_take_any_address_of_shared_memory() -> None:
    largest = max(architecture.shared_bytes for architecture in ARCHITECTURES.values())
    assert largest // UNIT < 1 << 14


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("shape", [(16, 8), (64, 8), (64, 64), (128, 256), (32, 128), (256, 64)])
def test_all_elements_of_a_product_have_a_thread(shape: tuple[int, int], warps: int) -> None:
    """And its operands those of its rows and columns."""
    tilings = [warp_tiling(shape, warps, axis) for axis in (None, 0, 1)]
    for tiling in filter(None, [*tilings, warp_group_tiling(shape, warps)]):
        total = tiling.accumulator
        assert total.is_surjective
        assert math.prod(tiling.warps) == warps
        left = tiling.operand_a(64, 16)
        assert left.is_surjective
        # A lane's rows of a are its rows of the result; a warp has all that it needs.
        own = {b[0] for name in ("lane", "warp") for b in total.bases(name)}
        assert {b[0] for name in ("warp",) for b in left.bases(name)} <= own | {0}


@pytest.mark.parametrize("warps", [2, 4, 8])
@pytest.mark.parametrize("shape", [(16, 16), (16, 32), (16, 64), (32, 16), (64, 32)])
def test_no_tile_is_made_twice_where_there_are_enough(shape: tuple[int, int], warps: int) -> None:
    tiles = shape[0] // 16 * (shape[1] // 8)
    for axis in (None, 0, 1):
        tiling = warp_tiling(shape, warps, axis)
        assert tiling is not None
        made = warps * tiling.accumulator.in_size("register") * 32
        assert made == shape[0] * shape[1] * max(1, warps // tiles)


def test_too_small_for_an_instruction() -> None:
    assert warp_tiling((8, 8), 4) is None
    assert warp_tiling((16, 1), 4) is None, "a thread has two neighbours"
    assert warp_tiling((1, 16), 4) is None
    assert warp_group_tiling((32, 64), 4) is None
    assert warp_group_tiling((64, 64), 2) is None
    assert warp_group_tiling((64, 8), 8) is None, "two groups share 8 columns"
