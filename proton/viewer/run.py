"""What a session hands to its user: the tables of a run, and every way to save it."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from proton.base.words import counted
from proton.trace import archive, chrome
from proton.trace.errors import TraceFormatError
from proton.viewer import formats
from proton.viewer.explain import Explanation, explain
from proton.viewer.pictures.source_page import SourcePage
from proton.viewer.tables import Summary, Tables, summary


class Run(Tables):
    """A profiled run. Tables are built when first asked for, and then kept."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Run:
        """Reads a `.proton` file, or a Chrome trace of Triton's Proton; raises TraceFormatError
        where it breaks the format."""
        file = Path(path)
        is_trace = file.is_file() and chrome.is_chrome(file)
        run = cls(chrome.load(file) if is_trace else archive.load(file))
        try:
            run.records  # noqa: B018 - decodes now, so that a broken file is refused here
        except TraceFormatError as error:  # which is of a run, wherever it came from
            raise TraceFormatError(f"{path}: {error}") from None
        return run

    def __repr__(self) -> str:
        t = self.totals
        lost = f", {t.lost} records lost" if t.lost else ""
        lost += (
            f", {counted(t.dropped_launches, 'launch', 'launches')} dropped"
            if t.dropped_launches
            else ""
        )
        return f"<Run {self.name!r}: {t.size}{lost}>"

    def summary(self) -> Summary:
        """What to know first about the run."""
        return summary(self)

    @cached_property
    def findings(self) -> Explanation:
        """What costs time, what that rests on and what to try: the most time at stake first."""
        return explain(self)

    def source(self, by: str = "") -> SourcePage:
        """The source of the kernels with the time of each line, by role, warp, unit, launch or sm
        where `by` says so; it shows itself in notebooks. `lines` is the same as a table."""
        return SourcePage(self, by)

    def _repr_html_(self) -> str:
        """The run in a notebook."""
        from proton.viewer.pictures.notebook import to_html

        return to_html(self, self.summary(), repr(self).strip("<>"))

    def save(
        self, path: str | os.PathLike[str], format: str | None = None, **options: object
    ) -> Path:
        """Writes the run, whole or not at all; without a format's name the suffix picks it.

        `.proton` keeps everything; `.pftrace`, `.perfetto-trace` and `.pftrace.gz` open in
        Perfetto; `.json` is Chrome's trace format; `.csv` is `frame`; `.html` is the timeline as a
        page, `.svg` and `.png` as a picture; `.parquet` is `frame`; `.speedscope.json` opens in
        speedscope. The format "json", which no suffix picks, is all tables. `counters=True` gives a
        Perfetto trace counters, too: payload values over time; `where=Selection(...)` chooses what
        a timeline shows; `beside="trace.json"` adds a Chrome trace to one of torch.profiler's.
        """
        target = Path(path)
        found = formats.format_of(target) if format is None else formats.format_named(format)
        formats.save(self, target, found, **options)
        return target
