"""What tests of a front end for Triton's language share: the IR of a kernel before any pass, and
FileCheck on it.

The names are those of `triton._filecheck`. The IR is Proton's: of what Triton's prints it has the
ops of `arith`, `math` and `scf`, the ops of `tt` in MLIR's generic form, functions in the place of
their calls, and no ops for what is known while compiling. FileCheck is the package `filecheck`.
"""

import contextlib
import functools
import importlib
import inspect
import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proton.base.errors import ProtonError
from proton.base.targets import GPUTarget, Target
from proton.runtime.launch.jit import JITFunction

stub_target = GPUTarget("cuda", 100)


class MatchError(ValueError):
    """IR that is not as checks have it; `module_str` is the IR."""

    def __init__(self, message: str, module_str: str) -> None:
        super().__init__(message)
        self.module_str = module_str

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.module_str}"


class ParsedKernel:
    """The IR of a kernel, as text without locations."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def str_nodebug(self) -> str:
        """The text."""
        return self._text


def run_parser(
    kernel_fn: JITFunction,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    target: Target = stub_target,
) -> ParsedKernel:
    """The IR of a kernel for these arguments and options, before any pass. Nothing is cached, and
    integers are not checked for overflow unless `sanitize_overflow` asks for it. Raises
    CompilationError."""
    from proton.dialect.context import mlir_context
    from proton.frontend import build_module

    options = {"sanitize_overflow": False} | dict(kwargs or {})
    request = kernel_fn.request(*args, target=target, **options)
    assert request is not None, "both back ends say what they would compile"
    debug, sanitize_overflow = kernel_fn.checks(options)
    with mlir_context():
        module = build_module(
            kernel_fn,
            request.signature,
            debug=debug,
            sanitize_overflow=sanitize_overflow,
            target=target,
            num_warps=getattr(request.options, "num_warps", 0),
            num_ctas=getattr(request.options, "num_ctas", 1),
        )
        return ParsedKernel(str(module))


def run_filecheck(name: str, module_str: str, check_template: str) -> None:
    """Runs FileCheck on a text, with the checks of another. Raises MatchError where it is not as
    they have it, and ProtonError where there is no FileCheck."""
    try:
        filecheck = importlib.import_module("filecheck.main")
    except ImportError as problem:
        raise ProtonError("FileCheck is not there: pip install filecheck") from problem
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        module, expected = Path(folder) / name, Path(folder) / "expected"
        module.write_text(module_str)
        expected.write_text(check_template)
        arguments = ["filecheck", str(expected), "--input-file", str(module)]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                filecheck.main(arguments)
                status: Any = 0
            except SystemExit as end:
                status = end.code
    if status:
        raise MatchError(said.getvalue(), module_str)


def run_filecheck_test(
    kernel_fn: JITFunction,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    target: Target = stub_target,
) -> None:
    """Checks the IR of a kernel by the comments in its source."""
    module = run_parser(kernel_fn, args, kwargs, target)
    run_filecheck("module", module.str_nodebug(), inspect.getsource(kernel_fn.fn))


def filecheck_test(fn: Any) -> Callable[[], None]:
    """A test that checks the IR of a kernel without parameters by the comments in its source."""

    @functools.wraps(getattr(fn, "fn", fn))  # of what is no kernel the test says so
    def test_fn() -> None:
        run_filecheck_test(fn)

    return test_fn
