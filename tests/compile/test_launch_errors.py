"""Launches on a GPU that cannot be: each says what is wrong before anything reaches the driver,
on the first launch and on later ones."""

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import CompilationError, LaunchError
from proton.runtime.nvidia import cuda
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.fake_cuda import FakeDriver


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def copy() -> Any:
    """A kernel of a test's own: what was loaded for another one went to another driver."""

    @proton.jit
    def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr = 128):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)

    return copy


def interface(**changed: Any) -> Any:
    known = {"shape": (100,), "typestr": "<f4", "data": (0x10000, False), "version": 3}
    return types.SimpleNamespace(__cuda_array_interface__=known | changed)


def refused(
    driver: FakeDriver, copy: Any, rule: str, *arguments: Any, grid: Any = (1,), **options: Any
) -> None:
    """The launch is refused cold and warm, with no frames of Proton, and a good one works after
    it."""
    for _ in range(2):
        with pytest.raises(LaunchError, match=rule) as caught:
            copy[grid](*arguments, **options)
        assert {Path(entry.path).name for entry in caught.traceback} == {Path(__file__).name}
        count = len(driver.launches)
        x = driver.array("float32")
        copy[1,](x, x, 5)
        assert len(driver.launches) == count + 1


def test_an_array_on_another_device(driver: FakeDriver, copy: Any) -> None:
    x, other = driver.array("float32"), driver.array("float32", 0x20000, device=1)
    rule = "argument {} is on GPU 1, and the current device is GPU 0; make its device the current"
    refused(driver, copy, rule.format("out_ptr"), x, other, 5)
    refused(driver, copy, rule.format("x_ptr"), other, x, 5)


def test_grids_that_no_gpu_has(driver: FakeDriver, copy: Any) -> None:
    x = driver.array("float32")
    refused(driver, copy, "a grid has 1 to 3 sizes, got 4", x, x, 5, grid=(1, 1, 1, 1))
    refused(driver, copy, r"grid\[1\] must not exceed 65535 on a GPU", x, x, 5, grid=(1, 1 << 16))
    refused(driver, copy, "asks for the argument 'm'", x, x, 5, grid=lambda meta: (meta["m"],))


def test_an_array_that_says_its_device(driver: FakeDriver, copy: Any) -> None:
    """What it says by DLPack counts, if that is memory of one GPU of CUDA."""
    x, other = driver.array("float32"), driver.array("float32", 0x20000)
    for kind in (10, 13):  # kDLROCM, kDLCUDAManaged
        other.__dlpack_device__ = lambda kind=kind: (kind, 1)
        copy[1,](x, other, 5)
    other.__dlpack_device__ = lambda: (2, 1)
    refused(driver, copy, "argument out_ptr is on GPU 1, and the current", x, other, 5)


def test_another_current_device_has_code_of_its_own(driver: FakeDriver, copy: Any) -> None:
    x = driver.array("float32")
    copy[1,](x, x, 5)
    before = len(driver.loaded)
    driver.device = 1
    other = driver.array("float32", 0x20000, device=1)
    copy[1,](other, other, 5)
    assert len(driver.loaded) == before + 1
    with pytest.raises(LaunchError, match="is on GPU 0, and the current device is GPU 1"):
        copy[1,](x, x, 5)


def test_an_array_in_cpu_memory_among_those_on_a_gpu(driver: FakeDriver, copy: Any) -> None:
    x = driver.array("float32")
    rule = "argument out_ptr is in CPU memory, and others are on a GPU; move it there"
    refused(driver, copy, rule, x, np.zeros(100, np.float32), 5)
    refused(driver, copy, "argument x_ptr is in CPU memory", np.zeros(100, np.float32), x, 5)
    block = TensorDescriptor.from_tensor(np.zeros((8, 16), np.float32), [4, 16])
    refused(driver, copy, "argument x_ptr is in CPU memory", block, x, 5)


def test_a_null_pointer(driver: FakeDriver, copy: Any) -> None:
    x = driver.array("float32")
    refused(
        driver,
        copy,
        "argument x_ptr has no memory: its pointer is null",
        interface(data=(0, 0)),
        x,
        5,
    )
    empty = interface(data=(0, False), shape=(0, 4))
    copy[1,](empty, x, 0)
    assert driver.launches[-1][0].grid == (1, 1, 1)


def test_memory_that_the_driver_does_not_know(driver: FakeDriver, copy: Any) -> None:
    x = driver.array("float32")
    freed = interface(data=(0xDEAD00, False))
    refused(
        driver,
        copy,
        "argument out_ptr points to 0xdead00, which is no memory of a GPU",
        x,
        freed,
        5,
    )


