"""In a loop loads that do not wait for an exchange stand ahead of it.

    %y = ttg.convert_layout %x                  %b = tt.load %q
    %b = tt.load %q                   =>        %y = ttg.convert_layout %x

Threads meet for an exchange, and the assembler moves no load across. What stands behind is asked
for only when `%x` is there, which may have been loaded, too: each exchange among loads is a wait
more.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.pressure import Crowded, registers
from proton.analysis.scratch import scratch_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, tt
from proton.dialect.mlir import Block, Module, Operation
from proton.dialect.regions import innermost_loop
from proton.dialect.traits import Loop, Multiplies, Reads, Records, Writes, has
from proton.dialect.tt_memory import is_volatile
from proton.dialect.ttg import is_tensor, num_warps
from proton.dialect.walk import all_ops, defining_op, functions, ops_named
from proton.passes import Pass, register

# Registers of what is moved ahead of an exchange. mamba-ssm's gradient of angle and step takes 0.76
# of the time without (d67864e2, one H200).
_MOST = 64


@register
@dataclass(frozen=True)
class HoistLoads(Pass):
    """Moves loads, and what their addresses and masks are computed of, ahead of the exchanges of
    their block, as far as nothing between them writes memory, reads what others change, or records.
    Where there are dots the schedule places loads. Outside of loops registers cost more than waits,
    as where tensors take all that a thread has: norms spilled more."""

    name: ClassVar[str] = "hoist-loads"
    only_for: ClassVar[frozenset[str]] = names_of(tt.LoadOp)

    target: GPUTarget

    def run(self, module: Module) -> None:
        if any(has(op, Multiplies) for op in all_ops(module)):
            return
        for function in functions(module):
            blocks: list[Block] = []
            for load in ops_named(function, tt.LoadOp):
                if load.block not in blocks and _is_in_loop(load.block):
                    blocks.append(load.block)
            if blocks:
                threads = self.target.warp_size * num_warps(module)
                peak = Crowded(module, function, self.target).peak
                room = self.target.facts.most_registers(1, threads) - peak
                for block in blocks:
                    _hoist(block, min(_MOST, room))


def _hoist(block: Block, most: int) -> None:
    exchange: Operation | None = None
    behind: list[Operation] = []  # the exchange, in their order
    moved = 0
    for op in [view.operation for view in block.operations]:
        has_inside = op.regions and not isa(op, tt.ReduceOp, tt.ScanOp)
        is_load = isa(op, tt.LoadOp) and not is_volatile(op)
        if has_inside or has(op, Writes, Records) or (has(op, Reads) and not is_load):
            exchange, behind, moved = None, [], 0
        elif exchange is None:
            exchange = op if scratch_bytes(op) else None
        elif (made_of := _movable(op, behind, exchange)) is not None:
            more = moved + registers(op.results[0])
            if more > most:
                behind.append(op)
                continue
            moved = more
            for one in (*made_of, op):
                one.move_before(exchange)
            behind = [one for one in behind if one not in made_of]
        else:
            behind.append(op)


def _is_in_loop(block: Block) -> bool:
    op = block.owner.operation
    return has(op, Loop) or innermost_loop(op) is not None


def _movable(
    load: Operation, behind: list[Operation], exchange: Operation
) -> list[Operation] | None:
    """Of a load that does not wait for an exchange the ops behind that which its operands are
    computed of, in their order; None of what waits, or is no such load. One of the same addresses
    in each iteration is none: the cache has it."""
    if not isa(load, tt.LoadOp) or not is_tensor(load.results[0].type):
        return None
    made = defining_op(load.operands[0])
    if made is not None and made.block != load.block:
        return None
    found: set[Operation] = set()
    waiting = list(load.operands)
    while waiting:
        op = defining_op(waiting.pop())
        if op is None or op in found or (op != exchange and op not in behind):
            continue
        if op == exchange or isa(op, tt.LoadOp) or scratch_bytes(op):
            return None
        found.add(op)
        waiting += op.operands
    return [op for op in behind if op in found]
