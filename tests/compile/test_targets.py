"""Every kind of kernel for every architecture, with no GPU: PTX, cubin, what is said of them."""

import dataclasses
import os
import re
from pathlib import Path

import pytest

import proton
import proton.language as tl
from proton.backends.nvidia import cubin
from proton.backends.nvidia.target import GPUKernel
from proton.base import nvidia_tools
from proton.base.chips.chip import MatrixInstruction, MMAKind, OperandPlace
from proton.base.errors import PassError, PerformanceWarning, ProtonError
from proton.base.knobs import knobs
from proton.base.symbols import mangled
from proton.base.targets import ARCHITECTURES, CHIPS, GPUTarget
from tests.compile import target_kernels
from tests.compile.cubins import EM_CUDA, read_cubin
from tests.compile.target_kernels import CASES

NAMES = {80: "sm_80", 86: "sm_86", 89: "sm_89", 90: "sm_90a", 100: "sm_100a", 120: "sm_120a"}


def compiled(case: str, arch: int = 90, **options: object) -> GPUKernel:
    kernel, arguments = CASES[case]
    found = kernel.warmup(*arguments, target=GPUTarget("cuda", arch), **options)
    assert isinstance(found, GPUKernel)
    return found


def declared(ptx: str) -> int:
    """Bytes of local memory that the PTX asks for itself."""
    return sum(int(size) for size in re.findall(r"\.local .*\[(\d+)\];", ptx))


@pytest.mark.parametrize("arch", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_a_kernel_compiles_for_every_architecture(case: str, arch: int) -> None:
    kernel = compiled(case, arch)
    assert f"\n.target {NAMES[arch]}\n" in kernel.asm["ptx"]
    assert f".visible .entry {mangled(case)}(" in kernel.asm["ptx"]
    code = read_cubin(kernel.asm["cubin"])
    assert (code.machine, code.arch) == (EM_CUDA, arch)
    assert mangled(case) in code.functions
    assert kernel.n_regs == code.registers[mangled(case)]
    assert 0 < kernel.n_regs <= 255
    if case != "calls":  # where the assembler counts the stack of a call
        assert kernel.n_spills == code.frames[mangled(case)] - declared(kernel.asm["ptx"]) == 0


def test_these_are_all_architectures() -> None:
    assert {arch: facts.name for arch, facts in ARCHITECTURES.items()} == NAMES


@proton.jit
def dot(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(a_ptr + m[:, None] * K + k), tl.load(b_ptr + k[:, None] * N + n)
    tl.store(out_ptr + m[:, None] * N + n, tl.dot(a, b))


HOPPER = ARCHITECTURES[90]
GROUP = next(found for found in HOPPER.mma if found.kind is MMAKind.WARP_GROUP)
NARROW = dataclasses.replace(GROUP, columns=128, left=(OperandPlace.REGISTERS,))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("mma", "element", "there", "absent"),
    [
        (HOPPER.mma, tl.float16, "wgmma.mma_async.sync.aligned.m64n256k16", "ldmatrix"),
        ((HOPPER.mma[0], NARROW), tl.float16, r"m64n128k16.f32.f16.f16 {[^}]*},\s*{", "m64n256"),
        (HOPPER.mma[:1], tl.float16, "mma.sync.aligned.m16n8k16.*f32.f16.f16.f32", "wgmma"),
        ((), tl.float16, "fma.rn.f32", "mma"),
        (HOPPER.mma, tl.float64, "mma.sync.aligned.m16n8k16.row.col.f64", "m8n8k4"),
        (ARCHITECTURES[80].mma, tl.float64, "mma.sync.aligned.m8n8k4.row.col.f64", "m16n8"),
        (ARCHITECTURES[89].mma, tl.float8e4nv, "m16n8k32.row.col.f32.e4m3.e4m3", "m16n8k16"),
        (ARCHITECTURES[86].mma, tl.float8e4nv, "m16n8k16.row.col.f32.f16.f16", "e4m3.e4m3"),
    ],
)
def test_a_chip_with_other_matrix_instructions_is_an_entry_of_a_table(
    monkeypatch: pytest.MonkeyPatch,
    mma: tuple[MatrixInstruction, ...],
    element: tl.dtype,
    there: str,
    absent: str,
) -> None:
    monkeypatch.setitem(CHIPS, ("cuda", 90), dataclasses.replace(HOPPER, mma=mma))
    sizes = (64, 256, 64) if element is tl.float16 else (32, 32, 32)
    result = tl.float64 if element is tl.float64 else tl.float32
    with knobs.scope(always_compile=True):
        kernel = proton.jit(dot.fn).warmup(
            element, element, result, *sizes, target=GPUTarget("cuda", 90)
        )
    assert re.search(there, kernel.asm["ptx"])
    assert absent not in kernel.asm["ptx"]


@pytest.mark.usefixtures("no_assembler")
def test_a_chip_without_asynchronous_copies_pipelines_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel, arguments = CASES["matmul"]

    def ptx() -> str:
        with knobs.scope(always_compile=True):
            made = proton.jit(kernel.fn).warmup(*arguments, target=GPUTarget("cuda", 90))
        return str(made.asm["ptx"])

    assert "cp.async" in ptx()
    chip = dataclasses.replace(HOPPER, has_async_copies=False)
    monkeypatch.setitem(CHIPS, ("cuda", 90), chip)
    assert "cp.async" not in ptx()


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
    assert list(kernel.asm) == [
        "source",
        "ttir",
        "ttgir",
        "llir",
        "ptx",
        "cubin",
        "schedule",
        "sass",
    ]
    for level, expected, absent in (
        ("source", "tl.dot(a, b, total)", "tt.dot"),
        ("ttir", '"tt.dot"', "#ttg.linear"),
        ("ttgir", '"ttng.mma_sync"', "llvm."),
        ("llir", "gpu.module", '"ttng.mma_sync"'),
        ("ptx", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "llvm."),
    ):
        assert expected in kernel.asm[level]
        assert absent not in kernel.asm[level]
    assert isinstance(kernel.asm["cubin"], bytes)


def test_llir_of_triton_is_llvm_ir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs, "stands_for_triton", True)
    code = compiled("add").asm["llir"]
    assert re.findall(r'^define .* @"(.*?)"\(', code, re.M) == [mangled("add")]
    assert "llvm.func" not in code


