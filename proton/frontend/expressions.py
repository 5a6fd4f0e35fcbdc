"""Expressions: literals, names, operators, calls."""

import ast
import inspect
import types
from collections.abc import Callable
from typing import Any

from proton.base.errors import CompileTimeAssertionFailure
from proton.frontend import arithmetic, contractions, control_flow, memory, shapes  # noqa: F401
from proton.frontend.builder import as_tensor, error
from proton.frontend.promotion import cast
from proton.frontend.rules import GENERATOR_RULES, RULES, generator_rule, rule
from proton.language import NotYet, core, profiling
from proton.language import types as ty
from proton.language.function import MEMBERS, Builtin, ConstexprFunction, DeviceFunction
from proton.language.value import tensor

_OPERATORS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
}

PYTHON_BUILTINS: dict[str, Any] = {
    name: __builtins__[name] if isinstance(__builtins__, dict) else getattr(__builtins__, name)
    for name in (
        "abs bool dict float getattr hasattr int isinstance len list max min print range repr "
        "reversed slice str sum tuple type zip".split()
    )
}

_GLOBAL_KINDS = (
    types.ModuleType,
    DeviceFunction,
    ConstexprFunction,
    Builtin,
    ty.dtype,
    NotYet,
    profiling._HostOp,
)


def check_global(name: str, value: Any) -> Any:
    """A global that a kernel may read: constexprs, functions, modules, types."""
    if isinstance(value, ty.constexpr):
        return value.value
    if value is None or isinstance(value, _GLOBAL_KINDS) or inspect.isclass(value):
        return value
    if value is PYTHON_BUILTINS.get(name) or isinstance(value, types.BuiltinFunctionType):
        return value
    if isinstance(value, tuple) and all(isinstance(v, (ty.constexpr, *_GLOBAL_KINDS)) for v in value):
        return tuple(ty.unwrap(v) for v in value)
    if callable(value):
        raise error(
            f"{name} is a plain Python function",
            "decorate it with @proton.jit, or @proton.constexpr_function for constexprs",
        )
    raise error(
        f"the global {name} = {value!r} is not a constexpr",
        f"write `{name} = tl.constexpr({value!r})`, or pass it as a parameter",
    )


