"""Plans of layout conversions, carried out element by element on a model of registers, lanes,
warps and banks."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.layout import LinearLayout
from proton.layout.conversion import Exchange, Permutation, Shuffle, exchange, plan
from proton.layout.matrix_access import matrix_access
from proton.layout.named import (
    LDMATRIX_TILE,
    blocked,
    mma_v2,
    sliced,
    spread,
    wgmma_accumulator,
)
from proton.layout.tensor_cores import WarpTiling
from tests.draws import examples
from tests.pure.layout_strategies import distributed, flat, shapes_of_rank

WARP = 32
BANKS, BANK_BYTES = 32, 4


@st.composite
def pairs(draw: st.DrawFn) -> tuple[LinearLayout, LinearLayout]:
    """Two layouts of one tensor."""
    shape = draw(shapes_of_rank(draw(st.integers(1, 3))))
    warps = draw(st.sampled_from([1, 2, 4, 8]))
    return draw(distributed(shape, warps)), draw(distributed(shape, warps))


def xor_of_bits(bases: tuple[int, ...], numbers: np.ndarray) -> np.ndarray:
    result = np.zeros_like(numbers)
    for bit, basis in enumerate(bases):
        result ^= np.where(numbers >> bit & 1, basis, 0)
    return result


def carried_out(
    way: Permutation | Shuffle | Exchange, source: LinearLayout, target: LinearLayout
) -> np.ndarray:
    """What every place of the target has in the end, elements being named by their numbers."""
    have, want = flat(source), flat(target)
    lanes, warps = np.arange(WARP)[:, None], np.arange(want.shape[2])[None, :]
    match way:
        case Permutation(sources):
            return have[list(sources)]
        case Shuffle(sources, flips, by_lane, by_warp, choice, choosers):
            base = xor_of_bits(by_lane, lanes) ^ xor_of_bits(by_warp, warps)
            other = choice * (np.bitwise_count(lanes & choosers).astype(np.int64) & 1)
            rows = [have[s ^ other, base ^ f, warps] for s, f in zip(sources, flips, strict=True)]
            return np.stack(rows)
    memory = np.full(way.elements, -1)
    memory[offsets_of(way, source)] = have
    assert (memory >= 0).all(), "some of the memory is never written"
    return memory[offsets_of(way, target)]


def offsets_of(way: Exchange, layout: LinearLayout) -> np.ndarray:
    """Where each place finds its element in shared memory."""
    number_of = flat(way.shared.renamed({"offset": "register"})).ravel()
    where = np.empty(way.elements, np.int64)
    where[number_of] = np.arange(way.elements)
    return where[flat(layout)]


@examples(300)
@given(pairs(), st.sampled_from([1, 2, 4, 8]))
def test_a_plan_brings_every_element_to_its_place(
    pair: tuple[LinearLayout, LinearLayout], element_bytes: int
) -> None:
    source, target = pair
    way = plan(source, target, element_bytes)
    np.testing.assert_array_equal(carried_out(way, source, target), flat(target))


@given(pairs(), st.sampled_from([1, 2, 4, 8]))
def test_an_exchange_brings_every_element_to_its_place_where_less_would_do(
    pair: tuple[LinearLayout, LinearLayout], element_bytes: int
) -> None:
    source, target = pair
    way = exchange(source, target, element_bytes)
    assert way.elements == 1 << source.total_out_bits
    np.testing.assert_array_equal(carried_out(way, source, target), flat(target))


def within_a_warp(source: LinearLayout, target: LinearLayout) -> bool:
    """Whether every thread can find its elements in its own warp."""
    have, want = flat(source), flat(target)
    return all(
        set(want[:, :, w].ravel()) <= set(have[:, :, w].ravel()) for w in range(want.shape[2])
    )


def within_threads(source: LinearLayout, target: LinearLayout) -> bool:
    have, want = flat(source), flat(target)
    return all(
        set(want[:, lane, w]) <= set(have[:, lane, w])
        for lane in range(WARP)
        for w in range(want.shape[2])
    )


@examples(200)
@given(pairs())
def test_memory_is_used_only_if_data_leaves_its_thread(
    pair: tuple[LinearLayout, LinearLayout],
) -> None:
    source, target = pair
    way = plan(source, target, 4)
    if not within_a_warp(source, target):
        assert isinstance(way, Exchange)
    elif not within_threads(source, target):
        assert isinstance(way, (Shuffle, Exchange))


@given(st.data())
def test_the_same_layout_is_no_move(data: st.DataObject) -> None:
    shape = data.draw(shapes_of_rank(2))
    layout = data.draw(distributed(shape, 4))
    way = plan(layout, layout, 4)
    assert way == Permutation(tuple(range(layout.in_size("register"))))


# Accesses of an exchange


def accesses(way: Exchange, layout: LinearLayout, vector: int) -> list[np.ndarray]:
    """The first offset of each access of a thread, (lanes, warps) each; and that an access' other
    elements are in the thread as well is checked here."""
    offsets = offsets_of(way, layout)
    starts = offsets & ~(vector - 1)
    for lane, warp in ((0, 0), (17, offsets.shape[2] - 1), (31, 0)):
        own = set(offsets[:, lane, warp])
        assert all({start + n for n in range(vector)} <= own for start in starts[:, lane, warp]), (
            "a vector is not all one thread's"
        )
    return list(starts)


def worst_bank(starts: np.ndarray, element_bytes: int, vector: int) -> int:
    """Different words of one bank that one phase of one warp's access touches, at most."""
    width = element_bytes * vector
    served = min(WARP, BANKS * BANK_BYTES // max(BANK_BYTES, width))
    worst = 0
    for warp in range(starts.shape[1]):
        for first in range(0, WARP, served):
            words = defaultdict(set)
            for start in starts[first : first + served, warp]:
                for byte in range(start * element_bytes, start * element_bytes + width):
                    words[byte // BANK_BYTES % BANKS].add(byte // BANK_BYTES)
            worst = max(worst, max(map(len, words.values())))
    return worst


def check_conflicts(
    way: Exchange,
    source: LinearLayout,
    target: LinearLayout,
    element_bytes: int,
    has_stmatrix: bool = False,
) -> None:
    """No bank has two words of one phase; where an access is of matrices, of one of them."""
    sides = ((source, way.store_vector, has_stmatrix), (target, way.load_vector, True))
    for layout, vector, has_matrices in sides:
        places = layout.invert_and_compose(way.shared)
        all_starts = accesses(way, layout, vector)
        matrices = matrix_access(places, element_bytes)
        if has_matrices and matrices is not None:
            all_starts = list(matrices.rows.table("register", "lane", "warp")[..., 0])
            vector = 16 // element_bytes
        for starts in all_starts:
            assert worst_bank(starts, element_bytes, vector) == 1


def lanes_hold_copies(layout: LinearLayout) -> bool:
    return any(not any(basis) for basis in layout.bases("lane"))


@examples(200)
@given(pairs(), st.sampled_from([1, 2, 4, 8]), st.booleans())
def test_an_exchange_has_no_bank_conflicts(
    pair: tuple[LinearLayout, LinearLayout], element_bytes: int, has_stmatrix: bool
) -> None:
    source, target = pair
    way = exchange(source, target, element_bytes, has_stmatrix)
    assert max(way.store_vector, way.load_vector) * element_bytes <= 16
    if not lanes_hold_copies(source) and not lanes_hold_copies(target):
        check_conflicts(way, source, target, element_bytes, has_stmatrix)


@given(st.data())
def test_an_exchange_moves_the_vectors_that_both_sides_have(data: st.DataObject) -> None:
    """As far as 16 bytes go."""
    element_bytes = data.draw(st.sampled_from([1, 2, 4, 8]))
    run = data.draw(st.sampled_from([1, 2, 4, 8, 16]))
    source = blocked((64, 64), (1, run), (8, 4), (4, 1), (1, 0))
    target = blocked((64, 64), (1, run), (32, 1), (1, 4), (0, 1))
    way = plan(source, target, element_bytes)
    assert isinstance(way, Exchange)
    assert min(way.store_vector, way.load_vector) >= min(run, 16 // element_bytes)


@examples(200)
@given(pairs(), st.sampled_from([1, 2, 4, 8]))
def test_an_exchange_takes_no_longer_than_what_both_sides_have_would(
    pair: tuple[LinearLayout, LinearLayout], element_bytes: int
) -> None:
    """Bytes that a warp moves, and that a conflict-free access of the common width moves at most:
    an element of fewer than four bytes takes the time of four."""
    source, target = pair
    both = set(source.bases("register")) & set(target.bases("register"))
    both.discard((0,) * len(source.outs))
    common = min(1 << len(both), 16 // element_bytes)
    way = exchange(source, target, element_bytes)
    for layout, vector in ((source, way.store_vector), (target, way.load_vector)):
        if matrix_access(layout.invert_and_compose(way.shared), element_bytes) is None:
            assert max(4, vector * element_bytes) // vector <= max(4, common * element_bytes) // (
                common
            )


@pytest.mark.parametrize("warps", [(1, 1), (2, 2), (4, 1)])
@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_operands_of_tensor_cores_are_loaded_without_conflict(
    element_bytes: int, warps: tuple[int, int]
) -> None:
    """From what a load from global memory has, along either dimension."""
    tiling, k, run = WarpTiling((64, 64), warps), 64 // element_bytes, 16 // element_bytes
    bits = 8 * element_bytes
    sides_ = [(tiling.operand_a(k, bits), (64, k)), (tiling.operand_b(k, bits), (k, 64))]
    for target, shape in sides_:
        for per_thread, order in (((1, run), (1, 0)), ((run, 1), (0, 1))):
            source = spread(shape, per_thread, order, warps[0] * warps[1])
            way = exchange(source, target, element_bytes)
            np.testing.assert_array_equal(carried_out(way, source, target), flat(target))
            check_conflicts(way, source, target, element_bytes)


@pytest.mark.parametrize("columns", [16, 32, 128, 256])
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("has_stmatrix", [False, True])
def test_rows_of_results_are_loaded_by_16_bytes(
    columns: int, warps: int, has_stmatrix: bool
) -> None:
    """However few neighbours a thread has of what tensor cores made."""
    source = wgmma_accumulator((64, columns), columns // (warps // 4), (4, warps // 4))
    target = spread((64, columns), (1, min(8, columns * 64 // (32 * warps))), (1, 0), warps)
    way = exchange(source, target, 2, has_stmatrix)
    assert way.load_vector == min(8, target.in_size("register"))
    assert way.store_vector in (2, 4, 8)
    np.testing.assert_array_equal(carried_out(way, source, target), flat(target))
    check_conflicts(way, source, target, 2, has_stmatrix)


@pytest.mark.parametrize(
    "result",
    [
        mma_v2((64, 32), (4, 1)),
        mma_v2((64, 64), (4, 1)),
        mma_v2((64, 32), (2, 2)),
        wgmma_accumulator((64, 64), 64, (4, 1)),
    ],
    ids=["4 x 1", "4 x 1, wide", "2 x 2", "wgmma"],
)
def test_results_become_right_operands_by_matrices(
    result: LinearLayout,
) -> None:
    """Lanes have rows of a result side by side, and columns of a right operand: both sides move
    matrices, one of them transposed, and so they do the other way round."""
    rows, columns = (size for _, size in result.outs)
    operand = WarpTiling((rows, columns), (1, 4)).operand_b(rows, 16)
    for first, second in ((result, operand), (operand, result)):
        way = exchange(first, second, 2, has_stmatrix=True)
        np.testing.assert_array_equal(carried_out(way, first, second), flat(second))
        sides = [matrix_access(x.invert_and_compose(way.shared), 2) for x in (first, second)]
        assert sorted(side.is_transposed for side in sides if side) == [False, True]
        check_conflicts(way, first, second, 2, has_stmatrix=True)


def test_runs_along_the_other_dimension_are_moved_whole_by_one_side() -> None:
    """Matrices whose threads have nothing in common: 8 columns of a row, 8 rows of a column."""
    source = blocked((32, 32), (1, 8), (8, 4), (4, 1), (1, 0))
    target = blocked((32, 32), (8, 1), (4, 8), (1, 4), (0, 1))
    way = exchange(source, target, 2)
    assert sorted([way.store_vector, way.load_vector]) == [1, 8]
    check_conflicts(way, source, target, 2)


# Layouts by hand


def test_a_slice_is_spread_out_again_within_its_warp() -> None:
    """Sums of rows, each in eight lanes, to one element a lane: a shuffle."""
    rows = sliced(blocked((4, 64), (1, 8), (4, 8), (1, 1), (1, 0)), 1)
    target = blocked((4,), (1,), (32,), (1,), (0,))
    way = plan(rows, target, 4)
    assert isinstance(way, Shuffle)
    np.testing.assert_array_equal(carried_out(way, rows, target), flat(target))


def test_results_of_tensor_cores_are_stored_by_rows() -> None:
    for source in (mma_v2((64, 64), (2, 2)), wgmma_accumulator((64, 64), 64, (4, 1))):
        target = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))
        way = plan(source, target, 2)
        assert isinstance(way, Exchange)
        np.testing.assert_array_equal(carried_out(way, source, target), flat(target))
        check_conflicts(way, source, target, 2)


def test_a_matrix_of_ldmatrix_is_transposed_within_the_warp() -> None:
    swapped = LinearLayout.of(
        {name: [b[::-1] for b in bases] for name, bases in LDMATRIX_TILE.ins},
        dict(LDMATRIX_TILE.outs),
    )
    way = plan(LDMATRIX_TILE, swapped, 2)
    np.testing.assert_array_equal(carried_out(way, LDMATRIX_TILE, swapped), flat(swapped))
