"""Round trips to global memory: in the text of PTX, in machine code by what instructions wait for,
and which machine code is taken for them."""

import re

import pytest

import proton
import proton.language as tl
from proton.backends.nvidia.compiler import _IN_FLIGHT
from proton.backends.nvidia.cubin import disassemble
from proton.backends.nvidia.round_trips import RoundTrips, of_code, of_ptx
from proton.backends.nvidia.target import GPUKernel

HOPPER = proton.GPUTarget("cuda", 90)
SIDE_BY_SIDE = """
    ld.global.b32 %r1, [%rd1];
    @%p1 ld.global.v2.b32 {%r2, %r3}, [%rd2];
    add.s32 %r4, %r1, %r1;
    add.s32 %r5, %r2, %r3;
"""
IN_A_ROW = """
    ld.global.b32 %r1, [%rd1];
    add.s32 %r4, %r1, %r1;
    mov.b32 %r2, %r9;
    @%p1 ld.global.v2.b32 {%r2, %r3}, [%rd2];
    add.s32 %r5, %r2, %r3;
"""
POINTER = """
    ld.global.b64 %rd1, [%rd9];
    ld.volatile.global.b32 %r1, [%rd8];
    ld.global.L1::evict_last.b32 %r2, [%rd1+4];
    ld.shared.b32 %r3, [%rd1];
    add.s32 %r4, %r1, %r2;
"""


@pytest.mark.parametrize(
    ("text", "loads", "trips"),
    [("", 0, 0), (SIDE_BY_SIDE, 2, 1), (IN_A_ROW, 2, 2), (POINTER, 3, 2), (2 * IN_A_ROW, 4, 4)],
)
def test_round_trips_of_ptx(text: str, loads: int, trips: int) -> None:
    assert of_ptx(text) == RoundTrips(loads, trips)


@proton.jit
def weights(x_ptr, weight_ptr, out_ptr, sums_ptr, n, STREAMS: tl.constexpr, N: tl.constexpr):
    """Of each stream a tile is multiplied by a column of weights and stored, and another one is
    loaded and added up, as the gradients of weighted streams are."""
    rows = tl.program_id(0) * 32 + tl.arange(0, 32)
    columns = tl.program_id(1) * 128 + tl.arange(0, 128)
    tile = rows[:, None] * (STREAMS * N) + columns[None, :]
    given = tl.load(x_ptr + rows[:, None] * N + columns[None, :], mask=rows[:, None] < n, other=0.0)
    for stream in tl.static_range(STREAMS):
        weight = tl.load(weight_ptr + rows * STREAMS + stream, mask=rows < n, other=0.0)
        tl.store(out_ptr + tile + stream * N, given * weight[:, None], mask=rows[:, None] < n)
        x = tl.load(out_ptr + tile + (STREAMS + stream) * N, mask=rows[:, None] < n, other=0.0)
        tl.atomic_add(sums_ptr + rows * STREAMS + stream, tl.sum(given * x, 1), mask=rows < n)


def of_weights(target: proton.GPUTarget = HOPPER, **options) -> GPUKernel:
    return weights.warmup(*[tl.float32] * 4, 4096, STREAMS=4, N=4096, target=target, **options)


@proton.jit
def row_sums(x_ptr, at_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = x_ptr + tl.load(at_ptr + tl.program_id(0)) * n
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(row + at, mask=at < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total))


def of_rows(target: proton.GPUTarget) -> GPUKernel:
    return row_sums.warmup(tl.float32, tl.int64, tl.float32, 4096, BLOCK=1024, target=target)


def by_text(code: bytes) -> RoundTrips:
    """The same from nvdisasm's text: a load is waited for by who names its registers."""
    loads = trips = done = 0
    under_way = dict[int, int]()
    for line in disassemble(code).splitlines():
        found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)\s*([^;]*);", line)
        if found is None:
            continue
        name, operands = found[1], found[2]
        wide = 4 if ".128" in name else 2 if ".64" in name else 1
        used = set[int]()
        for number, pair in re.findall(r"(?<![A-Z])R(\d+)(\.64)?", operands):
            more = wide if name.startswith(("LDG", "STG", "STS")) and not pair else 1 + bool(pair)
            used |= set(range(int(number), int(number) + more))
        for register in used & under_way.keys():
            done = max(done, under_way[register])
        under_way = {register: trip for register, trip in under_way.items() if trip > done}
        if name.startswith("LDG"):
            loads, trips = loads + 1, max(trips, done + 1)
            first = int(re.match(r"(?:P\w+, )?R(\d+)", operands)[1])
            under_way |= dict.fromkeys(range(first, first + wide), done + 1)
    return RoundTrips(loads, trips)


