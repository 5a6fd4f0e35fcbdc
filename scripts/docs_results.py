"""Writes the tables of measurements into the pages, from benchmarks/results/*.json.

    python scripts/docs_results.py [--check]

A page has `<!-- results: NAME -->` and `<!-- end of results -->`. Between them stands the table of
benchmarks/results/NAME.json. With `--check` nothing is written: pages that would change are named,
and the exit status is 1 if there are any.

A file is one table:

    columns   a list of {key, name, digits}: the key of a row's value, the head, and the digits
              behind the point that a number is shown with (none: a number as it is)
    machine   where the values were measured, which the page says
    sources   by name {command, commit, date, machine, note}: what a value was measured by. `commit`
              is null where it was not noted; `machine` is there if it is another one
    rows      values by key, and `source`. A value is a number, a text, or a number with its range:
              {"median", "low", "high"}. A value that was not measured is left out

Below a table stands what it was measured by: a letter for each source, if there are several. A file
with `"brief": true` is a table of figures that others have, without that.
"""

import json
import re
import sys
from pathlib import Path
from string import ascii_lowercase
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"
PAGES = [
    ROOT / "README.md",
    *(ROOT / f"docs/{name}.md" for name in ("gpu-results", "cpu-results", "viewer")),
]
BLOCK = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end of results -->)", re.S)


def shown(value: Any, digits: int | None) -> str:
    """A value of a row as text: `1.178`, `214 (202 to 238)`, or nothing where there is none."""
    if value is None:
        return ""
    if isinstance(value, dict):
        low, median, high = (shown(value[key], digits) for key in ("low", "median", "high"))
        return f"{median} ({low} to {high})"
    if isinstance(value, str) or digits is None:
        return str(value)
    return f"{value:.{digits}f}"


def said(source: dict[str, Any]) -> str:
    """What a value was measured by, as a sentence."""
    commit = f"commit {source['commit']}" if source["commit"] else "commit not noted"
    machine = f", {source['machine']}" if "machine" in source else ""
    note = f" {source['note']}" if "note" in source else ""
    return f"`{source['command']}`, {commit}, {source['date']}{machine}.{note}"


def table(name: str) -> str:
    """The table of a file of results as Markdown, with its sources below."""
    results = json.loads((RESULTS / f"{name}.json").read_text())
    columns, sources = results["columns"], results["sources"]
    letters = dict(zip(sources, ascii_lowercase, strict=False)) if len(sources) > 1 else {}
    heads = [column["name"] for column in columns] + [""] * bool(letters)
    lines = [f"|{'|'.join(heads)}|", "|---" * len(heads) + "|"]
    for row in results["rows"]:
        cells = [shown(row.get(column["key"]), column.get("digits")) for column in columns]
        cells += [letters[row["source"]]] if letters else []
        lines.append(f"|{'|'.join(cells)}|")
    if not results.get("brief"):
        marks = {key: f"- {letter}: " for key, letter in letters.items()}
        lines += ["", *(marks.get(key, "") + said(source) for key, source in sources.items())]
    return "\n".join(lines) + "\n"


def written(page: Path) -> str:
    """A page with its tables as the results have them."""
    return BLOCK.sub(lambda found: found[1] + table(found[2]) + found[3], page.read_text())


def main() -> int:
    """Writes the pages, or with `--check` names those that differ; the exit status."""
    stale = [page for page in PAGES if written(page) != page.read_text()]
    for page in stale:
        print(page.relative_to(ROOT))
        if "--check" not in sys.argv:
            page.write_text(written(page))
    return int("--check" in sys.argv and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
