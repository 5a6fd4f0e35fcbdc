"""What is shipped: the source archive and the wheel are built and installed, each as users do.

No registry is asked. An environment of its own gets the wheel, and links to those of this
environment's packages that the wheel's metadata (or the lock of the demo) names, and to no others.
"""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from proton.viewer import Run
from tests.pure.synthetic import random_run

ROOT = Path(__file__).parents[1]
COMPILER = {"numba-cuda-mlir", "llvmlite", "cuda-bindings", "nvidia-cuda-nvcc", "nvidia-nvvm"}
SOURCES = (".py", ".pyi", ".typed", ".html", ".js", ".json")


def run(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A process without this one's paths to Proton."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd or "/nonexistent")},
        timeout=120,
        check=False,
    )


def done(*words: object, cwd: Path | None = None) -> str:
    """What it prints; it must have succeeded."""
    process = run(*words, cwd=cwd)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the source archive."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    done(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    source = folder / archive.name.removesuffix(".tar.gz")
    assert (source / "docs" / "gate.md").exists()  # what its tests look at
    done(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    (built,) = folder.glob("*.whl")
    return built


def message(wheel: Path) -> email.message.Message:
    """The wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def names(requirements: Iterable[str], extras: Iterable[str] = ("",)) -> set[str]:
    """The packages that requirements ask for here, directly or by way of others."""
    found: dict[tuple[str, str], None] = {}
    todo = [(Requirement(text), extra) for text in requirements for extra in extras]
    while todo:
        requirement, extra = todo.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for inner in ("", *requirement.extras):
            if (name, inner) not in found and name != "proton-tile":
                found[name, inner] = None
                todo += [(Requirement(r), inner) for r in metadata.requires(name) or ()]
    return {name for name, _ in found}


def environment(folder: Path) -> Path:
    """The Python of a new environment, without any package."""
    done(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def site(python: Path) -> Path:
    """The packages of an environment."""
    (found,) = python.parents[1].glob("lib/*/site-packages")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel alone."""
    python = environment(tmp_path_factory.mktemp("installed") / "env")
    offline = ("--no-index", "--no-deps", "--no-compile", "--quiet", "--disable-pip-version-check")
    done(sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel)
    return python


def link(packages: Iterable[str], site: Path) -> None:
    """Links this environment's packages into another one."""
    for name in packages:
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))


def test_the_wheel_has_every_file_and_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if name.startswith("proton/")}
        points = next(n for n in archive.namelist() if n.endswith("entry_points.txt"))
        entries = archive.read(points).decode()
    files = {f.relative_to(ROOT).as_posix() for f in (ROOT / "proton").rglob("*") if f.is_file()}
    examples = {f"proton/examples/kernels/{f.name}" for f in (ROOT / "kernels").glob("*.py")}
    assert shipped == {name for name in files if "__pycache__" not in name} | examples
    assert {Path(name).suffix for name in shipped} == set(SOURCES)
    for name in ("proton-tile", "proton-viewer"):
        assert f"{name} = proton.viewer.cli:main" in entries
    assert "proton.pytest_plugin = proton.pytest_plugin" in entries
    said = message(wheel)
    assert "Homepage" in " ".join(said.get_all("Project-URL", []))
    extras = "cpu cuda cupti dev docs metrics parquet plot sql test viewer".split()
    assert set(extras) <= set(said.get_all("Provides-Extra", []))


def test_the_viewer_alone_needs_no_compiler(wheel: Path, installed: Path, tmp_path: Path) -> None:
    """... and nothing of POSIX: a system that has none of it is feigned."""
    needed = names(message(wheel).get_all("Requires-Dist", []), ("", "viewer"))
    assert not needed & COMPILER
    link(needed, site(installed))
    viewer = installed.parent / "proton-tile"
    Run(random_run(3)).save(tmp_path / "run.proton")
    assert done(viewer, "--version").startswith("proton-tile ")
    assert "slices" in done(viewer, "run.proton", cwd=tmp_path)
    posix = "fchown fchmod O_NONBLOCK O_CLOEXEC set_blocking fork register_at_fork"
    windows = (
        f"import os, sys\nfor name in '{posix}'.split(): delattr(os, name)\n"
        "from proton.viewer import Run, cli\n"
        "for _ in range(2): Run.load('run.proton').save('again.proton')\n"
        "for words in ('timeline run.proton -o run.html',"  # from page.html
        " 'export run.proton run.pftrace'):\n"
        "    sys.argv = ['proton-tile', *words.split()]\n"
        "    try: cli.main()\n"
        "    except SystemExit as end: assert not end.code, words\n"
    )
    done(installed, "-c", windows, cwd=tmp_path)
    assert all((tmp_path / name).exists() for name in ("run.html", "run.pftrace"))
    (tmp_path / "launch.py").write_text(
        "import proton\n@proton.jit\ndef nothing(n): pass\nnothing[(1,)](1)\n"
    )
    for program in (("launch.py",), ("-m", "proton", "launch.py")):
        failed = run(installed, *program, cwd=tmp_path)
        assert failed.returncode == 1
        assert "pip install 'proton-tile[cpu]'" in failed.stderr


def pins(lock: str) -> set[str]:
    """The lines of a lock that name a package and its version."""
    return set(re.findall(r"^[a-z][^\\\n]*", (ROOT / lock).read_text(), re.M))


def test_the_demo_runs_with_what_its_lock_names(installed: Path, tmp_path: Path) -> None:
    """... in another environment, which has the installed files, and the bytecode made of them."""
    assert pins("requirements-demo.lock") <= pins("requirements.lock")
    locked = [Requirement(pin.strip()) for pin in pins("requirements-demo.lock")]
    here = [r.name for r in locked if r.marker is None or r.marker.evaluate()]
    assert COMPILER & set(here) == {"numba-cuda-mlir", "llvmlite"}
    python = environment(tmp_path / "env")
    for folder in site(installed).glob("proton*"):
        shutil.copytree(folder, site(python) / folder.name)
    link(here, site(python))
    assert done(python, "-m", "proton.demo", cwd=tmp_path).count("PASS") == 4
    (tmp_path / "launch.py").write_text(
        "import proton\n"
        "class Array:\n"
        "    __cuda_array_interface__ = dict("
        "shape=(4,), typestr='<f4', data=(4096, False), version=3)\n"
        "@proton.jit\ndef nothing(x): pass\nnothing[(1,)](Array())\n"
    )
    failed = run(python, "launch.py", cwd=tmp_path)
    assert failed.returncode == 1
    assert "pip install 'proton-tile[cuda]'" in failed.stderr
    link(names(["pytest"]), site(python))  # the plugin comes with the wheel
    assert "@pytest.mark.proton(" in done(python, "-m", "pytest", "--markers", cwd=tmp_path)
