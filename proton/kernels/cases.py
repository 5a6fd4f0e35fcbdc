"""Each kernel with its inputs and its peers: what the demo, the tests and the benchmarks run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.kernels import arrays, reduction
from proton.kernels.arrays import Array
from proton.kernels.dropout import dropout
from proton.kernels.dropout import reference as numpy_dropout
from proton.kernels.histogram import BINS, histogram
from proton.kernels.histogram import reference as numpy_histogram
from proton.kernels.layer_norm import EPSILON, layer_norm
from proton.kernels.layer_norm import reference as numpy_layer_norm
from proton.kernels.layer_norm_backward import layer_norm_backward
from proton.kernels.layer_norm_backward import reference as numpy_layer_norm_backward
from proton.kernels.matmul import matmul
from proton.kernels.matmul import reference as numpy_matmul
from proton.kernels.softmax import reference as numpy_softmax
from proton.kernels.softmax import softmax
from proton.kernels.transpose import reference as numpy_transpose
from proton.kernels.transpose import transpose
from proton.kernels.vector_add import reference as numpy_vector_add
from proton.kernels.vector_add import vector_add

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel, the same in numpy and in torch, and inputs for all three.

    `launch` and `reference` take the inputs and, by name, `out`: what they returned before.
    `torch` takes the module, the outputs and the inputs. `tolerance` bounds `error`; what a GPU
    approximates may add `approximation` to it (docs/math.md). `prepare` makes the inputs from
    normally distributed arrays of `shapes`.
    """

    name: str
    shapes: Callable[..., list[tuple[int, ...]]]
    launch: Callable[..., Any]
    reference: Callable[..., Any]
    torch: Callable[..., Any]
    tolerance: float
    approximation: float = 0.0
    prepare: Callable[..., Arrays] | None = None

    def inputs(self, rng: np.random.Generator, *sizes: int) -> Arrays:
        """Random inputs of a problem's sizes."""
        arrays = tuple(rng.standard_normal(s, dtype=np.float32) for s in self.shapes(*sizes))
        return arrays if self.prepare is None else self.prepare(*arrays)

    def check(
        self, inputs: Arrays, out: Any = None, place: Callable[[np.ndarray], Array] = np.asarray
    ) -> float:
        """Launches on the inputs where `place` puts them; the largest error of any output."""
        got = outputs(self.launch(*map(place, inputs), out=out))
        want = outputs(self.reference(*inputs))
        return max(error(arrays.to_numpy(g), w) for g, w in zip(got, want, strict=True))


def outputs(result: Array | tuple[Array, ...]) -> tuple[Array, ...]:
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
    approximation=1e-6,  # of exp and of the division
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
CASES = (VECTOR_ADD, SOFTMAX, LAYER_NORM, MATMUL)  # what the demo runs


def _after_forward(dy: np.ndarray, x: np.ndarray, weight: np.ndarray) -> Arrays:
    """The inputs of a backward pass: what the forward pass had, and what it left."""
    _, mean, rstd = numpy_layer_norm(x, weight, np.zeros_like(weight))
    return dy, x, weight, mean, rstd


def _torch_layer_norm_backward(torch: Any, out: Any, *inputs: Any) -> Any:
    dy, x, weight, mean, rstd = inputs
    shape, wanted = list(weight.shape), [True, True, True]
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, shape, mean[:, None], rstd[:, None], weight, weight, wanted
    )


LAYER_NORM_BACKWARD = Case(
    name="layer norm backward",
    shapes=lambda rows, columns: [(rows, columns), (rows, columns), (columns,)],
    prepare=_after_forward,
    launch=layer_norm_backward,
    reference=numpy_layer_norm_backward,
    torch=_torch_layer_norm_backward,
    tolerance=1e-5,
)
DROPOUT = Case(
    name="dropout",
    shapes=lambda n: [(n,)],
    launch=dropout,
    reference=numpy_dropout,
    # Torch has random numbers of its own: the same work, other elements.
    torch=lambda torch, out, x: torch.dropout(x, 0.5, True),
    tolerance=0.0,
)
VECTOR_SUM = Case(
    name="vector sum",
    shapes=lambda n: [(n,)],
    # Of one sign, so that the error relative to the sum is that of the additions.
    prepare=lambda x: (np.abs(x),),
    launch=reduction.vector_sum,
    reference=reduction.vector_reference,
    torch=lambda torch, out, x: torch.sum(x, dim=0, keepdim=True, out=out[0]),
    tolerance=1e-5,
)


def _matrix_sum(axis: int) -> Case:
    return Case(
        name=f"matrix sum, axis {axis}",
        shapes=lambda rows, columns: [(rows, columns)],
        prepare=lambda x: (np.abs(x),),
        launch=lambda x, out=None, **options: reduction.matrix_sum(x, axis, out, **options),
        reference=lambda x, out=None: reduction.matrix_reference(x, axis, out),
        torch=lambda torch, out, x: torch.sum(x, dim=axis, out=out[0]),
        tolerance=1e-5,
    )


MATRIX_SUM_ROWS, MATRIX_SUM_COLUMNS = _matrix_sum(0), _matrix_sum(1)
TRANSPOSE = Case(
    name="transpose",
    shapes=lambda rows, columns: [(rows, columns)],
    launch=transpose,
    reference=numpy_transpose,
    torch=lambda torch, out, x: out[0].copy_(x.T),
    tolerance=0.0,
)
HISTOGRAM = Case(
    name="histogram",
    shapes=lambda n: [(n,)],
    prepare=lambda x: ((x * (BINS / 6) + BINS / 2).astype(np.int32),),  # some lie in no bin
    launch=histogram,
    reference=numpy_histogram,
    torch=lambda torch, out, x: torch.bincount(x.clamp(0, BINS - 1), minlength=BINS),
    tolerance=0.0,
)
MORE_CASES = (
    LAYER_NORM_BACKWARD,
    DROPOUT,
    VECTOR_SUM,
    MATRIX_SUM_ROWS,
    MATRIX_SUM_COLUMNS,
    TRANSPOSE,
    HISTOGRAM,
)
