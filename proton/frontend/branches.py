"""`if` statements and expressions as `scf.if`, early returns included.

What is said of functions and `return` here holds of the bodies of loops and `break` and `continue`,
too.

A path through an `if` returns, or goes on with what follows it. What follows is compiled once:

- Where all paths of one branch return, it becomes a part of the other branch.
- Where each branch has paths that go on, and some return, the `scf.if` also yields an i1 that says
  whether its path goes on, and what was returned otherwise. What follows is the body of a second
  `scf.if` on that i1.

So the IR grows linearly with the number of early returns.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proton.base.words import shown
from proton.dialect.mlir import Block, Operation, ir, ub
from proton.dialect.regions import If, holder, yield_values
from proton.frontend import scopes
from proton.frontend.builder import (
    as_tensor,
    constant,
    emit,
    error,
    is_number,
    joined_by,
    to_ir,
    truth,
    warn,
)
from proton.frontend.flow import FELL_OFF, EndedLoop, MayReturn, Outcome, Returned, Undefined
from proton.frontend.interface import CodeGenerator
from proton.frontend.numbers import same_number
from proton.frontend.promotion import cast, promote_integers, to_bool
from proton.frontend.shapes import item
from proton.frontend.trees import parts_of, same_form, with_parts
from proton.language import types as ty
from proton.language.gluon.types import shared_memory_descriptor_type
from proton.language.value import tensor

# Blocks within blocks: what follows an early return stands in a block of its own. Python's stack
# holds some 150 of them.
MAX_DEPTH = 96
# What is wrong where two values that meet have no common type; else it is a variable's.
_RETURN = "Inconsistent return types"
_TERNARY = "Ternary expression with dynamic condition has inconsistent type"

_EXITS = (ast.Return, ast.Break, ast.Continue)
# The fields of statements that have statements in them: an expression has no exit.
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def exits(node: ast.AST, kinds: tuple[type, ...] = _EXITS) -> bool:
    """True if a return is anywhere below, or a break or continue of the loop that `node` is in."""
    if isinstance(node, kinds):
        return True
    if isinstance(node, ast.For | ast.While):
        kinds = tuple(kind for kind in kinds if kind is ast.Return)
    inner = (child for field in _BODIES for child in getattr(node, field, ()))
    return any(exits(child, kinds) for child in inner)


def always_returns(statements: Sequence[ast.stmt]) -> bool:
    """True if no path reaches the statements' end, whatever their conditions are."""
    return any(
        isinstance(statement, _EXITS)
        or (
            isinstance(statement, ast.If)
            and always_returns(statement.body)
            and always_returns(statement.orelse)
        )
        for statement in statements
    )


def condition_of(g: CodeGenerator, node: ast.expr) -> Any:
    """A Python bool where the test is known while compiling, else an int1 scalar."""
    value = g.evaluate(node)
    if not isinstance(value, tensor):
        return truth(value)
    if value.is_block() and value.numel == 1:
        warn(f"a block as a condition is deprecated, as in Triton: got {value.type}, write .item()")
        value = item(value)
    if value.is_block():
        raise error(
            "Boolean value of Tensor with more than one value is ambiguous: a condition must be a "
            f"scalar, got {value.type}",
            "use tl.where for blocks, or reduce with tl.max",
        )
    return to_bool(value)


# Branches


@dataclass
class _Branch:
    """A compiled branch: its block, in an op that the final `scf.if` replaces, and its end."""

    holder: Operation
    block: Block
    env: dict[str, object]
    outcome: Outcome = None

    @property
    def goes_on(self) -> bool:
        """True if some of its paths reach its end."""
        return not isinstance(self.outcome, Returned)


def _branch(g: CodeGenerator, statements: Sequence[ast.stmt], tail: bool = False) -> _Branch:
    op = holder()
    branch = _Branch(op, op.regions[0].blocks[0], dict(g.env))
    _compile_into(g, branch, statements, tail)
    return branch


def _compile_into(
    g: CodeGenerator, branch: _Branch, statements: Sequence[ast.stmt], tail: bool
) -> None:
    """Compiles the statements at the end of the branch's block, and sets its outcome."""
    if g.block_depth >= MAX_DEPTH:
        raise error(
            f"ifs and early returns nest deeper than {MAX_DEPTH} blocks",
            "combine conditions with `and` and `or`, or move parts into functions",
        )
    before, g.env = g.env, branch.env
    g.block_depth += 1
    try:
        with ir.InsertionPoint(branch.block), scopes.block(g):
            branch.outcome = g.run(statements, tail=tail)
        branch.env = g.env
    finally:
        g.env = before
        g.block_depth -= 1


# Statements


