"""Dialects of MLIR's own, as far as their Python modules go: a name is the class of an op."""

import enum
from collections.abc import Sequence

from proton.dialect.bindings.ir import Attribute, Block, Location, Operation, OpView, Type

class CmpIPredicate(enum.IntEnum):
    eq = 0
    ne = 1
    slt = 2
    sle = 3
    sgt = 4
    sge = 5
    ult = 6
    ule = 7
    ugt = 8
    uge = 9

class CmpFPredicate(enum.IntEnum):
    AlwaysFalse = 0
    OEQ = 1
    OGT = 2
    OGE = 3
    OLT = 4
    OLE = 5
    ONE = 6
    ORD = 7
    UEQ = 8
    UGT = 9
    UGE = 10
    ULT = 11
    ULE = 12
    UNE = 13
    UNO = 14
    AlwaysTrue = 15

class _Dialect:
    def __getattr__(self, name: str) -> type[OpView]: ...

class _Arith(_Dialect):
    CmpIPredicate: type[CmpIPredicate]
    CmpFPredicate: type[CmpFPredicate]

class FuncOp(OpView):
    arg_attrs: Sequence[Attribute]
    entry_block: Block
    def add_entry_block(self, arg_locs: Sequence[Location] | None = None) -> Block: ...

class _Func(_Dialect):
    FuncOp: type[FuncOp]

class _PointerType(Type):
    @staticmethod
    def get(address_space: int | None = None) -> _PointerType: ...

class _StructType(Type):
    @staticmethod
    def get_literal(elements: Sequence[Type], *, packed: bool = False) -> _StructType: ...

class _LLVM(_Dialect):
    PointerType: type[_PointerType]
    StructType: type[_StructType]
    def translate_module_to_llvmir(self, module: Operation) -> object: ...

arith: _Arith
llvm: _LLVM
func: _Func
bufferization: _Dialect
builtin: _Dialect
gpu: _Dialect
linalg: _Dialect
math: _Dialect
memref: _Dialect
nvvm: _Dialect
scf: _Dialect
tensor: _Dialect
ub: _Dialect
vector: _Dialect
