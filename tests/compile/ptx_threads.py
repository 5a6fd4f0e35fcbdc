"""Runs the PTX of a kernel on integers, thread by thread, on a machine of Python's.

A thread runs alone from one barrier to the next, and in which order those of a warp do is random.
What two threads do to one word of memory with no barrier between them, of which one writes, is an
error (`Race`), and so is an access that is not aligned or reaches beyond its memory, and a barrier
of a warp at which its threads meet from different places. A thread's clock counts how often it was
read, so equal work has equal readings.
"""

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

WARP = 32
SHARED = 4096  # where shared memory begins
_FIRST = 1 << 36  # where global memory does, and how far apart its arrays are
_APART = 1 << 24
_WORD = 4
_END = 1 << 20  # what the clock is put forward by at a barrier of the program


class Race(Exception):
    """Two threads accessed one word with no barrier in between."""


class Memory:
    """Bytes from an address on; of each word who wrote it last, and who read it since, each as
    (thread, barriers of its warp before, barriers of the program before)."""

    def __init__(self, first: int, data: np.ndarray) -> None:
        self.first, self.data = first, bytearray(data.tobytes())
        self.written: dict[int, tuple[int, int, int]] = {}
        self.read: dict[int, list[tuple[int, int, int]]] = {}

    def place(self, address: int, size: int) -> int:
        place = address - self.first
        assert address % size == 0, f"an access of {size} bytes at {place} is not aligned"
        assert 0 <= place <= len(self.data) - size, f"{size} bytes at {place} of {len(self.data)}"
        return place


class _Warp:
    def __init__(self) -> None:
        self.time = 0


