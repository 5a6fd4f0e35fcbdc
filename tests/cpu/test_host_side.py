"""What programs around kernels ask for: times, comparisons, tables, targets, kernels compiled
without a launch."""

import importlib.util
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import proton
import proton.language as tl
from proton import testing
from proton.compiler import ASTSource
from proton.runtime import backend, driver
from proton.runtime.backend import Backend
from proton.runtime.cpu import timer
from proton.runtime.cpu.caches import levels_below
from proton.runtime.tuning.benchmark import summary
from proton.testing import peaks
from tests.cpu.harness import kernels_of

HOPPER = proton.GPUTarget("cuda", 90)


# do_bench


class Script:
    """A timer whose clock only the measured function moves."""

    def __init__(self) -> None:
        self.now, self.cleared, self.released = 0.0, 0, False

    def clear_cache(self) -> None:
        self.cleared += 1

    def mark(self) -> float:
        return self.now

    def elapsed_ms(self, begin: float, end: float) -> float:
        return end - begin

    def synchronize(self) -> None:
        pass

    def release(self) -> None:
        self.released = True


class Scripted(Backend):
    name = "scripted"

    def __init__(self) -> None:
        self.script = Script()

    def is_there(self) -> bool:
        return True

    def owns(self, value: Any) -> bool:
        return False

    def element_bytes(self, array: Any) -> int:
        raise NotImplementedError

    def launcher(self, kernel: Any) -> Any:
        raise NotImplementedError

    def timer(self) -> Script:
        return self.script


class Tensor:
    grad: Any = "a gradient"


@pytest.mark.parametrize("return_mode", ["mean", "min", "max", "median", "all"])
def test_do_bench_measures_calls_for_a_while(return_mode: str) -> None:
    there, calls, tensor = Scripted(), [], Tensor()

    def work() -> None:
        calls.append(tensor.grad)
        tensor.grad = "a gradient"
        there.script.now += 2.0 + len(calls) % 2  # 2 and 3 ms in turns

    found = testing.do_bench(
        work, warmup=10, rep=26, grad_to_none=[tensor], return_mode=return_mode, backend=there
    )
    # one call to compile, five to guess 2.4 or 2.6 ms, warmup / that, rep / that
    warm = 10 // 2.4
    assert len(calls) == 1 + 5 + warm + 26 // 2.4
    assert calls[-1] is None
    assert calls[0] == "a gradient"
    assert there.script.cleared == 5 + 26 // 2.4
    assert there.script.released
    times = [2.0 + n % 2 for n in range(len(calls) - 9, len(calls) + 1)]
    want = times if return_mode == "all" else getattr(np, return_mode)(times)
    assert found == want


def test_quantiles_of_times(rng: np.random.Generator) -> None:
    times = list(rng.random(17))
    assert summary(times, (0.5, 0.2, 0.8)) == list(np.quantile(times, (0.5, 0.2, 0.8)))
    assert summary(times, [0.5]) == np.median(times)


def test_do_bench_on_the_cpu_and_its_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer, "_MOST", 1 << 20)  # the caches of some machines have 100 MB
    calls: list[int] = []
    times = testing.do_bench(
        lambda: calls.append(1), 0, 0, return_mode="all", backend=backend.backend_named("cpu")
    )
    assert len(times) == 1
    assert times[0] > 0
    assert len(calls) == 8
    with pytest.raises(ValueError, match="return_mode must be one of mean"):
        testing.do_bench(lambda: None, return_mode="avg")
    with pytest.raises(ValueError, match="quantiles lie from 0 to 1"):
        testing.do_bench(lambda: None, quantiles=(50,))


# assert_close


def test_assert_close(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 7)).astype(np.float32)
    x[0, 0] = np.nan
    testing.assert_close(x, x + np.float32(0.009))
    testing.assert_close(2.0, 2)
    testing.assert_close(x, x * 1.01, atol=0, rtol=lambda dtype: 0.02 if dtype == "f4" else 0)
    with pytest.raises(AssertionError, match="mine"):
        testing.assert_close(x, x + np.float32(0.02), err_msg="mine")
    with pytest.raises(AssertionError):
        testing.assert_close(x, np.zeros_like(x))
    with pytest.raises(AssertionError):
        testing.assert_close(x, x[:2])


