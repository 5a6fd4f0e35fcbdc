"""Records that are kept only where a condition of the kernel holds."""

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.viewer import Run

MODES = [
    {},
    {"placement": "program"},
    {"strategy": "flush", "capacity": 4},
    {"capacity": 4},
    {"strategy": "counting"},
]


@proton.jit(do_not_specialize=("n",))  # a loop of one iteration would be no loop
def chosen(chosen_ptr, marked_ptr, out_ptr, n):
    for i in range(n):
        c = tl.load(chosen_ptr + i)
        with proton.scope("step", i=i, when=c == 1):
            tl.store(out_ptr + i, i)
        proton.mark("seen", i, when=tl.load(marked_ptr + i))


@proton.jit
def two_scopes(x_ptr, out_ptr, n, a, b, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    with proton.scope("load", n=n, when=a):
        x = tl.load(x_ptr + offs, mask=mask)
    with proton.scope("store", when=b):
        tl.store(out_ptr + offs, x * 2, mask=mask)


@proton.jit
def half_conditional(x_ptr, out_ptr, n, a, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    with proton.scope("load"):
        x = tl.load(x_ptr + offs, mask=mask)
    with proton.scope("store", when=a):
        tl.store(out_ptr + offs, x * 2, mask=mask)


@proton.jit(do_not_specialize=("n", "at"))
def thrice(out_ptr, n, at):
    for i in range(n):
        with proton.scope("step", first=i, when=i == at):
            tl.store(out_ptr + 3 * i, i)
        with proton.scope("step", second=i, when=i != at):
            tl.store(out_ptr + 3 * i + 1, i)
        with proton.scope("step"):
            tl.store(out_ptr + 3 * i + 2, i)


@proton.jit
def known(out_ptr, n, ON: tl.constexpr):
    with proton.scope("outer", when=ON):
        tl.store(out_ptr, n)
        with proton.scope("inner"):
            tl.store(out_ptr + 1, n + 1)
    proton.enter_scope("statement", when=not ON)
    tl.store(out_ptr + 2, n + 2)
    proton.exit_scope("statement")
    proton.mark("mark", n, when=ON)


def slices(run: Run, program: int = 0):
    frame = run.frame
    return frame[(frame["kind"] == "scope") & (frame["program"] == program)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [1, 2, 100])
def test_records_are_kept_and_counted_where_the_condition_holds(
    rng: np.random.Generator, mode: dict[str, object], n: int
) -> None:
    wanted = rng.integers(0, 3, n, np.int32)
    marked = rng.random(n) < 0.5
    out = np.full(n, -1, np.int32)
    with proton.profile("chosen", **mode) as run:
        chosen[(3,)](wanted, marked.astype(np.int8), out, n)
    assert (out == np.arange(n)).all()
    steps, marks = np.flatnonzero(wanted == 1), np.flatnonzero(marked)
    assert list(run.launches["written"]) == [3 * (steps.size + marks.size)]
    if mode.get("strategy") == "counting":
        assert run.totals.kept == 0
        return
    # In the order of the work: the step of an iteration comes before its mark.
    made = sorted([(i, 0) for i in steps.tolist()] + [(i, 1) for i in marks.tolist()])
    circular = mode == {"capacity": 4}
    kept = made[max(0, len(made) - 4) :] if circular else made
    for program in range(3):
        found = slices(run, program)
        expected = [i for i, kind in kept if kind == 0]
        assert list(found["iteration"]) == expected
        assert [payload["i"] for payload in found["payload"]] == expected
        of_marks = run.marks[run.marks["program"] == program]
        assert list(of_marks["iteration"]) == [i for i, kind in kept if kind == 1]
    assert run.totals.lost == 3 * (len(made) - len(kept))


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 7), (-1, 0), (2, 3)])
def test_a_fused_slice_is_kept_where_the_condition_of_any_member_holds(
    rng: np.random.Generator, a: int, b: int
) -> None:
    n = 1000
    x = rng.standard_normal(n, np.float32)
    out = np.empty_like(x)
    names = {}
    for placement in ("schedule", "program"):
        with proton.profile("two", placement=placement) as run:
            two_scopes[(1,)](x, out, n, a, b, BLOCK=1024)
        assert (out == 2 * x).all()
        names[placement] = list(slices(run)["name"])
        assert run.totals.written == len(names[placement])
    assert names["schedule"] == (["load + store"] if a or b else [])
    assert names["program"] == ["load"] * bool(a) + ["store"] * bool(b)


@pytest.mark.parametrize("a", [0, 2])
def test_a_member_without_a_condition_counts_as_true(rng: np.random.Generator, a: int) -> None:
    x = rng.standard_normal(100, np.float32)
    out = np.empty_like(x)
    with proton.profile("half") as run:
        half_conditional[(1,)](x, out, 100, a, BLOCK=128)
    assert list(slices(run)["name"]) == ["load + store"]


@pytest.mark.parametrize("placement", ["schedule", "program"])
@pytest.mark.parametrize("at", [0, 3, 9])
def test_neighbours_of_one_name_keep_their_own_conditions(placement: str, at: int) -> None:
    out = np.zeros(18, np.int32)
    with proton.profile("thrice", placement=placement) as run:
        thrice[(1,)](out, 6, at)
    assert (out == np.repeat(np.arange(6), 3)).all()
    expected = []
    for i in range(6):
        expected += [(i, {"first": i}) if i == at else (i, {"second": i}), (i, None)]
    found = slices(run)
    assert list(zip(found["iteration"], found["payload"], strict=True)) == expected


