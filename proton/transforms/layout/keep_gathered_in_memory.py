"""What a loop gathers from, and does not change, waits in shared memory.

    scf.for ... {                             %m = ttg.local_alloc %x
      %y = tt.gather %x[%i] {axis = 0}   =>   scf.for ... {
    }                                           %y = ttg.local_gather %m[%i] {axis = 0}
                                              }

A gather writes its source to shared memory, waits for all threads, and reads elements by their
indices. A source that is the same in each iteration is written once, ahead of the loop, and nobody
waits in it. Several gathers of one source share the memory as well. Rows run along the other axes:
threads that read one index of them read consecutive words. A row or a column that one number names
is read in the layout that it is wanted in.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.allocation import allocate
from proton.analysis.call_graph import call_graph, function_name
from proton.analysis.scratch import desc_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, tt, ttg
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Module, Operation, Value, arith, ir, scf
from proton.dialect.traits import Loop, has
from proton.dialect.walk import (
    before,
    defining_op,
    functions,
    ops_named,
    parent_of,
    producer_of,
    replace,
    users,
)
from proton.layout.named import shared_row_major
from proton.passes import Pass, register

_CROSSED = scf.ForOp, scf.WhileOp, scf.IfOp  # all warps run what is in them


@register
@dataclass(frozen=True)
class KeepGatheredInMemory(Pass):
    """Writes such sources once, as far as shared memory goes: an SM has room for half of the
    threads that it takes."""

    name: ClassVar[str] = "keep-gathered-in-memory"
    only_for: ClassVar[frozenset[str]] = names_of(tt.GatherOp)

    target: GPUTarget

    def run(self, module: Module) -> None:
        for function in functions(module):
            groups: dict[tuple[Value, int], list[tuple[Operation, Operation]]] = {}
            for op in ops_named(function, tt.GatherOp):
                axis = int(op.attributes["axis"].value)
                if (place := _place(op)) is not None:
                    groups.setdefault((op.operands[0], axis), []).append((op, place))
            for (_, axis), places in groups.items():
                if len(places) < 2 and not any(_is_repeated(*pair) for pair in places):
                    continue
                gather, first = places[0]
                source = gather.operands[0]  # another group may have replaced it
                # The other axes are the fast ones.
                shape = shape_of(source)
                axes = [n for n in reversed(range(len(shape))) if n != axis]
                layout = shared_row_major(shape, (*axes, axis))
                memory = ttg.mem_desc(shape, element_of(source), layout)
                if desc_bytes(memory) > self._room(module, function):
                    continue
                with before(first), first.location:
                    held = ttg.LocalAllocOp(source, memory).result
                for op, _ in places:
                    _read(op, held)

    def _room(self, module: Module, function: Operation) -> int:
        """Bytes of shared memory that a program may take besides those that it takes."""
        facts, threads = self.target.facts, self.target.warp_size * ttg.num_warps(module)
        taken = allocate(call_graph(module))[function_name(function)].size
        return facts.most_shared(max(1, facts.sm_threads // 2 // threads)) - taken


def _place(gather: Operation) -> Operation | None:
    """The op in the block of a gather's source that is the gather or has it in it; None where
    memory cannot hold elements as they are, or only some of the warps run it."""
    source = gather.operands[0]
    element = element_of(source)
    if isinstance(element, tt.PointerType) or element.width < 8:
        return None
    made, op = defining_op(source), gather
    block = source.owner if made is None else made.block
    while op.block != block:
        op = parent_of(op)
        if not isa(op, *_CROSSED):
            return None
    return op


def _is_repeated(op: Operation, place: Operation) -> bool:
    """True if a loop is around a gather in its place, or is that."""
    while op != place:
        op = parent_of(op)
        if has(op, Loop):
            return True
    return False


def _read(gather: Operation, held: Value) -> None:
    """Takes the place of a gather, and of its conversions where all of its indices are one number:
    threads read what the other layout gives them."""
    index, result = gather.operands[1], gather.results[0]
    if isa(defining_op(index), tt.SplatOp):
        for user in users(result):
            if isa(user, ttg.ConvertLayoutOp):
                layout = ttg.layout_of(user.results[0].type)
                with before(user), gather.location:
                    again = ttg.with_layout(index.type, layout)
                    same = tt.SplatOp(producer_of(index).operands[0], again).result
                    replace(user, [_gathered(gather, held, same)])
    if users(result):
        with before(gather), gather.location:
            replace(gather, [_gathered(gather, held, index)])
    else:
        gather.erase()


def _gathered(gather: Operation, held: Value, index: Value) -> Value:
    """What lies in memory at indices, in their layout."""
    type_ = ttg.with_layout(gather.results[0].type, ttg.layout_of(index.type))
    if (bits := element_of(index).width) != 32:
        i32 = ir.IntegerType.get_signless(32)
        words = ir.RankedTensorType.get(index.type.shape, i32, index.type.encoding)
        index = (arith.TruncIOp if bits > 32 else arith.ExtUIOp)(words, index).result
    return ttg.LocalGatherOp(held, index, gather.attributes["axis"], type_).result
