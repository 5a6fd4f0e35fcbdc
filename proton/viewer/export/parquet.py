"""The table of slices as Parquet, which DuckDB, polars and pandas read by column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from proton.viewer.formats import FileFormat
from proton.viewer.tables import Tables

if TYPE_CHECKING:
    import pandas as pd


def write(tables: Tables, file: BinaryIO, target: Path) -> None:
    """Writes one row a slice; payload values are columns of their own (`payload.k`)."""
    notes = {"proton.run": tables.name, "proton.warnings": json.dumps(tables.loss_warnings())}
    write_frame(tables.frame.drop(columns="payload"), file, notes)


def write_frame(frame: pd.DataFrame, file: BinaryIO, notes: Mapping[str, str]) -> None:
    """Writes a table, with notes in the file's metadata."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    encoded = {k: v.encode(errors="backslashreplace") for k, v in notes.items()}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **encoded})
    pyarrow.parquet.write_table(table, file)


FORMAT = FileFormat(
    name="parquet",
    suffixes=(".parquet",),
    about="one row a slice, by column",
    write=write,
    package="pyarrow",
    extra="parquet",
    without="csv (.csv) needs no package",
)
