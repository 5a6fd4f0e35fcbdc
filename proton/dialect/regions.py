"""Control flow, said once: what enters, leaves and is carried by ops with regions.

`branches(op)` gives the ways that control and values take, as MLIR's RegionBranchOpInterface does:
from the op into a region, from the end of a region into another one, or out of the op.

    scf.for     op -> body -> body ..., op or body -> after       init_args, yielded values
    scf.if      op -> then -> after, op -> else -> after          yielded values
    scf.while   op -> before -> after region -> before ..., before -> after
    ttg.warp_specialize   as scf.if, but all regions run, at once

`ForLoop`, `WhileLoop` and `If` name the parts, as MLIR's accessors do, and make such ops: nothing
else knows the order of operands of `scf`. Values and blocks are looked up at each question, as
passes change them.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from proton.dialect.attributes import UNROLL_FACTOR, UNROLLED
from proton.dialect.mlir import (
    Attribute,
    Block,
    CmpIPredicate,
    Location,
    Operation,
    Type,
    Value,
    ir,
)
from proton.dialect.traits import Loop, has
from proton.dialect.walk import before

OUTSIDE = -1  # the op itself, as the source of a branch, and what follows it, as the target
_BOUNDS = 3  # operands of an `scf.for` ahead of its initial values


def end_of(block: Block) -> Operation:
    """The terminator of a block."""
    return block.operations[-1].operation


def block_of(op: Operation, region: int) -> Block | None:
    """The block of a region that has one; None where it has none."""
    blocks = op.regions[region].blocks
    return blocks[0] if len(blocks) else None


@dataclass(frozen=True, slots=True)
class Branch:
    """A way from the end of region `source` to the beginning of region `target`; OUTSIDE for the
    op. The values `passed` become the block arguments, or results, `received`."""

    source: int
    target: int
    passed: Sequence[Value]
    received: Sequence[Value]


@dataclass(frozen=True, slots=True)
class ForLoop:
    """An `scf.for`."""

    op: Operation

    @classmethod
    def create(
        cls,
        bounds: Sequence[Value],
        init_args: Sequence[Value] = (),
        attributes: "Mapping[str, Attribute] | ir.OpAttributeMap | None" = None,
        locations: Sequence[Location] = (),
    ) -> "ForLoop":
        """A loop with an empty body at the insertion point; `locations` are of its block's
        arguments, if they are not the current one."""
        op = _for_op([*bounds, *init_args], attributes)
        arguments = [bounds[0].type, *(value.type for value in init_args)]
        here = ir.Location.current
        ir.Block.create_at_start(op.regions[0], arguments, locations or [here] * len(arguments))
        return cls(op)

    @property
    def body(self) -> Block:
        """Its block."""
        return self.op.regions[0].blocks[0]

    @property
    def bounds(self) -> tuple[Value, Value, Value]:
        """(lower bound, upper bound, step)."""
        lower, upper, step = list(self.op.operands)[:_BOUNDS]
        return lower, upper, step

    @property
    def below(self) -> CmpIPredicate:
        """The predicate by which it compares its bounds."""
        is_unsigned = "unsignedCmp" in self.op.attributes
        return CmpIPredicate.ult if is_unsigned else CmpIPredicate.slt

    @property
    def induction_var(self) -> Value:
        """The block argument that counts."""
        return self.body.arguments[0]

    @property
    def init_args(self) -> list[Value]:
        """What the carried values are at first."""
        return list(self.op.operands)[_BOUNDS:]

    @property
    def unroll_factor(self) -> int:
        """How often the loop asks to have its body; 1 where it does not."""
        attribute = self.op.attributes.get(UNROLL_FACTOR)
        return attribute.value if isinstance(attribute, ir.IntegerAttr) else 1

    @property
    def unrolled(self) -> int:
        """How many iterations of the source one of its own is."""
        attribute = self.op.attributes.get(UNROLLED)
        return 1 if attribute is None else int(attribute.value)

    @property
    def iter_args(self) -> list[Value]:
        """The block arguments that are carried from one iteration to the next."""
        return list(self.body.arguments)[1:]

    @property
    def yielded(self) -> list[Value]:
        """What the carried values become."""
        return list(end_of(self.body).operands)

    def set_lower_bound(self, value: Value) -> None:
        """Changes where it begins."""
        self.op.operands[0] = value

    def set_init_arg(self, number: int, value: Value) -> None:
        """Changes what a carried value is at first."""
        self.op.operands[_BOUNDS + number] = value

    def branches(self) -> list[Branch]:
        """See the module's text."""
        init_args, iter_args, yielded = self.init_args, self.iter_args, self.yielded
        results = list(self.op.results)
        return [
            Branch(OUTSIDE, 0, init_args, iter_args),
            Branch(OUTSIDE, OUTSIDE, init_args, results),
            Branch(0, 0, yielded, iter_args),
            Branch(0, OUTSIDE, yielded, results),
        ]


