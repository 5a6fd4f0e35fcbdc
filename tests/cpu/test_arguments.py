"""What a launch refuses, and what it says."""

import enum
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import LaunchError, knobs
from tests.cpu.harness import kernels_of


@proton.jit
def fill(out_ptr, value, n, BLOCK: tl.constexpr = 64):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, value, mask=offs < n)


def launch(*args: Any, grid: Any = (1,), **kwargs: Any) -> None:
    fill[grid](*args, **kwargs)


def out() -> np.ndarray:
    return np.zeros(64, np.float32)


# Numbers


@pytest.mark.parametrize(
    "value, type_",
    [
        (1, None),
        (0, "i32"),
        (-(2**31), "i32"),
        (2**31, "i64"),
        (-(2**31) - 1, "i64"),
        (2**63 - 1, "i64"),
        (2**63, "u64"),
        (2**64 - 1, "u64"),
        (np.int8(3), "i32"),
        (np.uint64(2**63), "u64"),
        (True, "u1"),
        (np.True_, "u1"),
        (1.5, "fp32"),
        (np.float64(2.5), "fp32"),
        (np.float16(0.5), "fp32"),
    ],
)
def test_numbers_reach_the_kernel(value: Any, type_: str | None) -> None:
    x = np.zeros(64, np.float64)
    launch(x, value, 64)
    assert (x == float(value)).all()


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_integers_beyond_64_bits_are_refused(value: int) -> None:
    with pytest.raises(LaunchError, match=r"argument value .* 64 bits"):
        launch(out(), value, 64)


ANNOTATED = """
@proton.jit
def kernel(out_ptr, value: {annotation}):
    tl.store(out_ptr, value)
"""


@pytest.mark.parametrize(
    "annotation, value, stored",
    [
        ("tl.int8", 100, np.int8),
        ("tl.int64", 1, np.int64),
        ('"i16"', -5, np.int16),
        ("tl.int1", True, np.int8),
        ('"u1"', 3, np.int8),  # its lowest bit
        ('"u1"', 4, np.int8),
        ("tl.uint8", 255, np.uint8),
        ("tl.uint64", 2**64 - 1, np.uint64),
        ("tl.float64", 0.1, np.float64),
        ("tl.float32", 3, np.float32),
        ('"fp32"', 0.5, np.float32),
    ],
)
def test_annotations_give_a_type(annotation: str, value: Any, stored: Any) -> None:
    x = np.zeros(1, stored)
    kernels_of(ANNOTATED.format(annotation=annotation)).kernel[(1,)](x, value)
    assert x[0] == stored(value & 1 if annotation in ("tl.int1", '"u1"') else value)


@pytest.mark.parametrize(
    "annotation, value",
    [("tl.int8", 128), ("tl.uint8", -1), ('"i16"', 1 << 15), ("tl.uint32", 1 << 32)],
)
def test_numbers_that_do_not_fit_their_annotation_are_refused(annotation: str, value: int) -> None:
    kernel = kernels_of(ANNOTATED.format(annotation=annotation)).kernel
    with pytest.raises(LaunchError, match=rf"argument value = {value} does not fit"):
        kernel[(1,)](np.zeros(1, np.int64), value)


@pytest.mark.parametrize(
    "annotation",
    ["int", "torch.Tensor", "list[int]", "np.ndarray | None", "hello", "AN_ARRAY", "(B, T)", "a b"],
)
def test_a_postponed_annotation_that_is_no_type_of_ours_says_nothing(annotation: str) -> None:
    """With `from __future__ import annotations` each annotation is its text."""
    x = np.zeros(1, np.int64)
    kernels_of(ANNOTATED.format(annotation=repr(annotation))).kernel[(1,)](x, 7)
    assert x[0] == 7


@pytest.mark.parametrize("annotation", ["tl.flaot32", "fp23", "*i31"])
def test_a_misspelled_type_is_refused(annotation: str) -> None:
    with pytest.raises(TypeError, match="no type is written"):
        kernels_of(ANNOTATED.format(annotation=repr(annotation)))


