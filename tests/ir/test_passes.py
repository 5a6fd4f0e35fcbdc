"""Pipelines: dumps, edited dumps, reproducers, timings and their text."""

import dataclasses
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

import proton
import proton.language as tl
from proton import passes
from proton.base.errors import CompilationError, PassError
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget
from proton.conversion.start_partitions import StartPartitions
from proton.conversion.ttg_to_llvm import TTGToLLVM
from proton.dialect.context import mlir_context
from proton.dialect.mlir import Module, Operation, PassManager, arith, ir
from proton.dialect.walk import all_ops, op_names, users
from proton.passes import Pass, Pipeline, Upstream, parse_pipeline
from proton.tools.opt import app, register_all_passes

TEXT = "func.func @kernel() { return }"


@dataclass(frozen=True, kw_only=True)
class Tag(Pass):
    """Writes its options onto each function."""

    name: ClassVar[str] = "test-tag"

    value: int = 0
    text: str = "plain"
    loud: bool = False

    def run(self, module: Any) -> None:
        for function in module.body.operations:
            shown = self.text.upper() if self.loud else self.text
            function.attributes[f"tag{self.value}"] = ir.StringAttr.get(shown)


@dataclass(frozen=True)
class Fail(Pass):
    """Raises a plain Python error."""

    name: ClassVar[str] = "test-fail"

    def run(self, module: Any) -> None:
        raise KeyError("the pass is broken")


@dataclass(frozen=True)
class BreakIR(Pass):
    """Leaves IR that does not verify."""

    name: ClassVar[str] = "test-break-ir"

    def run(self, module: Any) -> None:
        with ir.InsertionPoint.at_block_begin(module.body.operations[0].regions[0].blocks[0]):
            i32 = ir.IntegerType.get_signless(32)
            axis = {"axis": ir.IntegerAttr.get(i32, 9)}
            ir.Operation.create("tt.get_program_id", results=[i32], attributes=axis)


