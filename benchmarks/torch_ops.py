"""Every op of torch's own list, `op_db`, compiled on Proton against the op itself.

    python benchmarks/torch_ops.py --dtypes float32,int64 --only index --samples 4

The Python has torch for CPUs and `expecttest`. A line names each op that is not right, with the
cause; the last one counts. With `--backend cpp` torch's own C++ runs instead: what is not right
there is torch's. Ops without a sample of a dtype, and samples that the op itself refuses, are left
out; random ones are torch's own (`fallback_random`).
"""

import argparse
import importlib
import itertools
import logging
import re
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
# Without numbers that are defined, or with signs that are not.
UNDEFINED = ("empty", "new_empty", "svd", "linalg.eig", "linalg.svd", "pca_lowrank", "geqrf")
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def calls(op: Any, dtype: Any, count: int) -> Iterator[Call]:
    """Some of an op's samples, from all of its list, that it takes."""
    found = list(itertools.islice(op.sample_inputs("cpu", dtype), MANY))
    for sample in found[:: max(1, len(found) // count)][:count]:
        call = sample.input, sample.args, sample.kwargs
        try:
            run(op, call)
        except Exception:  # whatever the op says
            continue
        yield call


def run(of: Callable[..., Any], call: Call) -> Any:
    """A function of copies of its arguments, with the same random numbers each time."""
    first, more, named = trees.tree_map_only(
        torch.Tensor, lambda x: x.detach().clone() if x.is_contiguous() else x.detach(), call
    )
    torch.manual_seed(1)
    return of(first, *more, **named)


def fault(op: Any, call: Call, dtype: Any) -> str:
    """What is not right; "" where all is."""
    torch._dynamo.reset()
    options = {}
    if dtype in TOLERANCES:
        options = {"rtol": TOLERANCES[dtype], "atol": TOLERANCES[dtype]}
    try:
        found = run(torch.compile(lambda *a, **named: op(*a, **named), dynamic=False), call)
        pairs = zip(trees.tree_leaves(found), trees.tree_leaves(run(op, call)), strict=True)
        for one, other in pairs:
            if isinstance(other, torch.Tensor) and other.layout == torch.strided:
                is_close = other.is_floating_point() or other.is_complex()
                some = options if is_close else {}
                torch.testing.assert_close(one, other, equal_nan=True, **some)
    except Exception as problem:  # all are reported
        said = re.sub(r"\S+\.py:\d+:\d+: ", "", " ".join(str(problem).split()))
        return f"{type(problem).__name__}: {said[:90]}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", default="float32,float16,bfloat16,int64,bool")
    parser.add_argument("--only", default="", help="a part of the op's name")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--backend", default="triton", choices=["triton", "cpp"])
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    inductor.cpu_backend, inductor.compile_threads = asked.backend, 1
    inductor.force_disable_caches = inductor.fallback_random = True
    dynamo.capture_dynamic_output_shape_ops = dynamo.capture_scalar_outputs = True
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for op, name in itertools.product(op_db, asked.dtypes.split(",")):
        dtype = getattr(torch, name)
        full = f"{op.name}.{op.variant_test_name}".rstrip(".")
        left_out = asked.only not in full or full.startswith(UNDEFINED)
        if left_out or dtype not in op.supported_dtypes("cpu"):
            continue
        faults = [fault(op, call, dtype) for call in calls(op, dtype, asked.samples)]
        (wrong if any(faults) else right)[name] += 1
        for said in dict.fromkeys(filter(None, faults)):
            print(f"{full} {name}: {said}", flush=True)
    for name in asked.dtypes.split(","):
        print(f"{name}: {right[name]} of {right[name] + wrong[name]} ops are right")
    print(f"{metrics.generated_kernel_count} kernels")


if __name__ == "__main__":
    main()
