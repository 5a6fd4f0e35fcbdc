"""What profiling costs on a GPU, and how true it is: Proton, and Triton's Proton in the same run.

    python benchmarks/gpu_profiling.py [--only host stream ...] [--json FILE]

Kernel times are of Nsight Compute (`ncu --clock-control none`), which runs this file again, once
for Proton and once for each mode of Triton's; medians of 10 launches, of 5 for Triton's Proton. The
loop kernel has 132 programs of 4 warps that go round 2000 times with one scope in the body;
`loop_add` does one multiply-add of 1024 numbers in it, and `loop_max` has three scopes: a load, a
maximum over the block, and exp. The cost of a slice is in cycles of 1.98 GHz. Host times are of
launches in a row; stream times are of a profiled launch and a small kernel behind it, again and
again.

Fidelity is of kernels of one warp on every SM that begin at a tick of the global timer and wait
until it has gone on by so much; what it says then is the true duration.
"""

import argparse
import contextlib
import csv
import importlib.util
import io
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import proton
import proton.language as tl
from proton.base import symbols
from proton.kernels.layer_norm import layer_norm_kernel
from proton.kernels.softmax import softmax_kernel
from proton.runtime.nvidia.buffers import RingBuffer

PROGRAMS, TURNS, REPEATS = 132, 2000, 10
MAX_TURNS = 500  # of the loop of three scopes
# Slices of a launch of each loop kernel.
SLICES = {"loop": TURNS, "loop_add": TURNS, "loop_max": 3 * MAX_TURNS}
GHZ = 1.98
STRATEGIES = ("circular", "flush")
WAITS = (1, 10, 100, 1000)  # us
TICK = 32  # ns of the H200's global timer
PATIENCE = 100  # seconds for a process of this file
ROWS, COLUMNS = 16384, 8192

TRITON = """
import triton
import triton.language as tl
import triton.profiler.language as pl

pl.enable_semantic("triton")


@triton.jit
def triton_loop(x_ptr, n):
    place = tl.program_id(0) * 128 + tl.arange(0, 128)
    x = tl.load(x_ptr + place)
    y = x
    for _ in range(n):
        pl.enter_scope("body")
        for _ in tl.static_range(8):
            x = x * 0.5 + y
        pl.exit_scope("body")
    tl.store(x_ptr + place, x)


@triton.jit
def triton_loop_add(x_ptr, n):
    place = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    x = tl.load(x_ptr + place)
    y = x
    for _ in range(n):
        pl.enter_scope("body")
        x = x * 0.5 + y
        pl.exit_scope("body")
    tl.store(x_ptr + place, x)


@triton.jit
def triton_loop_max(x_ptr, out_ptr, n):
    lane = tl.arange(0, 1024)
    total = tl.zeros((1024,), tl.float32)
    for i in range(n):
        pl.enter_scope("load")
        x = tl.load(x_ptr + i * 1024 + lane)
        pl.exit_scope("load")
        pl.enter_scope("max")
        largest = tl.max(x, 0)
        pl.exit_scope("max")
        pl.enter_scope("exp")
        total += tl.exp(x - largest)
        pl.exit_scope("exp")
    tl.store(out_ptr + tl.program_id(0) * 1024 + lane, total)


@triton.jit
def triton_spin(out_ptr, ns):
    first = tl.extra.cuda.globaltimer()
    begin = first
    while begin == first:
        begin = tl.extra.cuda.globaltimer()
    now = begin
    pl.enter_scope("spin")
    while now - begin < ns:
        now = tl.extra.cuda.globaltimer()
    pl.exit_scope("spin")
    tl.store(out_ptr + tl.program_id(0), now - begin)
"""


@proton.jit
def proton_loop(x_ptr, n):
    place = tl.program_id(0) * 128 + tl.arange(0, 128)
    x = tl.load(x_ptr + place)
    y = x
    for _ in range(n):
        with proton.scope("body"):
            for _ in tl.static_range(8):
                x = x * 0.5 + y
    tl.store(x_ptr + place, x)


