"""Groups of warps as functions, for a CPU, where they run one at a time.

    ttg.worker {...} {role = "f"}            call @kernel_f(%scheduler, ...)
    ttg.start_workers                becomes
    default                                  default
    ttg.join_workers                         call @proton_partitions_join(%scheduler)

The calls begin a partition each (`start-partitions`), which runs when the others wait. What it uses
of the code around it are arguments; constants and names of maps are made again. `%scheduler` is the
address of the state of the program's partitions, in a buffer of the kernel's.
"""

from dataclasses import dataclass, field

from proton.analysis.call_graph import function_name
from proton.dialect import isa, ttg, ttng
from proton.dialect.attributes import NOINLINE, PARTITION, ROLES
from proton.dialect.builtin import i32_attr, integer, strings_attr
from proton.dialect.emit import call_c, cloned
from proton.dialect.mlir import Module, Operation, Value, arith, func, ir, memref
from proton.dialect.partitions import Runtime, role_names, scheduler_bytes
from proton.dialect.regions import end_of
from proton.dialect.walk import all_ops, before, defining_op, functions, ops_named


@dataclass
class Partitions:
    """By the name of a function: the scheduler in it; role and warps of one made of a worker."""

    schedulers: dict[str, Value] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    warps: dict[str, int] = field(default_factory=dict)


def outline_workers(module: Module) -> Partitions:
    """Makes functions of all workers; none where there are none."""
    found = Partitions()
    for function in functions(module):
        starts = ops_named(function, ttg.StartWorkersOp)
        if not starts:
            continue
        workers = ops_named(function, ttg.WorkerOp)
        scheduler = _begin(function, len(workers) + 1)
        found.schedulers[function_name(function)] = scheduler
        for worker in workers:
            _outline(module, function, worker, scheduler, found)
        roles = [role_of(starts[0]), *found.roles.values()]
        function.attributes[ROLES] = strings_attr(role_names(roles))
        for op in starts:
            op.erase()
        for op in ops_named(function, ttg.JoinWorkersOp):
            with before(op):
                call_c(Runtime.JOIN, [scheduler], None)
            op.erase()
    return found


def role_of(op: Operation) -> str:
    """The name of the function that a `ttg.worker`, or the default group, runs."""
    return str(ir.StringAttr(op.attributes["role"]).value)


def _begin(function: Operation, partitions: int) -> Value:
    block = function.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(block), function.location:
        size = scheduler_bytes(partitions)
        buffer = memref.AllocOp(ir.MemRefType.get([size], integer(8)), [], []).result
        index = memref.ExtractAlignedPointerAsIndexOp(buffer).result
        scheduler: Value = arith.IndexCastOp(integer(64), index).result
        call_c(Runtime.BEGIN, [scheduler], None)
    return scheduler


def _outline(
    module: Module, kernel: Operation, worker: Operation, scheduler: Value, found: Partitions
) -> None:
    role = role_of(worker)
    warps = int(ir.IntegerAttr(worker.attributes["warps"]).value)
    name = f"{function_name(kernel)}_{role}_{len(found.roles)}"
    with ir.InsertionPoint(module.body), worker.location:
        function = func.FuncOp(name, ([], []), visibility="private").operation
    function.attributes[NOINLINE] = ir.BoolAttr.get(True)
    function.attributes[PARTITION] = i32_attr(len(found.roles) + 1)
    body = worker.regions[0].blocks[0]
    captured = _captured(worker)
    values = [scheduler, *(v for v in captured if not _is_made_again(v))]
    block = ir.Block.create_at_start(function.regions[0], [v.type for v in values])
    given = dict(zip(values, block.arguments, strict=True))
    with ir.InsertionPoint(block), worker.location:
        for value in captured:
            if value not in given:
                made = defining_op(value)
                assert made is not None, "by _is_made_again"
                operands = [given[operand] for operand in made.operands]
                given[value] = cloned(made, operands).results[0]
    for op in [view.operation for view in body.operations]:
        block.append(op)
    for op in all_ops(function):
        for place, operand in enumerate(op.operands):
            if operand in given:
                op.operands[place] = given[operand]
    end = end_of(block)
    with before(end):
        func.ReturnOp([])
    end.erase()
    type_ = ir.FunctionType.get([v.type for v in values], [])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    with before(worker):
        func.CallOp([], ir.FlatSymbolRefAttr.get(name), values)
    worker.erase()
    found.schedulers[name] = block.arguments[0]
    found.roles[name] = role
    found.warps[name] = warps


def _is_made_again(value: Value) -> bool:
    op = defining_op(value)
    return op is not None and isa(op, arith.ConstantOp, ttng.TensorMapOp)


def _captured(worker: Operation) -> list[Value]:
    """What the ops of a worker use of the code around it, in the order of the uses."""
    ops = all_ops(worker)
    own = {result for op in ops for result in op.results}
    own |= {
        argument
        for op in ops
        for region in op.regions
        for block in region.blocks
        for argument in block.arguments
    }
    used = dict.fromkeys(operand for op in ops for operand in op.operands)
    found: dict[Value, None] = {}
    for value in used:
        if value not in own:
            maker = defining_op(value) if _is_made_again(value) else None
            found |= dict.fromkeys([*(maker.operands if maker else ()), value])
    return list(found)
