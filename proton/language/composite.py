"""The types of what is no tensor: tuples, constants, slices. Signatures and type strings name them;
values of a kernel that have them are Python's own."""

from collections.abc import Iterator, Sequence
from typing import Any

from proton.language import types as ty


class _Composite(ty.dtype):
    """A type without bits; two are equal where their names are."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind, self.primitive_bitwidth = name, kind, 0

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.name == self.name

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def mangle(self) -> str:
        return self.name


class tuple_type(_Composite):
    """A tuple of values of `types`; `fields` are the names of a named tuple's."""

    def __init__(
        self, types: Sequence[ty.dtype | None], fields: Sequence[str] | None = None
    ) -> None:
        self.types, self.fields = tuple(types), None if fields is None else tuple(fields)
        named = zip(self.fields or [""] * len(self.types), self.types, strict=True)
        parts = [f"{field}:{type_!s}" if field else str(type_) for field, type_ in named]
        super().__init__(f"[{','.join(parts)}]", "tuple")

    def __iter__(self) -> Iterator[ty.dtype | None]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, index: Any) -> Any:
        return self.types[index]


class constexpr_type(_Composite):
    """A value that is known while compiling."""

    def __init__(self, value: Any) -> None:
        self.value = ty.unwrap(value)
        super().__init__(f"constexpr_type[{self.value!r}]", "constexpr")


class slice_type(_Composite):
    """A slice."""

    def __init__(self) -> None:
        super().__init__("slice_type", "slice")


def str_to_ty(name: Any, c: Any = None) -> ty.dtype:
    """The type that a signature names: "*fp16", "i32", "constexpr" (of the value `c`), or a tuple
    of such names."""
    if isinstance(name, tuple):
        values = c if isinstance(c, tuple) else (c,) * len(name)
        types = [str_to_ty(*pair) for pair in zip(name, values, strict=True)]
        return tuple_type(types, getattr(type(name), "_fields", None))
    return constexpr_type(c) if name == "constexpr" else ty.str_to_ty(name)
