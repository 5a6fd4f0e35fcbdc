"""Knobs of Triton for what Proton does not have: a program may ask what they are."""

import importlib
from collections.abc import Callable
from typing import NamedTuple

from proton.base.words import switch


class Foreign(NamedTuple):
    """One knob: its variable, what its text stands for, its default. `parse` is None where no text
    stands for a value; it raises ValueError for what it does not take."""

    variable: str
    parse: Callable[[str], object] | None = switch
    default: object = False


def _text(variable: str, default: str | None = None) -> Foreign:
    return Foreign(variable, str, default)


def _maybe(variable: str) -> Foreign:
    """A switch that is None unless it is set."""
    return Foreign(variable, switch, None)


def _class(text: str) -> object:
    """A class, as `module:Class`."""
    module, _, name = text.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"expected MODULE:CLASS: {error}") from None


_NOTHING = Foreign("", None, None)

# Group -> name -> knob.
FOREIGN: dict[str, dict[str, Foreign]] = {
    "amd": {
        "codegen_path": _text("TRITON_AMD_CODEGEN_PATH"),
        "use_buffer_ops": Foreign("AMDGCN_USE_BUFFER_OPS", default=True),
        "use_buffer_atomics": Foreign("AMDGCN_USE_BUFFER_ATOMICS", default=True),
        "buffer_ops_analyze_small_tensor_range": Foreign("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE"),
        "dump_amdgcn": Foreign("AMDGCN_ENABLE_DUMP"),
        "libhip_path": _text("TRITON_LIBHIP_PATH"),
        "use_block_pingpong": _maybe("TRITON_HIP_USE_BLOCK_PINGPONG"),
        "use_in_thread_transpose": _maybe("TRITON_HIP_USE_IN_THREAD_TRANSPOSE"),
        "use_async_copy": _maybe("TRITON_HIP_USE_ASYNC_COPY"),
        "use_coexec_scheduler": _maybe("TRITON_HIP_USE_COEXEC_SCHEDULER"),
        "use_expert_scheduling": _maybe("TRITON_HIP_USE_EXPERT_SCHEDULING"),
        "scalarize_packed_fops": Foreign("AMDGCN_SCALARIZE_PACKED_FOPS"),
        "dump_mir": _text("TRITON_DUMP_MIR"),
        "swap_mir": _text("TRITON_SWAP_MIR"),
        "swap_mir_enable_misched": Foreign("TRITON_SWAP_MIR_ENABLE_MISCHED"),
    },
    "build": {
        "cc": _text("CC"),
        "cudacrt_path": _text("TRITON_CUDACRT_PATH"),
        "cudart_path": _text("TRITON_CUDART_PATH"),
        "impl": _NOTHING,
    },
    "cache": {
        "manager_class": Foreign("TRITON_CACHE_MANAGER", _class, None),
        "remote_manager_class": Foreign("TRITON_REMOTE_CACHE_BACKEND", _class, None),
    },
    "compilation": {
        "dump_ir_extract_di_local_variables": Foreign("LLVM_EXTRACT_DI_LOCAL_VARIABLES"),
        "store_binary_only": Foreign("TRITON_STORE_BINARY_ONLY"),
        "use_ir_loc": _text("USE_IR_LOC"),
        "enable_asan": Foreign("TRITON_ENABLE_ASAN"),
        "disable_line_info": Foreign("TRITON_DISABLE_LINE_INFO"),
        "instrumentation_mode": _text("TRITON_INSTRUMENTATION_MODE", ""),
        "fpsan_homomorphic_casts": Foreign("TRITON_FPSAN_HOMOMORPHIC_CASTS"),
    },
    "language": {"force_disable_fp_fusion": Foreign("TRITON_FORCE_DISABLE_FP_FUSION")},
    "nvidia": {
        "dump_nvptx": Foreign("NVPTX_ENABLE_DUMP"),
        "disable_ptxas_opt": Foreign("DISABLE_PTXAS_OPT"),
        "ptxas_options": _text("PTXAS_OPTIONS"),
        "mock_ptx_version": _text("TRITON_MOCK_PTX_VERSION"),
        "dump_ptxas_log": Foreign("TRITON_DUMP_PTXAS_LOG"),
        "libcuda_path": _text("TRITON_LIBCUDA_PATH"),
    },
    "proton": {
        "cupti_lib_dir": _text("TRITON_CUPTI_LIB_PATH"),
        "cupti_lib_blackwell_dir": _text("TRITON_CUPTI_LIB_BLACKWELL_PATH"),
        "hsa_runtime_path": _text("TRITON_HSA_RUNTIME_PATH"),
        "hsa_runtime_library": _text("TRITON_HSA_RUNTIME_LIBRARY"),
        "rocprofiler_sdk_include_path": _text("TRITON_ROCPROFILER_SDK_INCLUDE_PATH"),
        "rocprofiler_sdk_lib_path": _text("TRITON_ROCPROFILER_SDK_LIB_PATH"),
        "rocprofiler_sdk_library": _text("TRITON_ROCPROFILER_SDK_LIBRARY"),
        "roctracer_lib_path": _text("TRITON_ROCTRACER_LIB_PATH"),
        "roctracer_library": _text("TRITON_ROCTRACER_LIBRARY"),
        "roctx_lib_path": _text("TRITON_ROCTX_LIB_PATH"),
        "roctx_library": _text("TRITON_ROCTX_LIBRARY", "libroctx64.so"),
        "profile_buffer_size": Foreign("TRITON_PROFILE_BUFFER_SIZE", int, 64 << 20),
        "profile_metric_buffer_size": Foreign("TRITON_PROFILE_METRIC_BUFFER_SIZE", int, 64 << 20),
        "enable_nvtx": Foreign("TRITON_ENABLE_NVTX", default=True),
        "enable_hw_trace": Foreign("TRITON_ENABLE_HW_TRACE"),
    },
    "redis": {
        "key_format": _text("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}"),
        "host": _text("TRITON_REDIS_HOST", "localhost"),
        "port": Foreign("TRITON_REDIS_PORT", int, 6379),
    },
    "runtime": {"add_stages_inspection_hook": _NOTHING},
}
# Groups of machinery that is not there: nothing changes where one of their knobs is set, so a
# program may. In the other groups it would wait for what does not come.
SETTABLE = frozenset({"amd", "build", "redis"})
