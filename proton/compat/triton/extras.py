"""Small names of Triton's modules that have no place in Proton's own: they are added to these where
Proton stands for Triton."""

import contextlib
import gc
import importlib
from collections.abc import Callable, Iterator
from typing import NoReturn

from proton.base.errors import ProtonError
from proton.runtime.cache import FileCacheManager

AutotuneListener = CompilationListener = JITHook = LaunchHook = Callable[..., object]
InitHandleHook = BuildImpl = PipelineStagesHook = Callable[..., object]
JITHookCompileInfo = dict[str, object]


class RemoteCacheBackend:
    """A cache of other machines: it can be derived from, and asking for one is an error."""

    def __init__(self, key: str) -> None:
        _no_remote_cache()


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """One in Redis."""


class RemoteCacheManager(FileCacheManager):
    """Files of a cache of other machines."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        _no_remote_cache()


def _no_remote_cache() -> NoReturn:
    raise ProtonError("kernels are kept on disk alone: share the folder of TRITON_CACHE_DIR")


@contextlib.contextmanager
def cuda_graph_without_gc(*args: object, **kwargs: object) -> Iterator[object]:
    """`torch.cuda.graph(...)`, with Python's garbage collector off: what it drops must not call the
    driver meanwhile."""
    torch, was_enabled = importlib.import_module("torch"), gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(*args, **kwargs) as graph:
            yield graph
    finally:
        if was_enabled:
            gc.enable()