@dataclass(frozen=True, slots=True)
class WhileLoop:
    """An `scf.while`: `before` computes the condition, and what it passes on goes to `after`, or
    becomes the results."""

    op: Operation

    @classmethod
    def create(cls, initial: Sequence[Value]) -> "WhileLoop":
        """A loop with two empty blocks that take values of the types of `initial`."""
        types = [value.type for value in initial]
        op = ir.Operation.create("scf.while", results=types, operands=list(initial), regions=2)
        for region in op.regions:
            ir.Block.create_at_start(region, types, [ir.Location.current] * len(types))
        return cls(op)

    @property
    def before(self) -> Block:
        """The block of the condition."""
        return self.op.regions[0].blocks[0]

    @property
    def after(self) -> Block:
        """The block of the body."""
        return self.op.regions[1].blocks[0]

    @property
    def passed(self) -> list[Value]:
        """What the condition's block passes on."""
        return list(end_of(self.before).operands)[1:]

    def branches(self) -> list[Branch]:
        """See the module's text."""
        before, after = list(self.before.arguments), list(self.after.arguments)
        return [
            Branch(OUTSIDE, 0, list(self.op.operands), before),
            Branch(0, 1, self.passed, after),
            Branch(0, OUTSIDE, self.passed, list(self.op.results)),
            Branch(1, 0, list(end_of(self.after).operands), before),
        ]


@dataclass(frozen=True, slots=True)
class If:
    """An `scf.if`, or another op each of whose regions runs once or not at all."""

    op: Operation

    @classmethod
    def create(cls, condition: Value, types: Sequence[Type] = ()) -> "If":
        """An `scf.if` with results of `types`, whose regions are still to get their blocks."""
        return cls(
            ir.Operation.create("scf.if", results=list(types), operands=[condition], regions=2)
        )

    def add_block(self, region: int) -> Block:
        """An empty block for a region."""
        return ir.Block.create_at_start(self.op.regions[region], [])

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the regions that are there."""
        return [region.blocks[0] for region in self.op.regions if len(region.blocks)]

    @property
    def yielded(self) -> list[list[Value]]:
        """Of each block what it gives."""
        return [list(end_of(block).operands) for block in self.blocks]

    def branches(self) -> list[Branch]:
        """See the module's text."""
        results, found = list(self.op.results), []
        for number, region in enumerate(self.op.regions):
            if len(region.blocks):
                yielded = list(end_of(region.blocks[0]).operands)
                found.append(Branch(OUTSIDE, number, (), ()))
                found.append(Branch(number, OUTSIDE, yielded, results))
            else:
                found.append(Branch(OUTSIDE, OUTSIDE, (), ()))
        return found


_VIEWS: dict[str, type[ForLoop | WhileLoop | If]] = {
    "scf.for": ForLoop,
    "scf.while": WhileLoop,
    "scf.if": If,
    "scf.execute_region": If,
    "ttg.warp_specialize": If,
}


BRANCHING = frozenset(_VIEWS)  # the names of ops with branches


def branches(op: Operation) -> list[Branch] | None:
    """The branches of an op; None where it has none, or nobody knows them."""
    view = _VIEWS.get(op.name)
    return view(op).branches() if view is not None else None


# Making and changing them


def _for_op(
    operands: Sequence[Value], attributes: "Mapping[str, Attribute] | ir.OpAttributeMap | None"
) -> Operation:
    """An `scf.for` without a block."""
    return ir.Operation.create(
        "scf.for",
        results=[value.type for value in operands[_BOUNDS:]],
        operands=list(operands),
        attributes={name: attributes[name] for name in attributes} if attributes else None,
        regions=1,
    )


def yield_values(values: Sequence[Value] = ()) -> Operation:
    """Ends a block of an op of `scf`."""
    return ir.Operation.create("scf.yield", operands=list(values))


