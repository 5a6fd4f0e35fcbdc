"""Blocks of tensor descriptors that the tensor memory accelerator (TMA) copies.

A load, store or atomic reduction of a descriptor becomes one of a *tensor map* where the host can
make the map, and TMA has the shape and the type. Everything else becomes pointers and masks after
this pass, as on GPUs without TMA.

    %d = tt.make_tensor_descriptor %base, [%m, %n], [%stride, %one]
    %x = tt.descriptor_load %d, [%i, %j]
becomes
    %t = ttng.tensor_map %d
    %x = ttng.tma_load %t, %i, %j

TMA goes to memory by another way than loads and stores, the *asynchronous proxy* (PTX ISA, "Async
proxy"), and nothing orders the two but fences. So in one kernel an array is read by TMA only where
the kernel does not write it, and written by TMA only where it does not read it; and not at all
where threads tell each other what they wrote: by atomics, barriers, or what is called.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from proton.analysis.alias import UNKNOWN, Roots
from proton.analysis.axis_info import AxisInfos
from proton.analysis.tensor_maps import box_of_map, formula
from proton.base.targets import GPUTarget
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Module, Operation, Value, ir
from proton.dialect.traits import Accesses, Orders, Pure, Writes, has
from proton.dialect.tt_block import TensorDescType
from proton.dialect.ttng_memory import (
    NO_REDUCTION,
    TensorMapOp,
    TensorMapType,
    TMALoadOp,
    TMAStoreOp,
)
from proton.dialect.walk import all_ops, before, defining_op, kernel_functions, replace
from proton.layout.tensor_map import ROW_BYTES
from proton.passes import Pass, register

TMA = 90  # the first compute capability that has it, times 10
_LOAD, _STORE, _REDUCE = "tt.descriptor_load", "tt.descriptor_store", "tt.descriptor_reduce"
_COPIED = (_LOAD, _STORE, _REDUCE)
_INTEGERS = ("i32", "i64")
_REDUCED = {  # elements; what adds fp64 up is not known to be there
    "add": ("f16", "bf16", "f32", *_INTEGERS),
    "min": ("f16", "bf16", *_INTEGERS),
    "max": ("f16", "bf16", *_INTEGERS),
    "and": _INTEGERS,
    "or": _INTEGERS,
    "xor": _INTEGERS,
}


@register
@dataclass(frozen=True)
class TensorDescriptorToTMA(Pass):
    """`ttng.tma_load` and `ttng.tma_store`, for a GPU of compute capability `arch` / 10."""

    name: ClassVar[str] = "triton-nvidia-gpu-tensor-descriptor-to-tma"

    arch: int = 90

    def run(self, module: Module) -> None:
        GPUTarget("cuda", self.arch)  # which says what is wrong with a number that is none
        if self.arch < TMA or not any(op.name in _COPIED for op in all_ops(module)):
            return
        if any(has(op, Orders) for op in all_ops(module)):
            return
        infos = AxisInfos(module)
        for function in kernel_functions(module):
            _Kernel(function, infos).run()


class _Kernel:
    """One kernel: which arrays it reads and writes, and by what."""

    def __init__(self, function: Operation, infos: AxisInfos) -> None:
        self.function, self.infos, self.roots = function, infos, Roots(function)
        self.entry = function.regions[0].blocks[0]
        ops = all_ops(function)
        self.candidates = [op for op in ops if op.name in _COPIED and self._is_possible(op)]
        taken = set(self.candidates)
        self.read, self.written, self.stored = set[int](), set[int](), set[int]()
        for op in ops:
            for array in self._arrays(op):
                is_written = has(op, Writes)
                if is_written:
                    self.written.add(array)
                if not is_written or len(op.results):
                    self.read.add(array)
                if is_written and op not in taken:
                    self.stored.add(array)

    def run(self) -> None:
        for op in self.candidates:
            if self._is_ordered(op):
                self._rewrite(op)

    def _arrays(self, op: Operation) -> frozenset[int]:
        """The arguments that an op may access memory through."""
        if has(op, Accesses):
            return self.roots.of(op.operands[0])
        if (
            op.operands
            and isinstance(op.operands[0].type, TensorDescType)
            and (op.name.startswith("tt.descriptor_") and not has(op, Pure))
        ):
            maker = defining_op(op.operands[0])
            return self.roots.of(maker.operands[0] if maker else op.operands[0])
        return frozenset()

    def _is_ordered(self, op: Operation) -> bool:
        """Whether nothing accesses the array by the other way that this must wait for."""
        arrays = self._arrays(op)
        others = self.written if op.name == _LOAD else self.read | self.stored
        return UNKNOWN not in arrays | others and not arrays & others

    # What TMA can do

    def _is_possible(self, op: Operation) -> bool:
        descriptor = op.operands[0]
        box = box_of_map(descriptor.type)
        if box is None or not self._begins_in_step(op, box.element_bytes):
            return False
        if op.name == _REDUCE and not _is_reduced(op):
            return False
        maker = defining_op(descriptor)
        if maker is None:
            return bool(descriptor.owner == self.entry)  # as the launcher checked it
        if maker.name != "tt.make_tensor_descriptor":
            return False
        view: Any = maker.opview
        if defining_op(view.base) is not None or view.base.owner != self.entry:
            return False
        strides = list(view.strides)[:-1]
        numbers = [*view.shape, *strides]
        if any(formula(number, self.entry) is None for number in numbers):
            return False
        steps = [self.infos[stride].divisibility[0] * box.element_bytes for stride in strides]
        return not any(step % ROW_BYTES for step in [self.infos[view.base].divisibility[0], *steps])

    def _begins_in_step(self, op: Operation, element_bytes: int) -> bool:
        """Whether the rows of the block begin at multiples of 16 bytes: a load from elsewhere is an
        illegal instruction (H200). Threads store what TMA cannot."""
        view: Any = op.opview
        at = self.infos[list(view.indices)[-1]].divisibility[0] * element_bytes
        return op.name != _LOAD or at % ROW_BYTES == 0

    def _rewrite(self, op: Operation) -> None:
        view: Any = op.opview
        with before(op):
            indices = list(view.indices)
            if op.name == _LOAD:
                map_ = _map(view.desc, view.desc.type.outside)
                replace(op, [TMALoadOp(map_, indices, op.results[0].type).result])
            else:
                reduction = view.rmw_op if op.name == _REDUCE else NO_REDUCTION
                # A store by a map that fills with NaN is an illegal instruction (H200).
                map_ = _map(view.desc, "zero", is_signed=reduction in ("min", "max"))
                TMAStoreOp(map_, view.src, indices, string_attr(reduction))
                op.erase()


def _is_reduced(op: Operation) -> bool:
    """Whether TMA combines such elements so."""
    view: Any = op.opview
    return str(view.desc.type.target.element_type) in _REDUCED[view.kind.value]


def _map(descriptor: Value, padding: str, *, is_signed: bool = False) -> Value:
    block = descriptor.type.target
    if is_signed:
        element = ir.IntegerType.get_signed(block.element_type.width)
        block = ir.RankedTensorType.get(block.shape, element)
    type_ = TensorMapType.get(ir.TypeAttr.get(block), string_attr(padding))
    return TensorMapOp(descriptor, [], [], type_).result
