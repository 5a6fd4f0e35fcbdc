"""The kernel that keeps what a launch in a CUDA graph leaves, run step by step: its PTX on a
machine of Python's, a thread after the other from barrier to barrier."""

import itertools
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from proton.base.targets import GPUTarget
from proton.runtime.nvidia import cuda, graph, hand_written

SLAB_ROOM = 0x1234
TEXT = graph._PTX.format(**graph._PARTS)
COMPARED = {"lt": operator.lt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}


@dataclass
class Machine:
    """Global memory, and the kernel's parameters."""

    memory: np.ndarray  # of u32
    parameters: dict[str, int]
    written: list[int] = field(default_factory=list)  # addresses, 16 bytes each

    def __post_init__(self) -> None:
        body = TEXT[TEXT.index(".reg") :]
        lines = [line.strip() for line in body.splitlines()]
        self.code = [line.rstrip(";") for line in lines if line and line[0] not in ".})"]
        self.labels = {c[:-1]: n for n, c in enumerate(self.code) if c.endswith(":")}

    def word(self, registers: dict[str, int], name: str) -> int:
        return registers[name] if name[0] == "%" else int(name)

    def place(self, registers: dict[str, int], text: str) -> int:
        base, _, offset = text.strip("[]").partition("+")
        return (registers[base] + int(offset or 0)) // 4

    def thread(self, registers: dict[str, int]) -> Iterator[None]:
        """One thread, whose special registers are there."""
        at = 0
        while True:
            line, at = self.code[at], at + 1
            guard = re.match(r"@(!?)(%p\d+) ", line)
            if guard:
                line = line[guard.end() :]
                if bool(registers[guard[2]]) == bool(guard[1]):
                    continue
            if line == "ret":
                return
            if line.startswith("bar."):
                yield
            elif line.startswith("bra "):
                at = self.labels[line[4:]]
            elif not line.endswith(":") and line != "membar.gl":
                self.step(line, registers)

    def step(self, line: str, registers: dict[str, int]) -> None:
        name, _, rest = line.partition(" ")
        operands = [part.strip() for part in re.findall(r"\{[^}]*\}|[^,\s{][^,]*", rest)]
        parts, memory = name.split("."), self.memory
        if parts[0] == "ld" and parts[1] == "param":
            registers[operands[0]] = self.parameters[operands[1].strip("[]")]
        elif parts[0] == "ld":
            place = self.place(registers, operands[1])
            for number, target in enumerate(operands[0].strip("{}").split(", ")):
                registers[target] = int(memory[place + number])
        elif parts[0] == "st":
            place = self.place(registers, operands[0])
            values = operands[1].strip("{}").split(", ")
            if len(values) == 4:
                self.written.append(4 * place)
            for number, value in enumerate(values):
                memory[place + number] = self.word(registers, value)
        elif parts[0] == "atom":
            place = self.place(registers, operands[1])
            registers[operands[0]] = int(memory[place])
            memory[place] += self.word(registers, operands[2])
        else:
            registers[operands[0]] = self.computed(
                parts, [self.word(registers, operand) for operand in operands[1:]]
            )

    def computed(self, parts: list[str], values: list[int]) -> int:
        bits = 32 if parts[-1] in ("u32", "s32", "b32") and "wide" not in parts else 64
        match parts[0]:
            case "setp":
                return int(COMPARED[parts[1]](*values))
            case "selp":
                return values[0] if values[2] else values[1]
            case "and":
                return values[0] & values[1]
            case "or":
                return values[0] | values[1]
            case "mov" | "cvt":
                return values[0]
            case "add":
                return sum(values) % (1 << bits)
            case "mul":
                return values[0] * values[1] % (1 << bits)
            case "mad":
                return (values[0] * values[1] + values[2]) % (1 << bits)
        raise AssertionError(parts)

    def launch(self, programs: int, threads: int) -> None:
        running = [
            self.thread(
                {"%ctaid.x": program, "%tid.x": thread, "%ntid.x": threads, "%nctaid.x": programs}
            )
            for program, thread in itertools.product(range(programs), range(threads))
        ]
        for thread in running:
            next(thread)
        for thread in running:
            assert next(thread, "ended") == "ended"


@pytest.mark.parametrize("has_slab", [False, True])
@pytest.mark.parametrize(
    ("pieces", "programs"), [(1, 1), (7, 1), (8, 2), (61, 3), (64, 2), (65, 2), (200, 2)]
)
def test_replays_are_kept_and_what_is_zero_is_not_written(
    rng: np.random.Generator, pieces: int, programs: int, has_slab: bool
) -> None:
    slots, size = 3, 16 * pieces
    log, buffer = 64, 64 + graph.HEAD_BYTES + slots * size + 64
    memory = np.zeros((buffer + size) // 4 + 4, np.uint32)
    slab = 16 * int(rng.integers(pieces)) if has_slab else graph.NO_SLAB
    parameters = {"buffer": buffer, "log": log, "bytes": size, "slots": slots}
    machine = Machine(memory, parameters | {"slab": slab, "room": SLAB_ROOM})
    own = memory[buffer // 4 : (buffer + size) // 4].reshape(-1, 4)
    clear = np.zeros_like(own)
    if has_slab:
        clear[slab // 16, 1] = SLAB_ROOM
    own[:] = clear
    kept = []
    for number in range(slots + 2):
        assert np.array_equal(own, clear), "each replay begins with zeros"
        some = rng.random(own.shape) < rng.choice([0.0, 0.1, 1.0])  # single words, too
        own[:] = np.where(some, rng.integers(1, 1 << 32, own.shape, np.uint32), own)
        kept.append(own.copy())
        machine.written.clear()
        machine.launch(programs, 4)
        held = np.flatnonzero(kept[-1].any(axis=1)) * 16
        first = log + graph.HEAD_BYTES + number * size
        expected = {*(buffer + held), *(first + held if number < slots else ())}
        assert sorted(machine.written) == sorted(expected)
        assert memory[log // 4] == number + 1
        assert memory[(log + graph.COME) // 4] == 0
    found = memory[(log + graph.HEAD_BYTES) // 4 :][: slots * size // 4]
    assert np.array_equal(found.reshape(slots, -1, 4), kept[:slots])


@pytest.mark.parametrize("arch", [80, 86, 89, 90, 100, 120])
def test_it_is_assembled_for_every_architecture(monkeypatch: pytest.MonkeyPatch, arch: int) -> None:
    codes: list[Any] = []
    monkeypatch.setattr(cuda, "target_of", lambda device: GPUTarget("cuda", arch))
    monkeypatch.setattr(cuda, "load", lambda code, name, shared: codes.append(code) or 1)
    assert hand_written.loaded(0, "keep", graph._PTX, **graph._PARTS) == 1
    assert codes[0][:4] == b"\x7fELF"
