"""Several kernels compiled at once: processes that are forked for it fill the disk cache.

Compiling holds Python's lock and the one MLIR context most of the time, so threads would wait for
each other. A forked process has everything loaded, needs no copy of the kernels, and leaves its
results where the program finds them anyway. What fails there is left for the program to compile,
and to fail on.
"""

import contextlib
import gc
import math
import os
import select
import signal
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from proton.base.errors import ProtonError
from proton.base.knobs import knobs
from proton.base.progress import StepCounter, to_terminal
from proton.compiler import Request, bypasses_cache, compile_function
from proton.compiling import cache

# s in which no process finishes a kernel or computes: one may have inherited a lock that is held
_PATIENCE = 5.0
_NUMBER_BYTES = 4
_MOST = 4096  # kernels at once: their numbers fit in a pipe


def compile_ahead(requests: Iterable[Request]) -> None:
    """Has the disk cache hold what it lacks of these kernels, by several processes where that is
    faster (`knobs.compile_processes`). Raises nothing for kernels that cannot be compiled."""
    if bypasses_cache() or sys.platform != "linux" or knobs.runtime.jit_cache_hook is not None:
        return
    missing = sorted(_missing(requests)[:_MOST], key=_size, reverse=True)
    most = knobs.compile_processes or len(os.sched_getaffinity(0))
    if (processes := min(len(missing), most)) < 2:
        return
    for compiler in {request.compiler for request in missing}:
        compiler.warm_up()
    _run(missing, processes)


def _missing(requests: Iterable[Request]) -> list[Request]:
    """Those that the disk cache lacks, each once."""
    found = {}
    for request in requests:
        with contextlib.suppress(ProtonError):  # a tool is missing: who compiles says so
            found[request.key] = request
    return [request for key, request in found.items() if not cache.has(key)]


def _size(request: Request) -> int:
    """What grows with the code of a kernel: the product of its constants, block sizes above all.
    Who begins with the largest has all processes end at about the same time."""
    constants = request.signature.constants.values()
    return math.prod(value for value in constants if type(value) is int and value > 0)


def _run(requests: Sequence[Request], processes: int) -> None:
    """Compiles in so many processes; a pipe has the numbers of what is to be done."""
    tasks, tasks_in = os.pipe()
    news, news_in = os.pipe()
    for number in range(len(requests)):
        os.write(tasks_in, number.to_bytes(_NUMBER_BYTES, "little"))
    os.close(tasks_in)
    workers: list[int] = []
    try:
        with contextlib.suppress(OSError):  # too many processes: those that there are do it
            for _ in range(processes):
                if (worker := _fork()) == 0:
                    _work(requests, tasks, news_in)
                workers.append(worker)
        os.close(news_in)
        news_in = -1
        progress = StepCounter("compiled", len(requests), to_terminal)
        while _waits(news, workers) and os.read(news, 1):
            progress.step()
    finally:
        for descriptor in (tasks, news, *[news_in] * (news_in >= 0)):
            os.close(descriptor)
        for worker in workers:
            _end(worker)


def _waits(news: int, workers: Sequence[int]) -> bool:
    """True once there is news, False where the processes have come to a stop."""
    used, pipe = -1, select.poll()
    pipe.register(news, select.POLLIN)
    while not pipe.poll(_PATIENCE * 1e3):
        before, used = used, _cpu_ticks(workers)
        if used == before:
            return False
    return True


def _cpu_ticks(workers: Sequence[int]) -> int:
    """What the processes have used of the CPU, and those that they started, such as ptxas."""
    used = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = status.read_bytes().rpartition(b")")[2].split()
            process, parent = int(status.parent.name), int(fields[1])
            if process in workers or parent in workers:
                used += int(fields[11]) + int(fields[12])  # utime and stime
    return used


def _fork() -> int:
    with warnings.catch_warnings():  # of other threads: what is compiled with is locked around it
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _work(requests: Sequence[Request], tasks: int, news: int) -> None:
    """The life of a forked process."""
    try:
        gc.disable()  # what is collected may belong to a device, which is the program's
        # The program's functions hear of a kernel where the program finds it on disk.
        knobs.runtime.jit_post_compile_hook = knobs.compilation.listener = None
        while number := os.read(tasks, _NUMBER_BYTES):
            with contextlib.suppress(Exception):  # the program meets it again, and says so
                compile_function(*requests[int.from_bytes(number, "little")])
            os.write(news, b".")
    finally:
        os._exit(0)


def _end(worker: int) -> None:
    """Ends a process, which has ended by itself unless something went wrong."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
