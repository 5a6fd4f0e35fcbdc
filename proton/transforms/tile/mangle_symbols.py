"""Gives functions symbols that mean nothing to anybody else: `@add` becomes `@add$`
(proton/base/symbols.py)."""

from dataclasses import dataclass
from typing import ClassVar

from proton.base.symbols import mangled
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Module, func, ir
from proton.dialect.walk import functions, ops_named
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class MangleSymbols(Pass):
    """Renames every function that has a body, and the calls of it."""

    name: ClassVar[str] = "mangle-symbols"
    makes: ClassVar[frozenset[str] | None] = frozenset()

    def run(self, module: Module) -> None:
        names = {}
        for function in functions(module):
            name = function.attributes["sym_name"].value
            names[name] = mangled(name)
            function.attributes["sym_name"] = string_attr(names[name])
        for call in ops_named(module, func.CallOp):
            callee = names.get(call.attributes["callee"].value)
            if callee is not None:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(callee)
