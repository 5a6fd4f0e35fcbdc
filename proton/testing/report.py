"""`perf_report`: a function measured over sizes and implementations, as a table and a plot."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proton.base.packages import need

if TYPE_CHECKING:
    import pandas as pd

_BANDS = ("", "-min", "-max")  # of the columns of one line


@dataclass
class Benchmark:
    """What is measured: a plot of one line a value of `line_arg`, over the values of `x_names`.

    Each of `x_vals` is one value for all `x_names`, or a tuple with one for each. `args` are
    further arguments, the same everywhere.
    """

    x_names: Sequence[str]
    x_vals: Sequence[object]
    line_arg: str
    line_vals: Sequence[object]
    line_names: Sequence[str]
    plot_name: str
    args: Mapping[str, object] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None  # colour and dashes of each line

    def __post_init__(self) -> None:
        if len(self.line_vals) != len(self.line_names):
            raise ValueError(
                f"line_names are the names of line_vals, got {len(self.line_names)} for "
                f"{len(self.line_vals)}"
            )

    def point(self, x: object) -> dict[str, object]:
        """The arguments of one of `x_vals`."""
        values = tuple(x) if isinstance(x, tuple | list) else (x,) * len(self.x_names)
        if len(values) != len(self.x_names):
            raise ValueError(f"{x!r} of x_vals has not {len(self.x_names)} values")
        return dict(zip(self.x_names, values, strict=True))

    @property
    def columns(self) -> list[str]:
        """The names of the lines in a table."""
        unit = f" ({self.ylabel})" if self.ylabel else ""
        return [f"{name}{unit}" for name in self.line_names]


class Mark:
    """A function and its benchmarks. It returns a number, or one with its least and greatest."""

    def __init__(
        self, fn: Callable[..., object], benchmarks: Benchmark | Sequence[Benchmark]
    ) -> None:
        self.fn, self.is_alone = fn, isinstance(benchmarks, Benchmark)
        self.benchmarks = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)
        self.__name__, self.__doc__ = fn.__name__, fn.__doc__

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        return_df: bool = False,
        **kwargs: object,
    ) -> Any:
        """Measures. `save_path` is a folder for a CSV file of each benchmark, and for a plot where
        matplotlib is installed; `kwargs` are further arguments of the function. With `return_df`
        the table is returned, or a list of tables for a list of benchmarks."""
        if show_plots:
            need("show_plots=True", "matplotlib", "plot")
        tables = []
        for benchmark in self.benchmarks:
            table = self._table(benchmark, kwargs)
            tables.append(_without_bands(benchmark, table))
            if print_data:
                print(f"{benchmark.plot_name}:\n{tables[-1].to_string()}")
            _keep(benchmark, table, tables[-1], show_plots, save_path)
        if not return_df:
            return None
        return tables[0] if self.is_alone else tables

    def _table(self, benchmark: Benchmark, kwargs: dict[str, object]) -> "pd.DataFrame":
        """Measures one; a row for each of `x_vals`, three columns a line."""
        rows = []
        for x in benchmark.x_vals:
            row = benchmark.point(x)
            given = {**row, **benchmark.args, **kwargs}
            for value, column in zip(benchmark.line_vals, benchmark.columns, strict=True):
                found = self.fn(**given, **{benchmark.line_arg: value})
                bands = tuple(found) if isinstance(found, tuple | list) else (found, None, None)
                row = row | {f"{column}{b}": v for b, v in zip(_BANDS, bands, strict=True)}
            rows.append(row)
        import pandas as pd  # a quarter of a second, which who measures alone does without

        return pd.DataFrame(rows)


def _without_bands(benchmark: Benchmark, table: "pd.DataFrame") -> "pd.DataFrame":
    return table[[*benchmark.x_names, *benchmark.columns]]


def _keep(
    benchmark: Benchmark,
    table: "pd.DataFrame",
    short: "pd.DataFrame",
    show_plots: bool,
    save_path: str | Path,
) -> None:
    """Writes the files and shows the plot, as far as that is wanted."""
    figure = _plot(benchmark, table) if show_plots or save_path else None
    if save_path:
        folder = Path(save_path)
        folder.mkdir(parents=True, exist_ok=True)
        short.to_csv(folder / f"{benchmark.plot_name}.csv", index=False)
        if figure is not None:
            figure.savefig(folder / f"{benchmark.plot_name}.png")
    if show_plots:
        from matplotlib import pyplot

        pyplot.show()
    if figure is not None:
        from matplotlib import pyplot

        pyplot.close(figure)


def _plot(benchmark: Benchmark, table: "pd.DataFrame") -> Any:
    """The figure; None where matplotlib is not installed."""
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        return None
    figure, axes = pyplot.subplots()
    x = table[benchmark.x_names[0]]
    styles: Sequence[tuple[str | None, str | None]] = benchmark.styles or [(None, None)] * len(
        benchmark.columns
    )
    for column, name, (colour, dashes) in zip(
        benchmark.columns, benchmark.line_names, styles, strict=True
    ):
        (line,) = axes.plot(x, table[column], label=name, color=colour, linestyle=dashes)
        low, high = (table[f"{column}{band}"] for band in _BANDS[1:])
        if not low.isna().all():
            axes.fill_between(
                x, low.astype(float), high.astype(float), alpha=0.15, color=line.get_color()
            )
    axes.legend()
    axes.set(xlabel=benchmark.xlabel or benchmark.x_names[0], ylabel=benchmark.ylabel)
    axes.set_xscale("log" if benchmark.x_log else "linear")
    axes.set_yscale("log" if benchmark.y_log else "linear")
    return figure


def perf_report(
    benchmarks: Benchmark | Sequence[Benchmark],
) -> Callable[[Callable[..., object]], Mark]:
    """Makes a function measurable: `fn.run(print_data=True)` calls it for each point of the
    benchmarks."""
    return lambda fn: Mark(fn, benchmarks)
