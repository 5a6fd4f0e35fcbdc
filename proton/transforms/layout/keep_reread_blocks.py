"""Blocks that a program loads twice stay in the first-level cache until they are loaded last.

    scf.for ... {                         scf.for ... {
      %x = tt.load %p                       %x = tt.load %p {evict = "l1_evict_last"}
    }                             =>      }
    scf.for ... {                         scf.for ... {
      %y = tt.load %q                       %y = tt.load %q {evict = "l1_evict_first"}
    }                                     }

where %p and %q are the same in each iteration: a row is loaded for its sum, and again for what is
made of it. The programs of an SM share the cache, which evicts what was used least recently. Where
their rows do not fit, none of a row is left when it is loaded again. With these hints a part is,
and what was loaded last makes room.
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from proton.analysis.loop_iterations import iterations_of
from proton.dialect import isa, tt, ttg
from proton.dialect.attributes import EVICT_FIRST_FROM_L1, EVICT_LAST_FROM_L1, REREAD_BYTES
from proton.dialect.builtin import i64_attr
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Block, Module, Operation, Value, func, ir, scf
from proton.dialect.regions import ForLoop
from proton.dialect.traits import Loop, Pure, Speculatable, has
from proton.dialect.tt_memory import is_volatile
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import all_ops, defining_op, functions, ops_named, parent_of
from proton.passes import Pass, register

_CONVERSION = ttg.ConvertLayoutOp
_KEEP, _LEAVE = EVICT_LAST_FROM_L1, EVICT_FIRST_FROM_L1
_CACHED = "", ".ca"  # modifiers of loads that the first-level cache keeps as it likes


@register
@dataclass(frozen=True)
class KeepRereadBlocks(Pass):
    """Sets the eviction priorities of blocks that one program alone loads, and more than once;
    a load that has a priority keeps it."""

    name: ClassVar[str] = "tritongpu-keep-reread-blocks"
    only_for: ClassVar[frozenset[str]] = frozenset(Loop.upstream)

    def run(self, module: Module) -> None:
        for function in functions(module):
            loads = [op for op in ops_named(function, tt.LoadOp) if _is_free(op)]
            if len({op.block for op in loads}) < 2:
                continue
            groups = [group for group in _groups(function, loads) if _is_last_reading(group[-1])]
            for group in groups:
                for load in group:
                    _set_priority(load, _LEAVE if load == group[-1] else _KEEP)
            if groups:
                bytes_ = sum(_bytes_between(group[0], group[-1]) for group in groups)
                function.attributes[REREAD_BYTES] = i64_attr(bytes_)


def _is_free(load: Operation) -> bool:
    """True if a load of a block leaves it to the compiler how long the cache keeps it."""
    attributes = load.attributes
    return (
        is_tensor(load.results[0].type)
        and not attributes["evict"].value
        and attributes["cache"].value in _CACHED
        and not is_volatile(load)
    )


def _bytes_between(first: Operation, last: Operation) -> int:
    """What a program loads until it begins to load the same again, as far as it is known: a loop
    whose iterations are not counts as one."""
    value = first.results[0]
    loops = [op for op in _around(first) if isa(op, scf.ForOp) and op not in _around(last)]
    iterations = prod(iterations_of(loop) or 1 for loop in loops)
    return iterations * prod(shape_of(value)) * element_of(value).width // 8


def _set_priority(load: Operation, priority: str) -> None:
    load.attributes["cache"] = ir.StringAttr.get("")  # PTX takes one of the two
    load.attributes["evict"] = ir.StringAttr.get(priority)


def _groups(function: Operation, loads: list[Operation]) -> list[list[Operation]]:
    """The loads that follow one another and have the same addresses, in order."""
    hashes = _hashes(function)
    found: dict[int, list[list[Operation]]] = {}
    for load in loads:
        pointer = load.operands[0]
        alike = found.setdefault(hashes.get(pointer, hash(pointer)), [])
        for group in alike:
            if _precedes(group[-1], load) and _same(group[-1].operands[0], load.operands[0]):
                group.append(load)
                break
        else:
            alike.append([load])
    return [group for groups in found.values() for group in groups if len(group) > 1]


def _hashes(function: Operation) -> dict[Value, int]:
    """Of each value a number that is the same for all that are computed alike."""
    found: dict[Value, int] = {}
    for op in all_ops(function):
        if isa(op, scf.ForOp):
            for number, argument in enumerate(ForLoop(op).body.arguments):
                found[argument] = hash(("loop", number))
        operands = [found.get(operand, hash(operand)) for operand in op.operands]
        if isa(op, _CONVERSION):
            found[op.results[0]] = operands[0]
        elif has(op, Speculatable, Pure) and not len(op.regions):
            words = hash((op.name, *map(hash, op.attributes.values()), *operands))
            found.update(dict.fromkeys(op.results, words))
    return found


def _precedes(first: Operation, second: Operation) -> bool:
    """True if all of an op's runs are behind those of another one in a loop of its own."""
    places = {op.block: op for op in _around(first)}
    for op in _around(second):
        if op.block in places:
            other = places[op.block]
            return other != op and has(other, Loop)
    return False


