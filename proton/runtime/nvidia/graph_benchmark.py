"""`do_bench_cudagraph`: how long a function takes in a CUDA graph, without the host's part."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from proton.base.errors import LaunchError
from proton.base.packages import need
from proton.runtime.tuning.benchmark import ESTIMATES, check, summary

_REPLAYS = 10  # of a graph


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """As `do_bench`, of calls in a CUDA graph, whose host's side is not measured: each of some
    graphs has calls that fill `rep` ms, and its time is divided by their number. Needs torch and a
    GPU; `fn` must be what a graph can hold."""
    check(quantiles, return_mode)
    need("do_bench_cudagraph", "torch", "torch")
    import torch

    if not torch.cuda.is_available():
        raise LaunchError("do_bench_cudagraph needs a GPU, and there is none: take do_bench")
    tensors = list(grad_to_none or ())
    for tensor in tensors:  # the graph adds to the gradients that it finds
        tensor.detach_().requires_grad_(True).grad = None
    with torch.cuda.stream(torch.cuda.Stream()):
        fn()  # compiles
        estimate = max(_graph_ms(torch, fn, tensors, ESTIMATES), 1e-6)
        count = max(1, int(rep / estimate))
        times = _graph_times(torch, fn, tensors, count)
    return summary(times, quantiles, return_mode)


def _graph_ms(torch: object, fn: Callable[[], object], tensors: list[object], count: int) -> float:
    """The time of a call, of so many in a graph."""
    return min(_graph_times(torch, fn, tensors, count, replays=2))


def _graph_times(
    torch: Any, fn: Callable[[], Any], tensors: list[Any], count: int, replays: int = _REPLAYS
) -> list[float]:
    """The time of a call in each replay of a graph of so many."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            for tensor in tensors:
                tensor.grad = None
            fn()
    torch.cuda.synchronize()
    times = []
    for _ in range(replays):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / count)
    return times
