"""Random kernels of pointers (random_pointers.py) against numpy, and through each pass alone.

An eighth as many as other random programs.
"""

import itertools

import numpy as np
import pytest

from proton.conversion.structured_to_memref import StructuredToMemref
from proton.conversion.triton_arith_to_linalg import TritonArithToLinalg
from proton.conversion.triton_pointers_to_llvm import TritonPointersToLLVM
from proton.conversion.triton_to_structured import TritonToStructured
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.passes import Pass, Upstream
from tests.cpu.harness import kernels_of
from tests.cpu.random_pointers import MARGIN, Drawn, draw
from tests.draws import PROGRAMS

PASSES: list[Pass] = [TritonToStructured(), TritonPointersToLLVM(), StructuredToMemref()]
ORDERS = [
    *((step,) for step in PASSES),
    *itertools.permutations(PASSES, 2),
    *((*order, TritonArithToLinalg()) for order in itertools.permutations(PASSES, 3)),
]


def run(drawn: Drawn) -> str:
    """Launches the kernel, compares, and gives the IR that its passes begin with."""
    maker = drawn.maker
    out = np.zeros((maker.rows, maker.columns), np.int32)
    arrays = [array[MARGIN:] for array in maker.arrays]
    kernel = kernels_of(drawn.source).kernel[(1,)](
        *arrays, *maker.places.values(), out, *maker.scalars.values(), R=maker.rows, C=maker.columns
    )
    assert (out == drawn.want).all(), f"with {maker.scalars}\n{drawn.source}"
    return str(kernel.asm["ttir"])


def check_alone(text: str, passes: tuple[Pass, ...]) -> None:
    """Passes give valid IR of valid IR, in any order."""
    with mlir_context():
        module = ir.Module.parse(text)
        for step in (*passes, Upstream("canonicalize,cse")):
            step.run(module)
            assert module.operation.verify(), f"{step.name} of\n{text}"


@pytest.mark.parametrize("number", range(PROGRAMS // 8))
def test_random_pointers(number: int, session_seed: int) -> None:
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    rng = np.random.default_rng([session_seed, number])
    text = run(draw(rng))
    for place in rng.choice(len(ORDERS), 2):
        check_alone(text, ORDERS[place])
