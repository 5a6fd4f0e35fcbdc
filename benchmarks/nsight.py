"""Kernel times by Nsight Compute, of programs that launch kernels in an order that is known."""

import csv
import io
import os
import shutil
import signal
import subprocess
import sys

from proton.base import symbols

PATIENCE = 100  # seconds for a process
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "nsecond": 1e-3, "usecond": 1.0}


def printed_by(
    file: str, *arguments: str, before: tuple[str, ...] = (), seconds: float = PATIENCE
) -> str:
    """What another process of a Python file prints. It and its children are killed after so many
    seconds, and that is a TimeoutExpired."""
    command = [*before, sys.executable, file, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, error = process.communicate(timeout=seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        print(out[-2000:], error[-2000:], sep="\n")
    return out


def kernel_times(
    file: str, *arguments: str, names: str, seconds: float = PATIENCE
) -> tuple[dict[str, list[float]], str]:
    """us of each launch by kernel, in order, in a process of a Python file; and what it printed.
    `names` is a regular expression of kernels."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise SystemExit("Nsight Compute (ncu) is not on the path")
    command = (ncu, "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--csv")
    printed = printed_by(
        file, *arguments, before=(*command, "-k", f"regex:{names}"), seconds=seconds
    )
    rows = [line for line in printed.splitlines() if line.startswith('"')]
    found: dict[str, list[float]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(rows))):
        value = float(row["Metric Value"].replace(",", "")) * _MICROSECONDS[row["Metric Unit"]]
        name = row["Kernel Name"].partition("(")[0].removesuffix(symbols.END)
        found.setdefault(name, []).append(value)
    return found, printed
