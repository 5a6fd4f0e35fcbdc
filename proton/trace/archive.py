"""The `.proton` file: a RawRun as a zip of plain npy columns and one run.json.

docs/proton-file.md is its specification. Reading trusts nothing: sizes are checked before
anything is allocated, and nothing in the file is ever executed.
"""

import io
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from proton.base.errors import ProtonError
from proton.trace.archive_json import run_from_json, run_to_json
from proton.trace.check import require
from proton.trace.errors import TraceFormatError
from proton.trace.files import replacing
from proton.trace.model import Chunk, Clock, CounterSamples, Launch, RawRun

SUFFIX = ".proton"
SCHEMA = 12
# 2 had no payload values of the host that are not finite, 3 no launches of kernels without scopes,
# 4 no device of a host slice, 5 no work of a scope, 6 no counters, 7 no peer of a GPU, no operators
# and issuers, 8 no visits, 9 no code, 10 no program counters, 11 no overflows of these
READABLE = range(2, SCHEMA + 1)
RUN = "run.json"
LAUNCH_FIELDS = (
    "kernel",
    "grid_x",
    "grid_y",
    "grid_z",
    "capacity",
    "host_start",
    "host_end",
    "thread",
    "path",  # index into run.json's paths
    "bytes",  # of its part of buffers.npy
    "chunks",  # of its part of chunks.npy
    "device",
)
CHUNK_FIELDS = ("program", "unit", "first", "bytes")  # bytes of its part of chunk_data.npy
COLUMNS = {
    "clock_ticks.npy": "<u8",
    "clock_host_ns.npy": "<i8",
    "launches.npy": "<i8",  # rows of LAUNCH_FIELDS, end to end
    "chunks.npy": "<i8",  # rows of CHUNK_FIELDS, end to end
    "buffers.npy": "|u1",
    "chunk_data.npy": "|u1",
}
# Of runs with counters alone: for each GPU the samples' starts and ends, and the values, a row a
# sample, as the bits of doubles.
COUNTER_COLUMNS = {"counter_ns.npy": "<i8", "counter_values.npy": "<u8"}
# A reader refuses more than this much content per byte of file, beyond the floor; a writer
# stores what would compress better. Deflate alone reaches 1032.
MAX_RATIO = 256
RATIO_FLOOR = 64 << 20
COMPRESSION_LEVEL = 1  # level 6 saves an eighth of a profile buffer in 4 times the time

_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<|][ui][18])', 'fortran_order': False, 'shape': \((\d{1,18}),\), \} *\n"
)
_ZIP_BEGINS = (b"PK\x03\x04", b"PK\x05\x06")
# What zipfile and zlib raise for bytes that are no zip, or one cut short or altered.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def save(raw: RawRun, path: Path) -> None:
    """Writes the run to a file, whole or not at all."""
    with replacing(path) as file:
        write(raw, file, str(path))


def write(raw: RawRun, file: BinaryIO, where: str) -> None:
    """Writes the run to a binary file; `where` is its name in errors."""
    chunks = [chunk for launch in raw.launches for chunk in launch.chunks]
    paths = sorted({launch.path for launch in raw.launches})
    columns = {
        "clock_ticks.npy": raw.clock.ticks,
        "clock_host_ns.npy": raw.clock.host_ns,
        "launches.npy": _rows([_launch_row(launch, paths) for launch in raw.launches]),
        "chunks.npy": _rows([(c.program, c.unit, c.first, c.data.size) for c in chunks]),
        "buffers.npy": _concatenate([launch.buffer for launch in raw.launches]),
        "chunk_data.npy": _concatenate([chunk.data for chunk in chunks]),
    }
    if raw.counters:
        times = [t for samples in raw.counters for t in (samples.start_ns, samples.end_ns)]
        columns["counter_ns.npy"] = np.concatenate(times)
        values = [samples.values.astype(np.float64).ravel() for samples in raw.counters]
        columns["counter_values.npy"] = np.concatenate(values).view(np.uint64)
    document = _document(raw, paths, where)
    with zipfile.ZipFile(file, "w") as archive:
        _write(archive, RUN, document)
        for name, dtype in _dtypes(columns).items():
            data = io.BytesIO()
            array = np.ascontiguousarray(columns[name], dtype)
            np.lib.format.write_array(data, array, version=(1, 0), allow_pickle=False)
            _write(archive, name, data.getbuffer())


