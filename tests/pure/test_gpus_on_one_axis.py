"""Several GPUs, of one process or of several, against chips whose clocks are known exactly: what
one GPU tells another comes out in order, but for the error that is stated."""

import contextlib
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import ORIGIN_NS, Chip, Record, Written, kernel, pack_launch, run

from proton.trace.gpu_peers import PeerPair, aligned
from proton.trace.merge import merge
from proton.trace.model import BOOT, WALL_CLOCKED, GPUClock, RawRun, Scope
from proton.viewer import Run, cli
from tests.draws import examples

TABLE = tuple(Scope(name=name, path=name) for name in ("set", "seen"))
OWNER = kernel(name="talk", target="cuda:90", table=TABLE, clock_bits=32)
RATE, STEP_NS, ENDS = 0.51, 200_000, (0, 2_000_000_000)


def noted(chip: Chip, of: random.Random, error_ns: int) -> GPUClock:
    """A chip's clock by pairs that are wrong by no more than `error_ns`."""
    clock = chip.clock(pairs=ENDS, error_ns=float(error_ns))
    wrong = [of.randint(-error_ns, error_ns) for _ in ENDS]
    return replace(clock, host_ns=clock.host_ns + np.array(wrong))


def talks(chips: list[Chip], of: random.Random) -> tuple[list[list[Written]], list[int]]:
    """The programs of two chips, of which one and the other in turns sets a flag that the other
    one sees; and how long each flag took, in ns."""
    programs: list[list[Written]] = [[], []]
    took = []
    for number in range(10):
        begin = (number + 1) * STEP_NS
        ways = of.randint(0, 900)
        took.append(ways)
        said, seen = (number % 2, 1 - number % 2)
        set_at = begin + 10_000
        for chip, scope, start, end in (
            (said, 0, begin + 100, set_at),
            (seen, 1, set_at + ways, set_at + ways + 5000),
        ):
            record = Record(start, end, scope=scope)
            written = chips[chip].program(0, begin, begin + 90_000, RATE, [[record]])
            programs[chip].append(written)
    return programs, took


def a_run(chips: list[Chip], clocks: list[GPUClock], programs: list[list[Written]]) -> RawRun:
    """A process with these GPUs; each launch has one program."""
    launches = [
        pack_launch(
            OWNER, (1, 1, 1), 16, [written], device=chip.device, host=(ORIGIN_NS, ORIGIN_NS)
        )
        for chip, own in zip(chips, programs, strict=True)
        for written in own
    ]
    raw = run([OWNER], launches)
    raw.gpus = clocks
    return raw


def assert_in_order(whole: Run, took: list[int]) -> None:
    frame = whole.frame
    ends = [
        np.sort((frame["start_ns"] + by * frame["dur_ns"])[frame["name"] == name].to_numpy())
        for name, by in (("set", 1), ("seen", 0))
    ]
    assert whole.records.gpu is not None
    stated = whole.records.gpu.alignment_ns() + 2 * frame["error_ns"][frame.kind == "scope"].max()
    assert (np.abs(ends[1] - ends[0] - took) <= stated + 4).all()
    assert (
        f"within {whole.records.gpu.alignment_ns():.0f} ns"
        in whole.summary().facts["GPUs on one axis"]
    )


@examples(40)
@given(
    seed=st.integers(0, 1 << 32),
    drifts=st.tuples(*[st.sampled_from([0.0, 3e-5, -8e-5])] * 2),
    error_ns=st.sampled_from([0, 400, 3000]),
    resolution=st.sampled_from([1, 32, 1000]),
    is_merged=st.booleans(),
)
def test_a_flag_is_seen_after_it_was_set(
    seed: int, drifts: tuple[float, float], error_ns: int, resolution: int, is_merged: bool
) -> None:
    of = random.Random(seed)
    chips = [
        Chip(
            of,
            device=0 if is_merged else number,
            resolution=resolution,
            timer_zero=1_790_000_000_000_000_000 + of.randrange(1 << 50),
            drift=drift,
        )
        for number, drift in enumerate(drifts)
    ]
    clocks = [noted(chip, of, error_ns) for chip in chips]
    programs, took = talks(chips, of)
    if not is_merged:
        assert_in_order(Run(a_run(chips, clocks, programs)), took)
        return
    ranks = [a_run([c], [k], [p]) for c, k, p in zip(chips, clocks, programs, strict=True)]
    whole = Run(merge(ranks, ["rank0", "rank1"]))
    assert [gpu.device for gpu in whole.raw.gpus] == [0, 1]
    assert_in_order(whole, took)


