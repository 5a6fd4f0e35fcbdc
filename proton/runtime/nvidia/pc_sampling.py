"""PC sampling of one GPU, by CUPTI's own calls, which cupti-python does not have: at an interval
each SM says which instruction a warp is at, and what that waits for.

    sampling = PCSampler(device, cycles)
    sampling.sample(launch, counts)    # of one launch, alone on the device
    sampling.close()

Structures and constants are those of cupti_pcsampling.h. Each says its own size, so that a CUPTI of
another release knows which fields there are.
"""

import base64
import contextlib
import ctypes
import functools
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from proton.base.errors import ProfileError
from proton.base.nvidia_tools import in_wheels
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.pm_sampling import INSTALL, PERMISSION, loaded_library
from proton.trace.model import PCSamples

LIBRARY = "libcupti.so.13"
# Attributes of a configuration, and values of them.
_PERIOD, _MODE, _START_STOP, _FORMAT, _DATA = 1, 5, 6, 7, 8
_CONTINUOUS, _PARSED = 1, 1
_OUT_OF_MEMORY, _INSUFFICIENT_PRIVILEGES = 8, (35, 40)  # CUptiResult
_NAME_BYTES = 128  # of a reason
MOST_PCS = 1 << 14  # that a call gives at once
# What names begin with of reasons; others count samples. A reason is there once for all samples,
# and once with NOT_ISSUED for those of cycles in which no warp of the scheduler issued.
_PREFIX, _NOT_ISSUED = "smsp__pcsamp_warps_issue_stalled_", "_not_issued"


class _Reason(ctypes.Structure):
    _fields_ = (("index", ctypes.c_uint32), ("samples", ctypes.c_uint32))


