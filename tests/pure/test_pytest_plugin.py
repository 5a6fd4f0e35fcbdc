"""The pytest plugin, on sessions of pytest inside a test; runs are of chosen durations.

The plugin is named by `-p`: where Proton is installed, its entry point loads it.
"""

import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sides import raw_run

import proton
from proton import pytest_plugin
from proton.viewer import Run

pytest_plugins = "pytester"

PURE = Path(__file__).parent
# A profile is a run of 5 slices, of which NS says the length.
CONFTEST = f"""
import contextlib, os, sys, time
sys.path[:0] = [{str(PURE)!r}]
import proton
from proton.viewer import Run
from sides import raw_run

@contextlib.contextmanager
def profile(name, **options):
    length = int(os.environ.get("NS", "1000"))
    raw = raw_run({{("add", ""): {{"load": [length] * 5}}}})
    raw.origin_unix_ns = time.time_ns()
    yield Run(raw)

proton.profile = profile
"""
TEST = """
import pytest

@pytest.mark.proton(kernel="add", scope="load", p90_ns=5000, max_regression="5%")
@pytest.mark.parametrize("what", ["a/b", "[x] \u00fc"])
def test_add(proton_run, what):
    with proton_run() as run:
        pass
    assert len(run.frame)

def test_other():
    pass
"""
OPTIONS = ("-p", "proton.pytest_plugin", "-p", "no:cacheprovider")
FEW = ("--proton-processes", "5", "--proton-most", "6")


@pytest.fixture
def session(pytester, monkeypatch):
    """Runs pytest; each fresh process measures so many ns in turn."""
    monkeypatch.setattr(proton, "profile", proton.profile)  # the conftest below changes it for good
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TEST)

    def run(*words: str, times: tuple[int, ...] = (1000,)) -> Any:
        count = [0]

        def sample(item: pytest.Item, folder: Path, number: int) -> None:
            for _ in range(number):
                ns = times[count[0] % len(times)]
                raw = raw_run({("add", ""): {"load": [ns] * 5}}, count[0])
                Run(raw).save(folder / f"{count[0]}.proton")
                count[0] += 1

        monkeypatch.setattr(pytest_plugin, "_sample", sample)
        return pytester.runpytest_inprocess(*OPTIONS, *FEW, *words)

    return run


def test_a_baseline_is_measured_and_held_to(session, pytester) -> None:
    done = session("--proton-baseline", "base", "--proton-update")
    done.assert_outcomes(passed=3)
    folders = list((pytester.path / "base").iterdir())
    assert [len(list(folder.iterdir())) for folder in folders] == [5, 5]
    done = session("--proton-baseline", "base", times=(1001, 1000))
    done.assert_outcomes(passed=3)
    assert "add/load p90" in done.stdout.str()
    done = session("--proton-baseline", "base", times=(1100,))
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["regression: 1 pass, 1 regression; 5 processes against 5 *"])
    done.stdout.fnmatch_lines(["*add/load*+10.0 %*slower"])  # the diff
    done.stdout.fnmatch_lines(["-* proton -*", "test *", "*test_add?a/b?*regression*+10.0 %*"])
    done = session("--proton-baseline", "base", times=(700, 1500))
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["inconclusive: *6 processes*", "More processes would tell*"])


def test_without_a_baseline_limits_hold(session) -> None:
    session().assert_outcomes(passed=3)
    done = session(times=(6000,))
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["*6 us, allowed 5 us"])
    done.stdout.fnmatch_lines(["*skipped*no --proton-baseline"])
    table = done.stdout.str().rpartition(" proton --")[2]
    assert "value" in table
    assert "before" not in table
    done = session("--proton-baseline", "none")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["*has no baseline; measure one with --proton-update"])
    session("--proton-disable", times=(6000,)).assert_outcomes(passed=3)


@pytest.mark.parametrize("isatty", [True, False])
def test_the_table_is_as_wide_as_the_terminal(isatty: bool) -> None:
    said: list[str] = []
    writer = SimpleNamespace(fullwidth=80)
    reporter = SimpleNamespace(
        isatty=isatty, write=said.append, write_sep=lambda *words: None,
        config=SimpleNamespace(get_terminal_writer=lambda: writer),
    )  # fmt: skip
    table = pytest_plugin._Table()
    table.rows = [["test_add", "pass", "add/load p90", "", "1 us", "", "1 us to 1 us", "a " * 30]]
    table.pytest_terminal_summary(reporter)
    assert (max(map(len, said[0].splitlines())) <= 80) == isatty


