"""A function of an interpreted kernel while it runs: what its rewritten body asks for.

Each method takes the number of a site first (rewrite.py).
"""

import ast
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from proton.base.targets import CPUTarget
from proton.compiler import compile_lock
from proton.dialect.context import mlir_context
from proton.dialect.scopes import ScopeEntry
from proton.frontend import branches, calls, expressions, loops, scopes
from proton.frontend.arithmetic import undecided
from proton.frontend.attributes import Method
from proton.frontend.builder import constant, is_number, named, truth
from proton.frontend.flow import Undefined
from proton.frontend.interface import CodeGenerator
from proton.frontend.numbers import untyped
from proton.frontend.promotion import cast
from proton.frontend.trees import parts_of, same_form, with_parts
from proton.interpreter.debugging import TOOLS, StepGenerator, leaving
from proton.interpreter.rewrite import Rewritten, operand_names
from proton.interpreter.steps import Rule, key_of, plan, result_of
from proton.interpreter.values import Value
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.language.surroundings import OF_LANGUAGE, is_of_language
from proton.language.value import tensor
from proton.trace.wire import NO_ITERATION


class Frame:
    """One activation of a function."""

    tools = TOOLS

    def __init__(self, program: Any, fn: DeviceFunction, caller: "Frame | None" = None) -> None:
        self.program, self.fn, self.caller = program, fn, caller
        self.code: Rewritten = program.interpreter.rewritten(fn)
        self.node: ast.AST = fn.parse()
        self.scopes: tuple[ScopeEntry, ...] = caller.scopes if caller else ()
        self.types: dict[int, Any] = {}  # of variables where paths meet, by site
        self.loops: dict[int, Any] = {}

    # The front end

    def generator(self, env: dict[str, object] | None = None) -> StepGenerator:
        """The front end, at the place where this function is."""
        caller = self.caller.generator() if self.caller else None
        g = StepGenerator(
            self.fn,
            env or {},
            target=CPUTarget(),
            debug=self.program.debug,
            sanitize_overflow=self.program.sanitize_overflow,
            num_warps=self.program.num_warps,
            caller=caller,
        )
        g.node, g.scopes = self.node, list(self.scopes)
        g.first_scope = g.block_scope = 0
        return g

    def step(self, site: Any, rule: Rule, *operands: object, node: ast.AST | None = None) -> Any:
        """What a rule gives for these operands; `node` is where, by default the site's place."""
        self.node = node or self.code.sites[site].node
        data: list[Any] = []
        key = site, self.scopes, self.program.chosen, key_of(operands, data)
        found = self.code.plans.get(key)
        if found is None:
            found = plan(self.generator(), self.node, rule, operands)
            self.code.plans[key] = found
        result = found.run(self.program, data)
        self.scopes = found.scopes
        return result

    def _types(self, site: Any, rule: Rule, env: dict[str, object]) -> Any:
        """What a rule gives for variables like these, for its types; known from then on."""
        self.node = self.code.sites[site].node
        names, operands = tuple(env), tuple(env.values())
        key = "types", site, self.program.chosen, names, key_of(operands, [])
        if key not in self.code.plans:

            def bound(g: CodeGenerator, *values: object) -> object:
                g.env = dict(zip(names, values, strict=True))
                return rule(g)

            self.code.plans[key] = result_of(self.generator(), self.node, bound, operands)
        return self.code.plans[key]

    # Expressions

    def value(self, site: int, *operands: object) -> Any:
        """An expression, by its template."""
        if site in self.code.constants:
            return self.code.constants[site]
        template = self.code.sites[site].template
        found = self.step(site, _template_rule(template), *operands)
        if isinstance(template, ast.Attribute) and is_of_language(operands[0]):
            self.code.constants[site] = found
        return found

    def evaluate(self, text: str, *operands: object) -> object:
        """An expression that is typed while the kernel stands still, of a and b."""
        template = ast.parse(text, mode="eval").body
        if text == "bool":
            return self._holds(text, operands[0])
        for node in ast.walk(template):
            ast.copy_location(node, self.node)
            if isinstance(node, ast.Name) and node.id in ("a", "b"):
                node.id = operand_names(2)[node.id == "b"]
        found = self.step(text, _template_rule(template), *operands, node=self.node)
        if isinstance(found, Method):
            return lambda *args, **kwargs: self.call_at(text, self.node, found, args, kwargs)
        return found

    def name(self, site: int, name: str) -> Any:
        """A name that is not the function's own."""
        if site in self.code.constants:
            return self.code.constants[site]
        self.node = self.code.sites[site].node
        with contextlib.suppress(KeyError):
            if is_of_language(found := self.fn.lookup(name)):
                self.code.constants[site] = found
                return found
        g = self.generator()
        return self._located(g, lambda: ty.unwrap(g.lookup(name)))

    def _located(self, g: StepGenerator, ask: Callable[[], object]) -> Any:
        """What the front end says outside of a step; its errors get their place."""
        with compile_lock, mlir_context(), g.at(self.node):
            return ask()

    def formatted(self, site: int, value: object) -> object:
        """A value in an f-string; a type is written as Triton does."""
        return str(value) if isinstance(value, ty.dtype) else value

    def named(self, site: int, value: object) -> Any:
        """What an assignment gives a variable."""
        return named(value)

    def constexpr(self, site: int, value: object) -> Any:
        """The same, of a variable that the source says is a constexpr."""
        return untyped(value)

    def slice(self, site: int, *parts: object) -> slice:
        """`a:b:c` in a subscript."""
        return slice(*parts)

    def tuple(self, site: int, values: Iterable[object]) -> Any:
        """What a list is in the language."""
        return tuple(values)

    def decides(self, site: int, value: object) -> bool:
        """True if a value is known while compiling and decides an `and` or `or`."""
        is_and = isinstance(self.code.sites[site].node.op, ast.And)
        return not isinstance(value, tensor) and truth(value) != is_and

    def logical(self, site: int, *values: object) -> Any:
        """An `and` or `or` that no value decided."""
        word = "and" if isinstance(self.code.sites[site].node.op, ast.And) else "or"
        return self.step(site, lambda g, *operands: undecided(word, operands), *values)

    # Calls

    def call(self, site: int, function: object, /, *args: object, **kwargs: object) -> Any:
        """A call of anything; functions of the author's run as Python."""
        return self.call_at(site, self.code.sites[site].node, function, args, kwargs)

    def call_at(
        self,
        site: Any,
        node: ast.AST,
        function: object,
        args: Sequence[object],
        kwargs: dict[str, object],
    ) -> object:
        self.node = node
        if isinstance(function, Method):
            args, function = (function.owner, *args), function.function
        if isinstance(function, DeviceFunction) and not _is_of_library(function):
            return self._call_function(site, function, args, kwargs)
        names = tuple(kwargs)

        def rule(
            g: CodeGenerator, positional: tuple[object, ...], named: tuple[object, ...]
        ) -> Any:
            keywords = dict(zip(names, named, strict=True))
            return expressions.call(g, function, list(positional), keywords)

        key = site, function if _is_hashable(function) else id(function), names
        return self.step(key, rule, args, tuple(kwargs.values()), node=node)

    def _call_function(
        self, site: Any, fn: DeviceFunction, args: Sequence[object], kwargs: dict[str, object]
    ) -> Any:
        g = self.generator()
        env = self._located(g, lambda: calls._bind(g, fn, args, kwargs))
        callee = Frame(self.program, fn, self)
        like = callee.returned(env)
        with self.program.inside(callee):
            result = callee.code.function(callee, *env.values())
        return self._as(site, result, like)

    def returned(self, env: dict[str, object]) -> Any:
        """What the compiler says that the function returns, for its types."""
        names, operands = tuple(env), tuple(env.values())
        key = "returned", self.program.chosen, names, key_of(operands, [])
        if key not in self.code.plans:
            caller = self.caller
            assert caller is not None

            def rule(g: CodeGenerator, *values: object) -> Any:
                bound = dict(zip(names, values, strict=True))
                return calls._run(g.callee(self.fn, bound, functions=None), self.fn)

            self.code.plans[key] = result_of(caller.generator(), caller.node, rule, operands)
        return self.code.plans[key]

    # Conditions, and what paths have in common

    def _holds(self, site: object, value: object) -> bool:
        if not isinstance(value, tensor):
            return truth(value)
        found = self.step(("holds", site), _condition_rule, value, node=self.node)
        return bool(found.data)

    def branch(self, site: int, value: object, variables: dict[str, object]) -> bool:
        """True if the condition of an `if` holds; notes the types where its paths meet."""
        node = self.code.sites[site].node
        self.node = node.test
        self.types[site] = None
        holds = self._holds(site, value)
        if isinstance(value, tensor):
            self.types[site] = self._meeting(site, node, variables)
        return holds

    def chosen(self, site: int, value: object) -> Any:
        """A side of `a if c else b`, as the type that both have."""
        types = self.types[site]
        return value if types is None else self._as(site, value, types["$value"])

    def joins(self, site: int, name: str, variables: dict[str, object]) -> bool:
        """True if a variable may have to become a tensor."""
        types = self.types[site]
        return bool(types) and name in variables and name in types

    def joined(self, site: int, name: str, value: object) -> Any:
        """A variable as the type that the compiler gives it where paths meet."""
        return self._as(site, value, self.types[site][name])

    def _meeting(
        self, site: int, node: ast.stmt | ast.IfExp, variables: dict[str, object]
    ) -> dict[str, object]:
        """The values, for their types, that a statement leaves in the variables that it assigns;
        of an expression its own."""
        used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        env = {name: value for name, value in variables.items() if name in used}

        if isinstance(node, ast.IfExp):
            return {"$value": self._types(site, lambda g: g.evaluate(node), env)}
        names = tuple(loops.assigned_names([node]))

        def rule(g: CodeGenerator) -> Any:
            g.run([leaving(node)])
            return tuple(g.env.get(name) for name in names)

        found = self._types(site, rule, env)
        return dict(zip(names, found, strict=True))

    def _as(self, site: object, value: object, like: object) -> object:
        """A value as the type that the compiler gives it; undefined where it has none there."""
        if isinstance(like, Undefined):
            return like
        if same_form(like, value):
            pairs = zip(parts_of(value) or (), parts_of(like) or (), strict=True)
            return with_parts(value, [self._as(site, *both) for both in pairs])
        if not isinstance(like, tensor):
            return value
        if isinstance(value, tensor):
            if value.type == like.type:
                return value
            return self.step(("as", site), _cast_rule, value, like.type, node=self.node)
        if is_number(value):
            return self.step(("as", site), _constant_rule, value, like.type, node=self.node)
        return value

    # Loops

    def enter_for(
        self,
        site: int,
        variables: dict[str, object],
        function: object,
        /,
        *args: object,
        **kwargs: object,
    ) -> None:
        """The bounds of a `for`, and the types of what it carries."""
        node, names = self.code.sites[site].node, tuple(kwargs)
        self.node, self.types[site] = node.iter, None

        def rule(
            g: CodeGenerator, positional: tuple[object, ...], named: tuple[object, ...]
        ) -> Any:
            return _bounds(g, node.iter, function, positional, dict(zip(names, named, strict=True)))

        key = "bounds", site, names
        is_static, *bounds = self.step(key, rule, args, tuple(kwargs.values()), node=node.iter)
        self.loops[site] = is_static, bounds
        if not is_static:
            self.types[site] = self._meeting(site, node, variables)

    def iterations(self, site: int) -> Iterator[Any]:
        """What the variable of a `for` becomes."""
        is_static, bounds = self.loops[site]
        if is_static:
            yield from range(*bounds)
            return
        lower, upper, step, start, scale = bounds
        type_, dtype = lower.type, np.asarray(lower.data).dtype.type
        recorder = self.program.recorder
        outer, count = recorder.iteration, 0
        first, last, stride = (int(value.data) for value in (lower, upper, step))
        try:
            for number in range(first, last, stride) if stride > 0 else ():
                recorder.iteration = count
                index = number if start is None else int(start.data) + number * scale
                yield Value(dtype(index), type_)
                count += 1
        finally:
            recorder.iteration = outer

    def enter_while(self, site: int, variables: dict[str, object]) -> None:
        """The types of what a `while` carries."""
        node = self.code.sites[site].node
        self.node = node.test
        self.types[site] = self._meeting(site, node, variables)
        self.loops[site] = self.program.recorder.iteration
        self.program.recorder.iteration = NO_ITERATION

    def goes_on(self, site: int, value: object) -> bool:
        """True if a `while` goes on."""
        self.node = self.code.sites[site].node.test
        return self._holds(site, value)

    def leave_while(self, site: int) -> None:
        """A `while` has ended."""
        self.program.recorder.iteration = self.loops[site]

    # Assertions and scopes

    def check(self, site: int, condition: object, message: object) -> None:
        """An `assert`."""
        self.step(site, lambda g, c, m: g.device_assert(c, m), condition, message)

    @contextlib.contextmanager
    def scope(
        self, site: int, function: object, /, *args: object, **kwargs: object
    ) -> Iterator[None]:
        """`with proton.scope(...):`"""
        names, node = tuple(kwargs), self.code.sites[site].node

        def enter(
            g: CodeGenerator, positional: tuple[object, ...], named: tuple[object, ...]
        ) -> str:
            keywords = dict(zip(names, named, strict=True))
            entered: str = scopes.enter(g, *positional, **keywords)
            return entered

        key = "enter", site, names
        name = self.step(key, enter, args, tuple(kwargs.values()), node=node)
        yield
        self.step(("exit", site), scopes.leave, name, node=node)


