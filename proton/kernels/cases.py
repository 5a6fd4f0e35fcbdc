"""Each kernel with its inputs and its peers: what the demo, the tests and the benchmarks run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.kernels.layer_norm import EPSILON, layer_norm
from proton.kernels.layer_norm import reference as numpy_layer_norm
from proton.kernels.matmul import matmul
from proton.kernels.matmul import reference as numpy_matmul
from proton.kernels.softmax import reference as numpy_softmax
from proton.kernels.softmax import softmax
from proton.kernels.vector_add import reference as numpy_vector_add
from proton.kernels.vector_add import vector_add

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel, the same in numpy and in torch, and inputs for all three.

    `launch` and `reference` take the inputs and, by name, `out`: what they returned before.
    `torch` takes the module, the outputs and the inputs. `tolerance` bounds `error`.
    """

    name: str
    shapes: Callable[..., list[tuple[int, ...]]]
    launch: Callable[..., Any]
    reference: Callable[..., Any]
    torch: Callable[..., Any]
    tolerance: float

    def inputs(self, rng: np.random.Generator, *sizes: int) -> Arrays:
        """Normally distributed fp32 inputs of a problem's sizes."""
        return tuple(rng.standard_normal(s, dtype=np.float32) for s in self.shapes(*sizes))

    def check(self, inputs: Arrays, out: Any = None) -> float:
        """Launches, and gives the largest error of any output."""
        got = outputs(self.launch(*inputs, out=out))
        want = outputs(self.reference(*inputs))
        return max(error(g, w) for g, w in zip(got, want, strict=True))


def outputs(result: np.ndarray | Arrays) -> Arrays:
    """What a launch or reference returned, as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference over the largest number that was wanted; infinite where NaN and
    infinities are not where they should be."""
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return math.inf
    if not np.isfinite(got[finite]).all():
        return math.inf
    differences = np.abs(got[finite].astype(np.float64) - want[finite])
    scale = np.abs(want[finite]).max(initial=0.0) or 1.0
    return float(differences.max(initial=0.0) / scale)


VECTOR_ADD = Case(
    name="vector add",
    shapes=lambda n: [(n,), (n,)],
    launch=vector_add,
    reference=numpy_vector_add,
    torch=lambda torch, out, x, y: torch.add(x, y, out=out[0]),
    tolerance=0.0,
)
SOFTMAX = Case(
    name="softmax",
    shapes=lambda rows, columns: [(rows, columns)],
    launch=softmax,
    reference=numpy_softmax,
    torch=lambda torch, out, x: torch.softmax(x, 1, out=out[0]),
    tolerance=1e-6,
)
LAYER_NORM = Case(
    name="layer norm",
    shapes=lambda rows, columns: [(rows, columns), (columns,), (columns,)],
    launch=layer_norm,
    reference=numpy_layer_norm,
    # Without outputs: torch's own form of this operator with them is slower.
    torch=lambda torch, out, x, weight, bias: torch.native_layer_norm(
        x, weight.shape, weight, bias, EPSILON
    ),
    tolerance=1e-5,
)
MATMUL = Case(
    name="matmul",
    shapes=lambda m, n, k: [(m, k), (k, n)],
    launch=matmul,
    reference=numpy_matmul,
    torch=lambda torch, out, a, b: torch.mm(a, b, out=out[0]),
    tolerance=1e-5,
)
CASES = (VECTOR_ADD, SOFTMAX, LAYER_NORM, MATMUL)