def compile_if(
    g: CodeGenerator, node: ast.If, rest: list[ast.stmt], tail: bool
) -> list[ast.stmt] | Returned | MayReturn:
    """Compiles an `if` that `rest` follows.

    `tail` says that the function ends behind `rest`. Returns the statements that are still to be
    compiled, or the outcome where nothing is left.
    """
    condition = condition_of(g, node.test)
    if isinstance(condition, bool):
        return [*(node.body if condition else node.orelse), *rest]
    body, orelse = node.body, node.orelse
    if not exits(node):
        _join(g, condition, _branch(g, body), _branch(g, orelse))
        return rest
    if always_returns(body):
        orelse, rest = [*orelse, *rest], []
    elif always_returns(orelse):
        body, rest = [*body, *rest], []
    is_last = tail and not rest
    then, other = _branch(g, body, is_last), _branch(g, orelse, is_last)
    for branch, opposite in ((then, other), (other, then)):
        if rest and branch.outcome is None and not opposite.goes_on:  # by what is static in it
            _compile_into(g, branch, rest, tail)
            rest = []
    outcome = _join(g, condition, then, other)
    if outcome is None:
        return rest
    if isinstance(outcome, Returned) or not rest:
        return outcome
    gone = _branch(g, [])
    gone.outcome = Returned(outcome.value)
    joined = _join(g, outcome.goes_on, _branch(g, rest, tail), gone)
    assert joined is not None, "one of the branches has returned"
    return joined


def compile_if_expression(g: CodeGenerator, node: ast.IfExp) -> Any:
    """`a if c else b`; both sides are compiled, one is run."""
    condition = condition_of(g, node.test)
    if isinstance(condition, bool):
        return g.evaluate(node.body if condition else node.orelse)
    sides = []
    for side in (node.body, node.orelse):
        assign = ast.copy_location(ast.Assign([ast.Name("$if", ast.Store())], side), side)
        sides.append(_branch(g, [ast.fix_missing_locations(assign)]))
    join, values = _Join(*sides), [side.env["$if"] for side in sides]
    value = join.either(_TERNARY, *values)
    join.finish(condition)
    return value


# Where branches meet


def _join(g: CodeGenerator, condition: tensor, then: _Branch, other: _Branch) -> Outcome:
    """Makes the `scf.if` and binds the variables; how the paths through it end."""
    join, updates = _Join(then, other), {}
    if then.goes_on or other.goes_on:
        for name in _changed(g.env, then.env, other.env):
            updates[name] = join.variable(name, g.env)
    value = join.returned()
    goes_on = join.goes_on()
    join.finish(condition)
    g.env.update(updates)
    if not (then.goes_on or other.goes_on):
        return Returned(value)
    return None if goes_on is None else MayReturn(goes_on, value)


def _changed(before: dict[str, object], *envs: dict[str, object]) -> list[str]:
    """The variables that one of the environments binds to something else than `before` does."""
    names: dict[str, None] = {}
    for env in envs:
        for name, value in env.items():
            if name not in before or before[name] is not value:
                names.setdefault(name)
    return list(names)