def _template_rule(template: ast.expr) -> Rule:
    def rule(g: CodeGenerator, *operands: object) -> Any:
        g.env = dict(zip(operand_names(len(operands)), operands, strict=True))
        return g.evaluate(template)

    return rule


def _condition_rule(g: CodeGenerator, value: object) -> object:
    g.env = {"$0": value}
    assert g.node is not None
    node = ast.copy_location(ast.Name("$0", ast.Load()), g.node)
    return branches.condition_of(g, node)


def _cast_rule(g: CodeGenerator, value: tensor, type_: ty.dtype) -> object:
    return cast(value, type_.scalar)


def _constant_rule(g: CodeGenerator, value: float, type_: ty.dtype) -> object:
    return constant(value, type_)


def _bounds(
    g: CodeGenerator,
    node: ast.Call,
    function: object,
    args: Sequence[object],
    kwargs: dict[str, object],
) -> tuple[object, ...]:
    """(whether the loop is unrolled, start, stop, step), or the bounds of a loop, with the start
    and the step of its variable where it counts down."""
    names = operand_names(len(args))
    g.env = dict(zip(names, args, strict=True)) | {f"${k}": v for k, v in kwargs.items()}
    g.env["$range"] = function
    call = ast.Call(
        ast.Name("$range", ast.Load()),
        [ast.Name(name, ast.Load()) for name in names],
        [ast.keyword(name, ast.Name(f"${name}", ast.Load())) for name in kwargs],
    )
    ast.fix_missing_locations(ast.copy_location(call, node))
    bounds = loops._parse_range(g, call)
    if bounds.static:
        return True, bounds.start, bounds.stop, bounds.step
    lower, upper, step, start = loops._loop_bounds(bounds)
    return False, lower, upper, step, start, None if start is None else bounds.step


def _is_of_library(fn: DeviceFunction) -> bool:
    """True if a function is one of the language's own."""
    return fn.__module__.startswith(OF_LANGUAGE)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
