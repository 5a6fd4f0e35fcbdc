"""Types and attributes of MLIR's own, in a word each."""

from collections.abc import Iterable

from proton.dialect.mlir import Attribute, Operation, Type, Value, ir, llvm


def integer(bits: int) -> Type:
    """The signless integer type of so many bits."""
    return ir.IntegerType.get_signless(bits)


def bits_of(type_: Type) -> int:
    """The width of an integer; of `index` that of addresses, on all that there is code for."""
    return 64 if isinstance(type_, ir.IndexType) else int(type_.width)


def with_element(type_: Type, element: Type) -> Type:
    """A tensor or vector type with other elements; of a scalar type the element's."""
    if isinstance(type_, ir.RankedTensorType):
        return ir.RankedTensorType.get(type_.shape, element, encoding=type_.encoding)
    return ir.VectorType.get(type_.shape, element) if isinstance(type_, ir.VectorType) else element


def is_pointer(type_: Type) -> bool:
    """True for an address, whatever space it is in."""
    return isinstance(type_, llvm.PointerType)  # its text takes a hundred times as long


def segments_of(op: Operation) -> list[int]:
    """How many operands stand for each named operand of an op: 0 or 1 for an optional one."""
    return list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))


def optional_operand(op: Operation, place: int) -> Value | None:
    """The named operand of a place; None where it is an optional one that is not there."""
    segments = segments_of(op)
    return op.operands[sum(segments[:place])] if segments[place] else None


def i32_attr(value: int) -> Attribute:
    """An i32 attribute."""
    return ir.IntegerAttr.get(integer(32), value)


def i64_attr(value: int) -> Attribute:
    """An i64 attribute."""
    return ir.IntegerAttr.get(integer(64), value)


def string_attr(value: str | bytes) -> Attribute:
    """A string, or bytes, as an attribute."""
    return ir.StringAttr.get(value)


def strings_attr(values: Iterable[str]) -> Attribute:
    """A list of strings as an attribute."""
    return ir.ArrayAttr.get([string_attr(value) for value in values])
