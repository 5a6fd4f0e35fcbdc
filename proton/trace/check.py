"""The rules that a launch's metadata, headers, chunks and records keep, each with its message."""

import numpy as np

from proton.trace.errors import TraceFormatError
from proton.trace.model import ONE, Kernel, Launch
from proton.trace.wire import (
    CLOCK_BITS,
    KIND_SHIFT,
    MAGIC,
    MAX_CAPACITY,
    MAX_PAYLOAD_SLOTS,
    MAX_SCOPE_ID,
    MAX_UNITS,
    VERSION,
    ProgramState,
    RecordKind,
)

MAX_GRID = (1 << 31) - 1  # CUDA's largest grid dimension
MAX_DEVICE = (1 << 31) - 1
# What the records of a scope are; those of an event are EVENT_START or EVENT_END.
KINDS = {
    "slice": RecordKind.SLICE,
    "mark": RecordKind.MARK,
    "event": RecordKind.EVENT_START,
    "issue": RecordKind.SLICE,
    "wait": RecordKind.SLICE,
}
PAYLOAD_KINDS = ("int", "float")


def require(ok: bool, where: str, rule: str, value: object) -> None:
    """Raises TraceFormatError unless `ok`."""
    if not ok:
        raise TraceFormatError(f"{where}: {rule}, got {value}")


def check_kernel(kernel: Kernel, where: str) -> None:
    """The kernel's tables can describe a buffer."""
    units, slots = kernel.units, kernel.payload_slots
    require(1 <= units <= MAX_UNITS, where, f"units must lie in [1, {MAX_UNITS}]", units)
    rule = f"payload_slots must lie in [0, {MAX_PAYLOAD_SLOTS}]"
    require(0 <= slots <= MAX_PAYLOAD_SLOTS, where, rule, slots)
    rule = f"unit_warps must lie in [1, {MAX_UNITS}]"
    require(1 <= kernel.unit_warps <= MAX_UNITS, where, rule, kernel.unit_warps)
    bits = kernel.clock_bits
    require(bits in CLOCK_BITS, where, f"clock_bits must be one of {CLOCK_BITS}", bits)
    for number, scope in enumerate(kernel.scopes):
        here = f"{where}, scope {number}"
        require(scope.kind in KINDS, here, f"kind must be one of {tuple(KINDS)}", scope.kind)
        rule = "a queue is of an issue or a wait"
        require(not scope.queue or scope.kind in ("issue", "wait"), here, rule, scope.kind)
        require(scope.pendings >= ONE, here, f"pendings must be at least {ONE}", scope.pendings)
        rule, counted = "visit and piece count from 0", min(scope.visit, scope.piece)
        require(counted >= 0, here, rule, counted)
        fields = len(scope.payload)
        require(fields <= slots, here, f"payload must fit in {slots} slots", f"{fields} fields")
        for field in scope.payload:
            rule = f"payload kind must be one of {PAYLOAD_KINDS}"
            require(field.kind in PAYLOAD_KINDS, here, rule, field.kind)
        names = {field.name for field in scope.payload}
        require(len(names) == fields, here, "payload names must differ", sorted(names))


def check_launch(kernel: Kernel, launch: Launch, where: str) -> None:
    """The launch fits its kernel, and its buffer is as long as its grid says."""
    grid = launch.grid
    sane = all(0 <= n <= MAX_GRID for n in grid)
    require(sane, where, f"grid must be sizes in [0, {MAX_GRID}]", grid)
    check_device(launch.device, where)
    capacity = launch.capacity
    if kernel.strategy is None or not kernel.strategy.stores:
        require(capacity == 0, where, "capacity must be 0 where no record is stored", capacity)
    else:
        rule = f"capacity must lie in [1, {MAX_CAPACITY}]"
        require(1 <= capacity <= MAX_CAPACITY, where, rule, capacity)
    times = f"{launch.host_start}, {launch.host_end}"
    require(launch.host_start <= launch.host_end, where, "host_start must not pass host_end", times)
    buffer = launch.buffer
    flat = buffer.dtype == np.uint8 and buffer.ndim == 1
    require(flat, where, "buffer must be a row of uint8", f"{buffer.ndim}-d {buffer.dtype}")
    block = kernel.block(capacity).bytes
    programs = 0 if kernel.strategy is None else grid[0] * grid[1] * grid[2]
    rule = f"buffer must be {programs} blocks of {block} bytes"
    require(buffer.size == programs * block, where, rule, f"{buffer.size} bytes")


def check_device(device: int, where: str) -> None:
    """The number can be a GPU's."""
    rule = f"device must lie in [0, {MAX_DEVICE}]"
    require(0 <= device <= MAX_DEVICE, where, rule, device)


