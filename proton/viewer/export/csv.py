"""The table of slices as comma-separated values."""

from pathlib import Path
from typing import BinaryIO

from proton.viewer.formats import FileFormat
from proton.viewer.tables import Tables
from proton.viewer.tables.cells import as_cells


def write(tables: Tables, file: BinaryIO, target: Path) -> None:
    """Writes one row a slice, harmless to a spreadsheet."""
    as_cells(tables.frame).to_csv(file, index=False)


FORMAT = FileFormat(name="csv", suffixes=(".csv",), about="one row a slice", write=write)