BAD_MARKERS = {
    "scope='load'": "a budget needs one of max_ns, max_regression",
    "scope='load', p90_n=5": "p90_n is no key",
    "'load'": "arguments have names",
    "scope='x', p90_ns=5": "nothing has that name; there is add/load, add",
}


def test_bad_markers_are_said(session, pytester) -> None:
    tests = (
        f"@pytest.mark.proton({marker})\ndef test_{number}(proton_run):\n"
        "    with proton_run(): pass\n"
        for number, marker in enumerate(BAD_MARKERS)
    )
    pytester.makepyfile("import pytest\n" + "".join(tests))
    done = session()
    done.assert_outcomes(failed=len(BAD_MARKERS))
    done.stdout.fnmatch_lines([f"*{message}*" for message in BAD_MARKERS.values()])
    done.stdout.no_fnmatch_line("*another exception occurred*")


def test_a_marker_without_a_recording_fails_and_other_tests_cost_nothing(session, pytester) -> None:
    pytester.makepyfile(
        "import pytest, sys\n@pytest.mark.proton(p90_ns=5)\ndef test_it(): pass\n"
        "def test_failing(): assert 0\n"
    )
    done = session()
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*recorded nothing: launch inside*"])
    assert session("--proton-update").ret == pytest.ExitCode.USAGE_ERROR
    code = (
        "import sys, proton.pytest_plugin; print({'numpy', 'pandas', 'rich', 'proton.viewer'}"
        " & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "set()\n"


def test_processes_are_fresh_and_run_one_test(pytester, monkeypatch) -> None:
    """Whatever tests the ini file's options choose, and where it has files of tests."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TEST.replace("proton_run, what", "proton_run, what, tmp_path"))
    pytester.makeini("[pytest]\naddopts = --ff -m 'not parametrize' -k nothing --basetemp=own\n")
    monkeypatch.setenv("PYTHONPATH", str(PURE.parents[1]))
    done = pytester.runpytest_subprocess(
        "-p", OPTIONS[1], "-m", "", "-k", "x", "--proton-processes", "2", "--proton-most", "1"
    )
    done.assert_outcomes(failed=1, deselected=2)
    assert not (pytester.path / "own").exists()
    done.stdout.fnmatch_lines(["inconclusive: *; 2 processes; *", "*2 of the 5 processes a side*"])


def test_a_group_of_xdist_is_no_part_of_a_tests_name(pytester) -> None:
    """xdist appends it to `nodeid`, with versions of pytest that let it."""
    test = "import pytest\n@pytest.mark.xdist_group(name='g1')\ndef test_it(): pass\n"
    item = pytester.getitem(test, "test_it")
    named = SimpleNamespace(nodeid=f"{item.nodeid}@g1", iter_markers=item.iter_markers)
    for each in (item, named):
        assert pytest_plugin._nodeid(each) == item.nodeid


def test_processes_load_hypothesis_for_tests_of_its_own_alone(pytester) -> None:
    """Its import is a third of a process's time."""
    test = "import pytest\nfrom hypothesis import given, strategies as st\n"
    test += "@given(st.integers())\ndef test_given(x): pass\ndef test_it(): pass\n"
    for name, has in (("test_given", True), ("test_it", False)):
        item = pytester.getitem(test, name)
        if not item.config.pluginmanager.hasplugin(pytest_plugin.HYPOTHESIS):
            pytest.skip("the plugin of hypothesis is off in this session")
        words = pytest_plugin._command(item, pytester.path, pytester.path)
        assert (f"no:{pytest_plugin.HYPOTHESIS}" not in words) == has


def test_the_wheel_names_the_plugin() -> None:
    project = tomllib.loads((PURE.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {pytest_plugin.__name__: pytest_plugin.__name__}
    assert not [name for name in project["dependencies"] if name.startswith("pytest")]