@pytest.mark.parametrize("annotation", ["tl.void", '"void"', "tl.block_type(tl.int32, [4])"])
def test_a_type_that_no_argument_has_is_refused(annotation: str) -> None:
    with pytest.raises(TypeError, match=r"value is annotated as .*, and an argument is a"):
        kernels_of(ANNOTATED.format(annotation=annotation))


def test_a_float_for_an_integer_is_refused() -> None:
    kernel = kernels_of(ANNOTATED.format(annotation="tl.int32")).kernel
    with pytest.raises(LaunchError, match="value"):
        kernel[(1,)](np.zeros(1, np.int32), 1.5)


@pytest.mark.parametrize("annotation", ["tl.float16", '"bf16"', "tl.float8e5"])
def test_narrow_floats_are_rounded(annotation: str) -> None:
    kernel, x = kernels_of(ANNOTATED.format(annotation=annotation)).kernel, np.zeros(1, np.float32)
    kernel[(1,)](x, 1.3)
    rounded = {"tl.float16": np.float16(1.3), '"bf16"': 1.296875, "tl.float8e5": 1.25}
    assert x[0] == rounded[annotation]


# Pointers


@pytest.mark.parametrize("value", ["text", [1, 2], {"a": 1}, object(), 1j, b"bytes"])
def test_what_is_neither_array_nor_number_is_refused(value: Any) -> None:
    with pytest.raises(LaunchError, match="argument value must be an array"):
        launch(out(), value, 64)


@pytest.mark.parametrize("annotation", ["tl.int32", '"*i32"'])
def test_arrays_must_have_the_annotated_type(annotation: str) -> None:
    kernel = kernels_of(ANNOTATED.format(annotation=annotation)).kernel
    with pytest.raises(LaunchError, match="argument value must be"):
        kernel[(1,)](out(), np.zeros(3, np.float32))


CONST = """
@proton.jit
def kernel(x_ptr: {annotation}, out_ptr, WRITES: tl.constexpr):
    tl.store(x_ptr if WRITES else out_ptr, tl.load(x_ptr) + 1)
"""


@pytest.mark.parametrize(
    "annotation",
    [
        *("tl.const", '"const"', '"*k"', '"*kfp64"', '"const *fp64"', '"const double*"'),
        *('"const tl.float64 *"', "tl.pointer_type(tl.float64, const=True)"),
    ],
)
def test_pointers_to_const(annotation: str) -> None:
    """By Triton's forms of an annotation: what is written through one is refused."""
    x, result = np.ones(1), np.zeros(1)
    kernel = kernels_of(CONST.format(annotation=annotation)).kernel
    assert kernel.params[0].is_const
    kernel[(1,)](x, result, False)
    assert result[0] == 2
    with pytest.raises(
        proton.CompilationError, match=r"tl\.const out of the parameter's annotation"
    ):
        kernel[(1,)](x, result, True)


@pytest.mark.parametrize("annotation", ['"*fp64"', '"double*"', '"tl.float64*"', '"float64 *"'])
def test_pointers_by_cs_names(annotation: str) -> None:
    kernel = kernels_of(CONST.format(annotation=annotation)).kernel
    x = np.ones(1)
    kernel[(1,)](x, x, True)
    assert x[0] == 2
    with pytest.raises(LaunchError, match="argument x_ptr must be"):
        kernel[(1,)](np.ones(1, np.float32), x, True)


