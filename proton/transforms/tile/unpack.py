"""Several values in the place of one: rewriting values of a compound type to its parts.

A pass says of which types values are compound, what ops that make one do (their parts), and what
those do that use one. Everything that only hands such values on is rewritten here: block arguments,
operands and results of control flow, calls, returns and selects, in loops and functions.

    %r = scf.for ... iter_args(%p = %pointer) -> (!compound)
becomes, with two parts,
    %r:2 = scf.for ... iter_args(%p0 = %pointer0, %p1 = %pointer1) -> (!part0, !part1)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from proton.dialect import Kind, isa
from proton.dialect.attributes import KERNEL
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, remade
from proton.dialect.mlir import Attribute, Block, Module, Operation, Type, Value, ir
from proton.dialect.tt import IntToPtrOp, PointerType
from proton.dialect.upstream import arith, func, ub
from proton.dialect.walk import before, ops_named

Parts = list[Value]


@dataclass
class Unpacking:
    """The rewriting of one module.

    `parts_of` gives the types of a compound type's parts, None for any other type. `maker` names
    the op that compound values come from, if they are no arguments of a function. `rules` are of
    the ops that make or use compound values, by name: a rule is called with the op, before which it
    emits, and gives the parts of its result (None where that is no compound value and the rule has
    replaced it); the op then goes. `attributes` gives those of the parts of a kernel's argument,
    from its type and its own; elsewhere the first part has them.
    """

    parts_of: Callable[[Type], list[Type] | None]
    maker: Kind
    rules: Mapping[str, Callable[[Operation, "Unpacking"], Parts | None]]
    attributes: Callable[[Type, Attribute], list[Attribute]] | None = None
    known: dict[Value, Parts] = field(default_factory=dict)
    dead: list[Operation] = field(default_factory=list)  # ops, in the order of the program
    replaced: list[tuple[Block, int]] = field(default_factory=list)  # first arguments of blocks

    def run(self, module: Module) -> None:
        """Rewrites all functions of a module. What was replaced goes last, users first."""
        functions = [v.operation for v in module.body.operations if isa(v.operation, func.FuncOp)]
        if not self._is_needed(module, functions):
            return
        for function in functions:
            self._function(function)
        for op in reversed(self.dead):
            op.erase()
        for block, count in self.replaced:
            for _ in range(count):
                block.erase_argument(0)

    def _is_needed(self, module: Module, functions: list[Operation]) -> bool:
        """True if there is a compound value: most kernels have none, and this is quick."""
        types = (t for f in functions for t in _function_type(f).inputs)
        return any(self.parts_of(type_) for type_ in types) or any(
            self.parts_of(op.results[0].type) for op in ops_named(module, self.maker, ub.PoisonOp)
        )

    def parts(self, value: Value) -> Parts:
        """The parts of a compound value; any other value alone."""
        return self.known.get(value, [value])

    def _is_compound(self, value: Value) -> bool:
        return self.parts_of(value.type) is not None

    def _types(self, types: Sequence[Type]) -> list[Type]:
        return [part for type_ in types for part in self.parts_of(type_) or [type_]]

    def _flat(self, values: list[Value]) -> Parts:
        return [part for value in values for part in self.parts(value)]

    def _function(self, function: Operation) -> None:
        old = _function_type(function)
        inputs, results = list(old.inputs), list(old.results)
        if any(self.parts_of(type_) for type_ in (*inputs, *results)):
            new = ir.FunctionType.get(self._types(inputs), self._types(results))
            function.attributes["function_type"] = ir.TypeAttr.get(new)
            if "arg_attrs" in function.attributes:
                spread = []
                for type_, known in zip(inputs, function.attributes["arg_attrs"], strict=True):
                    is_compound = self.parts_of(type_) is not None
                    if self.attributes and is_compound and KERNEL in function.attributes:
                        spread += self.attributes(type_, known)
                    else:
                        spread += [known, *[ir.DictAttr.get({})] * (len(self._types([type_])) - 1)]
                function.attributes["arg_attrs"] = ir.ArrayAttr.get(spread)
        for block in function.regions[0].blocks:
            self._block(block)

    def _block(self, block: Block) -> None:
        arguments = list(block.arguments)
        if any(map(self._is_compound, arguments)):
            for argument in arguments:
                types = self._types([argument.type])
                new = [block.add_argument(type_, argument.location) for type_ in types]
                if self._is_compound(argument):
                    self.known[argument] = new
                else:
                    argument.replace_all_uses_with(new[0])
            self.replaced.append((block, len(arguments)))
        for view in list(block.operations):
            self._op(view.operation)

    def _op(self, op: Operation) -> None:
        uses = any(value in self.known for value in op.operands)
        if op.name in self.rules and (uses or any(map(self._is_compound, op.results))):
            with before(op):
                parts = self.rules[op.name](op, self)
            if parts is not None:
                self.known[op.results[0]] = parts
            self.dead.append(op)
            return
        inner = [list(region.blocks) for region in op.regions]
        if uses or any(map(self._is_compound, op.results)):
            with before(op):
                self._rebuild(op)
            self.dead.append(op)
        for blocks in inner:
            for block in blocks:
                self._block(block)

    def _rebuild(self, op: Operation) -> None:
        """Emits the op on parts, and moves its regions there."""
        if isa(op, ub.PoisonOp):
            self.known[op.results[0]] = [_zero(t) for t in self._types([op.results[0].type])]
            return
        if isa(op, arith.SelectOp):
            sides = zip(*map(self.parts, list(op.operands)[1:]), strict=True)
            parts = [arith.SelectOp(op.operands[0], *side).result for side in sides]
            self.known[op.results[0]] = parts
            return
        types = self._types([result.type for result in op.results])
        new = remade(op, types, self._flat(list(op.operands)))
        for region, target in zip(op.regions, new.regions, strict=True):
            for block in list(region.blocks):
                block.append_to(target)
        results = iter(new.results)
        for result in op.results:
            parts = [next(results) for _ in self._types([result.type])]
            if self._is_compound(result):
                self.known[result] = parts
            else:
                result.replace_all_uses_with(parts[0])


def _function_type(function: Operation) -> Type:
    return ir.TypeAttr(function.attributes["function_type"]).value


def _zero(type_: Type) -> Value:
    """Some value of a part's type: nothing reads it."""
    if isinstance(type_, PointerType):
        return IntToPtrOp(constant(0, integer(64)), type_).result
    return constant(0, type_)
