"""Where the records of scopes go: around the work, once its order is final.

From the front end on, an op's membership in scopes travels in its location
(`loc("scope:outer/inner"(...))`). `detach-records` takes the front end's records out of the way at
the start; `place-records` puts them back when the work has its final order, which on the CPU is
one of loops over buffers and on a GPU one of ops on tiles: it brackets each maximal run of ops of
a scope in each block, outer scopes first. So no record stands in the way of an optimisation, and
a slice shows when the work ran:

    linalg.generic {add, loc load and store}   ->   record start "load + store"
                                                    linalg.generic
                                                    record end "load + store"

Work that was fused across scopes is one slice with all their names in the order of the source.

A scope that is opened once may be several such slices, its *pieces*. Each says which opening it is
of (`ENTRIES`), from which the scope table tells them apart (`number_pieces`).

Work that a pass begins for another iteration than the one that runs (`WorkIteration`) is a slice of
its own, with the number of that iteration. Payload and conditions are of the iteration that runs,
so it has none.

A scope with payload or a condition (`when`) begins a slice of its own each time it is entered. The
slice is kept where the condition holds, and one that several scopes share where that of any does.
"""

import functools
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, proton, traits, ttg
from proton.dialect.asynchronous import Retires, Where, WorkIteration, following_loop
from proton.dialect.attributes import AUTO_SCOPES, SCOPE_LINES, SCOPES, SCOPES_AROUND, TILE_LOOP
from proton.dialect.builtin import i32_attr, string_attr, strings_attr
from proton.dialect.mlir import Attribute, Block, Location, Module, Operation, Value, ir
from proton.dialect.proton import RecordOp
from proton.dialect.records import (
    BEGUN,
    ENTRIES,
    ITERATION_FIELD,
    WAITS,
    Origin,
    conditional,
    is_start,
    iteration_of,
    scope_of,
)
from proton.dialect.regions import ForLoop
from proton.dialect.scopes import Paths, scope_entries, scope_paths
from proton.dialect.traits import has
from proton.dialect.upstream import arith, func, linalg, memref, scf
from proton.dialect.walk import all_ops, before, defining_op, functions, ops_named
from proton.passes import Pass, register
from proton.trace.scope_path import ScopePath, fused


@register
@dataclass(frozen=True)
class PlaceRecords(Pass):
    """Brackets the work of each scope by records, block by block; `work` says what work is: loops
    over "buffers", or ops on "tiles"."""

    name: ClassVar[str] = "place-records"

    work: str = "buffers"

    def run(self, module: Module) -> None:
        for function in functions(module):
            if SCOPES not in function.attributes:
                continue
            order = [name.value for name in function.attributes[SCOPES]]
            if not order:
                continue
            placeholders = ops_named(function, proton.RecordOp)
            placer = _Placer(order, _locations(function), placeholders, WORK[self.work])
            placer.origins = _origins(function)
            around = function.attributes.get(SCOPES_AROUND)
            placer.place_block(function.regions[0].blocks[0], around.value if around else "")
            for op in placeholders:
                op.erase()


def _origins(function: Operation) -> dict[str, Origin]:
    """What the scopes are of that the compiler made."""
    made = function.attributes.get(AUTO_SCOPES, ())
    entries = [made[number] for number in range(len(made))]
    return {entry.name: Origin.read(entry.attr) for entry in entries}


def _locations(function: Operation) -> list[Location]:
    """Where the scopes of a function are opened, as far as that is noted."""
    if SCOPE_LINES not in function.attributes:
        return []
    pairs = (list(pair) for pair in function.attributes[SCOPE_LINES])
    return [ir.Location.file(file.value, line.value, 0) for file, line in pairs]


_Payload = dict[str, tuple[Value, Attribute]]  # by name: the value, and its kind


