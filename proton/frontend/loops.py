"""for and while as `scf` ops, with the variables they assign carried as values."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from proton.base.words import did_you_mean, shown
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Attribute, Block, Operation, Value, arith, ir
from proton.dialect.regions import ForLoop, WhileLoop, go_on_if, yield_values
from proton.frontend import scopes
from proton.frontend.arithmetic import binary, compare, logical
from proton.frontend.branches import condition_of, exits
from proton.frontend.builder import as_tensor, constant, emit, error, is_number, joined_by
from proton.frontend.flow import EndedLoop, Outcome, Returned, Undefined
from proton.frontend.interface import CodeGenerator
from proton.frontend.numbers import same_number
from proton.frontend.promotion import cast
from proton.frontend.trees import (
    leaves,
    parts_of,
    same_form,
    tensors,
    with_handles,
    with_leaves,
)
from proton.language import core
from proton.language import types as ty
from proton.language.value import tensor

# Each iteration is compiled anew: far more than this would look like a compiler that hangs.
MAX_STATIC_TRIPS = 1 << 16


def assigned_names(statements: list[ast.stmt]) -> list[str]:
    """Names that the statements bind, in order, not looking into nested definitions."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.setdefault(node.id)
    return list(names)


@dataclass
class _Range:
    """The arguments of a loop, and the hints that came with them."""

    start: Any
    stop: Any
    step: Any
    attributes: dict[str, Attribute]
    static: bool


_RANGE = "for i in range(...), tl.range(...) or tl.static_range(...)"


def _parse_range(g: CodeGenerator, node: ast.Call) -> _Range:
    function = g.evaluate(node.func)
    if function not in (range, core.range, core.static_range):
        raise g.unsupported("a for loop over the value of a call that is not range", _RANGE)
    args, kwargs = g.call_arguments(node)
    most = 3 + len(_HINTS) * (function is core.range)  # hints come by position, too
    for position, name in enumerate(("arg1", "arg2", "step")):
        if name in kwargs and position == len(args):
            args.append(kwargs.pop(name))
    step = kwargs.pop("step", None)
    if not 1 <= len(args) <= most:
        raise error(
            f"range takes 1 to {most} arguments, got {len(args)}",
            "range(stop), or (start, stop, step)",
        )
    kwargs |= dict(zip(_HINTS, args[3:], strict=False))
    if unknown := sorted(set(kwargs) - set(_HINTS)):
        raise error(
            f"tl.range has no argument {unknown[0]!r}{did_you_mean(unknown[0], _HINTS)}",
            f"its hints are {', '.join(sorted(_HINTS))}",
        )
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) > 2 else step
    step = 1 if step is None else step
    if isinstance(step, tensor):
        if g.debug:
            g.device_assert(compare(">", step, 0), "a step that is known at run time is positive")
    elif step == 0:
        raise error("the step of a loop cannot be 0", "choose a positive or a negative step")
    return _Range(start, stop, step, _attributes(kwargs), function is core.static_range)


# The hints of tl.range: numbers, and what is asked for or not.
_NUMBERS = ("num_stages", "loop_unroll_factor")
_FLAGS = ("disallow_acc_multi_buffer", "flatten", "warp_specialize", "disable_licm")
_HINTS = (*_NUMBERS, *_FLAGS)


def _attributes(hints: dict[str, Any]) -> dict[str, Attribute]:
    """The attributes of an `scf.for` that say what tl.range was told: `tt.` and the hint's name."""
    attributes: dict[str, Attribute] = {}
    for name, value in hints.items():
        if isinstance(value, tensor) or (name in _NUMBERS and not _is_count(value)):
            kind = "integer that is not negative" if name in _NUMBERS else "bool"
            raise error(
                f"{name} must be a constexpr {kind}, got {shown(value)}",
                "leave it out to let the compiler choose",
            )
        if name in _NUMBERS and value is not None:
            attributes[f"tt.{name}"] = i32_attr(value)
        elif value:
            attributes[f"tt.{name}"] = ir.UnitAttr.get()
    return attributes


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value < 2**31)


