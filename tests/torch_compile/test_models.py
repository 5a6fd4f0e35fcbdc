"""Models that torch.compile compiles, against the same models op by op; kernels for GPUs, too."""

import copy
from typing import Any

import pytest
import torch

from tests.torch_compile.conftest import check_on_gpu
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
    check_on_gpu(compiled)
