"""for and while as `scf` ops, with the variables they assign carried as values."""

import ast
from dataclasses import dataclass
from typing import Any

from proton.base.words import did_you_mean, shown
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Block, ir
from proton.dialect.regions import ForLoop, WhileLoop, go_on_if, yield_values
from proton.frontend.branches import condition_of
from proton.frontend.builder import as_tensor, constant, emit, error, is_number
from proton.frontend.flow import Undefined
from proton.frontend.promotion import cast
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
    attributes: dict[str, Any]
    static: bool


def _parse_range(g: Any, node: ast.expr) -> _Range:
    if not isinstance(node, ast.Call):
        raise g.unsupported("a for loop over anything but range", "for i in range(...)")
    function = g.evaluate(node.func)
    if function not in (range, core.range, core.static_range):
        raise g.unsupported(
            "a for loop over anything but range", "use range, tl.range or tl.static_range"
        )
    args, kwargs = g.call_arguments(node)
    names = {"arg1": 0, "arg2": 1, "step": 2}
    for name, position in names.items():
        if name in kwargs and position == len(args):
            args.append(kwargs.pop(name))
    step = kwargs.pop("step", 1)
    if not 1 <= len(args) <= 3:
        raise error(
            f"range takes 1 to 3 arguments, got {len(args)}", "range(stop), or (start, stop, step)"
        )
    if unknown := sorted(set(kwargs) - set(_HINTS)):
        raise error(
            f"tl.range has no argument {unknown[0]!r}{did_you_mean(unknown[0], _HINTS)}",
            f"its hints are {', '.join(sorted(_HINTS))}",
        )
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else step
    if not isinstance(step, tensor) and step == 0:
        raise error("the step of a loop cannot be 0", "choose a positive or a negative step")
    return _Range(start, stop, step, _attributes(kwargs), function is core.static_range)


# The hints of tl.range: numbers, and what is asked for or not.
_NUMBERS = ("num_stages", "loop_unroll_factor")
_FLAGS = ("disallow_acc_multi_buffer", "flatten", "warp_specialize", "disable_licm")
_HINTS = (*_NUMBERS, *_FLAGS)


def _attributes(hints: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an `scf.for` that say what tl.range was told: `tt.` and the hint's name."""
    attributes = {}
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


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value < 2**31)


def compile_for(g: Any, node: ast.For) -> None:
    """A `for` over range, tl.range or tl.static_range."""
    if node.orelse:
        raise g.unsupported("else of a loop", "write it after the loop")
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
        g.loop_depth += 1
        for value in values:
            g.assign(node.target, value)
            g.run(node.body)
        g.loop_depth -= 1
        return
    _compile_dynamic_for(g, node, bounds)


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
        span = emit("arith.subi", type_, start, stop)
        padded = emit("arith.addi", type_, span, constant(-bounds.step - 1, type_))
        count = emit("arith.divsi", type_, padded, size)
        return constant(0, type_), count, constant(1, type_), start
    return start, stop, step, None


def _carried(g: Any, statements: list[ast.stmt], exclude: set[str]) -> list[str]:
    """Variables that the loop assigns and that exist before it: numbers become tensors."""
    names = []
    for name in assigned_names(statements):
        if name in exclude or name not in g.env:
            continue
        value = g.env[name]
        if is_number(value):
            g.env[name] = as_tensor(value)
        if isinstance(g.env[name], tensor):
            names.append(name)
        elif isinstance(value, tuple) and any(isinstance(v, tensor) for v in value):
            raise g.unsupported(f"carrying the tuple {name} through a loop", "use separate names")
    return names


