"""`mlir.dialects.ext`: dialects that are defined in Python.

The fields of an op's class are its operands, results and attributes: `src: Operand[AnyType]` is a
value where an op has it.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

from proton.dialect.bindings import ir

_T = TypeVar("_T")

class _Field(Generic[_T]):
    def __get__(self, op: object, of: type) -> ir.Value: ...
    def __set__(self, op: object, value: ir.Value) -> None: ...

class Operand(_Field[_T], ir.Value): ...
class Result(_Field[_T], ir.Value): ...

Region = ir.Region

class FieldDef:
    name: str

class OperandDef(FieldDef): ...

class ResultDef(FieldDef):
    def process_type(self, type_: object) -> object: ...

class AttributeDef(FieldDef):
    default_factory: Callable[[], ir.Attribute] | None
    process_attr: ClassVar[Callable[..., object]]

def partition_fields(
    fields: Sequence[FieldDef],
) -> tuple[list[OperandDef], list[AttributeDef], list[ResultDef], list[FieldDef]]: ...

class Operation(ir.OpView):
    _generate_init_method: ClassVar[Any]

class _Globals:
    def append_dialect_search_prefix(self, prefix: str) -> None: ...

class _Extension:
    globals: _Globals

_cext: _Extension

class Dialect:
    DIALECT_NAMESPACE: ClassVar[str]
    operations: ClassVar[Sequence[type[Operation]]]
    def __init_subclass__(cls, *, name: str) -> None: ...

    class Operation(ir.OpView):
        _fields: ClassVar[Sequence[FieldDef]]
        def __init_subclass__(cls, *, name: str = ..., traits: Sequence[object] = ...) -> None: ...

    class Type(ir.Type):  # its fields are its parameters
        def __init_subclass__(cls, *, name: str = ...) -> None: ...
        @classmethod
        def get(cls, *parameters: ir.Attribute | ir.Type) -> Self: ...

    class Attribute(ir.Attribute):  # as a type
        def __init_subclass__(cls, *, name: str = ...) -> None: ...
        @classmethod
        def get(cls, *parameters: ir.Attribute | ir.Type) -> Self: ...

    @classmethod
    def load(cls, *, reload: bool = False) -> None: ...

def operand(*, kw_only: bool = ...) -> Any: ...
def result(*, kw_only: bool = ..., default_factory: Callable[[], ir.Type] | None = ...) -> Any: ...
def infer_result() -> Any: ...
def attribute(
    *, kw_only: bool = ..., default_factory: Callable[[], ir.Attribute] | None = ...
) -> Any: ...
