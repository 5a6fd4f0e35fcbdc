"""What all tests share: a cache of their own, random numbers whose seed a failure shows, and how
`pytest -n` spreads files over processes."""

import atexit
import ctypes
import functools
import gc
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.core
import numpy as np
import pytest
from hypothesis import is_hypothesis_test, settings

from tests import draws

_MEMORY, _ROOM = Path("/dev/shm"), 4 << 30  # a file system in memory, and what is to be free there
_AROUND = "PROTON_TEST_FOLDER"  # names the run's folder


def _new_folder() -> str:
    """A folder for the kernels of a test run, and for what a run, or one of its processes, writes
    besides. The kernels are 50,000 small files, hardly one of which is read: where there is room
    these lie in memory. What a process writes is in the run's: one that crashes leaves nothing."""
    if around := os.environ.get(_AROUND):
        return tempfile.mkdtemp(dir=around)
    is_there = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    in_memory = is_there and shutil.disk_usage(_MEMORY).free >= _ROOM
    return tempfile.mkdtemp(prefix="proton-tests-", dir=_MEMORY if in_memory else None)


_worker = 0  # of a process of xdist's: its number, which no fork of it has


def _end() -> None:
    """Ends a process of xdist's, which reported all it has, behind what else it does at its exit:
    Python would free 800 MB object by object, for which all waited ten seconds."""
    if _worker == os.getpid():
        os._exit(0)


atexit.register(_end)
_FOLDER = _new_folder()  # before proton is imported by any test
os.environ.setdefault(_AROUND, _FOLDER)
# What one process has compiled no other one compiles again.
os.environ["PROTON_CACHE_DIR"] = os.path.join(os.environ[_AROUND], "kernels")
settings.load_profile("proton")

# What tests rely on, and whoever starts them may have otherwise (`nohup make test &`, a container
# without a home, a shell with LC_ALL=C); the processes that tests start inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.umask(0o022)
os.environ["LC_ALL"] = "C.UTF-8"
os.environ.setdefault("HOME", _FOLDER)
# Without bytecode each start of Python compiles what it imports, which takes seconds.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ.setdefault("PYTHONPYCACHEPREFIX", os.path.join(_FOLDER, "bytecode"))
# Of the processes of `pytest -n`, which there are as many of as cores: others would wait for work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
for _name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERMINAL_WIDTH"):
    os.environ.pop(_name, None)

_CACHED = type(functools.cache(lambda: None))
_C = ctypes.CDLL(None)
TRIM = getattr(_C, "malloc_trim", lambda pad: 0)  # glibc has it
# Else glibc keeps the more of what was freed, the larger the blocks were, up to 64 MB.
for _number, _bytes in ((-3, 4 << 20), (-1, 8 << 20)):  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
    getattr(_C, "mallopt", lambda number, value: 0)(_number, _bytes)


def pytest_configure(config: pytest.Config) -> None:
    """Has hypothesis draw from the seed of this run, where one is given. A process of xdist's that
    crashes ends the run, with the test's name: where another one is started, all wait for ever.
    Tests write into the run's folder, unless `--basetemp` names one, which stays."""
    global _worker
    _worker = os.getpid() if hasattr(config, "workerinput") else 0
    if config.option.basetemp is None:
        config.option.basetemp = os.path.join(_FOLDER, "written")
    if getattr(config.option, "maxworkerrestart", "") is None:
        config.option.maxworkerrestart = "0"
    if draws.IS_SEEDED and config.getoption("--hypothesis-seed", None) is None:
        hypothesis.core.global_force_seed = draws.SEED


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Without collections of garbage: of what is imported, and of the syntax trees that pytest
    rewrites, hardly anything is, and looking through it takes a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What has been imported and collected stays, so no collection of garbage looks at it. Of what
    tests keep, kernels for the most part, hardly anything is garbage: that is looked through where
    memory has grown, and not each time that so many objects were made."""
    global _kept, _looked
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1000)
    _kept = _looked = _resident()


# Bytes that a process may grow by before it gives back what was freed, and collects garbage.
_GROWTH, _GARBAGE = 16 << 20, 40 << 20


def _resident() -> int:
    """The bytes of memory that this process has."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # not Linux
        return 0
    return pages * resource.getpagesize()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Behind each file forgets its kernels, and reports that the main process has as well. Once
    memory has grown gives it back."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            _forget_kernels(item)
            _forget_reports(item.config)
        if _resident() > _kept + _GROWTH:
            _give_back()


def _give_back() -> None:
    """What the C library keeps of what was freed, and where that is not enough, what is in cycles,
    such as syntax trees."""
    global _kept, _looked
    TRIM(0)
    if _resident() > _looked + _GARBAGE:
        gc.collect()
        TRIM(0)
        _looked = _resident()
    _kept = _resident()


def _forget_kernels(item: pytest.Item) -> None:
    """Those that a file's tests made, and compiled of its own, of what it imports from others and
    of the examples: each has its levels with it, 140 KB. What another file compiles again lies on
    disk. What the file itself remembers nobody else asks for."""
    if (harness := sys.modules.get("tests.cpu.harness")) is not None:
        harness.kernels_of.cache_clear()
    if (ptx := sys.modules.get("tests.compile.ptx.text")) is not None:
        ptx.parsed.cache_clear()
    for value in vars(getattr(item, "module", gc)).values():
        if isinstance(value, _CACHED) and value.__module__ == item.module.__name__:
            value.cache_clear()
    if (specializations := sys.modules.get("proton.runtime.launch.specializations")) is None:
        return
    others = [
        module for name, module in sys.modules.items() if name.startswith(("kernels.", "tests."))
    ]
    for module in (getattr(item, "module", None), *others):
        for value in list(vars(module).values()) if module is not None else ():
            if isinstance(value, specializations.SpecializedKernel):
                value.device_caches.clear()


