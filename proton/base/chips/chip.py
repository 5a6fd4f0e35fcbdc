"""What the compiler knows of a chip: what it can do, by name, and its limits.

Passes ask for a capability (`chip.has_tma`, `chip.mma_of(MMAKind.WARP, "f16")`), never for a chip.
"""

from dataclasses import dataclass
from enum import Enum

WARP_SIZE = 32  # threads, of all chips but those that say otherwise
ACCESS_BYTES = 16  # of memory that a thread takes at once, at most, on all chips


class MMAKind(Enum):
    """Who issues a matrix instruction, and so which op is made of a dot."""

    WARP = "mma.sync"  # a warp: `ttng.mma_sync`
    WARP_GROUP = "wgmma"  # four warps together: `ttng.warp_group_dot`


class OperandPlace(Enum):
    """Where an operand of a matrix instruction may lie."""

    REGISTERS = "registers"
    SHARED = "shared"  # memory


@dataclass(frozen=True)
class MatrixInstruction:
    """A matrix instruction: the element types of its operands, as MLIR names them; the most rows
    and columns of its result, and bytes along the inner dimension; where its operands may lie."""

    kind: MMAKind
    elements: tuple[str, ...]
    rows: int
    columns: int
    inner_bytes: int
    left: tuple[OperandPlace, ...] = (OperandPlace.REGISTERS,)
    right: tuple[OperandPlace, ...] = (OperandPlace.REGISTERS,)


@dataclass(frozen=True)
class Chip:
    """The capabilities and limits of one chip."""

    name: str  # as the assembler and LLVM have it
    # Of a program, and of a multiprocessor (SM).
    shared_bytes: int
    sm_shared_bytes: int
    sm_threads: int
    sm_programs: int
    reserved_shared: int = 0  # bytes that each program takes besides its own
    shared_unit: int = 1  # bytes in which shared memory is given out
    # What of an SM's memory is shared memory, as its programs need; the rest is first-level cache.
    shared_sizes: tuple[int, ...] = ()
    # Of a thread; of an SM; in such pieces are they given out to a thread.
    max_registers: int = 255
    sm_registers: int = 64 * 1024
    register_unit: int = 8
    warp_size: int = WARP_SIZE
    # Instructions
    mma: tuple[MatrixInstruction, ...] = ()
    atomics: frozenset[tuple[str, str]] = frozenset()  # (element, kind of `tt`) that are one
    atomic_bytes: int = 4  # of neighbours that one atomic adds to, at most
    atomic_access_bytes: int = 0  # of those that one atomic load or store takes; 0: one element
    has_async_copies: bool = False  # of threads, from global to shared memory
    has_tma: bool = False  # copies of boxes by a unit of their own
    has_matrix_loads: bool = False  # `ldmatrix`
    has_matrix_stores: bool = False  # `stmatrix`
    has_float8_conversions: bool = False  # fp32 to e4m3 and e5m2, and these to fp16
    has_dependent_launch: bool = False
    has_clusters: bool = False
    has_maximum_of_three: bool = False  # integers
    has_clamp: bool = False  # of fp32 between a number and its negative
    # Speeds. Of the second-level cache the bytes for each SM; of an SM in a cycle the multiply-adds
    # of 16-bit numbers on tensor cores, those of fp32, and special functions (CUDA Programming
    # Guide, "Arithmetic Instructions"). 0 where chips differ, nobody has measured, or nothing is
    # planned by it.
    sm_l2_bytes: int = 0
    dot_per_cycle: int = 0
    fp32_per_cycle: int = 128
    special_per_cycle: int = 16
    ptx: int = 0  # the first version of PTX that knows the chip, or what its instructions need

    @property
    def special_weight(self) -> int:
        """How many multiply-adds a special function takes as long as."""
        return self.fp32_per_cycle // self.special_per_cycle

    def mma_of(self, kind: MMAKind, element: object) -> MatrixInstruction | None:
        """The instruction for operands of a type; None where there is none."""
        return next((m for m in self.mma if m.kind is kind and str(element) in m.elements), None)

    def programs_per_sm(self, threads: int, shared: int) -> int:
        """How many programs of so many threads and bytes of shared memory an SM holds at once,
        where registers do not limit them."""
        taken = self._taken(shared)
        by_shared = self.sm_shared_bytes // taken if taken else self.sm_programs
        return min(self.sm_programs, self.sm_threads // threads, by_shared)

    def _taken(self, shared: int) -> int:
        """What a program takes of an SM's shared memory."""
        return -(-(shared + self.reserved_shared) // self.shared_unit) * self.shared_unit

    def most_shared(self, programs: int) -> int:
        """The most bytes of shared memory with which an SM holds so many programs at once."""
        taken = self.sm_shared_bytes // programs // self.shared_unit * self.shared_unit
        return min(self.shared_bytes, taken - self.reserved_shared)

    def most_beside_cache(self, programs: int, shared: int) -> int:
        """The most bytes of shared memory with which so many programs leave the first-level cache
        what they do with `shared` bytes each."""
        taken = programs * self._taken(shared)
        whole = next((size for size in self.shared_sizes if size >= taken), self.sm_shared_bytes)
        most = whole // programs // self.shared_unit * self.shared_unit - self.reserved_shared
        return min(self.shared_bytes, most)

    def most_registers(self, programs: int, threads: int) -> int:
        """The most registers of a thread with which so many programs, of so many threads, fit on an
        SM."""
        most = self.sm_registers // (max(1, programs) * threads)
        return min(self.max_registers, most - most % self.register_unit)

    def programs_by_registers(self, registers: int, threads: int) -> int:
        """How many programs of so many threads an SM has registers for, of so many each."""
        each = -(-registers // self.register_unit) * self.register_unit
        return self.sm_registers // (max(1, each) * threads)
