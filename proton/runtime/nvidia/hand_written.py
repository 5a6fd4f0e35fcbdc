"""Kernels of the runtime itself, written in PTX: they record, copy and ask clocks beside those that
are compiled."""

from proton.backends.nvidia.cubin import Assembler
from proton.runtime.nvidia import cuda

_HEAD = """
.version {version}
.target {chip}
.address_size 64
"""


def loaded(device: int, name: str, text: str, **parts: int | str) -> int:
    """The function of the entry `name`, with `parts` in the places of `text` that they name."""
    target = cuda.target_of(device)
    head = _HEAD.format(
        version="{}.{}".format(*divmod(target.facts.ptx, 10)), chip=target.facts.name
    )
    with Assembler(target, name) as assembler:
        assembler.feed(head + text.format(**parts))
        code = assembler.finish().code
    return cuda.load(code, name, 0)
