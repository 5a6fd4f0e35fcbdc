"""Cuts kernels of very many loops into functions.

`tl.static_range` makes straight-line code of any length. Each of its statements is a loop or
more, and passes of MLIR and LLVM take time quadratic, or worse, in the loops of a function: a
thousand masked stores took 80 s. So a block with more than LOOPS of them becomes a sequence of
calls, each of a stretch of its ops:

    kernel(...):  ...; loops_0(live-ins); r = loops_1(live-ins); ...

What costs nothing (arithmetic on scalars, views) is not passed but computed anew where it is
used. A view that a branch chose cannot be returned: it stays with its users in one stretch, or
where these are far apart out of any, and is passed in parts.
"""

import itertools
from dataclasses import dataclass, field
from typing import ClassVar

from proton.dialect import names_of
from proton.dialect.attributes import PLACE
from proton.dialect.builtin import i64_attr, string_attr
from proton.dialect.memory import put_together, taken_apart
from proton.dialect.mlir import Block, Module, Operation, OpView, Type, Value, ir
from proton.dialect.regions import is_inside
from proton.dialect.traits import Loop, Recomputed, has
from proton.dialect.upstream import func, llvm, memref
from proton.dialect.walk import (
    all_ops,
    backward_slice,
    functions,
    parent_of,
    producer_of,
)
from proton.passes import Pass, register

LOOPS = 64  # of a stretch, at least; the loop vectoriser is quadratic in them
_ALLOCATES = names_of(memref.AllocaOp, llvm.AllocaOp)


@register
@dataclass(frozen=True)
class OutlineLoops(Pass):
    """Makes functions of stretches of blocks with more than `loops` loops."""

    name: ClassVar[str] = "outline-loops"

    loops: int = LOOPS

    def run(self, module: Module) -> None:
        for function in functions(module):
            if _count_loops(function) > self.loops:
                regions = [r for op in all_ops(function) for r in op.regions]
                # Inner blocks first: what is left of them counts for the outer ones.
                for region in (*reversed(regions), *function.regions):
                    for block in region.blocks:
                        if sum(map(_count_loops, block.operations)) > self.loops:
                            _Cutter(module, function, block, self.loops).run()


def _count_loops(op: Operation) -> int:
    operation = op.operation
    return sum(has(o, Loop) for o in (operation, *all_ops(operation)))


def _is_passed(type_: Type) -> bool:
    """True if a function can take such a value: of a memref it gets the address only."""
    return not isinstance(type_, ir.MemRefType) or isinstance(type_.layout, ir.AffineMapAttr)


