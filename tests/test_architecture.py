"""The floors: what may import what, and which file alone may do a thing."""

import ast
import collections
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from proton.compiling.cache import RECORDED, sources
from proton.trace.model import Clock, RawRun
from proton.viewer import Run, export
from proton.viewer.formats import formats
from tests.tables import check_rows

ROOT = Path(__file__).parents[1]
PROTON = ROOT / "proton"
FLOORS = (
    ("base", "layout", "trace"),
    ("language",),
    ("dialect",),
    ("frontend",),
    ("passes", "analysis"),
    ("schedule",),
    ("transforms",),
    ("conversion",),
    ("backends",),
    ("compiler", "compiling", "interpreter"),
    ("runtime",),
    ("viewer", "tools", "testing", "gluon", "monitoring"),
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}
# What opens a run needs no compiler.
READING = {"trace": {"base", "trace"}, "viewer": {"base", "trace", "viewer"}}
# The rooms of the viewer, low ones first; `__main__` and the package's own names are above all.
VIEWER_ROOMS = ("tables", "explain", "formats", "pictures", "export", "run", "compare", "cli")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
FILES = sorted(PROTON.rglob("*.py"))


def tree_of(file: Path) -> ast.Module:
    """The file's syntax."""
    return ast.parse(file.read_text())


class Facts(NamedTuple):
    """What several rules ask of a file; its whole tree would be much to keep."""

    imports: list[ast.Import | ast.ImportFrom]
    classes: list[tuple[str, int]]  # names, lines
    lengths: list[int]  # of functions, in lines


@functools.cache
def facts_of(file: Path) -> Facts:
    facts = Facts([], [], [])
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            facts.imports.append(node)
        elif isinstance(node, ast.ClassDef):
            facts.classes.append((node.name, node.lineno))
        elif isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            facts.lengths.append(node.end_lineno - node.lineno + 1)
    return facts


@functools.cache
def _text_of(file: Path) -> str:
    return file.read_text()


def trees_with(pattern: str) -> Iterator[tuple[Path, ast.Module]]:
    """(file, its syntax) of the files that a regular expression finds something in: to parse and
    walk them all takes seconds for each rule."""
    for file in FILES:
        if re.search(pattern, _text_of(file)):
            yield file, tree_of(file)


def unit(file: Path) -> str | None:
    """The folder or module of a file that has a floor; None for those above all floors."""
    first = file.relative_to(PROTON).parts[0].removesuffix(".py")
    top = ("__init__", "demo", "pytest_plugin")
    at_the_top = file.parent == PROTON and (first in top or first.startswith("_"))
    at_the_top |= first in ("compat", "profiler")  # Triton's names for what is below
    return None if at_the_top else first


def imported_units(file: Path, nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, unit of Proton) of every import in the file, lazy ones included."""
    package = file.relative_to(ROOT).parent.parts
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, node.module) if node.module else above)
            names = [f"{module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "proton" and len(parts) > 1:
                yield node.lineno, parts[1]


def may_import(importer: str, imported: str) -> bool:
    """Whether one unit may import the other: downwards, or within its floor."""
    if importer in READING:
        return imported in READING[importer]
    return FLOOR[imported] <= FLOOR[importer]


def test_imports_point_down() -> None:
    def check(file: Path) -> None:
        importer = unit(file)
        if importer is None:
            return
        assert importer in FLOOR, f"{importer} has no floor: give it one in {Path(__file__).name}"
        wrong = [
            f"line {line}: {importer} imports {imported}"
            for line, imported in imported_units(file, facts_of(file).imports)
            if imported not in FLOOR or not may_import(importer, imported)
        ]
        assert not wrong

    check_rows(check, ((file,) for file in FILES))


def test_the_check_sees_an_import_that_points_up() -> None:
    source = "def late():\n    from proton.frontend import build_module\n"
    file = PROTON / "language" / "core.py"
    found = list(imported_units(file, ast.walk(ast.parse(source))))
    assert found == [(2, "frontend")]
    assert not may_import("language", "frontend")
    assert may_import("frontend", "language")
    assert not may_import("viewer", "language")


@pytest.mark.parametrize("room", VIEWER_ROOMS)
def test_rooms_of_the_viewer_import_downwards(room: str) -> None:
    above = VIEWER_ROOMS[VIEWER_ROOMS.index(room) + 1 :]
    folder = PROTON / "viewer" / room
    files = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    found = [
        f"{file.relative_to(ROOT)}: {node.module}"
        for file in files
        for node in facts_of(file).imports
        if isinstance(node, ast.ImportFrom) and node.module
        if re.match(rf"proton\.viewer\.({'|'.join(above)})\b", node.module or "") and above
    ]
    assert not found


def test_reading_and_viewing_load_no_compiler_and_no_driver() -> None:
    code = (
        "import sys, proton.viewer, proton.viewer.cli; from proton.viewer.formats import formats;"
        "formats(); print(sorted({name.split('.')[0] for name in sys.modules} &"
        " {'numba_cuda_mlir', '_mlir', 'llvmlite', 'cuda', 'perfetto', 'pandas'}),"
        " [n for n in sys.modules if n.startswith(('proton.dialect', 'proton.runtime'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"


def test_an_output_format_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that appears in the folder of the formats is a format, by name and by suffix."""
    (tmp_path / "count.py").write_text(
        "from proton.viewer.formats import FileFormat\n"
        "def write(tables, file, target):\n"
        "    file.write(f'{len(tables.frame)} slices'.encode())\n"
        "FORMAT = FileFormat(name='count', suffixes=('.count',), about='a number', write=write)\n"
    )
    monkeypatch.setattr(export, "__path__", [*export.__path__, str(tmp_path)])
    formats.cache_clear()
    try:
        clock = Clock(ticks=np.zeros(0, np.uint64), host_ns=np.zeros(0, np.int64))
        run = Run(RawRun(name="r", origin_ns=1, origin_unix_ns=1, clock=clock))
        assert run.save(tmp_path / "a.count").read_text() == "0 slices"
        assert run.save(tmp_path / "a.txt", "count").read_text() == "0 slices"
        names = "chrome count csv html json parquet perfetto png proton speedscope svg"
        assert " ".join(sorted(formats())) == names
    finally:
        formats.cache_clear()


