"""Tests of the language run over the interpreter, too, where they are marked `interpreted`."""

from collections.abc import Iterator

import pytest

import proton


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("interpreted"):
        metafunc.fixturenames.append("interpretation")
        ids = ["compiled", "interpreted"]
        metafunc.parametrize("interpretation", [False, True], ids=ids, indirect=True)


@pytest.fixture
def interpretation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the test's kernels compiled, or as Python."""
    with proton.knobs.scope(interpret=request.param):
        yield
