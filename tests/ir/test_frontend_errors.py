"""Kernels that break a rule, and what the error says: place, rule, caret, hint."""

import re
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.base.errors import CompilationError, CompileTimeAssertionFailure, PassError
from proton.compat.triton.causes import cause_of
from proton.conversion.ttg_to_llvm.core.lowering import RULES as LOWERINGS
from proton.dialect.context import mlir_context
from proton.frontend import Signature, build_module
from proton.frontend.rules import RULES
from proton.frontend.suggestions import instead_of, instead_of_missing
from proton.language import core
from proton.language.function import DeviceFunction
from tests.cpu.harness import kernels_of
from tests.ir import (  # noqa: F401  (fill the table)
    rejected_blocks,
    rejected_calls,
    rejected_code,
    rejected_ops,
)
from tests.ir.rejected import CASES, Case
from tests.tables import check_rows

# The type of a kernel's parameter, by its name.
TYPES = {
    "x_ptr": tl.pointer_type(tl.float32),
    "h_ptr": tl.pointer_type(tl.float16),
    "p_ptr": tl.pointer_type(tl.pointer_type(tl.float32)),
    "i_ptr": tl.pointer_type(tl.int32),
    "const_ptr": tl.pointer_type(tl.float32, const=True),
    "n": tl.int32,
    "f": tl.float32,
    "u": tl.uint32,
    "q": tl.float8e5,
}


@proton.jit
def fails():
    tl.arange(2, 7)


@proton.jit
def calls_what_fails():
    # the call is in the third line
    fails()


@proton.jit
def asserts_what_is_not():
    tl.static_assert(False)


@proton.jit
def const_by_if(a, b, n):
    if n > 0:
        p = a
    else:
        p = b
    tl.store(p, 1.0)


@proton.jit
def const_by_ternary(a, b, n):
    tl.store(a if n > 0 else b, 1.0)


@proton.jit
def either(a, b, n):
    if n > 0:
        return a
    return b


@proton.jit
def const_by_return(a, b, n):
    tl.store(either(a, b, n), 1.0)


@proton.jit
def const_by_where(a, b, n):
    tl.store(tl.where(n > 0, a, b), 1.0)


@proton.jit
def const_by_where_turned(a, b, n):
    tl.store(tl.where(n > 0, b, a), 1.0)


def compile_kernel(kernel: DeviceFunction) -> None:
    types = {name: TYPES[name] for name in kernel.arg_names}
    with mlir_context():
        build_module(kernel, Signature(types))


def underlined(error: CompilationError) -> str:
    """The source text above the carets."""
    assert error.span is not None
    source, carets = error.span.excerpt().splitlines()
    return source[carets.index("^") : carets.rindex("^") + 1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel.__name__)
def test_a_bad_kernel_is_rejected(case: Case) -> None:
    with pytest.raises(CompilationError) as caught:
        compile_kernel(case.kernel)
    error = caught.value
    assert case.rule in error.rule
    assert error.error_message == error.rule
    assert type(error) is case.kind
    assert error.span is not None
    assert underlined(error).startswith(case.at)
    assert case.hint
    assert case.hint in error.hint
    shown = str(error)
    assert f"{error.span.file}:{error.span.line}:{error.span.column + 1}: {error.rule}" in shown
    assert f"hint: {error.hint}" in shown
    places = [error.span, *error.trace]
    lines = case.kernel.src.count("\n")
    first = case.kernel.parse().lineno
    assert any(p.file == case.kernel.file and first <= p.line <= first + lines for p in places), (
        shown
    )


def test_the_table_is_long_enough() -> None:
    assert len(CASES) >= 40


def test_a_builtin_of_the_wrong_kind_of_module_is_no_tile_op() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'lod'"):
        tl.lod


def test_what_nests_too_deeply_is_an_error_with_a_place() -> None:
    for terms in (700, 2000):  # Python itself gives up on the second
        source = f"@proton.jit\ndef kernel(n):\n    {' + '.join(['n'] * terms)}\n"
        with pytest.raises(CompilationError, match=r"py:\d:\d: .* too deeply for the compiler"):
            compile_kernel(kernels_of(source).kernel)


def test_a_fault_of_the_compiler_is_said_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_rule(x: Any) -> None:
        raise AttributeError("'int' object has no attribute 'scalar'")

    monkeypatch.setitem(RULES, core.exp, broken_rule)
    with pytest.raises(CompilationError) as caught:
        compile_kernel(takes_exp)
    assert underlined(caught.value) == "tl.exp(x)"
    assert caught.value.rule == (
        "the compiler failed here: AttributeError: 'int' object has no attribute 'scalar'"
    )
    assert "fault of the compiler" in caught.value.hint


