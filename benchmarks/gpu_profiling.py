"""What profiling costs on a GPU, and how true it is: Proton, and Triton's Proton in the same run.

    python benchmarks/gpu_profiling.py [--only host stream ...] [--json FILE]

Kernel times are of Nsight Compute (`ncu --clock-control none`), which runs this file again, once
for Proton and once for each mode of Triton's; medians of 10 launches, of 5 for Triton's Proton. The
loop kernel has 132 programs of 4 warps that go round 2000 times with one scope in the body;
`loop_add` does one multiply-add of 1024 numbers in it, and `loop_max` has three scopes: a load, a
maximum over the block, and exp. The cost of a slice is in cycles of 1.98 GHz. What a session adds
on the host and on streams is in gpu_undisturbed.py, what scopes cost in products and attention in
gpu_scope_cost.py.

Fidelity is of kernels of one warp on every SM that begin at a tick of the global timer and wait
until it has gone on by so much; what it says then is the true duration.
"""

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import nsight
import numpy as np
import torch
from gpu_undisturbed import graph_table, host_table, stream_table
from rich.console import Console
from rich.table import Table

import proton
import proton.language as tl
from kernels.layer_norm import layer_norm_kernel
from kernels.softmax import softmax_kernel

PROGRAMS, TURNS, REPEATS = 132, 2000, 10
MAX_TURNS = 500  # of the loop of three scopes
# Slices of a launch of each loop kernel.
SLICES = {"loop": TURNS, "loop_add": TURNS, "loop_max": 3 * MAX_TURNS}
GHZ = 1.98
WAITS = (1, 10, 100, 1000)  # us
TICK = 32  # ns of the H200's global timer
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


def kernel_times(inner: str) -> dict[str, list[float]]:
    """us of each launch by kernel, in order, of this file run for `inner`."""
    names = "proton_loop|softmax_kernel|layer_norm_kernel|triton_loop"
    return nsight.kernel_times(__file__, "--inner", inner, names=names)[0]


def medians() -> dict[str, dict[str, float]]:
    """us of each mode of each kernel."""
    found = {
        kernel: {
            mode: statistics.median(values[n * REPEATS : (n + 1) * REPEATS])
            for n, mode in enumerate(OURS)
        }
        for kernel, values in kernel_times("ours").items()
    }
    theirs = {mode: kernel_times(mode) for mode in THEIRS}
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


def fidelity_table() -> Table:
    """Durations of waits for the global timer, on every SM."""
    table = Table("wait, us", "profiler", "median off, ns", "worst, ns", "median off, %",
                  "error bar, ns", "within 1 % or a tick", "within the bar",
                  title="fidelity")  # fmt: skip
    printed = nsight.printed_by(__file__, "--inner", "triton-fidelity")
    theirs = json.loads(printed.splitlines()[-1])
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


TABLES = {
    "host": host_table,
    "stream": stream_table,
    "graph": graph_table,
    "fidelity": fidelity_table,
}


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
