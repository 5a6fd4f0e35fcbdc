"""The slots of programs: no two at once in one, and as many as ran at once."""

from collections import Counter

import numpy as np
from synthetic import gpu_run, random_run

from proton.viewer import Run
from proton.viewer.tables.places import slots


def test_slots_are_as_many_as_programs_are_there_at_once(session_seed: int) -> None:
    random_ = np.random.default_rng(session_seed)
    for count in (0, 1, 2, 300):
        place = random_.integers(0, 5, count)
        start = random_.integers(0, 1000, count)
        end = start + random_.integers(1, 200, count)
        slot = slots(place, start, end)
        for where in set(place.tolist()):
            mine = place == where
            at_once = max(int((mine & (start <= t) & (t < end)).sum()) for t in start[mine])
            assert set(slot[mine].tolist()) == set(range(at_once))
            for number in range(at_once):
                rows = np.flatnonzero(mine & (slot == number))
                rows = rows[np.argsort(start[rows])]
                assert (end[rows][:-1] <= start[rows][1:]).all()


def test_a_program_that_ends_as_another_begins_leaves_it_its_slot() -> None:
    none = np.zeros(3, np.int64)
    assert slots(none, np.array([0, 5, 5]), np.array([5, 9, 5])).tolist() == [0, 0, 0]


def test_programs_hold_their_scopes() -> None:
    for raw in (random_run(41), gpu_run(41, mixed=True)):
        whole = Run(raw)
        programs = whole.programs.set_index(["launch", "program"])
        assert programs.index.is_unique
        began = whole.launches["programs"] - whole.launches["untouched"]
        assert Counter(programs.index.get_level_values(0)) == Counter(dict(enumerate(began)))
        scopes = whole.frame[whole.frame["kind"] == "scope"]
        around = programs.loc[list(zip(scopes["launch"], scopes["program"], strict=True))]
        assert (around["start_ns"].to_numpy() <= scopes["start_ns"].to_numpy()).all()
        ends = (scopes["start_ns"] + scopes["dur_ns"]).to_numpy()
        assert (ends <= (around["start_ns"] + around["dur_ns"]).to_numpy()).all()
