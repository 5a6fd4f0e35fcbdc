"""What an editor and mypy see of `import proton`."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import proton
from tests.tables import check_rows

ROOT = Path(__file__).parents[2]
HEAD = """
import proton
import proton.language as tl

@proton.jit
def kernel(x: tl.tensor, BLOCK: tl.constexpr) -> None:
    with proton.scope("load", k=1):
        pass

@proton.jit(noinline=True)
def callee(x: tl.tensor) -> None:
    pass

with proton.profile("mine", capacity=64) as run:
    pass

"""
TYPES = (
    ("kernel", "proton.runtime.launch.jit.JITFunction"),
    ("callee", "proton.runtime.launch.jit.JITFunction"),
    ("kernel[(1,)](1, BLOCK=2)", "proton.backends.compiler.CompiledKernel"),
    ("run", "proton.viewer.run.Run"),
    ("run.totals.slices", "int"),
    ("proton.finalize()", "proton.viewer.run.Run"),
    ("proton.Run.load('a.proton').name", "str"),
    ("proton.knobs.cache_dir", "pathlib.Path"),
    ("proton.knobs.dump_to", "pathlib.Path | None"),
    ("proton.knobs.debug", "bool"),
    ("proton.scope('load').__enter__()", "proton.language.profiling.scope"),
    ("proton.allocate_event('tile')", "proton.language.profiling.Event"),
    ("proton.cdiv(7, 2)", "int"),
    (
        "proton.autotune([proton.Config({})], ['n'])(kernel)",
        "proton.runtime.tuning.autotuner.Autotuner",
    ),
)
MISTAKES = (
    ("proton.profile(capacity='many')", 'Argument "capacity"'),
    ("proton.start(stratgy='flush')", 'Unexpected keyword argument "stratgy"'),
    ("proton.jit(noinlin=True)", 'did you mean "noinline"?'),
    ("proton.scope(3)", 'Argument 1 to "scope"'),
    ("proton.knobs.cache_dri", 'has no attribute "cache_dri"'),
    ("proton.aggregat", 'has no attribute "aggregat"'),
    ("proton.autotune(configs=[], keys=['n'])", 'Unexpected keyword argument "keys"'),
)


def complaints(folder: Path, lines: list[str]) -> dict[int, str]:
    """What mypy says of each of the lines; with the settings and the cache of `make lint`."""
    file = folder / "user.py"
    file.write_text(HEAD + "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(file)]
    if not os.access(ROOT, os.W_OK):
        command += ["--cache-dir", str(folder / "cache")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    first, said = HEAD.count("\n") + 1, {}
    for number, message in re.findall(r"user\.py:(\d+): \w+: (.*)", done.stdout):
        place = int(number) - first
        said[place] = f"{said.get(place, '')}{message}\n"
    assert all(place >= 0 for place in said), done.stdout
    assert said, done.stderr
    return said


def test_mypy_knows_types_and_sees_mistakes(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    revealed = [f"reveal_type({expression})" for expression, _ in TYPES]
    said = complaints(tmp_path, revealed + [line for line, _ in MISTAKES])

    def has_type(place: int, expression: str, type_: str) -> None:
        assert said[place] == f'Revealed type is "{type_}"\n', expression

    def is_a_mistake(place: int, line: str, message: str) -> None:
        assert message in said.get(place, ""), line

    check_rows(has_type, [(i, *row) for i, row in enumerate(TYPES)])
    check_rows(is_a_mistake, [(i, *row) for i, row in enumerate(MISTAKES, len(TYPES))])


def test_the_stub_names_what_there_is() -> None:
    stub = ast.parse((ROOT / "proton" / "__init__.pyi").read_text())
    names, helpers = set(), {"Any", "AbstractContextManager", "Callable", "ParamSpec", "overload"}
    for node in stub.body:
        match node:
            case ast.ImportFrom():
                names |= {alias.asname or alias.name for alias in node.names} - helpers
            case ast.FunctionDef():
                names.add(node.name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    assert {n for n in names if not n.startswith("_") or n == "__version__"} == set(proton.__all__)
