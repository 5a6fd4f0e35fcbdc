"""Emitting the small things every lowering needs: constants, branches, loops.

Each function emits at the current insertion point and location.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from proton.dialect.mlir import arith, func, ir
from proton.dialect.regions import ForLoop


def constant(value: int | float, type_: Any) -> Any:
    """A scalar constant of an index, integer or float type."""
    return arith.ConstantOp(type_, value).result


def zero_of(type_: Any) -> Any:
    """The zero of a scalar type; null for a pointer."""
    if str(type_) == "!llvm.ptr":
        return ir.Operation.create("llvm.mlir.zero", results=[type_]).result
    return constant(0.0 if isinstance(type_, ir.FloatType) else 0, type_)


def emit_if(
    condition: Any, types: list[Any], then: Callable[[], list[Any]], other: Callable[[], list[Any]]
) -> list[Any]:
    """An `scf.if` whose branches yield values of `types`."""
    op = ir.Operation.create("scf.if", results=types, operands=[condition], regions=2)
    for region, branch in zip(op.regions, (then, other), strict=True):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            ir.Operation.create("scf.yield", operands=branch())
    return list(op.results)


@contextlib.contextmanager
def loop(lower: Any, upper: Any, step: Any) -> Iterator[Any]:
    """An `scf.for` that carries nothing; gives its variable, and emits into its body inside."""
    made = ForLoop.create((lower, upper, step))
    with ir.InsertionPoint(made.body):
        yield made.induction_var
        ir.Operation.create("scf.yield")


def index_loop(
    upper: Any, step: int = 1, *, start: Any = 0
) -> contextlib.AbstractContextManager[Any]:
    """A `loop` from `start` over `index`; that and `upper` are values or numbers."""
    index = ir.IndexType.get()
    limit, lower = (
        constant(bound, index) if isinstance(bound, int) else bound for bound in (upper, start)
    )
    return loop(lower, limit, constant(step, index))


def for_each_element(shape: tuple[int, ...], body: Callable[[list[Any]], None]) -> None:
    """A nest of loops over `shape`; `body` emits what is inside, given the indices."""

    def nest(indices: list[Any]) -> None:
        if len(indices) == len(shape):
            body(indices)
            return
        with index_loop(shape[len(indices)]) as variable:
            nest([*indices, variable])

    nest([])


def module_block() -> Any:
    """The body of the module around the current insertion point."""
    op = ir.InsertionPoint.current.block.owner.operation
    while op.parent is not None:
        op = op.parent.operation
    return op.regions[0].blocks[0]


def symbol(name: str) -> Any:
    """The op of the module that has this name; None where there is none."""
    for view in module_block().operations:
        attributes = view.operation.attributes
        if "sym_name" in attributes and attributes["sym_name"].value == name:
            return view.operation
    return None


def call_c(name: str, operands: list[Any], result: Any) -> Any:
    """A call of a C function, declared in the module on first use; None if `result` is None."""
    results = [] if result is None else [result]
    if symbol(name) is None:
        with ir.InsertionPoint.at_block_begin(module_block()):
            declaration = func.FuncOp(name, ([v.type for v in operands], results))
            declaration.attributes["sym_visibility"] = ir.StringAttr.get("private")
    call = func.CallOp(results, ir.FlatSymbolRefAttr.get(name), operands)
    return call.operation.results[0] if results else None
