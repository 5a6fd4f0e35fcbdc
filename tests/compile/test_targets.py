"""Every kind of kernel for every architecture, with no GPU: PTX, cubin, what is said of them."""

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import proton.language as tl
from proton.backends.nvidia import cubin
from proton.base.errors import PassError, ProtonError
from proton.base.knobs import knobs
from proton.base.targets import ARCHITECTURES, GPUTarget
from proton.compiler import GPUKernel
from tests.compile.cubins import EM_CUDA, read_cubin
from tests.compile.target_kernels import CASES

CHIPS = {80: "sm_80", 86: "sm_86", 89: "sm_89", 90: "sm_90a", 100: "sm_100a", 120: "sm_120a"}
PTXAS = shutil.which("ptxas")


def compiled(case: str, arch: int = 90, **options: object) -> GPUKernel:
    kernel, arguments = CASES[case]
    found = kernel.warmup(*arguments, target=GPUTarget("cuda", arch), **options)
    assert isinstance(found, GPUKernel)
    return found


def declared(ptx: str) -> int:
    """Bytes of local memory that the PTX asks for itself."""
    return sum(int(size) for size in re.findall(r"\.local .*\[(\d+)\];", ptx))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("case", CASES)
def test_a_kernel_compiles_for_every_architecture(case: str, arch: int) -> None:
    kernel = compiled(case, arch)
    assert f"\n.target {CHIPS[arch]}\n" in kernel.asm["ptx"]
    assert f".visible .entry {case}(" in kernel.asm["ptx"]
    code = read_cubin(kernel.asm["cubin"])
    assert (code.machine, code.arch) == (EM_CUDA, arch)
    assert case in code.functions
    assert kernel.n_regs == code.registers[case]
    assert 0 < kernel.n_regs <= 255
    if case != "calls":  # where the assembler counts the stack of a call
        assert kernel.n_spills == code.frames[case] - declared(kernel.asm["ptx"]) == 0


def test_these_are_all_architectures() -> None:
    assert {arch: facts.chip for arch, facts in ARCHITECTURES.items()} == CHIPS