@dataclass(frozen=True)
class _Item:
    """An op of a block that takes time: its scope paths, relative to the enclosing run.

    `glue` is an op that takes next to no time, or takes it only for blocks that a mask cuts: it
    joins a neighbouring run of its scopes. A view that finds none is a run of its own. `entered`
    are the scopes with payload or conditions that were entered since the item before. `iteration`
    is the iteration that its work is of, None where that is any; of its scopes the `around`
    outermost are around the loop, and know no iterations.
    """

    op: Operation
    paths: Paths
    glue: bool
    entered: Paths
    iteration: WorkIteration | None = None
    around: int = 0

    def relative(self) -> "_Item":
        """The item inside the run of its (one) first component."""
        rest, entered = (
            frozenset(path.rest for path in paths) - {""} for paths in (self.paths, self.entered)
        )
        return _Item(self.op, rest, self.glue, entered, self.iteration, max(0, self.around - 1))

    @property
    def own_iteration(self) -> WorkIteration | None:
        """The iteration as far as its outermost scope knows of iterations."""
        return None if self.around else self.iteration


def _first_components(paths: Paths) -> frozenset[str]:
    return frozenset(path.first for path in paths)


def _is_glue(op: Operation) -> bool:
    """A scalar's access or initialisation, or an `scf.if` that chooses a view or writes a cut
    block back."""
    if isa(op, linalg.FillOp, memref.LoadOp, memref.StoreOp):
        memory = op.operands[0 if isa(op, memref.LoadOp) else 1]
        return memory.type.rank == 0
    if not isa(op, scf.IfOp):
        return False
    if len(op.results):
        return all(isinstance(result.type, ir.MemRefType) for result in op.results)
    own = scope_paths(op.location)
    inner = [scope_paths(other.location) for other in all_ops(op)]
    is_one_sided = len(list(op.regions[0].blocks[0].operations)) == 1
    # One that the user wrote, such as what follows a return under a condition, has scopes inside.
    return is_one_sided and bool(own) and all(paths in (own, frozenset()) for paths in inner)


def _is_flow(op: Operation) -> bool:
    """Whether the ops in an op's regions have records of their own."""
    return op.name.startswith("scf.") or isa(op, ttg.WarpSpecializeOp)


_NO_LOOPS = ("scf.", "math.", "func.return")  # take no time by themselves, where buffers are


def _does_work(op: Operation) -> bool:
    if not has(op, traits.NoInstruction, traits.Records) and not op.name.startswith(_NO_LOOPS):
        return True
    return bool(op.regions) and any(_does_work(inner) for inner in all_ops(op))


def _is_product(op: Operation) -> bool:
    """Whether an op is loops over register tiles: one piece of work."""
    if not isa(op, scf.ForOp):
        return False
    return any(TILE_LOOP in view.operation.attributes for view in ForLoop(op).body.operations)


def work_paths(op: Operation) -> Paths:
    """The scopes whose work an op does: its payload's, and those of memory it reads in place. The
    tiles of a product may copy a share of what it reads next."""
    paths = frozenset[ScopePath]()
    if _is_product(op):
        for inner in all_ops(op):
            paths = paths.union(scope_paths(inner.location), *map(_view_paths, inner.operands))
        return paths
    if op.name.startswith("linalg."):
        body = [inner.operation for inner in op.regions[0].blocks[0].operations]
        paths = paths.union(*(scope_paths(inner.location) for inner in body))
        paths = paths.union(*(_view_paths(operand) for operand in op.operands))
    return paths or scope_paths(op.location)


def _view_paths(value: Value) -> Paths:
    """The scopes of a view of the caller's memory; none for a local buffer."""
    op = defining_op(value)
    if op is None or not (has(op, traits.View) or (isa(op, scf.IfOp) and _is_glue(op))):
        return frozenset()
    if isa(op, memref.CastOp):
        return _view_paths(op.operands[0])
    return scope_paths(op.location)


def _is_for_records(op: Operation) -> bool:
    """Whether only records use what an op computes: it is payload."""
    users = [use.owner.operation for result in op.results for use in result.uses]
    return all(
        has(user, traits.Records)
        or (user.name.startswith(("arith.", "math.")) and _is_for_records(user))
        for user in users
    )


