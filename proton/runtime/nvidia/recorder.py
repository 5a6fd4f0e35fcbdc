"""What NVIDIA's GPUs record in a session.

The session's limit of memory holds for all that is kept, and a launch beyond it, or for which the
device has no memory, runs without records and is counted. What a launch adds on the host is the way
through `launch`, with the session's lock taken once before and once behind: nothing there depends
on the grid, each call of Python that can be spared is, and whatever can wait is left to the thread
that fetches records (buffers.py).
"""

import contextlib
import functools
import math
import threading
import time
from collections.abc import Sequence
from threading import get_ident

import numpy as np

from proton.backends.nvidia.target import GPUKernel
from proton.base.errors import ProfileError, ProtonError
from proton.base.knobs import knobs
from proton.runtime.launch.grid import host_thread
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.buffers import LASTING_STREAMS, Arrived
from proton.runtime.nvidia.graph import CapturedLaunch, capture
from proton.runtime.nvidia.hardware import HardwareRecorder
from proton.runtime.nvidia.peer_exchange import peer_pair
from proton.runtime.nvidia.profile import Device, GPURecording, ProfiledKernel
from proton.runtime.nvidia.queue import Queue, capturing_by_torch
from proton.runtime.nvidia.run_times import RunTimes
from proton.runtime.nvidia.slabs import Taker, chunks_of, slab_bytes
from proton.runtime.nvidia.variant import GPUVariant, InstrumentedVariant
from proton.runtime.session.recording import Recorded, Recorder, SessionState
from proton.trace import wire
from proton.trace.gpu_peers import PeerPair, aligned
from proton.trace.model import UNFETCHED, GPUClock, Launch

MOST_TIMINGS = 1024  # under way under a budget; more launches are not timed
# Of a graph's launch under a budget. A monitor reads the newest replay, which stays until so many
# more have come; that 2^32 is a multiple lets the count of replays wrap around.
SAMPLED_SLOTS = 4


