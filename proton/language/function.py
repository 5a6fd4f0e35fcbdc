"""A Python function whose body is tile-language source: its text, its AST, its dependencies."""

import ast
import contextlib
import functools
import hashlib
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MethodType
from typing import Any

from proton.language.ir_text import IRText
from proton.language.signature import Signature
from proton.language.source import Source, check_function
from proton.language.surroundings import (
    Closure,
    Link,
    describe,
    is_mutable,
    link,
    parts,
    python_function,
    python_links,
    resolve,
)
from proton.language.types import constexpr, dtype, unwrap


class Builtin:
    """An op of the language: a signature and a docstring here, a rule in the front end."""

    def __init__(self, fn: Callable[..., Any], member: bool) -> None:
        self.fn, self.member = fn, member
        self.on_host: Callable[..., Any] | None = None  # what it is outside of kernels
        self.__name__, self.__doc__ = fn.__name__, fn.__doc__
        self.signature = inspect.signature(fn)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if _thread.callers:  # in an `extern` function
            return _thread.callers[-1](self, args, kwargs)
        if self.on_host is not None:
            return self.on_host(*args, **kwargs)
        raise RuntimeError(f"proton.language.{self.__name__} can only be called inside a kernel")

    def __repr__(self) -> str:
        return f"<tile op {self.__name__}>"


# Parameters by which Triton hands its compiler on.
HIDDEN = ("_semantic", "_generator", "_builder")
MARK = "__triton_builtin__"  # of functions that libraries mark as `builtin` does, as torch's
Caller = Callable[[Any, Any, dict[str, object]], Any]


class _Thread(threading.local):
    """What compiles in the calling thread: others make aggregates of the host meanwhile."""

    def __init__(self) -> None:
        self.callers: list[Caller] = []


_thread = _Thread()


def compiling() -> Caller | None:
    """What calls functions of the language and classes of aggregates for the Python that runs now,
    if it is part of a kernel that is being compiled: `caller(function, args, kwargs)`."""
    return _thread.callers[-1] if _thread.callers else None


class ExternPython:
    """A Python function that kernels call, with tensors, too: it runs while compiling, and what it
    calls of the language is compiled in its place."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn, self.__wrapped__ = fn, fn
        self.__name__, self.__doc__ = fn.__name__, fn.__doc__

    def run(self, caller: Caller, args: Any, kwargs: dict[str, Any]) -> Any:
        """Runs it; `caller(function, args, kwargs)` calls what is of the language."""
        names = inspect.signature(self.fn).parameters
        _thread.callers.append(caller)
        try:
            return self.fn(*args, **kwargs, **{name: None for name in HIDDEN if name in names})
        finally:
            _thread.callers.pop()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError(f"{self.__name__} can only be called inside a kernel")


def extern(fn: Callable[..., object]) -> ExternPython:
    """Marks a function that calls ops of the language on what a kernel passes: one that wraps
    `extern_elementwise`, for example."""
    return ExternPython(fn)


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
        kinds = [f"({', '.join(map(repr, dtypes))})" for dtypes in table]
        self.__doc__ = f"`{name}` of {library}, of {' or '.join(kinds)}."
        count = len(next(iter(table)))
        self.signature = inspect.Signature(
            [
                inspect.Parameter(f"arg{n}", inspect.Parameter.POSITIONAL_OR_KEYWORD)
                for n in range(count)
            ]
        )

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError(f"{self.library}'s {self.__name__} can only be called inside a kernel")

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self.library}>"


# Ops and functions that are also methods of a tensor: `x.sum(axis=0)`.
MEMBERS: dict[str, object] = {}


class BuiltinPython(ExternPython):
    """One that a program declares as its own op: what is known while compiling it gets as
    constexprs, and numbers in variables as tensors."""


def builtin(fn: Callable[..., object]) -> Any:
    """Declares an op; in a program that uses Proton, Python that makes one of others."""
    if fn.__module__.partition(".")[0] != __name__.partition(".")[0]:
        return BuiltinPython(fn)
    return Builtin(fn, member=False)


def member(fn: Any) -> Any:
    """Declares an op (or marks a device function) that is a tensor method, too."""
    op = fn if isinstance(fn, DeviceFunction) else Builtin(fn, member=True)
    MEMBERS[op.__name__] = op
    return op


class ConstexprFunction:
    """A Python function that kernels may call with constexpr arguments; it runs while compiling.
    On the host it may be called, too; either way it gets what constexprs stand for."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.__name__, self.__doc__ = fn.__name__, fn.__doc__
        self.__wrapped__ = fn
        self.other_src: str | None = None  # what it is told apart by in place of its own text

    @property
    def src(self) -> str:
        """The source from `def` on."""
        return Source(self.fn).text if self.other_src is None else self.other_src

    def _unsafe_update_src(self, new_src: str) -> None:
        """Has kernels that call it told apart by this text; what runs is the function, as in
        Triton."""
        self.other_src = None if new_src == Source(self.fn).text else new_src

    @property
    def cache_key(self) -> str:
        """A hash of its code and of what this reads."""
        return hashlib.sha256(describe(self).encode()).hexdigest()

    @property
    def hash(self) -> str:
        """The same."""
        return self.cache_key

    @hash.setter
    def hash(self, value: None) -> None:
        """Nothing is kept that would have to be forgotten, as Triton's tests have it."""

    def __get__(self, owner: object, cls: object = None) -> Any:
        """A method of an object."""
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        given = {name: unwrap(value) for name, value in kwargs.items()}
        return self.fn(*map(unwrap, args), **given)