@dataclass
class _Cutter:
    """Cuts one block."""

    module: Module
    function: Operation
    block: Block
    loops: int
    ops: list[Operation] = field(default_factory=list)
    last_uses: list[int] = field(default_factory=list)

    def run(self) -> None:
        self.ops = [op.operation for op in self.block.operations]
        for place, op in enumerate(self.ops):
            op.attributes[PLACE] = i64_attr(place)
        self.last_uses = [0] * len(self.ops)
        for place in reversed(range(len(self.ops))):
            self.last_uses[place] = self._last_use(self.ops[place])
        stretches = self._stretches()
        for op in self.ops:
            del op.attributes[PLACE]
        for first, behind in stretches:
            self._outline(first, behind)

    def _last_use(self, op: Operation) -> int:
        """The place of the last op that needs a result, by way of what would be cloned too."""
        last = -1
        for result in op.results:
            for use in result.uses:
                user = use.owner.operation
                while PLACE not in user.attributes:
                    user = parent_of(user)
                place = user.attributes[PLACE].value
                last = max(last, place, self.last_uses[place] if has(user, Recomputed) else -1)
        return last

    def _stretches(self) -> list[tuple[int, int]]:
        """[first, behind) of each; buffers, which live as long as the block, come before."""
        allocas = [p for p, op in enumerate(self.ops) if op.name in _ALLOCATES]
        first = allocas[-1] + 1 if allocas else 0
        sums = list(itertools.accumulate(map(_count_loops, self.ops)))
        stretches, loops, bound = [], 0, -1
        for place in range(first, len(self.ops) - 1):  # without the terminator
            op, last = self.ops[place], self.last_uses[place]
            loops += _count_loops(op)
            if not has(op, Recomputed) and not all(_is_passed(r.type) for r in op.results):
                if sums[last] - sums[place] > self.loops and bound <= place:
                    if loops > _count_loops(op):
                        stretches.append((first, place))
                    first, loops = place + 1, 0
                    continue
                bound = max(bound, last)
            if loops >= self.loops and bound <= place:
                stretches.append((first, place + 1))
                first, loops = place + 1, 0
        return stretches

    def _outline(self, first: int, behind: int) -> None:
        """Moves what cannot be cloned to a function, and calls that in its place."""
        places = [p for p in range(first, behind) if not has(self.ops[p], Recomputed)]
        results = [
            result
            for place in places
            if self.last_uses[place] >= behind
            for result in self.ops[place].results
        ]
        stretch = _Stretch([self.ops[place] for place in places])
        inputs = stretch.live_ins()
        with ir.InsertionPoint(self.module.body), self.function.location:
            outlined = func.FuncOp(self._name(), ([], []), visibility="private")
            block = outlined.add_entry_block()
        given: dict[Value, Value] = {}
        passed: list[Value] = []
        with ir.InsertionPoint(self.ops[first]), self.function.location:
            for value in inputs:
                parts = [value] if _is_passed(value.type) else taken_apart(value)
                passed += parts
                taken = [block.add_argument(part.type, part.location) for part in parts]
                with ir.InsertionPoint(block):
                    is_whole = _is_passed(value.type)
                    given[value] = taken[0] if is_whole else put_together(taken, value.type)
            symbol = ir.FlatSymbolRefAttr.get(outlined.sym_name.value)
            call = func.CallOp([value.type for value in results], symbol, passed).operation
        _describe(outlined, self.function, passed, results)
        stretch.move_to(block, given)
        with ir.InsertionPoint(block), self.function.location:
            func.ReturnOp(results)
        for old, new in zip(results, call.results, strict=True):
            for use in list(old.uses):
                if not is_inside(use.owner.operation, outlined.operation):
                    use.owner.operation.operands[use.operand_number] = new
        for place in reversed(range(first, behind)):
            op = self.ops[place]
            if place not in places and not any(True for r in op.results for _ in r.uses):
                op.erase()

    def _name(self) -> str:
        kernel = self.function.attributes["sym_name"].value
        return f"{kernel}__loops{len(self.module.body.operations)}"


def _describe(
    outlined: OpView, kernel: Operation, inputs: list[Value], results: list[Value]
) -> None:
    """The type and attributes of a stretch: it is not to be inlined, and as much is known of the
    user's pointers as in the kernel."""
    types = [value.type for value in inputs], [value.type for value in results]
    outlined.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    inlined, flags = string_attr("alwaysinline"), [string_attr("noinline")]
    flags += [flag for flag in kernel.attributes.get("llvm.passthrough", ()) if flag != inlined]
    outlined.attributes["llvm.passthrough"] = ir.ArrayAttr.get(flags)
    outlined.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    if "arg_attrs" in kernel.attributes:
        known = dict(
            zip(kernel.regions[0].blocks[0].arguments, kernel.attributes["arg_attrs"], strict=True)
        )
        marks = [known.get(value, ir.DictAttr.get({})) for value in inputs]
        outlined.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)


class _Stretch:
    """Ops on their way to a function of their own."""

    def __init__(self, ops: list[Operation]) -> None:
        self.ops = ops
        self.all = [inner for op in ops for inner in (op, *all_ops(op))]
        self.inside = {result for op in self.all for result in op.results}
        self.inside |= {
            argument
            for op in self.all
            for region in op.regions
            for block in region.blocks
            for argument in block.arguments
        }

    def live_ins(self) -> list[Value]:
        """What has to be passed: what comes from outside, and from what cannot be cloned."""
        taken = [value for op in self.all for value in op.operands]
        found = backward_slice(taken, lambda op: has(op, Recomputed), seen=self.inside)
        return [value for value, op in found if op is None or not has(op, Recomputed)]

    def move_to(self, block: Block, given: dict[Value, Value]) -> None:
        """Appends the ops to a block, with clones of what they need; `given` has the rest."""

        def here(value: Value) -> Value:
            if value in self.inside:
                return value
            if value not in given:
                op = producer_of(value)
                operands = [here(operand) for operand in op.operands]
                clone = op.clone(ir.InsertionPoint(block)).operation
                for place, operand in enumerate(operands):
                    clone.operands[place] = operand
                for old, new in zip(op.results, clone.results, strict=True):
                    given[old] = new
            return given[value]

        for op in self.ops:
            for inner in (op, *all_ops(op)):
                for place, value in enumerate(inner.operands):
                    if value not in self.inside:
                        inner.operands[place] = here(value)
            block.append(op)