@dataclass
class Program:
    """A program (block), the only one of its grid. Of the threads of each `unit` only those of the
    first warp use what they load from shared memory: others get garbage."""

    memories: list[Memory]
    shared: Memory
    unit: int
    clock: int
    rng: np.random.Generator
    time: int = 0

    def memory(self, address: int, space: str) -> Memory:
        if space == "shared":
            return self.shared
        return self.memories[(address - _FIRST) // _APART]

    def load(self, of: "Thread", space: str, address: int, size: int, count: int) -> list[int]:
        memory = self.memory(address, space)
        place = memory.place(address, size * count)
        if space == "shared" and of.number % self.unit >= WARP:
            return self.rng.integers(0, 1 << 8 * size, count, np.uint64).tolist()
        now = of.now()
        for word in range(place // _WORD, -(-(place + size * count) // _WORD)):
            last = memory.written.get(word)
            if last is not None:
                _check(last, now, f"a read of {space} byte {_WORD * word}")
            memory.read.setdefault(word, []).append(now)
        data = memory.data
        places = range(place, place + size * count, size)
        return [int.from_bytes(data[n : n + size], "little") for n in places]

    def store(self, of: "Thread", space: str, address: int, size: int, values: list[int]) -> None:
        memory = self.memory(address, space)
        place = memory.place(address, size * len(values))
        now = of.now()
        for word in range(place // _WORD, -(-(place + size * len(values)) // _WORD)):
            last = memory.written.get(word)
            for other in ([] if last is None else [last]) + memory.read.pop(word, []):
                _check(other, now, f"a write of {space} byte {_WORD * word}")
            memory.written[word] = now
        for number, value in enumerate(values):
            memory.data[place + number * size : place + (number + 1) * size] = (
                value & ((1 << 8 * size) - 1)
            ).to_bytes(size, "little")


def _check(last: tuple[int, int, int], now: tuple[int, int, int], what: str) -> None:
    (thread, warp_time, time), (own, own_warp_time, own_time) = last, now
    is_apart = time != own_time or (thread // WARP == own // WARP and warp_time != own_warp_time)
    if thread != own and not is_apart:
        raise Race(f"{what} by thread {own}: thread {thread} was there")


class Thread:
    """What the generated code asks for besides its registers."""

    def __init__(self, program: Program, warp: _Warp, number: int) -> None:
        self.program, self.warp, self.number = program, warp, number
        self.load = functools.partial(program.load, self)
        self.store = functools.partial(program.store, self)
        self.clock = program.clock
        self.special = {
            "%tid.x": number, "%ctaid.x": 0, "%ctaid.y": 0, "%ctaid.z": 0,
            "%nctaid.x": 1, "%nctaid.y": 1, "%nctaid.z": 1, "%smid": 0,
        }  # fmt: skip

    def now(self) -> tuple[int, int, int]:
        return self.number, self.warp.time, self.program.time

    def read_clock(self) -> int:
        self.clock += 1
        return self.clock


def run(
    code: Callable[..., Iterator[Any]],
    arguments: list[np.ndarray | int],
    threads: int,
    shared_bytes: int,
    rng: np.random.Generator,
    *,
    unit: int = WARP,
    clock: int = 0,
) -> None:
    """Runs what `translated` gave as a program of `threads` threads, on arrays, which change, and
    numbers; all clocks begin at `clock`."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    memories = [Memory(_FIRST + n * _APART, a) for n, a in enumerate(arrays)]
    places = iter(memory.first for memory in memories)
    given = [next(places) if isinstance(a, np.ndarray) else a for a in arguments]
    garbage = rng.integers(0, 256, shared_bytes, np.uint8)
    program = Program(memories, Memory(SHARED, garbage), unit, clock, rng)
    warps = [_Warp() for _ in range(threads // WARP)]
    all_threads = [Thread(program, warps[n // WARP], n) for n in range(threads)]
    _run([code(thread, given) for thread in all_threads], all_threads, warps, program)
    for array, memory in zip(arrays, memories, strict=True):
        array.view(np.uint8).reshape(-1)[:] = np.frombuffer(memory.data, np.uint8)


def _run(running: list[Any], threads: list[Thread], warps: list[_Warp], program: Program) -> None:
    meets = True
    while meets:
        met = [
            _until_barrier(running[WARP * n : WARP * (n + 1)], warps[n], program.rng)
            for n in program.rng.permutation(len(warps)).tolist()
        ]
        assert len(set(met)) == 1, f"the warps of a program wait at {met}"
        meets = met[0] is not None
        program.time += 1
        for thread in threads:
            thread.clock += _END


def _until_barrier(threads: list[Any], warp: _Warp, rng: np.random.Generator) -> Any:
    """Runs a warp to the next barrier of the program: where that is, None where it ends."""
    while True:
        met = {next(threads[lane], None) for lane in rng.permutation(WARP).tolist()}
        warp.time += 1
        assert len(met) == 1, f"the threads of a warp wait at {met}"
        (where,) = met
        if where is None or where[0] == "program":
            return where


# From PTX to Python


def _signed(name: str, bits: int) -> str:
    return f"(({name} ^ {1 << bits - 1}) - {1 << bits - 1})"


_BITS = {"b8": 8, "b16": 16, "u16": 16, "s16": 16, "b32": 32, "u32": 32, "s32": 32}
_BITS |= {"b64": 64, "u64": 64, "s64": 64, "pred": 1}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SIMPLE = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s{\[][^,]*")


def _word(text: str) -> str:
    """An operand in Python: a register, a special one, a number or shared memory."""
    if text.startswith("%") and text[1:] in ("clock", "clock64", "globaltimer"):
        return "t.read_clock()"
    if text.startswith("%"):
        is_special = not re.fullmatch(r"%(p|r|rd|rs)\d+", text)
        return f"special[{text!r}]" if is_special else text[1:]
    return str(SHARED) if text == "global_smem" else f"({int(text, 0)})"


def _div(left: int, right: int) -> int:
    """A quotient, rounded towards zero; what by zero comes out is not specified."""
    found = abs(left) // abs(right) if right else 0
    return found if (left < 0) == (right < 0) else -found


def _rem(left: int, right: int) -> int:
    return left - _div(left, right) * right


def _computed(parts: list[str], given: list[str]) -> str:
    """The value of an instruction, of as many bits as its result has, or more."""
    name, type_ = parts[0], parts[-1]
    bits = _BITS[type_]
    values = [f"({_word(text)} & {(1 << bits) - 1})" for text in given]
    if type_[0] == "s":
        values = [_signed(value, bits) for value in values]
    if name in _SIMPLE:
        return f"{values[0]} {_SIMPLE[name]} {values[1]}"
    match name:
        case "mov":
            return _word(given[0])
        case "cvt":
            return values[0]
        case "not":
            return f"~{values[0]}"
        case "neg":
            return f"-{values[0]}"
        case "shl":
            return f"{values[0]} << min({_word(given[1])}, {bits})"
        case "shr":
            return f"{values[0]} >> min({_word(given[1])}, {bits})"
        case "min" | "max":
            return f"{name}({values[0]}, {values[1]})"
        case "mul" if parts[1] == "hi":
            return f"{values[0]} * {values[1]} >> {bits}"
        case "mul":
            return f"{values[0]} * {values[1]}"
        case "mad":
            return f"{values[0]} * {values[1]} + {_word(given[2])}"
        case "rem" | "div":
            return f"{name}({values[0]}, {values[1]})"
        case "bfe":
            return f"{values[0]} >> {_word(given[1])} & (1 << {_word(given[2])}) - 1"
        case "setp":
            return f"{values[0]} {_COMPARED[parts[1]]} {values[1]}"
        case "selp":
            return f"{_word(given[0])} if {_word(given[2])} else {_word(given[1])}"
    raise AssertionError(f"no rule for {parts}")


def _result_bits(parts: list[str]) -> int:
    if parts[0] == "setp":
        return 1
    bits = _BITS[parts[1] if parts[0] == "cvt" else parts[-1]]
    return 2 * bits if "wide" in parts else bits


def _accessed(parts: list[str], operands: list[str]) -> str:
    """A load or a store."""
    size = _BITS[parts[-1]] // 8
    place, of = operands if parts[0] == "st" else operands[::-1]
    base, _, offset = place.strip("[]").partition("+")
    address = f"{_word(base)} + {offset or 0}"
    registers = [_word(name.strip()) for name in of.strip("{}").split(",")]
    if parts[0] == "st":
        return f"store({parts[1]!r}, {address}, {size}, [{', '.join(registers)}])"
    return f"{', '.join(registers)}, = load({parts[1]!r}, {address}, {size}, {len(registers)})"


def _statement(line: str, number: int, labels: dict[str, int], arguments: dict[str, int]) -> str:
    """One instruction, without its predicate."""
    name, _, rest = line.partition(" ")
    operands = [found.strip() for found in _OPERAND.findall(rest)]
    parts = name.split(".")
    match parts:
        case ["ret", *_]:
            return "return"
        case ["bra", *_]:
            return f"at = {labels[operands[0]]}; continue"
        case ["bar", "warp", "sync"]:
            assert operands == ["-1"]
            return f"yield 'warp', {number}"
        case ["bar", "sync"] | ["barrier", "sync"]:
            return f"yield 'program', {number}"
        case ["ld", "param", *_]:
            return f"{_word(operands[0])} = given[{arguments[operands[1].strip('[]')]}]"
        case ["ld" | "st", *_]:
            return _accessed(parts, operands)
    mask = (1 << _result_bits(parts)) - 1
    return f"{_word(operands[0])} = ({_computed(parts, operands[1:])}) & {mask}"


def _blocks(body: str) -> tuple[list[list[str]], dict[str, int]]:
    """The instructions in basic blocks, and which block is behind a label."""
    blocks: list[list[str]] = [[]]
    labels = {}
    for text in body.splitlines():
        line = re.sub(r"//.*", "", text).strip().rstrip(";").replace("\t", " ")
        if not line or line[0] in ".{}":
            continue
        if line.endswith(":"):
            blocks.append([])
            labels[line[:-1]] = len(blocks) - 1
            continue
        blocks[-1].append(line)
        if re.search(r"\bbra[. ]", line):
            blocks.append([])
    return blocks, labels


def translated(ptx: str) -> Callable[..., Iterator[Any]]:
    """A generator function of the only kernel in some PTX: (thread, arguments), which gives a pair
    at each barrier."""
    head, _, body = ptx[ptx.index(".entry") :].partition("{\n")
    arguments = {name: n for n, name in enumerate(re.findall(r"\.param .*?(\S+?),?\n", head))}
    body = body[: body.index("\n}\n")]
    blocks, labels = _blocks(body)
    source = ["def thread(t, given):", " special, load, store, at = t.special, t.load, t.store, 0"]
    source += [" if False: yield", " while True:"]
    count = 0
    for number, block in enumerate(blocks):
        source.append(f"  if at == {number}:")
        for line in block:
            guard = re.match(r"@(!?)%(p\d+) +", line)
            text = _statement(line[guard.end() :] if guard else line, count, labels, arguments)
            condition = f"if {'not ' if guard[1] else ''}{guard[2]}: " if guard else ""
            source.append(f"   {condition}{text}")
            count += 1
        source.append(f"   at = {number + 1}")
    scope: dict[str, Any] = {"div": _div, "rem": _rem}
    exec("\n".join(source), scope)
    found: Callable[..., Iterator[Any]] = scope["thread"]
    return found
