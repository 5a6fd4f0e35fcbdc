"""Assembly that an author wrote for a whole thread."""

from proton.dialect import traits as t
from proton.dialect.diagnostics import reject
from proton.dialect.mlir import Operand, Result, ir
from proton.dialect.tt_collective import add_optional
from proton.dialect.tt_elementwise import MAX_ELEMENTWISE
from proton.dialect.ttg_core import TTG, is_mem_desc

PACKED = "packed_element"


class ThreadAssemblyOp(TTG.Operation, name="thread_assembly", traits=[t.Writes, t.Orders]):
    """`ttg.thread_assembly %src0, ... {asm_string, constraints}`: assembly of the target that each
    thread runs once, with all elements that it holds of each tensor, scalars, and memory as its
    address. With an attribute PACKED it runs on so many elements of each tensor at a time, as
    `tt.inline_asm` does."""

    asm_string: ir.StringAttr
    constraints: ir.StringAttr
    add_optional(locals(), MAX_ELEMENTWISE, src=Operand, result=Result)

    @staticmethod
    def verify_invariants(op: "ThreadAssemblyOp") -> bool:
        given = any(is_mem_desc(result.type) for result in op.operation.results)
        return not given or reject(op, "memory is no result of assembly")
