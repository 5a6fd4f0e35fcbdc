"""Copies of pixels by TMA's im2col mode: what descriptors and kernels may say, the map that the
driver is asked for, the instruction, and what is known of such copies. What they bring is among the
checks of `gluon_kernels.py`."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import proton
from proton import gluon
from proton.compiler import IRSource
from proton.gluon import language as gl
from proton.gluon.language.nvidia.hopper import mbarrier, tma
from proton.gluon.nvidia.hopper import TensorDescriptor, TensorDescriptorIm2Col
from proton.language import types as ty
from proton.runtime.nvidia import cuda, tensor_maps
from tests.compile.test_gluon_schedule import warmed, without_places
from tests.compile.test_ir_files import code_of
from tests.gluon_images import convolved_by_roles, copied
from tests.tables import check_rows

TARGET = proton.GPUTarget("cuda", 90)
LAYOUT = gl.NVMMASharedLayout(128, 16, 2)
SHAPES = {3: [5, 19, 80], 4: [5, 17, 19, 80], 5: [5, 15, 17, 19, 80]}


def images(rank: int = 4, dtype: Any = gl.float16, **changes: Any) -> TensorDescriptorIm2Col:
    """A descriptor of images, for code that is not launched."""
    shape = SHAPES.get(rank, [2] * rank)
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(rank)]
    known: dict[str, Any] = {
        "block_shape": [64, 64],
        "layout": LAYOUT,
        "element_strides": [1, *range(2, rank), 1],
        "pixel_box_lower_corner": [-1, -2, -3][: rank - 2],
        "pixel_box_upper_corner": [1, 2, 3][: rank - 2],
    }
    return TensorDescriptorIm2Col(dtype, shape, strides, **{**known, **changes})


def compiled(rank: int, **options: Any) -> Any:
    numbers = (0,) * rank, (1, 2, 3)[: rank - 2], (7, 8, 9)[: rank - 2], 64, 64
    given = {"target": TARGET, "num_warps": 4, "grid": (1,), **options}
    return copied.warmup(images(rank), gl.float16, *numbers, **given)


# Descriptors


def test_descriptors_are_checked() -> None:
    def check(changes: dict[str, Any], said: str) -> None:
        with pytest.raises(proton.ProtonError, match=said):
            images(**changes)

    wide, flat = gl.NVMMASharedLayout(0, 16, 2), gl.NVMMASharedLayout(128, 16, 1)
    check_rows(check, [
        ({"rank": 2, "element_strides": None}, "requires rank 3, 4, or 5, got 2"),
        ({"rank": 6, "element_strides": None}, "requires rank 3, 4, or 5, got 6"),
        ({"block_shape": [16, 16, 64]}, r"block_shape must have 2 entries, .* got \[16, 16, 64\]"),
        ({"block_shape": [24, 64]}, "block_shape .* power"),
        ({"block_shape": [64, 32]}, r"Expected block_shape\[-1\] to be at least 64 but got 32"),
        ({"block_shape": [2048, 64]}, "at most 1024 pixels at once, got 2048"),
        ({"block_shape": [16, 512], "layout": wide}, "256 channels without a swizzle, got 512"),
        ({"layout": flat}, "layout rank must match block shape rank: 1 and 2"),
        ({"padding": "one"}, 'padding must be "zero" or "nan"'),
        ({"element_strides": [1, 2, 2]}, "element_strides must have 4 entries, and shape has 4"),
        ({"element_strides": [1, 0, 2, 1]}, r"element_strides\[1\] must be in \[1, 8\], got 0"),
        ({"element_strides": [1, 2, 9, 1]}, r"element_strides\[2\] must be in \[1, 8\], got 9"),
        ({"element_strides": [2, 2, 2, 1]}, r"element_strides\[0\] must be in \[1, 1\], got 2"),
        ({"element_strides": [1, 2, 2, 2]}, r"element_strides\[3\] must be in \[1, 1\], got 2"),
        ({"pixel_box_lower_corner": None}, r"pixel_box_lower_corner must have 2 entries"),
        ({"pixel_box_upper_corner": [1]}, r"pixel_box_upper_corner must have 2 entries"),
        ({"pixel_box_lower_corner": [-129, 0]}, r"lower_corner\[0\] .* \[-128, 127\], got -129"),
        ({"pixel_box_upper_corner": [0, 128]}, r"upper_corner\[1\] must be in \[-128, 127\]"),
        ({"rank": 5, "pixel_box_upper_corner": [0, 0, 16]}, r"\[2\] .* \[-16, 15\], got 16"),
        ({"rank": 3, "pixel_box_lower_corner": [-40000]}, r"must be in \[-32768, 32767\]"),
        ({"pixel_box_upper_corner": [-18, 0]}, r"from -1 to 17 - 1 \+ -18 is empty"),
    ])  # fmt: skip


def test_a_descriptor_that_has_changed_is_checked_when_it_is_passed() -> None:
    x = np.zeros((2, 8, 8, 64), np.float16)
    y = np.zeros((2, 64, 64), np.float16)
    desc = TensorDescriptorIm2Col.from_tensor(
        x, [64, 64], LAYOUT, pixel_box_lower_corner=[0, 0], pixel_box_upper_corner=[0, 0]
    )
    desc.pixel_box_upper_corner = [-8, 0]
    with pytest.raises(proton.ProtonError, match="from 0 to 8 - 1 \\+ -8 is empty"):
        copied[(1,)](desc, y, (0, 0, 0, 0), (0, 0), (0, 0), 64, 64, num_warps=4)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_the_name_of_its_type_is_read(rank: int) -> None:
    types = compiled(rank).signature.types
    of = types["desc"]
    assert of.short.startswith(f"tensordesc_im2col<fp16[64, 64],input_rank={rank}, NVMMAShared")
    assert ty.str_to_ty(of.short) == of
    assert ty.str_to_ty(of.short.replace("], NV", "],nan, NV").replace("64, NV", "64, NV")) == of
    nan = ty.str_to_ty(of.short.replace(" NVMMA", " nan, NVMMA"))
    assert (nan.rank, nan.padding, len(nan.parts())) == (rank, "nan", 2 * rank + 3 * (rank - 2))
    assert len({of, nan, ty.str_to_ty(of.short.replace(f"={rank}", f"={8 - rank}"))}) == 3 - (
        rank == 4
    )
    for text in (of.short.replace("_im2col", ""), of.short.replace(f"input_rank={rank},", "")):
        with pytest.raises(TypeError, match="no type is written"):
            ty.str_to_ty(text)


# Kernels


@gluon.jit
def wrong(desc, tiles, x, n, WHAT: gl.constexpr):
    memory = gl.allocate_shared_memory(gl.float16, [64, 64], desc.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    at: gl.constexpr = (0, 0, 0, 0)
    gl.static_assert(isinstance(desc, tma.tensor_descriptor_im2col))
    gl.static_assert(not isinstance(desc, tma.tensor_descriptor))
    gl.static_assert(len(desc.shape) == 4)
    gl.static_assert(len(desc.strides) == 4)
    gl.static_assert(desc.block_shape[0] == 64)
    gl.static_assert(desc.nbytes_per_cta == 8192)
    if WHAT == "tiles":
        tma.async_load_im2col(tiles, at, (0, 0), bar, memory)
    if WHAT == "pixels":
        tma.async_load(desc, at, bar, memory)
    if WHAT == "store":
        tma.async_store(desc, at, memory)
    if WHAT == "add":
        tma.async_atomic_add(desc, at, memory)
    if WHAT == "load":
        desc.load(at)
    if WHAT == "pointer":
        tma.async_load_im2col(x, at, (0, 0), bar, memory)
    if WHAT == "coord":
        tma.async_load_im2col(desc, (0, 0), (0, 0), bar, memory)
    if WHAT == "offsets":
        tma.async_load_im2col(desc, at, (0,), bar, memory)
    if WHAT == "large":
        tma.async_load_im2col(desc, at, (256, 0), bar, memory)
    if WHAT == "negative":
        tma.async_load_im2col(desc, at, (0, -1), bar, memory)
    if WHAT == "wide":
        tma.async_load_im2col(desc, at, (0, n), bar, memory)
    if WHAT == "float":
        tma.async_load_im2col(desc, at, (0, 1.5), bar, memory)
    if WHAT == "channel":
        tma.async_load_im2col(desc, (0, 0, 0, 4), (0, 0), bar, memory)
    if WHAT == "memory":
        other = gl.allocate_shared_memory(gl.float16, [32, 64], desc.layout)
        tma.async_load_im2col(desc, at, (0, 0), bar, other)
    if WHAT == "bytes":
        mbarrier.expect(bar, 4096)
        tma.async_load_im2col(desc, at, (0, 0), bar, memory)
        mbarrier.wait(bar, 0)
    if WHAT == "early":
        mbarrier.expect(bar, 8192)
        tma.async_load_im2col(desc, at, (0, 0), bar, memory)
        rows: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
        gl.store(x, gl.sum(gl.sum(memory.load(rows), 0), 0))


ANY, GPU = (None, TARGET), (TARGET,)


@pytest.mark.parametrize(
    ("what", "targets", "said"),
    [
        ("tiles", ANY, "expected a tensor descriptor in im2col mode, got tensordesc<"),
        ("pixels", ANY, "of tiles, got tensordesc_im2col<(.|\n)*async_load_im2col"),
        ("store", ANY, "async_store: expected a tensor descriptor of tiles"),
        ("add", ANY, "async_atomic_add: expected a tensor descriptor of tiles"),
        ("load", ANY, "a tensor descriptor has no attribute 'load'"),
        ("pointer", ANY, r"in im2col mode, got \*fp16(.|\n)*TensorDescriptorIm2Col"),
        ("coord", ANY, "coord must have 4 entries"),
        ("offsets", ANY, "offsets must have 2 entries"),
        ("large", ANY, "of 2 dimensions of pixels offsets are from 0 to 255, got 256"),
        ("negative", ANY, "offsets are from 0 to 255, got -1"),
        ("wide", ANY, r"offsets are 16-bit integers, got i32(.|\n)*x.to\(gl.int16\)"),
        ("float", ANY, r"offsets\[1\] must be an integer scalar"),
        ("channel", ANY, "rows begin at index 4, 8 bytes from the tensor's"),
        ("memory", ANY, r"does not hold a block of .*\[64, 64\]"),
        ("bytes", GPU, "expects 4096 bytes fewer than the copies bring"),
        ("early", GPU, "while a copy"),
    ],
)
def test_what_kernels_say_is_checked(what: str, targets: tuple[Any, ...], said: str) -> None:
    tiles = TensorDescriptor(gl.float16, [64, 64], [64, 1], [64, 64], LAYOUT)
    for target in targets:
        options = {} if target is None else {"target": target}
        with pytest.raises(proton.CompilationError) as raised:
            wrong.warmup(
                images(), tiles, gl.float16, 5, what, grid=(1,), num_warps=4, **options
            ).asm
        assert re.search(said, str(raised.value)), str(raised.value)
        assert __file__ in str(raised.value)


def test_what_a_gpu_has_not_is_said() -> None:
    with pytest.raises(proton.CompilationError, match=r"im2col needs compute capability 9\.0"):
        compiled(4, target=proton.GPUTarget("cuda", 80))


@gluon.jit
def chosen(a, b, y, n):
    memory = gl.allocate_shared_memory(gl.float16, [64, 64], a.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    for k in range(n):
        mbarrier.expect(bar, 8192)
        tma.async_load_im2col(a, (k, 0, 0, 0), (0, 0), bar, memory)
        mbarrier.wait(bar, k & 1)
        a, b = b, a


def test_a_descriptor_that_a_loop_chooses_is_refused_on_a_gpu() -> None:
    with pytest.raises(proton.CompilationError, match=r"that a loop or a branch chooses") as said:
        chosen.warmup(images(), images(), gl.float16, 5, target=TARGET, num_warps=4, grid=(1,)).asm
    assert __file__ in str(said.value)


def test_eight_bits_have_no_nan_on_a_gpu() -> None:
    nan = images(dtype=gl.float8e4nv, layout=gl.NVMMASharedLayout(64, 8, 2), padding="nan")
    with pytest.raises(proton.CompilationError, match="TMA fills nothing with a NaN of fp8e4nv"):
        copied.warmup(nan, gl.float8e4nv, (0,) * 4, (0, 0), (0, 0), 64, 64, target=TARGET,
                      num_warps=4, grid=(1,))  # fmt: skip
    with pytest.raises(proton.LaunchError, match='padding "nan" needs floats, got i32'):
        images(dtype=gl.int32, layout=gl.NVMMASharedLayout(128, 32, 2), padding="nan").key(
            proton.runtime.launch.arguments.Parameter.plain("x"), gl.int32
        )


# What becomes of them


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_the_assembler_takes_the_instruction(rank: int) -> None:
    kernel = compiled(rank)
    copies = [line for line in kernel.asm["ptx"].splitlines() if "cp.async.bulk.tensor" in line]
    assert len(copies) == 2
    name = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::"
    offsets = ", ".join([r"%rs\d+"] * (rank - 2))
    for line in copies:
        assert re.search(rf"{re.escape(name)}bytes \[.*\], \[%r\d+\], {{{offsets}}};", line), line
    assert kernel.asm["cubin"]


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_what_the_driver_is_asked_for(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it the fastest dimension first."""
    (plan,) = compiled(rank).metadata["tensor_maps"]
    desc, given = images(rank), []
    passed = desc.passed("desc", 0x1000)
    assert tensor_maps.arguments_of(plan) == [*range(len(passed))]

    class Fake:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("cuuint"):
                return int
            if name.startswith("cuTensorMap"):
                return lambda *args: (
                    given.append((name, *args)) or (0, SimpleNamespace(opaque=range(16)))
                )
            if name == "CUtensorMapFloatOOBfill":
                return bool
            return Fake() if name.startswith("CUtensor") else name.rpartition("_")[2]

    monkeypatch.setattr(cuda, "_driver", Fake)
    assert len(tensor_maps.map_maker(plan, "copied", 0)(*passed)) == 128
    sizes, steps = desc.shape[::-1], [2 * stride for stride in desc.strides[-2::-1]]
    lower, upper = desc.pixel_box_lower_corner[::-1], desc.pixel_box_upper_corner[::-1]
    known = "FLOAT16", rank, 0x1000, sizes, steps, lower, upper, 64, 64, desc.element_strides[::-1]
    assert given.pop() == ("cuTensorMapEncodeIm2col", *known, "NONE", "128B", "128B", False)
    # Where there is no memory all pixels are outside of one element.
    monkeypatch.setattr(tensor_maps, "_outside", lambda device, is_nan: 0x2000)
    tensor_maps.map_maker(plan, "copied", 0)(*desc.passed("desc", 0))
    known = "FLOAT16", rank, 0x2000, [1] * rank, [32] * (rank - 1)
    pixels = [0] * (rank - 2), [0] * (rank - 2), 64, 64, [1] * rank
    assert given.pop() == (
        "cuTensorMapEncodeIm2col",
        *known,
        *pixels,
        "NONE",
        "128B",
        "128B",
        False,
    )


