"""Matrix products of NVIDIA's library, by torch: what benchmarks of kernels compare with."""

from typing import Any

_FLOAT8 = ("torch.float8_e4m3fn", "torch.float8_e5m2")


class CublasLt:
    """Products on the GPU that is current. The workspace is torch's own."""

    def __init__(self, workspace: object = None) -> None:
        self.workspace = workspace

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """c = a @ b.T, of `a` (m, k) and `b` (n, k), both row-major."""
        import torch

        if str(a.dtype) not in _FLOAT8:
            torch.matmul(a, b.T, out=c)
            return
        one = torch.ones((), device=a.device)
        torch._scaled_mm(a, b.T, one, one, out_dtype=c.dtype, out=c)

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """d = alpha * a @ b.T + beta * c."""
        import torch

        torch.addmm(c, a, b.T, alpha=alpha, beta=beta, out=d)


def cublas() -> CublasLt:
    """The library of the GPU that is current."""
    return CublasLt()
