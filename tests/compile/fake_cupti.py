"""A stand-in for the package cupti-python, which needs a GPU."""

import enum
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from proton.runtime.nvidia import cupti as gpu_cupti

AHEAD = 1_700_000_000_000_000_000  # ns: the stand-in's clock is a wall clock


class ActivityKind(enum.IntEnum):
    MEMCPY = 1
    MEMSET = 2
    DRIVER = 4
    RUNTIME = 5
    CONCURRENT_KERNEL = 10
    MEMCPY2 = 22
    OVERHEAD = 17


class ActivityMemcpyKind(enum.IntEnum):
    HTOD = 1
    DTOH = 2


class RuntimeApiTraceCbid(enum.IntEnum):
    INVALID = 0
    cudaGetDevice_v3020 = 1
    cudaLaunchKernel_v7000 = 2
    cudaMemcpyAsync_v3020 = 3


class DriverApiTraceCbid(enum.IntEnum):
    INVALID = 0
    cuCtxGetCurrent = 1
    cuLaunchKernelEx = 2


class Standin(types.ModuleType):
    """Hands over on `activity_flush_all` what was given to `ran` and `called`; its clock runs
    faster by 1e-4. A kind that is switched on anew records all of its functions."""

    ActivityKind, ActivityMemcpyKind = ActivityKind, ActivityMemcpyKind
    RuntimeApiTraceCbid, DriverApiTraceCbid = RuntimeApiTraceCbid, DriverApiTraceCbid

    def __init__(self) -> None:
        super().__init__("cupti.cupti")
        self.enabled: set[int] = set()
        self.left_out: set[tuple[int, int]] = set()  # kinds and functions
        self.pending: list[Any] = []
        self.zero = time.perf_counter_ns()
        self.completed: Callable[[list[Any]], None] = lambda records: None

    def stamp(self, host: int) -> int:
        """The stand-in's time at a time of the host."""
        return AHEAD + host + (host - self.zero) // 10_000

    def get_timestamp(self) -> int:
        return self.stamp(time.perf_counter_ns())

    def activity_register_callbacks(self, requested: Any, completed: Any) -> None:
        size, limit = requested()
        assert size > 0
        assert limit == 0
        self.completed = completed

    def activity_enable(self, kind: int) -> None:
        assert kind not in self.enabled
        self.enabled.add(kind)
        self.left_out = {pair for pair in self.left_out if pair[0] != kind}

    def activity_enable_runtime_api(self, function: int, enable: int) -> None:
        self._leave_out(ActivityKind.RUNTIME, function, enable)

    def activity_enable_driver_api(self, function: int, enable: int) -> None:
        self._leave_out(ActivityKind.DRIVER, function, enable)

    def _leave_out(self, kind: int, function: int, enable: int) -> None:
        assert kind in self.enabled
        assert not enable
        if not function:
            raise ValueError("INVALID_PARAMETER")
        self.left_out.add((kind, function))

    def activity_disable(self, kind: int) -> None:
        self.enabled.remove(kind)

    def activity_flush_all(self, flag: int) -> None:
        assert flag == 1
        pending, self.pending = self.pending, []
        self.completed(pending)

    def ran(self, kind: ActivityKind, begin: int, end: int, **values: Any) -> None:
        """Something ran, from and to these times of the host."""
        if kind in self.enabled:
            times = {"start": self.stamp(begin), "end": self.stamp(end)}
            self.pending.append(types.SimpleNamespace(kind=kind, **times, **values))

    def called(
        self, function: enum.IntEnum, begin: int, end: int, thread: int, correlation: int
    ) -> None:
        """A thread called a function, from and to these times of the host."""
        is_runtime = isinstance(function, RuntimeApiTraceCbid)
        kind = ActivityKind.RUNTIME if is_runtime else ActivityKind.DRIVER
        if (kind, function) in self.left_out:
            return
        ids = {"thread_id": thread % (1 << 32), "correlation_id": correlation}
        self.ran(kind, begin, end, cbid=int(function), **ids)


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    module = Standin()
    monkeypatch.setitem(sys.modules, "cupti", types.ModuleType("cupti"))
    monkeypatch.setitem(sys.modules, "cupti.cupti", module)
    yield module
    assert not module.enabled
    assert not gpu_cupti._source.listeners
