"""Tensors that calls take and give go through memory: a function gets the addresses of buffers.

    %y = call @f(%x) : tensor<8xf32>       ->   memref.alloc %a; %x into %a; memref.alloc %b
                                                call @f(%a, %b); %y = what is in %b

The caller makes both buffers. A callee only reads what it is given, and writes its results before
it returns, so neither has to know of the other.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.call_graph import function_of
from proton.dialect.abi import added_arguments, replace_call, update_type
from proton.dialect.attributes import NOINLINE
from proton.dialect.memory import materialize, to_tensor
from proton.dialect.mlir import Module, Operation, Type, Value, func, ir, memref
from proton.dialect.regions import end_of
from proton.dialect.walk import before, functions, ops_named
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class CallsToBuffers(Pass):
    """Gives functions that stay calls buffers in the place of tensors, and their calls, too."""

    name: ClassVar[str] = "calls-to-buffers"

    def run(self, module: Module) -> None:
        for function in functions(module):
            if NOINLINE in function.attributes:
                _take_buffers(function)
        for call in ops_named(module, func.CallOp):
            if any(_is_tensor(value.type) for value in (*call.operands, *call.results)):
                _pass_buffers(call, len(added_arguments(function_of(call))))


def _is_tensor(type_: Type) -> bool:
    return isinstance(type_, ir.RankedTensorType)


def _buffer(type_: Type) -> Type:
    return ir.MemRefType.get(type_.shape, type_.element_type)


def _take_buffers(function: Operation) -> None:
    block = function.regions[0].blocks[0]
    for argument in block.arguments:
        if _is_tensor(argument.type):
            _read_from_buffer(function, argument)
    end = end_of(block)
    results = list(end.operands)
    outputs = _add_outputs(function, [_buffer(r.type) for r in results if _is_tensor(r.type)])
    with before(end):
        pairs = zip((r for r in results if _is_tensor(r.type)), outputs, strict=True)
        for value, output in pairs:
            materialize(value, output)
        func.ReturnOp([r for r in results if not _is_tensor(r.type)])
    end.erase()
    update_type(function)


def _read_from_buffer(function: Operation, argument: Value) -> None:
    tensor_type = argument.type
    uses = [(use.owner.operation, use.operand_number) for use in argument.uses]
    argument.set_type(_buffer(tensor_type))
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location:
        value = to_tensor(argument)
    for op, number in uses:
        op.operands[number] = value


def _add_outputs(function: Operation, types: list[Type]) -> list[Value]:
    """Arguments for the results, before those that passes have added, which stay the last."""
    block = function.regions[0].blocks[0]
    first = len(block.arguments) - len(added_arguments(function))
    added = list(block.arguments)[first:]
    outputs = [block.add_argument(type_, function.location) for type_ in types]
    for old in added:
        old.replace_all_uses_with(block.add_argument(old.type, old.location))
    for _ in added:
        block.erase_argument(first)
    return list(block.arguments)[first : first + len(outputs)]


def _pass_buffers(call: Operation, added: int) -> None:
    """`added`: how many of the last operands were added by passes."""
    operands = list(call.operands)
    own, last = operands[: len(operands) - added], operands[len(operands) - added :]
    with before(call):
        own = [_stored(value) if _is_tensor(value.type) else value for value in own]
        outputs = [_alloc(result.type) for result in call.results if _is_tensor(result.type)]
    scalars = [result.type for result in call.results if not _is_tensor(result.type)]
    new = replace_call(call, [*own, *outputs, *last], scalars)
    given, filled = iter(new.results), iter(outputs)
    with before(call):
        for result in call.results:
            is_tensor = _is_tensor(result.type)
            result.replace_all_uses_with(to_tensor(next(filled)) if is_tensor else next(given))
    call.erase()


def _alloc(type_: Type) -> Value:
    return memref.AllocOp(_buffer(type_), [], []).result


def _stored(value: Value) -> Value:
    buffer = _alloc(value.type)
    materialize(value, buffer)
    return buffer
