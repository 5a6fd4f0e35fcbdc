"""Statistics against numpy, one group at a time."""

import numpy as np
import pytest
from synthetic import gpu_run, random_run

from proton.base.errors import ProtonError
from proton.viewer import Run, stats


@pytest.mark.parametrize("metric", ["dur_ns", "corrected_ns", "cycles"])
@pytest.mark.parametrize(
    "by",
    [["scope"], ["kernel", "program"], ["thread"], ["launch", "scope"], ["device", "sm", "warp"]],
)
def test_each_group_is_what_numpy_says(by: list[str], metric: str) -> None:
    frame = Run(gpu_run(11, mixed=True)).frame
    slices = frame[frame["kind"] == "scope"]
    table = stats(frame, by, metric)
    assert table["count"].sum() == len(slices)
    assert table["total"].is_monotonic_decreasing
    for row in table.to_dict("records"):
        chosen = np.ones(len(slices), bool)
        for name in by:
            chosen &= (slices[name] == row[name]).to_numpy()
        values = slices[metric].to_numpy()[chosen]
        assert row["count"] == values.size
        assert row["total"] == values.sum()
        assert (row["min"], row["max"]) == (values.min(), values.max())
        assert row["mean"] == pytest.approx(values.mean())
        assert row["std"] == pytest.approx(values.std(ddof=1) if values.size > 1 else 0.0)
        for name, share in (("p50", 50), ("p90", 90), ("p99", 99)):
            assert row[name] == pytest.approx(np.percentile(values, share))


def test_launches_and_host_scopes_have_statistics_too() -> None:
    frame = Run(random_run(11)).frame
    assert stats(frame, ["kernel"], kind="launch")["count"].tolist() == [2, 2, 1]
    assert stats(frame, ["kind"], "dur_ns", kind=None)["count"].sum() == len(frame)


@pytest.mark.parametrize("by", [[], ["colour"], ["scope", "scope"]])
def test_unknown_groups_are_refused(by: list[str]) -> None:
    with pytest.raises(ProtonError, match="by must be some of scope, kernel"):
        stats(Run(random_run(1)).frame, by)


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ProtonError, match=r"metric must be one of corrected_ns, .*, got joy"):
        stats(Run(random_run(1)).frame, ["scope"], "joy")
