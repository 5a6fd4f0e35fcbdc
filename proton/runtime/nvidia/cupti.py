"""What a process runs on NVIDIA GPUs, by CUPTI: kernels, copies and fills, whoever made them.

CUPTI hands records over in buffers, from a thread of its own; they have times of its clock, which
pairs of readings take to the host's. What was asked for by a call of CUDA has that call's
correlation id, so a slice says which thread asked for it, and when. The package cupti-python
(`pip install 'proton-tile[cupti]'`) is optional: `load` says why it is not there.

    collector = Collector(load())
    slices = collector.stop()
"""

import contextlib
import importlib
import threading
import time
import types
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from proton.base import symbols
from proton.base.errors import ProfileError
from proton.trace.model import HostSlice
from proton.trace.scope_path import FUSED, SEPARATOR

BUFFER_BYTES = 8 << 20
NO_LIMIT = 0  # of the records of a buffer
FORCED = 1  # flush what is in buffers that are not full, too
READINGS = 5  # of a pair of clocks, of which the quickest counts
# What is recorded: CUPTI's kinds, and what a run calls each.
KINDS = {
    "CONCURRENT_KERNEL": "kernel",
    "MEMCPY": "memcpy",
    "MEMCPY2": "memcpy",  # between GPUs
    "MEMSET": "memset",
}
# Of each kind: the values that its records have, and their names here.
_KERNEL = {
    "registers_per_thread": "registers",
    "static_shared_memory": "static_shared",
    "dynamic_shared_memory": "dynamic_shared",
    **{f"{of}_{axis}": f"{of}_{axis}" for of in ("grid", "block") for axis in "xyz"},
}
_VALUES = {"kernel": _KERNEL, "memcpy": {"bytes": "bytes"}, "memset": {"bytes": "bytes"}}
CALLS = ("RUNTIME", "DRIVER")  # the kinds of the calls that ask for it
# Of those the functions of which there are records: how their names go on behind `cuda` or `cu`.
_ASKING = ("Launch", "GraphLaunch", "Memcpy", "Memset")
_THREAD = (1 << 32) - 1  # CUPTI has the low half of a thread's ident
_FIELDS = sorted({name for names in _VALUES.values() for name in names})


def load() -> types.ModuleType:
    """The package's module; raises ProfileError where it is not there, or finds no CUPTI.

    The package looks for the driver and for CUPTI at its first call, not when it is imported.
    """
    try:
        cupti = importlib.import_module("cupti.cupti")
        cupti.get_timestamp()
    except ImportError as error:
        raise ProfileError(
            "activities='all' needs CUPTI from the package cupti-python: "
            f"pip install 'proton-tile[cupti]' ({error})"
        ) from None
    except Exception as error:
        raise _refused(error) from None
    return cupti


def _refused(error: Exception) -> ProfileError:
    """What the package raised, whose kind depends on its version."""
    return ProfileError(f"CUPTI cannot be used: {error}")


@dataclass(frozen=True)
class _Pair:
    """One moment by both clocks."""

    cupti: int
    host: int


