"""What `history` knows of runs, as a Parquet file: each run is read once, and may be gone then.

A row is a scope of a run, or a kernel's launches (`scope` is empty), with all statistics in ns:

    select began, commit, p50 from 'history.parquet' where kernel = 'add' and scope = 'load'

`digest` is of the run's file, so that a copy under another name is the same run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from proton.base.errors import ProtonError, reason
from proton.base.packages import need
from proton.base.progress import StepCounter, to_terminal
from proton.trace.files import replacing
from proton.viewer.compare.samples import (
    STATS,
    SUFFIXES,
    Group,
    Process,
    Row,
    Variant,
    read,
)
from proton.viewer.export.parquet import write_frame

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = ".parquet"
NOTE, VERSION = "proton.history", "1"  # of the columns, in the file's metadata
OF_RUN = ("digest", "path", "began", "commit", "lost", "partial", "machine")
COLUMNS = (*OF_RUN, "kernel", "signature", "target", "scope", *STATS)
Runs = dict[str, Process]  # by digest


def runs_of(files: Iterable[Path], left_out: list[str] | None = None) -> Runs:
    """The runs in files: stores, and what they lack. Of runs that cannot be read the errors are
    added to `left_out`, or the first is raised."""
    runs: list[Path] = []
    stores: list[Path] = []
    for file in sorted(files):
        (stores if file.suffix == SUFFIX else runs).append(file)
    found: Runs = {}
    for file in stores:
        found |= _load(file)
    progress = StepCounter("run", len(runs), to_terminal)
    for file in runs:
        try:
            with file.open("rb") as bytes_:
                digest = hashlib.file_digest(bytes_, "sha256").hexdigest()
            if digest not in found:
                found[digest] = read(file, False, False, {})
        except (ProtonError, OSError) as error:
            if left_out is None:
                raise
            left_out.append(reason(error))
        progress.step()
    return found


def files_in(folder: Path) -> list[Path]:
    """The runs and stores in a folder and those inside of it; other Parquet files are neither."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [
        file
        for file in files
        if file.suffix in SUFFIXES or (file.suffix == SUFFIX and _version(file))
    ]


def save(runs: Runs, path: Path) -> None:
    """Writes a store, whole or not at all."""
    import pandas as pd

    need_parquet()
    rows = [row for digest, process in runs.items() for row in _rows(digest, process)]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table = table.astype(dict.fromkeys(STATS, "float64"))
    table["began"] = pd.to_datetime(table["began"], unit="ns", utc=True)
    with replacing(path) as file:
        write_frame(table.sort_values("began", kind="stable"), file, {NOTE: VERSION})


def need_parquet() -> None:
    """Raises MissingPackage where stores can be neither read nor written."""
    need("a store of runs", "pyarrow", "parquet", "history DIR without --store needs no package")


def _rows(digest: str, process: Process) -> list[tuple[object, ...]]:
    """The rows of a run; one that launched nothing has one, without a kernel."""
    of_run = (digest, process.path, process.began_unix_ns, process.commit, process.lost,
              process.partial, json.dumps(process.machine))  # fmt: skip
    if not process.rows:
        return [(*of_run, *[None] * (len(COLUMNS) - len(OF_RUN)))]
    return [
        (*of_run, *group.variant, process.targets[group.variant], group.scope,
         *(row.get(stat) for stat in STATS))
        for group, row in process.rows.items()
    ]  # fmt: skip


def _version(path: Path) -> str:
    """That of a store; empty of another Parquet file."""
    need_parquet()
    import pyarrow.parquet

    try:
        notes = pyarrow.parquet.read_metadata(path).metadata or {}
    except pyarrow.ArrowException as error:
        raise ProtonError(f"{path}: is no Parquet file: {error}") from None
    return str(notes.get(NOTE.encode(), b"").decode())


def _load(path: Path) -> Runs:
    """The runs of a store."""
    version = _version(path)
    if version != VERSION:
        rule = "is of another version of Proton" if version else "is no store of runs"
        raise ProtonError(f"{path}: {rule}: `history RUNS --store FILE` writes one")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path, columns=list(COLUMNS)).to_pandas()
    return {str(digest): _process(rows) for digest, rows in table.groupby("digest", sort=False)}


def _process(rows: pd.DataFrame) -> Process:
    first, *_ = records = rows.to_dict("records")
    measured = [record for record in records if isinstance(record["kernel"], str)]
    return Process(
        path=str(first["path"]),
        began_unix_ns=first["began"].value,
        machine=json.loads(first["machine"]),
        missing=(),
        lost=bool(first["lost"]),
        partial=bool(first["partial"]),
        targets={_variant(record): str(record["target"]) for record in measured},
        rows={Group(_variant(r), str(r["scope"])): _statistics(r) for r in measured},
        batches={},
        commit=str(first["commit"]),
    )


def _variant(record: Mapping[object, object]) -> Variant:
    return Variant(str(record["kernel"]), str(record["signature"]))


def _statistics(record: Mapping[object, object]) -> Row:
    """Those that are there: a Hatchet file has sums alone."""
    values = {stat: float(str(record[stat])) for stat in STATS}
    return {stat: value for stat, value in values.items() if value == value}
