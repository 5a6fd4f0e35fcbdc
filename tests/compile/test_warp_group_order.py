"""Warp groups that take turns at the tensor cores, run without a GPU (tests/compile/ptx): what such
loops compute, and that their synchronization is needed. Which loops these are:
tests/ir/lit/passes/tritongpu-schedule-loops-groups.mlir."""

import math
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from benchmarks.alternating_kernels import (
    attention,
    causal_attention,
    decaying_scores,
    gated_scores,
    plain_scores,
    two_layers,
)
from kernels.attention import attention_kernel
from proton.base.errors import PassError
from proton.dialect.tt_elementwise import MAX_ELEMENTWISE
from proton.passes import parse_pipeline
from proton.tools.opt import ModuleText, register_all_passes
from proton.tools.tensor_descriptor import TensorDescriptor
from proton.trace.instrumentation import Instrumentation
from proton.trace.iterations import expand
from proton.trace.wire import MAX_SCOPE_ID
from tests.compile.ptx.emulation import Emulation
from tests.compile.ptx.machine import run
from tests.compile.ptx.memory import Arrays, Heap
from tests.compile.test_emulated import without
from tests.compile.test_gpu_records import compiled
from tests.compile.test_warp_groups import lowered
from tests.cpu.harness import decode, encode, pointer
from tests.cpu.test_attention import reference

GROUP = 128  # threads
TAKES_TURN = r"bar\.sync\s+%r\d+, 256;"

pytestmark = pytest.mark.usefixtures("by_groups")


def run_attention(
    rng: np.random.Generator,
    edit: Callable[[str], str] = str,
    *,
    length: int = 128,
    head: int = 64,
    causal: bool = False,
    dtype: str = "float16",
    stages: int = 3,
    columns: int = 32,
) -> None:
    """Two warp groups, of which one goes on as far as it can before the other does, against numpy
    in float64."""
    shape = (1, 1, length, head)
    q, k, v = (encode(rng.standard_normal(shape, np.float32), dtype) for _ in range(3))
    out, sums = np.full_like(q, 77), np.zeros(shape[:3], np.float32)
    strides = [length * head, length * head, head] * 4
    arrays = [pointer(array, dtype) for array in (q, k, v, out)]
    with Emulation(8, rng, edit, checks_races=False, apart=GROUP).installed():
        attention_kernel[proton.cdiv(length, 128), 1](
            *arrays, sums, *strides, 1, length, head**-0.5, HEAD=head, BLOCK_M=128,
            BLOCK_N=columns, CAUSAL=causal, OVERLAP=False, num_stages=stages,
        )  # fmt: skip
    want, logarithms = reference(*(decode(x, dtype) for x in (q, k, v)), causal)
    bound = {"float16": 4e-3, "bfloat16": 3e-2}[dtype]
    assert np.abs(decode(out, dtype) - want).max() < bound
    assert np.abs(sums - logarithms).max() < bound


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("options", [
    {"length": 2}, {"length": 200, "causal": True, "stages": 4, "dtype": "bfloat16"},
    {"length": 150, "head": 128, "columns": 64},
], ids=str)  # fmt: skip
def test_attention(rng: np.random.Generator, options: dict[str, Any]) -> None:
    seen: list[str] = []
    run_attention(rng, lambda ptx: seen.append(ptx) or ptx, **options)
    assert len(re.findall(TAKES_TURN, seen[0])) == 4, "at the beginning, and in the loop, of two"


def run_alternating(
    rng: np.random.Generator,
    kernel: Any,
    edit: Callable[[str], str] = str,
    *,
    length: int = 256,
    heads: int = 1,
    tma: bool = False,
    head: int = 64,
    columns: int = 64,
    **options: Any,
) -> None:
    """Blocks of rows of heads, against numpy in float64. Of a program one warp group goes on as
    far as it can before the next does."""
    scale = 0.05
    q, k, v = (
        rng.standard_normal((heads, length, head), np.float32).astype(np.float16) for _ in range(3)
    )
    out = np.full_like(q, 77)
    arrays: list[Any] = [q, k, v, out]
    if tma:
        rows = (128, columns, columns, 128)
        arrays = [
            TensorDescriptor.from_tensor(array.reshape(-1, head), [block, head])
            for array, block in zip(arrays, rows, strict=True)
        ]
    with Emulation(8, rng, edit, checks_races=False, apart=GROUP).installed():
        kernel[length // 128, heads](
            *arrays, length, scale, M=128, N=columns, D=head, TMA=tma, **options
        )
    x, y, z = (array.astype(np.float64) for array in (q, k, v))
    if kernel is two_layers:  # of the first rows of the arrays
        y, z = y[:1], z[:1]
    scores = x @ y.transpose(0, 2, 1) * scale
    want = WEIGHTS[kernel](scores) @ z
    assert np.abs(out - want).max() < 4e-3 * max(1, np.abs(want).max())


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp2(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _decayed(scores: np.ndarray) -> np.ndarray:
    rows = np.arange(scores.shape[-1])
    return scores * np.exp2(-np.abs(rows[:, None] - rows) * 0.05)


def _gelu(hidden: np.ndarray) -> np.ndarray:
    return 0.5 * hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2)))


