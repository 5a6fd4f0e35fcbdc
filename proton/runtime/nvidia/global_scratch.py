"""Global memory that kernels need for themselves, for as long as a launch runs.

The launches of a stream run one after the other, so each stream has a block of memory, which they
take in turn; it grows with the largest of them. A launch that is captured into a CUDA graph has
memory of its own, for good: the graph may be replayed at any time, beside anything.
"""

import functools
import threading
from typing import Any

from proton.base.errors import LaunchError
from proton.base.words import shown
from proton.layout.tensor_map import TENSOR_MAP_ALIGNMENT
from proton.runtime.launch.allocation import current_allocator
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.buffers import LASTING_STREAMS
from proton.runtime.nvidia.queue import Queue

_LEAST = 64 << 10  # bytes of a block


class GlobalScratch:
    """The memory of a device."""

    def __init__(self) -> None:
        self.queue, self.lock = Queue(), threading.Lock()
        self._blocks: dict[int, tuple[int, int]] = {}  # (address, bytes) by the stream's id

    def take(self, size: int, stream: int) -> int:
        """The address of so many bytes for a launch on a stream, which goes there next."""
        with self.lock:
            if stream not in LASTING_STREAMS and self.queue.is_capturing(stream):
                return self._allocated(size)
            key = self.queue.stream_id(stream)
            address, room = self._blocks.get(key, (0, 0))
            if room < size:
                # What is too small stays: launches that have it may be under way. Doubling, all of
                # a stream's blocks take at most twice what is asked for.
                room = max(_LEAST, 1 << (size - 1).bit_length())
                address = self._allocated(room)
                self._blocks[key] = address, room
            return address

    def _allocated(self, size: int) -> int:
        with cuda.capture_aside():  # another thread may be capturing a graph
            return cuda.allocate_device(size)


@functools.cache
def _of_device(device: int) -> GlobalScratch:
    return GlobalScratch()


def scratch_for(device: int, size: int, programs: int, stream: int) -> tuple[int, Any]:
    """The address of memory for a launch of so many programs that have `size` bytes each, and what
    has to stay until it is queued; raises LaunchError for what an allocator gives that is none."""
    allocator = current_allocator()
    if allocator is None:
        scratch = _of_device(device)
        try:
            return scratch.take(size * programs, stream), None
        except cuda.CUDAError:
            cuda.enter_primary_context(device)  # a thread that is new to CUDA has none yet
            return scratch.take(size * programs, stream), None
    given: Any = allocator(size * programs, TENSOR_MAP_ALIGNMENT, stream)
    if not hasattr(given, "data_ptr"):
        raise LaunchError(
            f"the allocator of set_allocator gave {shown(given)}, which has no data_ptr(): return "
            'a tensor, such as torch.empty(size, dtype=torch.int8, device="cuda")'
        )
    address = int(given.data_ptr())
    if not address or address % TENSOR_MAP_ALIGNMENT:
        raise LaunchError(
            f"the allocator of set_allocator gave memory at {address:#x}, which is no multiple of "
            f"{TENSOR_MAP_ALIGNMENT} bytes"
        )
    return address, given
