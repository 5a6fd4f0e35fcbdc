"""Tensor maps: what they are made of, and what the launch hands to the driver."""

import contextlib
import re
import struct
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import LaunchError
from proton.runtime.nvidia import cuda, tensor_maps
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.cubins import KINDS, instructions
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_made_descriptors import copying
from tests.compile.test_targets import dot
from tests.cpu.test_descriptors import passed_on

TARGET = proton.GPUTarget("cuda", 90)


@proton.jit
def rows(x_ptr, y, batches, n, stride, M: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [batches * n - 2, 64], [stride, 1], [M, 64], "nan")
    block = x.load([tl.program_id(0) * M, 0])
    y.store([tl.program_id(0) * M, 0], block)


@proton.jit
def wide_rows(x_ptr, y, n):
    x = tl.make_tensor_descriptor(x_ptr, [n, 64], [64, 1], [16, 64])
    at = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)
    tl.store(y + at, x.load([tl.program_id(0) * 16, 0]))


def plans() -> list[dict[str, Any]]:
    y = TensorDescriptor(tl.float16, [640, 64], [64, 1], [128, 64])
    kernel = rows.warmup(tl.float16, y, 4, 160, 128, M=128, target=TARGET)
    found: list[dict[str, Any]] = kernel.metadata["tensor_maps"]
    return found


def test_what_maps_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def encode(*args: Any, is_nan: bool, pixels: tuple[list[int], ...]) -> list[int]:
        assert not pixels
        given.append((*args, is_nan))
        return list(range(16))

    monkeypatch.setattr(cuda, "encode_tensor_map", encode)
    x, y = plans()
    numbers = tensor_maps.arguments_of(x)
    values = dict(zip(numbers, (0x1000, 5, 160, 128), strict=True))  # x_ptr, batches, n, stride
    made = tensor_maps.map_maker(x, "rows", 0)(*values.values())
    assert made == struct.pack("<16Q", *range(16))
    assert given.pop() == ("FLOAT16", 0x1000, [64, 798], [256], [64, 128], 128, True)
    assert len(tensor_maps.arguments_of(y)) == 4
    tensor_maps.map_maker(y, "rows", 0)(0x2000, 640, 64, 64)
    assert given.pop() == ("FLOAT16", 0x2000, [64, 640], [128], [64, 128], 128, False)


def test_the_driver_is_told_of_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the map that loads, not of that which stores."""
    given: list[Any] = []
    monkeypatch.setattr(
        cuda, "encode_tensor_map", lambda *args, **_: given.append(args[0]) or [0] * 16
    )
    desc = TensorDescriptor(tl.float32, [64, 64], [64, 1], [16, 64], "nan", True)
    kernel = passed_on.warmup(desc, desc, 64, M=16, target=TARGET)
    for plan in kernel.metadata["tensor_maps"]:
        of = range(0x1000, 0x1000 + 16 * len(tensor_maps.arguments_of(plan)), 16)
        tensor_maps.map_maker(plan, "passed_on", 0)(*of)
    assert sorted(given) == ["FLOAT32", "TFLOAT32"]


def test_sizes_of_64_bits_count_by_their_low_half(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        cuda, "encode_tensor_map", lambda *args, **_: given.append(args) or [0] * 16
    )
    kernel = wide_rows.warmup(tl.float16, tl.float16, 1 << 40, target=TARGET)
    [x] = kernel.metadata["tensor_maps"]
    make = tensor_maps.map_maker(x, "wide_rows", 0)
    for rows, size in ((640, 640), ((5 << 32) + 640, 640), ((1 << 40) + 1, 1)):
        make(0x1000, rows)
        assert given.pop()[2][-1] == size


def test_maps_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(
        cuda, "encode_tensor_map", lambda *args, **_: calls.append(args) or [0] * 16
    )
    make = tensor_maps.map_maker(plans()[0], "rows", 0)
    for _ in range(3):
        make(0x1000, 5, 160, 128)
    make(0x1000, 5, 160, 256)
    assert len(calls) == 2


def test_what_the_driver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **_: Any) -> list[int]:
        raise cuda.CUDAError("cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE")

    monkeypatch.setattr(cuda, "encode_tensor_map", refuse)
    with pytest.raises(LaunchError, match=r"rows: TMA cannot take .* strides \[-128, 1\]"):
        tensor_maps.map_maker(plans()[0], "rows", 0)(0x1000, 5, 160, -128)


def test_an_empty_tensor_is_what_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each map has memory of its own: what a kernel stores to one, nobody loads by another."""
    given: list[Any] = []
    filled: list[tuple[int, int]] = []

    def allocate(size: int, byte: int) -> int:
        filled.append((size, byte))
        return 0x7000 + 0x100 * len(filled)

    monkeypatch.setattr(cuda, "allocate_device", allocate)
    monkeypatch.setattr(cuda, "on_device", contextlib.nullcontext)
    monkeypatch.setattr(cuda, "capture_aside", contextlib.nullcontext)
    monkeypatch.setattr(
        cuda, "encode_tensor_map", lambda *args, **_: given.append(args) or [0] * 16
    )
    x, y = plans()
    loaded, stored = tensor_maps.map_maker(x, "rows", 0), tensor_maps.map_maker(y, "rows", 0)
    stored(0x2000, 0, 64, 64)
    stored(0x3000, 0, 64, 64)
    loaded(0x1000, 1, 2, 128)
    tensor_maps.map_maker(y, "rows", 0)(0x2000, 0, 64, 64)
    assert filled == [(16, 0), (16, 0xFF), (16, 0)]
    assert [args[1] for args in given] == [0x7100, 0x7100, 0x7200, 0x7300]
    assert all(args[2:4] == ([1, 1], [32]) for args in given)


