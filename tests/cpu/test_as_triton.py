"""Programs that import triton: they get Proton, and classes of theirs around kernels work."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests import processes

SCRIPT = """
import importlib.metadata, sys
import numpy as np
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice
from triton.language.extra.cuda.gdc import gdc_launch_dependents, gdc_wait
from triton.language.extra.cuda.utils import globaltimer, num_threads, num_warps, smid
from triton.language.core import constexpr, int32, _unwrap_if_constexpr
from triton.language.random import N_ROUNDS_DEFAULT, philox_impl
from triton.language.standard import _log2, zeros_like
from triton.compiler.compiler import ASTSource
from triton.compiler.errors import CompilationError
from triton.runtime._allocation import set_allocator
from triton.runtime._async_compile import AsyncCompileMode, FutureKernel
from triton.runtime.autotuner import Autotuner, Config
from triton.runtime.errors import OutOfResources
from triton.runtime import InterpreterError, driver
from triton.runtime.driver import driver as the_driver
from triton.runtime.jit import JITFunction, KernelInterface
from triton.tools.ragged_tma import create_ragged_descriptor, load_ragged, store_ragged
from triton.tools.tensor_descriptor import TensorDescriptor
assert issubclass(CompilationError, triton.errors.TritonError)
from triton.compiler.errors import TritonError as base
from triton.runtime.errors import TritonError
from triton.compiler import compile
from triton.compiler.compiler import GPUTarget, OutOfResources as resources
assert base is TritonError is triton.TritonError and compile is triton.compile
from triton.backends.compiler import GPUTarget as target
assert resources is OutOfResources and GPUTarget is target

@triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"],
                 do_bench=lambda call, quantiles: (call(), [1.0])[1])
@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    for start in tl.static_range(triton.cdiv(64, BLOCK)):
        at = start * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, libdevice.sqrt(tl.load(x + at, mask=at < n)), mask=at < n)

x = np.arange(64, dtype=np.float32)
scale[(1,)](x, 60)
import proton
assert driver is the_driver and driver.active.get_current_target() is not None
triton.knobs.runtime.debug = True
import triton.knobs
from triton.knobs import runtime
assert proton.knobs.debug is True and runtime.debug is True
try:
    scale.fn[(1,)](x, 60, BLOCK=17)
except CompilationError as error:
    assert "power of 2" in str(error.__cause__), error.__cause__
else:
    raise AssertionError("a block of 17")
assert triton.knobs.compilation.front_end_debugging is proton.knobs.full_traceback is False
triton.knobs.compilation.front_end_debugging = True
assert proton.knobs.full_traceback is True
triton.knobs.runtime.debug = False
assert proton.knobs.debug is False and runtime is triton.knobs.runtime is proton.knobs.runtime
with proton.knobs.scope(triton_version="3.10"):
    assert triton.__version__ == importlib.metadata.version("triton") == "3.10.0"
print(triton.__version__ == importlib.metadata.version("triton"))
print(triton.language is proton.language)
print(smid is tl.extra.cuda.smid and gdc_wait is tl.extra.cuda.gdc_wait, N_ROUNDS_DEFAULT.value)
print(np.allclose(x[60:], np.arange(60, 64)), x[:60].max() < 60, isinstance(scale, Autotuner))
for name in ("triton.experimental.gluon.amd", "triton.language.nothing"):
    try:
        __import__(name)
    except ModuleNotFoundError as problem:
        print(problem)
try:
    triton.nothing
except AttributeError as problem:
    print(problem)
