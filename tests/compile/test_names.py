"""Names that a kernel, a function or a parameter may have and a symbol may not: each compiles, runs
on the CPU, and shows as it was written."""

import importlib.util
import keyword
import shutil
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import GPUTarget
from proton.backends.nvidia.machine_code import with_plain_symbol
from proton.base.knobs import knobs
from proton.base.symbols import LONGEST, mangled
from tests.compile.cubins import read_cubin
from tests.cpu.harness import kernels_of

# Of the C library and the compiler's, which the CPU's code calls.
ON_CPUS = "memcpy memset fflush main erf erff expm1 sinf _start __truncsfbf2".split()
# Of PTX: predefined identifiers, registers, directives.
ON_GPUS = "WARP_SZ tid ntid ctaid laneid clock entry func reg param ret bra r0 rd1 p0 f1".split()
NAMES = (
    *ON_CPUS,
    *ON_GPUS,
    *"malloc free printf _ __".split(),
    # of CUDA's run time and libdevice
    *"vprintf __assertfail __nv_exp __nv_expf __nv_erff cudaMalloc _Z3foov".split(),
    # of LLVM, MLIR, and our own
    *"llvm llvm_memcpy nvvm kernel add__range add__program string_0 global_smem k__1 void".split(),
    # not ASCII
    *"größe ядро カーネル ª µ ñ_1 𝒳".split(),  # noqa: RUF001
    "n" * 300,
    "ö" * 300,
)
SOURCE = """
from proton.language.extra import libdevice

@proton.jit(noinline=True)
def {helper}({x}):
    return libdevice.erf({x})

@proton.jit(debug=True)
def {name}({x}, n):
    value = tl.load({x}) + n
    tl.device_assert(value > 0.0, "positive")
    tl.device_print("value", value)
    with proton.scope({name!r}):
        tl.store({x}, {helper}(value) + libdevice.expm1(value))
"""
SIMPLE = "\n@proton.jit\ndef {name}({x}, n):\n    tl.store({x}, libdevice.erf(tl.load({x}) + n))\n"


def kernel_named(name: str, source: str = SOURCE) -> Any:
    name = unicodedata.normalize("NFKC", name)  # as Python does
    assert name.isidentifier()
    assert not keyword.iskeyword(name)
    text = source.format(name=name, helper="h" + name, x=name + "x")
    module = kernels_of("from proton.language.extra import libdevice\n" + text)
    return getattr(module, name)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ON_CPUS], ids=lambda n: n[:20])
