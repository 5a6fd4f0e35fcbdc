"""The statements that look into an interpreted kernel: the compiler does not see them.

A debugger's `step` goes from the kernel's lines to those of the functions that it calls: what runs
in between is skipped, as `bdb` skips modules. Kernels may be of any module but these.
"""

import ast
import bdb
import copy
import sys
from types import SimpleNamespace
from typing import Any

from proton.dialect.mlir import Operation
from proton.frontend.codegen import Generator

FRAME = "_proton_"  # the first parameter of a function that is Python
_FUNCTIONS = ("breakpoint", "print")
_FLOORS = ("base", "dialect", "frontend", "interpreter", "language", "runtime", "trace")
# What these floors and their bindings call; `bdb` takes patterns.
_LIBRARIES = (
    "_distutils_hack", "abc", "ast", "bdb", "cmd", "codecs", "collections*", "contextlib", "copy",
    "ctypes*", "dataclasses", "difflib", "enum", "functools", "genericpath", "hashlib", "heapq",
    "importlib*", "inspect", "io", "linecache", "llvmlite*", "logging*", "namedtuple_*",
    "numpy*", "operator", "os", "pdb", "posixpath", "re", "re.*", "tempfile",
    "textwrap", "threading", "tokenize", "types", "typing*", "warnings", "weakref", "zipimport",
)  # fmt: skip
_BINDINGS = Operation.__module__.partition(".")[0]
_SKIPPED = frozenset([*_LIBRARIES, f"{_BINDINGS}*", *(f"proton.{name}*" for name in _FLOORS)])
# What `_SKIP` needs of the frame. None of it is a function of Python, at which a debugger that has
# just begun would stop.
TOOLS = SimpleNamespace(
    tracer=sys.gettrace, of=getattr, isinstance=isinstance, Bdb=bdb.Bdb, skipped=_SKIPPED, set=set
)
_SKIP = """
if {0}.isinstance({0}.of({0}.tracer(), "__self__", None), {0}.Bdb):
    {0}.tracer().__self__.skip = {0}.set({0}.tracer().__self__.skip or ()) | {0}.skipped
"""


def is_debugging(node: ast.AST) -> bool:
    """True if a statement is `breakpoint()`, `print(...)`, `import pdb` or `pdb.set_trace()`."""
    match node:
        case ast.Import(names=[ast.alias(name="pdb")]):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name in _FUNCTIONS
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="pdb")))):
            return True
    return False


def begins_debugger(statement: ast.Expr) -> bool:
    """True if a statement that is debugging may begin a debugger."""
    match statement.value:
        case ast.Call(func=ast.Name(id="print")):
            return False
    return True


def skip_machinery() -> None:
    """Has the debugger that is there, if it is one of `bdb`, step from kernel to kernel."""
    debugger = getattr(sys.gettrace(), "__self__", None)
    if isinstance(debugger, bdb.Bdb):
        debugger.skip = set(debugger.skip or ()) | _SKIPPED


def end_in_kernel(error: BaseException) -> None:
    """Has the traceback of an error of the author's end in the line of the kernel, or of what it
    calls, that made it, where a debugger begins after the fact (`pdb.pm`)."""
    last = None
    step = error.__traceback__
    while step is not None:
        if FRAME in step.tb_frame.f_code.co_varnames[:1]:
            last = step
        step = step.tb_next
    if last is not None:
        last.tb_next = None


def skipping(tools: str, place: ast.stmt) -> ast.stmt:
    """The same as a statement in the line of `place`, behind what may have begun a debugger;
    `tools` names `TOOLS`."""
    (statement,) = ast.parse(_SKIP.format(tools)).body
    for node in ast.walk(statement):
        ast.copy_location(node, place)
    return statement


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
