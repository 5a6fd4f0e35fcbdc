"""Kernels from IR as Triton prints it, for GPUs: the code of each level, and who can have it."""

import re
from pathlib import Path
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.compiler import IRSource
from tests import triton_block_samples as block_samples
from tests import triton_samples as samples
from tests.compile.test_ir_files import code_of

AMPERE, HOPPER = proton.GPUTarget("cuda", 80), proton.GPUTarget("cuda", 90)
LEVEL_ONE = ("ADD", "SOFTMAX", "ARGMAX", "MATMUL", "RETURNS", "CALLS", "WHILE", "DESCRIPTORS")


BLOCKS = ("MOVE", "DESCRIBE", "SCALED")


def written(folder: Path, name: str, level: str) -> str:
    path = folder / f"{name.lower()}.{level}"
    path.write_text(getattr(samples, name, "") or getattr(block_samples, name))
    return str(path)


OF_AMPERE = ("MATMUL", "CALLS", "DESCRIPTORS", *BLOCKS)  # where chips differ


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "name, target",
    [*((name, HOPPER) for name in LEVEL_ONE + BLOCKS), *((name, AMPERE) for name in OF_AMPERE)],
    ids=str,
)
def test_ttir_is_compiled_as_from_python(name: str, target: Any, tmp_path: Path) -> None:
    """It goes through all passes, with the warps that it is asked for; what comes of them is text
    of ours, which gives the same code again."""
    kernel = proton.compile(
        written(tmp_path, name, "ttir"), target=target, options={"num_warps": 2}
    )
    assert kernel.metadata.num_warps == 2
    assert kernel.n_spills == 0
    again = tmp_path / "again.ttgir"
    again.write_text(kernel.asm["ttgir"])
    assert code_of(proton.compile(again, target=target).asm["ptx"]) == code_of(kernel.asm["ptx"])


def test_what_gluon_makes_is_ttir(tmp_path: Path) -> None:
    made = [
        proton.compile(written(tmp_path, "ADD", level), target=HOPPER) for level in ("glir", "ttir")
    ]
    assert code_of(made[0].asm["ptx"]) == code_of(made[1].asm["ptx"])


@proton.jit
def add(x_ptr, y_ptr, out_ptr, n):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    mask = i < n
    x = tl.load(x_ptr + i, mask)
    y = tl.load(y_ptr + i, mask, cache_modifier=".cg", eviction_policy="evict_last")
    z = x + y
    tl.store(out_ptr + i, z, mask)


def test_the_code_is_that_of_the_same_kernel_in_python(tmp_path: Path) -> None:
    text = samples.ADD.replace(
        "%out_ptr: !tt.ptr<f32> loc", "%out_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc"
    )
    path = tmp_path / "add.ttir"
    path.write_text(text)
    kernel = proton.compile(path, target=HOPPER)
    wanted = add.warmup(*[tl.float32] * 3, 999, target=HOPPER)
    assert code_of(kernel.asm["ptx"]) == code_of(wanted.asm["ptx"])
    assert "kernels/add.py" in kernel.asm["ptx"]


def test_layouts_of_ttgir_are_kept(tmp_path: Path) -> None:
    kernel = proton.compile(written(tmp_path, "ROW_SUMS", "ttgir"), target=HOPPER)
    assert IRSource(tmp_path / "row_sums.ttgir").parse_options() == {"num_warps": 4}
    assert [*kernel.asm][:3] == ["source", "ttgir", "llir"]
    # A thread has four rows of four elements each, side by side: four loads of 16 bytes.
    assert kernel.asm["ptx"].count("ld.global.v4") == 4
    assert "bar.sync" in kernel.asm["ptx"]  # rows of other warps, for the last layout
    narrow = samples.ROW_SUMS.replace(
        "[1, 4], threadsPerWarp = [4, 8]", "[1, 1], threadsPerWarp = [1, 32]"
    )
    path = tmp_path / "narrow.ttgir"
    path.write_text(narrow)
    ptx = proton.compile(path, target=HOPPER).asm["ptx"]
    assert "ld.global.v" not in ptx
    assert ptx.count("ld.global.b32") == 16


