"""Compiles one kernel source with Proton and with Triton.

Triton has no scopes in its language: its copy of the source is the kernels' text with `with
proton.scope(...)` taken away around what is in it, and the imports rebound. For Triton's Proton the
scopes become its `enter_scope` and `exit_scope`.
"""

import ast
import importlib.util
import inspect
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

_FOLDER = tempfile.TemporaryDirectory(prefix="proton-peers-")
_IMPORTS = {"proton": "triton", "proton.language": "triton.language"}
_PROFILER = """
import triton.profiler.language as pl
pl.enable_semantic("triton")
"""


class _ToTriton(ast.NodeTransformer):
    """Rebinds the imports, unwraps scopes or `has_scopes` of Triton's Proton, and leaves out what
    is the host's: functions, cases and the command line."""

    def __init__(self, has_scopes: bool) -> None:
        self.has_scopes = has_scopes

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if (node.module or "").split(".")[0] in ("proton", "kernels") else node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Without cases, which functions here make, and without the command line."""
        node.body = [
            statement
            for statement in node.body
            if not isinstance(statement, ast.If)
            and not (isinstance(statement, ast.Assign) and _calls_by_name(statement))
        ]
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        is_kernel = any(ast.unparse(d).startswith("proton.jit") for d in node.decorator_list)
        return self.generic_visit(node) if is_kernel else None

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            if alias.name in _IMPORTS:
                alias.asname = alias.asname or alias.name
                alias.name = _IMPORTS[alias.name]
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        calls = [ast.unparse(item.context_expr) for item in node.items]
        if not all(call.startswith("proton.scope(") for call in calls):
            return node
        if not self.has_scopes:
            return node.body
        names = [call.removeprefix("proton.scope(").removesuffix(")") for call in calls]
        enters, exits = (
            [f"pl.{edge}_scope({name})" for name in names] for edge in ("enter", "exit")
        )
        before, after = ("\n".join(calls) for calls in (enters, exits[::-1]))
        return [*ast.parse(before).body, *node.body, *ast.parse(after).body]


def _calls_by_name(statement: ast.stmt) -> bool:
    calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) for function in calls)


def triton_source(source: str, has_scopes: bool = False) -> str:
    """The source of a module of kernels, for Triton; `has_scopes`: for Triton's Proton, with the
    scopes, whose arguments are their names alone."""
    text = ast.unparse(ast.fix_missing_locations(_ToTriton(has_scopes).visit(ast.parse(source))))
    return text + _PROFILER if has_scopes else text


def triton_module(module: ModuleType, has_scopes: bool = False) -> ModuleType:
    """The module of kernels, jitted by Triton."""
    name = f"triton_{module.__name__.rpartition('.')[2]}" + "_scoped" * has_scopes
    path = Path(_FOLDER.name) / f"{name}.py"
    path.write_text(triton_source(inspect.getsource(module), has_scopes))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    translated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(translated)
    return translated