def test_a_kernel_of_any_name_for_a_gpu(name: str) -> None:
    kernel = kernel_named(name)
    compiled = kernel.warmup(tl.float32, 3.0, target=GPUTarget("cuda", 90))
    assert compiled.name == kernel.__name__
    symbol = mangled(kernel.__name__)
    assert f".visible .entry {symbol}(" in compiled.asm["ptx"]
    assert compiled.metadata["symbol"] == symbol
    assert read_cubin(compiled.asm["cubin"]).functions >= {symbol}


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ON_GPUS], ids=lambda n: n[:20])
def test_a_kernel_of_any_name_on_a_cpu(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = kernel_named(name)
    x = np.ones(1, np.float32)
    with proton.profile() as run:
        compiled = kernel[(1,)](x, 1.0)
        with pytest.raises(AssertionError, match="positive") as problem:
            kernel[(1,)](np.full(1, -3, np.float32), 1.0)
    assert np.isclose(x[0], 0.9953223 + np.expm1(2.0))
    assert compiled.name == kernel.__name__ == run.kernels[0].name
    assert compiled.asm["asm"]
    assert f"in {kernel.__name__}" in str(problem.value)


FILES = ('a "quoted" one', 'a\\"', "back\\slash", "new\nline", "größe", "100%s", "no text \udcff")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_name(tmp_path: Path, name: str) -> None:
    """It is in line tables, records, assertions and keys of the cache."""
    folder = tmp_path / name
    folder.mkdir()
    path = folder / f"{name}.py"
    path.write_text("import proton\nimport proton.language as tl\n" + SOURCE.format(
        name="fn", helper="helper", x="x"
    ))  # fmt: skip
    spec = importlib.util.spec_from_file_location("of_any_name", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    compiled = module.fn.warmup(tl.float32, 3.0, target=GPUTarget("cuda", 90))
    assert read_cubin(compiled.asm["cubin"]).functions >= {mangled("fn")}
    with proton.profile() as run:
        module.fn[(1,)](np.ones(1, np.float32), 1.0)
    again = proton.Run.load(run.save(tmp_path / "a.proton"))
    (scope,) = again.raw.kernels[0].scopes
    assert scope.file == str(path).replace("\udcff", "\\udcff")
    for suffix in (".pftrace", ".json", ".csv", ".html", ".svg"):
        again.save(tmp_path / f"a{suffix}")
    with pytest.raises(AssertionError, match="positive") as problem:
        module.fn[(1,)](np.full(1, -3, np.float32), 1.0)
    assert scope.file in str(problem.value)


def test_the_object_has_the_symbol_and_no_other(tmp_path: Path) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    for name in ("malloc", "größe"):
        kernel = kernel_named(name, SIMPLE)
        code = tmp_path / "code.o"
        code.write_bytes(kernel.warmup(tl.float32, 3.0).asm["obj"])
        done = subprocess.run([nm, code], capture_output=True, text=True, check=True)
        defined = {line.split()[-1] for line in done.stdout.splitlines() if " T " in line}
        assert defined == {mangled(name) + "__range"}


def test_names_of_specializations_are_those_of_the_code() -> None:
    """What `repr=` says is what profilers of other makers see, too. Kernels that differ in nothing
    but that do not share machine code."""

    def made(words: str) -> Any:
        @proton.jit(repr=lambda of: f"a.module.{words}_{of.signature['x']}_{of.constants['N']}")
        def kernel(x, N: tl.constexpr):
            tl.store(x + tl.arange(0, N), 1.0)

        return kernel

    for words in ("fill", "write<all>"):
        symbol = mangled(f"{words}_*fp32_16")
        compiled = made(words).warmup(tl.pointer_type(tl.float32), 16, target=GPUTarget("cuda", 90))
        assert compiled.name == f"{words}_*fp32_16"
        assert read_cubin(compiled.asm["cubin"]).functions == {symbol}
        assert compiled.metadata["symbol"] == symbol
        x = np.zeros(16, np.float32)
        assert made(words)[(1,)](x, 16).metadata["symbol"] == symbol + "__range"
        np.testing.assert_array_equal(x, 1)


def test_machine_code_with_another_function_of_that_name() -> None:
    """Of other launchers' copies: the driver's `vprintf` keeps its name, and the kernel's its."""
    for name in ("vprintf", "shown"):
        kernel = kernels_of(f"@proton.jit\ndef {name}(x):\n    tl.device_print('x', x)\n")
        compiled = getattr(kernel, name).warmup(3, target=GPUTarget("cuda", 90))
        code, symbol = with_plain_symbol(compiled.asm["cubin"], mangled(name))
        assert symbol == (mangled(name) if name == "vprintf" else name)
        assert read_cubin(code).functions == {symbol}


def test_names_that_are_set_later_and_are_no_names(tmp_path: Path) -> None:
    """`functools.wraps` and the like may set any; none leads out of a folder of dumps."""
    for number, name in enumerate(("1st", "a b", "../../up", "", "$", "a$", "llvm.memcpy", "%tid")):

        def fn(x, n):
            tl.store(x, n)

        fn.__name__ = name
        kernel = proton.jit(fn)
        with proton.knobs.scope(dump_to=tmp_path / "dumps" / str(number)):
            assert kernel.warmup(tl.float32, 3.0, target=GPUTarget("cuda", 80)).name == name
            x = np.zeros(1, np.float32)
            assert kernel[(1,)](x, 3.0).name == name
        assert x[0] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["dumps"]
    assert len(list((tmp_path / "dumps").iterdir())) == number + 1


def test_symbols_differ_where_names_do() -> None:
    names = [*NAMES, "o$f6$", "ö", "$f6$", "a$", "a", "1a", "$31$a", "n" * LONGEST, "n" * 999, ""]
    symbols = [mangled(name) for name in dict.fromkeys(names)]
    assert len(set(symbols)) == len(symbols)
    for symbol in symbols:
        assert symbol.isascii()
        assert symbol.replace("$", "_").isidentifier()
        assert len(symbol) < 255


def test_where_proton_stands_for_triton_other_launchers_find_kernels_by_their_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the machine code that a kernel gives; what launches load has its symbol."""
    for name, found in (("shown", "shown"), ("vprintf", mangled("vprintf"))):
        kernel = kernels_of(f"@proton.jit\ndef {name}(x):\n    tl.device_print('x', x)\n")
        compiled = getattr(kernel, name).warmup(3, target=GPUTarget("cuda", 90))
        assert compiled.asm["cubin"] == compiled.asm.kept("cubin")
        with monkeypatch.context() as patch:
            patch.setattr(knobs, "stands_for_triton", True)
            assert read_cubin(compiled.asm["cubin"]).functions == {found}
        assert read_cubin(compiled.asm.kept("cubin")).functions == {mangled(name)}
        assert compiled.metadata["symbol"] == mangled(name)
