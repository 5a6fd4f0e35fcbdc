"""Tests of torch.compile on Proton: `make test-torch`, in a process in which Proton is triton."""

import importlib.util
import os
from pathlib import Path

import pytest

# Where tests run: "cpu" or "cuda". Proton stands for triton in the whole process, which is not that
# of the other tests.
DEVICE = os.environ.get("PROTON_TEST_TORCH", "")

if not DEVICE or importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import proton

    proton.install_as_triton()
    import torch
    import torch._inductor.config

    torch.set_default_device(DEVICE)
    torch._inductor.config.cpu_backend = "triton"
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.force_disable_caches = True


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No graphs, kernels or random numbers of other tests."""
    torch._dynamo.reset()
    torch.manual_seed(0)
