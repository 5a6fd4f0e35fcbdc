"""GPU tests: skipped where there is no GPU, each with the marker `gpu`.

With PROTON_TEST_EMULATED=4 those of modules that say `STAGED = True` run without a GPU, on the
machine of tests/compile/ptx, with 4 warps. In tests that a module names in RACES threads that hold
the same element access it with no barrier in between, and only one of them uses what it reads: what
is checked instead are the results where warps run one after the other.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proton
from proton.runtime import driver
from proton.runtime.nvidia import cuda
from tests.compile.ptx.emulation import Emulation
from tests.gpu.staging import Staging

HERE = Path(__file__).parent
NUM_WARPS = (1, 2, 4, 8, 16)
EMULATED = int(os.environ.get("PROTON_TEST_EMULATED") or 0)  # warps


class Idle(pytest.Module):
    """A file of tests that cannot run here: it is imported, and skipped as one test."""

    def collect(self) -> Iterator[pytest.Item]:
        assert self.obj is not None
        yield Skipped.from_parent(self, name="all")


class Skipped(pytest.Item):
    """Stands for all tests of a file."""

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name

    def runtest(self) -> None:
        pytest.skip("needs an NVIDIA GPU")


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Without a GPU thousands of tests would be collected, and skipped one by one."""
    names_a_test = any("::" in word for word in parent.config.args)
    if cuda.device_count() or EMULATED or names_a_test:
        return None
    idle: pytest.Module = Idle.from_parent(parent, path=module_path)
    return idle


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test of this folder, and skips it where there is no GPU."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            is_emulated = EMULATED and getattr(getattr(item, "module", None), "STAGED", False)
            if not cuda.device_count() and not is_emulated:
                item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@pytest.fixture(autouse=True)
def staged(request: pytest.FixtureRequest) -> Iterator[None]:
    """In modules that say `STAGED = True`: kernels that are given numpy arrays run on the GPU."""
    if not hasattr(request, "param"):
        yield
        return
    if EMULATED:
        is_race = request.node.originalname in getattr(request.module, "RACES", ())
        rng = request.getfixturevalue("rng")
        staging: Staging = Emulation(EMULATED, rng, checks_races=not is_race)
    else:
        staging = Staging(request.param)
    with staging.installed():
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs the tests of such modules with each number of warps."""
    if getattr(metafunc.module, "STAGED", False):
        counts = NUM_WARPS if cuda.device_count() and not EMULATED else NUM_WARPS[:1]
        ids = [f"{count}w" for count in counts]
        metafunc.parametrize("staged", counts, indirect=True, ids=ids)


@pytest.fixture
def torch() -> Any:
    """The library, where it is installed."""
    return pytest.importorskip("torch")


@pytest.fixture
def compiled(tmp_path: Path) -> Any:
    """Compiles IR from text for the GPU that is there."""

    def compile_text(text: str, level: str) -> Any:
        path = tmp_path / f"kernel.{level}"
        path.write_text(text)
        return proton.compile(str(path), target=driver.active.get_current_target())

    return compile_text
