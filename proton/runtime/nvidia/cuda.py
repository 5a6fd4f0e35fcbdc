"""The CUDA driver: devices, loading machine code, launching it. Nothing is touched before use.

Launches go to `cuLaunchKernelEx` through ctypes: it takes one prepared block of memory where
`cuLaunchKernel` takes eleven arguments to convert. Everything else is `cuda.bindings`.
"""

import contextlib
import ctypes
import functools
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsInt

import numpy as np

from proton.base.errors import LaunchError, ProtonError
from proton.base.packages import missing
from proton.base.targets import ARCHITECTURES, GPUTarget

_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED: behind `cuInit` a fork is the only cause
STATIC_SHARED = 48 * 1024  # bytes; a kernel must opt in to more


# Of an argument of a launch that the driver's Python function packs.
CType = type[ctypes.c_void_p] | type[ctypes.c_uint64] | type[ctypes.c_uint32] | type[ctypes.c_int32]


class CUDAError(ProtonError, RuntimeError):
    """The CUDA driver reported an error."""


def _driver() -> types.ModuleType:
    try:
        from cuda.bindings import driver
    except ModuleNotFoundError:
        raise missing("a GPU", "cuda-bindings", "cuda") from None
    return driver


def _call(function: Callable[..., Any], *args: object) -> Any:
    """Calls `cuda.bindings`; its results without the status, which must be success."""
    status, *results = function(*args)
    if int(status):
        raise_error(int(status), function.__name__)
    return results[0] if len(results) == 1 else tuple(results)


def raise_error(status: int, doing: str) -> None:
    """Raises CUDAError with the driver's name and description of a status."""
    driver = _driver()
    code = driver.CUresult(status)
    _, text = driver.cuGetErrorString(code)
    described = text.decode() if isinstance(text, bytes) else str(text)
    raise CUDAError(f"{doing}: {code.name} ({described})")


@functools.cache
def _devices() -> tuple[int | None, int]:
    """(what the driver says when it is asked for GPUs, how many there are); None without one."""
    try:
        driver = _driver()
        status, count = int(driver.cuInit(0)[0]), 0
        if not status:
            status, count = map(int, driver.cuDeviceGetCount())
    except (ImportError, RuntimeError):  # what cuda.bindings raises where libcuda is missing
        return None, 0
    return status, 0 if status else count


os.register_at_fork(after_in_child=_devices.cache_clear)


def device_count() -> int:
    """GPUs that this process can use; 0 where there is no driver."""
    return _devices()[1]


def was_used_ahead_of_fork() -> bool:
    """True in a process that was forked from one that uses GPUs: they are there, and this process
    cannot use them."""
    return _devices()[0] == _NOT_INITIALIZED


