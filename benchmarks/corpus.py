"""Kernels of public libraries on a GPU, as their users call them: by Proton and by Triton.

    python benchmarks/corpus.py [--only REGEX] [--libraries NAME ...] [--repeats 5]
                                [--rounds 2] [--processes 8] [--seconds 300] [--json FILE] [--all]
                                [--against CHECKOUT]

`--against` takes another checkout of this repository in the place of Triton.

Needs torch, Triton, and without their dependencies the libraries of libraries.py (einops,
expecttest, sqlalchemy and pyyaml beside them). The ops are those of liger_cases.py at sizes of
128 MiB of fp32 (rows of 4096, and rows of 16384 or 32000), of fla_cases.py with 2048 tokens and
heads of 128, flag-gems' operators on torch's own samples, which take a few us, and of the others
the ops that inference and training of models of some 8 billion parameters call.

First each op runs under both compilers, in several processes at once, and the results and gradients
of one are compared with the other's (with torch's they are in public_libraries.py); what differs is
not timed. Then a process of each compiler runs all
ops, in turns. Times are those that CUPTI gives torch's profiler, with cold caches; of a kernel the
median of its launches. Both compile the same source with the configuration that the library asks
for; of a list to choose from, the middle one.

Half of the kernels, drawn by a hash of their names, are only measured: `held out` has their sums
alone. Their names are shown, and written, with `--all` only, which nobody who works on the compiler
asks for.
"""

import argparse
import functools
import gc
import importlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libraries import PACKAGES

ROOT = Path(__file__).parents[1]
PROTON, TRITON, OTHER = "proton", "triton", "other"  # another checkout of Proton
CHECK, TIME = "check", "time"
SAID = "corpus:"
TOLERANCE = 0.02  # of a result's norm: most are products of bf16 or tf32
BAR, WORST_BAR, MEAN_BAR = 1.05, 1.15, 0.95
# Times come in steps of 32 ns. Kernels of the same instructions had ratios of 1.14 and, where all
# programs end at their first test, 1.23 (vLLM's moe_fused_mul_sum_kernel and _topp_sb_stats_kernel,
# cfd12324), so those from here on are summed up alone, too.
HELD_OUT = "held out"
LONG_US = 3.0
FLUSHED_BYTES = 256 << 20  # more than the second-level cache of any GPU
LENGTH, HEAD = 2048, 128  # of fla-core's ops where they are timed
SAMPLES = 2  # of torch's samples of an operator
Rows = dict[tuple[str, str], list[float]]  # us of launches by work and kernel


@dataclass(frozen=True)
class Work:
    """An op, and what makes a call of it that can be repeated."""

    key: str  # library, op, dtype or sample, size
    make: Callable[[], Callable[[], object]]
    is_random: bool = False


def of_cases(library: str) -> Iterator[Work]:
    """The ops of `<library>_cases.py`."""
    import torch

    os.environ |= {"FLA_LENGTH": str(LENGTH), "FLA_HEAD": str(HEAD)}
    torch.set_default_device("cuda")
    for case in importlib.import_module(f"{library}_cases").CASES.values():
        for dtype, size in itertools.product(case.dtypes, case.timed):
            key = f"{library} {case.name} {str(dtype).removeprefix('torch.')} {size}"
            yield Work(key, functools.partial(case.call, dtype, size))


def gems() -> Iterator[Work]:
    import flag_gems
    import gems_cases
    import torch
    from torch.utils._pytree import tree_map_only

    torch.set_default_device("cpu")
    gems_cases._database()

    def work(name: str, function: Any, number: int) -> Work:
        def make() -> Callable[[], object]:
            call = gems_cases._calls(name, gems_cases._operator(name), SAMPLES)[number]
            args, kwargs = tree_map_only(torch.Tensor, lambda t: t.detach().cuda(), call)
            return lambda: function(*args, **kwargs)

        is_random = any(part in name for part in gems_cases.RANDOM)
        return Work(f"gems {name} sample {number}", make, is_random)

    for name, function, *when in flag_gems._FULL_CONFIG:
        if (not when or when[0]()) and gems_cases._operator(name) is not None:
            yield from (work(name, function, number) for number in range(SAMPLES))


