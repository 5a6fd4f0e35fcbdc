"""A Python function whose body is tile-language source: its text, its AST, its dependencies."""

import ast
import enum
import functools
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from proton.base.errors import SourceSpan, UnsupportedLanguageConstruct
from proton.language.types import constexpr, dtype


class Builtin:
    """An op of the language: a signature and a docstring here, a rule in the front end."""

    def __init__(self, fn: Callable[..., Any], member: bool) -> None:
        self.fn, self.member = fn, member
        self.__name__, self.__doc__ = fn.__name__, fn.__doc__
        self.signature = inspect.signature(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"proton.language.{self.__name__} can only be called inside a kernel")

    def __repr__(self) -> str:
        return f"<tile op {self.__name__}>"


class ExternFunction:
    """A function of a library of the target that works element by element.

    `table` maps the dtypes that it takes to its symbol there and the dtype that this returns;
    `is_test` says that the result is a truth value.
    """

    def __init__(
        self,
        name: str,
        table: Mapping[tuple[dtype, ...], tuple[str, dtype]],
        *,
        library: str,
        is_test: bool = False,
    ) -> None:
        self.__name__, self.table, self.library, self.is_test = name, table, library, is_test
        kinds = [f"({', '.join(map(str, dtypes))})" for dtypes in table]
        self.__doc__ = f"`{name}` of {library}, of {' or '.join(kinds)}."
        count = len(next(iter(table)))
        self.signature = inspect.Signature(
            [
                inspect.Parameter(f"arg{n}", inspect.Parameter.POSITIONAL_OR_KEYWORD)
                for n in range(count)
            ]
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.library}'s {self.__name__} can only be called inside a kernel")

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self.library}>"


# Ops and functions that are also methods of a tensor: `x.sum(axis=0)`.
MEMBERS: dict[str, Any] = {}


def builtin(fn: Callable[..., Any]) -> Builtin:
    """Declares an op."""
    return Builtin(fn, member=False)


def member(fn: Any) -> Any:
    """Declares an op (or marks a device function) that is a tensor method, too."""
    op = fn if isinstance(fn, DeviceFunction) else Builtin(fn, member=True)
    MEMBERS[op.__name__] = op
    return op


class ConstexprFunction:
    """A Python function that kernels may call with constexpr arguments; it runs while compiling."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.__name__, self.__doc__ = fn.__name__, fn.__doc__
        self.__wrapped__ = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


def constexpr_function(fn: Callable[..., Any]) -> ConstexprFunction:
    """Marks a function that kernels may call while compiling, on constexpr arguments."""
    return ConstexprFunction(fn)


def _dotted(node: ast.expr) -> str:
    """The text of `name.attribute...`; "" for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _indent(tree: ast.AST, by: int) -> None:
    """Moves all columns to the right."""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword):
            node.col_offset += by
            if node.end_col_offset is not None:
                node.end_col_offset += by


