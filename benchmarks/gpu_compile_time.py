"""How long a kernel takes to compile for an H200: by Proton and, where it is there, by Triton.

    python benchmarks/gpu_compile_time.py [--repeats 15] [--starts 7] [--triton-python FILE]
                                          [--ptxas FILE] [--json FILE] [--specimens FILE...]
                                          [--only REGEX] [--cpus 0]

Needs no GPU: nothing is loaded or launched. Both compile the same source (peers.py) for the same
types, from the Python function on, each in a process of its own, and take turns. Shown are
medians, and least to most. A ratio is Proton's time over Triton's in one round: below 1 Proton
is faster.

Warm compiles go past the disk cache, and store what they made there. A stage has what its
compiler calls so: LLVM's optimiser is in Triton's `llir` and in Proton's `ptx`, so only their sum
compares. `other` is what no stage has: the cache's key, storing. A disk hit is a function that the
process has not seen, until its machine code is in memory.

A new process compiles vector add with an empty cache; its files are in the system's memory, and
the byte code of all modules is on disk, in a folder of this run. `process to cubin` is from the
creation of the process, `import to cubin` in the process from before the import of the compiler.
numpy, which the kernels' files use, is imported before that; torch is not, as neither compiler
needs it.

With `--specimens` the kernels are those of public libraries, as library_specimens.py writes them,
and only warm compiles are measured, by the clock and in CPU time, of user and system, with that of
the assemblers: other work on the machine changes that least. Bytes that a thread spills are shown,
too. Both need torch and the libraries then. `--cpus` has both compilers run there alone, so that
neither has its assembler beside it.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import triton_source
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "kernels"
ASSEMBLER_VARIABLES = ("PROTON_PTXAS", "TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
SLOW_MS = 2000  # a compile that is worth a line
MEASURES = ("ms", "cpu ms")  # in the answers of one_compiler.py
STAGES = ("frontend", "ttir", "ttgir", "llir", "ptx", "cubin")
Answers = dict[str, dict[str, list[dict[str, Any]]]]  # specimen -> compiler -> one a round


def specimen(
    name: str, types: str, constants: dict[str, Any], num_warps: int, num_stages: int = 3
) -> dict[str, Any]:
    """A kernel whose pointers are aligned and whose sizes 16 divides, but for `share`, the rows
    of a program. `types` has its parameters, each as name:type; the others are `constants`."""
    typed = dict(entry.split(":") for entry in types.split())
    return {
        "file": f"{name}.py",
        "function": f"{name.removeprefix('vector_')}_kernel",
        "types": typed,
        "constants": constants,
        "divisible": [n for n, type_ in typed.items() if n != "share" and type_ != "fp32"],
        "non_negative": [n for n, type_ in typed.items() if type_ == "i32"],
        "num_warps": num_warps,
        "num_stages": num_stages,
    }


ADD = "x_ptr:*fp32 y_ptr:*fp32 out_ptr:*fp32 n:i32"
SOFTMAX = "x_ptr:*fp32 out_ptr:*fp32 x_stride:i32 out_stride:i32 rows:i32 columns:i32 share:i32"
LAYER_NORM = (
    "x_ptr:*fp16 weight_ptr:*fp16 bias_ptr:*fp16 y_ptr:*fp16 mean_ptr:*fp32 rstd_ptr:*fp32 "
    "stride:i32 rows:i32 columns:i32 share:i32 epsilon:fp32"
)
MATMUL = (
    "a_ptr:*fp16 b_ptr:*fp16 c_ptr:*fp16 M:i32 N:i32 K:i32 "
    "stride_am:i32 stride_bk:i32 stride_cm:i32"
)
MATMUL_CONSTANTS = {
    "stride_ak": 1,
    "stride_bn": 1,
    "stride_cn": 1,
    "PRECISION": "tf32",
    "BLOCK_M": 128,
    "BLOCK_N": 256,
    "BLOCK_K": 64,
    "GROUP_M": 8,
}
ATTENTION = (
    "q_ptr:*fp16 k_ptr:*fp16 v_ptr:*fp16 out_ptr:*fp16 lse_ptr:*fp32 stride_qz:i32 stride_qh:i32 "
    "stride_qn:i32 stride_kz:i32 stride_kh:i32 stride_kn:i32 stride_vz:i32 stride_vh:i32 "
    "stride_vn:i32 stride_oz:i32 stride_oh:i32 stride_on:i32 heads:i32 length:i32 scale:fp32"
)
ATTENTION_CONSTANTS = {
    "stride_vd": 1,
    "HEAD": 128,
    "BLOCK_M": 128,
    "BLOCK_N": 128,
    "CAUSAL": False,
    "OVERLAP": False,
}  # as `attention` takes them for heads above 64
SPECIMENS = {
    "vector add 1024": specimen("vector_add", ADD, {"BLOCK": 1024}, 4),
    "softmax 1024": specimen("softmax", SOFTMAX, {"BLOCK": 1024, "STAGES": 1}, 4),
    "softmax 8192": specimen("softmax", SOFTMAX, {"BLOCK": 8192, "STAGES": 1}, 8),
    "layer norm 1024": specimen("layer_norm", LAYER_NORM, {"BLOCK": 1024}, 4),
    "layer norm 8192": specimen("layer_norm", LAYER_NORM, {"BLOCK": 8192}, 8),
    "matmul 128x256": specimen("matmul", MATMUL, MATMUL_CONSTANTS, 8),
    "attention 128x128": specimen("attention", ATTENTION, ATTENTION_CONSTANTS, 8),
}


@dataclass(frozen=True)
class Compiler:
    """A compiler's name in one_compiler.py, the Python that has it, its copies of the kernels."""

    name: str
    python: str
    sources: Path


