"""Blocks of tensor descriptors that the tensor memory accelerator (TMA) copies.

A load, store or atomic reduction of a descriptor becomes one of a *tensor map* where TMA has the
shape and the type, and the map can be made. Everything else becomes pointers and masks after this
pass, as on GPUs without TMA.

    %d = tt.make_tensor_descriptor %base, [%m, %n], [%stride, %one]
    %x = tt.descriptor_load %d, [%i, %j]
becomes
    %t = ttng.tensor_map %d
    %x = ttng.tma_load %t, %i, %j

The host makes a map where it can compute all of it before the launch; then it costs the kernel
nothing. Any other one the kernel makes when it runs, which takes as long as a block or two: so it
does only for what is in a loop in which the descriptor does not change. Of what it reads from
memory it takes for granted what TMA asks for (addresses and strides that are multiples of 16
bytes), as Triton does, and ends where that does not hold; what it computes of its arguments has to
be known to be such a multiple, else it is pointers.

TMA goes to memory by another way than loads and stores, the *asynchronous proxy* (PTX ISA, "Async
proxy"), and nothing orders the two but fences. So in one kernel an array is read by TMA only where
the kernel does not write it, and written by TMA only where it does not read it; and not at all
where threads tell each other what they wrote: by atomics, barriers, or what is called. Arrays
whose addresses are loaded from different places are different ones, as two arguments are.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.alias import UNKNOWN
from proton.analysis.axis_info import AxisInfos
from proton.analysis.descriptors import DescriptorSources, is_multiple, is_steady
from proton.analysis.scratch import stored_bytes
from proton.analysis.tensor_maps import box_of_map, formula
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, tt
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Location, Module, Operation, Type, Value, ir
from proton.dialect.regions import loop_around
from proton.dialect.traits import Accesses, Orders, Pure, Writes, has
from proton.dialect.ttng_memory import (
    NO_REDUCTION,
    TensorCheckOp,
    TensorMapOp,
    TensorMapType,
    TMALoadOp,
    TMAStoreOp,
)
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    kernel_functions,
    producer_of,
    replace,
    source_span,
)
from proton.layout.tensor_map import ROW_BYTES
from proton.passes import Pass, register

_LOAD, _STORE, _REDUCE = tt.DescriptorLoadOp, tt.DescriptorStoreOp, tt.DescriptorReduceOp
_COPIED = names_of(_LOAD, _STORE, _REDUCE)
_MAKE = tt.MakeTensorDescOp
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
    """`ttng.tma_load` and `ttng.tma_store`, where the target has TMA; `device`:
    whether the kernel may make maps, too; `debug`: whether it says what TMA cannot take."""

    name: ClassVar[str] = "triton-nvidia-gpu-tensor-descriptor-to-tma"

    target: GPUTarget
    device: bool = True
    debug: bool = False

    def run(self, module: Module) -> None:
        if not self.target.facts.has_tma or not any(op.name in _COPIED for op in all_ops(module)):
            return
        if any(has(op, Orders) for op in all_ops(module)):
            return
        infos = AxisInfos(module)
        for function in kernel_functions(module):
            _Kernel(function, infos, self.device, self.debug).run()


class _Kernel:
    """One kernel: which arrays it reads and writes, and by what."""

    def __init__(self, function: Operation, infos: AxisInfos, device: bool, debug: bool) -> None:
        self.infos, self.device, self.debug = infos, device, debug
        self.sources = DescriptorSources(function)
        self.entry = function.regions[0].blocks[0]
        # The maps that the kernel makes, by descriptor and type.
        self.maps: dict[tuple[Value, Type], Value] = {}
        self.checked: set[Value] = set()
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
                if not self._is_of_host(op.operands[0]):
                    for descriptor in self.sources.made_by(op.operands[0]):
                        self._check(descriptor)
                self._rewrite(op)

    def _arrays(self, op: Operation) -> frozenset[int]:
        """The arrays that an op may access."""
        if has(op, Accesses):
            return self.sources.of(op.operands[0])
        is_of_descriptor = op.name.startswith("tt.descriptor_") and not has(op, Pure)
        return self.sources.of(op.operands[0]) if is_of_descriptor else frozenset()

    def _is_ordered(self, op: Operation) -> bool:
        """True if nothing accesses the array by the other way that this must wait for."""
        arrays = self._arrays(op)
        others = self.written if isa(op, _LOAD) else self.read | self.stored
        return UNKNOWN not in arrays | others and not arrays & others

    # What TMA can do

    def _is_possible(self, op: Operation) -> bool:
        descriptor = op.operands[0]
        if not isinstance(descriptor.type, tt.TensorDescType):
            return False
        box = box_of_map(descriptor.type)
        if box is None or not self._begins_in_step(op, box.element_bytes):
            return False
        if isa(op, _REDUCE) and not _is_reduced(op):
            return False
        if self._is_of_host(descriptor):
            return True
        loop = loop_around(op)
        if not self.device or loop is None or not is_steady(descriptor, loop):
            return False
        makers = self.sources.made_by(descriptor)
        return bool(makers) and all(self._fits(maker, box.element_bytes) for maker in makers)

    def _is_of_host(self, descriptor: Value) -> bool:
        """True if the host can make the map: of an argument, as the launcher checked it, or of
        what it can compute of arguments."""
        maker = defining_op(descriptor)
        if maker is None:
            return bool(descriptor.owner == self.entry)
        if not isa(maker, _MAKE):
            return False
        view = maker.opview
        if defining_op(view.base) is not None or view.base.owner != self.entry:
            return False
        strides = list(view.strides)[:-1]
        numbers = [*view.shape, *strides]
        known = all(formula(number, self.entry) is not None for number in numbers)
        return known and self._is_aligned(descriptor)

    def _fits(self, descriptor: Value, element_bytes: int) -> bool:
        """True if what a descriptor is made of may be what TMA asks for; arguments are checked."""
        maker = defining_op(descriptor)
        if maker is None:
            return True
        view = maker.opview
        row = max(1, ROW_BYTES // element_bytes)
        return is_multiple(view.base, ROW_BYTES, self.infos) and all(
            is_multiple(stride, row, self.infos) for stride in list(view.strides)[:-1]
        )

    def _check(self, descriptor: Value) -> None:
        """Has the kernel look at what a descriptor is made of, unless that is known to fit."""
        maker = defining_op(descriptor)
        if maker is None or descriptor in self.checked or self._is_aligned(descriptor):
            return
        self.checked.add(descriptor)
        view = maker.opview
        with before(maker):
            strides = list(view.strides)[:-1]
            message = _message(maker.location) if self.debug else ""
            TensorCheckOp(view.base, list(view.shape), strides, string_attr(message))

    def _is_aligned(self, descriptor: Value) -> bool:
        """True if address and strides are known to be multiples of 16 bytes."""
        view = producer_of(descriptor).opview
        size = stored_bytes(descriptor.type.target.element_type)
        steps = [self.infos[s].divisibility[0] * size for s in list(view.strides)[:-1]]
        return not any(step % ROW_BYTES for step in [self.infos[view.base].divisibility[0], *steps])

    def _begins_in_step(self, op: Operation, element_bytes: int) -> bool:
        """True if the rows of the block begin at multiples of 16 bytes: a load from elsewhere is an
        illegal instruction (H200). Threads store what TMA cannot."""
        view = op.opview
        at = self.infos[list(view.indices)[-1]].divisibility[0] * element_bytes
        return not isa(op, _LOAD) or at % ROW_BYTES == 0

    def _rewrite(self, op: Operation) -> None:
        view = op.opview
        with before(op):
            indices = list(view.indices)
            if isa(op, _LOAD):
                map_ = self._map(op, ir.StringAttr(view.desc.type.padding).value)
                replace(op, [TMALoadOp(map_, indices, op.results[0].type).result])
            else:
                reduction = view.rmw_op if isa(op, _REDUCE) else NO_REDUCTION
                # A store by a map that fills with NaN is an illegal instruction (H200).
                map_ = self._map(op, "zero", is_signed=reduction in ("min", "max"))
                TMAStoreOp(map_, view.src, indices, string_attr(reduction))
                op.erase()

    def _map(self, op: Operation, padding: str, *, is_signed: bool = False) -> Value:
        """The map for an access; one that the kernel makes stands where the descriptor is made."""
        descriptor: Value = op.operands[0]
        type_ = _map_type(descriptor, padding, is_signed)
        if self._is_of_host(descriptor):
            return TensorMapOp(descriptor, [], [], [], type_).result
        key = descriptor, type_
        if key not in self.maps:
            maker = defining_op(descriptor)
            if maker is None:
                block = ir.BlockArgument(descriptor).owner
                place, location = ir.InsertionPoint.at_block_begin(block), op.location
            else:
                place, location = ir.InsertionPoint.after(maker), maker.location
            with place, location:
                self.maps[key] = TensorMapOp(descriptor, [], [], [], type_).result
        return self.maps[key]


def _is_reduced(op: Operation) -> bool:
    """True if TMA combines such elements so."""
    view = op.opview
    return str(view.desc.type.target.element_type) in _REDUCED[view.kind.value]


def _message(location: Location) -> str:
    """What an assertion on the device says, as the front end writes it."""
    span = source_span(location)
    return (
        f"{span.file}:{span.line}: in make_tensor_descriptor: address and strides must be "
        f"multiples of {ROW_BYTES} bytes, and strides positive"
    )


def _map_type(descriptor: Value, padding: str, is_signed: bool) -> TensorMapType:
    block = descriptor.type.target
    if is_signed:
        element = ir.IntegerType.get_signed(block.element_type.width)
        block = ir.RankedTensorType.get(block.shape, element)
    return TensorMapType.get(ir.TypeAttr.get(block), string_attr(padding))
