"""The stand-in for the driver that `benchmarks/gpu_host.py` measures with: it answers what the
runtime asks."""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
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


BURST = """
import collections, gpu_host, proton
from proton.runtime.session import session as sessions
from proton.runtime.nvidia import cuda, slabs
launches, go_to = gpu_host.launchers()
asked, taken, filled, chunks_of = [], collections.Counter(), [], slabs.chunks_of
def counted(data):
    found = chunks_of(data)
    filled.append(len(found))
    for launch, chunks in found.items():
        taken[launch] += sum(len(of.heads) for of in chunks)
    return found
slabs.chunks_of = counted
def noted(name):
    function = getattr(cuda, name)
    def call(size):
        asked.append((name, size))
        return function(size)
    setattr(cuda, name, call)
launches["loop"](132)
options = {"strategy": "flush", "capacity": 64}
with proton.knobs.scope(profile_memory=2 << 30), proton.profile("run", **options) as run:
    launches["loop"](132)
    for name in ("allocate_device", "allocate_host"):
        noted(name)
    (device,) = sessions.recorder_of("cuda").devices.values()
    assert len(device.slabs.pieces) == 1
    count = len(device.slabs.pieces[0][1])
    memory = device.share // device.slabs.pieces[0][1][0].size
    for stream in gpu_host.STREAMS.values():
        go_to(stream)
        for _ in range(150):  # more than the fourth slab's, and less than all have room for
            launches["loop"](132)
assert not asked, asked
assert slabs.LEAST_SLABS < count <= memory
assert run.raw.dropped_launches == 0
assert sum(map(bool, filled)) > slabs.LEAST_SLABS, filled
# Each of the stand-in's warps took a chunk, wherever its slab lay.
assert taken == dict.fromkeys(range(1, 302), 132 * 8), taken
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the stand-in lies."""
    if shutil.which("cc") is None:
        pytest.skip("there is no cc")
    folder = tmp_path_factory.mktemp("driver")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        importlib.import_module("gpu_host").build_driver(str(folder))
        yield folder


def run_with_stand_in(script: str, folder: Path) -> str:
    """What a program prints, with the stand-in in the driver's place."""
    gpu_host = importlib.import_module("gpu_host")
    path = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks"), *sys.path])
    environment = os.environ | gpu_host.STAND_IN | gpu_host.DEVICE
    environment |= {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": path}
    (folder / "program.py").write_text(script)  # kernels need their source
    done = subprocess.run(
        [sys.executable, str(folder / "program.py")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_answers_what_a_session_and_a_launch_ask(folder: Path) -> None:
    apart, error = map(float, run_with_stand_in(SCRIPT, folder).split())
    # Its timer is the host's clock; what it tells may take less than anything of a GPU's.
    assert abs(apart) <= error + LEAST_WAY_NS


def test_nothing_is_allocated_while_launches_come(folder: Path) -> None:
    """A driver's launches wait for its allocations: pinned memory takes 0.4 ms a MiB."""
    run_with_stand_in(BURST, folder)
