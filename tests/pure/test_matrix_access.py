"""`ldmatrix` and `stmatrix` as the PTX ISA has them, on a model of memory, against layouts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.layout import LinearLayout
from proton.layout.matrix_access import MatrixAccess, matrix_access
from proton.layout.named import (
    SWIZZLES,
    blocked,
    mma_v2,
    shared_nvmma,
    shared_row_major,
    shared_swizzled,
)
from proton.layout.tensor_cores import WarpTiling
from tests.draws import examples
from tests.pure.layout_strategies import distributed, shapes_of_rank

WARP, BANKS = 32, 32


def loaded(way: MatrixAccess, memory: np.ndarray, element_bytes: int, warp: int) -> np.ndarray:
    """(registers, lanes) after the instructions, as "ldmatrix" in the PTX ISA has it: thread t gets
    of each matrix the 32 bits from byte 4 (t % 4) of row t / 4 on; with .trans, of the matrix of
    16-bit elements, [2 (t % 4)][t / 4] and the element below. Registers of 32 bits follow each
    other."""
    in_row, in_word = 16 // element_bytes, 4 // element_bytes
    registers = []
    for instruction in range(way.instructions):
        starts = [
            way.rows.apply(register=instruction, lane=lane, warp=warp)["offset"]
            for lane in range(WARP)
        ]
        assert all(start % in_row == 0 for start in starts), "a row is not aligned"
        for matrix in range(way.matrices):
            rows = np.array([memory[s : s + in_row] for s in starts[8 * matrix : 8 * matrix + 8]])
            fragment = rows.T if way.is_transposed else rows
            registers += list(fragment.reshape(WARP, in_word).T)
    return np.array(registers)


def worst_bank(way: MatrixAccess, element_bytes: int) -> int:
    """Different words of one bank that a matrix has at most: its rows are served together."""
    worst = 0
    for instruction in range(way.instructions):
        for matrix in range(way.matrices):
            lanes = range(8 * matrix, 8 * matrix + 8)
            starts = {way.rows.apply(register=instruction, lane=n)["offset"] for n in lanes}
            words = [start * element_bytes // 4 + word for start in starts for word in range(4)]
            worst = max(worst, np.bincount(np.array(words) % BANKS).max())
    return int(worst)


def check(places: LinearLayout, way: MatrixAccess, element_bytes: int) -> None:
    """Every register of every thread gets what lies at its offset."""
    memory = np.arange(1 << places.total_out_bits)
    expected = places.table("register", "lane", "warp")[..., 0]
    for warp in range(expected.shape[2]):
        got = loaded(way, memory, element_bytes, warp)
        np.testing.assert_array_equal(got, expected[way.registers, :, warp])


def memories(shape: tuple[int, int], element_bytes: int) -> list[LinearLayout]:
    """Rows side by side along either dimension, plain and swizzled."""
    found = [shared_row_major(shape, order) for order in ((0, 1), (1, 0))]
    for order in ((0, 1), (1, 0)):
        row = shape[order[0]] * element_bytes
        found += [shared_nvmma(shape, element_bytes, s, order) for s in SWIZZLES if row >= s]
        found.append(shared_swizzled(shape, 16 // element_bytes, 1, 8, order))
    return found


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize("warps", [(1, 1), (2, 2), (4, 1), (1, 8)])
def test_operands_of_mma_are_loaded_by_matrices(element_bytes: int, warps: tuple[int, int]) -> None:
    """Where k lies side by side; elements of 16 bits also where it does not."""
    tiling, k = WarpTiling((64, 128), warps), 128 // element_bytes
    operands = [
        (tiling.operand_a(k, 8 * element_bytes), (64, k), 1),
        (tiling.operand_b(k, 8 * element_bytes), (k, 128), 0),
    ]
    for layout, shape, along_k in operands:
        for memory in memories(shape, element_bytes):
            side_by_side = memory.bases("offset")[0][along_k] == 1
            places = layout.invert_and_compose(memory)
            way = matrix_access(places, element_bytes)
            assert (way is not None) == (side_by_side or element_bytes == 2)
            if way is not None:
                assert way.is_transposed != side_by_side
                assert way.matrices == 4
                assert way.instructions * 16 == layout.in_size("register") * element_bytes
                check(places, way, element_bytes)


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_swizzled_memory_is_read_without_conflict(element_bytes: int, swizzle: int) -> None:
    tiling, k = WarpTiling((64, 64), (2, 2)), swizzle // element_bytes
    layout = tiling.operand_a(k, 8 * element_bytes)
    places = layout.invert_and_compose(shared_nvmma((64, k), element_bytes, swizzle))
    way = matrix_access(places, element_bytes)
    assert way is not None
    assert worst_bank(way, element_bytes) == 1
    plain = layout.invert_and_compose(shared_row_major((64, k), (1, 0)))
    conflicting = matrix_access(plain, element_bytes)
    assert conflicting is not None
    assert worst_bank(conflicting, element_bytes) == swizzle // 16


def test_the_transposed_operand_is_read_without_conflict() -> None:
    for shape, swizzle in (((32, 64), 128), ((16, 32), 64), ((32, 16), 32)):
        layout = WarpTiling((64, shape[1]), (2, 1)).operand_b(shape[0], 16)
        way = matrix_access(layout.invert_and_compose(shared_nvmma(shape, 2, swizzle)), 2)
        assert way is not None
        assert way.is_transposed
        assert worst_bank(way, 2) == 1


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_registers_come_in_any_order(element_bytes: int, rng: np.random.Generator) -> None:
    k = 128 // element_bytes
    layout = WarpTiling((64, 64), (2, 2)).operand_a(k, 8 * element_bytes)
    places = layout.invert_and_compose(shared_nvmma((64, k), element_bytes, 128))
    bases = places.bases("register")
    for _ in range(4):
        order = rng.permutation(len(bases))
        moved = dict(places.ins) | {"register": tuple(bases[bit] for bit in order)}
        permuted = LinearLayout.of(moved, dict(places.outs))
        way = matrix_access(permuted, element_bytes)
        assert way is not None
        check(permuted, way, element_bytes)


def test_small_operands_take_fewer_matrices() -> None:
    """8 columns of 16 rows are two matrices, and of 8-byte rows none at all."""
    layout = WarpTiling((16, 8), (1, 1)).operand_b(16, 16)
    way = matrix_access(layout.invert_and_compose(shared_row_major((16, 8), (0, 1))), 2)
    assert way is not None
    assert (way.matrices, way.instructions) == (2, 1)
    check(layout.invert_and_compose(shared_row_major((16, 8), (0, 1))), way, 2)


def test_what_threads_have_in_longer_runs_is_not_moved_by_matrices() -> None:
    shared = shared_row_major((64, 64), (1, 0))
    for run in (1, 4, 8):
        layout = blocked((64, 64), (1, run), (8, 4), (4, 1), (1, 0))
        assert matrix_access(layout.invert_and_compose(shared), 2) is None
    accumulator = mma_v2((64, 64), (2, 2)).invert_and_compose(shared)
    assert matrix_access(accumulator, 2) is not None
    assert matrix_access(accumulator, 4) is None
    assert matrix_access(accumulator, 8) is None


@st.composite
def anywhere(draw: st.DrawFn) -> tuple[LinearLayout, int]:
    """A layout in memory whose bits are in any order: close enough to matrices to be some often."""
    element_bytes = draw(st.sampled_from([1, 2, 4]))
    shape = draw(shapes_of_rank(2))
    layout = draw(distributed(shape, draw(st.sampled_from([1, 2, 4]))))
    words = layout.bases("register")[: (4 // element_bytes).bit_length() - 1]
    lanes = layout.bases("lane")
    first = draw(st.sampled_from([[*words, *lanes[:2]], lanes[2:]]))
    units = [layout._unflatten(1 << bit) for bit in range(layout.total_out_bits)]
    chosen: list[tuple[int, ...]] = []
    for basis in [*first, *draw(st.permutations(units))]:
        if any(basis) and basis not in chosen:
            chosen.append(basis)
    chosen = chosen[: layout.total_out_bits]
    return layout.invert_and_compose(LinearLayout.of({"offset": chosen}, dict(layout.outs))), (
        element_bytes
    )


@examples(300)
@given(anywhere())
def test_whatever_is_loaded_by_matrices_arrives(case: tuple[LinearLayout, int]) -> None:
    places, element_bytes = case
    way = matrix_access(places, element_bytes)
    if way is not None:
        check(places, way, element_bytes)
