"""Gives scopes in functions that kernels call the names of those around the calls.

A function that is called in the scopes `outer` and `other` becomes two, whose scopes are
`outer/inner` and `other/inner`: what a record is called is known while compiling. The attribute
`proton.scopes_around` on such a function is the scope that its calls are in.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from proton.analysis.call_graph import callee_name, function_name
from proton.dialect.attributes import SCOPES_AROUND
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Location, Module, Operation, func, ir
from proton.dialect.proton import RECORDS, SCOPE_PREFIX
from proton.dialect.scopes import scope_paths
from proton.dialect.walk import (
    all_ops,
    called_functions,
    functions,
    kernel_functions,
    ops_named,
)
from proton.passes import Pass, register
from proton.trace.scope_path import ScopePath


@register
@dataclass(frozen=True)
class NameCalledScopes(Pass):
    """Makes a copy of each function that records for each scope that it is called in.

    With `auto` all functions are taken to record.
    """

    name: ClassVar[str] = "name-called-scopes"

    auto: bool = False

    def run(self, module: Module) -> None:
        copies = _Copies({function_name(f): f for f in functions(module)}, self.auto)
        for kernel in kernel_functions(module):
            copies.name_calls_of(kernel)
        for copy, name in copies.named:
            copy.attributes["sym_name"] = string_attr(name)
        called = {callee_name(call) for call in ops_named(module, func.CallOp)}
        for name, function in copies.functions.items():
            if name in copies.copied and name not in called:
                function.erase()


@dataclass
class _Copies:
    """The copies of functions, by name and scope."""

    functions: dict[str, Operation]
    auto: bool
    made: dict[tuple[str, ScopePath], str] = field(default_factory=dict)
    named: list[tuple[Operation, str]] = field(default_factory=list)
    copied: set[str] = field(default_factory=set)

    def name_calls_of(self, function: Operation) -> None:
        """Has calls in scopes call copies; calls in those, too."""
        for call in ops_named(function, func.CallOp):
            path, name = min(scope_paths(call.location), default=ScopePath()), callee_name(call)
            if name not in self.functions:
                continue
            if path and self._records(self.functions[name]):
                if (name, path) not in self.made:
                    self._copy(name, path)
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(self.made[name, path])
            elif (name, ScopePath()) not in self.made:
                self.made[name, ScopePath()] = name
                self.name_calls_of(self.functions[name])

    def _records(self, function: Operation) -> bool:
        if self.auto:
            return True
        return any(ops_named(f, *RECORDS) for f in (function, *called_functions(function)))

    def _copy(self, name: str, path: ScopePath) -> None:
        original = self.functions[name]
        new_name, number = f"{name}__in", len(self.made)
        while new_name in self.functions or new_name in self.made.values():
            new_name, number = f"{name}__in{number}", number + 1
        self.made[name, path] = new_name
        self.copied.add(name)
        with ir.InsertionPoint(original):
            copy = original.clone().operation
        self.named.append((copy, new_name))
        copy.attributes[SCOPES_AROUND] = string_attr(path)
        for op in all_ops(copy):
            _put_inside(op, path)
        self.name_calls_of(copy)


def _put_inside(op: Operation, outer: ScopePath) -> None:
    """Puts an op and what it records into a scope, around those that it is in."""
    op.location = _relocated(op.location, outer)
    for name in ("scope", "mark"):
        if op.name in RECORDS and name in op.attributes:
            path = ScopePath(op.attributes[name].value)
            op.attributes[name] = string_attr(path.inside(outer))


def _relocated(location: Location, outer: ScopePath) -> Location:
    paths = scope_paths(location)
    if not paths:
        return ir.Location.name(f"{SCOPE_PREFIX}{outer}", location)
    inner = min(paths)
    return ir.Location.name(f"{SCOPE_PREFIX}{inner.inside(outer)}", location)
