"""docs/language.md says what there is: some of its cells are tried anew, and it has every name."""

import contextlib
import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.compat.triton as compat
from scripts.language_page import BACKENDS, DTYPES, KINDS, PAGE, cell, is_there, short
from scripts.language_surface import ABSENT, NAMES, OPS

CELLS = 12  # that are tried, of some 2,300


def rows() -> dict[str, list[str]]:
    """The cells of each op, by its name."""
    found = {}
    for line in PAGE.read_text().partition("## Names")[0].splitlines():
        match = re.fullmatch(r"\| (`.+`) \| ([^`|]+) \|", line)
        for name in re.findall(r"`([^`]+)`", match[1]) if match else ():
            assert name not in found
            found[name.replace("\\|", "|")] = cells_of(match[2])
    return found


def cells_of(text: str) -> list[str]:
    """The cells of a row's words, "integers, fp16; NVIDIA alone: bf16"."""
    cells = dict.fromkeys(map(short, DTYPES), "-")
    for part in text.split("; "):
        who, _, names = part.rpartition(" alone: ")
        mark = "".join(k for k, backend in BACKENDS.items() if backend in who) if who else "●"
        for words in names.split(", "):
            kinds = {"all": DTYPES, **KINDS}
            for name in map(short, kinds[words]) if words in kinds else words.split():
                assert cells[name] == "-"
                cells[name] = mark
    return [*cells.values()]


def test_the_page_has_every_op_and_dtype() -> None:
    ops = [name for group in OPS.values() for name in group]
    assert sorted(rows()) == sorted(ops)
    for kind, dtypes in KINDS.items():
        assert f"{kind} ({' '.join(map(short, dtypes))})" in " ".join(PAGE.read_text().split())


def test_cells_say_what_happens(rng: np.random.Generator, tmp_path: Path) -> None:
    pieces = {name: piece for group in OPS.values() for name, piece in group.items()}
    table = rows()
    for name in rng.choice([*pieces], CELLS):
        column = int(rng.integers(len(DTYPES)))
        found = cell(pieces[name], DTYPES[column], tmp_path)
        assert found == table[name][column], (name, DTYPES[column])


@pytest.mark.parametrize("where", NAMES)
def test_the_page_has_every_name_and_why_one_is_not_there(where: str) -> None:
    (line,) = [x for x in PAGE.read_text().splitlines() if x.startswith(f"| {where} |")]
    there, absent = (part.strip() for part in line.split("|")[2:4])
    for name in NAMES[where].split():
        if is_there(where, name):
            assert f"`{name}`" in there.split(), name
        else:
            assert f"`{name}`: {ABSENT[name]}" in absent, name


def test_what_the_page_for_triton_s_users_names_is_there() -> None:
    page = (PAGE.parent / "from-triton.md").read_text()
    names = set(re.findall(r"\btriton((?:\.[a-zA-Z_]\w*)+)", page))
    assert len(names) > 15
    missing = [name for name in sorted(names - NOT_THERE) if not resolves(name.split(".")[1:])]
    assert missing == []


# Named beside what is in its place.
NOT_THERE = {".profiler.proton"}


def resolves(parts: list[str]) -> bool:
    """Whether a name of triton's is one of ours, as a module or as an attribute."""
    found: Any = proton
    if (home := compat._HOMES.get(f"triton.{parts[0]}")) is not None:
        found, parts = importlib.import_module(home), parts[1:]
    for number, part in enumerate(parts):
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(".".join(["proton", *parts[: number + 1]]))
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True
