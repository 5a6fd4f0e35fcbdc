"""The disk cache: what a second process finds there, what changes a key, what damage does."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from proton.compiling.cache import base32
from tests import processes
from tests.tables import check_rows

ROOT = Path(__file__).parents[2]
EIGHT = 8  # processes at once

KERNEL = """
import json, sys
import numpy as np
import proton
import proton.language as tl
from proton.backends.cpu import llvm

emitted, emit = [], llvm.emit_object
llvm.emit_object = lambda text: emitted.append(text) or emit(text)
FACTOR = tl.constexpr({factor})

@proton.jit
def callee(x):
    return x {operator} FACTOR

@proton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, callee(tl.load(x_ptr + offs, mask=offs < n)), mask=offs < n)

x = np.arange(100).astype("{dtype}")
out = np.zeros_like(x)
compiled = kernel[(proton.cdiv(100, {block}),)](x, out, 100, BLOCK={block})
print(json.dumps({{
    "key": compiled.key,
    "times": sorted(compiled.times),
    "from_cache": compiled.from_cache,
    "emitted": len(emitted),
    "out": out.tolist(),
    "mlir": sorted(m for m in sys.modules if "mlir" in m.lower()),
}}))
"""
DEFAULTS = {"factor": 3, "operator": "*", "dtype": "float32", "block": 32}


def script(folder: Path, **changes: Any) -> Path:
    path = folder / "program.py"
    path.write_text(KERNEL.format(**(DEFAULTS | changes)))
    return path


def result_of(done: CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def run(path: Path) -> dict[str, Any]:
    return result_of(processes.python("-W", "error", path))


def run_fresh(path: Path) -> dict[str, Any]:
    """In a process that has imported nothing. On one thread: whether a launch takes more, whose
    code is made then, depends on how long its first program took."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PROTON_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", path]
    return result_of(subprocess.run(command, env=environment, text=True, capture_output=True))


def entries(cache_dir: Path) -> list[Path]:
    """Those of kernels."""
    return sorted(cache_dir.glob("?" * 52))


def test_a_second_process_loads_the_kernel_without_mlir(cache_dir: Path, tmp_path: Path) -> None:
    path = script(tmp_path)
    first, second = run_fresh(path), run_fresh(path)
    assert not first["from_cache"]
    assert "object" in first["times"]
    assert second["from_cache"]
    assert second["times"] == ["load"]
    assert second["mlir"] == []
    assert first["emitted"] > 1
    assert second["emitted"] == 0, "the runtime's own code is kept, too"
    assert first["key"] == second["key"]
    assert first["out"] == second["out"] == [3.0 * x for x in range(100)]
    assert [entry.name for entry in entries(cache_dir)] == [base32(first["key"])]


def test_the_line_of_a_kernel_is_part_of_the_key(cache_dir: Path, tmp_path: Path) -> None:
    """Compiled code holds line numbers."""
    path = script(tmp_path)
    first = run(path)
    path.write_text("# another line" + path.read_text())
    assert run(path)["key"] == first["key"]
    path.write_text("\n" + path.read_text())
    moved = run(path)
    assert moved["key"] != first["key"]
    assert not moved["from_cache"]


def test_the_file_of_a_kernel_is_part_of_the_key(cache_dir: Path, tmp_path: Path) -> None:
    """Compiled code holds its name."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    first, second = (run(script(folder)) for folder in folders)
    assert first["key"] != second["key"]
    assert not second["from_cache"]
    assert run(folders[0] / "program.py")["from_cache"]


def test_what_the_code_depends_on_changes_the_key(cache_dir: Path, tmp_path: Path) -> None:
    """The callee, a global constexpr, a dtype and a constant."""
    times_three = [x * 3.0 for x in range(100)]
    keys = {run(script(tmp_path))["key"]}

    def check(change: dict[str, Any], want: list[float]) -> None:
        changed = run(script(tmp_path, **change))
        assert changed["key"] not in keys
        assert not changed["from_cache"]
        assert changed["out"] == want
        keys.add(changed["key"])

    rows = [
        ({"operator": "+"}, [x + 3.0 for x in range(100)]),
        ({"factor": 4}, [x * 4.0 for x in range(100)]),
        ({"dtype": "float64"}, times_three),
        ({"block": 64}, times_three),
    ]
    check_rows(check, rows)
    assert len(entries(cache_dir)) == len(keys)


def test_a_cache_that_cannot_be_written_is_a_warning(cache_dir: Path, tmp_path: Path) -> None:
    cache_dir.write_text("a file where the folder should be")
    done = processes.python("-W", "default", script(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning: kernels are not cached") == 1
    assert str(cache_dir) in done.stderr


def test_many_processes_at_once_make_one_entry(cache_dir: Path, tmp_path: Path) -> None:
    path = script(tmp_path)
    with ThreadPoolExecutor(EIGHT) as pool:
        results = list(pool.map(run, [path] * EIGHT))
    assert len({result["key"] for result in results}) == 1
    assert all(result["out"] == results[0]["out"] for result in results)
    assert [entry.name for entry in entries(cache_dir)] == [base32(results[0]["key"])]
    assert run(path)["from_cache"]
