"""Faults are found by name, healthy kernels give no finding, and the gain is what a fix brings."""

import json
import random
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import faults
import pytest
from faults import (
    barriers,
    counted,
    cpu,
    gpu,
    loads,
    loop,
    pieces,
    roles,
    sampled,
    tiles,
    with_flops,
)
from synthetic import Chip, Record, gpu_run, pack_launch, pieces_run, random_run
from test_cli import call

from proton.base.errors import ProtonError
from proton.trace.merge import merge
from proton.trace.model import HostSlice, RawRun
from proton.viewer import Run
from proton.viewer.explain.explanation import basis, command
from proton.viewer.explain.finding import Finding
from proton.viewer.explain.rule import rules
from proton.viewer.explain.subject import KernelView

Make = Callable[[], RawRun]


def by_rule(raw: RawRun) -> dict[str, Finding]:
    """The first finding of each rule."""
    found: dict[str, Finding] = {}
    for finding in Run(raw).findings:
        found.setdefault(finding.rule, finding)
    return found


BALANCED = {"lengths": [5000] * 8}
# Of each fault: the rule, a run with it, one without, and words of the sentence and the advice.
FAULTS: dict[str, tuple[str, Make, Make, str]] = {
    "two stages": ("copies", lambda: gpu(loop(stages=2)), lambda: gpu(loop()),
                   "issued 1 iteration ahead.*num_stages=4 .*192 of 227 KB"),
    "two copies in turn": (
        "copies", lambda: gpu(loop(stages=1, copies=2), num_stages=1, body=6),
        lambda: gpu(loop()), "waits 1.8 us of 2.2 us .* work of 2.8 iterations.*num_stages=4$"),
    "one stage": ("copies", lambda: gpu(loop(stages=1), num_stages=1, shared=48 * 1024),
                  lambda: gpu(loop()), "issued in the iteration that needs them.*num_stages=4"),
    "no room for a stage": ("copies", lambda: gpu(loop(stages=2), shared=200 * 1024),
                            lambda: gpu(loop()), "smaller blocks.*200 of 227 KB"),
    "scores that are waited for": ("waits", lambda: gpu(pieces(200), auto=[], body=3),
                                   lambda: gpu(pieces(5), auto=[], body=3),
                                   "scores waits 200 ns of the 220"),
    "an exposed softmax": ("exposed", lambda: gpu(loop(softmax=300)), lambda: gpu(loop()),
                           r"softmax is exposed.*\(matmul.py:14\)"),
    "a long epilogue": ("epilogue", lambda: gpu(loop(epilogue=9000)),
                        lambda: gpu(loop(epilogue=200)), "goes on for 9 us.*store.*persistent"),
    "pauses between dots": ("dot-gaps", lambda: gpu(loop(gap=120)), lambda: gpu(loop()),
                            "no dot runs for .*between two of them"),
    "a late warp": ("late-warp", lambda: gpu(barriers(500)), lambda: gpu(barriers()),
                    r"warp 2 is the last at barrier in 100 % of .*reduce.*\(matmul.py:17\)"),
    "one slot": ("few-slots", lambda: roles(1), lambda: roles(4),
                 r"consume waits 4\d % of its time for produce, which waits [89]\d %.*buffers"),
    "a lock": ("locks", lambda: faults.locked(30_000), lambda: faults.locked(500),
               "wait 36 % of their time.* 60 us each time, which each holds for 30 us.*less"),
    "one long program": ("unequal-programs", lambda: gpu(loop(), lengths=[5000] * 11 + [25000]),
                         lambda: gpu(loop(), lengths=[5000] * 12), "longest takes 25 us"),
    "one long program on the CPU": ("unequal-programs", lambda: cpu([90_000] * 5 + [700_000]),
                                    lambda: cpu([90_000] * 6), "100 % of it in step"),
    "one long program, and a late thread": (
        "unequal-programs", lambda: cpu([90_000] * 5 + [700_000], threads=1, late=1),
        lambda: cpu([90_000] * 6, threads=1, late=1), "longest takes 700 us"),
    "a short last wave": ("tail", lambda: gpu(loop(), lengths=[5000] * 5),
                          lambda: gpu(loop(), lengths=[5000] * 8), "1.25 waves"),
    "one program": ("few-programs", lambda: cpu([400_000]), lambda: cpu([200_000] * 2),
                    "1 program for 2 threads: 50 %"),
    "spills": ("spills", lambda: gpu(loop(), spills=24), lambda: gpu(loop()),
               "24 registers of a limit of 128"),
    "a load that is waited for": (
        "stalls", lambda: sampled(gpu(loop()), "long_scoreboard", 80),
        lambda: sampled(gpu(loop()), "not_selected", 80),
        r"80 % of samples are at x = load\(p\), and 100 % .* global .*\(matmul.py:14\) load ear",
    ),
    "lanes far apart": (
        "stalls", lambda: sampled(gpu(loads(1500)), "lg_throttle", 80),
        lambda: sampled(gpu(loads(1500)), "not_selected", 80),
        r"80 % of samples are at x = load\(p\), and 100 % .* memory \(lg_throttle\).* in a row",
    ),
    "shared memory limits": ("occupancy", lambda: gpu(loads(1500), shared=128 * 1024),
                             lambda: gpu(loads(40)), "limited by shared memory: 128 KB"),
    "registers limit": ("occupancy", lambda: gpu(loads(9000), shared=1024, registers=255,
                                                  blocks_per_sm=8, lengths=[200_000] * 36),
                        lambda: gpu(loads(20), shared=1024, registers=255),
                        "limited by registers: 255"),
    "something else limits": ("occupancy", lambda: gpu(loads(1500), shared=1024),
                              lambda: gpu(loads(40)), "no resource that is on record"),
    "records cost occupancy": ("perturbation", lambda: gpu(loop(), blocks_per_sm_off=2),
                               lambda: gpu(loop(), blocks_per_sm_off=1), "for 1 of .* for 2"),
    "nothing is busy": ("utilization", lambda: counted(gpu(loop()), tensor=22.0, dram=31.0),
                        lambda: counted(gpu(loop()), tensor=81.0, dram=31.0),
                        "tensor 22 %, dram 31 %"),
    "few of the flops": ("utilization", lambda: with_flops(gpu(loop()), 0.3),
                         lambda: with_flops(gpu(loop()), 0.9), "tflop16/s 30 %"),
    "scopes too short": ("fine-scopes", lambda: cpu([100_000] * 4, steps=2000, slice_cost=12.0),
                         lambda: cpu([100_000] * 4, steps=20, slice_cost=12.0),
                         "step itself is 50 ns long, its record costs 12 ns"),
    "a slow host": ("launch-gaps", lambda: gpu(loop(), pause=90_000),
                    lambda: gpu(loop(), pause=500), "the host is what they wait for.*CUDA graph"),
    "a slow host of the CPU": ("launch-gaps", lambda: cpu([4000] * 4, pause=30_000),
                               lambda: cpu([4000] * 4, pause=300), "with pauses of 30 us"),
    "cold caches": ("first-launch", lambda: cpu([9000] * 4, first=3.0),
                    lambda: cpu([9000] * 4), "first launch takes 54 us, the others 18 us"),
    "clocks that dropped": ("clocks", lambda: gpu(loop(), rates=(0.5, 0.5, 0.6, 0.6, 0.6)),
                            lambda: gpu(loop(), rates=(0.5, 0.501, 0.5, 0.499, 0.5)),
                            "fell from 2.00 to 1.67 GHz"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_name_and_its_healthy_kernel_is_not(fault: str) -> None:
    rule, bad, good, words = FAULTS[fault]
    found = by_rule(bad())
    assert rule in found, sorted(found)
    finding = found[rule]
    place = f" ({finding.file.rpartition('/')[2]}:{finding.line})"
    assert re.search(words, f"{finding.sentence}{place} {finding.advice}", re.S), finding
    assert finding.advice
    assert finding.visits > 0
    assert finding.numbers
    assert "_" not in basis(finding)
    assert rule not in by_rule(good()), by_rule(good())[rule].sentence


def test_each_rule_has_a_fault_that_triggers_it() -> None:
    assert {rule for rule, *_ in FAULTS.values()} == set(rules())
    assert len(FAULTS) >= 15


@pytest.mark.parametrize("raw", [gpu(loop(copy=300)), cpu([90_000] * 6),
                                 counted(gpu(loop(copy=300)), tensor=85.0)])  # fmt: skip
def test_healthy_kernels_give_no_finding(raw: RawRun) -> None:
    assert [f.sentence for f in Run(raw).findings] == []


def test_each_process_of_a_merged_run_has_a_first_launch() -> None:
    slow, fast = cpu([9000] * 4, first=3.0), cpu([9000] * 4)
    one = by_rule(slow)["first-launch"]
    both = by_rule(merge([slow, slow], ["one", "two"]))["first-launch"]
    assert both.gain_ns == pytest.approx(2 * one.gain_ns)
    assert both.sentence == one.sentence.replace("launch takes", "launch of 2 processes takes")
    second = by_rule(merge([fast, slow], ["one", "two"]))["first-launch"]
    assert (second.gain_ns, second.sentence) == (pytest.approx(one.gain_ns), one.sentence)


def test_how_many_records_there_were_is_an_estimate_where_some_were_lost() -> None:
    for capacity, said in ((0, "and there are 48000"), (500, "and there are about 48000")):
        run = cpu([100_000] * 4, steps=2000, slice_cost=12.0, capacity=capacity)
        assert by_rule(run)["fine-scopes"].sentence.endswith(said)


def test_programs_that_wait_for_a_lock_are_equal() -> None:
    """The last one waits longest, which is not its own work."""
    assert set(by_rule(faults.locked(30_000))) == {"locks"}


def time_of(raw: RawRun) -> float:
    """From the first launch's start to the last's end."""
    launches = Run(raw).launches
    return float((launches["start_ns"] + launches["dur_ns"]).max() - launches["start_ns"].min())


# Of each fault that can be mended: with it, and without; the gain is the difference.
FIXES: dict[str, tuple[str, Make, Make]] = {
    "dots that take as long": (
        "copies", lambda: gpu(loop(stages=1, copy=1500, dot=1100, goes_on=True), num_stages=1),
        lambda: gpu(loop(dot=1100, goes_on=True))),
    "a stage more": ("copies", lambda: gpu(loop(stages=2)), lambda: gpu(loop(stages=4))),
    "slow copies": ("copies", lambda: gpu(loop(stages=2, copy=2000), shared=40960),
                    lambda: gpu(loop(stages=6, copy=2000))),
    "a stage at all": ("copies", lambda: gpu(loop(stages=1), num_stages=1, shared=48 * 1024),
                       lambda: gpu(loop(stages=4))),
    "two copies at once": ("copies",
                           lambda: gpu(loop(stages=1, copies=2), num_stages=1, body=6),
                           lambda: gpu(loop(stages=4))),
    "equal work of warps": ("late-warp", lambda: gpu(barriers(700)),
                            lambda: gpu(barriers(work=1000 + 700 // 4))),
    "equal work of two warps": ("late-warp", lambda: gpu(barriers(700, units=2)),
                                lambda: gpu(barriers(work=1000 + 700 // 2, units=2))),
    "more slots": ("few-slots", lambda: roles(1), lambda: roles(4)),
    "a lock that is held for less": ("locks", lambda: faults.locked(30_000),
                                     lambda: faults.locked(500)),
    "a hidden softmax": ("exposed", lambda: gpu(loop(softmax=300)), lambda: gpu(loop())),
    "scores in time": ("waits", lambda: gpu(pieces(200), auto=[], body=3),
                       lambda: gpu(pieces(5), auto=[], body=3)),
    # Dots take 400 ns of an iteration, at the part of their peak that kernels reach.
    "scores beside dots": (
        "waits", lambda: gpu(pieces(200), auto=[], body=3, dot_loops=[[faults.FILE, 1, 99, 320.0]]),
        lambda: gpu(pieces(100), auto=[], body=3)),
    "no pauses": ("dot-gaps", lambda: gpu(loop(gap=120)), lambda: gpu(loop())),
    "equal programs": ("unequal-programs", lambda: cpu([90_000] * 7 + [700_000]),
                       lambda: cpu([166_250] * 8)),
    "whole waves": ("tail", lambda: gpu(loop(), lengths=[5000] * 5),
                    lambda: gpu(loop(), lengths=[6250] * 4)),
    "two programs": ("few-programs", lambda: cpu([400_000]), lambda: cpu([200_000] * 2)),
    "a hidden epilogue": ("epilogue", lambda: gpu(loop(epilogue=9000)), lambda: gpu(loop())),
    "launches without pauses": ("launch-gaps", lambda: gpu(loop(), pause=90_000),
                                lambda: gpu(loop(), pause=500)),
    "launches without pauses on the CPU": ("launch-gaps", lambda: cpu([4000] * 4, pause=30_000),
                                           lambda: cpu([4000] * 4, pause=300)),
    "equal programs of a GPU": ("unequal-programs",
                                lambda: gpu(loop(), lengths=[5000] * 11 + [25000]),
                                lambda: gpu(loop(), lengths=[6667] * 12)),
    "scopes that are worth it": (
        "fine-scopes", lambda: cpu([100_000] * 4, steps=2000, slice_cost=12.0),
        lambda: cpu([100_000 - 2000 * 12] * 4, steps=20)),
    "scopes that keep loads from others": (
        "fine-scopes", lambda: cpu([100_000] * 4, steps=2000, slice_cost=6.0, run_ns=100_000,
                                   run_ns_off=50_000),
        lambda: cpu([50_000] * 4, steps=20)),
    # Of two programs on an SM each works while the other waits, 1,500 ns of 2,500 an iteration.
    "another program on an SM": ("occupancy", lambda: gpu(loads(1500), shared=128 * 1024),
                                 lambda: gpu(loads(1500), lengths=[50_000] * 4)),
    "clocks that stay": ("clocks", lambda: gpu(loop(), rates=(0.5, 0.5, 0.6, 0.6, 0.6),
                                               slower=(1, 1, 1.2, 1.2, 1.2)),
                         lambda: gpu(loop(), rates=(0.5,) * 5)),
    # A sampler and a counter see the 1,500 of 2,500 ns in which nothing is done.
    "a load in time": ("stalls", lambda: sampled(gpu(loads(1500)), "long_scoreboard", 60),
                       lambda: gpu(loads(40))),
    "a busy chip": ("utilization", lambda: counted(gpu(loads(1500)), issue=40.0),
                    lambda: gpu(loads(40))),
    "a warm start": ("first-launch", lambda: cpu([9000] * 4, first=3.0), lambda: cpu([9000] * 4)),
}  # fmt: skip


@pytest.mark.parametrize("fix", FIXES)
def test_what_a_fix_gains_is_as_estimated(fix: str) -> None:
    rule, bad, good = FIXES[fix]
    raw = bad()
    estimate = by_rule(raw)[rule].gain_ns
    gained = time_of(raw) - time_of(good())
    assert gained > 0
    assert 1 / 1.5 <= estimate / gained <= 1.5, (estimate, gained)


def test_what_other_programs_hide_is_at_stake_where_a_unit_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of eight programs on an SM one always has its data; none has room in a queue that is full."""
    monkeypatch.setattr(KernelView, "resident", 8.0)
    part = {}
    for reason in ("long_scoreboard", "mio_throttle"):
        run = Run(sampled(gpu(loads(1500)), reason, 60))
        found = {each.rule: each for each in run.findings.findings}.get("stalls")
        part[reason] = found.gain_ns / run.findings.kernels[0].time_ns if found else 0.0
    assert part["long_scoreboard"] < 0.05
    assert part["mio_throttle"] == pytest.approx(0.6, rel=0.01)


@pytest.mark.parametrize(
    ("reasons", "says", "percent"),
    [
        ({"mio_throttle": 40, "lg_throttle": 20}, "global memory (lg_throttle, mio_throttle)", 60),
        ({"math_pipe_throttle": 40, "lg_throttle": 20}, "pipe (math_pipe_throttle)", 40),
        ({"math_pipe_throttle": 20, "lg_throttle": 40}, "global memory (lg_throttle)", 40),
    ],
)
def test_queues_of_one_access_are_one_reason_and_other_units_are_not(
    reasons: dict[str, int], says: str, percent: int
) -> None:
    found = by_rule(sampled(gpu(loads(1500)), reasons))["stalls"]
    assert says in found.sentence
    assert found.numbers["reason_percent"] == percent


def test_another_program_gains_no_more_than_tensor_cores_are_idle() -> None:
    """Of 2,500 ns of an iteration dots take 2,250, at the part of their peak that they reach."""
    alone = gpu(loads(1500), shared=128 * 1024)
    gain = by_rule(alone)["occupancy"].gain_ns
    dots = [[faults.FILE, 1, 99, 1800.0]]
    beside = gpu(loads(1500), shared=128 * 1024, body=2, dot_loops=dots)
    assert by_rule(beside)["occupancy"].gain_ns == pytest.approx(0.1 * time_of(beside), rel=0.05)
    assert gain > 0.2 * time_of(alone)


@pytest.mark.parametrize(("reason", "percent"), [("lg_throttle", 75), ("math_pipe_throttle", 40)])
def test_what_waits_for_accesses_of_a_full_queue_is_at_stake_with_them(
    reason: str, percent: int
) -> None:
    raw = sampled(gpu(loads(1500)), {reason: 40, "long_scoreboard": 15}, later=20)
    run = Run(raw)
    found = {each.rule: each for each in run.findings.findings}["stalls"]
    assert found.gain_ns / run.findings.kernels[0].time_ns == pytest.approx(percent / 100, rel=0.01)
    assert found.numbers["reason_percent"] == 40


def test_rules_come_behind_rules_that_there_are() -> None:
    assert {name for rule in rules().values() for name in rule.behind} <= set(rules())


def test_what_warps_wait_for_comes_ahead_of_an_idle_chip() -> None:
    """... whatever each says is at stake; the chip's own rank is by what it says."""
    run = Run(counted(sampled(gpu(loads(1500)), "mio_throttle", 30), tensor=12.0, dram=9.0))
    found = [(each.rule, each.gain_ns) for each in run.findings.findings]
    rules_ = [rule for rule, _ in found]
    assert rules_.index("stalls") + 1 == rules_.index("utilization")
    assert dict(found)["stalls"] < dict(found)["utilization"]
    alone = Run(counted(sampled(gpu(loads(1500)), "not_selected", 30), tensor=12.0, dram=9.0))
    assert alone.findings.findings[0].rule == "utilization"


def test_a_sampler_that_gave_nothing_is_told() -> None:
    raw = sampled(gpu(loads(1500)), "long_scoreboard", 60)
    none = replace(raw.kernels[0].pc_samples, functions=(), reasons=(), rows=())
    raw.kernels = [replace(kernel, pc_samples=none) for kernel in raw.kernels]
    found = [each for each in Run(raw).findings.unrecorded if each.rule == "stalls"]
    assert [each.needs for each in found] == ["samples: CUPTI gave none"]


@pytest.mark.parametrize(("rule", "make"), [
    ("copies", lambda n: gpu(loop(stages=2, iterations=100), capacity=n)),
    ("exposed", lambda n: gpu(loop(softmax=300, iterations=100), capacity=n)),
    ("dot-gaps", lambda n: gpu(loop(gap=120, iterations=100), capacity=n)),
    ("late-warp", lambda n: gpu(barriers(700, turns=100), capacity=n)),
    ("spills", lambda n: gpu(loop(iterations=100), spills=24, capacity=n)),
    ("occupancy", lambda n: gpu(loads(1500), shared=128 * 1024, capacity=n)),
    ("waits", lambda n: gpu(pieces(200), auto=[], body=3, capacity=n)),
])  # fmt: skip
def test_a_ring_buffer_that_lost_records_tells_the_same(
    rule: str, make: Callable[[int], RawRun]
) -> None:
    whole = by_rule(make(0))[rule]
    for capacity in (64, 33):
        found = by_rule(make(capacity))[rule]
        assert found.gain_ns == pytest.approx(whole.gain_ns, rel=0.15), capacity


def test_sampled_iterations_tell_what_all_tell() -> None:
    """A softmax of each fourth iteration, beside dots that all are on record."""
    units = loop(softmax=300, iterations=100)
    whole, some = (by_rule(gpu(units, body=5, every=every))["exposed"] for every in (1, 4))
    assert some.gain_ns == pytest.approx(whole.gain_ns, rel=0.05)
    assert some.numbers == pytest.approx(whole.numbers, rel=0.05)


def test_a_loop_for_each_of_several_tiles_tells_what_one_tells() -> None:
    one, eight = ({f.rule: f for f in Run(
        gpu(tiles(loop(stages=2), count), body=4, trips=40, spills=24)).findings
    } for count in (1, 8))  # fmt: skip
    assert eight["copies"].sentence.split(" take as")[0] == (
        "each iteration waits 498 ns of 929 ns for copies: they are issued 1 iteration ahead and"
    )
    assert eight["copies"].gain_ns / 8 == pytest.approx(one["copies"].gain_ns, rel=0.1)
    assert [f["spills"].numbers["iterations"] for f in (one, eight)] == [40, 320]
    assert eight["spills"].gain_ns / 8 == pytest.approx(one["spills"].gain_ns, rel=0.01)


def test_sampled_iterations_count_for_spills_as_all_do() -> None:
    found = [by_rule(gpu(loop(softmax=100), spills=24, body=5, every=every))["spills"]
             for every in (1, 4)]  # fmt: skip
    assert found[0].numbers["iterations"] == found[1].numbers["iterations"] == 40


@pytest.mark.parametrize(("units", "capacity"), [(1, 0), (4, 0), (1, 60)])
def test_a_pause_between_dots_is_one_of_a_program(units: int, capacity: int) -> None:
    """Whether one warp or several have dots, and records were lost or not."""
    found = by_rule(gpu(loop(gap=120) * units, capacity=capacity))["dot-gaps"]
    assert found.numbers["gap_ns"] == pytest.approx(122, abs=1)


def test_the_scope_of_a_long_program_is_a_part_of_its_time() -> None:
    """... and not of what little of it is recorded."""
    raw = gpu([[(faults.STEP, 0, 500), (faults.REDUCE, 4900, 100)]], lengths=[5000] * 11 + [25000])
    assert "takes 25 us, 10 % of it in step" in by_rule(raw)["unequal-programs"].sentence


def test_launches_of_other_sizes_are_not_at_stake() -> None:
    few = cpu([400_000], launches=3)
    rest = cpu([200_000] * 20, launches=2, begin=10_000_000)
    few.launches += rest.launches
    found = by_rule(few)["few-programs"]
    assert found.gain_ns == pytest.approx(3 * 200_000)
    assert found.visits == 3
    tail = cpu([50_000] * 3, launches=2)
    tail.launches += cpu([50_000] * 4, launches=3, begin=10_000_000).launches
    assert "3 programs on 2 threads x 1 are 1.50 waves" in by_rule(tail)["tail"].sentence
    assert by_rule(tail)["tail"].gain_ns == pytest.approx(2 * 25_000)


def test_launches_of_other_sizes_are_neither_unequal_nor_a_slow_start() -> None:
    raw = cpu([90_000] * 5 + [700_000], launches=3)
    whole = by_rule(raw)["unequal-programs"]
    raw.launches += cpu([90_000] * 400, launches=2, begin=10_000_000).launches
    assert "unequal-programs" not in by_rule(raw)  # they are 1 % of the time
    raw = cpu([90_000] * 5 + [700_000], launches=3)
    raw.launches += cpu([90_000] * 12, launches=2, begin=10_000_000).launches
    found = by_rule(raw)["unequal-programs"]
    assert found.sentence == whole.sentence
    assert found.gain_ns == pytest.approx(whole.gain_ns)
    first = cpu([9000] * 40, launches=1)
    first.launches += cpu([9000] * 4, launches=5, begin=10_000_000).launches
    assert "first-launch" not in by_rule(first)


@pytest.mark.parametrize(("rule", "lengths"), [("unequal-programs", [400, 4000]),
                                               ("tail", [4000] * 3)])  # fmt: skip
def test_what_a_launch_takes_around_its_programs_is_not_at_stake(
    rule: str, lengths: list[int]
) -> None:
    """A call of 36 us or more with programs of a few."""
    raw = cpu(lengths)
    whole = by_rule(raw)[rule]
    raw.launches = [replace(one, host_end=one.host_end + 32_000) for one in raw.launches]
    found = by_rule(raw).get(rule)
    assert found is not None or whole.gain_ns < 0.05 * Run(raw).findings.time_ns
    if found is not None:
        assert found.gain_ns == pytest.approx(whole.gain_ns)
        assert found.numbers["idle_percent"] < whole.numbers["idle_percent"] / 4
    raw.launches = [replace(one, host_end=one.host_end + 200_000) for one in raw.launches]
    assert "few-programs" not in by_rule(raw)


def test_programs_that_wait_for_each_other_leave_no_places_idle() -> None:
    """They have a thread each: 7 of 2, which is no number of places for other kernels."""
    raw = cpu([100_000] * 8, threads=7)
    raw.machine["threads"] = 2
    assert not {"tail", "unequal-programs", "few-programs"} & by_rule(raw).keys()
    few = cpu([400_000], threads=1, late=1, begin=10_000_000)
    raw.launches += [replace(one, kernel=1) for one in few.launches]
    raw.kernels = [*raw.kernels, replace(few.kernels[0], name="other")]
    assert "1 program for 2 threads" in by_rule(raw)["few-programs"].sentence


def test_a_launch_has_the_threads_of_its_process() -> None:
    both = [cpu([200_000] * 2), cpu([200_000] * 2)]
    for raw in both:
        del raw.machine["threads"]
    merged = merge(both, ["one", "two"])
    assert Run(merged).programs["thread"].nunique() == 4
    assert "few-programs" not in by_rule(merged)


@pytest.mark.parametrize("options", [{"every": 4}, {"capacity": 25}, {"capacity": 24},
                                     {"every": 4, "capacity": 41}])  # fmt: skip
def test_slices_that_are_not_there_are_not_the_scopes_around_them(options: dict[str, int]) -> None:
    """A scope around a loop, one in it, and one inside of that, with 5, 15 and 80 % of the time."""
    steps = [[(faults.STEP, 100 * n + 10, 80), (faults.REDUCE, 100 * n, 95)] for n in range(400)]
    units = [[*(each for step in steps for each in step), (faults.STORE, 0, 40_000)]]
    raw = gpu(units, auto=[], body=2, **options)
    parts = dict(Run(raw).findings.kernels[0].scopes)
    assert parts == pytest.approx({"step": 80, "reduce": 15, "store": 5}, abs=3)


@pytest.mark.parametrize("every", [1, 4])
def test_a_loop_in_a_sampled_iteration_is_sampled_itself(every: int) -> None:
    """16 tiles of 40 steps of 90 ns, and 400 ns more each: steps have 90 % of the time."""
    raw = gpu([[(faults.REDUCE, 0, 4000)]], auto=[], launches=1, lengths=[64_000], every=every)
    chip = Chip(random.Random(1), sms=1, resolution=1)
    records = [
        Record(begin, begin + took, scope, 0, number)
        for tile in range(16)
        for scope, number, begin, took in (
            *((faults.STEP, k, 10_000 + 4000 * tile + 100 * k, 90) for k in range(40)),
            (faults.REDUCE, tile, 10_000 + 4000 * tile, 4000),
        )
        if number % every == 0
    ]
    program = chip.program(0, 10_000, 74_000, 1.0, [records])
    (launch,) = raw.launches
    packed = pack_launch(raw.kernels[0], (1, 1, 1), len(records), [program],
                         host=(launch.host_start, launch.host_end))  # fmt: skip
    raw.launches = [packed]
    raw.gpus = [replace(chip.clock(), name="a GPU")]
    assert dict(Run(raw).findings.kernels[0].scopes) == pytest.approx(
        {"step": 90, "reduce": 10}, abs=3
    )


def test_scopes_of_no_time_are_scopes() -> None:
    raw = gpu([[(faults.STEP, 10, 0)]], auto=[], lengths=[1000] * 4)
    assert Run(raw).findings.kernels[0].scopes == (("step", 0.0),)


def test_programs_that_all_run_at_once_gain_nothing_of_more_room() -> None:
    raw = gpu(loads(1500), shared=128 * 1024, lengths=[50_000] * 4)
    assert "occupancy" not in by_rule(raw)


def test_programs_without_records_cost_none() -> None:
    units = [[(faults.STEP, 20 * n, 20) for n in range(500)]]
    every, fourth = (by_rule(gpu(units, cost=12.0, recorded=n)) for n in (1, 4))
    assert every["fine-scopes"].numbers["cost_percent"] == pytest.approx(60)
    half = by_rule(gpu(units, cost=12.0, recorded=2))["fine-scopes"]
    assert half.numbers["cost_percent"] == pytest.approx(30)
    assert fourth["fine-scopes"].numbers["cost_percent"] == pytest.approx(15)


def test_what_the_compiler_recorded_is_left_out_of_what_it_is_asked_for() -> None:
    units = [[(faults.LOAD, 20 * n, 20) for n in range(500)]]
    found = by_rule(gpu(units, cost=12.0, auto=["loads"]))["fine-scopes"]
    assert found.advice == 'leave "loads" out of auto=, or record one iteration of some (every=16)'


def test_of_some_warps_none_is_the_last() -> None:
    run = Run(gpu(barriers(500), sample_warps=[0, 1, 2]))
    assert not [f for f in run.findings if f.rule == "late-warp"]
    assert "a session without sample_warps" in [u.option for u in run.findings.unrecorded]


def test_dots_of_some_iterations_say_nothing_of_pauses() -> None:
    """Those that a warp does itself, of each fourth iteration."""
    dots = [(faults.MMA, 400 * n, 390) for n in range(40)]
    assert "dot-gaps" in by_rule(gpu([[(scope, 2 * start, ns) for scope, start, ns in dots]]))
    assert "dot-gaps" not in by_rule(gpu([dots]))
    some = Run(gpu([dots], every=4)).findings
    assert not {"dot-gaps", "exposed", "epilogue"} & {finding.rule for finding in some}
    assert ("dot-gaps", "all dots") in [(each.rule, each.needs) for each in some.unrecorded]


def test_what_a_loop_lost_does_not_count_as_its_epilogue() -> None:
    """A loop of 100 iterations of 1300 ns, of which 16 are left, and an epilogue of a tenth."""
    units = [[*loop(stages=1, iterations=100)[0], (faults.STORE, 130_000, 13_000)]]
    found = Run(gpu(units, capacity=65)).findings
    (kernel,) = found.kernels
    parts = dict(kernel.scopes)
    assert parts["wait copy"] / parts["store"] == pytest.approx(6.9, rel=0.05)


def test_each_rule_that_says_a_gain_has_a_fix() -> None:
    """What recording changed is no gain; of spills the code of real kernels is the measure
    (tests/compile/test_spills.py)."""
    assert {rule for rule, *_ in FIXES.values()} == set(rules()) - {"perturbation", "spills"}


def test_resident_programs_hide_what_one_of_them_waits() -> None:
    """Two of an SM: it idles only while both wait."""
    alone = by_rule(gpu(pieces(200), auto=[], body=3))["waits"]
    raw = gpu(pieces(200), auto=[], body=3, sms=2, lengths=[10_000] * 4)
    twice = gpu(pieces(200), auto=[], body=3, sms=1, lengths=[10_000] * 2)
    assert by_rule(raw)["waits"].gain_ns / time_of(raw) == pytest.approx(
        alone.gain_ns / time_of(gpu(pieces(200), auto=[], body=3)), rel=0.05
    )
    assert by_rule(twice)["waits"].gain_ns > 0


def test_a_late_warp_is_shown_by_who_waits_for_it() -> None:
    """The slice to open is the wait of a warp that came first, as long as the last was late."""
    (shown,) = by_rule(gpu(barriers(500)))["late-warp"].slices
    assert shown.scope == "barrier"
    assert shown.unit != 2
    assert shown.dur_ns >= 475


def test_idle_places_count_those_that_came_too_late() -> None:
    found = by_rule(cpu([90_000] * 5 + [700_000], threads=1, late=1))["unequal-programs"]
    assert found.numbers["places"] == 2


def test_programs_are_named_that_others_wait_for() -> None:
    """Not one of twice the median that is nothing beside the longest; of many some."""
    advice = by_rule(gpu(loop(), lengths=[10_000] + [5000] * 10 + [90_000]))[
        "unequal-programs"
    ].advice
    assert "the long program (11) first" in advice
    advice = by_rule(gpu(loop(), lengths=[5000] * 7 + [90_000] * 5))["unequal-programs"].advice
    assert "the long programs (7, 8, 9 and 2 more) first" in advice


def test_findings_come_by_what_is_at_stake() -> None:
    gains = [f.gain_ns for f in Run(gpu(loop(stages=2, softmax=300, gap=120), spills=9)).findings]
    assert len(gains) >= 4
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("option", ["every_launch", "compare_run_time"])
def test_pauses_in_which_launches_were_not_recorded_are_not_the_hosts(option: str) -> None:
    noted = {"every_launch": {"every_launch": 10}, "compare_run_time": {"run_ns_off": 8000}}
    found = Run(cpu([4000] * 4, pause=30_000, **noted[option])).findings
    assert "launch-gaps" not in {each.rule for each in found}
    assert [e.option for e in found.unrecorded if e.rule == "launch-gaps"] == [
        f"a session without {option}"
    ]


def test_what_other_scopes_launch_is_no_pause() -> None:
    raw = cpu([4000] * 4, launches=20, pause=300)
    for number, launch in enumerate(raw.launches):
        launch.path = f"layer {number % 2}"
    assert "launch-gaps" not in by_rule(raw)
    raw = cpu([4000] * 4, launches=20, pause=30_000)
    for number, launch in enumerate(raw.launches):
        launch.path = f"layer {number % 2}"
    found = [f for f in Run(raw).findings if f.rule == "launch-gaps"]
    assert [f.numbers["pause_ns"] for f in found] == pytest.approx([30_000] * 2, rel=0.01)
    assert sum(f.gain_ns for f in found) == pytest.approx(18 * 30_000, rel=0.01)


def test_kernels_of_others_fill_pauses() -> None:
    raw = gpu(loop(), pause=90_000, launches=9)
    ends = [(first.dur_ns + first.start_ns, second.start_ns) for first, second in
            pairwise(Run(raw).launches.itertuples())]  # fmt: skip
    raw.host = [
        HostSlice(name="gemm", path="gemm", thread=7, start=raw.origin_ns + end - 100,
                  end=raw.origin_ns + start - 2000, kind="kernel", device=0)
        for end, start in ends
    ]  # fmt: skip
    assert "launch-gaps" not in by_rule(raw)


def test_what_recording_takes_of_a_pause_is_not_the_hosts() -> None:
    found = by_rule(cpu([4000] * 4, pause=30_000, recorder_ns=10_000))["launch-gaps"]
    assert (found.numbers["pause_ns"], found.numbers["recorder_ns"]) == (20_000, 10_000)
    assert found.gain_ns == pytest.approx(5 * 20_000)
    assert "pauses of 20 us between them, without 10 us of recording: the host" in found.sentence
    assert "launch-gaps" not in by_rule(cpu([4000] * 4, pause=30_000, recorder_ns=29_000))
    assert "launch-gaps" not in by_rule(cpu([4000] * 4, pause=30_000, recorder_ns=31_000))


def test_of_pauses_that_recording_makes_unequal_the_mean_counts() -> None:
    """Of memory for many records one launch gets what another had made ready."""
    unequal = cpu([4000] * 4, pause=30_000, recorder_ns=100, recorder_mean_ns=29_000)
    assert "launch-gaps" not in by_rule(unequal)
    rare = cpu([4000] * 4, pause=30_000, recorder_ns=10_000, recorder_mean_ns=12_000)
    assert by_rule(rare)["launch-gaps"].numbers["pause_ns"] == pytest.approx(18_000)


def test_a_pause_is_opened_with_the_launch_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(cpu([4000] * 4, pause=30_000, recorder_ns=10_000))
    file = run.save(tmp_path / "run.proton")
    ((_, below),) = [
        line for line, f in zip(run.findings.lines(str(file)), run.findings, strict=True)
        if f.rule == "launch-gaps"
    ]  # fmt: skip
    (words,) = [shlex.split(line) for line in below if line.startswith("open: ")]
    assert "--launch" not in words
    start, end = (int(words[words.index(name) + 1]) for name in ("--start", "--end"))
    (shown,) = by_rule(run.raw)["launch-gaps"].slices
    before, after = (run.launches.loc[shown.launch + k] for k in (-1, 0))
    assert start < before.start_ns + before.dur_ns
    assert end > after.start_ns
    status, _, err = call(monkeypatch, capsys, *words[2:], "--width", "100")
    assert (status, err) == (0, "")


def test_it_says_how_many_programs_each_resource_allows() -> None:
    found = by_rule(gpu(loads(1500), shared=64 * 1024))["occupancy"]
    assert "shared memory allow 3, threads allow 64" in basis(found)


def test_records_cost_no_more_than_they_take() -> None:
    """96 us of records in launches of 50 ms, of which programs run 200 us: they may compile."""
    raw = cpu([100_000] * 4, steps=2000, slice_cost=12.0, pause=60_000_000, begin=60_000_000)
    assert "fine-scopes" in by_rule(raw)
    raw.launches = [
        replace(launch, host_start=launch.host_start - 50_000_000) for launch in raw.launches
    ]
    assert "fine-scopes" not in by_rule(raw)


def test_records_cost_a_part_of_what_programs_take() -> None:
    """... of both threads, and not of the calls around them."""
    raw = cpu([100_000] * 4, steps=2000, slice_cost=12.0, pause=60_000_000, begin=60_000_000)
    whole = by_rule(raw)["fine-scopes"]
    raw.launches = [
        replace(launch, host_start=launch.host_start - 200_000) for launch in raw.launches
    ]
    found = by_rule(raw)["fine-scopes"]
    assert found.gain_ns == pytest.approx(whole.gain_ns)
    assert found.numbers["cost_percent"] == pytest.approx(whole.numbers["cost_percent"] / 2)


def test_a_command_quotes_the_name_of_the_file() -> None:
    (shown,) = by_rule(cpu([4000] * 4, pause=30_000))["launch-gaps"].slices
    assert command(shown, "a run.proton").startswith("proton-tile timeline 'a run.proton' --launch")


def test_what_was_not_recorded_names_the_option() -> None:
    found = Run(gpu(barriers(500), auto=[])).findings
    options = {each.option for each in found.unrecorded}
    assert {f'auto="{word}"' for word in ("copies", "dots", "barriers")} <= options
    assert any(option.startswith("counters=") for option in
               {e.option for e in Run(gpu(loop())).findings.unrecorded})  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_random_runs_are_explained(seed: int) -> None:
    for raw in (random_run(seed), random_run(seed, crossing=True), gpu_run(seed),
                gpu_run(seed, mixed=True, crossing=True), pieces_run(seed)):  # fmt: skip
        found = Run(raw).findings
        document = json.loads(json.dumps(found.to_json(), allow_nan=False))
        assert all(0 <= f["gain_ns"] < float("inf") for f in document["findings"])
        times = {kernel["kernel"]: kernel["time_ns"] for kernel in document["kernels"]}
        assert [f["gain_ns"] for f in document["findings"] if f["kernel"]
                and not (f["between_launches"] or f["happens_once"])
                and f["gain_ns"] > times[f["kernel"]]] == []  # fmt: skip
        for finding in found:
            for shown in finding.slices:
                assert 0 <= shown.launch < len(raw.launches)


def test_the_json_is_the_schema_that_is_documented() -> None:
    document = Run(gpu(loop(stages=2))).findings.to_json()
    assert list(document) == ["run", "time_ns", "kernels", "findings", "unrecorded",
                              "warnings"]  # fmt: skip
    finding = document["findings"][0]  # type: ignore[index]
    assert set(finding) == {
        "rule", "sentence", "gain_ns", "gain_percent", "kernel", "advice", "record", "visits",
        "error_ns", "between_launches", "happens_once", "numbers", "slices", "file", "line",
    }  # fmt: skip
    assert set(finding["slices"][0]) == {
        "launch", "scope", "sm", "unit", "program", "start_ns", "dur_ns",
    }  # fmt: skip


@pytest.fixture
def viewer(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *words)


def test_the_command_says_the_cause_first(viewer, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = Run(gpu(loop(stages=2))).save(tmp_path / "m.proton")
    status, out, err = viewer("explain", file)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("1. matmul: each iteration waits ")
    assert max(map(len, lines)) <= 80
    assert "try: num_stages=4" in out
    assert "not recorded:" in out
    status, out, _ = viewer("explain", file, "--json")
    assert status == 0
    assert json.loads(out)["findings"][0]["rule"] == "copies"
    commands = [line for line in out.splitlines() if "proton-tile timeline" in line]
    assert not commands  # the JSON names slices, not commands


def test_what_kernels_took_adds_up_to_the_summary(viewer, tmp_path) -> None:
    """A first launch of 54 us among three of 18: what it takes longer is told apart."""
    file = Run(cpu([9000] * 4, first=3.0)).save(tmp_path / "m.proton")
    _, out, _ = viewer("explain", file)
    _, summary, _ = viewer("summary", file, "--json")
    whole = sum(row["total"] for row in json.loads(summary)["launches"]["rows"])
    words = re.search(r"(\d+) launches, ([\d.]+) us without ([\d.]+) us of its start", out)
    assert words
    assert 1000 * (float(words[2]) + float(words[3])) == pytest.approx(whole, rel=0.01)


def test_slices_to_open_can_be_opened(viewer, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Run(gpu(loop(stages=2))).save("m.proton")
    _, out, _ = viewer("explain", "m.proton", "--limit", "1")
    words = re.search(r"open: proton-tile (timeline .*?--end\s+\d+)", out, re.S)
    assert words
    status, shown, err = viewer(*words[1].split())
    assert (status, err) == (0, "")
    assert "wait copy" in shown


def test_what_differs_from_another_run(viewer, tmp_path) -> None:
    slow = Run(gpu(loop(stages=2))).save(tmp_path / "slow.proton")
    raw = gpu(loop(stages=4), num_stages=4, shared=192 * 1024, registers=140)
    fast = Run(raw).save(tmp_path / "fast.proton")
    status, out, _ = viewer("explain", fast, "--against", slow, "--json")
    assert status == 0
    found = {row["what"]: row for row in json.loads(out)["differences"]}
    assert (found["num_stages"]["before"], found["num_stages"]["after"]) == (2, 4)
    assert found["registers"]["after"] == 140
    assert found["wait_percent"]["after"] < found["wait_percent"]["before"]
    assert found["launch_ns"]["after"] < found["launch_ns"]["before"]
    assert found["wait copy_ns"]["after"] < found["wait copy_ns"]["before"]
    short = gpu([[(faults.STEP, 0, 0), (faults.STORE, 0, 90)]])
    for same in (fast, Run(short).save(tmp_path / "short.proton")):
        _, out, _ = viewer("explain", same, "--against", same)
        assert "nothing differs" in out
    other = Run(cpu([9000] * 4)).save(tmp_path / "other.proton")
    _, out, _ = viewer("explain", fast, "--against", other)
    assert "matmul: is in this run alone" in out
    assert "add: is in the other run alone" in out


def test_a_run_without_anything_is_explained() -> None:
    found = Run(RawRun(name="r", origin_ns=1, origin_unix_ns=1, clock=faults.cpu([1]).clock))
    assert len(found.findings) == 0
    assert "no finding: no launch was recorded" in found.findings._repr_html_()


def test_there_is_no_such_file(tmp_path) -> None:
    with pytest.raises(ProtonError, match="cannot be read"):
        Run.load(tmp_path / "nothing.proton")
