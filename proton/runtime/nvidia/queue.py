"""What launches that are profiled, or need memory of their own, ask of the CUDA driver each time,
through ctypes: it takes a fifth of the time that `cuda.bindings` takes."""

import ctypes
import sys
from collections.abc import Callable

from proton.runtime.nvidia.cuda import raise_error

_SLEEPING, _WITHOUT_TIME = 1, 2  # CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING
_NOT_READY = 600  # CUDA_ERROR_NOT_READY
_HOST, _DEVICE = 1, 2  # CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE


class _Rows(ctypes.Structure):
    """CUDA_MEMCPY2D: rows of a device's memory to rows of the host's."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("source_x", "source_y", "source_kind", "source_host", "source_device"),
            *("source_array", "source_pitch", "target_x", "target_y", "target_kind"),
            *("target_host", "target_device", "target_array", "target_pitch", "width", "height"),
        )
    )


class Queue:
    """The driver's functions on work in a stream's order: copies, fills, events."""

    def __init__(self) -> None:
        library, quick = ctypes.CDLL("libcuda.so.1"), ctypes.PyDLL("libcuda.so.1")
        pointer, size = ctypes.c_void_p, ctypes.c_size_t

        def function(name: str, *kinds: type, of: ctypes.CDLL = library) -> Callable[..., int]:
            found = getattr(of, name)
            found.argtypes, found.restype = kinds, ctypes.c_int
            return found

        # What returns at once keeps Python's lock, which another thread may hold for some
        # microseconds once it has it: a launch would wait for it, and each time that the thread
        # that fetches takes it back, a launch waits for that.
        self._capturing = function("cuStreamIsCapturing", pointer, pointer, of=quick)
        self._id = function("cuStreamGetId", pointer, pointer, of=quick)
        self._fill = function("cuMemsetD8Async", pointer, ctypes.c_ubyte, size, pointer, of=quick)
        self._fill_rows = function(
            *("cuMemsetD2D8Async", pointer, size, ctypes.c_ubyte, size, size, pointer), of=quick
        )
        self._fill_words = function(
            "cuMemsetD32Async", pointer, ctypes.c_uint, size, pointer, of=quick
        )
        self._copy = function("cuMemcpyDtoHAsync_v2", pointer, pointer, size, pointer, of=quick)
        self._copy_rows = function("cuMemcpy2DAsync_v2", pointer, pointer)
        self._new_event = function("cuEventCreate", pointer, ctypes.c_uint, of=quick)
        self._record = function("cuEventRecord", pointer, pointer, of=quick)
        self._wait = function("cuEventSynchronize", pointer)
        self._query = function("cuEventQuery", pointer, of=quick)
        self._synchronize = function("cuStreamSynchronize", pointer)
        self._elapsed = function("cuEventElapsedTime", pointer, pointer, pointer)
        self._release_event = function("cuEventDestroy_v2", pointer)
        self._result = ctypes.c_uint64()
        self._address = ctypes.addressof(self._result)
        self._status = ctypes.c_uint32()
        self._status_address = ctypes.addressof(self._status)

    def is_capturing(self, stream: int) -> bool:
        """True if what is queued on a stream goes into a graph."""
        if status := self._capturing(stream, self._status_address):
            raise_error(status, "cuStreamIsCapturing")
        return self._status.value != 0

    def stream_id(self, stream: int) -> int:
        """The stream's number, which no other one ever has."""
        _check(self._id(stream, self._address), "cuStreamGetId")
        return int(self._result.value)

    def clear(self, address: int, size: int, stream: int) -> None:
        """Queues the storing of zeros."""
        _check(self._fill(address, 0, size, stream), "cuMemsetD8Async")

    def clear_rows(self, address: int, pitch: int, width: int, height: int, stream: int) -> None:
        """Queues the storing of zeros in rows of `width` bytes, `pitch` bytes apart."""
        pitch = pitch if height > 1 else width
        _check(self._fill_rows(address, pitch, 0, width, height, stream), "cuMemsetD2D8Async")

    def set_word(self, address: int, value: int, stream: int) -> None:
        """Queues the storing of one u32."""
        _check(self._fill_words(address, value, 1, stream), "cuMemsetD32Async")

    def copy_to_host(self, host: int, address: int, size: int, stream: int) -> None:
        """Queues a copy."""
        _check(self._copy(host, address, size, stream), "cuMemcpyDtoHAsync")

    def copy_rows(
        self, host: int, address: int, pitch: int, width: int, height: int, stream: int
    ) -> None:
        """Queues a copy of rows of `width` bytes, `pitch` bytes apart on the device."""
        rows = _Rows(
            source_kind=_DEVICE,
            source_device=address,
            source_pitch=pitch if height > 1 else width,  # which has a limit
            target_kind=_HOST,
            target_host=host,
            target_pitch=width,
            width=width,
            height=height,
        )
        _check(self._copy_rows(ctypes.addressof(rows), stream), "cuMemcpy2DAsync")

    def new_event(self, is_timed: bool = False) -> int:
        """An event whose waiting thread sleeps."""
        flags = _SLEEPING if is_timed else _SLEEPING | _WITHOUT_TIME
        event = ctypes.c_uint64()  # of this call: several threads make events
        _check(self._new_event(ctypes.addressof(event), flags), "cuEventCreate")
        return event.value

    def elapsed_ns(self, begin: int, end: int) -> int:
        """The time between two events that are timed and over."""
        found = ctypes.c_float()
        _check(self._elapsed(ctypes.addressof(found), begin, end), "cuEventElapsedTime")
        return round(found.value * 1e6)

    def record(self, event: int, stream: int) -> None:
        """Queues an event."""
        _check(self._record(event, stream), "cuEventRecord")

    def wait(self, event: int) -> None:
        """Waits for what was queued before an event; other threads go on."""
        _check(self._wait(event), "cuEventSynchronize")

    def is_done(self, event: int) -> bool:
        """True if what was queued before an event has run."""
        status = self._query(event)
        if status == _NOT_READY:
            return False
        _check(status, "cuEventQuery")
        return True

    def synchronize(self, stream: int) -> None:
        """Waits for what was queued on a stream; other threads go on."""
        _check(self._synchronize(stream), "cuStreamSynchronize")

    def release_event(self, event: int) -> None:
        """Gives an event back."""
        _check(self._release_event(event), "cuEventDestroy")


def _check(status: int, doing: str) -> None:
    if status:
        raise_error(status, doing)


def capturing_by_torch() -> Callable[[], bool] | None:
    """What says whether the current stream is being captured into a graph, where launches go to
    torch's stream: it asks the driver in a fifth of the time that ctypes takes. None without."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    ask: Callable[[], bool] = torch._C._cuda_isCurrentStreamCapturing
    return ask
