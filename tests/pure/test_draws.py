"""A run draws the same examples each time, whichever process a test runs in."""

from pathlib import Path

from tests.processes import python

SCRIPT = """
from hypothesis import given, settings, strategies as st
from tests import draws
settings.load_profile("proton")
@given(st.lists(st.integers()), st.floats(), st.text())
def show(numbers, number, text):
    print(ascii((numbers, number, text)))
show()
"""


def test_what_is_imported_changes_no_example(tmp_path: Path) -> None:
    (tmp_path / "with_constants.py").write_text("FOUND = 1234567, 99991, 0.15625, 'a constant'\n")
    path = {"PYTHONPATH": str(tmp_path)}
    alone = python("-c", SCRIPT, env=path)
    besides = python("-c", f"import with_constants\n{SCRIPT}", env=path)
    assert (alone.returncode, besides.returncode) == (0, 0), alone.stderr + besides.stderr
    assert len(alone.stdout.splitlines()) >= 50
    assert besides.stdout == alone.stdout