def _dtypes(names: Iterable[str]) -> dict[str, str]:
    """The dtypes of the columns of a run, with counters or without."""
    has_counters = any(name in COUNTER_COLUMNS for name in names)
    return COLUMNS | COUNTER_COLUMNS if has_counters else COLUMNS


def _document(raw: RawRun, paths: Sequence[str], where: str) -> bytes:
    """The run.json; raises ProtonError for a run that `load` would refuse."""
    try:
        document = json.dumps(run_to_json(raw, SCHEMA, paths), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ProtonError(f"{where}: options and machine must be JSON values: {error}") from error
    run_from_json(json.loads(document), READABLE, f"{where}: the run cannot be saved")
    return document


def load(path: Path) -> RawRun:
    """Reads a run back; raises TraceFormatError for a file that breaks the format."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise TraceFormatError(f"{path}: cannot be read: it is no regular file")
        _check_kind(path)
        with zipfile.ZipFile(path) as archive:
            _check_members(archive, path)
            dtypes = _dtypes(archive.namelist())
            members = {name: archive.read(name) for name in (RUN, *dtypes)}
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise TraceFormatError(f"{path}: cannot be read: {error.strerror}") from error
    except _ZIP_ERRORS as error:
        raise TraceFormatError(f"{path}: not a whole .proton archive: {error}") from error
    try:
        document = json.loads(members[RUN])
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(f"{path}, {RUN}: not JSON: {error}") from error
    columns = {
        name: _column(members[name], dtype, f"{path}, {name}") for name, dtype in dtypes.items()
    }
    run, paths, costs = run_from_json(document, READABLE, f"{path}, {RUN}")
    run.clock = Clock(
        ticks=columns["clock_ticks.npy"], host_ns=columns["clock_host_ns.npy"], **costs
    )
    run.launches = _launches(columns, paths, str(path))
    run.counters = _counters(run.counters, columns, str(path))
    return run


def _write(archive: zipfile.ZipFile, name: str, data: bytes | memoryview) -> None:
    """Adds a member: deflated, or stored where deflating passes what a reader accepts."""
    info = zipfile.ZipInfo(name)  # its fixed date keeps equal runs equal, byte by byte
    packed = zlib.compress(data, COMPRESSION_LEVEL, wbits=-zlib.MAX_WBITS)
    dense = len(data) <= MAX_RATIO * len(packed)
    info.compress_type = zipfile.ZIP_DEFLATED if dense else zipfile.ZIP_STORED
    archive.writestr(info, bytes(data), compresslevel=COMPRESSION_LEVEL)


def _launch_row(launch: Launch, paths: Sequence[str]) -> tuple[int, ...]:
    return (
        launch.kernel,
        *launch.grid,
        launch.capacity,
        launch.host_start,
        launch.host_end,
        launch.thread,
        paths.index(launch.path),
        launch.buffer.size,
        len(launch.chunks),
        launch.device,
    )


def _rows(rows: Sequence[tuple[int, ...]]) -> np.ndarray:
    return np.array(rows, np.int64).ravel()


def _concatenate(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([*parts, np.zeros(0, np.uint8)])


def _check_kind(path: Path) -> None:
    """Raises TraceFormatError for what does not begin as an archive does."""
    with path.open("rb") as file:
        begin = file.read(64)
    if begin.startswith(_ZIP_BEGINS):
        return
    if not begin:
        raise TraceFormatError(f"{path}: is no .proton file: it is empty")
    hint = ""
    if begin.lstrip().startswith(b"["):
        hint = (
            "; if it is a Hatchet file of Triton's Proton, explain, metrics, diff, check and "
            'history take it; a trace of it (data="trace") has more'
        )
    raise TraceFormatError(f"{path}: is no .proton file, which is a zip archive{hint}")


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Exactly the members there must be, and no more content than such a file can hold."""
    infos = archive.infolist()
    names = sorted(info.filename for info in infos)
    wanted = sorted([RUN, *_dtypes(names)])
    if RUN not in names:
        raise TraceFormatError(f"{path}: is no .proton file: a zip archive, but without {RUN}")
    require(names == wanted, str(path), f"members must be {wanted}", names[: len(wanted) + 1])
    for info in infos:
        method = info.compress_type
        plain = method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        where = f"{path}, {info.filename}"
        require(plain, where, "must be stored or deflated", f"method {method}")
    declared = sum(info.file_size for info in infos)
    limit = RATIO_FLOOR + MAX_RATIO * path.stat().st_size
    require(declared <= limit, str(path), f"content must be at most {limit} bytes", declared)


def _column(data: bytes, dtype: str, where: str) -> np.ndarray:
    """The array of a member: npy 1.0, one dimension, of the dtype that the format says."""
    start = len(_NPY_MAGIC) + 2
    require(data.startswith(_NPY_MAGIC), where, "must be npy version 1.0", data[:8])
    end = start + int.from_bytes(data[start - 2 : start], "little")
    header = _NPY_HEADER.fullmatch(data, start, end)
    if header is None:
        rule = f"header must say one dimension of {dtype}"
        raise TraceFormatError(f"{where}: {rule}, got {data[start:end][:100]!r}")
    kind, length = header[1].decode(), int(header[2])
    require(kind == dtype, where, f"dtype must be {dtype}", kind)
    size = length * np.dtype(dtype).itemsize
    left = len(data) - end
    require(left == size, where, f"must hold {length} items, {size} bytes", f"{left} bytes")
    return np.frombuffer(data, dtype, offset=end)


def _table(column: np.ndarray, fields: Sequence[str], where: str) -> list[dict[str, int]]:
    """Rows of named integers."""
    rule = f"must be rows of {len(fields)}"
    require(column.size % len(fields) == 0, where, rule, f"{column.size} integers")
    rows = column.reshape(-1, len(fields)).tolist()
    return [dict(zip(fields, row, strict=True)) for row in rows]


def _launches(columns: dict[str, np.ndarray], paths: Sequence[str], where: str) -> list[Launch]:
    launch_rows = _table(columns["launches.npy"], LAUNCH_FIELDS, f"{where}, launches.npy")
    chunk_rows = _table(columns["chunks.npy"], CHUNK_FIELDS, f"{where}, chunks.npy")
    buffers = _cut(columns["buffers.npy"], [r["bytes"] for r in launch_rows], where)
    data = _cut(columns["chunk_data.npy"], [r["bytes"] for r in chunk_rows], where)
    chunks = [
        Chunk(program=row["program"], unit=row["unit"], first=row["first"], data=part)
        for row, part in zip(chunk_rows, data, strict=True)
    ]
    shares = _cut(np.arange(len(chunks)), [r["chunks"] for r in launch_rows], where)
    launches = []
    for number, row in enumerate(launch_rows):
        here = f"{where}, launch {number}"
        require(0 <= row["path"] < len(paths), here, f"path must be < {len(paths)}", row["path"])
        launches.append(
            Launch(
                kernel=row["kernel"],
                grid=(row["grid_x"], row["grid_y"], row["grid_z"]),
                capacity=row["capacity"],
                host_start=row["host_start"],
                host_end=row["host_end"],
                buffer=buffers[number],
                chunks=[chunks[i] for i in shares[number]],
                path=paths[row["path"]],
                thread=row["thread"],
                device=row["device"],
            )
        )
    return launches


def _counters(
    declared: Sequence[CounterSamples], columns: dict[str, np.ndarray], where: str
) -> list[CounterSamples]:
    """The counters that run.json declares, with their samples."""
    nothing = np.zeros(0, np.int64)
    counts = [samples.start_ns.size for samples in declared]
    twice = [count for count in counts for _ in range(2)]
    times = _cut(columns.get("counter_ns.npy", nothing), twice, f"{where}, counter_ns.npy")
    sizes = [count * len(of.names) for count, of in zip(counts, declared, strict=True)]
    bits = columns.get("counter_values.npy", nothing)
    values = _cut(bits, sizes, f"{where}, counter_values.npy")
    found = []
    for number, of in enumerate(declared):
        start, end = times[2 * number : 2 * number + 2]
        rising = bool((start <= end).all() and (start[1:] >= start[:-1]).all())
        require(rising, f"{where}, counters {number}", "samples must be in order of time", start)
        own = values[number].view(np.float64).reshape(-1, len(of.names))
        found.append(replace(of, start_ns=start, end_ns=end, values=own))
    return found


def _cut(column: np.ndarray, sizes: Sequence[int], where: str) -> list[np.ndarray]:
    """The column in consecutive parts of these sizes, which must use all of it."""
    good = all(0 <= size <= column.size for size in sizes)
    require(good, where, f"a part must be of 0 to {column.size} items", sizes[:8])
    require(sum(sizes) == column.size, where, f"parts must sum to {column.size}", sum(sizes))
    ends = np.cumsum(np.array(sizes, np.int64))
    return [column[end - size : end] for end, size in zip(ends.tolist(), sizes, strict=True)]