class _PC(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("cubin_crc", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("function_index", ctypes.c_uint32),
        ("pad", ctypes.c_uint32),
        ("function_name", ctypes.c_void_p),
        ("reason_count", ctypes.c_size_t),
        ("reasons", ctypes.POINTER(_Reason)),
        ("correlation", ctypes.c_uint32),
    )


class _Data(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("room", ctypes.c_size_t),  # PCs that there is memory for
        ("total_samples", ctypes.c_uint64),
        ("dropped_samples", ctypes.c_uint64),
        ("count", ctypes.c_size_t),
        ("remaining", ctypes.c_size_t),
        ("range", ctypes.c_uint64),
        ("pcs", ctypes.POINTER(_PC)),
        ("foreign_samples", ctypes.c_uint64),
        ("buffer_full", ctypes.c_uint8),
    )


class _Attribute(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("status", ctypes.c_int), ("value", ctypes.c_uint64 * 3))


@dataclass
class Counts:
    """What launches of a kernel were sampled at: how many samples there are by function, offset and
    reason; `dropped` are those that the hardware had no room for. In `overflows` of the launches
    its buffer was full, and CUPTI gives no PCs. `crc`: what CUPTI knows the machine code by, once
    it was asked."""

    cubin: bytes
    crc: int | None = None
    samples: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    launches: int = 0
    dropped: int = 0
    overflows: int = 0

    def kept(self, cycles: int) -> PCSamples:
        """The same as a run keeps it; `cycles` lie between samples."""
        return PCSamples.of(
            self.samples,
            cycles=cycles,
            launches=self.launches,
            dropped=self.dropped,
            overflows=self.overflows,
            cubin=base64.b64encode(self.cubin).decode(),
        )


class PCSampler:
    """PC sampling of a GPU, one sample of each SM in so many cycles. Raises ProfileError where
    that cannot be had. The device's context is current in all calls."""

    def __init__(self, device: int, cycles: int) -> None:
        self.device, self.library, self.lock = device, _library(), threading.Lock()
        self.is_over = False
        self.context = cuda.context_of(device)
        self._call("Enable")
        try:
            self.reasons = self._reasons()
            self._make_room()
            self._configure(cycles.bit_length() - 1)
        except BaseException:
            self.close()
            raise

    def sample(self, launch: Callable[[], object], counts: Counts) -> None:
        """Adds what a launch of a kernel was sampled at. The host waits for the device ahead of it
        and behind it. No other thread may call the driver meanwhile: CUPTI's stop then hangs (seen
        with 13.0 and cuMemsetD8Async)."""
        with self.lock:
            if self.is_over:
                launch()
                return
            cuda.synchronize(self.device)
            self.data.count = self.data.dropped_samples = self.data.buffer_full = 0
            self._call("Start")
            try:
                launch()
                cuda.synchronize(self.device)
            except BaseException:
                with contextlib.suppress(ProfileError):  # the launch says what is wrong
                    self._call("Stop")
                raise
            self._take(counts, self._call("Stop", may_be_full=True))

    def close(self) -> None:
        """Ends the sampling of this GPU, once no launch is sampled; others run as they are."""
        with self.lock:
            self.is_over = True
            self._call("Disable")

    def _call(self, name: str, *fields: int, may_be_full: bool = False) -> bool:
        """Calls a function whose structure has the context and, behind it, these. Whether it says
        that the hardware's buffer is full, where that is no error."""
        count = 3 + len(fields)
        params = (ctypes.c_uint64 * count)(8 * count, 0, self.context, *fields)
        status = getattr(self.library, f"cuptiPCSampling{name}")(params)
        if not status:
            return False
        if status == _OUT_OF_MEMORY and may_be_full:
            return True
        if status in _INSUFFICIENT_PRIVILEGES:
            raise ProfileError(f"pc_sampling: {PERMISSION}")
        text = ctypes.c_char_p()
        self.library.cuptiGetResultString(status, ctypes.byref(text))
        said = (text.value or b"").decode()
        raise ProfileError(f"pc_sampling: CUPTI cannot sample GPU {self.device}: {name}: {said}")

    def _reasons(self) -> dict[int, str]:
        """The names of the reasons by CUPTI's index."""
        count = ctypes.c_size_t()
        self._call("GetNumStallReasons", ctypes.addressof(count))
        self.reason_count = count.value
        indices = (ctypes.c_uint32 * count.value)()
        memory = [ctypes.create_string_buffer(_NAME_BYTES) for _ in indices]
        names = (ctypes.c_void_p * count.value)(*map(ctypes.addressof, memory))
        places = ctypes.addressof(indices), ctypes.addressof(names)
        self._call("GetStallReasons", count.value, *places)
        return {
            index: name.removeprefix(_PREFIX)
            for index, name in zip(indices, (text.value.decode() for text in memory), strict=True)
            if name.startswith(_PREFIX) and not name.endswith(_NOT_ISSUED)
        }

    def _make_room(self) -> None:
        """Memory for what CUPTI gives: when a range ends the first PCs, the others when asked."""
        count = self.reason_count
        reasons, pcs = (_Reason * (count * MOST_PCS))(), (_PC * MOST_PCS)()
        for number, pc in enumerate(pcs):
            pc.size = ctypes.sizeof(_PC)
            first = ctypes.byref(reasons, number * count * ctypes.sizeof(_Reason))
            pc.reasons = ctypes.cast(first, ctypes.POINTER(_Reason))
        self.memory = reasons, pcs
        self.data = _Data(size=ctypes.sizeof(_Data), room=MOST_PCS, pcs=pcs)

    def _configure(self, period: int) -> None:
        wanted = {
            _PERIOD: period,
            _MODE: _CONTINUOUS,
            _START_STOP: 1,
            _FORMAT: _PARSED,
            _DATA: ctypes.addressof(self.data),
        }
        attributes = (_Attribute * len(wanted))()
        for attribute, (kind, value) in zip(attributes, wanted.items(), strict=True):
            attribute.kind, attribute.value[0] = kind, value
        self._call("SetConfigurationAttribute", len(wanted), ctypes.addressof(attributes))

    def _take(self, counts: Counts, is_full: bool) -> None:
        """Adds what is there of a kernel's code since the range began: until CUPTI says that the
        hardware's buffer is full, and gives no more."""
        if counts.crc is None:
            counts.crc = _crc(self.library, counts.cubin)
        counts.launches += 1
        counts.dropped += self.data.dropped_samples
        flagged = bool(self.data.buffer_full)
        while self.data.count and not is_full:
            for pc in self.data.pcs[: self.data.count]:
                if pc.cubin_crc == counts.crc:
                    name = ctypes.string_at(pc.function_name).decode()
                    for reason in pc.reasons[: pc.reason_count]:
                        if reason.index in self.reasons:
                            key = name, int(pc.offset), self.reasons[reason.index]
                            counts.samples[key] += reason.samples
            is_full = self._call("GetData", ctypes.addressof(self.data), may_be_full=True)
            flagged |= bool(self.data.buffer_full)
        counts.overflows += is_full or flagged


def _crc(library: ctypes.CDLL, cubin: bytes) -> int:
    """What CUPTI knows a cubin by."""
    memory = ctypes.create_string_buffer(cubin, len(cubin))
    params = (ctypes.c_uint64 * 4)(32, len(cubin), ctypes.addressof(memory), 0)
    library.cuptiGetCubinCrc(params)
    return int(params[3])


@functools.cache
def _library() -> ctypes.CDLL:
    """CUPTI: the one that this process has, or that of the wheel."""
    found = loaded_library() or in_wheels(f"lib/{LIBRARY}") or Path(LIBRARY)
    try:
        return ctypes.CDLL(str(found))
    except OSError as error:
        raise ProfileError(f"pc_sampling needs CUPTI: {INSTALL} ({error})") from None
