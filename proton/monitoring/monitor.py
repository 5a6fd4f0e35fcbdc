"""A monitor: the session of a whole process that goes on, and the thread that empties it."""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType

import numpy as np

from proton.base.errors import ProtonError, reason
from proton.base.knobs import knobs
from proton.monitoring.exporters import Exporter, exporter_of
from proton.monitoring.rotation import LAUNCH_BYTES, SLICE_BYTES, Rotation
from proton.monitoring.statistics import KERNEL, MonitorStatistics, Snapshot
from proton.runtime.session import open_sessions
from proton.runtime.session.launch_budget import LaunchBudget, size_of
from proton.trace.join import join
from proton.trace.model import RawRun
from proton.trace.monitor_options import MonitorOptions

POLL_S = 1.0  # until the first look at the session; then each time twice as long,
POLLS = 4  # until there are so many in a period
# What a launch and a host scope take besides what grows with records, in bytes of these: some 250
# us, and 10 us, of an EPYC 9005 (`benchmarks/soak.py` says what all of it takes).
LAUNCH_WEIGHT, SLICE_WEIGHT = 24 << 10, 1 << 10


class Monitor:
    """Samples the launches of this process until `stop`, or the process's end. It is the session of
    the process: `proton.profile` works meanwhile, and what it records the monitor has, too.

    `snapshot` has the figures of the last period, None before one has ended.
    """

    def __init__(self, options: MonitorOptions) -> None:
        self.options = options
        self.snapshot: Snapshot | None = None
        self.statistics = MonitorStatistics()
        self.rotation = Rotation(Path(options.folder).absolute(), options.folder_mb * 1e6)
        self.dropped = 0
        self.process = os.getpid()
        self.is_over = threading.Event()
        self.stopping = threading.Lock()
        self.budget = LaunchBudget(0.0)  # until the first look
        self.parts: list[RawRun] = []  # that nobody has looked into yet
        self.size = 0  # their bytes
        self.paid_ns = 0  # of the thread's time, which launches were charged for
        self.said: set[str] = set()
        self.exporters: list[Exporter] = []
        if knobs.profile_disable:
            self.is_over.set()
            return
        self.rotation.prepare()
        self._export()
        try:
            open_sessions.start_program(options)
        except BaseException:
            self._close()
            raise
        self.thread = threading.Thread(target=self._run, name="proton-monitor", daemon=True)
        self.thread.start()
        atexit.register(self.stop)

    def _export(self) -> None:
        try:
            for asked in self.options.metrics:
                self.exporters.append(exporter_of(asked, lambda: self.snapshot))
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        for exporter in self.exporters:
            exporter.close()

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the session and writes what is left. A second call does nothing, nor does one in a
        process that was forked. Waits for launches that are under way, as each session's end
        does."""
        if os.getpid() != self.process:
            return
        with self.stopping:
            if self.is_over.is_set():
                return
            self.is_over.set()
        atexit.unregister(self.stop)
        self.thread.join()
        self._keep(*open_sessions.leave_program())
        self._publish()
        self._close()

    # On the monitor's thread, and behind its end

    def _run(self) -> None:
        most = self.options.period_s / POLLS
        poll, ends = min(POLL_S, most), time.monotonic() + self.options.period_s
        while not self.is_over.wait(poll):
            poll = min(2 * poll, most)
            try:
                self._keep(*open_sessions.take_program())
                if time.monotonic() >= ends:
                    ends += self.options.period_s
                    self._publish()
            except Exception as error:  # the program goes on, and so does the monitor
                self._say(f"a look at the session failed: {reason(error)}")

    def _keep(self, raw: RawRun | None, budget: LaunchBudget | None) -> None:
        """Keeps what ended since the last look, and has the budget choose anew."""
        if raw is None or budget is None:
            return
        self.budget = budget
        self.dropped += raw.dropped_launches
        for kernel, times in budget.update():
            if times:
                self.statistics.add_times((KERNEL, kernel, ""), np.array(times))
        if raw.launches or raw.host:
            self.parts.append(raw)
            self.size += SLICE_BYTES * len(raw.host)
            self.size += sum(LAUNCH_BYTES + launch.buffer.size for launch in raw.launches)
        if self.size > self.rotation.most_of_file:
            self._fold()

    def _fold(self) -> None:
        """Adds what is kept to the statistics and to the next file."""
        parts, self.parts, self.size = self.parts, [], 0
        if not parts:
            return
        raw = join(parts)
        try:
            self.statistics.add(raw)
            self.rotation.add(raw)
        except ProtonError as error:
            self.dropped += len(raw.launches)
            self._say(f"records of {len(raw.launches)} launches are lost: {error}")
        self._say_lost()
        if not self.is_over.is_set():  # then this is another thread
            spent = time.thread_time_ns() - self.paid_ns
            self.paid_ns += spent
            _charge(raw, self.budget, spent)

    def _publish(self) -> None:
        """Ends a period: its file, and its figures."""
        self._fold()
        rotation = self.rotation
        rotation.write()
        self._say_lost()
        self.snapshot = Snapshot(
            unix_s=time.time(),
            budget=float(self.options.budget),
            kernels=self.statistics.figures(self.budget),
            durations=self.statistics.publish(),
            dropped=self.dropped,
            bytes_written=rotation.bytes_written,
            files_written=rotation.written,
            files_lost=rotation.lost,
        )

    def _say_lost(self) -> None:
        if self.rotation.problem:
            problem, self.rotation.problem = self.rotation.problem, ""
            self._say(f"a run is lost: {problem}")

    def _say(self, problem: str) -> None:
        """Once of each kind: a monitor may go on for days."""
        kind = problem.split(":")[0]
        if kind not in self.said:
            self.said.add(kind)
            with contextlib.suppress(OSError, ValueError):  # stderr may be closed
                print(f"proton: monitor: {problem}", file=sys.stderr)


def _charge(raw: RawRun, budget: LaunchBudget, spent_ns: float) -> None:
    """Tells the budget what each launch took of the host to be kept: shares of what was spent, by
    the bytes of their records. Host scopes have their share, too: nobody chose them."""
    weights: Counter[tuple[str, int]] = Counter()
    counts: Counter[tuple[str, int]] = Counter()
    for launch in raw.launches:
        key = raw.kernels[launch.kernel].name, size_of(launch.grid)
        weights[key] += LAUNCH_WEIGHT + launch.buffer.size
        counts[key] += 1
    each = spent_ns / max(weights.total() + SLICE_WEIGHT * len(raw.host), 1)
    for key, weight in weights.items():
        kernel = budget.kernels.get(key)
        if kernel is not None:
            kernel.charge(each * weight / counts[key])