class ByDlpack:
    """An array of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class BrokenDlpack(ByDlpack):
    def __dlpack__(self, **kwargs: Any) -> Any:
        raise BufferError("cannot export")


def test_arrays_of_other_libraries_come_by_dlpack() -> None:
    x = out()
    launch(ByDlpack(x), 2.5, 64)
    assert (x == 2.5).all()
    with pytest.raises(LaunchError, match="cannot export"):
        launch(BrokenDlpack(x), 2.5, 64)


def test_reinterpret() -> None:
    bits = np.zeros(64, np.uint32)
    launch(proton.reinterpret(bits, tl.float32), 1.0, 64)
    assert (bits.view(np.float32) == 1).all()
    launch(proton.reinterpret(proton.reinterpret(bits, tl.float32), tl.int32), -1, 64)
    assert (bits == 0xFFFFFFFF).all()
    with pytest.raises(LaunchError, match="4 bytes"):
        proton.reinterpret(bits, tl.float16)
    with pytest.raises(LaunchError, match="must be an array"):
        proton.reinterpret("text", tl.float16)


def test_cpu_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.zeros(64, dtype=torch.bfloat16)
    launch(x, 2.5, 64)
    assert (x == 2.5).all()
    for dtype in (torch.float8_e5m2, torch.float8_e4m3fn):
        x = torch.zeros(64, dtype=dtype)
        launch(x, 2.5, 64)
        assert (x.float() == 2.5).all()
    for name in ("float8_e8m0fnu", "float4_e2m1fn_x2"):  # bytes
        if dtype := getattr(torch, name, None):
            codes = torch.zeros(64, dtype=torch.uint8)
            launch(codes.view(dtype), 3.0, 64)
            assert (codes == 3).all()


# Binding


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((), {}, "missing"),
        ((1, 2, 3, 4, 5), {}, "positional"),
        ((1, 2), {"m": 3}, "unexpected keyword argument 'm'"),
        ((1, 2, 3), {"n": 3}, "multiple values"),
    ],
)
def test_arguments_that_do_not_bind(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(*args, **kwargs)


def test_defaults_keywords_and_gpu_options() -> None:
    for kwargs in ({}, {"BLOCK": 32}, {"num_warps": 4, "num_stages": 2}, {"maxnreg": 64}):
        x = out()
        launch(x, 3.0, n=20, **kwargs)
        assert (x[:20] == 3).all()
        assert (x[20:] == 0).all()


def test_none_and_constexprs_as_arguments() -> None:
    source = """
@proton.jit
def kernel(out_ptr, x_ptr, n, NAME: tl.constexpr):
    value = 0
    if x_ptr is not None:
        value = tl.load(x_ptr)
    if NAME == "double":
        value = value * 2
    tl.store(out_ptr + n, value + n)
"""
    kernel, x = kernels_of(source).kernel, np.zeros(4, np.int32)
    kernel[(1,)](x, None, tl.constexpr(2), "single")
    kernel[(1,)](x, np.full(1, 5, np.int32), 1, NAME="double")
    assert x.tolist() == [0, 11, 2, 0]


def test_unhashable_constexprs_are_refused() -> None:
    with pytest.raises(LaunchError, match="hashable"):
        launch(out(), 1.0, 64, BLOCK=[64])


@pytest.mark.parametrize(
    "value", [64, np.int64(64), tl.constexpr(64), enum.IntEnum("B", {"X": 64}).X]
)
def test_constexpr_numbers(value: Any) -> None:
    x = out()
    launch(x, 1.0, 64, BLOCK=value)
    assert (x == 1).all()


VARIABLE = """
@proton.jit
def total(*parts):
    result = 0.0
    for i in tl.static_range(len(parts)):
        result += parts[i]
    return result

@proton.jit(noinline=True)
def last(first, *parts):
    return parts[len(parts) - 1] + first

