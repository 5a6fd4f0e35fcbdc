"""`mlir.ir`: what IR is made of."""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, Self, TypeVar, overload

_T = TypeVar("_T", covariant=True)
_D = TypeVar("_D")

class MLIRError(Exception):
    error_diagnostics: Sequence[Diagnostic]

class WalkOrder(enum.Enum):
    PRE_ORDER = 0
    POST_ORDER = 1

class WalkResult(enum.Enum):
    ADVANCE = 0
    INTERRUPT = 1
    SKIP = 2

class _Entered:
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

class Context(_Entered):
    allow_unregistered_dialects: bool
    emit_error_diagnostics: bool
    def enable_multithreading(self, enable: bool) -> None: ...
    def attach_diagnostic_handler(
        self, callback: Callable[[Diagnostic], bool]
    ) -> DiagnosticHandler: ...

class DiagnosticHandler(_Entered):
    def detach(self) -> None: ...

class DiagnosticSeverity(enum.Enum):
    ERROR = 0
    WARNING = 1
    NOTE = 2
    REMARK = 3

class Diagnostic:
    severity: DiagnosticSeverity
    location: Location
    message: str
    notes: Sequence[Diagnostic]

# Locations

class Location(_Entered):
    current: Location
    context: Context
    attr: Attribute
    @staticmethod
    def from_attr(attribute: Attribute, context: Context | None = None) -> Location: ...
    @staticmethod
    def unknown(context: Context | None = None) -> Location: ...
    @staticmethod
    def file(
        filename: str,
        line: int,
        col: int,
        end_line: int = ...,
        end_col: int = ...,
        context: Context | None = None,
    ) -> Location: ...
    @staticmethod
    def name(name: str, childLoc: Location | None = None) -> Location: ...
    @staticmethod
    def callsite(callee: Location, frames: Sequence[Location]) -> Location: ...
    @staticmethod
    def fused(locations: Sequence[Location], metadata: Attribute | None = None) -> Location: ...
    def emit_error(self, message: str) -> None: ...

class FileLineColLoc(Location):
    filename: StringAttr
    start_line: int
    start_col: int
    end_line: int
    end_col: int

class NameLoc(Location):
    name_str: str
    child_loc: Location

class CallSiteLoc(Location):
    callee: Location
    caller: Location

class FusedLoc(Location):
    locations: Sequence[Location]

# What has parts: modules, operations, regions, blocks

class OpAttributeMap:
    def __contains__(self, name: str) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str) -> Attribute: ...
    def __setitem__(self, name: str, attribute: Attribute) -> None: ...
    def __delitem__(self, name: str) -> None: ...
    @overload
    def get(self, name: str) -> Attribute | None: ...
    @overload
    def get(self, name: str, default: _D) -> Attribute | _D: ...
    def keys(self) -> list[str]: ...
    def values(self) -> list[Attribute]: ...
    def items(self) -> list[tuple[str, Attribute]]: ...

class _List(Sequence[_T], Generic[_T]):
    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> _List[_T]: ...
    def __len__(self) -> int: ...

class _Operands(_List[Value]):
    def __setitem__(self, index: int, value: Value) -> None: ...

class _Results(_List[Value]):
    types: list[Type]

class _Regions(_List[Region]): ...