def evaluate(g: Any, node: ast.expr) -> Any:
    """The value of an expression node; `g` is the generator."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return g.lookup(name)
        case ast.BinOp():
            return binary_op(g, node.op, g.evaluate(node.left), g.evaluate(node.right))
        case ast.UnaryOp():
            return arithmetic.unary(_OPERATORS[type(node.op)], g.evaluate(node.operand))
        case ast.Compare():
            return _compare(g, node)
        case ast.BoolOp():
            return _boolean(g, node)
        case ast.IfExp():
            return control_flow.compile_if_expression(g, node)
        case ast.Call():
            return _call(g, node)
        case ast.Attribute():
            return attribute(g, g.evaluate(node.value), node.attr)
        case ast.Subscript():
            return _subscript(g, node)
        case ast.Slice():
            return slice(*(None if p is None else g.evaluate(p) for p in (node.lower, node.upper, node.step)))
        case ast.Tuple() | ast.List():
            return tuple(g.evaluate(element) for element in node.elts)
        case ast.NamedExpr():
            value = g.evaluate(node.value)
            g.assign(node.target, value)
            return value
        case ast.JoinedStr():
            return "".join(_formatted(g, part) for part in node.values)
        case ast.ListComp():
            return _comprehension(g, node)
        case _:
            raise g.unsupported(f"the expression {type(node).__name__}")


def binary_op(g: Any, op: ast.operator, left: Any, right: Any) -> Any:
    """`left op right`."""
    if type(op) not in _OPERATORS:
        raise g.unsupported(f"operator {type(op).__name__}")
    if isinstance(left, tuple) or isinstance(right, tuple):
        return arithmetic.binary(_OPERATORS[type(op)], left, right)
    return arithmetic.binary(_OPERATORS[type(op)], left, right)


def _compare(g: Any, node: ast.Compare) -> Any:
    values = [g.evaluate(node.left), *(g.evaluate(c) for c in node.comparators)]
    result: Any = None
    for op, left, right in zip(node.ops, values, values[1:], strict=False):
        part = _compare_two(g, op, left, right)
        result = part if result is None else _and(result, part)
    return result


def _compare_two(g: Any, op: ast.cmpop, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Is | ast.IsNot):
        same = left is right or (
            not isinstance(left, tensor)
            and not isinstance(right, tensor)
            and type(left) is type(right)
            and left == right
        )
        return same if isinstance(op, ast.Is) else not same
    if isinstance(op, ast.In | ast.NotIn):
        if isinstance(left, tensor) or any(isinstance(v, tensor) for v in right):
            raise g.unsupported("'in' on tensors")
        return (left in right) == isinstance(op, ast.In)
    if (left is None or right is None) and isinstance(op, ast.Eq | ast.NotEq):
        return (left is right) == isinstance(op, ast.Eq)
    return arithmetic.binary(_OPERATORS[type(op)], left, right)


def _and(left: Any, right: Any) -> Any:
    if isinstance(left, tensor) or isinstance(right, tensor):
        return arithmetic.logical("and", left, right)
    return left and right


def _boolean(g: Any, node: ast.BoolOp) -> Any:
    is_and = isinstance(node.op, ast.And)
    result = g.evaluate(node.values[0])
    for operand in node.values[1:]:
        if not isinstance(result, tensor):
            if bool(result) != is_and:
                return result  # short circuit, as in Python
            result = g.evaluate(operand)
        else:
            result = arithmetic.logical("and" if is_and else "or", result, g.evaluate(operand))
    return result


def _formatted(g: Any, part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    value = g.evaluate(part.value)
    if isinstance(value, tensor):
        raise error("an f-string in a kernel takes constexprs, got a tensor")
    spec = "" if part.format_spec is None else evaluate(g, part.format_spec)
    return format(value, spec)


def _comprehension(g: Any, node: ast.ListComp) -> tuple[Any, ...]:
    if len(node.generators) != 1:
        raise g.unsupported("a comprehension with several generators")
    comprehension = node.generators[0]
    iterable = g.evaluate(comprehension.iter)
    if not isinstance(iterable, tuple | list | range):
        raise g.unsupported("a comprehension over anything but a tuple or range")
    before, results = dict(g.env), []
    for value in iterable:
        g.assign(comprehension.target, value)
        conditions = [g.evaluate(condition) for condition in comprehension.ifs]
        if any(isinstance(c, tensor) for c in conditions):
            raise error("the condition of a comprehension must be a constexpr")
        if all(conditions):
            results.append(g.evaluate(node.elt))
    g.env = before
    return tuple(results)


def attribute(g: Any, owner: Any, name: str) -> Any:
    """`owner.name`."""
    if isinstance(owner, tensor):
        if name in ("shape", "dtype", "type", "numel"):
            return getattr(owner, name)
        if name == "T":
            return shapes.transpose(owner)
        if name in MEMBERS:
            return _Method(owner, MEMBERS[name])
        raise error(f"a tensor has no attribute {name!r}")
    if name == "value" and isinstance(owner, bool | int | float | str):
        return owner  # of a constexpr
    try:
        value = getattr(owner, name)
    except AttributeError:
        raise error(f"{owner!r} has no attribute {name!r}") from None
    if isinstance(owner, types.ModuleType):
        return check_global(f"{owner.__name__.split('.')[-1]}.{name}", value)
    return value


class _Method:
    """A tensor's method, waiting for its call."""

    def __init__(self, owner: tensor, function: Any) -> None:
        self.owner, self.function = owner, function


def _subscript(g: Any, node: ast.Subscript) -> Any:
    owner, key = g.evaluate(node.value), g.evaluate(node.slice)
    if isinstance(owner, tensor):
        return shapes.subscript(owner, key)
    if isinstance(key, tensor):
        raise error("a tuple is indexed by constexprs, got a tensor")
    try:
        return owner[key]
    except (TypeError, KeyError, IndexError) as problem:
        raise error(f"{type(problem).__name__}: {problem}") from None


