"""Loops whose copies a producer begins (proton/schedule/roles.py), on the machine for PTX: what
they compute, that their synchronization is needed, and which loops these are."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from benchmarks.alternating_kernels import plain_scores
from kernels.attention import attention_descriptors_kernel
from proton.analysis import group_registers
from proton.analysis.barriers import check_barriers
from proton.analysis.role_rounds import check_rounds
from proton.backends.nvidia import compiler
from proton.backends.nvidia.ptx import with_groups_of
from proton.base.knobs import knobs
from proton.dialect import isa, tt, ttg, ttng
from proton.dialect.builtin import i32_attr
from proton.dialect.context import mlir_context
from proton.dialect.mlir import Module, Operation, Value, arith, ir
from proton.dialect.walk import all_ops, kernel_functions
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_emulated import without
from tests.compile.test_warp_group_order import GROUP, WEIGHTS, run_alternating

HOPPER = proton.GPUTarget("cuda", 90)
ROLES = "setmaxnreg"


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("kernel", WEIGHTS, ids=lambda kernel: kernel.__name__)
def test_loops_with_a_dot_that_is_delayed(rng: np.random.Generator, kernel: Any) -> None:
    """All but the one in which little lies between the dots, with one iteration and with more."""
    seen: list[str] = []
    for length in (128, 256):
        run_alternating(
            rng, kernel, lambda ptx: seen.append(ptx) or ptx, length=length, heads=256 // length,
            tma=True, head=128, columns=128, num_warps=8, num_stages=2,
        )  # fmt: skip
    assert [ROLES in ptx for ptx in seen] == [kernel is not plain_scores] * 2


# Loops that ask for it


@proton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), tl.float32)
    for at in tl.range(0, k, K, warp_specialize=True):
        acc = tl.dot(a.load([row, at]), b.load([at, column]), acc)
    c.store([row, column], acc.to(tl.float16))


@proton.jit
def persistent(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Two loops in one over tiles; the place of what they load is carried."""
    columns, half = tl.cdiv(n, N), k // K // 2 * K
    for tile in range(tl.program_id(0), tl.cdiv(m, M) * columns, 2):
        row, column = tile // columns * M, tile % columns * N
        acc = tl.zeros((M, N), tl.float32)
        for at in tl.range(0, half, K, warp_specialize=True):
            acc = tl.dot(a.load([row, at]), b.load([at, column]), acc)
        place = half
        for _ in tl.range(half, k, K, warp_specialize=True):
            acc = tl.dot(a.load([row, place]), b.load([place, column]), acc)
            place += K
        c.store([row, column], acc.to(tl.float16))


