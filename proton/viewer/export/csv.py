"""The table of slices as comma-separated values."""

from pathlib import Path
from typing import BinaryIO

from proton.base.progress import StepCounter, to_terminal
from proton.viewer.formats import FileFormat
from proton.viewer.tables import Tables
from proton.viewer.tables.cells import as_cells

BLOCK_ROWS = 1 << 16


def write(tables: Tables, file: BinaryIO, target: Path) -> None:
    """Writes one row a slice, harmless to a spreadsheet."""
    frame = tables.frame
    progress = StepCounter("slice", len(frame), to_terminal)
    for first in range(0, max(len(frame), 1), BLOCK_ROWS):
        rows = frame.iloc[first : first + BLOCK_ROWS]
        as_cells(rows).to_csv(file, index=False, header=not first)
        progress.step(len(rows))


FORMAT = FileFormat(name="csv", suffixes=(".csv",), about="one row a slice", write=write)
