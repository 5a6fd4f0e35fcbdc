"""Tests of the language run over the interpreter, too, where they are marked `interpreted`."""

from collections.abc import Iterator

import pytest

import proton


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("interpreted"):
        ids = ["compiled", "interpreted"]
        metafunc.parametrize("interpretation", [False, True], ids=ids, indirect=True)


@pytest.fixture(autouse=True)  # pytest drops a fixture that no test asks for, parametrized or not
def interpretation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the test's kernels compiled, or as Python; of a test without the mark as it likes."""
    if not hasattr(request, "param"):
        yield
        return
    with proton.knobs.scope(interpret=request.param):
        yield
