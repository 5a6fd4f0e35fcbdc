"""What a kernel reads of the Python around it: globals, closures, attributes, and what is in them.

Compiled code holds these values. So the key of the disk cache describes them (`describe`), and
each launch compares those that may change with what they were (`Link`).
"""

import dis
import enum
import inspect
import itertools
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, Protocol

from proton.language.source import code_text
from proton.language.types import constexpr, dtype, unwrap

_DEEPEST = 16  # objects inside of objects that are described
# Modules of the language, and what its parts say where Proton stands for Triton.
OF_LANGUAGE = ("proton.language", "triton.language")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
# Whose text is their value; first what may be one of the others, too.
_PLAIN = (enum.Enum, bool, int, float, complex, str, bytes, dtype, type(None))
_OUTLINED, _MOST_OUTLINED = 2, 256  # objects inside of objects, and entries of one
_MOST_BYTES = 4096  # of an array whose elements are looked at in each launch
_CONTAINERS = (tuple, list, dict, set, frozenset)


class Namespace(Protocol):
    """Where a name is looked up again at each launch; a dict is one."""

    def get(self, name: str, /) -> Any: ...


Link = tuple[Namespace, str, Any]  # where, the name, what it was


class Closure:
    """The variables of the functions around a function."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        cells = getattr(fn, "__closure__", None) or ()
        names = fn.__code__.co_freevars if cells else ()
        self.cells = dict(zip(names, cells, strict=True))

    def __contains__(self, name: str) -> bool:
        return name in self.cells

    def __getitem__(self, name: str) -> object:
        """Raises KeyError for one that has no value yet."""
        try:
            return self.cells[name].cell_contents
        except ValueError:
            raise KeyError(name) from None

    def get(self, name: str) -> Any:
        """The value now; None where it has none."""
        try:
            return self.cells[name].cell_contents
        except ValueError:
            return None


class _Attributes:
    """The attributes of an object or a class, those that it inherits included."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def get(self, name: str) -> Any:
        return getattr(self.owner, name, None)


class _Text(str):
    """A description, which is shown without quotes."""

    __repr__ = str.__str__


class _Contents:
    """What is in an object that may change in place: its description, as one and the same text as
    long as it does not."""

    def __init__(self, namespace: Namespace, name: str) -> None:
        self.namespace = namespace
        self.text = _Text(describe(namespace.get(name)))

    def get(self, name: str) -> str:
        text = describe(self.namespace.get(name))
        return self.text if text == self.text else _Text(text)


def is_mutable(value: Any) -> bool:
    """True if a value may change and stay the same object."""
    value = unwrap(value)
    if isinstance(value, tuple | frozenset):
        return any(map(is_mutable, value))
    if inspect.ismethod(value):
        return is_mutable(value.__self__)
    return not (
        isinstance(value, (*_PLAIN, *_FUNCTIONS))
        or hasattr(value, "source_key")
        or hasattr(value, "__wrapped__")
        or inspect.ismodule(value)
        or inspect.isclass(value)
    )


def is_told_by_text(value: Any) -> bool:
    """True if a value that is known while compiling is another one where `describe` says something
    else: it may change, or be equal to one that holds 1 where it holds True."""
    return isinstance(value, frozenset) or (is_mutable(value) and not is_of_language(value))


def is_of_language(value: Any) -> bool:
    """True if a value is part of the language: those never change."""
    if inspect.ismodule(value):
        parts = (*OF_LANGUAGE, "proton.profiler")
        return value.__name__ == "proton" or value.__name__.startswith(parts)
    if inspect.isclass(value):
        return value.__module__.startswith(OF_LANGUAGE)
    is_function = hasattr(value, "source_key") or hasattr(value, "__wrapped__")
    return type(value).__module__.startswith(OF_LANGUAGE) and not (
        is_function or is_dataclass(value) or isinstance(value, (constexpr, *_PLAIN))
    )


def python_function(value: Any) -> types.FunctionType | None:
    """The function that a value is, or wraps."""
    plain = value if isinstance(value, types.FunctionType) else getattr(value, "__wrapped__", None)
    return plain if isinstance(plain, types.FunctionType) else None


