"""Random programs with records, compiled for a GPU and run thread by thread without one.

What a unit's ring buffer holds is held against a model of what records there must be, and against
the same program without `compact-iterations`: a thread's clock counts its readings, so equal work
has equal records. A twentieth as many as other random programs.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import proton.language as tl
from proton.backends.nvidia import compiler
from proton.backends.nvidia.target import GPUKernel
from proton.base.knobs import knobs
from proton.dialect.mlir import Module
from proton.runtime.launch.jit import JITFunction
from proton.trace import wire
from proton.trace.instrumentation import Instrumentation
from proton.trace.iterations import expand
from proton.transforms.records import compact_iterations
from proton.transforms.records.compact_iterations import CompactIterations
from tests.compile.conftest import NoAssembler
from tests.compile.ptx.machine import run_on_arrays
from tests.compile.test_gpu_records import compiled
from tests.cpu.harness import kernels_of
from tests.draws import PROGRAMS
from tests.pairs import chosen

ARGUMENTS = 6
LAUNCH = 77  # the number of a launch in a slab
TURN = ("",)  # in place of the loops around a record that each turn makes
Rings = list[tuple[int, np.ndarray]]
Record = tuple[Any, ...]  # name, iteration, payload


@dataclass
class Statement:
    """A line of a kernel, and what is inside."""

    line: str
    body: list["Statement"] = field(default_factory=list)
    other: list["Statement"] = field(default_factory=list)  # of `else`

    def text(self, indent: str) -> str:
        inside = "".join(s.text(indent + "    ") for s in self.body)
        found = f"{indent}{self.line}\n{inside}"
        if self.other:
            found += f"{indent}else:\n" + "".join(s.text(indent + "    ") for s in self.other)
        return found

    def run(self, state: dict[str, Any]) -> None:
        """Adds the records of this to `state["records"]`."""
        records, iteration = state["records"], state["iteration"]
        word = self.line.split(" ")[0]
        if word == "with":
            options = dict(part.split("=", 1) for part in self.line[:-2].split(", ")[1:])
            values = {name: _value(text, state) for name, text in options.items()}
            is_kept = values.pop("when", True)
            _run(self.body, state)
            record = (self.line.split('"')[1], iteration, *values.values())
            records += [record] if is_kept else []
        elif word.startswith("proton.mark"):
            records.append((self.line.split('"')[1], iteration))
        elif word == "for":
            name, bounds = self.line.split(" ")[1], self.line.split(" in ")[1][:-1]
            for number, index in enumerate(_value(bounds, state)):
                state["iteration"], state[name] = number, index
                _run(self.body, state)
            state["iteration"] = iteration
        elif word == "while":
            state["iteration"] = -1
            while _value(self.line[len("while ") : -1], state):
                _run(self.body, state)
            state["iteration"] = iteration
        elif word == "if":
            _run(self.body if _value(self.line[len("if ") : -1], state) else self.other, state)
        elif word != "x":
            name, _, value = self.line.partition(" = ")
            state[name] = _value(value, state)


def _value(text: str, state: dict[str, Any]) -> Any:
    return eval(text, {"range": range}, state)


def _run(statements: list[Statement], state: dict[str, Any]) -> None:
    for statement in statements:
        statement.run(state)


class Writer:
    """Writes random statements; names of scopes are unique, so a record says where it is from."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.count = rng, 0
        self.conditional, self.has_payload = rng.random(2) < 0.3

    def name(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def work(self) -> Statement:
        return Statement(f"x = x * {2 * self.rng.integers(1, 99) + 1} + {self.rng.integers(99)}")

    def condition(self, loops: tuple[str, ...]) -> str:
        if loops and self.rng.random() < 0.6:
            return f"({self.rng.choice(loops)} & 1) == {self.rng.integers(2)}"
        return f"a{self.rng.integers(ARGUMENTS)} > {self.rng.integers(4)}"

    def statements(self, depth: int, loops: tuple[str, ...], least: int = 1) -> list[Statement]:
        count = int(self.rng.integers(least, least + 3))
        return [found for _ in range(count) for found in self.statement(depth, loops)]

    def statement(self, depth: int, loops: tuple[str, ...]) -> list[Statement]:
        pick = self.rng.random()
        if pick < 0.35 or depth >= 3:
            return [self.scope(depth, loops)]
        if pick < 0.45:
            return self.mark()
        if pick < 0.80:
            return [self.loop(depth, loops)]
        if pick < 0.93:
            other = self.statements(depth + 1, loops) if self.rng.random() < 0.4 else []
            inside = [self.work(), *self.statements(depth + 1, loops)]
            return [Statement(f"if {self.condition(loops)}:", inside, other)]
        name = self.name("w")
        inside = [*self.statements(depth + 1, loops), self.loop(3, loops)]
        inside.append(Statement(f"{name} = {name} - 1"))
        first = Statement(f"{name} = a{self.rng.integers(ARGUMENTS)} % 5")
        return [first, Statement(f"while {name} > 0:", inside)]

    def mark(self) -> list[Statement]:
        return [self.work(), Statement(f'proton.mark("{self.name("m")}")'), self.work()]

    def scope(self, depth: int, loops: tuple[str, ...]) -> Statement:
        inside = [self.work()]
        if depth < 2 and self.rng.random() < 0.25:
            inside += [*self.statements(depth + 1, loops), self.work()]
        is_free = loops != TURN
        is_conditional = self.conditional and is_free and self.rng.random() < 0.5
        options = f", when={self.condition(loops)}" if is_conditional else ""
        if self.has_payload and is_free and self.rng.random() < 0.5:
            options += f", v=a{self.rng.integers(ARGUMENTS)}"
        return Statement(f'with proton.scope("{self.name("s")}"{options}):', inside)

    def loop(self, depth: int, loops: tuple[str, ...]) -> Statement:
        index = self.name("i")
        if self.rng.random() < 0.6 or depth > 1:
            inside = self.turn()
        else:
            inside = self.statements(depth + 1, (*loops, index))
            place = int(self.rng.integers(len(inside) + 1))
            inside.insert(place, self.loop(3, loops))
        inside.append(Statement(f"x = x + {index}"))
        lower, upper, step = (f"a{self.rng.integers(ARGUMENTS)}" for _ in range(3))
        bounds = [upper, f"{lower}, {upper}", f"-3, {upper}, {step} + 1", "5"]
        return Statement(f"for {index} in range({self.rng.choice(bounds)}):", inside)

    def turn(self) -> list[Statement]:
        """Records of a loop that each turn makes."""
        found = []
        for _ in range(int(self.rng.choice([1, 1, 2, 3, 5]))):
            pick = self.rng.random()
            if pick < 0.15:
                found += self.mark()
            elif pick < 0.3:
                name, inner = self.name("s"), [self.work(), self.scope(9, TURN), self.work()]
                found.append(Statement(f'with proton.scope("{name}"):', inner))
            else:
                found.append(self.scope(9, TURN))
        return found


def options_of(rng: np.random.Generator) -> tuple[int, dict[str, Any]]:
    """Warps of a program, and how it records."""
    warps = int(rng.choice([1, 1, 2, 4]))
    how: dict[str, Any] = {
        "capacity": int(rng.choice([0, 1, 2, 4, 8, 16, 64, 256])),
        "clock_bits": int(rng.choice([32, 64])),
        "buffer": str(rng.choice(["auto", "shared", "global", "global"])),
        "placement": str(rng.choice(["program", "schedule"])),
    }
    if not how["capacity"]:
        del how["capacity"]
    if rng.random() < 0.3:
        how |= {"strategy": "flush", "buffer": "auto"}
    if warps > 1 and rng.random() < 0.5:
        how["granularity"] = str(rng.choice(["cta", "warp_2"]))
    elif warps > 1 and rng.random() < 0.5:
        how["sample_warps"] = tuple(np.flatnonzero(rng.integers(0, 2, warps)).tolist()) or (1,)
    return warps, how


def ran(
    kernel: GPUKernel, warps: int, numbers: list[int], clock: int, rng: np.random.Generator
) -> tuple[np.ndarray, Rings]:
    """The kernel's result; of each unit how many records there were, and those it has, in order.
    Its block has what somebody else left there, as in a CUDA graph (runtime/nvidia/graph.py), but
    for the counts of units that do not record."""
    profile = kernel.profile
    assert profile is not None
    block, x = profile.block, np.arange(32 * warps, dtype=np.int32)
    buffer = rng.integers(0, 256, block.bytes, np.uint8)
    if profile.sampled_units:
        records = [bool(profile.sampled_units >> unit & 1) for unit in range(block.units)]
        block.tables(buffer)[0] *= np.array(records, np.uint64)
    given, threads = [x, *numbers, buffer], 32 * profile.unit_warps
    slab = np.zeros(wire.slab_bytes(rng.choice([0, 1000, 1 << 20])), np.uint8)
    slab[:8].view(np.uint32)[1] = wire.slab_room(slab.size)
    if profile.takes_chunks:
        given += [slab, LAUNCH]
    ptx, shared = kernel.asm["ptx"], kernel.shared
    run_on_arrays(ptx, (1, 1, 1), 32 * warps, shared, given, rng, unit=threads, clock=clock)
    header = block.headers(buffer)[0]
    assert (header["magic"], header["version"]) == (wire.MAGIC, wire.VERSION)
    assert header["state"] == wire.ProgramState.FINISHED
    assert not any(header[name] for name in ("program_x", "program_y", "program_z", "thread"))
    assert (header["units"], header["capacity"]) == (block.units, block.capacity)
    assert header["payload_slots"] == profile.schema.payload_slots
    assert header["clock_bits"] == profile.schema.clock_bits
    assert clock <= header["clock_start"] <= header["clock_end"] < clock + (1 << 32)
    expand(buffer, block, profile.loops)
    found = []
    for unit, count in enumerate(block.tables(buffer)[0].tolist()):
        start = block.segment(unit)
        ring = buffer[start : start + block.segment_bytes].view(profile.schema.dtype)
        newest = np.arange(max(0, count - block.capacity), count) % block.capacity
        if profile.takes_chunks:
            found.append((count, flushed(ring, slab, unit, count)))
        else:
            found.append((count, ring[newest]))
    return x, found


def flushed(ring: np.ndarray, slab: np.ndarray, unit: int, count: int) -> np.ndarray:
    """What a unit has left: its chunks in the slab, read as docs/buffer-format.md has them; where
    there was no room for one, the rest of its records is lost but the last of them, in its ring."""
    capacity, record = ring.size, ring.dtype.itemsize
    size = wire.aligned(32 + capacity * record, 16)
    words = slab.view(np.uint32)
    room, taken = 16 * int(words[1]), 16 * int(words[0])
    firsts = {}
    for place in range(16, 16 + min(room, taken) - size + 1, size):
        program, of_unit, first, _, launch, bytes_ = words[place // 4 :][:6].tolist()
        assert (program, launch, bytes_) == (0, LAUNCH, size)
        if of_unit == unit:
            firsts[first] = slab[place + 32 :][: capacity * record].view(ring.dtype)
    parts = []
    for first in range(0, count, capacity):
        is_last = first + capacity >= count
        chunk = firsts.pop(first, ring if is_last else None)
        # What is behind a loss is all that is compared.
        parts = [*parts, chunk[: count - first]] if chunk is not None else []
    assert not firsts
    return np.concatenate(parts) if parts else ring[:0]


def source_of(body: list[Statement]) -> str:
    parameters = [f"a{n}" for n in range(ARGUMENTS)]
    return (
        f"@proton.jit(do_not_specialize={parameters})\n"
        f"def kernel(x_ptr, {', '.join(parameters)}, SIZE: tl.constexpr):\n"
        "    place = x_ptr + tl.arange(0, SIZE)\n"
        "    x = tl.load(place)\n"
        + "".join(statement.text("    ") for statement in body)
        + "    tl.store(place, x)\n"
    )


def records_of(numbers: list[int], body: list[Statement]) -> list[Record]:
    """The records of a program, in order."""
    state: dict[str, Any] = {f"a{n}": number for n, number in enumerate(numbers)}
    state |= {"records": [], "iteration": -1}
    _run(body, state)
    found: list[Record] = state["records"]
    return found


def numbers_of(rng: np.random.Generator, body: list[Statement]) -> list[int]:
    """Arguments that do not make too many records."""
    most = 40
    while True:
        sizes = [0, 1, 2, 3, *rng.integers(most + 1, size=2)]
        numbers: list[int] = rng.choice(sizes, ARGUMENTS).tolist()
        if len(records_of(numbers, body)) < 500:
            return numbers
        most = max(1, most // 2)


def check_program(
    body: list[Statement],
    warps: int,
    how: dict[str, Any],
    every: list[list[int]],
    rng: np.random.Generator,
    has_room: bool = True,
) -> bool:
    """Whether loops of the program keep their readings, in shared memory if it `has_room`; it runs
    with each list of arguments."""
    source = source_of(body)
    print(source, warps, "warps", how)
    kernel: JITFunction = kernels_of(source).kernel
    options = {"num_warps": warps, "instrumentation": Instrumentation(**how)}
    with pytest.MonkeyPatch.context() as patch, knobs.scope(always_compile=True):
        if not has_room:
            print("no room in shared memory")
            patch.setattr(CompactIterations, "_place", lambda *_: None)
        compact = compiled(kernel, tl.int32, *[10] * ARGUMENTS, 32 * warps, **options)
        patch.setattr(CompactIterations, "run", unchanged)
        patch.setattr(compiler, "Assembler", NoAssembler)  # it runs here alone
        plain = compiled(kernel, tl.int32, *[10] * ARGUMENTS, 32 * warps, **options)
    for numbers in every:
        records = records_of(numbers, body)
        print("arguments", numbers, len(records), "records")
        clock = int(rng.choice([0, (1 << 32) - rng.integers(1, 600)]))
        x, found = ran(compact, warps, numbers, clock, rng)
        other_x, others = ran(plain, warps, numbers, clock, rng)
        assert np.array_equal(x, other_x)
        check(compact, found, others, records)
    assert compact.profile is not None
    assert has_room or compact.profile.iterations is None
    return compact.asm["ptx"] != plain.asm["ptx"]


def unchanged(self: CompactIterations, module: Module) -> None:
    """`compact-iterations` without effect."""


def check(kernel: GPUKernel, found: Rings, others: Rings, records: list[Record]) -> None:
    """Each unit that records has the newest of these, the same as in the other rings."""
    check_records(kernel, found, records)
    profile = kernel.profile
    assert profile is not None
    for (count, ring), (other_count, other) in zip(found, others, strict=True):
        assert count == other_count
        if profile.takes_chunks:  # by one thread, which the others leave behind: they read clocks
            assert (np.diff(ring["end"]) < 1 << 31).all()
            assert (ring["end"] - ring["start"] < 1 << 31).all()
        else:
            check_equal(ring, other)


def check_records(kernel: GPUKernel, found: Rings, records: list[Record]) -> None:
    """Each unit that records has the newest of these."""
    profile = kernel.profile
    assert profile is not None
    scopes = profile.table.scopes
    for unit, (count, ring) in enumerate(found):
        every = records if profile.sampled_units >> unit & 1 else []
        assert count == len(every)
        numbers = ring["iteration"].astype(np.int32).tolist()
        kept = [
            (scopes[tag].name, number, *payload[: len(scopes[tag].payload)].tolist())
            for tag, number, payload in zip(
                ring["tag"] & wire.MAX_SCOPE_ID, numbers, ring["payload"], strict=True
            )
        ]
        assert kept == every[len(every) - len(kept) :]


def check_equal(ring: np.ndarray, other: np.ndarray) -> None:
    """Two rings hold the same newest records, as many as both have. A thread's clock may be ahead
    by two: where the header waits for a loop all threads read when the program began."""
    size = min(ring.size, other.size)  # capacities differ by where there is room
    assert size or not max(ring.size, other.size)
    ring, other = ring[-size:].copy(), other[-size:]
    ahead = int((ring["start"] - other["start"])[0]) if size else 0
    assert ahead in (0, 2)
    for name in ("start", "end"):
        ring[name] -= ring[name].dtype.type(ahead)
    for name in ("start", "end", "tag", "iteration"):
        assert np.array_equal(ring[name], other[name])


@pytest.mark.usefixtures("fuzz_assembler")
@pytest.mark.parametrize("number", range(1, PROGRAMS // 10, 2))
def test_random_records(number: int, session_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    rng = np.random.default_rng([session_seed, number])
    body = Writer(rng).statements(0, (), 3)
    warps, how = options_of(rng)
    if rng.random() < 0.5:
        print("each loop that may be is long")
        monkeypatch.setattr(compact_iterations, "_LONG", 0)
    monkeypatch.setattr(compact_iterations, "_CHUNK", int(rng.choice([4, 16, 64])))
    monkeypatch.setattr(compact_iterations, "_AT_ONCE", int(rng.choice([1, 4])))
    every = [numbers_of(rng, body) for _ in range(2)]
    check_program(body, warps, how, every, rng, has_room=rng.random() < 0.6)


@pytest.mark.usefixtures("fuzz_assembler")
def test_lanes_keep_readings_behind_one_that_took_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one comes later; a reading of another lane's was 9 ticks ahead of its own."""
    test_random_records(31, 1883068872, monkeypatch)


@pytest.mark.usefixtures("fuzz_assembler")
@pytest.mark.parametrize("number", range(PROGRAMS // 40))
def test_random_sampled_records(number: int, session_seed: int) -> None:
    """One iteration in so many of the innermost loop around a record, and what is in none."""
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    rng = np.random.default_rng([session_seed, number, 1])
    body = Writer(rng).statements(0, (), 3)
    warps, how = options_of(rng)
    how["every"] = every = int(rng.choice([2, 3, 5, 8, 1000]))
    source = source_of(body)
    print(source, warps, "warps", how)
    options = {"num_warps": warps, "instrumentation": Instrumentation(**how)}
    kernel: JITFunction = kernels_of(source).kernel
    sampled = compiled(kernel, tl.int32, *[10] * ARGUMENTS, 32 * warps, **options)
    plain = compiled(kernel, tl.int32, *[10] * ARGUMENTS, 32 * warps, num_warps=warps)
    for _ in range(3):
        numbers = numbers_of(rng, body)
        records = [r for r in records_of(numbers, body) if r[1] < 0 or r[1] % every == 0]
        x, found = ran(sampled, warps, numbers, 0, rng)
        check_records(sampled, found, records)
        expected = np.arange(32 * warps, dtype=np.int32)
        run_on_arrays(
            *(plain.asm["ptx"], (1, 1, 1), 32 * warps, plain.shared, [expected, *numbers], rng),
            unit=32,
            clock=0,
        )
        assert np.array_equal(x, expected)


def scope(options: str) -> Statement:
    return Statement(f"with proton.scope({options}):", [Statement("x = x * 3 + 1")])


def turns(*names: str) -> Statement:
    return Statement("for i in range(a0):", [scope(f'"{name}"') for name in names])


# What comes behind a loop, and in front of it.
BEHIND = {
    "a condition": [scope('"c", when=a1 > 0')],
    "a condition ahead": [scope('"ahead"'), scope('"c", when=a1 > 0')],
    "a branch": [Statement("if a1 > 0:", [scope('"c"')])],
    "a loop of records": [Statement("while a1 > 0:", [Statement("a1 = a1 - 1"), turns("c")])],
    "payload": [scope('"c", v=a1')],
}


HOW = [
    {"capacity": 4}, {"capacity": 4, "buffer": "global"}, {"buffer": "global", "clock_bits": 64},
    {"strategy": "flush", "capacity": 8},
]  # fmt: skip


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "behind, is_long, how",
    chosen(
        {"behind": list(BEHIND), "is_long": [False, True], "how": HOW},
        "behind is_long",
        "is_long how",
    ),
    ids=str,
)
def test_what_is_behind_a_loop(
    behind: str,
    is_long: bool,
    how: dict[str, Any],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_long:
        monkeypatch.setattr(compact_iterations, "_LONG", 0)
    body = [scope('"begin"'), turns("one", "two"), *BEHIND[behind], scope('"y"'), scope('"z"')]
    every = [[trips, is_there, 0, 0, 0, 0] for trips in (0, 1, 7) for is_there in (0, 1)]
    has_room = "buffer" not in how or rng.random() < 0.5
    is_compact = check_program(body, 1, how, every, rng, has_room)
    assert is_compact or behind == "a loop of records"  # which a ring in shared memory costs less


def test_scopes_with_payload_that_follow_each_other_are_apart(rng: np.random.Generator) -> None:
    source = """
@proton.jit
def kernel(x_ptr, a0, a1, SIZE: tl.constexpr):
    place = x_ptr + tl.arange(0, SIZE)
    x = tl.load(place)
    for i in tl.static_range(3):
        with proton.scope("unrolled", i=i):
            x = x * a0 + i
    for value in (a0, a0, a1):
        with proton.scope("twice", value=value):
            x = x * value + 5
    for i in tl.static_range(3):
        with proton.scope("without"):
            x = x * a1 + i
    tl.store(place, x)
"""
    kernel: JITFunction = kernels_of(source).kernel
    made = compiled(kernel, tl.int32, 10, 10, 32, num_warps=1, instrumentation=Instrumentation())
    a0, a1 = rng.integers(2, 99, 2).tolist()
    _, ((_, ring),) = ran(made, 1, [a0, a1], 0, rng)
    assert made.profile is not None
    scopes = [made.profile.table.scopes[tag & wire.MAX_SCOPE_ID] for tag in ring["tag"].tolist()]
    found = [
        (scope.name, *payload[: len(scope.payload)].tolist())
        for scope, payload in zip(scopes, ring["payload"], strict=True)
    ]
    unrolled, twice = [("unrolled", i) for i in range(3)], [("twice", v) for v in (a0, a0, a1)]
    assert found == [*unrolled, *twice, ("without",)]
