"""Writes down what each kernel of a process became, for replay.py: a plugin of pytest, or a program
that compiles specimens of libraries."""

import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from proton.base.errors import ProtonError
from proton.compiling import compile_hooks

_TO = Path(os.environ["PROTON_REPLAY_TO"])
# In the order in which they are made. Machine code of a GPU follows from its PTX.
_LEVELS = ("ttir", "ttsir", "ttgir", "memref", "llvm", "llir", "ptx", "obj")
# Folders of a test, or of kernels that it makes: each run has others.
_FOLDER = re.compile((re.escape(tempfile.gettempdir()) + r"/[^\s\"]*/").encode())
_after = compile_hooks.after


def _digest(value: object) -> str:
    data = value if isinstance(value, bytes) else str(value).encode()
    return hashlib.sha256(_FOLDER.sub(b"", data)).hexdigest()[:16]


def _record(kernel: Any) -> None:
    known = f"{kernel.fn.src}\n{kernel.signature!r}\n{kernel.options!r}"
    name = f"{kernel.fn.__name__}({kernel.metadata.get('signature', '')})"
    levels = {}
    for level in _LEVELS:
        with contextlib.suppress(KeyError):
            levels[level] = _digest(kernel.asm[level])
    line = json.dumps({"kernel": f"{name} {_digest(known)[:8]}", "levels": levels})
    with (_TO / f"{os.getpid()}.jsonl").open("a") as file:
        file.write(line + "\n")


def after(kernel: Any) -> None:
    """`compile_hooks.after`, which hears of each kernel that is made or loaded."""
    _record(kernel)
    _after(kernel)


compile_hooks.after = after


def main() -> None:
    sys.path.insert(0, str(Path.cwd() / "benchmarks"))
    import one_compiler

    for specimen in json.loads(Path(sys.argv[1]).read_text()).values():
        one_compiler.prepare(specimen["library"], "proton")
        with contextlib.suppress(ProtonError):  # one that is refused is not there
            one_compiler.compile_by_proton(specimen | {"cached": False})


if __name__ == "__main__":
    main()