@pytest.mark.parametrize("batches, n", [(1, 2), (1, 1), (5, 20)])
def test_rows_that_are_not_there_are_nan(rng: np.random.Generator, batches: int, n: int) -> None:
    """Also where there are none at all: not the first element, either."""
    x = rng.standard_normal((100, 64)).astype(np.float16)
    y = np.zeros((128, 64), np.float16)
    described = TensorDescriptor.from_tensor(y, [128, 64])
    with Emulation(4, rng).installed():
        kernel = rows[(1,)](x, described, batches, n, 64, M=128)
    assert len(kernel.metadata["tensor_maps"]) == 2
    there = max(0, batches * n - 2)
    np.testing.assert_array_equal(y[:there], x[:there])
    assert np.isnan(y[there:]).all()


@pytest.mark.parametrize("arch", [90, 100, 120])
def test_what_a_persistent_kernel_issues(arch: int) -> None:
    """Copies of the next tile begin in the loop; one thread is elected to issue them."""
    from kernels.matmul_persistent import matmul_persistent_kernel

    kernel = matmul_persistent_kernel.warmup(
        *[tl.float16] * 3, *[1024] * 6, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, GROUP_M=8,
        TRANSPOSED=False, num_warps=4, num_stages=3, target=proton.GPUTarget("cuda", arch),
    )  # fmt: skip
    ptx = kernel.asm["ptx"]
    assert ptx.count("cp.async.bulk.tensor.2d.shared::cluster.global") == 2 * (2 + 1)
    assert ptx.count("cp.async.bulk.tensor.2d.global.shared::cta") == 1
    assert ptx.count("mbarrier.try_wait") == 1
    assert "elect.sync" in ptx
    assert "cp.async.cg" not in ptx
    assert arch > 90 or not kernel.n_spills
    assert "UTMALDG" in instructions(kernel.asm["cubin"])
    plain = matmul_persistent_kernel.warmup(
        *[tl.float16] * 3, *[1024] * 6, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, GROUP_M=8,
        TRANSPOSED=False, num_warps=4, num_stages=3, target=proton.GPUTarget("cuda", 80),
    )  # fmt: skip
    assert not plain.metadata["tensor_maps"]


@proton.jit
def combine(x, y, i, KIND: tl.constexpr):
    block = x.load([0, 0])
    place = [tl.program_id(0) * 32, i * 64]
    if KIND == "add":
        y.atomic_add(place, block)
    elif KIND == "max":
        y.atomic_max(place, block)
    else:
        y.atomic_xor(place, block)


