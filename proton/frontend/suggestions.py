"""What to write in place of a function that a kernel cannot call: Python's, numpy's, Triton's."""

import types

import proton.language as tl
from proton.base.words import did_you_mean
from proton.language.extra import libdevice
from proton.language.types import dtype

# By the name that was written; what the language has by the same name needs no entry.
_INSTEAD = {
    "all": "use tl.min((x != 0).to(tl.int32), axis=0)",
    "amax": "use tl.max",
    "amin": "use tl.min",
    "any": "use tl.max((x != 0).to(tl.int32), axis=0)",
    "breakpoint": "run the kernel as Python: PROTON_INTERPRET=1, or @proton.jit(interpret=True)",
    "clip": "use tl.clamp",
    "concatenate": "store both parts, and load them as one block",
    "divmod": "use x // y and x % y",
    "enumerate": "use `for i in range(n)`, or tl.static_range",
    "filter": "use tl.where",
    "map": "apply the function to the whole block",
    "matmul": "use tl.dot",
    "power": "use tl.extra.libdevice.pow",
    "random": "use tl.rand",
    "round": "use tl.extra.libdevice.rint",
    "sorted": "sort before the launch",
    "square": "use x * x",
    "transpose": "use tl.trans",
}


def instead_of(name: str) -> str:
    """What to write for a function of this name; nothing where there is no such thing."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    found = vars(tl).get(name)
    if isinstance(found, dtype):
        return f"use x.to(tl.{name})"
    if found is not None and not isinstance(found, types.ModuleType):
        return f"use tl.{name}"
    return f"use tl.extra.libdevice.{name}" if name in libdevice.FUNCTIONS else ""


def instead_of_missing(path: str) -> str:
    """What to write for a name of Triton's language that is not there yet, such as `math.exp2`."""
    there = "dir(proton.language) lists the functions that there are"
    name = path.rpartition(".")[2]
    if name == path:
        return there
    return instead_of(name) or f"{there}{did_you_mean(name, [*vars(tl), *libdevice.FUNCTIONS])}"
