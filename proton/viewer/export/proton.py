"""The `.proton` file: everything, and the only format that is read again."""

from pathlib import Path
from typing import BinaryIO

from proton.trace import archive
from proton.viewer.formats import FileFormat
from proton.viewer.tables import Tables


def write(tables: Tables, file: BinaryIO, target: Path) -> None:
    """Writes the raw run."""
    archive.write(tables.raw, file, str(target))


FORMAT = FileFormat(name="proton", suffixes=(archive.SUFFIX,), about="everything", write=write)
