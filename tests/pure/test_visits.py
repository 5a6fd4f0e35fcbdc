"""Which slices are one run of a scope: loops that are made up, whose runs are known."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from proton.trace.model import Scope
from proton.trace.visits import group_visits

NONE = -1


@dataclass
class Loop:
    """A pipelined loop that runs again and again: its scope has, for iteration i, a piece in each
    of the iterations i - ahead. Ahead of the loop stands what its first iterations would have had
    earlier; `hoisted` and `behind`, pieces of no iteration, stand around it. Work is also begun for
    iterations `beyond` the last one: it belongs to the run before."""

    ahead: tuple[int, ...]
    trips: int
    hoisted: bool = False
    behind: bool = False
    beyond: bool = False
    skipped: float = 0.0  # the part of the pieces, but the last one of a run, that do not run

    @property
    def scopes(self) -> list[Scope]:
        """A piece ahead of the loop, those before it, those in it, one behind it."""
        ahead = [False, *[True] * len(self.ahead), *(n > 0 for n in self.ahead), False]
        return [
            Scope(name="s", path="s", visit=1, piece=piece, ahead=is_ahead)
            for piece, is_ahead in enumerate(ahead)
        ]

    def skips(self, rng: np.random.Generator) -> bool:
        return bool(rng.random() < self.skipped)

    def run(self, rng: np.random.Generator) -> list[tuple[int, int, int]]:
        """(scope, iteration, the run's iteration) of what is recorded, in order of time; the first
        run has what is hoisted, the last what is behind."""
        found, count = [], len(self.ahead)
        if self.hoisted and self.trips:
            found.append((0, NONE, 0))
        for step in range(-max(self.ahead), self.trips):
            for number, ahead in enumerate(self.ahead):
                i = step + ahead
                piece = 1 + number + (count if step >= 0 else 0)
                if self.beyond and i >= self.trips > 0 and found:
                    found.append((piece, i, found[-1][2]))
                    if self.hoisted and step < 0:
                        found.append((0, NONE, found[-1][2]))
                elif 0 <= i < self.trips and not (number < count - 1 and self.skips(rng)):
                    found.append((piece, i, i))
        if self.behind and self.trips:
            found.append((1 + 2 * count, NONE, self.trips - 1))
        return found


LOOPS = [
    Loop((0,), 5), Loop((1, 0), 4), Loop((2, 1, 0), 6), Loop((2, 0, 0), 1), Loop((1, 0), 1),
    Loop((1, 0), 3, hoisted=True), Loop((1, 1, 0), 3, behind=True),
    Loop((1, 0), 2, hoisted=True, behind=True), Loop((1, 1, 0), 7, skipped=0.5), Loop((3, 0), 2),
    Loop((2, 0), 5, beyond=True), Loop((2, 1, 0), 1, beyond=True, hoisted=True),
    Loop((2, 1, 0), 4, beyond=True, behind=True), Loop((3, 0), 1, beyond=True, hoisted=True),
]  # fmt: skip


def recorded(
    loop: Loop, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], list[tuple[int, ...]]]:
    """Columns of records of some tracks, and the run that each is of."""
    rows, truth = [], []
    for track in range(4):
        time = int(rng.integers(0, 1000))
        for again in range(int(rng.integers(0, 4))):
            for scope, iteration, of in loop.run(rng):
                rows.append((track, scope, iteration, time))
                truth.append((track, again, of))
                time += int(rng.integers(1, 50))
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    names = ("track", "scope", "iteration", "start")
    found = dict(zip(names, columns, strict=True))
    return found | {"start": found["start"].astype(np.uint64)}, truth


def partition(labels: list[tuple[int, ...]] | np.ndarray) -> set[frozenset[int]]:
    groups: dict[object, set[int]] = {}
    for row, label in enumerate(labels):
        key = label if isinstance(label, tuple) else int(label)
        groups.setdefault(key, set()).add(row)
    return set(map(frozenset, groups.values()))


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_the_pieces_of_a_run_are_one_visit(loop: Loop, rng: np.random.Generator) -> None:
    for _ in range(5):
        columns, truth = recorded(loop, rng)
        lossy = np.zeros(4, bool)
        found = group_visits(scopes=loop.scopes, lossy=lossy, **columns)
        assert partition(found.number) == partition(truth)
        assert not found.cut.any()
        assert set(found.number.tolist()) == set(range(len(partition(truth))))


@pytest.mark.parametrize("loop", LOOPS[:4], ids=str)
def test_a_run_that_lost_pieces_is_cut_and_no_other(loop: Loop, rng: np.random.Generator) -> None:
    """A ring buffer keeps the newest."""
    for _ in range(10):
        columns, truth = recorded(loop, rng)
        whole = {run: truth.count(run) for run in truth}
        keep = np.concatenate(
            [
                np.flatnonzero(columns["track"] == track)[int(rng.integers(0, 6)) :]
                for track in range(4)
            ]
        )
        kept = {name: column[keep] for name, column in columns.items()}
        lossy = np.array(
            [(kept["track"] == t).sum() < (columns["track"] == t).sum() for t in range(4)]
        )
        found = group_visits(scopes=loop.scopes, lossy=lossy, **kept)
        of = [truth[row] for row in keep.tolist()]
        assert partition(found.number) == partition(of)
        most = {t: max([of.count(r) for r in of if r[0] == t], default=0) for t in range(4)}
        for row, run in enumerate(of):
            is_cut = of.count(run) < whole[run] and of.count(run) < most[run[0]]
            assert found.cut[row] == is_cut, (run, row)


def test_slices_that_are_no_pieces_are_visits_by_themselves(rng: np.random.Generator) -> None:
    plain, piece = (
        Scope(name="a", path="a"),
        [Scope(name="b", path="b", visit=1, piece=n) for n in range(2)],
    )
    scope = np.array([0, 1, 0, 2, 0])
    found = group_visits(
        scopes=[plain, *piece],
        scope=scope,
        track=np.zeros(5, np.int64),
        iteration=np.full(5, NONE),
        start=np.arange(5).astype(np.uint64),
        lossy=np.zeros(1, bool),
    )
    assert partition(found.number) == {frozenset({n}) for n in (0, 2, 4)} | {frozenset({1, 3})}


def test_nothing_has_no_visits() -> None:
    none = np.zeros(0, np.int64)
    for scopes in ([], Loop((1, 0), 2).scopes):
        found = group_visits(
            scopes=scopes, scope=none, track=none, iteration=none, start=none.astype(np.uint64),
            lossy=np.zeros(0, bool),
        )  # fmt: skip
        assert not found.number.size
        assert not found.is_split


def test_openings_of_one_path_are_apart() -> None:
    """Two in each iteration: what is at the same place in the source is one run."""
    scopes = [
        Scope(name="a", path="a", visit=v, piece=p)
        for v, p in itertools.product((1, 2), (0, 1))
    ]  # fmt: skip
    scope = np.tile([0, 2, 1, 3], 3)
    found = group_visits(
        scopes=scopes,
        scope=scope,
        track=np.zeros(12, np.int64),
        iteration=np.repeat(np.arange(3), 4),
        start=np.arange(12).astype(np.uint64),
        lossy=np.zeros(1, bool),
    )
    groups = {frozenset({4 * i + n, 4 * i + n + 2}) for i in range(3) for n in range(2)}
    assert partition(found.number) == groups