def test_copies_and_products_are_those_of_the_text(tmp_path: Path) -> None:
    kernel = proton.compile(written(tmp_path, "PRODUCT", "ttgir"), target=HOPPER)
    ptx = code_of(kernel.asm["ptx"])

    def places(words: str) -> list[int]:
        return [number for number, line in enumerate(ptx) if re.match(words, line)]

    copies, products = places(r"cp\.async\.cg"), places(r".*wgmma\.mma_async")
    assert len(copies) == 4  # 64 x 64 halves, 16 bytes each
    assert sum(ptx[place].count("wgmma.mma_async") for place in products) == 4  # 64 / 16 steps
    (commit,), (wait,) = places(r"cp\.async\.commit_group"), places(r"cp\.async\.wait_group")
    assert max(copies) < commit < wait < min(places("bar.sync")[-1:] + products)
    assert any(wait < barrier < products[0] for barrier in places("bar.sync"))
    assert any(wait < fence < products[0] for fence in places("fence.proxy.async"))
    assert places(r"wgmma\.wait_group")[0] > products[-1]
    assert kernel.shared >= 3 * 64 * 64 * 2


def test_descriptors_go_by_tma(tmp_path: Path) -> None:
    """Launches give the address, the sizes and the strides but for the last; the host makes a
    tensor map of these."""
    kernel = proton.compile(written(tmp_path, "TWICE", "ttgir"), target=HOPPER)
    (tensor_map,) = kernel.metadata.tensor_maps
    assert tensor_map["box"] == [16, 32]
    assert tensor_map["swizzle"] == 128
    source = IRSource(tmp_path / "twice.ttgir")
    assert [*source.signature.values()] == ["*fp32", "i32", "i32", "i64", "i32"]
    assert [of.divisor for of in source.arguments.values()] == [16, 1, 1, 4, 1]
    ptx = kernel.asm["ptx"]
    order = ("mbarrier.init", "bar.sync", "expect_tx", "tensor.2d.shared", "try_wait", "st.shared")
    places = [ptx.index(word) for word in (*order, "tensor.2d.global", "bulk.wait_group")]
    assert places == sorted(places)
    assert ptx.count("fence.proxy.async") == 2  # behind the barrier's making, and behind the stores


def test_maps_that_the_kernel_makes(tmp_path: Path) -> None:
    """The host makes that of an argument, whose stride in bytes is a product; the kernel that of an
    address in memory, in each turn, and all threads meet before they use it."""
    kernel = proton.compile(written(tmp_path, "TOTAL", "ttgir"), target=HOPPER)
    (tensor_map,) = kernel.metadata.tensor_maps
    assert (tensor_map["base"], tensor_map["box"]) == (1, [32, 32])
    assert tensor_map["strides"] == [["argument", 4], 1]
    ttgir, ptx = kernel.asm["ttgir"], kernel.asm["ptx"]
    order = ("tensormap_create", "ttg.barrier", "async_tma_copy_global_to_local", "wait_barrier")
    places = [ttgir.index(word) for word in order]
    assert places == sorted(places)
    assert ptx.count("tensormap.cp_fenceproxy") == 1
    (fill,) = re.findall(r"tensormap\.replace\.tile\.fill_mode\S+ \[\S+\], (\d);", ptx)
    assert fill == "1"


