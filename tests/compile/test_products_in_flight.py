"""Products of attention go on where a turn of their loop ends, and nothing waits beside them."""

from typing import Any

import pytest

import proton.language as tl
from proton import GPUTarget
from proton.backends.nvidia import compiler
from proton.backends.nvidia.cubin import Assembler
from proton.backends.nvidia.target import GPUKernel
from proton.kernels.attention import attention_kernel
from proton.kernels.attention_backward import dkdv_kernel, dq_kernel
from tests.compile.test_unaligned_products import loop_of

TARGET = GPUTarget("cuda", 90)
STRIDES = [1 << 20, 1 << 16, 128] * 4


def forward(head: int, causal: bool, overlap: bool, *blocks: int) -> GPUKernel:
    m, n, warps, stages = blocks
    kernel = attention_kernel.warmup(
        *[tl.float16] * 4, tl.float32, *STRIDES, 32, 4096, 0.1, HEAD=head, BLOCK_M=m, BLOCK_N=n,
        CAUSAL=causal, OVERLAP=overlap, num_warps=warps, num_stages=stages, target=TARGET,
    )  # fmt: skip
    assert isinstance(kernel, GPUKernel)
    return kernel


def backward(of: Any, head: int, causal: bool, *blocks: int) -> GPUKernel:
    block, step, warps, stages = blocks
    results = [tl.float16] * (2 if of is dkdv_kernel else 1)
    kernel = of.warmup(
        *[tl.float16] * 4, *[tl.float32] * 2, *results, *STRIDES, 32, 4096, 0.1, HEAD=head,
        BLOCK=block, STEP=step, CAUSAL=causal, num_warps=warps, num_stages=stages, target=TARGET,
    )  # fmt: skip
    assert isinstance(kernel, GPUKernel)
    return kernel


def is_serialised(kernel: GPUKernel) -> bool:
    with Assembler(TARGET, "kernel", kernel.metadata["symbol"]) as assembler:
        assembler.feed(kernel.asm["ptx"])
        return assembler.finish().is_serialised


FORWARD = [(128, 64, 8, 3), (64, 64, 4, 3)]
BACKWARD = [(128, 64, 8, 2), (64, 32, 4, 3)]


@pytest.mark.parametrize("blocks", FORWARD, ids=str)
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("head", [64, 128])
def test_forward_is_not_serialised(head: int, overlap: bool, blocks: tuple[int, ...]) -> None:
    assert not is_serialised(forward(head, head == 64, overlap, *blocks))


@pytest.mark.parametrize("blocks", BACKWARD, ids=str)
@pytest.mark.parametrize("of", [dkdv_kernel, dq_kernel], ids=lambda of: of.__name__)
@pytest.mark.parametrize("head", [64, 128])
def test_backward_is_not_serialised(of: Any, head: int, blocks: tuple[int, ...]) -> None:
    assert not is_serialised(backward(of, head, head == 64, *blocks))


@pytest.mark.parametrize(
    "kernel, waits",
    [
        (lambda: forward(64, False, False, 64, 64, 4, 3), ["0x0", "0x0"]),
        (lambda: backward(dq_kernel, 64, False, 128, 64, 8, 2), ["0x1", "0x0", "0x0"]),
        (lambda: backward(dkdv_kernel, 64, False, 128, 64, 8, 2), ["0x1", "0x1", "0x0", "0x0"]),
    ],
    ids=["forward", "dq", "dkdv"],
)
def test_the_last_product_of_a_turn_goes_on(kernel: Any, waits: list[str]) -> None:
    """No wait stands behind it. Two barriers: the copies of a turn are there, and what the last
    one read may be written. A row of sums goes to registers straight from where it was copied."""
    loop = loop_of(kernel())
    work = [line for line in loop if "HGMMA" in line or "WARPGROUP.DEPBAR" in line]
    assert "HGMMA" in work[-1]
    assert [line.split()[-1] for line in work if "DEPBAR" in line] == waits
    assert sum("BAR.SYNC" in line for line in loop) == 2
    assert not any(line.startswith(("STS", "STSM", "SHFL.IDX")) for line in loop)


def test_registers_are_not_given_up_for_serialised_products(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """One more program would fit with 128 registers, with which ptxas has each product wait."""
    monkeypatch.setenv("PROTON_CACHE_DIR", str(tmp_path))
    found = []
    assembled = compiler._assembled

    def note(*arguments: Any) -> Any:
        found.append(assembled(*arguments))
        return found[-1]

    monkeypatch.setattr(compiler, "_assembled", note)
    kernel = backward(dq_kernel, 128, False, 128, 32, 8, 2)
    assert [cubin.is_serialised for cubin in found] == [True]
    assert 128 < kernel.n_regs < 160
    assert not is_serialised(kernel)