def _around(op: Operation) -> list[Operation]:
    """An op and those that it is in, up to the function."""
    found = [op]
    while not isa(found[-1], func.FuncOp):
        found.append(parent_of(found[-1]))
    return found[:-1]


def _same(left: Value, right: Value) -> bool:
    """True if two values are computed alike: in loops of the same bounds, in each iteration.
    Carried values are, if they begin alike, and what they become is alike given that they are."""
    known, waiting = set[tuple[Value, Value]](), [(left, right)]
    while waiting:
        pair = _unconverted(waiting[-1][0]), _unconverted(waiting.pop()[1])
        if pair[0] == pair[1] or pair in known:
            continue
        known.add(pair)
        parts = _parts(*pair)
        if parts is None:
            return False
        waiting += parts
    return True


def _parts(left: Value, right: Value) -> list[tuple[Value, Value]] | None:
    """What has to be the same for two values to be; None where they differ."""
    a, b = defining_op(left), defining_op(right)
    if a is None or b is None:
        return _parts_of_arguments(left, right) if a is b else None
    if a.name != b.name or len(a.regions) or not has(a, Speculatable, Pure):
        return None
    if ir.OpResult(left).result_number != ir.OpResult(right).result_number:
        return None
    if {n: a.attributes[n] for n in a.attributes} != {n: b.attributes[n] for n in b.attributes}:
        return None
    return list(zip(a.operands, b.operands, strict=True))


def _parts_of_arguments(left: Value, right: Value) -> list[tuple[Value, Value]] | None:
    """Of arguments of blocks: the bounds of their loops, and what they begin with and become."""
    a, b = ir.BlockArgument(left), ir.BlockArgument(right)
    loops = [loop for loop in (_loop_of(a.owner), _loop_of(b.owner)) if loop is not None]
    if a.arg_number != b.arg_number or len(loops) < 2:
        return None
    first, second = map(ForLoop, loops)
    pairs = list(zip(first.bounds, second.bounds, strict=True))
    if a.arg_number:
        carried = a.arg_number - 1
        pairs.append((first.init_args[carried], second.init_args[carried]))
        pairs.append((first.yielded[carried], second.yielded[carried]))
    return pairs


def _is_last_reading(load: Operation) -> bool:
    """True if a program comes once to a block that no other program loads: its place depends on
    the program, and on all loops around the load."""
    ops, loops = _made_of(load.operands[0])
    around = [op for op in _around(load) if has(op, Loop)]
    return any(isa(op, tt.GetProgramIdOp) for op in ops) and all(op in loops for op in around)


def _made_of(value: Value) -> tuple[list[Operation], list[Operation]]:
    """The ops that a value is computed by, and the loops that count or carry parts of it."""
    ops, loops = list[Operation](), list[Operation]()
    seen, waiting = set[Value](), [value]
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        op = defining_op(part)
        if op is not None:
            ops.append(op)
            waiting += op.operands
            continue
        argument = ir.BlockArgument(part)
        loop = _loop_of(argument.owner)
        if loop is not None:
            loops.append(loop)
            view = ForLoop(loop)
            waiting += view.bounds
            if argument.arg_number:
                waiting += [v[argument.arg_number - 1] for v in (view.init_args, view.yielded)]
    return ops, loops


def _unconverted(value: Value) -> Value:
    op = defining_op(value)
    while isa(op, _CONVERSION):
        value = op.operands[0]
        op = defining_op(value)
    return value


def _loop_of(block: Block) -> Operation | None:
    """The `scf.for` whose block it is."""
    op = block.owner.operation
    return op if isa(op, scf.ForOp) else None
