"""Control flow, said once: what enters, leaves and is carried by ops with regions.

`branches(op)` gives the ways that control and values take, as MLIR's RegionBranchOpInterface does:
from the op into a region, from the end of a region into another one, or out of the op.

    scf.for     op -> body -> body ..., op or body -> after       init_args, yielded values
    scf.if      op -> then -> after, op -> else -> after          yielded values
    scf.while   op -> before -> after region -> before ..., before -> after
    ttg.warp_specialize   as scf.if, but all regions run, at once

`ForLoop`, `WhileLoop` and `If` name the parts, as MLIR's accessors do. Everything else about the
order of operands of `scf` stays here. Values and blocks are looked up at each question: passes
change them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proton.dialect.mlir import ir

OUTSIDE = -1  # the op itself, as the source of a branch, and what follows it, as the target
_BOUNDS = 3  # operands of an `scf.for` ahead of its initial values


def end_of(block: Any) -> Any:
    """The terminator of a block."""
    return list(block.operations)[-1].operation


def block_of(op: Any, region: int) -> Any:
    """The block of a region that has one; None where it has none."""
    blocks = op.regions[region].blocks
    return blocks[0] if len(blocks) else None


@dataclass(frozen=True, slots=True)
class Branch:
    """A way from the end of region `source` to the beginning of region `target`; OUTSIDE for the
    op. The values `passed` become the block arguments, or results, `received`."""

    source: int
    target: int
    passed: Sequence[Any]
    received: Sequence[Any]


@dataclass(frozen=True, slots=True)
class ForLoop:
    """An `scf.for`."""

    op: Any

    @classmethod
    def create(
        cls,
        bounds: Sequence[Any],
        init_args: Sequence[Any] = (),
        attributes: Any = None,
        locations: Sequence[Any] = (),
    ) -> "ForLoop":
        """A loop with an empty body at the insertion point; `locations` are of its block's
        arguments, if they are not the current one."""
        types = [value.type for value in init_args]
        op = ir.Operation.create(
            "scf.for",
            results=types,
            operands=[*bounds, *init_args],
            attributes={name: attributes[name] for name in attributes} if attributes else None,
            regions=1,
        )
        arguments = [bounds[0].type, *types]
        here = ir.Location.current
        ir.Block.create_at_start(op.regions[0], arguments, locations or [here] * len(arguments))
        return cls(op)

    @property
    def body(self) -> Any:
        """Its block."""
        return self.op.regions[0].blocks[0]

    @property
    def bounds(self) -> tuple[Any, Any, Any]:
        """(lower bound, upper bound, step)."""
        lower, upper, step = list(self.op.operands)[:_BOUNDS]
        return lower, upper, step

    @property
    def induction_var(self) -> Any:
        """The block argument that counts."""
        return self.body.arguments[0]

    @property
    def init_args(self) -> list[Any]:
        """What the carried values are at first."""
        return list(self.op.operands)[_BOUNDS:]

    @property
    def iter_args(self) -> list[Any]:
        """The block arguments that are carried from one iteration to the next."""
        return list(self.body.arguments)[1:]

    @property
    def yielded(self) -> list[Any]:
        """What the carried values become."""
        return list(end_of(self.body).operands)

    def set_lower_bound(self, value: Any) -> None:
        """Changes where it begins."""
        self.op.operands[0] = value

    def set_init_arg(self, number: int, value: Any) -> None:
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

    op: Any

    @property
    def before(self) -> Any:
        """The block of the condition."""
        return self.op.regions[0].blocks[0]

    @property
    def after(self) -> Any:
        """The block of the body."""
        return self.op.regions[1].blocks[0]

    @property
    def passed(self) -> list[Any]:
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

    op: Any

    @property
    def blocks(self) -> list[Any]:
        """The blocks of the regions that are there."""
        return [region.blocks[0] for region in self.op.regions if len(region.blocks)]

    @property
    def yielded(self) -> list[list[Any]]:
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


def branches(op: Any) -> list[Branch] | None:
    """The branches of an op; None where it has none, or nobody knows them."""
    view = _VIEWS.get(op.name)
    return view(op).branches() if view is not None else None
