"""Each file of `lit/` as a test of its own; lit runs all of them at once, on every core."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from proton.dialect import proton, proton_gpu, tt_collective, tt_core, tt_scaled, ttg_core, tts
from tests.ir import tool_server

FOLDER = Path(__file__).parent / "lit"
MODULES = [tt_core, tt_collective, tt_scaled, ttg_core, tts, proton, proton_gpu]
FILES = sorted(str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.mlir"))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What lit says of each file: its code, and the output of a failure."""
    folder = tmp_path_factory.mktemp("lit")
    report = folder / "report.json"
    command = [sys.executable, "-c", "from lit.main import main; main()", "-q"]  # has no -m
    with tempfile.TemporaryDirectory(prefix="lit-") as short:  # a socket's name has 107 letters
        server = Path(short) / "tools"
        parameters = {"exec_root": folder, "server": server}
        command += [f"--output={report}", *(f"-D{k}={v}" for k, v in parameters.items())]
        with tool_server.running(server):
            done = subprocess.run([*command, str(FOLDER)], capture_output=True, text=True)
    if not report.exists():
        pytest.fail(f"lit did not run:\n{done.stdout}{done.stderr}")
    tests = json.loads(report.read_text())["tests"]
    return {test["name"].partition(" :: ")[2]: test for test in tests}


@pytest.mark.parametrize("file", FILES)
def test_lit(file: str, results: dict[str, Any]) -> None:
    assert results[file]["code"] == "PASS", results[file]["output"]


def test_lit_sees_every_file(results: dict[str, Any]) -> None:
    assert sorted(results) == FILES


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
