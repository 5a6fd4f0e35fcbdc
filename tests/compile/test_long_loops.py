"""Loops of products with records, run thread by thread on the machine of PTX.

Their turns keep readings alone, and each so many of them write their records, while products are
under way. What the ring buffers hold is what they hold without `compact-iterations`.
"""

import itertools
import zlib
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.backends.nvidia import compiler
from proton.backends.nvidia.target import GPUKernel
from proton.base.knobs import knobs
from proton.runtime.launch.jit import JITFunction
from proton.trace import wire
from proton.trace.instrumentation import Instrumentation
from proton.trace.iterations import expand
from proton.transforms.records.compact_iterations import CompactIterations
from tests.compile.conftest import NoAssembler
from tests.compile.ptx.machine import run_on_arrays
from tests.compile.test_gpu_records import compiled
from tests.compile.test_random_records import check_equal, unchanged
from tests.compile.test_unaligned_products import loop_of

WARPS, CLOCK = 4, (1 << 32) - 50  # readings until the low half of the clock is around
Records = list[tuple[str, int]]  # name and iteration


@proton.jit(do_not_specialize=["depth"])
def product(a_ptr, b_ptr, out_ptr, depth, STAGES: tl.constexpr):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    total = tl.zeros((64, 64), tl.float32)
    with proton.scope("kernel"):
        for k in tl.range(depth, num_stages=STAGES):
            with proton.scope("load"):
                a = tl.load(a_ptr + k * 4096 + i * 64 + j)
                b = tl.load(b_ptr + k * 4096 + i * 64 + j)
            with proton.scope("dot"):
                total = tl.dot(a, b, total)
        with proton.scope("store"):
            tl.store(out_ptr + i * 64 + j, total)


