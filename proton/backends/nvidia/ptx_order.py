"""PTX whose computations stand where their results are used first.

LLVM writes an operation on a block's registers out for one register after the other, then the next
operation. ptxas keeps to that order by and large: where 32 elements go through a long chain, parts
of all 32 are alive at once. Here each computation moves down to its first use, so an element goes
through the whole chain before the next one does.

What is not a computation alone (memory, barriers, shuffles, inline assembly of anything but one
computation, branches) stays where it is, and so does what writes a register that others write too,
or reads one that is written later in its block. Nothing crosses a reading of the clock: what ran
before it runs before it still.

What frees more registers than it takes does not wait behind a barrier or a store: the sum of what
was loaded is one register, and the values are many.
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_REGISTER = re.compile(r"%(?:r|rd|rs|f|fd|p)\d+\b")
_COMPUTATION = re.compile(
    r"\s*(?:abs|add|and|bfe|bfi|copysign|cvt|div|ex2|fma|lg2|mad|max|min|mul|neg|not|or|prmt|rcp|"
    r"rem|rsqrt|selp|setp|shf|shl|shr|sqrt|sub|tanh|xor)\.(?!cc\.)[\w.]+\s+(%\w+), [^;]*;"
)
_STATEMENT = re.compile(r"\s*\{?\s*(?:@!?%?\w+\s+)?[a-z][\w.:]*\s+(\{[^}]*\}|[^,;\[]*)")
_LOCATION = re.compile(r"\s*\.loc\s+(\d+ \d+ \d+)(?:.*inlined_at (\d+ \d+ \d+))?")
_BLOCK_END = re.compile(
    r"\$(?!L__tmp)\w+:|\s*(?:@!?%p\d+\s+)?(?:bra|brx|ret|exit|trap)\b|[{}()]|\s*\."
)
_BEHIND = re.compile(r"\b(?:bar|st\.[\w.]*global)\.")
_LOAD = re.compile(r"\bld\.[\w.]*global\b")
_MANY = 2  # registers that are free then, for one that is not
_CLOCK = re.compile(r"%(?:clock|globaltimer)")
_BEGIN, _END = "// begin inline asm", "// end inline asm"


@dataclass(slots=True)
class _Unit:
    """An instruction, or a piece of inline assembly, and the line of the source that it is of."""

    text: str
    location: str | None
    uses: list[str]
    writes: list[str]
    result: str | None = None  # of a computation that nothing else writes

    @property
    def operands(self) -> list[str]:
        """The registers that a computation reads."""
        return [register for register in self.uses if register != self.result]


@functools.lru_cache(maxsize=1)
def at_first_use(ptx: str) -> str:
    """The same program, each computation at its first use."""
    lines = ptx.splitlines()
    units, block = list[_Unit](), list[_Unit]()
    for unit in _units(lines):
        if _BLOCK_END.match(unit.text) or _CLOCK.search(unit.text):
            units += [*(_in_order(block) if len(block) > 1 else block), unit]
            block = []
        else:
            block.append(unit)
    return "".join(f"{line}\n" for line in _lines([*units, *block], lines))


@functools.lru_cache(maxsize=2)  # of both orders, which are asked for twice
def pressure(ptx: str) -> int:
    """How many registers of 32 bits hold something at once, at most, by the order of the text: each
    from where it is named first to where it is named last. Loops count as if they ran once."""
    named = [_REGISTER.findall(line) if "%" in line else [] for line in ptx.splitlines()]
    last = {register: n for n, registers in enumerate(named) for register in registers}
    behind = len(named) - 1
    first = {register: behind - n for n, on in enumerate(reversed(named)) for register in on}
    changes = [0] * len(named)
    for register, number in first.items():
        size = 0 if register[1] == "p" else 2 if register[2] == "d" else 1
        changes[number] += size
        changes[last[register]] -= size
    return max(itertools.accumulate(changes), default=0)


def _written(line: str) -> list[str]:
    """The registers that the statements of a line write: the first operand of each."""
    if "%" not in line:
        return []
    found = map(_STATEMENT.match, line.split(";"))
    return [register for one in found if one is not None for register in _REGISTER.findall(one[1])]


def _units(lines: list[str]) -> Iterator[_Unit]:
    written = [_written(line) for line in lines]
    times = Counter(itertools.chain.from_iterable(written))
    location, begin = None, -1  # of a piece of inline assembly
    for number, line in enumerate(lines):
        if begin >= 0 or _BEGIN in line:
            begin = number if begin < 0 else begin
            if _END in line:
                inner = [text for text in lines[begin + 1 : number] if _is_statement(text)]
                writes = list(itertools.chain.from_iterable(written[begin : number + 1]))
                yield _unit("\n".join(lines[begin : number + 1]), location, inner, writes, times)
                begin = -1
        elif ".loc" in line and _LOCATION.match(line):
            location = line
        else:
            yield _unit(line, location, [line], written[number], times)


def _is_statement(line: str) -> bool:
    return bool(line) and not _LOCATION.match(line)


def _unit(
    text: str,
    location: str | None,
    statements: list[str],
    writes: list[str],
    times: Counter[str],
) -> _Unit:
    """What a text says, of whose lines some are statements; `times` is how often each register is
    written."""
    result = None
    if writes and len(statements) == 1 and statements[0].count(";") == 1:
        found = _COMPUTATION.match(statements[0])
        result = found[1] if found is not None and times[found[1]] == 1 else None
    uses = _REGISTER.findall(text) if "%" in text else []
    return _Unit(text, location, uses, writes, result)


def _in_order(block: list[_Unit]) -> list[_Unit]:
    """The instructions of a block; what nothing in it uses comes last. Of the operands of one the
    first of the block comes first."""
    places = {register: n for n, unit in enumerate(block) for register in unit.writes}  # the last
    waiting: dict[str, _Unit] = {}
    ordered = list[_Unit]()

    def operands(unit: _Unit) -> list[str]:
        """Those that wait, the first of the block last."""
        found = [one for one in unit.uses if one in waiting]
        return sorted(found, key=places.__getitem__, reverse=True) if len(found) > 1 else found

    def take(unit: _Unit) -> None:
        """Puts an instruction behind what it needs."""
        stack = [(unit, operands(unit))]
        while stack:
            current, left = stack[-1]
            if not left:
                ordered.append(current)
                stack.pop()
            elif (operand := waiting.pop(left.pop(), None)) is not None:
                stack.append((operand, operands(operand)))

    def frees(root: _Unit) -> bool:
        """Whether what waits for this alone reads loaded registers, several, for the last time."""
        tree, left, read = {id(root)}, [root], set[str]()
        while left:
            for register in left.pop().operands:
                read.add(register)
                operand = waiting.get(register)
                if operand is not None and id(operand) not in tree:
                    tree.add(id(operand))
                    left.append(operand)
        return sum(one in loaded and readers[one] <= tree for one in read) >= _MANY

    loaded, asked, readers = set[str](), set[str](), dict[str, set[int]]()
    for number, unit in enumerate(block):
        result = unit.result
        if result is not None and all(places.get(one, -1) <= number for one in unit.operands):
            waiting[result] = unit
            continue
        if _BEHIND.search(unit.text) and not asked.issuperset(waiting):
            readers = readers or _readers(block)
            inner = {register for other in waiting.values() for register in other.operands}
            for register in [one for one in waiting if one not in inner and one not in asked]:
                asked.add(register)
                if frees(waiting[register]):
                    take(waiting.pop(register))
        if unit.writes and _LOAD.search(unit.text):
            loaded.update(unit.writes)
        take(unit)
    while waiting:
        take(waiting.pop(next(iter(waiting))))
    return ordered


def _readers(block: list[_Unit]) -> dict[str, set[int]]:
    """Which instructions of a block read a register that they do not write."""
    readers: dict[str, set[int]] = {}
    for unit in block:
        for register in set(unit.uses).difference(unit.writes):
            readers.setdefault(register, set()).add(id(unit))
    return readers


def _lines(units: list[_Unit], before: list[str]) -> Iterator[str]:
    """The text, whose lines were these. A line of the source that is inlined somewhere names a
    place that must have been named before."""
    locations = {line: _LOCATION.match(line) for line in before if ".loc" in line}
    found = {line: (match[1], match[2]) for line, match in locations.items() if match is not None}
    places: dict[str, str] = {}
    for line, (place, _) in found.items():
        places.setdefault(place, line)
    named, current = set[str](), None

    def name(location: str) -> Iterator[str]:
        place, inlined_at = found[location]
        named.add(place)
        if inlined_at is not None and inlined_at not in named and inlined_at in places:
            yield from name(places[inlined_at])
        yield location

    for unit in units:
        if unit.location is not None and unit.location != current and "%" in unit.text:
            yield from name(unit.location)
            current = unit.location
        yield unit.text