def test_shared_memory_is_what_the_kernel_exchanges() -> None:
    """Three buffers of a product's operands of 32 x 16 and 16 x 32 floats, a transposed block of
    32 x 32, none."""
    assert compiled("matmul").shared == 3 * 2 * 32 * 16 * 4
    assert compiled("matmul", num_stages=2).shared == 2 * 2 * 32 * 16 * 4
    assert compiled("transpose").shared == 32 * 32 * 4
    assert compiled("add").shared == 0
    assert compiled("softmax", num_warps=1).shared == 0


def test_registers_that_do_not_fit_are_spilled_and_counted() -> None:
    free = compiled("transpose", num_warps=1)
    bound = compiled("transpose", num_warps=1, maxnreg=24)
    code = read_cubin(bound.asm["cubin"])
    assert free.n_spills == 0
    assert bound.n_regs == code.registers[mangled("transpose")] <= 24
    assert bound.n_spills >= code.frames[mangled("transpose")] > 0


def test_memory_that_a_print_asks_for_is_no_spill() -> None:
    kernel = compiled("talks")
    code = read_cubin(kernel.asm["cubin"])
    assert code.frames[mangled("talks")] > 0
    assert ".local" in kernel.asm["ptx"]
    assert kernel.n_spills == 0


def test_a_function_that_is_kept_is_a_function_of_the_ptx() -> None:
    ptx = compiled("calls").asm["ptx"]
    assert re.search(r"\.func .*centred", ptx)
    assert len(re.findall(r"call\.uni|\bcall ", ptx)) >= 2
    assert not re.search(r"\.visible \.func", ptx)


