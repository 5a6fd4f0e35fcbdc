"""The cases of all files here: what the demo, the tests and the benchmarks run."""

from kernels.dropout import CASE as DROPOUT
from kernels.histogram import CASE as HISTOGRAM
from kernels.layer_norm import CASE as LAYER_NORM
from kernels.layer_norm_backward import CASE as LAYER_NORM_BACKWARD
from kernels.matmul import CASE as MATMUL
from kernels.reduction import MATRIX_SUM_COLUMNS, MATRIX_SUM_ROWS, VECTOR_SUM
from kernels.softmax import CASE as SOFTMAX
from kernels.transpose import CASE as TRANSPOSE
from kernels.vector_add import CASE as VECTOR_ADD

CASES = (VECTOR_ADD, SOFTMAX, LAYER_NORM, MATMUL)  # what the demo runs
MORE_CASES = (
    LAYER_NORM_BACKWARD,
    DROPOUT,
    VECTOR_SUM,
    MATRIX_SUM_ROWS,
    MATRIX_SUM_COLUMNS,
    TRANSPOSE,
    HISTOGRAM,
)