@proton.jit
def proton_loop_add(x_ptr, n):
    """Body (a): 1024 numbers, one multiply-add per turn."""
    place = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    x = tl.load(x_ptr + place)
    y = x
    for _ in range(n):
        with proton.scope("body"):
            x = x * 0.5 + y
    tl.store(x_ptr + place, x)


@proton.jit
def proton_loop_max(x_ptr, out_ptr, n):
    """Body (b): a load, a maximum over the block, and exp, a scope each."""
    lane = tl.arange(0, 1024)
    total = tl.zeros((1024,), tl.float32)
    for i in range(n):
        with proton.scope("load"):
            x = tl.load(x_ptr + i * 1024 + lane)
        with proton.scope("max"):
            largest = tl.max(x, 0)
        with proton.scope("exp"):
            total += tl.exp(x - largest)
    tl.store(out_ptr + tl.program_id(0) * 1024 + lane, total)


@proton.jit
def proton_spin(out_ptr, ns):
    first = tl.extra.cuda.globaltimer()
    begin = first
    while begin == first:
        begin = tl.extra.cuda.globaltimer()
    now = begin
    with proton.scope("spin"):
        while now - begin < ns:
            now = tl.extra.cuda.globaltimer()
    tl.store(out_ptr + tl.program_id(0), now - begin)


@proton.jit
def three_scopes(x_ptr):
    place = tl.program_id(0) * 256 + tl.arange(0, 256)
    with proton.scope("load"):
        x = tl.load(x_ptr + place)
    with proton.scope("compute"):
        x = tl.exp(x) + tl.sum(x, 0)
    with proton.scope("store"):
        tl.store(x_ptr + place, x * 0.001)


@proton.jit
def after(out_ptr):
    tl.store(out_ptr, tl.load(out_ptr) + 1)


@proton.jit
def hold(out_ptr, ns):
    begin = tl.extra.cuda.globaltimer()
    while tl.extra.cuda.globaltimer() - begin < ns:
        tl.store(out_ptr, begin)


Launch = Callable[[], Any]


def launches() -> dict[str, Launch]:
    """A launch of each of our kernels."""
    x = torch.rand(PROGRAMS * 128, device="cuda")
    rows = torch.randn(ROWS, COLUMNS, device="cuda")
    out = torch.empty_like(rows)
    half = rows.half()
    half_out = torch.empty_like(half)
    weight, bias = (torch.rand(COLUMNS, device="cuda").half() for _ in range(2))
    mean, rstd = (torch.empty(ROWS, device="cuda") for _ in range(2))
    wide = torch.rand(PROGRAMS * 1024, device="cuda")
    read = torch.rand(MAX_TURNS * 1024, device="cuda")
    sums = torch.empty(PROGRAMS * 1024, device="cuda")
    return {
        "proton_loop": lambda: proton_loop[(PROGRAMS,)](x, TURNS, num_warps=4),
        "proton_loop_add": lambda: proton_loop_add[(PROGRAMS,)](wide, TURNS, num_warps=4),
        "proton_loop_max": lambda: proton_loop_max[(PROGRAMS,)](read, sums, MAX_TURNS, num_warps=4),
        "softmax_kernel": lambda: softmax_kernel[(ROWS,)](
            rows, out, COLUMNS, COLUMNS, ROWS, COLUMNS, 1, BLOCK=COLUMNS, num_warps=16
        ),
        "layer_norm_kernel": lambda: layer_norm_kernel[(ROWS,)](
            half, weight, bias, half_out, mean, rstd, COLUMNS, ROWS, COLUMNS, 1, 1e-5,
            BLOCK=COLUMNS, num_warps=8,
        ),
    }  # fmt: skip


def times(count: int, launch: Launch) -> None:
    for _ in range(count):
        launch()
    torch.cuda.synchronize()


