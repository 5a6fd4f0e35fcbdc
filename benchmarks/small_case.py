"""What the cases of small libraries have in common, and their packages, without what else these
import."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import triton
from libraries import bare, stand_in
from library_case import LARGE, WIDE, Size, calls_in, cases_in

CASES: dict[str, Any] = {}
case, call = cases_in(CASES), calls_in(CASES)
FULL, HALF, BF16 = (torch.float32,), (torch.float16,), (torch.bfloat16,)
HALVES = (torch.float16, torch.bfloat16)
BOTH = (LARGE, WIDE)
FP8 = torch.float8_e4m3fn
TOKENS, HIDDEN = Size((5, 3), (4, 2048), (1, 2048)), Size(40, 4096, 16384)
HEADS, SHARED, HEAD = 32, 8, 128

try:
    triton.runtime.driver.active.get_current_target()
except RuntimeError:  # of Triton without a GPU, which GemLite asks as it is imported
    triton.runtime.driver.set_active(mock.MagicMock())
stand_in("triton.ops")  # which Triton has no more
stand_in("triton.ops.matmul_perf_model", early_config_prune=None, estimate_matmul_time=None)
stand_in("einx")
stand_in("tqdm", trange=range)
stand_in("scipy")
stand_in("scipy.sparse", issparse=lambda _: False)
bare(
    *("adasplash", "causal_conv1d", "conch", "cut_cross_entropy"),
    *("flash_attn", "flash_attn.ops", "flash_attn.ops.triton", "flash_kmeans", "flashnn"),
    *("flash_sinkhorn", "flash_sinkhorn.kernels", "gemlite", "gptqmodel", "lanczos_triton"),
    *("localcorr", "localcorr.triton", "mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton"),
    *("megablocks", "mlstm_kernels", "moe_ops", "native_sparse_attention_pytorch"),
    *("spconv_triton", "spconv_triton.pytorch", "spconv_triton.pytorch._impl", "stk", "tridec"),
    *("torch_fps", "torchnorm", "triton_muon_adamw", "triton_muon_adamw.muon"),
    *("triton_muon_adamw.adamw", "lion_pytorch", "accelerated_scan", "gptqmodel.nn_modules"),
    *("gptqmodel.nn_modules.triton_utils", "gptqmodel.quantization", "gptqmodel.utils"),
)
for name in ("awq", "paroquant"):
    package = f"gptqmodel.quantization.{name}"
    bare(package, f"{package}.modules", f"{package}.modules.triton")
stand_in("gptqmodel.utils.torch", HAS_XPU=False)
stand_in("native_sparse_attention_pytorch.tensor_typing", **dict.fromkeys(("Float", "Int", "Bool")))


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Leaves functions that a library gives to torch.compile as they are."""
    with mock.patch("torch.compile", return_value=lambda function: function):
        yield


def gradients(op: Any, reference: Any, *given: torch.Tensor) -> tuple[Any, Any]:
    """What both give, and its gradients by what they are given; the reference's in fp64."""

    def run(function: Any, leaves: Any) -> Any:
        leaves = [leaf.clone().requires_grad_() for leaf in leaves]
        out = function(*leaves)
        generator = torch.Generator(out.device).manual_seed(1)
        weights = torch.randn(out.shape, generator=generator, device=out.device)
        out.backward(weights.to(out.dtype))
        return out.detach(), *(leaf.grad for leaf in leaves)

    def double(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.complex128 if x.is_complex() else torch.float64)

    return lambda: run(op, given), lambda: run(reference, map(double, given))
