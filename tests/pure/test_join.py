"""Runs that followed each other in one process, as one."""

from dataclasses import replace

import numpy as np
import pandas as pd
from synthetic import gpu_run

from proton.trace.join import join
from proton.trace.model import FORKED, UNFETCHED
from proton.viewer import Run

LATER = 3_000_000_000  # ns


def later(run_):
    """The same run, as if it had begun later: what of it is the host's clock moves."""
    for launch in run_.launches:
        launch.host_start += LATER
        launch.host_end += LATER
    run_.host = [replace(s, start=s.start + LATER, end=s.end + LATER) for s in run_.host]
    ticks = run_.clock.ticks + np.uint64(3 * LATER)
    run_.clock = replace(run_.clock, ticks=ticks, host_ns=run_.clock.host_ns + LATER)
    gpus = [replace(g, timer_ns=g.timer_ns + LATER, host_ns=g.host_ns + LATER) for g in run_.gpus]
    run_.gpus = gpus
    return run_


def test_launches_host_slices_and_clocks_of_all_parts_are_there() -> None:
    first, second = gpu_run(61, mixed=True), later(gpu_run(61, mixed=True))
    first.machine[FORKED], second.machine[FORKED] = 1, 2
    second.machine[UNFETCHED] = 1
    first.dropped_launches, second.dropped_launches = 1, 4
    for part, names in ((first, "abcde"), (second, "cdxab")):  # keys, of which four are shared
        part.kernels = [
            replace(kernel, key=key) for kernel, key in zip(part.kernels, names, strict=True)
        ]
    whole = join([first, second])
    keys = [whole.kernels[launch.kernel].key for launch in whole.launches]
    assert sorted(kernel.key for kernel in whole.kernels) == ["a", "b", "c", "d", "e", "x"]
    assert [k.key for k in whole.kernels][: len(set(keys))] == list(dict.fromkeys(keys))
    wanted = [p.kernels[x.kernel].key for p in (first, second) for x in p.launches]
    assert sorted(keys) == sorted(wanted)
    starts = [launch.host_start for launch in whole.launches]
    assert starts == sorted(starts)
    assert len(whole.host) == len(first.host) + len(second.host)
    assert whole.clock.ticks.size == first.clock.ticks.size + second.clock.ticks.size
    assert [gpu.device for gpu in whole.gpus] == [0, 3]
    assert [gpu.timer_ns.size for gpu in whole.gpus] == [4, 4]
    assert (whole.machine[FORKED], whole.machine[UNFETCHED], whole.dropped_launches) == (3, 1, 5)
    assert len(first.kernels) == 5, "the parts are as they were"


def test_one_part_alone_is_itself() -> None:
    part = gpu_run(62, mixed=True)
    part.kernels = [replace(kernel, key=str(n)) for n, kernel in enumerate(part.kernels)]
    one, again = Run(part), Run(join([part]))
    assert len(one.frame) == len(again.frame)
    launches = [table.launches[["kernel", "host_start_ns", "written"]] for table in (one, again)]
    pd.testing.assert_frame_equal(
        *(t.sort_values("host_start_ns", kind="stable", ignore_index=True) for t in launches)
    )
