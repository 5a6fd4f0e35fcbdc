"""The profile of a compiled model: each launch has its op, and the line that it was written on."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import torch

import proton

MODEL = """
import torch
import torch.nn.functional as F
torch._inductor.config.cpu_backend = "triton"
torch._inductor.config.compile_threads = 1

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(65, 33), torch.nn.LayerNorm(33)

    def forward(self, x):
        x = self.linear(x)
        x = self.norm(x)
        return F.gelu(x) * 2

model = torch.compile(Model(), fullgraph=True, options={"max_autotune_pointwise": True})
for _ in range(3):
    model(torch.randn(9, 65)).sum().backward()
"""


def test_each_launch_of_a_training_step_has_its_op_and_line(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    more = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    path = str(Path(proton.__file__).parents[1])
    more["PYTHONPATH"] = os.pathsep.join([path, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "proton", "--as-triton", "--auto", "loads", "-q", "model.py"]
    # The second time graphs come from torch's cache, and of three launches one is recorded.
    for more_options, count in (([], 3), (["--every-launch", "2"], 1)):
        done = subprocess.run(
            [*command[:-1], *more_options, command[-1]],
            cwd=tmp_path,
            env=os.environ | more,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        run = proton.Run.load(tmp_path / "model.proton")
        launches = run.stats(by=["kernel", "operator"], kind="launch")
        assert set(launches["count"]) == {count}, launches  # and no trials
        operators = [str(name).rpartition("/")[2] for name in launches["operator"]]
        places = [re.fullmatch(r"model\.py:([\d-]+) (.*)", name) for name in operators]
        assert all(places), operators
        assert {place[1] for place in places} == {"14-15", "14", "13"}, operators
        assert any("native_layer_norm" in place[2] and "gelu" in place[2] for place in places)
        assert run.frame["scope"].astype(str).str.contains("load").any()


def test_a_run_is_on_the_axis_of_torchs_profiler(tmp_path: Path) -> None:
    """Launches lie in the ranges of torch's trace that they were made in."""
    of = torch.compile(lambda x: torch.softmax(x * 2, -1).sum(0), fullgraph=True)
    x = torch.randn(33, 65)
    of(x)
    with proton.profile("both") as run, torch.profiler.profile(acc_events=True) as profiler:
        for number in range(3):
            with torch.profiler.record_function(f"step {number}"):
                of(x)
    profiler.export_chrome_trace(str(tmp_path / "torch.json"))
    path = run.save(tmp_path / "both.json", beside=tmp_path / "torch.json")
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    steps = [e for e in events if e.get("cat") == "user_annotation" and "step" in e["name"]]
    launches = [e for e in events if "launch" in e.get("args", {}) and e.get("cat") != "program"]
    around = [
        [step["name"] for step in steps if 0 <= e["ts"] - step["ts"] <= step["dur"] - e["dur"]]
        for e in launches
    ]
    assert around == [[f"step {number // 2}"] for number in range(6)]
