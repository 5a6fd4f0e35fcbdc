"""Traits: every op of every dialect is asked every question, and the answers fit each other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proton.dialect import proton, proton_gpu, traits, tt, ttg, tts
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.traits import Assumed, SharedEffects, Trait, has

DIALECTS = (tt.TT, ttg.TTG, tts.TTS, proton.Proton, proton_gpu.ProtonGPU)
PROTON = Path(traits.__file__).parents[1]
QUESTIONS = sorted(
    (t for t in vars(traits).values() if isinstance(t, type) and issubclass(t, Trait)),
    key=lambda trait: trait.__name__,
)
QUESTIONS = [trait for trait in QUESTIONS if trait not in (Trait, Assumed)]


class Op:
    """What traits look at of an op."""

    def __init__(self, name: str, is_pure: bool = True) -> None:
        self.name, self.operands = name, [None, None]
        self.attributes = {"pure": ir.BoolAttr.get(is_pure)}


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with mlir_context() as context:
        yield context


def names() -> list[str]:
    return sorted(op.OPERATION_NAME for dialect in DIALECTS for op in dialect.operations)


def test_every_op_answers_every_question() -> None:
    assert len(names()) > 45
    for name in names():
        answers = {trait: has(Op(name), trait) for trait in QUESTIONS}
        is_ours = name.startswith(("proton.", "proton_gpu."))
        assert answers[traits.Records] == is_ours, name
        if answers[traits.Pure] or answers[traits.Reads] or answers[traits.Records]:
            assert not answers[traits.Writes], name
        else:
            assert answers[traits.Writes] or answers[traits.LayoutAnchor], name
        if answers[traits.Speculatable]:
            assert answers[traits.Pure], name
        if answers[traits.TileIndex]:
            assert answers[traits.Speculatable], f"{name} is said to be no work"
            assert not answers[traits.TileWork], name
        if answers[traits.Elementwise]:
            assert not answers[traits.LayoutAnchor], f"{name} takes the layout that is wanted"
        if answers[traits.Asynchronous]:
            assert SharedEffects.of(Op(name)).lands_later, name
        is_free = answers[traits.TileIndex] or answers[traits.NamesMemory]
        assert name.startswith("proton") or answers[traits.TileWork] != is_free


def test_an_op_that_nobody_knows_may_do_anything() -> None:
    op = Op("nobody.knows")
    assumed = {trait for trait in QUESTIONS if has(op, trait)}
    assert assumed == {traits.Writes, traits.TileWork}
    assert SharedEffects.of(op) == SharedEffects(reads=(0, 1), writes=(0, 1))


def test_what_an_attribute_says() -> None:
    assert has(Op("tt.extern_elementwise"), traits.Speculatable)
    assert not has(Op("tt.extern_elementwise", is_pure=False), traits.Speculatable)


def test_upstream_has_the_ops_that_are_named(context: Any) -> None:
    """A misspelled name would be a fact about nothing."""
    for trait in QUESTIONS:
        for name in (*trait.upstream, *trait.without):
            if not name.endswith("."):
                assert context.is_registered_operation(name), f"{trait.__name__}: {name}"


def test_nothing_is_speculatable_that_mlir_says_is_not() -> None:
    """Its code motion leaves a division in a loop that may not run."""
    text = """
    func.func @f(%n: index, %a: i32, %b: i32) -> i32 {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %z = arith.constant 0 : i32
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> i32 {{
        %x = arith.{name} %a, %b : i32
        %t = arith.addi %s, %x : i32
        scf.yield %t : i32
      }}
      return %r : i32
    }}"""
    from proton.passes import Upstream

    for name in ("addi", "muli", "divsi", "divui", "remsi", "remui", "floordivsi", "minsi"):
        module = ir.Module.parse(text.format(name=name))
        Upstream("loop-invariant-code-motion").run(module)
        lines = str(module).splitlines()
        loop = next(n for n, line in enumerate(lines) if "scf.for" in line)
        moved = any(f"arith.{name} " in line for line in lines[:loop])
        assert moved or not has(Op(f"arith.{name}"), traits.Speculatable), name


def test_a_trait_has_two_users() -> None:
    """What one place alone asks is a set of classes there, or stands beside the trait that asks."""
    declared = re.compile(r"^from .*?import (\([^)]*\)|.*)$|traits=\[[^]]*\]", re.MULTILINE)
    texts = {file: declared.sub("", file.read_text()) for file in PROTON.rglob("*.py")}
    own = texts.pop(Path(traits.__file__))
    later = {"Address", "KeepsMemory"}  # copy_next_iteration.py's, which a schedule replaces
    for name in (trait.__name__ for trait in QUESTIONS):
        word = re.compile(rf"(has\(.*|traits\.|\[|\* |, ){name}\b")
        users = sum(len(word.findall(text)) for text in texts.values() if name in text)
        assert users > 1 or own.count(name) > 1 or name in later, name


def literals(node: ast.AST) -> Iterator[tuple[int, list[str]]]:
    """(line, texts) of each list, tuple, set, or text that is split."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.List | ast.Tuple | ast.Set):
            texts = [e.value for e in inner.elts if isinstance(e, ast.Constant)]
            yield inner.lineno, [text for text in texts if isinstance(text, str)]
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            value = inner.func.value
            if inner.func.attr == "split" and isinstance(value, ast.Constant):
                yield inner.lineno, str(value.value).split()


def test_no_other_file_keeps_a_list_of_ops() -> None:
    """More than three names of ops in a list are a fact about ops, and stand with the traits."""
    op_name = re.compile(r"(arith|math|scf|memref|llvm|linalg|vector|tensor|tt|ttg|tts)\.[a-z_.]+")
    found = []
    for file in PROTON.rglob("*.py"):
        source = file.read_text()  # parsed where it has so many at all
        if file.name != "traits.py" and len(op_name.findall(source)) > 3:
            for line, texts in literals(ast.parse(source)):
                if len([text for text in texts if op_name.fullmatch(text)]) > 3:
                    found.append(f"{file.relative_to(PROTON)}:{line}: {texts}")
    assert not found
