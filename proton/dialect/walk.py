"""Walking and rewriting IR in a few words."""

import types
from collections.abc import Callable, Iterable, Iterator

from proton.base.errors import SourceSpan
from proton.dialect import Kind, isa, name_of, names_of
from proton.dialect.attributes import KERNEL
from proton.dialect.mlir import Attribute, Location, Module, Operation, Value, arith, func, ir, llvm


def all_ops(root: Module | Operation) -> list[Operation]:
    """Every operation below `root`, in pre-order, `root` itself left out; safe to mutate from."""
    found: list[Operation] = []
    append, advance = found.append, ir.WalkResult.ADVANCE  # looked up once: most passes walk

    def visit(op: Operation) -> ir.WalkResult:
        append(op)
        return advance

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def op_names(root: Module | Operation) -> frozenset[str]:
    """The names of the operations below `root`."""
    found: set[str] = set()
    add, advance = found.add, ir.WalkResult.ADVANCE

    def visit(op: Operation) -> ir.WalkResult:
        add(op.name)
        return advance

    for region in root.operation.regions:
        for block in region.blocks:
            for view in block.operations:
                view.operation.walk(visit)
    return frozenset(found)


def ops_named(root: Module | Operation, *kinds: Kind) -> list[Operation]:
    """Operations below `root` of one of the classes, in pre-order."""
    names = names_of(*kinds)
    return [op for op in all_ops(root) if op.name in names]


def ops_of_each(root: Module | Operation, *kinds: Kind) -> tuple[list[Operation], ...]:
    """The same, for each of the classes by itself."""
    found: dict[str, list[Operation]] = {name_of(kind): [] for kind in kinds}
    for op in all_ops(root):
        if (same := found.get(op.name)) is not None:
            same.append(op)
    return tuple(found.values())


class before:
    """Emits before `op`, at its location; an exception says which op it was about."""

    def __init__(self, op: Operation) -> None:
        self._name, self._location = op.name, op.location
        self._point = ir.InsertionPoint(op)

    def __enter__(self) -> None:
        self._point.__enter__()
        self._location.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._location.__exit__(kind, problem, trace)
        self._point.__exit__(kind, problem, trace)
        if isinstance(problem, Exception):
            span = source_span(self._location)
            problem.add_note(f"at {self._name} of {span}\n{span.excerpt()}".rstrip())


def replace(op: Operation, values: Iterable[Value]) -> None:
    """Puts `values` in the place of the op's results and erases it."""
    for result, value in zip(op.operation.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.operation.erase()


def users(value: Value) -> list[Operation]:
    """The operations that use a value, each once per use."""
    return [use.owner.operation for use in value.uses]


def defining_op(value: Value) -> Operation | None:
    """The operation that gives a value; None for a block argument."""
    return value.owner.operation if isinstance(value, ir.OpResult) else None


def backward_slice(
    values: Iterable[Value], goes_on: Callable[[Operation], bool], seen: Iterable[Value] = ()
) -> Iterator[tuple[Value, Operation | None]]:
    """What values are computed from: they, the operands of ops for which `goes_on` holds, and so
    on, each once, with the op that gives it (None for a block argument), but what was `seen`."""
    pending, known = list(values), set(seen)
    while pending:
        value = pending.pop()
        if value not in known:
            known.add(value)
            op = defining_op(value)
            yield value, op
            if op is not None and goes_on(op):
                pending += op.operands


def constant_in(value: Value) -> Attribute | None:
    """The attribute of the scalar that a constant is, or is filled with, one of `llvm`, too; None
    for the rest."""
    op = defining_op(value)
    if not isa(op, arith.ConstantOp, llvm.ConstantOp):
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        return attribute.get_splat_value() if attribute.is_splat else None
    is_number = isinstance(attribute, ir.IntegerAttr | ir.BoolAttr | ir.FloatAttr)
    return attribute if is_number else None


def producer_of(value: Value) -> Operation:
    """The operation that gives a value, which is no block argument."""
    owner = value.owner
    assert not isinstance(owner, ir.Block), "a block argument, which no operation gives"
    return owner.operation


def parent_of(op: Operation) -> Operation:
    """The operation that an op lies in, which is no module by itself."""
    parent = op.parent
    assert parent is not None, f"{op.name} lies in nothing"
    return parent.operation


def following(op: Operation) -> Operation:
    """The op behind one that does not end its block."""
    ops = [view.operation for view in op.block.operations]
    return ops[ops.index(op) + 1]


def functions(module: Module | Operation) -> list[Operation]:
    """The functions of a module that have a body: kernels, and what they call."""
    return [
        op.operation
        for op in module.operation.regions[0].blocks[0].operations
        if isa(op.operation, func.FuncOp) and len(op.operation.regions[0].blocks)
    ]


def gpu_functions(module: Module) -> list[Operation]:
    """What stands in the `gpu.module` that a module is: its functions, and what they declare."""
    (inner,) = module.body.operations
    return [view.operation for view in inner.operation.regions[0].blocks[0].operations]


def kernel_functions(module: Module | Operation) -> list[Operation]:
    """The functions of a module that are kernels."""
    return [
        op.operation
        for op in module.operation.regions[0].blocks[0].operations
        if isa(op.operation, func.FuncOp) and KERNEL in op.operation.attributes
    ]


def called_functions(function: Operation) -> list[Operation]:
    """What a function calls, directly or not: those of its module that have a body."""
    others = [f for f in functions(parent_of(function)) if f != function]
    if not others:
        return []
    by_name = {f.attributes["sym_name"].value: f for f in (function, *others)}
    found: dict[str, Operation] = {}
    pending = [function]
    while pending:
        for call in ops_named(pending.pop(), func.CallOp):
            name = call.attributes["callee"].value
            if name in by_name and name not in found:
                found[name] = by_name[name]
                pending.append(by_name[name])
    return list(found.values())


def source_span(location: Location) -> SourceSpan:
    """The file and line of a location: of the callee, where code was inlined."""
    if isinstance(location, ir.FileLineColLoc):
        return SourceSpan(
            file=location.filename.value
            if hasattr(location.filename, "value")
            else str(location.filename),
            line=location.start_line,
            column=max(0, location.start_col - 1),
        )
    if isinstance(location, ir.NameLoc):
        return source_span(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return source_span(location.callee)
    if isinstance(location, ir.FusedLoc) and len(location.locations):
        return source_span(location.locations[0])
    return SourceSpan(file="", line=0)
