"""The stand-in for the driver that `benchmarks/gpu_host.py` measures with: it answers what the
runtime asks."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proton.runtime.nvidia.clock_exchange import LEAST_WAY_NS

ROOT = Path(__file__).parents[2]
SCRIPT = """
from proton.runtime.nvidia import clock_exchange, cuda, queue
stream, asked = cuda.new_stream(), queue.Queue()
event = asked.new_event()
asked.record(event, stream)
assert asked.is_done(event) and not asked.is_capturing(stream) and asked.stream_id(stream)
pair = clock_exchange.timer_pair(cuda.current_device())
print(pair.timer_ns - pair.host_ns, pair.error_ns)
"""


def test_it_answers_what_a_session_and_a_launch_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no cc")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    importlib.import_module("gpu_host").build_driver(str(tmp_path))
    path = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": path},
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    apart, error = map(float, done.stdout.split())
    # Its timer is the host's clock; what it tells may take less than anything of a GPU's.
    assert abs(apart) <= error + LEAST_WAY_NS