def test_the_check_sees_relative_imports() -> None:
    file = PROTON / "language" / "core.py"
    sources = ("from ..frontend import builder", "from .. import frontend", "from . import types")
    trees = map(ast.walk, map(ast.parse, sources))
    found = [unit_ for tree in trees for _, unit_ in imported_units(file, tree)]
    assert found == ["frontend", "frontend", "language"]


@functools.cache
def imported_modules(file: Path) -> set[str]:
    """The modules of Proton that a file imports, anywhere in it: lazily, or for types alone."""
    package = file.relative_to(ROOT).parent.parts
    found = set()
    for node in facts_of(file).imports:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, node.module) if node.module else above)
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring; none where there is no ring."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name not in done:
            for other in sorted(graph[name]):
                if ring := visit(other, [*way, name]):
                    return ring
            done.add(name)
        return []

    return next((ring for name in sorted(graph) if (ring := visit(name, []))), [])


def test_no_two_files_import_each_other() -> None:
    names = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in FILES
    }
    graph = {
        name: {other for other in imported_modules(file) if other in names and other != name}
        for name, file in names.items()
    }
    # A package's __init__ is imported with each of its modules: naming one is naming no other.
    graph = {
        name: {o for o in others if not any(other.startswith(f"{o}.") for other in others)}
        for name, others in graph.items()
    }
    assert not cycle(graph), " -> ".join(cycle(graph))
    assert sum(map(len, graph.values())) > 500


def test_a_ring_of_imports_is_seen() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]
    assert not cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


# Back ends


def words_of(text: str) -> set[str]:
    """The words of an identifier or of a module's name, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)}


def named_backends(tree: ast.Module, names: set[str]) -> list[str]:
    """What a program calls by the name of a back end: modules it imports, identifiers, strings that
    are nothing but such a name. Docstrings and messages may name one."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=text) | ast.Attribute(attr=text) | ast.arg(arg=text):
                texts = [text]
            case ast.FunctionDef(name=text) | ast.ClassDef(name=text):
                texts = [text]
            case ast.ImportFrom(module=str(module)):
                texts = [module, *(alias.name for alias in node.names)]
            case ast.Import():
                texts = [alias.name for alias in node.names]
            case ast.Constant(value=str(text)) if text in names:
                texts = [text]
            case _:
                continue
        found += [text for text in texts if words_of(text) & names]
    return found