class BufferIterations:
    """What takes time where the work is loops over buffers."""

    @staticmethod
    def iteration(op: Operation) -> WorkIteration | None:
        return None

    does_work = staticmethod(_does_work)
    is_glue = staticmethod(_is_glue)
    paths = staticmethod(work_paths)


class TileIterations:
    """What takes time where the work is ops on tiles: those, but for the arithmetic of indices,
    and floating point of scalars."""

    @staticmethod
    def iteration(op: Operation) -> WorkIteration | None:
        """Of address arithmetic and the like none: it goes with its neighbours."""
        is_any = has(op, traits.Pure, traits.AllocatesShared) or len(op.regions)
        return WorkIteration.of(op) or (None if is_any else WorkIteration(0))

    @staticmethod
    def does_work(op: Operation) -> bool:
        if _is_flow(op):
            return any(TileIterations.does_work(inner) for inner in all_ops(op))
        if not has(op, traits.TileWork):
            return False
        if not op.name.startswith(("arith.", "math.")):
            return True
        types = [value.type for value in [*op.results, *op.operands]]
        if any(isinstance(t, ir.RankedTensorType) for t in types):
            return True
        return any(isinstance(t, ir.FloatType) for t in types) and not _is_for_records(op)

    @staticmethod
    def is_glue(op: Operation) -> bool:
        return False

    @staticmethod
    def paths(op: Operation) -> Paths:
        return scope_paths(op.location)


Work = type[BufferIterations] | type[TileIterations]
WORK: dict[str, Work] = {"buffers": BufferIterations, "tiles": TileIterations}