@pytest.mark.skipif(PTXAS is None, reason="needs ptxas")
@pytest.mark.parametrize(
    ("case", "arch"), [*((case, 90) for case in CASES), *(("softmax", arch) for arch in CHIPS)]
)
def test_ptxas_accepts_the_ptx(case: str, arch: int, tmp_path: Path) -> None:
    source = tmp_path / "kernel.ptx"
    source.write_text(compiled(case, arch).asm["ptx"])
    assert PTXAS is not None
    options = ["-c"] if case in ("talks", "library") else []
    command = [PTXAS, f"-arch={CHIPS[arch]}", *options, str(source), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr


@pytest.mark.parametrize("warps", [1, 2, 8, 32])
def test_programs_of_any_number_of_warps(warps: int) -> None:
    for case in ("softmax", "row_sums", "matmul", "calls"):
        kernel = compiled(case, num_warps=warps)
        assert f".maxntid {32 * warps}\n" in kernel.asm["ptx"].replace(", 1, 1", "")
        assert kernel.metadata["num_warps"] == warps
        assert kernel.n_regs * 32 * warps <= 65536


# What is said of a kernel


def test_every_level_has_its_text() -> None:
    kernel = compiled("matmul")
    assert list(kernel.asm) == ["source", "ttir", "ttgir", "llir", "ptx", "cubin", "sass"]
    for level, expected, absent in (
        ("source", "tl.dot(a, b, total)", "tt.dot"),
        ("ttir", '"tt.dot"', "#ttg.linear"),
        ("ttgir", '"ttg.dot"', "llvm."),
        ("llir", "gpu.module", '"ttg.dot"'),
        ("ptx", "fma.rn.f32", "llvm."),
    ):
        assert expected in kernel.asm[level]
        assert absent not in kernel.asm[level]
    assert isinstance(kernel.asm["cubin"], bytes)


def test_shared_memory_is_what_the_kernel_exchanges() -> None:
    """A product's operands of 32 x 16 and 16 x 32 floats, a transposed block of 32 x 32, none."""
    assert compiled("matmul").shared == 2 * 32 * 16 * 4
    assert compiled("transpose").shared == 32 * 32 * 4
    assert compiled("add").shared == 0
    assert compiled("softmax", num_warps=1).shared == 0


def test_registers_that_do_not_fit_are_spilled_and_counted() -> None:
    free = compiled("matmul")
    bound = compiled("matmul", maxnreg=24)
    code = read_cubin(bound.asm["cubin"])
    assert free.n_spills == 0
    assert bound.n_regs == code.registers["matmul"] <= 24
    assert bound.n_spills == code.frames["matmul"] > 0


def test_memory_that_a_print_asks_for_is_no_spill() -> None:
    kernel = compiled("talks")
    code = read_cubin(kernel.asm["cubin"])
    assert code.frames["talks"] > 0
    assert ".local" in kernel.asm["ptx"]
    assert kernel.n_spills == 0


def test_a_function_that_is_kept_is_a_function_of_the_ptx() -> None:
    ptx = compiled("calls").asm["ptx"]
    assert re.search(r"\.func .*centred", ptx)
    assert len(re.findall(r"call\.uni|\bcall ", ptx)) >= 2
    assert not re.search(r"\.visible \.func", ptx)


def test_sass_needs_nvdisasm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = compiled("add")
    if shutil.which("nvdisasm") is not None:
        assert re.search(r"\bLDG\b.*\b128\b", kernel.asm["sass"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        knobs.scope(cuda_home=None),
        pytest.raises(ProtonError, match=r"SASS needs nvdisasm .* put it on the path, or set CUDA"),
    ):
        kernel.asm["sass"]


def test_sass_is_what_nvdisasm_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in that is found below CUDA_HOME, gets the cubin, and may fail."""
    tool = tmp_path / "bin" / "nvdisasm"
    tool.parent.mkdir()
    tool.write_text(
        '#!/bin/sh\nfor last; do :; done\n/usr/bin/head -c 4 "$last" | /usr/bin/tail -c 3\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", "")
    with knobs.scope(cuda_home=str(tmp_path)):
        assert compiled("add").asm["sass"] == "ELF"
        tool.write_text("#!/bin/sh\necho no such chip >&2; exit 1\n")
        with pytest.raises(ProtonError, match="nvdisasm failed: no such chip"):
            cubin.disassemble(b"")


# The assembler


def test_ptx_that_the_assembler_refuses_says_its_words() -> None:
    ptx = ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k() { nonsense; }\n"
    with pytest.raises(PassError, match=r"(?s)the assembler refused k: .*nonsense"):
        cubin.assemble(ptx, GPUTarget("cuda", 90), "k", 128, 0)


def test_fewer_registers_are_asked_for_where_one_more_program_fits() -> None:
    """65536 registers are enough for 7 programs of 128 threads with 72 registers, 8 with 64."""
    log = "Function properties for 'k': \ninfo : used {} registers, used 0 barriers, {} stack"
    asked = []

    def fake(spilled: int, ptx: str, target: GPUTarget, name: str) -> cubin.Cubin:
        asked.append(ptx)
        bound = ".minnctapersm" in ptx
        return cubin._cubin(
            b"", log.format(64 if bound else 72, spilled if bound else 0), ptx, name
        )

    for spilled, expected in ((0, 64), (8, 72)):
        asked.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cubin, "_assemble", functools.partial(fake, spilled))
            got = cubin.assemble(".maxntid 128\n", GPUTarget("cuda", 90), "k", 128, 0)
        assert got.registers == expected
        assert asked[1] == ".maxntid 128\n.minnctapersm 8\n"


def test_a_log_without_the_kernel_is_an_error() -> None:
    with pytest.raises(PassError, match="says nothing about the registers of k"):
        cubin._cubin(b"", "Function properties for 'other': info : used 8 registers", "", "k")
    with pytest.raises(PassError, match="serialises tensor-core instructions of k"):
        cubin._cubin(b"", "warning (C7517): wgmma", "", "k")


def test_a_dtype_stands_for_an_aligned_array_and_numbers_for_themselves() -> None:
    kernel, _ = CASES["add"]
    found = kernel.warmup(
        tl.float16, tl.float16, tl.float32, 17, BLOCK=256, target=GPUTarget("cuda", 90)
    )
    ttir = found.asm["ttir"]
    assert ttir.count("!tt.ptr<f16> {tt.divisibility = 16 : i32") == 2
    assert re.search(r"%arg3: i32 \{tt\.name = \"n\"\}", ttir)
