"""Rules of the profiling ops, and the scopes that are open while a kernel is compiled.

A scope belongs to the block that opens it. What is compiled while it is open has it in its
location; its edges, marks and the edges of events are records of the `proton` dialect. The
generator `g` keeps the names of what is open in `g.scopes`; those from `g.block_scope` on are of
the block being compiled, those from `g.first_scope` on of its function.
"""

import contextlib
from collections.abc import Iterator

from proton.base.errors import CompilationError
from proton.base.words import shown
from proton.dialect import proton as proton_dialect
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Value, arith, ir
from proton.dialect.scopes import ScopeEntry
from proton.frontend.builder import as_tensor, constant, emit, error
from proton.frontend.interface import CodeGenerator
from proton.frontend.promotion import cast, to_bool
from proton.frontend.rules import generator_rule
from proton.language import profiling
from proton.language import types as ty
from proton.language.value import tensor
from proton.trace.scope_path import ScopePath


@contextlib.contextmanager
def block(g: CodeGenerator) -> Iterator[None]:
    """Compiles a block: the scopes that it opens end in it, and it ends no others."""
    before, g.block_scope = g.block_scope, len(g.scopes)
    try:
        yield
        if len(g.scopes) > g.block_scope:
            raise _not_exited(g, "its block")
    finally:
        del g.scopes[g.block_scope :]
        g.block_scope = before


def check_closed(g: CodeGenerator) -> None:
    """Every enter_scope of the function has its exit_scope."""
    if len(g.scopes) > g.first_scope:
        raise _not_exited(g, g.fn.__name__)


def _not_exited(g: CodeGenerator, where: str) -> CompilationError:
    """The error of the innermost scope, at its enter_scope."""
    return CompilationError(
        f"enter_scope({g.scopes[-1]!r}) is not exited in {where}",
        g.scopes[-1].span,
        "close it in the same block, or use `with proton.scope(...)`",
        g.call_trace(),
    )


@generator_rule(profiling.enter_scope)
def enter(
    g: CodeGenerator,
    /,
    name: object,
    metrics: object = None,
    *,
    when: object = True,
    **payload: object,
) -> str:
    """Opens a scope: what is compiled from here on belongs to it. Gives its name."""
    name = _checked(name)
    _check_metrics(metrics)
    g.scopes.append(ScopeEntry(name, next(g.entries), g.span()))
    with g.location():
        values, attributes = _payload(payload)
        path, condition = string_attr(ScopePath.of(g.scopes)), _when(name, when)
        proton_dialect.RecordOp(values, path, string_attr("start"), *attributes, when=condition)
    return name


@generator_rule(profiling.exit_scope)
def leave(g: CodeGenerator, name: object, metrics: object = None) -> None:
    """Closes the innermost scope of this block, which must have this name."""
    _check_metrics(metrics)
    is_open = len(g.scopes) > g.block_scope
    if not is_open or g.scopes[-1] != name:
        inner = repr(g.scopes[-1]) if is_open else "none"
        raise error(
            f"exit_scope({name!r}): the innermost open scope is {inner}",
            "scopes close in the reverse order of their opening, in the same block",
        )
    with g.location():
        path = string_attr(ScopePath.of(g.scopes))
        values, attributes = _payload({})
        proton_dialect.RecordOp(values, path, string_attr("end"), *attributes)
    g.scopes.pop()


@generator_rule(profiling.mark)
def _mark(g: CodeGenerator, name: object, value: object = None, *, when: object = True) -> None:
    name = _checked(name)
    values, attributes = _payload({} if value is None else {"value": value})
    path = string_attr(ScopePath.of([*g.scopes, name]))
    proton_dialect.MarkOp(values, path, *attributes, when=_when(name, when))


@generator_rule(profiling.allocate_event)
def _allocate_event(g: CodeGenerator, name: object) -> profiling.Event:
    return profiling.Event(_checked(name, "an event's name"))  # no scope's: it may cross them


@generator_rule(profiling.start_event)
def _start_event(g: CodeGenerator, event: object) -> None:
    _event_edge(event, "start")


@generator_rule(profiling.end_event)
def _end_event(g: CodeGenerator, event: object) -> None:
    _event_edge(event, "end")


def _event_edge(event: object, phase: str) -> None:
    if isinstance(event, str):
        event = profiling.Event(_checked(event, "an event's name"))
    if not isinstance(event, profiling.Event):
        found = event.type if isinstance(event, tensor) else shown(event)
        raise error(f"{phase}_event takes an event, got {found}", "see proton.allocate_event")
    proton_dialect.EventOp(string_attr(event.name), string_attr(phase))


# Arguments


def _checked(name: object, what: str = "a scope's name") -> str:
    try:
        return profiling.check_name(name, what)
    except ValueError as problem:
        raise error(str(problem), f"{what} is a constexpr str") from None


def _check_metrics(metrics: object) -> None:
    if metrics is not None:
        raise error(
            "metrics of a scope are for the host",
            "give values by name in a kernel: proton.scope('load', bytes=n)",
        )


def _when(name: str, when: object) -> Value | None:
    """The condition of a record as an i1; None where it is known to be true."""
    if isinstance(when, tensor):
        if when.is_block() or not when.dtype.is_int():
            raise error(
                f"when of {name} must be a scalar bool or integer, got {when.type}",
                "reduce it first, with tl.max(x, axis=0) or the like"
                if when.is_block()
                else "compare it, as in when=x > 0",
            )
        return to_bool(when).handle
    if not isinstance(when, int):
        raise error(
            f"when of {name} must be a scalar bool or integer, got {shown(when)}",
            "write a comparison, or leave it out",
        )
    return None if when else constant(False, ty.int1).handle


def _payload(payload: dict[str, object]) -> tuple[list[object], tuple[object, object]]:
    """(scalars as i64 values, the attributes `names` and `kinds`)"""
    values, kinds = [], []
    for name, value in payload.items():
        scalar = as_tensor(value, f"payload {name}")
        if scalar.is_block() or scalar.dtype.is_ptr():
            raise error(
                f"payload {name} must be a scalar number, got {scalar.type}",
                "reduce it first, with tl.max(x, axis=0) or the like",
            )
        kinds.append("float" if scalar.dtype.is_floating() else "int")
        if scalar.dtype.is_floating():
            scalar = emit(arith.BitcastOp, ty.int64, cast(scalar, ty.float64))
        values.append(cast(scalar, ty.int64).handle)
    names = ir.ArrayAttr.get([string_attr(name) for name in payload])
    return values, (names, ir.ArrayAttr.get([string_attr(kind) for kind in kinds]))