class _Placer:
    """Places the records of one function."""

    def __init__(
        self,
        paths: list[str],
        locations: list[Location],
        placeholders: list[Operation],
        work: Work,
    ) -> None:
        self.order, self.work = {path: number for number, path in enumerate(paths)}, work
        self.locations = dict(zip(paths, locations, strict=False))
        self.placeholders = [op for op in placeholders if is_start(op)]
        self.conditional = conditional(self.placeholders)
        self.entries = {
            record: scope_of(record)
            for record in self.placeholders
            if scope_of(record) in self.conditional or len(record.opview.payload)
        }
        self.origins: dict[str, Origin] = {}  # of scopes that the compiler made
        self.decided: set[Operation] = set()  # placeholders whose conditions some run has

    def place_block(self, block: Block, context: str) -> None:
        """Places records in a block whose surroundings belong to the scope path `context`."""
        items, nested = [], []
        entered: set[ScopePath] = set()
        for op in [view.operation for view in block.operations]:
            if op in self.entries:
                entered.add(self.entries[op])
            if not self.work.does_work(op):
                continue
            glue = self.work.is_glue(op)
            paths = self.work.paths(op)
            begun, iteration = _below(frozenset(entered), context), self.work.iteration(op)
            below = _below(paths, context)
            around = self._around(op, below, context) if iteration and iteration.is_before else 0
            items.append(_Item(op, below, glue, begun, iteration, around))
            entered.clear()
            if _is_flow(op) and not glue and not _is_product(op):
                nested.append((op, next(iter(paths)) if len(paths) == 1 else context))
        for op, inner_context in nested:
            for region in op.regions:
                for inner in region.blocks:
                    self.place_block(inner, inner_context)
        self._place_runs(items, context)

    def _around(self, op: Operation, paths: Paths, context: str) -> int:
        """How many of the outermost scopes of an op are around the loop that it runs ahead of."""
        loop = following_loop(op)
        around = frozenset[ScopePath]() if loop is None else self.work.paths(loop)
        inside = [
            len(path.parts)
            for path in _below(around, context)
            if all(own.below(path) != own or own == path for own in paths)
        ]
        return max(inside, default=0)

    def _place_runs(self, items: list[_Item], prefix: str) -> None:
        for components, run in _runs(items):
            if len(components) == 1:
                (component,) = components
                path = ScopePath.of((prefix, component))
                # The outer scope first: what is placed later stands closer to the work.
                self._bracket(run, path, [path])
                self._place_runs([item.relative() for item in run], path)
            else:
                paths = frozenset().union(*(item.paths for item in run))
                absolute = sorted(
                    (path.inside(prefix) for path in paths),
                    key=lambda path: (self.order.get(path, len(self.order)), path),
                )
                self._bracket(run, fused(absolute).inside(prefix), absolute)

    def _bracket(self, run: list[_Item], path: ScopePath, members: list[ScopePath]) -> None:
        """Records right before a run's first op and right after its last."""
        first, last = run[0].op, run[-1].op
        iteration = _iteration_of(run)
        is_other = iteration is not None and iteration.is_other
        is_moved = iteration is not None and iteration.is_moved
        payload = self._payload(first, members) if is_moved or not is_other else {}
        if iteration is not None and is_other:
            payload |= self._number(first, members, iteration)
        scope, empty = string_attr(path), ir.ArrayAttr.get([])
        # The location is that of the scope, also where its first op is of a function it calls.
        with ir.InsertionPoint(first), self.locations.get(members[0], first.location):
            values = [value for value, _ in payload.values()]
            kinds = ir.ArrayAttr.get([kind for _, kind in payload.values()])
            start = RecordOp(values, scope, string_attr("start"), strings_attr(payload), kinds)
            start.operation.attributes["members"] = ir.ArrayAttr.get(
                [string_attr(member) for member in members]
            )
            if all(found := [_entry(run, member) for member in members]):
                start.operation.attributes[ENTRIES] = ir.ArrayAttr.get(list(map(i32_attr, found)))
            busy = [item.op for item in run if not _is_number(item.op)]
            if busy and all(Retires.of(op) is not None for op in busy):
                start.operation.attributes[WAITS] = ir.UnitAttr.get()
            if iteration is not None and is_other:
                if not is_moved:
                    start.operation.attributes[BEGUN] = ir.UnitAttr.get()
                if is_moved or iteration.where is Where.INSIDE:
                    iteration.write(start.operation)
            origins = {self.origins.get(member) for member in members}
            if len(origins) == 1 and (origin := origins.pop()) is not None:
                origin.write(start.operation)
        with ir.InsertionPoint.after(last), last.location:
            # The condition stands here because a run may begin before all its scopes are entered.
            when = self._condition(last, members) if is_moved or not is_other else None
            RecordOp([], scope, string_attr("end"), empty, empty, when=when)

    def _number(
        self, op: Operation, members: list[ScopePath], iteration: WorkIteration
    ) -> _Payload:
        """The iteration of a run that begins at `op`, as payload."""
        placeholders = [p for member in members for p in self._placeholders_before(op, member)]
        known = iteration_of(placeholders[-1]) if placeholders else None
        with before(op):
            number = iteration.number(op, known)
        return {} if number is None else {ITERATION_FIELD: (number, string_attr("int"))}

    def _payload(self, op: Operation, members: list[ScopePath]) -> _Payload:
        """The payload that the members' placeholders hold, where those come before `op`."""
        payload: _Payload = {}
        for member in members:
            placeholders = self._placeholders_before(op, member)
            if not placeholders:
                continue
            placeholder = placeholders[-1]
            attributes = placeholder.attributes["names"], placeholder.attributes["kinds"]
            for value, name, kind in zip(placeholder.opview.payload, *attributes, strict=True):
                text = name.value
                if text == ITERATION_FIELD:
                    payload.setdefault(text, (value, kind))
                    continue
                if text in payload and payload[text][0] != value:  # of two fused scopes
                    text = f"{member.name}.{text}"
                payload[text] = value, kind
        return payload

    def _condition(self, op: Operation, members: list[ScopePath]) -> Value | None:
        """Where a run of these members that ends at `op` is kept: an i1, emitted here; None for
        everywhere. A member entered several times since its last run is kept for each of them."""
        conditions: list[Value | None] = []
        for member in members:
            has_condition = member in self.conditional
            placeholders = self._placeholders_before(op, member) if has_condition else []
            fresh = [record for record in placeholders if record not in self.decided]
            fresh = fresh or placeholders[-1:]
            self.decided.update(fresh)
            conditions += [placeholder.opview.when for placeholder in fresh] or [None]
        known = [condition for condition in conditions if condition is not None]
        if len(known) < len(conditions):
            return None
        return functools.reduce(lambda a, b: arith.OrIOp(a, b).result, dict.fromkeys(known))

    def _placeholders_before(self, op: Operation, path: str) -> list[Operation]:
        """The placeholders of a scope that come before `op`, in its block or, where there are none,
        in the nearest around it that has some."""
        found = [record for record in self.placeholders if scope_of(record) == path]
        ancestor: Operation | None = op
        while ancestor is not None and not isa(ancestor, func.FuncOp):
            block = ancestor.block
            before = [r for r in found if r.block == block and r.is_before_in_block(ancestor)]
            if before:
                return before
            ancestor = ancestor.parent.operation if ancestor.parent is not None else None
        return []


