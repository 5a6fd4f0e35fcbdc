"""Kernels that cannot be compiled for a GPU: one error with the rule, the value and the line."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.base.errors import (
    CompilationError,
    LaunchError,
    LocatedError,
    OutOfResources,
    ProtonError,
)
from proton.base.targets import ARCHITECTURES, GPUTarget
from proton.trace.instrumentation import Instrumentation
from tests.compile.test_gpu_records import compiled

HOPPER = GPUTarget("cuda", 90)


def line_of(kernel: Any, text: str) -> int:
    """The line of a kernel's source that has a text."""
    lines, first = inspect.getsourcelines(kernel.fn)
    (found,) = [first + n for n, line in enumerate(lines) if text in line]
    return found


def error_of(compile_: Callable[[], Any], kind: type[ProtonError] = CompilationError) -> Any:
    with pytest.raises(kind) as caught:
        compile_()
    return caught.value


def check_place(error: LocatedError, kernel: Any, text: str) -> None:
    """The error names this file, the line with `text`, and shows it with a caret."""
    assert error.span is not None
    assert error.span.file == __file__
    assert error.span.line == line_of(kernel, text)
    shown = str(error).splitlines()
    assert any(text in line for line in shown)
    assert any(line.strip().startswith("^") for line in shown)


@proton.jit
def odd_block(x_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(x_ptr + offsets, 1.0)


@pytest.mark.parametrize("size", [3, 100, 1000])
def test_a_block_that_is_no_power_of_two(size: int) -> None:
    error = error_of(lambda: odd_block.warmup(tl.float32, size, target=HOPPER))
    assert "power of 2" in error.rule
    assert f"end - start is {size}" in error.hint
    check_place(error, odd_block, "tl.arange(0, N)")


@proton.jit
def wrong_mask(x_ptr, n):
    offsets = tl.arange(0, 64)
    mask = tl.arange(0, 32) < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(x_ptr + offsets, x)


def test_a_mask_of_another_shape() -> None:
    error = error_of(lambda: wrong_mask.warmup(tl.float32, 5, target=HOPPER))
    assert "32" in error.rule
    assert "64" in error.rule
    check_place(error, wrong_mask, "tl.load(x_ptr + offsets, mask=mask)")


@proton.jit
def integer_as_pointer(n, out_ptr):
    tl.store(out_ptr, tl.load(n))


def test_a_load_from_what_is_no_pointer() -> None:
    error = error_of(lambda: integer_as_pointer.warmup(5, tl.float32, target=HOPPER))
    assert "pointer" in error.rule
    assert "got i32" in error.rule
    check_place(error, integer_as_pointer, "tl.load(n)")


@proton.jit
def annotated(x_ptr: tl.pointer_type(tl.float32)):  # type: ignore[valid-type]
    tl.store(x_ptr, 1.0)


def test_a_number_where_an_array_belongs() -> None:
    error = error_of(lambda: annotated.warmup(1.5, target=HOPPER), LaunchError)
    assert "x_ptr" in str(error)


@proton.jit
def transposes(x_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * N + j)
    tl.store(x_ptr + i * N + j, tl.trans(tl.exp(x)))


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize("arch", [80, 90, 120])  # 163, 227 and 99 KiB
def test_too_much_shared_memory_says_how_much_there_is(arch: int) -> None:
    """A block of N x N floats is exchanged at once, or in parts if it has to."""
    limit = ARCHITECTURES[arch].shared_bytes
    size = 128
    target = GPUTarget("cuda", arch)
    assert transposes.warmup(tl.float32, size, target=target).shared == 4 * size**2 <= limit
    in_parts = transposes.warmup(tl.float32, 2 * size, target=target)
    assert in_parts.shared == (8 * size**2 if 8 * size**2 <= limit else 4 * size**2)
    assert in_parts.metadata["num_warps"] == 4  # 16 would be chosen, which exchange all at once
    error = error_of(
        lambda: transposes.warmup(tl.float32, 2 * size, num_warps=8, target=target), OutOfResources
    )
    assert error.rule == (
        f"out of resource: shared memory, Required: {16 * size**2}, Hardware limit: {limit}; "
        f"transposes needs so many bytes, and a program on {ARCHITECTURES[arch].name} has no more"
    )
    assert error.hint == "reduce the block sizes, or num_stages"
    assert isinstance(error, OutOfResources)
    assert (error.name, error.required, error.limit) == ("shared memory", 16 * size**2, limit)


@proton.jit
def recorded(x_ptr, n):
    while n > 0:
        with proton.scope("turn"):
            tl.store(x_ptr + n, n)
        n = n // 2


@pytest.mark.usefixtures("no_ptx")
def test_records_that_shared_memory_has_no_room_for() -> None:
    asked = Instrumentation(buffer="shared", capacity=1 << 14)
    error = error_of(
        lambda: compiled(recorded, tl.int32, 1000, num_warps=1, instrumentation=asked),
        OutOfResources,
    )
    assert error.hint == (
        f'{16 << 14} of them are for records: pass buffer="global" or a smaller capacity'
    )


@proton.jit
def adds_one(x, N: tl.constexpr):
    place = x + tl.arange(0, N)
    tl.store(place, tl.load(place) + 1)


def test_a_block_beyond_what_threads_take_is_an_error() -> None:
    for num_warps in (1, 4, 32):
        largest = 512 * 32 * num_warps

        def compile_(size: int, num_warps: int = num_warps) -> Any:
            return adds_one.warmup(tl.float32, N=size, target=HOPPER, num_warps=num_warps)

        if num_warps == 1:
            assert compile_(largest).n_regs <= 255
        error = error_of(lambda: compile_(2 * largest), OutOfResources)  # noqa: B023
        assert error.rule == (
            f"out of resource: elements, Required: {2 * largest}, Hardware limit: {largest}; "
            f"a block of [{2 * largest}] with num_warps={num_warps} has 1024 elements per thread, "
            "and a thread takes 512"
        )
        assert error.span is not None
        assert error.span.line in (line_of(adds_one, "arange"), line_of(adds_one, "store"))
        assert "num_warps" in error.hint


@proton.jit(noinline=True)
def calls_itself(x):
    return calls_itself(x)


@proton.jit
def starts(x_ptr):
    tl.store(x_ptr, calls_itself(tl.load(x_ptr)))


def test_recursion() -> None:
    error = error_of(lambda: starts.warmup(tl.float32, target=HOPPER))
    assert error.rule == "calls_itself calls itself"
    check_place(error, calls_itself, "return calls_itself(x)")


@proton.jit
def nothing(x_ptr):
    tl.store(x_ptr, 1.0)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"num_warps": 5}, "num_warps must be a power of 2, got 5"),
        ({"num_warps": 0}, "num_warps must be a power of 2, got 0"),
        ({"num_ctas": 0}, r"num_ctas must be one of \(1, 2, 4, 8, 16\), got 0"),
        ({"num_ctas": 2, "arch": "sm80"}, "num_ctas must be 1 on sm_80, got 2"),
        ({"num_stages": 2.5}, "num_stages must be an integer that is not negative, got 2.5"),
        ({"maxnreg": -1}, "maxnreg must be from 1 to 255, got -1"),
    ],
    ids=str,
)
def test_an_option_outside_of_its_range(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(CompilationError, match=rule):
        nothing.warmup(tl.float32, target=HOPPER, **options)


def test_an_option_that_does_not_exist() -> None:
    for option in ("num_warp", "threads"):
        with pytest.raises((TypeError, LaunchError), match=option):
            nothing.warmup(tl.float32, target=HOPPER, **{option: 4})
    with pytest.raises(LaunchError, match="ptx_options='-O0' is not supported on a GPU"):
        nothing.warmup(tl.float32, target=HOPPER, ptx_options="-O0")


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: GPUTarget("cuda", 70), r"no target has architecture 70; there are 80 \(sm_80\)"),
        (lambda: GPUTarget("cuda", 91), "no target has architecture 91"),
        (lambda: GPUTarget("hip", 90), "no target has architecture 90; there are gfx942"),
        (lambda: GPUTarget("cuda", 90, 64), "a warp has 32 threads, got 64"),
        (lambda: GPUTarget.parse("cuda"), "a GPU target is written \"cuda:90\", got 'cuda'"),
        (lambda: GPUTarget.parse("cuda:9x"), "a GPU target is written"),
        (lambda: GPUTarget.parse("cuda:75"), "no target has architecture 75"),
    ],
)
def test_a_target_that_is_not_supported(make: Callable[[], GPUTarget], rule: str) -> None:
    with pytest.raises(ProtonError, match=rule):
        make()


def test_a_target_is_its_text() -> None:
    for arch in ARCHITECTURES:
        target = GPUTarget("cuda", arch)
        assert GPUTarget.parse(str(target)) == target
        assert GPUTarget.parse(f"{target}:32") == target