"""


def test_a_script_that_imports_triton_runs_with_proton(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = processes.python("-m", "proton", "--as-triton", "-q", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True",
        "True",
        "True 10",
        "True True True",
        "No module named 'triton.experimental.gluon.amd': Proton stands for triton here, and has "
        "no such module: AMD's GPUs are not supported",
        "No module named 'triton.language.nothing': Proton stands for triton here, and has no "
        "such module",
        "module 'triton', which Proton stands for, has no 'nothing': module 'proton' has no "
        "attribute 'nothing'",
    ]


MODULES = """
import proton
proton.install_as_triton()
import triton
made = triton.backends.compiler.GPUTarget("cuda", 90, 32)
print(made == proton.GPUTarget("cuda", 90), triton.runtime.autotuner.Autotuner)
print(triton.language.extra.cuda.libdevice.sqrt, triton.compiler.errors.CompilationError)
triton.set_allocator(lambda *asked: None)
triton.set_allocator(triton.runtime._allocation.NullAllocator())
from proton.runtime.launch.allocation import current_allocator
print(current_allocator())
"""


def test_import_triton_brings_its_modules_along() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", MODULES], capture_output=True, text=True, check=True
    )
    names = "True", "Autotuner", "sqrt of libdevice", "CompilationError", "None"
    assert all(name in shown.stdout for name in names), shown.stdout


NAMED = """
import proton
proton.install_as_triton()
import importlib
import numpy as np
import triton
import triton.compiler.errors
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.core import _unwrap_if_constexpr, dtype

for type_ in (tl.int1, tl.float32, tl.float8e5, tl.uint64):
    assert eval(repr(type_)) is type_ and getattr(tl, type_.name) is type_, repr(type_)
found = (tl.load, tl.sum, tl.cdiv, tl.rand, tl.exp, tl.sort, dtype, tl.constexpr, tl.tensor)
for value in (*found, tl.core.get_int_dtype, libdevice.fast_dividef):
    assert value.__module__.startswith("triton.language"), value
    assert getattr(importlib.import_module(value.__module__), value.__name__) is value

assert triton.tools.tensor_descriptor.TensorDescriptor.from_tensor
get_int_dtype = triton.constexpr_function(tl.core.get_int_dtype)

@triton.jit
def bits(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, tl.core._unwrap_if_constexpr(N))
    same = get_int_dtype(32, True)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(same, bitcast=True))

x, out = np.random.rand(16).astype(np.float32), np.zeros(16, np.int32)
bits[(1,)](x, out, 16)
assert (out == x.view(np.int32)).all()
bits[(1,)](x, out, 15)
"""


def test_the_language_says_that_it_is_of_triton(tmp_path: Path) -> None:
    """By that and by `repr` of types torch writes the source of a program's kernels. What workers
    raise it knows by their text."""
    (tmp_path / "named.py").write_text(NAMED)
    done = processes.python("named.py", cwd=tmp_path)
    assert re.search(
        r"^triton\.compiler\.errors\.CompilationError: .*named\.py:", done.stderr, re.M
    )


def test_import_triton_loads_nothing_before_it_is_asked_for() -> None:
    code = (
        "import sys, proton; proton.install_as_triton(); import triton;"
        "print([n for n in sys.modules if n in ('numpy', 'torch', 'numba_cuda_mlir')"
        " or n.startswith(('proton.runtime', 'proton.language', 'proton.dialect'))]);"
        "triton.runtime.jit.JITFunction, triton.language.float32, triton.testing.do_bench;"
        "print({'triton.runtime.jit', 'triton.language', 'triton.testing'} <= sys.modules.keys(),"
        "'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[]", "True False"], done.stderr


CHILDREN = """
import triton
import triton.language as tl

@triton.jit
def fails(x):
    tl.device_assert(tl.load(x) == 1, "x is 1")

def launches(*numbers):
    import numpy as np
    fails[(1,)](np.array(numbers, np.int32))
"""
PARENT = """
import proton
proton.install_as_triton()
from triton._internal_testing import run_in_process
import children

if __name__ == "__main__":
    for variables in ({"TRITON_DEBUG": "1"}, {"TRITON_DEBUG": "0"}, None):
        done = run_in_process(children.launches, (2,), env=variables)
        print(isinstance(done.exc, RuntimeError), done.exc)
