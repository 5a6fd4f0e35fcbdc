"""Options of launches and the knobs that say what they are by default: `arch`, `enable_fp_fusion`,
`default_dot_input_precision`."""

import re
import struct

import pytest

import proton
import proton.language as tl
from proton.base.errors import InvalidOption, LaunchError, ProtonError
from proton.base.knobs import knobs
from proton.compiler import ASTSource
from tests.compile.fake_cuda import FakeDriver

TARGET = proton.GPUTarget("cuda", 90)
SIZE = 64


@proton.jit
def product(a_ptr, b_ptr, out_ptr, SIZE: tl.constexpr, PRECISION: tl.constexpr = None):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    product = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision=PRECISION)
    tl.store(out_ptr + at, product)


@proton.jit
def adds(x_ptr, a, b):
    at = x_ptr + tl.arange(0, 128)
    tl.store(at, tl.load(at) * a + b)


def ptx(kernel, *args, **options) -> str:
    found: str = kernel.warmup(*args, target=TARGET, **options).asm["ptx"]
    return found


def of_product(**options) -> str:
    return ptx(product, tl.float32, tl.float32, tl.float32, SIZE, **options)


def of_sum(**options) -> str:
    return ptx(adds, tl.float32, 2.0, 3.0, **options)


@pytest.mark.parametrize("arch", [80, 89, 90, 120])
def test_arch_names_the_gpu_to_compile_for(arch: int) -> None:
    kernel = adds.warmup(tl.float32, 2.0, 3.0, target=TARGET, arch=f"sm{arch}")
    assert re.search(rf"\n\.target sm_{arch}a?\n", kernel.asm["ptx"])
    assert kernel.metadata.arch == f"sm{arch}"
    with knobs.runtime.scope():
        knobs.runtime.override_arch = f"sm{arch}"
        assert re.search(rf"\n\.target sm_{arch}a?\n", of_sum())
        assert "\n.target sm_86\n" in of_sum(arch="sm86")
    assert "\n.target sm_90a\n" in of_sum()


def test_compile_takes_arch_among_its_options() -> None:
    source = ASTSource(adds, {"x_ptr": "*fp32", "a": "fp32", "b": "fp32"})
    kernel = proton.compile(source, target=TARGET, options={"arch": "sm80"})
    assert "\n.target sm_80\n" in kernel.asm["ptx"]


@pytest.mark.parametrize("arch", ["sm_90", "90", 90, "sm", "sm90a"])
def test_an_arch_that_is_misspelled(arch: object) -> None:
    with pytest.raises(InvalidOption, match='arch must have the form "sm90", got'):
        of_sum(arch=arch)


def test_an_arch_that_is_not_supported() -> None:
    with pytest.raises(ProtonError, match="no target has architecture 70"):
        of_sum(arch="sm70")


def test_code_of_another_gpu_is_not_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    driver.install(monkeypatch)
    x = driver.array("float32")
    for _ in range(2):  # the long way and the fast one
        adds[(1,)](x, 2.0, 3.0)
        adds[(1,)](x, 2.0, 3.0, arch="sm90")
    count = len(driver.launches)
    for arch in ("sm80", "sm100"):
        with pytest.raises(LaunchError, match=f"code for {arch} does not run on this GPU, cuda:90"):
            adds[(1,)](x, 2.0, 3.0, arch=arch)
    assert len(driver.launches) == count == 4


def test_the_default_of_fused_multiply_adds() -> None:
    assert "fma.rn.f32" in of_sum()
    with knobs.scope(default_fp_fusion=False):
        assert "fma.rn.f32" not in of_sum()
        assert "fma.rn.f32" in of_sum(enable_fp_fusion=True)
    with knobs.language.scope():
        knobs.language.default_fp_fusion = False
        assert not knobs.default_fp_fusion
        assert "fma.rn.f32" not in of_sum()
    assert "fma.rn.f32" in of_sum()


def test_a_knob_counts_for_launches_that_were_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    driver.install(monkeypatch)
    x, kernels = driver.array("float32"), []
    for is_default in (True, False, True):
        with knobs.scope(default_fp_fusion=is_default):
            kernels += [adds[(1,)](x, 2.0, 3.0) for _ in range(2)]
    assert ["fma.rn.f32" in kernel.asm["ptx"] for kernel in kernels] == [True] * 2 + [False] * 2 + [
        True
    ] * 2


