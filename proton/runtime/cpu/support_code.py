"""Machine code of the runtime itself, such as what guards launches: compiled once a machine.

A new process would compile it anew, which takes three times as long as all else that its first
launch does. Its text is the same in all processes, so the object lies in the cache beside kernels;
addresses of the process are imported when it is linked.
"""

from proton.backends.cpu import llvm
from proton.base.knobs import knobs
from proton.compiling import cache

_FOLDER = "support"  # of the cache
_FILE = "code.o"


def object_of(text: str) -> bytes:
    """The object code of LLVM IR text."""
    machine = {"cpu": llvm.host_cpu(), "features": llvm.host_features(), "llvm": llvm.version()}
    key = cache.make_key({"text": text, **machine})
    if not knobs.always_compile and (found := cache.load(key, _FOLDER)) is not None:
        return found[1][_FILE]
    code, _ = llvm.emit_object(text)
    cache.store(key, {}, {_FILE: code}, _FOLDER)
    return code
