"""Launching compiled code as it is (`Backend.direct`), and kernels that go through a pickle."""

import ctypes
import sys
import types as types_
from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.compat.triton.compiler import TritonASTSource
from proton.compat.triton.compiler import compile as triton_compile
from proton.compat.triton.inductor import show_static_launcher
from proton.compat.triton.targets import GPUTarget
from proton.compiling.cache import base32
from proton.runtime.backend import backend_named
from proton.runtime.nvidia import cuda
from proton.tools.tensor_descriptor import TensorDescriptor
from tests import processes
from tests.compile.cubins import read_cubin
from tests.compile.fake_cuda import FakeDriver

F32, PTR = tl.float32, ctypes.c_uint64


@proton.jit
def weigh(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("weigh"):
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


@proton.jit
def reverse(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + n - 1 - at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)


def test_a_gpu_gets_the_arguments_in_the_types_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver(read=[PTR, PTR, ctypes.c_int32, ctypes.c_float])
    driver.install(monkeypatch)
    target = proton.GPUTarget("cuda", 90)
    kernel = weigh.warmup(F32, F32, 1000, 0.5, BLOCK=128, target=target, num_warps=2)
    x, out = (driver.array("float32", address) for address in (0x20000, 0x40000))
    launch = backend_named("cuda").direct(kernel)
    assert driver.loaded == [("weigh$", 0)]  # before the first launch, which is measured
    launch((8, 1, 1), 77, (x, out, 1000, 0.25))
    launch((0, 1, 1), 77, (x, out, 1000, 0.25))
    ((found, passed),) = driver.launches
    assert (found.grid, found.block, found.stream) == ((8, 1, 1), (64, 1, 1), 77)
    assert passed == [0x20000, 0x40000, 1000, 0.25]


@proton.jit
def rows(x_desc, out_ptr, factor):
    x = x_desc.load([tl.program_id(0), 0])
    tl.store(out_ptr + tl.arange(0, 64), tl.reshape(x, [64]) * factor)


def test_a_gpu_gets_the_map_of_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, encoded = FakeDriver(read=[PTR] * 6), []

    def encode(element: str, base: int, sizes: list[int], *rest: object, **_: object) -> list[int]:
        encoded.append((element, base, sizes))
        return [*range(16)]

    driver.install(monkeypatch)
    monkeypatch.setattr(cuda, "encode_tensor_map", encode)
    x, out = (driver.array("float32", address) for address in (0x20000, 0x40000))
    block = TensorDescriptor(x, (10, 64), (64, 1), (1, 64))
    kernel = rows.warmup(block, out, 3, target=proton.GPUTarget("cuda", 90))
    launch = backend_named("cuda").direct(kernel)
    launch((10, 1, 1), 0, (block, out, 3))
    assert encoded == [("FLOAT32", 0x20000, [64, 10])]
    ((_, passed),) = driver.launches
    assert passed == [0x20000, 10, 64, 64, 0x40000, 3]


def test_the_cpu_runs_it_records_it_and_sees_where_arguments_overlap() -> None:
    x, out = np.random.rand(1000).astype(np.float32), np.zeros(1000, np.float32)
    launch = backend_named("cpu").direct(weigh.warmup(x, out, 1000, 0.5, BLOCK=128))
    launch((8, 1, 1), 0, (x, out, 1000, 3.0))
    np.testing.assert_allclose(out, x * 3)
    with proton.profile("direct") as run:
        launch((8, 1, 1), 0, (x, out, 1000, 4.0))
    np.testing.assert_allclose(out, x * 4)
    frame = run.frame
    assert set(frame[frame["scope"] == "weigh"]["kernel"]) == {"weigh"}
    turned = backend_named("cpu").direct(reverse.warmup(x, out, 60, BLOCK=64))
    shared = x[:60].copy()
    turned((1, 1, 1), 0, (shared, shared, 60))  # a block is loaded before it is stored
    np.testing.assert_allclose(shared, x[:60][::-1] + 1)


def test_the_cpu_takes_descriptors(rng: np.random.Generator) -> None:
    x, out = rng.random((10, 64), np.float32), np.zeros(64, np.float32)
    block = TensorDescriptor(x, (10, 64), (64, 1), (1, 64))
    launch = backend_named("cpu").direct(rows.warmup(block, out, 3))
    launch((7, 1, 1), 0, (block, out, 3))  # the last one wins
    np.testing.assert_array_equal(out, x[6] * 3)


def test_a_kernel_says_what_it_is_of_and_lies_where_its_hash_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = weigh.warmup(F32, F32, 1000, 0.5, BLOCK=128, target=proton.GPUTarget("cuda", 90))
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "factor": "fp32"}
    assert kernel.src == (weigh, types | {"BLOCK": "constexpr"}, {"BLOCK": 128})
    folder = Path(proton.knobs.cache_dir) / base32(kernel.hash)
    assert (folder / "code.cubin").read_bytes() == kernel.asm["cubin"]
    assert kernel.metadata["symbol"] == "weigh$"
    asked = types_.SimpleNamespace(use_static_triton_launcher=True)
    monkeypatch.setitem(sys.modules, "torch._inductor.config", asked)
    for _ in range(2):
        show_static_launcher(kernel)
    assert read_cubin((folder / "weigh.cubin").read_bytes()).functions == {"weigh"}


