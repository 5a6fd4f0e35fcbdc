"""The code generator: walks a kernel's AST once and emits `tt` IR as it goes.

A variable is either a `tensor` (an SSA value) or a plain Python object that is known while
compiling. Calls of other device functions are compiled in place, with the call site in the
location, or kept (calls.py); a scope is a name location around everything compiled inside it.
"""

import ast
import builtins
import contextlib
import itertools
from collections.abc import Iterator, Sequence

from proton.base.errors import (
    CompilationError,
    LocatedError,
    SourceSpan,
    UnsupportedLanguageConstruct,
)
from proton.base.targets import Target
from proton.base.words import did_you_mean
from proton.dialect import tt
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Location, ir
from proton.dialect.scopes import ScopeEntry, located
from proton.frontend import aggregates, branches, calls, expressions, loops, scopes
from proton.frontend.arithmetic import logical, logical_not
from proton.frontend.attributes import PYTHON_BUILTINS, check_global
from proton.frontend.builder import check_unpacked, constant, error, named, truth
from proton.frontend.flow import FELL_OFF, EndedLoop, Outcome, Returned, Undefined
from proton.frontend.gluon.names import as_named_in
from proton.frontend.interface import DOT_PRECISION, CodeGenerator, KeptFunctions, LoopBody
from proton.frontend.numbers import untyped
from proton.frontend.promotion import to_bool
from proton.frontend.suggestions import instead_of
from proton.language import profiling
from proton.language import types as ty
from proton.language.aggregate import Aggregate
from proton.language.function import DeviceFunction
from proton.language.value import tensor

# What to write in the place of a statement that is not supported.
_INSTEAD = {
    "try": "check the condition with if, tl.where or tl.device_assert",
    "raise": "use tl.static_assert or tl.device_assert",
    "delete": "leave it out: a variable costs nothing once it is unused",
    "import": "import at module level",
    "importfrom": "import at module level",
    "global": "pass the value as a parameter, and return it",
    "nonlocal": "pass the value as a parameter, and return it",
    "match": "write if and elif",
}


class _At:
    """A context in which a generator compiles a node: its location on new ops, unless it `emits`
    none, and its place in errors. There is one for each expression."""

    __slots__ = ("_before", "_generator", "_location", "_node")

    def __init__(self, generator: "Generator", node: ast.AST, *, emits: bool = True) -> None:
        self._generator, self._node, self._before = generator, node, generator.node
        self._location: Location | None = None
        generator.node = node
        if emits:
            self._location = generator.location()

    def __enter__(self) -> None:
        if self._location is not None:
            self._location.__enter__()

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if self._location is not None:
            self._location.__exit__(None, None, None)
        try:
            if isinstance(problem, Exception):
                self._explain(problem)
        finally:
            self._generator.node = self._before

    def _explain(self, problem: Exception) -> None:
        """Says where an error is, and makes the compiler's own error of any other one."""
        span, calls = self._generator.span(), self._generator.call_trace()
        if isinstance(problem, LocatedError):
            if problem.span is None:
                problem.span, problem.trace = span, calls
                fn = self._author()
                problem.rule, problem.hint = (
                    as_named_in(fn, text) for text in (problem.rule, problem.hint)
                )
            return
        if isinstance(problem, RecursionError):
            raise CompilationError(
                "this nests too deeply for the compiler",
                span,
                "give parts of it names of their own",
                calls,
            ) from problem
        raise CompilationError(
            f"the compiler failed here: {type(problem).__name__}: {problem}",
            span,
            "this is a fault of the compiler: please report it, with this piece of source",
            calls,
        ) from problem

    def _author(self) -> DeviceFunction:
        """The function that its author wrote in Gluon, which may call the language's own ones."""
        generator = self._generator
        while generator.caller is not None and not generator.fn.has_layouts:
            generator = generator.caller
        return generator.fn