def test_sass_is_the_disassembly_of_the_cubin_with_lines_of_the_source() -> None:
    """Masks of 16 elements of one value leave 128-bit accesses."""
    kernel = target_kernels.add.warmup(*[tl.float32] * 3, 1024, 512, target=GPUTarget("cuda", 90))
    sass = kernel.asm["sass"]
    assert re.search(r"\bLDG\.\S*128\b", sass)
    assert re.search(r"\bSTG\.\S*128\b", sass)
    source = Path(target_kernels.__file__)
    lines = {int(line) for line in re.findall(rf'//## File "{source}", line (\d+)', sass)}
    text = source.read_text().splitlines()
    assert any("tl.load(" in text[line - 1] for line in lines)
    assert any("tl.store(" in text[line - 1] for line in lines)


def test_a_tool_that_a_knob_names(tmp_path: Path) -> None:
    """A stand-in that gets the cubin, and may fail; and one that is not there."""
    tool = tmp_path / "nvdisasm"
    tool.write_text(
        '#!/bin/sh\nfor last; do :; done\n/usr/bin/head -c 4 "$last" | /usr/bin/tail -c 3\n'
    )
    tool.chmod(0o755)
    with knobs.scope(nvdisasm=str(tool)):
        assert nvidia_tools.disassemble(compiled("add").asm["cubin"]) == "ELF"
        tool.write_text("#!/bin/sh\necho no such chip >&2; exit 1\n")
        with pytest.raises(ProtonError, match="nvdisasm failed: no such chip"):
            nvidia_tools.disassemble(b"")
    for place in (tmp_path / "absent", tmp_path):
        with knobs.scope(nvdisasm=str(place)):
            with pytest.raises(ProtonError, match=rf"nvdisasm names {place}, which is no file"):
                nvidia_tools.disassemble(b"")


# The assembler

# What a stand-in says first.
NEW = 'if [ "$1" = --version ]; then echo release 13.5; exit; fi\n'


def assembled(ptx: str, arch: int = 90) -> cubin.Cubin:
    with cubin.Assembler(GPUTarget("cuda", arch), "k") as assembler:
        assembler.feed(ptx)
        return assembler.finish()


@pytest.mark.parametrize(
    ("dies", "refusal"),
    [
        ("echo no licence; exit 3", "ptxas refused k: no licence"),
        ("kill -SEGV $$", r"ptxas crashed on k \(signal 11\).*try other num_warps"),
    ],
)
def test_an_assembler_that_dies_before_it_has_read_anything(
    tmp_path: Path, dies: str, refusal: str
) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text(f"#!/bin/sh\n{NEW}{dies}\n")
    tool.chmod(0o755)
    with knobs.scope(ptxas=str(tool)), pytest.raises(PassError, match=refusal):
        assembled("x" * (1 << 20))


EMPTY = ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"


def test_an_assembler_whose_program_has_no_standard_streams() -> None:
    """What it is given are the first free descriptors, which are then those that it asks for."""
    saved = [os.dup(stream) for stream in range(3)]
    try:
        for stream in range(3):
            os.close(stream)
        found = assembled(EMPTY)
    finally:
        for stream, file in enumerate(saved):
            os.dup2(file, stream)
            os.close(file)
    assert found.code[1:4] == b"ELF"
    assert "Compiling entry function 'k'" in found.log