def check_headers(kernel: Kernel, launch: Launch, header: np.ndarray, where: str) -> None:
    """Each block that a program touched carries the header that the launch implies."""
    state = header["state"]
    blank = (state == ProgramState.UNTOUCHED) & (header["magic"] == 0)  # never begun: all zeros
    program = np.arange(header.size)
    x, y, _ = (max(n, 1) for n in launch.grid)
    wanted: dict[str, int | np.ndarray] = {
        "magic": MAGIC,
        "version": VERSION,
        "units": kernel.units,
        "capacity": launch.capacity,
        "payload_slots": kernel.payload_slots,
        "clock_bits": kernel.clock_bits,
        "program_x": program % x,
        "program_y": program // x % y,
        "program_z": program // (x * y),
    }
    for name, value in wanted.items():
        bad = ~blank & (header[name] != value)
        if bad.any():
            p = int(bad.argmax())
            rule = f"{name} must be {np.broadcast_to(value, program.shape)[p]}"
            require(False, f"{where}, program {p}", rule, header[name][p])
    last = ProgramState.FINISHED
    _all(state <= last, state, where, f"state must be at most {last}")
    forward = (state != last) | (header["clock_end"] >= header["clock_start"])
    _all(forward, header["clock_end"], where, "clock_end must not lie before clock_start")


def _all(good: np.ndarray, value: np.ndarray, where: str, rule: str) -> None:
    """Every program keeps the rule; the message names the first that does not."""
    if not good.all():
        program = int(good.argmin())
        require(False, f"{where}, program {program}", rule, value[program])


def check_chunks(
    kernel: Kernel, launch: Launch, written: np.ndarray, finished: np.ndarray, where: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Track, first record and number of records of each chunk, none overlapping another."""
    size = kernel.schema.bytes
    programs = written.size // kernel.units
    flushing = kernel.strategy is not None and kernel.strategy.moves
    require(flushing, where, "only the flush strategy leaves chunks", kernel.strategy_name)
    for number, chunk in enumerate(launch.chunks):
        here = f"{where}, chunk {number}"
        require(0 <= chunk.program < programs, here, f"program must be < {programs}", chunk.program)
        require(0 <= chunk.unit < kernel.units, here, f"unit must be < {kernel.units}", chunk.unit)
        data = chunk.data
        whole = data.dtype == np.uint8 and data.ndim == 1 and data.size % size == 0
        require(whole, here, f"data must be whole records of {size} bytes", f"{data.size} bytes")
        possible = 0 <= chunk.first < 1 << 62
        require(possible, here, "first must be a record number", chunk.first)
    track = np.array([c.program * kernel.units + c.unit for c in launch.chunks], np.int64)
    first = np.array([c.first for c in launch.chunks], np.int64)
    count = np.array([c.data.size // size for c in launch.chunks], np.int64)
    limit = written - written % launch.capacity
    late = finished[track] & (first + count > limit[track])
    if late.any():
        worst = int(late.argmax())
        rule = f"records must lie before number {limit[track[worst]]}, where the segment begins"
        require(False, f"{where}, chunk {worst}", rule, first[worst] + count[worst])
    order = np.lexsort((first, track))
    same = track[order][1:] == track[order][:-1]
    overlap = same & (first[order][1:] < (first + count)[order][:-1])
    if overlap.any():
        worst = int(order[1:][overlap.argmax()])
        rule = "records must not be in an earlier chunk too"
        require(False, f"{where}, chunk {worst}", rule, f"first record {first[worst]}")
    return track, first, count


def check_records(
    kernel: Kernel,
    start: np.ndarray,
    end: np.ndarray,
    tag: np.ndarray,
    track: np.ndarray,
    where: str,
) -> np.ndarray:
    """The kind of each record, once each is known to name a scope of its kind and not to end
    before it starts."""
    kinds = scope_kinds(kernel)
    scope = tag & np.uint32(MAX_SCOPE_ID)
    _records(scope < kinds.size, scope, track, kernel, where, f"scope must be < {kinds.size}")
    _records(start <= end, end, track, kernel, where, "end must not lie before start")
    if not kinds.any():
        _records(tag == scope, tag >> KIND_SHIFT, track, kernel, where, "kind must be slice (0)")
        return np.zeros(tag.size, np.uint8)
    kind = tag >> np.uint32(KIND_SHIFT)
    fits = kind_fits(kind, kinds[scope])
    _records(fits, kind, track, kernel, where, "kind must be its scope's")
    return kind.astype(np.uint8)


def scope_kinds(kernel: Kernel) -> np.ndarray:
    """The kind of each scope's records; EVENT_START stands for both edges of an event."""
    return np.array([KINDS[scope.kind] for scope in kernel.scopes], np.uint32)


def kind_fits(kind: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Whether records have the kinds that their scopes say."""
    is_end = (kind == RecordKind.EVENT_END) & (wanted == RecordKind.EVENT_START)
    return np.asarray((kind == wanted) | is_end)


def _records(
    good: np.ndarray, value: np.ndarray, track: np.ndarray, kernel: Kernel, where: str, rule: str
) -> None:
    """Every record keeps the rule; the message names the first that does not."""
    if not good.all():
        worst = int(good.argmin())
        program, unit = divmod(int(track[worst]), kernel.units)
        number = worst - int(np.searchsorted(track, track[worst]))
        here = f"{where}, program {program}, unit {unit}, kept record {number}"
        require(False, here, rule, value[worst])
