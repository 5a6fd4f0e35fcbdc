"""What SGLang's cases have in common. Its modules with kernels are imported as they are, and mocks
in the place of the rest of it, as vLLM's (vllm_case.py). Its wheel has all sources; what it depends
on is not needed, but for einops."""

import contextlib
import importlib
import types
from typing import Any
from unittest.mock import MagicMock

from libraries import SMS, alone, stand_in
from library_case import calls_in

CASES: dict[str, Any] = {}
call = calls_in(CASES)

_REAL = {
    "kernels": "numerics",
    "kernels.ops.activation": "gelu_and_mul_triton minimax_m3_swiglu softcap",
    "kernels.ops.attention": "dcp_kernels decode_attention extend_attention "
    "fused_qk_rmsnorm_rope_gate gemma_qkv_norm_rope kv_indices merge_state metadata "
    "mla_kv_pack_quantize_fp8 mla_qk_prep pad position prefill_attention rotary_triton score_mod "
    "table_qk_norm_rope triton_gdn_fused_proj verify_splitkv",
    "kernels.ops.attention.dsa": "dequant_k_cache triton_sparse_mla",
    "kernels.ops.attention.fla": "chunk chunk_delta_h chunk_fwd chunk_intra "
    "chunk_intra_token_parallel chunk_o cumsum fused_norm_gate fused_recurrent index kda l2norm "
    "layernorm_gated op utils wy_fast",
    "kernels.ops.attention.linear": "fused_gdn_gating fused_sigmoid_gating_recurrent "
    "lightning_attn seg_la",
    "kernels.ops.attention.minimax_sparse.common": "tile_ptr utils",
    "kernels.ops.attention.minimax_sparse.decode": "flash_with_topk_idx topk_sparse",
    "kernels.ops.diffusion.common": "fallback_torch platform",
    "kernels.ops.diffusion.modulate": "scale_shift_triton",
    "kernels.ops.diffusion.norm": "group_norm_silu_triton norm_triton rmsnorm_onepass_triton "
    "rmsnorm_scale_shift_triton",
    "kernels.ops.diffusion.quantization": "fp8_rowwise_triton swiglu_fp8_rowwise_triton",
    "kernels.ops.diffusion.rope": "rotary_triton",
    "kernels.ops.elementwise": "elementwise",
    "kernels.ops.gemm": "fp8_kernel int8_kernel router_gate_matvec",
    "kernels.ops.grammar": "bitmask_ops",
    "kernels.ops.kvcache": "cache_ops mla_buffer",
    "kernels.ops.layernorm": "fused_rmsnorm gemma4_fused_ops mhc minimax_m3_rmsnorm rmsnorm_mxfp8",
    "kernels.ops.lora.dense": "chunked_sgmv_expand chunked_sgmv_shrink gate_up_lora_b "
    "kernel_utils kv_b_lora_absorbed lora_tuning_config qkv_lora_b sgemm_lora_a sgemm_lora_b",
    "kernels.ops.mamba": "causal_conv1d_triton lfm_short_conv",
    "kernels.ops.mamba.triton_ops": "autotune mamba_ssm ssd_bmm ssd_chunk_scan ssd_chunk_state "
    "ssd_combined ssd_state_passing",
    "kernels.ops.memory": "allocator common",
    "kernels.ops.moe": "ep_moe_kernels fused_moe_triton_kernels gate_topk gemma4_routing "
    "inkling_moe moe_align_small_numel moe_fused_gate moe_fused_mul_sum moe_route_radix router",
    "kernels.ops.quantization": "act_quant_triton awq_triton dsa_quant_k_cache fp8_kernel "
    "fp8_utils int8_kernel mxfp8_epilogue mxfp8_quant",
    "kernels.ops.sampling": "denoiser_statistics murmur_hash renorm_triton softcap_row_argmax "
    "temperature_softmax",
    "kernels.ops.speculative": "cache_locs eagle reject_sampling row_argmax spec_tree topk1",
    "srt": "environ",
    "srt.layers.moe.moe_runner.triton_utils": "fused_moe_triton_config",
}


def _as_it_is(function: Any = None, **_: Any) -> Any:
    """A decorator that registers an op with torch, in its place."""
    return function or _as_it_is


def _import_without_the_rest() -> None:
    alone("sglang", _REAL)
    no = "hip npu xpu cpu musa gfx95_supported gfx1250_supported gfx942_supported sm100_supported "
    no += "sm120_supported sm121 blackwell_supported"
    answers: dict[str, Any] = {f"is_{name}": lambda *_: False for name in no.split()}
    answers |= {
        "cpu_has_amx_support": lambda: False,
        "is_cuda": lambda: True,
        "is_sm90_supported": lambda *_: True,
        "cached_triton_kernel": lambda *_, **__: _as_it_is,
        "cdiv": lambda n, by: -(-n // by),
        "ceil_div": lambda n, by: -(-n // by),
        "device_context": lambda _: contextlib.nullcontext(),
        "ceil_align": lambda n, by: -(-n // by) * by,
        "get_bool_env_var": lambda *_: False,
        "get_device_capability": lambda *_: (9, 0),
        "get_device_core_count": lambda *_: SMS,
        "get_device_name": lambda *_: "none",
        "get_device_sm": lambda: 90,
        "next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
        "torch_release": (2, 14),
    }
    for name in ("", ".common"):
        stand_in(f"sglang.srt.utils{name}", **answers)
    never = {
        "batch_invariant_ops": "is_batch_invariant_mode_enabled",
        "model_executor.cuda_graph_config": "check_cuda_graph_backend",
    }
    for name, asks in never.items():
        stand_in(
            f"sglang.srt.{name}", **{asks: lambda *_: False}, Backend=MagicMock(), Phase=MagicMock()
        )
    told = types.SimpleNamespace
    stand_in(
        "sglang.srt.runtime_context",
        get_exec=lambda: told(deterministic=told(enable_deterministic_inference=False)),
        get_platform=lambda: told(is_sm90=True, is_blackwell=False),
    )
    platform = told(is_out_of_tree=lambda: False)
    stand_in("sglang.srt.platforms", current_platform=platform)
    stand_in("sglang.srt.layers.moe.utils", get_moe_padding_size=lambda *_: 0)
    stand_in("sglang.srt.utils.custom_op", register_custom_op=_as_it_is)
    stand_in("sglang.kernels.kernel_api_logging", debug_kernel_api=_as_it_is)
    arch = {
        "is_arch_support_pdl": lambda *_: True,
        "get_jit_cuda_arch": lambda: types.SimpleNamespace(major=9, minor=0),
        "is_hip_runtime": lambda: False,
        "is_musa_runtime": lambda: False,
        "cache_once": _as_it_is,
    }
    stand_in("sglang.kernels.jit.utils", **arch)


_import_without_the_rest()

fla: Any = importlib.import_module("sglang.kernels.ops.attention.fla.utils")
fla.get_all_max_shared_mem = lambda: [227 << 10]  # what it chooses configurations by
