"""Allocate: where the records of a program go.

`AllocateProfile` decides the layout of a program's block of the profile buffer
(proton/trace/wire.py) and adds the arguments of instrumented code. On a GPU the ring buffers of a
program may lie in shared memory while it runs, which costs a record less than global memory;
they do where that leaves as many programs on an SM as there were, whatever their registers allow.
Nothing else changes.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.base.targets import ARCHITECTURES, WARP_SIZE
from proton.dialect import proton_gpu as pg
from proton.dialect.abi import AddedArgument, add_argument, pass_arguments
from proton.dialect.attributes import ROLES, SHARED_BYTES
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.memory import GLOBAL, pointer_type
from proton.dialect.mlir import Module, Operation
from proton.dialect.profile import set_profile, table_of
from proton.dialect.regions import in_loop
from proton.dialect.walk import kernel_functions, ops_named
from proton.passes import Pass, register
from proton.trace import wire
from proton.trace.profile import KernelProfile, ScopeTable
from proton.trace.strategy import Strategy

DEFAULT_CAPACITY = 256  # records of a program whose scopes are in loops: 8 KiB with payload
GPU_CAPACITY = 64  # the same of a warp: there are many
MOST_IN_SHARED = 256  # records of a warp that the compiler takes shared memory for
LEAST_IN_SHARED = 16


@register
@dataclass(frozen=True)
class AllocateProfile(Pass):
    """Sizes the profile block of each instrumented kernel and adds its arguments.

    `capacity` 0 means: exactly as many records as a unit makes where that is known, else
    `DEFAULT_CAPACITY`; or on a GPU what shared memory has room for, or `GPU_CAPACITY`. A program
    has `units` units; with 0 it is on the CPU, where a program, or each of its partitions, is a
    unit, and the code takes the host's thread, too. On a GPU of compute capability `arch` / 10 a
    unit has `unit_warps` warps, the capacity is rounded up to a power of two, and `buffer` says
    where ring buffers lie; it needs the attributes of `allocate-shared-memory`. `sampled_units` has
    a bit for each unit that records (0: all do); of programs each `sample_programs`-th does.
    """

    name: ClassVar[str] = "allocate-profile"

    strategy: str = "circular"
    capacity: int = 0
    units: int = 0
    unit_warps: int = 1
    clock_bits: int = 64
    arch: int = 0
    buffer: str = "global"
    sampled_units: int = 0
    sample_programs: int = 1

    def run(self, module: Module) -> None:
        called = bool(ops_named(module, pg.AttachOp))
        for function in kernel_functions(module):
            if ops_named(function, pg.InitOp):
                self._allocate(function, called)

    def _allocate(self, function: Operation, called: bool) -> None:
        """`called`: whether functions that the kernel calls record, any number of times."""
        table = table_of(function)
        records = ops_named(function, *pg.RECORDS)
        # How many records a unit makes; 0 where that is not known.
        known = 0 if called or any(in_loop(op) for op in records) else max(1, len(records))
        make = self._gpu if self.units else self._cpu
        profile = make(function, known, table)
        set_profile(function, profile)
        self._add_arguments(function, profile)

    def _cpu(self, function: Operation, known: int, table: ScopeTable) -> KernelProfile:
        roles = _roles(function)
        capacity = self.capacity or known or DEFAULT_CAPACITY
        block = self._block(capacity, table, max(1, len(roles)))
        return KernelProfile(
            strategy=Strategy(self.strategy), block=block, table=table, roles=roles
        )

    def _gpu(self, function: Operation, known: int, table: ScopeTable) -> KernelProfile:
        given = function.attributes.get(SHARED_BYTES)
        used = 0 if given is None else int(given.value)
        schema = wire.RecordSchema(table.payload_slots, self.clock_bits)
        capacity, ring = self._ring_capacity(known, schema, used), None
        if capacity:
            ring = wire.aligned(used, wire.RECORD_ALIGNMENT)
            end = ring + self.units * capacity * schema.bytes
            function.attributes[SHARED_BYTES] = i32_attr(end)
        else:
            capacity = _power_of_two(self.capacity or known or GPU_CAPACITY)
        return KernelProfile(
            strategy=Strategy(self.strategy),
            block=self._block(capacity, table, self.units),
            table=table,
            roles=_roles(function)[:: self.unit_warps],
            unit_warps=self.unit_warps,
            ring=ring,
            sampled_units=self.sampled_units or (1 << self.units) - 1,
            sample_programs=self.sample_programs,
            takes_chunks=Strategy(self.strategy).moves and not 0 < known <= capacity,
        )

    def _block(self, capacity: int, table: ScopeTable, units: int) -> wire.Block:
        """A program's block; what is only counted needs no segments."""
        schema = wire.RecordSchema(table.payload_slots, self.clock_bits)
        stores = Strategy(self.strategy).stores
        return wire.Block(units, capacity if stores else 0, schema)

    def _ring_capacity(self, known: int, schema: wire.RecordSchema, used: int) -> int:
        """Records of a ring buffer in shared memory; 0 where it lies in global memory.

        A unit whose records are known in number stores each once, where nothing waits for it, and
        is done.
        """
        if not Strategy(self.strategy).is_ring or self.buffer == "global" or not self.arch:
            return 0
        if self.buffer == "auto" and known:
            return 0
        least, most = LEAST_IN_SHARED, MOST_IN_SHARED
        if self.capacity or known:
            least = most = _power_of_two(self.capacity or known)
        unit, threads = self.units * schema.bytes, WARP_SIZE * self.units * self.unit_warps
        facts, capacity = ARCHITECTURES[self.arch], most
        # Ring buffers are copied 16 bytes at a time.
        whole = 2 if schema.bytes % wire.RECORD_ALIGNMENT else 1
        while capacity >= least:
            end = wire.aligned(used, wire.RECORD_ALIGNMENT) + capacity * unit
            if facts.programs_per_sm(threads, end) == facts.programs_per_sm(threads, used):
                return max(whole, capacity)
            capacity //= 2
        return max(whole, least) if self.buffer == "shared" else 0

    def _add_arguments(self, function: Operation, profile: KernelProfile) -> None:
        if not self.units:
            added = {AddedArgument.PROFILE: pointer_type(), AddedArgument.THREAD: integer(32)}
            if profile.strategy.moves:
                added[AddedArgument.FLUSH] = pointer_type()
            pass_arguments(function, added)
            return
        add_argument(function, AddedArgument.PROFILE, pointer_type(GLOBAL))
        if profile.takes_chunks:
            add_argument(function, AddedArgument.SLAB, pointer_type(GLOBAL))
            add_argument(function, AddedArgument.LAUNCH, integer(32))


def _roles(function: Operation) -> tuple[str, ...]:
    """Of each warp, or on a CPU of each partition; empty where all do the same."""
    return tuple(role.value for role in function.attributes.get(ROLES, ()))


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