@pytest.mark.parametrize("on", [True, False])
def test_a_condition_may_be_known_while_compiling(on: bool) -> None:
    out = np.zeros(3, np.int32)
    with proton.profile("known") as run:
        known[(1,)](out, 5, ON=on)
    assert list(out) == [5, 6, 7]
    paths = ["outer/inner", "outer"] if on else ["outer/inner", "statement"]
    assert list(slices(run)["scope"]) == paths  # what is inside has a condition of its own
    assert list(run.marks["name"]) == ["mark"] * on
    assert run.totals.written == len(paths) + on
    assert len(run.optimized_out) == 0


def test_conditions_do_not_change_what_is_computed(rng: np.random.Generator) -> None:
    x = rng.standard_normal(777, np.float32)
    off, on = np.empty_like(x), np.empty_like(x)
    two_scopes[(7,)](x, off, 777, 1, 0, BLOCK=128)
    with proton.profile("two"):
        two_scopes[(7,)](x, on, 777, 1, 0, BLOCK=128)
    assert off.tobytes() == on.tobytes()


def test_the_host_has_conditions_too() -> None:
    with proton.profile("host") as run:
        for turn in range(4):
            with proton.scope("turn", turn=turn, when=turn % 2 == 0), proton.scope("inner"):
                known[(1,)](np.zeros(3, np.int32), turn, ON=True)
        proton.enter_scope("never", when=False)
        proton.enter_scope("numpy", when=np.bool_(True))
        proton.exit_scope("numpy")
        proton.exit_scope("never")
        proton.mark("mark", 1, when=True)
        proton.mark("mark", 2, when=False)
    host = run.frame[run.frame["kind"] == "host"]
    paths = list(host["scope"].astype(str))
    assert paths == ["turn/inner", "turn", "inner"] * 2 + ["numpy", "mark"]
    assert [p for p in host["payload"] if p] == [{"turn": 0}, {"turn": 2}, {"value": 1}]
    launched = run.frame[run.frame["kind"] == "launch"]["scope"].astype(str)
    assert list(launched) == ["turn/inner/known", "inner/known"] * 2
    with pytest.raises(ValueError, match="when must be a bool on the host, got 3"):
        proton.scope("a", when=3)
    with proton.profile("host"), pytest.raises(ValueError, match="when must be a bool"):
        proton.mark("a", when=None)


@proton.jit(do_not_specialize=("rows", "columns", "lower", "step", "n"))
def loops(out_ptr, rows, columns, lower, step, n):
    with proton.scope("outside"):
        tl.store(out_ptr, rows)
    for row in range(rows):
        with proton.scope("row", row=row):
            tl.store(out_ptr + 1, row)
        for column in range(lower, lower + columns * step, step):
            with proton.scope("cell", row=row, column=column):
                tl.store(out_ptr + 2, row + column)
            proton.mark("odd", column, when=row % 2)
    left = n
    while left > 0:
        with proton.scope("while", left=left):
            tl.store(out_ptr + 3, left)
        left -= 1


@pytest.mark.parametrize("every", [1, 2, 3, 4, 7, 1000, (1 << 31) - 1])
@pytest.mark.parametrize("placement", ["schedule", "program"])
def test_every_nth_iteration_of_the_innermost_loop_is_kept(
    rng: np.random.Generator, every: int, placement: str
) -> None:
    rows, columns, lower, step, n = (int(k) for k in rng.integers(1, 12, 5))
    out = np.zeros(4, np.int32)
    with proton.profile("loops", every=every, capacity=1024, placement=placement) as run:
        loops[(2,)](out, rows, columns, lower, step, n)
    last_row, last_column = rows - 1, lower + (columns - 1) * step
    assert list(out) == [rows, last_row, last_row + last_column, 1]
    expected = [("outside", -1, None)]
    odd = []
    for row in range(rows):
        if row % every == 0:
            expected.append(("row", row, {"row": row}))
        for number, column in enumerate(range(lower, lower + columns * step, step)):
            if number % every == 0:
                expected.append(("cell", number, {"row": row, "column": column}))
                odd += [(number, column)] * (row % 2)
    expected += [("while", -1, {"left": left}) for left in range(n, 0, -1)]
    for program in range(2):
        found = slices(run, program)
        columns_ = (found["name"], found["iteration"], found["payload"])
        assert list(zip(*columns_, strict=True)) == expected
        marks = run.marks[run.marks["program"] == program]
        values = [payload["value"] for payload in marks["payload"]]
        assert list(zip(marks["iteration"], values, strict=True)) == odd
    assert run.totals.written == run.totals.kept == 2 * (len(expected) + len(odd))


@pytest.mark.parametrize("every", [2, 121])
def test_a_summary_says_what_was_sampled(every: int) -> None:
    with proton.profile("loops", every=every) as run:
        loops[(1,)](np.zeros(4, np.int32), 5, 5, 0, 1, 2)
    assert run.summary().facts["kernel loops"] == f"only one iteration of {every}"
    assert run.kernels[0].options["every"] == every


def test_sampling_is_part_of_what_a_kernel_is_compiled_for() -> None:
    runs = []
    for every in (1, 2, 4, 2):
        with proton.profile("loops", every=every, strategy="counting") as run:
            loops[(1,)](np.zeros(4, np.int32), 8, 0, 0, 1, 0)
        runs.append(run)
    assert [run.totals.written for run in runs] == [1 + 8, 1 + 4, 1 + 2, 1 + 4]
    keys = [run.kernels[0].key for run in runs]
    assert keys[1] == keys[3]
    assert len(set(keys)) == 3
    assert "kernel loops" not in runs[0].summary().facts


@pytest.mark.parametrize("every", [0, -1, 1.5, "2", True, None, 1 << 31])
def test_every_is_a_positive_integer(every: object) -> None:
    with pytest.raises(proton.ProfileError, match=r"every must be an integer in \[1, "):
        proton.start("wrong", every=every)
