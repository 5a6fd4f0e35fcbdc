"""Each file of `lit/` as a test of its own, as lit runs it."""

import re
from pathlib import Path
from typing import Any

import pytest

from proton.dialect import proton, proton_gpu, tt_collective, tt_core, tt_scaled, ttg_core, tts
from tests import processes
from tests.ir import run_lines

FOLDER = Path(__file__).parent / "lit"
MODULES = [tt_core, tt_collective, tt_scaled, ttg_core, tts, proton, proton_gpu]
ONE_LINE = "passes/guard-division.mlir"  # of one command, which starts Python twice
FILES = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.mlir"))


@pytest.mark.parametrize("file", FILES)
def test_lit(file: str, tmp_path: Path) -> None:
    passed, output = run_lines.run(FOLDER / file, tmp_path / "t")
    assert passed, output


def test_what_a_file_asks_for_must_be_there(tmp_path: Path) -> None:
    def passes(text: str) -> bool:
        (tmp_path / "file.mlir").write_text(text)
        return run_lines.run(tmp_path / "file.mlir", tmp_path / "t")[0]

    function = "func.func @f() { return }\n"
    assert passes(f"// RUN: proton-opt %s | filecheck %s\n// CHECK: @f\n{function}")
    assert not passes(f"// RUN: proton-opt %s | filecheck %s\n// CHECK: @g\n{function}")
    assert not passes(f"// RUN: proton-opt %s\n// RUN: not proton-opt %s\n{function}")
    assert not passes("// RUN: proton-opt %s\nnothing\n")
    assert passes("// RUN: not proton-opt %s 2>&1 | filecheck %s\n// CHECK: error\nnothing\n")


def test_lit_runs_them_too(tmp_path: Path) -> None:
    main = "-c", "from lit.main import main; main()"  # has no -m
    shown = processes.python(*main, "--show-tests", FOLDER)
    assert set(re.findall(r" :: (\S+)", shown.stdout)) == set(FILES)
    done = processes.python(*main, "-q", f"-Dexec_root={tmp_path}", FOLDER / ONE_LINE)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_every_op_of_a_dialect_goes_round(module: Any) -> None:
    texts = [file.read_text() for file in FOLDER.rglob("round_trip.mlir")]
    names = [
        cls.OPERATION_NAME
        for cls in vars(module).values()
        if isinstance(cls, type)
        and cls.__module__ == module.__name__
        and getattr(cls, "OPERATION_NAME", None)
    ]
    assert names, "the dialect's classes were not found"
    missing = [name for name in names if not any(f'"{name}"(' in text for text in texts)]
    assert not missing
