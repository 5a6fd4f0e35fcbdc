"""What CI measures: softmax and layer norm of this repository, and vector add beside them.

Each process runs the kernels in turns, so that what slows down the machine meets all of them.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # this checkout's kernels
from kernels.cases import LAYER_NORM, SOFTMAX, VECTOR_ADD

LAUNCHES = 20
SIZES = {SOFTMAX: (512, 1000), LAYER_NORM: (512, 1000), VECTOR_ADD: (1 << 18,)}

rng = np.random.default_rng(0)
inputs = {case: case.inputs(rng, *sizes) for case, sizes in SIZES.items()}
outputs = {case: case.launch(*inputs[case]) for case in SIZES}
for _ in range(LAUNCHES):
    for case in SIZES:
        case.launch(*inputs[case], out=outputs[case])
