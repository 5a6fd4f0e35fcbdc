"""Kernels from files of IR on the CPU: the same results as from Python, launches, and errors."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import CPUTarget
from proton.compiler import IRSource
from proton.runtime import driver
from proton.tools.tensor_descriptor import TensorDescriptor

CPU = CPUTarget()
BLOCK = 128


@proton.jit
def shifted(x):
    return tl.load(x) + 1


@proton.jit(noinline=True)
def scaled(pointers, factor):
    return tl.load(pointers) * factor


@proton.jit(do_not_specialize=["n"])
def axpy(x_ptr, y_ptr, out_ptr, n, a, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, a * x + y, mask=mask)


@proton.jit
def calls(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, scaled(x_ptr + offsets, 2) + shifted(x_ptr))


@proton.jit
def pair(both, out_ptr, flag, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.device_assert(both[1] > 0, "positive")
    x = tl.load(both[0] + offsets)
    if flag:
        x += both[1]
    tl.store(out_ptr + offsets, x)


@proton.jit
def block(desc, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out_ptr + i * N + j, desc.load([1, 2]))


@proton.jit
def nothing():
    pass


@pytest.fixture
def ir(tmp_path: Path) -> Any:
    """Writes a file of IR; gives its path."""

    def write(text: str, name: str = "kernel.ttir") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def text_of(kernel: Any, *args: object, **kwargs: object) -> str:
    """The ttir of a kernel for such arguments."""
    text: str = kernel.warmup(*args, **kwargs).asm["ttir"]
    return text


ADD_ONE = """
module {
  func.func @plus(%x: !tt.ptr<i32>, %by: i32 {tt.divisibility = 4 : i32}) {
    %i = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
    %p = "tt.splat"(%x) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
    %q = "tt.addptr"(%p, %i) : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<i32>>
    %v = "tt.load"(%q) {cache = "", evict = "", volatile = false,
      operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<8x!tt.ptr<i32>>) -> tensor<8xi32>
    %b = "tt.splat"(%by) : (i32) -> tensor<8xi32>
    %s = arith.addi %v, %b : tensor<8xi32>
    "tt.store"(%q, %s) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>}
      : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> ()
    return
  }
}
"""


@pytest.mark.parametrize("n", [0, 1, BLOCK - 1, 5 * BLOCK + 3])
def test_a_kernel_of_its_own_ir_computes_the_same(ir: Any, rng: Any, n: int) -> None:
    x, y = rng.standard_normal((2, max(n, 1))).astype(np.float32)
    wanted, out = np.zeros_like(x), np.zeros_like(x)
    grid = (proton.cdiv(n, BLOCK), 1, 1)
    compiled = axpy[grid](x, y, wanted, n, 0.7, BLOCK=BLOCK)
    kernel = proton.compile(str(ir(compiled.asm["ttir"])), target=CPU)
    assert kernel.name == "axpy"
    lines = [sorted(k.asm["ttir"].splitlines()) for k in (kernel, compiled)]
    assert lines[0] == lines[1]  # constants may stand in another order
    kernel[grid](x, y, out, n, 0.7)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_allclose(out[:n], 0.7 * x[:n] + y[:n], rtol=1e-5, atol=1e-6)


def test_functions_tuples_and_descriptors_go_through(ir: Any, rng: Any) -> None:
    x, out = rng.integers(-99, 99, BLOCK).astype(np.int32), np.zeros(BLOCK, np.int32)
    kernel = proton.compile(ir(text_of(calls, x, out, BLOCK=BLOCK)), target=CPU)
    kernel[(1,)](x, out)
    np.testing.assert_array_equal(out, 2 * x + x[0] + 1)

    text = text_of(pair, (x, 7), out, True, BLOCK=BLOCK, debug=True)
    kernel = proton.compile(ir(text, "pair.ttir"), target=CPU)
    for flag in (True, False):  # both[0] and both[1] are no names
        kernel[(1,)](x, 7, out, flag)
        np.testing.assert_array_equal(out, x + 7 * flag)
    with pytest.raises(AssertionError, match="positive"):
        kernel[(1,)](x, -7, out, True)

    table = rng.standard_normal((9, 16)).astype(np.float32)
    desc, tile = TensorDescriptor.from_tensor(table, [4, 8]), np.zeros((4, 8), np.float32)
    kernel = proton.compile(ir(text_of(block, desc, tile, 4, 8), "block.ttir"), target=CPU)
    kernel[(1,)](table, 9, 16, 16, tile)  # a descriptor is its parts behind the front end
    np.testing.assert_array_equal(tile, table[1:5, 2:10])
    text = """module { func.func @whole(%d: !tt.tensordesc<tensor<4x8xf32>, "zero">,
        %o: !tt.tensordesc<tensor<4x8xf32>, "zero">) attributes {tt.kernel} {
      %c = arith.constant 0 : i32
      %b = "tt.descriptor_load"(%d, %c, %c) {cache = "", evict = "",
        operandSegmentSizes = array<i32: 1, 2>}
        : (!tt.tensordesc<tensor<4x8xf32>, "zero">, i32, i32) -> tensor<4x8xf32>
      "tt.descriptor_store"(%o, %b, %c, %c) {operandSegmentSizes = array<i32: 1, 1, 2>}
        : (!tt.tensordesc<tensor<4x8xf32>, "zero">, tensor<4x8xf32>, i32, i32) -> ()
      return } }"""
    whole, copy = proton.compile(ir(text, "whole.ttir"), target=CPU), np.zeros_like(table)
    whole[(1,)](desc, TensorDescriptor.from_tensor(copy, [4, 8]))
    np.testing.assert_array_equal(copy[:4, :8], table[:4, :8])
    assert not copy[4:].any()


def test_ir_by_hand_needs_no_attributes(ir: Any, rng: Any) -> None:
    path = ir(ADD_ONE)
    kernel = proton.compile(path, target=CPU)
    assert kernel.name == "plus"
    x = rng.integers(-(1 << 31), 1 << 31, 8, dtype=np.int64).astype(np.int32)
    before = x.copy()
    kernel[(1,)](x, 4)
    np.testing.assert_array_equal(x, before + np.int32(4))
    unsigned = x.view(np.uint32)  # of elements IR may not say the sign
    kernel[(1,)](unsigned, -4)
    np.testing.assert_array_equal(x, before)
    signs = path.with_name("signs.ttir")
    signs.write_text(ADD_ONE.replace("{tt.divisibility = 4 : i32}", "{tt.unsigned}"))
    without = proton.compile(signs, target=CPU)
    without[(1,)](x, (1 << 32) - 4)
    np.testing.assert_array_equal(x, before - np.int32(4))
    with pytest.raises(proton.LaunchError, match="argument arg1 = -4 does not fit in u32"):
        without[(1,)](x, -4)
    without[(1,)](x, 4)
    kernel[(1,)](x.ctypes.data, 4)  # an address
    np.testing.assert_array_equal(x, before + np.int32(4))
    kernel[(0,)](x, 4)
    np.testing.assert_array_equal(x, before + np.int32(4))


def test_what_a_launch_cannot_give(ir: Any) -> None:
    kernel, x = proton.compile(ir(ADD_ONE), target=CPU), np.zeros(8, np.int32)
    for args, text in (
        ((x, 6), "argument arg1 = 6 must be a multiple of 4"),
        ((x,), "takes its 2 arguments"),
        ((x.astype(np.int64), 4), r"argument arg0 must be \*i32, got an array of i64|int64"),
        ((x.view(np.float32), 4), r"argument arg0 must be .*, got an array of"),
        ((x, 1 << 32), "argument arg1 = 4294967296 does not fit"),
        ((x, 0.5), "argument arg1 = 0.5 does not fit"),
        ((x, None), "arg1"),
        ((None, 4), "arg0"),
        ((True, 4), "arg0"),
    ):
        with pytest.raises(proton.LaunchError, match=text):
            kernel[(1,)](*args)
    assert not x.any()


def test_a_kernel_without_arguments(ir: Any) -> None:
    kernel = proton.compile(ir(text_of(nothing)), target=CPU)
    kernel[(3, 2)]()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("module {", r"kernel.ttir:1:\d+: expected operation name"),
        ("", "has no functions that may be its kernel"),
        ("module {}", "has no functions that may be its kernel"),
        (ADD_ONE.replace("%s)", "%z)"), r"kernel.ttir:11:\d+: use of undeclared SSA value name"),
        (ADD_ONE.replace("start = 0", "start = 9"), r"kernel.ttir:4:\d+: 'tt.make_range'"),
        (ADD_ONE.replace('"tt.load"', '"tt.lode"'), r":7:\d+: unregistered operation 'tt.lode'"),
        (ADD_ONE.replace("%by: i32", "%by: f16"), r":9:\d+: use of value '%by' expects different"),
        (
            "module { tt.func public @k(%x : i32) { tt.turn } }",
            r":1:40: custom op 'tt\.turn' is unknown",
        ),
        (ADD_ONE.replace("!tt.ptr<i32>, %by", "tensor<8xi32>, %by"), "kernel.ttir"),
        (
            "module { func.func @a(%x: f16) { return } }",
            "argument 0 of the kernel has type f16, and no launch can give it one",
        ),
        (
            'module { func.func @a(%x: !tt.ptr<i32> {tt.element = "fp32"}) { return } }',
            "argument 0 of the kernel has type .*ptr<i32> of fp32, and no launch",
        ),
        (
            "module { func.func @a(%x: !tt.ptr<i32> {tt.divisibility = 32 : i32}) { return } }",
            "argument 0 of the kernel is a pointer that 32 divides",
        ),
        (
            "module { func.func @a() { return } func.func @b() { return } }",
            "has 2 functions that may be its kernel",
        ),
    ],
)
def test_what_does_not_parse_is_an_error_with_its_place(ir: Any, text: str, error: str) -> None:
    path = ir(text)
    with pytest.raises(proton.CompilationError, match=error):
        proton.compile(path, target=CPU)


def test_files_that_are_none(ir: Any, tmp_path: Path) -> None:
    with pytest.raises(proton.ProtonError, match=r"cannot read IR from .*none\.ttir"):
        proton.compile(str(tmp_path / "none.ttir"), target=CPU)
    binary = tmp_path / "binary.ttir"
    binary.write_bytes(b"\xff\x00\xfe")
    with pytest.raises(proton.ProtonError, match="cannot read IR"):
        proton.compile(binary, target=CPU)
    for name in ("kernel.ttgir", "kernel.mlir", "kernel"):
        text = 'module attributes {"ttg.num-warps" = 4 : i32}' + ADD_ONE.removeprefix("\nmodule")
        with pytest.raises(proton.CompilationError, match=r"IR for cpu is in \.ttir files"):
            proton.compile(ir(text, name), target=CPU)
    with pytest.raises(TypeError, match="ASTSource, or the path of a file of IR, got 5"):
        proton.compile(5, target=CPU)


def test_what_a_source_says_of_itself(ir: Any) -> None:
    path = ir(ADD_ONE)
    source = IRSource(path)
    assert (source.name, source.ext, source.src) == ("plus", "ttir", ADD_ONE)
    assert (source.path, source.signature) == (str(path), {0: "*i32", 1: "i32"})
    assert source.parse_options() == {}
    assert source.hash() == IRSource(path).hash() != IRSource(ir(ADD_ONE + " ")).hash()
    kernel = proton.compile(source, target=CPU)
    assert kernel.asm["source"] == ADD_ONE
    with pytest.raises(proton.UnsupportedLanguageConstruct, match="kernels do not call it"):
        kernel.fn.parse()
    assert str(path) in proton.compile(path, target=CPU).asm["llvm"] + kernel.fn.file


def test_a_file_that_changes_is_compiled_anew(ir: Any) -> None:
    x = np.zeros(8, np.int32)
    first = proton.compile(ir(ADD_ONE), target=CPU)
    again = proton.compile(ir(ADD_ONE), target=CPU)
    assert again.from_cache
    assert again.key == first.key
    second = proton.compile(ir(ADD_ONE.replace("arith.addi", "arith.subi")), target=CPU)
    assert second.key != first.key
    first[(1,)](x, 8)
    second[(1,)](x, 4)
    np.testing.assert_array_equal(x, np.full(8, 4))


def test_bounds_are_checked_at_their_place_in_the_file(ir: Any) -> None:
    kernel, x = proton.compile(path := ir(ADD_ONE), target=CPU), np.zeros(9, np.int32)
    with_calls = text_of(calls, x, x, BLOCK=8)
    with proton.knobs.scope(check_bounds=True):
        kernel[(1,)](x, 4)
        with pytest.raises(proton.BoundsError, match=re.escape(f"{path}:7:")):
            kernel[(1,)](x[:7], 4)
        kernel[(1,)](x.ctypes.data, 4)
        called = proton.compile(ir(with_calls, "calls.ttir"), target=CPU)
        with pytest.raises(proton.CompilationError, match="functions besides its kernel"):
            called[(1,)](x, x)


def test_ir_kernels_are_in_profiles(ir: Any) -> None:
    kernel, x = proton.compile(ir(ADD_ONE), target=CPU), np.zeros(8, np.int32)
    with proton.profile("ir") as run:
        kernel[(1,)](x, 4)
    assert list(run.launches.kernel) == ["plus"]


def test_ir_runs_as_it_is_under_the_interpreter(ir: Any) -> None:
    with proton.knobs.scope(interpret=True):
        kernel, x = proton.compile(ir(ADD_ONE), target=CPU), np.zeros(8, np.int32)
        kernel[(1,)](x, 4)
    np.testing.assert_array_equal(x, np.full(8, 4))


# ir_override


def test_ir_in_the_place_of_a_kernel(ir: Any, rng: Any) -> None:
    x, y = rng.standard_normal((2, BLOCK)).astype(np.float32)
    out = np.zeros_like(x)
    text = text_of(axpy, x, y, out, BLOCK, 0.5, BLOCK=BLOCK)
    path = ir(text.replace("arith.mulf", "arith.divf"))
    axpy[(1,)](x, y, out, BLOCK, 2.0, BLOCK=BLOCK, ir_override=str(path))
    np.testing.assert_allclose(out, 2.0 / x + y, rtol=1e-5)
    axpy[(1,)](x, y, out, BLOCK, 2.0, BLOCK=BLOCK)
    np.testing.assert_allclose(out, 2.0 * x + y, rtol=1e-5, atol=1e-6)
    with pytest.raises(proton.CompilationError, match=r"takes \(.*\), and the launch gives \(.*\)"):
        axpy[(1,)](x, y, out, BLOCK, 2, BLOCK=BLOCK, ir_override=path)
    with pytest.raises(proton.ProtonError, match="cannot read IR"):
        axpy[(1,)](x, y, out, BLOCK, 2.0, BLOCK=BLOCK, ir_override="/no/such.ttir")


def test_a_file_that_is_another_one_by_the_next_launch_is_read_again(ir: Any, rng: Any) -> None:
    x = rng.standard_normal(BLOCK).astype(np.float32)
    out = np.zeros_like(x)
    text = text_of(axpy, x, x, out, BLOCK, 0.5, BLOCK=BLOCK)
    path = ir(text)
    for op, expected in (("subf", 2.0 - x + x), ("mulf", 2.0 * x + x), ("subf", 2.0 - x + x)):
        path.write_text(text.replace("arith.mulf", f"arith.{op}"))
        for _ in range(2):
            axpy[(1,)](x, x, out, BLOCK, 2.0, BLOCK=BLOCK, ir_override=path)
            np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_a_configuration_may_bring_its_ir(ir: Any, rng: Any) -> None:
    x = rng.standard_normal(BLOCK).astype(np.float32)
    out = np.zeros_like(x)
    text = text_of(axpy, x, x, out, BLOCK, 0.5, BLOCK=BLOCK)
    path = str(ir(text.replace("arith.mulf", "arith.subf")))
    config = proton.Config({"BLOCK": BLOCK}, ir_override=path)
    assert config.all_kwargs()["ir_override"] == path
    assert f"ir_override: {path}" in str(config)
    assert config != proton.Config({"BLOCK": BLOCK})
    tuned = proton.autotune(configs=[config], key=[])(axpy)
    tuned[(1,)](x, x, out, BLOCK, 2.0)
    np.testing.assert_allclose(out, (2.0 - x) + x, rtol=1e-5)
    # Tried among others, it is measured as they are.
    two = [config, proton.Config({"BLOCK": BLOCK // 2})]
    tuned = proton.autotune(configs=two, key=[], do_bench=lambda call, quantiles: call() or [1.0])(
        axpy
    )
    tuned[(2,)](x, x, out, BLOCK, 2.0)
    assert set(tuned.configs_timings) == set(two)


def test_the_current_target_is_the_default(ir: Any) -> None:
    if driver.active.get_current_target() != CPU:
        pytest.skip("there is a GPU")
    x = np.zeros(8, np.int32)
    proton.compile(str(ir(ADD_ONE)))[(1, 1, 1)](x, 4)
    np.testing.assert_array_equal(x, np.full(8, 4))