def _run_body(g: Any, block: Block, names: list[str], node: ast.For | ast.While) -> list[tensor]:
    """Compiles the body with the carried variables bound; their values at its end."""
    before = dict(g.env)
    types = [before[name].type for name in names]
    g.loop_depth += 1
    with ir.InsertionPoint(block):
        with g.block():
            g.run(node.body)
        results = []
        for name, type_ in zip(names, types, strict=True):
            value = g.env[name]
            if is_number(value):
                value = constant(value, type_)
            if not isinstance(value, tensor) or value.type != type_:
                found = value.type if isinstance(value, tensor) else shown(value)
                raise error(
                    f"the loop carries {name} as {type_}, and its body makes it {found}",
                    "give it its final type before the loop, or cast it with .to(...)",
                )
            results.append(value)
    g.loop_depth -= 1
    _check_unchanged(g, before, set(assigned_names(node.body)) - set(names))
    new_names = set(g.env) - set(before)
    g.env = before
    for name in new_names:
        g.env[name] = Undefined(name, "it is assigned inside a loop that may not run")
    return results


def _check_unchanged(g: Any, before: dict[str, Any], names: set[str]) -> None:
    """What is known only while compiling cannot be another thing in the next iteration."""
    for name in sorted(names & set(before)):
        old, new = before[name], g.env[name]
        if isinstance(old, tensor | Undefined) or (type(old) is type(new) and old == new):
            continue
        raise error(
            f"the loop changes {name}, which was {shown(old)} before it",
            "start it as a number or a tensor of its final type, or use a new name in the loop",
        )


def _compile_dynamic_for(g: Any, node: ast.For, bounds: _Range) -> None:
    if not isinstance(node.target, ast.Name):
        raise g.unsupported("a loop variable that is not a name", "for i in range(...)")
    lower, upper, step, descending = _loop_bounds(bounds)
    variable = node.target.id
    names = _carried(g, node.body, {variable})
    initial = [g.env[name] for name in names]
    loop = ForLoop.create(
        [bound.handle for bound in (lower, upper, step)],
        [value.handle for value in initial],
        bounds.attributes,
    )
    with ir.InsertionPoint(loop.body):
        index = tensor(loop.induction_var, lower.type)
        if descending is not None:
            scaled = emit("arith.muli", index.type, index, constant(bounds.step, index.type))
            index = emit("arith.addi", index.type, descending, scaled)
    before = g.env.get(variable)
    g.env[variable] = index
    for name, value, argument in zip(names, initial, loop.iter_args, strict=True):
        g.env[name] = tensor(argument, value.type)
    yielded = _run_body(g, loop.body, names, node)
    with ir.InsertionPoint(loop.body):
        yield_values([value.handle for value in yielded])
    for name, value, result in zip(names, initial, loop.op.results, strict=True):
        g.env[name] = tensor(result, value.type)
    _forget(g, variable, before)


def _forget(g: Any, variable: str, before: Any) -> None:
    g.env[variable] = (
        before
        if before is not None
        else Undefined(variable, "it is the variable of a loop that has ended")
    )


def compile_while(g: Any, node: ast.While) -> None:
    """A `while` on a scalar condition."""
    if node.orelse:
        raise g.unsupported("else of a loop", "write it after the loop")
    names = _carried(g, node.body, set())
    initial = [g.env[name] for name in names]
    loop = WhileLoop.create([value.handle for value in initial])
    test, body = loop.before, loop.after
    outer = dict(g.env)
    with ir.InsertionPoint(test):
        for name, value, argument in zip(names, initial, test.arguments, strict=True):
            g.env[name] = tensor(argument, value.type)
        condition = condition_of(g, node.test)
        if isinstance(condition, bool):
            if condition:
                raise error(
                    "this loop never ends: its condition is always true",
                    "test a variable that the body changes, or loop over range",
                )
            condition = constant(False, ty.int1)
        go_on_if(condition.handle, test.arguments)
    g.env = outer
    for name, value, argument in zip(names, initial, body.arguments, strict=True):
        g.env[name] = tensor(argument, value.type)
    yielded = _run_body(g, body, names, node)
    with ir.InsertionPoint(body):
        yield_values([value.handle for value in yielded])
    for name, value, result in zip(names, initial, loop.op.results, strict=True):
        g.env[name] = tensor(result, value.type)
