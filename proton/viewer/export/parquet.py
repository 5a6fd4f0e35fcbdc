"""The table of slices as Parquet, which DuckDB, polars and pandas read by column."""

import json
from pathlib import Path
from typing import BinaryIO

from proton.viewer.formats import FileFormat
from proton.viewer.tables import Tables


def write(tables: Tables, file: BinaryIO, target: Path) -> None:
    """Writes one row a slice; payload values are columns of their own (`payload.k`)."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pandas(tables.frame.drop(columns="payload"), preserve_index=False)
    notes = {"proton.run": tables.name, "proton.warnings": json.dumps(tables.loss_warnings())}
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
