"""Gathers within a warp, carried out on a model of registers, lanes and warps."""

import numpy as np

from proton.layout import LinearLayout
from proton.layout.gather import gather_in_warp
from proton.layout.named import blocked, sliced
from tests.tables import check_rows


def named(registers: str, lanes: str, warps: str = "") -> LinearLayout:
    """A layout by what each bit of a register's, a lane's, a warp's number is: `i1` bit 1 of the
    first index, `j0` bit 0 of the second, `-` a copy."""
    counts = {"i": 0, "j": 0}

    def basis(name: str) -> list[int]:
        if name == "-":
            return [0, 0]
        bit = 1 << int(name[1:])
        counts[name[0]] = max(counts[name[0]], 2 * bit)
        return [bit if name[0] == axis else 0 for axis in "ij"]

    ins = {
        name: [basis(bit) for bit in words.split()]
        for name, words in (("register", registers), ("lane", lanes), ("warp", warps))
    }
    return LinearLayout.of(ins, {"dim0": counts["i"], "dim1": counts["j"]})


def test_every_result_comes_from_where_its_index_says(rng: np.random.Generator) -> None:
    def check(source: LinearLayout, target: LinearLayout, axis: int, count: int) -> None:
        way = gather_in_warp(source, target, axis)
        assert (way is not None) == (count > 0)
        if way is None:
            return
        at, held = (
            target.table("register", "lane", "warp"),
            source.table("register", "lane", "warp"),
        )
        own = sum(1 << bit for bit in range(target.in_bits("lane")))
        own &= ~sum(1 << bit for _, bit in way.lanes)
        for register, lane, warp in np.ndindex(at.shape[:3]):
            index = int(rng.integers(source.outs[axis][1]))
            sources = way.sources[register]
            assert len(sources) == count
            other = lane & own
            for first, to, bits in way.runs:
                other |= (index >> first & (1 << bits) - 1) << to
            number = sum((index >> bit & 1) << n for n, bit in enumerate(way.registers))
            wanted = at[register, lane, warp].copy()
            wanted[axis] = index
            assert (held[sources[number], other, warp] == wanted).all()

    lanes = "i1 i0 j0 i3 i2"
    rows = blocked((8, 64), (1, 2), (1, 32), (4, 1), (1, 0))
    check_rows(check, [
        (named("j1", lanes, "j2"), named("j1", lanes, "j2"), 0, 1),
        (named("i4 j1", lanes, "j2"), named("j1 i4", lanes, "j2"), 0, 2),
        (named("i4 j1", lanes, "j2"), named("j1", "i3 i2 j0 i0 i1", "j2"), 0, 2),
        (named("i4 j1", lanes, "j2"), named("j1 i4 i5 i6", "- i2 j0 i0 i1", "j2"), 0, 2),
        (named("i4 j1 i5", lanes), named("i4 j1 i5", lanes), 0, 0),  # four of a lane
        (named("j1", lanes, "i4"), named("j1", lanes, "i4"), 0, 0),  # other warps have some
        (named("j1", lanes, "j2"), named("j2", lanes, "j1"), 0, 0),
        (named("j1", lanes), named("j1", "i1 j0 i0 i3 i2"), 0, 0),
        (named("j1", lanes), named("j1", lanes), 1, 2),
        (named("", "i0 i1 i2 - -", "j0"), named("", "i0 i1 - - -", "j0"), 0, 1),
        (rows, rows, 1, 2),
        (rows, rows, 0, 0),
        (sliced(rows, 0), sliced(rows, 0), 0, 2),
    ])  # fmt: skip


def test_bits_of_an_index_are_together_where_they_can_be() -> None:
    way = gather_in_warp(*2 * (named("i0", "j0 i1 i2 i4 i3"),), 0)
    assert way is not None
    assert way.runs == [(1, 1, 2), (3, 4, 1), (4, 3, 1)]
    assert way.sources == ((0, 1), (0, 1))
