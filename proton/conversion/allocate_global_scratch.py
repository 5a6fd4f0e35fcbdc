"""Places in global memory for the tensor maps that a kernel makes."""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of, ttng
from proton.dialect.abi import AddedArgument, add_argument
from proton.dialect.attributes import GLOBAL_SCRATCH_BYTES, GLOBAL_SCRATCH_OFFSETS
from proton.dialect.builtin import i32_attr
from proton.dialect.memory import GLOBAL, pointer_type
from proton.dialect.mlir import Module, ir
from proton.dialect.walk import kernel_functions, ops_named
from proton.layout.tensor_map import ROW_BYTES, TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class AllocateGlobalScratch(Pass):
    """Places for each `ttng.tensormap_create` in the memory of its program: of the map, and of 16
    bytes that stand for a tensor without elements. The memory of all programs lies side by side,
    and the kernel takes its address behind its tensor maps. `ttg.global_scratch_memory_size` says
    how much a program has."""

    name: ClassVar[str] = "allocate-global-scratch"
    only_for: ClassVar[frozenset[str]] = names_of(ttng.TensorMapCreateOp)

    def run(self, module: Module) -> None:
        for kernel in kernel_functions(module):
            created = ops_named(kernel, ttng.TensorMapCreateOp)
            if not created:
                continue
            spare = len(created) * TENSOR_MAP_BYTES
            for number, op in enumerate(created):
                places = number * TENSOR_MAP_BYTES, spare + number * ROW_BYTES
                op.attributes[GLOBAL_SCRATCH_OFFSETS] = ir.DenseI32ArrayAttr.get(list(places))
            used = spare + len(created) * ROW_BYTES
            size = -(-used // TENSOR_MAP_ALIGNMENT) * TENSOR_MAP_ALIGNMENT
            kernel.attributes[GLOBAL_SCRATCH_BYTES] = i32_attr(size)
            add_argument(kernel, AddedArgument.GLOBAL_SCRATCH, pointer_type(GLOBAL))
