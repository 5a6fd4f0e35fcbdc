"""Groups of warps that run code of their own, as Triton's text has them, and ours.

    ttg.warp_specialize(%a, %b)                    "ttg.warp_specialize"() ({...}, {
    default {...}                                    "ttg.warp_specialize"() ({...}, {...})
    partition0(%x: ..., %y: ...) num_warps(4) {...}      {warps = 4 : i32}
    partition1(%x: ..., %y: ...) num_warps(4) {...}  }) {warps = 4 : i32}

Ours has two groups, the second of which may have groups of its own, and a program a power of two
of warps: what is missing is a group that does nothing. Triton's code around the groups is run by
the default one alone, and here by all, so that no tensor may be there. How many registers a thread
of a group asks for is a hint that is not taken.
"""

import re
from dataclasses import dataclass

from proton.compat.triton.text.cursor import Cursor, Token
from proton.compat.triton.text.made import Context, Made, Rule, Step
from proton.compat.triton.text.syntax import ParsedOp

_SIZE = re.compile(r"\bnum_warps\((\d+)\)")
_IDLE = '{ "ttg.warp_return"() : () -> () }'
# Of these the lowering counts on layouts for all warps of the program.
WHOLE_PROGRAM = {"tt.dot", "tt.scan", "tt.call", "ttg.fp4_to_fp"}


@dataclass(frozen=True)
class WarpPartition:
    """Warps, and the pieces of their region."""

    warps: int
    region: list[object]


def program_warps(text: str, warps: int) -> int:
    """How many warps a program has whose default group has so many, and others what it says."""
    others = [int(number) for number in _SIZE.findall(text)]
    return 1 << (warps + sum(others) - 1).bit_length() if others else warps


def nested(groups: list[WarpPartition], warps: int) -> list[object]:
    """The text, and the pieces, of an op for groups of `warps` warps in all."""
    first, *rest = groups
    left = warps - first.warps
    second: list[object]
    if not rest:
        second = [_IDLE]
    elif len(rest) == 1 and rest[0].warps == left:
        second = rest[0].region
    else:
        second = ["{ ", *nested(rest, left), ' "ttg.warp_return"() : () -> () }']
    end = f") {{warps = {first.warps} : i32}} : () -> ()\n"
    return ['"ttg.warp_specialize"() (', *first.region, ", ", *second, end]


def check(cursor: Cursor, name: Token) -> None:
    """Refuses what only a whole program does."""
    if name.text.strip('"') in WHOLE_PROGRAM:
        cursor.unsupported(
            f"{name.text} in a group of warps is not supported",
            name,
            "compile the .ttir of the kernel, which has no groups",
        )


def _end(context: Context, op: ParsedOp) -> list[Step | Made]:
    if op.values.get("values"):
        context.unsupported(
            op, "of values is not supported", "compile the .ttir of the kernel, which has no groups"
        )
    return [Made("ttg.warp_return")]


FORMS: dict[str, tuple[str, Rule]] = {
    "ttg.warp_yield": ("$values* {} (: <values*>)?", _end),
    "ttg.warp_return": ("{}", _end),
}
