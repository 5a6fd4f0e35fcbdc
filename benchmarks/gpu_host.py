"""What a profiled launch on a GPU adds on the host, without a GPU.

    python benchmarks/gpu_host.py [--device] [--rounds 9] [--pause MS] [--grids 132 4096]
        [--given array]

The driver is a stand-in (idle_driver.c, built by `cc`) that does nothing: what is measured is
Proton's own part, to which a driver adds 0.5 us where it is asked whether a stream of the user's
own is capturing, and 0.6 for an event behind each sixteenth launch there. Allocations take the time
of an H200's. A kernel of three scopes and 8 warps, whose array is given as it is or as a tensor
descriptor, or whose scopes are in a loop, or whose code is launched as torch.compile does, under
flush of one chunk a warp; 40 launches in a row; us per launch, as least and as median of the
rounds, and the CPU time of the launching thread, which says it best where other processes are busy.
With a pause between the rows of launches the thread that fetches records has something to do in
each.

With --device the stand-in takes its time as a GPU does (DEVICE), and each row waits for the one
before: so the threads meet as they do there.
"""

import argparse
import ctypes
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

LAUNCHES = 40
ROWS = 6  # of launches in a session
GRIDS = (132, 4096)
GIVEN = ("array", "descriptor", "loop", "compiled")
STREAMS = {"default": 0, "its own": 0x77}
STRATEGIES = ("circular", "flush")
# What the stand-in does: chunks of 64 records; how long what a driver does takes, in ns. On an H200
# 32 MiB took 0.79 ms, pinned 12.1 ms, and launches waited for all of the latter.
STAND_IN = {"IDLE_CHUNK": "66", "IDLE_ALLOCATION": "790000", "IDLE_PINNED": "380000"}
# ... a device whose kernels of few programs are over before the next launch comes.
DEVICE = {"IDLE_LAUNCH": "3000", "IDLE_KERNEL": "3000", "IDLE_COPY": "8000"}


def build_driver(folder: str) -> None:
    """Makes the stand-in, a libcuda.so.1, in a folder."""
    source = Path(__file__).with_name("idle_driver.c")
    build = ["cc", "-O2", "-shared", "-fPIC", "-w", "-o", f"{folder}/libcuda.so.1", str(source)]
    subprocess.run([*build, "-ldl"], check=True)


def with_idle_driver(is_device: bool) -> None:
    """Runs this program again, with the stand-in in the driver's place."""
    with tempfile.TemporaryDirectory() as folder:
        build_driver(folder)
        there = {**STAND_IN, **(DEVICE if is_device else {}), **os.environ}
        there["LD_LIBRARY_PATH"] = folder
        there["PROTON_CACHE_DIR"] = f"{folder}/cache"
        done = subprocess.run([sys.executable, *sys.argv, "--inside"], env=there, check=False)
    raise SystemExit(done.returncode)


def launchers() -> tuple[dict[str, Callable[[int], Any]], Callable[[int], None]]:
    """Launches of so many programs, by what they are given, and what chooses the stream."""
    import proton
    import proton.language as tl
    from proton.runtime.backend import backend_named
    from proton.tools.tensor_descriptor import TensorDescriptor

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
    def by_descriptor(x_desc):
        row = tl.program_id(0)
        with proton.scope("load"):
            x = x_desc.load([row, 0])
        with proton.scope("compute"):
            x = tl.exp(x) + tl.sum(x, 1)[:, None]
        with proton.scope("store"):
            x_desc.store([row, 0], x * 0.001)

    @proton.jit
    def in_a_loop(x_ptr):
        place = tl.program_id(0) * 256 + tl.arange(0, 256)
        for _ in range(3):
            with proton.scope("load"):
                x = tl.load(x_ptr + place)
            with proton.scope("store"):
                tl.store(x_ptr + place, x * 0.001)

    stream = types.SimpleNamespace(ptr=0)
    cupy = types.ModuleType("cupy")  # whose current stream launches go to
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: stream)  # type: ignore[attr-defined]
    sys.modules["cupy"] = cupy
    interface = {"shape": (1 << 20,), "typestr": "<f4", "data": (1 << 40, False), "version": 3}
    x = types.SimpleNamespace(__cuda_array_interface__=interface)
    rows = TensorDescriptor(x, (4096, 256), (256, 1), (1, 256))
    like_torchs = types.SimpleNamespace(data_ptr=lambda: 1 << 40)
    compiled = backend_named("cuda").direct(three_scopes.warmup(x, num_warps=8))
    found = {
        "array": lambda programs: three_scopes[(programs,)](x, num_warps=8),
        "compiled": lambda programs: compiled((programs, 1, 1), int(stream.ptr), (like_torchs,)),
        "loop": lambda programs: in_a_loop[(programs,)](x, num_warps=8),
        "descriptor": lambda programs: by_descriptor[(programs,)](rows, num_warps=8),
    }
    return found, lambda number: setattr(stream, "ptr", number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pause", type=float, default=3.0, help="ms between rows of launches")
    parser.add_argument("--grids", type=int, nargs="+", default=GRIDS, help="numbers of programs")
    parser.add_argument("--given", choices=GIVEN, nargs="+", default=GIVEN, help="the kernels")
    parser.add_argument("--device", action="store_true", help="the stand-in takes a GPU's time")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        with_idle_driver(options.device)
    from rich.console import Console
    from rich.table import Table

    import proton

    launches, go_to = launchers()
    wait = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize

    def row(launch: Callable[[int], Any], programs: int) -> tuple[float, float]:
        """us per launch: of wall time, and of the thread's CPU time."""
        if options.device:
            wait()
        else:
            time.sleep(options.pause / 1e3)
        wall, own = time.perf_counter(), time.thread_time()
        for _ in range(LAUNCHES):
            launch(programs)
        ends = time.perf_counter() - wall, time.thread_time() - own
        return ends[0] / LAUNCHES * 1e6, ends[1] / LAUNCHES * 1e6

    table = Table("given", "grid", "stream", "strategy", "off, us", "added: least", "median",
                  "CPU: least", "median")  # fmt: skip
    for given, programs, (where, number), strategy in itertools.product(
        options.given, options.grids, STREAMS.items(), STRATEGIES
    ):
        launch = launches[given]
        go_to(number)
        row(launch, programs)
        off, on = [], []
        for _ in range(options.rounds):
            off += [row(launch, programs) for _ in range(ROWS)]
            memory = proton.knobs.scope(profile_memory=8 << 30)
            with memory, proton.profile("host", strategy=strategy) as run:
                row(launch, programs)
                on += [row(launch, programs) for _ in range(ROWS)]
            assert run.raw.dropped_launches == 0
        cells = []
        for walls in zip(zip(*off, strict=True), zip(*on, strict=True), strict=True):
            cells += [f"{of(walls[1]) - of(walls[0]):.1f}" for of in (min, statistics.median)]
        least = min(wall for wall, _ in off)
        table.add_row(given, str(programs), where, strategy, f"{least:.1f}", *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