def test_groups_of_warps(tmp_path: Path) -> None:
    """The default one copies, the other one multiplies: each meets at a barrier of its own, and a
    product has ended before its buffer is given back."""
    kernel = proton.compile(written(tmp_path, "GROUPS", "ttgir"), target=HOPPER)
    assert kernel.metadata.num_warps == 8
    assert kernel.n_spills == 0
    ptx = kernel.asm["ptx"]
    assert re.search(r"\.(reqntid|maxntid)\s+256", ptx)
    copies, products = ptx.index("complete_tx::bytes"), ptx.index("wgmma.mma_async")
    between = ptx[min(copies, products) : max(copies, products)]
    assert "bra" in between
    assert set(re.findall(r"bar\.sync\s+(.*);", ptx)) == {"0", "1, 128", "2, 128"}
    order = (
        "try_wait",
        "bar.sync \t2, 128",
        "wgmma.mma_async",
        "wgmma.wait_group",
        "arrive.shared",
    )
    consumer = ptx[ptx.rindex("try_wait", 0, products) :]
    places = [consumer.index(word) for word in order]
    assert places == sorted(places)


def test_more_groups_of_warps(tmp_path: Path) -> None:
    """A second one that multiplies, of 8 warps: the program has 16 then, and lacks none."""
    text = block_samples.GROUPS
    start, end = text.index("    partition0("), text.index("    } : (!ttg.memdesc<2x64x64xf16")
    second = (
        text[start:end].replace("partition0", "partition1").replace("num_warps(4)", "num_warps(8)")
    )
    second = second.replace("[4, 1]", "[8, 1]").replace("#mma>", "#mma1>")
    layout = text[: text.index("\n", text.index("#mma = ")) + 1]
    path = tmp_path / "more.ttgir"
    head = layout.replace("#mma", "#mma1").replace("warpsPerCTA = [4, 1]", "warpsPerCTA = [8, 1]")
    path.write_text(
        head + text[:end] + "    }\n" + second.replace("%11, 128", "%11, 256") + text[end:]
    )
    kernel = proton.compile(path, target=HOPPER)
    assert kernel.metadata.num_warps == 16
    barriers = set(re.findall(r"bar\.sync\s+(.*);", kernel.asm["ptx"]))
    assert barriers == {"0", "1, 128", "2, 384", "3, 128", "4, 256"}
    # With 4 warps in the second one 4 have nothing to do. Partitions may use each other's names.
    second = text[start:end].replace("partition0", "partition1").replace("%as_0", "%as_9")
    second = re.sub(r"%12\b", "%as_0", second)
    path.write_text(text[:end] + "    }\n" + second + text[end:])
    kernel = proton.compile(path, target=HOPPER)
    assert kernel.metadata.num_warps == 16
    barriers = set(re.findall(r"bar\.sync\s+(.*);", kernel.asm["ptx"]))
    assert barriers == {"0", "1, 128", "2, 384", "3, 128", "4, 256", "5, 128"}


TENSOR = "%t = arith.constant dense<0.0> : tensor<64x64xf32, #mma>\n    "
CALL = "%s = tt.call @f(%acc) : (tensor<64x64xf32, #mma>) -> f32\n      "
AROUND = [
    ("ttg.barrier local", TENSOR, "tensors outside of the groups of ttg.warp_specialize are not"),
    ("tt.return", TENSOR, "tensors outside of the groups"),
    ("%5 = arith.truncf", CALL, "tt.call in a group of warps is not supported"),
    (
        "tt.return",
        "ttng.arrive_barrier %0, 128 : !ttg.memdesc<1xi64, #words, #smem, mutable>\n    ",
        "of 128 arrivals is not supported, and each of the 256 threads",
    ),
    (
        "  tt.func public",
        f"  tt.func private @f() attributes {{noinline = true}} {{\n    {TENSOR}tt.return\n  }}\n",
        "tensors outside of the groups",
    ),
]


@pytest.mark.parametrize(("ahead_of", "what", "said"), AROUND)
def test_what_groups_refuse(ahead_of: str, what: str, said: str, tmp_path: Path) -> None:
    assert ahead_of in block_samples.GROUPS
    path = tmp_path / "groups.ttgir"
    path.write_text(block_samples.GROUPS.replace(ahead_of, what + ahead_of))
    with pytest.raises(proton.UnsupportedLanguageConstruct, match=said) as found:
        proton.compile(path, target=HOPPER)
    assert found.value.span is not None
    assert found.value.span.line > 6


