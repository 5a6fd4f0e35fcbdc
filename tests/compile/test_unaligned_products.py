"""Products of matrices whose rows begin anywhere: elements go one by one through registers."""

import re
from typing import Any

import pytest

import proton
import proton.language as tl
from kernels.attention import attention_kernel
from kernels.matmul import matmul_kernel
from proton import GPUTarget
from proton.backends.nvidia import compiler
from proton.backends.nvidia.cubin import Assembler, Cubin
from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.target import GPUKernel

TARGET = GPUTarget("cuda", 90)


def product(block_m: int, block_n: int, warps: int, transposed: bool = False) -> GPUKernel:
    b = (1, 8191) if transposed else (8191, 1)
    kernel = matmul_kernel.warmup(
        *[tl.float16] * 3, 8191, 8191, 8191, 8191, 1, *b, 8191, 1, BLOCK_M=block_m,
        BLOCK_N=block_n, BLOCK_K=64, GROUP_M=8, num_warps=warps, num_stages=3, target=TARGET,
    )  # fmt: skip
    assert isinstance(kernel, GPUKernel)
    return kernel


def loop_of(kernel: GPUKernel) -> list[str]:
    """The instructions of the loop that has the product, in order."""
    found, labels, ends = list[str](), dict[str, int](), list[tuple[int, int]]()
    for line in kernel.asm["sass"].splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(found)
        elif instruction := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            found.append(instruction[1])
            back = re.search(r"BRA\b.*(\.L_x_\d+)", instruction[1])
            if back and back[1] in labels:
                ends.append((labels[back[1]], len(found)))
    loops = (found[start:end] for start, end in ends)
    return next(loop for loop in loops if any("HGMMA" in line for line in loop))


@pytest.mark.parametrize(
    "block_m, block_n, warps, transposed",
    [(128, 256, 8, False), (128, 128, 8, False), (64, 128, 4, False), (128, 128, 8, True)],
)
def test_addresses_leave_room(block_m: int, block_n: int, warps: int, transposed: bool) -> None:
    """Nothing is spilled, and an access costs at most seven instructions, its element's own among
    them: with a pointer each it was 21 of 128 x 256."""
    kernel = product(block_m, block_n, warps, transposed)
    assert kernel.n_spills == 0
    loop = loop_of(kernel)
    loads = sum("LDG.E.U16" in line for line in loop)
    assert loads == (block_m + block_n) * 64 // (32 * warps)
    assert len(loop) <= 7 * loads + 100


def test_loads_are_under_way_while_the_product_is() -> None:
    loop = loop_of(product(128, 256, 8))
    wait = next(n for n, line in enumerate(loop) if "DEPBAR" in line and "gsb" in line)
    before = sum("LDG.E.U16" in line for line in loop[:wait])
    first_store = next(n for n, line in enumerate(loop) if "STS" in line)
    assert before >= 0.9 * sum("LDG.E.U16" in line for line in loop)
    assert wait < first_store < next(n for n, line in enumerate(loop) if "HGMMA" in line)
    assert "DEPBAR" not in loop[-1]


def attention(**options: Any) -> GPUKernel:
    strides = [1 << 20, 1 << 18, 64]
    kernel = attention_kernel.warmup(
        *[tl.float16] * 4, tl.float32, *strides * 4, 32, 4096, 0.1, HEAD=64, BLOCK_M=128,
        BLOCK_N=64, CAUSAL=True, OVERLAP=True, num_warps=8, num_stages=2, target=TARGET, **options,
    )  # fmt: skip
    assert isinstance(kernel, GPUKernel)
    return kernel


def test_one_more_program_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 144 registers 16 are not needed, and two programs are resident in the place of one. What
    the PTX says is what the machine code is."""
    with proton.knobs.scope(always_compile=True):
        kernel = attention()
        assert (kernel.n_regs, kernel.n_spills) == (128, 0)
        assert ".maxnreg 128\n" in kernel.asm["ptx"]
        with Assembler(TARGET, "attention_kernel", kernel.metadata["symbol"]) as assembler:
            assembler.feed(kernel.asm["ptx"])
            assert assembler.finish().registers == 128
        # The user's limit stands, and more shared memory than two programs have needs no limit.
        chosen = attention(maxnreg=200)
        assert 128 < chosen.n_regs <= 200
        monkeypatch.setattr(compiler, "_FEW_MORE", 0)
        monkeypatch.setattr(compiler, "_FEW_THREADS", 0)
        plain = attention()
        assert 128 < plain.n_regs <= 144
        assert ".maxnreg" not in plain.asm["ptx"]


@pytest.mark.parametrize(
    ("warps", "registers", "spills", "is_taken"),
    [
        (8, 131, 0, True), (8, 131, 24, True), (8, 131, 32, False),  # two programs, not one
        (4, 144, 0, True), (4, 144, 8, False),  # four programs, not three
        (8, 160, 0, True), (8, 160, 8, False),  # one program alone gives up what it does not need
        (4, 168, 0, False),  # too many registers to give up
    ],
)  # fmt: skip
def test_what_one_more_program_may_spill(
    monkeypatch: pytest.MonkeyPatch, warps: int, registers: int, spills: int, is_taken: bool
) -> None:
    monkeypatch.setattr(compiler, "_assembled", lambda *_: Cubin(b"", 128, spills, spills, ""))
    options = GPUOptions(TARGET, num_warps=warps)
    ptx, cubin = ".entry kernel()\n.maxntid 256\n{\n}\n", Cubin(b"", registers, 0, 0, "")
    found, code = compiler._one_more(attention_kernel, ptx, cubin, options, 32 << 10)
    assert (code.registers == 128) == is_taken
    assert (".maxnreg 128" in found) == is_taken


@pytest.mark.parametrize(
    ("warps", "registers", "spills", "shared", "is_kept"),
    [
        (32, 32, 24, 384, True), (32, 32, 32, 384, False),  # two programs, not one
        (32, 32, 24, 128 << 10, False),  # shared memory leaves one
        (8, 80, 24, 384, False),  # three programs, where two spill nothing
    ],
)  # fmt: skip
def test_few_spills_stay_for_twice_as_many_programs(
    monkeypatch: pytest.MonkeyPatch,
    warps: int,
    registers: int,
    spills: int,
    shared: int,
    is_kept: bool,
) -> None:
    more = {32: 48, 8: 128}[warps]
    monkeypatch.setattr(compiler, "_assembled", lambda *_: Cubin(b"", more, 0, 0, ""))
    options = GPUOptions(TARGET, num_warps=warps)
    ptx = f".entry kernel()\n.maxntid {warps * 32}\n{{\n}}\n"
    cubin = Cubin(b"", registers, spills, spills, "")
    found, code = compiler._unspilled("attention", ptx, cubin, options, shared, has_layouts=False)
    assert (code is cubin) == (found == ptx) == is_kept
    assert is_kept or (code.registers, code.spills) == (more, 0)
