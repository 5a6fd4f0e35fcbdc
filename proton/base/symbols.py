"""Names of functions as symbols of object code.

A kernel may have any name that Python allows. As a symbol that name may be a C function's
(`malloc`), libdevice's (`__nv_exp`), a word of PTX (`WARP_SZ`), or no symbol at all (`größe`).
None of those others ends in `$`. What users see has the name as it was written.

Kernels of C++ have symbols, too: `_Z3fooi` is `foo(int)`. With its templates a name may have
hundreds of characters, of which tables and sentences show a short form.
"""

import ctypes
import functools
import hashlib
import itertools
import re
from collections.abc import Iterator

END = "$"
# PTX ISA, "Identifiers": implementations take at least 1024 characters; a file's name has 255.
LONGEST = 200
_OTHER = re.compile(r"[^A-Za-z0-9_]|^[0-9]")
_CODE = re.compile(r"\$(10[0-9a-f]{4}|[0-9a-f]{1,5})\$")  # of a character
LONGEST_SHOWN = 88  # characters of a name in a table or a sentence
DEEPEST = 3  # brackets inside each other that a short form may have
_DIGITS = 6  # of a hash: of 30 names with one short form two are alike once in 40,000 runs
_NUMBER = re.compile(r" #\d+$")  # of a variant
_LEAST = 4  # characters of a name that stand before its mark
_UNNAMED = "(anonymous namespace)::"
_MARK = re.compile(r"#[0-9a-f]{6}$")  # ... at the end of a short form
_NAMESPACES = re.compile(r"^(\s*)(?:\w+::)+")
_AROUND = re.compile(r"\b\w+::(?=[A-Za-z_])")  # a namespace or a class
_OPEN, _CLOSE = "<([{", ">)]}"
_MORE = "..."


def mangled(name: str) -> str:
    """The symbol of a function, `add$`: letters, digits and `_` as they are, others as `$code$`."""
    plain = _OTHER.sub(lambda found: f"${ord(found[0]):x}$", name) or END
    if len(plain) > LONGEST:
        plain = plain[:LONGEST] + hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16]
    return plain + END


def unmarked(symbol: str) -> str:
    """What a symbol is in finished machine code, where no other is: that of a name of letters,
    digits and `_` is the name. Tools and other launchers go by it."""
    plain = symbol.removesuffix(END)
    return symbol if END in plain else plain


def written(symbol: str) -> str:
    """The name of a function by its symbol; a symbol that is none of ours as it is."""
    if not symbol.endswith(END):
        return symbol
    plain = symbol.removesuffix(END)
    return "" if plain == END else _CODE.sub(lambda found: chr(int(found[1], 16)), plain)


@functools.cache
def demangled(symbol: str) -> str:
    """The name of a function of C++ by its symbol; as it is what is none, or where the machine has
    no runtime of C++."""
    if not symbol.startswith("_Z") or "\0" in symbol:
        return symbol
    try:
        library = ctypes.CDLL("libstdc++.so.6")
        demangle, free = library.__cxa_demangle, ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return symbol
    demangle.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    text = demangle(symbol.encode(errors="replace"), None, None, None)
    if not text:
        return symbol
    found = ctypes.string_at(text).decode(errors="replace")
    free(text)
    return found


@functools.cache
def shortened(name: str) -> str:
    """A long name as tables and sentences have it: `at::native::reduce_kernel<512, 1, ...>#3f2a91`.

    It is without its parameters, its return type and what is deep inside of its template's
    arguments. What tells names of one short form apart is the begin of the hash of each.
    """
    if len(name) <= LONGEST_SHOWN or not (name.startswith("_Z") or set(_OPEN) & set(name)):
        return name
    number = _NUMBER.search(name)
    if number:
        return shortened(name[: number.start()]) + number[0]
    mark = f"#{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:_DIGITS]}"
    function, group = _parts(name.replace(_UNNAMED, ""))
    if not group:  # a symbol, or brackets that are none of C++
        return name[:LONGEST_SHOWN] + _MORE + mark
    arguments = [_AROUND.sub("", text) for text in _split(group[1:-1], ",")]
    for depth in reversed(range(DEEPEST)):
        shown = [_without_depths(text.strip(), depth) for text in arguments]
        text = f"{function}{group[0]}{', '.join(shown)}{group[-1]}"
        if len(text) <= LONGEST_SHOWN:
            return text + mark
    while shown and len(text) > LONGEST_SHOWN:
        shown.pop()
        text = f"{function}{group[0]}{', '.join([*shown, _MORE])}{group[-1]}"
    if len(text) > LONGEST_SHOWN:  # without arguments, too
        text = text[:LONGEST_SHOWN] + _MORE
    return text + mark


def within(name: str, room: int) -> str:
    """A name in a picture in so many characters: without namespaces, then cut, but for what tells
    it apart."""
    if len(name) <= room:
        return name
    plain = _NAMESPACES.sub(r"\1", name)
    mark = _MARK.search(plain)
    if mark is None:
        return name
    cut = room - len(mark[0]) - 2
    return plain if len(plain) <= room or cut < _LEAST else f"{plain[:cut]}..{mark[0]}"


def _parts(name: str) -> tuple[str, str]:
    """The function without what it returns, and its template's arguments, else its parameters."""
    places = [place for place, level in enumerate(_levels(name)) if not level]
    opening = [place for place in places if name[place] in _OPEN]
    parameters = next((place for place in reversed(opening) if name[place] == "("), len(name))
    ends_at = parameters
    if name[parameters - 1] == ">":
        template = (p for p in reversed(opening) if p < parameters and name[p] == "<")
        ends_at = next(template, parameters)
    returns = max((p for p in places if p < ends_at and name[p] == " "), default=-1)
    stops = parameters if ends_at < parameters else len(name)
    return name[returns + 1 : ends_at], name[ends_at:stops]


def _levels(text: str) -> Iterator[int]:
    """Of each character how many brackets are around it; of a bracket how many around both."""
    level = 0
    for character in text:
        level -= character in _CLOSE
        yield level
        level += character in _OPEN


def _split(text: str, separator: str) -> list[str]:
    """What is between separators that are in no bracket."""
    cuts = [p for p, level in enumerate(_levels(text)) if not level and text[p] == separator]
    return [text[a + 1 : b] for a, b in itertools.pairwise([-1, *cuts, len(text)])]


def _without_depths(text: str, depth: int) -> str:
    """The text with `...` for what is in more brackets than so many."""
    found = []
    for level, (character, after) in zip(
        _levels(text), itertools.pairwise(f"{text} "), strict=True
    ):
        if level <= depth:
            found.append(character)
        if level == depth and character in _OPEN and after not in _CLOSE:
            found.append(_MORE)
    return "".join(found)
