"""Kernels with known faults, as the records that they would leave, and the same without the fault.

Times are ns since the run's origin, on a GPU whose clocks are known exactly. Each fault is a
function that gives a run; its argument says how bad it is, and what is left out by default is the
healthy kernel.
"""

import base64
import random
import subprocess
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from proton.base.nvidia_tools import disassemble, ptxas
from proton.base.targets import GPUTarget
from proton.trace.model import ONE, CounterSamples, HostSlice, Launch, PCSamples, RawRun, Scope
from proton.viewer.tables.pc_samples import Disassembly
from tests.pure.synthetic import (
    ORIGIN_NS,
    Chip,
    Record,
    Written,
    kernel,
    pack_launch,
    remembered,
    run,
    ticks,
)

FILE = "/src/matmul.py"


def _scope(name: str, line: int, kind: str = "slice", work: str = "", queue: str = "") -> Scope:
    pendings = ONE if kind == "wait" and queue else 0
    return Scope(name=name, path=name, kind=kind, work=work, queue=queue, file=FILE, line=line,
                 pendings=pendings)  # fmt: skip


TABLE = (
    _scope("issue copy", 10, "issue", "copies", "copies"),
    _scope("wait copy", 11, "wait", "copies", "copies"),
    _scope("issue dot", 12, "issue", "dots", "dots"),
    _scope("wait dot", 13, "wait", "dots", "dots"),
    _scope("softmax", 14),
    _scope("store", 15),
    _scope("barrier", 16, "wait", "barriers"),
    _scope("reduce", 17),
    _scope("load", 18, work="loads"),
    Scope(name="scores", path="scores", file=FILE, line=19, visit=1, piece=0),
    Scope(name="scores", path="scores", file=FILE, line=19, visit=1, piece=1, waits=True),
    _scope("step", 20),
    _scope("issue arrival", 21, "issue", "barriers", "empty"),
    _scope("wait arrival", 22, "wait", "barriers", "empty"),
    _scope("mma", 23, work="dots"),
    _scope("wait release", 24, "wait", "locks", "lock"),
    _scope("issue release", 25, "issue", "locks", "lock"),
)
(COPY, COPY_WAIT, DOT, DOT_WAIT, SOFTMAX, STORE, BARRIER, REDUCE, LOAD, SCORES, SCORES_WAIT,
 STEP, ARRIVE, EMPTY_WAIT, MMA, SPIN, RELEASE) = range(len(TABLE))  # fmt: skip
Slice = tuple[int, int, int]  # scope, start and length, from the program's start
ALL = ["copies", "dots", "barriers", "loads"]
RESOURCES = {"registers": 128, "spills": 0, "shared": 96 * 1024, "blocks_per_sm": 1,
             "num_stages": 2, "auto": ALL}  # fmt: skip
SMS = 4


