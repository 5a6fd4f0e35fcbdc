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


@dataclass
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


def at_first_use(ptx: str) -> str:
    """The same program, each computation at its first use."""
    writes = Counter(_written(ptx))
    units, block = list[_Unit](), list[_Unit]()
    for unit in _units(ptx, writes):
        if _BLOCK_END.match(unit.text) or _CLOCK.search(unit.text):
            units += [*_in_order(block), unit]
            block = []
        else:
            block.append(unit)
    locations = [line for line in ptx.splitlines() if _LOCATION.match(line)]
    return "".join(f"{line}\n" for line in _lines([*units, *block], locations))


def pressure(ptx: str) -> int:
    """How many registers of 32 bits hold something at once, at most, by the order of the text: each
    from where it is named first to where it is named last. Loops count as if they ran once."""
    first, last = dict[str, int](), dict[str, int]()
    for number, line in enumerate(ptx.splitlines()):
        for register in _REGISTER.findall(line):
            first.setdefault(register, number)
            last[register] = number
    changes = Counter[int]()
    for register, number in first.items():
        size = 0 if register.startswith("%p") else 2 if register[2] == "d" else 1
        changes[number] += size
        changes[last[register]] -= size
    return max(itertools.accumulate(changes[number] for number in sorted(changes)), default=0)


def _written(text: str) -> list[str]:
    """The registers that statements write: the first operand of each."""
    found = map(_STATEMENT.match, text.replace("\n", ";").split(";"))
    return [register for one in found if one is not None for register in _REGISTER.findall(one[1])]


def _units(ptx: str, writes: Counter[str]) -> Iterator[_Unit]:
    location, assembly = None, list[str]()
    for line in ptx.splitlines():
        if assembly or _BEGIN in line:
            assembly.append(line)
            if _END in line:
                inner = [text for text in assembly[1:-1] if text and not _LOCATION.match(text)]
                yield _unit(assembly, location, inner, writes)
                assembly = []
        elif _LOCATION.match(line):
            location = line
        else:
            yield _unit([line], location, [line], writes)


def _unit(
    lines: list[str], location: str | None, statements: list[str], writes: Counter[str]
) -> _Unit:
    """What these lines say, of which some are statements."""
    text, result = "\n".join(lines), None
    if len(statements) == 1 and statements[0].count(";") == 1:
        found = _COMPUTATION.match(statements[0])
        result = found[1] if found is not None and writes[found[1]] == 1 else None
    return _Unit(text, location, _REGISTER.findall(text), _written(text), result)


def _in_order(block: list[_Unit]) -> Iterator[_Unit]:
    """The instructions of a block; what nothing in it uses comes last. Of the operands of one the
    first of the block comes first."""
    places = {register: n for n, unit in enumerate(block) for register in unit.writes}  # the last
    waiting: dict[str, _Unit] = {}

    def operands(unit: _Unit) -> Iterator[str]:
        return iter(sorted(waiting.keys() & unit.uses, key=lambda register: places[register]))

    def needed(unit: _Unit) -> Iterator[_Unit]:
        stack = [(unit, operands(unit))]
        while stack:
            current, left = stack[-1]
            for register in left:
                if (operand := waiting.pop(register, None)) is not None:
                    stack.append((operand, operands(operand)))
                    break
            else:
                stack.pop()
                yield current

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
    for unit in block:
        for register in set(unit.uses).difference(unit.writes):
            readers.setdefault(register, set()).add(id(unit))
    for number, unit in enumerate(block):
        if _BEHIND.search(unit.text) and not asked.issuperset(waiting):
            inner = {register for other in waiting.values() for register in other.operands}
            for register in [one for one in waiting if one not in inner and one not in asked]:
                asked.add(register)
                if frees(waiting[register]):
                    yield from needed(waiting.pop(register))
        if _LOAD.search(unit.text):
            loaded.update(unit.writes)
        if unit.result is None or any(places.get(one, -1) > number for one in unit.operands):
            yield from needed(unit)
        else:
            waiting[unit.result] = unit
    while waiting:
        yield from needed(waiting.pop(next(iter(waiting))))


def _lines(units: list[_Unit], locations: list[str]) -> Iterator[str]:
    """The text. A line of the source that is inlined somewhere names a place that must have been
    named before."""
    places: dict[str, str] = {}
    for location in locations:
        if (found := _LOCATION.match(location)) is not None:
            places.setdefault(found[1], location)
    named, current = set[str](), None

    def name(location: str) -> Iterator[str]:
        found = _LOCATION.match(location)
        assert found is not None, "it was matched before"
        named.add(found[1])
        if found[2] is not None and found[2] not in named and found[2] in places:
            yield from name(places[found[2]])
        yield location

    for unit in units:
        if unit.location is not None and unit.location != current and "%" in unit.text:
            yield from name(unit.location)
            current = unit.location
        yield unit.text