def test_ir_goes_through(tmp_path: Path) -> None:
    kernel = compiled(5)
    path = tmp_path / "copied.ttgir"
    path.write_text(kernel.asm["ttgir"])
    again = proton.compile(path, target=TARGET)
    assert code_of(again.asm["ptx"]) == code_of(kernel.asm["ptx"])
    assert again.metadata.tensor_maps == kernel.metadata.tensor_maps
    assert [*IRSource(path).signature.values()][:10] == ["*fp16", *["i32"] * 5, *["i64"] * 4]


def test_copies_of_pixels_are_work_as_others_are() -> None:
    x, w = np.zeros((2, 9, 7, 64), np.float16), np.zeros((9 * 64, 32), np.float16)
    x_desc = TensorDescriptorIm2Col.from_tensor(
        x, [64, 32], gl.NVMMASharedLayout(64, 16, 2),
        pixel_box_lower_corner=[-1, -1], pixel_box_upper_corner=[-1, -1],
    )  # fmt: skip
    w_desc = TensorDescriptor.from_tensor(w, [32, 32], gl.NVMMASharedLayout(64, 16, 2))
    y = np.zeros((2, 9, 7, 32), np.float32)
    rest = 9, 7, 32, 1, 1, 3, 3, 64, 32, 32, 2
    kernel = warmed(convolved_by_roles, [x_desc, w_desc, y], rest, num_warps=4,
                    profile={"auto": ("copies", "dots", "barriers")})  # fmt: skip
    lines = without_places(kernel.asm["schedule"])
    assert "    fill/issue copy" in lines[lines.index("taps, warp 4") :]
    paths = {scope.path for scope in kernel.profile.table.scopes if scope.queue}
    assert any(re.search(r"copy gluon_images.py:\d+,\d+$", path) for path in paths), paths
