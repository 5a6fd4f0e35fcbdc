"""A kernel's body as Python that CPython runs, with the places of the source.

Statements stay what they are, so a debugger steps through the author's own lines and sees the
author's own variables. Each expression that may mean something else in the language than in Python
becomes a call of the frame (proton/interpreter/frame.py), which asks the front end:

    x = a + tl.load(p)      x = _proton_.value(2, a, _proton_.call(1, ..., p))

The number is that of a `SourceSite`: the piece of source, and for an expression the same with names
$0, $1, ... in the place of its operands, which the front end evaluates once these are bound.

Where paths meet (behind an `if`, at the ends of a loop's body) a variable may be a number that the
compiler has as a tensor of the type of the other path: there `_proton_.joined` makes one of it.
"""

import ast
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from proton.frontend.loops import assigned_names
from proton.interpreter.debugging import FRAME, begins_debugger, is_debugging, skipping
from proton.language.function import DeviceFunction


@dataclass(frozen=True)
class SourceSite:
    """A piece of source that the frame is called for."""

    node: Any
    template: Any = None  # an expression whose operands are the names $0, $1, ...


@dataclass
class Rewritten:
    """A function that takes its frame ahead of its own parameters."""

    function: types.FunctionType
    tree: ast.FunctionDef
    sites: list[SourceSite]
    constants: dict[int, object] = field(default_factory=dict)  # sites that name what never changes
    plans: dict[object, Any] = field(default_factory=dict)  # of sites, by what they were given

    @property
    def text(self) -> str:
        """The Python that runs."""
        return ast.unparse(self.tree)


