"""Constructs that a Triton user expects: each kernel shows what it knows while compiling."""

import ast
import math
from pathlib import Path
from typing import Any

import pytest

import proton.language as tl
from proton import frontend
from proton.base.errors import CompilationError
from proton.base.targets import CPUTarget
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.frontend import Signature, build_module
from proton.frontend.codegen import Generator
from proton.language import core
from proton.language.function import DeviceFunction
from proton.language.profiling import enter_scope, exit_scope, mark, scope
from tests.ir import building
from tests.ir.building import SEEN, build, see, text_of
from tests.ir.scalar_interpreter import stored_values


def seen(kernel: DeviceFunction, **constants: Any) -> list[Any]:
    SEEN.clear()
    text_of(kernel, **constants)
    return list(SEEN)


def stored(kernel: DeviceFunction, arguments: list[int], **constants: Any) -> list[int]:
    with mlir_context():
        return stored_values(build(kernel, **constants), arguments)


# Messages


@DeviceFunction
def messages(out, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 2 == 0, f"BLOCK must be even, got {BLOCK}")
    tl.static_print(f"BLOCK={BLOCK:>4}", n.dtype, sep=", ")
    tl.static_print(f"{BLOCK!r} {n.type}")
    tl.device_assert(n > 0, f"n must be positive with BLOCK={BLOCK}")
    assert n < 100, "n is large"


def test_messages_take_f_strings(capsys: pytest.CaptureFixture[str]) -> None:
    signature = Signature({"out": building.OUT, "n": tl.int32}, {"BLOCK": 4})
    with mlir_context():
        text = str(build_module(messages, signature, debug=True))
    assert "assertion failed: n must be positive with BLOCK=4" in text
    assert "assertion failed: n is large" in text
    assert capsys.readouterr().out == "BLOCK=   4, int32\n4 int32\n"
    assert "tt.assert" not in text_of(messages, BLOCK=4)
    with pytest.raises(CompilationError, match="BLOCK must be even, got 3"):
        text_of(messages, BLOCK=3)


# Types and shapes


@DeviceFunction
def types(out, n):
    x = tl.arange(0, 4)
    see(out.dtype.element_ty, out.type.element_ty, (out + x).dtype.element_ty, x.dtype.is_int())
    see(x.to(tl.float32).dtype, x[:, None].shape, x[None, :].dtype == tl.int32)
    see(x.dtype != tl.int64, x.dtype is tl.int32, x.type.scalar, n.to(out.dtype.element_ty).dtype)
    see(isinstance(x, tl.tensor), isinstance(4, tl.constexpr), isinstance(n, tl.constexpr))
    see(hasattr(x, "sum"), hasattr(x, "foo"), getattr(x, "shape"), getattr(x, "foo", 7))  # noqa: B009


def test_types_are_known_while_compiling() -> None:
    assert seen(types) == [
        *(tl.int32, tl.int32, tl.int32, True),
        *(tl.float32, (4, 1), True),
        *(True, True, tl.int32, tl.int32),
        *(True, True, False),
        *(True, False, (4,), 7),
    ]


@DeviceFunction
def dots(out):
    a = tl.zeros((16, 16), tl.float16)
    see(tl.dot(a, a).dtype, tl.dot(a, a, out_dtype=tl.float16).dtype)
    see(tl.dot(a.to(tl.int8), a.to(tl.int8)).dtype)
    see(tl.dot(a, a, tl.zeros((16, 16), tl.float32)).shape)


def test_the_type_of_a_product_can_be_chosen() -> None:
    assert seen(dots) == [tl.float32, tl.float16, tl.int32, (16, 16)]


# Functions


@DeviceFunction
def scaled(x, *, factor=2, SHIFT: tl.constexpr = 1):
    see(SHIFT)
    return x * factor + SHIFT


@DeviceFunction
def nested_tuple(x, y):
    return (x, (y, x + y)), 3


@DeviceFunction
def total(*values):
    result = 0
    for i in tl.static_range(len(values)):
        result += values[i]
    return result


@DeviceFunction
def calls(out, a, b):
    tl.store(out, scaled(a))
    tl.store(out, scaled(a, factor=b, SHIFT=5))
    (first, (second, third)), constant = nested_tuple(a, b)
    tl.store(out, first + second * 10 + third * 100 + constant * 1000)
    pair = (a, b)
    tl.store(out, total(*pair, 4))
    tl.store(out, total())


def test_functions_take_keywords_defaults_and_tuples() -> None:
    assert stored(calls, [2, 3]) == [5, 11, 3532, 9, 0]
    assert seen(calls) == [1, 5]


# Loops


@DeviceFunction
def loops(out, n, STEP: tl.constexpr):
    for i in range(3, 0, STEP):
        tl.store(out, i)
    for i in tl.static_range(6, 0, 2 * STEP):
        see(i)
    for i in tl.static_range(2):
        for j in tl.range(0, n, loop_unroll_factor=2):
            tl.store(out, i * 10 + j)


def test_loops_take_constexpr_steps_and_hints() -> None:
    assert stored(loops, [2], STEP=-1) == [3, 2, 1, 0, 1, 10, 11]
    assert seen(loops, STEP=-1) == [6, 4, 2]
    assert "tt.loop_unroll_factor = 2" in text_of(loops, STEP=-1)


# Globals

LIMIT: tl.constexpr = tl.constexpr(8)
HALF = tl.float16


