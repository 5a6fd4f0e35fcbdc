"""Numbers of narrow formats, and products of operands with scales: what the language makes of them,
in the place of the ops that text has."""

from proton.base.errors import LocatedError
from proton.dialect.mlir import Module, Operation, Value, ir
from proton.dialect.walk import functions, ops_named, replace, source_span
from proton.frontend.arguments import scalar_type
from proton.frontend.module import emitted
from proton.language import core, scaled
from proton.language import types as ty
from proton.language.value import tensor


def expand_scaled_products(module: Module) -> None:
    """Puts ops on tiles in the place of each `tt.dot_scaled` and `tt.fp4_to_fp`. Raises
    CompilationError with the op's place for shapes and types that `tl.dot_scaled` does not take."""
    for function in functions(module):
        for name, made_of in (("tt.dot_scaled", _product), ("tt.fp4_to_fp", _numbers)):
            for op in ops_named(function, name):
                try:
                    with ir.InsertionPoint(op):
                        made = made_of(op)
                except LocatedError as problem:
                    problem.span, problem.trace = source_span(op.location), ()
                    raise
                replace(op, [made.handle])


def _product(op: Operation) -> tensor:
    view = op.opview
    left, right, acc = _block(view.a), _block(view.b), _block(view.acc)
    scales = [None if of is None else _block(of) for of in (view.a_scale, view.b_scale)]
    made: tensor = emitted(
        core.dot_scaled,
        [left, scales[0], view.lhs.value, right, scales[1], view.rhs.value, acc],
        op.location,
        lhs_k_pack=bool(view.lhs_k_pack.value),
        rhs_k_pack=bool(view.rhs_k_pack.value),
        out_dtype=acc.dtype,
    )
    return made


def _numbers(op: Operation) -> tensor:
    view = op.opview
    source, element = _block(view.src), scalar_type(view.result.type.element_type)
    axis = view.axis.value - len(source.shape)
    made: tensor = emitted(scaled.from_packed_e2m1, [source, axis, element], op.location)
    return made


def _block(value: Value) -> tensor:
    """A value as the language has it. Text has no signs: bytes are two numbers, or a scale."""
    element = scalar_type(value.type.element_type)
    assert element is not None, "tensors of text are of numbers"
    if element == ty.int8:
        element = ty.uint8
    return tensor(value, ty.block_type(element, tuple(value.type.shape)))