class DeviceFunction:
    """A function in the tile language; `proton.jit` adds launching to it."""

    def __init__(self, fn: Callable[..., Any], *, noinline: bool = False) -> None:
        self.fn, self.noinline = fn, noinline
        self.__name__, self.__doc__, self.__module__ = fn.__name__, fn.__doc__, fn.__module__
        self.__globals__ = fn.__globals__
        self.__wrapped__ = fn
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self._tree: ast.FunctionDef | None = None
        self._source: tuple[str, int, int] | None = None
        self._nonlocals: dict[str, Any] | None = None

    def _read_source(self) -> tuple[str, int, int]:
        """Dedented source, its first line number, the columns that dedenting took away."""
        if self._source is None:
            try:
                lines, first = inspect.getsourcelines(self.fn)
            except OSError as error:
                raise UnsupportedLanguageConstruct(
                    f"the source of {self.__name__} cannot be read ({error})",
                    hint="define the kernel in a file",
                ) from None
            text = "".join(lines)
            indent = len(lines[0]) - len(lines[0].lstrip())
            self._source = textwrap.dedent(text), first, indent
        return self._source

    @property
    def src(self) -> str:
        """The source from `def` on; decorators are no part of it."""
        text = self._read_source()[0]
        return text[text.index("def " + self.__name__) :] if "def " in text else text

    @property
    def file(self) -> str:
        return self.fn.__code__.co_filename

    def parse(self) -> ast.FunctionDef:
        """The function's AST, with line and column numbers as in its file."""
        if self._tree is None:
            text, first, indent = self._read_source()
            try:
                tree = ast.parse("\n" * (first - 1) + text).body[0]
            except SyntaxError as error:
                raise UnsupportedLanguageConstruct(
                    f"the source of {self.__name__} does not stand alone ({error.msg})",
                    SourceSpan(file=self.file, line=first),
                    hint="write the kernel as a plain def",
                ) from None
            if not isinstance(tree, ast.FunctionDef):
                raise UnsupportedLanguageConstruct(
                    f"a kernel is a def, got {type(tree).__name__.lower()}",
                    SourceSpan(file=self.file, line=first),
                    hint="write the kernel as a plain def",
                )
            if indent:
                _indent(tree, indent)
            self._tree = tree
        return self._tree

    def lookup(self, name: str) -> Any:
        """The Python object that a free name refers to; raises KeyError."""
        if self._nonlocals is None:
            self._nonlocals = dict(inspect.getclosurevars(self.fn).nonlocals)
        if name in self._nonlocals:
            return self._nonlocals[name]
        return self.__globals__[name]

    @functools.cached_property
    def _names(self) -> list[ast.Name | ast.Attribute]:
        """All names and attributes of the body."""
        return [n for n in ast.walk(self.parse()) if isinstance(n, ast.Name | ast.Attribute)]

    @functools.cached_property
    def bound_names(self) -> frozenset[str]:
        """Parameters and everything the body assigns: these names are local."""
        stored = {
            node.id
            for node in self._names
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        return frozenset(self.arg_names) | stored

    def dependencies(self) -> "tuple[dict[str, DeviceFunction], dict[str, Any]]":
        """(device functions called, constexpr and plain globals read), by the name used.

        Attributes of modules (`module.helper`) count by their dotted name.
        """
        functions: dict[str, DeviceFunction] = {}
        values: dict[str, Any] = {}

        def note(name: str, value: Any) -> None:
            if isinstance(value, DeviceFunction):
                functions[name] = value
            elif isinstance(value, constexpr):
                note(name, value.value)
            elif isinstance(value, tuple):
                for position, element in enumerate(value):
                    note(f"{name}[{position}]", element)
            elif value is None or isinstance(value, int | float | str | dtype | enum.Enum):
                values[name] = value
            elif isinstance(value, ConstexprFunction):
                values[name] = inspect.getsource(value.fn)

        for name, node in self._reads.items():
            try:
                note(name, self._resolve(node))
            except (KeyError, AttributeError):
                continue
        return functions, values

    @functools.cached_property
    def _reads(self) -> dict[str, ast.expr]:
        """What the body reads of its surroundings, by its text: names and their attributes."""
        return {
            text: node
            for node in self._names
            if isinstance(node.ctx, ast.Load)
            and (text := _dotted(node))
            and text.partition(".")[0] not in self.bound_names
        }

    def watched_globals(
        self, _seen: "frozenset[DeviceFunction]" = frozenset()
    ) -> list[tuple[Mapping[str, Any], str, Any]]:
        """(namespace, name, value) of every constant and function that this function and its
        callees read from modules and classes: compiled code holds them, so they must not change.
        """
        functions, _ = self.dependencies()
        found = []
        for node in self._reads.values():
            try:
                namespace, name = self._place(node)
            except (KeyError, AttributeError):
                continue
            value = namespace.get(name)
            if isinstance(value, constexpr | int | float | str | tuple | DeviceFunction):
                found.append((namespace, name, value))
        for function in functions.values():
            if function is not self and function not in _seen:
                found += function.watched_globals(_seen | {self})
        return found

    def _place(self, node: ast.expr) -> tuple[Mapping[str, Any], str]:
        """The namespace and name that a read refers to; our own language never changes."""
        if isinstance(node, ast.Name):
            return self.__globals__, node.id
        assert isinstance(node, ast.Attribute)
        owner = self._resolve(node.value)
        if not inspect.ismodule(owner) and not inspect.isclass(owner):
            raise KeyError(ast.unparse(node))
        if getattr(owner, "__name__", "").startswith("proton.language"):
            raise KeyError(ast.unparse(node))
        return vars(owner), node.attr

    def _resolve(self, node: ast.expr) -> Any:
        """The global that `name`, or `name.attribute...` of modules and classes, refers to."""
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            if inspect.ismodule(owner) or inspect.isclass(owner):
                return getattr(owner, node.attr)
        raise KeyError(ast.unparse(node))

    def source_key(self, _open: "frozenset[DeviceFunction]" = frozenset()) -> str:
        """Hash of this function's source, its line, and everything it can reach. Compiled code
        holds line numbers: in line information, scopes and assertions."""
        digest = hashlib.sha256(self.src.encode())
        digest.update(f"line={self._read_source()[1]} noinline={self.noinline}".encode())
        functions, values = self.dependencies()
        digest.update(repr(sorted(values.items(), key=lambda item: item[0])).encode())
        for name, function in sorted(functions.items()):
            if function is not self and function not in _open:
                digest.update(f"{name}={function.source_key(_open | {self})}".encode())
        return digest.hexdigest()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.__name__} is a kernel: call it as {self.__name__}[grid](...)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__module__}.{self.__name__}>"
