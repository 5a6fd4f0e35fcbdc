"""Tests pass wherever they are started: in the background, in another locale, without a home."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Of those that depend on it: of signals, of text on streams and as wide as a terminal, of files and
# of kernels.
CHOSEN = (
    "tests/cpu/test_threads.py::test_an_interrupted_launch_waits_for_its_threads",
    "tests/pure/test_cli.py::test_summary_of_a_gpu_says_its_name_sms_clocks_and_resources",
    "tests/pure/test_cli.py::test_export_writes_what_save_writes",
    "tests/pure/test_cli.py::test_json_has_what_is_drawn",
    "tests/pure/test_cli.py::test_help_teaches_by_examples",
    "tests/pure/test_cli.py::test_a_table_of_many_rows_has_all_of_them",
    "tests/cpu/test_print.py::test_titles",
    "tests/cpu/test_print.py::test_floats",
    "tests/cpu/test_print.py::test_python_s_print_and_text_alone",
    "tests/cpu/test_cache_damage.py::test_a_thousand_damaged_entries",
)


def unfriendly() -> None:
    """What a process finds that a script starts in the background of a hardened machine."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o077)
    os.setsid()  # no terminal


def test_tests_set_what_they_rely_on() -> None:
    kept = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "PYTHONPYCACHEPREFIX")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"LC_ALL": "C", "NO_COLOR": "1", "COLUMNS": "31"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *CHOSEN]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        preexec_fn=unfriendly,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_process_that_crashes_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_crash.py").write_text("import os\ndef test_crash():\n    os.abort()\n")
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}():\n    pass\n" * 3)
    options = ("-q", "-n", "2", "-p", "no:cacheprovider", "-p", "tests.conftest")
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", ROOT, tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crashed while running" in done.stdout
