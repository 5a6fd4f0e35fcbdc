"""One element of a vector, computed as a scalar from its beginning.

An access wants a few of the addresses that a vector of pointers holds. As an element of a vector
its distance to the others is lost on LLVM, which looks for constants in scalar addresses only
(SeparateConstOffsetFromGEP): each access would keep a 64-bit address of its own. Here the
arithmetic behind an element is repeated on scalars; what nobody uses then, LLVM drops.
"""

from typing import Any

from proton.conversion.ttg_to_llvm import values as v
from proton.dialect.mlir import Operation, Value, ir
from proton.dialect.traits import AddressArithmetic, has
from proton.dialect.walk import defining_op, producer_of


class Scalars:
    """Elements of vectors, each made once, right behind the vector's own op."""

    def __init__(self) -> None:
        self.made: dict[tuple[Any, int], Any] = {}

    def element(self, value: Value, index: int) -> Value:
        """Element `index` of a vector; a scalar is its own."""
        if not v.is_vector(value.type):
            return value
        key = value, index
        if key not in self.made:
            op = defining_op(value)
            if op is None:
                return v.extract(value, index)
            with ir.InsertionPoint.after(op), op.location:
                self.made[key] = self._make(op, value, index)
        return self.made[key]

    def _make(self, op: Operation, value: Value, index: int) -> Value:
        if op.name == "llvm.shufflevector":
            return self._picked(op, index)
        if op.name in ("llvm.mlir.constant", "arith.constant"):
            return self._constant(op, value, index)
        if op.name == "llvm.getelementptr" and len(op.operands) == 2:
            base, offset = (self.element(operand, index) for operand in op.operands)
            type_ = ir.TypeAttr(op.attributes["elem_type"]).value
            return v.offset_pointer(base, offset, type_)
        if has(op, AddressArithmetic):
            operands = [self.element(operand, index) for operand in op.operands]
            attributes = {name: op.attributes[name] for name in op.attributes}
            return v.create(op.name, v.element(value), *operands, **attributes)
        return v.extract(value, index)

    def _picked(self, op: Operation, index: int) -> Value:
        """What a shuffle takes an element from; a splat is a shuffle of one insertion."""
        pick = ir.DenseI32ArrayAttr(op.attributes["mask"])[index]
        count = v.count_of(op.operands[0])
        source, pick = op.operands[pick // count], pick % count
        inserted = defining_op(source)
        if inserted is not None and inserted.name == "llvm.insertelement":
            place = producer_of(inserted.operands[2])
            if ir.IntegerAttr(place.attributes["value"]).value == pick:
                return inserted.operands[1]
        return self.element(source, pick)

    def _constant(self, op: Operation, value: Value, index: int) -> Value:
        attribute = op.attributes["value"]
        if not isinstance(attribute, ir.DenseElementsAttr) or not isinstance(
            v.element(value), ir.IntegerType
        ):
            return v.extract(value, index)
        dense = ir.DenseIntElementsAttr(attribute)
        return v.constant(dense[index], v.element(value))
