"""Kernels that programs make out of the text of others, as triton_kernels does, and what Python
asks that runs while a kernel is compiled: for which target, and of which types tensors are."""

import inspect
import re
import types
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.runtime.launch.tensor_descriptor import TensorDescriptor

HOPPER = proton.GPUTarget("cuda", 90)


@proton.constexpr_function
def has_native(major: int) -> bool:
    return bool(tl.target_info.cuda_capability_geq(major, 0))


@proton.constexpr_function
def backend() -> str:
    target = tl.target_info.current_target()
    assert tl.target_info.is_cuda() == (target.backend == "cuda")
    assert not tl.target_info.is_hip_cdna4()
    return str(target.backend)


@proton.jit
def asks_through_python(out_ptr):
    if backend() == "cpu":
        tl.store(out_ptr, 1)
    elif has_native(9):
        tl.store(out_ptr, 90)
    else:
        tl.store(out_ptr, 80)


def test_python_that_runs_while_compiling_knows_the_target() -> None:
    out = np.zeros(1, np.int32)
    asks_through_python[(1,)](out)
    assert out[0] in (1, 90)
    for arch, text in ((80, "80"), (90, "90")):
        target = proton.GPUTarget("cuda", arch)
        ttir = asks_through_python.warmup(tl.int32, target=target).asm["ttir"]
        assert f"constant {text} : i32" in ttir


def test_on_the_host_the_target_is_that_of_the_current_device() -> None:
    assert backend() == proton.runtime.driver.active.get_current_target().backend
    assert has_native(90) is False
    assert not any((tl.target_info.is_hip(), tl.target_info.is_hip_gfx1250()))
    with pytest.MonkeyPatch.context() as patch:
        active = proton.runtime.driver.active
        patch.setattr(type(active), "get_current_target", lambda _: HOPPER)
        assert backend() == "cuda"
        assert (has_native(9), has_native(tl.constexpr(10))) == (True, False)


@proton.constexpr_function
def element(x: Any) -> tl.dtype:
    if isinstance(x, tl.tensor):
        return x.dtype.element_ty if x.dtype.is_ptr() else x.dtype
    assert isinstance(x, tl.tensor_descriptor)
    assert x.block_shape == list(x.block_type.shape) == [8]
    return x.dtype


@proton.jit
def typed(x, y_ptr, number, out_ptr):
    block = tl.arange(0, 8)
    tl.static_assert(element(x) == tl.float32)
    tl.static_assert(element(y_ptr) == tl.int16)
    tl.static_assert(element(number) == tl.int32)
    tl.static_assert(element(block + number) == tl.int32)
    tl.store(out_ptr + block, x.load([0]).to(element(y_ptr)))


@pytest.mark.interpreted
def test_python_that_runs_while_compiling_sees_types_of_tensors(rng: Any) -> None:
    x, out = (rng.standard_normal(8) * 99).astype(np.float32), np.zeros(8, np.int16)
    typed[(1,)](TensorDescriptor(x, [8], [1], [8]), np.zeros(1, np.int16), 7, out)
    np.testing.assert_array_equal(out, x.astype(np.int16))


USES = {
    "bool": lambda x: 1 if x else 2,
    "equal": lambda x: x == 1,
    "less": lambda x: x < 1,
    "index": lambda x: [1, 2][x],
    "length": len,
    "number": int,
    "elements": tuple,
}


@pytest.mark.parametrize("name", USES)
def test_it_does_not_see_their_values(name: str) -> None:
    use = proton.constexpr_function(USES[name])

    @proton.jit
    def kernel(out_ptr, n):
        tl.store(out_ptr, use(n))

    with pytest.raises(proton.CompilationError, match="not known while compiling, its type is"):
        kernel[(1,)](np.zeros(1, np.int32), 7)


def test_it_returns_no_tensor() -> None:
    same = proton.constexpr_function(lambda x: (x, 1))

    @proton.jit
    def kernel(out_ptr, n):
        tl.store(out_ptr, same(n)[0])

    with pytest.raises(proton.CompilationError, match="runs while compiling, and returned"):
        kernel[(1,)](np.zeros(1, np.int32), 7)