def _forget_reports(config: pytest.Config) -> None:
    """Those that a process of xdist keeps for a summary that nobody reads."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.get_plugin("terminalreporter").stats.clear()


_kept = _looked = 0  # bytes when memory was last given back, and garbage was collected


def pytest_report_header() -> str:
    """What repeats this run."""
    fuzz = f"PROTON_TEST_FUZZ={draws.TIMES} " if draws.TIMES > 1 else ""
    return f"seed: {fuzz}PROTON_TEST_SEED={draws.SEED}"


class _Backwards(pytest.Dir):
    """A folder whose last file is collected first."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        yield from reversed(list(super().collect()))


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The second process of `pytest -n` begins at the end: of two that prepare the assertions of
    the same files, which takes seconds, each takes half, and reads what the other one wrote."""
    is_second = os.environ.get("PYTEST_XDIST_WORKER") == "gw1"
    return _Backwards.from_parent(parent, path=path) if is_second else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files in the order of their names. Under `make fuzz`, of all tests those that draw."""
    items.sort(key=lambda item: item.path)
    if draws.TIMES > 1:
        kept = [item for item in items if _draws(item)]
        config.hook.pytest_deselected(items=[item for item in items if not _draws(item)])
        items[:] = kept


def _draws(item: pytest.Item) -> bool:
    test = getattr(item, "obj", None)
    return "session_seed" in getattr(item, "fixturenames", ()) or is_hypothesis_test(test)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """pytest looks through all that is left five times, for what is finalized: once will do."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # or else the bindings say that they leak


def pytest_unconfigure() -> None:
    """Removes the session's cache."""
    shutil.rmtree(_FOLDER, ignore_errors=True)


# Files of few tests, some of which take more than ten seconds each: the longest first. xdist starts
# files of many tests first, so these would be last, and one process would wait for another's.
LONG = (
    "tests/cpu/test_random_programs.py",
    "tests/compile/test_long_loops.py",
    "tests/compile/test_random_records.py",
    "tests/cpu/test_assembly_instructions.py",
    "tests/cpu/test_matrix_kernels.py",
    "tests/cpu/test_large_kernels.py",
    "tests/compile/test_attention_loops.py",
    "tests/compile/test_gpu_schedules.py",
    "tests/cpu/test_other_processors.py",
    "tests/cpu/test_loops_of_products.py",
    "tests/cpu/test_attention_backward.py",
    "tests/test_docs.py",
    "tests/compile/test_warp_group_order.py",
    "tests/test_package.py",
    "tests/cpu/test_recorded_products.py",
    "tests/test_steady.py",
    "tests/ir/test_ttir_passes.py",
    "tests/cpu/test_random_returns.py",
    "tests/ir/test_lit.py",
    "tests/compile/test_idle_driver.py",
    "tests/pure/test_viewer_commands.py",
    "tests/compile/test_direct_launch.py",
    "tests/pure/test_pytest_plugin.py",
    "tests/cpu/test_ragged_tma.py",
    "tests/cpu/test_as_triton.py",
    "tests/cpu/test_slow_kernels.py",
    "tests/compile/test_ttgir_layouts.py",
    "tests/cpu/test_cache.py",
    "tests/cpu/test_session_ends.py",
    "tests/ir/test_axis_info.py",
    "tests/cpu/test_demo.py",
    "tests/pure/test_gpus_on_one_axis.py",
    "tests/pure/test_public_types.py",
    "tests/pure/test_triton_names.py",
    "tests/cpu/test_internal_testing.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Under `pytest -n`, all tests of a file run in one process, and all that need the GPU in
    one; the files of `LONG` are started first. `--dist worksteal` and the like have their way."""
    if config.getoption("dist") != "load":
        return None
    if gone := [file for file in LONG if not (config.rootpath / file).exists()]:
        raise pytest.UsageError(f"LONG of tests/conftest.py names what is not there: {gone}")
    from xdist.scheduler import LoadFileScheduling

    class OneProcessForTheGPU(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "gpu" if file.startswith("tests/gpu/") else file

        def _assign_work_unit(self, node: Any) -> None:
            waiting = next((file for file in LONG if file in self.workqueue), None)
            if waiting is not None:
                self.workqueue.move_to_end(waiting, last=False)
            super()._assign_work_unit(node)

    return OneProcessForTheGPU(config, log)


@pytest.fixture(autouse=True)
def _knobs_stay_as_they_are() -> Iterator[None]:
    """No test leaves a knob set: the variables would mean nothing to those behind it."""
    from proton import knobs

    before = dict(knobs.overrides)
    yield
    after, knobs.overrides = knobs.overrides, before
    assert after == before, "a test set a knob for good: `with knobs.scope(...)` ends"


@pytest.fixture(scope="session")
def session_seed() -> int:
    """The seed of this test run."""
    return draws.SEED


@pytest.fixture
def rng(session_seed: int) -> np.random.Generator:
    """Random numbers; the line this prints is shown when the test fails."""
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    return np.random.default_rng(session_seed)


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty disk cache for one test and the processes that it starts."""
    folder = tmp_path / "kernels"
    monkeypatch.setenv("PROTON_CACHE_DIR", str(folder))
    return folder
