"""Products of operands with scales: what the language makes of them, in the place of the op that
text has."""

from proton.base.errors import LocatedError
from proton.dialect.mlir import Module, Value, ir
from proton.dialect.walk import functions, ops_named, replace, source_span
from proton.frontend.arguments import scalar_type
from proton.frontend.module import emit_op
from proton.language import core
from proton.language import types as ty
from proton.language.value import tensor


def expand_scaled_products(module: Module) -> None:
    """Puts ops on tiles in the place of each `tt.dot_scaled`. Raises CompilationError with the
    op's place for shapes and types that `tl.dot_scaled` does not take."""
    for function in functions(module):
        for op in ops_named(function, "tt.dot_scaled"):
            view = op.opview
            left, right = _block(view.a), _block(view.b)
            scales = [None if of is None else _block(of) for of in (view.a_scale, view.b_scale)]
            acc = _block(view.acc)
            given = [left, scales[0], view.lhs.value, right, scales[1], view.rhs.value, acc]
            try:
                with ir.InsertionPoint(op):
                    made = emit_op(
                        core.dot_scaled,
                        given,
                        op.location,
                        lhs_k_pack=bool(view.lhs_k_pack.value),
                        rhs_k_pack=bool(view.rhs_k_pack.value),
                        out_dtype=acc.dtype,
                    )
            except LocatedError as problem:
                problem.span, problem.trace = source_span(op.location), ()
                raise
            replace(op, [made.handle])


def _block(value: Value) -> tensor:
    """A value as the language has it. Text has no signs: bytes are two numbers, or a scale."""
    element = scalar_type(value.type.element_type)
    assert element is not None, "tensors of text are of numbers"
    if element == ty.int8:
        element = ty.uint8
    return tensor(value, ty.block_type(element, tuple(value.type.shape)))