def test_what_sessions_and_launches_share_names_no_back_end() -> None:
    """A back end is its folders: what is beside them in `runtime` asks the object."""
    folder = PROTON / "runtime"
    homes = {file.parent.name for file in folder.glob("*/backend.py")}
    assert homes == {"amd", "cpu", "nvidia"}
    names = homes | {"cuda", "cupti", "hip"}
    allowed = {
        "backend.py": ["cpu"],  # the host's, which is asked first
        "driver.py": ["cuda"],  # an example in a message
        "autotuner.py": ["use_cuda_graph"] * 6,  # a parameter of Triton's
        "operator_callbacks.py": ["proton.backends.cpu"],  # makes machine code of the host
        "reinterpret.py": ["cpu"] * 2,  # a method of torch's tensors
    }
    found = {
        file.name: named
        for file in folder.rglob("*.py")
        if file.parent.name not in homes
        if (named := named_backends(tree_of(file), names)) and named != allowed.get(file.name)
    }
    assert not found
    session = tree_of(folder / "session" / "session.py")
    assert not named_backends(session, {*names, "gpu"})


def test_a_back_end_that_is_named_is_seen() -> None:
    source = (
        "from proton.runtime.nvidia import graph\n"
        "class GPUThing: pass\n"
        "def on_cpu(x): return 'the GPU', x.cuda_error, 'cuda', occupied\n"
    )
    found = named_backends(ast.parse(source), {"cpu", "nvidia", "cuda", "gpu"})
    assert sorted(found) == ["GPUThing", "cuda", "cuda_error", "on_cpu", "proton.runtime.nvidia"]


def test_what_all_gpus_share_imports_no_kind_of_gpu() -> None:
    """What threads do is behind `core/primitives.py`; a kind of GPU is a folder beside it."""
    folder = PROTON / "conversion" / "ttg_to_llvm"
    kinds = {"amd", "nvidia"}
    assert {path.name for path in folder.iterdir() if path.is_dir()} - {"__pycache__"} == kinds | {
        "core",
        "records",
    }
    wrong = {
        (str(file.relative_to(folder)), name)
        for part in ("core", "records", *kinds)
        for file in (folder / part).glob("*.py")
        for name in imported_modules(file)
        for kind in kinds - {part}
        if f".ttg_to_llvm.{kind}" in name or (name.endswith(("nvvm", "rocdl")) and part != "nvidia")
    }
    assert not wrong


# Passes


PASS_FOLDERS = ("transforms", "conversion")
# A pass that Triton has, too, has Triton's name; its file has the name without these.
PREFIXES = ("triton-nvidia-gpu-", "convert-", "tritongpu-", "triton-", "tt-")


def passes_in(tree: ast.Module) -> list[str]:
    """The names of the passes that a file registers."""
    return [
        str(line.value.value)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and any(_is_name(decorator, "register") for decorator in node.decorator_list)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
        and _is_name(line.target, "name")
        and isinstance(line.value, ast.Constant)
    ]


def pass_files() -> dict[str, tuple[Path, list[str]]]:
    """module -> (file, passes) of the floors of passes. A folder of `conversion` is one pass: its
    modules are parts of the pass that its `__init__` registers. One of `transforms` is a room."""
    found = {}
    for file in FILES:
        parts = file.relative_to(PROTON).with_suffix("").parts
        if parts[0] in PASS_FOLDERS and len(parts) > 1 and parts[1] != "__init__":
            module = ".".join(("proton", *parts)).removesuffix(".__init__")
            found[module] = file, passes_in(tree_of(file))
    return found


def is_pass_of(module: str, name: str) -> bool:
    """Whether a file's name and its pass's agree."""
    stem = module.rsplit(".", 1)[-1].replace("_", "-")
    return stem in (name, *(name.removeprefix(prefix) for prefix in PREFIXES))


def test_a_pass_is_one_file_of_its_name() -> None:
    """And what has the name of a pass, `a_to_b`, is one."""
    files = pass_files()
    wrong = {
        module: names
        for module, (_, names) in files.items()
        if len(names) > 1
        or any(not is_pass_of(module, name) for name in names)
        or ("_to_" in module.rsplit(".", 1)[-1] and not names)
    }
    assert not wrong
    assert sum(len(names) for _, names in files.values()) > 40
    assert is_pass_of("proton.transforms.tile.licm", "triton-licm")
    assert not is_pass_of("proton.transforms.reorder", "tritongpu-reorder-instructions")


def foreign_passes(module: str, imported: set[str], passes: set[str]) -> set[str]:
    """The passes, or parts of passes, that a module of these floors imports and is no part of."""
    return {
        other
        for other in imported
        for owner in passes
        if (other == owner or other.startswith(f"{owner}."))
        and not (module == owner or module.startswith(f"{owner}."))
    }


def test_no_pass_imports_a_pass() -> None:
    files = pass_files()
    passes = {module for module, (_, names) in files.items() if names}
    found = {
        module: wrong
        for module, (file, _) in files.items()
        if (wrong := foreign_passes(module, imported_modules(file), passes))
    }
    assert not found