class Operation:
    context: Context
    name: str
    attributes: OpAttributeMap
    operands: _Operands
    results: _Results
    @property
    def result(self) -> Value: ...
    regions: _Regions
    successors: Sequence[Block]
    location: Location
    parent: OpView | None  # None for what is in no other one
    @property
    def operation(self) -> Operation: ...
    @property
    def _CAPIPtr(self) -> object: ...  # a capsule with MLIR's pointer to it
    @property
    def opview(self) -> OpView: ...
    def erase(self) -> None: ...
    def detach_from_parent(self) -> OpView: ...
    def move_before(self, other: Operation) -> None: ...
    def move_after(self, other: Operation) -> None: ...
    def is_before_in_block(self, other: Operation) -> bool: ...
    def clone(self, ip: InsertionPoint | None = None) -> OpView: ...
    def verify(self) -> bool: ...
    def walk(
        self, callback: Callable[[Operation], WalkResult], walk_order: WalkOrder = ...
    ) -> None: ...
    @overload
    def get_asm(
        self,
        *,
        binary: Literal[False] = ...,
        enable_debug_info: bool = ...,
        pretty_debug_info: bool = ...,
        print_generic_op_form: bool = ...,
        use_local_scope: bool = ...,
        large_elements_limit: int | None = ...,
        assume_verified: bool = ...,
    ) -> str: ...
    @overload
    def get_asm(
        self,
        *,
        binary: Literal[True],
        assume_verified: bool = ...,
        enable_debug_info: bool = ...,
    ) -> bytes: ...
    def print(self) -> None: ...
    @property
    def block(self) -> Block: ...
    def replace_uses_of_with(self, of: Value, with_: Value) -> None: ...
    @staticmethod
    def create(
        name: str,
        results: Sequence[Type] | None = None,
        operands: Sequence[Value] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        successors: Sequence[Block] | None = None,
        regions: int = 0,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
        infer_type: bool = False,
    ) -> Operation: ...
    @staticmethod
    def parse(source: str, *, source_name: str = "", context: Context | None = None) -> OpView: ...

class OpView(Operation):
    """An operation with names for its parts. It stands wherever an operation is taken, though the
    bindings have it beside `Operation`; `block` alone it has not."""

    OPERATION_NAME: str
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    # Operands, results and attributes by the names that the op's class gives them.
    def __getattr__(self, name: str) -> Any: ...

class Module:
    context: Context
    body: Block
    operation: Operation
    @staticmethod
    def parse(asm: str | bytes, context: Context | None = None) -> Module: ...
    @staticmethod
    def parseFile(path: str, context: Context | None = None) -> Module: ...
    @staticmethod
    def create(loc: Location | None = None) -> Module: ...

class Region:
    blocks: _Blocks
    owner: OpView
    def __iter__(self) -> Iterator[Block]: ...

class _Blocks:
    def __getitem__(self, index: int) -> Block: ...
    def __iter__(self) -> Iterator[Block]: ...
    def __len__(self) -> int: ...
    def append(self, *types: Type, arg_locs: Sequence[Location] | None = None) -> Block: ...

class _Operations:
    def __getitem__(self, index: int) -> OpView: ...
    def __iter__(self) -> Iterator[OpView]: ...
    def __len__(self) -> int: ...

class Block:
    owner: OpView
    region: Region
    arguments: _List[Value]
    operations: _Operations
    successors: Sequence[Block]
    predecessors: Sequence[Block]
    @staticmethod
    def create_at_start(
        parent: Region, arg_types: Sequence[Type] = ..., arg_locs: Sequence[Location] | None = None
    ) -> Block: ...
    def __iter__(self) -> Iterator[OpView]: ...
    def add_argument(self, type: Type, loc: Location) -> Value: ...
    def erase_argument(self, index: int) -> None: ...
    def append(self, operation: Operation) -> None: ...
    def append_to(self, region: Region) -> None: ...
    def create_before(
        self, *arg_types: Type, arg_locs: Sequence[Location] | None = None
    ) -> Block: ...
    def create_after(
        self, *arg_types: Type, arg_locs: Sequence[Location] | None = None
    ) -> Block: ...

class InsertionPoint(_Entered):
    current: InsertionPoint
    block: Block
    ref_operation: Operation | None
    def __init__(self, at: Block | Operation) -> None: ...
    @staticmethod
    def at_block_begin(block: Block) -> InsertionPoint: ...
    @staticmethod
    def at_block_terminator(block: Block) -> InsertionPoint: ...
    @staticmethod
    def after(operation: Operation) -> InsertionPoint: ...
    def insert(self, operation: Operation) -> None: ...

# Values

class OpOperand:
    owner: OpView
    operand_number: int