# Drawn for the half that is held out, and seen by mistake: source, or counts of instructions.
SEEN = (
    "_flatten_kv_cache",
    "_geglu_tanh_backward_kernel",
    "_kldiv_kernel_forward",
    "_lh_bwd_dq",
    "_kernel_matmul_fp8_row",
    "_kernel_matmul_fp8_row_imprecise_acc",
    "_kernel_matmul_fp8_row_no_fast_acc",
    "_linear_add",
    "_fp8_blockwise_act_quant_kernel_impl",
    "dequant_fp4_kernel",
    "_optimizer_update_1state_8bit_blockwise_triton_kernel",
    "_reduce_split_kernel",
    "awq_linear_kernel",
    "_atk_backward_chunk_out",
    "chunk_gated_delta_rule_bwd_kernel_dhu_blockdim64",
    "chunk_gdn2_fwd_kernel_inter_solve_fused",
    "chunk_gla_bwd_kernel_dv",
    "chunk_kda_bwd_kernel_wy_dqkg_fused",
    "chunk_mesa_net_fwd_kernel_h",
    "chunk_precond_kda_bwd_kernel_wy_dqkg",
    "fused_chunk_ttt_linear_bwd_kernel_dh",
    "fused_chunk_ttt_linear_bwd_kernel_h",
    "fused_chunk_ttt_linear_fwd_kernel",
    "parallel_nsa_bwd_kernel_dq",
    "parallel_simple_gla_bwd_kernel",
    "prepare_precond_wy_repr_bwd_kernel",
    "prepare_wy_repr_bwd_kernel",
    "transform_q_fwd_kernel",
    "_bwd_preprocess_do_o_dot",
    "_compact_topk_ids_kernel",
    "_kernel_dequantize_mx4",
    "causal_conv1d_bwd_kernel",
    "chunk_gla_fwd_kernel_o",
    "dense_jagged_cat_jagged_out_kernel",
    "jagged_dense_bmm_kernel",
    "jagged_jagged_bmm_jagged_out_kernel",
    "jagged_self_substraction_jagged_out_kernel",
    "prepare_block_csr_kernel",
    "triton_jagged_to_dense_optimization_2d",
    "sigmoid_bwd_kernel",
    "swish_fwd_kernel",
    "swish_bwd_kernel",
    "swiglu_fwdbwd_kernel",
    "sigmoidglu_fwdbwd_kernel",
    "layer_norm_gated_fwd_kernel_row",
    "layer_norm_fwd_kernel_group",
    "causal_conv1d_fwd_kernel",
    "_fwd_kernel_flash_decode_stage2",
    "parallel_parallax_fwd_kernel",
    "parallel_parallax_bwd_kernel_preprocess",
    "parallel_stickbreaking_attn_bwd_kernel_dkv",
    "_kernel_quantize_fp8_group",
    "merge_attn_states_kernel",
    "_triton_mrope_forward",
    "_fwd_diag_kernel",
    "_fwd_none_diag_kernel",
    "_combined_routing_memset",
    "_combined_routing_compute",
    "_upcast_from_mxfp",
    "_p_matmul_ogs",
    "_matmul_ogs",
    "_reduce_grouped",
    "_jagged_flash_attention_bwd_basic_kernel",
    "_jagged_flash_attention_bwd_preprocess_basic_kernel",
    "chunk_abc_bwd_kernel_intra_V",
    "chunk_gsa_bwd_kernel_intra_dvg",
    "chunk_rwkv6_bwd_kernel_intra",
    "fused_chunk_bwd_kernel",
    "fused_chunk_fwd_kernel",
    "fused_recurrent_gdn2_fwd_kernel",
    "parallel_attn_bwd_kernel_dkv",
    "parallel_path_bwd_dkv_kernel",
    "_attn_res_bwd_kernel",
    "_attn_res_fwd_kernel",
    "_block_rms_norm_forward_kernel",
    "_dyt_bwd_kernel",
    "_fused_add_rms_norm_forward_kernel",
    "_group_norm_forward_kernel",
    "_mhc_post_res_bwd_kernel",
    "_mhc_post_res_fwd_kernel",
    "_poly_norm_backward_kernel",
    "_rms_norm_backward_kernel",
    "_softmax_single_block_forward_kernel",
    "_sparsemax_forward_kernel",
    "_swiglu_fused_gate_up_forward_kernel",
    "_triton_qwen2vl_mrope",
    "_tv_distance_kernel",
    "liger_vocab_parallel_ce_backward_kernel",
    "liger_vocab_parallel_ce_forward_kernel",
    "_forward_chunk_out",
    "chunk_bwd_kernel_dv",
    "chunk_bwd_kernel_dv_local",
    "chunk_fwd_kernel_o",
    "chunk_mesa_net_h_kv_bwd_intra_kernel",
    "naive_attn_decoding_kernel",
    "parallel_simple_gla_fwd_kernel",
    "recompute_w_u_fwd_kernel",
    "parallel_wall_attn_bwd_kernel_dq",
    "parallel_wall_attn_bwd_kernel_preprocess",
    "alloc_decode_kernel",
    "alloc_extend_kernel",
    "create_flashinfer_kv_indices_triton",
    "fuse_scale_shift_kernel_blc_opt",
    "fused_moe_router_cudacore_kernel",
    *("_fwd_grouped_kernel_stage1", "_verify_prefix_stage1", "_verify_combine_stage2"),
    "forward_scan",
    "backward_scan",
    "_cce_backward_kernel",
    # Their times were seen when the choice of warps was measured (2026-11-30).
    "_attn_fwd",
    "_bwd_entmax",
    "_bwd_kv_kernel",
    "_bwd_preprocess",
    "_centroid_update_chunk_kernel",
    "_chunk_scan_bwd_dz_kernel",
    "_chunked_lora_shrink_kernel",
    "_decode_score_attn_kernel",
    "_draft_topk1_partial_argmax_kernel",
    "_fused_add_rms_norm_bwd_kernel",
    "_fwd_entmax",
    "_gemma4_routing_kernel",
    "_get_output",
    "_layer_norm_bwd_kernel",
    "_layer_norm_fwd_kernel",
    "_merge_attn_out_kernel",
    "_moe_align_small_numel_kernel",
    "_per_token_group_quant_mla_deep_gemm_masked_fp8",
    "_rms_norm_dquant_kernel",
    "_rmsnorm_scale_shift_kernel",
    "_topk_index_partial_kernel",
    "bwd_dtrap_ddt_kernel",
    "bwd_segsum_dadt_kernel",
    "dacs_segsum_kernel",
    "fused_moe_kernel",
    "gemv_INT_kernel",
    "gmm_gradB_kernel",
    "quant_per_block_int8_kernel",
    "router_gate_matvec_kernel",
    "scale_activations_per_token_triton_v3_kernel",
)


