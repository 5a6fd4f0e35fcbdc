"""Tests of torch.compile on Proton: `make test-torch`, in a process in which Proton is triton."""

import importlib.util
import os
from pathlib import Path
from typing import Any

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
    if DEVICE == "cpu":  # with it torch asks CUDA for a CPU's stream, if a graph is of both devices
        torch._inductor.config.cpu_backend = "triton"
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.force_disable_caches = True


def needs_torch(version: str, problem: str) -> pytest.MarkDecorator:
    """Skips where torch is older; `problem` is what that does, whatever is triton."""
    return pytest.mark.skipif(
        torch.__version__ < version, reason=f"torch before {version} {problem}"
    )


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No graphs, kernels or random numbers of other tests."""
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def host_descriptors() -> None:
    """Skips where torch takes none in a graph: before 2.14, on a CPU."""
    from torch.utils import _triton

    if not _triton.has_triton_tensor_descriptor_host_tma():
        pytest.skip("this torch takes descriptors of the host for GPUs with TMA alone")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What torch has compiled: sources with options."""
    import triton

    found, compile_one = [], triton.compile

    def noted(source: Any, target: Any, options: dict[str, Any]) -> Any:
        found.append((source, options))
        return compile_one(source, target=target, options=options)

    monkeypatch.setattr(triton, "compile", noted)
    return found


def check_on_gpu(compiled: list[tuple[Any, dict[str, Any]]]) -> None:
    """Compiles what torch has compiled for a GPU of 9.0, too."""
    if DEVICE == "cuda":
        return  # where they have run
    import proton

    assert compiled
    for source, options in compiled:
        made = proton.compile(source, proton.GPUTarget("cuda", 90), options)
        assert made.asm["cubin"][:4] == b"\x7fELF", source.name
        assert made.metadata.num_warps == options["num_warps"]
