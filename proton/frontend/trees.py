"""Values that are made of values: tuples, named tuples, aggregates.

Control flow and calls carry the tensors in them one by one, in order, and put others in their
place. What is no such value is a leaf: a tensor, or what is known while compiling.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from proton.language.aggregate import Aggregate, closed, is_open, opened
from proton.language.types import unwrap
from proton.language.value import tensor


def parts_of(value: object) -> tuple[object, ...] | None:
    """What a value is made of; None of a leaf."""
    if isinstance(value, tuple | list):
        return tuple(value)
    if isinstance(value, Aggregate) and not is_open(value):
        return tuple(map(unwrap, value.__dict__.values()))  # constexprs, if the host made it
    return None


def with_parts(value: object, parts: Iterable[object]) -> object:
    """A value of the same form, made of other parts."""
    if isinstance(value, Aggregate):
        made = opened(type(value))
        made.__dict__.update(zip(value.fields, parts, strict=True))
        return closed(made)
    if hasattr(value, "_make"):
        return value._make(parts)
    return list(parts) if isinstance(value, list) else tuple(parts)


def same_form(left: object, right: object) -> bool:
    """True if both values have parts, of which one may take the other's."""
    parts = parts_of(left), parts_of(right)
    if parts[0] is None or parts[1] is None:
        return False
    return type(left) is type(right) and len(parts[0]) == len(parts[1])


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of a value, in order."""
    parts = parts_of(value)
    if parts is None:
        yield value
        return
    for part in parts:
        yield from leaves(part)


def with_leaves(value: object, new: Iterator[object]) -> object:
    """A value of the same form, with other leaves."""
    parts = parts_of(value)
    if parts is None:
        return next(new)
    return with_parts(value, [with_leaves(part, new) for part in parts])


def tensors(value: object) -> Iterator[tensor]:
    """The tensors in a value, in order."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, tensor))


def with_handles(value: object, handles: Iterator[object]) -> Any:
    """The value with other SSA values in its tensors, in order."""
    new = (
        tensor(next(handles), leaf.type) if isinstance(leaf, tensor) else leaf
        for leaf in leaves(value)
    )
    return with_leaves(value, new)