@functools.cache
def target_of(device: int) -> GPUTarget:
    """What to compile for; raises LaunchError for an architecture that is not supported."""
    major, minor = (attribute(device, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
    arch = 10 * major + minor
    if arch not in ARCHITECTURES:
        known = ", ".join(str(known / 10) for known in ARCHITECTURES)
        raise LaunchError(f"GPU {device} has compute capability {arch / 10}; supported are {known}")
    return GPUTarget("cuda", arch)


def check_usable() -> None:
    """Raises LaunchError where this process can use no GPU."""
    if was_used_ahead_of_fork():
        raise LaunchError(
            "this process was forked from one that uses GPUs, and CUDA is of one process: start it "
            "by the method spawn (multiprocessing.get_context)"
        )
    if not device_count():
        raise LaunchError("there is no GPU: no CUDA driver, or no device that it may use")


def current_device() -> int:
    """torch's current device where torch is loaded, and its context is current then; else the
    device whose context is current; device 0's primary context becomes it if none is."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.init()
        device = int(torch.cuda.current_device())
        enter_primary_context(device)
        return device
    driver = _driver()
    check_usable()
    if not int(_call(driver.cuCtxGetCurrent)):
        enter_primary_context(0)
    return int(_call(driver.cuCtxGetDevice))


def device_query() -> Callable[[], int]:
    """The quickest function that gives the current device: torch's own, once torch has one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        found: Callable[[], int] = torch._C._cuda_getDevice
        return found
    return current_device


@functools.cache
def _primary_context(device: int) -> SupportsInt:
    driver = _driver()
    device_count()
    return _call(driver.cuDevicePrimaryCtxRetain, _call(driver.cuDeviceGet, device))


def context_of(device: int) -> int:
    """The driver's handle of this thread's context, which is one of the device's."""
    enter_primary_context(device)
    return int(_call(_driver().cuCtxGetCurrent))


def enter_primary_context(device: int) -> None:
    """Makes the device's primary context current in this thread, unless one of its contexts is."""
    if not _is_current(device):
        _call(_driver().cuCtxSetCurrent, _primary_context(device))


@contextlib.contextmanager
def on_device(device: int) -> Iterator[None]:
    """Makes the device's primary context current for a while, unless one of its contexts is."""
    if _is_current(device):
        yield
        return
    driver = _driver()
    _call(driver.cuCtxPushCurrent, _primary_context(device))
    try:
        yield
    finally:
        _call(driver.cuCtxPopCurrent)


def _is_current(device: int) -> bool:
    """True if this thread's context is one of the device's."""
    driver = _driver()
    primary = _primary_context(device)
    current = int(_call(driver.cuCtxGetCurrent))
    # A context that is broken by a fault is not asked for its device.
    return current == int(primary) or (current != 0 and int(_call(driver.cuCtxGetDevice)) == device)


def load(cubin: bytes, name: str, shared: int) -> int:
    """The handle of a kernel in the current context. Its code stays loaded for good: a launch
    may be under way whenever its last user goes."""
    driver = _driver()
    with capture_aside():
        module = _call(driver.cuModuleLoadData, cubin)
    function = _call(driver.cuModuleGetFunction, module, name.encode())
    if shared > STATIC_SHARED:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _call(driver.cuFuncSetAttribute, function, attribute, shared)
    return int(function)


def encode_tensor_map(
    element: str,
    base: int,
    sizes: list[int],
    steps: list[int],
    box: list[int],
    swizzle: int,
    is_nan: bool,
    pixels: tuple[list[int], ...] = (),
) -> list[int]:
    """The words of a tensor map, the fastest dimension first: `steps` are the bytes from one index
    to the next of the others. In im2col mode `pixels` are the lower corners, the upper ones and the
    steps of the walk. Raises CUDAError for a tensor that TMA cannot take."""
    driver, walk = _driver(), [1] * len(sizes)
    encode = driver.cuTensorMapEncodeTiled
    taken: list[Any] = [[driver.cuuint32_t(size) for size in box]]
    if pixels:
        lower, upper, walk[1:-1] = pixels
        encode, taken = driver.cuTensorMapEncodeIm2col, [lower, upper, *box]
    swizzled = driver.CUtensorMapSwizzle
    found = _call(
        encode,
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{element}"),
        len(sizes),
        base,
        [driver.cuuint64_t(size) for size in sizes],
        [driver.cuuint64_t(step) for step in steps],
        *taken,
        [driver.cuuint32_t(step) for step in walk],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(swizzled, f"CU_TENSOR_MAP_SWIZZLE_{f'{swizzle}B' if swizzle else 'NONE'}"),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill(int(is_nan)),
    )
    return [int(word) for word in found.opaque]


@contextlib.contextmanager
def capture_aside() -> Iterator[None]:
    """Allows what a thread that captures a CUDA graph may not do otherwise: to load code, and to
    take memory, which do not go into the graph."""
    driver = _driver()
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = _call(driver.cuThreadExchangeStreamCaptureMode, relaxed)
    try:
        yield
    finally:
        _call(driver.cuThreadExchangeStreamCaptureMode, before)


def pointer_device(address: int) -> int | None:
    """The device that memory lies on; None where the driver does not know the address."""
    driver = _driver()
    kinds = driver.CUpointer_attribute
    status, device = driver.cuPointerGetAttribute(
        kinds.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address
    )
    return None if int(status) else int(device)


def current_stream(device: int) -> int:
    """The stream that the array library in use launches on: torch's, CuPy's, or the default."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return int(torch._C._cuda_getCurrentRawStream(device))
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        return int(cupy.cuda.get_current_stream().ptr)
    return 0


@functools.cache
def launch_function() -> Callable[..., int]:
    """`cuLaunchKernelEx(config, function, parameters, extra)` as a ctypes function."""
    function = ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx
    function.argtypes = [ctypes.c_void_p] * 4
    function.restype = ctypes.c_int
    return function


# What profiling needs besides


def synchronize(device: int) -> None:
    """Waits for everything on a device; raises what went wrong there."""
    with on_device(device):
        _call(_driver().cuCtxSynchronize)


def total_memory(device: int) -> int:
    """Bytes of a device."""
    driver = _driver()
    return int(_call(driver.cuDeviceTotalMem, _call(driver.cuDeviceGet, device)))


def attribute(device: int, name: str) -> int:
    """A number that the driver has of a device: `MULTIPROCESSOR_COUNT` and the like."""
    driver = _driver()
    kind = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(_call(driver.cuDeviceGetAttribute, kind, _call(driver.cuDeviceGet, device)))


def device_name(device: int) -> str:
    """`NVIDIA H200` and the like."""
    driver = _driver()
    name: bytes = _call(driver.cuDeviceGetName, 256, _call(driver.cuDeviceGet, device))
    return name.split(b"\0")[0].decode()


def new_stream() -> int:
    """A stream of its own, which does not wait for the default one."""
    driver = _driver()
    return int(_call(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING))


def device_in_use() -> int | None:
    """The device of this thread's context; None where nobody has made one yet."""
    if "cuda.bindings.driver" not in sys.modules and "torch" not in sys.modules:
        return None
    try:
        driver = _driver()
        status, context = driver.cuCtxGetCurrent()
    except (ImportError, RuntimeError):
        return None
    return None if int(status) or not int(context) else int(_call(driver.cuCtxGetDevice))


def release_stream(stream: int) -> None:
    """Gives a stream of `new_stream` back."""
    _call(_driver().cuStreamDestroy, stream)


@functools.cache
def _side_stream(device: int) -> int:
    return new_stream()


def allocate_device(size: int, byte: int = 0) -> int:
    """Memory of equal bytes on the current device, also while a graph is captured."""
    driver = _driver()
    address = int(_call(driver.cuMemAlloc, size))
    stream = _side_stream(current_device())
    _call(driver.cuMemsetD8Async, address, byte, size, stream)
    _call(driver.cuStreamSynchronize, stream)
    return address


def write_word(address: int, value: int) -> None:
    """Stores a u32 on the current device, also while a graph is captured."""
    driver = _driver()
    stream = _side_stream(current_device())
    _call(driver.cuMemsetD32Async, address, value, 1, stream)
    _call(driver.cuStreamSynchronize, stream)


def release_device(address: int) -> None:
    """Gives memory of `allocate_device` back."""
    _call(_driver().cuMemFree, address)


def read_device(address: int, size: int) -> np.ndarray:
    """Bytes of a device, once everything there has run."""
    data = np.empty(size, np.uint8)
    _call(_driver().cuMemcpyDtoH, data.ctypes.data, address, size)
    return data


class Memory:
    """Zeroed memory of a device that can grow: its address stays, and so does what is in it."""

    def __init__(self, device: int, most: int, *lent_to: int) -> None:
        """Reserves addresses for `most` bytes. What is behind them is taken by `grow`; the devices
        that it is lent to reach it, too."""
        driver = _driver()
        self._properties = driver.CUmemAllocationProp()
        self._properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self._properties.location.id = device
        self._access = [_access(user) for user in (device, *lent_to)]
        self._most, self._parts = most, list[tuple[int, int, object]]()
        self.address = int(_call(driver.cuMemAddressReserve, most, 0, 0, 0))
        self.size = 0

    def grow(self, size: int) -> None:
        """Adds memory at the end, a multiple of the device's granularity (2 MiB)."""
        driver, place = _driver(), self.address + self.size
        handle = _call(driver.cuMemCreate, size, self._properties, 0)
        try:
            _call(driver.cuMemMap, place, size, 0, handle, 0)
        except CUDAError:
            _call(driver.cuMemRelease, handle)
            raise
        self._parts.append((place, size, handle))
        self.size += size
        _call(driver.cuMemSetAccess, place, size, self._access, len(self._access))
        stream = _side_stream(current_device())
        _call(driver.cuMemsetD8Async, place, 0, size, stream)
        _call(driver.cuStreamSynchronize, stream)

    def release(self) -> None:
        """Gives all of it back."""
        driver = _driver()
        for place, size, handle in self._parts:
            _call(driver.cuMemUnmap, place, size)
            _call(driver.cuMemRelease, handle)
        _call(driver.cuMemAddressFree, self.address, self._most)


def _access(device: int) -> object:
    """That a device may read and write memory."""
    driver = _driver()
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = device
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return access


def allocate_host(size: int) -> int:
    """Pinned memory of the host, which the device can reach at the same address."""
    driver = _driver()
    flags = driver.CU_MEMHOSTALLOC_PORTABLE | driver.CU_MEMHOSTALLOC_DEVICEMAP
    return int(_call(driver.cuMemHostAlloc, size, flags))


def host_bytes(address: int, size: int) -> np.ndarray:
    """Pinned memory as an array; the memory must outlive it."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def release_host(address: int) -> None:
    """Gives pinned memory back."""
    _call(_driver().cuMemFreeHost, address)


def launch_once(
    function: int,
    programs: int,
    threads: int,
    stream: int,
    arguments: Sequence[tuple[int, CType]],
    shared: int = 0,
) -> None:
    """A launch where its cost does not matter; arguments are (value, ctypes type)."""
    values = tuple(value for value, _ in arguments), tuple(kind for _, kind in arguments)
    size = programs, 1, 1, threads, 1, 1, shared
    _call(_driver().cuLaunchKernel, function, *size, stream, values, 0)


def is_idle(stream: int) -> bool:
    """True if all that was queued on a stream has run."""
    driver = _driver()
    (status,) = driver.cuStreamQuery(stream)
    if status == driver.CUresult.CUDA_ERROR_NOT_READY:
        return False
    if int(status):
        raise_error(int(status), "cuStreamQuery")
    return True


def capture_beside(
    function: int, programs: int, threads: int, stream: int, arguments: Sequence[tuple[int, CType]]
) -> None:
    """Adds a launch to the graph that a stream is captured into, behind what it holds so far, and
    ahead of nothing: what is captured next does not wait for it. Arguments are as those of
    `launch_once`."""
    driver = _driver()
    _, _, graph, before, *_ = _call(driver.cuStreamGetCaptureInfo, stream)
    node = driver.CUDA_KERNEL_NODE_PARAMS()
    node.func = driver.CUfunction(function)
    node.gridDimX, node.blockDimX = programs, threads
    node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1
    node.kernelParams = tuple(v for v, _ in arguments), tuple(kind for _, kind in arguments)
    before = list(before or ())
    _call(driver.cuGraphAddKernelNode, graph, before, len(before), node)


def programs_per_sm(function: int, threads: int, shared: int) -> int:
    """How many programs of a kernel an SM holds at once."""
    query = _driver().cuOccupancyMaxActiveBlocksPerMultiprocessor
    return int(_call(query, function, threads, shared))
