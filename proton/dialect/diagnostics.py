"""How a verifier says no, and the checks that many of them share.

A check returns whether its rule holds, and reports where it does not: verifiers chain them with
`and`.
"""

import functools
from collections.abc import Sequence

from proton.dialect.mlir import Attribute, Operation, Type, Value, ir


def reject(op: Operation, message: str) -> bool:
    """Reports `message` at the op's location and returns False, the verifier's answer."""
    op.operation.location.emit_error(f"'{op.operation.name}' {message}")
    return False


def shape_of(value: Value) -> tuple[int, ...]:
    """The static shape of a value; () for a scalar."""
    return _shape_of_type(value.type)


@functools.cache  # passes ask of each value; types live as long as the one context
def _shape_of_type(type_: Type) -> tuple[int, ...]:
    return tuple(type_.shape) if hasattr(type_, "shape") else ()


def element_of(value: Value) -> Type:
    """The element type of a tensor value, or the type of a scalar."""
    return _element_of_type(value.type)


@functools.cache
def _element_of_type(type_: Type) -> Type:
    return type_.element_type if hasattr(type_, "element_type") else type_


def block_type(shape: tuple[int, ...], element: Type) -> Type:
    """The tensor type; for the shape (), the element type itself."""
    return ir.RankedTensorType.get(shape, element) if shape else element


def check_shape(op: Operation, what: str, value: Value, shape: tuple[int, ...]) -> bool:
    """The value has this shape."""
    return shape_of(value) == shape or reject(
        op, f"{what} must have shape {shape}, got {shape_of(value)}"
    )


def check_element(op: Operation, what: str, value: Value, element: Type) -> bool:
    """The value has this element type."""
    return element_of(value) == element or reject(
        op, f"{what} must be of {element}, got {element_of(value)}"
    )


def check_product(op: Operation, *shapes: tuple[int, ...]) -> bool:
    """Shapes of two sides and an accumulator fit: matrices, or as many of each."""
    a, b, acc = shapes
    fits = len(a) == len(b) and len(a) in (2, 3) and a[:-2] == b[:-2] and a[-1] == b[-2]
    if fits and acc == (*a[:-1], b[-1]):
        return True
    return reject(op, f"shapes must be (M, K), (K, N), (M, N), got {a}, {b}, {acc}")


def check_block(
    op: Operation, what: str, value: Value, shape: tuple[int, ...], element: Type
) -> bool:
    """The value has this shape and element type."""
    return check_shape(op, what, value, shape) and check_element(op, what, value, element)


def check_type(op: Operation, what: str, value: Value, type_: Type) -> bool:
    """The value has this type."""
    return value.type == type_ or reject(op, f"{what} must have type {type_}, got {value.type}")


def check_types(op: Operation, what: str, values: Sequence[Value], types: list[Type]) -> bool:
    """The values have these types, in order."""
    found = [value.type for value in values]
    return found == types or reject(op, f"{what} must be {_listed(types)}, got {_listed(found)}")


def _listed(types: list[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def check_choice(op: Operation, what: str, attribute: Attribute, choices: tuple[str, ...]) -> bool:
    """The string attribute is one of the choices."""
    return attribute.value in choices or reject(
        op, f"{what} must be one of {choices}, got {attribute}"
    )


def is_power_of_two(size: int) -> bool:
    """True if `size` is 1, 2, 4, ..."""
    return size > 0 and size & (size - 1) == 0