@dataclass(frozen=True)
class Process:
    """A compiler that runs."""

    compiler: Compiler
    popen: subprocess.Popen[str]

    def ask(self, request: Any) -> Any:
        """The answer to a request; ends the program where none comes."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        print(json.dumps(request), file=self.popen.stdin, flush=True)
        line = self.popen.stdout.readline()
        if not line:
            raise SystemExit(f"{self.compiler.name} failed")
        return json.loads(line)

    def compile(self, kernel: dict[str, Any], cached: bool = False) -> dict[str, Any]:
        """Times of one compile, or with `cached` of a disk hit."""
        path = kernel.get("path") or str(self.compiler.sources / kernel["file"])
        return self.ask(kernel | {"path": path, "cached": cached})


@contextmanager
def started(compiler: Compiler, cache: str, variables: dict[str, str]) -> Iterator[Process]:
    """A process that has imported no compiler yet; it ends with the block."""
    folders = {"PROTON_CACHE_DIR": cache, "TRITON_CACHE_DIR": cache}
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    folders["PYTHONPATH"] = os.pathsep.join(paths)
    with subprocess.Popen(
        [compiler.python, str(ROOT / "benchmarks" / "one_compiler.py"), compiler.name],
        env=os.environ | folders | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as popen:
        yield Process(compiler, popen)


def rounds(
    processes: list[Process], specimens: dict[str, Any], repeats: int, cached: bool
) -> Answers:
    """All specimens in turn, each by all compilers in turn, after a round that does not count."""
    found: Answers = {name: {p.compiler.name: [] for p in processes} for name in specimens}
    for number in range(repeats + 1):
        for name, kernel in specimens.items():
            for process in processes:
                answer = process.compile(kernel, cached)
                if number:
                    found[name][process.compiler.name].append(answer)
    return found


def cold_starts(compilers: list[Compiler], starts: int, variables: dict[str, str]) -> Answers:
    """New processes in turn, after one each that does not count."""
    whats = ("process to cubin", "import to cubin")
    found: Answers = {what: {compiler.name: [] for compiler in compilers} for what in whats}
    for number in range(starts + 1):
        for compiler in compilers:
            with tempfile.TemporaryDirectory() as cache:
                begin = time.perf_counter()
                with started(compiler, cache, variables) as process:
                    answer = process.compile(SPECIMENS["vector add 1024"])
                    from_creation = (time.perf_counter() - begin) * 1e3
            if number:
                times = (from_creation, answer["ms since request"])
                for what, ms in zip(whats, times, strict=True):
                    found[what][compiler.name].append({"ms": ms})
    return found


def spread(values: list[float], digits: int) -> str:
    """Median, least and most."""
    median, least, most = (f"{f(values):.{digits}f}" for f in (statistics.median, min, max))
    return f"{median} ({least}..{most})"


def comparison(title: str, answers: Answers) -> Table:
    """A row for each of what was measured, a column for each compiler, and ratios."""
    compilers = list(next(iter(answers.values())))
    table = Table(title, *(f"{name}, ms" for name in compilers))
    if len(compilers) == 2:
        table.add_column("ratio")
    for what, by_compiler in answers.items():
        times = [[answer["ms"] for answer in found] for found in by_compiler.values()]
        cells = [spread(values, 1) for values in times]
        if len(times) == 2:
            cells.append(spread([ours / theirs for ours, theirs in zip(*times, strict=True)], 2))
        table.add_row(what, *cells)
    return table


def stages(answers: Answers) -> Table:
    """Medians of the stages of compiles."""
    table = Table("warm compile, ms", "compiler", *STAGES, "other")
    for what, by_compiler in answers.items():
        for compiler, found in by_compiler.items():
            parts = [[answer["stages"][stage] for answer in found] for stage in STAGES]
            parts.append([answer["ms"] - sum(answer["stages"].values()) for answer in found])
            table.add_row(what, compiler, *(f"{statistics.median(p):.1f}" for p in parts))
    return table


def shown_libraries(answers: Answers, console: Console) -> None:
    """The kernels of libraries: a row each, how the ratios of medians are spread, and which
    kernels take longer by Proton, or long."""
    table = Table("kernel", *(f"{c}, {w}" for w in MEASURES for c in ("Proton", "Triton", "ratio")))
    table.add_column("spills")
    spills = {}
    ratios: dict[str, dict[str, float]] = {what: {} for what in MEASURES}
    slow = []
    for name, by_compiler in answers.items():
        errors = {c: a["error"] for c, found in by_compiler.items() for a in found if "error" in a}
        for compiler, error in errors.items():
            console.print(f"{name}, {compiler}: {error}"[:200], markup=False)
        if errors or len(by_compiler) < 2:
            continue
        cells = []
        for what in MEASURES:
            ours, theirs = (statistics.median(a[what] for a in f) for f in by_compiler.values())
            ratios[what][name] = ours / theirs
            cells += [f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}"]
            if max(ours, theirs) > SLOW_MS:
                slow.append(f"{name}: {what}: Proton {ours:.0f}, Triton {theirs:.0f}")
        spills[name] = ours, theirs = tuple(f[-1]["spills"] for f in by_compiler.values())
        table.add_row(name, *cells, f"{ours} / {theirs}" if ours or theirs else "")
    console.print(table)
    console.print(f"above {SLOW_MS} ms:", *slow or ["none"], sep="\n")
    for what, found in ratios.items():
        ranked = sorted(found.items(), key=lambda item: -item[1])
        above = [f"{ratio:.2f} {name}" for name, ratio in ranked if ratio > 1]
        console.print(f"{what}, above 1.0:", *above or ["none"], sep="\n")
    more = [f"{ours} / {theirs} {name}" for name, (ours, theirs) in spills.items() if ours > theirs]
    some = sum(max(pair) > 0 for pair in spills.values())
    console.print(f"bytes spilled, of {some} kernels with any; more than Triton:", *more, sep="\n")
    for what, found in ratios.items():
        values = sorted(found.values())
        p90 = values[math.ceil(0.9 * len(values)) - 1]
        console.print(f"{what}, ratios of {len(values)}: {spread(values, 2)}, p90 {p90:.2f}")


def has_triton(python: str) -> bool:
    command = [python, "-c", "import triton"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--starts", type=int, default=7, help="new processes")
    parser.add_argument("--triton-python", default=sys.executable, help="the Python with Triton")
    parser.add_argument(
        "--specimens", type=Path, nargs="+", help="files that library_specimens.py wrote"
    )
    parser.add_argument("--only", default="", help="of these the kernels whose names match")
    parser.add_argument("--cpus", type=int, nargs="+", help="where both compilers run")
    parser.add_argument("--ptxas", default=None, help="the assembler of both, not each one's own")
    parser.add_argument("--json", type=Path, default=None, help="write all times there, too")
    options = parser.parse_args()
    if options.cpus:
        os.sched_setaffinity(0, options.cpus)  # the processes that it starts, too
    console = Console(width=120)
    with ExitStack() as stack:
        modules, cache, bytecode = (
            stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(3)
        )
        variables = {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
        if options.ptxas:
            variables |= dict.fromkeys(ASSEMBLER_VARIABLES, options.ptxas)
        compilers = [Compiler("proton", sys.executable, KERNELS)]
        if has_triton(options.triton_python):
            for file in {kernel["file"] for kernel in SPECIMENS.values()}:
                Path(modules, file).write_text(triton_source((KERNELS / file).read_text()))
            compilers.append(Compiler("triton", options.triton_python, Path(modules)))
        else:
            console.print(f"{options.triton_python} has no Triton: only Proton is measured")
        processes = [
            stack.enter_context(started(compiler, cache, variables)) for compiler in compilers
        ]
        about = [process.ask("about") for process in processes]
        console.print(*about, sep="\n", soft_wrap=True)
        if options.specimens:
            found = [json.loads(file.read_text()).items() for file in options.specimens]
            specimens = {n: s for of in found for n, s in of if re.search(options.only, n)}
            warm = rounds(processes, specimens, options.repeats, cached=False)
            shown_libraries(warm, console)
            load = ", ".join(f"{of:.1f}" for of in os.getloadavg())
            console.print(f"{os.cpu_count()} CPUs, load {load}")
            if options.json:
                options.json.write_text(json.dumps({"about": about, "warm": warm}, indent=1))
            return
        warm = rounds(processes, SPECIMENS, options.repeats, cached=False)
        hits = rounds(processes, SPECIMENS, options.repeats, cached=True)
        cold = cold_starts(compilers, options.starts, variables)
    console.print(stages(warm))
    console.print(comparison("warm compile, total", warm))
    console.print(comparison("vector add, new process, empty cache", cold))
    console.print(comparison("disk hit", hits))
    if options.json:
        results = {"about": about, "warm": warm, "new process": cold, "disk hit": hits}
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