def rewritten(fn: DeviceFunction) -> Rewritten:
    """The function as Python; its source has been compiled before, so it is in the language."""
    tree = _copied(fn.parse())
    rewriter = _Rewriter(fn)
    body = rewriter.block(tree.body)
    names = [ast.arg(FRAME), *(ast.arg(name) for name in fn.arg_names)]
    arguments = ast.arguments(
        posonlyargs=[], args=names, kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    made = ast.FunctionDef(tree.name, arguments, body, [])
    setattr(made, "type_params", [])  # noqa: B010 - from Python 3.12 on
    module = ast.Module([ast.copy_location(made, tree)], [])
    ast.fix_missing_locations(module)
    (code,) = [
        constant
        for constant in compile(module, fn.file, "exec").co_consts
        if isinstance(constant, types.CodeType)
    ]
    function = types.FunctionType(code, fn.__globals__, tree.name)
    return Rewritten(function, made, rewriter.sites)


_Node = TypeVar("_Node", bound=ast.AST)


def _copied(node: _Node) -> _Node:
    """A copy of a tree whose nodes know their `original`, in half the time of `copy.deepcopy`."""
    new = type(node)()
    fields = vars(new)
    for name, value in vars(node).items():
        if isinstance(value, ast.AST):
            value = _copied(value)
        elif isinstance(value, list):
            value = [_copied(item) if isinstance(item, ast.AST) else item for item in value]
        fields[name] = value
    fields["original"] = node
    return new


def _at(new: _Node, node: ast.AST) -> _Node:
    """A node at the place of another; what is in it gets its place at the end."""
    return ast.copy_location(new, node)


def _behind(new: ast.If, node: Any) -> ast.If:
    """A statement that a debugger shows as the last line of `node`."""
    inner: Any
    for inner in ast.walk(new):
        if "lineno" in inner._attributes:
            inner.lineno = inner.end_lineno = node.end_lineno or node.lineno
            inner.col_offset = inner.end_col_offset = 0
    return new


def _operand(number: int) -> ast.Name:
    return ast.Name(f"${number}", ast.Load())


def operand_names(count: int) -> list[str]:
    """The names that stand for operands in templates."""
    return [f"${number}" for number in range(count)]


class _Rewriter(ast.NodeTransformer):
    def __init__(self, fn: DeviceFunction) -> None:
        self.sites: list[SourceSite] = []
        self.constexprs = fn.constexpr_names
        self.local = set(fn.bound_names) | {
            (alias.asname or alias.name).partition(".")[0]
            for node in ast.walk(fn.parse())
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        self.loop: tuple[int, list[str]] | None = None  # the site and the names of the inner loop

    def _site(self, node: ast.AST, template: object = None) -> int:
        self.sites.append(SourceSite(getattr(node, "original", node), template))
        return len(self.sites) - 1

    def _ask(
        self, method: str, site: int, *args: ast.expr, keywords: Sequence[ast.keyword] = ()
    ) -> ast.Call:
        """A call of the frame, at the site's place; all of it is in the line where that begins."""
        function = ast.Attribute(ast.Name(FRAME, ast.Load()), method, ast.Load())
        node = self.sites[site].node
        for part in (function, function.value):
            part.lineno = part.end_lineno = node.lineno
            part.col_offset = part.end_col_offset = node.col_offset
        return _at(ast.Call(function, [ast.Constant(site), *args], list(keywords)), node)

    def _value(self, node: ast.AST, template: ast.expr, *operands: ast.expr) -> ast.Call:
        site = self._site(node, ast.fix_missing_locations(_at(template, node)))
        return self._ask("value", site, *operands)

    # Expressions

    def visit_Name(self, node: ast.Name) -> ast.Call | ast.Name:
        if not isinstance(node.ctx, ast.Load) or node.id in self.local:
            return node
        return self._ask("name", self._site(node), ast.Constant(node.id))

    def visit_BinOp(self, node: ast.BinOp) -> ast.Call:
        template = ast.BinOp(_operand(0), node.op, _operand(1))
        return self._value(node, template, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.Call:
        return self._value(node, ast.UnaryOp(node.op, _operand(0)), self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> ast.Call:
        others: list[Any] = [_operand(1 + number) for number in range(len(node.comparators))]
        template = ast.Compare(_operand(0), node.ops, others)
        return self._value(node, template, *map(self.visit, [node.left, *node.comparators]))

    def visit_Attribute(self, node: ast.Attribute) -> object:
        if not isinstance(node.ctx, ast.Load):
            return node
        owner: Any = _operand(0)
        owner.original = node.value
        template = ast.Attribute(owner, node.attr, ast.Load())
        return self._value(node, template, self.visit(node.value))

    def visit_Subscript(self, node: ast.Subscript) -> object:
        if not isinstance(node.ctx, ast.Load):
            return node
        template = ast.Subscript(_operand(0), _operand(1), ast.Load())
        return self._value(node, template, self.visit(node.value), self.visit(node.slice))

    def visit_FormattedValue(self, node: ast.FormattedValue) -> object:
        value = self._ask("formatted", self._site(node), self.visit(node.value))
        spec: Any = node.format_spec and self.visit(node.format_spec)
        return _at(ast.FormattedValue(value, node.conversion, spec), node)

    def visit_Slice(self, node: ast.Slice) -> ast.Call:
        parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
        return self._ask("slice", self._site(node), *map(self.visit, parts))

    def visit_List(self, node: ast.List) -> object:
        if not isinstance(node.ctx, ast.Load):
            return node
        return _at(ast.Tuple(list(map(self.visit, node.elts)), ast.Load()), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.Call:
        self.generic_visit(node)
        return self._ask("tuple", self._site(node), node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        positional = [self.visit(argument) for argument in node.args]
        keywords = [self.visit(keyword) for keyword in node.keywords]
        function = self.visit(node.func)
        return self._ask("call", self._site(node), function, *positional, keywords=keywords)

    def visit_BoolOp(self, node: ast.BoolOp) -> object:
        """Operands are evaluated up to the one that decides: each is kept in a variable."""
        site = self._site(node)
        names = [f"_proton_{site}_{number}" for number in range(len(node.values))]
        result: Any = self._ask("logical", site, *(ast.Name(name, ast.Load()) for name in names))
        for name, value in zip(reversed(names), reversed(node.values), strict=True):
            kept = _at(ast.NamedExpr(ast.Name(name, ast.Store()), self.visit(value)), value)
            test = self._ask("decides", site, kept)
            result = _at(ast.IfExp(test, _at(ast.Name(name, ast.Load()), value), result), node)
        return result

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        site = self._site(node)
        test = self._ask("branch", site, self.visit(node.test), _locals())
        sides = [self._ask("chosen", site, self.visit(side)) for side in (node.body, node.orelse)]
        return _at(ast.IfExp(test, *sides), node)

    # Statements

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements, each of which may become several."""
        found: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            found += new if isinstance(new, list) else [new]
        return found

    def visit_Import(self, node: ast.Import) -> object:
        return node

    def visit_Expr(self, node: ast.Expr) -> object:
        if isinstance(node.value, ast.Constant):
            return node
        if is_debugging(node) and isinstance(node.value, ast.Call):
            arguments = [self.visit(argument) for argument in node.value.args]
            call = ast.Call(node.value.func, arguments, node.value.keywords)
            new = _at(ast.Expr(_at(call, node.value)), node)
            return [new, skipping(f"{FRAME}.tools", node)] if begins_debugger(node) else new
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.Assign | ast.Pass:
        if node.value is None:
            return _at(ast.Pass(), node)
        return self._assign([node.target], self.visit(node.value), node)

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        return self._assign([self.visit(t) for t in node.targets], self.visit(node.value), node)

    def _assign(self, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> ast.Assign:
        """An assignment that gives numbers types; in all of its targets, or in none."""
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if not any(isinstance(target, ast.Attribute) for target in targets):
            method = "constexpr" if self.constexprs.issuperset(names) and names else "named"
            value = self._ask(method, self._site(node), value)
        return _at(ast.Assign(targets, value), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.NamedExpr:
        value = self._ask("named", self._site(node), self.visit(node.value))
        return _at(ast.NamedExpr(node.target, value), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.Assign:
        assert isinstance(node.target, ast.Name)
        template = ast.BinOp(_operand(0), node.op, _operand(1))
        old = _at(ast.Name(node.target.id, ast.Load()), node.target)
        value = self._value(node, template, self.visit(old), self.visit(node.value))
        return self._assign([node.target], value, node)

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        message = ast.Constant("") if node.msg is None else self.visit(node.msg)
        check = self._ask("check", self._site(node), self.visit(node.test), message)
        return _at(ast.Expr(check), node)

    def visit_With(self, node: ast.With) -> ast.With:
        items = []
        for item in node.items:
            call = self.visit(item.context_expr)
            call.func.attr = "scope"
            items.append(ast.withitem(call))
        return _at(ast.With(items, self.block(node.body)), node)

    def _joins(self, site: int, names: list[str], place: ast.AST) -> list[ast.stmt]:
        """`if it is joined: name = joined(name)` of each name, in the line of `place`."""
        found: list[ast.stmt] = []
        for name in names:
            text, value = ast.Constant(name), ast.Name(name, ast.Load())
            join = self._ask("joined", site, text, value)
            assign = ast.Assign([ast.Name(name, ast.Store())], join)
            test = self._ask("joins", site, text, _locals())
            statement = ast.If(test, [assign], [])
            found.append(_behind(statement, place))
        return found

    def visit_If(self, node: ast.If) -> ast.If:
        site = self._site(node)
        test = self._ask("branch", site, self.visit(node.test), _locals())
        names = assigned_names([*node.body, *node.orelse])
        body = [*self.block(node.body), *self._joins(site, names, node.body[-1])]
        last = node.orelse[-1] if node.orelse else node.test
        orelse = [*self.block(node.orelse), *self._joins(site, names, last)]
        return _at(ast.If(test, body, orelse), node)

    def _loop(self, site: int, node: ast.For | ast.While, names: list[str]) -> list[ast.stmt]:
        """The body of a loop; its numbers are tensors wherever an iteration ends."""
        outer, self.loop = self.loop, (site, names)
        body = [*self.block(node.body), *self._joins(site, names, node.body[-1])]
        self.loop = outer
        return body

    def visit_Break(self, node: ast.Break) -> object:
        return [*self._joins(*self.loop, node), node] if self.loop else node

    def visit_Continue(self, node: ast.Continue) -> object:
        return [*self._joins(*self.loop, node), node] if self.loop else node

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        if not isinstance(node.iter, ast.Call):  # over a tuple: it is unrolled
            outer, self.loop = self.loop, None
            new = ast.For(node.target, self.visit(node.iter), self.block(node.body), [])
            self.loop = outer
            return _at(new, node)
        site, call = self._site(node), node.iter
        variables = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        names = [name for name in assigned_names(node.body) if name not in variables]
        positional = [self.visit(argument) for argument in call.args]
        keywords = [self.visit(keyword) for keyword in call.keywords]
        arguments = _locals(), self.visit(call.func), *positional
        enter = _at(ast.Expr(self._ask("enter_for", site, *arguments, keywords=keywords)), node)
        joins = self._joins(site, names, node.iter)
        iterations = self._ask("iterations", site)
        loop = _at(ast.For(node.target, iterations, self._loop(site, node, names), []), node)
        return [enter, *joins, loop]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        site, names = self._site(node), assigned_names(node.body)
        enter = _at(ast.Expr(self._ask("enter_while", site, _locals())), node)
        joins = self._joins(site, names, node.test)
        test = self._ask("goes_on", site, self.visit(node.test))
        loop = _at(ast.While(test, self._loop(site, node, names), []), node)
        return [enter, *joins, loop, _at(ast.Expr(self._ask("leave_while", site)), node.test)]


def _locals() -> ast.Call:
    return ast.Call(ast.Name("locals", ast.Load()), [], [])
