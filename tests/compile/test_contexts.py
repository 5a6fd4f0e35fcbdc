"""Whose context is current: CUDA's stack of contexts, as a stand-in keeps it."""

from typing import Any

import pytest

from proton.runtime.nvidia import cuda

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
