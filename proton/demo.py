"""`python -m proton.demo`: four kernels on this machine's CPU, checked, profiled and explained."""

import os
import secrets
import shutil
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

import proton
from proton import _report

# The kernels lie beside this package in a checkout, and within it in a wheel.
_EXAMPLES = Path(__file__).parent / "examples"
sys.path.insert(0, str(_EXAMPLES if _EXAMPLES.is_dir() else _EXAMPLES.parents[1]))
import kernels  # noqa: E402
from kernels.cases import CASES  # noqa: E402
from kernels.harness import Case  # noqa: E402

_SIZES = [(1 << 21,), (2000, 1000), (2000, 1000), (768, 640, 1000)]
SIZES = dict(zip(CASES, _SIZES, strict=True))
LAUNCHES = 5
FILES = ("demo.pftrace", "demo.proton")


def run_case(case: Case, rng: np.random.Generator) -> float:
    """Launches a kernel some times under host scopes; the error of its last result."""
    with proton.scope(case.name):
        with proton.scope("inputs"):
            inputs = case.inputs(rng, *SIZES[case])
        with proton.scope("first launch"):  # compiles, or finds the code on disk
            out = case.launch(*inputs)
        for _ in range(LAUNCHES - 2):
            case.launch(*inputs, out=out)
        with proton.scope("check"):
            return case.check(inputs, out)


def viewer_command() -> str:
    """What to type for proton-tile: its name, or where it lies if that is not on the path."""
    name = "proton-tile"
    return name if shutil.which(name) else os.path.relpath(Path(sys.executable).with_name(name))


def main() -> None:
    """Exit status 1 when a result is wrong."""
    console, seed = Console(highlight=False), secrets.randbits(32)
    console.print(f"Proton {proton.__version__}: kernels on the CPU, random inputs, seed {seed}\n")
    rng = np.random.default_rng(seed)
    with proton.profile("demo") as run:
        errors = {
            case: run_case(case, rng)
            for case in track(CASES, "Compiling, running, checking", console=console)
        }
    for case, error in errors.items():
        good = error <= case.tolerance
        verdict = "[green]PASS[/green]" if good else "[bold red]FAIL[/bold red]"
        size = " x ".join(map(str, SIZES[case]))
        console.print(f"{verdict}  {case.name:11} {size:16} error against numpy {error:.1e}")
    console.print("\nTime by scope, as each program ran it; corrected: less the cost of measuring")
    finished = proton.Run(run.raw)
    _report.show(finished, console)
    files = [finished.save(Path(name)) for name in FILES]
    console.print(
        f"\nWrote {' and '.join(map(str, files))}:\n"
        f"  timeline    open {FILES[0]} at https://ui.perfetto.dev\n"
        f"  tables      {viewer_command()} summary {FILES[1]}\n"
        f'  in Python   proton.Run.load("{FILES[1]}").frame\n'
        f"  the code    {os.path.relpath(*kernels.__path__)}; profile your own: "
        "python -m proton script.py"
    )
    if any(error > case.tolerance for case, error in errors.items()):
        sys.exit(1)


if __name__ == "__main__":
    main()