@dataclass(frozen=True)
class Complain(Pass):
    """Finds a fault in the kernel's source."""

    name: ClassVar[str] = "test-complain"

    def run(self, module: Any) -> None:
        raise CompilationError("the kernel is at fault")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers the passes of this file for one test."""
    for cls in (Tag, Fail, BreakIR, Complain):
        monkeypatch.setitem(passes.REGISTRY, cls.name, cls)


@pytest.fixture(autouse=True)
def quiet_knobs() -> Iterator[None]:
    """No knob of the shell that runs the tests reaches them."""
    with knobs.scope(dump_to=None, override_from=None, reproducer_to=None, verify_each=False):
        yield


def run(pipeline: Pipeline, text: str = TEXT) -> str:
    with mlir_context():
        return str(pipeline.run(ir.Module.parse(text)))


# Dumps and overrides


def test_each_pass_leaves_a_numbered_dump(tmp_path: Path) -> None:
    steps: list[Pass] = [Tag(value=1), Upstream("canonicalize,cse"), Tag(value=2)]
    with knobs.scope(dump_to=tmp_path):
        run(Pipeline(steps, label="add"))
    names = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.mlir"))
    assert names == ["add/00_test-tag.mlir", "add/01_canonicalize_cse.mlir", "add/02_test-tag.mlir"]
    first, last = ((tmp_path / name).read_text() for name in (names[0], names[2]))
    assert "tag1" in first
    assert "tag2" not in first
    assert "tag1" in last
    assert "tag2" in last
    assert "loc(" in first, "dumps carry locations"


def test_numbers_go_on_in_a_second_pipeline(tmp_path: Path) -> None:
    with knobs.scope(dump_to=tmp_path), mlir_context():
        module = Pipeline([Tag()], label="add").run(ir.Module.parse(TEXT))
        Pipeline([Tag(value=1)], label="add").run(module, first_number=1)
    assert sorted(f.name for f in tmp_path.rglob("*.mlir")) == [
        "00_test-tag.mlir",
        "01_test-tag.mlir",
    ]


def test_no_dump_without_the_knob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(Pipeline([Tag()]))
    assert list(tmp_path.iterdir()) == []


def test_an_edited_dump_replaces_the_result_of_its_pass(tmp_path: Path) -> None:
    steps: list[Pass] = [Tag(value=1), Tag(value=2)]
    with knobs.scope(dump_to=tmp_path):
        run(Pipeline(steps, label="add"))
    dump = tmp_path / "add" / "00_test-tag.mlir"
    dump.write_text(dump.read_text().replace("@kernel", "@edited").replace('"plain"', '"by hand"'))
    with knobs.scope(override_from=tmp_path):
        (tmp_path / "add" / "01_test-tag.mlir").unlink()
        result = run(Pipeline(steps, label="add"))
    assert "@edited" in result
    assert 'tag1 = "by hand"' in result
    assert 'tag2 = "plain"' in result, "the passes after the edit ran on it"


def test_an_override_of_another_label_is_not_taken(tmp_path: Path) -> None:
    with knobs.scope(dump_to=tmp_path):
        run(Pipeline([Tag()], label="add"))
    dump = tmp_path / "add" / "00_test-tag.mlir"
    dump.write_text(dump.read_text().replace("@kernel", "@edited"))
    with knobs.scope(override_from=tmp_path):
        assert "@edited" not in run(Pipeline([Tag()], label="mul"))


# Failures


def test_a_failing_pass_leaves_a_reproducer_that_proton_opt_reruns(tmp_path: Path) -> None:
    with knobs.scope(reproducer_to=tmp_path), pytest.raises(PassError) as failure:
        run(Pipeline([Tag(value=1), Fail()], label="add"))
    assert "pass test-fail failed on add: KeyError: 'the pass is broken'" in str(failure.value)
    (file,) = tmp_path.iterdir()
    assert f"proton-opt --pipeline='test-fail' {file}" in str(failure.value)
    command, text = file.read_text().split("\n", 1)
    assert "tag1" in text, "the input of the failing pass, not of the pipeline"
    match = re.fullmatch(r"// RUN: proton-opt (.*) %s", command)
    assert match
    again = CliRunner().invoke(app, [*shlex.split(match[1]), str(file)])
    assert again.exit_code == 1
    assert "KeyError: 'the pass is broken'" in again.stderr


@dataclass(frozen=True)
class EraseUsed(Pass):
    """Erases the first op whose result something uses."""

    name: ClassVar[str] = "test-erase-used"

    def run(self, module: Module) -> None:
        op = next(op for op in all_ops(module) if op.results and users(op.results[0]))
        op.erase()


def test_an_op_that_is_erased_while_it_is_used_is_an_error(tmp_path: Path) -> None:
    """The bindings would free it, and who reads the use would end the process."""
    text = "func.func @kernel(%a: i32) -> i32 { %b = arith.addi %a, %a : i32 return %b : i32 }"
    with knobs.scope(reproducer_to=tmp_path), mlir_context(), pytest.raises(PassError) as failure:
        Pipeline([EraseUsed()], label="add").run(ir.Module.parse(text))
    assert "arith.addi is erased while func.return uses it" in str(failure.value)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_set_finds_an_op_that_has_changed() -> None:
    """The hash of the bindings is another one then."""
    text = """func.func @kernel(%a: i32, %b: i32) {
      %c = arith.addi %a, %a : i32
      scf.execute_region { %d = arith.muli %c, %b : i32 scf.yield }
      return
    }"""
    with mlir_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        function, first, around, second, *_ = all_ops(module)
        ops, views = {first, second}, {first.opview, second.opview}
        other = function.regions[0].blocks[0].arguments[1]

        def is_found(op: Operation) -> bool:
            same = next(one for one in all_ops(module) if one == op)
            return all(one in found for one in (same, same.opview) for found in (ops, views))

        first.operands[0] = other
        assert is_found(first)
        first.attributes["tag"] = ir.UnitAttr.get()
        assert is_found(first)
        first.location = ir.Location.name("elsewhere")
        assert is_found(first)
        second.move_before(around)
        assert is_found(second)
        first.results[0].replace_all_uses_with(other)
        assert is_found(second)
        first.results[0].set_type(ir.IntegerType.get_signless(64))
        assert is_found(first)
        first.erase()
        with pytest.raises(RuntimeError, match="invalidated"):
            hash(first)
        assert is_found(second)
        assert function not in ops


def test_a_pass_that_ends_the_process_leaves_its_input(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, signal
from tests.ir.test_passes import Fail, Pipeline, Tag, knobs, run
Fail.run = lambda self, module: os.kill(os.getpid(), signal.SIGKILL)
with knobs.scope(reproducer_to=pathlib.Path({str(tmp_path)!r})):
    run(Pipeline([Tag(value=1), Fail()], label="add"))
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -signal.SIGKILL
    (file,) = tmp_path.iterdir()
    assert "--pipeline='test-fail'" in (text := file.read_text())
    assert "tag1" in text


def test_a_failure_without_reproducer_says_how_to_get_one() -> None:
    with pytest.raises(PassError, match="set PROTON_REPRODUCER_TO"):
        run(Pipeline([Fail()]))


def test_the_cause_of_a_failure_is_kept() -> None:
    with pytest.raises(PassError) as failure:
        run(Pipeline([Fail()]))
    assert isinstance(failure.value.__cause__, KeyError)


def test_an_error_about_the_source_comes_through_unchanged() -> None:
    with pytest.raises(CompilationError, match="the kernel is at fault"):
        run(Pipeline([Complain()]))


def test_invalid_ir_is_found_after_the_pass_that_made_it() -> None:
    with knobs.scope(verify_each=True), pytest.raises(PassError) as failure:
        run(Pipeline([Tag(), BreakIR(), Tag(value=1)], label="add"))
    assert "pass test-break-ir failed on add" in str(failure.value)
    assert "axis must lie in [0, 2], got 9" in str(failure.value)


@proton.jit
def doubled(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


@pytest.mark.parametrize(("last", "target"), [
    (TTGToLLVM, GPUTarget("cuda", 90)), (TTGToLLVM, GPUTarget("hip", "gfx942")),
    (StartPartitions, None)])  # fmt: skip
def test_a_value_that_is_used_before_it_is_made_ends_a_compilation_and_not_the_process(
    monkeypatch: pytest.MonkeyPatch, last: type[Pass], target: GPUTarget | None
) -> None:
    """What LLVM is handed is verified once, behind the last pass of ours that makes it."""
    plain = last.run

    def run_and_break(self: Pass, module: Module) -> None:
        plain(self, module)
        ops = [op for op in all_ops(module) if op.name.startswith(("llvm.", "arith."))]
        op = next(op for op in ops if op.results and users(op.results[0]))
        op.move_after(users(op.results[0])[0])

    monkeypatch.setattr(last, "run", run_and_break)
    with knobs.scope(always_compile=True), pytest.raises(PassError, match="does not dominate"):
        doubled.warmup(tl.float32, tl.float32, 100, BLOCK=64, grid=(1,), target=target)


def test_an_unknown_upstream_pass_is_a_pass_error() -> None:
    with pytest.raises(PassError, match="no-such-pass"):
        run(Pipeline(parse_pipeline("no-such-pass")))


# Passes of MLIR's own are kept for the next module

TWICE = """
func.func @kernel(%x: i32) -> i32 {
  %a = arith.addi %x, %x : i32
  %b = arith.addi %x, %x : i32
  %c = arith.muli %a, %b : i32
  return %c : i32
}
"""


def test_kept_passes_do_the_same_to_every_module() -> None:
    step = Upstream("canonicalize,cse")
    fresh = []
    for text in (TEXT, TWICE):
        with mlir_context():
            module = ir.Module.parse(text)
            PassManager.parse(f"builtin.module({step})").run(module.operation)
            fresh.append(str(module))
    assert fresh[1].count("arith.addi") == 1
    for _ in range(3):
        assert [run(Pipeline([step]), text) for text in (TEXT, TWICE)] == fresh


def test_passes_that_met_invalid_ir_work_on_the_next_module() -> None:
    """They verify while a knob says so, and no longer."""
    step = Upstream("loop-invariant-code-motion")  # it keeps what nobody uses
    want = run(Pipeline([step]), TWICE)
    for verify_each in (True, False, True):
        with mlir_context(), knobs.scope(verify_each=verify_each):
            broken = ir.Module.parse(TEXT)
            BreakIR().run(broken)
            if verify_each:
                with pytest.raises(ir.MLIRError, match="axis must lie"):
                    step.run(broken)
            else:
                step.run(broken)
        assert run(Pipeline([step]), TWICE) == want


# Timings


def test_every_pass_has_a_timing(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = Pipeline([Tag(), Upstream("cse")], label="add")
    run(pipeline)
    assert [str(step) for step, _ in pipeline.timings] == ["test-tag", "cse"]
    assert all(seconds >= 0 for _, seconds in pipeline.timings)
    pipeline.print_timings()
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition("  ")[2] for line in lines] == ["add: test-tag", "add: cse"]


# Text


@pytest.mark.parametrize(
    "text",
    [
        "test-tag",
        "test-tag{value=3}",
        "test-tag{value=-1 text=abc loud=true}",
        "cse,test-tag{loud=true},canonicalize",
        "func.func(cse,canonicalize{max-iterations=2}),test-tag",
        "test-tag,test-tag{value=2}",
        "",
    ],
)
def test_text_goes_round(text: str) -> None:
    steps = parse_pipeline(text)
    assert str(Pipeline(steps)) == text
    assert parse_pipeline(str(Pipeline(steps))) == steps


def test_options_become_typed_fields() -> None:
    assert parse_pipeline("test-tag{value=3 loud=true}") == [Tag(value=3, loud=True)]


def test_neighbouring_upstream_passes_run_as_one_pipeline() -> None:
    assert parse_pipeline("cse, canonicalize, test-tag, cse") == [
        Upstream("cse,canonicalize"),
        Tag(),
        Upstream("cse"),
    ]


def test_options_reach_the_pass() -> None:
    result = run(Pipeline(parse_pipeline("test-tag{value=7 text=abc loud=true}")))
    assert 'tag7 = "ABC"' in result


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test-tag{val=3}", "pass test-tag has no option 'val'; its options: value, text, loud"),
        ("test-fail{x=1}", "pass test-fail has no option 'x'; its options: none"),
        ("test-tag{value=three}", "option value of pass test-tag is int, got 'three'"),
        ("test-tag{loud=yes}", "option loud of pass test-tag is bool, got 'yes'"),
        (
            "tritongpu-coalesce",
            "pass tritongpu-coalesce needs the option target: tritongpu-coalesce{target=cuda:90}",
        ),
        (
            "tritongpu-coalesce{target=cuda}",
            'option target of pass tritongpu-coalesce: a GPU target is written "cuda:90", '
            "got 'cuda'",
        ),
    ],
)
def test_a_wrong_option_is_an_error_that_says_what_there_is(text: str, message: str) -> None:
    with pytest.raises(PassError) as failure:
        parse_pipeline(text)
    assert str(failure.value) == message


def test_two_passes_cannot_share_a_name() -> None:
    with pytest.raises(ValueError, match="two passes are named test-tag"):
        passes.register(Tag)


# proton-opt's own surface


def test_list_names_passes_and_options() -> None:
    result = CliRunner().invoke(app, ["--list"])
    assert result.exit_code == 0
    assert "test-tag\n    Writes its options onto each function.\n" in result.stdout
    assert "{value}: int = 0" in result.stdout


def test_an_unknown_option_ends_with_status_1(tmp_path: Path) -> None:
    file = tmp_path / "a.mlir"
    file.write_text(TEXT)
    result = CliRunner().invoke(app, [str(file), "--pipeline=test-tag{nope=1}"])
    assert result.exit_code == 1
    assert "has no option 'nope'" in result.stderr


def test_standard_input_is_read() -> None:
    result = CliRunner().invoke(app, ["--pipeline=test-tag{value=4}"], input=TEXT)
    assert result.exit_code == 0
    assert 'tag4 = "plain"' in result.stdout


# What is left out


@dataclass(frozen=True)
class ForAdditions(Pass):
    """Fails; says that it is for additions alone."""

    name: ClassVar[str] = "test-for-additions"
    only_for: ClassVar[frozenset[str]] = frozenset({"arith.addi"})

    def run(self, module: Any) -> None:
        raise KeyError("the pass has run")


ADDITION = """func.func @kernel(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  return %y : i32
}"""


def test_a_pass_runs_where_there_is_what_it_is_for(tmp_path: Path) -> None:
    with knobs.scope(dump_to=tmp_path):
        run(Pipeline([Tag(), ForAdditions()], label="add"))
    names = sorted(file.name for file in tmp_path.rglob("*.mlir"))
    assert names == ["00_test-tag.mlir", "01_test-for-additions.mlir"], "its dump is there"
    with pytest.raises(PassError, match="the pass has run"):
        run(Pipeline([Tag(), ForAdditions()]), ADDITION)


@dataclass(frozen=True)
class Add(Pass):
    """Makes an addition."""

    name: ClassVar[str] = "test-add"

    def run(self, module: Any) -> None:
        with ir.InsertionPoint.at_block_begin(module.body.operations[0].regions[0].blocks[0]):
            one = arith.ConstantOp(ir.IntegerType.get_signless(32), 1)
            arith.AddIOp(one, one)


def test_what_a_pass_makes_is_seen_by_those_behind_it() -> None:
    with pytest.raises(PassError, match="the pass has run"):
        run(Pipeline([ForAdditions(), Add(), ForAdditions()]))


def test_a_simplification_runs_again_only_behind_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, plain = [], Upstream.run

    def watched(self: Upstream, module: Any) -> None:
        seen.append(self.text)
        plain(self, module)

    monkeypatch.setattr(Upstream, "run", watched)
    both, moved = Upstream("canonicalize,cse"), Upstream("loop-invariant-code-motion")
    run(Pipeline([both, ForAdditions(), both, Tag(), both, moved, moved]))
    assert seen == [both.text, both.text, moved.text, moved.text]


def _made(cls: type[Pass]) -> Pass:
    """A pass with what its options are by default."""
    has_target = any(field.name == "target" for field in dataclasses.fields(cls))  # type: ignore[arg-type]
    return cls(target=GPUTarget("cuda", 90)) if has_target else cls()  # type: ignore[call-arg]


def _printed(module: Any) -> str:
    """Without verifying it, which takes longest."""
    text: str = module.operation.get_asm(assume_verified=True)
    return text


def test_a_pass_does_nothing_without_what_it_is_for() -> None:
    """On the inputs of the tests of all passes."""
    register_all_passes()
    limited = [cls for cls in passes.REGISTRY.values() if cls.only_for]
    assert len(limited) > 15
    tried, wrong = 0, []
    for file in sorted((Path(__file__).parent / "lit" / "passes").glob("*.mlir")):
        for text in file.read_text().split("// -----"):
            with mlir_context():
                try:
                    module = ir.Module.parse(text)
                except ir.MLIRError:  # an input that is refused
                    continue
                before, names = _printed(module), op_names(module)
                for cls in limited:
                    if cls.only_for.isdisjoint(names):
                        _made(cls).run(module)
                        tried += 1
                        if _printed(module) != before:
                            wrong.append(f"{cls.name}: {file.name}")
                            module = ir.Module.parse(text)
    assert tried > 1000
    assert not wrong, wrong


def test_a_pass_makes_what_it_says() -> None:
    """On the inputs of the tests of all passes: a pipeline looks for no other ops behind it."""
    register_all_passes()
    known = [cls for cls in passes.REGISTRY.values() if cls.makes is not None]
    assert len(known) > 2
    tried, wrong = 0, []
    for file in sorted((Path(__file__).parent / "lit" / "passes").glob("*.mlir")):
        for text in file.read_text().split("// -----"):
            with mlir_context():
                for cls in known:
                    try:
                        module = ir.Module.parse(text)
                        names = op_names(module)
                        _made(cls).run(module)
                    except (ir.MLIRError, PassError, ValueError):  # it is not for this pass
                        continue
                    tried += 1
                    if more := op_names(module) - names - (cls.makes or frozenset()):
                        wrong.append(f"{cls.name}: {file.name}: {more}")
    assert tried > 200
    assert not wrong, wrong
