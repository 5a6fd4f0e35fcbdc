"""What tests written for Triton share (`triton._internal_testing`), and tests in their manner."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.compat.triton import internal_testing as shared


@pytest.mark.parametrize("name", [*shared.dtypes_with_bfloat16, "bool", "float8e5"])
@pytest.mark.parametrize("shape", [(), 0, 7, (3, 5)])
def test_random_arrays(name: str, shape: Any) -> None:
    x, again = shared.numpy_random(shape, name), shared.numpy_random(shape, name)
    np.testing.assert_array_equal(x, again)
    assert x.shape == ((shape,) if isinstance(shape, int) else shape)
    stored = {"bfloat16": "float32", "float8e5": "int8"}.get(name, name)
    assert x.dtype == stored
    if name in shared.integral_dtypes:
        few = shared.numpy_random((1000,), name, low=-3, high=4)
        assert (few >= -3).all()
        assert (few < 4).all()
        assert (few != 0).all()
        assert (x != 0).all()
    if name == "bfloat16":
        assert not (x.view(np.uint32) & 0xFFFF).any()


def test_random_arrays_that_there_are_not() -> None:
    with pytest.raises(RuntimeError, match="no random arrays of complex64"):
        shared.numpy_random(3, "complex64")


def test_names_of_dtypes() -> None:
    assert shared.str_to_triton_dtype("float8_e4m3fn") == tl.float8e4nv
    assert shared.str_to_triton_dtype("bool") == tl.int1
    assert shared.torch_dtype_name(tl.uint16) == "uint16"
    with pytest.raises(TypeError, match="neither a dtype of tl nor one of torch"):
        shared.torch_dtype_name("float32")


@pytest.mark.parametrize("arch", [80, 90])
def test_who_skips_tests_of_clusters(monkeypatch: pytest.MonkeyPatch, arch: int) -> None:
    monkeypatch.setattr(shared, "get_current_target", lambda: proton.GPUTarget("cuda", arch))
    shared.skip_if_unsupported_cluster_size(1)
    if arch >= 90:
        shared.skip_if_unsupported_cluster_size(2)
        return
    with pytest.raises(pytest.skip.Exception, match="num_ctas=2"):
        shared.skip_if_unsupported_cluster_size(2)


def test_where_kernels_run() -> None:
    target = shared.get_current_target()
    assert target is not None
    assert shared.is_cuda() == (target.backend == "cuda")
    with proton.knobs.scope(interpret=True):
        assert shared.is_interpreter()
        assert shared.supports_tma()
        assert shared.get_current_target() is None
    assert not any((shared.is_hip(), shared.is_hip_gfx12(), shared.is_hip_mi300()))
    assert shared.get_hip_lds_size() == 0
    assert shared.get_arch() == (str(target.arch) if shared.is_cuda() else "")
    assert shared.requires_tma.args == (not shared.supports_tma(),)
    with pytest.raises(AttributeError, match="no attribute 'requires_nothing'"):
        _ = shared.requires_nothing


def test_knobs_are_fresh_until_they_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_DEBUG", "1")
    monkeypatch.setenv("TRITON_REDIS_PORT", "7")
    fresh, put_back = shared._fresh_knobs_impl({"cache_dir"})
    folder, hook = proton.knobs.cache_dir, print
    with proton.knobs.scope(always_compile=True):
        knobs = fresh()
        assert not knobs.debug
        assert not knobs.compilation.always_compile
        assert knobs.redis.port == 6379
        knobs.redis.port = 8
        assert knobs.cache_dir == folder
        knobs.compilation.always_compile = False
        knobs.runtime.jit_cache_hook = hook
        put_back()
        assert knobs.always_compile
    assert proton.knobs.debug
    assert proton.knobs.redis.port == 7
    assert proton.knobs.runtime.jit_cache_hook is None


def says(what: str, fails: bool = False) -> None:
    print(what, proton.knobs.debug, file=sys.stderr)
    if fails:
        raise ValueError(what)


def ends() -> None:
    sys.exit(3)


def test_functions_run_in_processes_of_their_own() -> None:
    done = shared.run_in_process(says, ("hello",), env={"PROTON_DEBUG": "1"})
    assert (done.exc, done.driver_stderr_output) == (None, "hello True\n")
    failed = shared.run_in_process(says, (), {"what": "no", "fails": True})
    assert isinstance(failed.exc, ValueError)
    assert failed.driver_stderr_output.startswith("no ")
    with pytest.raises(RuntimeError, match="ends ended its process with 3"):
        shared.run_in_process(ends)


PROGRAM = """
import proton
proton.install_as_triton()
import numpy as np
import triton
import triton.language as tl
from triton._internal_testing import is_interpreter, numpy_random, to_numpy, to_triton

@triton.jit
def twice(X, Z, N: tl.constexpr):
    off = tl.arange(0, N)
    tl.store(Z + off, tl.load(X + off) * 2)

for name in ("uint16", "int32", "float16", "bfloat16", "bool"):
    x = numpy_random(64, name)
    given = to_triton(x, "cpu", dst_type=name)
    out = to_triton(np.zeros_like(x), "cpu", dst_type=name)
    if name == "bool":
        np.testing.assert_array_equal(to_numpy(given), x)
        continue
    twice[(1,)](given, out, N=64)
    np.testing.assert_array_equal(to_numpy(out), (x * 2).astype(x.dtype))
print("ok", is_interpreter())
"""


def test_a_program_that_imports_them_of_triton(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.stdout == "ok False\n", done.stderr