class Value:
    context: Context
    def __init__(self, value: Value) -> None: ...
    location: Location
    @property
    def owner(self) -> OpView | Block: ...  # of a block argument its block
    @property
    def type(self) -> Type: ...
    @property
    def uses(self) -> Iterator[OpOperand]: ...
    def set_type(self, type: Type) -> None: ...
    def get_name(self, use_local_scope: bool = False) -> str: ...
    def replace_all_uses_with(self, value: Value) -> None: ...
    def replace_all_uses_except(
        self, value: Value, exceptions: Operation | Sequence[Operation]
    ) -> None: ...

class OpResult(Value):
    @property
    def owner(self) -> OpView: ...
    result_number: int

class BlockArgument(Value):
    @property
    def owner(self) -> Block: ...
    arg_number: int
    def set_location(self, loc: Location) -> None: ...

# Types

class Type:
    context: Context
    def __init__(self, cast_from_type: Type) -> None: ...
    @staticmethod
    def parse(asm: str, context: Context | None = None) -> Type: ...
    # What a type of its kind has: `width`, `shape`, `element_type`, `encoding`, ...
    def __getattr__(self, name: str) -> Any: ...

class IndexType(Type):
    @staticmethod
    def get(context: Context | None = None) -> IndexType: ...

class IntegerType(Type):
    width: int
    is_signless: bool
    is_signed: bool
    is_unsigned: bool
    @staticmethod
    def get_signless(width: int, context: Context | None = None) -> IntegerType: ...
    @staticmethod
    def get_signed(width: int, context: Context | None = None) -> IntegerType: ...

class FloatType(Type):
    width: int

class _Float(FloatType):
    @classmethod
    def get(cls, context: Context | None = None) -> Self: ...

class BF16Type(_Float): ...
class F16Type(_Float): ...
class F32Type(_Float): ...
class F64Type(_Float): ...
class Float8E4M3FNType(_Float): ...
class Float8E5M2Type(_Float): ...
class Float8E5M2FNUZType(_Float): ...
class Float8E4M3FNUZType(_Float): ...
class Float8E4M3B11FNUZType(_Float): ...

class FunctionType(Type):
    inputs: list[Type]
    results: list[Type]
    @staticmethod
    def get(
        inputs: Sequence[Type], results: Sequence[Type], context: Context | None = None
    ) -> FunctionType: ...

class ShapedType(Type):
    shape: list[int]
    element_type: Type
    rank: int
    has_rank: bool
    has_static_shape: bool
    def is_dynamic_dim(self, dim: int) -> bool: ...
    def get_dim_size(self, dim: int) -> int: ...
    @staticmethod
    def is_dynamic_size(size: int) -> bool: ...
    @staticmethod
    def get_dynamic_size() -> int: ...
    @staticmethod
    def get_dynamic_stride_or_offset() -> int: ...

class RankedTensorType(ShapedType):
    encoding: Attribute | None
    @staticmethod
    def get(
        shape: Sequence[int],
        element_type: Type,
        encoding: Attribute | None = None,
        loc: Location | None = None,
    ) -> RankedTensorType: ...

class VectorType(ShapedType):
    @staticmethod
    def get(
        shape: Sequence[int],
        element_type: Type,
        *,
        scalable: Sequence[bool] | None = None,
        scalable_dims: Sequence[int] | None = None,
        loc: Location | None = None,
    ) -> VectorType: ...

class MemRefType(ShapedType):
    layout: Attribute
    affine_map: AffineMap
    memory_space: Attribute | None
    @staticmethod
    def get(
        shape: Sequence[int],
        element_type: Type,
        layout: Attribute | None = None,
        memory_space: Attribute | None = None,
        loc: Location | None = None,
    ) -> MemRefType: ...
    def get_strides_and_offset(self) -> tuple[list[int], int]: ...

# Attributes

class Attribute:
    context: Context
    type: Type
    def __init__(self, cast_from_type: Attribute) -> None: ...
    @staticmethod
    def parse(asm: str, context: Context | None = None) -> Attribute: ...
    # What an attribute of its kind has: `value`, fields by name, elements.
    def __getattr__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, at: int) -> Any: ...

class BoolAttr(Attribute):
    value: bool
    @staticmethod
    def get(value: bool) -> BoolAttr: ...