"""


def test_a_process_for_a_test_stands_for_triton_as_its_parent_does(tmp_path: Path) -> None:
    (tmp_path / "children.py").write_text(CHILDREN)
    (tmp_path / "parent.py").write_text(PARENT)
    command = [sys.executable, str(tmp_path / "parent.py")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    failed, *others = shown.stdout.splitlines()
    assert failed.startswith("True")
    assert "assertion failed: x is 1 (device-side assertion)" in failed
    assert others == ["False None"] * 2


STARTS = """
import subprocess, sys
command = [sys.executable, "-c", "import triton; print(triton.language.__name__)"]
subprocess.run([sys.executable, "-c", f"import subprocess; subprocess.run({command})"], check=True)
"""


def test_processes_that_a_program_starts_have_proton_as_it_has(tmp_path: Path) -> None:
    """... and those that they start: launchers of ranks, and benchmarks, are such."""
    (tmp_path / "starts.py").write_text(STARTS)
    done = processes.python("-m", "proton", "--as-triton", "-q", "starts.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "proton.language\n"), done.stderr


def test_who_has_imported_triton_is_told_to_be_later(tmp_path: Path) -> None:
    (tmp_path / "triton.py").write_text("")
    code = "import triton, proton; proton.install_as_triton()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert "install_as_triton: triton is imported already; call it first" in done.stderr


# What libraries put around kernels


@proton.jit
def add_one(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)


class Counting(proton.KernelInterface):
    """Launches a kernel, and counts."""

    def __init__(self, fn: Any) -> None:
        self.fn, self.count = fn, 0

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        self.count += 1
        return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)


class FirstOfAll(proton.runtime.Autotuner):
    """Tunes by a `run` of its own."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        self.tried = self.prune_configs(kwargs)
        times = {c: self._bench(*args, config=c, **kwargs) for c in self.tried}
        self.best_config = min(times, key=lambda config: times[config])
        return self.fn.run(*args, **kwargs, **self.best_config.all_kwargs())


def test_an_interface_around_a_kernel_is_launched_as_a_kernel_is() -> None:
    counting = Counting(add_one)
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    kernel = counting[lambda meta: (proton.cdiv(10, meta["BLOCK"]),)](x, y, 10, BLOCK=4)
    np.testing.assert_array_equal(y, x + 1)
    compiled = counting.warmup(x, y, 10, BLOCK=4, grid=(1,))
    assert counting.count == 2
    assert compiled is kernel


def test_a_class_derived_from_the_autotuner_has_what_it_needs() -> None:
    calls: list[int] = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        calls.append(1)
        return [2.0 - len(calls)] * 3

    configs = [proton.Config({"BLOCK": size}) for size in (16, 32)]
    tuner = FirstOfAll(add_one, add_one.arg_names, configs, ["n"], None, ["y_ptr"], do_bench=bench)
    x, y = np.arange(30, dtype=np.float32), np.zeros(30, np.float32)
    tuner[lambda meta: (proton.cdiv(30, meta["BLOCK"]),)](x, y, 30)
    np.testing.assert_array_equal(y, x + 1)
    assert tuner.tried == configs
    assert tuner.best_config is configs[1]
    assert (tuner.fn, tuner.base_fn) == (add_one, add_one.fn)


def test_heuristics_may_choose_options_of_the_launch() -> None:
    kernel = proton.heuristics({"num_warps": lambda args: 8, "BLOCK": lambda args: 16})(add_one)
    compiled = kernel.warmup(tl.float32, tl.float32, 10, target=proton.GPUTarget("cuda", 90))
    assert compiled.metadata.num_warps == 8
    with pytest.raises(ValueError, match=r"no parameter 'num_warp'; did you mean num_warps\?"):
        proton.heuristics({"num_warp": lambda args: 8})(add_one)


# Kernels that are compiled already


def test_a_compiled_kernel_is_launched_with_all_arguments_or_those_that_are_not_constexprs() -> (
    None
):
    x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    kernel = add_one.warmup(x, y, 10, BLOCK=16)
    assert kernel[(1,)](x, y, 8) is kernel
    np.testing.assert_array_equal(y, [*(x[:8] + 1), 0, 0])
    assert kernel[(1, 1, 1)](x, y, 10, 4096) is kernel
    np.testing.assert_array_equal(y, x + 1)
    with pytest.raises(proton.LaunchError, match="its 3 arguments that are no constexprs, or all"):
        kernel[(1,)](x, y)
    with pytest.raises(proton.LaunchError, match="by position, got 2, n, BLOCK"):
        kernel[(1,)](x, y, n=10, BLOCK=16)


