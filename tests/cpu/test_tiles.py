"""The tile that slices belong to: the value of the scope around them that says it."""

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import Run
from proton.base.errors import ProtonError
from proton.trace.model import PayloadField, Scope
from proton.trace.tiles import NO_TILE
from tests.pure.synthetic import Record, Written, kernel, pack_launch, random_run, run, ticks


@proton.jit
def persistent(x_ptr, out_ptr, tiles, BLOCK: tl.constexpr):
    with proton.scope("whole"):
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            with proton.scope("tile", tile=tile):
                total = tl.zeros((BLOCK,), tl.float32)
                for k in range(3):
                    with proton.scope("load"):
                        total += tl.load(x_ptr + (3 * tile + k) * BLOCK + tl.arange(0, BLOCK))
                with proton.scope("store"):
                    tl.store(out_ptr + tile * BLOCK + tl.arange(0, BLOCK), total)


def test_the_tiles_of_a_persistent_kernel(rng: np.random.Generator) -> None:
    """Each tile is found in whatever program it ran, with all that it did."""
    x = rng.standard_normal((7, 3, 32)).astype(np.float32)
    out = np.zeros((7, 32), np.float32)
    with proton.profile("tiles") as found:
        persistent[(3,)](x, out, 7, BLOCK=32)
    assert np.allclose(out, x.sum(1))
    frame = found.frame
    slices = frame[frame["kind"] == "scope"]
    assert set(slices["tile"][slices["name"] == "whole"]) == {NO_TILE}
    inner = slices[slices["name"] != "whole"]
    for tile, own in inner.groupby("tile"):
        assert set(own["program"]) == {tile % 3}
        assert own["name"].astype(str).value_counts().to_dict() == {
            "tile": 1,
            "load": 3,
            "store": 1,
        }
    assert sorted(set(inner["tile"])) == list(range(7))
    table = found.stats(("tile", "name"))
    assert table.set_index(["tile", "name"])["count"].to_dict() == {
        (tile, name): count for tile in range(7) for name, count in
        (("tile", 1), ("load", 3), ("store", 1))
    }  # fmt: skip


def nest(rng: np.random.Generator, low: int, high: int, depth: int = 0) -> list[Record]:
    """Slices in each other, inner ones first; those of scope 0 have a tile."""
    cuts = np.sort(rng.choice(np.arange(low, high), 4, replace=False)).tolist()
    found = []
    for start, end in ((cuts[0], cuts[1]), (cuts[2], cuts[3])):
        if depth < 4 and end - start > 20:
            found += nest(rng, start, end, depth + 1)
        scope = int(rng.integers(2))
        value = int(rng.integers(9)) if scope == 0 else 0
        found.append(Record(ticks(start), ticks(end), scope, 0, None, (value,)))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_innermost_slice_with_a_tile_counts(seed: int) -> None:
    """Random nests of slices with and without a tile, against a search of all slices."""
    rng = np.random.default_rng(seed)
    tile = (PayloadField(name="tile", kind="int"),)
    table = (Scope(name="a", path="a", payload=tile), Scope(name="b", path="b"))
    units = [Written([nest(rng, 1000, 50_000)]) for _ in range(3)]
    owner = kernel(table=table, slots=1)
    found = Run(run([owner], [pack_launch(owner, (3, 1, 1), 256, units)])).records
    tiles = found.tile
    assert tiles is not None
    for row in range(tiles.size):
        around = [
            other for other in range(tiles.size)
            if found.track[other] == found.track[row] and found.scope[other] == 0
            and found.start_ticks[other] <= found.start_ticks[row]
            and found.end_ticks[other] >= found.end_ticks[row]
        ]  # fmt: skip
        inner = min(around, key=lambda n: found.end_ticks[n] - found.start_ticks[n], default=None)
        want = NO_TILE if inner is None else int(found.payload[inner, 0])
        assert tiles[row] == want


def test_runs_without_tiles_say_how_to_have_them() -> None:
    for by in ("tile", ("kernel", "tile")):
        with pytest.raises(ProtonError, match=r"open one for each tile, with proton\.scope"):
            Run(random_run(0)).stats(by)
    assert "tile" not in Run(random_run(0)).frame
