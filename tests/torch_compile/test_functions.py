"""Functions that torch.compile makes kernels of, against the same functions op by op."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._inductor import config, metrics
from torch._inductor.runtime.benchmarking import Benchmarker

from tests.torch_compile.conftest import check_on_gpu
from tests.torch_compile.functions import ROWS, WITHOUT_KERNELS, Row


@pytest.fixture(autouse=True)
def _measured_by_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which configuration torch takes does not matter here."""

    def once(self: Benchmarker, launch: Callable[[], Any], *_: Any, **__: Any) -> float:
        launch()
        return 1.0

    monkeypatch.setattr(Benchmarker, "benchmark_cpu", once)


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


# What torch's kernels look like where a program sets options.
TILES = {"triton.prefer_nd_tiling": True, "triton.max_tiles": 2, "triton.tile_reductions": True}
OPTIONS = {
    "tiles": TILES,
    "tiles by block pointers": {"triton.use_block_ptr": True, **TILES},
    "tiles by descriptors": {"triton.use_tensor_descriptor": True, **TILES},
    "loops, and several kernels in one": {
        "triton.persistent_reductions": False,
        "split_reductions": False,
        "combo_kernels": True,
        "benchmark_combo_kernel": False,
    },
    "narrow floats, and products": {
        "triton.codegen_upcast_to_fp32": False,
        "triton.native_matmul": True,
    },
    "rounding as op by op": {"emulate_precision_casts": True},
    "a loop or none, whichever is faster": {"triton.multi_kernel": 2},
}
CHOSEN = (
    *("var", "prod", "norm 2", "int sums", "bool any", "half sums", "half layer norm", "argmax"),
    *("cosine similarity", "int cumsum", "strided input", "mm and bias", "bmm then softmax"),
    *("broadcast 3", "five dimensions", "bfloat16 silu", "cross entropy ignore"),
)


@pytest.mark.parametrize("name", OPTIONS)
def test_functions_with_options_of_torch(name: str, compiled: Any) -> None:
    rows = [ROWS[row] for row in CHOSEN]
    arguments = [_arguments(row) for row in rows]
    known = {option: value for option, value in OPTIONS[name].items() if _is_there(option)}
    if not known:
        pytest.skip(f"this torch has not {', '.join(OPTIONS[name])}")

    def of(*given: list[torch.Tensor]) -> list[torch.Tensor]:
        return _leaves([row.of(*some) for row, some in zip(rows, given, strict=True)])

    with config.patch(known):
        found = torch.compile(of, fullgraph=True, dynamic=False)(*arguments)
    for one, other in zip(found, of(*arguments), strict=True):
        torch.testing.assert_close(one, other)
    if "triton.use_tensor_descriptor" not in known:  # on a GPU torch makes fewer
        check_on_gpu(compiled)


def _is_there(option: str) -> bool:
    part = config.triton if option.startswith("triton.") else config
    return hasattr(part, option.removeprefix("triton."))