def compile_for(g: CodeGenerator, node: ast.For) -> None:
    """A `for` over range, tl.range or tl.static_range."""
    if node.orelse:
        raise g.unsupported("else of a loop", "write it after the loop")
    if not isinstance(node.iter, ast.Call):
        values = g.evaluate(node.iter)
        if not isinstance(values, tuple | list):
            raise g.unsupported("a for loop over anything but range or a tuple", _RANGE)
        return _unroll(g, node, values)
    bounds = _parse_range(g, node.iter)
    known = [bounds.start, bounds.stop, bounds.step]
    if bounds.static:
        if any(not isinstance(value, int) for value in known):
            raise error("tl.static_range takes constexpr integers", "use tl.range")
        values = range(*known)
        # `len` of a range overflows above 2**63; a slice of it does not.
        if values[MAX_STATIC_TRIPS:]:
            raise error(
                f"tl.static_range unrolls at most {MAX_STATIC_TRIPS} iterations, got {values}",
                "use tl.range, which stays a loop",
            )
        _unroll(g, node, values)
        return
    _compile_for(g, node, bounds)


@dataclass
class Unrolled:
    """The body of a loop that is unrolled: what leaves it is known while compiling."""

    depth: int  # of the blocks around

    def exit(self, g: CodeGenerator, node: ast.stmt | None = None) -> object:
        """How an iteration ends: by the statement `node`, or else at the body's end."""
        if node is not None and g.block_depth != self.depth:
            raise g.unsupported(
                f"{_word(node)} in an unrolled loop under a condition of the run",
                "use tl.range, which stays a loop",
            )
        return node


def _unroll(g: CodeGenerator, node: ast.For, values: Iterable[object]) -> None:
    """Compiles the body for each value."""
    outer, g.loop = g.loop, Unrolled(g.block_depth)
    for value in values:
        g.assign(node.target, value)
        outcome = g.run(node.body)
        if isinstance(outcome, Returned) and isinstance(outcome.value, ast.Break):
            break
    g.loop = outer


def _word(node: ast.AST) -> str:
    return type(node).__name__.lower()


def _loop_bounds(bounds: _Range) -> tuple[tensor, tensor, tensor, tensor | None]:
    """(lower, upper, step, start of a descending loop or None), all of one integer type."""
    values = [as_tensor(v, "a loop bound") for v in (bounds.start, bounds.stop, bounds.step)]
    type_ = ty.int32
    for value in values:
        if value.is_block() or not value.dtype.is_int():
            raise error(
                f"a loop bound must be an integer scalar, got {value.type}",
                "convert it with .to(tl.int32), or tl.cdiv for a rounded-up quotient",
            )
        if value.dtype.primitive_bitwidth == 64 or value.dtype == ty.uint32:
            type_ = ty.int64
    start, stop, step = (cast(value, type_) for value in values)
    if isinstance(bounds.step, int) and bounds.step < 0:
        # i runs over 0, 1, ... and the variable over start + i * step.
        size = constant(-bounds.step, type_)
        span = emit(arith.SubIOp, type_, start, stop)
        padded = emit(arith.AddIOp, type_, span, constant(-bounds.step - 1, type_))
        count = emit(arith.DivSIOp, type_, padded, size)
        return constant(0, type_), count, constant(1, type_), start
    return start, stop, step, None


# What loops carry


