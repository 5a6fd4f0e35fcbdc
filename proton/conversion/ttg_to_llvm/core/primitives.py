"""What a thread of a GPU does that is not LLVM's own: the protocol that the lowering asks.

Each kind of GPU has a module that is one (`nvidia/primitives.py`), in a folder with the rules of
the ops that only it has. All else here names no kind of GPU.

Functions emit at the insertion point. Under a predicate that does not hold nothing is read, and
nothing written; None holds. `note` is a comment on an instruction of a record. `space` is "global"
or "shared".
"""

from collections.abc import Sequence
from typing import Protocol

from proton.dialect.mlir import Module, Type, Value


class Primitives(Protocol):
    """A module with these functions. Words are values of 16, 32 or 64 bits."""

    PREDICATES: int  # conditions that a thread keeps without a register each
    SCOPES: dict[str, str]  # of atomics, those of `tt` -> LLVM's for the target

    # Numbers

    def thread_number(self, count: int) -> Value:
        """The thread's number in its program, of `count` at most, i32."""

    def program_id(self, axis: int) -> Value:
        """The program's place in the grid, i32."""

    def program_count(self, axis: int) -> Value:
        """The grid's size, i32."""

    def copied(self, value: Value) -> Value:
        """An i32 as one of which LLVM knows nothing."""

    def bit(self, word: Value, number: int) -> Value:
        """A bit of an i32, as a condition."""

    def warp_uniform(self, value: Value) -> Value:
        """An i32 that all lanes have alike, so that machine code knows."""

    # What threads do together

    def shuffle_lanes(self, kind: str, value: Value, lane: Value, note: str = "") -> Value:
        """Every register of a vector from another lane: `lane` is its number (`idx`), what is
        changed in the own one (`bfly`), or the distance to it (`up`, `down`). Lanes that the last
        two would take from outside of the warp keep their own."""

    def reduce_warp(self, kind: str, value: Value) -> Value | None:
        """Each i32 of a vector combined over the lanes of a warp, which all get the result: `add`,
        `and`, `or`, `xor`, `min.s32`, `max.u32` and such; None where no instruction does that."""

    def barrier(self, number: int = 0, threads: int = 0) -> None:
        """All threads of the program arrive before any goes on; or so many, at a barrier of a
        number."""

    def warp_barrier(self) -> None:
        """All threads of the warp arrive, and see what the others wrote."""

    # Memory

    def load(
        self,
        address: Value,
        word: Type,
        count: int,
        *,
        bits: int | None = None,
        space: str = "global",
        modifiers: str = "",
        predicate: Value | None = None,
        otherwise: Sequence[Value] = (),
        offset: int = 0,
        note: str = "",
    ) -> list[Value]:
        """Words `offset` bytes behind an address, by one access; else `otherwise`. `bits` is their
        width in memory, where that is not the word's; `modifiers` is a cache modifier of `tt`, an
        eviction policy of `tt`, or "volatile"."""

    def store(
        self,
        address: Value,
        words: Sequence[Value],
        *,
        bits: int | None = None,
        space: str = "global",
        modifiers: str = "",
        predicate: Value | None = None,
        offset: int = 0,
        note: str = "",
    ) -> None:
        """Stores words by one access, `offset` bytes behind the address."""

    def address(self, base: Value, index: Value, size: int) -> Value:
        """The address of the element of `size` bytes at a signed i32 index."""

    def atomic(
        self,
        kind: str,
        ordering: str,
        scope: str,
        address: Value,
        value: Value,
        predicate: Value | None,
    ) -> Value:
        """Combines a value, or several side by side, with global memory; what was there before, or
        0. `kind`, `ordering` and `scope` are those of `tt`."""

    def atomic_load(
        self, ordering: str, scope: str, address: Value, type_: Type, predicate: Value | None
    ) -> Value:
        """An integer of global memory, or several side by side, each read at once; or 0."""

    def atomic_store(
        self, ordering: str, scope: str, address: Value, value: Value, predicate: Value | None
    ) -> None:
        """Writes an integer, or several side by side, each at once."""

    def compare_and_swap(
        self, ordering: str, scope: str, given: Sequence[Value], predicate: Value | None
    ) -> Value:
        """`given`: an address, what is expected there, what replaces that. What was there, or 0."""

    # Matrices of 8 rows of 16 bytes in shared memory, where the chip has such accesses

    def load_matrices(self, address: Value, count: int, is_transposed: bool) -> list[Value]:
        """A word of each of `count` matrices; the address is that of the lane's row."""

    def store_matrices(self, address: Value, words: list[Value], is_transposed: bool) -> None:
        """Stores what `load_matrices` gets."""

    # Arithmetic

    def approximate(self, function: str, *values: Value) -> Value:
        """divide, reciprocal, exp2, sqrt or rsqrt of fp32, as fast as the chip has it."""

    def clamp(self, value: Value, bound: Value) -> Value:
        """fp32 numbers between the negative of a bound and the bound, on a chip that has it; NaN is
        the bound with its sign."""

    def function(self, module: Module, name: str, *scalars: Value) -> Value:
        """A function of C's `math.h`, of fp32 or fp64."""

    def narrowed_towards_zero(self, scalar: Value, target: Type) -> Value:
        """A float as a narrower one, rounded towards zero."""

    def narrowed_to_float8(self, low: Value, high: Value, name: str) -> Value:
        """Two fp32 as 8-bit floats (e5m2 or e4m3) in an i16, where the chip narrows by one
        instruction: to nearest, saturating."""

    def widened_from_float8(self, pair: Value, name: str) -> Value:
        """Two 8-bit floats (e5m2 or e4m3) in an i16 as two fp16 in an i32, on such a chip."""

    def permuted_bytes(self, low: Value, high: Value, selector: Value) -> Value:
        """Four of the eight bytes of two words, each chosen by four bits of the selector."""


class RecordPrimitives(Primitives, Protocol):
    """Of a GPU on which kernels record, these functions as well."""

    def clock(self, bits: int, note: str) -> Value:
        """The cycles of the multiprocessor so far, of 32 or 64 bits."""

    def clock_of_lane(self, bits: int, note: str, predicate: Value) -> Value:
        """The same where a predicate of lanes holds, else 0."""

    def timer(self, note: str) -> Value:
        """The ns of the GPU so far, which all multiprocessors share, i64."""

    def multiprocessor(self, note: str) -> Value:
        """The number of the multiprocessor that runs the program, i32."""

    def fetch_add(self, address: Value, number: int, note: str) -> Value:
        """Adds to an i32 in global memory; what it was before."""

    def sched_barrier(self) -> None:
        """A place that the assembler moves nothing across."""

    def optimization_barrier(self, words: Sequence[Value]) -> list[Value]:
        """Words of 32 bits that LLVM and the assembler move nothing across."""
