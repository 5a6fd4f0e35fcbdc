"""All tables as one JSON object, a list of rows each, and what they lack."""

import json
from pathlib import Path
from typing import BinaryIO

from proton.viewer.formats import FileFormat
from proton.viewer.tables import Tables

DIGITS = 15  # the most that pandas offers
TABLES = ("frame", "marks", "events", "flights", "losses", "launches", "optimized_out")


def write(tables: Tables, file: BinaryIO, target: Path) -> None:
    """Writes the object, a table a line."""
    opening = b"{"
    for name in TABLES:
        rows = getattr(tables, name).to_json(orient="records", double_precision=DIGITS)
        file.write(opening + f'"{name}": {rows}'.encode())
        opening = b",\n"
    file.write(b',\n"warnings": ' + json.dumps(tables.loss_warnings()).encode() + b"}\n")


FORMAT = FileFormat(name="json", suffixes=(), about="all tables", write=write)
