"""Attention, backward, on a GPU: the same source by Proton and by Triton, and torch's own (SDPA).

    python benchmarks/gpu_attention_backward.py [--heads 128 64] [--causal 0 1] [--rounds 10]
        [--fused]

The kernel of dk and dv and that of dq have the best of the same configurations, for each compiler;
then compilers take turns, and medians of the rounds count. TFLOP/s count the 10 x batch x heads x
length^2 x D operations of five dots, half of them where the attention is causal, although two
kernels compute two of the dots twice, and count no sums of out * dout. `--fused`: one kernel for
all gradients, by descriptors, with all that it needs before and behind. torch's is its whole
backward pass. Results are checked against torch in fp32.
"""

import argparse
import functools
import json
import math
from typing import Any

import torch
from in_turns import Candidate, Launch, fastest, finalists
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton
from kernels import attention, attention_backward, attention_backward_fused

BATCH, HEADS, LENGTH = 4, 32, 4096
CONFIGURATIONS = [
    {"BLOCK": block, "STEP": step, "num_warps": warps, "num_stages": stages}
    for block, step, warps, stages in (
        (128, 64, 8, 2),
        (128, 32, 8, 2),
        (128, 64, 8, 1),
        (64, 64, 4, 2),
        (64, 32, 4, 3),
        (64, 128, 4, 2),
    )
]
KERNELS = ("dkdv_kernel", "dq_kernel")
FUSED = [
    {"block": block, "step": step, "ROLES": roles, "num_warps": warps, "num_stages": 2}
    for block, step, warps in ((128, 64, 8), (128, 128, 8), (64, 64, 4))
    for roles in (True, False)
] + [{"block": 64, "step": 64, "ROLES": False, "num_warps": 4, "num_stages": 2, "maxnreg": 168}]


class Problem:
    """Inputs, what the forward pass left of them, and torch's gradients."""

    def __init__(self, head: int, causal: bool) -> None:
        shape = (BATCH, HEADS, LENGTH, head)
        self.head, self.causal = head, causal
        self.q, self.k, self.v, self.dout = (
            torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(4)
        )
        self.scale = 1 / math.sqrt(head)
        self.grads = [torch.empty_like(self.q) for _ in range(3)]
        self.delta = torch.empty(shape[:3], device="cuda")
        self.lse = torch.empty(shape[:3], device="cuda")
        self.out = out = torch.empty_like(self.q)
        for z in range(BATCH):  # what attention's kernel leaves: of base 2
            scores = self.q[z].float() @ self.k[z].float().mT * self.scale
            if causal:
                scores.masked_fill_(torch.ones_like(scores[0]).triu(1).bool(), -math.inf)
            self.lse[z] = scores.logsumexp(-1) / math.log(2)
            out[z] = (scores.softmax(-1) @ self.v[z].float()).half()
        del scores
        self.delta.copy_((out.float() * self.dout.float()).sum(-1))

    def launcher(self, kernel: Any, name: str, configuration: dict[str, Any]) -> Launch:
        grid = (proton.cdiv(LENGTH, configuration["BLOCK"]), BATCH * HEADS)
        arrays = (self.q, self.k, self.v, self.dout)
        strides = [x.stride(axis) for x in arrays for axis in range(3)]
        outputs = self.grads[1:] if name == "dkdv_kernel" else self.grads[:1]
        return lambda: kernel[grid](
            *arrays, self.lse, self.delta, *outputs, *strides, HEADS, LENGTH, self.scale,
            HEAD=self.head, CAUSAL=self.causal, **configuration,
        )  # fmt: skip

    def fused(self, module: Any, whose: str, configuration: dict[str, Any]) -> Launch:
        """All of `attention_backward_fused`, whose memory is there."""
        if whose == "triton":
            from triton.tools.tensor_descriptor import TensorDescriptor
        else:
            from proton.tools.tensor_descriptor import TensorDescriptor
        options, count = dict(configuration), BATCH * HEADS
        block, step = options.pop("block"), options.pop("step")
        if whose == "triton":
            options["ROLES"] = False  # for Blackwell there
        rows, delta = (torch.empty(count, LENGTH, device="cuda") for _ in range(2))
        sums = torch.empty(count, LENGTH, self.head, device="cuda")
        new, (dq, dk, dv) = TensorDescriptor.from_tensor, self.grads
        given = [
            new(x, [1, 1, n, self.head])
            for x, n in zip(
                (self.q, self.k, self.v, self.dout, dk, dv),
                (step, block, block, step, block, block),
                strict=True,
            )
        ]
        of_rows = (new(rows, [1, step]), new(delta, [1, step]), new(sums, [1, step, self.head]))
        strides = [x.stride(axis) for x in (self.out, self.dout) for axis in range(3)]

        def launch() -> None:
            module.prepare_kernel[LENGTH // 64, count](
                self.out, self.dout, self.lse, rows, delta, sums, *strides, HEADS, LENGTH, LENGTH,
                HEAD=self.head, BLOCK=64,
            )  # fmt: skip
            module.gradients_kernel[LENGTH // block, count](
                *given[:4], *of_rows, *given[4:], HEADS, LENGTH, self.scale,
                CAUSAL=self.causal, RAGGED=False, **options,
            )  # fmt: skip
            module.finish_kernel[LENGTH // 64, count](
                sums, dq, LENGTH, LENGTH, self.scale, HEAD=self.head, BLOCK=64
            )

        return launch

    def torch_launch(self) -> Launch:
        inputs = [x.detach().requires_grad_() for x in (self.q, self.k, self.v)]
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=self.causal)
        return lambda: torch.autograd.grad(out, inputs, self.dout, retain_graph=True)

    def error(self) -> float:
        """How far the gradients are from torch's in fp32, of the first heads."""
        inputs = [x[:1, :2].float().requires_grad_() for x in (self.q, self.k, self.v)]
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=self.causal)
        wanted = torch.autograd.grad(out, inputs, self.dout[:1, :2].float())
        pairs = zip(self.grads, wanted, strict=True)
        errors = [float((own[:1, :2].float() - want).abs().max()) for own, want in pairs]
        return float(torch.tensor(errors).max())  # NaN, which Python's `max` may pass over, too