@proton.jit
def by_threads(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The sums of a's rows and of b's columns: threads read what was copied."""
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), tl.float32)
    for at in tl.range(0, k, K, warp_specialize=True):
        of_rows = tl.sum(a.load([row, at]).to(tl.float32), 1)
        acc += of_rows[:, None] + tl.sum(b.load([at, column]).to(tl.float32), 0)[None, :]
    c.store([row, column], acc.to(tl.float16))


@proton.jit
def unequal(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Two loops with other buffers each, of which the second one adds to the first one's dot."""
    row, column, half = tl.program_id(0) * M, tl.program_id(1) * N, k // K // 2 * K
    acc = tl.zeros((M, N), tl.float32)
    for at in tl.range(0, half, K, warp_specialize=True):
        acc = tl.dot(a.load([row, at]), b.load([at, column]), acc)
    for at in tl.range(half, k, K, warp_specialize=True, num_stages=2):
        acc = tl.dot(a.load([row, at]), b.load([at, column]), acc)
    c.store([row, column], acc.to(tl.float16))


def run_asked(
    rng: np.random.Generator,
    kernel: Any,
    shape: tuple[int, int, int],
    warps: int,
    stages: int,
    edit: Callable[[str], str] = str,
    rows: int = 16,
) -> str:
    """The PTX of a kernel whose result is numpy's; a warp has so many rows of a block."""
    m, n, k = shape
    blocks = {"M": rows * warps, "N": 64, "K": 32}
    a, b = rng.standard_normal((m, k + 32)), rng.standard_normal((k + 32, n))
    a, b = a.astype(np.float16), b.astype(np.float16)
    a[:, k:], b[k:] = 0, 0  # no dimension is empty
    c = np.full((m, n), np.nan, np.float16)
    seen: list[str] = []
    sizes = (("M", "K"), ("K", "N"), ("M", "N"))
    given = [
        TensorDescriptor.from_tensor(array, [blocks[x], blocks[y]])
        for array, (x, y) in zip((a, b, c), sizes, strict=True)
    ]
    grid = (2,) if kernel is persistent else (m // blocks["M"], n // 64)
    edited = lambda ptx: seen.append(ptx) or edit(ptx)  # noqa: E731
    with Emulation(warps, rng, edited, checks_races=False, apart=GROUP).installed():
        kernel[grid](*given, m, n, k, **blocks, num_warps=warps, num_stages=stages)
    x, y = a.astype(np.float32), b.astype(np.float32)
    want = x.sum(1)[:, None] + y.sum(0) if kernel is by_threads else x @ y
    assert np.abs(c - want).max() <= 2e-3 * max(1, np.abs(want).max())
    return seen[0]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "kernel", [product, persistent, by_threads, unequal], ids=lambda k: k.__name__
)
def test_loops_that_ask_for_it(rng: np.random.Generator, kernel: Any) -> None:
    """As long as the ring is, longer, one iteration, and none."""
    for k, warps, stages in ((96, 4, 3), (256, 8, 2), (32, 4, 4), (0, 4, 3)):
        shape = (16 * warps * (3 if kernel is persistent else 1), 64, k)
        ptx = run_asked(rng, kernel, shape, warps, stages)
        assert ROLES in ptx
        assert ".maxntid " + str(32 * (warps + 4)) in ptx


@pytest.mark.usefixtures("no_assembler")
def test_operands_that_threads_read(rng: np.random.Generator) -> None:
    """Blocks too small for `wgmma`: what each warp takes is read when it is there."""
    ptx = run_asked(rng, product, (32, 64, 160), 4, 3, rows=8)
    assert ROLES in ptx
    assert "mma.sync" in ptx


@proton.jit
def two_places(a, a_ptr, b_ptr, c_ptr, n, second, M: tl.constexpr, MAPS: tl.constexpr):
    """The first iteration loads one block of a, all others the one behind it."""
    m = tl.arange(0, M)
    at = m[:, None] * M + m[None, :]
    row, places, acc = 0, a_ptr + at, tl.zeros((M, M), tl.float32)
    next_row, next_places = second * M, a_ptr + second * M * M + at
    for i in tl.range(n, warp_specialize=True):
        x = a.load([row, 0]) if MAPS else tl.load(places)
        acc = tl.dot(x, tl.load(b_ptr + i * M * M + at), acc)
        row, places = next_row, next_places
    tl.store(c_ptr + at, acc)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("maps", [False, True])
def test_what_iterations_take_is_made_ahead_of_the_loop(
    rng: np.random.Generator, maps: bool
) -> None:
    """Where it moves no further, a producer asked for it where it was not."""
    a, b = (rng.standard_normal((n, 64, 64)).astype(np.float16) for n in (2, 4))
    c = np.full((64, 64), np.nan, np.float32)
    seen: list[str] = []
    edit = lambda ptx: seen.append(ptx) or ptx  # noqa: E731
    with Emulation(4, rng, edit, checks_races=False, apart=GROUP).installed():
        blocks = TensorDescriptor.from_tensor(a.reshape(128, 64), [64, 64])
        two_places[(1,)](blocks, a, b, c, 4, 1, 64, maps)
    assert ROLES in seen[0]
    want = a[0].astype(np.float32) @ b[0] + a[1].astype(np.float32) @ b[1:].sum(0, np.float32)
    assert np.abs(c - want).max() < 1e-3 * np.abs(want).max()


@pytest.mark.usefixtures("no_ptx")
def test_programs_and_chips_that_have_no_room_for_roles() -> None:
    """A program has 1024 threads at most, and only 9.0 moves registers between groups."""
    desc = TensorDescriptor(tl.float16, (512, 512), (512, 1), (64, 64))
    for warps, target in ((32, HOPPER), (4, proton.GPUTarget("cuda", 100))):
        kernel = product.warmup(
            desc, desc, desc, 512, 512, 512, M=64, N=64, K=64, target=target, num_warps=warps
        )
        assert "groups 1" in kernel.asm["schedule"]


# What is taken out: of the loop of consumers, then of that of the producer.
NEEDED = {
    "the wait for what was copied": (r"mbarrier\.try_wait[^;]*;\s*@!done bra\.uni again;", 0),
    "the wait for an empty buffer": (r"mbarrier\.try_wait[^;]*;\s*@!done bra\.uni again;", -1),
}


@pytest.mark.parametrize("what", NEEDED)
def test_waits_are_needed(rng: np.random.Generator, what: str) -> None:
    """Where a role is the slower one, which chance decides."""
    with pytest.raises(AssertionError):
        run_often(rng, without(*NEEDED[what]))


def run_often(rng: np.random.Generator, edit: Callable[[str], str]) -> None:
    for _ in range(20):
        run_asked(rng, product, (64, 64, 256), 4, 2, edit)


def test_arrivals_are_needed(rng: np.random.Generator) -> None:
    """Else the producer waits for ever."""
    taken = re.compile(r"@%p\d+ mbarrier\.arrive\.shared::cta\.b64 _, \[%r\d+\];")
    with pytest.raises(AssertionError, match="wait for ever"):
        run_asked(rng, product, (64, 64, 256), 4, 2, lambda ptx: taken.sub("", ptx))


@proton.jit
def halved(q, k, out, n, M: tl.constexpr, HOW: tl.constexpr):
    """What a branch makes of the dot that is delayed; where HOW says."""
    block = q.load([0, 0])
    acc = tl.zeros((M, 128), tl.float32)
    for at in range(0, n, 128):
        keys, values = k.load([at, 0]), k.load([at + 128, 0])
        scores = tl.dot(block, tl.trans(keys))
        if HOW == "ahead" and at > 128:
            acc = acc * 0.5
        weights = tl.exp2(scores)
        if HOW == "behind" and at > 128:
            acc = acc * 0.5
        acc = tl.dot(weights.to(tl.float16), values, acc)
    out.store([0, 0], acc.to(tl.float16))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("how", ["ahead", "behind"])
def test_a_branch_takes_what_is_delayed(rng: np.random.Generator, how: str) -> None:
    q, k = rng.standard_normal((128, 128)) / 20, rng.standard_normal((512, 128)) / 4
    q, k = q.astype(np.float16), k.astype(np.float16)
    out = np.full_like(q, np.nan)
    given = [TensorDescriptor.from_tensor(array, [128, 128]) for array in (q, k, out)]
    seen: list[str] = []
    edit = lambda ptx: seen.append(ptx) or ptx  # noqa: E731
    with Emulation(8, rng, edit, checks_races=False, apart=GROUP).installed():
        halved[1,](*given, 384, M=128, HOW=how, num_warps=8, num_stages=2)
    want = np.zeros((128, 128), np.float32)
    for number, at in enumerate((0, 128, 256)):
        weights = np.exp2(q.astype(np.float32) @ k[at : at + 128].T.astype(np.float32))
        values = k[at + 128 : at + 256].astype(np.float32)
        want = want * (0.5 if number > 1 else 1) + weights.astype(np.float16) @ values
    assert ROLES in seen[0]
    assert np.abs(out - want).max() <= 2e-3 * np.abs(want).max()


# Which loops


@proton.jit
def after_a_flag(a, b, c, flag, n, M: tl.constexpr, HOW: tl.constexpr):
    """The dot of each iteration might be delayed; ahead of it stands what HOW says."""
    first, extent = 0, n
    if HOW == "flag":
        tl.atomic_add(flag, 1)
    if HOW == "dependency":
        tl.extra.cuda.gdc_wait()
    if HOW == "loaded":
        extent = tl.load(flag)
    if HOW == "branch":
        first = tl.load(flag) * 0
    q = a.load([0, 0])
    out = tl.zeros((M, 128), tl.float32)
    if HOW != "branch" or n > 3:
        for at in range(first, extent, 128):
            k, v = b.load([at, 0]), b.load([at + 128, 0])
            if HOW == "asked":
                weights = tl.exp2(tl.dot((q + out).to(tl.float16), tl.trans(k)))
            else:
                weights = tl.exp2(tl.dot(q, tl.trans(k)))
            out = tl.dot(weights.to(tl.float16), k if HOW == "reused" else v, out)
    c.store([0, 0], out.to(tl.float16))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("how", "options", "has_roles"),
    [
        ("", {}, True),
        ("", {"num_warps": 4, "M": 64}, False),  # two programs share the registers
        ("", {"num_stages": 1}, False),
        ("", {"maxnreg": 168}, False),
        ("flag", {}, False),  # what is copied might be written by who sees it
        ("dependency", {}, False),
        ("loaded", {}, False),  # the producer would load it again
        ("branch", {}, False),
        ("reused", {}, False),  # of one buffer, which the first dot reads, too
        ("asked", {}, False),  # by the first dot of the next iteration
    ],
)
def test_which_loops_have_roles(how: str, options: dict[str, int], has_roles: bool) -> None:
    options = {"num_warps": 8, "num_stages": 2, "M": 128} | options
    desc, own = (
        TensorDescriptor(tl.float16, (4096, 128), (128, 1), (rows, 128))
        for rows in (128, options["M"])
    )
    kernel = after_a_flag.warmup(own, desc, own, tl.int32, 4096, HOW=how, target=HOPPER, **options)
    assert ("producer and consumer" in kernel.asm["schedule"]) == has_roles
    assert (ROLES in kernel.asm["ptx"]) == has_roles


