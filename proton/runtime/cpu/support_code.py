"""Machine code of the runtime itself, such as what guards launches: compiled once a machine.

A new process would compile it anew, which was most of the time of its first launch. Its text is
the same in all processes, so the object lies in the cache beside kernels; addresses of the process
are imported when it is linked. Threads run it by its address, so what was linked lives as long as
the process, and is made once, by however many threads at a time.
"""

import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from proton.backends.cpu import llvm
from proton.base.knobs import knobs
from proton.compiling import cache

_FOLDER = "support"  # of the cache
_FILE = "code.o"
_Made = TypeVar("_Made")
_making = threading.RLock()


def _optimized(text: str) -> bytes:
    return llvm.emit_object(text)[0]


def object_of(text: str, emit: Callable[[str], bytes] = _optimized) -> bytes:
    """The object code of LLVM IR text."""
    machine = {"cpu": llvm.host_cpu(), "features": llvm.host_features(), "llvm": llvm.version()}
    key = cache.make_key({"text": text, **machine})
    if not knobs.always_compile and (found := cache.load(key, _FOLDER)) is not None:
        return found[1][_FILE]
    code = emit(text)
    cache.store(key, {}, {_FILE: code}, _FOLDER)
    return code


class Once(Generic[_Made]):
    """A function whose results are made once for each arguments, and kept; `made` has them."""

    def __init__(self, make: Callable[..., _Made]) -> None:
        self.make = make
        self.made: dict[tuple[Hashable, ...], _Made] = {}

    def __call__(self, *arguments: Hashable) -> _Made:
        if arguments not in self.made:
            with _making:
                if arguments not in self.made:
                    self.made[arguments] = self.make(*arguments)
        return self.made[arguments]


def _renew() -> None:
    """A forked child has none of the threads that held the lock."""
    global _making
    _making = threading.RLock()


os.register_at_fork(after_in_child=_renew)