class GPURecorder(Recorder):
    """The launches of one session on GPUs, and of what CUPTI sees its slices."""

    def __init__(self, state: SessionState) -> None:
        self.state, self.instrumentation = state, state.instrumentation
        self.samples_pcs = bool(state.options.pc_sampling)
        # Each second launch of a kernel runs without records.
        self.has_plain_launches = state.options.compare_run_time or self.samples_pcs
        self.has_budget = state.budget is not None
        if not state.takes_all:
            self.launch = self._launch_chosen  # type: ignore[method-assign]
        self.is_timed = state.options.compare_run_time or self.has_budget
        self.flush_memory: int = knobs.profile_flush_memory
        self.devices: dict[int, Device] = {}
        self.kernels: dict[InstrumentedVariant, ProfiledKernel] = {}
        self.callers = threading.local()  # `thread`: its id
        self.pending: list[GPURecording] = []
        self.captured: list[GPURecording] = []  # of these what a monitor has seen in graphs
        self.plain: list[Launch] = []  # of kernels without scopes
        self.number = 0  # of the last launch
        self.lost = 0  # launches whose records did not arrive
        self.unfetched = 0  # of these, because of an error
        self.error = ""  # what the driver said when the session ended
        self.met: dict[int, list[PeerPair]] = {}  # what GPUs and the first one told each other
        device = cuda.device_in_use()
        self.hardware = HardwareRecorder(state.options)
        if device is not None:
            self.hardware.begin(device)
            with contextlib.suppress(ProtonError):  # a launch there says what is wrong
                self._prepare(device)
        self.hardware.listen()

    @functools.cached_property
    def queue(self) -> Queue:
        """The driver's calls, which only a process that uses a GPU has."""
        return Queue()

    ask_torch = functools.cached_property(lambda self: capturing_by_torch())

    @functools.cached_property
    def run_times(self) -> RunTimes:
        """What is measured where run times are compared."""
        return RunTimes(self.queue, self.state, MOST_TIMINGS if self.has_budget else math.inf)

    # A launch

    def launch(
        self,
        plain: GPUVariant,
        variant: InstrumentedVariant,
        device: int,
        stream: int,
        grid: tuple[int, int, int],
        passed: Sequence[object],
    ) -> GPUKernel:
        """Launches the instrumented kernel with a profile buffer of zeros; the plain one where it
        has no scopes, or where the session is over or has no memory for it."""
        try:
            thread = self.callers.thread
        except AttributeError:
            thread = self._meet_caller(device)
        kernel = self.kernels.get(variant)
        if kernel is None or self.has_plain_launches:
            kernel = self._kernel(variant, device, stream)
            if kernel is None:
                return self._launch_plain(plain, variant, device, stream, grid, passed)
        state, size = self.state, grid[0] * grid[1] * grid[2] * kernel.block_bytes
        path = state.host.path() if state.host.open else ""
        is_captured = stream not in LASTING_STREAMS and (
            self.queue.is_capturing(stream) if self.ask_torch is None else self.ask_torch()
        )
        with state.lock:
            state.begun += 1
            self.number += 1
            recording = GPURecording(self.number, kernel, grid, size, path, thread, stream)
            if state.is_finished:
                added = None
            else:
                added = self._capture(recording) if is_captured else kernel.place(recording)
                if added is None:
                    state.dropped += 1
                else:
                    state.running.launches.add(recording)
        if added is None:
            plain.launch(*grid, stream, *passed)
            return plain.kernel
        launched = None  # it is not known, if this is interrupted
        recording.host_start = time.perf_counter_ns()
        try:
            if self.is_timed:
                self._launch_timed(recording, plain.kernel.name, passed, added)
            else:
                kernel.launch(grid, stream, passed, added)
            launched = True
        except Exception:
            launched = False
            raise
        finally:
            self._end(recording, launched)
        return variant.variant.kernel

    def _launch_chosen(
        self,
        plain: GPUVariant,
        variant: InstrumentedVariant,
        device: int,
        stream: int,
        grid: tuple[int, int, int],
        passed: Sequence[object],
    ) -> GPUKernel:
        """As `launch`, where not every launch is recorded: the others are as without a session, but
        for those that are timed. So is one without scopes, or in a graph ahead of all others."""
        gate = self.state.gates.get(plain.kernel.name)
        if gate is not None and gate.left > 0:
            gate.left -= 1
            plain.launch(*grid, stream, *passed)
            return plain.kernel
        times = self.state.choose(plain.kernel.name, grid)
        if times is None:
            plain.launch(*grid, stream, *passed)
            return plain.kernel
        if self.state.budget is None:
            return GPURecorder.launch(self, plain, variant, device, stream, grid, passed)
        if not hasattr(self.callers, "thread"):
            self._meet_caller(device)
        is_new = device not in self.devices and self.queue.is_capturing(stream)
        if not times.is_recorded or not variant.has_scopes or is_new:
            launch = functools.partial(plain.launch, *grid, stream, *passed)
            self.run_times.around(times.add, device, stream, lambda: times.called(launch))
            return plain.kernel
        args = plain, variant, device, stream, grid, passed
        return times.called(lambda: GPURecorder.launch(self, *args))

    def _launch_timed(
        self, recording: GPURecording, name: str, passed: Sequence[object], added: tuple[int, ...]
    ) -> None:
        """Launches an instrumented kernel between two events."""
        kernel, grid, stream = recording.kernel, recording.grid, recording.stream
        tell = self.run_times.of(kernel.number, True)
        if self.state.budget is not None and (of := self.state.budget.of(name, grid)):
            tell = of.recorded.add
        launch = functools.partial(kernel.launch, grid, stream, passed, added)
        self.run_times.around(tell, kernel.device.device, stream, launch)

    def _end(self, recording: GPURecording, launched: bool | None) -> None:
        """Has the launch's records fetched; one that failed, or that the session did not wait for,
        is no part of the run. `launched` is None where nobody knows."""
        now, state = time.perf_counter_ns(), self.state
        with state.lock:
            running = state.running  # as its `end` has it; each call counts here
            running.launches.discard(recording)
            if running.is_awaited:
                running.ended.notify_all()
            if not launched or state.is_finished:
                self._abandon(recording, is_queued=launched is not False)
                return
            recording.host_end = now
            self.pending.append(recording)
            if recording.captured is None:
                kernel, slab = recording.kernel, recording.slab
                if slab is None or slab.left > 0:
                    kernel.ring.send(recording, now)
                else:
                    kernel.ring.send(recording, now, True)
                    assert kernel.slabs is not None  # that slab is one of them
                    kernel.slabs.look_for(slab, kernel.taker)
            else:
                recording.captured.keep(recording.stream)

    def _abandon(self, recording: GPURecording, is_queued: bool) -> None:
        """Gives the memory of a launch back whose records nobody wants; where its kernel may be
        queued, when nobody can tell."""
        if recording.captured is not None:
            return
        if is_queued:
            recording.kernel.ring.abandon(recording)
        else:
            recording.kernel.device.give_back(recording)

    def _meet_caller(self, device: int) -> int:
        """The id of the calling thread, which may be new to CUDA."""
        cuda.enter_primary_context(device)
        self.callers.thread = get_ident()
        return self.callers.thread

    def _kernel(
        self, variant: InstrumentedVariant, device: int, stream: int
    ) -> ProfiledKernel | None:
        """What is launched in the place of the plain kernel; None where that runs."""
        state = self.state
        with state.lock:
            if not variant.has_scopes or state.is_forked or state.is_finished:
                return None
            kernel = self.kernels.get(variant)
            if kernel is None:
                kernel = self._profiled(variant, device, stream)
            if self.has_plain_launches and self.run_times.is_plain_launch(kernel.number, stream):
                state.begun += 1
                return None
            return kernel

    def _launch_plain(
        self,
        plain: GPUVariant,
        variant: InstrumentedVariant,
        device: int,
        stream: int,
        grid: tuple[int, int, int],
        passed: Sequence[object],
    ) -> GPUKernel:
        """Launches a kernel without scopes, which is kept with the times of the call; or one that
        runs without records in its turn."""
        launch = functools.partial(plain.launch, *grid, stream, *passed)
        kernel = self.kernels.get(variant)
        if kernel is not None and not self.samples_pcs:
            tell = self.run_times.of(kernel.number, False)
            self.run_times.around(tell, device, stream, launch)
            return plain.kernel
        start = time.perf_counter_ns()
        if self.samples_pcs:
            self._sample(plain, variant, device, stream, (*grid, stream, *passed))
        else:
            launch()
        if kernel is None:
            self._keep_plain(variant, plain.kernel, grid, device, start)
        return plain.kernel

    def _sample(
        self,
        plain: GPUVariant,
        variant: InstrumentedVariant,
        device: int,
        stream: int,
        taken: Sequence[object],
    ) -> None:
        """A launch whose program counters are sampled, unless it is captured into a graph."""
        state = self.state
        with state.lock:
            is_over = state.is_forked or state.is_finished
            is_sampled = not is_over and not self.queue.is_capturing(stream)
            if is_sampled:
                self._prepare(device)
                number = self._number(variant, plain.kernel)
        if not is_sampled:
            plain.launch(*taken)
            return
        fetching = [used.ring.fetching for used in self.devices.values()]
        self.hardware.sample_launch(device, number, plain, taken, fetching)

    def _capture(self, recording: GPURecording) -> tuple[int, ...] | None:
        """A buffer of the graph's own, as `ProfiledKernel.place` gives it."""
        kernel, block = recording.kernel, recording.profile.block
        programs, slab = recording.size // block.bytes, kernel.slab_bytes
        most = SAMPLED_SLOTS if self.has_budget else 1 << 31
        found = capture(kernel.device.device, programs, block, slab, self.state.memory_left, most)
        if found is None:
            return None
        recording.captured = found
        self.state.memory_left -= found.bytes
        return (found.buffer, found.buffer + found.slab, recording.number)[: 3 if slab else 1]

    def _profiled(self, variant: InstrumentedVariant, device: int, stream: int) -> ProfiledKernel:
        """What the launches of a kernel on a device have in common, at the first of them."""
        self._prepare(device, stream)
        profile = variant.variant.kernel.profile
        assert profile is not None
        slab = slab_bytes(profile, self.flush_memory)
        number, of = self._number(variant, variant.variant.kernel), self.devices[device]
        slabs = of.take_slabs(slab) if slab else None
        bytes_ = profile.block.bytes
        found = ProfiledKernel(
            number, variant.launch, of, of.ring, profile, bytes_, slabs, slab, Taker(slab)
        )
        self.kernels[variant] = found
        return found

    def _number(self, variant: InstrumentedVariant, plain: GPUKernel) -> int:
        """The number of a kernel in the run: of the one with records, or where it has no scopes of
        the plain one. Under the lock."""
        kernel = variant.variant.kernel if variant.has_scopes else plain
        return self.state.kernel_number(kernel, self.instrumentation, variant.facts)

    def _prepare(self, device: int, stream: int = 0) -> None:
        """Before the first launch on a device: clocks, calibration, the ring buffer."""
        if device in self.devices:
            return
        if stream and self.queue.is_capturing(stream):
            raise ProfileError(
                f"the first launch of this session on GPU {device} would be captured into a CUDA "
                "graph, and the session has to measure the clocks of the GPU before; start the "
                "session where CUDA is in use already, or launch a kernel in it before the capture"
            )
        self.hardware.sample(device)
        self.devices[device] = Device(device, self.queue, self.state)
        self._meet(device)

    def _meet(self, device: int) -> None:
        """Has a GPU tell the first of the session its clock, and the other way round."""
        first = next(iter(self.devices))
        pair = peer_pair(first, device) if device != first else None
        if pair is not None:
            self.met.setdefault(device, []).append(pair)

    def _keep_plain(
        self,
        variant: InstrumentedVariant,
        kernel: GPUKernel,
        grid: tuple[int, int, int],
        device: int,
        start: int,
    ) -> None:
        """Keeps the launch of a kernel without scopes, with the times of the call."""
        end, state = time.perf_counter_ns(), self.state
        with state.lock:
            if not state.begins():
                return
            launch = Launch(
                kernel=self._number(variant, kernel),
                grid=grid,
                capacity=0,
                host_start=start,
                host_end=end,
                buffer=np.zeros(0, np.uint8),
                path=state.host.path(),
                thread=host_thread(),
                device=device,
            )
            self.plain.append(launch)

    # While it goes on

    def take(self) -> Recorded:
        with self.state.lock:
            launches, self.plain = self.plain, []
        if not self.devices:
            return Recorded(launches)
        with cuda.capture_aside(), contextlib.suppress(cuda.CUDAError):
            self.run_times.settle()
            for recording in self._arrived():
                assert recording.arrived is not None
                launches.append(recording.launch(recording.arrived, []))
            for recording in self.captured:
                device = recording.kernel.device
                with cuda.on_device(device.device):
                    assert recording.captured is not None
                    launches += self._replays(recording, recording.captured.newest(device.read)[1])
        return Recorded(launches, gpus=[device.clock() for device in self.devices.values()])

    def _arrived(self) -> list[GPURecording]:
        """The launches whose records have arrived; they are not pending any more, and nor are those
        that went into graphs."""
        with self.state.lock:
            arrived = [of for of in self.pending if of.arrived is not None]
            self.captured += [of for of in self.pending if of.captured is not None]
            self.pending = [of for of in self.pending if of.arrived is None and of.captured is None]
            sizes = [of.arrived.data.size for of in arrived if of.arrived is not None]
            self.state.memory_left += sum(sizes)
        return arrived

    # The end

    def disown(self) -> None:
        self.devices, self.kernels, self.pending, self.plain = {}, {}, [], []
        self.captured, self.hardware.samplers, self.hardware.pc_samplings = [], {}, {}

    def finish(self) -> Recorded:
        """The launches whose records have arrived, and the clocks of their devices.

        After an error of a kernel the driver copies nothing more: those launches are not among
        them, and `machine` says what the driver said.
        """
        machine: dict[str, object] = {}
        counters = self.hardware.sampled(machine)
        gpus = self._synchronize()
        found = Recorded(
            launches=self.plain,
            counters=counters,
            host=self.hardware.seen(machine),
            pc_samples=self.hardware.pc_samples(),
            gpus=gpus,
            machine=machine,
        )
        left = [*self.pending, *self.captured]
        found.launches += [launch for pending in left for launch in self._launches(pending)]
        found.dropped = self.lost
        if self.unfetched:
            machine[UNFETCHED] = self.unfetched
        if self.error:
            machine["cuda_error"] = self.error
            return found
        for number, device in self.devices.items():
            with cuda.on_device(number):
                device.release()
        if self.is_timed and self.devices:
            found.measured = self.run_times.medians()
        return found

    def _synchronize(self) -> list[GPUClock]:
        """Waits for the devices and fetches what is still there; the clocks of those in use."""
        clocks = []
        left = [*self.pending, *self.captured]
        used = {recording.kernel.device.device for recording in left}
        for number, device in self.devices.items():
            with cuda.on_device(number):
                if number in used:
                    try:
                        cuda.synchronize(number)
                        device.read_clock()
                        self._meet(number)
                    except cuda.CUDAError as problem:
                        self.error = str(problem)
                    clocks.append(device.clock())
                device.finish(is_broken=bool(self.error))
        return aligned(clocks, next(iter(self.devices), 0), self.met)

    def _launches(self, recording: GPURecording) -> list[Launch]:
        """What became of a launch: nothing, one, or the replays of a graph."""
        device = recording.kernel.device
        if recording.captured is not None:
            return self._replays_to_the_end(recording, recording.captured)
        arrived, slabs, chunks = recording.arrived, device.slabs, []
        if slabs is not None:
            chunks = slabs.chunks_of_launch(recording.number)
        had_no_room = slabs is not None and recording.number in slabs.dropped
        if arrived is None or had_no_room:
            self.lost += 1
            self.unfetched += not had_no_room
            return []
        return [recording.launch(arrived, chunks)]

    def _replays_to_the_end(
        self, recording: GPURecording, captured: CapturedLaunch
    ) -> list[Launch]:
        """The replays of a launch that went into a graph, in their order. A monitor takes samples,
        and loses none."""
        if self.error:  # nothing can be read from the device any more
            self.lost += 1
            self.unfetched += 1
            return []
        with cuda.on_device(recording.kernel.device.device):
            count, buffers = captured.replays()
        self.lost += 0 if self.has_budget else count - len(buffers)
        return self._replays(recording, buffers)

    def _replays(self, recording: GPURecording, buffers: list[np.ndarray]) -> list[Launch]:
        """The launches that left these buffers in a graph's log."""
        device = recording.kernel.device
        behind = device.pairs[0].host_ns - device.pairs[0].timer_ns
        launches = []
        for data in buffers:
            began = int(wire.header_column(data[None], "timer_start")[0])
            blocks = Arrived(data[: recording.size], recording.profile.capacity)
            slab = data[recording.size :]
            chunks = chunks_of(slab).get(recording.number, []) if slab.size else []
            launches.append(recording.launch(blocks, chunks, began + behind))
        return launches
