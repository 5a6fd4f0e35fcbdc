"""Functions that torch.compile makes kernels of, against the same functions op by op."""

from typing import Any

import pytest
import torch
from torch._inductor import metrics

from tests.torch_compile.conftest import check_on_gpu
from tests.torch_compile.functions import ROWS, WITHOUT_KERNELS, Row


def _arguments(row: Row) -> list[torch.Tensor]:
    return [of if isinstance(of, torch.Tensor) else torch.randn(of) for of in row.args]


def _leaves(of: Any) -> list[torch.Tensor]:
    return [of] if isinstance(of, torch.Tensor) else [x for part in of for x in _leaves(part)]


def _results(of: Any, arguments: list[torch.Tensor], grad: bool) -> list[torch.Tensor]:
    """What a function gives, and with `grad` the gradients of all of its floats."""
    copies = [x.clone().requires_grad_(grad and x.is_floating_point()) for x in arguments]
    if not grad:
        copies = arguments
    found = _leaves(of(*copies))
    if grad:
        torch.autograd.backward(found, [torch.ones_like(x) for x in found])
        found += [x.grad for x in copies if x.grad is not None]
    return [x.detach() for x in found]


@pytest.mark.parametrize("name", ROWS)
def test_a_compiled_function_gives_what_torch_gives(name: str, compiled: Any) -> None:
    row = ROWS[name]
    arguments = _arguments(row)
    before = metrics.generated_kernel_count
    run = torch.compile(row.of, fullgraph=True, dynamic=False)
    found = _results(run, arguments, row.grad)
    wanted = _results(row.of, arguments, row.grad)
    assert (metrics.generated_kernel_count > before) != (name in WITHOUT_KERNELS)
    if name not in WITHOUT_KERNELS:
        check_on_gpu(compiled)
    if row.is_random:
        for one, other in zip(found, wanted, strict=True):
            assert one.float().mean().sub(other.float().mean()).abs() < 0.1 * other.abs().max()
            assert one.float().std().sub(other.float().std()).abs() < 0.1 * other.abs().max()
        return
    options = {} if row.tolerance is None else {"rtol": row.tolerance, "atol": row.tolerance}
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, **options, equal_nan=True)
