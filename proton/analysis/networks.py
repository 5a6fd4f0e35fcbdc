"""Networks: reductions along single bits of an index, one after the other, as sorts have them.

A reshape gives a bit of the row-major index an axis of its own, and a reduction along that combines
elements that lie a power of two apart. A thread combines its own registers; lanes shuffle; warps
exchange through shared memory. So the bits that most reductions go along belong in registers, then
in lanes:

    sort of 512 elements by one warp        shuffles of each register
    registers 5 to 8, lanes 0 to 4          9 + 8 + 7 + 6 + 5 = 35
    registers 0 to 3, lanes 4 to 8          5 + 4 + 3 + 2 + 1 = 15
"""

from dataclasses import dataclass, field
from math import prod

from proton.analysis.scratch import axis_of
from proton.dialect import isa, tt, ttg
from proton.dialect.diagnostics import shape_of
from proton.dialect.mlir import Operation, Value
from proton.dialect.traits import Elementwise, has
from proton.dialect.ttg import is_tensor
from proton.layout import LinearLayout, shapes
from proton.layout.linear import Basis, log2

# Instructions for each register: a shuffle; a store to shared memory, a load and a barrier; these
# with their addresses. Networks that save 7 and 10 took 1.13 and 1.04 of the time with another
# layout, of 22 and more 0.97 and 0.92 (H200, dc0274b5: topk of 2048, sorts of 512, 2048, 4096).
_SHUFFLE, _EXCHANGE, _CONVERSION = 1, 3, 6
_KEEPS_INDEX = ttg.ConvertLayoutOp, tt.ReshapeOp, tt.ExpandDimsOp, tt.BroadcastOp


@dataclass
class Network:
    """What is computed from a value of `count` elements: `along[bit]` reductions go along a bit of
    its index."""

    count: int
    along: list[int] = field(init=False)
    values: set[Value] = field(default_factory=set)

    @classmethod
    def behind(cls, value: Value) -> "Network":
        """The network that a value goes through."""
        found, ops, work = cls(prod(shape_of(value))), set[Operation](), [value]
        while work:
            source = work.pop()
            for use in source.uses:
                op = use.owner.operation
                if op in ops or not (has(op, Elementwise) or isa(op, tt.ReduceOp, *_KEEPS_INDEX)):
                    continue
                ops.add(op)
                if isa(op, tt.ReduceOp):
                    found._count(op)
                new = [r for r in op.results if is_tensor(r.type) and r not in found.values]
                work += [result for result in new if prod(shape_of(result)) <= found.count]
                found.values.update(r for r in new if prod(shape_of(r)) == found.count)
        return found

    def __post_init__(self) -> None:
        self.along = [0] * log2(self.count)

    def _count(self, reduction: Operation) -> None:
        shape, axis = shape_of(reduction.operands[0]), axis_of(reduction)
        if prod(shape) == self.count:
            first = log2(prod(shape[axis + 1 :]))
            for bit in range(first, first + log2(shape[axis])):
                self.along[bit] += 1

    def layout(self, current: LinearLayout) -> LinearLayout | None:
        """The layout in which fewest data is exchanged, of the shape of `current`, where that is
        worth it to convert from that layout and back to it."""
        shape = tuple(size for _, size in current.outs)
        flat = shapes.reshape(current, (self.count,))
        if sum(map(flat.in_bits, flat.in_names)) != len(self.along):
            return None  # threads hold copies
        bits = sorted(range(len(self.along)), key=lambda bit: (-self.along[bit], bit))
        ins: dict[str, list[Basis]] = {}
        for name in flat.in_names:  # registers first
            count = flat.in_bits(name)
            ins[name] = [(1 << bit,) for bit in sorted(bits[:count])]
            bits = bits[count:]
        found = LinearLayout.of(ins, dict(flat.outs))
        saved = self._cost(flat) - self._cost(found)
        return shapes.reshape(found, shape) if saved > 2 * _CONVERSION else None

    def _cost(self, flat: LinearLayout) -> int:
        """The instructions of all exchanges, for each register."""
        costs = {"lane": _SHUFFLE, "warp": _EXCHANGE}
        return sum(
            cost * count
            for name, cost in costs.items()
            for bit, count in enumerate(self.along)
            if any(basis[0] >> bit & 1 for basis in flat.bases(name))
        )