@pytest.mark.usefixtures("no_ptx")
def test_a_loop_that_asks_has_them_where_nothing_is_delayed() -> None:
    """And what the schedule says."""
    desc = TensorDescriptor(tl.float16, (512, 512), (512, 1), (64, 64))
    kernel = product.warmup(
        desc, desc, desc, 512, 512, 512, M=64, N=64, K=64, target=HOPPER, num_stages=3
    )
    text = kernel.asm["schedule"]
    assert "stages 3, producer and consumer" in text.splitlines()[0]
    assert text.count("wait until channel 0 is filled") == text.count("channel 0 is empty") == 1


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize(
    ("n", "k", "options", "text"),
    [
        (128, 64, {"num_warps": 32}, "groups 1"),  # a producer's threads would be too many
        (256, 64, {"num_stages": 4}, "stages 3, producer"),  # the block that is stored has memory
        (256, 128, {"num_stages": 2}, "groups 1"),  # as above, and one stage is none
        (256, 64, {"num_warps": 4}, "groups 1"),  # consumers have no registers for the accumulator
    ],
)
def test_a_producer_has_room(n: int, k: int, options: dict[str, int], text: str) -> None:
    a, b, c = (
        TensorDescriptor(tl.float16, (512, 512), (512, 1), block)
        for block in ((128, k), (k, n), (128, n))
    )
    options = {"num_warps": 8} | options
    kernel = product.warmup(
        a, b, c, 512, 512, 512, M=128, N=n, K=k, target=HOPPER, **options
    )  # fmt: skip
    assert text in kernel.asm["schedule"]


