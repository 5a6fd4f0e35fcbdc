"""Allocate: where the records of a program go.

`AllocateProfile` decides the layout of a program's block of the profile buffer
(proton/trace/wire.py) and adds the arguments of instrumented code. On a GPU the rings of a program
may lie in shared memory while it runs, which costs a record less than global memory
(docs/decisions.md, 36); they do where that leaves as many programs on an SM as there were, whatever
their registers allow. Nothing else changes.
"""

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from proton.base.targets import ARCHITECTURES, WARP_SIZE
from proton.conversion.proton_to_proton_gpu import TABLE_ATTRIBUTE
from proton.dialect.abi import Argument, add_argument
from proton.dialect.memory import pointer_type
from proton.dialect.mlir import ir
from proton.dialect.traits import Loop, has
from proton.dialect.ttg import SHARED
from proton.dialect.walk import kernel_functions, ops_named
from proton.passes import Pass, register
from proton.trace import wire

PROFILE_ATTRIBUTE = "proton.profile"  # on the kernel, JSON: see `profile_layout`
BLOCK_BYTES_ATTRIBUTE = "proton.block_bytes"
DEFAULT_CAPACITY = 256  # records of a program whose scopes are in loops: 8 KiB with payload
GPU_CAPACITY = 64  # the same of a warp: there are many
MOST_IN_SHARED = 256  # records of a warp that the compiler takes shared memory for
LEAST_IN_SHARED = 16
GLOBAL = 1  # address space of a GPU's memory
RECORDS = ("proton_gpu.circular_record", "proton_gpu.flush_record", "proton_gpu.counting_record")


@register
@dataclass(frozen=True)
class AllocateProfile(Pass):
    """Sizes the profile block of each instrumented kernel and adds its arguments.

    `capacity` 0 means: exactly as many records as a unit makes where that is known, else
    `DEFAULT_CAPACITY`; or on a GPU what shared memory has room for, or `GPU_CAPACITY`. A program
    has `units` units; with 0 it is on the CPU, where the program is the unit and the code takes the
    host's thread, too. On a GPU of compute capability `arch` / 10 a unit has `unit_warps` warps,
    the capacity is rounded up to a power of two, and `buffer` says where rings lie; it needs the
    attributes of `allocate-shared-memory`. `sampled_units` has a bit for each unit that records (0:
    all do), and of the programs each `sample_programs`-th does.
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

    def run(self, module: Any) -> None:
        called = bool(ops_named(module, "proton_gpu.attach"))
        for function in kernel_functions(module):
            if ops_named(function, "proton_gpu.init"):
                self._allocate(function, called)

    def _allocate(self, function: Any, called: bool) -> None:
        """`called`: whether functions that the kernel calls record, any number of times."""
        table = json.loads(function.attributes[TABLE_ATTRIBUTE].value)
        slots = max((len(scope["payload"]) for scope in table["scopes"]), default=0)
        records = ops_named(function, *RECORDS)
        # How many records a unit makes; 0 where that is not known.
        known = 0 if called or any(in_loop(op) for op in records) else max(1, len(records))
        layout = self._gpu(function, known, slots) if self.units else self._cpu(known, slots)
        self._add_arguments(function)
        i64 = ir.IntegerType.get_signless(64)
        size = ir.IntegerAttr.get(i64, layout["block_bytes"])
        function.attributes[PROFILE_ATTRIBUTE] = ir.StringAttr.get(json.dumps(table | layout))
        function.attributes[BLOCK_BYTES_ATTRIBUTE] = size

    def _cpu(self, known: int, slots: int) -> dict[str, Any]:
        return self._layout(self.capacity or known or DEFAULT_CAPACITY, slots)

    def _gpu(self, function: Any, known: int, slots: int) -> dict[str, Any]:
        used = int(function.attributes[SHARED].value) if SHARED in function.attributes else 0
        capacity = self._ring_capacity(known, slots, used)
        if not capacity:
            capacity = _power_of_two(self.capacity or known or GPU_CAPACITY)
            return self._layout(capacity, slots) | {"ring": None} | self._sampling()
        ring = wire.aligned(used, wire.RECORD_ALIGNMENT)
        end = ring + self.units * capacity * self._record_bytes(slots)
        function.attributes[SHARED] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), end)
        return self._layout(capacity, slots) | {"ring": ring} | self._sampling()

    def _sampling(self) -> dict[str, int]:
        units = self.sampled_units or (1 << self.units) - 1
        return {"sampled_units": units, "sample_programs": self.sample_programs}

    def _ring_capacity(self, known: int, slots: int, used: int) -> int:
        """Records of a ring in shared memory; 0 where rings lie in global memory.

        A unit whose records are known in number stores each once, where nothing waits for it, and
        is done.
        """
        if self.strategy != "circular" or self.buffer == "global" or not self.arch:
            return 0
        if self.buffer == "auto" and known:
            return 0
        least, most = LEAST_IN_SHARED, MOST_IN_SHARED
        if self.capacity or known:
            least = most = _power_of_two(self.capacity or known)
        unit, threads = self.units * self._record_bytes(slots), WARP_SIZE * self._warps()
        facts, capacity = ARCHITECTURES[self.arch], most
        # Rings are copied 16 bytes at a time.
        whole = 2 if self._record_bytes(slots) % wire.RECORD_ALIGNMENT else 1
        while capacity >= least:
            end = wire.aligned(used, wire.RECORD_ALIGNMENT) + capacity * unit
            if facts.programs_per_sm(threads, end) == facts.programs_per_sm(threads, used):
                return max(whole, capacity)
            capacity //= 2
        return max(whole, least) if self.buffer == "shared" else 0

    def _warps(self) -> int:
        return self.units * self.unit_warps

    def _record_bytes(self, slots: int) -> int:
        return wire.record_bytes(slots, self.clock_bits)

    def _layout(self, capacity: int, slots: int) -> dict[str, Any]:
        if self.strategy == "counting":
            capacity = 0
        units = max(1, self.units)
        return {
            "strategy": self.strategy,
            "capacity": capacity,
            "payload_slots": slots,
            "units": units,
            "unit_warps": self.unit_warps,
            "clock_bits": self.clock_bits,
            "block_bytes": wire.block_bytes(units, capacity, slots, self.clock_bits),
        }

    def _add_arguments(self, function: Any) -> None:
        add_argument(function, Argument.PROFILE, pointer_type(GLOBAL if self.units else 0))
        if not self.units:
            add_argument(function, Argument.THREAD, ir.IntegerType.get_signless(32))
            if self.strategy == "flush":
                add_argument(function, Argument.FLUSH, pointer_type())
        elif self.strategy == "flush":
            add_argument(function, Argument.HEAP, pointer_type(GLOBAL))
            add_argument(function, Argument.LAUNCH, ir.IntegerType.get_signless(32))


def profile_layout(function: Any) -> dict[str, Any] | None:
    """The layout that `AllocateProfile` chose; None for a kernel without records.

    Keys: strategy, capacity, payload_slots, units, unit_warps, clock_bits, block_bytes, scopes (the
    table), emptied, and on a GPU ring (bytes from the beginning of shared memory, or None),
    sampled_units (a bit for each that records), sample_programs.
    """
    if PROFILE_ATTRIBUTE not in function.attributes:
        return None
    layout: dict[str, Any] = json.loads(function.attributes[PROFILE_ATTRIBUTE].value)
    return layout


def in_loop(op: Any) -> bool:
    """Whether an op is in a loop of its function."""
    while op is not None and op.name != "func.func":
        if has(op, Loop):
            return True
        op = op.parent.operation if op.parent is not None else None
    return False


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
