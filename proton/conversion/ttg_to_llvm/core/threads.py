"""What a thread knows of itself: its number among those that work together, and their barrier.

These are the threads of the program, or those of one of the groups of warps that
`ttg.warp_specialize` makes: groups have numbers, layouts and barriers of their own. What depends on
the thread alone is computed once, where the function begins.
"""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from proton.base.errors import PassError
from proton.base.targets import MAX_THREADS
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.primitives import Primitives
from proton.dialect.mlir import Operation, Value, ir, llvm
from proton.dialect.walk import producer_of
from proton.layout import LinearLayout
from proton.layout.linear import log2

# Of what is known of the thread: what it is, and the numbers that it follows from.
_Key = str | tuple[int, ...] | tuple[str, int | tuple[int, ...]]

BARRIERS = 16  # of a program that has groups of warps


@dataclass
class Threads:
    """`warps` warps of a function, from warp `first` on, which meet at a barrier of hardware: 0 is
    the program's. Groups that run at once, and those that they are in, have each their own."""

    function: Operation
    primitives: Primitives
    lanes: int  # of a warp
    warps: int
    first: int = 0
    barrier_number: int = 0
    free_barriers: Iterator[int] = field(default_factory=lambda: iter(()))
    known: dict[_Key, Value] = field(default_factory=dict)

    def groups(self, first: int) -> list["Threads"]:
        """The first so many warps, and the rest; raises PassError where one has none, or where
        groups of groups have no barrier left."""
        if not 0 < first < self.warps:
            raise PassError(f"{first} of {self.warps} warps of a group are no group of their own")
        free = self.free_barriers if self.barrier_number else iter(range(1, BARRIERS))
        numbers = list(itertools.islice(free, 2))
        if len(numbers) < 2:
            raise PassError(f"groups of warps are more than {BARRIERS} barriers of hardware allow")
        return [
            replace(
                self, warps=warps, first=start, barrier_number=number, free_barriers=free, known={}
            )
            for warps, start, number in zip(
                (first, self.warps - first), (self.first, self.first + first), numbers, strict=True
            )
        ]

    @property
    def count(self) -> int:
        """How many they are."""
        return self.lanes * self.warps

    @property
    def number(self) -> Value:
        """The thread's number, i32."""
        if "thread" not in self.known:
            block = self.function.regions[0].blocks[0]
            with ir.InsertionPoint.at_block_begin(block), self.function.location:
                # A group's is read where its function begins, by all.
                count = MAX_THREADS if self.barrier_number else self.count
                number = self.primitives.thread_number(count)
                if self.first:
                    number = v.add(number, v.i32(-self.lanes * self.first))
                self.known["thread"] = number
        return self.known["thread"]

    @property
    def _unbounded(self) -> Value:
        """The thread's number as one of which LLVM knows no bound, to be masked. Of a masked number
        to which a register's place is added LLVM would leave the mask out where the place has all
        bits above, as one of two or four places has: such sums are no longer a constant apart."""
        thread = self.number
        if "unbounded" not in self.known:
            with self._behind(thread):
                self.known["unbounded"] = self.primitives.copied(thread)
        return self.known["unbounded"]

    @property
    def warp(self) -> Value:
        """The number of the warp, i32, the same in all lanes for the assembler, too."""
        thread = self.number
        if "warp" not in self.known:
            with self._behind(thread):
                number = v.binary(llvm.LShrOp, thread, v.i32(log2(self.lanes)))
                self.known["warp"] = self.primitives.warp_uniform(number)
        return self.known["warp"]

    @contextlib.contextmanager
    def _behind(self, value: Value) -> Iterator[None]:
        """Emits where values go that depend on this one alone."""
        with ir.InsertionPoint.after(producer_of(value)), self.function.location:
            yield

    def bits(self, bases: tuple[int, ...]) -> Value:
        """The linear map of the thread's number, lane bits lowest."""
        thread = self._unbounded
        if bases not in self.known:
            with self._behind(thread):
                self.known[bases] = v.xor_of_bits(thread, bases, self.number)
        return self.known[bases]

    def warp_bits(self, bases: tuple[int, ...]) -> Value | None:
        """The linear map of the warp's number, the same in all lanes for the assembler, too; None
        where it is 0."""
        if not any(bases):
            return None
        key, warp = ("warp", bases), self.warp
        if key not in self.known:
            with self._behind(warp):
                self.known[key] = v.xor_of_bits(warp, bases)
        return self.known[key]

    def is_warp_below(self, count: int) -> Value | None:
        """Whether the thread is of one of the first so many warps; None where all are."""
        if count >= self.warps:
            return None
        key, warp = ("warps", count), self.warp
        if key not in self.known:
            with self._behind(warp):
                self.known[key] = v.compare("ult", warp, v.i32(count))
        return self.known[key]

    def part(self, layout: LinearLayout, column: int) -> Value:
        """What lane and warp add to an output of a layout, i32."""
        return self.bits(tuple(basis[column] for basis in _thread_bases(layout)))

    def indices(self, layout: LinearLayout, axis: int) -> Value:
        """The index along `axis` of each register's element, `vector<n x i32>`."""
        registers = [int(x) for x in layout.table("register")[..., axis].ravel()]
        base = v.splat(self.part(layout, axis), len(registers))
        if not any(registers):
            return base
        bases = [basis[axis] for basis in _thread_bases(layout)]
        apart = not any(basis & register for basis in bases for register in registers)
        if apart:
            return v.add_exactly(base, v.constants(registers))
        return v.binary(llvm.XOrOp, base, v.constants(registers))

    def owns(self, layout: LinearLayout) -> Value | None:
        """Whether this thread is the one of several copies that acts, i1; None without copies."""
        free = layout.free_bits()
        mask = free.get("lane", 0) | free.get("warp", 0) * self.lanes
        if not mask:
            return None
        key, thread = ("owner", mask), self.number
        if key not in self.known:
            with self._behind(thread):
                bits = v.binary(llvm.AndOp, thread, v.i32(mask))
                self.known[key] = v.compare("eq", bits, v.i32(0))
        return self.known[key]

    def barrier(self) -> None:
        """All of them arrive before any goes on. Of one warp these are its lanes."""
        if self.count == self.lanes:
            self.primitives.warp_barrier()
            return
        self.primitives.barrier(self.barrier_number, self.count if self.barrier_number else 0)


def _thread_bases(layout: LinearLayout) -> list[tuple[int, ...]]:
    return [basis for name in ("lane", "warp") for basis in layout.bases(name)]