@examples(40)
@given(
    seed=st.integers(0, 1 << 32),
    drifts=st.tuples(*[st.sampled_from([0.0, 3e-5, -8e-5])] * 2),
    peer_error_ns=st.sampled_from([0, 50, 400]),
    resolution=st.sampled_from([1, 32]),
)
def test_gpus_that_told_each_other_their_timers_agree_better(
    seed: int, drifts: tuple[float, float], peer_error_ns: int, resolution: int
) -> None:
    """Than by the host, against which they are where they were, as far as is known: from the first
    time that they did to the last."""
    of, host_error_ns, moments = random.Random(seed), 1500, (50_000, 1_900_000_000)
    chips = [
        Chip(of, number, resolution=resolution, drift=drift) for number, drift in enumerate(drifts)
    ]
    told = [
        PeerPair(
            chips[0].timer(at),
            chips[1].timer(at) + of.randint(-peer_error_ns, peer_error_ns),
            peer_error_ns + resolution,
        )
        for at in moments
    ]
    clocks = [noted(chip, of, host_error_ns) for chip in chips]
    programs, took = talks(chips, of)
    raw = a_run(chips, aligned(clocks, 0, {1: told}), programs)
    assert raw.gpus[1].peer == 0
    whole = Run(raw)
    assert_in_order(whole, took)
    gpu = whole.records.gpu
    assert gpu is not None
    assert gpu.alignment_ns() <= peer_error_ns + resolution + 2
    for chip in chips:
        times = gpu.hosts[chip.device].ns(np.array([chip.timer(at) for at in moments], np.uint64))
        assert (
            np.abs(times - np.array(moments)) <= gpu.host_error_ns(chip.device) + resolution
        ).all()
    other = Run(merge([raw, replace(raw, name="b")], ["a", "b"]))
    assert [clock.peer for clock in other.raw.gpus] == [-1, 0, -1, 2]
    assert other.records.gpu is not None
    assert other.records.gpu.alignment_ns() >= 2 * host_error_ns, "of two processes by the host"


def test_gpus_that_told_each_other_nothing_agree_as_the_host_says() -> None:
    of = random.Random(3)
    chips = [Chip(of, number) for number in range(2)]
    clocks = [noted(chip, of, 500) for chip in chips]
    once = {1: [PeerPair(chips[0].timer(9), chips[1].timer(9), 1.0)]}
    for told in ({}, once):
        assert aligned(clocks, 0, told) == clocks
    assert aligned(clocks[1:], 0, once) == clocks[1:], "the first launched nothing"


def ranks(of: random.Random, boots: tuple[str, str]) -> tuple[list[RawRun], Any]:
    """Of two processes that say which boot they are of."""
    chips = [Chip(of), Chip(of)]
    programs, took = talks(chips, of)
    clocks = [noted(chip, of, 300) for chip in chips]
    found = [a_run([c], [k], [p]) for c, k, p in zip(chips, clocks, programs, strict=True)]
    for raw, boot in zip(found, boots, strict=True):
        raw.machine[BOOT] = boot
    return found, took


def test_a_boot_tells_whose_clock_it_is() -> None:
    """Whatever the wall clocks say: one was set between the runs of one machine; two machines were
    started in one second."""
    (first, second), took = ranks(random.Random(1), ("a", "a"))
    second.origin_unix_ns += 3_600_000_000_000
    assert_in_order(Run(merge([first, second], ["x", "y"])), took)
    (first, second), _ = ranks(random.Random(1), ("a", "b"))
    second.origin_unix_ns += 1000
    whole = Run(merge([first, second], ["x", "y"]))
    assert whole.raw.machine[BOOT] == "a"
    assert whole.raw.machine[WALL_CLOCKED] == "y"
    assert "but for y: by wall clocks" in whole.summary().facts["GPUs on one axis"]
    again = merge([whole.raw, ranks(random.Random(2), ("c", "c"))[0][0]], ["xy", "z"])
    assert again.machine[WALL_CLOCKED] == "y, z"


def test_merge_says_how_well_clocks_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for number, raw in enumerate(ranks(random.Random(3), ("a", "a"))[0]):
        files.append(str(tmp_path / f"rank{number}.proton"))
        raw.origin_unix_ns += number
        Run(raw).save(files[-1])
    words = ["proton-tile", "merge", *files, "-o", str(tmp_path / "job.proton")]
    monkeypatch.setattr(sys, "argv", words)
    with contextlib.suppress(SystemExit):
        cli.main()
    assert "times of two GPUs agree within 600 ns" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setattr(sys, "argv", [*words[:3], files[0], *words[4:]])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "are the same run: give each process's once" in " ".join(capsys.readouterr().err.split())
