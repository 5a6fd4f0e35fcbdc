"""The site is built as CI builds it: links lead somewhere, and the reference has what there is."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import proton
from proton.base.knobs import KNOBS
from proton.viewer.compare import measure
from scripts.docs_results import BLOCK, PAGES, RESULTS, written
from tests import processes

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    done = processes.python("-m", "mkdocs", "build", "--site-dir", folder)
    assert done.returncode == 0, done.stderr  # names links and anchors that lead nowhere
    return folder


def words(page: Path) -> str:
    """A page's text."""
    return re.sub(r"<[^>]*>", "", page.read_text())


def test_the_reference_has_every_name_command_and_variable(site: Path) -> None:
    reference = site / "reference"
    python = words(reference / "python.html")
    missing = {name for name in proton.__all__ if name not in python}
    assert missing <= {"Run", "knobs", "tools", "__version__"}  # they have pages of their own
    commands = {file.stem for file in (ROOT / "proton/viewer/cli/commands").glob("[a-z]*.py")}
    cli = words(reference / "cli.html")
    assert [name for name in commands if f"proton-tile {name} [OPTIONS]" not in cli] == []
    environment = words(reference / "environment.html")
    assert [k.variable for k in KNOBS.values() if k.variable not in environment] == []
    assert "run.stats(" in words(reference / "run.html")
    assert re.search(r"tl\.load\(\s*pointer,\s*mask", words(reference / "language.html"))
    for page in reference.glob("*.html"):
        assert " object at 0x" not in words(page)
        assert "proton._" not in words(page)


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    fetches = re.compile(r"""(?:src|srcset)="https?:|<link[^>]*href="https?:|url\(['"]?https?:""")
    files = [f for f in site.rglob("*") if f.suffix in (".html", ".css")]
    assert len(files) > 20
    assert [f for f in files if fetches.search(f.read_text(errors="replace"))] == []


def test_every_picture_is_shown_and_made_by_the_script() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    shown = {m for page in pages for m in re.findall(r"pictures/([\w.-]+)", page.read_text())}
    assert shown == {file.name for file in (DOCS / "pictures").iterdir()}
    script = (ROOT / "scripts/docs_pictures.py").read_text()
    outputs = re.findall(r"<!-- output: (\w+) -->\s", (DOCS / "tutorial.md").read_text())
    assert [name for name in outputs if f'"{name}"' not in script] == []


def test_each_decision_that_is_referred_to_is_there() -> None:
    kept = set(re.findall(r"^## (\d+)\. ", (DOCS / "decisions.md").read_text(), re.M))
    referred = {}
    for path in [*DOCS.glob("*.md"), ROOT / "CONTRIBUTING.md", *(ROOT / "proton").rglob("*.py")]:
        found = re.findall(r"[Dd]ecisions?(?:\.md,)? (\d+)(?: and (\d+))?", path.read_text())
        referred |= {number: path for pair in found for number in pair if number}
    assert len(referred) > 5
    assert {n: str(path) for n, path in referred.items() if n not in kept} == {}


def test_pages_have_the_results_as_the_script_writes_them() -> None:
    """... each table is on a page, and each value has a command of the repository."""
    assert [page.name for page in PAGES if written(page) != page.read_text()] == []
    tables = {file.stem: json.loads(file.read_text()) for file in RESULTS.glob("*.json")}
    assert {name for page in PAGES for _, name, _ in BLOCK.findall(page.read_text())} == {*tables}
    sources = [source for of in tables.values() for source in of["sources"].values()]
    named = {path for of in sources for path in re.findall(r"(?:\w+/)+\w+\.py", of["command"])}
    assert len(named) > 15
    assert [path for path in named if not (ROOT / path).exists()] == []
    for name, of in tables.items():
        keys = {column["key"] for column in of["columns"]}
        assert {row["source"] for row in of["rows"]} == {*of["sources"]}, name
        assert all(row.keys() - {"source"} <= keys for row in of["rows"]), name
        assert all({"command", "commit", "date"} <= each.keys() for each in of["sources"].values())