@remembered
def gpu(
    units: list[list[Slice]],
    *,
    lengths: list[int] | None = None,
    launches: int = 5,
    pause: int = 1000,
    slower: tuple[float, ...] = (),
    rates: tuple[float, ...] = (),
    cost: float = 0.0,
    body: int = 1,
    sms: int = SMS,
    capacity: int = 0,
    trips: int = 0,
    recorded: int = 1,
    **options: Any,
) -> RawRun:
    """Launches of programs with these units, an SM after the other; `lengths` are those of the
    programs, two waves of equal ones unless told otherwise; `body` slices are an iteration, which
    begin at 0 again after so many `trips`. By `every` only the slices of some have records, and
    only one program of so many that are `recorded`.
    Launches are `slower` by factors, and have `rates`, ns a cycle. Of a unit `capacity` records are
    kept, or all."""
    chip = Chip(random.Random(1), sms=sms, resolution=1)
    asked = options.get("auto", ALL)
    table = tuple(replace(s, work="", kind="slice", queue="", pendings=0)
                  if s.work and s.work not in asked else s for s in TABLE)  # fmt: skip
    owner = kernel(name="matmul", target="cuda:90", units=len(units), table=table)
    owner = replace(owner, options={**owner.options, **RESOURCES, **options})
    every = options.get("every", 1)
    whole = max((start + dur for unit in units for _, start, dur in unit), default=1000)
    lengths = lengths or [whole] * (2 * sms)
    found, now = list[Launch](), 10_000
    for number in range(launches):
        factor = slower[number] if number < len(slower) else 1.0
        rate = rates[number] if number < len(rates) else 1.0
        free, programs = [now] * sms, []
        for length in lengths:
            sm = min(range(sms), key=lambda n: free[n])
            begin, scale = free[sm], factor * length / whole
            records = [[Record(round(begin + scale * start), round(begin + scale * (start + dur)),
                               scope, 0, None if scope == STORE else
                               k // body % trips if trips else k // body)
                        for k, (scope, start, dur) in enumerate(unit)
                        if table[scope].kind != "slice" or k // body % every == 0]
                       if len(programs) % recorded == 0 else [] for unit in units]  # fmt: skip
            free[sm] = round(begin + scale * whole)
            programs.append(chip.program(sm, begin, free[sm], rate, records))
        call = ORIGIN_NS + now - 5000, ORIGIN_NS + now - 1000
        kept = capacity or max(map(len, units)) or 1
        found.append(pack_launch(owner, (len(programs), 1, 1), kept, programs, host=call))
        now = max(free) + pause
    raw = run([owner], found)
    raw.gpus = [replace(chip.clock(slice_cost_cycles=cost), name="a GPU")]
    return raw


@cache
def cubin() -> str:
    """A function with an instruction of line 14 and one of line 15 of FILE, in base 64."""
    ptx = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry matmul(.param .u64 p) {{
  .reg .b64 %p; .reg .b32 %x;
  ld.param.u64 %p, [p];
  .loc 1 14 0
  ld.global.u32 %x, [%p];
  .loc 1 15 0
  st.global.u32 [%p+64], %x;
  ret;
}}
.file 1 "{FILE}"
"""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(ptx)
        words = ["-arch=sm_90", "-lineinfo", str(source), "-o", str(made)]
        subprocess.run([str(ptxas(GPUTarget("cuda", 90))), *words], check=True)
        return base64.b64encode(made.read_bytes()).decode()


def offset_of(opcode: str) -> int:
    """Of the instruction of `cubin` that begins so."""
    code = Disassembly(disassemble(base64.b64decode(cubin())))
    return next(at for (_, at), n in code.numbers.items() if code.texts[n].startswith(opcode))


def sampled(raw: RawRun, reasons: str | dict[str, int], part: int = 0, later: int = 0) -> RawRun:
    """A run whose kernel was sampled 100 times: `part` of these wait for a reason at the load of
    line 14, or so many for each of several, `later` wait in line 15 for what it
    loads, and the others are of warps that issue there."""
    parts = {reasons: part} if isinstance(reasons, str) else reasons
    counts = {("matmul", offset_of("LDG"), reason): part for reason, part in parts.items()}
    counts["matmul", offset_of("STG"), "long_scoreboard"] = later
    counts["matmul", offset_of("STG"), "selected"] = 100 - later - sum(parts.values())
    samples = PCSamples.of(
        {key: count for key, count in counts.items() if count},
        cycles=1024, launches=2, dropped=3, overflows=0, cubin=cubin(),
    )  # fmt: skip
    raw.kernels = [replace(kernel, pc_samples=samples) for kernel in raw.kernels]
    raw.sources = {FILE: "\n" * 13 + "    x = load(p)\n    store(p, x)\n"}
    return raw


def loop(
    stages: int = 4,
    copy: int = 900,
    dot: int = 400,
    softmax: int = 0,
    gap: int = 0,
    iterations: int = 40,
    epilogue: int = 0,
    copies: int = 1,
    goes_on: bool = False,
) -> list[list[Slice]]:
    """A pipelined loop: copies are issued `stages` - 1 iterations ahead, an iteration waits for its
    own, multiplies, and may do a softmax, or something in no scope. With one stage each of its
    `copies` is waited for before the next. A dot may go on until that of the next iteration."""
    unit: list[Slice] = []
    landed: dict[int, int] = {}
    now, ends = 0, 0

    def issue(iteration: int) -> None:
        nonlocal now
        if iteration < iterations:
            unit.append((COPY, now, 2))
            landed[iteration] = now + copy
            now += 2

    for iteration in range(stages - 1):
        issue(iteration)
    for iteration in range(iterations):
        for _ in range(copies - 1 if stages == 1 else 0):
            unit += [(COPY, now, 2), (COPY_WAIT, now + 2, copy)]
            now += 2 + copy
        if stages == 1:
            issue(iteration)
        until = max(now + 5, landed[iteration])
        unit.append((COPY_WAIT, now, until - now))
        now = until
        if stages > 1:
            issue(iteration + stages - 1)
        if ends:
            unit.append((DOT_WAIT, now, max(2, ends - now)))
            now = max(now + 2, ends)
        unit.append((DOT, now, 2))
        now, ends = now + 2, now + dot
        if not goes_on or iteration + 1 == iterations:
            unit.append((DOT_WAIT, now, ends - now))
            now, ends = ends, 0
        if softmax:
            unit.append((SOFTMAX, now, softmax))
            now += softmax
        now += gap
    if epilogue:
        unit.append((STORE, now, epilogue))
    return [unit]


def tiles(units: list[list[Slice]], count: int) -> list[list[Slice]]:
    """Programs that do it for so many tiles, one after another."""
    whole = max(start + dur for unit in units for _, start, dur in unit)
    return [[(scope, n * whole + start, dur) for n in range(count) for scope, start, dur in unit]
            for unit in units]  # fmt: skip


def barriers(late: int = 0, units: int = 4, turns: int = 12, work: int = 1000) -> list[list[Slice]]:
    """Warps that meet again and again; the third (of two the second) takes longer over its sum."""
    found: list[list[Slice]] = [[] for _ in range(units)]
    now = 0
    for turn in range(turns):
        there = [now + work + 20 * ((unit + turn) % units) + late * (unit == min(2, units - 1))
                 for unit in range(units)]  # fmt: skip
        met = max(there) + 5
        for unit, own in enumerate(found):
            own += [(REDUCE, now, there[unit] - now), (BARRIER, there[unit], met - there[unit])]
        now = met
    return found


def ring(
    slots: int, fetch: int = 50, flight: int = 300, compute: int = 400, count: int = 40
) -> list[list[Slice]]:
    """A producer that waits for an empty slot, works, and copies into the slot, and two warps of a
    consumer that wait for the copy, work and arrive; the second works 30 ns longer."""
    units: list[list[Slice]] = [[], [], []]
    issued, emptied, done = 0, [0] * slots, [0, 0]
    for k in range(count):
        free = max(issued, emptied[k % slots]) + 1
        units[0] += [(EMPTY_WAIT, issued, free - issued), (SOFTMAX, free, fetch)]
        issued = free + fetch + 10
        units[0].append((COPY, issued - 10, 10))
        ends = []
        for n, own in enumerate(units[1:]):
            landed = max(issued + flight, done[n] + 1)
            own += [(COPY_WAIT, done[n], landed - done[n]), (REDUCE, landed, compute + 30 * n)]
            ends.append(landed + compute + 30 * n)
        met = max(ends) + 10
        for n, own in enumerate(units[1:]):
            own.append((ARRIVE, ends[n], met - ends[n]))
            done[n] = met
        emptied[k % slots] = met
    return units


def roles(slots: int) -> RawRun:
    """A run of `ring`."""
    return gpu(ring(slots), roles=["produce", "consume", "consume"])


def loads(wait: int) -> list[list[Slice]]:
    """Loads in the mid of 1,000 ns of work each."""
    each = 1000 + wait
    return [
        [s for k in range(20) for s in ((LOAD, k * each, wait), (SOFTMAX, k * each + wait, 1000))]
    ]


def pieces(wait: int) -> list[list[Slice]]:
    """Scores that are issued, waited for, and followed by a softmax."""
    each = 300 + wait
    return [[slice_ for k in range(20) for slice_ in (
        (SCORES, k * each, 20), (SCORES_WAIT, k * each + 20, wait),
        (SOFTMAX, k * each + 20 + wait, 280))]]  # fmt: skip


def counted(raw: RawRun, **percent: float) -> RawRun:
    """The run with counters that stood at these values all the time."""
    times = np.arange(0, 2_000_000, 10_000, np.int64) + ORIGIN_NS
    names = tuple(percent)
    samples = CounterSamples(
        device=0, start_ns=times, end_ns=times + 10_000, names=names, metrics=names,
        units=("%",) * len(names), values=np.tile(list(percent.values()), (times.size, 1)),
    )  # fmt: skip
    raw.counters = [samples]
    return raw


def cpu(
    programs: list[int],
    *,
    launches: int = 6,
    threads: int = 2,
    steps: int = 4,
    pause: int = 2000,
    first: float = 1.0,
    slice_cost: float = 0.0,
    late: int = 0,
    begin: int = 10_000,
    capacity: int = 0,
    **options: Any,
) -> RawRun:
    """Launches on a CPU: programs of these lengths, each on the thread that is free first, in steps
    of equal length. Of more threads `late` ones came when nothing was left. Of a program
    `capacity` records are kept, or all."""
    owner = kernel(name="add", table=(TABLE[STEP],))
    owner = replace(owner, options={**owner.options, **options})
    found, now = list[Launch](), begin
    for number in range(launches):
        free, written = [now] * threads, []
        for length in programs:
            thread = min(range(threads), key=lambda n: free[n])
            length = round(length * (first if number == 0 else 1.0))
            first_ns, each = free[thread], length / steps
            edges = [ticks(round(first_ns + k * each)) for k in range(steps + 1)]
            records = [Record(*edges[k : k + 2], iteration=k) for k in range(steps)]
            written.append(Written([records], thread=thread))
            free[thread] += length
        end = max(free)
        host = ORIGIN_NS + now, ORIGIN_NS + end
        kept = capacity or steps
        found.append(pack_launch(owner, (len(programs), 1, 1), kept, written, host=host))
        now = end + pause
    raw = run([owner], found)
    raw.clock = replace(raw.clock, slice_cost_ns=slice_cost, edge_cost_ns=0.0)
    raw.machine["threads"] = threads + late
    return raw


def locked(held: int, *, programs: int = 4, launches: int = 4) -> RawRun:
    """Launches on a CPU of programs with a thread each, which take one lock for so long behind
    steps of 50,000 ns."""
    owner = kernel(name="add", table=TABLE)
    found, now = list[Launch](), 10_000
    for _ in range(launches):
        written, free = [], 0
        for thread in range(programs):
            got = max(50_010 + thread, free + 20)
            free = got + held
            slices = [(STEP, 0, 50_000), (SPIN, 50_000 + thread, got), (REDUCE, got, free),
                      (RELEASE, free, free + 10)]  # fmt: skip
            records = [Record(ticks(now + a), ticks(now + b), scope) for scope, a, b in slices]
            clock = ticks(now), ticks(now + free + 10)
            written.append(Written([records], thread=thread, clock=clock))
        host = ORIGIN_NS + now, ORIGIN_NS + now + free + 10
        found.append(pack_launch(owner, (programs, 1, 1), 4, written, host=host))
        now += free + 2000
    raw = run([owner], found)
    raw.machine["threads"] = programs
    return raw


def with_flops(raw: RawRun, part: float) -> RawRun:
    """The run on an H200, whose host scope says work that is this part of what the chip can do."""
    first, last = raw.launches[0], raw.launches[-1]
    taken = 0
    raw.gpus = [replace(raw.gpus[0], name="NVIDIA H200")]
    from proton.viewer import Run

    taken = int(Run(raw).launches["dur_ns"].sum())
    work = part * 989.5e12 * taken / 1e9
    raw.host = [HostSlice(name="step", path="step", thread=1, start=first.host_start - 10,
                          end=last.host_end + 10, payload={"flops16": work})]  # fmt: skip
    return raw