@pytest.mark.parametrize("fed", [False, True])
def test_an_assembler_leaves_nothing_behind(fed: bool) -> None:
    """Files, or a process, whether or not it came to an end."""
    before = sorted(os.listdir("/proc/self/fd"))
    with cubin.Assembler(GPUTarget("cuda", 90), "k") as assembler:
        process = assembler.process
        assert process is not None
        if fed:
            assembler.feed(EMPTY)
            assembler.finish()
    assert sorted(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize("version, sound", [("12.9", False), ("13.3", False), ("13.4", True)])
@pytest.mark.parametrize("arch", NAMES)
def test_an_assembler_that_is_known_to_be_wrong_is_refused(
    tmp_path: Path, arch: int, version: str, sound: bool
) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version}, V{version}.73'\n")
    tool.chmod(0o755)
    kernel, arguments = CASES["add"]
    with knobs.scope(ptxas=str(tool)):
        if sound or arch not in (90, 100):
            assert nvidia_tools.ptxas(GPUTarget("cuda", arch)) == tool
        else:
            with pytest.raises(ProtonError, match=rf"{version}, which assembles wrong .*>=13\.4"):
                kernel.warmup(*arguments, target=GPUTarget("cuda", arch))


@pytest.mark.parametrize("arch", NAMES)
def test_the_assembler_keeps_the_sign_of_what_it_compares(arch: int) -> None:
    """It did not (the reason for the least version): `max(max(a, -b), c)` became a maximum of
    three that read b."""
    operand = "ld.global.b32 %r{0}, [%d1+{1}]; "
    body = "".join(operand.format(n, 4 * n) for n in range(3)) + "neg.s32 %r3, %r1; "
    ptx = f".version 8.7\n.target {NAMES[arch]}\n.address_size 64\n"
    for name, operation in {"k": "max", "l": "min"}.items():
        ptx += f".visible .entry {name}(.param .u64 p) {{ .reg .b32 %r<6>; .reg .b64 %d1; "
        ptx += f"ld.param.b64 %d1, [p]; {body}{operation}.s32 %r4, %r0, %r3; "
        ptx += f"{operation}.s32 %r5, %r4, %r2; st.global.b32 [%d1], %r5; ret; }}\n"
    sass = nvidia_tools.disassemble(assembled(ptx, arch).code)
    _, *functions = re.split(r"(?m)^\.text\.[kl]:$", sass)
    assert len(functions) == 2
    for function in functions:
        assert re.search(r"MNMX", function)
        assert re.search(r"(?m)[ ,(]-R\d+", function)


def test_ptx_that_the_assembler_refuses_says_its_words() -> None:
    ptx = ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k() { nonsense; }\n"
    with pytest.raises(PassError, match=r"(?s)ptxas refused k: .*nonsense"):
        assembled(ptx)


def test_an_assembler_that_does_not_say_what_is_asked_of_it(tmp_path: Path) -> None:
    tool = tmp_path / "ptxas"
    words = "Compiling entry function 'other'"
    tool.write_text(f'#!/bin/sh\n{NEW}for last; do :; done\necho "{words}"; : > "$last"\n')
    tool.chmod(0o755)
    rule = "ptxas says nothing about the registers of k"
    with knobs.scope(ptxas=str(tool)), pytest.raises(PassError, match=rule):
        assembled("")


def test_serialised_products_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, cache_dir: Path
) -> None:
    log = "info : (C7519) Potential Performance Loss: wgmma.mma_async are serialized"
    finish = cubin.Assembler.finish
    monkeypatch.setattr(
        cubin.Assembler, "finish", lambda of: dataclasses.replace(finish(of), log=log)
    )
    kernel, _ = CASES["add"]
    with pytest.warns(PerformanceWarning, match=r"serialises .* of add: .* more warps"):
        found = kernel.warmup(
            tl.float32, tl.float32, tl.float32, 4096, BLOCK=64, target=GPUTarget("cuda", 90)
        )
    assert found.asm["cubin"]


def test_a_dtype_stands_for_an_aligned_array_and_numbers_for_themselves() -> None:
    kernel, _ = CASES["add"]
    found = kernel.warmup(
        tl.float16, tl.float16, tl.float32, 17, BLOCK=256, target=GPUTarget("cuda", 90)
    )
    ttir = found.asm["ttir"]
    assert ttir.count("!tt.ptr<f16> {tt.divisibility = 16 : i32") == 2
    assert re.search(r"%arg3: i32 \{tt\.name = \"n\", tt\.non_negative\}", ttir)
