"""Asynchronous copies instrumented by hand: clock reads and global stores, written into a kernel's
PTX at the instructions that issue copies and that wait for them.

What stands there is independent of the compiler's records: each warp logs the clock ahead of the
first copy of a group, and behind the wait, with how many groups that leaves under way. The log is
memory of the GPU, whose address is a constant of the code; one program writes it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from proton.backends.nvidia import compiler
from proton.base.knobs import knobs

EVENTS = 256  # of each kind that a warp has room for
WARPS = 8
LOG_BYTES = WARPS * 2 * EVENTS * 8
OLDEST = 255  # instead of how many groups a wait leaves: it waits for the oldest

_PREDICATE = r"(?:@(%p\d+)\s+)?"
_COPY = re.compile(_PREDICATE + r"cp\.async\.(?:c[ag]\.shared|bulk\.tensor\.\dd\.shared)")
_CLOSES = re.compile(r"cp\.async\.commit_group|mbarrier\.arrive\.expect_tx")
_WAIT = re.compile(r"cp\.async\.wait_group\s+(\d+)")
_POLL = re.compile(r"mbarrier\.try_wait")
_HEAD = """
    .reg .pred %hand_first;
    .reg .b32 %hand_number, %hand_clock;
    .reg .b64 %hand_issues, %hand_waits;
"""
_BEGIN = f"""
    mov.u32 %hand_number, %tid.x;
    and.b32 %hand_clock, %hand_number, 31;
    setp.eq.u32 %hand_first, %hand_clock, 0;
    shr.u32 %hand_number, %hand_number, 5;
    mad.wide.u32 %hand_issues, %hand_number, {2 * EVENTS * 8}, ADDRESS;
    add.u64 %hand_waits, %hand_issues, {EVENTS * 8};
"""


# Else the clock is read before a barrier ahead of it holds.
_SETTLE = "    bar.warp.sync -1;\n"


def _stamp(log: str, number: int, predicate: str = "%hand_first") -> str:
    """Logs the clock: one thread of a warp, or the one that issues a copy for all."""
    return f"""
    @{predicate} mov.u32 %hand_clock, %clock;
    mov.b32 %hand_number, {number};
    @{predicate} st.global.v2.b32 [{log}], {{%hand_number, %hand_clock}};
    @{predicate} add.u64 {log}, {log}, 8;
"""


def instrumented(ptx: str, address: int) -> str:
    """The PTX of a kernel with a log at this address."""
    head, body = re.split(r"(?<=\n\{\n)", ptx, maxsplit=1)
    found, is_open, is_begun, is_polling = [head, _HEAD], False, False, False
    for line in body.splitlines(keepends=True):
        text = line.strip()
        if not is_begun and text and not text.startswith((".", "//")):
            found.append(_BEGIN.replace("ADDRESS", str(address)))
            is_begun = True
        if (copy := _COPY.match(text)) and not is_open:
            found.append(_SETTLE + _stamp("%hand_issues", 0, copy[1] or "%hand_first"))
            is_open = True
        found.append(line)
        if _CLOSES.search(text):
            is_open = False
        if wait := _WAIT.match(text):
            found.append(_stamp("%hand_waits", int(wait[1])))
        is_polling |= bool(_POLL.search(text))
        if is_polling and text.endswith("}"):
            found.append(_stamp("%hand_waits", OLDEST))
            is_polling = False
    return "".join(found)


@contextmanager
def by_hand(monkeypatch: pytest.MonkeyPatch, address: int) -> Iterator[None]:
    """Whatever is compiled meanwhile is instrumented by hand."""
    emit = compiler.emit_ptx

    def patched(*args: Any) -> str:
        return instrumented(emit(*args), address)

    with knobs.scope(always_compile=True), monkeypatch.context() as context:
        context.setattr(compiler, "emit_ptx", patched)
        yield


@dataclass(frozen=True)
class Flight:
    """A group of copies: the clock when a warp began to issue it, and cycles until it was there."""

    begin: int
    cycles: int


def flights(log: np.ndarray) -> list[list[Flight]]:
    """Those of each warp that issued any, in order: a wait ends the oldest that are under way."""
    areas = log.view(np.uint32).reshape(WARPS, 2, EVENTS, 2)
    found = []
    for issues, waits in areas:
        begun = [int(clock) for _, clock in issues if clock]
        ended = [(int(clock), int(left)) for left, clock in waits if clock]
        found.append(list(_flights(begun, ended)))
    return [own for own in found if own]


def _flights(begun: list[int], ended: list[tuple[int, int]]) -> Iterator[Flight]:
    under_way: list[int] = []
    left = list(begun)
    for end, keeps in ended:
        while left and 0 < (end - left[0]) % (1 << 32) < 1 << 31:
            under_way.append(left.pop(0))
        if keeps == OLDEST:  # also of warps that began none
            keeps = max(0, len(under_way) - 1)
        while len(under_way) > keeps:
            begin = under_way.pop(0)
            yield Flight(begin, (end - begin) % (1 << 32))
