"""What the front end says of layouts: names of those that ops make, and conflicts of banks. The
rows are what Triton 3.9 says of the same."""

from typing import Any

import numpy as np
import pytest

import proton
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.nvidia.hopper import TensorDescriptor
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


@gluon.jit
def by_method(out, x, y):
    layout: gl.constexpr = B([1], [32], [4], [0])
    a = gl.arange(0, 128, layout=layout)
    gl.store(out + a, a.__rsub__(y).__mul__(x).__radd__(a).__rfloordiv__(1000).__xor__(a))
    gl.store(out + 128 + a, a.__ge__(y).to(gl.int32) + a.__eq__(x) * 2)
    gl.static_assert(a.shape == [128])
    gl.static_assert(a.shape != [64])


def test_operators_of_tensors_have_names() -> None:
    out, a = np.zeros(256, np.int32), np.arange(128)
    by_method[(1,)](out, 3, 200)
    assert out[:128].tolist() == ((1000 // (a + (200 - a) * 3)) ^ a).tolist()
    assert out[128:].tolist() == ((a >= 200) + (a == 3) * 2).tolist()


def test_layouts_of_other_chips_have_their_fields() -> None:
    amd, blackwell = gl.amd, gl.nvidia.blackwell

    def check(layout: Any, fields: dict[str, object]) -> None:
        assert {name: getattr(layout, name) for name in fields} == fields

    check_rows(check, [
        (
            blackwell.TensorMemoryLayout((128, 64), col_stride=1),
            {"block": (128, 64), "col_stride": 1, "two_ctas": False},
        ),
        (
            amd.AMDMFMALayout(3, [32, 32, 8], True, warps_per_cta=[4, 1]),
            {"version": 3, "transposed": True, "warps_per_cta": [4, 1], "cga_layout": []},
        ),
        (amd.AMDWMMALayout(2, True, [[0, 1]]), {"warp_bases": [[0, 1]], "rank": 2}),
    ])  # fmt: skip
    with pytest.raises(TypeError, match="AMDWMMALayout has no 'warps_per_cta'"):
        amd.AMDWMMALayout(2, True, warps_per_cta=[4, 1])


PADDED = gl.PaddedSharedLayout.with_identity_for([[32, 4]], [32, 64], [1, 0])


def test_warps_of_layouts_and_layouts_that_have_no_view() -> None:
    def check(layout: Any, shape: list[int], warps: list[int]) -> None:
        assert gl._layouts.warps_per_cta(layout, shape) == warps

    check_rows(check, [
        (MMA, [64, 64], [4, 1]),
        (S(0, ROWS), [64], [4, 1]),
        (gl.DotOperandLayout(1, MMA, 2), [16, 64], [4, 1]),
        (L([[1, 0]], [[0, 1 << i] for i in range(5)], [[2, 0], [0, 0]], [], [4, 32]), [4, 32],
         [2, 1]),
    ])  # fmt: skip
    for layout in (gl.AutoLayout(), gl.CoalescedLayout(), PADDED):
        for view in (layout.format_tensor_view, layout.format_hardware_view):
            with pytest.raises(ValueError, match="cannot be visualized"):
                view([32, 64])


@gluon.jit
def turned(layout: gl.constexpr, after: gl.constexpr):
    memory = gl.allocate_shared_memory(gl.float16, [64, 128], layout).permute([1, 0])
    gl.static_assert(memory.type.layout == after, memory.type.layout)


def test_views_keep_the_layout_of_blocks() -> None:
    def check(before: Any, after: Any) -> None:
        turned.warmup(before, after, grid=(1,), target=TARGET, num_ctas=2)

    rows = [[0, 1 << i] for i in range(6)] + [[1 << i, 0] for i in range(6)]
    columns = [[b, a] for a, b in rows]
    check_rows(check, [
        (gl.SwizzledSharedLayout(8, 1, 4, [1, 0], [[0, 1]]),
         gl.SwizzledSharedLayout(8, 1, 4, [0, 1], [[1, 0]])),
        (gl.NVMMASharedLayout(128, 16, 2, cga_layout=[[1, 0]]),
         gl.NVMMASharedLayout(128, 16, 2, True, cga_layout=[[0, 1]])),
        (gl.PaddedSharedLayout([[64, 8]], rows, [[0, 1]], [64, 128]),
         gl.PaddedSharedLayout([[64, 8]], columns, [[1, 0]], [128, 64])),
    ])  # fmt: skip


@gluon.jit
def large(out, layout: gl.constexpr):
    gl.store(out, gl.sum(gl.full([1 << 15], 1, gl.int32, layout), 0))


def test_a_program_of_several_blocks_has_elements_for_each() -> None:
    def compiled(blocks: int) -> None:
        layout = B([4], [32], [1], [0], [[1]] if blocks == 2 else [])
        large.warmup(gl.int32, layout, grid=(1,), target=TARGET, num_warps=1, num_ctas=blocks)

    compiled(2)
    with pytest.raises(proton.OutOfResources, match="a thread takes 512"):
        compiled(1)


def test_mistakes_of_descriptors_are_assertions_too() -> None:
    memory = np.zeros((64, 64), np.float16)
    layout = gl.NVMMASharedLayout(128, 16, rank=2)
    with pytest.raises(AssertionError, match="Expected block_shape"):
        TensorDescriptor.from_tensor(memory, [64, 32], layout)
    with pytest.raises(proton.LaunchError, match="strides must be multiples of 16 bytes"):
        TensorDescriptor(memory, [64, 60], [60, 1], [64, 64], layout)
