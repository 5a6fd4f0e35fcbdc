"""GPU tests: skipped where there is no GPU, each with the marker `gpu`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proton.runtime import cuda
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


@pytest.fixture
def staged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels that are given numpy arrays run on the GPU, with `request.param` warps."""
    with Staging(request.param).installed():
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Modules that say `STAGED = True` run all their tests on the GPU, for each `num_warps`."""
    if getattr(metafunc.module, "STAGED", False):
        metafunc.fixturenames.append("staged")
        counts = NUM_WARPS if cuda.device_count() else NUM_WARPS[:1]
        ids = [f"{count}w" for count in counts]
        metafunc.parametrize("staged", counts, indirect=True, ids=ids)
