"""Launches on a GPU that is not there: what reaches the driver, and what is refused before."""

import ctypes
import threading
import time
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import LaunchError
from proton.runtime.nvidia import cuda
from tests.compile.fake_cuda import STREAM, FakeDriver


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    fake.install(monkeypatch)
    return fake


def kernel(**options: Any) -> Any:
    """A kernel of its own for a test: nothing is compiled for it yet."""

    @proton.jit(**options)
    def scale(x_ptr, n, BLOCK: tl.constexpr = 128):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)

    return scale


# Grids


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ((5,), (5, 1, 1)),
        ((5, 6), (5, 6, 1)),
        ((5, 6, 7), (5, 6, 7)),
        (3, (3, 1, 1)),
        ([4, 2], (4, 2, 1)),
        (lambda meta: (meta["n"] // meta["BLOCK"], 2), (7, 2, 1)),
        ((np.int64(9),), (9, 1, 1)),
    ],
    ids=["1", "2", "3", "number", "list", "callable", "numpy"],
)
def test_a_grid_reaches_the_driver(driver: FakeDriver, grid: Any, expected: Any) -> None:
    scale, x = kernel(), driver.array("float32")
    for _ in range(2):  # the first launch takes the slow path
        scale[grid](x, 7 * 128)
    assert [launch.grid for launch, _ in driver.launches] == [expected] * 2
    assert {launch.block for launch, _ in driver.launches} == {(128, 1, 1)}
    assert {launch.stream for launch, _ in driver.launches} == {STREAM}