@pytest.mark.parametrize("warps", range(4, 32, 4))
def test_registers_are_what_instructions_take(warps: int) -> None:
    """Steps of 8; groups together have no more than the program begins with."""
    facts = HOPPER.facts
    begins = group_registers.at_first(facts, warps + 4) * (warps + 4)
    others = group_registers.INSTEAD, group_registers.COPYING_INSTEAD
    for producer in (group_registers.PRODUCER, *others):
        count = group_registers.of_consumers(facts, warps, producer)
        text = "setmaxnreg.{}.sync.aligned.u32 {};"
        ptx = with_groups_of(text.format("inc", 88) + text.format("dec", 40), count, producer)
        assert ptx == text.format("inc", count) + text.format("dec", producer)
        assert count % 8 == 0
        assert count * warps + producer * 4 <= begins


# Barriers, followed by proton/analysis/role_rounds.py

BARRIERS = (ttng.ArriveOfWarpsOp, ttng.WaitBarrierOp)


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch, no_ptx: None) -> Iterator[list[str]]:
    """Modules behind the schedule, while each is checked, ahead of the assembler."""
    found: list[str] = []
    goes_on = compiler._with_workers

    def spy(module: Module, options: Any) -> Any:
        found.append(module.operation.get_asm(enable_debug_info=True))
        return goes_on(module, options)

    monkeypatch.setattr(compiler, "_with_workers", spy)
    with knobs.scope(verify_each=True, always_compile=True):
        yield found


def with_numbers(text: str, number: int) -> Module:
    """The module with all integers that a kernel is given known, of the third of five programs."""
    module = ir.Module.parse(text)
    (kernel,) = kernel_functions(module)
    block = kernel.regions[0].blocks[0]
    known: list[tuple[Value, int]] = [(value, number) for value in block.arguments]
    for op in all_ops(kernel):
        if isa(op, tt.GetProgramIdOp, tt.GetNumProgramsOp):
            known.append((op.results[0], 2 if isa(op, tt.GetProgramIdOp) else 5))
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        for value, of_it in known:
            if isinstance(value.type, ir.IntegerType):
                value.replace_all_uses_with(arith.ConstantOp(value.type, of_it).result)
    return module