WEIGHTS: dict[Any, Callable[[np.ndarray], np.ndarray]] = {
    attention: _softmax,
    causal_attention: lambda scores: _softmax(np.where(np.tri(scores.shape[-1]), scores, -1e30)),
    gated_scores: lambda scores: 1 / (1 + np.exp(-scores)),
    decaying_scores: _decayed,
    two_layers: _gelu,
    plain_scores: lambda scores: scores,
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("kernel", WEIGHTS, ids=lambda kernel: kernel.__name__)
def test_loops_that_compute_between_their_dots(rng: np.random.Generator, kernel: Any) -> None:
    """They alternate, but for the one that computes little."""
    seen: list[str] = []
    head = 128 if kernel is gated_scores else 64
    tma = kernel is attention
    run_alternating(rng, kernel, lambda ptx: seen.append(ptx) or ptx, tma=tma, head=head)
    loops = {plain_scores: 0, causal_attention: 2}.get(kernel, 1)
    assert len(re.findall(TAKES_TURN, seen[0])) == 2 * loops


def test_attention_with_records(rng: np.random.Generator) -> None:
    """The same result, and of each warp a slice of each scope's work in each block of keys."""
    heads, length, head, columns = 2, int(rng.integers(100, 200)), 64, 32
    shape = (1, heads, length, head)
    q, k, v = (rng.standard_normal(shape, np.float32).astype(np.float16) for _ in range(3))
    out, sums = np.full_like(q, 77), np.zeros(shape[:3], np.float32)
    numbers = [*[heads * length * head, length * head, head] * 4, heads, length]
    scale = head**-0.5
    kernel = compiled(
        attention_kernel, q, k, v, out, sums, *numbers, scale, HEAD=head, BLOCK_M=128,
        BLOCK_N=columns, CAUSAL=False, OVERLAP=False, num_warps=8, num_stages=3,
        instrumentation=Instrumentation(capacity=256),
    )  # fmt: skip
    assert "order_wait" in kernel.asm["ttgir"]
    assert kernel.profile is not None
    block, programs = kernel.profile.block, (proton.cdiv(length, 128), heads, 1)
    buffer = rng.integers(0, 256, block.bytes * math.prod(programs), np.uint8)
    arrays = Arrays(Heap())
    places = [arrays.address(array) for array in (q, k, v, out, sums)]
    given = [struct.pack("<q", number) for number in (*places, *numbers)]
    given += [struct.pack("<f", scale), struct.pack("<q", arrays.address(buffer))]
    ptx, memory = kernel.asm["ptx"], kernel.shared
    run(ptx, programs, 256, memory, given, arrays.heap, rng, checks_races=False, apart=GROUP)
    arrays.copy_back()
    want, logarithms = reference(q, k, v, causal=False)
    assert np.abs(out - want).max() < 4e-3
    assert np.abs(sums - logarithms).max() < 4e-3
    expand(buffer, block, kernel.profile.loops)
    names = [scope.name for scope in kernel.profile.table.scopes]
    whole, all_blocks = length // columns, proton.cdiv(length, columns)
    for number, counts in enumerate(block.tables(buffer)):
        for unit, count in enumerate(counts.tolist()):
            start = number * block.bytes + block.segment(unit)
            ring = buffer[start : start + block.segment_bytes].view(kernel.profile.schema.dtype)
            is_softmax = ring[:count]["tag"] & MAX_SCOPE_ID == names.index("softmax")
            found = ring[:count]["iteration"][is_softmax]
            assert found.tolist() == [*range(whole), *range(all_blocks - whole)]


def test_what_takes_results_of_another_loop_runs_beside_the_dot(rng: np.random.Generator) -> None:
    """That loop is made anew first."""

    @proton.jit
    def weighted(q_ptr, k_ptr, out_ptr, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
        rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
        q = tl.load(q_ptr + rows[:, None] * D + depth)
        sums, total = tl.zeros((M,), tl.float32), tl.zeros((M,), tl.float32)
        acc = tl.zeros((M, D), tl.float32)
        for start in range(0, length, N):
            k = tl.load(k_ptr + (start + columns)[None, :] * D + depth[:, None])
            sums = sums * 0.5 + tl.sum(tl.dot(q, k), 1)
        for start in range(0, length, N):
            k = tl.load(k_ptr + (start + columns)[None, :] * D + depth[:, None])
            factor = sums * start
            weights = tl.exp2(tl.dot(q, k))
            total += tl.sum(weights, 1) * factor
            v = tl.load(k_ptr + (start + columns)[:, None] * D + depth)
            acc = tl.dot(weights.to(tl.float16), v, acc)
        tl.store(out_ptr + rows[:, None] * D + depth, acc * total[:, None])

    q, k = rng.standard_normal((128, 64)), rng.standard_normal((512, 64))
    arrays = [array.astype(np.float16) for array in (q, k)]
    out = np.zeros((128, 64), np.float32)
    text = compiled(weighted, *arrays, out, 512, M=128, N=64, D=64, num_warps=8).asm["ttgir"]
    (loop,) = (part for part in text.split("scf.for")[1:] if "order_wait" in part)
    dot, wait = loop.index('warp_group_dot"'), loop.index("warp_group_dot_wait")
    assert dot < loop.index("arith.mulf") < wait


# In the first loop: what is taken out, and which of those that are found.
NEEDED = {
    "the turn": (TAKES_TURN, 1),
    "the wait for what the other group copies": (
        r"mbarrier\.try_wait[^;]*;\s*@!done bra\.uni again;", 0,
    ),
    "the wait for the own copies": (r"cp\.async\.wait_group[^;]*;", 1),
    "the fence behind it": (r"fence\.proxy\.async[^;]*;", 1),
}  # fmt: skip


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("what", NEEDED)
def test_synchronization_is_needed(rng: np.random.Generator, what: str) -> None:
    """Without it a group reads what the other has not copied yet, or writes what it reads: where
    that group is the slower one, which chance decides."""
    with pytest.raises(AssertionError):
        run_often(rng, without(*NEEDED[what]))


def run_often(rng: np.random.Generator, edit: Callable[[str], str]) -> None:
    for _ in range(20):
        run_attention(rng, edit)


def test_one_group_has_nobody_to_take_turns_with() -> None:
    text = 'module attributes {"ttg.num-warps" = 4 : i32} { func.func @f() { ORDER return } }'
    assert "bar.arrive" in lowered(
        text.replace("4", "8").replace("ORDER", '"ttng.order_pass"() : () -> ()')
    )
    with pytest.raises(PassError, match="warp groups alternate in a program of several"):
        lowered(text.replace("ORDER", '"ttng.order_pass"() : () -> ()'))


ORDERED = Path(__file__).parents[1] / "ir/lit/passes/tritongpu-schedule-loops-groups.mlir"
SCHEDULED = "tritongpu-schedule-loops{num-stages=3 target=cuda:90}"
ASSEMBLY = (
    '{asm_string = "bar.sync 0;", constraints = "=r", packed_element = 1 : i32, '
    f"resultSegmentSizes = array<i32: 1{', 0' * (MAX_ELEMENTWISE - 1)}>, "
    f"operandSegmentSizes = array<i32: 0{', 0' * (MAX_ELEMENTWISE - 1)}>}}"
)


def passed(text: str, pipeline: str) -> str:
    register_all_passes()
    piece = ModuleText(text)
    piece.run(parse_pipeline(pipeline), debug_info=False)
    assert piece.output is not None, piece.diagnostics
    return piece.output


def test_assembly_with_effects_may_be_a_barrier() -> None:
    """A group that waited for the other one behind its values would wait for ever."""
    text = ORDERED.read_text()
    assembly = f'%asm = "tt.inline_asm_with_effects"() {ASSEMBLY} : () -> i32\n'
    end = text.index("scf.yield %o")
    assert "order_wait" in passed(text, SCHEDULED)
    assert "order_wait" not in passed(text[:end] + assembly + text[end:], SCHEDULED)


def test_a_wait_for_what_is_no_dot() -> None:
    text = ORDERED.read_text().replace('_wait"(%e)', '_wait"(%s)')
    assert "order_wait" not in passed(text, SCHEDULED)
