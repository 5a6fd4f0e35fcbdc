"""What a scope costs.

    python benchmarks/profiling.py [--rounds 9]

The loops run one program of a million iterations with placement="program", so that every scope
is recorded where it is written; the time of the same loop without a session is taken off. Vector
add has one scope around all that a program does, matmul one around its loads, its product and its
store, both in the default placement; runs with and without a session take turns.
"""

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import proton
import proton.language as tl
from kernels.matmul import matmul
from proton.backends.cpu import llvm

ITERATIONS = 1_000_000
SIZE, BLOCK, SIDE = 1 << 24, 16384, 1024
REPEATS = 7
READS = {1: "rdtsc", 2: "rdtsc twice"}
# The loop keeps the sum of the readings, so that none of them is dropped.
CLOCK_LOOP = """
define i64 @clock_loop(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum0 = phi i64 [ 0, %entry ], [ %sumREADS, %loop ]
  BODY
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i64 %sumREADS
}
"""
READ = """
  %pairN = call { i32, i32 } asm sideeffect "rdtsc", "={ax},={dx},~{memory}"()
  %lowN = extractvalue { i32, i32 } %pairN, 0
  %wideN = zext i32 %lowN to i64
  %sumN = add i64 %sumM, %wideN
"""


@proton.jit
def empty_scope(out_ptr, n):
    for _ in range(n):
        with proton.scope("empty"):
            pass
    tl.store(out_ptr, n)


@proton.jit
def scope_of_a_store(out_ptr, n):
    for i in range(n):
        with proton.scope("store"):
            tl.store(out_ptr, i)


@proton.jit
def two_scopes(out_ptr, n):
    for i in range(n):
        with proton.scope("first"):
            tl.store(out_ptr, i)
        with proton.scope("second"):
            tl.store(out_ptr + 1, i)


@proton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    with proton.scope("program"):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)


def without_scope() -> Any:
    """`add` without its scope."""

    @proton.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)

    return add


def best(action: Callable[[], object]) -> float:
    """Nanoseconds of the fastest of some runs."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter_ns()
        action()
        times.append(time.perf_counter_ns() - begin)
    return min(times)


def recorded(action: Callable[[], object], **options: Any) -> tuple[float, Any]:
    """Nanoseconds of the fastest of some runs in a session, and the session's run."""
    proton.start("benchmark", **options)
    try:
        action()
        fastest = best(action)
    finally:
        run = proton.finalize()
    return fastest, run


def clock_ns(reads: int) -> float:
    """Nanoseconds of a loop's turn with so many readings of the clock, in native code."""
    numbered = (READ.replace("N", str(k + 1)).replace("M", str(k)) for k in range(reads))
    text = CLOCK_LOOP.replace("BODY", "".join(numbered)).replace("READS", str(reads))
    code = llvm.linker().link(llvm.emit_object(text)[0], "clock_loop")
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address)
    return best(lambda: function(ITERATIONS)) / ITERATIONS


def slice_ns(kernel: Any, scopes: int) -> tuple[float, float]:
    """(ns that a slice adds to the loop, ns that it shows as its own duration)."""
    out = np.zeros(2, np.int32)

    def launch() -> None:
        kernel[(1,)](out, ITERATIONS)

    launch()
    plain = best(launch)
    profiled, run = recorded(launch, placement="program")
    added = (profiled - plain) / (ITERATIONS * scopes)
    return added, float(run.frame.query("kind == 'scope'")["dur_ns"].median())


def vector_add() -> Callable[[], object]:
    rng = np.random.default_rng(0)
    x, y, out = (rng.standard_normal(SIZE, dtype=np.float32) for _ in range(3))
    return lambda: add[(proton.cdiv(SIZE, BLOCK),)](x, y, out, SIZE, BLOCK=BLOCK)


def product() -> Callable[[], object]:
    rng = np.random.default_rng(0)
    a, b, out = (rng.standard_normal((SIDE, SIDE), dtype=np.float32) for _ in range(3))
    return lambda: matmul(a, b, out)


LAUNCHES = {"vector add 2^24": vector_add, f"matmul {SIDE}^3": product}


def session_ratio(launch: Callable[[], object], rounds: int) -> tuple[list[float], float, int]:
    """(time with a session over time without, a round each; ms without; slices a launch)."""
    launch()
    ratios, plain = [], []
    for _ in range(rounds):
        plain.append(best(launch))
        profiled, run = recorded(launch)
        ratios.append(profiled / plain[-1])
    return ratios, min(plain) / 1e6, run.totals.slices // run.totals.launches


def same_code() -> bool:
    """Whether a scope leaves no byte in the code outside of a session."""
    x = np.zeros(64, np.float32)
    codes = [f.warmup(x, x, x, 64, BLOCK=64).asm["obj"] for f in (add, without_scope())]
    return codes[0] == codes[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    table = Table("what", "ns", "ns in the slice itself")
    for reads, name in READS.items():
        values = [clock_ns(reads) for _ in range(rounds)]
        table.add_row(f"{name}, native loop", f"{statistics.median(values):.1f}", "")
    loops = {
        "empty scope": (empty_scope, 1),
        "scope of a scalar store": (scope_of_a_store, 1),
        "two scopes of a store, each": (two_scopes, 2),
    }
    for name, loop in loops.items():
        pairs = [slice_ns(*loop) for _ in range(rounds)]
        table.add_row(name, *(f"{statistics.median(v):.1f}" for v in zip(*pairs, strict=True)))
    console = Console(width=100)
    console.print(table)
    for name, prepared in LAUNCHES.items():
        ratios, plain, slices = session_ratio(prepared(), rounds)
        console.print(
            f"{name}, {slices} slices, {plain:.2f} ms without: recording costs "
            f"{(statistics.median(ratios) - 1) * 100:+.1f} % "
            f"({(min(ratios) - 1) * 100:+.1f} to {(max(ratios) - 1) * 100:+.1f})"
        )
    console.print(f"code outside of a session is the same as without scopes: {same_code()}")


if __name__ == "__main__":
    main()
