"""Whose context is current: CUDA's stack of contexts, as a stand-in keeps it."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from proton.base.errors import LaunchError
from proton.runtime.backend import default_backend
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.backend import NVIDIABackend

SUCCESS = 0
DEVICE_OF = {10: 0, 11: 1, 20: 0}  # primary contexts of two devices, and another one of the first


class Contexts:
    """What the driver's functions of these names do. A broken context answers nothing."""

    def __init__(self, *stack: int) -> None:
        self.stack = list(stack)
        self.synchronized: list[int] = []
        self.broken: set[int] = set()

    def cuDeviceGet(self, number: int) -> tuple[int, int]:
        return SUCCESS, number

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[int, int]:
        return SUCCESS, 10 + device

    def cuCtxGetCurrent(self) -> tuple[int, int]:
        return SUCCESS, self.stack[-1] if self.stack else 0

    def cuCtxGetDevice(self) -> tuple[int, int]:
        assert self.stack[-1] not in self.broken
        return SUCCESS, DEVICE_OF[self.stack[-1]]

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:
        self.stack[-1:] = [context]
        return (SUCCESS,)

    def cuCtxPushCurrent(self, context: int) -> tuple[int]:
        self.stack.append(context)
        return (SUCCESS,)

    def cuCtxPopCurrent(self) -> tuple[int, int]:
        return SUCCESS, self.stack.pop()

    def cuCtxSynchronize(self) -> tuple[int]:
        self.synchronized.append(self.stack[-1])
        return (SUCCESS,)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs a stand-in; contexts that other tests retained are forgotten, before and after."""

    def install(contexts: Contexts) -> Contexts:
        monkeypatch.setattr(cuda, "_driver", lambda: contexts)
        monkeypatch.setattr(cuda, "device_count", lambda: 2)
        return contexts

    cuda._primary_context.cache_clear()
    yield install
    cuda._primary_context.cache_clear()


@pytest.mark.parametrize(
    "before, used",
    [
        ([], 11),  # a thread that is new to CUDA
        ([10], 11),
        ([11], 11),
        ([11, 20], 11),
        ([20], 11),
    ],
)
def test_a_device_is_waited_for_in_a_context_of_its_own(
    installed: Any, before: list[int], used: int
) -> None:
    contexts = installed(Contexts(*before))
    cuda.synchronize(1)
    assert contexts.synchronized == [used]
    assert contexts.stack == before


def test_a_context_of_the_device_that_the_user_made_is_kept(installed: Any) -> None:
    contexts = installed(Contexts(20))
    cuda.synchronize(0)
    cuda.enter_primary_context(0)
    assert contexts.synchronized == [20]
    assert contexts.stack == [20]


@pytest.mark.parametrize("before", [[], [10], [11]])
def test_a_thread_enters_the_context_of_the_device_that_it_launches_on(
    installed: Any, before: list[int]
) -> None:
    contexts = installed(Contexts(*before))
    cuda.enter_primary_context(1)
    assert contexts.stack == [11]


def test_what_goes_wrong_leaves_the_context_that_was_there(installed: Any) -> None:
    contexts = installed(Contexts(10))

    def fails() -> None:
        with cuda.on_device(1):
            raise RuntimeError(f"within {contexts.stack}")

    with pytest.raises(RuntimeError, match=r"within \[10, 11\]"):
        fails()
    assert contexts.stack == [10]


def test_a_broken_context_is_asked_for_nothing(installed: Any) -> None:
    contexts = installed(Contexts(10))
    contexts.broken.add(10)
    with cuda.on_device(0):
        assert contexts.stack == [10]


class Forked:
    """A driver of which processes have been told; one that is forked from them cannot use it."""

    def __init__(self) -> None:
        self.process: int | None = None

    def cuInit(self, _: int) -> tuple[int]:
        self.process = self.process or os.getpid()
        return (SUCCESS if self.process == os.getpid() else 3,)

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return SUCCESS, 2


@pytest.fixture
def of_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    driver = Forked()
    monkeypatch.setattr(cuda, "_driver", lambda: driver)
    cuda._devices.cache_clear()
    yield
    cuda._devices.cache_clear()


@pytest.mark.usefixtures("of_processes")
def test_a_forked_process_has_gpus_that_it_cannot_use() -> None:
    """As those in which torch compiles: it must not run elsewhere instead."""
    found = NVIDIABackend()
    assert cuda.device_count() == 2
    assert found.is_there()
    reader, writer = os.pipe()
    if not (child := os.fork()):
        said = [str(found.is_there()), str(cuda.device_count()), default_backend().name]
        try:
            cuda.check_usable()
        except LaunchError as problem:
            said.append(str(problem))
        os.write(writer, "\n".join(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        is_there, count, name, problem = pipe.read().split("\n")
    assert (is_there, count, name) == ("True", "0", "cuda")
    assert "forked from one that uses GPUs" in problem
    assert "spawn" in problem
