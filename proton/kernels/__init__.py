"""Kernels to start from, each beside the same in numpy."""

from proton.kernels.cases import CASES as CASES
from proton.kernels.cases import DROPOUT as DROPOUT
from proton.kernels.cases import HISTOGRAM as HISTOGRAM
from proton.kernels.cases import LAYER_NORM as LAYER_NORM
from proton.kernels.cases import LAYER_NORM_BACKWARD as LAYER_NORM_BACKWARD
from proton.kernels.cases import MATMUL as MATMUL
from proton.kernels.cases import MATRIX_SUM_COLUMNS as MATRIX_SUM_COLUMNS
from proton.kernels.cases import MATRIX_SUM_ROWS as MATRIX_SUM_ROWS
from proton.kernels.cases import MORE_CASES as MORE_CASES
from proton.kernels.cases import SOFTMAX as SOFTMAX
from proton.kernels.cases import TRANSPOSE as TRANSPOSE
from proton.kernels.cases import VECTOR_ADD as VECTOR_ADD
from proton.kernels.cases import VECTOR_SUM as VECTOR_SUM
from proton.kernels.cases import Arrays as Arrays
from proton.kernels.cases import Case as Case
