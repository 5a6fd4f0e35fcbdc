"""Expressions: literals, names, operators, calls."""

import ast
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import proton.language as tl
from proton.base.words import did_you_mean, shown
from proton.frontend import (
    aggregates,
    arithmetic,
    blocks,  # noqa: F401 - registers its rules, as do the others marked so
    branches,
    collectives,  # noqa: F401
    contractions,  # noqa: F401
    debugging,
    descriptors,
    elementwise,  # noqa: F401
    externs,
    memory,  # noqa: F401
    scopes,  # noqa: F401
    shapes,
    target_info,  # noqa: F401
    trees,
)
from proton.frontend.attributes import BY_PYTHON, TENSOR_ATTRIBUTES, Method, attribute, type_of
from proton.frontend.builder import at_compile_time, error, truth, warn
from proton.frontend.facts import call_python
from proton.frontend.gluon import ampere, assembly, hopper, indexed, partitions, tensors  # noqa: F401
from proton.frontend.interface import CodeGenerator
from proton.frontend.numbers import is_typed, untyped
from proton.frontend.operators import (
    METHODS,
    SYMBOLS,
    UNARY_METHODS,
    by_method,
    has_method,
    kind_of,
)
from proton.frontend.overflow import binary_checked
from proton.frontend.promotion import cast
from proton.frontend.rules import GENERATOR_RULES, RULES
from proton.frontend.suggestions import instead_of_missing
from proton.language import core, profiling
from proton.language import types as ty
from proton.language.aggregate import Aggregate
from proton.language.function import (
    HIDDEN,
    MEMBERS,
    Builtin,
    Caller,
    DeviceFunction,
    ExternFunction,
    ExternPython,
)
from proton.language.gluon.core import ABSENT
from proton.language.target_info import compiling_for
from proton.language.value import tensor

# The methods of an aggregate that say what an operator does, without underscores.
# What to write in the place of an expression that is not supported.
_INSTEAD: dict[type, str] = {
    ast.Lambda: "write a @proton.jit function at module level",
    ast.Dict: "use separate names, or a tuple; values of a scope by name: scope('load', bytes=n)",
    ast.Set: "use a tuple",
    ast.GeneratorExp: "use a list comprehension over constexprs",
    ast.SetComp: "use a list comprehension over constexprs",
    ast.DictComp: "use a list comprehension over constexprs",
    ast.MatMult: "use tl.dot(a, b)",
    ast.Starred: "name each element",
}


