"""What the compiler records by itself in a GPU's kernel, and which iteration work belongs to."""

import inspect
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.trace.instrumentation import AUTO, Instrumentation
from proton.trace.model import ONE
from tests.compile.assembler_distance import distances
from tests.compile.ptx_order import work
from tests.compile.test_gpu_records import compiled


@proton.jit
def matmul(a_ptr, b_ptr, c_ptr, K, STRIDE: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
           BLOCK_K: tl.constexpr):  # fmt: skip
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * STRIDE + (k + depth)[None, :])
        b = tl.load(b_ptr + (k + depth)[:, None] * STRIDE + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * STRIDE + columns[None, :], acc)


@proton.jit
def annotated(a_ptr, b_ptr, c_ptr, K, STRIDE: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
              BLOCK_K: tl.constexpr):  # fmt: skip
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    acc = tl.zeros((M, N), tl.float32)
    with proton.scope("main"):
        for k in range(0, K, BLOCK_K):
            with proton.scope("load", k=k):
                a = tl.load(a_ptr + rows[:, None] * STRIDE + (k + depth)[None, :])
                b = tl.load(b_ptr + (k + depth)[:, None] * STRIDE + columns[None, :])
            acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * STRIDE + columns[None, :], acc)


@proton.jit
def reduction(x_ptr, out_ptr, n):
    lane = tl.arange(0, 1024)
    total = 0.0
    for i in range(n):
        x = tl.load(x_ptr + i * 1024 + lane)
        total += tl.max(x, 0)
    tl.store(out_ptr, total)


WGMMA = {"M": 128, "N": 128, "BLOCK_K": 64, "num_warps": 8}
SMALL = {"M": 64, "N": 64, "BLOCK_K": 32, "num_warps": 4}  # for warp groups, too
MMA = {"M": 32, "N": 64, "BLOCK_K": 32, "num_warps": 2}


def ttgir(kernel: Any, blocks: dict[str, int], stages: int, **options: Any) -> str:
    found = compiled(
        kernel, *[tl.float16] * 2, tl.float32, 4096, STRIDE=4096, num_stages=stages, **blocks,
        instrumentation=Instrumentation(**options),
    )  # fmt: skip
    return str(found.asm["ttgir"])


def scopes(text: str) -> list[dict[str, str]]:
    """The table of scopes, in order of their numbers."""
    fields = {"kind": r'"(\w+)"', "name": r'"([^"]+)"', "path": r'"([^"]+)"', "work": r'"(\w*)"'}
    (table,) = re.findall(r"proton\.table = (\{.*\}), tt\.kernel", text)
    found = {key: re.findall(rf"\b{key} = {value}", table) for key, value in fields.items()}
    for key in ("pendings", "visit", "piece"):
        found[key] = re.findall(rf"\b{key} = (-?\d+)", table)
    rows = zip(*found.values(), strict=True)
    return [dict(zip(found, row, strict=True)) for row in rows]


