"""Operands of warp-group dots in shared memory."""

from proton.analysis.scratch import stored_bytes
from proton.dialect import ttg
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Value
from proton.layout import LinearLayout
from proton.layout.matrix_memory import matrix_layout


def as_matrix(source: Value, axes: tuple[int, ...], is_transposed: bool) -> Value | None:
    """A matrix in swizzled memory with rows along the first of the dimensions that has room for
    them, viewed transposed or as it is; None where neither has."""
    element = element_of(source)
    for axis in axes:
        layout = matrix_layout(shape_of(source), stored_bytes(element), (axis, 1 - axis))
        if layout is not None:
            type_ = ttg.mem_desc(shape_of(source), element, layout)
            memory = ttg.LocalAllocOp(source, type_).result
            return ttg.MemDescTransOp.of(memory) if is_transposed else memory
    return None


def fast_axis(layout: LinearLayout) -> int:
    """The dimension along which a thread's elements, or else the lanes', are neighbours."""
    bases = [*layout.bases("register"), *layout.bases("lane")]
    first = next((basis for basis in bases if sum(basis) == 1), (0, 1))
    return first.index(1)