# perf_report


def report(**options: Any) -> testing.Benchmark:
    given = {
        "x_names": ["m", "n"],
        "x_vals": [1, 2, (3, 4)],
        "line_arg": "provider",
        "line_vals": ["a", "b"],
        "line_names": ["A", "B"],
        "plot_name": "products",
        "args": {"k": 10},
        "ylabel": "ms",
    }
    return testing.Benchmark(**given | options)


def test_a_report_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @testing.perf_report(report())
    def products(m: int, n: int, provider: str, k: int, shift: int = 0) -> Any:
        middle = float(m * n * k + shift)
        return middle if provider == "a" else (-middle, -middle - 1, -middle + 1)

    table = products.run(print_data=True, save_path=tmp_path / "new", return_df=True, shift=5)
    want = pd.DataFrame(
        {"m": [1, 2, 3], "n": [1, 2, 4], "A (ms)": [15.0, 45, 125], "B (ms)": [-15.0, -45, -125]}
    )
    pd.testing.assert_frame_equal(table, want)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "new" / "products.csv"), want)
    assert capsys.readouterr().out.startswith("products:\n")
    several = testing.perf_report([report(), report(x_vals=[2])])(products.fn)
    assert [len(table) for table in several.run(return_df=True)] == [3, 1]
    assert several.run() is None


def test_a_report_is_a_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    fn = testing.perf_report(report(x_log=True, styles=[("blue", "-"), ("red", "--")]))(
        lambda m, n, provider, k: (m, m - 1, m + 1)
    )
    fn.run(save_path=tmp_path)
    assert (tmp_path / "products.png").read_bytes().startswith(b"\x89PNG")


def test_a_wrong_report_is_an_error() -> None:
    with pytest.raises(ValueError, match="line_names are the names of line_vals, got 1 for 2"):
        report(line_names=["A"])
    fn = testing.perf_report(report(x_vals=[(1, 2, 3)]))(lambda **_: 1.0)
    with pytest.raises(ValueError, match="has not 2 values"):
        fn.run()


# Targets, and kernels without a launch


@proton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr = 64):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * factor, mask=offs < n)


SIGNATURE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "factor": "fp32"}