def parts(value: Any) -> list[Any]:
    """What code of a kernel may get by a value: elements, members of a class that the kernel may
    make objects of, what a Python function reads. Nothing of another object, a module, or a class.
    """
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, _CONTAINERS):
        return list(value)
    if inspect.ismethod(value):
        return [value.__self__, value.__func__]
    if (plain := python_function(value)) is not None:
        read = [namespace.get(name) for namespace, name in _globals_read(plain)]
        return [*read, *(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values()]
    kind = value if inspect.isclass(value) else type(value)
    if not hasattr(kind, "source_key"):
        return []
    members = [member for base in kind.__mro__ for member in vars(base).values()]
    own = [] if kind is value else list(vars(value).values())
    return [*(getattr(member, "__func__", member) for member in members), *own]


def link(namespace: Namespace, name: str) -> Link:
    """What a launch compares for a name that a kernel reads."""
    value = namespace.get(name)
    if is_mutable(value):
        contents = _Contents(namespace, name)
        return contents, name, contents.text
    return namespace, name, value


def _within(value: object) -> list[Link]:
    """What to compare besides, of a constexpr: what it holds may be set."""
    return [(vars(value), "value", value.value)] if type(value) is constexpr else []


def shown_change(links: list[Link], place: Link) -> tuple[str, str, str]:
    """(the name, what it was, what it is), of a place of `links` that changed."""
    namespace, name, before = place
    for _, owner, value in links:
        if type(value) is constexpr and vars(value) is namespace:
            return owner, f"constexpr[{before!r}]", repr(value)
    return name, repr(before), repr(namespace.get(name))


def resolve(
    chain: tuple[str, ...], names: Mapping[str, Any], closure: Closure
) -> tuple[list[Link], object]:
    """(what to compare, the value) of `name.attribute...`; raises KeyError where the name is
    nowhere, and for what is of the language."""
    root, *attributes = chain
    namespace: Any = closure if root in closure else names
    value = namespace[root]
    places: list[tuple[Any, str, Any]] = [(namespace, root, value)]
    for name in attributes:
        if is_of_language(value):
            break
        owner = unwrap(value)
        if isinstance(owner, (*_PLAIN, *_CONTAINERS)) or hasattr(owner, "source_key"):
            break
        try:
            value = getattr(owner, name)
        except AttributeError:
            break
        places.append((vars(owner) if inspect.ismodule(owner) else _Attributes(owner), name, value))
    if is_of_language(value):
        raise KeyError(".".join(chain))
    # Of what is only on the way to the value, it is enough that it stays the same object.
    *passed, (namespace, name, value) = places
    return [*passed, link(namespace, name), *_within(value)], value


def describe(value: object, seen: tuple[object, ...] = ()) -> str:
    """A text that differs where values do; of an object it tells the attributes."""
    value = unwrap(value)
    if isinstance(value, dtype):
        return value.mangle()
    if isinstance(value, _PLAIN):  # a class of the program's may show less than the value
        kind: Any = next(kind for kind in _PLAIN if isinstance(value, kind))
        return f"{_kind(value)}{kind.__repr__(value)}"
    if any(value is other for other in seen) or len(seen) > _DEEPEST:
        return "..."
    seen = (*seen, value)
    if hasattr(value, "source_key"):
        return str(value.source_key(seen))
    if isinstance(value, dict):
        items = [f"{describe(k, seen)}: {describe(v, seen)}" for k, v in value.items()]
        return f"{_kind(value)}{{{', '.join(items)}}}"
    if isinstance(value, _CONTAINERS):
        elements = [describe(element, seen) for element in value]
        if isinstance(value, set | frozenset):  # whose order is another one in each process
            elements.sort()
        return f"{_kind(value)}[{', '.join(elements)}]"
    return _describe_object(value, seen)


def _describe_object(value: object, seen: tuple[object, ...]) -> str:
    if inspect.ismodule(value) or inspect.isclass(value):
        name = f"{getattr(value, '__module__', '')}.{value.__name__}{_fields(value)}"
        return f"{type(value).__name__} {name}"
    if inspect.ismethod(value):
        return f"{describe(value.__self__, seen)}.{describe(value.__func__, seen)}"
    if (plain := python_function(value)) is not None:
        return f"{getattr(value, 'other_src', None) or ''}{_describe_function(plain, seen)}"
    if hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
        return f"{_kind(value)}{_describe_array(value)}"
    if attributes := _attributes(value):
        return f"{_kind(value)}({describe(attributes, seen)})"
    return f"{_kind(value)}{value!r}"


def _attributes(value: object) -> dict[str, Any]:
    slots = [n for c in type(value).__mro__ for n in getattr(c, "__slots__", ())]
    found = {n: getattr(value, n) for n in slots if isinstance(n, str) and hasattr(value, n)}
    return found | getattr(value, "__dict__", {})


def _describe_array(value: Any) -> str:
    """The elements of a small array of the host, which a kernel may read while it is compiled; of
    others which array it is."""
    is_host = str(getattr(value, "device", "cpu")) == "cpu" and hasattr(value, "tolist")
    if is_host and getattr(value, "nbytes", _MOST_BYTES + 1) <= _MOST_BYTES:
        return f"{value.dtype} {value.tolist()}"
    return f"{id(value)}"


def _kind(value: object) -> str:
    """The type of a value, unless its text says that already."""
    kind = type(value)
    if kind in (bool, int, float, complex, str, bytes, type(None), list, dict):
        return ""
    if kind in _CONTAINERS:
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}{_fields(kind)} "