def constexpr_function(fn: Callable[..., object]) -> ConstexprFunction:
    """Marks a function that kernels may call while compiling, on constexpr arguments."""
    return ConstexprFunction(fn)


def must_use_result(fn: Any, must_use: bool | str = True) -> Any:
    """Says that calls of a function mean nothing where their result is dropped: a kernel that does
    so is refused, with the text of `@must_use_result("what to do")`, if there is one."""
    if isinstance(fn, str):
        return lambda function: must_use_result(function, fn)
    fn._must_use_result = must_use
    return fn


def is_builtin(fn: object) -> bool:
    """True if something is an op of the language."""
    return isinstance(fn, Builtin | ExternPython) or bool(getattr(fn, MARK, False))


def _is_constexpr(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "constexpr"
    return annotation is constexpr


def nodes_below(statements: Sequence[ast.AST]) -> list[ast.AST]:
    """The statements and all that is in them: what `ast.walk` gives of them, which takes three
    times as long."""
    found = list(statements)
    for node in found:
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                found += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


@functools.lru_cache(8)  # of a function the names are asked for one kind after the other
def _nodes_of(tree: ast.FunctionDef) -> list[ast.AST]:
    """All nodes of a function's body."""
    return nodes_below(tree.body)


# Of a node that binds a name, the fields in the order in which Python evaluates them.
_EVALUATED = {
    ast.Assign: ("value", "targets"),
    ast.AnnAssign: ("value", "target"),
    ast.NamedExpr: ("value", "target"),
    ast.For: ("iter", "target", "body", "orelse"),
    ast.ListComp: ("generators", "elt"),
    ast.GeneratorExp: ("generators", "elt"),
    ast.comprehension: ("iter", "target", "ifs"),
}


def _first_uses(node: object, found: dict[str, bool]) -> None:
    """Adds to `found` the names in a node, in the order of evaluation, with whether the first use
    is a reading."""
    if isinstance(node, list):
        for part in node:
            _first_uses(part, found)
    elif isinstance(node, ast.Name):
        found.setdefault(node.id, isinstance(node.ctx, ast.Load))
    elif isinstance(node, ast.AST):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, True)
        for field in _EVALUATED.get(type(node), node._fields):
            _first_uses(getattr(node, field, None), found)