def test_a_compiled_kernel_of_another_device_is_not_launched() -> None:
    target = proton.GPUTarget("cuda", 90)
    kernel = add_one.warmup(tl.float32, tl.float32, 10, BLOCK=16, num_warps=2, target=target)
    facts = kernel.metadata
    assert (facts.target, facts.num_warps, facts.num_ctas) == (target, 2, 1)
    assert kernel.hash == kernel.key
    assert kernel.kernel == kernel.asm["cubin"]
    x = np.zeros(10, np.float32)
    with pytest.raises(proton.LaunchError, match="was compiled for cuda:90, and its arguments are"):
        kernel[(1,)](x, x, 10)


# Objects that are a pointer and no more


class TypedPointer:
    """The address of an array's element, as what Triton takes for a tensor."""

    def __init__(self, array: np.ndarray, offset: int, dtype: Any = None) -> None:
        self.array, self.dtype = array, dtype or array.dtype
        self.address = array.ctypes.data + offset * array.itemsize

    def data_ptr(self) -> int:
        return self.address


def test_an_object_with_an_address_and_a_dtype_is_an_argument() -> None:
    memory = np.arange(20, dtype=np.float32)
    add_one[(1,)](TypedPointer(memory, 0), TypedPointer(memory, 1), 10, BLOCK=16)
    expected = np.array([0, *range(1, 11), *range(11, 20)], np.float32)
    np.testing.assert_array_equal(memory, expected)  # what it reads is from before it writes
    bits = memory.view(np.uint32)
    kernel = add_one[(1,)](TypedPointer(bits, 0, tl.float32), TypedPointer(memory, 0), 3, BLOCK=4)
    np.testing.assert_array_equal(memory[:4], [1, 2, 3, 3])
    assert "*fp32" in kernel.metadata["signature"]


# What there is to know of parameters


@proton.jit(do_not_specialize=["m"], do_not_specialize_on_alignment=[2])
def described(x: tl.const, m, n, k: tl.int64, scale: "fp32" = 2.0, BLOCK: tl.constexpr = 16):  # noqa: F821
    tl.static_assert(BLOCK > 0)
    tl.store(x, 1.0)


def test_parameters_say_what_the_source_says() -> None:
    facts = [(p.num, p.name, p.is_constexpr, p.is_const, p.has_default) for p in described.params]
    assert facts == [
        (0, "x", False, True, False),
        (1, "m", False, False, False),
        (2, "n", False, False, False),
        (3, "k", False, False, False),
        (4, "scale", False, False, True),
        (5, "BLOCK", True, False, True),
    ]
    assert [p.do_not_specialize for p in described.params[:3]] == [False, True, False]
    assert [p.do_not_specialize_on_alignment for p in described.params[:3]] == [False, False, True]
    assert [p.annotation for p in described.params] == ["const", "", "", "i64", "fp32", "constexpr"]
    assert described.params[5].default == 16


def test_alignment_is_nothing_to_parameters_that_say_so() -> None:
    @proton.jit(do_not_specialize_on_alignment=["n"])
    def unaligned(x, n):
        tl.store(x + n, 1.0)

    @proton.jit
    def aligned(x, n):
        tl.store(x + n, 1.0)

    target = proton.GPUTarget("cuda", 90)
    signatures = [
        kernel.warmup(tl.float32, 32, target=target).signature for kernel in (unaligned, aligned)
    ]
    assert [set(signature.divisible) for signature in signatures] == [{"x"}, {"x", "n"}]


def test_a_name_that_is_no_parameter_is_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"do_not_specialize names 'X', which is no .* mean x\?"):

        @proton.jit(do_not_specialize=["X"])
        def kernel(x):
            tl.store(x, 1.0)
