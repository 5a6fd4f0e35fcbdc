"""Calls between device functions: each gets the address of its own shared memory, last, and what
records need where functions that are called record."""

from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, llvm_type, lowers
from proton.dialect.attributes import SHARED_OFFSET
from proton.dialect.mlir import Value, func, ir


@lowers(func.CallOp)
def _call(ctx: Lowering, site: Site) -> list[Value]:
    offset = site.number(SHARED_OFFSET) if SHARED_OFFSET in site.op.attributes else 0
    state = ctx.state if ctx.called_record else ()
    op = ir.Operation.create(
        func.CallOp.OPERATION_NAME,
        results=[llvm_type(result.type) for result in site.op.results],
        operands=[*site.operands, ctx.shared(offset), *state],
        attributes={"callee": site.op.attributes["callee"]},
    )
    return list(op.results)
