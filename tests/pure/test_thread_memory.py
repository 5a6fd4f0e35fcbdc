"""Matrices in shared memory that threads write and read: banks counted one word at a time."""

import random
from collections import Counter

import pytest

from proton.layout import LinearLayout, named
from proton.layout.matrix_memory import matrix_layout, transposing_layout
from proton.layout.thread_memory import access_cost, contiguous, thread_memory

ROWS_FIRST, COLUMNS_FIRST = (1, 0), (0, 1)


def wavefronts(places: LinearLayout, element_bytes: int, vector: int) -> int:
    """Of a warp's accesses, by asking every lane of every phase for its words."""
    width, total = vector * element_bytes, 0
    lanes = 32 // max(1, width // 4)  # that are served together
    starts = {places.apply(register=r)["offset"] for r in range(places.in_size("register"))}
    for start in (start for start in starts if start % vector == 0):
        for first in range(0, 32, lanes):
            words = set()
            for lane in range(first, first + lanes):
                begin = (places.apply(lane=lane)["offset"] ^ start) * element_bytes
                words |= {(begin + byte) // 4 for byte in range(width)}
            total += max(Counter(word % 32 for word in words).values())
    return total


def spread(shape: tuple[int, int], generator: random.Random) -> LinearLayout:
    """Elements over registers, 32 lanes and 4 warps at random."""
    bits = [(1 << n, 0) for n in range(shape[0].bit_length() - 1)]
    bits += [(0, 1 << n) for n in range(shape[1].bit_length() - 1)]
    generator.shuffle(bits)
    ins = {"lane": bits[:5], "warp": bits[5:7], "register": bits[7:]}
    return LinearLayout.of(
        {name: ins[name] for name in ("register", "lane", "warp")},
        {"dim0": shape[0], "dim1": shape[1]},
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("element_bytes", [4, 8])
def test_costs_are_counts(element_bytes: int, seed: int) -> None:
    generator = random.Random(seed)
    layout, memory = spread((32, 64), generator), matrix_layout((32, 64), element_bytes, (1, 0))
    assert memory is not None
    places = layout.compose(memory.invert())
    vector = contiguous(places, element_bytes)
    taken, count = access_cost(places, element_bytes, has_matrices=False)
    assert count == layout.in_size("register") // vector
    assert taken == wavefronts(places, element_bytes, vector)


def accesses(shape: tuple[int, int]) -> tuple[LinearLayout, ...]:
    """Of a block of 32 bits: rows that are loaded 16 bytes at a time, the left operand that it is,
    and the right operand that its transpose is not."""
    across = min(32, shape[1] // 4)
    rows = named.blocked(shape, (1, 4), (32 // across, across), (1, 1), (1, 0))
    return rows, *(
        named.fit(operand, shape) for operand in (named.mma_operand_a(32), named.mma_operand_b(32))
    )


@pytest.mark.parametrize("shape", [(32, 128), (64, 128), (64, 32), (128, 64)])
def test_a_block_is_both_operands_without_conflicts(shape: tuple[int, int]) -> None:
    """In the swizzle of `wgmma` the lanes of one of the two meet."""
    readers = accesses(shape)
    chosen, usual = thread_memory(shape, 4, (ROWS_FIRST,), readers), matrix_layout(shape, 4, (1, 0))
    assert chosen is not None
    assert usual is not None
    assert chosen.is_invertible
    least = [layout.out_size("dim0") * layout.out_size("dim1") // 32 for layout in readers]
    cost = [[access_cost(a.compose(m.invert()), 4)[0] for a in readers] for m in (chosen, usual)]
    assert cost[0] == least
    assert cost[1] > least


@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
@pytest.mark.parametrize("seed", range(5))
def test_none_of_the_swizzles_costs_less(element_bytes: int, seed: int) -> None:
    """Nor is one chosen that costs more than that of `wgmma`, in either order."""
    generator = random.Random(seed)
    shape = generator.choice([(64, 64), (32, 128), (128, 32)])
    readers = tuple(spread(shape, generator) for _ in range(2))
    chosen = thread_memory(shape, element_bytes, (ROWS_FIRST, COLUMNS_FIRST), readers)
    assert chosen is not None
    assert chosen.is_invertible

    def cost(memory: LinearLayout) -> int:
        return sum(access_cost(a.compose(memory.invert()), element_bytes)[0] for a in readers)

    for order in (ROWS_FIRST, COLUMNS_FIRST):
        usual = matrix_layout(shape, element_bytes, order)
        assert usual is None or cost(chosen) <= cost(usual)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("shape", [(64, 64), (64, 32), (128, 64), (32, 128)])
@pytest.mark.parametrize("fast", [0, 1])
def test_squares_are_read_and_written_without_conflicts(
    shape: tuple[int, int], fast: int, warps: int
) -> None:
    """16 bytes at a time, from memory that has its swizzle for them to that of `wgmma`."""
    squares = transposing_layout(shape, 4, fast, warps)
    order = (fast, 1 - fast)
    first = thread_memory(shape, 4, (order,), (squares,))
    second = matrix_layout(shape, 4, (1 - fast, fast))
    assert first is not None
    assert second is not None
    for memory in (first, second):
        places = squares.compose(memory.invert())
        assert contiguous(places, 4) == 4
        count = squares.in_size("register") // 4
        assert access_cost(places, 4, has_matrices=False) == (4 * count, count)
        assert wavefronts(places, 4, 4) == 4 * count


def test_without_readers_it_is_the_swizzle_of_wgmma() -> None:
    assert thread_memory((64, 64), 2, (ROWS_FIRST,), ()) == matrix_layout((64, 64), 2, (1, 0))
    assert thread_memory((64, 4), 2, (ROWS_FIRST,), ()) is None  # rows of 8 bytes
    assert thread_memory((4, 64), 2, (ROWS_FIRST,), ()) is None  # fewer than eight rows
