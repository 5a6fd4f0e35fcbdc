"""Tensor maps that a kernel makes: what it sets in them, and the memory that a launch gives it."""

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import LaunchError
from proton.runtime.launch import allocation
from proton.runtime.nvidia import cuda, global_scratch
from proton.runtime.nvidia.global_scratch import GlobalScratch
from proton.tools.tensor_descriptor import TensorDescriptor
from proton.trace.instrumentation import AUTO, Instrumentation
from tests.compile.cubins import instructions
from tests.compile.fake_cuda import STREAM, FakeDriver
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_gpu_records import compiled
from tests.gpu import test_gpu_made_descriptors as made

TARGET = proton.GPUTarget("cuda", 90)
OPTIONS = {"M": 16, "N": 32, "PADDING": "zero", "STAGES": 3}
MULTIPLE = 384  # bytes of a program of `copy_all`, which makes two maps


def copying(dtype: Any = tl.float16, target: Any = TARGET, **options: Any) -> Any:
    return made.copy_all.warmup(
        tl.int64, tl.int32, 5, DTYPE=dtype, target=target, **OPTIONS | options
    )


# What is in a map


FIELD = re.compile(r"tensormap\.replace\.tile\.(\w+)\.shared::cta\.b1024\.b\d+ \[[^]]+\], ([^;]+);")


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype, element, block, swizzle", [
    (tl.float16, 6, (16, 32), 2), (tl.bfloat16, 10, (128, 256), 3), (tl.float32, 7, (8, 8), 1),
    (tl.float64, 9, (8, 16), 3), (tl.int8, 0, (64, 16), 0), (tl.float8e5, 0, (64, 64), 2),
    (tl.int16, 1, (16, 512), 3), (tl.uint32, 2, (16, 4), 0), (tl.int64, 4, (4, 4), 0),
])  # fmt: skip
def test_fields_of_a_map(dtype: Any, element: int, block: tuple[int, int], swizzle: int) -> None:
    """All of them, as PTX numbers them; the fastest dimension is the first."""
    kernel = copying(dtype, M=block[0], N=block[1])
    ptx = kernel.asm["ptx"]
    fields = FIELD.findall(ptx)
    assert len(fields) == 2 * 13
    for found in (fields[:13], fields[13:]):
        given = dict.fromkeys(name for name, _ in found)
        values = {name: [value for n, value in found if n == name] for name in given}
        assert values["rank"] == ["1"]
        assert values["elemtype"] == [str(element)]
        assert values["interleave_layout"] == values["fill_mode"] == ["0"]
        assert values["swizzle_mode"] == [str(swizzle)]
        assert values["element_stride"] == ["0, 1", "1, 1"]
        row = {0: block[1], 1: 32, 2: 64, 3: 128}[swizzle]
        row = row if not swizzle else row // (dtype.primitive_bitwidth // 8)
        assert values["box_dim"] == [f"0, {min(row, 256)}", f"1, {min(block[0], 256)}"]
        assert [value[:2] for value in values["global_dim"]] == ["0,", "1,"]
        assert len(values["global_stride"]) == len(values["global_address"]) == 1
    assert "cp.async.bulk.tensor.2d.shared::cluster.global" in ptx
    assert "cp.async.bulk.tensor.2d.global.shared::cta" in ptx


def test_a_map_is_seen_by_all_warps() -> None:
    """One warp makes it, copies it, and takes it; then all meet, and copies begin."""
    ptx = copying().asm["ptx"]
    order = re.findall(
        r"tensormap\.cp_fenceproxy\S+|fence\.proxy\.tensormap\S+|bar\.sync|cp\.async\.bulk\.tensor",
        ptx,
    )
    copied = [n for n, op in enumerate(order) if op.startswith("tensormap.cp_fenceproxy")]
    assert len(copied) == 2
    for place in copied:
        assert order[place].endswith("tensormap::generic.release.gpu.sync.aligned")
        assert order[place + 1] == "fence.proxy.tensormap::generic.acquire.gpu"
    behind = order[copied[-1] + 2 :]
    assert behind.index("bar.sync") < behind.index("cp.async.bulk.tensor")
    # Made again for the next tensor, when all warps' stores have read the last one's.
    before = ptx[: ptx.index("tensormap.cp_fenceproxy")]
    assert re.search(
        r"cp\.async\.bulk\.wait_group\.read 0;(?:(?!cp\.async).)*bar\.sync", before, re.S
    )


