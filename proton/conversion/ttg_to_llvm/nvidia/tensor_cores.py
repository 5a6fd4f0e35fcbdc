"""Products on tensor cores: which registers and which bytes of memory each instruction takes."""

from proton.analysis.scratch import stored_bytes
from proton.base.chips.chip import MatrixInstruction, MMAKind
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, llvm_type
from proton.conversion.ttg_to_llvm.nvidia import mma
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import isa, ttng
from proton.dialect.emit import is_zeros
from proton.dialect.mlir import Type, Value, ir, llvm
from proton.dialect.ttg import is_mem_desc, layout_of, mem_desc_block, mem_desc_view
from proton.layout.encodings import REGISTER_BITS
from proton.layout.linear import log2
from proton.layout.matrix_memory import UNIT, MatrixMemory
from proton.layout.shared_view import matrix_of
from proton.layout.tensor_cores import (
    GROUP_ROWS,
    GROUP_WARPS,
    WarpGroupTiling,
    group_tiling_of,
    mma_tiling_of,
)

_ACCUMULATOR = 2  # of a product's operands


@lowers(ttng.MmaSyncOp)
def _mma_sync(ctx: Lowering, site: Site) -> list[Value]:
    a, b, acc = site.operands
    type_ = site.result_type
    tiling = mma_tiling_of(layout_of(type_))
    assert tiling is not None, "the pass chose another layout"
    sides = [
        (t.element_type, mma.registers_of(x))
        for t, x in zip(site.operand_types[:2], (a, b), strict=True)
    ]
    if tiling.is_swapped:
        sides.reverse()
    elements, registers = zip(*sides, strict=True)
    types = mma.Types.of(type_.element_type, *elements)
    instruction = ctx.chip.mma_of(MMAKind.WARP, elements[0])
    assert instruction is not None, "as the pass chose it"
    k_steps = max(1, int(site.operand_types[0].shape[-1]) // types.k)
    of_each = [_parts(words, tiling.batches) for words in (*registers, mma.accumulator_words(acc))]
    sums = [
        word
        for left, right, total in zip(*of_each, strict=True)
        for word in _matrix_product(types, instruction, k_steps, (left, right), total)
    ]
    return [mma.from_accumulator_words(sums, acc.type)]


def _parts(words: list[Value], count: int) -> list[list[Value]]:
    """So many parts of equal length."""
    size = len(words) // count
    return [words[n : n + size] for n in range(0, len(words), size)]


def _matrix_product(
    types: mma.Types,
    instruction: MatrixInstruction,
    k_steps: int,
    sides: tuple[list[Value], list[Value]],
    total: list[Value],
) -> list[Value]:
    """One dot of a warp, of which `total` are the sums so far."""
    # Of each step the registers of one tile after the other: tiles of a lie down, then along k.
    left, right = (
        [tuple(words[n : n + size]) for n in range(0, len(words), size)]
        for size, words in zip(types.registers, sides, strict=True)
    )
    down, across = len(left) // k_steps, len(right) // k_steps
    tiles = _parts(total, down * across)
    # K is outermost: of operands in shared memory registers hold what an instruction takes along k.
    at_once = max(1, instruction.inner_bytes // mma.STEP_BYTES)
    for first in range(0, k_steps, at_once):
        ks = range(first, min(first + at_once, k_steps))
        for column in range(across):
            for row in range(down):
                steps = [(left[k * down + row], right[column * k_steps + k]) for k in ks]
                place = column * down + row
                tiles[place] = mma.mma_chain(types, instruction, steps, tiles[place])
    return [word for tile in tiles for word in tile]


# Warp groups


class _Memory:
    """An operand in shared memory: the low words of its descriptors, from the group's first one."""

    def __init__(
        self, ctx: Lowering, base: Value, type_: Type, tiling: WarpGroupTiling, axis: int
    ) -> None:
        element, view = mem_desc_block(type_)[1], mem_desc_view(type_)
        size = stored_bytes(element)
        found = matrix_of(view, size, tiling.read(axis, 8 * size))
        assert found is not None, "as the pass chose it"
        self.memory: MatrixMemory = found
        self.axis = axis  # the dimension that is not summed over
        self.bits = found.descriptor(1 - axis)
        self.is_transposed = found.order[0] == axis
        address = nvidia.shared_address(base)
        if view.start:
            address = v.add(address, v.i32(view.start * stored_bytes(element)))
        own = ctx.threads.warp_bits((0,) * log2(GROUP_WARPS) + self._group_bases(tiling))
        start = v.binary(llvm.LShrOp, v.add(address, own) if own else address, v.i32(log2(UNIT)))
        self.low = v.binary(llvm.OrOp, start, v.i32(_signed(self.bits & 0xFFFFFFFF)))
        self.high = v.i32(_signed(self.bits >> 32))

    def _group_bases(self, tiling: WarpGroupTiling) -> tuple[int, ...]:
        """What each bit of a warp group's number adds to the address, in bytes. Groups beyond the
        tensor's end hold copies."""
        step, size = GROUP_ROWS if self.axis == 0 else tiling.n, tiling.shape[self.axis]
        bases = []
        for axis, groups in enumerate(tiling.groups):
            for place in (step << bit for bit in range(log2(groups))):
                is_own = axis == self.axis and place < size
                bases.append(self._offset(place, 0) if is_own else 0)
        return tuple(bases)

    def _offset(self, place: int, k: int) -> int:
        index = (place, k) if self.axis == 0 else (k, place)
        return self.memory.offset(*index)

    def at(self, place: int, k: int) -> Value:
        """The descriptor of a tile, i64."""
        offset = self._offset(place, k) // UNIT
        low = v.add(self.low, v.i32(offset)) if offset else self.low
        pair = v.from_elements([low, self.high])
        return v.bitcast(pair, v.integer(64))


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


@lowers(ttng.WarpGroupDotOp)
def _warp_group_dot(ctx: Lowering, site: Site) -> list[Value]:
    a, b, acc, *adds = site.operands
    type_ = site.result_type
    shape = tuple(type_.shape)
    left_type, right_type, *_ = site.operand_types
    (k, _), element = mem_desc_block(right_type)
    instruction = ctx.chip.mma_of(MMAKind.WARP_GROUP, element)
    assert instruction is not None, "as the pass chose it"
    tiling = group_tiling_of(layout_of(type_), instruction.columns)
    assert tiling is not None, "the pass chose another layout"
    types = mma.Types.of(type_.element_type, _element(left_type), element)
    right = _Memory(ctx, b, right_type, tiling, 1)
    left = _Memory(ctx, a, left_type, tiling, 0) if is_mem_desc(left_type) else None
    words = [] if left else v.to_elements(v.to_words(a))
    total = mma.accumulator_words(acc)
    size = len(total) // len(tiling.tiles)
    down = max(1, shape[0] // (GROUP_ROWS * tiling.groups[0]))
    transposed = bool(left and left.is_transposed), right.is_transposed
    start: Value | bool = adds[0] if adds else not is_zeros(site.op.operands[2])
    at_most = site.number("imprecise")
    mma.wgmma_fence()
    sums: list[Value] = []
    for number, (row, column) in enumerate(tiling.tiles):
        steps = []
        for step in range(k // types.k):
            if left is not None:
                side: tuple[Value, ...] = (left.at(row, step * types.k),)
            else:
                place = (step * down + number % down) * types.registers[0]
                side = tuple(words[place : place + types.registers[0]])
            steps.append(mma.Step(side, right.at(column, step * types.k)))
        tile = total[number * size : (number + 1) * size]
        if 0 < at_most <= k and isinstance(type_.element_type, ir.F32Type):
            sums += _exact_sums(types, tiling.n, steps, transposed, tile, start, at_most)
        else:
            sums += mma.wgmma(types, tiling.n, steps, transposed, tile, start)
    mma.wgmma_commit()
    return [mma.from_accumulator_words(sums, acc.type)]


def _exact_sums(
    types: mma.Types,
    n: int,
    steps: list[mma.Step],
    transposed: tuple[bool, bool],
    total: list[Value],
    start: Value | bool,
    at_most: int,
) -> list[Value]:
    """Sums of `at_most` products at a time, or of an instruction's, added up in fp32: to `total`,
    where `start` says so, which is zeros where that is known to be false."""
    at_once = max(1, at_most // types.k)
    if not isinstance(start, bool):
        zero = v.constant(0, total[0].type)
        total = [v.select(start, old, zero) for old in total]
    for first in range(0, len(steps), at_once):
        part = mma.wgmma(types, n, steps[first : first + at_once], transposed, total, False)
        mma.wgmma_commit()
        part = mma.wgmma_wait(part, 0)
        total = [v.binary(llvm.FAddOp, old, new) for old, new in zip(total, part, strict=True)]
        if first + at_once < len(steps):
            mma.wgmma_fence()
    return total


def _element(type_: Type) -> Type:
    return mem_desc_block(type_)[1] if is_mem_desc(type_) else type_.element_type


@lowers(ttng.WarpGroupDotWaitOp)
def _warp_group_dot_wait(ctx: Lowering, site: Site) -> list[Value]:
    (value,) = site.operands
    if _is_only_added_to(site.op.results[0]):
        mma.wgmma_wait([], site.number("pendings"))
        return [value]
    words = mma.wgmma_wait(mma.accumulator_words(value), site.number("pendings"))
    return [mma.from_accumulator_words(words, value.type)]


def _is_only_added_to(sums: Value) -> bool:
    """True if the instructions of one product take sums as they are, which stand behind a wait by
    their order: LLVM has 128 registers less to follow."""
    uses = [(use.owner.operation, use.operand_number) for use in sums.uses]
    if len(uses) != 1 or sums.type.element_type.width != REGISTER_BITS:
        return False
    [(op, number)] = uses
    is_sum = isa(op, ttng.WarpGroupDotOp) and number == _ACCUMULATOR
    return is_sum and not ir.IntegerAttr(op.attributes["imprecise"]).value


@lowers(ttng.ZerosOp)
def _zeros(ctx: Lowering, site: Site) -> list[Value]:
    zero = nvidia.assembly("mov.b32 $0, 0;", "=r", v.integer(32))
    type_ = llvm_type(site.result_type)
    words = v.count_of_type(type_) * v.bits_of(type_.element_type) // 32
    return [v.from_words(v.splat(zero, words), type_)]


@lowers(ttng.FenceAsyncSharedOp)
def _fence_async_shared(ctx: Lowering, site: Site) -> list[Value]:
    nvidia.fence_async_shared()
    return []