class Generator(CodeGenerator):
    """Compiles one function body; callees get a generator of their own."""

    prints = True  # what tl.static_print is given

    def __init__(
        self,
        fn: DeviceFunction,
        env: dict[str, object],
        *,
        target: Target,
        num_warps: int = 0,
        num_ctas: int = 1,
        debug: bool = False,
        sanitize_overflow: bool = True,
        dot_precision: str = DOT_PRECISION,
        caller: "Generator | None" = None,
        functions: KeptFunctions | None = None,
        own_function: bool = False,
    ) -> None:
        self.fn, self.env, self.debug, self.caller = fn, env, debug, caller
        self.sanitize_overflow = sanitize_overflow  # in debug mode
        self.dot_precision = dot_precision  # of products that ask for none
        self.target, self.num_warps = target, num_warps  # 0: a CPU's that hears of none
        self.num_ctas = num_ctas
        self.functions = functions  # None: every call is compiled in place
        self.own_function = own_function or caller is None  # not in the place of a call
        self.node: ast.AST | None = None
        self.dropped: ast.expr | None = None  # an expression whose value is not used
        self._called_at: tuple[ast.AST | None, Location] | None = None
        inlined_in = None if self.own_function else caller
        self.scopes: list[ScopeEntry] = list(inlined_in.scopes) if inlined_in else []
        # Each opening of a scope in a function has a number, those of what it inlines among them.
        self.entries: Iterator[int] = inlined_in.entries if inlined_in else itertools.count(1)
        self.first_scope = len(self.scopes)  # of this function
        self.block_scope = len(self.scopes)  # the first of the block: it may exit those from here
        self.depth: int = caller.depth + 1 if caller else 0
        self.loop: LoopBody | None = None  # whose body this is in
        self.block_depth: int = caller.block_depth if caller else 0
        self.first_block_depth = self.block_depth

    # Places

    def span(self, node: ast.AST | None = None) -> SourceSpan:
        """The piece of source of a node, by default of the one being compiled."""
        node = node or self.node or self.fn.parse()
        return SourceSpan(
            file=self.fn.file,
            line=getattr(node, "lineno", 1),
            column=getattr(node, "col_offset", 0),
            end_line=getattr(node, "end_lineno", None) or 0,
            end_column=getattr(node, "end_col_offset", None) or 0,
            function=self.fn.__name__,
            start=(self.fn.parse().lineno, self.fn.parse().col_offset),
            lines=self.fn.source.lines,
        )

    def call_trace(self) -> tuple[SourceSpan, ...]:
        """The call sites that led here, innermost first."""
        trace, generator = [], self.caller
        while generator is not None:
            trace.append(generator.span())
            generator = generator.caller
        return tuple(trace)

    def _plain_location(self) -> Location:
        node = self.node or self.fn.parse()  # not `span`: there is a location for each node
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        own = ir.Location.file(self.fn.file, line, column + 1)
        if self.caller is None or self.own_function:
            return own
        return ir.Location.callsite(own, [self._call_location(self.caller)])

    def _call_location(self, caller: "Generator") -> Location:
        """Where the function is called: one place, which each op of its asks for."""
        if self._called_at is None or self._called_at[0] is not caller.node:
            self._called_at = caller.node, caller._plain_location()
        return self._called_at[1]

    def location(self) -> Location:
        """Where the node being compiled is: file, call sites, and the open scopes around it."""
        plain = self._plain_location()
        if not self.scopes:
            return plain
        return located(self.scopes, plain)

    def at(self, node: ast.AST) -> contextlib.AbstractContextManager[None]:
        """Compiles `node`: its location on new ops, its place in errors."""
        return _At(self, node)

    def unsupported(self, what: str, hint: str) -> UnsupportedLanguageConstruct:
        """The error for a construct that is not supported."""
        return UnsupportedLanguageConstruct(
            f"{what} is not supported in a kernel", self.span(), hint, self.call_trace()
        )

    # Names

    def lookup(self, name: str) -> object:
        """The value of a name: a local, a global, or a Python builtin."""
        if name in self.env:
            value = self.env[name]
            if isinstance(value, EndedLoop):
                return value.last()
            if isinstance(value, Undefined):
                raise error(f"{name} may be undefined here: {value.why}", "assign it before")
            return value
        try:
            value = self.fn.lookup(name)
        except KeyError:
            if name in PYTHON_BUILTINS:
                return PYTHON_BUILTINS[name]
            if name in vars(builtins):
                raise error(
                    f"{name} of Python cannot be used in a kernel",
                    instead_of(name) or "use the ops of proton.language",
                ) from None
            known = [*self.env, *self.fn.__globals__, *PYTHON_BUILTINS]
            raise error(
                f"{name} is not defined{did_you_mean(name, known)}",
                "assign it first, or pass it as a parameter",
            ) from None
        return check_global(name, value)

    def evaluate(self, node: ast.expr) -> object:
        """The value of an expression."""
        if isinstance(node, ast.Constant):
            return node.value
        with _At(self, node, emits=not isinstance(node, ast.Name)):
            return expressions.evaluate(self, node)

    def call_arguments(self, node: ast.Call) -> tuple[list[object], dict[str, object]]:
        """(positional, keyword) arguments of a call, evaluated."""
        return expressions.call_arguments(self, node)

    # Statements

    def run(self, statements: Sequence[ast.stmt], *, tail: bool = False) -> Outcome:
        """Compiles statements in order, up to a return; how they end.

        `tail` says that the function, or the loop's body, ends behind them.
        """
        index = 0
        while index < len(statements):
            statement = statements[index]
            index += 1
            with self.at(statement):
                if isinstance(statement, ast.If):
                    left = branches.compile_if(self, statement, list(statements[index:]), tail)
                    if not isinstance(left, list):
                        return left
                    statements, index = left, 0
                elif (outcome := self._statement(statement)) is not None:
                    return outcome
        if not tail:
            return None
        return Returned(FELL_OFF) if self.loop is None else Returned(self.loop.exit(self))

    def leaves_out(self, node: ast.stmt) -> bool:
        """True if a statement is not the compiler's: a subclass says so."""
        return False

    def _statement(self, node: ast.stmt) -> Outcome:
        if self.leaves_out(node):
            return None
        match node:
            case ast.Return():
                return self._return(node)
            case ast.With():
                return self._with(node)
            case ast.For():
                loops.compile_for(self, node)
            case ast.While():
                loops.compile_while(self, node)
            case ast.Assign():
                value = self.evaluate(node.value)
                for target in node.targets:
                    self.give_name(target, value)
            case ast.AnnAssign():
                self._annotated_assign(node)
            case ast.AugAssign():
                self._augmented_assign(node)
            case ast.Expr():
                self.dropped = node.value
                self.evaluate(node.value)
            case ast.Assert():
                self._assert(node)
            case ast.Pass():
                pass
            case ast.Break() | ast.Continue():
                if self.loop is None:
                    raise error("this is in no loop", "return from the function")
                return Returned(self.loop.exit(self, node))
            case ast.FunctionDef() | ast.ClassDef():
                raise self.unsupported("a definition inside a kernel", "define it at module level")
            case _:
                word = type(node).__name__.lower()
                hint = _INSTEAD.get(word, "move it out of the kernel")
                raise self.unsupported(f"the statement {word}", hint)
        return None

    def _return(self, node: ast.Return) -> Returned:
        if self.loop is not None:
            raise UnsupportedLanguageConstruct(
                "Cannot have `return` statements inside `while` or `for` statements in triton",
                self.span(),
                "leave the loop with break, and return after it",
                self.call_trace(),
            )
        if len(self.scopes) > self.first_scope:
            raise self.unsupported("return inside a scope", "return after the with block")
        return Returned(None if node.value is None else self.evaluate(node.value))

    def give_name(self, target: ast.expr, value: object) -> None:
        """An assignment: numbers get a type, but for those that the source says are constexprs."""
        if isinstance(target, ast.Name):
            value = untyped(value) if target.id in self.fn.constexpr_names else named(value)
        elif not isinstance(target, ast.Attribute):
            value = named(value)
        self.assign(target, value)

    def assign(self, target: ast.expr, value: object) -> None:
        """Binds a name, or the names of a tuple."""
        match target:
            case ast.Name(id=name):
                self.env[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                if any(isinstance(element, ast.Starred) for element in targets):
                    raise UnsupportedLanguageConstruct(
                        "starred assignment targets are not supported",
                        self.span(),
                        "name each element",
                        self.call_trace(),
                    )
                check_unpacked(value, len(targets))
                assert isinstance(value, tuple | list)
                for element, part in zip(targets, value, strict=True):
                    self.assign(element, part)
            case ast.Subscript():
                raise self.unsupported("assignment to x[i]", "use tl.where, or store to memory")
            case ast.Attribute(value=node, attr=name):
                owner = self.evaluate(node)
                if not isinstance(owner, Aggregate):
                    raise self.unsupported("assignment to an attribute", "assign to a new name")
                aggregates.set_field(self, owner, name, value)
            case _:
                raise self.unsupported("assignment to this", "assign to a name")

    def _annotated_assign(self, node: ast.AnnAssign) -> None:
        """An annotation means nothing: a constexpr may be given what is known at run time only."""
        if node.value is not None:
            self.give_name(node.target, self.evaluate(node.value))

    def _augmented_assign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.unsupported(
                "augmented assignment to anything but a name", "assign to a name"
            )
        value = expressions.binary_op(
            self, node.op, self.lookup(node.target.id), self.evaluate(node.value)
        )
        self.give_name(node.target, value)

    def _assert(self, node: ast.Assert) -> None:
        condition = self.evaluate(node.test)
        message = "" if node.msg is None else self.evaluate(node.msg)
        self.device_assert(condition, message)

    def device_assert(self, condition: object, message: object = "", mask: object = None) -> None:
        """Checks a condition at run time in debug mode."""
        if not self.debug:
            return
        if not isinstance(condition, tensor) and truth(condition):
            return
        # One that is known to fail fails where the program gets there, which may be never.
        condition = constant(0, ty.int1) if not isinstance(condition, tensor) else condition
        condition = to_bool(condition)
        if mask is not None:
            condition = logical("or", condition, logical_not(mask))
        span = self.span()
        text = f"{span.file}:{span.line}: in {span.function}: assertion failed: {message}"
        tt.AssertOp(condition.handle, string_attr(text))

    # Scopes

    def _with(self, node: ast.With) -> Outcome:
        outer = len(self.scopes)
        try:
            names = [self._enter_item(item) for item in node.items]
            with scopes.block(self):
                outcome = self.run(node.body)
            for name in reversed(names):
                scopes.leave(self, name)
        finally:
            del self.scopes[outer:]
        return outcome

    def _enter_item(self, item: ast.withitem) -> str:
        """Opens the scope of one item of a `with`; its name."""
        call = item.context_expr
        if not isinstance(call, ast.Call) or self.evaluate(call.func) is not profiling.scope:
            raise self.unsupported(
                "with on anything but proton.scope", "with proton.scope('name'): ..."
            )
        if item.optional_vars is not None:
            raise self.unsupported("'as' in a scope", "leave it out: a scope has no value")
        with self.at(call):
            args, kwargs = self.call_arguments(call)
            signature = expressions.signature_of(profiling.scope)
            expressions.check_arguments("proton.scope", signature, args, kwargs)
            return scopes.enter(self, *args, **kwargs)

    # Calls

    def call(
        self, fn: DeviceFunction, args: object, kwargs: dict[str, object], *, in_place: bool = False
    ) -> object:
        """The value of a call of another device function.

        `in_place` compiles it, and all that it calls, in place whatever it asks for.
        """
        return calls.call(self, fn, args, kwargs, in_place)

    def callee(
        self,
        fn: DeviceFunction,
        env: dict[str, object],
        *,
        functions: KeptFunctions | None,
        own_function: bool = False,
    ) -> "Generator":
        """A generator for the body of what this one calls."""
        return type(self)(
            fn,
            env,
            target=self.target,
            num_warps=self.num_warps,
            num_ctas=self.num_ctas,
            debug=self.debug,
            sanitize_overflow=self.sanitize_overflow,
            dot_precision=self.dot_precision,
            caller=self,
            functions=functions,
            own_function=own_function,
        )
