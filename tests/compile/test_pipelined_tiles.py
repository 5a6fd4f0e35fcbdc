"""Which blocks a persistent kernel copies, in order, by running the scalars of its final IR."""

from typing import Any

import numpy as np
import pytest

import proton.language as tl
from kernels.matmul_persistent import matmul_descriptors_kernel
from proton.base.targets import GPUTarget
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.ir.scalar_interpreter import ScalarInterpreter

BLOCK, GROUP = 64, 3
WORD = 1 << 32
UNSIGNED = 6  # arith.cmpi's predicates from here on


class Copies(ScalarInterpreter):
    """`copied` are the places of the copies to shared memory, where their condition holds, and of
    those to global memory; all that is no scalar is None."""

    def __init__(self, values: dict[Any, Any], program: int, programs: int) -> None:
        super().__init__(values)
        self.places = {"tt.get_program_id": program, "tt.get_num_programs": programs}
        self.copied: list[tuple[str, int, int]] = []

    def step(self, name: str, op: Any, operands: list[Any]) -> list[Any]:
        if name in self.places:
            return [self.places[name]]
        if name == "ttng.async_tma_copy_global_to_local":
            _, _, _, condition, row, column = operands
            if condition:
                self.copied.append(("load", row, column))
        if name == "ttng.async_tma_copy_local_to_global":
            self.copied.append(("store", *operands[2:]))
        if name == "arith.cmpi" and ir.IntegerAttr(op.attributes["predicate"]).value >= UNSIGNED:
            operands = [operand % WORD for operand in operands]
        if name in ("arith.divsi", "arith.remsi") and not operands[1]:
            return [-1]  # of a tile beyond the last one, which nothing is copied of
        is_scalar = all(isinstance(r.type, ir.IntegerType) for r in op.results) and len(op.results)
        if name.startswith("scf.") or (is_scalar and name.startswith("arith.")):
            return super().step(name, op, operands)
        return [None] * len(op.results)


def tiles_of(m: int, n: int, program: int, programs: int) -> list[tuple[int, int]]:
    """The row and column of each of a program's tiles."""
    down, across = -(-m // BLOCK), -(-n // BLOCK)
    found = []
    for tile in range(program, down * across, programs):
        group, place = divmod(tile, GROUP * across)
        rows = min(down - group * GROUP, GROUP)
        found.append(((group * GROUP + place % rows) * BLOCK, place // rows * BLOCK))
    return found


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_blocks_of_a_persistent_product(rng: np.random.Generator, stages: int) -> None:
    """Tiles with fewer iterations than copies are under way, as many, and more; programs without a
    tile. Each block is loaded once and in order, and each result is stored where it belongs."""
    block = [BLOCK, BLOCK]
    arguments = [TensorDescriptor(tl.float16, [512, 512], [512, 1], block) for _ in range(3)]
    kernel = matmul_descriptors_kernel.warmup(
        *arguments, GROUP_M=GROUP, TRANSPOSED=False, num_warps=4, num_stages=stages,
        target=GPUTarget("cuda", 90),
    )  # fmt: skip
    with mlir_context():
        module = ir.Module.parse(kernel.asm["ttgir"])
        entry = module.body.operations[0].regions[0].blocks[0]
        for steps in (0, 1, 2, 3, 4, 7):
            m, n = (int(size) for size in rng.integers(1, 700, 2))
            programs, k = int(rng.integers(1, 12)), BLOCK * steps - (steps > 2)
            program = int(rng.integers(programs))
            sizes = [(m, k, k), (k, n, n), (m, n, n)]
            given = [number for size in sizes for number in (None, *size)]
            copies = Copies(dict(zip(entry.arguments, given, strict=True)), program, programs)
            copies.run(entry)
            tiles = tiles_of(m, n, program, programs)
            loads = [
                ("load", *place)
                for row, column in tiles
                for start in range(0, k, BLOCK)
                for place in ((row, start), (start, column))
            ]
            assert [copy for copy in copies.copied if copy[0] == "load"] == loads
            stores = [copy[1:] for copy in copies.copied if copy[0] == "store"]
            assert stores == tiles, f"{m} x {n} x {k}, program {program} of {programs}"