@proton.jit(do_not_specialize=["tiles", "depth"])
def products(a_ptr, b_ptr, out_ptr, tiles, depth, STAGES: tl.constexpr):
    """The same for several blocks of b."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    for tile in range(tiles):
        total = tl.zeros((64, 64), tl.float32)
        for k in tl.range(depth, num_stages=STAGES):
            with proton.scope("load"):
                a = tl.load(a_ptr + k * 4096 + i * 64 + j)
                b = tl.load(b_ptr + (tile * depth + k) * 4096 + i * 64 + j)
            with proton.scope("dot"):
                total = tl.dot(a, b, total)
        with proton.scope("store"):
            tl.store(out_ptr + tile * 4096 + i * 64 + j, total)


def ran(kernel: GPUKernel, arrays: list[np.ndarray], sizes: list[int], rng: Any) -> Any:
    """The header of a program, and of each warp the number of its records and the newest ones."""
    profile = kernel.profile
    assert profile is not None
    block = profile.block
    buffer = np.zeros(block.bytes, np.uint8)
    given = [*arrays, *sizes, buffer]
    ptx, shared = kernel.asm["ptx"], kernel.shared
    run_on_arrays(ptx, (1, 1, 1), 32 * WARPS, shared, given, rng, unit=32, clock=CLOCK)
    expand(buffer, block, profile.loops)
    rings = []
    for unit, count in enumerate(block.tables(buffer)[0].tolist()):
        start = block.segment(unit)
        ring = buffer[start : start + block.segment_bytes].view(profile.schema.dtype)
        rings.append((count, ring[np.arange(max(0, count - block.capacity), count) % ring.size]))
    return block.headers(buffer)[0], rings


def records_of(kernel: JITFunction, tiles: int, depth: int) -> Records:
    """The records of a warp, in order. A turn waits for its copies, and issues those of two turns
    later; behind a loop its last product is waited for. Addresses are computed ahead of tiles."""
    found: Records = [("load", -1)] * (kernel is products)
    for tile in range(tiles) if kernel is products else (-1,):
        found += [("load", 0), ("load", 1)]
        for k in range(depth):
            found += [("load", k), ("dot", k), ("load", k + 2)]
        found += [("dot", tile), ("store", tile)]
    return found + [("kernel", -1)] * (kernel is product)


HOW = [
    {}, {"capacity": 8}, {"capacity": 16, "clock_bits": 64}, {"buffer": "global", "capacity": 64},
    {"sample_warps": (1, 2), "capacity": 32}, {"buffer": "global", "room": False},
    {"buffer": "global", "clock_bits": 64, "room": False},
]  # fmt: skip
# Each buffer, width of clock and lack of room with both kernels.
BOTH = [(product, HOW[0]), (products, HOW[0])]
ONE = [((products, product)[n % 2], how) for n, how in enumerate(HOW[1:])]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "kernel, how", BOTH + ONE, ids=lambda x: str(x) if isinstance(x, dict) else x.__name__
)
def test_a_loop_of_products(
    kernel: JITFunction, how: dict[str, Any], session_seed: int, rng: np.random.Generator
) -> None:
    """Without `room` in shared memory lanes keep the readings of turns. Each way has a depth of its
    own."""
    rng = np.random.default_rng([session_seed, zlib.crc32(f"{kernel.__name__} {how}".encode())])
    how, has_room = {k: v for k, v in how.items() if k != "room"}, "room" not in how
    several = kernel is products
    numbers = [3] * (1 + several)
    types = [tl.float16, tl.float16, tl.float32]
    options: dict[str, Any] = {"num_warps": WARPS, "instrumentation": Instrumentation(**how)}
    with pytest.MonkeyPatch.context() as patch, knobs.scope(always_compile=True):
        if not has_room:
            patch.setattr(CompactIterations, "_place", lambda *_: None)
        compact = compiled(kernel, *types, *numbers, 3, **options)
        patch.setattr(CompactIterations, "run", unchanged)
        patch.setattr(compiler, "Assembler", NoAssembler)  # it runs here alone
        plain = compiled(kernel, *types, *numbers, 3, **options)
    assert compact.profile is not None
    assert (compact.profile.iterations is not None) == has_room
    assert len(compact.profile.loops) == ("clock_bits" not in how)  # written as batches
    assert "wgmma" in compact.asm["ptx"]
    depths = [0, 1, int(rng.integers(2, 40))] + [64] * (not how and not several)
    for depth, tiles in itertools.product(depths, (0, 2) if several else (1,)):
        a, b = (rng.random((n * 64, 64)).astype(np.float16) for n in (depth, tiles * depth))
        out, other = (np.full((64 * tiles + 1, 64), np.nan, np.float32) for _ in range(2))
        # The machine takes no empty arrays.
        given = [x if x.size else np.zeros((1, 64), np.float16) for x in (a, b)]
        sizes = [tiles, depth] if several else [depth]
        header, found = ran(compact, [*given, out], sizes, rng)
        _, others = ran(plain, [*given, other], sizes, rng)
        assert np.array_equal(out, other, equal_nan=True)
        left, right = (x.reshape(-1, 64, 64) for x in (np.tile(a, (tiles, 1)), b))
        blocks = zip(left, right, strict=True)
        each = [x.astype(np.float32) @ y.astype(np.float32) for x, y in blocks]
        expected = np.reshape(each, (tiles, depth, 64, 64)).sum(axis=1)
        np.testing.assert_allclose(out[:-1].reshape(tiles, 64, 64), expected, rtol=1e-4)
        print(tiles, "tiles,", depth, "turns")
        records, scopes = records_of(kernel, tiles, depth), compact.profile.table.scopes
        for unit, ((count, ring), (other_count, other_ring)) in enumerate(
            zip(found, others, strict=True)
        ):
            numbers = ring["iteration"].astype(np.int32).tolist()
            tags = ring["tag"] & wire.MAX_SCOPE_ID
            names = [scopes[tag].name for tag in tags]
            every = records if compact.profile.sampled_units >> unit & 1 else []
            assert list(zip(names, numbers, strict=True)) == every[len(every) - len(names) :]
            assert count == other_count == len(every)
            check_equal(ring, other_ring)
        assert header["magic"] == wire.MAGIC
        assert header["state"] == wire.ProgramState.FINISHED
        assert header["clock_start"] <= header["clock_end"]


def test_what_a_turn_does_for_its_records() -> None:
    """Four readings and a store of all of them, beside a branch around the writing of records; by
    registers that are the same in all threads, or else products take theirs from others."""
    arguments = tl.float16, tl.float16, tl.float32, 3, 3
    off, on = (
        loop_of(compiled(product, *arguments, num_warps=WARPS, instrumentation=how))
        for how in (None, Instrumentation())
    )
    stores = [number for number, line in enumerate(on) if "STG" in line]
    begin = max(number for number in range(stores[0]) if "BRA" in on[number])
    turn = on[: begin + 1] + on[stores[-1] + 1 :]
    more = {"CS2R": 4, "STS": 1, "LDS": 0, "STG": 0, "R2UR": 0, "BAR": 0}
    for word, count in more.items():
        assert sum(word in line for line in turn) - sum(word in line for line in off) == count, word
    assert len(turn) <= len(off) + 16


def test_nothing_is_computed_between_the_last_product_and_its_scope() -> None:
    """Addresses of the result are computed where the store is, and not where all threads wait."""
    types = tl.float16, tl.float16, tl.float32
    kernel = compiled(rows, *types, 3, 3, num_warps=WARPS, instrumentation=Instrumentation())
    sass = kernel.asm["sass"]
    wait = sass[sass.index("DEPBAR.LE gsb0, 0x0") :]
    assert "IMAD" not in wait[: min(wait.index(word) for word in ("CS2R", "BRA"))]


@proton.jit(do_not_specialize=["depth"])
def rows(a_ptr, b_ptr, out_ptr, depth, STAGES: tl.constexpr):
    """A product whose result has a stride."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for k in tl.range(depth, num_stages=STAGES):
        with proton.scope("load"):
            a = tl.load(a_ptr + k * 4096 + i * 64 + j)
            b = tl.load(b_ptr + k * 4096 + i * 64 + j)
        with proton.scope("dot"):
            total = tl.dot(a, b, total)
    with proton.scope("store"):
        tl.store(out_ptr + i * depth + j, total)
