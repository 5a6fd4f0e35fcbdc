"""The IR that the front end gives tests of its own (`triton._filecheck`), and checks of it."""

import sys

import pytest

import proton
import proton.language as tl
from proton import compiler
from proton.base.errors import ProtonError
from proton.compat.triton import filecheck as _filecheck
from proton.compat.triton.filecheck import (
    MatchError,
    filecheck_test,
    run_filecheck,
    run_filecheck_test,
    run_parser,
)
from proton.runtime.launch.jit import MockTensor


@filecheck_test
@proton.jit
def test_comments_of_a_kernel_are_checks():
    # CHECK-LABEL: test_comments_of_a_kernel_are_checks
    # CHECK: [[I:%.*]] = "tt.make_range"() {end = 4 : i32, start = 0 : i32}
    i = tl.arange(0, 4)
    # CHECK-NEXT: arith.addi [[I]], [[I]]
    i + i
    # CHECK-NOT: arith.cmpi


@proton.jit
def scales(out, n, factor: tl.constexpr):
    # CHECK: %arg0: !tt.ptr<f32>
    # CHECK: arith.muli %arg1
    tl.store(out + tl.program_id(0), n * factor)


def test_ir_that_is_not_as_the_comments_have_it() -> None:
    array = MockTensor(tl.float32)
    run_filecheck_test(scales, args=(array, 3, 5))
    run_filecheck_test(scales, args=(array, 3), kwargs={"factor": 5, "num_warps": 8})
    with pytest.raises(MatchError, match="muli") as caught:  # nothing is multiplied by 1
        run_filecheck_test(scales, args=(array, 1, 5))
    assert "tt.store" in caught.value.module_str


def test_only_what_is_asked_for_is_checked_for_overflow() -> None:
    array = MockTensor(tl.float32)
    texts = [
        run_parser(scales, (array, 3, 5), {"debug": True} | options).str_nodebug()
        for options in ({}, {"sanitize_overflow": True})
    ]
    assert ["tt.assert" in text for text in texts] == [False, True]


@proton.jit
def where_it_is_for(out):
    tl.static_assert(tl.target_info.is_cuda())
    tl.store(out, tl.target_info.cuda_capability_geq(9, 0))


def test_the_kernel_is_for_the_target() -> None:
    array = MockTensor(tl.int32)
    assert "constant 1 : i32" in str(run_parser(where_it_is_for, (array,)))
    older = proton.GPUTarget("cuda", 80)
    assert "constant 0 : i32" in str(run_parser(where_it_is_for, (array,), target=older))


def test_what_is_no_kernel_says_so_when_it_is_tested() -> None:
    def no_kernel() -> None: ...

    test = filecheck_test(no_kernel)
    assert test.__name__ == "no_kernel"
    with pytest.raises(AttributeError):
        test()


@proton.jit
def wrong():
    tl.arange(0, 3)


def test_a_kernel_that_does_not_compile() -> None:
    with pytest.raises(proton.CompilationError, match="power of 2"):
        run_parser(wrong)


def test_filecheck_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    run_filecheck("module", "a\nb\n", "# CHECK: a\n# CHECK-NEXT: b\n")
    with pytest.raises(ValueError, match="c"):
        run_filecheck("module", "a\n", "# CHECK: c\n")
    monkeypatch.setitem(sys.modules, "filecheck.main", None)
    with pytest.raises(ProtonError, match="pip install filecheck"):
        run_filecheck("module", "a\n", "# CHECK: a\n")


def test_the_module_of_the_code_generator_has_it_and_its_errors() -> None:
    from proton.frontend.codegen import Generator

    assert compiler.code_generator.CodeGenerator is Generator
    assert compiler.code_generator.CompilationError is proton.CompilationError
    with pytest.raises(AttributeError, match="no attribute 'ast_to_ttir'"):
        compiler.code_generator.ast_to_ttir
    assert _filecheck.stub_target.arch == 100
