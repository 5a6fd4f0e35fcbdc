"""Kernels to start from, each beside the same in numpy."""

from proton.kernels.cases import CASES as CASES
from proton.kernels.cases import LAYER_NORM as LAYER_NORM
from proton.kernels.cases import MATMUL as MATMUL
from proton.kernels.cases import SOFTMAX as SOFTMAX
from proton.kernels.cases import VECTOR_ADD as VECTOR_ADD
from proton.kernels.cases import Arrays as Arrays
from proton.kernels.cases import Case as Case
