"""Where the IR says it comes from: lines, call sites, and the scopes that ops belong to."""

import re
from typing import Any

import proton.language as tl
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.language.function import DeviceFunction
from proton.language.profiling import mark, scope
from tests.ir.building import build


@DeviceFunction
def doubled(x):
    return x + x


@DeviceFunction
def twice_doubled(x):
    return doubled(doubled(x))


@DeviceFunction
def plain(out, a):
    b = a * a
    tl.store(out, b)


@DeviceFunction
def calls(out, a):
    tl.store(out, twice_doubled(a))


@DeviceFunction
def scoped(out, a):
    b = a - 1
    with scope("outer", size=a):
        c = b * 3
        with scope("inner"):
            d = doubled(c)
        mark("done", d)
    tl.store(out, d)


@DeviceFunction
def scope_in_callee(out, a):
    with scope("caller"):
        tl.store(out, inner_scope(a))


@DeviceFunction
def inner_scope(x):
    with scope("callee"):
        y = x * x
    return y


def locations(kernel: DeviceFunction, name: str) -> list[str]:
    """The location of each op of that name, in the order of the IR."""
    found: list[str] = []

    def visit(op: Any) -> Any:
        if op.name == name:
            found.append(str(op.location))
        return ir.WalkResult.ADVANCE

    with mlir_context():
        module = build(kernel)
        module.operation.walk(visit)
    return found


def attributes(kernel: DeviceFunction, op_name: str, *names: str) -> list[tuple[str, ...]]:
    """The string attributes of each op of that name."""
    with mlir_context():
        text = str(build(kernel))
    lines = [line for line in text.splitlines() if f'"{op_name}"' in line]
    return [
        tuple(m[1] for name in names if (m := re.search(rf'\b{name} = "([^"]*)"', line)))
        for line in lines
    ]


def place(kernel: DeviceFunction, source: str) -> str:
    """`"file":line:column` of a piece of the kernel's source."""
    lines = kernel.src.splitlines()
    offset = next(number for number, line in enumerate(lines) if source in line)
    line = kernel.parse().lineno + offset
    return f'"{kernel.file}":{line}:{lines[offset].index(source) + 1}'


def test_an_op_has_the_line_and_column_of_its_expression() -> None:
    assert locations(plain, "arith.muli") == [f"loc({place(plain, 'a * a')})"]
    assert locations(plain, "tt.store") == [f"loc({place(plain, 'tl.store(out, b)')})"]


def test_an_inlined_op_has_its_call_sites() -> None:
    own = place(doubled, "x + x")
    first, second = locations(calls, "arith.addi")
    inner = place(twice_doubled, "doubled(x))")
    outer = place(twice_doubled, "doubled(doubled(x))")
    caller = place(calls, "twice_doubled(a)")
    assert first == f"loc(callsite({own} at callsite({inner} at {caller})))"
    assert second == f"loc(callsite({own} at callsite({outer} at {caller})))"


def test_an_op_outside_a_scope_has_no_name_location() -> None:
    assert locations(scoped, "arith.subi") == [f"loc({place(scoped, 'a - 1')})"]
    assert locations(scoped, "tt.store") == [f"loc({place(scoped, 'tl.store(out, d)')})"]


def test_an_op_in_a_scope_belongs_to_it_by_name() -> None:
    assert locations(scoped, "arith.muli") == [
        f'loc("scope:outer"("entry:1"({place(scoped, "b * 3")})))'
    ]


def test_an_inlined_op_in_a_nested_scope_belongs_to_the_whole_path() -> None:
    (location,) = locations(scoped, "arith.addi")
    sites = f"callsite({place(doubled, 'x + x')} at {place(scoped, 'doubled(c)')})"
    assert location == f'loc("scope:outer/inner"("entry:1/2"({sites})))'


def test_records_bracket_scopes_in_order() -> None:
    assert attributes(scoped, "proton.record", "phase", "scope") == [
        ("start", "outer"),
        ("start", "outer/inner"),
        ("end", "outer/inner"),
        ("end", "outer"),
    ]
    assert attributes(scoped, "proton.mark", "mark") == [("outer/done",)]


def test_a_scope_in_a_callee_is_inside_the_callers() -> None:
    (location,) = locations(scope_in_callee, "arith.muli")
    assert location.startswith('loc("scope:caller/callee"("entry:1/2"(callsite(')
    assert ("start", "caller/callee") in attributes(
        scope_in_callee, "proton.record", "phase", "scope"
    )


def test_a_record_lies_where_its_scope_is_written() -> None:
    starts = locations(scoped, "proton.record")
    assert place(scoped, 'scope("outer", size=a)') in starts[0]
    assert place(scoped, 'scope("inner")') in starts[1]
