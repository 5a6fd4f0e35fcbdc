"""What a program sees of an error that it does not catch: its own lines and the kernel's, none of
Proton's, unless a variable asks for them."""

import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import (
    CompilationError,
    DeviceAssertionError,
    LaunchError,
    PassError,
    ProtonError,
    UnknownOption,
)
from proton.base.tracebacks import shorten
from proton.compiler import ASTSource
from tests import processes
from tests.tables import check_rows

SCRIPT = """\
import numpy as np
import proton, proton.language as tl

@proton.jit
def helper(x):
    return x + nothing

@proton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    at = x_ptr + tl.arange(0, BLOCK)
    tl.store(at, helper(tl.load(at)))

def main():
    kernel[(1,)](np.zeros(64, np.float32), BLOCK=64)

main()
"""
EXPECTED = """\
Traceback (most recent call last):
  File "{file}", line 16, in <module>
    main()
  File "{file}", line 14, in main
    kernel[(1,)](np.zeros(64, np.float32), BLOCK=64)
proton.base.errors.CompilationError: {file}:6:16: nothing is not defined
        return x + nothing
                   ^^^^^^^
    at 2:15: of helper
called from {file}:11:18:
        tl.store(at, helper(tl.load(at)))
                     ^^^^^^^^^^^^^^^^^^^
    at 3:17: of kernel
hint: assign it first, or pass it as a parameter
"""


@proton.jit
def wrong(x_ptr, BLOCK: tl.constexpr):
    at = x_ptr + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) + nothing)  # type: ignore[name-defined]  # noqa: F821


@proton.jit(debug=True)
def asserts(x_ptr):
    tl.device_assert(tl.load(x_ptr) > 0, "no number above 0")


@proton.autotune([proton.Config({"BLOCK": 32}), proton.Config({"BLOCK": 64})], key=[])
@proton.heuristics({"MORE": lambda args: 1})
@proton.jit
def tuned(x_ptr, BLOCK: tl.constexpr, MORE: tl.constexpr):
    at = x_ptr + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) + nothing)  # type: ignore[name-defined]  # noqa: F821


