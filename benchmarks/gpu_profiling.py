"""What profiling costs on a GPU, and how true it is: Proton, and Triton's Proton in the same run.

    python benchmarks/gpu_profiling.py [--json FILE]

Kernel times are of Nsight Compute (`ncu --clock-control none`), which runs this file again; medians
of 10 launches. The loop kernel has 132 programs of 4 warps that go round 2000 times with one scope
in the body; its cost of a slice is in cycles of 1.98 GHz. Host times are of launches in a row.
Fidelity is of kernels that wait for the global timer on every SM.
"""

import argparse
import csv
import importlib.util
import io
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import proton
import proton.language as tl
from proton.kernels.layer_norm import layer_norm_kernel
from proton.kernels.softmax import softmax_kernel

PROGRAMS, TURNS, REPEATS = 132, 2000, 10
GHZ = 1.98
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
def spin(out_ptr, ns):
    with proton.scope("spin"):
        end = tl.extra.cuda.globaltimer() + ns
        while tl.extra.cuda.globaltimer() < end:
            pass
    tl.store(out_ptr + tl.program_id(0), tl.extra.cuda.smid())


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
    return {
        "proton_loop": lambda: proton_loop[(PROGRAMS,)](x, TURNS, num_warps=4),
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
    "program": {"placement": "program"},
    "counting": {"strategy": "counting"},
}
THEIRS = ("off", "default", "clock32", "clock32, global buffer")


def inner() -> None:
    """What runs under Nsight Compute: each mode of each kernel, REPEATS times, in order."""
    for launch in launches().values():
        for mode, options in OURS.items():
            if mode == "off":
                times(REPEATS, launch)
            else:
                with proton.profile(mode, **options):
                    times(REPEATS, launch)
    triton_loops()


def triton_loops() -> None:
    import triton.profiler as profiler
    from triton.profiler import mode

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "triton_loop_module.py"
        path.write_text(TRITON)
        spec = importlib.util.spec_from_file_location("triton_loop_module", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        x = torch.rand(PROGRAMS * 128, device="cuda")

        def launch() -> None:
            module.triton_loop[(PROGRAMS,)](x, TURNS, num_warps=4)

        modes = {
            "default": mode.Default(),
            "clock32": mode.Default(optimizations="clock32"),
            "clock32, global buffer": mode.Default(
                optimizations="clock32", buffer_type="global", buffer_size=1 << 22
            ),
        }
        times(REPEATS, launch)
        for name in THEIRS[1:]:
            profiler.start(f"{folder}/trace", data="trace", backend="instrumentation",
                           mode=modes[name])  # fmt: skip
            times(REPEATS, launch)
            profiler.finalize()


def under_ncu() -> dict[str, list[float]]:
    """us of each launch by kernel, in order."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise SystemExit("Nsight Compute (ncu) is not on the path")
    command = [ncu, "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--csv"]
    command += ["-k", "regex:proton_loop|softmax_kernel|layer_norm_kernel|triton_loop"]
    command += [sys.executable, __file__, "--inner"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith('"')]
    found: dict[str, list[float]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(rows))):
        scale = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "nsecond": 1e-3, "usecond": 1.0}
        value = float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]]
        found.setdefault(row["Kernel Name"].partition("(")[0], []).append(value)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
    return found


def overhead_table(found: dict[str, list[float]]) -> tuple[Table, list[dict[str, Any]]]:
    """Each mode of each kernel against the kernel without records."""
    table = Table("kernel", "mode", "us", "+ %", "cycles a slice", title="kernel time")
    rows = []
    for kernel, values in found.items():
        modes = THEIRS if kernel == "triton_loop" else tuple(OURS)
        medians = [
            statistics.median(values[n * REPEATS : (n + 1) * REPEATS])
            for n in range(len(values) // REPEATS)
        ]
        for mode, us in zip(modes, medians, strict=False):
            extra = us - medians[0]
            cycles = extra * 1e3 * GHZ / TURNS if "loop" in kernel else float("nan")
            row = {"kernel": kernel, "mode": mode, "us": us, "percent": 100 * extra / medians[0]}
            rows.append(row | {"cycles": cycles})
            table.add_row(kernel, mode, f"{us:.2f}", f"{row['percent']:.2f}", f"{cycles:.1f}")
    return table, rows


def host_table() -> Table:
    """us a launch on the host, without and with records."""
    table = Table("launch on the host", "us")
    launch = launches()["proton_loop"]
    launch()

    def rate(count: int) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            launch()
        return (time.perf_counter() - begin) / count * 1e6

    off = statistics.median(rate(100) for _ in range(5))
    with proton.profile("host"):
        times(3, launch)
        on = statistics.median(rate(20) for _ in range(5))
    table.add_row("off", f"{off:.1f}")
    table.add_row("profiled", f"{on:.1f}")
    table.add_row("added", f"{on - off:.1f}")
    return table


def fidelity_table() -> Table:
    """Durations of waits for the global timer, on every SM."""
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.zeros(sms, dtype=torch.int32, device="cuda")
    spin[(sms,)](out, 1000)
    table = Table("wait, us", "median off, ns", "worst, ns", "median off, %", "error bar, ns",
                  "within 1 % or the bar", title="fidelity")  # fmt: skip
    for microseconds in (1, 10, 100, 1000):
        with proton.profile("spin") as run:
            for _ in range(10):
                spin[(sms,)](out, 1000 * microseconds)
        frame = run.frame
        found = frame[frame.name == "spin"]
        found = found[found.kind == "scope"]
        off = np.abs(found.corrected_ns - 1000 * microseconds)
        bar = np.maximum(found.error_ns, 10 * microseconds)
        table.add_row(
            str(microseconds), f"{off.median():.0f}", f"{off.max():.0f}",
            f"{off.median() / 10 / microseconds:.2f}", f"{found.error_ns.median():.0f}",
            f"{100 * (off <= bar).mean():.1f} %",
        )  # fmt: skip
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, default=None, help="write kernel times there, too")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        inner()
        return
    console = Console(width=110)
    console.print(fidelity_table())
    console.print(host_table())
    table, rows = overhead_table(under_ncu())
    console.print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