SECOND = """
import pickle, sys
import numpy as np
import proton
proton.install_as_triton()
import triton
kernel = pickle.load(open(sys.argv[1], "rb"))
kernel._init_handles()
x, out = np.random.rand(1000).astype(np.float32), np.zeros(1000, np.float32)
arguments = kernel.function, kernel.packed_metadata, None, None, None, x, out, 1000, 3.0, 128
kernel.run(8, 1, 1, 0, *arguments)
np.testing.assert_allclose(out, x * 3)
with proton.profile("again") as run:
    kernel.run(8, 1, 1, 0, *arguments)
assert isinstance(kernel, triton.compiler.CompiledKernel)
print(kernel.src.fn.arg_names, kernel.src.fn.fn, kernel.metadata.num_warps)
print(sorted(set(run.frame["scope"])))
"""
FIRST = """
import copy, pickle, sys
import proton
proton.install_as_triton()
import triton
import triton.language as tl
sys.path.insert(0, {folder!r})
from weighing import weigh
types = {{"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}}
divisible = {{(0,): [["tt.divisibility", 16]]}}
source = triton.compiler.ASTSource(weigh, types, {{"BLOCK": 128}}, divisible)
assert copy.deepcopy({{"kernel": weigh}})["kernel"] is weigh
assert type(copy.copy(weigh)) is type(weigh) is triton.runtime.JITFunction
kernel = triton.compile(source, target=triton.backends.compiler.GPUTarget("cpu", "", 1))
pickle.dump(kernel, open(sys.argv[1], "wb"))
"""


def test_a_kernel_of_another_process_is_launched_and_recorded(tmp_path: Path) -> None:
    """The second process has the code; to record it compiles the function, from its file."""
    source = Path(__file__).read_text()
    function = source[source.index("@proton.jit\ndef weigh") : source.index("@proton.jit\ndef rev")]
    head = "import proton\nimport proton.language as tl\n\n"
    (tmp_path / "weighing.py").write_text(head + function)
    for number, code in enumerate((FIRST.format(folder=str(tmp_path)), SECOND)):
        done = processes.python("-c", code, tmp_path / "kernel")
        assert done.returncode == 0, (number, done.stderr)
    assert done.stdout.splitlines()[0] == "['x_ptr', 'out_ptr', 'n', 'factor', 'BLOCK'] None 1"
    assert "weigh" in done.stdout.splitlines()[1]


@proton.jit
def gram(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Copies by TMA, with a map that the host makes."""
    rows = tl.make_tensor_descriptor(x_ptr, [n, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, n, BLOCK):
        x = rows.load([first, 0])
        sums = tl.dot(x, x, sums)
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at[:, None] * BLOCK + at, sums)


@proton.jit
def gram_by_pointers(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    place = at[:, None] * BLOCK + at
    x = tl.load(x_ptr + place, mask=place < n)
    tl.store(out_ptr + place, tl.dot(x, tl.trans(x)) + n)


def test_spills_are_counted_as_torch_takes_them() -> None:
    """In registers, of which it allows a kernel 16; ours counts the bytes that move."""
    types = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    for target, count in ((GPUTarget("cuda", 90, 32), 32), (GPUTarget("cuda", 90, 32), None)):
        source = TritonASTSource(gram_by_pointers, types, {"BLOCK": 32}, {})
        kernel = triton_compile(source, target, {"num_warps": 1, "maxnreg": count})
        (frame,) = read_cubin(kernel.asm["cubin"]).frames.values()
        assert kernel.n_spills * 4 == frame
        assert (frame > 0) == (count is not None)
        assert kernel.compiled.n_spills >= frame
    source = TritonASTSource(gram_by_pointers, types, {"BLOCK": 32}, {})
    on_the_cpu = triton_compile(source, GPUTarget("cpu", "", 1))
    assert on_the_cpu.n_spills == 0  # torch before 2.11 compares it


def test_other_launchers_get_no_code_that_takes_maps() -> None:
    pointers = {"x_ptr": "*fp16", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    aligned = {(0,): [["tt.divisibility", 16]]}
    source = TritonASTSource(gram, pointers, {"BLOCK": 64}, aligned)
    kernel = triton_compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 4})
    with pytest.raises(proton.ProtonError, match=r"gram copies by TMA: .* tensor maps \(1\)"):
        kernel.asm["cubin"]
    assert "cubin" in kernel.asm
    assert "cp.async.bulk.tensor" in kernel.asm["ptx"]
    assert kernel.compiled.asm["cubin"][:4] == b"\x7fELF"
