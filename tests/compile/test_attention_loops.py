"""The loops of attention: products are not waited for one by one, and rows take no way around."""

import itertools
import re
from dataclasses import replace
from typing import Any

import pytest

import proton.language as tl
from kernels.attention import attention_kernel
from kernels.attention_backward import dkdv_kernel, dq_kernel
from proton import GPUTarget
from proton.backends.nvidia import compiler
from proton.backends.nvidia.target import GPUKernel
from proton.base.knobs import knobs
from proton.trace.instrumentation import Instrumentation
from tests.compile.test_gpu_records import compiled
from tests.compile.test_unaligned_products import loop_of
from tests.pairs import covering

TARGET = GPUTarget("cuda", 90)
STRIDES = [1 << 20, 1 << 16, 128] * 4


def forward(
    head: int, causal: bool, overlap: bool, *blocks: int, records: Instrumentation | None = None
) -> GPUKernel:
    m, n, warps, stages = blocks
    return compiled(
        attention_kernel, *[tl.float16] * 4, tl.float32, *STRIDES, 32, 4096, 0.1, HEAD=head,
        BLOCK_M=m, BLOCK_N=n, CAUSAL=causal, OVERLAP=overlap, num_warps=warps, num_stages=stages,
        instrumentation=records,
    )  # fmt: skip


def backward(of: Any, head: int, causal: bool, *blocks: int) -> GPUKernel:
    block, step, warps, stages = blocks
    results = [tl.float16] * (2 if of is dkdv_kernel else 1)
    kernel = of.warmup(
        *[tl.float16] * 4, *[tl.float32] * 2, *results, *STRIDES, 32, 4096, 0.1, HEAD=head,
        BLOCK=block, STEP=step, CAUSAL=causal, num_warps=warps, num_stages=stages, target=TARGET,
    )  # fmt: skip
    assert isinstance(kernel, GPUKernel)
    return kernel


FORWARD = [(128, 64, 8, 3), (64, 64, 4, 3)]
BACKWARD = [(128, 64, 8, 2), (64, 32, 4, 3)]


def configurations(**axes: Any) -> Any:
    """Any two options, of which a dot takes its registers, together."""
    pairs = [" ".join(pair) for pair in itertools.combinations(axes, 2)]
    return pytest.mark.parametrize(", ".join(axes), covering(axes, *pairs, least=1), ids=str)


@configurations(head=[64, 128], overlap=[False, True], blocks=FORWARD)
def test_forward_is_not_serialised(head: int, overlap: bool, blocks: tuple[int, ...]) -> None:
    """ptxas would say so, of which a compilation warns, which is an error here."""
    with knobs.scope(always_compile=True):
        forward(head, head == 64, overlap, *blocks)


@configurations(of=[dkdv_kernel, dq_kernel], head=[64, 128], blocks=BACKWARD)
def test_backward_is_not_serialised(of: Any, head: int, blocks: tuple[int, ...]) -> None:
    with knobs.scope(always_compile=True):
        backward(of, head, head == 64, *blocks)


@pytest.mark.usefixtures("by_groups")
@pytest.mark.parametrize("head", [64, 128])
def test_groups_wait_for_their_turn_behind_the_weights(head: int) -> None:
    """ptxas would wait ahead of them, while the other group has the tensor cores."""
    loop = loop_of(forward(head, head == 64, False, 128, 64, 8, 3))
    (turn,) = (n for n, line in enumerate(loop) if line.startswith("BAR.SYNC"))
    weights = [n for n, line in enumerate(loop) if line.startswith("MUFU.EX2")]
    assert len(weights) > 32
    assert max(weights) < turn
    assert sum("HGMMA" in line for line in loop[:turn]) == head // 16, "the scores"
    assert any("LDGSTS" in line for line in loop[turn:])
    assert not any("LDGSTS" in line for line in loop[:turn]), "copies begin behind the values"