def call_arguments(g: Any, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    """(positional, keyword) arguments, evaluated."""
    args: list[Any] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            args.extend(g.evaluate(argument.value))
        else:
            args.append(g.evaluate(argument))
    kwargs = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise g.unsupported("** in a call")
        kwargs[keyword.arg] = g.evaluate(keyword.value)
    return args, kwargs


def _call(g: Any, node: ast.Call) -> Any:
    function = g.evaluate(node.func)
    if function is core.static_assert or function is core.static_print:
        return _static(g, function, node)
    args, kwargs = call_arguments(g, node)
    if isinstance(function, _Method):
        args, function = [function.owner, *args], function.function
    return call(g, function, args, kwargs)


def call(g: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Calls anything that a kernel may call."""
    if isinstance(function, DeviceFunction):
        return g.inline(function, args, kwargs)
    if isinstance(function, Builtin):
        return _call_builtin(g, function, args, kwargs)
    if isinstance(function, NotYet):
        raise g.unsupported(f"tl.{function.name} (not there yet)", "see docs/limitations.md")
    if isinstance(function, profiling._HostOp):
        return _call_profiling(g, function, args, kwargs)
    if function is profiling.scope:
        raise error("proton.scope is used as `with proton.scope(name):`")
    if function in _PYTHON_CALLS:
        return _PYTHON_CALLS[function](g, *args, **kwargs)
    return _call_constexpr(g, function, args, kwargs)


def _call_builtin(g: Any, op: Builtin, args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        op.signature.bind(*args, **kwargs)
    except TypeError as problem:
        raise error(f"tl.{op.__name__}: {problem}") from None
    if op in GENERATOR_RULES:
        return GENERATOR_RULES[op](g, *args, **kwargs)
    if op not in RULES:
        raise g.unsupported(f"{op.__name__} (not there yet)", "see docs/limitations.md")
    return RULES[op](*args, **kwargs)


def _call_profiling(g: Any, op: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    methods: dict[Any, Callable[..., None]] = {
        profiling.enter_scope: _enter_scope,
        profiling.exit_scope: _exit_scope,
        profiling.mark: lambda g, *a, **k: g.mark(*a, **k),
    }
    try:
        methods[op](g, *args, **kwargs)
    except TypeError as problem:
        raise error(f"proton.{op.__name__}: {problem}") from None


def _enter_scope(g: Any, name: Any, **payload: Any) -> None:
    g.enter_scope(name, **payload)
    g.open_scopes.append(name)


def _exit_scope(g: Any, name: Any) -> None:
    g.exit_scope(name)
    if g.open_scopes:
        g.open_scopes.pop()


def _call_constexpr(g: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Runs a Python function while compiling; every argument must be known."""
    if any(isinstance(value, tensor) for value in (*args, *kwargs.values())):
        name = getattr(function, "__name__", repr(function))
        raise error(
            f"{name} runs while compiling and cannot take a tensor",
            "use the op of proton.language of that name, if there is one",
        )
    if not callable(function):
        raise error(f"{function!r} cannot be called")
    try:
        return ty.unwrap(function(*args, **kwargs))
    except Exception as problem:
        raise error(f"{getattr(function, '__name__', function)}: {problem}") from problem


def _static(g: Any, function: Any, node: ast.Call) -> None:
    args, kwargs = call_arguments(g, node)
    if function is core.static_print:
        print(*args, **kwargs)
        return
    condition = args[0] if args else kwargs["cond"]
    message = args[1] if len(args) > 1 else kwargs.get("msg", "")
    if isinstance(condition, tensor):
        raise error("tl.static_assert takes a constexpr", "use tl.device_assert for tensors")
    if not condition:
        raise CompileTimeAssertionFailure(f"static assertion failed{': ' + message if message else ''}")


def _extremum(g: Any, rule_: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    values = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    result = values[0]
    for value in values[1:]:
        result = rule_(result, value)
    return result


def _length(g: Any, value: Any) -> int:
    if isinstance(value, tensor):
        if not value.shape:
            raise error("a scalar has no len()")
        return value.shape[0]
    return len(value)


def _number(target: ty.dtype, python: Callable[[Any], Any]) -> Callable[..., Any]:
    def convert(g: Any, value: Any) -> Any:
        return cast(value, target) if isinstance(value, tensor) else python(value)

    return convert


def _print(g: Any, *args: Any, **kwargs: Any) -> None:
    raise g.unsupported("print (tl.device_print, not there yet)", "tl.static_print prints constexprs")


def _isinstance(g: Any, value: Any, classes: Any) -> bool:
    return isinstance(value, classes)


_PYTHON_CALLS: dict[Any, Callable[..., Any]] = {
    max: lambda g, *args: _extremum(g, arithmetic.maximum, args),
    min: lambda g, *args: _extremum(g, arithmetic.minimum, args),
    abs: lambda g, value: arithmetic.absolute(value),
    len: _length,
    float: _number(ty.float32, float),
    int: _number(ty.int32, int),
    bool: _number(ty.int1, bool),
    print: _print,
    isinstance: _isinstance,
    getattr: lambda g, owner, name, *default: attribute(g, owner, name),
}


@generator_rule(core.device_assert)
def _device_assert(g: Any, cond: Any, msg: Any = "", mask: Any = None) -> None:
    g.device_assert(cond, msg, mask)


@rule(core.assume)
def _assume(cond: Any) -> None:
    if not isinstance(cond, tensor) and not cond:
        raise error("tl.assume: the condition is false")
    as_tensor(cond)


@rule(core.debug_barrier)
def _debug_barrier() -> None:
    """The threads of a CPU program are one; a GPU back end adds its op here."""
