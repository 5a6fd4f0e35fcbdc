"""Every op of torch's own list, `op_db`, compiled on Proton against the op itself.

    python benchmarks/torch_ops.py --dtypes float32,int64 --only index --samples 4
    python benchmarks/torch_ops.py --device cuda --gradients --part 1/16 --seconds 500

The Python has torch and `expecttest`. A line names each op that is not right, with the cause; the
last ones count. With `--backend cpp` torch's own C++ runs instead on the CPU: what is not right
there is torch's. Ops without a sample of a dtype, and samples that the op itself refuses, are left
out; random ones are torch's own (`fallback_random`). Gradients are those of random ones of what
the op gives.
"""

import argparse
import faulthandler
import importlib
import itertools
import logging
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import proton

proton.install_as_triton()  # before torch looks for triton
torch = importlib.import_module("torch")
dynamo = importlib.import_module("torch._dynamo.config")
inductor = importlib.import_module("torch._inductor.config")
metrics = importlib.import_module("torch._inductor.metrics")
trees = importlib.import_module("torch.utils._pytree")
op_db = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db

# What torch computes in a wider type, and rounds once where ops alone round each time.
TOLERANCES = {torch.float16: 5e-3, torch.bfloat16: 2e-2, torch.float32: 1e-4}
MANY = 40  # samples of an op, of which some are taken
HANGS = 120  # seconds for the last op; the stack of one that takes longer is shown
# Without numbers that are defined, or with signs that are not.
UNDEFINED = ("empty", "new_empty", "svd", "linalg.eig", "linalg.svd", "pca_lowrank", "geqrf")
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def calls(of: Callable[..., Any], samples: Iterator[Any], count: int) -> Iterator[Call]:
    """Some of an op's samples, from all of its list, that it takes."""
    try:
        found = list(itertools.islice(samples, MANY))
    except Exception as problem:  # of this device or torch
        print(f"no samples: {problem}"[:200], flush=True)
        return
    for sample in found[:: max(1, len(found) // count)][:count]:
        call = sample.input, sample.args, sample.kwargs
        try:
            run(of, call)
        except Exception:  # whatever the op says
            continue
        yield call


def run(of: Callable[..., Any], call: Call) -> list[Any]:
    """What a function gives for copies of its arguments, with the same random numbers each time,
    and the gradients of those that ask for them."""
    first, more, named = call = trees.tree_map_only(
        torch.Tensor,
        lambda x: (x.detach().clone() if x.is_contiguous() else x.detach()).requires_grad_(
            x.requires_grad
        ),
        call,
    )
    torch.manual_seed(1)
    found = trees.tree_leaves(of(first, *more, **named))
    asking = [x for x in trees.tree_leaves(call) if getattr(x, "requires_grad", False)]
    giving = [x for x in found if getattr(x, "requires_grad", False)]
    if not asking or not giving:
        return found
    torch.manual_seed(2)
    found += torch.autograd.grad(
        giving, asking, [torch.randn_like(x) for x in giving], allow_unused=True
    )
    return found


def fault(of: Callable[..., Any], call: Call, dtype: Any) -> str:
    """What is not right; "" where all is."""
    torch._dynamo.reset()
    options = {}
    if dtype in TOLERANCES:
        options = {"rtol": TOLERANCES[dtype], "atol": TOLERANCES[dtype]}
    try:
        found = run(torch.compile(of, dynamic=False), call)
        for one, other in zip(found, run(of, call), strict=True):
            assert (one is None) == (other is None), "a gradient that is there for one alone"
            if isinstance(other, torch.Tensor) and other.layout == torch.strided:
                is_close = other.is_floating_point() or other.is_complex()
                some = options if is_close else {}
                torch.testing.assert_close(one, other, equal_nan=True, **some)
    except Exception as problem:  # all are reported
        said = re.sub(r"\S+\.py:\d+:\d+: ", "", " ".join(str(problem).split()))
        return f"{type(problem).__name__}: {said[:90]}"
    return ""


def chosen(asked: argparse.Namespace) -> list[tuple[str, str, Any]]:
    """The ops of this part, each with its full name and a dtype that it takes."""
    found = []
    part, parts = map(int, asked.part.split("/"))
    for op, dtype in itertools.product(op_db, asked.dtypes.split(",")):
        name = f"{op.name}.{op.variant_test_name}".rstrip(".")
        dtypes = op.supported_dtypes(asked.device)
        if asked.gradients:
            has_some = op.supports_autograd
            dtypes = op.supported_backward_dtypes(asked.device) if has_some else ()
        is_there = getattr(torch, dtype) in dtypes and not name.startswith(UNDEFINED)
        if is_there and asked.only in name:
            found.append((name, dtype, op))
    return found[part - 1 :: parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", default="float32,float16,bfloat16,int64,bool")
    parser.add_argument("--only", default="", help="a part of the op's name")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--backend", default="triton", choices=["triton", "cpp"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "--gradients", action="store_true", help="and backward, of ops that have it"
    )
    parser.add_argument("--part", default="1/1", help="I/N: each N-th op from the I-th on")
    parser.add_argument("--seconds", type=float, default=1e6, help="begin no op after that")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    inductor.cpu_backend, inductor.compile_threads = asked.backend, 1
    if asked.device == "cpu":
        inductor.inplace_buffers = False  # torch writes into 0-d gradients that it gives by value
    inductor.force_disable_caches = inductor.fallback_random = True
    dynamo.capture_dynamic_output_shape_ops = dynamo.capture_scalar_outputs = True
    faulthandler.dump_traceback_later(asked.seconds + HANGS, exit=True)
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    ops, end = chosen(asked), time.monotonic() + asked.seconds
    while ops and time.monotonic() < end:
        name, dtype, op = ops.pop(0)
        of, kind = (lambda *a, op=op, **named: op(*a, **named)), getattr(torch, dtype)
        samples = op.sample_inputs(asked.device, kind, requires_grad=asked.gradients)
        faults = [fault(of, call, kind) for call in calls(of, samples, asked.samples)]
        if faults:
            (wrong if any(faults) else right)[dtype] += 1
        for said in dict.fromkeys(filter(None, faults)):
            print(f"{name} {dtype}: {said}", flush=True)
        if any(re.search("cuda[ _]?error", said, re.IGNORECASE) for said in faults):
            break  # no launch of this process is right any more
    for dtype in asked.dtypes.split(","):
        print(f"{dtype}: {right[dtype]} of {right[dtype] + wrong[dtype]} ops are right")
    print(f"{metrics.generated_kernel_count} kernels; {len(ops)} ops were not run")
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