def test_a_launcher_that_was_kept_is_as_quick_as_a_new_one(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the slow path each time, which is ten times as long."""
    scale, x = kernel(), driver.array("float32")
    kept = scale[3,]
    kept(x, 5)
    slow: list[object] = []
    run_any = scale.run_any
    monkeypatch.setattr(scale, "run_any", lambda *given: slow.append(given) or run_any(*given))
    kept(x, 5)
    kept(x, 6)
    assert not slow
    with pytest.raises(LaunchError):
        kept(x)
    assert [launch.grid for launch, _ in driver.launches] == [(3, 1, 1)] * 3


def test_a_launcher_that_was_kept_knows_its_own_code(driver: FakeDriver) -> None:
    """An integer and a float have as many parts of a key in either order."""

    @proton.jit
    def add(x_ptr, a, b):
        tl.store(x_ptr, a + b)

    x, names = driver.array("float32"), ("i32", "fp32")
    numbers = 17, 2.5
    add[1,](x, *numbers)
    kept = add[1,]
    add[1,](x, *numbers[::-1])
    for launch, step in ((kept, 1), (add[1,], -1), (kept, -1), (add[1,], 1), (kept, 1)):
        types = launch(x, *numbers[::step]).signature.types
        assert (types["a"].short, types["b"].short) == names[::step]


def test_a_grid_is_given_the_same_by_each_launch(driver: FakeDriver) -> None:
    """The second one gave it options that nobody had named, as None."""
    scale, x = kernel(), driver.array("float32")
    seen: list[dict[str, Any]] = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.append(dict(meta))
        return (meta.get("num_warps", 4),)

    for options in ({}, {}, {"num_warps": 8}, {"num_warps": 8}, {}):
        scale[grid](x, 5, **options)
        assert seen.pop() == {"x_ptr": x, "n": 5, "BLOCK": 128, **options}
    assert [launch.grid[0] for launch, _ in driver.launches] == [4, 4, 8, 8, 4]


def test_an_argument_that_is_given_twice_is_the_kernels(driver: FakeDriver) -> None:
    scale, x = kernel(), driver.array("float32")
    for _ in range(2):
        with pytest.raises(TypeError, match=r"^scale.* got multiple values for argument 'n'"):
            scale[1,](x, 5, n=5)
        scale[1,](x, 5)


def test_a_function_that_is_no_grid_is_refused_by_each_launch(driver: FakeDriver) -> None:
    scale, x = kernel(), driver.array("float32")
    for _ in range(2):
        with pytest.raises(LaunchError, match="cannot be called with the launch's arguments"):
            scale[lambda: (1,)](x, 5)
        with pytest.raises(TypeError, match="unsupported operand"):
            scale[lambda meta: (meta["n"] + "1",)](x, 5)
        scale[1,](x, 5)


def test_a_large_grid_is_no_larger_than_a_gpu_takes(driver: FakeDriver) -> None:
    scale, x = kernel(), driver.array("float32")
    for grid in ((1 << 20, 65535, 65535), ((1 << 31) - 1, 65535)) * 2:
        scale[grid](x, 5)
        assert driver.launches[-1][0].grid == (*grid, 1)[:3]


@pytest.mark.parametrize("grid", [(0,), (4, 0), (1, 2, 0)])
def test_an_empty_grid_is_not_launched(driver: FakeDriver, grid: Any) -> None:
    scale, x = kernel(), driver.array("float32")
    for _ in range(2):
        assert scale[grid](x, 5).name == "scale"
    assert driver.launches == []
    scale[1,](x, 5)
    assert scale[grid](x, 5).name == "scale"
    assert len(driver.launches) == 1


@pytest.mark.parametrize(
    ("grid", "rule"),
    [
        ((1, 65536), r"grid\[1\] must not exceed 65535 on a GPU, got 65536"),
        ((1, 1, 70000), r"grid\[2\] must not exceed 65535 on a GPU, got 70000"),
        ((1 << 31,), r"grid\[0\] must not exceed 2147483647 on a GPU, got 2147483648"),
        ((-1,), r"grid\[0\] must not be negative, got -1"),
        ((1, 2, 3, 4), r"a grid has 1 to 3 sizes, got 4"),
        ((), r"a grid has 1 to 3 sizes, got 0"),
        ((1.5,), r"grid\[0\] must be an integer, got 1.5"),
        (("4",), r"grid\[0\] must be an integer, got '4'"),
    ],
)
def test_a_bad_grid_is_refused_on_the_first_launch_and_later(
    driver: FakeDriver, grid: Any, rule: str
) -> None:
    scale, x = kernel(), driver.array("float32")
    with pytest.raises(LaunchError, match=rule):
        scale[grid](x, 5)
    scale[1,](x, 5)
    with pytest.raises(LaunchError, match=rule):
        scale[grid](x, 5)
    with pytest.raises(LaunchError, match=rule):
        scale[lambda meta: grid](x, 5)
    assert len(driver.launches) == 1


# Arguments

SCALARS = {
    "i1": (ctypes.c_bool, [True, False]),
    "i8": (ctypes.c_int8, [-128, 127]),
    "i16": (ctypes.c_int16, [-32768, 32767]),
    "i32": (ctypes.c_int32, [-(1 << 31), (1 << 31) - 1]),
    "i64": (ctypes.c_int64, [-(1 << 63), (1 << 63) - 1]),
    "u8": (ctypes.c_uint8, [0, 255]),
    "u16": (ctypes.c_uint16, [0, 65535]),
    "u32": (ctypes.c_uint32, [0, (1 << 32) - 1]),
    "u64": (ctypes.c_uint64, [0, (1 << 64) - 1]),
    "fp32": (ctypes.c_float, [-1.5, float("inf")]),
    "fp64": (ctypes.c_double, [0.1, -1e300]),
}


@pytest.mark.parametrize("short", SCALARS)
def test_a_scalar_lies_in_its_eight_bytes(driver: FakeDriver, short: str) -> None:
    kind, values = SCALARS[short]

    @proton.jit
    def keep(x_ptr, v: short, w: short):  # type: ignore[valid-type]
        tl.store(x_ptr, v + w)

    driver.read = [ctypes.c_uint64, kind, kind]
    x = driver.array("float64")
    for first, second in (values, values[::-1]):
        keep[1,](x, first, second)
        assert driver.launches[-1][1] == [0x10000, first, second]


def test_numbers_without_annotations(driver: FakeDriver) -> None:
    @proton.jit
    def keep(x_ptr, small, large, real):
        tl.store(x_ptr, small + large + real)

    driver.read = [ctypes.c_uint64, ctypes.c_int32, ctypes.c_int64, ctypes.c_float]
    x = driver.array("float32")
    for small, large, real in ((3, 1 << 40, 0.5), (-7, -(1 << 35), 2.0), (17, 1 << 62, -0.25)):
        keep[1,](x, small, large, real)
        assert driver.launches[-1][1] == [0x10000, small, large, real]
    keep[1,](x, 3, 1 << 40, -1e300)  # too large for fp32
    assert driver.launches[-1][1] == [0x10000, 3, 1 << 40, -float("inf")]
    assert len(driver.loaded) == 2  # of numbers from 0 on, and of negative ones
    keep[1,](x, 3, np.int64(1 << 40), np.float32(0.5))
    assert driver.launches[-1][1] == [0x10000, 3, 1 << 40, 0.5]


def test_keywords_defaults_and_any_order(driver: FakeDriver) -> None:
    scale, x = kernel(), driver.array("float32")
    driver.read = [ctypes.c_uint64, ctypes.c_int32]
    for _ in range(2):
        scale[1,](n=33, x_ptr=x)
        scale[1,](x, BLOCK=128, n=33)
        scale[1,](x, 33, 128, num_warps=4)
    assert [values for _, values in driver.launches] == [[0x10000, 33]] * 6
    for arguments, given in (
        ((), {}),
        ((x,), {}),
        ((x, 1, 128, 4), {}),
        ((x, 1), {"n": 2}),
        ((x, 1), {"unknown": 2}),
    ):
        for _ in range(2):
            with pytest.raises((LaunchError, TypeError)):
                scale[1,](*arguments, **given)
    assert len(driver.launches) == 6


# Variants


def test_integers_are_specialized_on_one_on_multiples_of_16_and_on_signs(
    driver: FakeDriver,
) -> None:
    scale, x = kernel(), driver.array("float32")
    numbers = (16, 1), (32, 1), (0, 1), (1, 2), (5, 3), (7, 3), (1, 3), (-16, 4), (0, 4), (-5, 5)
    for n, loaded in numbers:
        scale[1,](x, n)
        assert len(driver.loaded) == loaded, n
    assert len({launch.function for launch, _ in driver.launches}) == 5


def test_integers_of_a_fixed_type_are_specialized_on_multiples_of_16(driver: FakeDriver) -> None:
    for short in ("i32", "i64", "u32", "i8"):

        @proton.jit
        def fill(x_ptr, n: short):  # type: ignore[valid-type]
            tl.store(x_ptr + tl.arange(0, 16), 1.0, mask=tl.arange(0, 16) < n)

        driver.read = [ctypes.c_uint64, SCALARS[short][0]]
        before, x = len(driver.loaded), driver.array("float32")
        for n, loaded in ((16, 1), (64, 1), (1, 2), (5, 2), (0, 2), (7, 2)):
            fill[1,](x, n)
            assert len(driver.loaded) - before == loaded, (short, n)
            assert driver.launches[-1][1][1] == n
        with pytest.raises(LaunchError, match="does not fit"):
            fill[1,](x, 1 << 63)


def test_addresses_are_specialized_on_multiples_of_16(driver: FakeDriver) -> None:
    scale = kernel()
    driver.read = [ctypes.c_uint64]
    for address, loaded in ((0x10000, 1), (0x20010, 1), (0x10004, 2), (0x10008, 2), (0x10000, 2)):
        scale[1,](driver.array("float32", address), 16)
        assert len(driver.loaded) == loaded
        assert driver.launches[-1][1] == [address]


def test_types_of_arrays_have_code_of_their_own(driver: FakeDriver) -> None:
    scale = kernel()
    for dtype, loaded in (("float32", 1), ("float16", 2), ("int8", 3), ("float32", 3)):
        scale[1,](driver.array(dtype), 16)
        assert len(driver.loaded) == loaded


def test_what_is_not_to_be_specialized_is_not(driver: FakeDriver) -> None:
    scale, x = kernel(do_not_specialize=["n"]), driver.array("float32")
    for n in (1, 16, 5, 0):
        scale[1,](x, n)
    assert len(driver.loaded) == 1


def test_constants_that_compare_equal_are_different_constants(driver: FakeDriver) -> None:
    @proton.jit
    def keep(x_ptr, C: tl.constexpr):
        if C is True:
            tl.store(x_ptr, 1)
        else:
            tl.store(x_ptr, C)

    x = driver.array("float32")
    functions = []
    for value in (1, True, 1.0, 0, False, 0.0, -0.0, "a", None):
        for _ in range(2):
            if value in ("a", None):
                continue
            keep[1,](x, value)
            functions.append(driver.launches[-1][0].function)
    assert functions[::2] == functions[1::2]
    assert len(set(functions)) == 7


def test_options_have_code_of_their_own(driver: FakeDriver) -> None:
    scale, x = kernel(), driver.array("float32")
    choices = {}, {"num_warps": 8}, {"maxnreg": 64}, {"enable_fp_fusion": False}, {"debug": True}
    choices += ({"debug": True, "sanitize_overflow": False},)
    for options in choices:
        for _ in range(2):
            scale[1,](x, 5, **options)
    assert len(driver.loaded) == 6
    blocks = [launch.block[0] for launch, _ in driver.launches[::2]]
    assert blocks == [128, 256, 128, 128, 128, 128]


def test_the_debug_knob_holds_for_every_launch(driver: FakeDriver) -> None:
    scale, x = kernel(), driver.array("float32")
    plain, told = (scale[1,](x, 5, debug=debug).asm["ptx"] for debug in (False, True))
    assert plain != told
    with proton.knobs.scope(debug=True):
        assert scale[1,](x, 5, debug=False).asm["ptx"] == told
        assert scale[1,](x, 5).asm["ptx"] == told
    assert scale[1,](x, 5, debug=False).asm["ptx"] == plain


def test_the_cubin_asks_for_its_shared_memory(driver: FakeDriver) -> None:
    @proton.jit
    def transpose(x_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        x = tl.load(x_ptr + i[:, None] * N + i[None, :])
        tl.store(x_ptr + i[:, None] * N + i[None, :], tl.trans(tl.exp(x)))

    transpose[1,](driver.array("float32"), 64)
    assert driver.loaded == [("transpose$", 64 * 64 * 4)]
    assert driver.launches[0][0].shared == 64 * 64 * 4


# Threads


def test_threads_do_not_mix_their_arguments(driver: FakeDriver) -> None:
    scale, x = kernel(), driver.array("float32")
    driver.read = [ctypes.c_uint64, ctypes.c_int32]
    scale[1,](x, 5)
    driver.launches.clear()
    problems: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for n in range(200):
                scale[first,](x, 2 * (first * 1000 + n) + 3)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    got = sorted((launch.grid[0], values[1]) for launch, values in driver.launches)
    assert got == sorted((f, 2 * (f * 1000 + n) + 3) for f in range(1, 5) for n in range(200))


# What changes between launches

SCALE = tl.constexpr(3)


def test_a_global_that_changed_is_refused(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    @proton.jit
    def keep(x_ptr):
        tl.store(x_ptr, SCALE)

    x = driver.array("float32")
    keep[1,](x)
    keep[1,](x)
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(4))
    with pytest.raises(LaunchError, match=r"variable SCALE has changed .*, from .*3"):
        keep[1,](x)
    monkeypatch.undo()
    assert len(driver.launches) == 2


def test_a_failed_launch_raises_and_the_next_one_works(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cuda.bindings import driver as real

    words = types.SimpleNamespace(
        CUresult=real.CUresult, cuGetErrorString=lambda code: (0, b"too much of something")
    )
    monkeypatch.setattr(cuda, "_driver", lambda: words)
    scale, x = kernel(), driver.array("float32")
    driver.read = [ctypes.c_uint64, ctypes.c_int32]
    scale[1,](x, 5)
    driver.status = 701
    for _ in range(3):
        with pytest.raises(cuda.CUDAError, match=r"LAUNCH_OUT_OF_RESOURCES \(too much"):
            scale[1,](x, 7)
    driver.status = 0
    scale[2,](x, 9)
    assert driver.launches[-1][1] == [0x10000, 9]


def test_a_thread_without_a_context_gets_one(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale, x = kernel(), driver.array("float32")
    entered = []

    def enter(device: int) -> None:
        entered.append(device)
        driver.status = 0

    monkeypatch.setattr(cuda, "enter_primary_context", enter)
    scale[1,](x, 5)
    driver.status = 201
    scale[1,](x, 7)
    assert entered == [0]
    assert len(driver.launches) == 3


def test_a_parameter_may_have_the_name_of_an_option(driver: FakeDriver) -> None:
    @proton.jit
    def kernel(x_ptr, num_warps, num_stages: tl.constexpr, grid=3):
        tl.store(x_ptr, num_warps + num_stages + grid)

    x = driver.array("int32")
    driver.read = [ctypes.c_uint64, ctypes.c_int32]
    for n in (5, 7):
        kernel[1,](x, n, num_stages=2)
        kernel[lambda meta: (meta["num_warps"],)](x, num_warps=n, num_stages=2)
    assert [arguments[1] for _, arguments in driver.launches] == [5, 5, 7, 7]
    assert [launch.grid[0] for launch, _ in driver.launches] == [1, 5, 1, 7]
    assert len(driver.loaded) == 1
    with pytest.raises(LaunchError, match="missing 1 required"):
        kernel[1,](x, num_stages=2)
    with pytest.raises(LaunchError, match="unexpected keyword argument 'target'"):
        kernel[1,](x, 5, 2, target=proton.GPUTarget("cuda", 90))


# Tuples


class Array(NamedTuple):
    ptr: Any
    size: int


@pytest.mark.parametrize("rest", [False, True], ids=["argument", "rest"])
def test_the_elements_of_tuples_reach_the_driver(driver: FakeDriver, rest: bool) -> None:
    @proton.jit
    def of_tuple(pair, n):
        tl.store(pair[0].ptr + n, pair[0].size + pair[1][0])

    @proton.jit
    def of_rest(n, *pair):
        tl.store(pair[0].ptr + n, pair[0].size + pair[1][0])

    x, y = driver.array("int32"), driver.array("int32", address=0x20000)
    driver.read = [ctypes.c_int32, *[ctypes.c_uint64, ctypes.c_int32]]
    driver.read = driver.read[1:] + driver.read[:1] if not rest else driver.read

    def launch(*pair: Any, n: int) -> Any:
        return of_rest[(1,)](n, *pair) if rest else of_tuple[(1,)](pair, n)

    first = launch(Array(x, 1000), (1, None), n=33)  # the slow path
    assert launch(Array(y, 1001), (1, None), n=34) is first  # the fast path
    assert launch(Array(y, 16), (1, None), n=35) is not first  # of another divisibility
    assert launch(Array(x, 1001), (7, None), n=36) is not first  # 7 is no constant
    given = [(0x10000, 1000, 33), (0x20000, 1001, 34), (0x20000, 16, 35), (0x10000, 1001, 36)]
    for number, ((_, values), (address, size, n)) in enumerate(
        zip(driver.launches, given, strict=True)
    ):
        last = 7 if number == 3 else n
        assert values == ([n, address, size] if rest else [address, size, last])
    with pytest.raises(LaunchError, match=r"argument pair\[0\].ptr must be an array"):
        launch(Array("text", 16), (1, None), n=35)
    driver.memory[0x30000] = 1
    elsewhere = Array(driver.array("int32", address=0x30000, device=1), 16)
    with pytest.raises(LaunchError, match="is on GPU 1, and the current device is GPU 0"):
        launch(elsewhere, (1, None), n=35)


def test_a_tuple_of_a_class_of_c_is_one(driver: FakeDriver) -> None:
    """As `torch.Size` is, whose `tuple.__new__` Python refuses."""

    @proton.jit
    def of_shape(x_ptr, shape):
        tl.store(x_ptr, shape[0] * shape[2])

    x = driver.array("int32")
    driver.read = [ctypes.c_uint64, *[ctypes.c_int32] * 9]
    first = of_shape[(1,)](x, time.struct_time(range(2, 11)))  # the slow path
    assert of_shape[(1,)](x, time.struct_time(range(2, 11))) is first  # the fast path
    assert [values for _, values in driver.launches] == [[0x10000, *range(2, 11)]] * 2