def measure(
    head: int, causal: bool, rounds: int, modules: dict[str, Any], is_fused: bool
) -> dict[str, Any]:
    problem = Problem(head, causal)
    row: dict[str, Any] = {"head": head, "causal": causal}
    contenders = {("torch", "all"): [Candidate(None, problem.torch_launch())]}
    names = ("all",) if is_fused else KERNELS
    for whose, module in modules.items():
        for name in names:
            made = functools.partial(
                *((problem.fused, module, whose) if is_fused
                  else (problem.launcher, getattr(module, name), name))
            )  # fmt: skip
            contenders[whose, name] = finalists(
                (one, made(one)) for one in (FUSED if is_fused else CONFIGURATIONS)
            )
    found = fastest(contenders, rounds)
    work = 10 * BATCH * HEADS * LENGTH * LENGTH * head / (2 if causal else 1)
    row["torch"] = work / found["torch", "all"][1] / 1e9
    for whose in modules:
        for grad in problem.grads:
            grad.fill_(math.nan)
        for name in names:
            candidate, _ = found[whose, name]
            candidate.launch()
            row[f"{whose}_{name}"] = " ".join(map(str, candidate.configuration.values()))
        row[f"{whose}_error"] = problem.error()
        row[f"{whose}_ms"] = own = [found[whose, name][1] for name in names]
        row[whose] = work / sum(own) / 1e9
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", nargs="*", type=int, default=[128, 64], help="sizes D")
    parser.add_argument("--causal", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--fused", action="store_true", help="one kernel for all gradients")
    arguments = parser.parse_args()
    own = attention_backward_fused if arguments.fused else attention_backward
    theirs, base = triton_module(own), triton_module(attention_backward)
    theirs.LOG2_E = base.LOG2_E = theirs.tl.constexpr(attention.LOG2_E.value)
    theirs._head, theirs._rows_of = base._head, base._rows_of
    modules: dict[str, Any] = {"proton": own, "triton": theirs}
    table = Table("D", "causal", "Proton", "Triton", "torch", "/ Triton", "/ torch", "ms",
                  "Triton's", "error", "configurations", title="TFLOP/s")  # fmt: skip
    for head in arguments.heads:
        for causal in map(bool, arguments.causal):
            row = measure(head, causal, arguments.rounds, modules, arguments.fused)
            print(json.dumps(row), flush=True)
            table.add_row(
                str(head),
                "yes" if causal else "no",
                *(f"{row[name]:.0f}" for name in ("proton", "triton", "torch")),
                *(f"{row['proton'] / row[peer]:.3f}" for peer in ("triton", "torch")),
                *(", ".join(f"{ms:.2f}" for ms in row[f"{name}_ms"]) for name in modules),
                f"{row['proton_error']:.1e}",
                "; ".join(
                    row[f"{whose}_{name}"]
                    for whose in modules
                    for name in (("all",) if arguments.fused else KERNELS)
                ),
            )
    Console(width=180).print(table)


if __name__ == "__main__":
    main()