@dataclass
class Carried:
    """The variables that a loop carries: those that its body assigns and that exist before it.

    A number is carried as a tensor. In a tuple or an aggregate it stays what it is, known while
    compiling, unless the body changes it: `changing` then has its variable and its place, and the
    loop is compiled anew.
    """

    initial: dict[str, object]
    scopes: int  # how many are open around the body
    breaks: bool  # whether its exits also say if the loop goes on
    changing: set[tuple[str, int]] = field(default_factory=set)

    @property
    def tensors(self) -> list[tensor]:
        """What the op carries."""
        return list(tensors(tuple(self.initial.values())))

    def bind(self, g: CodeGenerator, values: Iterable[object]) -> None:
        """The variables with these SSA values in them."""
        handles = iter(values)
        for name, value in self.initial.items():
            g.env[name] = with_handles(value, handles)

    def exit(self, g: CodeGenerator, node: ast.stmt | None = None) -> tuple[tensor, ...]:
        """What is carried on from here, where `node` (a break or continue), or the end of the
        body, ends an iteration; and whether the loop goes on."""
        if node is not None and len(g.scopes) > self.scopes:
            raise g.unsupported(f"{_word(node)} inside a scope", "end the scope before")
        found = []
        for name, before in self.initial.items():
            found += self._fitted(name, before, g.env[name])
        if self.breaks:
            found.append(constant(not isinstance(node, ast.Break), ty.int1))
        return tuple(found)

    def _fitted(self, name: str, before: object, value: object) -> list[tensor]:
        """The tensors of a variable, as those that it began with."""
        old, new = list(leaves(before)), list(leaves(value))
        if not _same_forms(before, value):
            raise error(
                f"the loop changes {name}, which was {_text(before)} before it, to {_text(value)}",
                "start it as a value of its final form, or use a new name in the loop",
            )
        found = []
        for place, (was, leaf) in enumerate(zip(old, new, strict=True)):
            if isinstance(was, tensor):
                found.append(_as_type(name, leaf, was.type))
            elif isinstance(was, Undefined) or same_number(was, leaf):
                continue
            elif not is_number(was) or not (is_number(leaf) or isinstance(leaf, tensor)):
                raise error(
                    f"the loop changes {name}, which was {_text(before)} before it",
                    "start it as a number or a tensor of its final type, or use a new name in the "
                    "loop",
                )
            else:
                self.changing.add((name, place))
        return found


def _same_forms(left: object, right: object) -> bool:
    """True if two values have the same form all the way down."""
    parts = parts_of(left), parts_of(right)
    if parts[0] is None or parts[1] is None:
        return parts == (None, None) or isinstance(left, Undefined)
    return same_form(left, right) and all(map(_same_forms, parts[0], parts[1]))


def _text(value: object) -> str:
    parts = parts_of(value)
    if parts is not None:
        return f"({', '.join(map(_text, parts))})"
    return repr(value.type) if isinstance(value, tensor) else shown(value)


def _as_type(name: str, value: Any, type_: ty.dtype) -> tensor:
    """What becomes of a carried value of that type."""
    fits = type_.scalar.is_floating() or not isinstance(value, float)
    if is_number(value) and fits and not type_.scalar.is_ptr():
        value = constant(value, type_)
    if not isinstance(value, tensor) or value.type.settled != type_.settled:
        raise error(
            f"Loop-carried variable {name} has initial type {type_}, and the loop makes it "
            f"{_text(value)}",
            joined_by(
                type_,
                getattr(value, "type", None),
                "give it its final type before the loop, or cast it with .to(...)",
            ),
        )
    return value


def _compile_carrying(
    g: CodeGenerator,
    names: list[str],
    breaks: bool,
    compile_: Callable[[Carried], Operation],
) -> None:
    """Compiles a loop that assigns `names` by `compile_`, which gives its op, until it is known
    what it carries."""
    changing: set[tuple[str, int]] = set()
    for name in names:
        if isinstance(g.env.get(name), EndedLoop):
            g.env[name] = Undefined(name, "it is the variable of a loop inside a loop")
    before = dict(g.env)
    while True:
        initial = {name: _initial(g.env[name], name, changing) for name in names if name in g.env}
        carried = Carried(initial, len(g.scopes), breaks)
        op = compile_(carried)
        if not carried.changing:
            return
        op.erase()
        g.env = dict(before)
        changing |= carried.changing


def _initial(value: object, name: str, changing: set[tuple[str, int]]) -> object:
    """A variable with tensors for the numbers that the loop changes."""
    if is_number(value):
        return as_tensor(value)
    new = (
        as_tensor(leaf) if (name, place) in changing else leaf
        for place, leaf in enumerate(leaves(value))
    )
    return with_leaves(value, new)


def _compile_body(
    g: CodeGenerator, block: Block, carried: Carried, run: Callable[[], Outcome]
) -> None:
    """Compiles a body by `run`, its variables bound, and the yield at its end. Then the variables
    are those from before it, but what only it assigns is undefined."""
    before = dict(g.env)
    outer, g.loop = g.loop, carried
    with ir.InsertionPoint(block):
        with scopes.block(g):
            outcome = run()
        assert isinstance(outcome, Returned), "the end of the body is an exit"
        yield_values([value.handle for value in outcome.value])
    g.loop = outer
    new_names = [name for name in g.env if name not in before]  # in the order of the source
    g.env = before
    for name in new_names:
        g.env[name] = Undefined(name, "it is assigned inside a loop that may not run")


