"""Which instruction makes what a stalled one waits for, by the registers that both name.

    LDG.E R91, desc[UR4][R88.64]        line 94
    FADD R7, R91, R7                    line 95, stalled: long_scoreboard

A stall is of the instruction that reads a register too early. Going back from there, through the
end of the innermost loop around it where its beginning is reached, the last write of each register
that it reads is looked for; one by an instruction of a kind that the reason is of is awaited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

# By reason the operations whose results are late in that way.
LATE = {
    "long_scoreboard": re.compile(r"(LDG?|LDL|ATOMG?|TEX|TLD4?|SULD|SYNCS)(\.|$)"),
    "short_scoreboard": re.compile(
        r"(LDS|LDSM|ATOMS|SHFL|REDUX|MUFU|I2F|F2I|F2F|S2U?R|POPC|FLO|BREV|R2UR|VOTEU?|MATCH)(\.|$)"
    ),
}
_TEXT = re.compile(r"(?:@!?(U?P\d)\s+)?([A-Z][\w.]*)\s*(.*)")
_NAME = re.compile(r"(?<![A-Z\w])(U?R|U?P)(\d+)(?:\.reuse)?(\.64)?")
_WRITTEN = re.compile(r"!?(?:U?R\d+(?:\.64)?|U?P\d+|U?PT|U?RZ)")
_NO_RESULT = re.compile(r"(ST[GSL]?|STSM|RED|BRA|BRX|RET|UTMA\w*|BAR|MEMBAR|FENCE|LDGSTS)(\.|$)")
_PREDICATES = re.compile(r"(ISETP|FSETP|DSETP|PLOP3|SYNCS|VOTE|UISETP|UPLOP3)(\.|$)")
_WIDTH = {"64": 2, "128": 4}  # registers, by a suffix of an access
_JUMP = re.compile(r"\bBRA\S*\s+.*`\((\.\w+)\)")
Register = tuple[str, int]  # ("R", 91), ("P", 0), ("UR", 4)


def awaited(code: Sequence[str], labels: Mapping[str, int], at: int, reason: str) -> int | None:
    """The number of the instruction that a stalled one, `at`, waits for; None where that is not to
    be seen. `labels` are numbers of instructions that jumps go to."""
    late = LATE.get(reason)
    left = _read(code[at])
    if late is None or not left:
        return None
    for number in _back_from(code, labels, at):
        made = _made(code[number]) & left
        if made and late.match(_parts(code[number])[1]):
            return number
        left -= made
        if not left:
            break
    return None


def _back_from(code: Sequence[str], labels: Mapping[str, int], at: int) -> Iterator[int]:
    """The numbers of instructions ahead of one, the last first."""
    begin, end = 0, at
    for number, text in enumerate(code):
        if (jump := _JUMP.search(text)) is not None:
            target = labels.get(jump[1], number + 1)
            if target <= at <= number and (end == at or number - target < end - begin):
                begin, end = target, number
    yield from range(at - 1, begin - 1, -1)
    yield from range(end, at - (end > at), -1)
    yield from range(begin - 1, -1, -1)


def _parts(text: str) -> tuple[str, str, list[str]]:
    """The predicate that guards an instruction, its operation with suffixes, and its operands."""
    match = _TEXT.match(text)
    if match is None:
        return "", "", []
    return match[1] or "", match[2], [part.strip() for part in match[3].split(",")]


def _results(operation: str, operands: Sequence[str]) -> int:
    """How many of the first operands are written."""
    if _NO_RESULT.match(operation):
        return 0
    first = [n for n, text in enumerate(operands) if not _WRITTEN.fullmatch(text)]
    leading = first[0] if first else len(operands)
    if not leading or _PREDICATES.match(operation):
        return min(leading, 2)
    count = 1
    while count < leading and operands[count - 1].lstrip("!U").startswith("P"):
        count += 1  # a predicate, then the register
    while count < leading and operands[count].lstrip("!U").startswith("P"):
        count += 1  # a carry behind the register
    return min(count, leading)


def _width(operation: str) -> int:
    suffixes = operation.split(".")[1:]
    if operation.startswith("LDSM"):
        return int(suffixes[-1]) if suffixes and suffixes[-1].isdecimal() else 1
    return next((_WIDTH[suffix] for suffix in suffixes if suffix in _WIDTH), 1)


def _named(text: str, width: int) -> set[Register]:
    found = set[Register]()
    for kind, number, is_pair in _NAME.findall(text):
        count = 1 if kind.endswith("P") else 2 if is_pair else width
        found |= {(kind, n) for n in range(int(number), int(number) + count)}
    return found


def _made(text: str) -> set[Register]:
    """The registers that an instruction writes."""
    _, operation, operands = _parts(text)
    width = 2 if ".WIDE" in operation else _width(operation)
    count = _results(operation, operands)
    return {name for operand in operands[:count] for name in _named(operand, width)}


def _read(text: str) -> set[Register]:
    """The registers that an instruction reads, and the predicate that guards it."""
    guard, operation, operands = _parts(text)
    count = _results(operation, operands)
    found = _named(guard, 1)
    for operand in operands[count:]:
        is_value = _NO_RESULT.match(operation) and "[" not in operand
        found |= _named(operand, _width(operation) if is_value else 1)
    return found
