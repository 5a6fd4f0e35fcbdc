"""What the extras `plot`, `parquet` and `sql` bring; each test is skipped where its package is not.

`make test` installs them all.
"""

import importlib
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from synthetic import gpu_run

from proton.base.errors import ProtonError
from proton.trace.model import RawRun
from proton.viewer import Run
from proton.viewer.pictures import heatmap
from proton.viewer.pictures.picture import Picture
from proton.viewer.pictures.selection import EVERYTHING
from proton.viewer.pictures.timeline import Timeline
from proton.viewer.pictures.timeline_picture import draw

SEED = random.randrange(1 << 30)
SHARPER = 2  # pixels of a PNG for one of its picture


@pytest.fixture
def raw() -> RawRun:
    print(f"seed {SEED}")
    return gpu_run(SEED, mixed=True)


def rgb(color: str) -> list[int]:
    """The parts of #rrggbb."""
    return list(bytes.fromhex(color[1:7]))


PICTURES: dict[str, Callable[[Run], Picture]] = {
    "timeline": lambda run: draw(Timeline(run), 500, tracks=20),
    "heatmap": lambda run: heatmap.draw(heatmap.heat(run, None, EVERYTHING, 20, 200)),
}


@pytest.mark.parametrize("kind", ["timeline", "heatmap"])
def test_a_png_has_each_box_where_the_picture_has_it(
    kind: str, raw: RawRun, tmp_path: Path
) -> None:
    """Painted again by numpy, box by box: equal but for the pixels at edges, which are mixed."""
    pytest.importorskip("matplotlib")
    image = pytest.importorskip("PIL.Image")
    run = Run(raw)
    picture = PICTURES[kind](run)
    picture.labels.clear()
    saved = run.save(tmp_path / "a.png", picture=picture)
    with image.open(saved) as opened:
        found = np.asarray(opened.convert("RGB"))
    assert found.shape[:2] == (picture.height * SHARPER, picture.width * SHARPER)
    painted = np.full_like(found, 255)
    is_edge = np.zeros(found.shape[:2], bool)
    for box in picture.boxes:
        ends = [box.x, box.x + box.width, box.y, box.y + box.height]
        left, right, top, bottom = (SHARPER * end for end in ends)
        inner = [int(np.ceil(left)), int(right), int(np.ceil(top)), int(bottom)]
        y, x = slice(max(inner[2], 0), inner[3]), slice(max(inner[0], 0), inner[1])
        painted[y, x] = rgb(box.fill)
        for edge in (left, right):
            at = int(max(edge, 0))
            is_edge[int(max(top, 0)) : int(np.ceil(bottom)), max(at - 1, 0) : at + 2] = True
        for edge in (top, bottom):
            at = int(max(edge, 0))
            is_edge[max(at - 1, 0) : at + 2, int(max(left, 0)) : int(np.ceil(right))] = True
    assert len({box.fill for box in picture.boxes}) > 3
    assert is_edge.mean() < 0.5
    for row, want, edge in zip(found, painted, is_edge, strict=True):  # all at once is 100 MB
        assert np.abs(row[~edge].astype(int) - want[~edge]).max(initial=0) <= 1


def test_parquet_reads_back_as_the_table(raw: RawRun, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run = Run(raw)
    saved = run.save(tmp_path / "a.parquet")
    table = parquet.read_table(saved)
    assert_frame_equal(
        table.to_pandas(), run.frame.drop(columns="payload"), check_column_type=False
    )
    notes = table.schema.metadata
    assert notes[b"proton.run"].decode() == run.name
    assert json.loads(notes[b"proton.warnings"]) == run.loss_warnings()
    duckdb = pytest.importorskip("duckdb")
    (count, total), *_ = duckdb.sql(f"select count(*), sum(dur_ns) from '{saved}'").fetchall()
    assert (count, total) == (len(run.frame), run.frame["dur_ns"].sum())


def test_sql_and_stats_say_the_same(raw: RawRun) -> None:
    pytest.importorskip("duckdb")
    ask = importlib.import_module("proton.viewer.cli.commands.sql").ask
    run = Run(raw)
    found = ask(
        run,
        """
        select kernel, scope, count(*) as count, avg(dur_ns) as mean, max(dur_ns) as max,
               quantile_cont(dur_ns, 0.5) as p50, quantile_cont(dur_ns, 0.9) as p90,
               quantile_cont(dur_ns, 0.99) as p99
        from slices where kind = 'scope' group by all
        """,
    )
    said = run.stats(["kernel", "scope"], "dur_ns")
    keys = ["kernel", "scope"]
    both = [
        table[[*keys, "count", "mean", "max", "p50", "p90", "p99"]]
        .astype(dict.fromkeys(keys, str) | {"count": float, "max": float})
        .sort_values(keys, ignore_index=True)
        for table in (pd.DataFrame(found), said)
    ]
    assert_frame_equal(*both)
    launches = ask(run, "select launch, kernel, grid from launches order by launch")
    assert launches["kernel"].tolist() == run.launches["kernel"].astype(str).tolist()


def test_sql_reads_nothing_but_the_run(raw: RawRun, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    ask = importlib.import_module("proton.viewer.cli.commands.sql").ask
    (tmp_path / "a.csv").write_text("secret\n1\n")
    for query in (f"select * from read_csv('{tmp_path}/a.csv')", f"copy slices to '{tmp_path}/b'"):
        with pytest.raises(ProtonError, match="disabled"):
            ask(Run(raw), query)
    with pytest.raises(ProtonError, match="slicez"):
        ask(Run(raw), "select * from slicez")
