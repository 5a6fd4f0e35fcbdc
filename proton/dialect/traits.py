"""What an op is, said once: traits of the ops of all dialects.

An op of ours lists its traits where it is defined (`traits=[Pure, Speculatable]`). What ops of
upstream dialects are stands here, with each trait. Passes ask `has(op, Trait)` and keep no lists of
names. Some traits are `Assumed`: an op that nobody knows has them, as is safe. So a new op is taken
to write memory and to be work that takes time until its definition says otherwise.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect.mlir import Operation, ir

Names = tuple[frozenset[str], tuple[str, ...]]  # of ops, and prefixes of whole dialects


def _split(names: Iterable[str]) -> Names:
    dialects = tuple(name for name in names if name.endswith("."))
    return frozenset(names) - frozenset(dialects), dialects


def _holds(names: Names, name: str) -> bool:
    return name in names[0] or name.startswith(names[1])


def _ops(dialect: str, names: str) -> tuple[str, ...]:
    return tuple(f"{dialect}.{name}" for name in names.split())


class Trait:
    """A property of ops, asked for by `has`.

    `upstream` names ops of upstream dialects that have it, or whole dialects (`arith.`); `without`
    those that have it not all the same. A name says enough, but where `of` asks an attribute.
    """

    upstream: ClassVar[tuple[str, ...]] = ()
    without: ClassVar[tuple[str, ...]] = ()
    is_by_name: ClassVar[bool] = True  # else `of` asks an attribute, too
    _ours: ClassVar[set[str]]
    _upstream: ClassVar[Names]
    _without: ClassVar[Names]

    def __init_subclass__(cls) -> None:
        cls._ours, cls._upstream, cls._without = set(), _split(cls.upstream), _split(cls.without)

    @classmethod
    def attach(cls, name: str) -> None:
        """What the bindings call for each op of ours that lists the trait."""
        cls._ours.add(name)
        _have.cache_clear()

    @classmethod
    def of(cls, op: Operation) -> bool:
        """True if an op has it."""
        return cls.of_name(op.name)

    @classmethod
    def of_name(cls, name: str) -> bool:
        """True if ops of a name have it."""
        return name in cls._ours or (_holds(cls._upstream, name) and not _holds(cls._without, name))


class Assumed(Trait):
    """A trait of every op, but of those that have one of the traits `unless`, and of those of
    upstream dialects in `without`."""

    unless: ClassVar[tuple[type[Trait], ...]] = ()

    @classmethod
    def of_name(cls, name: str) -> bool:
        """True if ops of a name have it."""
        return name in cls._ours or not (
            _holds(cls._without, name) or any(trait.of_name(name) for trait in cls.unless)
        )


def has(op: Operation, *traits: type[Trait]) -> bool:
    """True if an op has one of the traits."""
    found = _have(op.name, traits)
    return any(trait.of(op) for trait in traits) if found is None else found


@functools.cache  # passes ask of each op
def _have(name: str, traits: tuple[type[Trait], ...]) -> bool | None:
    """Whether ops of a name have one of the traits; None where that depends on the op."""
    if any(trait.of_name(name) for trait in traits):
        return True
    return False if all(trait.is_by_name for trait in traits) else None


# Effects


class _NoEffects(ir.MemoryEffectsOpInterface):
    @staticmethod
    def get_effects(op: Operation, effects: object) -> None:
        """None: leaves the list of effects empty."""


class Pure(Trait):
    """Has no effect on memory, and MLIR's own passes know."""

    upstream = ("arith.", "math.", "index.", "ub.")

    @classmethod
    def attach(cls, name: str) -> None:
        """Attaches MLIR's interface as well."""
        super().attach(name)
        _NoEffects.attach(name)


class Speculatable(Trait):
    """May run where the program would not run it, any number of times. The bindings cannot tell
    MLIR so, so MLIR's code motion leaves ops of ours where they are."""

    upstream = ("arith.", "math.")
    is_by_name = False
    # Undefined for some operands.
    without = _ops("arith", "divsi divui remsi remui ceildivsi ceildivui floordivsi")

    @classmethod
    def of(cls, op: Operation) -> bool:
        """True if an op has it."""
        return cls.of_name(op.name) or (
            PureByAttribute.of_name(op.name) and bool(op.attributes["pure"].value)
        )


class PureByAttribute(Trait):
    """Its attribute `pure` says whether it has no effect, and may run anywhere."""


class Reads(Trait):
    """Reads memory, or a register that others write, and has no other effect."""

    upstream = ("memref.load", "llvm.load", "vector.load")


class Terminates(Trait):
    """Ends a block, and passes its operands on."""

    upstream = ("func.return", "scf.yield", "scf.condition")


class Records(Trait):
    """Is there for the profiler: no part of what the program computes."""


class Writes(Assumed):
    """May change memory, or order what others do to it."""

    unless = (Pure, Reads, Records)
    without = ("scf.", "func.return", "builtin.unrealized_conversion_cast")


class Accesses(Trait):
    """Accesses global memory through pointers, which are its first operand."""


class Barrier(Trait):
    """The program's threads wait for each other."""


class AwaitsOrder(Trait):
    """What other warps did before they handed over to this one is done."""


class Orders(Trait):
    """Says when others see what a thread has written, or may do so."""

    upstream = ("func.call",)


