"""Layouts of reshaped, broadcast, joined and reduced tensors, by index arithmetic in numpy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.layout import LinearLayout, shapes
from proton.layout.named import blocked, dim
from tests.draws import examples
from tests.pure.layout_strategies import Shape, distributed, flat, indices, shapes_of_rank

WARPS = st.sampled_from([1, 2, 4, 8])


@st.composite
def layouts(draw: st.DrawFn, min_rank: int = 1) -> LinearLayout:
    shape = draw(shapes_of_rank(draw(st.integers(min_rank, 3))))
    return draw(distributed(shape, draw(WARPS)))


def sizes(layout: LinearLayout) -> Shape:
    return tuple(size for _, size in layout.outs)


def named_in_order(layout: LinearLayout) -> bool:
    return layout.out_names == tuple(map(dim, range(len(layout.outs))))


@given(layouts(), st.data())
def test_expand_dims_adds_a_zero(source: LinearLayout, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(source.outs)))
    result = shapes.expand_dims(source, axis)
    np.testing.assert_array_equal(indices(result), np.insert(indices(source), axis, 0, axis=-1))
    assert sizes(result) == (*sizes(source)[:axis], 1, *sizes(source)[axis:])
    assert named_in_order(result)
    assert shapes.expand_dims_source(result, axis) == source


@given(layouts(), st.data())
def test_trans_permutes_indices(source: LinearLayout, data: st.DataObject) -> None:
    order = tuple(data.draw(st.permutations(range(len(source.outs)))))
    result = shapes.trans(source, order)
    np.testing.assert_array_equal(indices(result), indices(source)[..., list(order)])
    assert sizes(result) == tuple(sizes(source)[axis] for axis in order)
    assert named_in_order(result)
    assert shapes.trans_source(result, order) == source


def test_trans_of_three_dimensions_is_not_its_own_inverse() -> None:
    source = blocked((2, 4, 8), (1, 1, 1), (1, 4, 8), (2, 1, 1), (2, 1, 0))
    result = shapes.trans(source, (1, 2, 0))
    assert sizes(result) == (4, 8, 2)
    assert shapes.trans_source(result, (1, 2, 0)) == source
    assert shapes.trans_source(result, (2, 0, 1)) != source


@given(layouts(), st.data())
def test_reshape_keeps_row_major_numbers(source: LinearLayout, data: st.DataObject) -> None:
    bits = source.total_out_bits
    cuts = sorted(data.draw(st.lists(st.integers(0, bits), max_size=3)))
    ends = [0, *cuts, bits]
    shape = tuple(1 << (b - a) for a, b in itertools.pairwise(ends))
    result = shapes.reshape(source, shape)
    assert sizes(result) == shape
    assert named_in_order(result)
    np.testing.assert_array_equal(flat(result), flat(source))
    assert shapes.reshape(result, sizes(source)) == source


@given(layouts(), st.data())
def test_every_thread_has_what_it_broadcasts(result: LinearLayout, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.sampled_from([1, size])) for size in sizes(result))
    source = shapes.broadcast_source(result, shape)
    assert sizes(source) == shape
    needed = np.where(np.array(shape) > 1, indices(result), 0)
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    needed, held = needed @ strides, flat(source)
    for lane in (0, 5, 31):
        for warp in range(needed.shape[2]):
            own = held[:, lane, warp]
            assert set(own) == set(needed[:, lane, warp])
            assert len(set(own)) == len(own), "a register holds a copy"


@given(layouts())
def test_a_join_alternates_in_registers(source: LinearLayout) -> None:
    result = shapes.join(source)
    joined, own = indices(result), indices(source)
    assert sizes(result) == (*sizes(source), 2)
    for side in (0, 1):
        np.testing.assert_array_equal(joined[side::2, ..., :-1], own)
        assert (joined[side::2, ..., -1] == side).all()
    assert shapes.split_bit(result) == 0
    assert shapes.split(result) == source


@given(layouts(), st.data())
def test_a_split_takes_every_register_by_its_last_index(
    base: LinearLayout, data: st.DataObject
) -> None:
    """The bit of the last dimension may be any register bit."""
    joined = shapes.join(base)
    bit = data.draw(st.integers(0, joined.in_bits("register") - 1))
    registers = list(joined.bases("register"))
    registers.insert(bit, registers.pop(0))
    ins = {n: (registers if n == "register" else bases) for n, bases in joined.ins}
    source = LinearLayout.of(ins, dict(joined.outs))
    assert shapes.split_bit(source) == bit
    whole, half = indices(source), indices(shapes.split(source))
    for side in (0, 1):
        own = [r for r in range(len(whole)) if r >> bit & 1 == side]
        assert (whole[own][..., -1] == side).all()
        np.testing.assert_array_equal(whole[own][..., :-1], half)


def test_a_split_refuses_a_last_dimension_across_threads() -> None:
    lanes = blocked((16, 2), (1, 1), (16, 2), (1, 1), (1, 0))
    assert shapes.split_bit(lanes) is None
    with pytest.raises(ValueError, match="not in a thread's registers"):
        shapes.split(lanes)
    crossed = LinearLayout.of(
        {"register": [(0, 1), (1, 1)], "lane": [(0, 0)] * 5, "warp": [], "block": []},
        {"dim0": 2, "dim1": 2},
    )
    assert shapes.split_bit(crossed) is None


@given(layouts(), st.data())
def test_a_reduction_leaves_each_thread_its_other_indices(
    source: LinearLayout, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(source.outs) - 1))
    result = shapes.reduce(source, axis)
    kept, left = indices(source), indices(result)
    assert sizes(result) == tuple(np.delete(sizes(source), axis))
    for lane in (0, 9, 31):
        for warp in range(kept.shape[2]):
            own = {tuple(np.delete(i, axis)) for i in kept[:, lane, warp]}
            found = [tuple(i) for i in left[:, lane, warp]]
            assert own == set(found)
            assert len(found) == len(own)


@given(st.integers(1, 3), st.data())
def test_vectors_then_lanes_then_warps_follow_the_order(rank: int, data: st.DataObject) -> None:
    shape = data.draw(shapes_of_rank(rank))
    order = tuple(data.draw(st.permutations(range(rank))))
    vector, warps = data.draw(st.sampled_from([1, 2, 4, 16])), data.draw(WARPS)
    layout = shapes.vectorized(shape, order, vector, warps)
    taken = min(vector, shape[order[0]])
    total = int(np.prod(shape))
    numbers = flat(layout, order)
    register, lane, warp = np.ix_(*(np.arange(n) for n in numbers.shape))
    expected = register % taken + taken * (lane + 32 * warp + 32 * warps * (register // taken))
    # Threads beyond the tensor hold copies. Registers beyond a vector may be in any order.
    expected = expected % total
    np.testing.assert_array_equal(numbers[:taken], expected[:taken])
    np.testing.assert_array_equal(np.sort(numbers, axis=0), np.sort(expected, axis=0))
    if vector == 1 and order == tuple(reversed(range(rank))):
        assert shapes.default(shape, warps) == layout


@examples(200)
@given(st.integers(1, 3), st.data())
def test_a_scan_runs_through_registers_then_lanes_then_warps(
    rank: int, data: st.DataObject
) -> None:
    shape, warps = data.draw(shapes_of_rank(rank, most=12)), data.draw(WARPS)
    axis = data.draw(st.integers(0, rank - 1))
    layout = shapes.scan(shape, axis, warps)
    assert sizes(layout) == shape
    assert layout.is_surjective
    where = indices(layout)
    others = np.delete(where, axis, axis=-1)
    # Of places of one row that are not copies, a later one (warp, then lane, then register) has a
    # later element.
    rows: dict[tuple[int, ...], list[int]] = {}
    registers, lanes, groups = where.shape[:3]
    seen = set()
    for warp in range(groups):
        for lane in range(lanes):
            for register in range(registers):
                place = tuple(where[register, lane, warp])
                if place not in seen:
                    seen.add(place)
                    row = tuple(others[register, lane, warp])
                    rows.setdefault(row, []).append(int(place[axis]))
    assert all(row == list(range(shape[axis])) for row in rows.values())
    assert len(rows) == int(np.prod(np.delete(shape, axis)))


def test_a_narrowed_layout_is_that_of_narrower_vectors() -> None:
    """But for the numbers of its registers."""
    for shape, order in (((64, 64), (1, 0)), ((32, 128), (0, 1)), ((4096,), (0,))):
        for warps, wide, count in itertools.product((1, 2, 4), (8, 16), (1, 2, 4)):
            layout = shapes.vectorized(shape, order, wide, warps)
            found = shapes.narrowed(layout, count)
            wanted = shapes.vectorized(shape, order, count, warps)
            assert found.bases("lane") == wanted.bases("lane")
            assert found.bases("warp") == wanted.bases("warp")
            registers, run = found.bases("register"), count.bit_length() - 1
            assert registers[:run] == wanted.bases("register")[:run]
            assert sorted(registers) == sorted(wanted.bases("register"))
            assert shapes.narrowed(layout, wide) == layout
    with_copies = shapes.vectorized((64,), (0,), 8, 4)
    assert shapes.narrowed(with_copies, 4) == with_copies