def test_a_name_may_be_any_string() -> None:
    def stored(out_ptr):
        tl.store(out_ptr, 3)

    for name, shown in ("", ""), ("a.b c", "b c"), ("half \ud800", "half ?"):
        kernel = proton.jit(stored, repr=lambda of, name=name: name)
        out = np.zeros(1, np.int32)
        assert kernel[(1,)](out).name == shown
        assert out == 3


def around(factor: int) -> Any:
    scale = tl.constexpr(factor)

    @proton.jit(repr=lambda specialization: f"scaled_{factor}")
    def kernel(x_ptr, out_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out_ptr + i, tl.load(x_ptr + i) * scale)

    return kernel


def _blank() -> None: ...


def made_of(kernel: Any, text: str) -> Any:
    """A kernel of this text, which reads what the other one reads."""
    space = types.FunctionType(_blank.__code__, kernel.get_capture_scope()).__globals__
    exec(text, space)
    blank = types.FunctionType(_blank.__code__, dict(space))
    name = text[4 : text.index("(")]
    blank.__name__ = blank.__qualname__ = name
    blank.__signature__ = inspect.signature(space[name])  # type: ignore[attr-defined]
    new = proton.JITFunction(blank, repr=lambda s: f"{kernel.repr(s)}_{name}")
    new._unsafe_update_src(text)
    return new


def test_a_kernel_of_the_text_of_another_one(rng: Any) -> None:
    kernel = around(3)
    assert kernel.get_capture_scope()["scale"].value == 3
    assert kernel.get_capture_scope()["np"] is np
    text = kernel.src.replace("def kernel", "def twice").replace("* scale", "* scale * 2")
    new = made_of(kernel, text)
    x, out = rng.integers(-9, 9, 8).astype(np.int32), np.zeros(8, np.int32)
    assert new[(1,)](x, out, 8).name == "scaled_3_twice"
    np.testing.assert_array_equal(out, 6 * x)
    assert typed.repr(None) == f"{__name__}.typed" == typed._fn_name


def test_its_source_may_be_said_to_be_elsewhere() -> None:
    kernel = around(5)
    new = made_of(kernel, kernel.src.replace("N: tl.constexpr", "N: tl.constexpr, M=0"))
    assert kernel.raw_src[0].strip().startswith("@proton.jit(")
    assert kernel.def_file_line_number == kernel.starting_line_number + 1
    assert kernel.def_file_col_number == 5
    new.raw_src, new.starting_line_number = kernel.raw_src, kernel.starting_line_number
    new.file_name, new.def_file_line_number = "/there/template.py", 1000
    new.def_file_col_number = kernel.def_file_col_number
    found = (new.raw_src, new.starting_line_number, new.file_name, new.def_file_line_number)
    said = (kernel.raw_src, kernel.starting_line_number, "/there/template.py", 1000)
    assert found == said
    assert new.def_file_col_number == 5
    ptx = new.warmup(tl.int32, tl.int32, 8, target=HOPPER).asm["ptx"]
    (file,) = re.findall(r'\.file\s+(\d+) "/there/template.py"', ptx)
    lines = {int(line) for of, line in re.findall(r"\.loc\s+(\d+) (\d+)", ptx) if of == file}
    assert 1002 in lines <= {1000, 1001, 1002}

    wrong = made_of(kernel, kernel.src.replace("* scale", "* missing"))
    wrong.file_name, wrong.def_file_line_number = "/there/template.py", 1000
    with pytest.raises(proton.CompilationError, match=r"/there/template\.py:1002:") as raised:
        wrong.warmup(tl.int32, tl.int32, 8)
    assert "* missing" in str(raised.value)


def test_a_repr_that_is_no_function() -> None:
    with pytest.raises(TypeError, match=r"kernel: repr takes a function .* got 'text'"):

        @proton.jit(repr="text")  # type: ignore[call-overload]
        def kernel(x): ...