# The ops


def _compile_for(g: CodeGenerator, node: ast.For, bounds: _Range) -> None:
    """A loop that stays one. What a break may end is a `while` with a counter of its own."""
    if not isinstance(node.target, ast.Name):
        raise g.unsupported("a loop variable that is not a name", "for i in range(...)")
    variable = node.target.id
    before = g.env.get(variable)
    names = [name for name in assigned_names(node.body) if name != variable]
    lower, upper, step, descending = _loop_bounds(bounds)

    def run(count: Value) -> Outcome:
        index = g.env[variable] = tensor(count, lower.type)
        if descending is not None:
            g.env[variable] = binary("+", descending, binary("*", index, bounds.step))
        return g.run(node.body, tail=True)

    if not _breaks(node.body):
        handles = [bound.handle for bound in (lower, upper, step)]
        _compile_carrying(g, names, False, partial(_for, g, handles, bounds.attributes, run))
        behind = None
    else:
        counter = f"$count of {variable}"
        g.env[counter] = lower

        def count_and_run() -> Outcome:
            count = g.env[counter]
            g.env[counter] = binary("+", count, step)
            return run(count.handle)

        def test(go_on: tensor) -> Any:
            return logical("and", go_on, compare("<", g.env[counter], upper))

        _compile_carrying(g, [counter, *names], True, partial(_while, g, test, count_and_run))
        behind = g.env.pop(counter)

    def last() -> object:
        if behind is not None:
            index = binary("-", behind, step)
        else:
            count = binary("//", binary("-", binary("-", upper, lower), 1), step)
            index = binary("+", lower, binary("*", count, step))
        if descending is not None:
            return binary("+", descending, binary("*", index, bounds.step))
        return index

    if before is None or isinstance(before, Undefined):
        before = EndedLoop(variable, "it is the variable of a loop", last)
    g.env[variable] = before


def _breaks(body: list[ast.stmt]) -> bool:
    return any(exits(statement, (ast.Break,)) for statement in body)


def _for(
    g: CodeGenerator,
    bounds: list[Value],
    attributes: dict[str, Attribute] | None,
    run: Callable[[Value], Outcome],
    carried: Carried,
) -> Operation:
    """An `scf.for` whose body `run` compiles."""
    loop = ForLoop.create(bounds, [value.handle for value in carried.tensors], attributes)
    carried.bind(g, loop.iter_args)
    _compile_body(g, loop.body, carried, partial(run, loop.induction_var))
    carried.bind(g, loop.op.results)
    return loop.op


def compile_while(g: CodeGenerator, node: ast.While) -> None:
    """A `while` on a scalar condition."""
    if node.orelse:
        raise g.unsupported("else of a loop", "write it after the loop")
    breaks = _breaks(node.body)

    def test(go_on: tensor | None) -> Any:
        if go_on is None:
            return condition_of(g, node.test)
        g.env["$go on"] = go_on  # after a break the test is not evaluated
        again = ast.IfExp(ast.Name("$go on", ast.Load()), node.test, ast.Constant(False))
        return condition_of(g, ast.fix_missing_locations(ast.copy_location(again, node.test)))

    def run() -> Outcome:
        return g.run(node.body, tail=True)

    _compile_carrying(g, assigned_names(node.body), breaks, partial(_while, g, test, run))


def _while(
    g: CodeGenerator,
    test: Callable[[Any], Any],
    run: Callable[[], Outcome],
    carried: Carried,
) -> Operation:
    """An `scf.while`. Where a break may end the loop, it also carries whether it goes on."""
    first = [value.handle for value in carried.tensors]
    if carried.breaks:
        first.append(constant(True, ty.int1).handle)
    loop = WhileLoop.create(first)
    outer = dict(g.env)
    with ir.InsertionPoint(loop.before):
        passed = list(loop.before.arguments)
        carried.bind(g, passed)
        condition = test(tensor(passed[-1], ty.int1) if carried.breaks else None)
        if isinstance(condition, bool):
            condition = constant(condition, ty.int1)
        go_on_if(condition.handle, passed)
    g.env = outer
    carried.bind(g, loop.after.arguments)
    _compile_body(g, loop.after, carried, run)
    carried.bind(g, loop.op.results)
    return loop.op
