"""Plans of reductions, carried out on a model of registers, lanes and warps with numpy's sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.layout import LinearLayout, shapes
from proton.layout.named import blocked, mma_v2, wgmma_accumulator
from proton.layout.reduction import Reduction, is_separable, plan_reduction
from tests.draws import examples
from tests.pure.layout_strategies import distributed, flat, indices, shapes_of_rank


def fold(values: np.ndarray, bits: list[int]) -> np.ndarray:
    """Adds registers that differ in these bits, the highest first; they are gone after."""
    for bit in sorted(bits, reverse=True):
        low = [r for r in range(len(values)) if not r >> bit & 1]
        values = values[low] + values[[r | 1 << bit for r in low]]
    return values


def across_warps(values: np.ndarray, plan: Reduction) -> np.ndarray:
    """Partial sums by memory: written where the source says, read where the target does."""
    assert plan.exchange is not None
    written, read = flat(plan.exchange.source), flat(plan.exchange.target)
    assert written.shape == values.shape
    memory = np.full(1 << plan.exchange.source.total_out_bits, np.nan)
    memory[written] = values
    assert not np.isnan(memory).any()
    np.testing.assert_array_equal(memory[written], values, "copies differ")
    gathered = fold(memory[read], list(range(plan.exchange.registers)))
    return butterfly(gathered, plan.exchange.lanes)


def butterfly(values: np.ndarray, lanes: tuple[int, ...]) -> np.ndarray:
    """Adds lanes that differ in these bits."""
    for bit in lanes:
        values = values + values[:, np.arange(32) ^ (1 << bit)]
    return values


def carried_out(source: LinearLayout, axis: int, tensor: np.ndarray) -> np.ndarray:
    """What each register of each thread holds in the end."""
    plan = plan_reduction(source, axis)
    values = tensor.ravel()[flat(source)].astype(float)
    values = fold(values, list(plan.registers))
    values = butterfly(values, plan.lanes)
    return across_warps(values, plan) if plan.warps else values


def check(source: LinearLayout, axis: int, seed: int) -> None:
    tensor = np.random.default_rng(seed).integers(-1000, 1000, [s for _, s in source.outs])
    result = shapes.reduce(source, axis)
    expected = np.asarray(tensor.sum(axis)).ravel()[flat(result)] if result.outs else tensor.sum()
    np.testing.assert_array_equal(
        carried_out(source, axis, tensor), np.broadcast_to(expected, indices(result).shape[:-1])
    )


@examples(200)
@given(st.data())
def test_every_thread_gets_the_sums_of_its_elements(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    shape, warps = data.draw(shapes_of_rank(rank)), data.draw(st.sampled_from([1, 2, 4, 8]))
    source = data.draw(distributed(shape, warps))
    check(source, data.draw(st.integers(0, rank - 1)), data.draw(st.integers(0, 1 << 30)))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "source",
    [mma_v2((64, 32), (2, 2)), wgmma_accumulator((64, 64), 64, (4, 1))],
    ids=["mma", "wgmma"],
)
def test_results_of_tensor_cores(source: LinearLayout, axis: int, rng: np.random.Generator) -> None:
    check(source, axis, int(rng.integers(1 << 30)))


def test_bits_are_told_apart_by_hand() -> None:
    """16 x 64: four columns a thread, 2 x 16 threads, 2 x 2 warps, rows in registers on top."""
    source = blocked((16, 128), (1, 4), (2, 16), (2, 2), (1, 0))
    columns = plan_reduction(source, 1)
    assert (columns.registers, columns.lanes, columns.warps) == ((0, 1), (0, 1, 2, 3), (0,))
    rows = plan_reduction(source, 0)
    assert (rows.registers, rows.lanes, rows.warps) == ((2, 3), (4,), (1,))


def test_no_memory_where_one_warp_has_the_axis() -> None:
    source = blocked((64, 32), (1, 4), (4, 8), (4, 1), (1, 0))
    assert plan_reduction(source, 1).exchange is None
    assert plan_reduction(source, 0).exchange is not None


@given(st.data())
def test_all_warps_are_in_the_lowest_register_bits_for_a_scan(data: st.DataObject) -> None:
    shape = data.draw(shapes_of_rank(2))
    source = data.draw(distributed(shape, 8))
    axis = data.draw(st.integers(0, 1))
    plan = plan_reduction(source, axis, ordered=True)
    if plan.exchange is None:
        assert not plan.warps
        return
    assert plan.exchange.source.out_size(f"dim{axis}") == 1 << len(plan.warps)
    part = indices(plan.exchange.target)[..., axis]
    registers = np.arange(len(part))[:, None, None]
    np.testing.assert_array_equal(
        part, np.broadcast_to(registers & ((1 << len(plan.warps)) - 1), part.shape)
    )
    assert plan.exchange.plan(4).elements == 1 << plan.exchange.source.total_out_bits


@pytest.mark.parametrize(
    ("warps", "registers", "lanes"), [(2, 1, 0), (4, 2, 0), (8, 2, 1), (32, 2, 3)]
)
def test_a_row_of_many_warps_is_gathered_by_lanes(warps: int, registers: int, lanes: int) -> None:
    """One access of 16 bytes of fp32 reads four partial sums; shuffles add the rest."""
    row = blocked((8192,), (4,), (32,), (warps,), (0,))
    exchange = plan_reduction(row, 0).exchange
    assert exchange is not None
    assert (exchange.registers, len(exchange.lanes)) == (registers, lanes)


@pytest.mark.parametrize("basis", [(2, 2), (3, 0)], ids=["two dimensions", "twice"])
def test_what_cannot_be_combined_in_place_is_refused(basis: tuple[int, int]) -> None:
    lanes = [(1, 0), (0, 1), basis, (2, 0), (0, 2)]
    crossed = LinearLayout.of(
        {"register": [], "lane": lanes, "warp": [], "block": []}, {"dim0": 4, "dim1": 4}
    )
    assert not is_separable(crossed, 0)
    with pytest.raises(ValueError, match=r"no layout to combine dimension 0 in"):
        plan_reduction(crossed, 0)