def _pair(cupti: types.ModuleType) -> _Pair:
    """CUPTI's clock and the host's, from the quickest of some readings."""
    best, found = 1 << 62, _Pair(0, 0)
    for _ in range(READINGS):
        before = time.perf_counter_ns()
        stamp = int(cupti.get_timestamp())
        after = time.perf_counter_ns()
        if after - before < best:
            best, found = after - before, _Pair(stamp, (before + after) // 2)
    return found


class _Source:
    """CUPTI of this process, which is on while a collector listens."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listeners: list[Collector] = []
        self.calls: set[int] = set()  # the kinds of calls

    def add(self, collector: "Collector") -> None:
        """Hands records to a collector from now on."""
        with self.lock:
            if not self.listeners:
                self._enable(collector.cupti)
            self.listeners.append(collector)

    def remove(self, collector: "Collector") -> None:
        """Ends that; what CUPTI has still comes before."""
        collector.cupti.activity_flush_all(FORCED)
        with self.lock:
            self.listeners.remove(collector)
            if not self.listeners:
                for name in (*KINDS, *CALLS):
                    collector.cupti.activity_disable(collector.cupti.ActivityKind[name])

    def _enable(self, cupti: types.ModuleType) -> None:
        self.calls = {int(cupti.ActivityKind[name]) for name in CALLS}
        try:
            cupti.activity_register_callbacks(lambda: (BUFFER_BYTES, NO_LIMIT), self._completed)
            for name in (*KINDS, *CALLS):
                cupti.activity_enable(cupti.ActivityKind[name])
        except Exception as error:
            raise _refused(error) from None
        _leave_out_other_calls(cupti)

    def _completed(self, records: Iterable[Any]) -> None:
        kept, calls = [], {}
        for record in records:
            if int(record.kind) in self.calls:
                calls[int(record.correlation_id)] = _Call.of(record)
            else:
                kept.append(_Activity.of(record))
        for collector in list(self.listeners):
            collector.activities += kept
            collector.calls |= calls


_source = _Source()


def _leave_out_other_calls(cupti: types.ModuleType) -> None:
    """Has CUPTI record only the calls that ask a GPU for something; a version that cannot records
    all of them. It keeps this as long as their kinds are on."""
    functions = (
        ("cuda", "RuntimeApiTraceCbid", "activity_enable_runtime_api"),
        ("cu", "DriverApiTraceCbid", "activity_enable_driver_api"),
    )
    for prefix, numbers, switch in functions:
        asking = tuple(prefix + name for name in _ASKING)
        for number in getattr(cupti, numbers, ()):
            name = number.name.rpartition("__")[2]
            if name.startswith("cu") and not name.startswith(asking):
                with contextlib.suppress(Exception):  # its kind depends on the version
                    getattr(cupti, switch)(int(number), 0)


@dataclass(frozen=True)
class _Call:
    """A call of CUDA: the low half of the ident of the thread that made it, and its middle."""

    thread: int
    moment: int

    @staticmethod
    def of(record: Any) -> "_Call":
        """The copy of a record of a call."""
        start, end = int(record.start), int(record.end)
        return _Call(int(record.thread_id) & _THREAD, (start + end) // 2)


@dataclass(frozen=True)
class _Activity:
    """What is needed of a record, which is gone when its buffer is."""

    kind: int
    name: str
    start: int
    end: int
    device: int
    stream: int
    copy: int
    correlation: int
    values: dict[str, int]

    @staticmethod
    def of(record: Any) -> "_Activity":
        """The copy of a record of any kind."""
        return _Activity(
            kind=int(record.kind),
            name=str(getattr(record, "name", "")),
            start=int(getattr(record, "start", 0)),
            end=int(getattr(record, "end", 0)),
            device=int(getattr(record, "device_id", 0)),
            stream=int(getattr(record, "stream_id", 0)),
            copy=int(getattr(record, "copy_kind", 0)),
            correlation=int(getattr(record, "correlation_id", 0)),
            values={name: int(getattr(record, name)) for name in _FIELDS if hasattr(record, name)},
        )


class Collector:
    """Listens from its making until `stop`. Raises ProfileError where CUPTI refuses."""

    def __init__(self, cupti: types.ModuleType) -> None:
        self.cupti = cupti
        self.activities: list[_Activity] = []
        self.calls: dict[int, _Call] = {}  # by correlation id
        self.kinds = {int(cupti.ActivityKind[name]): kind for name, kind in KINDS.items()}
        self.first = _pair(cupti)
        _source.add(self)

    def stop(self) -> list[HostSlice]:
        """What began and ended meanwhile, as slices of streams, in order of time. The thread that
        asked for one is the low half of its ident."""
        _source.remove(self)
        last = _pair(self.cupti)
        begin, found = self.first.host, []
        for activity in self.activities:
            kind = self.kinds.get(activity.kind)
            start, end = (self._on_host(t, last) for t in (activity.start, activity.end))
            if kind is not None and begin <= start <= end:
                call = self.calls.get(activity.correlation)
                issued = self._on_host(call.moment, last) if call is not None else 0
                issuer = call.thread if call is not None else 0
                slice_ = self._slice(activity, kind, start, end)
                found.append(replace(slice_, issuer=issuer, issued=issued))
        return sorted(found, key=lambda slice_: slice_.start)

    def _on_host(self, stamp: int, last: _Pair) -> int:
        """A time of CUPTI's clock by the host's, on the line through both pairs."""
        since = stamp - self.first.cupti
        span = last.cupti - self.first.cupti
        host = last.host - self.first.host
        return self.first.host + (since * host // span if span > 0 else since)

    def _slice(self, activity: _Activity, kind: str, start: int, end: int) -> HostSlice:
        name = activity.name
        if kind == "memcpy":
            name = f"memcpy {self.cupti.ActivityMemcpyKind(activity.copy).name}"
        elif kind == "memset":
            name = "memset"
        else:
            name = symbols.demangled(symbols.written(name))
        name = name.replace(SEPARATOR, "|").replace(FUSED, "+") or "unknown"
        values = _VALUES[kind]
        payload = {values[of]: n for of, n in activity.values.items() if of in values}
        return HostSlice(
            name=name,
            path=name,
            thread=activity.stream,
            device=activity.device,
            start=start,
            end=end,
            payload=dict(sorted(payload.items())),
            kind=kind,
        )