def test_a_fault_of_a_pass_is_said_with_the_place_of_its_op(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken_rule(ctx: Any, site: Any) -> None:
        raise AttributeError("'VectorType' object has no attribute 'width'")

    monkeypatch.setitem(LOWERINGS, "tt.store", broken_rule)
    source = "@proton.jit\ndef kernel(p):\n    tl.store(p, 1)\n"
    with pytest.raises(PassError) as caught:
        kernels_of(source).kernel.warmup(tl.float32, target=proton.GPUTarget("cuda", 90))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("pass ttg-to-llvm{target=cuda:90} failed on kernel-")
    assert re.fullmatch(r"at tt.store of .*kernels_\w+.py:6:5", lines[1])
    assert lines[2:4] == ["        tl.store(p, 1)", "        ^^^^^^^^^^^^^^"]


def test_an_error_in_a_callee_shows_the_call() -> None:
    with pytest.raises(CompilationError) as caught:
        compile_kernel(calls_broken)
    error = caught.value
    assert error.span is not None
    assert (error.span.function, underlined(error)) == ("broken", "tl.exp(x)")
    assert [span.function for span in error.trace] == ["middle", "calls_broken"]
    text = str(error)
    assert text.count("called from") == 2
    assert "    broken(x)\n" in text


@DeviceFunction
def takes_exp(f):
    x = f * 2
    tl.exp(x)


@DeviceFunction
def broken(x):
    tl.exp(x)


@DeviceFunction
def middle(x):
    broken(x)


@DeviceFunction
def calls_broken(n):
    middle(n)


def test_what_to_write_instead() -> None:
    """By the name that was written: of Python, numpy, math, or Triton's language."""

    def same(found: str, wanted: str) -> None:
        assert found == wanted

    there = "dir(proton.language) lists the functions that there are"
    check_rows(
        same,
        [
            (instead_of("sum"), "use tl.sum"),
            (instead_of("float32"), "use x.to(tl.float32)"),
            (instead_of("tanh"), "use tl.extra.libdevice.tanh"),
            (instead_of("matmul"), "use tl.dot"),
            (instead_of("enumerate"), "use `for i in range(n)`, or tl.static_range"),
            (instead_of("extra"), ""),
            (instead_of("nothing_like_it"), ""),
            (instead_of_missing("math.exp2"), "use tl.exp2"),
            (instead_of_missing("math.tanh"), "use tl.extra.libdevice.tanh"),
            (instead_of_missing("math.rsqr"), f"{there}; did you mean rsqrt?"),
            (instead_of_missing("sort"), there),
        ],
    )
    with pytest.raises(AttributeError, match=r"no attribute 'laod'; did you mean load\?"):
        tl.laod
    with pytest.raises(AttributeError, match=r"no attribute 'finalise'; did you mean finalize\?"):
        proton.finalise


def test_errors_are_raised_from_one_another_as_tritons() -> None:
    """Its cause is the error within the function that was called, and at last the rule alone;
    what has no op behind it has none. Places are those of the function, too, from its `def` on."""
    with mlir_context(), pytest.raises(CompilationError) as caught:
        build_module(calls_what_fails, Signature({}))
    error = caught.value
    assert "    at 2:4: of fails\n" in str(error)
    assert "    at 3:4: of calls_what_fails" in str(error)
    inner = cause_of(error)
    assert isinstance(inner, CompilationError)
    assert "at 2:4: of fails" in str(inner)
    assert "calls_what_fails" not in str(inner)
    assert str(cause_of(inner)) == "arange's range must be a power of 2"
    with mlir_context(), pytest.raises(CompileTimeAssertionFailure) as failed:
        build_module(asserts_what_is_not, Signature({}))
    assert cause_of(failed.value) is None
    raised = CompilationError("rule", error.span)
    with pytest.raises(CompilationError) as again:
        raise raised from KeyError("x")
    assert isinstance(cause_of(again.value), KeyError)


@pytest.mark.parametrize("what", ["if", "ternary", "return"])
def test_a_pointer_is_to_const_on_every_path_or_on_none(what: str) -> None:
    """What one path must not write through may not come out as what all may."""
    kernel, words = {
        "if": (const_by_if, "Mismatched type for p: "),
        "ternary": (const_by_ternary, "Ternary expression with dynamic condition has inconsistent"),
        "return": (const_by_return, "Inconsistent return types: "),
    }[what]
    types = {"a": tl.str_to_ty("*fp32"), "b": tl.str_to_ty("*kfp32"), "n": tl.str_to_ty("i32")}
    with mlir_context(), pytest.raises(CompilationError) as caught:
        build_module(kernel, Signature(types))
    assert words in caught.value.error_message
    assert "*kfp32" in caught.value.error_message
    assert "leave tl.const out" in caught.value.hint


def test_a_choice_of_pointers_is_to_const_if_one_is() -> None:
    types = {"a": tl.str_to_ty("*fp32"), "b": tl.str_to_ty("*kfp32"), "n": tl.str_to_ty("i32")}
    for kernel in (const_by_where, const_by_where_turned):
        with mlir_context(), pytest.raises(CompilationError, match="Cannot store to a constant"):
            build_module(kernel, Signature(types))