@pytest.mark.parametrize("arch", [90, 100, 120])
def test_architectures_that_have_it(arch: int) -> None:
    kernel = copying(target=proton.GPUTarget("cuda", arch))
    assert instructions(kernel.asm["cubin"]) == {"UTMACCTL", "UTMALDG", "UTMASTG"}
    assert kernel.metadata["global_scratch_size"] == MULTIPLE
    assert kernel.metadata["global_scratch_align"] == 128


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("options", [
    {"target": proton.GPUTarget("cuda", 80)}, {"launch_pdl": True},
    {"dtype": tl.int8, "M": 4, "N": 16},
], ids=["80", "pdl", "small"])  # fmt: skip
def test_what_stays_pointers(options: dict[str, Any]) -> None:
    """A GPU without TMA, launches that overlap, blocks below 128 bytes."""
    kernel = copying(**options)
    assert kernel.metadata["global_scratch_size"] == 0
    assert "tensormap" not in kernel.asm["ptx"]


@proton.jit
def hinted(addresses, out, rows, M: tl.constexpr, N: tl.constexpr, MULTIPLE: tl.constexpr):
    base = tl.multiple_of(tl.load(addresses), MULTIPLE).to(tl.pointer_type(tl.float32))
    stride = tl.multiple_of(tl.load(addresses + 1), MULTIPLE)
    x = tl.make_tensor_descriptor(base, [rows, N], [stride, 1], [M, N])
    for row in range(0, rows, M):
        places = (row + tl.arange(0, M)[:, None]) * N + tl.arange(0, N)[None, :]
        tl.store(out + places, x.load([row, 0]))


def test_what_is_read_from_memory_is_checked() -> None:
    """Once where the descriptor is made, unless the kernel says that it is aligned; a debug build
    says where. A map that is made before a loop that does not run is looked at by nobody."""
    for multiple, debug, kind in ((1, False, "trap"), (16, False, ""), (1, True, "__assertfail")):
        fresh = proton.jit(hinted.fn, debug=debug)
        kernel = fresh.warmup(
            tl.int64, tl.float32, 64, M=16, N=32, MULTIPLE=multiple, target=TARGET
        )
        ptx = kernel.asm["ptx"].partition(".visible .entry")[2]
        assert kernel.metadata["global_scratch_size"] == 256
        assert ("trap;" in ptx, "__assertfail" in ptx) == (kind == "trap", kind == "__assertfail")
    assert ptx.count("tensormap.cp_fenceproxy") == 1


@proton.jit(noinline=True)
def doubled(x, row):
    return x.load([row, 0]) * 2


@proton.jit
def by_a_function(addresses, out, rows, M: tl.constexpr, N: tl.constexpr):
    base = tl.load(addresses).to(tl.pointer_type(tl.float32))
    x = tl.make_tensor_descriptor(base, [rows, N], [N, 1], [M, N])
    y = tl.make_tensor_descriptor(out, [rows, N], [N, 1], [M, N])
    for row in range(0, rows, M):
        y.store([row, 0], doubled(x, row))


def test_functions_that_are_called_take_pointers() -> None:
    kernel = by_a_function.warmup(tl.int64, tl.float32, 64, M=16, N=32, target=TARGET)
    assert kernel.metadata["global_scratch_size"] == 0
    assert "tensormap" not in kernel.asm["ptx"]


