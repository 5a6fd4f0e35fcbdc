"""`proton-tile sql`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.packages import need
from proton.viewer.cli.app import Json, Shape, app, print_frame, warn
from proton.viewer.compare.store import NOTE
from proton.viewer.compare.store import SUFFIX as PARQUET
from proton.viewer.run import Run

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

TABLES = {"slices": "frame", "marks": "marks", "events": "events", "flights": "flights",
          "launches": "launches", "programs": "programs", "losses": "losses"}  # fmt: skip
LIST = "select table_name, column_name, data_type from information_schema.columns order by all"


@app.command()
def sql(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .proton, .chrome_trace or .parquet file.")
    ],
    query: Annotated[
        str, typer.Argument(metavar="[QUERY]", help="SQL; without it, the tables are listed.")
    ] = "",
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
    to_json: Json = False,
) -> None:
    """Ask the tables of a run in SQL, with DuckDB (pip install 'proton-tile\\[sql]').

    Tables: slices (run.frame; payload values are columns such as "payload.k"), marks, events,
    flights, launches, programs, losses; of a Parquet file slices, or history, where it is a store
    of runs (proton-tile history --store). Times are in ns.

    [bold]Examples[/bold]

        proton-tile sql add.proton

        proton-tile sql add.proton "select scope, sum(dur_ns) from slices group by all"
    """
    format = Shape.JSON if to_json else format
    need("sql", "duckdb", "sql", "run.frame and export need no package")
    run = None if file.suffix == PARQUET else Run.load(file)
    table = ask(file if run is None else run, query or LIST)
    print_frame(table, format, [n for n in table if table[n].dtype.kind in "iuf"])
    if run is not None:
        warn(run)


def ask(asked: Run | Path, query: str) -> "pd.DataFrame":
    """The answer of a query over the tables of a run, or a Parquet file of slices or of the history
    of runs; nothing but those can be read."""
    import duckdb

    with duckdb.connect(":memory:") as database:
        try:
            _fill(database, asked)
            database.execute("set enable_external_access = false")
            found = database.execute(query)
            return found.df() if found.description else _empty()
        except duckdb.Error as error:
            raise ProtonError(str(error)) from None


def _fill(database: "duckdb.DuckDBPyConnection", asked: Run | Path) -> None:
    if isinstance(asked, Path):
        notes = database.execute("select key from parquet_kv_metadata(?)", [str(asked)]).fetchall()
        table = "history" if (NOTE.encode(),) in notes else "slices"
        database.execute(f"create table {table} as select * from read_parquet(?)", [str(asked)])
        return
    for name, attribute in TABLES.items():
        table = getattr(asked, attribute)
        if "payload" in table:
            table = table.drop(columns="payload")
        if name == "launches":
            table = table.rename_axis("launch").reset_index()
            table = table.assign(grid=table["grid"].map(str))
        database.register(f"{name}_", table)
        database.execute(f"create table {name} as select * from {name}_")
        database.unregister(f"{name}_")


def _empty() -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame()