def evaluate(g: CodeGenerator, node: ast.expr) -> object:
    """The value of an expression node; `g` is the generator."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return g.lookup(name)
        case ast.BinOp():
            return binary_op(g, node.op, g.evaluate(node.left), g.evaluate(node.right))
        case ast.UnaryOp():
            return _unary(g, node.op, g.evaluate(node.operand))
        case ast.Compare():
            return _compare(g, node)
        case ast.BoolOp():
            return _boolean(g, node)
        case ast.IfExp():
            return branches.compile_if_expression(g, node)
        case ast.Call():
            return _call(g, node)
        case ast.Attribute(attr="type"):
            return type_of(g, g.evaluate(node.value))
        case ast.Attribute():
            return attribute(g, g.evaluate(node.value), node.attr)
        case ast.Subscript():
            return _subscript(g, node)
        case ast.Slice():
            parts = (node.lower, node.upper, node.step)
            return slice(*(None if part is None else g.evaluate(part) for part in parts))
        case ast.Tuple() | ast.List():
            return tuple(_elements(g, node.elts))
        case ast.NamedExpr():
            g.give_name(node.target, g.evaluate(node.value))
            return g.evaluate(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
        case ast.JoinedStr():
            return "".join(_formatted(g, part) for part in node.values)
        case ast.ListComp():
            return _comprehension(g, node)
        case _:
            hint = _INSTEAD.get(type(node), "move it out of the kernel")
            raise g.unsupported(f"the expression {type(node).__name__}", hint)


def binary_op(g: CodeGenerator, op: ast.operator, left: object, right: object) -> object:
    """`left op right`."""
    if type(op) not in SYMBOLS:
        hint = _INSTEAD.get(type(op), "use the functions of proton.language")
        raise g.unsupported(f"operator {type(op).__name__}", hint)
    if isinstance(left, Aggregate) or isinstance(right, Aggregate):
        return by_method(functools.partial(call, g), op, SYMBOLS[type(op)], left, right)
    return binary_checked(g, SYMBOLS[type(op)], left, right)


def _unary(g: CodeGenerator, op: ast.unaryop, value: object) -> object:
    method = UNARY_METHODS[type(op)]
    if isinstance(value, Aggregate) and has_method(value, method):
        return call(g, aggregates.member(value, method)[0], [value], {})
    return arithmetic.unary(SYMBOLS[type(op)], value)


def _compare(g: CodeGenerator, node: ast.Compare) -> object:
    values = [g.evaluate(node.left), *(g.evaluate(c) for c in node.comparators)]
    result: object = None
    for op, left, right in zip(node.ops, values, values[1:], strict=False):
        part = _compare_two(g, op, left, right)
        result = part if result is None else _and(result, part)
    return result


def _compare_two(g: CodeGenerator, op: ast.cmpop, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Is | ast.IsNot):
        same = left is right or (
            not isinstance(left, tensor)
            and not isinstance(right, tensor)
            and type(left) is type(right)
            and at_compile_time("is", BY_PYTHON, lambda: bool(left == right))
        )
        return same if isinstance(op, ast.Is) else not same
    if isinstance(op, ast.In | ast.NotIn):
        elements = right if isinstance(right, tuple | list) else (right,)
        if any(isinstance(value, tensor) for value in (left, *elements)):
            raise g.unsupported("'in' on tensors", "write (x == a) | (x == b), or use tl.reduce_or")
        what = f"{shown(left)} in {shown(right)}"
        return at_compile_time(what, BY_PYTHON, lambda: left in right) == isinstance(op, ast.In)
    if (left is None or right is None) and isinstance(op, ast.Eq | ast.NotEq):
        return (left is right) == isinstance(op, ast.Eq)
    if isinstance(op, ast.Eq | ast.NotEq):
        left, right = _as_tuples(left), _as_tuples(right)
    if type(op) in METHODS and (isinstance(left, Aggregate) or isinstance(right, Aggregate)):
        return by_method(functools.partial(call, g), op, SYMBOLS[type(op)], left, right)
    return arithmetic.binary(SYMBOLS[type(op)], left, right)


def _as_tuples(value: object) -> object:
    """A list of Python's as the lists of kernels are."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _and(left: object, right: object) -> object:
    if isinstance(left, tensor) or isinstance(right, tensor):
        return arithmetic.logical("and", left, right)
    return arithmetic.undecided("and", [left, right]) if left and right else left and right


def _boolean(g: CodeGenerator, node: ast.BoolOp) -> object:
    """`and`, `or`: a constexpr decides while compiling or has no say, as in Triton."""
    is_and = isinstance(node.op, ast.And)
    word, symbol = ("and", "&") if is_and else ("or", "|")
    values: list[Any] = []
    for part in node.values:
        value = g.evaluate(part)
        if values and Aggregate in (*map(kind_of, values), kind_of(value)):
            value = by_method(functools.partial(call, g), node.op, word, values.pop(), value)
        values.append(value)
        if kind_of(value) is object and truth(value) != is_and:
            return value
    if len(values) == 1:
        return values[0]
    if any(isinstance(value, tensor) and value.is_block() for value in values):
        warn(f"'{word}' of blocks is deprecated, as in Triton: write (x > 0) {symbol} (y > 0)")
    return arithmetic.undecided(word, values)


