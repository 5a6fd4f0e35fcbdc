"""The loops that a software pipeline over the tiles of a persistent kernel becomes.

    for tile in tl.range(program, tiles, programs, flatten=True):
        for k in range(...):
            use loads of (tile, k)
        store the tile

The copies do not stop where a tile ends: those that begin in its last iterations are of the next
tile, and go on while this one is stored. So both loops carry which copies come next: whether there
are any, k, the tile, and what the loads need of the tile. TMA's barriers count on from tile to
tile, as threads' groups of copies do; the last wait for these is behind the loop over tiles.

What the loads need of a tile (its row and column) the store needs, too, and it takes divisions.
Where the copies that come next when a tile begins are its own, or those of the tile behind it, the
numbers are known from before: they are carried as they are, and as they were one tile ago. That is
for products of warp groups and TMA: beside the operands of `mma`, or addresses, there are no
registers for it.
"""

from proton.dialect import ttng
from proton.dialect.emit import emit_if, number_of_iteration
from proton.dialect.mlir import Operation, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.walk import before, ops_named
from proton.schedule.loads import Tiles
from proton.schedule.pipelined_loop import (
    PipelinedLoop,
    clone,
    has_more,
    i32,
    is_less,
    is_more,
)
from proton.schedule.plan import Copies, Schedule

_BEHIND = 3  # values of the pipeline that come ahead of what the loads need of a tile


class PipelinedTiles(PipelinedLoop):
    """A loop inside of one over tiles."""

    def __init__(self, schedule: Schedule, copies: Copies, tiles: Tiles) -> None:
        super().__init__(schedule, copies)
        self.tiles = tiles
        self.first_known: list[Value] = []  # what loads need of the program's first tile
        self.carried = 0  # values of the loop over tiles, ahead of those of the pipeline

    def run(self) -> None:
        super().run()
        has_room = not self.by_threads and bool(ops_named(self.loop, ttng.WarpGroupDotOp))
        if self.tiles.live and has_room:
            self._keep_places()

    @property
    def around(self) -> Operation:
        return self.tiles.loop

    @property
    def count(self) -> int:
        return _BEHIND + len(self.tiles.live)

    def carry(self, initial: list[Value]) -> int:
        count = len(initial)
        self.carried = len(ForLoop(self.tiles.loop).init_args)
        self.tiles.loop = with_carried(self.tiles.loop, initial)
        outer = ForLoop(self.tiles.loop)
        super().carry(outer.iter_args[-count:])
        end = end_of(outer.body)
        for number, value in enumerate(list(self.loop.results)[-count:]):
            end.operands[len(end.operands) - count + number] = value
        return self.carried

    def prologue(self) -> list[Value]:
        outer, inner = ForLoop(self.tiles.loop), ForLoop(self.loop)
        first, (lower, upper, _) = outer.bounds[0], inner.bounds
        runs = is_less(outer.op, first, outer.bounds[1])
        runs = arith.AndIOp(runs, is_less(inner.op, lower, upper)).result
        self.first_known = self._of_tile(first)
        state = [runs, lower, first, *self.first_known]
        for number in range(self.distance):
            state = self.go_on(state, i32(number))
        return state

    def go_on(self, state: list[Value], write: Value) -> list[Value]:
        state, tokens = state[: self.count], state[self.count :]
        runs, k, tile, *known = state
        outer, inner = ForLoop(self.tiles.loop), ForLoop(self.loop)
        mapping = {inner.induction_var: k, outer.induction_var: tile}
        mapping |= dict(zip(self.tiles.live, known, strict=True))
        lower, upper, step = inner.bounds
        number = number_of_iteration(k, lower, step, 64)
        begun = self.copies(mapping, write, runs, lambda op: None, number)
        _, last, distance = outer.bounds

        def next_tile() -> list[Value]:
            following = arith.AddIOp(tile, distance).result
            is_there = arith.AndIOp(runs, has_more(tile, last, distance)).result
            return [is_there, lower, following, *self._of_tile(following)]

        def same_tile() -> list[Value]:
            return [runs, arith.AddIOp(k, step).result, tile, *known]

        following = emit_if(
            has_more(k, upper, step), [value.type for value in state], same_tile, next_tile
        )
        # The prologue collects tokens; the loop takes the oldest from those that it carries.
        return [*following, *tokens[len(tokens) == self.distance :], *begun]

    def _keep_places(self) -> None:
        """Has the loop's other ops take what the loads have computed of their tile."""
        count, place = len(self.tiles.live), self.carried + _BEHIND
        with before(self.tiles.loop):
            is_own, is_next = self._where_copies_are()
        self.tiles.loop = with_carried(self.tiles.loop, self.first_known)
        outer = ForLoop(self.tiles.loop)
        known, former = outer.iter_args[place : place + count], outer.iter_args[-count:]

        def choose() -> list[Value]:
            sides = zip(known, former, strict=True)
            return [arith.SelectOp(is_own, now, then).result for now, then in sides]

        with ir.InsertionPoint.at_block_begin(outer.body), self.tiles.loop.location:
            types = [value.type for value in known]
            kept = emit_if(
                arith.OrIOp(is_own, is_next).result,
                types,
                choose,
                lambda: self._of_tile(outer.induction_var),
            )
        for value, new in zip(self.tiles.live, kept, strict=True):
            value.replace_all_uses_with(new)
        end = end_of(outer.body)
        for number, value in enumerate(known):
            end.operands[len(end.operands) - count + number] = value

    def _where_copies_are(self) -> tuple[Value, Value]:
        """Whether the copies that come next when a tile begins, `distance` iterations on, are of
        this tile, and whether they are of the next one."""
        inner = ForLoop(self.loop)
        lower, upper, step = inner.bounds
        left, runs = arith.SubIOp(upper, lower).result, is_less(inner.op, lower, upper)

        def lasts(iterations: int) -> Value:
            passed = arith.MulIOp(step, arith.ConstantOp(step.type, iterations).result).result
            return arith.AndIOp(runs, is_more(left, passed)).result

        return lasts(self.distance), lasts(self.distance // 2)

    def _of_tile(self, tile: Value) -> list[Value]:
        """What loads need of a tile."""
        mapping = {ForLoop(self.tiles.loop).induction_var: tile}
        clone(self.tiles.ops, mapping)
        return [mapping[value] for value in self.tiles.live]
