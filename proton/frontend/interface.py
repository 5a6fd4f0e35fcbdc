"""What rules, statements and expressions ask of the code generator (codegen.py), which imports
them."""

import ast
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from proton.base.errors import SourceSpan, UnsupportedLanguageConstruct
from proton.base.targets import Target
from proton.dialect.mlir import Location, Module
from proton.dialect.scopes import ScopeEntry
from proton.frontend.flow import Outcome
from proton.language.function import DeviceFunction


class KeptFunctions(Protocol):
    """The functions that calls are kept to (calls.py)."""

    module: Module
    made: dict[Any, Any]
    kept: list[object]

    def new_name(self, name: str) -> str: ...


DOT_PRECISION = "tf32"  # of products that ask for none, as in Triton


class LoopBody(Protocol):
    """The loop whose body is being compiled (loops.py)."""

    def exit(self, g: "CodeGenerator", node: ast.stmt | None = None) -> object: ...


class CodeGenerator(Protocol):
    """Compiles one function body. Variables, and what expressions give, are tensors and whatever
    Python objects are known while compiling."""

    prints: bool
    fn: DeviceFunction
    env: dict[str, Any]
    debug: bool
    sanitize_overflow: bool
    dot_precision: str
    target: Target
    num_warps: int
    num_ctas: int
    functions: KeptFunctions | None
    own_function: bool
    node: ast.AST | None
    dropped: ast.expr | None
    scopes: list[ScopeEntry]
    entries: Iterator[int]
    first_scope: int
    block_scope: int
    depth: int
    loop: LoopBody | None
    block_depth: int
    first_block_depth: int

    def span(self, node: ast.AST | None = None) -> SourceSpan: ...
    def call_trace(self) -> tuple[SourceSpan, ...]: ...
    def location(self) -> Location: ...
    def at(self, node: ast.AST) -> AbstractContextManager[None]: ...
    def unsupported(self, what: str, hint: str) -> UnsupportedLanguageConstruct: ...
    def lookup(self, name: str) -> Any: ...
    def evaluate(self, node: ast.expr) -> Any: ...
    def run(self, statements: Sequence[ast.stmt], *, tail: bool = False) -> Outcome: ...
    def call_arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]: ...
    def assign(self, target: ast.expr, value: object) -> None: ...
    def give_name(self, target: ast.expr, value: object) -> None: ...
    def device_assert(
        self, condition: object, message: object = "", mask: object = None
    ) -> None: ...
    def call(
        self,
        fn: DeviceFunction,
        args: Sequence[object],
        kwargs: dict[str, Any],
        *,
        in_place: bool = False,
    ) -> Any: ...
    def callee(
        self,
        fn: DeviceFunction,
        env: dict[str, Any],
        *,
        functions: KeptFunctions | None,
        own_function: bool = False,
    ) -> "CodeGenerator": ...