@pytest.mark.parametrize("arch", [80, 86, 89, 90, 100, 120])
def test_round_trips_of_code_are_those_that_its_text_shows(arch: int) -> None:
    target = proton.GPUTarget("cuda", arch)
    for kernel in (of_weights(target), of_rows(target)):
        found, expected = of_code(kernel.asm["cubin"]), by_text(kernel.asm["cubin"])
        assert found.loads == expected.loads > 4
        # One of six scoreboards may stand for more loads than the one that is waited for.
        assert expected.trips <= found.trips <= expected.trips + 2
    assert of_ptx(of_rows(target).asm["ptx"]).trips == 2  # the row's place, and of the row


def test_code_without_loads_makes_no_trip() -> None:
    @proton.jit
    def numbers(out_ptr):
        tl.store(out_ptr + tl.arange(0, 128), tl.arange(0, 128))

    code = numbers.warmup(tl.int32, target=HOPPER).asm["cubin"]
    assert of_code(code) == RoundTrips(0, 0)


def test_loads_that_are_side_by_side_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """ptxas has five programs in 96 registers, by loading the tile of a stream two rows at a time.
    Four that load it at once have more loads under way: each stream is one trip for its weights
    and one for its tile."""
    kernel = of_weights()
    chosen = of_code(kernel.asm["cubin"])
    assert ".minnctapersm" in kernel.asm["ptx"]
    assert chosen.trips <= of_ptx(kernel.asm["ptx"]).trips + 2 == 10
    assert kernel.n_spills == 0

    monkeypatch.setattr("proton.backends.nvidia.compiler._IN_FLIGHT", 1e9)
    with proton.knobs.scope(always_compile=True):
        left = of_weights()
    assert ".minnctapersm" not in left.asm["ptx"]
    programs = [65536 // (-(-k.n_regs // 8) * 8 * 128) for k in (kernel, left)]
    trips = chosen.trips, of_code(left.asm["cubin"]).trips
    assert programs[0] * trips[1] >= _IN_FLIGHT * programs[1] * trips[0]


def test_a_limit_that_the_user_gives_is_kept() -> None:
    kernel = of_weights(maxnreg=96)
    assert ".minnctapersm" not in kernel.asm["ptx"]
    assert kernel.n_regs <= 96


@proton.jit
def rows_and_one(x_ptr, at_ptr, least_ptr, out_ptr, one_ptr, n, BLOCK: tl.constexpr):
    """As a cross entropy: the sum of a row, and one element of it less something, or zero."""
    program = tl.program_id(0)
    at, least = tl.load(at_ptr + program), tl.load(least_ptr + program)
    if at < 0:
        one = 0.0
    else:
        one = tl.load(x_ptr + program * n + at) - least
    total = 0.0
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + program * n + columns, mask=columns < n, other=0.0)
        total += tl.sum(x - least)
    tl.store(one_ptr + program, one)
    tl.store(out_ptr + program, total)


@pytest.mark.parametrize("arch", [80, 90])
def test_a_loop_does_not_wait_for_what_is_needed_behind_it(arch: int) -> None:
    """One trip for the place, a second one for the element and the first block of the row. ptxas
    unrolls the loop, and keeps the element's subtraction where the PTX has it."""
    types = tl.float32, tl.int64, tl.float32, tl.float32, tl.float32
    target = proton.GPUTarget("cuda", arch)
    kernel = rows_and_one.warmup(*types, 4096, BLOCK=4096, num_warps=16, target=target)
    assert of_ptx(kernel.asm["ptx"]).trips == 2


def test_scalars_that_are_used_twice_are_followed_once() -> None:
    """As many ways lead back from the last sum as 2 to the 200th."""

    @proton.jit
    def doubles(x_ptr, out_ptr, n):
        known, loaded = n * 1.0, tl.load(x_ptr)
        for _ in tl.static_range(200):
            known += known
            loaded += loaded
        for _ in range(n):
            tl.debug_barrier()
        tl.store(out_ptr, known + loaded)

    kernel = doubles.warmup(tl.float32, tl.float32, 9, target=HOPPER)
    assert of_code(kernel.asm["cubin"]).trips == 1