def _chain(node: ast.expr) -> tuple[str, ...]:
    """The names of `name.attribute...`; empty for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


_WARPS = {"num_warps", "num_threads"}  # of tl.extra.cuda, and Gluon's


class DeviceFunction:
    """A function in the tile language; `proton.jit` adds launching to it. `ir` is what it is
    compiled from, where that is no Python."""

    ir: IRText | None = None
    represent: Callable[[Any], str] | None = None  # `repr=` of `proton.jit`
    has_layouts = False  # True: the author chooses layouts, in Gluon

    def __init__(self, fn: Callable[..., Any], *, noinline: bool = False) -> None:
        check_function(fn)
        self.fn, self.noinline = fn, noinline
        self.__name__, self.__doc__, self.__module__ = fn.__name__, fn.__doc__, fn.__module__
        self.__globals__ = fn.__globals__
        self.__wrapped__ = fn
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self.source = Source(fn)
        self.revision = 0  # counts the texts that it had
        self._closure = Closure(fn)

    def name_of(self, signature: Signature) -> str:
        """What a kernel is called where it is compiled for a signature, by users and in the code:
        what its `repr=` says behind the last point, or the function's name. `?` is in the place of
        what no text in UTF-8 has, as halves of a surrogate pair."""
        if self.represent is None:
            return self.__name__
        name = str(self.represent(signature.specialization)).rpartition(".")[2]
        return name.encode(errors="replace").decode()

    @property
    def src(self) -> str:
        """The source from `def` on; decorators are no part of it."""
        return self.source.text

    @property
    def file(self) -> str:
        return self.source.file

    def parse(self) -> ast.FunctionDef:
        """The function's AST, with line and column numbers as in its file."""
        return self.source.tree

    def _unsafe_update_src(self, new_src: str) -> None:
        """Has this text, from `def` on, compiled in the place of the function's own: Triton's tests
        make variants of a kernel so. What Python runs, and the parameters, stay as they are."""
        self._set_source(self.source.with_text(new_src))

    def _set_source(self, source: Source) -> None:
        """Has another text, or one at another place, compiled."""
        self.source = source
        self.revision += 1
        for cached in ("bound_names", "constexpr_names", "_reads", "_asks_warps"):
            self.__dict__.pop(cached, None)

    def lookup(self, name: str) -> Any:
        """The Python object that a free name refers to; raises KeyError."""
        return self._closure[name] if name in self._closure else self.__globals__[name]

    @property
    def _body(self) -> list[ast.AST]:
        """All nodes of the body."""
        return _nodes_of(self.parse())

    @property
    def _nodes(self) -> list[ast.Name | ast.Attribute]:
        """The names and attributes in the body."""
        return [node for node in self._body if isinstance(node, ast.Name | ast.Attribute)]

    @functools.cached_property
    def bound_names(self) -> frozenset[str]:
        """Parameters and everything the body assigns: these names are local."""
        names = (node for node in self._nodes if isinstance(node, ast.Name))
        stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        return frozenset(self.arg_names) | stored

    @functools.cached_property
    def constexpr_names(self) -> frozenset[str]:
        """Parameters and variables that the source annotates as constexprs."""
        parameters = {p.name for p in self.signature.parameters.values() if _is_constexpr(p)}
        assigned = {
            node.target.id
            for node in self._body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and ast.unparse(node.annotation).rpartition(".")[2] == "constexpr"
        }
        return frozenset(parameters | assigned)

    @functools.cached_property
    def _reads(self) -> list[tuple[str, ...]]:
        """What the body reads of its surroundings: names with all of their attributes."""
        inner = {node.value for node in self._nodes if isinstance(node, ast.Attribute)}
        chains = [
            _chain(node)
            for node in self._nodes
            if isinstance(node.ctx, ast.Load) and node not in inner
        ]
        uses: dict[str, bool] = {}
        _first_uses(self.parse().body, uses)
        bound = self.bound_names - {name for name, is_read in uses.items() if is_read}
        bound |= frozenset(self.arg_names)
        return [chain for chain in dict.fromkeys(chains) if chain and chain[0] not in bound]

    @functools.cached_property
    def _defaults(self) -> dict[str, Any]:
        """The defaults of parameters: they were evaluated when the function was defined."""
        parameters = self.signature.parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    def _resolved(self) -> Iterator[tuple[str, list[Link], Any]]:
        """(name, what to compare at a launch, value) of what the body reads."""
        for chain in self._reads:
            try:
                links, value = resolve(chain, self.__globals__, self._closure)
            except KeyError:
                continue
            yield ".".join(chain), links, value

    def dependencies(self) -> dict[str, object]:
        """What the body reads of its surroundings, by the name used; not what is of the language.

        Attributes (`module.helper`, `config.SIZE`) count by their dotted name.
        """
        return {name: value for name, _, value in self._resolved()}

    def links(self, _seen: tuple[Any, ...] = ()) -> list[Link]:
        """Of everything that this function and its callees read: compiled code holds it, so it must
        not change."""
        found = [link(self._defaults, n) for n, v in self._defaults.items() if is_mutable(v)]
        for _, links, value in self._resolved():
            found += links
            if hasattr(value, "source_key"):  # a device function, or an aggregate
                if value is not self and value not in _seen:
                    found += value.links((*_seen, self))
            elif (python := python_function(value)) is not None:
                found += python_links(python)
        return found

    @property
    def hears_warps(self) -> bool:
        """True if code for a CPU depends on how many warps a launch asks for, too."""
        return self.has_layouts or self._asks_warps

    @functools.cached_property
    def _asks_warps(self) -> bool:
        """True if this function, or anything that it reaches, asks how many there are."""
        seen = dict[int, object]()
        waiting: list[object] = [self]
        while waiting:
            value = unwrap(waiting.pop())
            if id(value) in seen:
                continue
            seen[id(value)] = value
            if isinstance(value, Builtin):
                if value.__name__ in _WARPS:
                    return True
            elif isinstance(value, DeviceFunction):
                if value.ir is None:  # a text knows the warps
                    waiting += [*value._named(), *value._defaults.values()]
            else:
                python = python_function(value)
                if python is not None and _WARPS.intersection(python.__code__.co_names):
                    return True
                waiting += parts(value)
        return False

    def _named(self) -> Iterator[object]:
        """What the body reads of its surroundings, and of the language."""
        for name, *attributes in self._reads:
            with contextlib.suppress(KeyError, AttributeError):
                value = self.lookup(name)
                for attribute in attributes:
                    value = getattr(unwrap(value), attribute)
                yield value

    def source_key(self, _open: tuple[object, ...] = ()) -> str:
        """Hash of this function's source, its place, and everything it can reach. Compiled code
        holds file names and line numbers: in line information, scopes and assertions."""
        digest = hashlib.sha256(self.src.encode())
        place = f"{self.file}:{self.source.first_line}"
        digest.update(f"place={place} noinline={self.noinline}".encode())
        for name, value in [*sorted(self.dependencies().items()), *self._defaults.items()]:
            digest.update(f"{name}={describe(value, (*_open, self))}\n".encode())
        return digest.hexdigest()

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if _thread.callers:  # in Python that runs while a kernel is compiled
            return _thread.callers[-1](self, args, kwargs)
        raise RuntimeError(f"{self.__name__} is a kernel: call it as {self.__name__}[grid](...)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__module__}.{self.__name__}>"
