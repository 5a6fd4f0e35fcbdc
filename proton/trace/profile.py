"""What a compiled, instrumented kernel records: one value from the passes to the decoder.

`convert-proton-to-proton-gpu` makes the `ScopeTable`, `allocate-profile` the `KernelProfile`. Both
travel as attributes of the kernel (proton/dialect/profile.py), the profile then as metadata in the
cache; lowerings, runtime and the run that is saved read it from there.
"""

from dataclasses import dataclass
from typing import Any

from proton.trace.iterations import IterationRecords, iteration_from_plain, iteration_to_plain
from proton.trace.model import PayloadField, Scope
from proton.trace.scope_path import ScopePath
from proton.trace.strategy import Strategy
from proton.trace.wire import Block, RecordSchema

Plain = dict[str, Any]  # of numbers, text, lists and such


@dataclass(frozen=True, kw_only=True)
class ScopeTable:
    """What a kernel's records are of. `optimized_out` has the scopes in which optimisation left no
    work."""

    scopes: tuple[Scope, ...] = ()
    optimized_out: tuple[str, ...] = ()

    @property
    def payload_slots(self) -> int:
        """Payload values that a record has room for."""
        return max((len(scope.payload) for scope in self.scopes), default=0)

    def to_plain(self) -> Plain:
        """The table as text and numbers."""
        scopes = [scope_to_plain(scope) for scope in self.scopes]
        return {"scopes": scopes, "optimized_out": list(self.optimized_out)}

    @staticmethod
    def from_plain(plain: Plain) -> "ScopeTable":
        """The table that `to_plain` gave."""
        scopes = tuple(scope_from_plain(scope) for scope in plain["scopes"])
        return ScopeTable(
            scopes=scopes, optimized_out=tuple(map(ScopePath, plain["optimized_out"]))
        )


def scope_to_plain(scope: Scope) -> Plain:
    """A scope as text and numbers."""
    return {
        "name": scope.name,
        "path": scope.path,
        "kind": scope.kind,
        "fused": scope.fused,
        "payload": [[field.name, field.kind] for field in scope.payload],
        "file": scope.file,
        "line": scope.line,
        "work": scope.work,
        "queue": scope.queue,
        "pendings": scope.pendings,
        "visit": scope.visit,
        "piece": scope.piece,
        "waits": scope.waits,
        "ahead": scope.ahead,
    }


def scope_from_plain(plain: Plain) -> Scope:
    """The scope that `scope_to_plain` gave."""
    payload = tuple(PayloadField(name=name, kind=kind) for name, kind in plain["payload"])
    return Scope(**plain | {"path": ScopePath(plain["path"]), "payload": payload})


@dataclass(frozen=True, kw_only=True)
class KernelProfile:
    """How a kernel records: its strategy, the layout of a program's block, and its scopes.

    A unit has `unit_warps` warps on a GPU, where its ring buffer may lie in shared memory while the
    kernel runs, from byte `ring` on; or the readings of the loops that run, from byte `iterations`
    on, `iteration_bytes` of each unit; `loops` has those that write batches of iterations.
    `sampled_units` has a bit for each unit that records (0: all do), and of the programs each
    `sample_programs`-th does. Units of a GPU take chunks under strategy flush, but for those of a
    kernel that is known to make no more records than a segment holds: nothing of these ever has to
    leave it. `roles` are what its author calls the units, where groups of warps differ.
    """

    strategy: Strategy
    block: Block
    table: ScopeTable = ScopeTable()
    unit_warps: int = 1
    ring: int | None = None
    iterations: int | None = None
    iteration_bytes: int = 0
    loops: tuple[IterationRecords, ...] = ()
    sampled_units: int = 0
    sample_programs: int = 1
    takes_chunks: bool = False
    roles: tuple[str, ...] = ()

    @property
    def is_ring(self) -> bool:
        """Whether all that is kept of a unit's records lies in its segment."""
        return self.strategy.stores and not self.takes_chunks

    @property
    def first_shared(self) -> int | None:
        """The first byte of shared memory that is for records; None where there is none."""
        return self.iterations if self.ring is None else self.ring

    @property
    def schema(self) -> RecordSchema:
        """Of a record."""
        return self.block.schema

    @property
    def capacity(self) -> int:
        """Records of a segment."""
        return self.block.capacity

    @property
    def units(self) -> int:
        """Of a program."""
        return self.block.units

    def to_plain(self) -> Plain:
        """The profile as text and numbers."""
        return self.table.to_plain() | {
            "strategy": self.strategy.value,
            "capacity": self.capacity,
            "units": self.units,
            "unit_warps": self.unit_warps,
            "payload_slots": self.schema.payload_slots,
            "clock_bits": self.schema.clock_bits,
            "ring": self.ring,
            "iterations": self.iterations,
            "iteration_bytes": self.iteration_bytes or None,
            "loops": list(map(iteration_to_plain, self.loops)) or None,
            "sampled_units": self.sampled_units,
            "sample_programs": self.sample_programs,
            "takes_chunks": self.takes_chunks or None,
            "roles": list(self.roles) or None,
        }

    @staticmethod
    def from_plain(plain: Plain) -> "KernelProfile":
        """The profile that `to_plain` gave."""
        schema = RecordSchema(plain["payload_slots"], plain["clock_bits"])
        return KernelProfile(
            strategy=Strategy(plain["strategy"]),
            block=Block(plain["units"], plain["capacity"], schema),
            table=ScopeTable.from_plain(plain),
            unit_warps=plain["unit_warps"],
            ring=plain.get("ring"),
            iterations=plain.get("iterations"),
            iteration_bytes=plain.get("iteration_bytes") or 0,
            loops=tuple(map(iteration_from_plain, plain.get("loops") or ())),
            sampled_units=plain["sampled_units"],
            sample_programs=plain["sample_programs"],
            roles=tuple(plain.get("roles") or ()),
            takes_chunks=bool(plain.get("takes_chunks")),
        )