def test_barriers_of_roles_are_right_and_all_are_needed(scheduled: list[str]) -> None:
    """Of two loops over tiles: without any arrival or wait, or with one dot more under way, memory
    would be read too early, be copied to too early, or a wait would not end."""
    desc = TensorDescriptor(tl.float16, (512, 512), (512, 1), (64, 64))
    for kernel in (product, by_threads, persistent):
        kernel.warmup(
            desc, desc, desc, 512, 512, 512, M=64, N=64, K=64, target=HOPPER, num_stages=3
        )
        with mlir_context():
            check_barriers(with_numbers(scheduled[-1], 320))
    with mlir_context():
        assert len(_barrier_ops(with_numbers(scheduled[-1], 320))) == 12, "four of each kind"
        for number in range(12):
            module = with_numbers(scheduled[-1], 320)
            op = _barrier_ops(module)[number]
            if isa(op, ttng.WarpGroupDotWaitOp):
                op.attributes["pendings"] = i32_attr(op.opview.pendings.value + 1)
            else:
                op.erase()
            with pytest.raises(proton.CompilationError, match=r"may still|under way|never ends"):
                check_barriers(module)


def _check_rounds(module: Module) -> None:
    (kernel,) = kernel_functions(module)
    check_rounds(kernel)


def _barrier_ops(module: Module) -> list[Operation]:
    (kernel,) = kernel_functions(module)
    return [op for op in all_ops(kernel) if isa(op, *BARRIERS, ttng.WarpGroupDotWaitOp)]


@pytest.mark.parametrize("kernel", WEIGHTS, ids=lambda kernel: kernel.__name__)
def test_barriers_of_delayed_dots(scheduled: list[str], kernel: Any) -> None:
    """For any number of iterations, and for five."""
    rows = [TensorDescriptor(tl.float16, (4096, 128), (128, 1), (128, 128)) for _ in range(4)]
    kernel.warmup(
        *rows, 640, 0.05, M=128, N=128, D=128, TMA=True, target=HOPPER, num_warps=8, num_stages=2
    )
    with mlir_context():
        check_barriers(with_numbers(scheduled[-1], 640))


@proton.jit
def by_pointers(a_ptr, b_ptr, c_ptr, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for at in tl.range(0, k, K, warp_specialize=True):
        a = tl.load(a_ptr + rows[:, None] * k + (at + depth)[None, :])
        b = tl.load(b_ptr + (at + depth)[:, None] * N + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


def test_barriers_of_copies_by_threads_are_right_and_all_are_needed(scheduled: list[str]) -> None:
    by_pointers.warmup(*[tl.float16] * 3, 640, M=64, N=64, K=64, target=HOPPER, num_stages=3)
    with mlir_context():
        _check_rounds(with_numbers(scheduled[-1], 640))
        for number in range(2):  # the wait, and the arrival of copies
            module = with_numbers(scheduled[-1], 640)
            (worker,) = [op for op in all_ops(module.operation) if isa(op, ttg.WorkerOp)]
            kinds = ttng.WaitBarrierOp, ttng.ArriveWithCopiesOp
            [op for op in all_ops(worker) if isa(op, *kinds)][number].erase()
            with pytest.raises(proton.CompilationError, match=r"may still|under way|never ends"):
                _check_rounds(module)


@pytest.mark.parametrize("causal", [False, True])
def test_barriers_of_attention(scheduled: list[str], causal: bool) -> None:
    """Two loops with channels for K and V each, of different lengths."""
    rows = TensorDescriptor(
        tl.float16, (1, 2, 4096, 128), (1 << 20, 1 << 19, 128, 1), (1, 1, 128, 128)
    )
    attention_descriptors_kernel.warmup(
        rows, rows, rows, rows, tl.float32, 2, 4096, 0.1, CAUSAL=causal, target=HOPPER,
        num_warps=8, num_stages=2,
    )  # fmt: skip
    assert "ttg.worker" in scheduled[-1]
    with mlir_context():
        for length in (640, 4096, 100, 0):
            check_barriers(with_numbers(scheduled[-1], length))
