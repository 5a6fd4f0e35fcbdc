"""The slow kernels of docs/explain.md: the first finding names their fault."""

from pathlib import Path

import pytest

from proton.viewer import Run
from tests import processes

ROOT = Path(__file__).parents[2]
FAULTS = {
    "many_launches": ("launch-gaps", "row_sum"),
    "unequal": ("unequal-programs", "ragged_sum"),
    "fine": ("fine-scopes", "recurrence"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_first_finding_is_the_cause(name: str, tmp_path: Path) -> None:
    """They are gross: a pause of 7 launches, a program of 200, a record of 16 scopes. A slow first
    launch is no fault of theirs: what else the machine did may have caused it."""
    script, environment = ROOT / f"docs/tutorial/slow/{name}.py", {"PROTON_NUM_THREADS": "2"}
    done = processes.python("-m", "proton", script, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    found = Run.load(tmp_path / f"{name}.proton").findings.findings
    first = next(finding for finding in found if finding.rule != "first-launch")
    assert (first.rule, first.kernel) == FAULTS[name]


def test_the_page_has_each_of_them() -> None:
    page = (ROOT / "docs/explain.md").read_text()
    assert [name for name in FAULTS if f"[{name}.py]" not in page] == []
    rules = (ROOT / "proton/viewer/explain/rules").glob("[a-z]*.py")
    assert [f.stem for f in rules if f"`{f.stem.replace('_', '-')}`" not in page] == []