@proton.jit
def product(addresses, out, n, k, strides, FLATTEN: tl.constexpr):
    """The product of two matrices whose addresses are in memory, made in a loop over tiles, and the
    descriptors with it, of which only some depend on the tile."""
    pointer: tl.constexpr = tl.pointer_type(tl.float16)
    c = tl.make_tensor_descriptor(out, [n, n], [n, 1], [64, 64])
    for tile in tl.range(tl.program_id(0), n // 64, tl.num_programs(0), flatten=FLATTEN):
        a = tl.make_tensor_descriptor(
            tl.load(addresses).to(pointer), [n, k], [tl.load(strides), 1], [64, 64]
        )
        b = tl.make_tensor_descriptor(
            tl.load(addresses + tile).to(pointer), [k, n], [tl.load(strides + 1), 1], [64, 64]
        )
        total = tl.zeros((64, 64), tl.float32)
        for i in range(0, k, 64):
            total = tl.dot(a.load([tile * 64, i]), b.load([i, 0]), total)
        c.store([tile * 64, 0], total.to(tl.float16))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("flatten", [False, True])
def test_a_product_of_such_maps_is_pipelined(flatten: bool) -> None:
    """A map that is made for each tile is not made ahead for the next one."""
    kernel = product.warmup(
        tl.int64, tl.float16, 1024, 1024, tl.int32, FLATTEN=flatten, num_stages=3, target=TARGET
    )
    ptx = kernel.asm["ptx"]
    assert kernel.metadata["global_scratch_size"] == MULTIPLE
    assert len(kernel.metadata["tensor_maps"]) == 1  # of what is stored, which the host makes
    assert ptx.count("cp.async.bulk.tensor.2d.shared::cluster.global") == 2 * (2 + 1)
    assert "wgmma" in ptx
    assert "cp.async.cg" not in ptx
    assert ptx.count("tensormap.cp_fenceproxy") == 2


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("flatten", [False, True])
def test_records_change_nothing_of_it(flatten: bool) -> None:
    given = tl.int64, tl.float16, 1024, 1024, tl.int32
    plain, recorded = (
        compiled(product, *given, FLATTEN=flatten, instrumentation=instrumentation)
        for instrumentation in (None, Instrumentation(auto=AUTO))
    )
    assert recorded.profile is not None
    for kind in ("tensormap.cp_fenceproxy", "cp.async.bulk.tensor", "mbarrier.try_wait"):
        assert plain.asm["ptx"].count(kind) == recorded.asm["ptx"].count(kind)


def test_maps_of_several_types_of_one_descriptor() -> None:
    """Stores have no NaN, and comparisons have a sign; each is a map of its own."""

    @proton.jit
    def several(addresses, out, n):
        for g in range(n):
            base = tl.load(addresses + g).to(tl.pointer_type(tl.int32))
            y = tl.make_tensor_descriptor(base, [n, 32], [32, 1], [16, 32])
            for i in range(n):
                block = tl.full((16, 32), i, tl.int32)
                y.atomic_add([i, 0], block)
                y.atomic_max([i, 0], block)

    kernel = several.warmup(tl.int64, tl.int32, 9, target=TARGET)
    types = re.findall(r"tensormap\.replace\.tile\.elemtype\S+ \[\S+\], (\d+);", kernel.asm["ptx"])
    assert sorted(types) == ["2", "3"]


# The memory


class Scratch:
    """In the place of a device's."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []

    def take(self, size: int, stream: int) -> int:
        self.taken.append((size, stream))
        return 0x7F00


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Scratch:
    found = Scratch()
    monkeypatch.setattr(global_scratch, "_of_device", lambda device: found)
    return found


@pytest.fixture(autouse=True)
def no_allocator() -> Iterator[None]:
    yield
    proton.set_allocator(None)


def launch(driver: FakeDriver, grid: tuple[int, ...], kernel: Any = None) -> list[Any]:
    """What `copy_all` was passed behind its own arguments."""
    kernel = proton.jit(made.copy_all.fn) if kernel is None else kernel
    given = driver.array("int64"), driver.array("int32", 0x20000)
    driver.read = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int32, ctypes.c_uint64]
    kernel[grid](*given, 5, DTYPE=tl.float16, **OPTIONS)
    _, arguments = driver.launches[-1]
    assert arguments[:3] == [0x10000, 0x20000, 5]
    return arguments[3:]


def test_a_launch_has_memory_for_all_programs(driver: FakeDriver, scratch: Scratch) -> None:
    kernel = proton.jit(made.copy_all.fn)
    for _ in range(2):  # the first launch takes the slow path
        assert launch(driver, (3, 5, 2), kernel) == [0x7F00]
    assert launch(driver, (7,), kernel) == [0x7F00]
    assert scratch.taken == [(30 * MULTIPLE, STREAM)] * 2 + [(7 * MULTIPLE, STREAM)]


class Given:
    """What an allocator gives."""

    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


def test_an_allocator_gives_it(driver: FakeDriver, scratch: Scratch) -> None:
    asked: list[Any] = []
    proton.set_allocator(lambda *args: asked.append(args) or Given(0x8000))
    assert allocation.current_allocator() is not None
    kernel = proton.jit(made.copy_all.fn)
    assert launch(driver, (4,), kernel) == [0x8000]
    assert asked == [(4 * MULTIPLE, 128, STREAM)]
    assert not scratch.taken
    proton.set_allocator(None)
    assert launch(driver, (4,), kernel) == [0x7F00]


@pytest.mark.parametrize(
    "given, said",
    [
        (b"bytes", r"gave b'bytes', which has no data_ptr\(\)"),
        (Given(0x8040), "gave memory at 0x8040, which is no multiple of 128 bytes"),
        (Given(0), "gave memory at 0x0"),
    ],
)
def test_what_an_allocator_may_not_give(driver: FakeDriver, given: Any, said: str) -> None:
    proton.set_allocator(lambda *_: given)
    with pytest.raises(LaunchError, match=said):
        launch(driver, (4,))
    assert not driver.launches


class Queue:
    """Streams that have other numbers than addresses; those in `capturing` go into graphs."""

    def __init__(self) -> None:
        self.capturing: set[int] = set()
        self.ids: dict[int, int] = {}

    def is_capturing(self, stream: int) -> bool:
        assert stream not in (0, 1), "the default stream is never captured"
        return stream in self.capturing

    def stream_id(self, stream: int) -> int:
        return self.ids.get(stream, stream)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> tuple[GlobalScratch, Queue, list[int]]:
    sizes: list[int] = []
    queue = Queue()
    monkeypatch.setattr(global_scratch, "Queue", lambda: queue)
    monkeypatch.setattr(cuda, "capture_aside", lambda: pytest.MonkeyPatch.context())

    def allocate(size: int) -> int:
        sizes.append(size)
        return len(sizes) << 32

    monkeypatch.setattr(cuda, "allocate_device", allocate)
    return GlobalScratch(), queue, sizes


def test_launches_of_a_stream_share_memory(streams: Any) -> None:
    scratch, queue, sizes = streams
    first = scratch.take(1000, 5)
    assert scratch.take(60000, 5) == first
    assert scratch.take(1000, 6) != first
    assert scratch.take(1000, 0) not in (first, scratch.take(1000, 6))
    grown = scratch.take(70000, 5)
    assert grown != first
    assert scratch.take(100, 5) == grown
    assert sizes == [1 << 16, 1 << 16, 1 << 16, 1 << 17]
    queue.ids[5] = 77  # another stream, at the address of one that is gone
    assert scratch.take(100, 5) not in (first, grown)


def test_launches_of_graphs_share_nothing(streams: Any) -> None:
    scratch, queue, sizes = streams
    plain = scratch.take(1000, 5)
    queue.capturing = {5}
    captured = {scratch.take(1000, 5) for _ in range(3)}
    assert len(captured | {plain}) == 4
    queue.capturing = set()
    assert scratch.take(1000, 5) == plain
    assert sizes == [1 << 16, 1000, 1000, 1000]


def test_a_thread_that_is_new_gets_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[int] = []

    class New:
        def take(self, size: int, stream: int) -> int:
            if not entered:
                raise cuda.CUDAError("cuStreamGetId: CUDA_ERROR_INVALID_CONTEXT")
            return size

    monkeypatch.setattr(global_scratch, "_of_device", lambda device: New())
    monkeypatch.setattr(cuda, "enter_primary_context", entered.append)
    assert global_scratch.scratch_for(3, 100, 7, STREAM) == (700, None)
    assert entered == [3]


def test_the_host_makes_what_it_can() -> None:
    """In a loop, too: no memory is needed."""

    @proton.jit
    def known(x, out, n, M: tl.constexpr):
        for i in range(0, n, M):
            y = tl.make_tensor_descriptor(out, [n, 32], [32, 1], [M, 32])
            y.store([i, 0], x.load([i, 0]))

    x = TensorDescriptor(tl.float32, [640, 32], [32, 1], [32, 32])
    kernel = known.warmup(x, tl.float32, 64, M=32, target=TARGET)
    assert len(kernel.metadata["tensor_maps"]) == 2
    assert kernel.metadata["global_scratch_size"] == 0


@proton.jit
def copy_like(x, out, n, M: tl.constexpr, N: tl.constexpr):
    """As triton_kernels writes: the tensor of another descriptor, under another address."""
    y = tl.make_tensor_descriptor(out, x.shape, (*x.strides[:-1], 1), x.block_shape)
    for i in range(0, n, M):
        y.store([i, 0], x.load([i, 0]))


def test_the_host_knows_what_a_descriptor_says_of_its_tensor(rng: np.random.Generator) -> None:
    """Its rows are multiples of 16 bytes apart, so these of the other one are."""
    x = TensorDescriptor(tl.float16, [640, 40], [40, 1], [32, 32])
    kernel = copy_like.warmup(x, tl.float16, 64, M=32, N=32, target=TARGET)
    loaded, stored = kernel.metadata["tensor_maps"]
    assert [stored[name] for name in ("box", "swizzle")] == [loaded[n] for n in ("box", "swizzle")]
    assert stored["base"] != loaded["base"]
    assert kernel.metadata["global_scratch_size"] == 0
    source, out = rng.standard_normal((2, 50, 40)).astype(np.float16)
    before = out.copy()
    described = TensorDescriptor.from_tensor(source, [32, 32])
    with Emulation(4, rng).installed():
        copy_like[(1,)](described, out, 64, M=32, N=32)
    np.testing.assert_array_equal(out[:, :32], source[:, :32])
    np.testing.assert_array_equal(out[:, 32:], before[:, 32:])


# Blocks with rows of less than 16 bytes, which TMA has not


@proton.jit
def narrow(x_ptr, y_ptr, m, n, i, j, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [M, N])
    y = tl.make_tensor_descriptor(y_ptr, [m, n], [n, 1], [M, N])
    y.store([i, j], x.load([i, j]) * 2)


@pytest.mark.parametrize("dtype, N", [("float32", 2), ("float16", 4), ("int8", 1), ("float64", 1)])
def test_narrow_blocks_are_for_the_cpu(rng: np.random.Generator, dtype: str, N: int) -> None:
    """Inductor makes such there, of tensors whose strides are no multiples of 16 bytes, either."""
    x = rng.integers(-50, 50, (7, 5)).astype(dtype)
    y, want = np.zeros_like(x), np.zeros_like(x)
    narrow[(1,)](x, y, 7, 5, 4, 3, M=4, N=N)
    want[4:, 3 : 3 + N] = 2 * x[4:, 3 : 3 + N]
    np.testing.assert_array_equal(y, want)
    pointer = getattr(tl, dtype)
    with pytest.raises(proton.CompilationError, match="at least 16 bytes in the last") as caught:
        narrow.warmup(pointer, pointer, 7, 5, 4, 3, M=4, N=N, target=TARGET)
    assert "hint: use pointers for smaller blocks" in str(caught.value)
