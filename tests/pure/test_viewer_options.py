"""Every command of `proton-tile` with random options, on odd runs: each says something, or what
is wrong in words, and JSON is JSON."""

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len
from test_terminal import in_pipes
from test_viewer_commands import odd_runs

from proton.viewer import Run, cli

CALLS = 80
NUMBERS = ("0", "1", "-1", "3", "1000000", "99999999999999999999", "1.5", "nan", "x", "")
PATTERNS = ("s", ".*", "", "(", "a|b", "slice", "^$", "ü", "\\", "scope/inner")
COLUMNS = (
    "scope kernel variant program device sm warp launch iteration kind payload.v bogus".split()
)
OUT = "OUT"
SUFFIXES = (".svg", ".html", ".json", ".bogus", ".csv")
WORDS = {  # some values of options that take words
    "--by": (*COLUMNS, "program,scope", "scope,kernel,launch"),
    "--kind": ("scope", "launch", "host", "mark", "zz"),
    "--metric": ("corrected_ns", "dur_ns", "cycles", "zz"),
    "--sort": ("p50", "total", "gbytes/s", "zz"),
    "--stat": ("p50", "mean", "count", "zz"),
    "--peak": ("gbytes/s=80", "gbytes/s=0", "gbytes/s=nan", "x=3", "gbytes/s"),
    "--metrics": ("time", "time/ms,count", "byte/s", "time/%", "zz", "Count"),
    "--format": ("table", "json", "csv", "markdown", "chrome", "full", "zz"),
    "--reference": ("k", "x/y", "/"),
}
TEXT = {"--kernel", "--scope", "--include", "--exclude"}
SKIPPED = {"open", "measure", "sql"}  # a browser, other processes, and an extra
WIDTH = 80


def commands() -> dict[str, Any]:
    """Those of click, which typer may carry itself."""
    group: Any = cli.command()
    return {name: found for name, found in group.commands.items() if name not in SKIPPED}


def value(option: Any, rng: np.random.Generator, files: list[Path], out: Path) -> str:
    """Some value of an option, not always one that it takes."""
    name = option.opts[0]
    if name in WORDS:
        return str(rng.choice(WORDS[name]))
    if name in ("--out", "--junit", "--picture"):
        return f"{out}{rng.choice(SUFFIXES)}"
    if name in ("--baseline", "--diff-profile"):
        return str(rng.choice(files))
    if name == "--budget":
        return str(out.with_name("budgets.toml"))
    return str(rng.choice(PATTERNS if name in TEXT else NUMBERS))


def words(command: Any, rng: np.random.Generator, files: list[Path], out: Path) -> Iterator[str]:
    yield command.name
    for option in command.params:
        if option.param_type_name == "argument":
            is_out = option.name == "out"
            yield f"{out}{rng.choice(SUFFIXES)}" if is_out else str(rng.choice(files))
        elif option.name != "help" and (option.required or rng.random() < 0.25):
            yield option.opts[0]
            if not getattr(option, "is_flag", False):
                yield value(option, rng, files, out)


def refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def asks_for_json(given: list[str]) -> bool:
    shapes = [b for a, b in itertools.pairwise(given) if a == "--format"]
    return "--json" in given or (given[0] != "metrics" and shapes[-1:] == ["json"])


def check(given: list[str]) -> int:
    """The exit status of one call."""
    done = in_pipes(*given)
    assert done.returncode in ((0, 1, 2, 3) if given[0] == "check" else (0, 2)), done
    assert done.returncode != 2 or done.stderr, "what is wrong is said"
    if done.returncode == 2 or given[0] in ("export", "merge"):
        return done.returncode
    if asks_for_json(given):
        json.loads(done.stdout, parse_constant=refuse)
    elif not {"--out", "--html", "csv"} & {*given}:
        assert done.stdout.strip()
        lines = done.stdout.splitlines()
        wide = int(given[given.index("--width") + 1]) if "--width" in given else WIDTH
        is_table = given[0] != "summary" and "markdown" not in given  # warnings are one line each
        most = max(wide or WIDTH, WIDTH) if is_table else math.inf
        assert max(map(cell_len, lines)) <= most
    return 0


def test_random_options(
    tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.chdir(tmp_path)
    files = []
    for number, make in enumerate(odd_runs().values()):
        files.append(Run(make()).save(tmp_path / f"{number}.proton"))
    (tmp_path / "budgets.toml").write_text('[[budget]]\nkernel = "*"\nmax_ns = 5\n')
    known = commands()
    fine = 0
    for number in range(CALLS):
        command = list(known.values())[number % len(known)]
        given = list(words(command, rng, files, tmp_path / f"out{number}"))
        if any(f".{suffix}" in word for suffix in ("png", "parquet") for word in given):
            continue
        try:
            fine += check(given) == 0
        except (Exception, SystemExit) as error:
            raise AssertionError(f"proton-tile {given}") from error
    assert fine > CALLS // 8, "not everything is refused"


@pytest.mark.parametrize("command", ["timeline", "flame", "hist", "heatmap", "occupancy"])
def test_a_picture_and_its_numbers(tmp_path: Path, command: str) -> None:
    path = Run(odd_runs()["losses, GPU"]()).save(tmp_path / "run.proton")
    out = tmp_path / "picture.svg"
    both = in_pipes(command, path, "-o", out, "--json")
    assert out.read_text().startswith("<svg")
    assert json.loads(both.stdout) == json.loads(in_pipes(command, path, "--json").stdout)


@pytest.mark.parametrize("command", ["timeline", "flame", "hist", "heatmap", "occupancy"])
@pytest.mark.parametrize("width", ["1", "3", "39"])
def test_pictures_have_40_columns_at_least(tmp_path: Path, command: str, width: str) -> None:
    path = Run(odd_runs()["losses, GPU"]()).save(tmp_path / "run.proton")
    shown, least = (in_pipes(command, path, "--width", w) for w in (width, "40"))
    assert shown.returncode == 0
    assert shown.stdout == least.stdout


def test_what_is_empty_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Run(odd_runs()["empty"]()).save(tmp_path / "run.proton")
    assert in_pipes("list", path).stdout == "empty: no kernels\n"
    monkeypatch.setenv("COLUMNS", "40")
    names = in_pipes("launches", path).stdout.split()
    assert names[:3] == ["launch", "kernel", "variant"]
    assert names[-1] == "lost"
    listed = json.loads(in_pipes("metrics", "-l", "--json", path).stdout)
    assert listed == in_pipes("metrics", "-l", path).stdout.split()