class Asynchronous(Trait):
    """Goes on after it was issued, until something waits for it."""


class Concurrent(Trait):
    """Its regions run at once, each by a group of warps of its own."""


# Shared memory


class AllocatesShared(Trait):
    """Its result is shared memory of its own."""


class NamesMemory(Trait):
    """Gives shared memory a name, and does nothing with it: no instruction."""


class PassesMemory(Trait):
    """The shared memory that it gives is that of an operand, or a part of it."""

    upstream = ("arith.select", "scf.yield", "scf.condition", "func.return")


class PassesTokens(Trait):
    """The token that it gives is of all the copies that its operands' are of."""


@dataclass(frozen=True)
class SharedEffects:
    """What an op does to the shared memory that its operands name, by their numbers; stands among
    the traits of an op. Where it `lands_later`, what it writes is there when something that `waits`
    has waited for its result, a token. Where it `reads_later`, it may go on reading until
    something `ends_reads` of the same name."""

    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    lands_later: bool = False
    waits: bool = False
    reads_later: str = ""
    ends_reads: str = ""
    _known: ClassVar[dict[str, "SharedEffects"]] = {}

    def attach(self, name: str) -> None:
        """What the bindings call for each op of ours that lists it."""
        self._known[name] = self

    @classmethod
    def of(cls, op: Operation) -> "SharedEffects":
        """The effects of an op; one that nobody knows reads and writes all of its operands."""
        found = cls._known.get(op.name)
        if found is None:
            found = _all_of(0 if has(op, PassesMemory) else len(op.operands))
        return found

    @classmethod
    def are_known(cls, op: Operation) -> bool:
        """True if an op says what its effects are."""
        return op.name in cls._known


@functools.cache
def _all_of(operands: int) -> SharedEffects:
    """The effects of an op that reads and writes all of so many operands."""
    everything = tuple(range(operands))
    return SharedEffects(everything, everything)


# Layouts


class Elementwise(Trait):
    """Does the same to each element: operands and results that are tensors have one layout."""

    upstream = ("arith.", "math.")
    without = ("arith.constant",)


class LayoutAnchor(Trait):
    """Its results have a layout for a reason: others follow."""

    upstream = ("func.call",)


# Values


class PassesPointers(Trait):
    """A pointer that it gives points where one that it takes does."""

    upstream = ("arith.select",)


class KeepsNumber(Trait):
    """Gives the integer, or the address, that it takes, in another type."""

    upstream = _ops("arith", "extsi extui trunci index_cast")


class Combines(Trait):
    """Its region says how it combines two elements: no control flow of the program."""


class FloatArithmetic(Trait):
    """Arithmetic of floats that is exact in a wider type, but for one rounding."""

    upstream = _ops("arith", "addf subf mulf divf remf cmpf")


class TileIndex(Trait):
    """Says where elements are and not what they are: no instruction, or an index's."""

    upstream = ("arith.constant",)


# Work


class TileWork(Assumed):
    """Takes time, where the work is ops on tiles. What `arith` and `math` do depends on types."""

    unless = (TileIndex, NamesMemory, Records)
    without = ("scf.", "func.return", "ub.", "builtin.unrealized_conversion_cast")


class Loads(Trait):
    """Reads a block of global memory, which is there when it has ended."""


class Multiplies(Trait):
    """A product of tiles."""

    upstream = ("linalg.matmul",)


class View(Trait):
    """Names memory that is there: another view of a buffer."""

    upstream = _ops("memref", "cast reinterpret_cast subview")


class Address(Trait):
    """Gives an address, also as a number, in the memory that its first operand is or points to."""

    upstream = (
        *("memref.extract_aligned_pointer_as_index", "arith.index_cast"),
        *_ops("llvm", "getelementptr inttoptr"),
    )


class Recomputed(Trait):
    """On buffers: costs next to nothing, has no effect and touches no memory, so it may be computed
    anew anywhere. Arithmetic on scalars, addresses, views."""

    upstream = (
        *("arith.", "builtin.unrealized_conversion_cast", "memref.get_global", "ub.poison"),
        *View.upstream,
        *_ops("llvm", "extractvalue getelementptr insertvalue inttoptr ptrtoint"),
        *_ops("llvm.mlir", "constant poison zero"),
    )


class KeepsMemory(Trait):
    """On buffers and vectors: leaves the contents of memory as they are. What is not `Recomputed`
    beside that: buffers, and what else stands in loops of products."""

    upstream = (
        *_ops("memref", "alloc extract_strided_metadata extract_aligned_pointer_as_index"),
        *_ops("vector", "broadcast fma"),
        "linalg.yield",
    )


class NoInstruction(Trait):
    """Costs nothing worth a clock read of its own, where the work is loops over buffers."""

    upstream = (
        *("arith.", "index.", "llvm.mlir.", "proton.", "proton_gpu.", "builtin."),
        *("llvm.getelementptr", "llvm.insertvalue"),
        *View.upstream,
        *_ops("memref", "alloc alloca get_global"),
        *_ops("memref", "extract_strided_metadata extract_aligned_pointer_as_index"),
        "llvm.inttoptr",
    )


class Loop(Trait):
    """Its regions run again and again."""

    upstream = ("scf.for", "scf.while")
