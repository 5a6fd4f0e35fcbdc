"""Which function of a module calls which; callers before callees and the other way round."""

from dataclasses import dataclass, field

from proton.base.errors import CompilationError
from proton.dialect import isa
from proton.dialect.mlir import Module, Operation, func, ir
from proton.dialect.walk import all_ops, functions, parent_of


@dataclass
class CallGraph:
    """`functions` by name, and the `func.call` ops of each function's body."""

    functions: dict[str, Operation]
    calls: dict[str, list[Operation]] = field(default_factory=dict)

    def callers_first(self) -> list[Operation]:
        """Functions in an order in which each one comes after everything that calls it."""
        return list(reversed(self.callees_first()))

    def callees_first(self) -> list[Operation]:
        """Functions in an order in which each one comes after everything that it calls.

        Raises CompilationError for recursion: a program's shared memory is laid out before it
        runs, so it needs a bound on the depth of calls.
        """
        order: dict[str, None] = {}
        for name in self.functions:
            self._visit(name, order, [])
        return [self.functions[name] for name in order]

    def _visit(self, name: str, order: dict[str, None], open_: list[str]) -> None:
        if name in order:
            return
        if name in open_:
            cycle = " -> ".join([*open_[open_.index(name) :], name])
            raise CompilationError(
                f"recursion is not supported: {cycle}", hint="write it as a loop"
            )
        open_.append(name)
        for call in self.calls[name]:
            self._visit(callee_name(call), order, open_)
        open_.pop()
        order[name] = None


def callers_first(module: Module) -> list[Operation]:
    """The functions of a module, each behind everything that calls it."""
    found = functions(module)
    # Most modules have one, whose calls nobody need look for.
    return found if len(found) == 1 else call_graph(module).callers_first()


def callee_name(call: Operation) -> str:
    """The name of the function that a `func.call` calls."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def function_name(function: Operation) -> str:
    """The name of a `func.func`."""
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def call_graph(module: Module) -> CallGraph:
    """The call graph of a module's functions with a body; calls of C's functions are left out."""
    defined = _functions(module)
    calls = {
        name: [
            op for op in all_ops(function) if isa(op, func.CallOp) and callee_name(op) in defined
        ]
        for name, function in defined.items()
    }
    return CallGraph(defined, calls)


def _functions(module: Module) -> dict[str, Operation]:
    return {function_name(op): op for op in functions(module)}


def function_of(op: Operation) -> Operation:
    """The function that an op is in; itself, if it is one."""
    while not isa(op, func.FuncOp):
        op = parent_of(op)
    return op
