"""What Triton deprecates is a warning with the line of the kernel, and means what it did."""

import warnings

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.backends.nvidia.options import GPUOptions
from tests.cpu.harness import kernels_of

SOURCE = """
@proton.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, {expression})
"""
LINE = 9  # of the store, with the harness's imports ahead


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "expression, want, text",
    [
        ("tl.where(x, 1, 2)", lambda x: np.where(x, 1, 2), "tl.where with a non-boolean condition"),
        ("(x > 2) and (x < 6)", lambda x: (x > 2) & (x < 6), "'and' of blocks is deprecated"),
        ("(x < 2) or (x > 6)", lambda x: (x < 2) | (x > 6), "'or' of blocks is deprecated"),
        ("max(x, 3)", lambda x: np.maximum(x, 3), "Python's max of blocks is deprecated"),
        ("min(x, 3, i)", lambda x: np.minimum(np.minimum(x, 3), np.arange(16)), "use tl.minimum"),
        ("x.view(4, 4).reshape(16)", lambda x: x, "tl.view is deprecated"),
        ("tl.sum(x) if x.reshape(16, 1).min(0) < 99 else 0",
         lambda x: np.full(16, x.sum()), "a block as a condition is deprecated"),
    ],
)  # fmt: skip
def test_deprecated_expressions_warn_at_their_line(expression, want, text, rng) -> None:
    x, out = rng.integers(-9, 9, 16, dtype=np.int32), np.zeros(16, np.int32)
    module = kernels_of(SOURCE.format(expression=expression))
    with pytest.warns(UserWarning, match=text) as caught:
        module.kernel[(1,)](x, out)
    assert {(w.filename, w.lineno) for w in caught} == {(module.__file__, LINE)}
    np.testing.assert_array_equal(out, want(x))


@pytest.mark.parametrize(
    "expression, text",
    [
        ("tl.sum(tl.cat(x, x, can_reorder=True))", "can_reorder=True is deprecated"),
        ("x.reshape(4, 4, can_reorder=True).ravel()", "can_reorder=True is deprecated"),
        ("tl.softmax(x.to(tl.float32), keep_dims=True)", "keep_dims of tl.softmax is deprecated"),
        (
            "tl.sum(tl.dot(*[x.to(tl.float8e4b15).reshape(4, 4) for j in (0, 1)]))",
            "products of fp8e4b15 are deprecated",
        ),
    ],
)
def test_deprecated_options_warn(expression: str, text: str) -> None:
    kernel = kernels_of(SOURCE.format(expression=expression)).kernel
    with pytest.warns(UserWarning, match=text):
        kernel.warmup(tl.int32, tl.float32, target=proton.GPUTarget("cuda", 90))


BY_NAME = """
@proton.jit
def kernel(x_ptr):
    at = tl.arange(0, 16)
    x = tl.load(x_ptr + at)
    {call}
"""


def test_what_triton_has_no_more_in_3_10() -> None:
    """An option chooses its rules, of which fused multiply-adds are the other one."""
    kernel = kernels_of(SOURCE.format(expression="tl.sum(tl.cat(x, x, can_reorder=True))")).kernel
    target = proton.GPUTarget("cuda", 90)
    with proton.knobs.scope(triton_version="3.10"):
        with pytest.raises(proton.CompilationError, match=r"not in its 3\.10"):
            kernel.warmup(tl.int32, tl.float32, target=target)
        assert not proton.knobs.default_fp_fusion
        assert not GPUOptions(target).enable_fp_fusion
    assert GPUOptions(target).enable_fp_fusion
    with proton.knobs.scope(default_fp_fusion=False):
        assert not GPUOptions(target).enable_fp_fusion


@pytest.mark.interpreted
def test_what_is_not_deprecated_does_not_warn() -> None:
    """Conditions of one bit, numbers and scalars; `cat` and `softmax` without the options."""
    expression = (
        "tl.where(x > 0, 1, 2) + tl.where(True, 1, 2) + max(tl.sum(x), 3) + max(2, 3)"
        " + (1 if tl.sum(x) > 0 and tl.max(x, 0) < 9 else 2)"
        " + tl.sum(tl.cat(x, x)) + tl.softmax(x.to(tl.float32)).to(tl.int32)"
    )
    x = np.ones(16, np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernels_of(SOURCE.format(expression=expression)).kernel[(1,)](x, np.zeros_like(x))


@pytest.mark.interpreted
def test_a_warning_that_is_an_error_is_the_kernels() -> None:
    x = np.ones(16, np.int32)
    kernel = kernels_of(SOURCE.format(expression="tl.where(x, 3, 4)")).kernel
    with pytest.raises(proton.CompilationError, match=f":{LINE}:.*: tl.where with a non-boolean"):
        kernel[(1,)](x, x)


@pytest.mark.parametrize(
    "call",
    [
        'tl.load(x_ptr + at, None, None, ".cg")',
        'tl.store(x_ptr + at, x, None, ".cg")',
        '(x_ptr + at).store(x, None, ".cg")',
        "tl.softmax(x, 0, True)",
    ],
)
def test_options_come_by_name(call: str) -> None:
    """As in Triton 3.9."""
    kernel = kernels_of(BY_NAME.format(call=call)).kernel
    with pytest.raises(proton.CompilationError, match="too many positional arguments"):
        kernel.warmup(tl.float32, target=proton.GPUTarget("cuda", 90))