class Config:
    BLOCK = tl.constexpr(32)


@DeviceFunction
def reads_globals(out):
    see(LIMIT, LIMIT * 2, HALF, Config.BLOCK, math.pi, core.dtype, building.OUT.element_ty)
    see(min(LIMIT, 3), max(2, LIMIT), abs(-LIMIT), len((1, 2)), int(2.5), float(LIMIT))


def test_globals_of_this_and_other_modules_are_read() -> None:
    assert seen(reads_globals) == [
        *(8, 16, tl.float16, 32, math.pi, tl.dtype, tl.int32),
        *(3, 8, 8, 2, 2, 8.0),
    ]


def test_what_a_kernel_reads_is_part_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    values = reads_globals.dependencies()
    assert values["LIMIT"] == 8
    assert values["Config.BLOCK"] == 32
    assert values["math.pi"] == math.pi
    key = reads_globals.source_key()
    monkeypatch.setattr(Config, "BLOCK", tl.constexpr(64))
    assert reads_globals.source_key() != key


PAIR = (tl.constexpr(2), tl.constexpr(3))


@DeviceFunction
def reads_tuple(out):
    see(PAIR[0])


def test_the_elements_of_a_tuple_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = reads_tuple.source_key()
    monkeypatch.setitem(globals(), "PAIR", (tl.constexpr(2), tl.constexpr(4)))
    assert reads_tuple.source_key() != key


# Conditions


@DeviceFunction
def mixed_conditions(out, n, FLAG: tl.constexpr, NONE: tl.constexpr):
    if NONE is None and n > 2:
        tl.store(out, 1)
    if FLAG or n > 2:
        tl.store(out, 2)
    if n > 2 and FLAG:
        tl.store(out, 3)
    if not FLAG and not n > 2:
        tl.store(out, 4)
    if n > 0 and FLAG and n < 5:
        tl.store(out, 5)
    if NONE is not None:
        tl.store(out, NONE)
    see(FLAG and NONE, FLAG or NONE, not FLAG)


@pytest.mark.parametrize("n", [1, 3, 7])
@pytest.mark.parametrize("flag", [True, False])
def test_constexpr_and_runtime_conditions_mix(n: int, flag: bool) -> None:
    wanted = [
        *([1] if n > 2 else []),
        *([2] if flag or n > 2 else []),
        *([3] if flag and n > 2 else []),
        *([4] if not flag and n <= 2 else []),
        *([5] if flag and 0 < n < 5 else []),
    ]
    assert stored(mixed_conditions, [n], FLAG=flag, NONE=None) == wanted
    assert seen(mixed_conditions, FLAG=flag, NONE=None) == [flag and None, flag or None, not flag]


@DeviceFunction
def assigns_while_testing(out, n):
    if (twice := n * 2) > 4:
        tl.store(out, twice)
    half: tl.constexpr = 4 // 2
    tl.store(out, half)
    see([i for i in range(5) if i % 2], (*(1, 2), 3))


def test_walrus_and_constexpr_locals() -> None:
    assert stored(assigns_while_testing, [3]) == [6, 2]
    assert seen(assigns_while_testing) == [(1, 3), (1, 2, 3)]


# Scopes


@DeviceFunction
def payloads(out, n):
    with scope("a", count=n, ratio=n * 0.5, flag=n > 1), scope("b"):
        mark("here", 2.5)
    enter_scope("c")
    if n > 0:
        enter_scope("d")
        exit_scope("d")
    exit_scope("c")


def test_payload_travels_as_i64_with_its_kind() -> None:
    text = text_of(payloads)
    assert 'kinds = ["int", "float", "int"], names = ["count", "ratio", "flag"]' in text
    assert "(i64, i64, i64) -> ()" in text
    assert text.count("arith.bitcast") == 2
    assert '"proton.mark"(' in text
    assert text.count('phase = "start"') == text.count('phase = "end"') == 4


def test_several_scopes_in_one_with_nest() -> None:
    records = [line for line in text_of(payloads).splitlines() if "proton.record" in line]
    paths = [line.split('scope = "')[1].split('"')[0] for line in records]
    assert paths == ["a", "a/b", "a/b", "a", "c", "c/d", "c/d", "c"]


@DeviceFunction
def fails_in_a_scope(out):
    with scope("outer"), scope("inner"):
        tl.arange(0, 3)


def test_an_error_in_a_scope_leaves_no_scope_open() -> None:
    with mlir_context():
        module = build(payloads)
        generator = Generator(fails_in_a_scope, {}, target=CPUTarget())
        block = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block), pytest.raises(CompilationError):
            generator.run(fails_in_a_scope.parse().body)
    assert (generator.scopes, generator.block_scope, generator.node) == ([], 0, None)


# The front end itself


def test_every_error_of_the_front_end_has_a_hint() -> None:
    folder = Path(frontend.__file__).parent
    bare = []
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            name = getattr(getattr(node, "func", None), "id", "") or getattr(
                getattr(node, "func", None), "attr", ""
            )
            if name in ("error", "unsupported") and isinstance(node, ast.Call):
                empty = len(node.args) < 2 or getattr(node.args[1], "value", None) == ""
                bare += [f"{file.name}:{node.lineno}"] if empty else []
    assert not bare


def test_no_import_hides_in_a_function_of_the_front_end() -> None:
    folder = Path(frontend.__file__).parent
    hidden = [
        f"{file.name}:{inner.lineno}"
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    assert not hidden