def test_a_pass_that_imports_a_pass_is_seen() -> None:
    passes = {"c.a_to_b", "c.unroll"}
    assert foreign_passes("c.unroll", {"c.a_to_b.rules"}, passes) == {"c.a_to_b.rules"}
    assert foreign_passes("c.helper", {"c.unroll", "c.unroll.FACTOR"}, passes)
    assert not foreign_passes("c.a_to_b.rules", {"c.a_to_b.values", "c.helper"}, passes)


def made_ops(tree: ast.Module, dialect: str) -> list[str]:
    """The ops of a dialect that a program makes by name, or by the bindings' classes."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            first = node.args[0] if node.args else None
            made = [node.func]
            if name in ("create", "effect", "emit") and isinstance(first, ast.Constant):
                found += [str(first.value)] * str(first.value).startswith(f"{dialect}.")
            elif name in ("create", "effect", "emit") and first is not None:
                made += [inner for inner in ast.walk(first) if isinstance(inner, ast.expr)]
            found += [
                f"{dialect}.{op.attr}"
                for op in made
                if isinstance(op, ast.Attribute) and _is_name(op.value, dialect)
            ]
    return found


def test_only_one_file_makes_control_flow() -> None:
    makers = [file for file, tree in trees_with("scf") if made_ops(tree, "scf")]
    assert makers == [PROTON / "dialect" / "regions.py"]


def test_control_flow_that_is_made_by_hand_is_seen() -> None:
    source = """
ir.Operation.create("scf.if", regions=2); scf.ForOp(a, b); create("llvm.add", t)
ir.Operation.create(scf.WhileOp.OPERATION_NAME); isa(op, scf.YieldOp)"""
    assert sorted(made_ops(ast.parse(source), "scf")) == ["scf.ForOp", "scf.WhileOp", "scf.if"]


def test_names_of_classes_are_unique() -> None:
    """But for private ones: a name that stands in a message or a question is one class."""
    found = collections.defaultdict(list)
    for file in FILES:
        for name, line in facts_of(file).classes:
            if not name.startswith("_"):
                found[name].append(f"{file.relative_to(ROOT)}:{line}")
    assert len(found) > 500
    assert not {name: places for name, places in found.items() if len(places) > 1}


def test_names_of_attributes_are_in_one_file() -> None:
    """Those that passes leave for each other; no other file of the compiler spells one out."""
    names = set(texts_of(tree_of(PROTON / "dialect" / "attributes.py")))
    assert len(names) > 20
    found = {
        f"{file.relative_to(ROOT)}: {text}"
        for file, tree in trees_with("|".join(map(re.escape, names)))
        if file.name != "attributes.py" or file.parent.name != "dialect"
        for text in texts_of(tree)
        if text in names
    }
    assert not found


# What only one file may do


def uses(tree: ast.Module, dotted: str) -> bool:
    """Whether the code names `a.b`, or imports `b` from `a`."""
    owner, name = dotted.split(".")
    return any(
        (isinstance(node, ast.Attribute) and node.attr == name and _is_name(node.value, owner))
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == owner
            and name in [alias.name for alias in node.names]
        )
        for node in ast.walk(tree)
    )


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def test_only_the_knobs_read_the_environment() -> None:
    names = ("os.environ", "os.getenv", "os.environb", "os.putenv")
    readers = {
        str(file.relative_to(ROOT))
        for file, tree in trees_with("environ|getenv|putenv")
        if any(uses(tree, name) for name in names)
    }
    assert readers == {"proton/base/knobs.py"}


def test_the_cache_knows_what_code_depends_on() -> None:
    """Of `proton/trace` the compiler imports what is in the cache's key, and what that imports."""
    below = FLOOR["backends"]
    compiling = [f for f in FILES if FLOOR.get(unit(f) or "", below + 1) <= below]
    compiling = [f for f in compiling if unit(f) != "trace"] + [PROTON / f for f in RECORDED]
    found = {
        node.module.replace(".", "/").removeprefix("proton/") + ".py"
        for file in compiling
        if "proton.trace." in _text_of(file)
        for node in facts_of(file).imports
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("proton.trace.")
    }
    assert found | {"trace/wire.py"} == RECORDED
    names = {file.relative_to(PROTON).as_posix() for file in compiling}
    assert names <= set(sources()), "a change of these compiles anew"


def test_only_one_file_names_the_mlir_wheel() -> None:
    texts = {str(f.relative_to(ROOT)) for f in FILES if "numba_cuda_mlir" in f.read_text()}
    assert texts == {"proton/dialect/mlir.py"}


