"""The statements that look into an interpreted kernel: the compiler does not see them."""

import ast
import copy
from typing import Any

from proton.frontend.codegen import Generator

_FUNCTIONS = ("breakpoint", "print")


def is_debugging(node: ast.AST) -> bool:
    """Whether a statement is `breakpoint()`, `print(...)`, `import pdb` or `pdb.set_trace()`."""
    match node:
        case ast.Import(names=[ast.alias(name="pdb")]):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name in _FUNCTIONS
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="pdb")))):
            return True
    return False


class InterpretedGenerator(Generator):
    """The front end for interpreted kernels: leaves out what only Python sees."""

    def leaves_out(self, node: ast.stmt) -> bool:
        return is_debugging(node)


class StepGenerator(InterpretedGenerator):
    """The front end for steps of a kernel that has been compiled as a whole, which printed."""

    prints = False


def leaving(node: ast.stmt) -> Any:
    """A statement that can be compiled without the loop around it: what ends an iteration of that
    returns."""
    if isinstance(node, ast.For | ast.While):
        return node
    return _Leaving().visit(copy.deepcopy(node))


class _Leaving(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> object:
        if isinstance(node, ast.For | ast.While):
            return node
        if isinstance(node, ast.Break | ast.Continue):
            return ast.copy_location(ast.Return(None), node)
        return self.generic_visit(node)
