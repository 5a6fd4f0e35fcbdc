"""The loops that a software pipeline over the tiles of a persistent kernel becomes.

    for tile in tl.range(program, tiles, programs, flatten=True):
        for k in range(...):
            use loads of (tile, k)
        store the tile

The copies do not stop where a tile ends: those that begin in its last iterations are of the next
tile, and go on while this one is stored. So both loops carry which copies come next: whether there
are any, k, the tile, and what the loads need of the tile. All are TMA's: their barriers count on
from tile to tile.
"""

from typing import Any

from proton.analysis.pipelining import Load, Tiles
from proton.dialect.emit import emit_if
from proton.dialect.mlir import Operation, Value, arith
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.transforms.pipelined_loop import PipelinedLoop, clone, has_more, i32, is_less


class PipelinedTiles(PipelinedLoop):
    """A loop inside of one over tiles."""

    def __init__(self, loop: Operation, loads: list[Load], stages: int, tiles: Tiles) -> None:
        super().__init__(loop, loads, stages)
        self.tiles = tiles

    @property
    def around(self) -> Operation:
        return self.tiles.loop

    def carry(self, initial: list[Any]) -> None:
        count = len(initial)
        self.tiles.loop = with_carried(self.tiles.loop, initial)
        outer = ForLoop(self.tiles.loop)
        super().carry(outer.iter_args[-count:])
        end = end_of(outer.body)
        for number, value in enumerate(list(self.loop.results)[-count:]):
            end.operands[len(end.operands) - count + number] = value

    def prologue(self) -> list[Value]:
        outer, inner = ForLoop(self.tiles.loop), ForLoop(self.loop)
        first, (lower, upper, _) = outer.bounds[0], inner.bounds
        runs = is_less(outer.op, first, outer.bounds[1])
        runs = arith.AndIOp(runs, is_less(inner.op, lower, upper)).result
        state = [runs, lower, first, *self._of_tile(first)]
        for number in range(self.distance):
            state = self.go_on(state, i32(number))
        return state

    def go_on(self, state: list[Value], write: Value) -> list[Value]:
        runs, k, tile, *known = state
        outer, inner = ForLoop(self.tiles.loop), ForLoop(self.loop)
        mapping = {inner.induction_var: k, outer.induction_var: tile}
        mapping |= dict(zip(self.tiles.live, known, strict=True))
        self.copies(mapping, write, runs, lambda op: None)
        lower, upper, step = inner.bounds
        _, last, distance = outer.bounds

        def next_tile() -> list[Value]:
            following = arith.AddIOp(tile, distance).result
            is_there = arith.AndIOp(runs, has_more(tile, last, distance)).result
            return [is_there, lower, following, *self._of_tile(following)]

        def same_tile() -> list[Value]:
            return [runs, arith.AddIOp(k, step).result, tile, *known]

        return emit_if(
            has_more(k, upper, step), [value.type for value in state], same_tile, next_tile
        )

    def _of_tile(self, tile: Value) -> list[Value]:
        """What loads need of a tile."""
        mapping = {ForLoop(self.tiles.loop).induction_var: tile}
        clone(self.tiles.ops, mapping)
        return [mapping[value] for value in self.tiles.live]
