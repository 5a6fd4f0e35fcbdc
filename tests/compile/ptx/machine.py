"""Runs the PTX of a kernel on a machine of numpy's, whose threads are the elements of arrays.

Threads that stand at the same basic block execute it at once; of several blocks the first one goes
on, so threads that went apart meet again. An instruction for a warp, four warps or a program waits
until all of them are there; who waits for ever is an error that says where.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.compile.ptx.copies import Copies, parameter_address
from tests.compile.ptx.matrices import Matrices
from tests.compile.ptx.memory import GLOBAL, SHARED, WARP, Arrays, Clock, Heap, Memory, any_of
from tests.compile.ptx.numbers import BITS, from_bf16, to_bf16
from tests.compile.ptx.text import inside, parsed
from tests.compile.ptx.translation import Translation, put

# By name, of what is in memory and the operands.
ATOMICS: dict[str, Callable[..., Any]] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.fmin, "max": np.fmax, "exch": lambda old, new: new,
    "cas": lambda old, expected, new: np.where(old == expected, new, old),
}  # fmt: skip
_GROUP = 4 * WARP
_BARRIERS = 16  # of a program
_HEARD = ("bar", "barrier", "mbarrier", "cp")  # what others wait for
_STEPS = 1_000_000  # blocks that are executed at most
_BARRIER_TICKS = 1 << 20  # what the clock is put forward by at a barrier of the program


def run(
    ptx: str,
    grid: tuple[int, int, int],
    threads: int,
    shared_bytes: int,
    parameters: Sequence[bytes],
    heap: Heap,
    rng: np.random.Generator,
    *,
    clock: int = 0,
    unit: int = 0,
    checks_races: bool = True,
    apart: int = WARP,
) -> None:
    """Runs the only kernel in some PTX on a grid of programs of `threads` threads, whose clocks
    begin at `clock`. Parameters are the bytes that a launch copies. Of each `unit` threads, if that
    is given, only the first warp uses what it loads from shared memory: others get garbage.
    Without `checks_races` threads may race in global memory, and each warp, or each so many threads
    as `apart` says, runs as far as it can before another does, in random order."""
    if 0 in grid:
        return
    machine = Machine(ptx, grid, threads, shared_bytes, parameters, heap, rng, clock, unit)
    machine.globals.checks_races = checks_races
    if not checks_races:
        machine.go_apart(apart)
    with np.errstate(all="ignore"):
        try:
            machine.run()
        finally:
            machine.translation.end()
            vars(machine).clear()


def run_on_arrays(
    ptx: str,
    grid: tuple[int, int, int],
    threads: int,
    shared_bytes: int,
    arguments: Sequence[np.ndarray | int],
    rng: np.random.Generator,
    *,
    clock: int = 0,
    unit: int = 0,
) -> None:
    """As `run`, of arrays, which change, and integers."""
    arrays = Arrays(Heap())
    numbers = [arrays.address(a) if isinstance(a, np.ndarray) else a for a in arguments]
    given = [(n & ((1 << 64) - 1)).to_bytes(8, "little") for n in numbers]
    run(ptx, grid, threads, shared_bytes, given, arrays.heap, rng, clock=clock, unit=unit)
    arrays.copy_back()


def _number_type(type_: str) -> str:
    return type_ if type_ not in ("b16", "b32", "b64", "b128") else f"u{type_[1:]}"


class Machine(Copies, Matrices):
    """A grid: its threads' registers, where they are, and its memories."""

    def __init__(
        self,
        ptx: str,
        grid: tuple[int, ...],
        threads: int,
        shared_bytes: int,
        parameters: Sequence[bytes],
        heap: Heap,
        rng: np.random.Generator,
        clock: int,
        unit: int,
    ) -> None:
        self.unit = unit
        self.kernel, self.rng, self.program_threads = parsed(ptx), rng, threads
        programs = int(np.prod(grid))
        every = programs * threads
        number = np.arange(every)
        self.program_of, self.warp_of = number // threads, number % threads // WARP
        self.pc = np.zeros(every, np.int64)
        self.ticks = np.full(every, clock, np.int64)
        self.clock = Clock(self.program_of * (1 << 16), np.zeros(every, np.int64), self.warp_of)
        self.barriers = 0
        self.met = np.zeros(every, bool)  # at a barrier that others have left
        self.arrived: dict[tuple[int, int], int] = {}  # by program and number of a barrier
        self.go_apart(every)
        self.parameters = dict(zip(self.kernel.parameters, parameters, strict=True))
        self.symbols = {"global_smem": SHARED} | self.kernel.local
        self.symbols |= {name: parameter_address(n) for n, name in enumerate(self.parameters)}
        self._memories(shared_bytes, heap)
        self.registers = self._garbage(every)
        self.translation = Translation(self.kernel, self.registers, self._special(grid), self)
        self.blocks: dict[int, Callable[[np.ndarray], None]] = {}  # that have been executed
        self.together = [block.together for block in self.kernel.blocks] + ["thread"]
        self.ready: list[Callable[[int, np.ndarray, np.ndarray], np.ndarray]] = [
            getattr(self, f"_ready_{together}") for together in self.together
        ]
        meets = [together in ("group", "program", "phase") for together in self.together]
        self.is_met = np.array([*meets, True])  # by where threads are; the last one: at their ends
        self.is_heard = [
            is_met or any(instruction.name[0] in _HEARD for instruction in block.instructions)
            for block, is_met in zip(self.kernel.blocks, meets, strict=False)
        ]
        self.stations: dict[str, np.ndarray] = {}  # by a barrier's text: which blocks begin with it
        self.start_copies()
        self.start_matrices()

    def _garbage(self, count: int) -> dict[str, np.ndarray]:
        """What registers have at the start, drawn at once for all of a type: there are hundreds."""
        of_type: dict[Any, list[str]] = {}
        for name, dtype in self.kernel.registers.items():
            of_type.setdefault(dtype, []).append(name)
        found: dict[str, np.ndarray] = {}
        for dtype, names in of_type.items():
            size = len(names), count * np.dtype(dtype).itemsize
            values = self.rng.integers(0, 2 if dtype is np.bool_ else 256, size, np.uint8)
            found |= zip(names, values.view(dtype), strict=True)
        return found

    def _special(self, grid: tuple[int, ...]) -> dict[str, np.ndarray]:
        number, shape = np.arange(len(self.pc)), {}
        x, y, _ = grid
        program = self.program_of
        ids = program % x, program // x % y, program // (x * y)
        for axis, letter in enumerate("xyz"):
            shape[f"%ctaid.{letter}"] = ids[axis]
            shape[f"%nctaid.{letter}"] = np.full(len(number), grid[axis])
            shape[f"%tid.{letter}"] = number % self.program_threads if not axis else 0 * number
            shape[f"%ntid.{letter}"] = np.full(len(number), 1 if axis else self.program_threads)
        shape |= {"%smid": program % 132, "%laneid": number % WARP, "%warpid": self.warp_of}
        shape["%lanemask_lt"] = (1 << shape["%laneid"]) - 1
        return shape

    def _memories(self, shared_bytes: int, heap: Heap) -> None:
        """Global, shared and local memory."""
        every = np.arange(len(self.pc))
        self.globals = Memory(
            "global", GLOBAL, heap.data, 0 * every, self._unit("global"), self.clock
        )
        self.globals.allowed = heap.allowed
        size = -(-shared_bytes // 1024) * 1024
        programs = len(self.pc) // self.program_threads
        garbage = self.rng.integers(0, 256, programs * size, np.uint8)
        unit = self._unit("shared")
        self.shared = Memory("shared", SHARED, garbage, self.program_of * size, unit, self.clock)
        self.shared.size = shared_bytes
        local = self.kernel.local_bytes
        data = self.rng.integers(0, 256, len(every) * local, np.uint8)
        self.local = Memory("local", 0, data, every * local, 1, self.clock)
        self.local.size, self.local.checks_races = local, False  # each thread has its own
        self.spaces = {"global": self.globals, "shared": self.shared, "local": self.local}

    def _unit(self, space: str) -> int:
        """Bytes that the narrowest access to a memory has, or 4."""
        instructions = (i.name for block in self.kernel.blocks for i in block.instructions)
        return min(
            [4, *(BITS[n[-1]] // 8 for n in instructions if n[0] in ("ld", "st") and space in n)]
        )

    # Which block is next

    def run(self) -> None:
        """Runs all threads to their ends."""
        for _ in range(_STEPS):
            live = self.pc >= 0
            if not any_of(live):
                self.finish_copies()
                return
            if not self._step(live):
                raise AssertionError(f"threads wait for ever: {self._where()}")
        raise AssertionError(f"no end after {_STEPS} blocks: {self._where()}")

    def go_apart(self, size: int) -> None:
        """Has each so many threads run as far as they can before others do, in random order."""
        parts = np.arange(len(self.pc)) // size
        order = range(1) if size == len(parts) else self.rng.permutation(parts[-1] + 1)
        self.take_turns([slice(part * size, (part + 1) * size) for part in order])

    def take_turns(self, turns: list[slice]) -> None:
        """Has the first threads run as far as they can before the next ones do."""
        self.turns = turns
        self.is_stuck = [False] * len(self.turns)  # until others of their programs have gone on

    def _step(self, live: np.ndarray) -> bool:
        for number, turn in enumerate(self.turns):
            if not self.is_stuck[number]:
                if self._go_on(live, turn):
                    return True
                self.is_stuck[number] = True
        return any(self._go_on(live, turn) for turn in self.turns)

    def _go_on(self, live: np.ndarray, turn: slice) -> bool:
        for block in np.bincount(self.pc[turn] + 1)[1:].nonzero()[0].tolist():
            here = self.ready[block](block, self.pc == block, live)
            if self.together[block] in ("thread", "warp"):
                here[: turn.start] = here[turn.stop :] = False
            if any_of(here):
                if block not in self.blocks:
                    self.blocks[block] = self.translation.block(block)
                self.blocks[block](here)
                self._wake(block, here)
                return True
        return False

    def _wake(self, block: int, here: np.ndarray) -> None:
        """What others of a program wait for: who is at a place where they meet, who has ended, and
        what was done to barriers."""
        if self.is_heard[block] or any_of(self.is_met[self.pc[here]]):
            programs = self.program_of[here]
            first, last = programs[0] * self.program_threads, programs[-1] * self.program_threads
            for number, turn in enumerate(self.turns):
                if turn.start < last + self.program_threads and turn.stop > first:
                    self.is_stuck[number] = False

    def _ready_thread(self, block: int, here: np.ndarray, live: np.ndarray) -> np.ndarray:
        return here

    def _ready_warp(self, block: int, here: np.ndarray, live: np.ndarray) -> np.ndarray:
        return self._complete(here, live, WARP)

    def _ready_group(self, block: int, here: np.ndarray, live: np.ndarray) -> np.ndarray:
        return self._complete(here, live, _GROUP)

    def _ready_phase(self, block: int, here: np.ndarray, live: np.ndarray) -> np.ndarray:
        instruction = self.kernel.blocks[block].instructions[0]
        return self.completed_phases(self.translation.bound_to(instruction), here)

    def _ready_program(self, block: int, here: np.ndarray, live: np.ndarray) -> np.ndarray:
        instruction = self.kernel.blocks[block].instructions[0]
        waiting = self._waiting(instruction.text)
        if len(instruction.operands) < 2:
            complete = self._complete(waiting, live, self.program_threads)
        else:
            complete = self._met_by_count(self.translation.bound_to(instruction), waiting)
        others = complete & ~here
        if any_of(here & complete):  # those elsewhere go on later, and have met now
            self.clock.program[others] = self.program_of[others] * (1 << 16) + self.barriers + 1
            self.met |= others
        return here & (complete | self.met)

    def _waiting(self, text: str) -> np.ndarray:
        """The threads at a barrier, at whatever place."""
        if text not in self.stations:
            first = [b.instructions[0].text if b.instructions else "" for b in self.kernel.blocks]
            self.stations[text] = np.array([*first, "", ""]) == text  # the end, and behind it
        return self.stations[text][self.pc] & ~self.met

    def _met_by_count(self, op: Any, waiting: np.ndarray) -> np.ndarray:
        """Of threads at a barrier of so many those that are as many."""
        names, counts = self._meeting(op)
        assert (names[waiting] < _BARRIERS).all(), op.text
        barrier = np.where(waiting, self.program_of * _BARRIERS + names, 0)
        every = (int(self.program_of[-1]) + 1) * _BARRIERS
        arrived = np.bincount(barrier[waiting], minlength=every)
        for (program, name), count in self.arrived.items():
            arrived[program * _BARRIERS + name] += count
        return waiting & (counts == arrived[barrier])

    @staticmethod
    def _meeting(op: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of a barrier of some threads its number and theirs, by thread."""
        name, count = (op.array(text, "u32").astype(np.int64) for text in op.operands[:2])
        return name, count

    @staticmethod
    def _complete(here: np.ndarray, live: np.ndarray, size: int) -> np.ndarray:
        """Threads of those units all of whose live threads are there."""
        is_complete = (here == live).reshape(-1, size).all(axis=1)
        return here & np.repeat(is_complete, size)

    def _where(self) -> str:
        found = []
        for block in np.unique(self.pc[self.pc >= 0]).tolist():
            threads = np.flatnonzero(self.pc == block)
            first = self.kernel.blocks[block].instructions[:1]
            text = first[0].text if first else "the end"
            found.append(f"{len(threads)} threads, {threads[0]} the first, at {text!r}")
        return "; ".join(found)

    # What translated code calls

    def parameter(self, address: np.ndarray, type_: str, mask: np.ndarray) -> np.ndarray:
        """What arguments have at addresses, by thread."""
        dtype = np.dtype(f"{'i' if type_[0] == 's' else 'u'}{BITS[type_] // 8}")
        found = np.zeros(len(self.pc), dtype)
        for place in np.unique(address[mask]):
            found[address == place] = np.frombuffer(self.parameter_at(int(place)), dtype, 1)[0]
        return found

    def read_clock(self, mask: np.ndarray) -> np.ndarray:
        """Counts how often a warp read its clock, so equal work has equal readings."""
        self.ticks += np.repeat(mask.reshape(-1, WARP).any(axis=1), WARP)
        return self.ticks.astype(np.uint64)

    def active_lanes(self, mask: np.ndarray) -> np.ndarray:
        """Of each thread a bit for each lane of its warp that is where it is."""
        bits = mask.reshape(-1, WARP) << np.arange(WARP, dtype=np.uint64)
        return np.repeat(bits.sum(axis=1), WARP).astype(np.uint32)

    def trap(self, mask: np.ndarray) -> None:
        assert not mask.any(), f"thread {np.flatnonzero(mask)[0]} traps"

    def load(
        self, space: str, address: np.ndarray, size: int, registers: list[np.ndarray | None],
        kind: str, mask: np.ndarray,
    ) -> None:  # fmt: skip
        threads = np.flatnonzero(mask)
        if not len(threads):
            return
        memory = self.spaces[space]
        place = memory.places(address[threads], size * len(registers), threads)
        if self.unit and space == "shared":
            is_first = threads % self.unit < WARP
            memory.note_read(place[is_first], size * len(registers), threads[is_first])
            found = memory.numbers(place, size, len(registers))
            found[:, ~is_first] = self.rng.integers(0, 127, (len(found), int((~is_first).sum())))
        else:
            found = memory.load(place, size, len(registers), threads)
        found = found.view(f"{kind}{size}")
        for register, values in zip(registers, found, strict=True):
            if register is None:
                continue  # `_`: nobody wants it
            register[threads] = values.astype(register.dtype)

    def store(
        self, space: str, address: np.ndarray, size: int, values: list[np.ndarray], mask: np.ndarray
    ) -> None:
        threads = np.flatnonzero(mask)
        if not len(threads):
            return
        memory = self.spaces[space]
        place = memory.places(address[threads], size * len(values), threads)
        memory.store(place, size, [value[threads] for value in values], threads)
        self.stored(space, place, size * len(values), threads)

    def bar(self, op: Any, mask: np.ndarray) -> None:
        """A barrier; each has a number of its own, by which memory knows what is before it."""
        if op.parts[1] == "arrive":
            name, _ = self._meeting(op)
            for thread in np.flatnonzero(mask).tolist():
                key = int(self.program_of[thread]), int(name[thread])
                self.arrived[key] = self.arrived.get(key, 0) + 1
            return
        if any_of(mask & self.met):
            self.ticks[mask] += _BARRIER_TICKS
            self.met &= ~mask
            return
        self.barriers += 1
        if op.parts[1] == "warp":
            self.clock.warp[mask] = self.barriers
            return
        if len(op.operands) > 1:
            name, _ = self._meeting(op)
            for thread in np.flatnonzero(mask).tolist():
                self.arrived.pop((int(self.program_of[thread]), int(name[thread])), None)
        self.clock.program[mask] = self.program_of[mask] * (1 << 16) + self.barriers
        self.ticks[mask] += _BARRIER_TICKS

    barrier = bar

    def pmevent(self, op: Any, mask: np.ndarray) -> None:
        assert not mask.any(), "an event that is to be none"

    def shfl(self, op: Any, mask: np.ndarray) -> None:
        target, _, predicate = op.operands[0].partition("|")
        value, by, clamp = (op.array(text, "u32") for text in op.operands[1:4])
        lane = (np.arange(len(mask)) % WARP).astype(np.int64)
        by, segment, clamp = by.astype(np.int64), (clamp >> 8).astype(np.int64) & 31, clamp & 31
        least = lane & segment
        last = least | (clamp.astype(np.int64) & ~segment)
        match op.parts[2]:
            case "up":
                source, is_inside = lane - by, lane - by >= last
            case "down":
                source, is_inside = lane + by, lane + by <= last
            case "bfly":
                source, is_inside = lane ^ by, (lane ^ by) <= last
            case _:
                source = least | (by & ~segment)
                is_inside = source <= last
        chosen = np.where(is_inside, source, lane) + np.arange(len(mask)) // WARP * WARP
        assert mask[chosen[mask]].all(), f"{op.text}: a lane that is not there is read"
        put(op.register(target.strip()), value[chosen], mask)
        if predicate:
            put(op.register(predicate.strip()), is_inside, mask)

    def vote(self, op: Any, mask: np.ndarray) -> None:
        value = (op.array(op.operands[1], "pred") & mask).reshape(-1, WARP)
        match op.parts[2]:
            case "ballot":
                found = (value.astype(np.uint32) << np.arange(WARP, dtype=np.uint32)).sum(axis=1)
            case "any":
                found = value.any(axis=1)
            case "all":
                found = (value | ~mask.reshape(-1, WARP)).all(axis=1)
            case _:
                raise AssertionError(f"no rule for {op.text}")
        put(op.register(op.operands[0]), np.repeat(found, WARP), mask)

    def elect(self, op: Any, mask: np.ndarray) -> None:
        """The first thread of a warp."""
        target, _, predicate = op.operands[0].partition("|")
        first = np.repeat(mask.reshape(-1, WARP).argmax(axis=1), WARP)
        if target.strip() != "_":
            put(op.register(target.strip()), first.astype(np.uint32), mask)
        put(op.register(predicate.strip()), np.arange(len(mask)) % WARP == first, mask)

    def redux(self, op: Any, mask: np.ndarray) -> None:
        type_ = op.parts[-1].replace("b", "u")
        values = op.array(op.operands[1], type_).reshape(-1, WARP)
        assert mask.reshape(-1, WARP)[mask.reshape(-1, WARP).any(axis=1)].all(), op.text
        functions = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
                     "or": np.bitwise_or, "xor": np.bitwise_xor}  # fmt: skip
        found = functions[op.parts[2]].reduce(values, axis=1).astype(values.dtype)
        put(op.register(op.operands[0]), np.repeat(found, WARP), mask)

    def atom(self, op: Any, mask: np.ndarray) -> None:
        """Thread by thread: the old numbers, where the instruction has room for them."""
        has_result = op.parts[0] == "atom"
        registers = (
            [op.register(n) for n in inside(op.operands[0]) if n != "_"] if has_result else []
        )
        place, *given = op.operands[1:] if has_result else op.operands
        type_ = op.parts[-1]
        space = "shared" if any(part.startswith("shared") for part in op.parts) else "global"
        function = next(part for part in op.parts if part in ATOMICS)
        # Of a packed type a thread has two numbers.
        values = [
            [op.array(name, _number_type(type_)).reshape(len(mask), -1) for name in inside(text)]
            for text in given
        ]
        size, count, threads = BITS[type_] // 8, len(values[0]), np.flatnonzero(mask)
        memory, address = self.spaces[space], op.address(place)
        for thread in self.rng.permutation(threads).tolist():
            one = np.array([thread])
            first = memory.places(address[one], size * count, one)
            was = memory.numbers(first, size, count)[:, 0]
            dtype = values[0][0].dtype
            old = was.view(dtype).reshape(count, -1)
            numbers = [old] + [
                np.stack([v[one].view(dtype) for v in each]).reshape(count, -1) for each in values
            ]
            if type_.startswith("bf16"):
                combined = to_bf16(ATOMICS[function](*map(from_bf16, numbers)))
            else:
                combined = ATOMICS[function](*numbers)
            new = np.ascontiguousarray(combined.astype(dtype))
            memory.data.view(was.dtype)[first[0] // size + np.arange(count)] = new.view(
                was.dtype
            ).reshape(-1)
            for register, number in zip(registers, was, strict=bool(registers)):
                register[thread] = number

    red = atom