def ours(error: BaseException) -> list[str]:
    """The frames of Proton in a traceback, and its length is never nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[0].filename == __file__
    package = str(Path(proton.__file__).parent)
    return [f.name for f in frames if f.filename.startswith((package, "<"))]


@pytest.mark.parametrize("by", [[], ["-m", "proton", "-q"]], ids=["python", "proton"])
def test_a_script_ends_with_its_own_lines_and_the_kernels(tmp_path: Path, by: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = processes.python(*by, script, cwd=tmp_path)
    said = "".join(line + "\n" for line in ended.stderr.splitlines() if set(line) - set(" ^~"))
    expected = EXPECTED.format(file=script)
    wanted = "".join(li + "\n" for li in expected.splitlines() if set(li) - set(" ^~"))
    assert said.endswith(wanted)
    assert ended.returncode == 1
    if not by:
        assert ended.stderr == expected
        whole = processes.python(script, cwd=tmp_path, env={"PROTON_FULL_TRACEBACK": "1"})
        assert "codegen.py" in whole.stderr
        assert whole.stderr.count("\n") > 60


def test_no_way_to_the_compiler_shows_frames_of_proton() -> None:
    x, gpu = np.zeros(64, np.float32), proton.GPUTarget("cuda", 90)
    source = ASTSource(wrong, {"x_ptr": "*fp32"}, {"BLOCK": 64})

    def recorded() -> None:
        with proton.profile("run"):
            wrong[(1,)](x, BLOCK=64)

    def interpreted() -> None:
        with proton.knobs.scope(interpret=True):
            asserts[(1,)](x)

    def at_once() -> None:
        with ThreadPoolExecutor(1) as pool, proton.AsyncCompileMode(pool):
            wrong.warmup(x, BLOCK=64)

    def check(kind: type[Exception], call: Callable[[], object]) -> None:
        with pytest.raises(kind) as caught:
            call()
        assert not ours(caught.value)
        assert caught.value.__cause__ is None
        with proton.knobs.scope(full_traceback=True), pytest.raises(kind) as whole:
            call()
        assert ours(whole.value)

    check_rows(
        check,
        [
            (CompilationError, lambda: wrong[(1,)](x, BLOCK=64)),
            (CompilationError, lambda: wrong.run(x, grid=(1,), BLOCK=64)),
            (CompilationError, lambda: wrong.warmup(x, BLOCK=64)),
            (CompilationError, lambda: wrong.warmup(tl.float32, BLOCK=64, target=gpu)),
            (CompilationError, lambda: tuned[(1,)](x)),
            (CompilationError, lambda: tuned.run(x, grid=(1,))),
            (CompilationError, lambda: tuned.warmup(x)),
            (CompilationError, lambda: tuned.fn[(1,)](x, BLOCK=64)),
            (CompilationError, lambda: proton.compile(source)),
            (CompilationError, recorded),
            (CompilationError, at_once),
            (LaunchError, lambda: wrong[(1, 1, 1, 1)](x, BLOCK=64)),
            (LaunchError, lambda: wrong[(1,)](x, BLOK=64)),
            (DeviceAssertionError, lambda: asserts[(1,)](x)),
            (ProtonError, lambda: asserts[(1,)](x)),
            (DeviceAssertionError, interpreted),
        ],
    )


def test_errors_that_are_faults_of_proton_keep_all_frames() -> None:
    """A failing pass is no fault of the program; what an error was raised from is shortened, too,
    in a loop of them as well."""

    def raised(error: ProtonError) -> ProtonError:
        with pytest.raises(type(error)) as caught:
            _raise_within(error)
        return caught.value

    failed, wrong_ = raised(PassError("a pass")), raised(CompilationError("a rule"))
    wrong_.__cause__ = raised(LaunchError("within"))
    wrong_.__cause__.__context__ = wrong_
    for error in (failed, wrong_):
        shorten(error)
    assert ours(failed)
    assert not ours(wrong_)
    assert not ours(wrong_.__cause__)


def _raise_within(error: ProtonError) -> None:
    """Raises it in a function whose module is Proton's."""
    namespace = {"__name__": "proton.somewhere", "error": error}
    exec("def fail(): raise error", namespace)
    fail: Callable[[], None] = namespace["fail"]  # type: ignore[assignment]
    fail()


def test_misspelt_options_and_wrong_types_are_named() -> None:
    x = np.zeros(64, np.float32)
    warm = "must be an array, a number, a bool or None, got "

    def profiled(**options: object) -> Callable[[], object]:
        return lambda: proton.profile("run", **options).__enter__()  # type: ignore[arg-type]

    def check(call: Callable[[], object], text: str) -> None:
        with pytest.raises((ProtonError, TypeError)) as caught:
            call()
        assert text in str(caught.value)
        assert not ours(caught.value)

    check_rows(
        check,
        [
            (profiled(strategie="flush"), "no option 'strategie'; did you mean strategy?"),
            (lambda: proton.start("s", evry=2), "no option 'evry'; did you mean every?"),  # type: ignore[call-arg]
            (
                lambda: wrong.warmup(x, BLOCK=64, profile={"plcement": "program"}),
                "no option 'plcement'; did you mean placement?",
            ),
            (profiled(counters="dram"), "counters are those of NVIDIA GPUs, and this process"),
            (lambda: wrong.warmup(np.float32, BLOCK=64), f"{warm}type: a dtype of tl, as tl.float"),
            (lambda: wrong.warmup(np.dtype("f4"), BLOCK=64), ": a dtype of tl, as tl.float32"),
            (lambda: wrong.warmup([1.0], BLOCK=64), f"{warm}list: pass an array of it"),
            (lambda: wrong.warmup("*fp32", BLOCK=64), f"{warm}str: text is for constexprs"),
            (lambda: wrong.warmup(x, BLOCK=[1]), "constexpr BLOCK must be hashable"),
            (lambda: wrong.warmup(x, BLOCK=64, target="sm90"), "target must be a GPU target"),
        ],
    )
    assert issubclass(UnknownOption, TypeError)
