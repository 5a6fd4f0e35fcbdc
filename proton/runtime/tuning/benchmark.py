"""`do_bench`: how long a function takes whose work runs on a device, or on the CPU."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from proton.base.words import shown
from proton.runtime.backend import Backend, Timer, default_backend

RETURN_MODES = ("mean", "min", "max", "median", "all")
ESTIMATES = 5  # calls by which it is guessed how long one takes


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[object] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    backend: Backend | None = None,
) -> Any:
    """The time of `fn()` in ms, of calls that fill some `rep` ms after some `warmup` ms of others.

    Each call begins with a cache that has none of its data. The times are summed up by
    `return_mode` (mean, min, max, median, or all of them), or by `quantiles`: a list, or one
    number for one. The gradients of tensors in `grad_to_none` are dropped before each call.
    `backend` says on what kind of device the work runs: by default a GPU, if there is one.
    """
    check(quantiles, return_mode)
    fn()  # compiles
    with closing(_Closing((backend or default_backend()).timer())) as held:
        times = _times(fn, held.timer, warmup, rep, list(grad_to_none or ()))
    return summary(times, quantiles, return_mode)


def check(quantiles: Sequence[float] | None, return_mode: str) -> None:
    """Raises ValueError for what no summary can be made by."""
    if return_mode not in RETURN_MODES:
        raise ValueError(
            f"return_mode must be one of {', '.join(RETURN_MODES)}, got {shown(return_mode)}"
        )
    if quantiles is not None and not all(0 <= quantile <= 1 for quantile in quantiles):
        raise ValueError(f"quantiles lie from 0 to 1, got {shown(quantiles)}")


class _Closing:
    """Has `closing` release a timer."""

    def __init__(self, timer: Timer) -> None:
        self.timer, self.close = timer, timer.release


def _times(
    fn: Callable[[], Any], timer: Timer, warmup: float, rep: float, grad_to_none: list[Any]
) -> list[float]:
    timer.synchronize()
    begin = timer.mark()
    for _ in range(ESTIMATES):
        timer.clear_cache()
        fn()
    estimate = max(timer.elapsed_ms(begin, timer.mark()) / ESTIMATES, 1e-6)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    marks = []
    for _ in range(max(1, int(rep / estimate))):
        for tensor in grad_to_none:
            tensor.grad = None
        timer.clear_cache()
        start = timer.mark()
        fn()
        marks.append((start, timer.mark()))
    timer.synchronize()
    return [timer.elapsed_ms(start, end) for start, end in marks]


def summary(
    times: Sequence[float], quantiles: Sequence[float] | None = None, return_mode: str = "mean"
) -> Any:
    """The statistics that `do_bench` gives."""
    if quantiles is not None:
        found = [float(value) for value in np.quantile(times, list(quantiles))]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return list(times)
    return float(getattr(np, return_mode)(times))
