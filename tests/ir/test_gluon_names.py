"""What the front end says of layouts: names of those that ops make, and conflicts of banks. The
rows are what Triton 3.9 says of the same."""

from typing import Any

import numpy as np
import pytest

import proton
from proton import gluon
from proton.gluon import language as gl
from tests.tables import check_rows

TARGET = proton.GPUTarget("cuda", 90)
B, S, L = gl.BlockedLayout, gl.SliceLayout, gl.DistributedLinearLayout
MMA = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
WGMMA = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 32, 16])
ROWS = B([1, 4], [8, 4], [4, 1], [1, 0])
COLUMNS = B([1, 4], [8, 4], [4, 1], [0, 1])
THREE = B([1, 1, 4], [4, 2, 4], [4, 1, 1], [2, 1, 0])


@gluon.jit
def reshaped(before: gl.constexpr, shape: gl.constexpr, new: gl.constexpr, after: gl.constexpr):
    value = gl.full(shape, 1, gl.int32, before).reshape(new)
    gl.static_assert(value.type.layout == after, value.type.layout)


def test_layouts_of_reshaped_tensors_keep_their_names() -> None:
    def check(before: Any, shape: Any, new: Any, after: Any) -> None:
        reshaped.warmup(before, shape, new, after, grid=(1,), target=TARGET, num_warps=4)

    check_rows(check, [
        (B([2], [32], [4], [0]), (256,), (8, 4, 8), B([1, 1, 2], [2, 4, 4], [4, 1, 1], [2, 1, 0])),
        (B([2], [32], [4], [0]), (512,), (8, 4, 16), B([1, 1, 2], [1, 4, 8], [4, 1, 1], [2, 1, 0])),
        (ROWS, (64, 32), (8, 8, 32), B([1, 1, 4], [1, 8, 4], [4, 1, 1], [2, 1, 0])),
        (COLUMNS, (64, 32), (64, 4, 8), B([1, 1, 4], [8, 2, 2], [4, 1, 1], [0, 2, 1])),
        (COLUMNS, (64, 32), (4, 16, 32), B([1, 1, 4], [1, 8, 4], [2, 2, 1], [1, 0, 2])),
        (ROWS, (16, 8), (16, 2, 4), B([1, 1, 4], [8, 4, 1], [4, 1, 1], [2, 1, 0])),
        (B([1, 1, 4], [1, 8, 4], [4, 1, 1], [2, 1, 0]), (4, 8, 16), (32, 16), ROWS),
        (THREE, (4, 1, 32), (4, 32), S(1, THREE)),
        (S(1, ROWS), (64,), (64, 1), ROWS),
        (ROWS, (128, 32), (128, 1, 32), B([1, 1, 4], [8, 1, 4], [4, 1, 1], [2, 1, 0])),
        (
            THREE, (1, 32, 1), (32,),
            L([[2], [4], [8], [16]], [[0], [0], [1], [0], [0]], [[0], [0]], [], [32]),
        ),
    ])  # fmt: skip


@gluon.jit
def halved(layout: gl.constexpr, half: gl.constexpr):
    low, high = gl.split(gl.full([64, 2, 16], 1, gl.int32, layout).permute([0, 2, 1]))
    gl.static_assert(low.type.layout == half, low.type.layout)
    whole = gl.join(low, high)
    gl.static_assert(whole.type.layout == half.parent)
    gl.static_assert(whole.permute([0, 2, 1]).type.layout == layout)


def test_halves_are_slices_and_join_to_what_they_were() -> None:
    before = B([1, 2, 4], [8, 1, 4], [4, 1, 1], [2, 1, 0])
    parent = B([1, 4, 2], [8, 4, 1], [4, 1, 1], [1, 2, 0])
    halved.warmup(before, S(2, parent), grid=(1,), target=TARGET, num_warps=4)


@gluon.jit
def clashing(registers: gl.constexpr, memory: gl.constexpr, conflicts: gl.constexpr):
    gl.static_assert(gl.bank_conflicts(registers, memory) == conflicts)


def test_conflicts_of_banks() -> None:
    def check(registers: Any, memory: Any, dtype: Any, conflicts: int) -> None:
        shape = [64, 64]
        types = (
            gl.distributed_type(dtype, shape, registers),
            gl.shared_memory_descriptor_type(dtype, shape, memory, shape),
        )
        clashing.warmup(*types, conflicts, grid=(1,), target=TARGET, num_warps=4)

    linear = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    check_rows(check, [
        (ROWS, linear, gl.float32, 1),
        (ROWS, linear, gl.int8, 3),
        (B([1, 1], [32, 1], [4, 1], [0, 1]), linear, gl.float16, 7),
        (MMA, linear, gl.float16, 7),
        (WGMMA, gl.NVMMASharedLayout(128, 16, 2), gl.float16, 0),
        (WGMMA, gl.NVMMASharedLayout(128, 32, 2), gl.float32, 1),
        (B([1, 1], [1, 32], [4, 1], [1, 0]), linear, gl.float32, 0),
    ])  # fmt: skip


@gluon.jit
def asking(blocks: gl.constexpr):
    gl.static_assert(gl.num_ctas() == blocks)


def test_a_kernel_hears_of_its_blocks() -> None:
    for blocks in (1, 2, 4):
        asking.warmup(blocks, grid=(1,), target=TARGET, num_ctas=blocks)
        asking[(1,)](blocks, num_ctas=blocks)


@gluon.jit
def staying(before: gl.constexpr, after: gl.constexpr):
    gl.convert_layout(gl.full([128], 1, gl.int32, before), after, assert_trivial=True)


def test_a_layout_that_is_chosen_later_is_not_the_same() -> None:
    two = B([2], [32], [4], [0])
    staying.warmup(two, two, grid=(1,), target=TARGET)
    for before, after in ((two, gl.AutoLayout()), (gl.AutoLayout(), two)):
        with pytest.raises(proton.CompilationError, match=r"AutoLayout\(\).* is not trivial"):
            staying.warmup(before, after, grid=(1,), target=TARGET)


@gluon.aggregate
class Scaled:
    value: gl.tensor

    @gluon.constexpr_function
    def __add__(self, other):
        return NotImplemented

    @gluon.jit
    def __neg__(self):
        return Scaled(-self.value)

    @gluon.jit
    def __lt__(self, other):
        return self.value < other

    @gluon.jit
    def logical_or(self, other):
        return Scaled(self.value | other.value)


@gluon.aggregate
class Added:
    value: gl.tensor

    @gluon.jit
    def __radd__(self, other):
        return Added(other.value * 100 + self.value)


@gluon.jit
def operating(out, x, REFUSED: gl.constexpr):
    one, two = Scaled(x), Added(x + 1)
    gl.store(out, (one + two).value)
    gl.store(out + 1, (-one).value)
    gl.store(out + 2, (one < 5).to(gl.int32) + 2 * (x > one).to(gl.int32))
    gl.store(out + 3, (one or Scaled(x + 4)).value)
    if REFUSED:
        gl.store(out, one + 1)


def test_operators_of_aggregates() -> None:
    out = np.zeros(4, np.int32)
    operating[(1,)](out, 3, False)
    assert out.tolist() == [304, -3, 1, 7]
    said = r"unsupported operand type\(s\) for \+: 'Scaled' and 'int'"
    with pytest.raises(proton.CompilationError, match=said):
        operating[(1,)](out, 3, True)
