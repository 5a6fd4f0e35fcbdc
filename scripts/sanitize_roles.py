"""Small launches of kernels whose copies a producer begins, for compute-sanitizer on a GPU.

    compute-sanitizer --tool synccheck python scripts/sanitize_roles.py product
    compute-sanitizer --tool racecheck python scripts/sanitize_roles.py attention

Needs torch. Fails where a result is wrong, or a kernel has no producer.
"""

import math
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.alternating_kernels import attention
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.test_roles import by_pointers, by_threads, persistent, product

LOOPS = {"product": product, "persistent": persistent, "by_threads": by_threads}
new = TensorDescriptor.from_tensor


def run_attention() -> tuple[object, torch.Tensor, torch.Tensor]:
    """(the kernel, its result, torch's) of four blocks of rows."""
    size, length = 128, 512
    q, k, v = (torch.randn(1, length, size, device="cuda").half() for _ in range(3))
    out = torch.full_like(q, math.nan)
    given = [new(x.reshape(-1, size), [128, size]) for x in (q, k, v, out)]
    kernel = attention[length // 128, 1](
        *given, length, math.log2(math.e) * size**-0.5, M=128, N=128, D=size, TMA=True,
        num_warps=8, num_stages=2,
    )  # fmt: skip
    of = torch.nn.functional.scaled_dot_product_attention
    return kernel, out, of(*(x.double() for x in (q, k, v)))


def run_loop(name: str) -> tuple[object, torch.Tensor, torch.Tensor]:
    """The same of a loop of tests/compile/test_roles.py, with sizes that no block divides."""
    m, n, k = 160, 136, 160
    a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
    c = torch.full((m, n), math.nan, device="cuda").half()
    given = new(a, [64, 32]), new(b, [32, 64]), new(c, [64, 64])
    grid = (2,) if name == "persistent" else (3, 3)
    kernel = LOOPS[name][grid](*given, m, n, k, M=64, N=64, K=32, num_warps=4, num_stages=2)
    x, y = a.float(), b.float()
    return kernel, c, x.sum(1)[:, None] + y.sum(0) if name == "by_threads" else x @ y


def run_by_pointers() -> tuple[object, torch.Tensor, torch.Tensor]:
    """The same of a product whose producer copies by its threads."""
    k = 160
    a, b = torch.randn(64, k, device="cuda").half(), torch.randn(k, 64, device="cuda").half()
    c = torch.full((64, 64), math.nan, device="cuda")
    kernel = by_pointers[1,](a, b, c, k, M=64, N=64, K=32, num_warps=4, num_stages=2)
    return kernel, c, a.float() @ b.float()


def main() -> None:
    torch.manual_seed(0)
    (name,) = sys.argv[1:]
    others = {"attention": run_attention, "pointers": run_by_pointers}
    kernel, got, want = others[name]() if name in others else run_loop(name)
    torch.cuda.synchronize()
    assert "producer and consumer" in kernel.asm["schedule"]  # type: ignore[attr-defined]
    error = float((got - want).abs().max())
    assert error <= 4e-3 * float(want.abs().max()), error
    print(f"{name}: right, {error:.1e} off")


if __name__ == "__main__":
    main()
