"""The dialects of MLIR's own that are used: a name is a module of ops."""

from proton.dialect.mlir import arith as arith
from proton.dialect.mlir import bufferization as bufferization
from proton.dialect.mlir import builtin as builtin
from proton.dialect.mlir import func as func
from proton.dialect.mlir import gpu as gpu
from proton.dialect.mlir import linalg as linalg
from proton.dialect.mlir import llvm as llvm
from proton.dialect.mlir import math as math
from proton.dialect.mlir import memref as memref
from proton.dialect.mlir import nvvm as nvvm
from proton.dialect.mlir import scf as scf
from proton.dialect.mlir import tensor as tensor
from proton.dialect.mlir import ub as ub
from proton.dialect.mlir import vector as vector