def yield_more(block: Block, values: Sequence[Value]) -> None:
    """Has the end of a block yield more values, behind those that it does."""
    end = end_of(block)
    with ir.InsertionPoint(end), end.location:
        yield_values([*end.operands, *values])
    end.erase()


def giving(branch: Operation, *more: Sequence[Value]) -> Operation:
    """An `scf.if` in the place of `branch`, which goes. Its results are the old ones, then what
    each of its two blocks gives more; a block that was not there gives nothing else."""
    with before(branch):
        types = [value.type for value in (*branch.results, *more[0])]
        made = If.create(branch.operands[0], types)
    for name in branch.attributes:
        made.op.attributes[name] = branch.attributes[name]
    for number, values in enumerate(more):
        if (block := block_of(branch, number)) is not None:
            block.append_to(made.op.regions[number])
        else:
            with ir.InsertionPoint(made.add_block(number)), branch.location:
                yield_values()
        yield_more(made.op.regions[number].blocks[0], values)
    for old, value in zip(branch.results, made.op.results, strict=False):
        old.replace_all_uses_with(value)
    branch.erase()
    return made.op


def go_on_if(condition: Value, passed: Sequence[Value]) -> None:
    """Ends the block of the condition of an `scf.while`."""
    ir.Operation.create("scf.condition", operands=[condition, *passed])


def holder() -> Operation:
    """An op with an empty block, which is to be taken over by another one."""
    op = ir.Operation.create("scf.execute_region", regions=1)
    ir.Block.create_at_start(op.regions[0], [])
    return op


def with_carried(loop: Operation, initial: Sequence[Value]) -> Operation:
    """An `scf.for` in the place of `loop` that carries more values, whose first ones are `initial`.

    The old loop goes. The body's block gets an argument for each, which its terminator yields
    unchanged until the caller puts something else there; new results come last.
    """
    block = ForLoop(loop).body
    with before(loop):
        new = _for_op([*loop.operands, *initial], loop.attributes)
    block.append_to(new.regions[0])
    block = ForLoop(new).body
    yield_more(block, [block.add_argument(value.type, loop.location) for value in initial])
    for result, value in zip(loop.results, new.results, strict=False):
        result.replace_all_uses_with(value)
    loop.erase()
    return new


def without_carried(loop: Operation, numbers: Set[int]) -> Operation:
    """An `scf.for` in the place of `loop` that carries all but the values of these numbers, whose
    block arguments and results nobody uses. The old loop goes."""
    view = ForLoop(loop)
    kept = [n for n in range(len(view.init_args)) if n not in numbers]
    initial = view.init_args
    with before(loop):
        new = _for_op([*view.bounds, *(initial[n] for n in kept)], loop.attributes)
    yielded = view.yielded
    end = end_of(view.body)
    with ir.InsertionPoint(end), end.location:
        yield_values([yielded[n] for n in kept])
    end.erase()
    for number in sorted(numbers, reverse=True):
        view.body.erase_argument(1 + number)
    view.body.append_to(new.regions[0])
    for number, result in zip(kept, new.results, strict=True):
        loop.results[number].replace_all_uses_with(result)
    loop.erase()
    return new


# Where an op or a value is


def is_inside(op: Operation, loop: Operation) -> bool:
    """True if an op is `loop` or lies in it, however deep."""
    current: Operation | None = op
    while current is not None:
        if current == loop:
            return True
        current = current.parent
    return False


def innermost_loop(op: Operation) -> Operation | None:
    """The loop around an op, if it is one that counts."""
    parent = op.parent
    while parent is not None and parent.operation.name not in ("func.func", "scf.while"):
        if parent.operation.name == "scf.for":
            return parent.operation
        parent = parent.operation.parent
    return None


def is_invariant(value: Value, loop: Operation) -> bool:
    """True if a value is defined outside of a loop."""
    owner = value.owner
    op = owner.owner if isinstance(owner, ir.Block) else owner
    return not is_inside(op.operation, loop)


def loop_around(op: Operation) -> Operation | None:
    """The innermost loop of its function that an op is, or is in; None without."""
    current: Operation | None = op
    while current is not None and current.name != "func.func":
        if has(current, Loop):
            return current
        current = current.parent.operation if current.parent is not None else None
    return None


def in_loop_here() -> bool:
    """True if ops are emitted into a loop of a function."""
    return in_loop(ir.InsertionPoint.current.block.owner.operation)


def in_loop(op: Operation) -> bool:
    """True if an op is in a loop of its function."""
    return loop_around(op) is not None
