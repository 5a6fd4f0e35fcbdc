"""The run.json of a `.proton` file: everything of a RawRun that is not a column."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from proton.trace.check import require
from proton.trace.model import (
    NO_PEER,
    OPERATOR,
    Clock,
    CounterSamples,
    GPUClock,
    HostSlice,
    Kernel,
    PayloadField,
    PCSamples,
    RawRun,
    Scope,
    Strategy,
)
from proton.trace.profile import scope_to_plain
from proton.trace.schema import Fields, Json, integer, scalar, scalar_to_json, text, texts

HOST_KINDS = ("host", "compile", OPERATOR)
GPU_KINDS = ("kernel", "memcpy", "memset")  # of what has a device
FIRST_WITH_WORK = 6  # the schema in which scopes say what work they are of
FIRST_WITH_COUNTERS = 7  # and that of counters
FIRST_WITH_VISITS = 9  # and that of runs of scopes that are several slices
FIRST_WITH_PC_SAMPLES = 11  # and that of program counters
FIRST_WITH_OVERFLOWS = 12  # and that of full buffers of these
FIRST_WITH_CODE = 10  # and that of kernels' code and source
FIRST_WITH_PEERS = 8  # and that of the GPU by whose clock another one's is
MAX_SAMPLES, MAX_COUNTERS = 1 << 24, 64
MOST_PC_SAMPLES = 1 << 53  # of a kernel: sums of those of several runs fit in 64 bits
CLOCK_COSTS = ("error_ns", "slice_cost_ns", "edge_cost_ns")


def run_to_json(raw: RawRun, schema: int, paths: Sequence[str]) -> dict[str, Json]:
    """The document; `paths` are the host-scope paths that launches refer to by index."""
    return {
        "schema": schema,
        "name": raw.name,
        "origin_ns": raw.origin_ns,
        "origin_unix_ns": raw.origin_unix_ns,
        "clock": {name: float(getattr(raw.clock, name)) for name in CLOCK_COSTS},
        "gpus": [_gpu_to_json(gpu) for gpu in raw.gpus],
        "dropped_launches": raw.dropped_launches,
        "machine": raw.machine,
        "sources": raw.sources,
        "paths": list(paths),
        "kernels": [_kernel_to_json(kernel) for kernel in raw.kernels],
        "host": [_host_to_json(slice_) for slice_ in raw.host],
        "counters": [_counters_to_json(samples) for samples in raw.counters],
    }


def run_from_json(
    document: Json, schemas: range, where: str
) -> tuple[RawRun, tuple[str, ...], dict[str, float]]:
    """The run without its clock pairs and launches, the paths, and the clock's costs."""
    fields = Fields(document, where)
    version = fields.integer("schema")
    newer = "; a newer Proton wrote it: update this one (pip install -U proton-tile)"
    hint = newer if version > schemas[-1] else ""
    require(
        version in schemas,
        where,
        f"schema must be {schemas[0]} to {schemas[-1]}",
        f"{version}{hint}",
    )
    clock = Fields(fields.take("clock"), f"{where}, clock")
    costs = {name: clock.number(name) for name in CLOCK_COSTS}
    clock.done()
    paths = texts(fields.items("paths"), f"{where}, paths")
    run = RawRun(
        name=fields.text("name"),
        origin_ns=fields.integer("origin_ns"),
        origin_unix_ns=fields.integer("origin_unix_ns"),
        clock=Clock(ticks=np.zeros(0, np.uint64), host_ns=np.zeros(0, np.int64)),
        gpus=[
            _gpu_from_json(value, f"{where}, gpu {number}", version)
            for number, value in enumerate(fields.items("gpus"))
        ],
        dropped_launches=fields.integer("dropped_launches"),
        machine=fields.object("machine"),
        sources=_texts_by_name(fields, "sources", where) if version >= FIRST_WITH_CODE else {},
        kernels=[
            _kernel_from_json(value, f"{where}, kernel {number}", version)
            for number, value in enumerate(fields.items("kernels"))
        ],
        host=[
            _host_from_json(value, f"{where}, host scope {number}")
            for number, value in enumerate(fields.items("host"))
        ],
        counters=[
            _counters_from_json(value, f"{where}, counters {number}")
            for number, value in enumerate(_later(fields, "counters", version))
        ],
    )
    fields.done()
    return run, paths, costs


def _later(fields: Fields, name: str, version: int) -> list[Json]:
    """The items of a field that schemas before that of counters have not."""
    return fields.items(name) if version >= FIRST_WITH_COUNTERS else []


def _texts_by_name(fields: Fields, name: str, where: str) -> dict[str, str]:
    """An object whose values are text."""
    found, where = fields.object(name), f"{where}, {name}"
    return {text(key, where): text(value, where) for key, value in found.items()}