def test_memory_that_was_freed_between_launches(driver: FakeDriver, copy: Any) -> None:
    x, y = driver.array("float32"), driver.array("float32", 0x30000)
    copy[1,](x, y, 5)
    copy[1,](x, y, 5)
    del driver.memory[0x30000]
    with pytest.raises(LaunchError, match="argument out_ptr points to 0x30000"):
        copy[1,](x, y, 5)


@pytest.mark.parametrize("typestr", ["<c8", ">f4", "<M8[s]", "|V4"])
def test_an_element_type_that_kernels_do_not_have(
    driver: FakeDriver, copy: Any, typestr: str
) -> None:
    x = driver.array("float32")
    rule = "argument x_ptr has dtype .*, which kernels cannot point to"
    refused(driver, copy, rule, interface(typestr=typestr), x, 5)


@pytest.mark.parametrize("broken", [{"typestr": "nonsense"}, {"data": None}, {"data": ()}], ids=str)
def test_an_interface_that_is_broken(driver: FakeDriver, copy: Any, broken: dict[str, Any]) -> None:
    x = driver.array("float32")
    refused(
        driver,
        copy,
        "argument x_ptr is no array on a GPU: its __cuda_arr",
        interface(**broken),
        x,
        5,
    )


def test_an_array_of_another_type_than_the_annotation(driver: FakeDriver) -> None:
    @proton.jit
    def annotated(x_ptr: tl.pointer_type(tl.float32)):  # type: ignore[valid-type]
        tl.store(x_ptr, 1.0)

    annotated[1,](driver.array("float32"))
    for _ in range(2):
        with pytest.raises(LaunchError, match=r"x_ptr must be \*?.*, got an array of"):
            annotated[1,](driver.array("float16"))
    assert len(driver.launches) == 1


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("num_warps", 3, "num_warps must be a power of 2, got 3"),
        ("num_warps", 64, "out of resource: threads, Required: 2048, Hardware limit: 1024; "),
        ("num_warps", True, "num_warps must be a power of 2, got True"),
        ("num_warps", "4", "num_warps must be a power of 2, got '4'"),
        ("num_stages", -1, "num_stages must be an integer that is not negative, got -1"),
        ("num_ctas", 3, r"num_ctas must be one of \(1, 2, 4, 8, 16\), got 3"),
        ("num_ctas", True, r"num_ctas must be one of \(1, 2, 4, 8, 16\), got True"),
        ("maxnreg", 0, "maxnreg must be from 1 to 255, got 0"),
        ("maxnreg", 300, "maxnreg must be from 1 to 255, got 300"),
    ],
)
def test_an_option_outside_of_its_range(
    driver: FakeDriver, copy: Any, option: str, value: Any, rule: str
) -> None:
    x = driver.array("float32")
    for _ in range(2):
        with pytest.raises(CompilationError, match=rule):
            copy[1,](x, x, 5, **{option: value})
        copy[1,](x, x, 5)
    assert len(driver.launches) == 2


@pytest.mark.parametrize("option", ["num_warp", "BLOCKS", "stream"])
def test_an_option_that_does_not_exist(driver: FakeDriver, copy: Any, option: str) -> None:
    x = driver.array("float32")
    for _ in range(2):
        with pytest.raises((LaunchError, TypeError), match=option):
            copy[1,](x, x, 5, **{option: 4})
        copy[1,](x, x, 5)
    assert len(driver.launches) == 2


@pytest.mark.parametrize("option", ["sched4reg"])
def test_an_option_of_triton_that_asks_for_what_is_not_there(
    driver: FakeDriver, copy: Any, option: str
) -> None:
    x = driver.array("float32")
    copy[1,](x, x, 5)
    copy[1,](x, x, 5, **{option: False})
    for _ in range(2):
        with pytest.raises(LaunchError, match=f"{option}=True is not supported on a GPU"):
            copy[1,](x, x, 5, **{option: True})


def test_a_scalar_that_does_not_fit_its_annotation(driver: FakeDriver) -> None:
    @proton.jit
    def annotated(x_ptr, v: tl.int8):
        tl.store(x_ptr, v)

    x = driver.array("float32")
    annotated[1,](x, 100)
    for value in (300, -129, 1.5, "3"):
        for _ in range(2):
            with pytest.raises(LaunchError, match="argument v"):
                annotated[1,](x, value)
    assert len(driver.launches) == 1


def test_no_gpu_at_all(copy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "device_count", lambda: 0)
    with pytest.raises(LaunchError, match="there is no GPU: no CUDA driver, or no device"):
        copy[1,](interface(), interface(), 5)