def test_products_without_memory_are_for_the_lowering(tmp_path: Path) -> None:
    """A `tt.dot` in the layouts of `mma` is a product of tensor cores, whichever the target has."""
    parent = (
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], "
        "instrShape = [16, 8]}>"
    )
    text = samples.PRODUCT
    start, end = text.index("    %as = "), text.index("    %17 = ")
    a, b = (f"#ttg.dot_op<{{opIdx = {n}, parent = {parent}, kWidth = 2}}>" for n in (0, 1))
    body = f"""\
    %10 = tt.load %7 : tensor<64x64x!tt.ptr<f16>, #blocked>
    %12 = tt.load %9 : tensor<64x64x!tt.ptr<f16>, #blocked>
    %13 = ttg.convert_layout %10 : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, {a}>
    %14 = ttg.convert_layout %12 : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, {b}>
    %15 = tt.dot %13, %14, %zeros : tensor<64x64xf16, {a}> * tensor<64x64xf16, {b}> -> \
tensor<64x64xf32, #mma>
    %16 = ttg.convert_layout %15 : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
"""
    head = re.sub(r"#mma = .*", f"#mma = {parent}", text[:start])
    path = tmp_path / "mma.ttgir"
    path.write_text(head + body + text[end:])
    assert "mma.sync.aligned.m16n8k16" in proton.compile(path, target=AMPERE).asm["ptx"]
    assert "wgmma.mma_async" in proton.compile(path, target=HOPPER).asm["ptx"]


def test_warps_and_targets(tmp_path: Path) -> None:
    path = written(tmp_path, "ROW_SUMS", "ttgir")
    with pytest.raises(proton.CompilationError, match=r"is for 4 warps .*, and num_warps is 8"):
        proton.compile(path, target=HOPPER, options={"num_warps": 8})
    Path(path).write_text(samples.ROW_SUMS.replace('"ttg.num-warps" = 4 : i32, ', ""))
    with pytest.raises(
        proton.CompilationError, match=r"#ttg\.blocked is for 4 warps, and the module"
    ):
        proton.compile(path, target=HOPPER)


def test_sessions_compile_it_too(tmp_path: Path) -> None:
    """Text without records gives the code that it gives outside of a session."""
    from proton.runtime.nvidia.arguments import stand_in
    from proton.runtime.nvidia.backend import BACKEND
    from proton.trace.instrumentation import Instrumentation

    kernel = proton.compile(written(tmp_path, "ROW_SUMS", "ttgir"), target=HOPPER)
    launcher = kernel.fn.launcher(BACKEND)
    described = [stand_in(p, tl.float32) for p in kernel.fn.params]
    profiled = launcher.compile_described(HOPPER, described, {}, Instrumentation())
    assert profiled.profile is None
    assert code_of(profiled.asm["ptx"]) == code_of(kernel.asm["ptx"])


ERRORS = [
    (
        "arith.addf %8, %11 : tensor<64xf32>",
        "arith.addf %8, %99 : tensor<64xf32>",
        r"add\.ttir:18:26: use of undeclared SSA value name",
    ),
    ("tt.load %7, %5 :", "tt.load %7, %2 :", r"add\.ttir:14:.*(expects different type|prior use)"),
    ("end = 64 : i32, start", "end = 65 : i32, start", "end - start must be a power of two"),
    ("tt.return loc", "tt.giveup loc", r"add\.ttir:22:5: tt.giveup is not supported"),
]


@pytest.mark.parametrize(("before", "after", "said"), ERRORS)
def test_errors_say_where(before: str, after: str, said: str, tmp_path: Path) -> None:
    text = samples.ADD
    assert before in text
    path = tmp_path / "add.ttir"
    path.write_text(text.replace(before, after))
    with pytest.raises(proton.CompilationError, match=said):
        proton.compile(path, target=HOPPER)