def _counters_to_json(samples: CounterSamples) -> dict[str, Json]:
    return {
        "device": samples.device,
        "samples": len(samples.values),
        "names": list(samples.names),
        "metrics": list(samples.metrics),
        "units": list(samples.units),
        "error_ns": float(samples.error_ns),
    }


def _counters_from_json(value: Json, where: str) -> CounterSamples:
    """Counters with room for their samples, which are columns of the archive."""
    fields = Fields(value, where)
    device, count = fields.integer("device"), fields.integer("samples")
    require(0 <= count <= MAX_SAMPLES, where, f"samples must be at most {MAX_SAMPLES}", count)
    require(device >= 0, where, "device must be the number of a GPU", device)
    names, metrics, units = (
        texts(fields.items(name), f"{where}, {name}") for name in ("names", "metrics", "units")
    )
    same = len(names) == len(metrics) == len(units) <= MAX_COUNTERS
    rule = f"names, metrics and units must pair, at most {MAX_COUNTERS}"
    require(same, where, rule, (names, metrics, units))
    error = fields.number("error_ns")
    fields.done()
    return CounterSamples(
        device=device,
        start_ns=np.zeros(count, np.int64),
        end_ns=np.zeros(count, np.int64),
        names=names,
        metrics=metrics,
        units=units,
        values=np.zeros((0, len(names))),
        error_ns=error,
    )


def _gpu_to_json(gpu: GPUClock) -> dict[str, Json]:
    return {
        "device": gpu.device,
        "name": gpu.name,
        "timer_ns": gpu.timer_ns.tolist(),
        "host_ns": gpu.host_ns.tolist(),
        "error_ns": float(gpu.error_ns),
        "slice_cost_cycles": float(gpu.slice_cost_cycles),
        "edge_cost_cycles": float(gpu.edge_cost_cycles),
        "peer": gpu.peer,
        "peer_error_ns": float(gpu.peer_error_ns),
    }


def _gpu_from_json(value: Json, where: str, version: int) -> GPUClock:
    fields, has_peer = Fields(value, where), version >= FIRST_WITH_PEERS

    def times(name: str) -> np.ndarray:
        return np.array([integer(t, f"{where}, {name}") for t in fields.items(name)], np.int64)

    gpu = GPUClock(
        device=fields.integer("device"),
        name=fields.text("name"),
        timer_ns=times("timer_ns"),
        host_ns=times("host_ns"),
        error_ns=fields.number("error_ns"),
        slice_cost_cycles=fields.number("slice_cost_cycles"),
        edge_cost_cycles=fields.number("edge_cost_cycles"),
        peer=fields.integer("peer") if has_peer else NO_PEER,
        peer_error_ns=fields.number("peer_error_ns") if has_peer else 0.0,
    )
    fields.done()
    return gpu


def _kernel_to_json(kernel: Kernel) -> dict[str, Json]:
    return {
        "name": kernel.name,
        "key": kernel.key,
        "target": kernel.target,
        "strategy": kernel.strategy_name,
        "scopes": [scope_to_plain(scope) for scope in kernel.scopes],
        "emptied": list(kernel.optimized_out),
        "units": kernel.units,
        "payload_slots": kernel.payload_slots,
        "unit_warps": kernel.unit_warps,
        "clock_bits": kernel.clock_bits,
        "options": kernel.options,
        "code": kernel.code,
        "pc_samples": [] if kernel.pc_samples is None else [_pcs_to_json(kernel.pc_samples)],
    }


def _kernel_from_json(value: Json, where: str, schema: int) -> Kernel:
    fields = Fields(value, where)
    strategy = fields.text("strategy")
    known = ["none", *(entry.value for entry in Strategy)]
    require(strategy in known, where, f"strategy must be one of {known}", strategy)
    sampled = fields.items("pc_samples") if schema >= FIRST_WITH_PC_SAMPLES else []
    require(len(sampled) <= 1, where, "pc_samples must be one entry or none", len(sampled))
    kernel = Kernel(
        name=fields.text("name"),
        key=fields.text("key"),
        target=fields.text("target"),
        strategy=None if strategy == "none" else Strategy(strategy),
        scopes=tuple(
            _scope_from_json(scope, f"{where}, scope {number}", schema)
            for number, scope in enumerate(fields.items("scopes"))
        ),
        optimized_out=texts(fields.items("emptied"), f"{where}, emptied"),
        units=fields.integer("units"),
        payload_slots=fields.integer("payload_slots"),
        unit_warps=fields.integer("unit_warps"),
        clock_bits=fields.integer("clock_bits"),
        options=fields.object("options"),
        code=_texts_by_name(fields, "code", where) if schema >= FIRST_WITH_CODE else {},
        pc_samples=_pcs_from_json(sampled[0], f"{where}, pc_samples", schema) if sampled else None,
    )
    fields.done()
    return kernel