@pytest.mark.parametrize("dtype, kind, element", [
    (tl.float32, "add", "f32"), (tl.bfloat16, "max", "bf16"), (tl.int64, "add", "i64"),
    (tl.int32, "max", "si32"), (tl.uint32, "max", "i32"), (tl.uint64, "xor", "i64"),
    (tl.float64, "add", None),
])  # fmt: skip
def test_reductions(dtype: Any, kind: str, element: str | None) -> None:
    """The map says what TMA compares; the copy waits for the threads that wrote the block, and the
    program ends when it has been read. Where the index may be negative the threads may do it."""
    x, y = (TensorDescriptor(dtype, [640, 64], [64, 1], [32, 64]) for _ in range(2))
    kernel = combine.warmup(x, y, -3, KIND=kind, target=TARGET)
    ptx, maps = kernel.asm["ptx"], [plan["element"] for plan in kernel.metadata["tensor_maps"]]
    name = f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{kind}.bulk_group"
    if element is None:
        assert (name in ptx, len(maps)) == (False, 1)
        return
    assert maps[1] == element
    before, _, behind = ptx.partition(name)
    assert "fence.proxy.async" in before.rpartition("bar.sync")[0]
    assert behind.index("commit_group") < behind.index("cp.async.bulk.wait_group.read 0")
    assert "UTMAREDG" in instructions(kernel.asm["cubin"])  # the assembler's word for `name`
    by_threads = rf"atom\.relaxed\.gpu\.global\.({kind}|cas)"
    assert re.search(by_threads, ptx)
    known = combine.warmup(x, y, 3, KIND=kind, target=TARGET).asm["ptx"]
    assert name in known
    assert not re.search(by_threads, known)


def test_instructions_have_the_numbers_that_the_disassembler_says() -> None:
    """Which tests look for in machine code."""
    x, y = (TensorDescriptor(tl.uint64, [640, 64], [64, 1], [32, 64]) for _ in range(2))
    kernels = [copying(), combine.warmup(x, y, 3, KIND="xor", target=TARGET)]
    for element, out in ((tl.float64, tl.float64), (tl.float16,) * 2, (tl.float8e4nv, tl.float32)):
        kernels.append(dot.warmup(element, element, out, 64, 64, 64, target=TARGET))
    seen = set()
    for kernel in kernels:
        found = instructions(kernel.asm["cubin"])
        assert found == {name for name in KINDS.values() if name in kernel.asm["sass"]}
        seen |= found
    assert seen == {*KINDS.values()}


@proton.jit
def doubled(x, y, M: tl.constexpr, N: tl.constexpr):
    block = x.load([tl.program_id(0) * M, tl.program_id(1) * N])
    y.store([tl.program_id(0) * M, tl.program_id(1) * N], block * 2)


@pytest.mark.parametrize("columns", [1, 15, 16, 63, 64, 127, 128, 4096])
def test_the_last_16_bytes_of_a_row_are_written_by_threads_where_a_tensor_ends_in_them(
    columns: int,
) -> None:
    """TMA writes them whole. Where 16 divides the number of columns nothing is looked at."""
    x, y = (TensorDescriptor(tl.float16, [64, columns], [4096, 1], [16, 64]) for _ in range(2))
    kernel = doubled.warmup(x, y, M=16, N=64, target=TARGET)
    ttgir = kernel.asm["ttgir"]
    assert "ttng.async_tma_copy_local_to_global" in ttgir
    assert ("ttng.local_to_global" in ttgir) == bool(columns % 16)


@proton.jit
def reversed_rows(x, y, n, AHEAD: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Blocks from the last one to the first, or to one before that."""
    for i in range(n):
        y.store([(n - AHEAD - i) * M, 0], x.load([i * M, 0]))


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_blocks_of_a_loop_that_counts_back_are_not_before_the_tensor(ahead: int) -> None:
    x, y = (TensorDescriptor(tl.float16, [256, 64], [64, 1], [16, 64]) for _ in range(2))
    kernel = reversed_rows.warmup(x, y, 16, AHEAD=ahead, M=16, N=64, target=TARGET)
    assert ("ttng.local_to_global" in kernel.asm["ttgir"]) == (ahead == 2)
