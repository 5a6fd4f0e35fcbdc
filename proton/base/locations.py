"""The lines of the source that lines of code are of, as the text of each level says it.

MLIR  %3 = arith.addi %1, %2 : i32 loc(#loc5)       and below  #loc5 = loc("add.py":7:12)
PTX   .loc 1 7 12                                   of `.file 1 "add.py"`, for what follows
SASS  //## File "add.py", line 7                    for what follows
"""

import re
from collections.abc import Iterator

Place = tuple[str, int]  # a file and a line
_DEFINED = re.compile(r"^(#loc\d*) = loc\((.*)\)\n", re.MULTILINE)
_USED = re.compile(r'"(?:[^"\\\n]|\\.)*"|#loc\d*| loc\(|[()]')
_IN_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d{1,9}):\d+|(#loc\d*)')
_PTX_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"(.*?)"', re.MULTILINE)
_PTX_LINE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d{1,9})\b")
_SASS_LINE = re.compile(r'^\s*//## File "(.*?)", line (\d{1,9})\b')


def without_locations(text: str) -> str:
    """The text of MLIR as it is printed without locations."""
    return "".join(part for part, is_code in _parts(_DEFINED.sub("", text)) if is_code)


def places(level: str, text: str) -> tuple[str, list[tuple[Place, ...]]]:
    """The text without locations of MLIR, and the places that each of its lines is of: of code that
    was inlined that of the function, then those of its callers."""
    if level in ("ptx", "sass"):
        return text, list(_of_assembly(text))
    defined = {name: _IN_FILE.findall(inside) for name, inside in _DEFINED.findall(text)}

    def resolved(location: str) -> Iterator[Place]:
        left, seen = _IN_FILE.findall(location)[::-1], set[str]()
        while left:
            file, line, name = left.pop()
            if not name:
                yield file, int(line)
            elif name not in seen:  # text of a file may say anything
                seen.add(name)
                left += defined.get(name, [])[::-1]

    lines, of = [""], [""]  # code, and the last location, of each line
    for part, is_code in _parts(_DEFINED.sub("", text)):
        if not is_code:
            of[-1] = part
            continue
        first, *others = part.split("\n")
        lines[-1] += first
        lines += others
        of += [""] * len(others)
    known = {location: tuple(dict.fromkeys(resolved(location))) for location in set(of)}
    return "\n".join(lines), [known[text] for text in of]


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Code (True) and locations (False) in turn. A string may have what looks like either."""
    start = depth = begin = 0
    for match in _USED.finditer(text):
        token = match[0]
        if token == " loc(":
            if not depth:
                yield text[start : match.start()], True
                begin = match.start()
            depth += 1
        elif depth and token in "()":
            depth += 1 if token == "(" else -1
            if not depth:
                start = match.end()
                yield text[begin:start], False
    yield text[start:], True


def ptx_files(text: str) -> list[str]:
    """The files that lines of PTX are of."""
    return [file for _, file in _PTX_FILE.findall(text)]


def _of_assembly(text: str) -> Iterator[tuple[Place, ...]]:
    files = dict(_PTX_FILE.findall(text))
    place: tuple[Place, ...] = ()
    for line in text.split("\n"):
        if match := _PTX_LINE.match(line):
            place = ((files.get(match[1], ""), int(match[2])),)
        elif match := _SASS_LINE.match(line):
            place = ((match[1], int(match[2])),)
        elif line.lstrip().startswith((".section", ".visible", ".func", "}")):
            place = ()
        yield place
