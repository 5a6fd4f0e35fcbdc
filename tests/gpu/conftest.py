"""GPU tests: skipped where there is no GPU, each with the marker `gpu`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proton.runtime.nvidia import cuda
from tests.gpu.staging import Staging

HERE = Path(__file__).parent
NUM_WARPS = (1, 2, 4, 8, 16)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test of this folder, and skips it where there is no GPU."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if not cuda.device_count():
                item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@pytest.fixture(autouse=True)
def staged(request: pytest.FixtureRequest) -> Iterator[None]:
    """In modules that say `STAGED = True`: kernels that are given numpy arrays run on the GPU."""
    if not hasattr(request, "param"):
        yield
        return
    with Staging(request.param).installed():
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the tests of such modules with each number of warps."""
    if getattr(metafunc.module, "STAGED", False):
        counts = NUM_WARPS if cuda.device_count() else NUM_WARPS[:1]
        ids = [f"{count}w" for count in counts]
        metafunc.parametrize("staged", counts, indirect=True, ids=ids)
