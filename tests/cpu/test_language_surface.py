"""Parts of Triton's surface that stand by themselves, against numpy."""

import types
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl

HOPPER = proton.GPUTarget("cuda", 90)


@proton.jit
def products(x_ptr, out_ptr, R: tl.constexpr, N: tl.constexpr, T: tl.constexpr):
    i, j = tl.arange(0, R)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * N + j)
    tl.store(out_ptr + i * N + j, tl.cumprod(x, 1, dtype=T))


@proton.jit
def best(x_ptr, out_ptr, R: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The least, and then the greatest."""
    i = tl.arange(0, R)[:, None]
    x = tl.load(x_ptr + i * N + tl.arange(0, N)[None, :])
    places = out_ptr + i * K + tl.arange(0, K)[None, :]
    tl.store(places, tl.topk(x, K, dim=1, descending=False))
    tl.store(places + R * K, tl.topk(x, K, dim=1, descending=True))


@proton.jit
def underflows(x_ptr, out_ptr, limit, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.expect_zero(x, i >= limit))


@proton.jit
def counts(out_ptr):
    threads: tl.constexpr = tl.extra.cuda.num_threads()
    warps: tl.constexpr = tl.extra.cuda.num_warps()
    tl.store(out_ptr + tl.arange(0, threads), warps)


@proton.jit
def threads_of_the_launch():
    return tl.extra.cuda.num_threads()


@proton.jit
def asks_by_a_callee(out_ptr):
    threads: tl.constexpr = threads_of_the_launch()
    tl.store(out_ptr + tl.arange(0, threads), threads // 32)


@proton.jit
def asks_by_what_it_is_given(out_ptr, asks: tl.constexpr):
    threads: tl.constexpr = asks()
    tl.store(out_ptr + tl.arange(0, threads), threads // 32)


def asking() -> list[Any]:
    """Kernels that ask, each by another way."""
    of_cuda = tl.extra.cuda.num_warps
    holder = tl.constexpr(types.SimpleNamespace(ask=of_cuda))
    asks, elements = threads_of_the_launch, (threads_of_the_launch,)

    @proton.jit
    def by_its_name(out_ptr):
        tl.store(out_ptr, tl.extra.cuda.num_warps())

    @proton.jit
    def by_another_name(out_ptr):
        tl.store(out_ptr, of_cuda())

    @proton.jit
    def by_an_attribute(out_ptr):
        tl.store(out_ptr, holder.ask())

    @proton.jit
    def by_a_callee(out_ptr):
        tl.store(out_ptr, asks() // 32)

    @proton.jit
    def by_an_element(out_ptr):
        tl.store(out_ptr, elements[0]() // 32)

    @proton.jit
    def by_a_default(out_ptr, ask: tl.constexpr = asks):
        tl.store(out_ptr, ask() // 32)

    @proton.jit
    def by_a_method(out_ptr):
        tl.store(out_ptr, Asked(tl.program_id(0)).by_a_function() // 32)

    @proton.jit
    def by_a_method_in_python(out_ptr):
        tl.store(out_ptr, Asked(tl.program_id(0)).by_python())

    return [
        *(by_its_name, by_another_name, by_an_attribute, by_a_callee, by_an_element),
        *(by_a_default, by_a_method, by_a_method_in_python),
    ]


@proton.aggregate
class Asked:
    x: tl.tensor

    @proton.jit
    def by_a_function(self):
        return threads_of_the_launch()

    def by_python(self):  # type: ignore[no-untyped-def]
        return tl.extra.cuda.num_warps()


def titled(specialization: Any) -> str:
    types, constants = specialization.signature, specialization.constants
    return f"fill_{types['out_ptr']}_{types['n']}_{types['BLOCK']}_{constants['BLOCK']}"


@proton.jit(repr=titled)
def fill(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i, mask=i < n)


@pytest.mark.interpreted
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (4, 16)])
def test_products_in_another_type(rng: Any, rows: int, columns: int) -> None:
    x = rng.integers(-3, 4, (rows, columns)).astype(np.int8)
    for dtype in ("int64", "float32", "float64"):
        out = np.zeros((rows, columns), dtype)
        products[(1,)](x, out, rows, columns, getattr(tl, dtype))
        np.testing.assert_allclose(out, np.cumprod(x, 1, dtype=dtype), rtol=1e-6)


SMALLEST = [(1, 1), (16, 1), (32, 8), (16, 16)]
INTEGER_AND_FLOAT = [("int8", "float16"), ("uint32", "float32")]


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "count, k, dtype",
    [(*size, dtype) for n, size in enumerate(SMALLEST) for dtype in INTEGER_AND_FLOAT[n % 2]],
)
def test_the_smallest_elements(rng: Any, dtype: str, count: int, k: int) -> None:
    x = (rng.standard_normal((4, count)) * 50).astype(dtype)
    if "float" in dtype and count > 1:
        x[1, 0], x[2, :2] = np.nan, (-np.inf, np.inf)
    out = np.zeros((2, 4, k), dtype)
    best[(1,)](x, out, 4, count, k)
    in_order = np.sort(x, 1)
    np.testing.assert_array_equal(out[0], in_order[:, :k])
    np.testing.assert_array_equal(out[1], in_order[:, ::-1][:, :k])


@pytest.mark.interpreted
def test_what_should_be_zero_is_asserted_with_debug(rng: Any) -> None:
    x, out = rng.standard_normal(16).astype(np.float32) + 9, np.zeros(16, np.float32)
    x[11:] = 0
    for limit, debug in ((11, True), (16, True), (3, False)):
        out[:] = 0
        underflows[(1,)](x, out, limit, 16, debug=debug)
        np.testing.assert_array_equal(out, x)
    with pytest.raises(AssertionError, match="expect_zero"):
        underflows[(1,)](x, out, 10, 16, debug=True)


def test_the_threads_of_a_program_are_known_while_compiling() -> None:
    for warps in (1, 8):
        ttir = counts.warmup(tl.int32, num_warps=warps, target=HOPPER).asm["ttir"]
        assert f"end = {32 * warps} : i32" in ttir
        assert f"dense<{warps}>" in ttir


@pytest.mark.interpreted
def test_a_kernel_hears_of_the_warps_that_a_launch_asks_for() -> None:
    """The host may have laid data out for so many. Others have one code for any number."""
    for options in ({"num_warps": 8}, {"num_warps": 1}, {}):
        warps = options.get("num_warps", 4)
        for kernel in (counts, asks_by_a_callee):
            out = np.zeros(256, np.int32)
            kernel[(1,)](out, **options)
            np.testing.assert_array_equal(out, np.where(np.arange(256) < 32 * warps, warps, 0))
    keys = {fill[(1,)](out, 3, BLOCK=8, **options).key for options in ({"num_warps": 8}, {})}
    assert len(keys) == 1


@pytest.mark.interpreted
@pytest.mark.parametrize("kernel", asking(), ids=lambda kernel: kernel.__name__)
def test_a_kernel_may_ask_for_warps_in_any_way(kernel: Any) -> None:
    for options in ({"num_warps": 8}, {}):
        out = np.zeros(1, np.int32)
        kernel[(1,)](out, **options)
        assert out == options.get("num_warps", 4)


def test_what_is_only_named_so_asks_for_no_warps() -> None:
    num_warps, sizes = tl.constexpr(2), tl.constexpr(types.SimpleNamespace(num_threads=64))

    @proton.jit
    def other(out_ptr, COUNT: tl.constexpr):
        tl.store(out_ptr, num_warps + sizes.num_threads)

    out = np.zeros(1, np.int32)
    assert other[(1,)](out, 1).key == other[(1,)](out, 1, num_warps=8).key
    assert out == 66


def test_a_function_that_a_kernel_is_given_cannot_ask_for_warps() -> None:
    with pytest.raises(proton.CompilationError, match="pass the number on"):
        asks_by_what_it_is_given[(1,)](np.zeros(256, np.int32), threads_of_the_launch, num_warps=8)


def test_a_kernel_is_named_by_its_repr() -> None:
    out = np.zeros(16, np.int32)
    for n, block, name in ((16, 16, "fill_*i32_i32_constexpr_16"), (3, 8, "fill_*i32_i32_")):
        kernel = fill[(1,)](out, n, BLOCK=block)
        assert kernel.name.startswith(name)
        assert kernel.metadata.name == kernel.name
        assert kernel.metadata._asdict()["name"] == kernel.name
    kernel = fill[(1,)](out, 1, BLOCK=8)
    assert kernel.name == "fill_*i32_constexpr_constexpr_8"
    again = fill.warmup(tl.int32, 1 << 40, BLOCK=8)
    fill._unsafe_update_src(fill.src)
    found = fill.warmup(tl.int32, 1 << 40, BLOCK=8)
    assert found.from_cache
    assert found.name == again.name == "fill_*i32_i64_constexpr_8"
    with proton.profile("named") as run:
        fill[(1,)](out, 3, BLOCK=16)
    assert list(run.launches.kernel) == ["fill_*i32_i32_constexpr_16"]


@pytest.mark.interpreted
def test_numbers_that_no_launch_can_pass(rng: Any) -> None:
    out = np.zeros(8, np.int32)
    for number in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(OverflowError, match="does not fit in 64 bits") as caught:
            fill[(1,)](out, number, BLOCK=8)
        assert isinstance(caught.value, proton.LaunchError)
    for warps in (3, 0, True, "4"):
        with pytest.raises(AssertionError, match="num_warps must be a power of 2") as refused:
            fill[(1,)](out, 8, BLOCK=8, num_warps=warps)
        assert isinstance(refused.value, proton.CompilationError)
    with pytest.raises(proton.OutOfResources, match="Required: 2048, Hardware limit: 1024"):
        fill[(1,)](out, 8, BLOCK=8, num_warps=2048)
    for warps in (1, 2, 32, 1024):
        fill[(1,)](out, 8, BLOCK=8, num_warps=warps)
