"""What the README says works: its example runs, its links lead somewhere, its commands exist."""

import re
from pathlib import Path

import pytest

from proton.base.knobs import KNOBS
from proton.viewer import Run
from tests import processes

ROOT = Path(__file__).parent.parent
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [ROOT / "README.md", CONTRIBUTING, *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    (tmp_path / "example.py").write_text(example)
    done = processes.python("example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = Run.load(tmp_path / "add.proton")
    assert set(run.stats(by=["scope"])["scope"].astype(str)) >= {"load + store"}
    assert (tmp_path / "add.pftrace").stat().st_size > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
    # The reference is made when the site is built, whose test looks at links to it.
    targets = re.findall(r"\]\((?!https?:|(?:\.\./)?reference/)([^)#]+)\)", prose)
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_variable_that_is_named_is_read(page: Path) -> None:
    ours = {
        f"PROTON_TEST_{word}"
        for word in ("EMULATED", "FUZZ", "PRODUCTS", "PROGRAMS", "SEED", "TORCH")
    }  # of the tests
    known = {knob.variable for knob in KNOBS.values()} | ours
    assert set(re.findall(r"\bPROTON_[A-Z_]+\b", page.read_text())) - known == set()


@pytest.mark.parametrize("command", "list launches summary stats export diff check measure".split())
def test_the_viewers_commands_teach(command: str) -> None:
    done = processes.python("-m", "proton.viewer.cli", command, "--help")
    assert done.returncode == 0
    assert "proton-tile" in done.stdout


@pytest.mark.parametrize("page", [ROOT / "README.md", CONTRIBUTING], ids=lambda page: page.name)
def test_what_a_page_calls_make_has(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make ([\w-]+)", page.read_text(), re.M)
    assert targets
    assert [t for t in targets if not re.search(rf"^{t}:", makefile, re.M)] == []


def test_the_paths_that_the_guide_names_exist() -> None:
    paths = re.findall(
        r"`((?:proton|tests|docs|kernels|benchmarks)/[\w./-]*)`", CONTRIBUTING.read_text()
    )
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_worked_examples_are_in_the_files_that_they_name() -> None:
    """A row of their tables: what is said, where, and the line that says it."""
    rows = re.findall(r"^\| [^|]+ \| `([^`|]+)` \| `([^`|]+)` \|$", CONTRIBUTING.read_text(), re.M)
    assert len(rows) > 10
    assert [row for row in rows if row[1] not in (ROOT / row[0]).read_text()] == []


def test_an_op_is_in_the_places_that_the_guide_names() -> None:
    """What makes `tl.umulhi`, but for other names of it and for what calls it."""
    elsewhere = {"math.py", "random.py", "libdevice.py", "__init__.py"}
    op = re.compile(r"umulhi|MulhiUIOp|mulhiui", re.IGNORECASE)
    found = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "proton").rglob("*.py")
        if file.name not in elsewhere and op.search(file.read_text())
    }
    rows = re.findall(
        r"^\| [^|]+ \| `(proton/[^`|]+)` \| `([^`|]+)` \|$", CONTRIBUTING.read_text(), re.M
    )
    assert found == {file for file, line in rows if op.search(line)}
    assert len(found) <= 4