def is_held_out(kernel: str) -> bool:
    """True of half of the kernels, by name, but for those that were seen."""
    name = kernel.partition(" ")[0]
    name = re.sub("_[NT]{3}_.*", "", name)  # triton_kernels: of which layouts and types it is
    return bool(zlib.crc32(name.encode()) & 1) and name not in SEEN


def inner(compiler: str, step: str, given: dict[str, Any]) -> None:
    """What a process does under one compiler; it prints what it found as it goes."""
    if compiler != TRITON:
        import proton

        proton.install_as_triton()
    import torch

    torch.backends.cudnn.allow_tf32 = False
    launched = _note_launches()
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.int8, device="cuda")
    for library in given["libraries"]:
        works = gems() if library == "gems" else of_cases(library)
        every = [w for w in works if re.search(given["only"], w.key)]
        if step == CHECK:
            every = every[given["part"] :: given["parts"]]
        else:
            every = [work for work in every if work.key in given["keys"]]
        for work in every:
            if time.time() > given["until"]:
                return
            launched.clear()
            if step == CHECK:
                found: Any = _verdict(work)
            else:
                found = _timed(work, launched, flushed, given["repeats"])
            print(f"\n{SAID}", json.dumps([work.key, found]), flush=True)
            torch.cuda.empty_cache()


def _verdict(work: Work) -> list[list[float]] | str:
    """Of each result of an op its norm, and its product with a random vector; or its error."""
    import torch
    from torch.utils._pytree import tree_map_only

    tensors: list[Any] = []
    try:
        torch.manual_seed(0)
        tree_map_only(torch.Tensor, tensors.append, _made(work)())
        return [] if work.is_random else [_fingerprint(tensor) for tensor in tensors]
    except Exception as problem:
        said = f"{type(problem).__name__}: {problem}"
        return said if len(said) < 900 else f"{said[:100]} ... {said[-800:]}"  # a cause comes last