@proton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, total(x, 1.0, x) + total() + last(100.0, x, 2 * x))
"""


def test_functions_with_variable_arguments_can_be_called() -> None:
    module, x = kernels_of(VARIABLE), np.full(1, 3.0, np.float32)
    module.kernel[(1,)](x)
    assert x[0] == 3.0 + 1.0 + 3.0 + 0.0 + 6.0 + 100.0
    with pytest.raises(TypeError, match=r"JIT functions do not support \*\*kwargs"):
        kernels_of("\n@proton.jit\ndef kernel(out_ptr, **options):\n    pass\n")


def test_unknown_options_of_jit() -> None:
    with pytest.raises(TypeError, match="no option 'inline'"):
        proton.jit(inline=True)


def test_a_kernel_is_not_called_directly() -> None:
    with pytest.raises(RuntimeError, match=r"fill\[grid\]"):
        fill(out(), 1.0, 64)


# Grids


@pytest.mark.parametrize(
    "grid, message",
    [
        ((), "1 to 3 sizes"),
        ((1, 1, 1, 1), "1 to 3 sizes"),
        ((-1,), "negative"),
        ((2, -5), r"grid\[1\]"),
        ((1.5,), "integer"),
        (("2",), "integer"),
        (None, "integer"),
        ((1 << 31,), "fewer than"),
        ((1 << 16, 1 << 16), "fewer than"),
        (lambda arguments: (-1,), "negative"),
    ],
)
def test_grids_that_are_refused(grid: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(out(), 1.0, 64, grid=grid)


@pytest.mark.parametrize("grid", [(np.int64(2),), [2, np.uint8(1)], (True, 2)])
def test_sizes_are_whatever_counts_as_an_integer(grid: Any) -> None:
    x = np.zeros(128, np.float32)
    launch(x, 1.0, 128, grid=grid)
    assert x[:64].all()


@pytest.mark.parametrize("threads", [0, -1, 2.5, "4"])
def test_thread_counts_are_positive(threads: Any) -> None:
    with knobs.scope(num_threads=threads), pytest.raises(LaunchError, match="at least 1"):
        launch(np.zeros(6400, np.float32), 1.0, 6400, grid=(100,))


def test_warmup_compiles_without_launching() -> None:
    kernel = fill.warmup(tl.float32, 2.0, 64, BLOCK=16)
    assert kernel.name == "fill"
    x = out()
    launch(x, 2.0, 64, BLOCK=16)
    assert (x[:16] == 2).all()


@pytest.mark.interpreted
def test_device_assertions() -> None:
    source = """
@proton.jit(debug={debug})
def kernel(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_assert(x >= 0, "negative number")
"""
    bad = np.array([1, 2, -3, 4], np.int32)
    with pytest.raises(AssertionError, match="negative number"):
        kernels_of(source.format(debug=True)).kernel[(1,)](bad, N=4)
    kernels_of(source.format(debug=True)).kernel[(1,)](np.abs(bad), N=4)
    kernels_of(source.format(debug=False)).kernel[(1,)](bad, N=4)
    for jitted in (True, False):  # the launch has the last word, and is no other kernel's
        kernel = kernels_of(source.format(debug=jitted)).kernel
        with pytest.raises(AssertionError, match="negative number"):
            kernel[(1,)](bad, N=4, debug=True)
        kernel[(1,)](bad, N=4, debug=False)
        with proton.knobs.scope(debug=True):  # of all kernels, whatever they and launches say
            for options in ({}, {"debug": False}, {"debug": None}, {"debug": True}):
                with pytest.raises(AssertionError, match="negative number"):
                    kernel[(1,)](bad, N=4, **options)
        kernel[(1,)](bad, N=4, debug=False)


@proton.jit
def steps(out_ptr, start, stop, step):
    for i in range(start, stop, step):
        tl.store(out_ptr, i)


@pytest.mark.parametrize("step", [-7, 0])
def test_a_step_of_the_run_time_is_positive(step: int) -> None:
    """As in Triton; debug=True checks it."""
    with pytest.raises(AssertionError, match="a step that is known at run time is positive"):
        steps[(1,)](np.zeros(1, np.int32), 40, 3, step, debug=True)


def test_what_is_reinterpreted_shows_its_array() -> None:
    """The names that host code of Triton asks a TensorWrapper for."""

    class Tensor(np.ndarray):
        device = "cpu"

        def stride(self, *axis: int) -> Any:
            strides = tuple(s // self.itemsize for s in self.strides)
            return strides[axis[0]] if axis else strides

    wrapped = proton.reinterpret(np.zeros((3, 4), np.uint16).view(Tensor), tl.bfloat16)
    assert wrapped.shape == (3, 4)
    assert wrapped.stride() == (4, 1)
    assert wrapped.stride(0) == 4
    assert (wrapped.device, wrapped.element_size(), wrapped.dtype) == ("cpu", 2, tl.bfloat16)
    wrapped.data = wrapped.base[:, :2]
    assert wrapped.data.shape == (3, 2)
    assert wrapped.shape == (3, 4)
