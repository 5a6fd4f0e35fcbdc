"""Gives every tensor a layout: the step from what a program computes to which thread holds what.

Every tensor gets the default layout of its shape, so elementwise ops fit without further ado. An
op that ties the layout of its result to that of its operand (a reduction drops a dimension,
`tt.expand_dims` adds one) gets a `ttg.convert_layout` in between. None of these choices is final:
`coalesce` and `remove-layout-conversions` make better ones.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.layout_rules import operand_layouts, result_layout
from proton.analysis.scratch import axis_of
from proton.base.errors import CompilationError, OutOfResources
from proton.base.targets import MAX_THREADS, WARP_SIZE
from proton.dialect import OpRules, isa, tt
from proton.dialect.attributes import NUM_WARPS, THREADS_PER_WARP
from proton.dialect.builtin import i32_attr
from proton.dialect.diagnostics import is_power_of_two, shape_of
from proton.dialect.layouts import convert, retype_result, set_constant_type
from proton.dialect.mlir import Module, Operation, Type, arith, func, ir
from proton.dialect.ttg import group_warps, is_tensor, layout_of, with_layout
from proton.dialect.walk import all_ops, before, source_span
from proton.layout import LinearLayout, shapes
from proton.layout.reduction import is_separable
from proton.passes import Pass, register

# Elements of one block in a thread. A thread has 255 registers: beyond that it spills, and beyond
# this the assembler's time grows with the square of the block: exp of a masked load, 4 warps, takes
# it 0.5, 1.5 and 10 s for 256, 512 and 1024 elements (two cores, ptxas 13.5.37, 2026-11-21). A
# program that is written for several blocks of threads has so many for each.
MAX_ELEMENTS = 512


_LEGALIZE = OpRules[Callable[[Operation, "TritonToTritonGPU"], None]]()


@register
@dataclass(frozen=True)
class TritonToTritonGPU(Pass):
    """Puts a layout on every tensor, for programs of `num_warps` warps.

        %y = tt.expand_dims %x {axis = 1} : (tensor<64xf32>) -> tensor<64x1xf32>
    becomes
        %c = ttg.convert_layout %x : tensor<64xf32, #default> -> tensor<64xf32, #slice>
        %y = tt.expand_dims %c {axis = 1} : tensor<64x1xf32, #default2>

    A `tt.dot` stays: `tritongpu-accelerate-matmul` decides what becomes of it.
    """

    name: ClassVar[str] = "convert-triton-to-tritongpu"

    num_warps: int = 4
    program_warps: int = 0  # those of groups that run beside these, too; 0: there are none
    num_ctas: int = 1  # blocks of threads that the program is written for
    lanes: int = WARP_SIZE

    def run(self, module: Module) -> None:
        most = MAX_THREADS // self.lanes
        if not is_power_of_two(self.num_warps) or self.num_warps > most:
            raise CompilationError(
                f"num_warps must be a power of two up to {most}, got {self.num_warps}",
                hint="pass num_warps=4 or another power of two to the launch",
            )
        program = self.program_warps or self.num_warps
        module.operation.attributes[NUM_WARPS] = i32_attr(program)
        if self.lanes != WARP_SIZE:
            module.operation.attributes[THREADS_PER_WARP] = i32_attr(self.lanes)
        ops = all_ops(module)
        self._check_sizes(ops)
        for op in ops:
            self._assign(op)
        for op in ops:
            if op.name in _LEGALIZE:
                _LEGALIZE[op.name](op, self)

    def _type(self, type_: Type, op: Operation) -> Type:
        if not is_tensor(type_) or type_.encoding is not None:
            return type_
        warps = group_warps(op, self.program_warps or self.num_warps, self.num_warps)
        return with_layout(type_, shapes.default(tuple(type_.shape), warps, self.lanes))

    def _check_sizes(self, ops: list[Operation]) -> None:
        """Raises OutOfResources where a block does not fit into the threads."""
        threads = self.lanes * self.num_warps
        each = MAX_ELEMENTS * self.num_ctas
        largest = each * threads
        shapes = [(op, tuple(r.type.shape)) for op in ops for r in op.results if is_tensor(r.type)]
        large = [(op, shape) for op, shape in shapes if math.prod(shape) > largest]
        if not large:
            return
        # A constant may have lost its place: it is of no op of the source.
        spans = [source_span(op.location) for op, _ in large]
        which = next((number for number, span in enumerate(spans) if span.file), 0)
        shape = large[which][1]
        raise OutOfResources(
            math.prod(shape),
            largest,
            "elements",
            f"a block of {list(shape)} with num_warps={self.num_warps} has "
            f"{math.prod(shape) // threads} elements per thread, and a thread takes {each}",
            "loop over smaller blocks, or pass a larger num_warps to the launch",
            spans[which] if spans[which].file else None,
        )

    def _assign(self, op: Operation) -> None:
        """The default layout on results, on arguments of blocks, and on constants."""
        for result in op.results:
            if is_tensor(result.type):
                result.set_type(self._type(result.type, op))
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    if is_tensor(argument.type):
                        argument.set_type(self._type(argument.type, op))
        if isa(op, arith.ConstantOp) and is_tensor(op.results[0].type):
            set_constant_type(op)
        elif isa(op, func.FuncOp):
            function_type = ir.TypeAttr(op.attributes["function_type"]).value
            inputs, results = (
                [self._type(t, op) for t in types]
                for types in (function_type.inputs, function_type.results)
            )
            op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


# Ops whose operands and results have related layouts


def _convert_operand(op: Operation, number: int, layout: LinearLayout) -> None:
    with before(op):
        op.operands[number] = convert(op.operands[number], layout)


@_LEGALIZE.of(tt.ExpandDimsOp, tt.BroadcastOp, tt.TransOp, tt.ReshapeOp)
def _operands(op: Operation, given: TritonToTritonGPU) -> None:
    layouts = operand_layouts(op, layout_of(op.results[0].type))
    assert layouts is not None, "these ops have a rule"
    for number, layout in enumerate(layouts):
        _convert_operand(op, number, layout)


@_LEGALIZE.of(tt.ReduceOp)
def _reduce(op: Operation, given: TritonToTritonGPU) -> None:
    source, axis = layout_of(op.operands[0].type), axis_of(op)
    if not is_separable(source, axis):  # an author's
        layout = shapes.scan(shape_of(op.operands[0]), axis, source.in_size("warp"), given.lanes)
        for number in range(len(op.operands)):
            _convert_operand(op, number, layout)
    _results(op, given)


@_LEGALIZE.of(tt.JoinOp)
def _results(op: Operation, given: TritonToTritonGPU) -> None:
    layout = result_layout(op, layout_of(op.operands[0].type))
    assert layout is not None, "these ops have a rule"
    for number, result in enumerate(op.results):
        if is_tensor(result.type):
            retype_result(op, number, layout)


@_LEGALIZE.of(tt.SplitOp)
def _split(op: Operation, given: TritonToTritonGPU) -> None:
    _convert_operand(op, 0, shapes.join(layout_of(op.results[0].type)))


@_LEGALIZE.of(tt.ScanOp)
def _scan(op: Operation, given: TritonToTritonGPU) -> None:
    warps = layout_of(op.operands[0].type).in_size("warp")
    layout = shapes.scan(shape_of(op.operands[0]), axis_of(op), warps, given.lanes)
    for number in range(len(op.operands)):
        _convert_operand(op, number, layout)
        retype_result(op, number, layout)
