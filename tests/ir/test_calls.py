"""Calls of noinline functions: kept where the back end asks for it, compiled in place elsewhere."""

import pytest

import proton.language as tl
from proton.base.errors import CompilationError
from proton.dialect.context import mlir_context
from proton.dialect.walk import ops_named
from proton.frontend import Signature, build_module
from proton.language.function import DeviceFunction
from proton.language.profiling import scope

F32 = tl.pointer_type(tl.float32)


def noinline(fn):  # type: ignore[no-untyped-def]
    return DeviceFunction(fn, noinline=True)


def callees(kernel: DeviceFunction, *, keep: bool = True, **constants: object) -> dict[str, str]:
    """The text of each function but the kernel; the module is verified."""
    types = {name: F32 for name in kernel.arg_names if name not in constants}
    with mlir_context():
        module = build_module(kernel, Signature(types, dict(constants)), keep_calls=keep)
        assert module.operation.verify()
        functions = [op.operation for op in module.body.operations]
        assert functions[0].attributes["sym_name"].value == kernel.__name__
        assert "tt.kernel" in functions[0].attributes
        assert "sym_visibility" not in functions[0].attributes
        for function in functions[1:]:
            assert "tt.noinline" in function.attributes
            assert function.attributes["sym_visibility"].value == "private"
        calls = [op.attributes["callee"].value for op in ops_named(module, "func.call")]
        names = [function.attributes["sym_name"].value for function in functions[1:]]
        assert set(calls) == set(names)
        return {name: str(f) for name, f in zip(names, functions[1:], strict=True)}


@noinline
def scaled(x, FACTOR: tl.constexpr):
    return x * FACTOR


@noinline
def both(x, y):
    return x + y, (x - y, 7)


@noinline
def keep(pointer, value):
    tl.store(pointer, value)


@DeviceFunction
def calls_alike(p):
    x = tl.load(p)
    keep(p, scaled(scaled(x, 2.0), 2.0))


def test_calls_with_equal_types_and_constants_share_a_function() -> None:
    assert len(callees(calls_alike)) == 2


def test_without_keep_calls_everything_is_compiled_in_place() -> None:
    assert not callees(calls_alike, keep=False)


@DeviceFunction
def calls_unlike(p):
    x = tl.load(p + tl.arange(0, 8))
    keep(p + tl.arange(0, 8), scaled(x, 2.0) + scaled(x, 3.0) + scaled(x, 2) + scaled(3.0, 2.0))
    keep(p, scaled(tl.load(p), 2.0))


def test_each_specialization_is_a_function() -> None:
    names = [name.split("__")[0] for name in callees(calls_unlike)]
    # fp32[8] by 2.0, 3.0 and 2; two constants; fp32 by 2.0
    assert sorted(names) == ["keep"] * 2 + ["scaled"] * 5


@DeviceFunction
def takes_tuples(p):
    x = tl.load(p)
    total, (difference, seven) = both(x, 2.0)
    tl.static_assert(seven == 7)
    keep(p, total + difference)


def test_results_are_the_tensors_that_a_callee_returns() -> None:
    texts = callees(takes_tuples)
    (text,) = [text for name, text in texts.items() if name.startswith("both")]
    assert "(%arg0: f32) -> (f32, f32)" in text


@noinline
def early(x, y):
    if x > y:
        return x
    return y


@DeviceFunction
def calls_early(p):
    keep(p, early(tl.load(p), tl.load(p + 1)))


def test_a_callee_may_return_on_several_paths() -> None:
    texts = callees(calls_early)
    assert any("-> f32" in text and "scf.if" in text for text in texts.values())


@noinline
def inner(x):
    return x + 1


@noinline
def outer(x):
    return inner(x) + inner(x)


@DeviceFunction
def calls_nested(p):
    for _ in range(3):
        keep(p, outer(tl.load(p)))


def test_callees_call_callees() -> None:
    texts = callees(calls_nested)
    (text,) = [text for name, text in texts.items() if name.startswith("outer")]
    assert text.count("call @inner") == 2


@noinline
def adds(a, b):
    return a + b


@DeviceFunction
def reduces(p):
    keep(p, tl.reduce(tl.load(p + tl.arange(0, 8)), 0, adds))


def test_the_function_of_a_reduction_is_compiled_in_place() -> None:
    assert [name.split("__")[0] for name in callees(reduces)] == ["keep"]


@noinline
def measured(x):
    with scope("inside"):
        return_value = x * 2
    return return_value


@DeviceFunction
def calls_in_scope(p):
    with scope("outside"):
        keep(p, measured(tl.load(p)))


def test_a_callee_has_its_own_scopes() -> None:
    (text,) = [text for name, text in callees(calls_in_scope).items() if "measured" in name]
    assert '"inside"' in text
    assert "outside" not in text


@noinline
def endless(x):
    return endless(x)


@DeviceFunction
def recurses(p):
    tl.store(p, endless(1.0))


def test_recursion_is_an_error_at_the_call() -> None:
    with pytest.raises(CompilationError, match="endless calls itself") as caught:
        callees(recurses)
    error = caught.value
    assert error.span is not None
    assert error.span.line == endless.parse().body[0].lineno
    assert error.hint == "recursion is not supported: write it as a loop"


@noinline
def counts_down(x, N: tl.constexpr):
    if N == 0:
        return x
    else:
        return counts_down(x + 1, N - 1)


@DeviceFunction
def recurses_over_constants(p):
    keep(p, counts_down(tl.load(p), 3))


def test_recursion_over_constants_ends() -> None:
    assert len(callees(recurses_over_constants)) == 5


@noinline
def ping(x):
    return pong(x)


@noinline
def pong(x):
    return ping(x)


@DeviceFunction
def plays(p):
    tl.store(p, ping(1))


def test_mutual_recursion_is_an_error() -> None:
    with pytest.raises(CompilationError, match="ping calls itself"):
        callees(plays)