def _entry(run: list[_Item], path: ScopePath) -> int:
    """The opening of a scope that a run is of: that of most of its ops; 0 where none is known."""
    ops = [op for item in run for op in (item.op, *all_ops(item.op))]
    found = Counter(entry for op in ops for entry in scope_entries(op.location, path))
    return min(found, key=lambda entry: (-found[entry], entry), default=0)


def _below(paths: Paths, context: str) -> Paths:
    """Paths relative to the enclosing scope; those that are not inside it stay as they are."""
    return frozenset(path.below(context) for path in paths) - {""} if context else paths


def _runs(items: list[_Item]) -> list[tuple[frozenset[str], list[_Item]]]:
    """Maximal runs of items with the same first components; unscoped work ends a run."""
    runs: list[tuple[frozenset[str], list[_Item]]] = []
    pending: list[_Item] = []  # glue that may belong to what follows
    current: tuple[frozenset[str], list[_Item]] | None = None
    for item in items:
        components = _first_components(item.paths)
        if item.glue:
            joins = components and not pending and not item.entered & components
            if current is not None and joins and components <= current[0]:
                current[1].append(item)
            else:
                pending.append(item)
            continue
        begun = item.entered.union(*(glue.entered for glue in pending))
        follows = current is not None and _is_same_iteration(current[1], item)
        if current is not None and components == current[0] and follows and not begun & components:
            current[1].extend([*pending, item])
            pending = []
            continue
        lead = _trailing(pending, components)
        runs += _own_runs(pending[: len(pending) - len(lead)])
        current = (components, [*lead, item]) if components else None
        if current is not None:
            runs.append(current)
        pending = []
    return runs + _own_runs(pending)


def _is_number(op: Operation) -> bool:
    """True of an index, a view or another number of the program: beside waits it takes no time."""
    return has(op, traits.Pure) and not any(ttg.is_tensor(result.type) for result in op.results)


def _iteration_of(run: list[_Item]) -> WorkIteration | None:
    """The iteration that the work of a run is of."""
    return next((item.own_iteration for item in run if item.own_iteration is not None), None)


def _is_same_iteration(run: list[_Item], item: _Item) -> bool:
    """Whether an item can be of the iteration of a run."""
    iteration = _iteration_of(run)
    return iteration is None or item.own_iteration is None or item.own_iteration == iteration


def _trailing(glue: list[_Item], components: frozenset[str]) -> list[_Item]:
    """The last items of `glue` that belong to a run of these components."""
    count = 0
    while count < len(glue) and _first_components(glue[-1 - count].paths) <= components:
        count += 1
    return glue[len(glue) - count :] if components else []


def _own_runs(glue: list[_Item]) -> list[tuple[frozenset[str], list[_Item]]]:
    """Views of memory that no neighbour takes: reading a cut block takes time."""
    return [
        (_first_components(item.paths), [item])
        for item in glue
        if isa(item.op, scf.IfOp) and item.paths
    ]