@pytest.mark.usefixtures("by_groups")
def test_records_do_not_hold_up_a_turn() -> None:
    """Addresses of copies are computed while the product is issued, and a group tells the other of
    its copies while it looks for the rows' maximum, as without records."""
    loop = loop_of(forward(128, False, False, 128, 128, 8, 3, records=Instrumentation()))

    def places(*names: str) -> list[int]:
        return [n for n, line in enumerate(loop) if line.removeprefix("@P0 ").startswith(names)]

    (turn,) = places("BAR.SYNC")
    copies, addresses = places("LDGSTS"), places("IMAD.WIDE")
    scores = max(n for n in places("HGMMA") if n < turn)
    values = max(n for n in places("HGMMA") if n < copies[0])
    assert len(copies) == 16
    assert len([n for n in addresses if turn < n < values]) == 16, "one for each copy"
    assert not [n for n in addresses if n > values]
    (told,) = places("SYNCS.ARRIVE")
    (fence,) = places("FENCE.VIEW.ASYNC")
    reading = min(n for n in places("CS2R") if n > scores)
    assert reading < fence < told < turn, "the scores' slice ends ahead of it"
    assert len([n for n in places("FMNMX") if fence < n < told]) > 8


@pytest.mark.parametrize(
    ("sampling", "causal"), [({"sample_programs": 16}, True), ({"every": 8}, False)], ids=str
)
def test_what_is_not_sampled_waits_behind_the_weights(
    sampling: dict[str, int], causal: bool
) -> None:
    """In each version of the loop a dot runs beside the exponentials, as it does with records."""
    kernel = forward(128, causal, False, 128, 128, 8, 3, records=Instrumentation(**sampling))
    found = re.findall(r"HGMMA|WARPGROUP\.DEPBAR|MUFU\.EX2", kernel.asm["sass"])
    runs = [(name, len(list(same))) for name, same in itertools.groupby(found)]
    beside = [n for n, run in enumerate(runs) if run == ("HGMMA", 16)]  # two dots of 128
    assert len(beside) >= 2, "with records and without"
    for n in beside:
        (waited, _), (weights, count) = runs[n + 1 : n + 3]
        assert (waited, weights) == ("WARPGROUP.DEPBAR", "MUFU.EX2")
        assert runs[n + 1][1] == 1, "for the scores alone"
        assert count >= 64, "a thread's weights of 128 columns"


@pytest.mark.parametrize("head", [64, 128])
def test_rows_of_sums_are_read_as_they_are_wanted(head: int) -> None:
    """Straight from where they were copied: nothing is stored to shared memory in the loop, or
    passed between threads, and barriers are those of the copies."""
    loop = loop_of(backward(dkdv_kernel, head, False, 64, 64, 4, 2))
    assert sum("HGMMA" in line for line in loop) > 8
    assert sum("BAR.SYNC" in line for line in loop) <= 2
    assert not any(line.startswith(("STS", "STSM", "SHFL.IDX")) for line in loop)


@pytest.mark.usefixtures("by_groups")
def test_registers_are_not_given_up_where_each_product_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """One more program fits with 128 registers, unless ptxas says that products wait for them."""
    monkeypatch.setenv("PROTON_CACHE_DIR", str(tmp_path))
    limited = forward(64, True, False, 64, 64, 4, 3)
    assert limited.n_regs <= 128
    assert ".maxnreg 128" in limited.asm["ptx"]
    assembled = compiler._assembled

    def warned(*arguments: Any) -> Any:
        log = "ptxas info : (C7512) Potential Performance Loss: wgmma.mma_async instructions are"
        return replace(assembled(*arguments), log=log)

    monkeypatch.setattr(compiler, "_assembled", warned)
    monkeypatch.setenv("PROTON_ALWAYS_COMPILE", "1")
    kernel = forward(64, True, False, 64, 64, 4, 3)
    assert kernel.n_regs > 128
    assert ".maxnreg" not in kernel.asm["ptx"]