def _fingerprint(tensor: Any) -> list[float]:
    import torch

    numbers = tensor.detach().double().flatten().nan_to_num(7.0, 11.0, -13.0)
    generator = torch.Generator(numbers.device).manual_seed(1)
    weights = torch.randn(
        numbers.shape, generator=generator, device=numbers.device, dtype=torch.float64
    )
    return [numbers.norm().item(), torch.dot(numbers, weights).item()]


def agree(ours: Any, theirs: Any) -> bool:
    """True if two compilers gave the same results, as far as their fingerprints tell."""
    if not isinstance(ours, list) or not isinstance(theirs, list) or len(ours) != len(theirs):
        return False
    return all(
        abs(mine - other) <= TOLERANCE * max(pair[0][0], pair[1][0], 1e-6)
        for pair in zip(ours, theirs, strict=True)
        for mine, other in zip(*pair, strict=True)
    )


def _timed(work: Work, launched: list[str], flushed: Any, repeats: int) -> list[list[Any]]:
    """(kernel, us) of the launches of some calls: `#2` is the second one of a kernel in a call."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    call = _made(work)
    call()
    torch.cuda.synchronize()
    launched.clear()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(repeats):
            flushed.zero_()
            call()
        torch.cuda.synchronize()
    events = found.profiler.kineto_results.events()
    on_gpu = [e for e in events if str(e.device_type()).endswith("CUDA")]
    by_kernel: dict[str, list[float]] = {}
    for event in sorted(on_gpu, key=lambda event: event.start_ns()):
        by_kernel.setdefault(event.name().rstrip("$"), []).append(event.duration_ns() / 1e3)
    left = {name: iter(times) for name, times in by_kernel.items()}
    each, rows = len(launched) // repeats, []
    for number, name in enumerate(launched):
        before = launched[number - number % each : number].count(name)
        us = next(left.get(name, iter(())), None)
        if us is not None:
            rows.append([name + (f" #{before + 1}" if before else ""), us])
    return rows


def _made(work: Work) -> Callable[[], object]:
    """A call of an op. Each of its kernels that is tuned takes the middle of its configurations."""
    from triton.runtime.autotuner import Autotuner

    call = work.make()  # which imports the op's kernels
    for kernel in gc.get_objects():  # some are in a function's closure
        # By its type: a weak proxy answers `isinstance` for its object, which may be gone.
        if issubclass(type(kernel), Autotuner) and len(kernel.configs) > 1:
            kernel.configs = [kernel.configs[len(kernel.configs) // 2]]
    return call


def _note_launches() -> list[str]:
    """The names of kernels, in the order in which they will be launched."""
    triton = importlib.import_module("triton")
    names: list[str] = []
    # triton_kernels writes sizes behind a kernel's name.
    triton.knobs.runtime.launch_enter_hook.add(
        lambda facts: names.append(facts.get()["name"].partition(" ")[0])
    )
    return names


def said(printed: str) -> Iterator[tuple[str, Any]]:
    """What a process of `inner` said: work, and what was found."""
    for line in printed.splitlines():
        if line.startswith(SAID):
            yield tuple(json.loads(line.removeprefix(SAID)))


def started(compiler: str, step: str, **given: Any) -> subprocess.Popen[str]:
    request, against = json.dumps([compiler, step, given]), given["against"]
    tree = against if compiler == OTHER else str(ROOT)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([tree, os.environ.get("PYTHONPATH", "")]),
        "PROTON_CACHE_DIR": f"{os.environ['PROTON_CACHE_DIR']}/{compiler}",
    }
    return subprocess.Popen(
        [sys.executable, __file__, "--inner", request],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str], seconds: float) -> Iterator[tuple[str, Any]]:
    """What a process said; it is killed after so many seconds."""
    try:
        out, error = process.communicate(timeout=max(seconds, 1))
    except subprocess.TimeoutExpired:
        process.kill()
        out, error = process.communicate()
    if process.returncode > 0:
        print(error[-1500:])
    return said(out)


def peer(given: argparse.Namespace) -> str:
    """What Proton is compared with."""
    return OTHER if given.against else TRITON


def asked(given: argparse.Namespace) -> dict[str, Any]:
    """What processes have to know of the command."""
    return {name: getattr(given, name) for name in ("libraries", "only", "against")}


def checked(given: argparse.Namespace, until: float) -> dict[str, dict[str, Any]]:
    """By work and compiler what came of it. Fills the caches on disk."""
    common = asked(given) | {"until": until}
    processes = {
        (compiler, part): started(compiler, CHECK, part=part, parts=given.processes, **common)
        for part in range(given.processes)
        for compiler in (PROTON, peer(given))
    }
    verdicts: dict[str, dict[str, Any]] = {}
    for (compiler, _), process in processes.items():
        for key, verdict in answer(process, until + 30 - time.time()):
            verdicts.setdefault(key, {})[compiler] = verdict
    return verdicts


def comparison(ours: Rows, theirs: Rows) -> list[dict[str, Any]]:
    """A row for each kernel that both have run, us."""
    return [
        {"work": row[0], "kernel": row[1]}
        | {"ours": statistics.median(ours[row]), "theirs": statistics.median(theirs[row])}
        for row in ours.keys() & theirs.keys()
    ]


def ratio(row: dict[str, Any]) -> float:
    return float(row["ours"] / row["theirs"])


def summary(name: str, rows: list[dict[str, Any]]) -> str:
    if not rows:
        return f"{name}: nothing"
    ratios = sorted(map(ratio, rows))
    above = sum(r > BAR for r in ratios)
    return (
        f"{name}: {len(rows)} kernels, geometric mean {statistics.geometric_mean(ratios):.3f} (bar "
        f"{MEAN_BAR}), {above} above {BAR} ({100 * above / len(rows):.1f} %; bar 3), "
        f"{sum(r > WORST_BAR for r in ratios)} above {WORST_BAR} (bar 0), worst {ratios[-1]:.3f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", default="", help="work whose words match, as 'norm|large'")
    parser.add_argument("--libraries", nargs="+", default=list(PACKAGES), choices=PACKAGES)
    parser.add_argument("--repeats", type=int, default=5, help="calls of an op in a process")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each, in turns")
    parser.add_argument("--processes", type=int, default=8, help="of each compiler, for the checks")
    parser.add_argument("--seconds", type=float, default=300, help="what is late is left out")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--all", action="store_true", help="rows of the half that is held out, too")
    parser.add_argument("--against", default="", help="another checkout, in Triton's place")
    parser.add_argument("--inner", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inner:
        inner(*given.inner)
        return 0
    begin = time.time()
    end = begin + given.seconds
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"PROTON_CACHE_DIR": cache, "TRITON_CACHE_DIR": f"{cache}/triton"}
        verdicts = checked(given, begin + 0.5 * given.seconds)
        other = peer(given)
        right = [key for key, of in verdicts.items() if agree(of.get(PROTON), of.get(other))]
        print(f"{len(right)} of {len(verdicts)} ops agree, {time.time() - begin:.0f} s")
        for key, of in verdicts.items():
            if key not in right and isinstance(of.get(other), list):
                print(f"differs: {key}: {str(of.get(PROTON))[:200]} for {str(of[other])[:200]}")
        times: dict[str, Rows] = {PROTON: {}, other: {}}
        order = [other, PROTON] * given.rounds
        for number, compiler in enumerate(order):
            until = time.time() + (end - time.time()) / (len(order) - number) - 3
            time_given = asked(given) | {"until": until, "keys": right, "repeats": given.repeats}
            process = started(compiler, TIME, **time_given)
            for key, launches in answer(process, until + 5 - time.time()):
                for kernel, us in launches:
                    times[compiler].setdefault((key, kernel), []).append(us)
            print(f"{compiler}: {len(times[compiler])} kernels, {time.time() - begin:.0f} s")
    rows = comparison(times[PROTON], times[other])
    seen = [row for row in rows if not is_held_out(row["kernel"])]
    for row in sorted(rows if given.all else seen, key=ratio):
        if given.all or ratio(row) > BAR or ratio(row) < 1 / BAR:
            times_us = f"{ratio(row):6.3f} {row['ours']:9.1f} {row['theirs']:9.1f}"
            print(f"{times_us}  {row['work']}: {row['kernel']}")
    for library in given.libraries:
        print(summary(library, [row for row in rows if row["work"].startswith(library)]))
    print(summary("seen", seen))
    print(summary(HELD_OUT, [row for row in rows if is_held_out(row["kernel"])]))
    print(summary(f"from {LONG_US:g} us on", [row for row in rows if row["theirs"] >= LONG_US]))
    for row in rows:
        if not given.all and is_held_out(row["kernel"]):
            row["work"] = row["kernel"] = HELD_OUT
    if given.json:
        given.json.write_text(json.dumps({"rows": rows, "verdicts": verdicts}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
