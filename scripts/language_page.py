"""Writes docs/language.md: which op takes which dtype, on which back end, by trying them.

    python scripts/language_page.py

Each cell is a kernel. It is compiled for the CPU and run, interpreted and run, and compiled for
compute capability 9.0; what the first two compute must agree. tests/cpu/test_language_page.py tries
a few cells anew, and whether the page has every name.
"""

import contextlib
import hashlib
import importlib.util
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import proton
import proton.language as tl
from proton.base.foreign_knobs import FOREIGN
from scripts.language_surface import ABSENT, NAMES, OPS, PAIR

PAGE = Path(__file__).parents[1] / "docs/language.md"
HOPPER = proton.GPUTarget("cuda", 90)
SIZE = 256
DTYPES = (
    "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "float8e5 float8e4nv float8e5b16 float8e4b8 float8e4b15"
).split()
FORMATS = {
    "float8e5": "e5m2",
    "float8e4nv": "e4m3",
    "float16": "fp16",
    "bfloat16": "bf16",
    "uint8": "e4m3",
}
BACKENDS = {"c": "CPU", "n": "NVIDIA", "i": "interpreter"}
ALL, NONE = "●", "-"
# What a list of dtypes says in a word.
KINDS = {"integers": DTYPES[:9], "floats": DTYPES[9:13], "8-bit floats": DTYPES[13:]}

HEADER = """# The language, op by op

`python scripts/language_page.py` writes this page. It tries each op with each dtype on the CPU,
interpreted, and compiled for compute capability 9.0. What a row does not name is refused with an
error, as in Triton. Limits within an op are in [What is not there](limitations.md), accuracies in
[Accuracy of functions](math.md).

The dtypes are integers (i1 i8 i16 i32 i64 u8 u16 u32 u64), floats (fp16 bf16 fp32 fp64), and 8-bit
floats (e5 e4nv e5b16 e4b8 e4b15).

"""


class Disagreement(AssertionError):
    """The CPU and the interpreter compute different things."""


def source(piece: str, dtype: str) -> str:
    """A kernel around a piece of `OPS`."""
    body = piece.replace("FORMAT", repr(FORMATS.get(dtype, "e4m3"))).splitlines()
    lines = [
        "@proton.jit",
        "def kernel(x_ptr, y_ptr, out_ptr):",
        f"    at = tl.arange(0, {SIZE})",
        "    x = tl.load(x_ptr + at)",
        "    y = tl.load(y_ptr + at)",
        "    m = x.reshape(16, 16)",
        *(f"    {line}" for line in body),
        "    r = r.to(tl.float32) if r.dtype.is_fp8() else r",
        "    tl.store(out_ptr + at, r.to(tl.float64))",
    ]
    return "\n".join(lines)


def kernel_of(piece: str, dtype: str, folder: Path) -> Any:
    """The kernel, in a file of its own: kernels are read from files."""
    text = (
        "import proton\nimport proton.language as tl\n"
        f"from proton.language.extra import libdevice\n\n{PAIR}\n{source(piece, dtype)}\n"
    )
    name = "cell_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def array(dtype: str, start: int) -> Any:
    """Small numbers that every dtype has."""
    numbers = (np.arange(SIZE) * 7 + start) % 5 + 1
    if dtype == "int1":
        return numbers > (0 if start else 2)  # y, which is divided by, is true
    if dtype == "bfloat16":
        bits = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return proton.reinterpret(bits, tl.bfloat16)
    if not dtype.startswith("float8"):
        return numbers.astype(dtype)
    from proton.base.float8 import BY_NAME

    form = BY_NAME[dtype]  # float8e4b15 ends at 1.75
    scale = 1.0 if form.largest >= 8 else 1 / 8
    codes = np.array([form.encode(number * scale) for number in numbers], np.uint8)
    return proton.reinterpret(codes, getattr(tl, dtype))


def ran(kernel: Any, dtype: str, *, interpret: bool) -> np.ndarray | None:
    """What a kernel computes; None where it is refused."""
    out = np.zeros(SIZE)
    try:
        with proton.knobs.scope(interpret=interpret):
            kernel[(1,)](array(dtype, 0), array(dtype, 3), out)
    except proton.ProtonError:
        return None
    return out


def compiles(kernel: Any, dtype: str) -> bool:
    """Whether a kernel compiles for a GPU."""
    element = getattr(tl, dtype)
    try:
        kernel.warmup(element, element, tl.float64, target=HOPPER)
    except proton.ProtonError:
        return False
    return True