def test_nothing_executable_is_stored() -> None:
    modules = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
    found = []
    for file, tree in trees_with("|".join(modules)):
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if modules & {name.split(".")[0] for name in names}:
                found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                constant = isinstance(node.value, ast.Constant) and node.value.value is False
                found += [] if constant else [f"{file.relative_to(ROOT)}:{node.value.lineno}"]
    assert not found


def project_texts() -> Iterator[tuple[str, str]]:
    """(path, text) of what the project ships, its tests and settings included."""
    folders = ("proton", "tests", "docs", "kernels", "benchmarks", "scripts", ".ci")
    files = [f for folder in folders for f in (ROOT / folder).rglob("*") if f.is_file()]
    files += [f for f in ROOT.iterdir() if f.is_file()]
    for file in files:
        if "__pycache__" in file.parts or file.name == ".git" or file == Path(__file__):
            continue
        try:
            yield str(file.relative_to(ROOT)), file.read_text()
        except UnicodeDecodeError:
            continue


def test_the_project_stands_alone() -> None:
    outside = re.compile(r"\.\./shared|/work/shared|/work/main")
    assert not [name for name, text in project_texts() if outside.search(text)]


def texts_of(tree: ast.Module) -> Iterator[str]:
    """The strings that a program uses: all but docstrings."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def test_no_message_points_at_what_the_wheel_lacks() -> None:
    found = {
        f"{file.relative_to(ROOT)}: {text}"
        for file, tree in trees_with("docs/")
        for text in texts_of(tree)
        if "docs/" in text
    }
    assert not found


def test_no_message_points_at_a_file_that_the_wheel_lacks() -> None:
    """Strings that are no docstrings, and the help of commands, which is."""
    outside = re.compile(r"\b(?:docs|benchmarks|tests)/|\bkernels/|\b\w+\.md\b")
    found = []
    for file, tree in trees_with(outside.pattern):
        is_help = "commands" in file.parts or file.name == "__main__.py"
        bodies = [node.body for node in ast.walk(tree) if isinstance(node, DOCUMENTED)]
        docstrings = {b[0].value for b in bodies if b and isinstance(b[0], ast.Expr)}
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and (is_help or node not in docstrings) and outside.search(node.value):
                found.append(f"{file.relative_to(ROOT)}:{node.lineno}: {node.value}")
    assert not found


# `Any` in a thousand lines. It was 43 before the bindings had types, 17 when they had, and is 11
# since passes and lowerings say what they take. Where what comes from users is only looked at,
# `object` says so, and mypy sees that it is looked at first; `Any` is left for what other libraries
# give, for what a kernel's expressions give, and for JSON.
MOST_ANY = 11


def any_in_a_thousand_lines(texts: list[str]) -> float:
    """How often `Any` stands in a thousand lines: in annotations, imports and stubs."""
    lines = sum(text.count("\n") for text in texts)
    return 1000 * sum(len(re.findall(r"\bAny\b", text)) for text in texts) / lines


def test_most_values_have_types() -> None:
    texts = [file.read_text() for file in (*FILES, *PROTON.rglob("*.pyi"))]
    assert any_in_a_thousand_lines(texts) <= MOST_ANY
    assert any_in_a_thousand_lines(["x: Any\n", "Many = 1\n"]) == 500


def test_types_of_the_bindings_come_through_the_door() -> None:
    """The stubs are no modules: who else imported them would fail where nothing checks types."""
    stubs = "proton.dialect.bindings"
    users = {file for file in FILES if any(m.startswith(stubs) for m in imported_modules(file))}
    assert users == {PROTON / "dialect" / "mlir.py"}


def test_no_file_is_long() -> None:
    """At most 500 lines: a longer one holds a second thing."""
    lines = {str(file.relative_to(ROOT)): file.read_text().count("\n") for file in FILES}
    assert not {name: count for name, count in lines.items() if count > 500}


def test_no_function_is_long() -> None:
    """At most 60 lines, and nine in ten at most 20."""
    lengths = sorted(length for file in FILES for length in facts_of(file).lengths)
    assert lengths[-1] <= 60
    assert lengths[len(lengths) * 9 // 10] <= 20


UNSEEDED = re.compile(r"SystemRandom|default_rng\(\)|\bRandom\(\)")


def test_no_test_draws_from_a_seed_of_its_own() -> None:
    """A run of CI draws the same each time; `make fuzz` has fresh seeds (tests/draws.py)."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]
    assert not [str(file) for file in files if UNSEEDED.search(file.read_text())]
