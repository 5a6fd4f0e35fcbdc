"""Kernels of public libraries on the CPU, with Proton under the name of Triton: right, wrong or
refused, op by op.

    python benchmarks/public_libraries.py [liger] [fla] [gems] [--only REGEX] [--jobs 2]
                                          [--samples 4]

Needs torch, and without their dependencies (which are Triton and more) liger-kernel, fla-core
(flash-linear-attention) and flag-gems:

    pip install torch einops expecttest numpy packaging pyyaml sqlalchemy
    pip install --no-deps liger-kernel fla-core flag-gems

Each op runs in a process of its own. Its results are compared with torch's for the same inputs: of
liger-kernel and fla-core by the cases in liger_cases.py and fla_cases.py, of flag-gems by the
samples that torch has for its own operators. `refused` is an error of Proton, `failed` one of the
library's own: no sample was among what it takes. An op whose process died runs again with each
access checked, and is `outside` if a kernel of the library has accesses outside of its arrays,
which a GPU may not notice.
Exit status 1 if anything is wrong.
"""

import argparse
import collections
import importlib
import os
import re
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from libraries import PACKAGES, pretend_cuda
from library_results import Wrong

import proton
from proton.backends.cpu.target import CPU
from proton.base.errors import BoundsError

PATIENCE = 180.0  # s that an op may take, its compilations included
VERDICTS = (
    *("right", "wrong", "refused", "failed", "outside", "not for CPUs", "killed", "no sample"),
)
_GPU_ONLY = re.compile("cuda|CPU only|NUM_SMS", re.IGNORECASE)  # in what an op says of CPU tensors


@dataclass
class Op:
    """An operation of a library. `check` raises `Wrong` where a result is not torch's, and returns
    how many samples it compared."""

    name: str
    check: Callable[[], int]


@dataclass
class Outcome:
    """What became of an op."""

    name: str
    verdict: str
    text: str
    seconds: float


def run(op: Op) -> tuple[str, str]:
    """(verdict, what is said of it) of an op, in this process."""
    try:
        count = op.check()
        return ("right", f"{count} samples") if count else ("no sample", "")
    except Wrong as problem:
        return "wrong", str(problem)
    except Exception as problem:
        causes = [problem, problem.__cause__, problem.__context__]
        if any(isinstance(cause, BoundsError) for cause in causes):
            return "outside", str(problem).partition("\n")[0]
        refused = any(isinstance(cause, proton.ProtonError) for cause in causes)
        frame = traceback.extract_tb(problem.__traceback__)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        text = f"{type(problem).__name__}: {problem} ({place})"
        if refused:
            return "refused", text
        return "not for CPUs" if _GPU_ONLY.search(str(problem)) else "failed", text


def apart(ops: list[Op], jobs: int) -> Iterator[Outcome]:
    """Runs each op in a process that is forked for it; what it prints is dropped."""
    waiting, running = collections.deque((op, False) for op in ops), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            op, checked = waiting.popleft()
            reader, process = _forked(op, checked)
            running[reader] = op, checked, process, time.monotonic()
        ready = select.select(list(running), [], [], 1.0)[0]
        for reader, (op, checked, process, start) in list(running.items()):
            seconds = time.monotonic() - start
            if reader not in ready and seconds < PATIENCE:
                continue
            text = os.read(reader, 1 << 16).decode() if reader in ready else "\0took too long"
            os.close(reader)
            del running[reader]
            if not text or text[0] == "\0":
                os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            if not text and not checked:
                waiting.appendleft((op, True))
                continue
            verdict, _, said = text.partition("\0")
            yield Outcome(op.name, verdict or "killed", said or f"status {status}", seconds)


def _forked(op: Op, checked: bool) -> tuple[int, int]:
    """The end of a pipe that the outcome comes out of, and the process."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    if process := os.fork():
        os.close(writer)
        return reader, process
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    proton.knobs.check_bounds = checked
    os.write(writer, "\0".join(run(op)).encode()[:60000])
    os._exit(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "libraries", nargs="*", metavar="LIBRARY", help=f"{', '.join(PACKAGES)} (all)"
    )
    parser.add_argument("--only", default="", help="ops whose names match")
    parser.add_argument("--jobs", type=int, default=2, help="ops at once")
    parser.add_argument("--samples", type=int, default=4, help="of torch's inputs, for each op")
    given = parser.parse_args()
    torch.set_num_threads(1)  # a process that is forked has none of the others
    proton.install_as_triton()
    CPU.warm_up()
    wrong = False
    for library in given.libraries or PACKAGES:
        ops = [op for op in ops_of(library, given.samples) if re.search(given.only, op.name)]
        counts: collections.Counter[str] = collections.Counter()
        for outcome in apart(ops, given.jobs):
            counts[outcome.verdict] += 1
            print(
                f"{library} {outcome.verdict:12} {outcome.seconds:6.1f} s  {outcome.name}"
                f"{'' if outcome.verdict == 'right' else '  ' + outcome.text}",
                flush=True,
            )
        print(f"{library}: " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v]))
        wrong |= bool(counts["wrong"])
    return int(wrong)


def ops_of(library: str, samples: int) -> list[Op]:
    """The cases of a library; of flag-gems its replacements of torch's operators."""
    if library == "gems":
        from gems_cases import checks

        return [Op(name, check) for name, check in checks(samples).items()]
    if library not in ("liger", "fla"):
        pretend_cuda()
    cases = importlib.import_module(f"{library}_cases").CASES
    return [Op(name, case.check) for name, case in cases.items()]


if __name__ == "__main__":
    sys.exit(main())
