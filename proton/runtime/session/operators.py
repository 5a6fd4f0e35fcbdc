"""Records of torch's operators in a session, where the process has imported torch.

    recorder = OperatorRecorder(host)
    recorded = recorder.finish()

Operators of one thread nest, in each other and in the host scopes around them, and their paths say
so: `step/aten::linear/aten::addmm`.
"""

import atexit
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from proton.base.errors import ProtonError
from proton.runtime.session.host_scopes import HostRecorder
from proton.runtime.session.import_watch import ImportWatch
from proton.runtime.session.operator_callbacks import NAME_BYTES, Callbacks
from proton.runtime.session.recording import Recorded
from proton.trace.model import LOST_OPERATORS, NO_OPERATORS, OPERATOR, HostSlice
from proton.trace.scope_path import FUSED, SEPARATOR, ScopePath

TORCH = "torch"
LOST = -1


@dataclass(frozen=True)
class _Calls:
    """Operators that began: a row each, in order of time. `end` is 0 for those under way, and LOST
    for those whose end is not there."""

    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    name: np.ndarray


class _Source:
    """torch's announcements to this process, which are on while somebody listens."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.listeners = 0
        self.callbacks: Callbacks | None = None
        self.problem = ""  # why there are none, though torch is there
        self.watch: ImportWatch | None = None

    def add(self) -> None:
        """Somebody listens from now on."""
        with self.lock:
            self.listeners += 1
            if self.listeners > 1:
                return
            if TORCH in sys.modules:
                self.begin(sys.modules[TORCH])
            else:
                self.watch = ImportWatch(TORCH, self.begin)

    def begin(self, torch: ModuleType) -> None:
        """torch is there."""
        with self.lock:
            if not self.listeners or self.problem:
                return
            try:
                self.callbacks = self.callbacks or Callbacks(torch)
            except (ProtonError, ImportError) as error:  # somebody's `import torch` goes on
                self.problem = str(error)
                print(f"proton: no operators are recorded: {error}", file=sys.stderr)
                return
            self.callbacks.on()
            atexit.register(self.close)  # the machine code goes with the interpreter

    def close(self) -> None:
        """Has torch call no more, whoever listens."""
        with self.lock:
            atexit.unregister(self.close)
            if self.callbacks is not None:
                self.callbacks.off()

    def begun(self) -> int:
        """How many operators began since somebody listens."""
        return 0 if self.callbacks is None else int(self.callbacks.begins.count[0])

    def remove(self) -> None:
        """Somebody listens no more; what has been recorded is gone with the last."""
        with self.lock:
            self.listeners -= 1
            if self.listeners:
                return
            if self.watch is not None:
                self.watch.stop()
            self.close()
            if self.callbacks is not None:
                self.callbacks.begins.clear()
                self.callbacks.ends.clear()


_source = _Source()


def calls(begins: np.ndarray, ends: np.ndarray) -> _Calls:
    """Pairs each begin with the end that follows at its address. Between the two no other operator
    has that address, so a begin that another follows has lost its end."""
    address = np.append(begins["address"], ends["address"])
    moment = np.append(begins["time"], ends["time"])
    is_end = np.append(np.zeros(len(begins), bool), np.ones(len(ends), bool))
    order = np.lexsort((is_end, moment, address))
    same = np.append(address[order][1:] == address[order][:-1], False)
    follows = np.append(is_end[order][1:], False)
    is_begin = ~is_end[order]
    times = np.where(same, np.where(follows, np.append(moment[order][1:], 0), LOST), 0)
    rows = np.flatnonzero(is_begin)
    rows = rows[np.argsort(order[rows], kind="stable")]  # torch's order: an outer one comes first
    begin = begins[order[rows]]
    return _Calls(begin["time"], times[rows], begin["thread"].astype(np.int64), begin["name"])


class OperatorRecorder:
    """Operators that begin from its making until `finish`."""

    def __init__(self, host: HostRecorder) -> None:
        self.host, self.is_forked = host, False
        _source.add()
        self.start, self.begun = time.perf_counter_ns(), _source.begun()

    def disown(self) -> None:
        """In a process that was forked they are nobody's."""
        self.is_forked = True

    def finish(self) -> Recorded:
        """The operators as slices, and how many there was no room for."""
        stop, found = time.perf_counter_ns(), Recorded()
        if self.is_forked:
            return found
        callbacks, begun = _source.callbacks, _source.begun()
        if _source.problem and TORCH in sys.modules:
            found.machine[NO_OPERATORS] = _source.problem
        if callbacks is not None:
            known = calls(callbacks.begins.written(), callbacks.ends.written())
            mine = np.flatnonzero((known.start >= self.start) & (known.start <= stop))
            # Where ends did not fit, one that seems under way may have ended long ago.
            least = 0 if callbacks.ends.is_overfull else LOST
            kept = mine[known.end[mine] > least]
            found.host = self._slices(known, kept, stop)
            lost = len(mine) - len(kept) + max(begun - max(self.begun, callbacks.capacity), 0)
            if lost:
                found.machine[LOST_OPERATORS] = lost
        _source.remove()
        return found

    def _slices(self, found: _Calls, chosen: np.ndarray, stop: int) -> list[HostSlice]:
        """Some of the operators; what is under way as if it ended now."""
        names, name = np.unique(found.name[chosen], return_inverse=True)
        texts = [_readable(text) for text in names.tolist()]
        end = np.where(found.end[chosen] > 0, np.minimum(found.end[chosen], stop), stop)
        scopes: dict[int, list[HostSlice]] = {}
        for slice_ in self.host.so_far():
            if slice_.kind == "host":
                scopes.setdefault(slice_.thread, []).append(slice_)
        slices = []
        threads = found.thread[chosen]
        for thread in dict.fromkeys(threads.tolist()):
            rows = np.flatnonzero(threads == thread)
            columns = (found.start[chosen][rows].tolist(), end[rows].tolist())
            of_thread = zip(*columns, [texts[n] for n in name[rows].tolist()], strict=True)
            slices += _nested(thread, list(of_thread), scopes.get(thread, []))
        return slices


def _readable(name: bytes) -> str:
    """A name as paths have it; one that was cut says so."""
    text = name.decode(errors="replace").replace(SEPARATOR, "|").replace(FUSED, "+")
    return f"{text}..." if len(name) == NAME_BYTES - 1 else text or "unknown"


def _nested(
    thread: int, operators: Sequence[tuple[int, int, str]], scopes: Sequence[HostSlice]
) -> list[HostSlice]:
    """The operators of a thread, in order of time, with the paths that they have in each other and
    in the scopes of the host."""
    around = sorted(scopes, key=lambda scope: (scope.start, -scope.end))
    open_: list[tuple[int, str]] = []  # ends and paths of what lies around, outermost first
    joined: dict[tuple[str, str], str] = {}
    found, place = [], 0
    for start, end, name in operators:
        while place < len(around) and around[place].start <= start:
            open_ = [entry for entry in open_ if entry[0] > around[place].start]
            open_.append((around[place].end, around[place].path))
            place += 1
        while open_ and open_[-1][0] < end:
            open_.pop()
        outer = open_[-1][1] if open_ else ""
        path = joined.get((outer, name))
        if path is None:
            path = joined[outer, name] = ScopePath.of([outer, name] if outer else [name])
        open_.append((end, path))
        found.append(
            HostSlice(name=name, path=path, thread=thread, start=start, end=end, kind=OPERATOR)
        )
    return found