class IntegerAttr(Attribute):
    value: int
    @staticmethod
    def get(type: Type, value: int) -> IntegerAttr: ...

class FloatAttr(Attribute):
    value: float
    @staticmethod
    def get(type: Type, value: float) -> FloatAttr: ...
    @staticmethod
    def get_f32(value: float) -> FloatAttr: ...
    @staticmethod
    def get_f64(value: float) -> FloatAttr: ...

class StringAttr(Attribute):
    value: str
    value_bytes: bytes
    @staticmethod
    def get(value: str | bytes) -> StringAttr: ...

class TypeAttr(Attribute):
    value: Type
    @staticmethod
    def get(value: Type) -> TypeAttr: ...

class UnitAttr(Attribute):
    @staticmethod
    def get() -> UnitAttr: ...

class FlatSymbolRefAttr(Attribute):
    value: str
    @staticmethod
    def get(value: str) -> FlatSymbolRefAttr: ...

class ArrayAttr(Attribute):
    @staticmethod
    def get(attributes: Sequence[Attribute]) -> ArrayAttr: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Attribute]: ...
    def __getitem__(self, index: int) -> Attribute: ...

class NamedAttribute:
    name: str
    attr: Attribute

class DictAttr(Attribute):
    @staticmethod
    def get(value: Mapping[str, Attribute]) -> DictAttr: ...
    def __iter__(self) -> Iterator[NamedAttribute]: ...
    def __contains__(self, name: str) -> bool: ...
    @overload
    def __getitem__(self, at: str) -> Attribute: ...
    @overload
    def __getitem__(self, at: int) -> NamedAttribute: ...

class _DenseArrayAttr(Attribute):
    @classmethod
    def get(cls, values: Sequence[int]) -> Self: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...
    def __getitem__(self, index: int) -> int: ...

class DenseI32ArrayAttr(_DenseArrayAttr): ...
class DenseI64ArrayAttr(_DenseArrayAttr): ...

class DenseElementsAttr(Attribute):
    is_splat: bool
    @staticmethod
    def get(
        values: object,
        signless: bool = ...,
        type: Type | None = None,
        shape: Sequence[int] | None = None,
    ) -> DenseElementsAttr: ...
    @staticmethod
    def get_splat(shaped_type: Type, element: Attribute) -> DenseElementsAttr: ...
    def get_splat_value(self) -> Attribute: ...
    def __len__(self) -> int: ...

class DenseIntElementsAttr(DenseElementsAttr):
    def __getitem__(self, index: int) -> int: ...
    def __iter__(self) -> Iterator[int]: ...

class StridedLayoutAttr(Attribute):
    offset: int
    strides: list[int]
    @staticmethod
    def get(offset: int, strides: Sequence[int]) -> StridedLayoutAttr: ...

class AffineMapAttr(Attribute):
    value: AffineMap
    @staticmethod
    def get(map: AffineMap) -> AffineMapAttr: ...

class AffineExpr: ...

class AffineDimExpr(AffineExpr):
    position: int
    @staticmethod
    def get(position: int) -> AffineDimExpr: ...

class AffineConstantExpr(AffineExpr):
    value: int
    @staticmethod
    def get(value: int) -> AffineConstantExpr: ...

class AffineMap:
    results: Sequence[AffineExpr]
    n_dims: int
    @staticmethod
    def get(dims: int, symbols: int, exprs: Sequence[AffineExpr]) -> AffineMap: ...
    @staticmethod
    def get_identity(dims: int) -> AffineMap: ...
    @staticmethod
    def get_permutation(permutation: Sequence[int]) -> AffineMap: ...
    @staticmethod
    def get_constant(value: int) -> AffineMap: ...

# What is said of ops from Python

class DynamicOpTrait:
    @classmethod
    def attach(cls, op: type[OpView] | str, context: Context | None = None) -> bool: ...

class IsTerminatorTrait(DynamicOpTrait): ...

class MemoryEffectsOpInterface:
    def __init__(self, object: Operation, context: Context | None = None) -> None: ...
    @classmethod
    def attach(cls, op: type[OpView] | str, context: Context | None = None) -> None: ...
