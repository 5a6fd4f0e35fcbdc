"""Models that torch.compile compiles, against the same models op by op; kernels for GPUs, too."""

import copy
from typing import Any

import pytest
import torch

import proton
from tests.torch_compile.models import MODELS


def _trained(model: Any, run: Any, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """A step of training: the output, the gradients, the parameters behind it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = run(*inputs)
    out.square().mean().backward()
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    optimizer.step()
    return [out.detach(), *gradients, *[p.detach() for p in model.parameters()]]


@pytest.mark.parametrize("name", MODELS)
def test_a_compiled_model_gives_what_the_model_gives(name: str, compiled: Any) -> None:
    kind, make, has_gradients = MODELS[name]
    model, inputs = kind(), make()
    other = copy.deepcopy(model)
    run = torch.compile(other, fullgraph=True, dynamic=False)
    if has_gradients:
        found, wanted = _trained(other, run, inputs), _trained(model, model, inputs)
    else:
        found, wanted = [run(*inputs)], [model(*inputs)]
    for one, expected in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, expected, rtol=2e-4, atol=2e-5)
    _check_on_gpu(compiled)


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


def _check_on_gpu(compiled: list[tuple[Any, dict[str, Any]]]) -> None:
    """Compiles what torch has compiled for a GPU of 9.0, too."""
    assert compiled
    for source, options in compiled:
        made = proton.compile(source, proton.GPUTarget("cuda", 90), options)
        assert made.asm["cubin"][:4] == b"\x7fELF", source.name
        assert made.metadata.num_warps == options["num_warps"]
