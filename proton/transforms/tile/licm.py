"""Loop-invariant code motion on tiles, loads included.

A load has an effect, and moves as well if nothing in the loop writes memory, or is a volatile load;
as the loop may not run at all, the load is masked by whether it does.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, tt
from proton.dialect.attributes import DISABLE_LICM
from proton.dialect.builtin import integer, segments_of
from proton.dialect.emit import create, remade
from proton.dialect.mlir import Module, Operation, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, is_invariant
from proton.dialect.traits import Speculatable, Writes, has
from proton.dialect.tt_memory import is_volatile
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import all_ops, before, replace
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class LICM(Pass):
    """Moves invariant computation, and invariant loads, out of `scf.for`, innermost loops first.

    A loop with `tt.disable_licm` keeps what it has.
    """

    name: ClassVar[str] = "triton-licm"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp)

    def run(self, module: Module) -> None:
        loops = [op for op in all_ops(module) if isa(op, scf.ForOp)]
        for loop in reversed([loop for loop in loops if DISABLE_LICM not in loop.attributes]):
            stays = any(has(op, Writes) or is_volatile(op) for op in all_ops(loop))
            for view in list(ForLoop(loop).body.operations):
                op = view.operation
                if not all(is_invariant(operand, loop) for operand in op.operands):
                    continue
                if has(op, Speculatable):
                    op.move_before(loop)
                elif isa(op, tt.LoadOp) and not stays:
                    _hoist_load(op, loop)


def _hoist_load(load: Operation, loop: Operation) -> None:
    _, has_mask, others_count = segments_of(load)
    pointer, *rest = load.operands
    mask, others = (rest[0], rest[1:]) if has_mask else (None, rest)
    with before(loop):
        runs = _runs(loop)
        if is_tensor(pointer.type):
            i1 = integer(1)
            type_ = ir.RankedTensorType.get(pointer.type.shape, i1, encoding=pointer.type.encoding)
            runs = create(tt.SplatOp, type_, runs)
        if mask is not None:
            runs = arith.AndIOp(runs, mask).result
    sizes = ir.DenseI32ArrayAttr.get([1, 1, others_count])
    with ir.InsertionPoint(loop), load.location:
        types, operands = [load.results[0].type], [pointer, runs, *others]
        new = remade(load, types, operands, operandSegmentSizes=sizes)
    replace(load, [new.result])


def _runs(loop: Operation) -> Value:
    """Whether the loop runs at least once, i1."""
    return arith.CmpIOp(ForLoop(loop).below, *ForLoop(loop).bounds[:2]).result
