"""What vLLM's cases have in common. Its modules with kernels are imported as they are; in the place
of what else they import of vLLM, and do not call where they launch kernels, stand mocks. Its wheel
has all sources; what it depends on is not needed, but for einops."""

import collections
import enum
from typing import Any
from unittest.mock import MagicMock

import torch
import triton
import triton.language as tl
from libraries import SMS, alone, stand_in
from library_case import calls_in
from library_references import FP8
from triton.language.extra import libdevice

CASES: dict[str, Any] = {}
call = calls_in(CASES)

_MAMBA = "causal_conv1d layernorm_gated mamba_ssm triton_helpers"
_REAL = {
    "": "envs",
    "lora.ops.triton_ops": "kernel_utils lora_expand_op lora_shrink_op utils",
    "model_executor.determinism": "batch_invariant batch_invariant_configs",
    "model_executor.kernels.linear.mixed_precision": "triton_w4a16",
    "model_executor.layers": "fused_qk_norm_rope lightning_attn",
    "model_executor.layers.fused_moe": "fused_moe moe_fused_mul_sum utils",
    "model_executor.layers.mamba.ops": f"{_MAMBA} ssd_bmm ssd_chunk_scan ssd_chunk_state "
    "ssd_combined ssd_state_passing",
    "model_executor.layers.quantization": "awq_triton",
    "model_executor.layers.quantization.compressed_tensors": "triton_scaled_mm",
    "model_executor.layers.quantization.utils": "fp8_utils int8_utils",
    "model_executor.layers.rotary_embedding": "mrope",
    "model_executor.warmup": "jit_warmup jit_warmup_triton_helper",
    "utils": "math_utils",
    "v1.attention.ops": "chunked_prefill_paged_decode prefix_prefill triton_attention_helpers "
    "triton_decode_attention triton_merge_attn_states triton_prefill_attention "
    "triton_reshape_and_cache_flash triton_unified_attention",
    "v1.sample": "rejection_sampler",
    "v1.sample.ops": "topk_topp_triton",
    "v1.worker.gpu.sample": "gumbel logprob min_p penalties",
}


class KVQuantMode(enum.IntEnum):
    """The library's, as far as the cases need it."""

    NONE, INT8_PER_TOKEN_HEAD, FP8_PER_TOKEN_HEAD, INT4_PER_TOKEN_HEAD = 0, 2, 3, 4


def _platform() -> Any:
    """What the library asks about an H200."""
    no = {f"is_{name}.return_value": False for name in ("rocm", "xpu", "cpu", "tpu", "fp8_fnuz")}
    platform = MagicMock(**no)
    platform.fp8_dtype.return_value = FP8
    platform.is_arch_support_pdl.return_value = True
    capability = collections.namedtuple("capability", "major minor")
    platform.get_device_capability.return_value = capability(9, 0)
    platform.has_device_capability = lambda least, *_: least in (80, 89, 90)
    platform.is_device_capability = lambda asked, *_: asked in (90, (9, 0))
    platform.is_device_capability_family = lambda asked, *_: asked == 90
    return platform


def _import_without_the_rest() -> None:
    alone("vllm", _REAL)
    stand_in("vllm.platforms", current_platform=_platform())
    stand_in("vllm.platforms.rocm", use_rocm_custom_paged_attention=lambda *_: False)
    names = {"triton": triton, "tl": tl, "HAS_TRITON": True, "tldevice": libdevice}
    stand_in("vllm.triton_utils", **names, use_tensor_descriptor=bool)
    stand_in("vllm.triton_utils.allocation", set_triton_allocator=_allocate)
    fp8 = torch.finfo(FP8)
    quantisation = "vllm.model_executor.layers.quantization.utils"
    stand_in(
        f"{quantisation}.quant_utils",
        FP8_DTYPE=FP8,
        get_fp8_min_max=lambda: (fp8.min, fp8.max),
        amax_for_moe_activation_quant=None,
    )
    stand_in(
        "vllm.v1.kv_cache_interface",
        KVQuantMode=KVQuantMode,
        is_quantized_kv_cache=lambda name: name.startswith("fp8"),
    )
    ids = {"NULL_BLOCK_ID": 0, "PAD_SLOT_ID": -1}
    stand_in("vllm.v1.attention.backends.utils", **ids)
    stand_in("vllm.utils.mem_utils", get_max_shared_memory_bytes=lambda *_: 227 << 10)
    device = {"num_compute_units": lambda *_: SMS, "get_device_name_as_file_name": lambda: "none"}
    stand_in("vllm.utils.platform_utils", **device)
    stand_in(
        "vllm.utils.torch_utils",
        async_tensor_h2d=torch.tensor,
        direct_register_custom_op=lambda **_: None,
        is_torch_equal_or_newer=lambda *_: True,
    )


def _allocate(device: torch.device) -> None:
    triton.set_allocator(
        lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=device)
    )


_import_without_the_rest()
