"""Classes whose objects are values of a kernel: `@proton.aggregate`, and `tl.aggregate_replace`.

    @proton.aggregate
    class Complex:
        re: tl.tensor
        im: tl.tensor

        @proton.jit
        def times(self, other):
            return Complex(
                self.re * other.re - self.im * other.im,
                self.re * other.im + self.im * other.re,
            )

Fields are annotated; those of base classes come first. `Complex(re, im)` makes an object: by the
`__init__` of the class, which is Python that runs while compiling or a `@proton.jit` function, or
by fields in order, by name and with the class's defaults. Then its fields do not change. Methods
are `@proton.jit` functions, or Python that runs while compiling and calls ops and other aggregates
(a parameter `_semantic`, as Triton has it, may stand there and be handed on). Outside of kernels
a field that is annotated `tl.constexpr` is one.
"""

import inspect
from typing import Any, ClassVar

from proton.language.function import compiling
from proton.language.types import constexpr, unwrap

_OPEN = "$open"  # an attribute of objects whose __init__ runs


class _AggregateType(type):
    """The type of aggregates: a kernel that names one depends on its methods."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        """An object made by Python: outside of kernels, or for one that is being compiled."""
        if (caller := compiling()) is not None:
            return caller(cls, args, kwargs)
        made = opened(cls)
        if (init := constructor(cls)) is not None:
            init(made, *args, **kwargs)
        else:
            made.__dict__.update(bound_fields(cls, args, kwargs))
        return _of_host(closed(made))

    def _members(cls) -> dict[str, object]:
        members: dict[str, object] = {}
        for base in reversed(cls.__mro__):
            if base not in (object, Aggregate):
                members |= {n: v for n, v in vars(base).items() if not n.startswith("__")}
        members["__init__"] = constructor(cls)
        return {n: getattr(v, "__func__", v) for n, v in members.items()}

    def source_key(cls, seen: tuple[object, ...] = ()) -> str:
        """What differs where classes do: fields, methods, defaults."""
        from proton.language.surroundings import describe

        members = sorted(cls._members().items())
        return f"{cls.__module__}.{cls.__qualname__} {describe(members, (*seen, cls))}"

    def links(cls, seen: tuple[Any, ...] = ()) -> list[Any]:
        """What its methods hold of their surroundings; see `DeviceFunction.links`."""
        found = []
        for member in cls._members().values():
            if hasattr(member, "source_key") and hasattr(member, "links") and member not in seen:
                found += member.links((*seen, cls))
        return found


class Aggregate(metaclass=_AggregateType):
    """The base of all aggregates."""

    fields: ClassVar[dict[str, object]] = {}  # name -> annotation

    def __setattr__(self, name: str, value: object) -> None:
        if not is_open(self):
            raise AttributeError(
                f"cannot assign to field {name!r} on immutable aggregate {type(self).__name__}: "
                f"make another one with tl.aggregate_replace(x, {name}=value)"
            )
        if name not in self.fields:
            raise AttributeError(
                f"{type(self).__name__} has no field {name!r}; it has {', '.join(self.fields)}"
            )
        self.__dict__[name] = unwrap(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.__dict__.items())))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={unwrap(value)!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({values})"


def aggregate(cls: type) -> type:
    """Makes an aggregate of a class with annotated fields; see the module's text."""
    if not inspect.isclass(cls):
        raise TypeError(f"aggregate decorates a class, got {cls!r}")
    fields: dict[str, object] = {}
    if plain := [
        base for base in cls.__bases__ if base is not object and not issubclass(base, Aggregate)
    ]:
        raise TypeError(
            f"Aggregates can only inherit from other aggregates: {cls.__name__} does from "
            f"{plain[0].__name__}"
        )
    for base in reversed(cls.__mro__):
        if base is not Aggregate:
            fields |= inspect.get_annotations(base)
    members = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__setattr__": Aggregate.__setattr__,
        "__eq__": Aggregate.__eq__,
        "__hash__": Aggregate.__hash__,
        "fields": fields,
    }
    bases = (cls,) if issubclass(cls, Aggregate) else (cls, Aggregate)
    return _AggregateType(cls.__name__, bases, members)


def replaced(instance: Any, **changes: Any) -> Any:
    """`tl.aggregate_replace` outside of kernels."""
    if not isinstance(instance, Aggregate):
        raise TypeError(f"aggregate_replace expects an aggregate instance, got {instance!r}")
    for name in changes:
        if name not in instance.fields:
            raise TypeError(f"{type(instance).__name__} has no field {name!r}")
    made = opened(type(instance))
    made.__dict__.update(instance.__dict__ | changes)
    return _of_host(closed(made))


def _of_host(made: Any) -> Any:
    """The object with constexprs where its class says so, and in its tuples."""
    for name, value in made.__dict__.items():
        if is_constexpr(type(made), name):
            made.__dict__[name] = constexpr(value)
        elif is_annotated(type(made), name, tuple) and isinstance(value, tuple):
            parts = [v if hasattr(v, "data_ptr") else constexpr(v) for v in value]
            is_named = hasattr(value, "_make")
            made.__dict__[name] = type(value)(*parts) if is_named else tuple(parts)
    return made


def opened(cls: Any) -> Any:
    """An object without fields, which an `__init__` may set until it is `closed`."""
    made = object.__new__(cls)
    made.__dict__[_OPEN] = True
    return made


def is_open(value: object) -> bool:
    """True if the object's `__init__` runs."""
    return _OPEN in value.__dict__


def closed(made: Any) -> Any:
    """The object with its fields in the class's order; raises TypeError where one is missing."""
    values = dict(made.__dict__)
    if missing := [name for name in made.fields if name not in values]:
        raise TypeError(f"__init__ of {type(made).__name__} does not set {', '.join(missing)}")
    made.__dict__.clear()
    made.__dict__.update({name: values[name] for name in made.fields})
    return made


def constructor(cls: Any) -> Any:
    """The `__init__` that the class or a base of it writes; None where there is none."""
    return None if cls.__init__ is object.__init__ else cls.__init__


def bound_fields(cls: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The fields of an object of a class without `__init__`; raises TypeError."""
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    names = [
        inspect.Parameter(name, kind, default=getattr(cls, name, empty)) for name in cls.fields
    ]
    required = sorted(names, key=lambda p: p.default is not empty)  # a base may have defaults
    bound = inspect.Signature(required).bind(*args, **kwargs)
    bound.apply_defaults()
    return {name: unwrap(value) for name, value in bound.arguments.items()}


def is_annotated(cls: Any, name: str, kind: Any) -> bool:
    """True if a field is annotated with a class, or with its name where that is postponed."""
    annotation = cls.fields[name]
    is_text = isinstance(annotation, str)
    return annotation.rpartition(".")[2] == kind.__name__ if is_text else annotation is kind


def is_constexpr(cls: object, name: str) -> bool:
    """True if a field is known while compiling."""
    return is_annotated(cls, name, constexpr)
