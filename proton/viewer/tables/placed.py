"""What the compiler recorded by itself, and what that cost: a row a scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proton.trace.model import RawRun
from proton.trace.records import NONE, RecordTable
from proton.viewer.tables.labels import variant_numbers

if TYPE_CHECKING:
    import pandas as pd


def placed(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row a scope that the compiler placed.

    `records` are those that are there, `per_iteration` how many of them an iteration of a unit has
    (of its loops, where it is in one), and `cost_ns` what they took of the time of all units.
    """
    import pandas as pd

    numbers = variant_numbers(raw.kernels)
    owners = [
        (kernel.name, number, scope)
        for kernel, number in zip(raw.kernels, numbers, strict=True)
        for scope in kernel.scopes
    ]
    rows = np.flatnonzero(np.array([bool(scope.work) for _, _, scope in owners], bool))
    count = np.bincount(records.scope, minlength=len(owners))[rows]
    cost = np.bincount(records.scope, records.slice_cost_ns[records.track], len(owners))[rows]
    return pd.DataFrame(
        {
            "kernel": [owners[row][0] for row in rows],
            "variant": np.array([owners[row][1] for row in rows], np.int64),
            "work": [owners[row][2].work for row in rows],
            "kind": [owners[row][2].kind for row in rows],
            "name": [owners[row][2].name for row in rows],
            "scope": [owners[row][2].path for row in rows],
            "file": [owners[row][2].file for row in rows],
            "line": np.array([owners[row][2].line for row in rows], np.int64),
            "records": count,
            "per_iteration": _per_iteration(records, len(owners))[rows],
            "cost_ns": cost,
        }
    )


def _per_iteration(records: RecordTable, scopes: int) -> np.ndarray:
    """How many records of each scope an iteration has that has some; 0 outside of loops."""
    rows = np.flatnonzero(records.iteration != NONE)
    columns = records.scope[rows], records.track[rows], records.iteration[rows]
    found = np.unique(np.stack([column.astype(np.int64) for column in columns]), axis=1)
    iterations = np.bincount(found[0], minlength=scopes)
    counts = np.bincount(records.scope[rows], minlength=scopes)
    return np.asarray(counts / np.maximum(iterations, 1))


def cost_line(table: pd.DataFrame) -> str:
    """The table in one line."""
    total, cost = int(table["records"].sum()), float(table["cost_ns"].sum())
    each = cost / total if total else 0.0
    iterations = table.groupby(["kernel", "variant"])["per_iteration"].sum()
    most = f"{iterations.max():.0f} an iteration" if len(iterations) else "none"
    return f"{len(table)} scopes, {total} records of {each:.1f} ns each, at most {most}"