def _pcs_to_json(samples: PCSamples) -> dict[str, Json]:
    return {
        "cycles": samples.cycles,
        "launches": samples.launches,
        "dropped": samples.dropped,
        "overflows": samples.overflows,
        "functions": list(samples.functions),
        "reasons": list(samples.reasons),
        "rows": [list(row) for row in samples.rows],
        "cubin": samples.cubin,
    }


def _pcs_from_json(value: Json, where: str, schema: int) -> PCSamples:
    fields = Fields(value, where)
    functions, reasons = (
        texts(fields.items(name), f"{where}, {name}") for name in ("functions", "reasons")
    )
    rows = fields.items("rows")
    for row in rows:
        good = isinstance(row, list) and len(row) == 4
        require(good, where, "a row must be [function, offset, reason, samples]", row)
        function, offset, reason, count = (integer(entry, f"{where}, rows") for entry in row)
        good = 0 <= function < len(functions) and 0 <= reason < len(reasons)
        good = good and offset >= 0 and count > 0
        require(good, where, "a row must name a function and a reason, and count samples", row)
    whole = sum(row[-1] for row in rows)
    require(whole <= MOST_PC_SAMPLES, where, f"at most {MOST_PC_SAMPLES} samples", whole)
    samples = PCSamples(
        cycles=fields.integer("cycles"),
        launches=fields.integer("launches"),
        dropped=fields.integer("dropped"),
        overflows=fields.integer("overflows") if schema >= FIRST_WITH_OVERFLOWS else 0,
        functions=functions,
        reasons=reasons,
        rows=tuple(map(tuple, rows)),
        cubin=fields.text("cubin"),
    )
    fields.done()
    return samples


def _scope_from_json(value: Json, where: str, schema: int) -> Scope:
    fields = Fields(value, where)
    is_new, with_visits = schema >= FIRST_WITH_WORK, schema >= FIRST_WITH_VISITS
    payload = []
    for pair in fields.items("payload"):
        good = isinstance(pair, list) and len(pair) == 2
        require(good, where, "a payload field must be [name, kind]", pair)
        payload.append(PayloadField(name=text(pair[0], where), kind=text(pair[1], where)))
    scope = Scope(
        name=fields.text("name"),
        path=fields.text("path"),
        kind=fields.text("kind"),
        fused=fields.boolean("fused"),
        payload=tuple(payload),
        file=fields.text("file"),
        line=fields.integer("line"),
        work=fields.text("work") if is_new else "",
        queue=fields.text("queue") if is_new else "",
        pendings=fields.integer("pendings") if is_new else 0,
        visit=fields.integer("visit") if with_visits else 0,
        piece=fields.integer("piece") if with_visits else 0,
        waits=fields.boolean("waits") if with_visits else False,
        ahead=fields.boolean("ahead") if with_visits else False,
    )
    fields.done()
    return scope


def _host_to_json(slice_: HostSlice) -> Json:
    payload = {name: scalar_to_json(value) for name, value in slice_.payload.items()}
    times = slice_.start, slice_.end
    place = slice_.thread, *times, payload, slice_.kind, slice_.device
    issued = [slice_.issuer, slice_.issued] if slice_.issued else []
    return [slice_.name, slice_.path, *place, *issued]


def _host_from_json(value: Json, where: str) -> HostSlice:
    good = isinstance(value, list) and len(value) in (6, 7, 8, 10)
    rule = "must be [name, path, thread, start, end, payload, kind, device, issuer, issued]"
    require(good, where, rule, type(value).__name__)
    later = [HOST_KINDS[0], -1, 0, 0]  # what older schemas do not say, or nobody knows
    entries: list[Any] = [*value, *later[len(value) - 6 :]]
    name, path, thread, start, end, payload, kind, number, issuer, issued = entries
    device = integer(number, where)
    kinds = HOST_KINDS if device < 0 else GPU_KINDS
    require(kind in kinds, where, f"kind must be one of {kinds}", kind)
    values = Fields(payload, f"{where}, payload").values
    return HostSlice(
        name=text(name, where),
        path=text(path, where),
        thread=integer(thread, where),
        start=integer(start, where),
        end=integer(end, where),
        kind=kind,
        device=device,
        issuer=integer(issuer, where),
        issued=integer(issued, where),
        payload={
            text(key, f"{where}, payload"): scalar(entry, f"{where}, payload, {key!r}")
            for key, entry in values.items()
        },
    )