def test_compile_gives_what_warmup_gives() -> None:
    made = proton.compile(
        ASTSource(scale, SIGNATURE, {"BLOCK": 128}), HOPPER, {"num_warps": 8, "num_stages": 2}
    )
    launch = [tl.float32, tl.float32, 77, 2.0, 128]
    same = scale.warmup(*launch, target=HOPPER, num_warps=8, num_stages=2)
    assert made.metadata["num_warps"] == 8
    assert ".entry" in made.asm["ptx"]
    # A dtype stands for an array whose address is a multiple of 16, and a launch sees that 77 is
    # not negative; a source says so itself.
    said = {(at,): [["tt.divisibility", 16]] for at in (0, 1)} | {"n": [["tt.non_negative", 1]]}
    source = ASTSource(scale, SIGNATURE | {"BLOCK": "constexpr"}, {(4,): 128}, said)
    made = proton.compile(source, HOPPER, {"num_warps": 8, "num_stages": 2})
    assert made.metadata["signature"] == same.metadata["signature"]
    assert made.asm["ptx"] == same.asm["ptx"]
    with proton.knobs.scope(backend="cpu"):
        made = proton.compile(ASTSource(scale, SIGNATURE))
    assert made.metadata["signature"].endswith("BLOCK=64")
    assert "define" in made.asm["llir"]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ASTSource(scale, {"x": "*fp32"}), proton.ProtonError, "no parameter 'x'"),
        (lambda: ASTSource(scale, {9: "*fp32"}), proton.ProtonError, "no parameter 9; there are"),
        (lambda: ASTSource(scale, {"x_ptr": "*fp32"}), proton.ProtonError, "no type of out_ptr"),
        (lambda: ASTSource(scale, {"x_ptr": "float*"}), TypeError, "no type is written"),
        (lambda: ASTSource(print, {}), TypeError, "ASTSource takes a kernel"),
        (lambda: proton.compile(7), TypeError, "ASTSource, or the path of a file of IR"),
        (
            lambda: proton.compile(ASTSource(scale, SIGNATURE), "cuda:90"),
            TypeError,
            "target must be a target",
        ),
        (
            lambda: proton.compile(ASTSource(scale, SIGNATURE), HOPPER, {"num_warp": 4}),
            proton.CompilationError,
            "no option 'num_warp'; did you mean num_warps",
        ),
        (
            lambda: ASTSource(scale, SIGNATURE, attrs={0: [["tt.pointer_range", 32]]}),
            proton.ProtonError,
            "only tt.divisibility, tt.non_negative are known, got tt.pointer_range",
        ),
    ],
)
def test_a_wrong_source_is_an_error(make: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_the_active_driver_describes_the_device() -> None:
    with proton.knobs.scope(backend="cpu"):
        active = proton.runtime.driver.active
        assert active is driver.active
        assert str(active.get_current_target()) == "cpu"
        assert active.get_current_target().backend == "cpu"
        properties = active.utils.get_device_properties(active.get_current_device())
        assert properties["multiprocessor_count"] >= 1
        assert properties["name"]
        # What libraries choose the size of blocks by
        assert 64 << 10 <= properties["max_shared_mem"] <= properties["last_level_cache"]
        assert active.get_current_stream() == 0
        out = active.get_benchmarker()(lambda: None, warmup=0, rep=0, quantiles=(0.5, 0.2))
        assert len(out) == 2
        assert all(math.isfinite(ms) for ms in out)
        with pytest.raises(proton.LaunchError, match="there is one CPU"):
            active.get_device_properties(3)
        made = scale.warmup(tl.float32, tl.float32, 77, 2.0, target=active.get_current_target())
        assert made.metadata.get("target", "cpu") == "cpu"


@pytest.mark.parametrize(
    ("caches", "levels"),
    [
        (
            [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"),
             ("3", "Unified", "260M")],
            {1: 48 << 10, 2: 2 << 20, 3: 260 << 20},
        ),
        ([("1", "Instruction", "64K"), ("1", "Data", "1000")], {1: 1000}),
        ([], {}),
    ],
)  # fmt: skip
def test_the_caches_are_those_that_linux_describes(
    tmp_path: Path, caches: list[tuple[str, str, str]], levels: dict[int, int]
) -> None:
    for index, texts in enumerate(caches):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in zip(("level", "type", "size"), texts, strict=True):
            (folder / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()  # one that tells nothing
    assert levels_below(tmp_path) == levels


def test_a_cuda_graph_needs_torch_and_a_gpu() -> None:
    if importlib.util.find_spec("torch") is None:
        with pytest.raises(proton.ProtonError, match=r"do_bench_cudagraph needs .*torch"):
            testing.do_bench_cudagraph(lambda: None)
    elif not pytest.importorskip("torch").cuda.is_available():
        with pytest.raises(proton.LaunchError, match="needs a GPU, and there is none"):
            testing.do_bench_cudagraph(lambda: None)
    with pytest.raises(ValueError, match="return_mode must be one of mean, min"):
        testing.do_bench_cudagraph(lambda: None, return_mode="best")


# Names that tests and libraries of Triton's read


@proton.jit
def combined(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)  # noqa: F841
    tl.store(out_ptr + at, GENERATED)  # noqa: F821 - in the place of which tests put expressions


def test_a_kernel_with_another_text_is_another_kernel() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    keys = set()
    for expression, want in (("x * 3", x * 3), ("-x", -x)):
        variant = proton.JITFunction(combined.fn)
        variant._unsafe_update_src(variant.src.replace("GENERATED", expression))
        variant[(1,)](x, out, N=4)
        assert (out == want).all()
        with proton.knobs.scope(interpret=True):
            variant[(1,)](x, out * 0, N=4)
        keys.add(variant.cache_key)
        variant._unsafe_update_src(variant.src.replace(expression, "x + 1"))
        variant[(1,)](x, out, N=4)
        assert (out == x + 1).all()
    assert len(keys) == 2
    with pytest.raises(proton.CompilationError, match="GENERATED") as caught:
        combined[(1,)](x, out, N=4)
    assert caught.value.span is not None
    assert caught.value.span.line == combined.starting_line_number + 4


def test_the_kernels_that_are_compiled_can_be_counted_and_dropped() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    kernel = proton.JITFunction(combined.fn)
    kernel._unsafe_update_src(kernel.src.replace("GENERATED", "x"))
    kernels, _, target, _, _ = kernel.device_caches["cpu"]
    assert target == driver.active.get_current_target()
    assert len(kernels) == 0
    first = kernel.warmup(tl.float32, proton.MockTensor(tl.float32), N=4)
    assert kernel[(1,)](x, out, N=4) is first
    assert list(kernels.values()) == [first]
    kernels.clear()
    assert kernel[(1,)](x, out, N=4).key == first.key
    assert kernel.used_global_vals == {}


def test_launches_of_the_same_code_have_the_same_cache_key() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    kernel = proton.JITFunction(combined.fn)
    kernel._unsafe_update_src(kernel.src.replace("GENERATED", "x"))
    _, keys, _, _, binder = kernel.device_caches["cpu"]
    found = [
        proton.runtime.launch.jit.compute_cache_key(keys, *binder(*arguments)[1:])
        for arguments in ((x, out, 4), (out, x, 4), (x, out, 8), (x.astype(np.int32), out, 4))
    ]
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_types_say_what_triton_s_say() -> None:
    for name, bits, bias in (("float16", 10, 15), ("bfloat16", 7, 127), ("float8e5b16", 2, 16)):
        type_ = getattr(tl, name)
        assert (type_.fp_mantissa_width, type_.exponent_bias) == (bits, bias)
    with pytest.raises(TypeError, match="i32 is no float"):
        _ = tl.int32.exponent_bias
    every = {name for name in vars(tl) if isinstance(getattr(tl, name), tl.dtype)}
    listed = [*tl.dtype.SINT_TYPES, *tl.dtype.UINT_TYPES, *tl.dtype.FP_TYPES, "void"]
    assert {tl.str_to_ty(name) for name in listed} == {getattr(tl, n) for n in every - {"pi32_t"}}
    assert [n for n in tl.dtype.FP_TYPES if tl.str_to_ty(n).is_standard_floating()] == [
        *tl.dtype.STANDARD_FP_TYPES
    ]
    block = tl.block_type(tl.float16, (4, 8))
    assert (block.numel, block.nbytes, block.get_block_shapes()) == (32, 64, (4, 8))
    assert block.with_element_ty(tl.int64) == tl.block_type(tl.int64, (4, 8))
    assert tl.str_to_ty("*kfp16").is_const()
    assert tl.str_to_ty(("i32", "constexpr"), 3) == tl.tuple_type([tl.int32, tl.constexpr_type(3)])


def test_libraries_keep_files_beside_kernels(cache_dir: Path) -> None:
    from proton.runtime.cache import FileCacheManager, get_cache_manager

    with proton.knobs.scope(cache_dir=cache_dir):
        files = get_cache_manager("00ff17")
        assert files.get_file("tuned.json") is None
        path = files.put("{}", "tuned.json", binary=False)
        assert FileCacheManager(files.key).get_file("tuned.json") == path
        files.put_group("all", {"tuned.json": path})
        assert files.get_group("all") == {"tuned.json": path}
        assert files.get_group("none") is None
        Path(path).unlink()
        assert files.get_group("all") is None  # of which one is gone


def test_the_driver_names_devices_as_torch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = SimpleNamespace(device=lambda *of: of, cpu="torch.cpu", cuda="torch.cuda")
    monkeypatch.setitem(sys.modules, "torch", torch)
    with proton.knobs.scope(backend="cpu"):
        assert driver.active.get_active_torch_device() == ("cpu",)
        assert driver.active.get_device_interface() == "torch.cpu"


def test_libdevice_is_a_module_of_both_packages() -> None:
    name = "proton.language.extra.cuda.libdevice"
    assert importlib.import_module(name) is importlib.import_module(
        "proton.language.extra.libdevice"
    )


def test_libraries_of_one_s_own_are_refused_where_they_would_be_linked() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    kernel = proton.JITFunction(combined.fn)
    kernel._unsafe_update_src(kernel.src.replace("GENERATED", "tl.math.tanh(x)"))
    libraries = {"libdevice": "/opt/libdevice.10.bc"}
    kernel[(1,)](x, out, N=4, extern_libs=libraries)
    np.testing.assert_allclose(out, np.tanh(x), rtol=1e-6)
    kernel.warmup(tl.float32, tl.float32, N=4, extern_libs=libraries, target=HOPPER)._init_handles()
    with pytest.raises(proton.LaunchError, match=r"extern_libs: only libdevice .* got mine"):
        kernel.warmup(tl.float32, tl.float32, N=4, extern_libs={"mine": "/m.bc"}, target=HOPPER)


def test_peaks_are_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an A100: 108 SMs, 1215 MHz of memory on 5120 bits, 312 TFLOPs of fp16 at 1410 MHz."""
    chip = {"multiprocessor_count": 108, "mem_clock_rate": 1_215_000, "mem_bus_width": 5120}
    monkeypatch.setattr(peaks, "_properties", lambda what, device: chip)
    assert testing.get_dram_gbps() == pytest.approx(1555.2)
    tensor_cores, alus = testing.get_max_tensorcore_tflops, testing.get_max_simd_tflops
    for dtype, tflops in ((tl.float16, 312), (tl.float32, 156), (tl.int8, 624)):
        assert tensor_cores(dtype, 1_410_000) == pytest.approx(tflops, rel=1e-3)
    assert alus(tl.float32, 1_410_000) == pytest.approx(19.5, rel=1e-3)
    assert alus("torch.float16", 1_410_000) == pytest.approx(39, rel=1e-3)
    with pytest.raises(ValueError, match="get_max_simd_tflops: no number for int8; there are flo"):
        alus(tl.int8, 1_410_000)


def test_a_cpu_has_no_peaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (
        proton.knobs.scope(backend="cpu"),
        pytest.raises(proton.ProtonError, match="get_dram_gbps is for GPUs, and kernels run on"),
    ):
        testing.get_dram_gbps()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        testing.nvsmi(["clocks.max.sm"])
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!{sys.executable}\nimport sys\nprint(len(sys.argv), 1980, sep=', ')\n")
    program.chmod(0o755)
    assert testing.nvsmi(["clocks.max.sm", "clocks.max.mem"]) == [5, 1980]


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [(testing, "set_gpu_clock", "nvidia-smi"), (proton.compiler, "make_backend", "takes a target")],
)
def test_what_is_not_there_says_what_to_do(module: Any, name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"{name}.*{instead}"):
        getattr(module, name)


def test_what_is_compiled_is_dropped_for_all_devices() -> None:
    out = np.zeros(1, np.int32)
    kernel = kernels_of("@proton.jit\ndef kernel(p): tl.store(p, 1)\n").kernel
    kernel[(1,)](out)
    assert len(kernel.device_caches["cpu"][0]) == 1
    kernel.device_caches.clear()
    assert len(kernel.device_caches["cpu"][0]) == 0
    kernel[(1,)](out)
    assert out[0] == 1


def test_a_constexpr_is_always_specialized() -> None:
    source = "@proton.jit(do_not_specialize=[{}])\ndef kernel(p, N: tl.constexpr): pass\n"
    for name in ("'N'", "1"):
        with pytest.raises(ValueError, match="kernel: N is a constexpr: take it out"):
            kernels_of(source.format(name)).kernel.warmup(tl.int32, 1, grid=(1,))
