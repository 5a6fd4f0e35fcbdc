"""Calls of functions that Triton takes into their callers, as its first level has them."""

from proton.base.errors import CompilationError
from proton.compat.triton.text.functions import INLINED
from proton.dialect.mlir import Module, Operation, Value, ir
from proton.dialect.walk import all_ops, functions, ops_named, replace, source_span


def inline_calls(module: Module) -> None:
    """Puts the bodies of functions with the attribute `tt.inlined` in the place of their calls, and
    erases them. Each has one block. Raises CompilationError for one that calls itself."""
    inlined = {
        function.attributes["sym_name"].value: function
        for function in functions(module)
        if INLINED in function.attributes
    }
    for _ in range(len(inlined)):
        for call in _calls(module, inlined):
            _inline(call, inlined[call.attributes["callee"].value])
    if _calls(module, inlined):
        (call, *_) = _calls(module, inlined)
        name = call.attributes["callee"].value
        raise CompilationError(f"{name} calls itself", source_span(call.location))
    for function in inlined.values():
        function.erase()


def _calls(module: Module, inlined: dict[str, Operation]) -> list[Operation]:
    """The calls of such functions, but for those in such functions."""
    return [
        call
        for function in functions(module)
        if INLINED not in function.attributes
        for call in ops_named(function, "func.call")
        if call.attributes["callee"].value in inlined
    ]


def _inline(call: Operation, function: Operation) -> None:
    (body,) = function.regions[0].blocks
    *ops, end = (op.operation for op in body.operations)
    known: dict[Value, Value] = dict(zip(body.arguments, call.operands, strict=True))
    with ir.InsertionPoint(call):
        for op in ops:
            copy = op.clone()
            for one in (copy, *all_ops(copy)):
                for number, operand in enumerate(one.operands):
                    if operand in known:
                        one.operands[number] = known[operand]
                one.location = ir.Location.callsite(one.location, [call.location])
            known.update(zip(op.results, copy.results, strict=True))
    replace(call, [known.get(value, value) for value in end.operands])
