"""Kernels from IR as Triton prints it, on the CPU: results, launches, profiles and errors."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import CPUTarget
from proton.compiler import IRSource
from proton.tools.tensor_descriptor import TensorDescriptor
from tests import triton_samples as samples

CPU = CPUTarget()


@pytest.fixture
def compiled(tmp_path: Path) -> Any:
    """A kernel of text in a file."""

    def compile_text(text: str, name: str = "kernel.ttir") -> Any:
        path = tmp_path / name
        path.write_text(text)
        return proton.compile(str(path), target=CPU)

    return compile_text


def floats(rng: Any, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 63, 200, 256])
def test_a_masked_sum(compiled: Any, rng: Any, n: int) -> None:
    kernel, (x, y) = compiled(samples.ADD), floats(rng, 2, 256)
    out = np.zeros(256, np.float32)
    kernel[(4, 1, 1)](x, y, out, n)
    np.testing.assert_array_equal(out, np.where(np.arange(256) < n, x + y, np.float32(0)))


def test_arguments_have_the_names_of_the_source(tmp_path: Path) -> None:
    path = tmp_path / "add.ttir"
    path.write_text(samples.ADD)
    source = IRSource(path)
    assert (source.name, [*source.arguments]) == ("add", ["x_ptr", "y_ptr", "out_ptr", "n"])
    assert [*source.signature.values()] == ["*fp32", "*fp32", "*fp32", "i32"]
    aligned = source.signature_for(proton.GPUTarget("cuda", 90)).divisible
    assert aligned == {"x_ptr", "y_ptr"}


@pytest.mark.parametrize("columns", [1, 5, 64])
def test_a_loop_with_reductions(compiled: Any, rng: Any, columns: int) -> None:
    kernel, x = compiled(samples.SOFTMAX), floats(rng, 7, 80)
    out = np.zeros_like(x)
    kernel[(3, 1, 1)](out, x, 80, 7, columns)
    exp = np.exp(x[:, :columns] - x[:, :columns].max(1, keepdims=True))
    np.testing.assert_allclose(out[:, :columns], exp / exp.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(out[:, columns:], 0)


def test_reductions_of_several_blocks_and_scans(compiled: Any, rng: Any) -> None:
    kernel, x = compiled(samples.ARGMAX), floats(rng, 32)
    out, sums = np.zeros(1, np.int32), np.zeros(32, np.float32)
    kernel[(1, 1, 1)](x, out, sums)
    assert out[0] == x.argmax()
    np.testing.assert_allclose(sums, x[::-1].cumsum()[::-1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("k", [0, 16, 80])
def test_products_in_a_loop(compiled: Any, rng: Any, k: int) -> None:
    kernel, a, b = compiled(samples.MATMUL), floats(rng, 16, k), floats(rng, k, 16)
    c = np.full((16, 16), np.nan, np.float32)
    kernel[(1, 1, 1)](a, b, c, k)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("n", "wanted"), [(0, [0, 0, 0]), (2, [2, 2, 0]), (7, [1, 1, 1])])
def test_returns_between_blocks(compiled: Any, n: int, wanted: list[float]) -> None:
    x = np.zeros(3, np.float32)
    compiled(samples.RETURNS)[(3, 1, 1)](x, n)
    np.testing.assert_array_equal(x, wanted)


def test_calls_that_stay_and_calls_that_do_not(compiled: Any, rng: Any) -> None:
    kernel, x = compiled(samples.CALLS), floats(rng, 16)
    total = x.sum()
    kernel[(1, 1, 1)](x, 5)
    np.testing.assert_allclose(x[0], 5 * 5 - (5 + 5) + total, rtol=1e-5)
    assert kernel.asm["ttir"].count("func.call") + kernel.asm["ttir"].count(" call ") == 1


def test_a_function_that_calls_itself(compiled: Any) -> None:
    text = samples.CALLS.replace(
        "arith.addf %a, %b : f32", "tt.call @lib.sum(%a, %b) : (f32, f32) -> f32"
    )
    with pytest.raises(proton.CompilationError, match=r"lib\.sum calls itself"):
        compiled(text)


def test_loops_without_a_count(compiled: Any) -> None:
    out = np.zeros(30, np.int64)
    compiled(samples.WHILE)[(30, 1, 1)](out)

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    np.testing.assert_array_equal(out, [steps(n) for n in range(1, 31)])


@pytest.mark.parametrize("padding", [0.0, np.nan])
def test_tensor_descriptors(compiled: Any, rng: Any, padding: float) -> None:
    text = samples.DESCRIPTORS
    if np.isnan(padding):
        # The host's is for blocks of another shape.
        text = text.replace("padding = 1", "padding = 2").replace("<8x16xf32>", "<8x32xf32>")
        text = text.replace("%d: !tt.tensordesc<8x32xf32>", "%d: !tt.tensordesc<8x16xf32>")
        text = re.sub(r"tensor<8x16xf32>", "tensor<8x32xf32>", text)
        text = re.sub(r" *tt.descriptor_store.*\n", "", text)
    kernel = compiled(text)
    x, d = floats(rng, 9, 18), np.zeros((8, 20), np.float32)
    before, width = x.copy(), 32 if np.isnan(padding) else 16
    kernel[(1, 1, 1)](TensorDescriptor.from_tensor(d, [8, 16]), x, 9, 18)
    wide = np.full((12, 36), padding, np.float32)
    wide[:9, :18] = before
    block = wide[4:12, 4 : 4 + width]
    if width == 16:
        np.testing.assert_allclose(d[:, 4:], block + np.float32(20), rtol=1e-6)
        np.testing.assert_array_equal(d[:, :4], 0)
    before[:8, :width] += block[:, : min(width, 18)]
    np.testing.assert_allclose(x, before, rtol=1e-6)


MOVES = samples.around("""\
    %0 = tt.addptr %ps, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %1 = tt.load %0 : tensor<64x!tt.ptr<f32>>
    %2 = tt.reshape %1 allow_reorder : tensor<64xf32> -> tensor<4x16xf32>
    %3 = tt.trans %2 {order = array<i32: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
    %4 = tt.reshape %3 : tensor<16x4xf32> -> tensor<32x2xf32>
    %5, %6 = tt.split %4 : tensor<32x2xf32> -> tensor<32xf32>
    %7 = tt.cat %6, %5 : tensor<32xf32> -> tensor<64xf32>
    %8 = tt.addptr %qs, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %9 = tt.load %8 : tensor<64x!tt.ptr<i32>>
    %10 = tt.gather %7[%9] {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
    tt.store %0, %10 : tensor<64x!tt.ptr<f32>>
    %11 = tt.histogram %9, %m : tensor<64xi32> -> tensor<64xi32>
    tt.store %8, %11 : tensor<64x!tt.ptr<i32>>""")


def test_moves_of_elements(compiled: Any, rng: Any) -> None:
    kernel, p = compiled(MOVES), floats(rng, 64)
    q = rng.integers(0, 64, 64).astype(np.int32)
    pairs = p.reshape(4, 16).T.reshape(32, 2)
    wanted = np.concatenate([pairs[:, 1], pairs[:, 0]])[q]
    counts = np.bincount(q, minlength=64)
    desc = TensorDescriptor.from_tensor(np.zeros((4, 32), np.float32), [1, 32])
    kernel[(1, 1, 1)](p, q, 0, 0.0, True, desc)
    np.testing.assert_array_equal(p, wanted)
    np.testing.assert_array_equal(q, counts)


NUMBERS = samples.around("""\
    %0 = tt.addptr %ps, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %1 = tt.load %0, %m, %x : tensor<64x!tt.ptr<f32>>
    %2 = tt.splat %s : f32 -> tensor<64xf32>
    %3 = tt.clampf %1, %2, %x, propagateNan = none : tensor<64xf32>
    %4 = tt.fp_to_fp %3, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
    %5 = tt.fp_to_fp %4 : tensor<64xf8E5M2> -> tensor<64xf16>
    %6 = tt.fp_to_fp %5, rounding = rtne : tensor<64xf16> -> tensor<64xbf16>
    %7 = tt.fp_to_fp %6 : tensor<64xbf16> -> tensor<64xf32>
    %8 = tt.precise_divf %7, %x : tensor<64xf32>
    %9 = tt.extern_elementwise %8 {libname = "", libpath = "", pure = true, symbol = "__nv_fabsf"} \
: (tensor<64xf32>) -> tensor<64xf32>
    %10 = tt.precise_sqrt %9 : tensor<64xf32>
    %11 = tt.bitcast %10 : tensor<64xf32> -> tensor<64xi32>
    %12 = tt.mulhiui %11, %11 : tensor<64xi32>
    %13 = tt.addptr %qs, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %14 = tt.atomic_rmw umax, acq_rel, gpu, %13, %12, %m : (tensor<64x!tt.ptr<i32>>, \
tensor<64xi32>, tensor<64xi1>) -> tensor<64xi32>
    %15 = tt.atomic_cas relaxed, cta, %q, %n, %n : (!tt.ptr<i32>, i32, i32) -> i32
    tt.store %0, %10 : tensor<64x!tt.ptr<f32>>""")


def test_numbers_and_atomics(compiled: Any, rng: Any) -> None:
    kernel, p = compiled(NUMBERS), floats(rng, 64) * 2
    q = rng.integers(0, 1 << 30, 64).astype(np.int32)
    clipped = np.clip(p, np.float32(-1), np.float32(1.5)).astype(np.float64)
    # fp8e5: two bits behind the first one, down to 2^-14; rint rounds ties to even.
    step = 2.0 ** (np.maximum(np.frexp(clipped)[1] - 1, -14) - 2)
    number = np.abs((np.rint(clipped / step) * step).astype(np.float32) / np.float32(1.5))
    root = np.sqrt(number)
    words = root.view(np.uint32).astype(np.uint64)
    upper = (words * words >> 32).astype(np.int32)
    desc = TensorDescriptor.from_tensor(np.zeros((4, 32), np.float32), [1, 32])
    wanted = np.maximum(q, upper)
    kernel[(1, 1, 1)](p, q, 0, -1.0, True, desc)
    np.testing.assert_array_equal(q, wanted)
    np.testing.assert_array_equal(p, root)


def test_lines_are_those_of_the_file(compiled: Any, rng: Any) -> None:
    """Where the text names a source, they are those of the source."""
    with proton.knobs.scope(check_bounds=True):
        kernel, x = compiled(samples.ADD, "add.ttir"), floats(rng, 128)
        with pytest.raises(proton.BoundsError, match=r"kernels/add\.py:7"):
            kernel[(2, 1, 1)](x, x[:100], x, 128)
        line = samples.ADD[: samples.ADD.index("    tt.store")].count("\n") + 1
        with pytest.raises(proton.BoundsError, match=rf"add\.ttir:{line}:5"):
            kernel[(2, 1, 1)](x, x, x[:100].copy(), 128)


@proton.jit(do_not_specialize=["n"])
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) - tl.load(y_ptr + i), i < n)


def test_in_the_place_of_a_kernel(rng: Any, tmp_path: Path) -> None:
    path, (x, y) = tmp_path / "add.ttir", floats(rng, 2, 128)
    path.write_text(samples.ADD)
    out = np.zeros(128, np.float32)
    add[(2,)](x, y, out, 100, BLOCK=64, ir_override=path)
    np.testing.assert_array_equal(out[:100], (x + y)[:100])
    config = proton.Config({"BLOCK": 64}, ir_override=str(path))
    proton.autotune(configs=[config], key=[])(add)[(2,)](x, y, out, 128)
    np.testing.assert_array_equal(out, x + y)


def test_kernels_are_in_profiles(compiled: Any, rng: Any) -> None:
    kernel, x = compiled(samples.ADD), floats(rng, 64)
    with proton.profile("ir") as run:
        kernel[(1, 1, 1)](x, x, x, 64)
    assert list(run.launches.kernel) == ["add"]


def test_layouts_are_for_gpus(compiled: Any) -> None:
    with pytest.raises(proton.CompilationError, match=r"IR for cpu is in \.ttir files"):
        compiled(samples.ROW_SUMS, "rows.ttgir")