OURS: dict[str, dict[str, Any]] = {
    "off": {},
    "default": {"capacity": 0},
    "64-bit clock": {"clock_bits": 64},
    "global buffer": {"buffer": "global"},
    "program": {"placement": "program"},
    "counting": {"strategy": "counting"},
}
THEIRS: dict[str, dict[str, Any]] = {
    "off": {},
    "default": {},
    "clock32": {"optimizations": "clock32"},
    "clock32, global buffer": {
        "optimizations": "clock32", "buffer_type": "global", "buffer_size": 1 << 22
    },
}  # fmt: skip
THEIR_REPEATS = 5


def inner_ours() -> None:
    """What runs under Nsight Compute: each mode of each kernel, REPEATS times, in order."""
    for launch in launches().values():
        for mode, options in OURS.items():
            if mode == "off":
                times(REPEATS, launch)
            else:
                with proton.profile(mode, **options):
                    times(REPEATS, launch)


def triton_kernels(folder: str) -> Any:
    """The module of Triton's kernels, which it wants to read from a file."""
    path = Path(folder) / "triton_kernels.py"
    path.write_text(TRITON)
    spec = importlib.util.spec_from_file_location("triton_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inner_triton(mode_name: str) -> NoReturn:
    """The same of Triton's Proton, in one mode. It ends before Triton writes its trace, which takes
    a minute."""
    import triton.profiler as profiler
    from triton.profiler import mode

    with tempfile.TemporaryDirectory() as folder:
        module = triton_kernels(folder)
        x = torch.rand(PROGRAMS * 1024, device="cuda")
        read = torch.rand(MAX_TURNS * 1024, device="cuda")
        sums = torch.empty(PROGRAMS * 1024, device="cuda")
        if mode_name != "off":
            chosen = mode.Default(**THEIRS[mode_name])
            profiler.start(f"{folder}/trace", data="trace", backend="instrumentation", mode=chosen)
        grid, add, max_ = (PROGRAMS,), module.triton_loop_add, module.triton_loop_max
        times(THEIR_REPEATS, lambda: module.triton_loop[grid](x, TURNS, num_warps=4))
        times(THEIR_REPEATS, lambda: add[grid](x, TURNS, num_warps=4))
        times(THEIR_REPEATS, lambda: max_[grid](read, sums, MAX_TURNS, num_warps=4))
    sys.stdout.flush()
    os._exit(0)


def inner_triton_fidelity() -> None:
    """Prints, for each wait, the true durations in ns and those of Triton's trace."""
    import triton.profiler as profiler
    from triton.profiler import mode

    found = []
    with tempfile.TemporaryDirectory() as folder:
        module = triton_kernels(folder)
        out = torch.zeros(PROGRAMS, dtype=torch.int64, device="cuda")
        module.triton_spin[(PROGRAMS,)](out, 1000, num_warps=1)
        for microseconds in WAITS:
            path = f"{folder}/trace{microseconds}"
            profiler.start(path, data="trace", backend="instrumentation", mode=mode.Default())
            module.triton_spin[(PROGRAMS,)](out, 1000 * microseconds, num_warps=1)
            torch.cuda.synchronize()
            profiler.finalize()
            files = sorted(Path(folder).glob(f"trace{microseconds}.*"))
            events = json.loads(files[0].read_text())["traceEvents"]
            durations = [1e3 * event["dur"] for event in events if event.get("name") == "spin"]
            found.append({"true": out.tolist(), "traced": durations})
    print(json.dumps(found))


def this_program(*arguments: str, before: tuple[str, ...] = ()) -> str:
    """What another process of this file prints."""
    command = [*before, sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
    return done.stdout


def under_ncu(*arguments: str) -> dict[str, list[float]]:
    """us of each launch by kernel, in order."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise SystemExit("Nsight Compute (ncu) is not on the path")
    command = (ncu, "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--csv")
    names = "regex:proton_loop|softmax_kernel|layer_norm_kernel|triton_loop"
    printed = this_program(*arguments, before=(*command, "-k", names))
    rows = [line for line in printed.splitlines() if line.startswith('"')]
    found: dict[str, list[float]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(rows))):
        scale = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "nsecond": 1e-3, "usecond": 1.0}
        value = float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]]
        name = row["Kernel Name"].partition("(")[0].removesuffix(symbols.END)
        found.setdefault(name, []).append(value)
    return found


def medians() -> dict[str, dict[str, float]]:
    """us of each mode of each kernel."""
    found = {
        kernel: {
            mode: statistics.median(values[n * REPEATS : (n + 1) * REPEATS])
            for n, mode in enumerate(OURS)
        }
        for kernel, values in under_ncu("--inner", "ours").items()
    }
    theirs = {mode: under_ncu("--inner", mode) for mode in THEIRS}
    for kernel in (f"triton_{name}" for name in SLICES):
        found[kernel] = {
            mode: statistics.median(times_[kernel])
            for mode, times_ in theirs.items()
            if kernel in times_
        }
    return found


def overhead_table() -> tuple[Table, list[dict[str, Any]]]:
    """Each mode of each kernel against the kernel without records."""
    table = Table("kernel", "mode", "us", "+ %", "cycles per slice", title="kernel time")
    rows = []
    for kernel, modes in medians().items():
        for mode, us in modes.items():
            extra = us - modes["off"]
            slices = SLICES.get(kernel.partition("_")[2], 0)
            cycles = extra * 1e3 * GHZ / slices if slices else float("nan")
            row = {"kernel": kernel, "mode": mode, "us": us, "percent": 100 * extra / modes["off"]}
            rows.append(row | {"cycles": cycles})
            table.add_row(kernel, mode, f"{us:.2f}", f"{row['percent']:.2f}", f"{cycles:.1f}")
    return table, rows


def in_turns(x_ptr: torch.Tensor, out: torch.Tensor, programs: int) -> Launch:
    """A launch of a kernel of three scopes, and of a small one behind it on the same stream."""

    def launch() -> None:
        three_scopes[(programs,)](x_ptr, num_warps=8)
        after[(1,)](out, num_warps=1)

    return launch


def host_table() -> Table:
    """us per launch on the host without and with records, by grid, stream and strategy: medians of
    5 rounds, and of what each round adds."""
    table = Table("grid", "stream", "strategy", "off, us", "profiled", "added", title="host")
    x = torch.rand(4096 * 256, device="cuda")
    own = torch.cuda.Stream()

    def rate(programs: int) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(40):
            three_scopes[(programs,)](x, num_warps=8)
        return (time.perf_counter() - begin) / 40 * 1e6

    def off_and_on(programs: int, strategy: str) -> tuple[float, float]:
        """Side by side: how fast this thread is changes by a third from one second to the next."""
        rate(programs)
        off = statistics.median(rate(programs) for _ in range(3))
        # Memory for all of them: a launch that is dropped costs less.
        memory = proton.knobs.scope(profile_memory=2 << 30)
        with memory, proton.profile("host", strategy=strategy) as run:
            rate(programs)
            on = statistics.median(rate(programs) for _ in range(5))
        assert run.raw.dropped_launches == 0
        return off, on

    for programs, stream, strategy in itertools.product((132, 4096), (None, own), STRATEGIES):
        with torch.cuda.stream(stream):
            rounds = np.array([off_and_on(programs, strategy) for _ in range(5)])
        where = "default" if stream is None else "its own"
        off, on = np.median(rounds, axis=0)
        added = np.median(rounds[:, 1] - rounds[:, 0])
        numbers = [f"{us:.1f}" for us in (off, on, added)]
        table.add_row(str(programs), where, strategy, *numbers)
    return table


def stream_table() -> Table:
    """us that recording adds on a stream for each launch, another kernel behind it: of 40 pairs of
    launches that are queued while a first kernel waits, with the session's own calls and without
    (the same instrumented kernel, its buffers never sent)."""
    table = Table("grid", "stream", "strategy", "off, us", "kernel with records", "session",
                  "added by it", title="stream, a pair of launches")  # fmt: skip
    x = torch.rand(4096 * 256, device="cuda")
    out = torch.zeros(1, dtype=torch.int64, device="cuda")
    wait = torch.zeros(1, dtype=torch.int64, device="cuda")
    own = torch.cuda.Stream()

    def pair_us(launch: Launch) -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        hold[(1,)](wait, 8_000_000, num_warps=1)  # until all is queued
        first.record()
        for _ in range(40):
            launch()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) / 40 * 1e3

    def median_us(launch: Launch) -> float:
        return statistics.median(pair_us(launch) for _ in range(7))

    for programs, stream, strategy in itertools.product((132, 4096), (None, own), STRATEGIES):
        launch = in_turns(x, out, programs)
        with torch.cuda.stream(stream):
            times(3, launch)
            off = median_us(launch)
            with proton.profile("stream", strategy=strategy):
                times(60, launch)
                on = median_us(launch)
            found = []
            for _ in range(5):
                with proton.profile("kernel", strategy=strategy):
                    times(3, launch)
                    with unsent():
                        found.append(pair_us(launch))
            kernel = statistics.median(found)
        where = "default" if stream is None else "its own"
        times_ = [f"{us:.2f}" for us in (off, kernel, on, on - kernel)]
        table.add_row(str(programs), where, strategy, *times_)
    return table


@contextlib.contextmanager
def unsent() -> Iterator[None]:
    """Launches get buffers, one after the other the same ones, and nobody fetches them."""
    send, RingBuffer.send = RingBuffer.send, lambda ring, buffer, *_: ring.give_back(buffer)
    try:
        yield
        torch.cuda.synchronize()
    finally:
        RingBuffer.send = send


def fidelity_table() -> Table:
    """Durations of waits for the global timer, on every SM."""
    table = Table("wait, us", "profiler", "median off, ns", "worst, ns", "median off, %",
                  "error bar, ns", "within 1 % or a tick", "within the bar",
                  title="fidelity")  # fmt: skip
    theirs = json.loads(this_program("--inner", "triton-fidelity").splitlines()[-1])
    for microseconds, other in zip(WAITS, theirs, strict=True):
        true, traced, bar = our_durations(microseconds)
        their_bar = np.full(len(other["traced"]), np.nan)
        # Triton's trace does not say which program a slice is of.
        their_true = np.full(len(other["traced"]), np.median(other["true"]))
        for profiler, columns in (
            ("Proton", (true, traced, bar)),
            ("Triton's", (their_true, np.array(other["traced"]), their_bar)),
        ):
            truth, said, error = columns
            off = np.abs(said - truth)
            near = off <= np.maximum(TICK, 0.01 * truth)
            table.add_row(
                str(microseconds), profiler, f"{np.median(off):.0f}", f"{off.max():.0f}",
                f"{100 * np.median(off / truth):.2f}", f"{np.median(error):.0f}",
                f"{100 * near.mean():.1f} %", f"{100 * (off <= error).mean():.1f} %",
            )  # fmt: skip
    return table


def our_durations(microseconds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(true, corrected, error bar) of the slices of 10 launches, in ns."""
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.zeros(REPEATS, sms, dtype=torch.int64, device="cuda")
    proton_spin[(sms,)](out[0], 1000, num_warps=1)
    with proton.profile("spin") as run:
        for row in out:
            proton_spin[(sms,)](row, 1000 * microseconds, num_warps=1)
    frame = run.frame
    found = frame[(frame.kind == "scope") & (frame.name == "spin")]
    true = out.cpu().numpy()[found.launch, found.program]
    return true, found.corrected_ns.to_numpy(), found.error_ns.to_numpy()


TABLES = {"host": host_table, "stream": stream_table, "fidelity": fidelity_table}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, default=None, help="write kernel times there, too")
    parser.add_argument(
        "--only", nargs="+", choices=[*TABLES, "kernels"], default=[*TABLES, "kernels"],
        help="these tables",
    )  # fmt: skip
    parser.add_argument("--inner", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    match options.inner:
        case None:
            pass
        case "ours":
            return inner_ours()
        case "triton-fidelity":
            return inner_triton_fidelity()
        case mode:
            inner_triton(mode)
    console = Console(width=130)
    for name in options.only:
        if name != "kernels":
            console.print(TABLES[name]())
            continue
        table, rows = overhead_table()
        console.print(table)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