_CONVERSIONS: dict[int, Callable[[object], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def _formatted(g: CodeGenerator, part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    value = g.evaluate(part.value)
    value = str(value) if isinstance(value, ty.dtype) else value  # as Triton writes it
    if isinstance(value, tensor):
        raise error(
            "an f-string in a kernel takes constexprs, got a tensor", "show its type: {x.type}"
        )
    if part.conversion != -1:
        value = at_compile_time("f-string", BY_PYTHON, _CONVERSIONS[part.conversion], value)
    spec = "" if part.format_spec is None else evaluate(g, part.format_spec)
    return str(at_compile_time(f"{{{shown(value)}:{spec}}}", BY_PYTHON, format, value, spec))


def _elements(g: CodeGenerator, nodes: list[ast.expr]) -> list[object]:
    """The values of expressions, starred ones unpacked."""
    values: list[object] = []
    for node in nodes:
        if not isinstance(node, ast.Starred):
            values.append(g.evaluate(node))
            continue
        value = g.evaluate(node.value)
        if not isinstance(value, tuple | list | range):
            found = value.type if isinstance(value, tensor) else shown(value)
            raise error(f"* unpacks a tuple, got {found}", "pass the elements one by one")
        values += value
    return values


def _comprehension(g: CodeGenerator, node: ast.ListComp) -> tuple[object, ...]:
    if len(node.generators) != 1:
        raise g.unsupported(
            "a comprehension with several generators", "write one comprehension inside another"
        )
    comprehension = node.generators[0]
    iterable = g.evaluate(comprehension.iter)
    if not isinstance(iterable, tuple | list | range):
        raise g.unsupported(
            "a comprehension over anything but a tuple or range", "for i in range(...) or a tuple"
        )
    before, results = dict(g.env), []
    for value in iterable:
        g.assign(comprehension.target, value)
        conditions = [g.evaluate(condition) for condition in comprehension.ifs]
        if any(isinstance(c, tensor) for c in conditions):
            raise error(
                "the condition of a comprehension must be a constexpr, got a tensor", "use tl.where"
            )
        if all(truth(condition) for condition in conditions):
            results.append(g.evaluate(node.elt))
    g.env = before
    return tuple(results)


def _subscript(g: CodeGenerator, node: ast.Subscript) -> object:
    owner, key = g.evaluate(node.value), g.evaluate(node.slice)
    if isinstance(owner, Aggregate) and hasattr(owner, "__getitem__"):
        return call(g, aggregates.member(owner, "__getitem__")[0], [owner, key], {})
    if isinstance(owner, tensor):
        return shapes.subscript(owner, key)
    if isinstance(key, tensor):
        raise error(
            "a tuple is indexed by constexprs, got a tensor", "choose with tl.where or if instead"
        )
    return ty.unwrap(at_compile_time("index", BY_PYTHON, lambda: owner[key]))


def call_arguments(g: CodeGenerator, node: ast.Call) -> tuple[list[object], dict[str, object]]:
    """(positional, keyword) arguments, evaluated."""
    args = _elements(g, node.args)
    kwargs = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise g.unsupported("** in a call", "write each argument by its name")
        kwargs[keyword.arg] = g.evaluate(keyword.value)
    return args, kwargs


def _call(g: CodeGenerator, node: ast.Call) -> Any:
    function = g.evaluate(node.func)
    args, kwargs = call_arguments(g, node)
    if isinstance(function, Method):
        args, function = [function.owner, *args], function.function
    if node is g.dropped and (must_use := getattr(function, "_must_use_result", False)):
        raise error(
            f"The result of {ast.unparse(node.func)} is not being used.",
            must_use if isinstance(must_use, str) else "give it a name, or leave the call out",
        )
    return call(g, function, args, kwargs, node.func)


_Written = ast.expr | None  # of a call that is in a kernel's source, what is called there


def call(
    g: CodeGenerator,
    function: Any,
    args: list[Any],
    kwargs: dict[str, Any],
    written: _Written = None,
) -> Any:
    """Calls anything that a kernel may call, `written` so in its source."""
    if isinstance(function, DeviceFunction):
        return g.call(function, args, kwargs)
    if isinstance(function, Builtin):
        return _call_builtin(g, function, args, kwargs, written)
    if isinstance(function, ExternFunction):
        name = written or f"libdevice.{function.__name__}"
        check_arguments(name, function.signature, args, kwargs)
        return externs.call_extern(function, function.signature.bind(*args, **kwargs).args)
    if isinstance(function, ExternPython):
        hint = "it runs while compiling: of tensors it may call the functions of tl"
        args, kwargs = externs.passed(function, args, kwargs)
        return ty.unwrap(
            at_compile_time(function.__name__, hint, function.run, _python_of(g), args, kwargs)
        )
    if isinstance(function, profiling._HostOp):
        return _call_profiling(g, function, args, kwargs)
    if inspect.isclass(function) and issubclass(function, profiling.scope):
        raise error(
            "proton.scope is used as `with proton.scope(name):`",
            "or call proton.enter_scope(name) and proton.exit_scope(name)",
        )
    if inspect.isclass(function) and issubclass(function, Aggregate):
        return aggregates.make(g, _python_of(g), function, args, kwargs)
    if isinstance(function, Aggregate) and callable(function):
        return call(g, aggregates.member(function, "__call__")[0], [function, *args], kwargs)
    if not callable(function):
        found = function.type if isinstance(function, tensor) else shown(function)
        raise error(f"{found} cannot be called", "call a function of the language")
    for python, convert in _PYTHON_CALLS.items():
        if function is python:
            check_arguments(python.__name__, signature_of(convert, None), args, kwargs)
            return convert(g, *args, **kwargs)
    with compiling_for(g.target):
        return call_python(function, args, kwargs)


def _python_of(g: CodeGenerator) -> Caller:
    """What calls the language for Python that runs while a kernel is compiled: constexprs, which
    Python may make, are plain values in a kernel, and Triton's own parameters mean nothing."""

    def caller(function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        given = {name: _plain(value) for name, value in kwargs.items() if name not in HIDDEN}
        return call(g, function, [_plain(value) for value in args], given)

    return caller


def _plain(value: Any) -> Any:
    """A value of Python without constexprs in it."""
    value = ty.unwrap(value)
    if isinstance(value, tuple | list):
        return trees.with_parts(value, map(_plain, value))
    return value


@functools.cache  # making one takes longer than what a kernel does with it
def signature_of(function: Any, *given: Any) -> inspect.Signature:
    """The signature of what Python calls, without the parameters that are `given`."""
    return inspect.signature(functools.partial(function, *given))


def check_arguments(
    name: str | ast.expr, signature: inspect.Signature, args: Any, kwargs: dict[str, Any]
) -> None:
    """The arguments fit the signature of what is called by this name."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as problem:
        unknown = [word for word in kwargs if word not in signature.parameters]
        near = did_you_mean(unknown[0], signature.parameters) if unknown else ""
        said = ast.unparse(name) if isinstance(name, ast.expr) else name
        raise error(f"{said}: {problem}{near}", f"its parameters are {signature}") from None


def _call_builtin(
    g: CodeGenerator,
    op: Builtin,
    args: list[object],
    kwargs: dict[str, object],
    written: _Written,
) -> object:
    check_arguments(written or op.__name__, op.signature, args, kwargs)
    if op in GENERATOR_RULES:
        return GENERATOR_RULES[op](g, *args, **kwargs)
    if op in ABSENT:
        what, instead = ABSENT[op]
        raise error(f"{op.__name__} is {what}, which is not supported", instead)
    if op not in RULES:
        raise g.unsupported(f"{op.__name__} (not there yet)", instead_of_missing(op.__name__))
    return RULES[op](*args, **kwargs)


def _call_profiling(g: CodeGenerator, op: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    check_arguments(f"proton.{op.__name__}", signature_of(op), args, kwargs)
    if op not in GENERATOR_RULES:
        raise error(f"proton.{op.__name__} is for the host", "use proton.scope in a kernel")
    return GENERATOR_RULES[op](g, *args, **kwargs)


def _extremum(name: str, rule_: Callable[..., object]) -> Callable[..., object]:
    """Python's `max` or `min`, of tensors, too."""

    def extremum(g: CodeGenerator, *values: object) -> object:
        if len(values) == 1 and isinstance(values[0], tuple | list | range):
            values = tuple(values[0])
        if len(values) < 2 and (not values or isinstance(values[0], tensor)):
            raise error(
                f"{name} takes two values or more, got {len(values)}",
                f"tl.{name}(x, axis=0) reduces a block",
            )
        if any(isinstance(value, tensor) and value.is_block() for value in values):
            warn(f"Python's {name} of blocks is deprecated, as in Triton: use tl.{name}imum")
        arithmetic.check_order(name, values)
        return functools.reduce(rule_, values)

    return extremum


def _length(g: CodeGenerator, value: object) -> int:
    if not isinstance(value, tensor):
        return int(at_compile_time("len", BY_PYTHON, len, value))
    if not value.shape:
        raise error("a scalar has no len()", "only blocks and tuples have one")
    return value.shape[0]


def _elements_of(g: CodeGenerator, values: object = ()) -> tuple[object, ...]:
    if isinstance(values, tensor):
        raise error("a tensor has no elements in a kernel", "write (x,) for a tuple of one")
    return tuple(at_compile_time("tuple", BY_PYTHON, list, values))


def _number(target: ty.dtype, python: Callable[[Any], Any]) -> Callable[..., Any]:
    def convert(g: CodeGenerator, value: object) -> object:
        if isinstance(value, tensor):
            return cast(value, target)
        return at_compile_time(python.__name__, BY_PYTHON, python, value)

    return convert


def _isinstance(g: CodeGenerator, value: object, classes: object) -> bool:
    choices = {*classes} if isinstance(classes, tuple) else {classes}
    if isinstance(value, tl.tensor_descriptor):
        return descriptors.class_of(value) in choices
    known = not isinstance(value, tensor)
    if known and choices & {core.base_value, tensor if is_typed(value) else ty.constexpr}:
        return True  # constexprs, and numbers with a type, are plain Python values here
    return bool(at_compile_time("isinstance", BY_PYTHON, isinstance, untyped(value), classes))


def _getattr(g: CodeGenerator, owner: Any, name: Any, *default: Any) -> Any:
    if not _hasattr(g, owner, name) and default:
        return default[0]
    return attribute(g, owner, name)


def _hasattr(g: CodeGenerator, owner: object, name: object) -> bool:
    if not isinstance(name, str):
        raise error(f"an attribute's name is a constexpr str, got {shown(name)}", "write 'name'")
    if isinstance(owner, tl.tensor_descriptor):
        return name in descriptors.ATTRIBUTES or hasattr(descriptors.class_of(owner), name)
    if isinstance(owner, tensor):
        return name in TENSOR_ATTRIBUTES or name in MEMBERS
    return bool(at_compile_time("hasattr", BY_PYTHON, hasattr, owner, name))


_PYTHON_CALLS: dict[object, Callable[..., object]] = {
    max: _extremum("max", arithmetic.greater),
    min: _extremum("min", arithmetic.lesser),
    abs: lambda g, value: arithmetic.absolute(value),
    len: _length,
    float: _number(ty.float32, float),
    int: _number(ty.int32, int),
    bool: _number(ty.int1, bool),
    print: lambda g, *args: debugging.device_print(*args),
    tuple: _elements_of,
    list: _elements_of,
    isinstance: _isinstance,
    getattr: _getattr,
    hasattr: _hasattr,
}
