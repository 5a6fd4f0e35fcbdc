"""Times of work on a GPU: events in the current stream."""

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.queue import Queue

_CACHE_BYTES = 256 << 20  # more than any L2 cache has; so much is written to empty it


class GPUTimer:
    """Measures what is queued on the current stream of the current device."""

    def __init__(self) -> None:
        self._device = cuda.current_device()
        self._stream = cuda.current_stream(self._device)
        self._queue = Queue()
        self._events: list[int] = []
        self._other = cuda.allocate_device(_CACHE_BYTES)

    def clear_cache(self) -> None:
        self._queue.clear(self._other, _CACHE_BYTES, self._stream)

    def mark(self) -> int:
        event = self._queue.new_event(is_timed=True)
        self._events.append(event)
        self._queue.record(event, self._stream)
        return event

    def elapsed_ms(self, begin: int, end: int) -> float:
        self._queue.wait(end)
        return self._queue.elapsed_ns(begin, end) / 1e6

    def synchronize(self) -> None:
        cuda.synchronize(self._device)

    def release(self) -> None:
        for event in self._events:
            self._queue.release_event(event)
        cuda.release_device(self._other)
