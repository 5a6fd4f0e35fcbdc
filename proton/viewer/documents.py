"""The documents that `summary`, `stats`, `explain`, `diff`, `check` and `history` print as JSON.

Each is an object with the version of all of them (`schema`) and which one it is (`kind`).
documents.json is their JSON Schema; whatever a reader of it would notice counts `SCHEMA` up.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 3
FILE = Path(__file__).with_suffix(".json")
DIGITS = 15  # the most that pandas offers


def document(kind: str, fields: Mapping[str, object]) -> str:
    """A document as JSON that any terminal takes."""
    return json.dumps({"schema": SCHEMA, "kind": kind, **fields}, allow_nan=False, indent=1)


def rows(table: "pd.DataFrame") -> list[dict[str, object]]:
    """A table as a document has it."""
    found: list[dict[str, object]] = json.loads(
        table.to_json(orient="records", double_precision=DIGITS)
    )
    return found


def statistics(table: "pd.DataFrame", metric: str) -> dict[str, object]:
    """Statistics, and what they are of: `corrected_ns`, `dur_ns` or `cycles`."""
    return {"metric": metric, "rows": rows(table)}