class _Join:
    """What the branches of an `scf.if` yield, side by side.

    Its methods give the value after the `if`. Tensors in it have no SSA value before `finish`,
    which makes the op.
    """

    def __init__(self, then: _Branch, other: _Branch) -> None:
        self.then, self.other = then, other
        self.pairs: list[tuple[tensor, tensor]] = []
        self.results: list[tensor] = []

    def _add(self, left: tensor, right: tensor) -> tensor:
        self.pairs.append((left, right))
        self.results.append(tensor(None, left.type))
        return self.results[-1]

    def finish(self, condition: tensor) -> None:
        """The `scf.if`: takes over both blocks and yields one value for each pair."""
        for branch, side in ((self.then, 0), (self.other, 1)):
            handles = [pair[side].handle for pair in self.pairs]
            with ir.InsertionPoint(branch.block):
                yield_values(handles)
        op = If.create(condition.handle, [to_ir(result.type) for result in self.results]).op
        for branch, region in zip((self.then, self.other), op.regions, strict=True):
            branch.block.append_to(region)
            branch.holder.erase()
        for result, value in zip(self.results, op.results, strict=True):
            result.handle = value

    def variable(self, name: str, before: dict[str, object]) -> object:
        """The value of a variable where the paths that go on meet."""
        missing = Undefined(name, "only one branch of an if assigns it")
        left, right = self.then.env.get(name, missing), self.other.env.get(name, missing)
        if self.then.goes_on and self.other.goes_on:
            return self._both(name, left, right, missing)
        live, dead = (left, right) if self.then.goes_on else (right, left)
        if live is before.get(name):
            return live
        return self._one(live, dead, is_left=self.then.goes_on)

    def _both(self, name: str, left: object, right: object, missing: Undefined) -> object:
        if left is right:
            return left
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            return missing
        if same_form(left, right):
            pairs = zip(parts_of(left) or (), parts_of(right) or (), strict=True)
            return with_parts(left, [self._both(name, *both, missing) for both in pairs])
        if not isinstance(left, tensor) and not isinstance(right, tensor):
            if same_number(left, right):
                return left
            if not (is_number(left) and is_number(right)):
                values = f"{shown(left)} and {shown(right)}"
                return Undefined(name, f"the branches of an if bind {values}")
        return self.numbers(name, left, right)

    def _one(self, live: object, dead: object, *, is_left: bool) -> object:
        """A value of one branch, where the paths of the other do not get here."""
        if (parts := parts_of(live)) is not None:
            others = (parts_of(dead) if same_form(live, dead) else None) or (None,) * len(parts)
            pairs = zip(parts, others, strict=True)
            return with_parts(live, [self._one(*both, is_left=is_left) for both in pairs])
        if isinstance(live, EndedLoop):
            return Undefined(live.name, "it is the variable of a loop in a branch of an if")
        if not isinstance(live, tensor):
            return live
        if not isinstance(dead, tensor) or dead.type.settled != live.type.settled:
            with ir.InsertionPoint((self.other if is_left else self.then).block):
                dead = _zero(live.type)
        return self._add(live, dead) if is_left else self._add(dead, live)

    def numbers(self, what: str, left: object, right: object) -> tensor:
        """Both values as tensors of one type; numbers take the type of the other side."""
        with ir.InsertionPoint(self.then.block):
            left = _materialize(left, right)
        with ir.InsertionPoint(self.other.block):
            right = _materialize(right, left)
        same = left.type.settled == right.type.settled
        if not same or left.dtype.is_const() != right.dtype.is_const():
            named = what if what in (_RETURN, _TERNARY) else f"Mismatched type for {what}"
            raise error(
                f"{named}: {left.type} after one branch of the if and {right.type} after the other",
                "leave tl.const out of one parameter's annotation"
                if same
                else joined_by(left.type, right.type, "cast one of them with .to(...)"),
            )
        return self._add(left, right)

    def returned(self) -> Any:
        """What the paths that do not go on have returned."""
        left, right = self.then.outcome, self.other.outcome
        if left is None:
            return None if right is None else self._one(right.value, None, is_left=False)
        if right is None:
            return self._one(left.value, None, is_left=True)
        if left.value is FELL_OFF or right.value is FELL_OFF:
            is_left = right.value is FELL_OFF
            return self._one((left if is_left else right).value, None, is_left=is_left)
        counts = [_count(outcome.value) for outcome in (left, right)]
        if counts[0] != counts[1]:
            raise error(
                f"one path returns {counts[0]} values, another {counts[1]}",
                "return the same number of values on every path",
            )
        return self.either(_RETURN, left.value, right.value)

    def either(self, what: str, left: Any, right: Any) -> Any:
        """One of two values of one form. Integers of different types are promoted; calls that give
        nothing are a choice of what is done."""
        if same_form(left, right):
            pairs = zip(parts_of(left) or (), parts_of(right) or (), strict=True)
            return with_parts(left, [self.either(what, *both) for both in pairs])
        tensors = isinstance(left, tensor) or isinstance(right, tensor)
        if not tensors and not is_number(left) and type(left) is type(right) and left == right:
            return left
        both = isinstance(left, tensor) and isinstance(right, tensor) and left.shape == right.shape
        if both and left.dtype.is_int() and right.dtype.is_int():
            target = promote_integers(left.dtype, right.dtype)
            with ir.InsertionPoint(self.then.block):
                left = cast(left, target)
            with ir.InsertionPoint(self.other.block):
                right = cast(right, target)
        return self.numbers(what, left, right)

    def goes_on(self) -> tensor | None:
        """Whether a path goes on, as an int1; None where all do, or none does."""
        if self.then.outcome is None and self.other.outcome is None:
            return None
        if not self.then.goes_on and not self.other.goes_on:
            return None
        flags = []
        for branch in (self.then, self.other):
            with ir.InsertionPoint(branch.block):
                flags.append(
                    branch.outcome.goes_on
                    if isinstance(branch.outcome, MayReturn)
                    else constant(branch.goes_on, ty.int1)
                )
        return self._add(*flags)


def _count(value: object) -> int:
    """How many values a function returns."""
    return len(value) if isinstance(value, tuple) else int(value is not None)


def _zero(type_: ty.dtype) -> tensor:
    """Some value of the type, for a path on which nothing reads it."""
    is_descriptor = isinstance(type_, ty.tensor_descriptor_type | shared_memory_descriptor_type)
    if is_descriptor or (isinstance(type_, ty.pointer_type) and type_.block is not None):
        return emit(ub.PoisonOp, type_)
    if type_.scalar.is_ptr():
        return cast(constant(0, ty.with_scalar(type_, ty.int64)), type_.scalar)
    return constant(0, type_)


def _materialize(value: Any, like: Any) -> tensor:
    if isinstance(value, tensor):
        return value
    if not is_number(value):
        raise error(
            f"{shown(value)} is known while compiling in one branch only",
            "give the name a number or a tensor in both branches",
        )
    return constant(value, like.type) if isinstance(like, tensor) else as_tensor(value)