def alike(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two results are about equal: neighbouring numbers of bf16 are up to 1/128 apart."""
    return np.allclose(left, right, rtol=1e-2, atol=1e-6, equal_nan=True)


def cell(piece: str, dtype: str, folder: Path) -> str:
    """Where a kernel works, deprecated or not. Raises Disagreement where CPU and interpreter
    disagree."""
    kernel = kernel_of(piece, dtype, folder)
    with silent(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled, interpreted = (ran(kernel, dtype, interpret=how) for how in (False, True))
        is_compiled = compiles(kernel, dtype)
    if compiled is not None and interpreted is not None and not alike(compiled, interpreted):
        raise Disagreement(f"{piece!r} of {dtype}: {compiled[:8]} and {interpreted[:8]}")
    there = {"c": compiled is not None, "n": is_compiled, "i": interpreted is not None}
    if all(there.values()):
        return ALL
    return "".join(letter for letter, holds in there.items() if holds) or NONE


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Drops what kernels print: compiled ones print to C's stdout."""
    sys.stdout.flush()
    kept, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(null)


def short(dtype: str) -> str:
    """A dtype at the head of a column."""
    return getattr(tl, dtype).short.replace("fp8", "")


def _tried(piece: str, dtype: str, folder: Path, problems: list[Disagreement]) -> str:
    """A cell; where there is a disagreement a question mark."""
    try:
        return cell(piece, dtype, folder)
    except Disagreement as problem:
        problems.append(problem)
        return "?"


def tables(folder: Path, problems: list[Disagreement]) -> Iterator[str]:
    """A table for each group of ops."""
    for group, ops in OPS.items():
        rows = {
            name: [_tried(piece, dtype, folder, problems) for dtype in DTYPES]
            for name, piece in ops.items()
        }
        yield from table(group, rows)


def table(group: str, rows: dict[str, list[str]]) -> Iterator[str]:
    """A group's lines: ops that are there for the same dtypes share one."""
    yield f"## {group}\n\n| op | dtypes |\n|---|---|"
    alike: dict[str, list[str]] = {}
    for name, cells in rows.items():
        alike.setdefault(dtypes_of(cells), []).append(f"`{name.replace('|', chr(92) + '|')}`")
    yield from (f"| {', '.join(names)} | {dtypes} |" for dtypes, names in alike.items())
    yield ""


def dtypes_of(cells: list[str]) -> str:
    """The dtypes of an op in words: those of all back ends, then those of some alone."""
    parts = []
    for mark in (ALL, *sorted({*cells} - {ALL, NONE})):
        given = {dtype for dtype, found in zip(DTYPES, cells, strict=True) if found == mark}
        words = [
            kind if given >= {*kinds} else " ".join(short(d) for d in kinds if d in given)
            for kind, kinds in KINDS.items()
        ]
        text = "all" if given == {*DTYPES} else ", ".join(filter(None, words))
        alone = " and ".join(BACKENDS.get(letter, letter) for letter in mark)
        parts.append(text if mark == ALL else f"{alone} alone: {text}")
    return "; ".join(filter(None, parts))


def owner(where: str) -> Any:
    """What has the names of a group."""
    if where == "a kernel":
        return proton.jit(_kernel)
    found: Any = proton
    parts = where.replace("tl", "triton.language", 1) if where.startswith("tl") else where
    for part in parts.split(".")[1:]:
        found = getattr(found, part)
    return found


def _kernel(x_ptr: Any) -> None:
    """Whose attributes are looked at."""


def is_there(where: str, name: str) -> bool:
    """Whether a name is there, and is something: a knob that programs may ask for alone is not."""
    group = where.removeprefix("triton.knobs.")
    if name in FOREIGN.get(group, ()):
        return False
    found = owner(where)
    if isinstance(found, type):  # of dtypes, whose attributes may be properties
        return hasattr(found, name) or hasattr(tl.int32, name) or hasattr(tl.float32, name)
    return hasattr(found, name)


def names() -> Iterator[str]:
    """The names that have no dtype: those that are there, and why others are not."""
    yield "## Names\n"
    yield "`triton` is `import proton as triton`, `tl` is `proton.language`.\n"
    yield "| where | there | not there, and what is in its place |"
    yield "|---|---|---|"
    for where, text in NAMES.items():
        there = [f"`{name}`" for name in text.split() if is_there(where, name)]
        absent = [f"`{n}`: {ABSENT[n]}" for n in text.split() if not is_there(where, n)]
        yield f"| {where} | {' '.join(there)} | {'; '.join(absent)} |"


def main() -> int:
    """Writes the page. Kernels keep their places, so that a second run finds them compiled."""
    folder, problems = Path(tempfile.gettempdir()) / "proton-language-page", list[Disagreement]()
    folder.mkdir(exist_ok=True)
    lines = [*tables(folder, problems), *names()]
    PAGE.write_text(HEADER + "\n".join(lines) + "\n")
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
