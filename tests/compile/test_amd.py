"""Kernels for AMD's gfx942, by LLVM's AMDGPU, with no GPU: their assembly, and what is refused.
Conversions of layouts on waves of 64 lanes run in tests/ir/test_shared_exchanges.py."""

from collections.abc import Callable

import pytest

import proton
import proton.language as tl
from proton.backends.compiler import CompiledKernel
from proton.base.errors import CompilationError, LaunchError, OutOfResources, ProtonError
from proton.base.knobs import knobs
from proton.compat.triton.filecheck import run_filecheck
from tests.compile.target_kernels import CASES
from tests.tables import check_rows

TARGET = proton.GPUTarget("hip", "gfx942")
CHECKS = {
    "add": """
        CHECK: .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
        CHECK-LABEL: add$:
        CHECK: v_cmp_gt_i32
        CHECK: s_and_saveexec_b64
        CHECK: global_load_dword
        CHECK: v_pk_add_f32
        CHECK: global_store_dword
        CHECK: s_endpgm
        CHECK: .max_flat_workgroup_size: 256
        CHECK: .wavefront_size: 64
    """,
    "softmax": """
        CHECK-LABEL: softmax$:
        CHECK: v_mbcnt_hi_u32_b32
        CHECK: v_xor_b32_e32 {{v[0-9]+}}, 0x80,
        CHECK: ds_bpermute_b32
        CHECK: s_barrier
        CHECK: v_max_f32
        CHECK: ds_write_b32
        CHECK: s_barrier
        CHECK: ds_read_b128
        CHECK: v_exp_f32
        CHECK: ds_bpermute_b32
        CHECK: v_add_f32
        CHECK: global_store_dword
    """,
    "matmul": """
        CHECK-LABEL: matmul$:
        CHECK: global_load_dword
        CHECK: s_barrier
        CHECK: ds_write
        CHECK: s_barrier
        CHECK: ds_read{{.*}}_b64
        CHECK: v_pk_fma_f32
        CHECK-NOT: v_mfma
        CHECK: global_store_dword
    """,
    "atomics": "CHECK: global_atomic_add_f32\nCHECK: global_atomic_cmpswap",
    "scan": "CHECK: ds_bpermute_b32\nCHECK: v_cndmask_b32\nCHECK: s_barrier",
    "calls": "CHECK-LABEL: calls$:\nCHECK: s_swappc_b64",
    "transpose": "CHECK: global_load_dword\nCHECK: ds_write\nCHECK: s_barrier\nCHECK: ds_read",
}


def compiled(kernel: object, *arguments: object, **options: object) -> CompiledKernel:
    found = kernel.warmup(*arguments, target=TARGET, **options)  # type: ignore[attr-defined]
    assert isinstance(found, CompiledKernel)
    return found


def test_kernels_in_assembly() -> None:
    def check(case: str) -> None:
        kernel, arguments = CASES[case]
        found = compiled(kernel, *arguments)
        run_filecheck(case, found.asm["amdgcn"], CHECKS[case])
        assert found.metadata["target"] == "hip:gfx942"
        assert found.asm["obj"].startswith(b"\x7fELF")

    check_rows(check, ((case,) for case in CHECKS))


def test_all_lanes_of_a_wave_take_part() -> None:
    """A sum over 64 lanes takes six shuffles, and four waves meet in shared memory."""
    kernel, arguments = CASES["softmax"]
    text = compiled(kernel, *arguments, num_warps=1).asm["amdgcn"]
    assert "ds_write" not in text
    assert "s_barrier" not in text
    assert text.count("ds_bpermute_b32") == 2 * 6  # a maximum, and a sum
    layout = "[[1], [2], [4], [8], [16], [32]]"
    assert layout in compiled(kernel, *arguments).asm["ttgir"]


@proton.jit
def which(out_ptr, BLOCK: tl.constexpr):
    tl.static_assert(tl.target_info.is_hip() and tl.target_info.is_hip_cdna3())
    tl.static_assert(not tl.target_info.is_cuda() and not tl.target_info.is_hip_cdna4())
    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)


@proton.jit
def error_function(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.erf(tl.load(x_ptr + offsets)))


@proton.jit
def half_dot(a_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)
    a = tl.load(a_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, tl.trans(a)))


def test_what_a_kernel_knows_of_its_target() -> None:
    assert "global_store" in compiled(which, tl.float32, 256).asm["amdgcn"]


def test_dots_of_halves_are_multiply_adds() -> None:
    text = compiled(half_dot, tl.float16, tl.float32, 32).asm["amdgcn"]
    assert "v_pk_fma_f32" in text or "v_fma_mix" in text or "v_fmac" in text


@pytest.mark.parametrize(
    ("ask", "kind", "message"),
    [
        (lambda: compiled(*CASES["talks"][:1], *CASES["talks"][1]), CompilationError,
         r"target_kernels.py:\d+:5: tl.device_print is not supported on AMD GPUs"),
        (lambda: compiled(CASES["library"][0], *CASES["library"][1]), CompilationError,
         "a function of libdevice is not supported on AMD GPUs"),
        (lambda: compiled(error_function, tl.float32, 256), CompilationError,
         r"test_amd.py:\d+:\d+: erf of fp32 is not supported on AMD GPUs"),
        (lambda: compiled(which, tl.float32, 256, num_stages=3), ProtonError, "num_stages"),
        (lambda: compiled(which, tl.float32, 256, num_warps=32), OutOfResources, "2048"),
        (lambda: compiled(which, tl.float32, 256, profile={}), CompilationError, "record nothing"),
        (lambda: compiled(which, tl.float32, 256)[(1,)](), LaunchError, "and not launched"),
        (lambda: proton.GPUTarget("hip", "gfx90a"), ProtonError, "there are gfx942"),
        (lambda: proton.GPUTarget("hip", "gfx942", 32), ProtonError, "a warp has 64 threads"),
    ],
)  # fmt: skip
def test_what_is_refused(ask: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        ask()


@proton.jit
def idle(n):
    tl.program_id(0) + n


def test_a_launch_is_an_error() -> None:
    with (
        knobs.scope(backend="hip"),
        pytest.raises(LaunchError, match="compiled for AMD GPUs and not launched"),
    ):
        idle[(1,)](5)
