"""Exchanges of registers that keep lanes apart in shared memory, on a model of its banks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.conversion.ttg_to_llvm.core.shared_memory import contiguous
from proton.layout import LinearLayout
from proton.layout.banks import apart, exchanges, wavefronts
from proton.layout.named import shared_nvmma, shared_swizzled, wgmma_accumulator
from tests.draws import examples
from tests.pure.layout_strategies import distributed, shapes_of_rank
from tests.pure.test_layout_conversion import WARP, worst_bank


def accesses(places: LinearLayout, vector: int) -> np.ndarray:
    """The first offset of each access: (accesses, lanes, warps)."""
    offsets = places.table("register", "lane", "warp")[..., 0]
    return offsets[offsets[:, 0, 0] % vector == 0]


@st.composite
def places_in_memory(draw: st.DrawFn) -> LinearLayout:
    shape = draw(shapes_of_rank(2))
    chunk, phases = (draw(st.sampled_from([1, 2, 4, 8])) for _ in range(2))
    chunk = min(chunk, shape[1])
    phases = min(phases, shape[1] // chunk)
    memory = shared_swizzled(shape, chunk, draw(st.sampled_from([1, 2])), phases)
    return draw(distributed(shape, 4)).invert_and_compose(memory)


@examples(150)
@given(places_in_memory(), st.sampled_from([1, 2, 4, 8]))
def test_exchanges_lose_nothing_and_keep_lanes_apart(
    places: LinearLayout, element_bytes: int
) -> None:
    vector = contiguous(places, element_bytes)
    ways = exchanges(places, vector, element_bytes)
    moved = apart(places, ways)
    before, after = accesses(places, vector), accesses(moved, vector)
    assert np.array_equal(np.sort(before, 0), np.sort(after, 0)), "a thread's own offsets"
    registers = np.arange(len(places.table("register")))
    for lane in range(WARP):
        flip = sum(1 << bit for own, bit in ways if lane >> own & 1)
        assert np.array_equal(
            moved.table("register", "lane")[registers, lane],
            places.table("register", "lane")[registers ^ flip, lane],
        )
    bits = [basis[0] for basis in places.bases("lane")]
    width = vector * element_bytes
    for old, new in zip(before, after, strict=True):
        worst = worst_bank(old, element_bytes, vector)
        assert worst_bank(new, element_bytes, vector) * 2 ** len(ways) == worst
    assert wavefronts(bits, width, element_bytes) >= worst_bank(before[0], element_bytes, vector)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_float32_accumulators_are_stored_for_tma_without_conflict(swizzle: int) -> None:
    shape = (64, 64)
    layout = wgmma_accumulator(shape, 64, (4, 1))
    places = layout.invert_and_compose(shared_nvmma(shape, 4, swizzle))
    ways = exchanges(places, 2, 4)
    worst = [worst_bank(starts, 4, 2) for starts in accesses(apart(places, ways), 2)]
    assert set(worst) == {1}
    assert len(ways) == (swizzle > 32)