def test_the_default_precision_of_products() -> None:
    assert "tf32" in of_product()
    assert "tf32" not in of_product(PRECISION="ieee")
    assert "tf32" not in of_product(default_dot_input_precision="ieee")
    assert "tf32" in of_product(PRECISION="tf32", default_dot_input_precision="ieee")
    with knobs.language.scope():
        knobs.language.fp32_default = "ieee"
        assert "tf32" not in of_product()
        assert "tf32" in of_product(PRECISION="tf32")
        assert "tf32" in of_product(default_dot_input_precision="tf32")
    with pytest.raises(proton.CompilationError, match=r"input_precision must be one of .* 'fp8'"):
        of_product(default_dot_input_precision="fp8")


def test_a_constant_of_the_name_of_an_option_is_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """liger-kernel's sparsemax has `num_warps` among its parameters: Triton runs it by so many."""

    @proton.jit
    def doubles(x_ptr, num_warps: tl.constexpr = 2):
        at = x_ptr + tl.arange(0, 512)
        tl.store(at, tl.load(at) * num_warps)

    driver = FakeDriver()
    driver.install(monkeypatch)
    x = driver.array("float32")
    arguments = ((), {}), ((), {"num_warps": 8}), ((16,), {}), ((), {"num_warps": tl.constexpr(4)})
    for _ in range(2):  # the first time by the slow path, then by the fast one
        for args, kwargs in arguments:
            doubles[1,](x, *args, **kwargs)
    threads = [launch.block for launch, _ in driver.launches]
    assert threads == 2 * [(64, 1, 1), (256, 1, 1), (512, 1, 1), (128, 1, 1)]
    for _ in range(2):
        with pytest.raises(ProtonError, match="num_warps must be a power of 2, got 3"):
            doubles[1,](x, num_warps=3)

    tuned = proton.autotune([proton.Config({}, num_warps=32)], key=[])(doubles)
    tuned[1,](x)
    assert driver.launches[-1][0].block == (1024, 1, 1)
    kernel = doubles.warmup(tl.float32, num_warps=8, target=TARGET)
    assert kernel.metadata.num_warps == 8
    assert "\n.maxntid 256\n" in kernel.asm["ptx"]
    assert f"0f{struct.pack('>f', 8).hex().upper()}" in kernel.asm["ptx"]


def test_an_argument_of_the_name_of_an_option_is_none() -> None:
    @proton.jit
    def adds_warps(x_ptr, num_warps):
        at = x_ptr + tl.arange(0, 128)
        tl.store(at, tl.load(at) + num_warps)

    kernel = adds_warps.warmup(tl.float32, num_warps=7, target=TARGET)
    assert kernel.metadata.num_warps == 4


@pytest.mark.parametrize(
    ("options", "attributes"),
    [
        ({}, ()),
        ({"launch_pdl": True}, ((6, 1),)),
        ({"launch_cooperative_grid": True}, ((2, 1),)),
        ({"launch_cooperative_grid": True, "launch_pdl": True}, ((2, 1), (6, 1))),
        ({"launch_cooperative_grid": False, "num_ctas": 4}, ()),
    ],
    ids=str,
)
def test_what_the_driver_is_told_of_a_launch(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, object], attributes: tuple[object, ...]
) -> None:
    """cuda.h: CU_LAUNCH_ATTRIBUTE_COOPERATIVE is 2, PROGRAMMATIC_STREAM_SERIALIZATION 6."""
    driver = FakeDriver()
    driver.install(monkeypatch)
    x = driver.array("float32")
    for _ in range(2):  # the slow way, and the generated one
        adds[(2, 3)](x, 2.0, 3.0, num_warps=8, **options)
    assert len(driver.launches) == 2
    for launch, _ in driver.launches:
        assert launch.attributes == attributes
        assert (launch.grid, launch.block) == ((2, 3, 1), (256, 1, 1))


def test_num_ctas_changes_no_code() -> None:
    """A program runs in one block of threads, whatever it asks for."""
    kernel = adds.warmup(tl.float32, 2.0, 3.0, target=TARGET, num_ctas=2)
    assert kernel.asm["ptx"] == of_sum()
    assert kernel.metadata.num_ctas == 2