def _fields(kind: Any) -> str:
    """The fields of a class of named tuples, which may be others of the same name."""
    return str(getattr(kind, "_fields", ""))


def _describe_function(fn: types.FunctionType, seen: tuple[Any, ...]) -> str:
    """Of a Python function that runs while compiling: its code, and what this reads."""
    values = {
        ".".join(chain): _outline(_found(namespace, chain), seen)
        for namespace, chain in _chains_read(fn)
        if not is_of_language(namespace.get(chain[0]))
    }
    defaults = describe((fn.__defaults__, fn.__kwdefaults__), seen)
    return f"{code_text(fn.__code__)} {defaults} {sorted(values.items())}"


def _outline(value: Any, seen: tuple[Any, ...], deep: int = _OUTLINED) -> str:
    """Of what a Python function reads, for a key on disk. What may change is told no deeper than
    this, as a program's objects may lead everywhere; launches do not compare it."""
    value = unwrap(value)
    if inspect.ismethod(value):
        return f"{_outline(value.__self__, seen, deep)}.{value.__name__}"
    if not is_mutable(value) or python_function(value) is not None:
        return describe(value, seen)
    if hasattr(value, "__dlpack__"):
        return _describe_array(value) if getattr(value, "nbytes", 0) <= _MOST_BYTES else ""
    held = value if isinstance(value, dict) else _attributes(value)
    if isinstance(value, tuple | list | set | frozenset):
        held = dict(
            enumerate(value if isinstance(value, tuple | list) else sorted(value, key=repr))
        )
    if deep == 0 or len(held) > _MOST_OUTLINED:
        return f"{_kind(value)}{len(held)}"
    items = [(_outline(n, seen, 0), _outline(v, seen, deep - 1)) for n, v in held.items()]
    return f"{_kind(value)}{items}"


def _found(namespace: Namespace, chain: tuple[str, ...]) -> Any:
    """The value of `name.attribute...`, or of as much of it as is there without a call: of a method
    or a property the object that has it."""
    value = namespace.get(chain[0])
    for name in chain[1:]:
        found = inspect.getattr_static(unwrap(value), name, None)
        is_called = callable(found) and not inspect.isclass(found)
        if found is None or is_called or hasattr(type(found), "__get__"):
            break
        value = found
    return value


def _chains_read(fn: types.FunctionType) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """(namespace, (name, attribute...)) of what a Python function, and what is defined in it, reads
    and does not assign."""
    namespaces: dict[str, Any] = {"LOAD_GLOBAL": fn.__globals__, "LOAD_DEREF": Closure(fn)}
    codes = [fn.__code__]
    for code in codes:  # which grows
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    ops = [[(op.opname, op.argval) for op in dis.get_instructions(code)] for code in codes]
    assigned = {name for of in ops for op, name in of if op in ("STORE_GLOBAL", "STORE_DEREF")}
    for of in ops:
        for at, (op, name) in enumerate(of):
            namespace = namespaces.get(op)
            if namespace is None or name in assigned or name not in namespace:
                continue
            rest = itertools.takewhile(
                lambda op: op[0] in ("LOAD_ATTR", "LOAD_METHOD"), of[at + 1 :]
            )
            yield namespace, (name, *(attribute for _, attribute in rest))


def _globals_read(fn: types.FunctionType) -> Iterator[tuple[Any, str]]:
    """(namespace, name) of what a Python function reads and does not assign, each once."""
    found = {chain[0]: namespace for namespace, chain in _chains_read(fn)}
    return ((namespace, name) for name, namespace in found.items())


def python_links(fn: types.FunctionType, seen: tuple[Any, ...] = ()) -> list[Link]:
    """What to compare of a Python function that runs while compiling, and of those that it calls.
    What it may keep for itself (a list, a dict) is its own affair."""
    found: list[Link] = []
    for namespace, name in _globals_read(fn):
        value = namespace.get(name)
        plain = python_function(value)
        if plain is not None:
            found.append((namespace, name, value))
            if plain is not fn and plain not in seen:
                found += python_links(plain, (*seen, fn))
        elif not is_mutable(value) and not inspect.ismodule(value) and not inspect.isclass(value):
            found += [(namespace, name, value), *_within(value)]
    return found


def has_changed(now: object, before: object) -> bool:
    """True if a value that a kernel read is another one now."""
    if now is before:
        return False
    if isinstance(unwrap(before), (*_PLAIN, tuple, frozenset)):
        return describe(now) != describe(before)
    return True