@pytest.mark.parametrize("side", ["before", "after"])
def test_both_sides_of_the_tutorial_compute_what_numpy_does(
    side: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    """... and the page shows the kernel as it is in the file."""
    source = (DOCS / "tutorial" / side / "column_stats.py").read_text()
    path = tmp_path / f"column_stats_{side}.py"
    path.write_text(source)
    sys.path.insert(0, str(tmp_path))
    try:
        module = __import__(path.stem)
    finally:
        sys.path.remove(str(tmp_path))
    x = rng.standard_normal((rng.integers(1, 700), rng.integers(1, 300)), np.float32)
    mean, var = np.empty((2, x.shape[1]), np.float32)
    module.launch(x, mean, var)
    np.testing.assert_allclose(mean, x.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(var, x.var(axis=0), atol=1e-4)
    page = (DOCS / "tutorial.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    (block,) = (text for text in blocks if ("WIDTH" in text) == (side == "after"))
    lines = {line.strip() for line in block.splitlines()} - {"..."}
    assert lines - {line.strip() for line in source.splitlines()} == set()


def test_the_example_of_tuning_runs(tmp_path: Path) -> None:
    """... on the CPU; what it prints depends on times, what it computes does not."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "tuning.md").read_text(), re.S)
    ending = "assert list(table.columns) == ['n', 'Proton (ms)', 'numpy (ms)'] and len(ms) == 3"
    (tmp_path / "example.py").write_text("\n".join([*blocks, ending]))
    environment = {"PYTHONPATH": str(ROOT), "PROTON_BACKEND": "cpu"}
    done = processes.python("example.py", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("BLOCK: ") == 4  # the best, and a table of three


@pytest.fixture
def viewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """`proton-tile` in an empty folder: exit status and output. The processes that it measures are
    forks of one that has imported everything."""

    def forked(command: list[str], *, cwd: Path, **_: object) -> subprocess.CompletedProcess[str]:
        assert command[0] == sys.executable
        return processes.python(*command[1:], cwd=cwd)

    def viewed(*words: str) -> tuple[int, str]:
        status, *shown = processes.proton_tile(monkeypatch, capsys, *words)
        return status, "".join(shown)

    monkeypatch.setattr(measure, "subprocess", SimpleNamespace(run=forked, DEVNULL=None))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return viewed


def test_the_example_for_ci_measures_our_kernels(
    tmp_path: Path, viewer: Callable[..., tuple[int, str]]
) -> None:
    """The workflow's own command, with fewer processes than an answer takes: its exit status does
    not depend on times. Budgets that name no scope of ours would be bad usage."""
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((DOCS / "ci-example" / "workflow.yml").read_text())
    (command,) = (
        step["run"]
        for step in workflow["jobs"]["timelines"]["steps"]
        if "proton-tile measure" in step.get("run", "")
    )
    command = command.replace("-n 10 --most 30", "-n 1 --most 1").replace("../runs", "runs")
    words = command.replace("../baseline", str(ROOT)).split()
    assert words[:4] == ["proton-tile", "measure", "-n", "1"]
    words = [str(ROOT / word) if word.startswith("docs/") else word for word in words]
    status, shown = viewer(*words[1:])
    assert status == 3, shown
    for kernel in ("softmax_kernel/load + max", "softmax_kernel/load + exp", "layer_norm_kernel/"):
        assert kernel in shown
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    sides = {f"runs/{side}/0000.proton" for side in ("baseline", "candidate")}
    assert files == {*sides, "runs/gate.xml", "runs/gate.svg"}


def test_the_examples_history_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, viewer: Callable[..., tuple[int, str]]
) -> None:
    """The commands of a push, twice, as on two machines: what was there stays."""
    yaml = pytest.importorskip("yaml")
    pytest.importorskip("pyarrow")
    workflow = yaml.safe_load((DOCS / "ci-example" / "history.yml").read_text())
    (commands,) = (
        step["run"]
        for step in workflow["jobs"]["history"]["steps"]
        if "proton-tile history" in step.get("run", "")
    )
    for push in (1, 2):
        for command in commands.replace("-n 5", "-n 1").splitlines():
            words = [str(ROOT / word) if word.startswith("docs/") else word
                     for word in command.split()]  # fmt: skip
            assert words[0] == "proton-tile"
            monkeypatch.setenv("PROTON_COMMIT", f"{push}" * 40)
            status, shown = viewer(*words[1:])
            assert status == 0, shown
        assert f"in {push} run" in shown
        assert f"of {push} commit" in shown
        shutil.rmtree(tmp_path / "runs")
    assert (tmp_path / "history.html").read_text().count("<circle") > 4