def line_of(kernel: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    return next(number for number, line in enumerate(lines, first) if text in line)


def place(kernel: Any, *texts: str) -> str:
    return f"{Path(__file__).name}:{','.join(str(line_of(kernel, text)) for text in texts)}"


@pytest.mark.usefixtures("no_ptx")
def test_an_unannotated_pipeline_is_taken_apart() -> None:
    text = ttgir(matmul, WGMMA, 3, auto=AUTO)
    copy, dot = place(matmul, "a = tl", "b = tl"), place(matmul, "tl.dot")
    loop = place(matmul, "for k")
    names = {scope["name"]: (scope["kind"], scope["work"]) for scope in scopes(text)}
    assert {name: what for name, what in names.items() if what[1] != "barriers"} == {
        f"prologue {loop}": ("slice", "stages"),
        f"steady {loop}": ("slice", "stages"),
        f"epilogue {loop}": ("slice", "stages"),
        f"loop {loop}": ("slice", "loops"),
        f"iteration {loop}": ("slice", "loops"),
        f"issue copy {copy}": ("issue", "copies"),
        f"wait copy {copy}": ("wait", "copies"),
        f"issue dot {dot}": ("issue", "dots"),
        f"wait dot {dot}": ("wait", "dots"),
    }
    # Each wait says how much it leaves under way: behind the loop nothing.
    pendings = {
        (s["name"], s["pendings"]) for s in scopes(text) if s["kind"] == "wait" and s["work"]
    }
    for name in (f"wait copy {copy}", f"wait dot {dot}"):
        assert {(name, "1"), (name, "0")} <= pendings


def test_products_that_end_at_once_and_loads_without_a_pipeline_are_slices() -> None:
    found = scopes(ttgir(matmul, MMA, 1, auto="loads,dots"))
    texts = ["load " + place(matmul, text) for text in ("a = tl", "b = tl")]
    assert [(s["kind"], s["name"]) for s in found] == [
        *(("slice", text) for text in texts),
        ("slice", "dot " + place(matmul, "tl.dot")),
    ]


def test_a_reduction_waits_for_the_other_warps_inside() -> None:
    kernel = compiled(
        reduction, tl.float32, tl.float32, 9, instrumentation=Instrumentation(auto="barriers")
    )
    found = scopes(kernel.asm["ttgir"])
    assert {s["kind"] for s in found} == {"wait"}
    assert {s["name"].partition(" ")[0] for s in found} == {"barrier", "reduce"}
    plain = compiled(reduction, tl.float32, tl.float32, 9)
    assert kernel.asm["ptx"].count("bar.sync") == plain.asm["ptx"].count("bar.sync") + 1


CONSTANT = r"%(\S+) = arith\.constant (-?\d+) : i(?:32|64)"
RECORD = r'"proton_gpu\.circular_record"\(%\S+, %\S+, %\S+, %([\w-]+)[,)].*scope_id = (\d+)'


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("blocks", [WGMMA, MMA], ids=["wgmma", "mma"])
def test_a_prefetch_belongs_to_the_iteration_that_it_is_for(
    blocks: dict[str, int], stages: int
) -> None:
    """In front of the loop those of its first iterations, in it so many later ones; with the
    payload of no iteration."""
    text = ttgir(annotated, blocks, stages)
    table = scopes(text)
    visits = {s["visit"] for s in table if s["path"] == "main"}
    assert len(visits) == 1, "one run, prologue and all"
    assert "0" not in visits
    prologue, loop = text.split("scf.for", 1)
    numbers = _iterations(prologue, table)
    assert numbers == list(range(stages - 1))
    body = loop.split("scf.yield", 1)[0]
    ahead = [
        int(number)
        for number in re.findall(r"arith\.addi %\S+, %c(\d+)_i64", body)
    ]  # fmt: skip
    assert ahead == [stages - 1]
    # The wait is of the iteration that runs, with its payload; the copies have none.
    payloads = re.findall(
        r"circular_record.*operandSegmentSizes = array<i32: 1, 1, 1, 1, (\d)", body
    )
    assert payloads.count("0") == 1


def _iterations(text: str, table: list[dict[str, str]]) -> list[int]:
    """The constant iterations of the records of `main/load`."""
    constants = {name: int(value) for name, value in re.findall(CONSTANT, text)}
    constants |= {
        to: constants[from_]
        for to, from_ in re.findall(r"%(\S+) = arith\.trunci %(\S+) : i64 to i32", text)
        if from_ in constants
    }
    return [
        constants[value]
        for value, scope in re.findall(RECORD, text)
        if table[int(scope)]["path"] == "main/load"
    ]


@pytest.mark.usefixtures("no_ptx")
def test_ends_of_asynchronous_work_are_recorded_in_every_iteration() -> None:
    """Else a wait could not be told from one that retires more."""
    text = ttgir(matmul, WGMMA, 3, auto="copies,loops", every=4)
    table = scopes(text)
    conditions = {
        table[int(number)]["kind"]
        for sizes, number in re.findall(
            r"circular_record.*array<i32: [\d, ]+, (\d)>, scope_id = (\d+)", text
        )
        if sizes == "1"
    }
    assert conditions == {"slice"}


@proton.jit
def by_descriptors(a_ptr, b_ptr, c_ptr, K, tiles, FLATTEN: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        a = tl.make_tensor_descriptor(a_ptr, [tiles * 128, K], [K, 1], [128, 64])
        b = tl.make_tensor_descriptor(b_ptr, [K, 128], [128, 1], [64, 128])
        c = tl.make_tensor_descriptor(c_ptr, [tiles * 128, 128], [128, 1], [128, 128])
        acc = tl.zeros((128, 128), tl.float32)
        for k in range(0, K, 64):
            acc = tl.dot(a.load([tile * 128, k]), b.load([k, 0]), acc)
        c.store([tile * 128, 0], acc.to(tl.float16))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("words", [("copies",), ("loads", "dots"), AUTO], ids="-".join)
def test_copies_by_tma_have_both_ends(words: tuple[str, ...], flatten: bool) -> None:
    """An issue is recorded where its condition holds: so each has the wait of one barrier."""
    plain, recorded = (
        compiled(
            by_descriptors, *[tl.float16] * 3, 4096, 32, FLATTEN=flatten,
            num_stages=3, num_warps=8, instrumentation=instrumentation,
        )
        for instrumentation in (None, Instrumentation(auto=words))
    )  # fmt: skip
    assert "cp.async.bulk.tensor" in plain.asm["ptx"]
    expected, found = work(plain.asm["ptx"]), work(recorded.asm["ptx"])
    assert Counter(found) == Counter(expected)
    scopes = recorded.metadata["profile"]["scopes"]
    ends = {(s["kind"], s["pendings"]) for s in scopes if s["queue"] == "copies"}
    assert ends == {("issue", 0), ("wait", ONE)}
    # Copies to global memory are waited for until their memory can be written again; of a loop over
    # tiles all but the last one until they have landed, too.
    stores = {(s["kind"], s["pendings"]) for s in scopes if s["queue"] == "stores"}
    kinds = {("issue", 0), ("wait", 0), *([("wait", 1)] if flatten else [])}
    assert stores == (kinds if "copies" in words else set())
    # Each issue of several copies lies in one branch, with its records.
    issues = [
        text for text in recorded.asm["ttgir"].split("scf.if")[1:] if "barrier_expect" in text
    ]
    assert len(issues) == recorded.asm["ttgir"].count("barrier_expect") == 3
    for text in issues:
        ahead, _, behind = text.partition("barrier_expect")
        assert ahead.count("async_tma_copy_global_to_local") == 2
        assert "_record" in behind.partition("scf.")[0]
    # Where the next tile's copies begin in this one's loop their number is known only there.
    numbered = [text for text in issues if "operandSegmentSizes = array<i32: 1, 1, 1>}" in text]
    assert len(numbered) == (3 if flatten else 0)


@proton.jit
def meets(x_ptr, n, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane)
    for _ in range(n):
        with proton.scope("meet"):
            tl.debug_barrier()
        with proton.scope("add"):
            x += 1.5
        tl.debug_barrier()
    tl.store(x_ptr + lane, x)


BARRIER_CYCLES = 6  # after which a barrier holds: the assembler has so many to a load


@pytest.mark.parametrize(("arch", "clock_bits"), [(80, 64), (90, 32)])
def test_clocks_behind_a_barrier_are_read_when_it_is_over(arch: int, clock_bits: int) -> None:
    """A barrier takes effect some cycles after it was issued. The assembler keeps loads as far
    away; a clock it reads in the next cycle, unless it is told."""
    target = proton.GPUTarget("cuda", arch)
    cases = [
        (meets, (tl.float32, 9), {"BLOCK": 128}, None),
        (matmul, (tl.float16, tl.float16, tl.float32, 4096), {"STRIDE": 4096, **SMALL}, AUTO),
        (reduction, (tl.float32, tl.float32, 9), {}, ("barriers",)),
    ]
    for kernel, types, options, words in cases:
        instrumentation = Instrumentation(auto=words or (), clock_bits=clock_bits)
        found = compiled(
            kernel, *types, **options, target=target, instrumentation=instrumentation
        ).asm["cubin"]
        clocks = distances(found, r"\bBAR\.SYNC", r"SR_CLOCKLO", ends=r"BAR\.")
        assert clocks, kernel.__name__
        assert min(clocks) >= BARRIER_CYCLES, (kernel.__name__, clocks)
