"""Kernels whose IR was written by hand, by the way of `PROTON_OVERRIDE_FROM`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import proton
from proton.base.knobs import knobs
from proton.language.function import DeviceFunction

LAST_OF_TTGIR = "*_fuse-multiply-add.mlir"  # the dump of the last pass before `llir`


@contextmanager
def edited(kernel: Any, ttgir: Path, folder: Path, *values: Any, **options: Any) -> Iterator[Any]:
    """A kernel whose IR at the end of `ttgir` is that of a file. Its launches must be of the types
    of `values`, which are types or arguments, and with these options."""
    dumps, edits = folder / "dumps", folder / "edits"
    with knobs.scope(dump_to=dumps, always_compile=True):
        proton.jit(_function(kernel)).warmup(*values, **options)
    (dump,) = dumps.glob(f"*/{LAST_OF_TTGIR}")
    edit = edits / dump.relative_to(dumps)
    edit.parent.mkdir(parents=True)
    edit.write_text(ttgir.read_text())
    with knobs.scope(override_from=edits, always_compile=True):
        yield proton.jit(_function(kernel))


def _function(kernel: DeviceFunction) -> Any:
    return kernel.fn
