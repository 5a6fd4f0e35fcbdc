"""Loads of blocks by pointers that become loads of tensor descriptors, which TMA then copies.

    %p = %k + head * stride_h + (start + range(0, N)) * stride_n + range(0, D)
    %x = tt.load %p, start + range(0, N) < n, 0.0
becomes
    %d = tt.make_tensor_descriptor %k, [most, n, most], [stride_h, stride_n, 1]
    %x = tt.descriptor_load %d, [head, start, 0]

The address of an element is a sum of products. What of a product the host knows (arguments,
constants) is the stride of a dimension, the rest is the index there: so a head, a batch, a table's
first row become dimensions of one element in a block. A mask that compares an index with what the
host knows is the size of its dimension; beyond it there are zeros, as with a mask. A dimension
without a mask has the greatest size.

TMA has no negative index, so an index must be known not to be one (a size is not), and strides are
positive. The module says of which arguments they are made: a launch with one that is not positive
takes the kernel without this pass (`proton/runtime/nvidia/launch.py`).

It is for the loads of loops with two dots or more, whose copies a producer begins then (roles.py);
a kernel that has none in the end is compiled without. Eight kernels like attention take 0.67 to
0.89 of the time of alternating groups (`benchmarks/gpu_alternating.py --loads pointers`, H200,
c6e8af4d); 275 kernels without a producer (fla-core) took 1.01 (`benchmarks/corpus.py --against`,
H100).
"""

from dataclasses import dataclass, field
from dataclasses import replace as replace_
from math import gcd, prod
from typing import ClassVar

from proton.analysis import scalar as sc
from proton.analysis.alias import Roots
from proton.analysis.axis_info import AxisInfos
from proton.analysis.polynomials import Monomial, Polynomial, Polynomials, add, negative
from proton.analysis.scratch import stored_bytes
from proton.analysis.structure import Structure, StructureAnalysis
from proton.base.targets import DEFAULT_WARPS, GPUTarget
from proton.dialect import isa, names_of, tt
from proton.dialect.attributes import (
    ARGUMENT_NAME,
    DESCRIBES_LOADS,
    KERNEL,
    WARP_SPECIALIZE,
)
from proton.dialect.builtin import integer, string_attr, strings_attr
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import is_zeros, predicate_of
from proton.dialect.mlir import Block, Module, Operation, Value, arith, ir, scf
from proton.dialect.regions import ForLoop
from proton.dialect.traits import Orders, has
from proton.dialect.walk import all_ops, before, defining_op, kernel_functions, replace
from proton.layout.tensor_map import ROW_BYTES, box_of
from proton.passes import Pass, register
from proton.schedule.loads import is_apart, written_by

_MOST_DIMENSIONS = 5  # of a tensor map
_MOST = (1 << 31) - 1  # elements along a dimension of a descriptor
_DOTS = 2
_WARPS = 8  # of programs of which an SM may have room for one only: less have no producer
# What is added to the other side of a comparison, for the first index beyond, or not before.
_COMPARED = {"slt": 0, "sle": 1, "ult": 0, "sge": 0, "sgt": 1}


@register
@dataclass(frozen=True)
class DescribeLoads(Pass):
    """`tt.descriptor_load` in the place of `tt.load` in loops with several dots."""

    name: ClassVar[str] = "describe-loads"
    only_for: ClassVar[frozenset[str]] = names_of(tt.DotOp)

    target: GPUTarget
    num_warps: int = DEFAULT_WARPS

    def run(self, module: Module) -> None:
        if not self.target.facts.has_tma or any(has(op, Orders) for op in all_ops(module)):
            return
        for function in kernel_functions(module):
            loads = _candidates(function, self.num_warps)
            if not loads:
                continue
            analysis = StructureAnalysis()
            analysis.analyse(function.regions[0].blocks[0])
            known = _Kernel(function, analysis, AxisInfos(module))
            found = [made for load in loads if (made := known.described(load)) is not None]
            if found:
                module.operation.attributes[DESCRIBES_LOADS] = strings_attr(known.names_of(found))
            for made in found:
                made.rewrite()


def _candidates(function: Operation, num_warps: int) -> list[Operation]:
    """The loads of blocks in loops of several dots that nothing in the kernel writes."""
    if KERNEL not in function.attributes:
        return []
    found = []
    for loop in all_ops(function):
        if not isa(loop, scf.ForOp):
            continue
        if num_warps < _WARPS and WARP_SPECIALIZE not in loop.attributes:
            continue
        ops = [view.operation for view in ForLoop(loop).body.operations]
        if sum(isa(op, tt.DotOp) for op in ops) >= _DOTS:
            found += [op for op in ops if isa(op, tt.LoadOp) and len(shape_of(op.results[0])) == 2]
    roots = Roots(function)
    written = written_by(all_ops(function), roots) if found else None
    if written is None:
        return []
    return [op for op in found if is_apart(op, written, roots)]


@dataclass
class _Dimension:
    """A dimension of a tensor: its stride, of host's numbers, its size, and where a block begins.
    `of_block`: the block's dimension, None for one of a single element."""

    stride: Polynomial
    index: Polynomial = field(default_factory=dict)
    size: Polynomial | None = None
    of_block: int | None = None
    may_be_negative: bool = False  # where a mask says that nothing is there


@dataclass(frozen=True)
class _Limit:
    """Of a block's dimension the first index that is beyond, or, of a lower one, that is not."""

    axis: int
    end: Polynomial
    is_lower: bool


@dataclass
class _Described:
    """A load, and what describes it; the fastest dimension is the last one."""

    kernel: "_Kernel"
    load: Operation
    base: Value
    dimensions: list[_Dimension]

    def rewrite(self) -> None:
        result = self.load.results[0]
        shape, element = shape_of(result), element_of(result)
        block = [1 if d.of_block is None else shape[d.of_block] for d in self.dimensions]
        target, i32, i64 = ir.RankedTensorType.get(block, element), integer(32), integer(64)
        entry = self.kernel.entry
        emit = self.kernel.numbers.emit
        known = self.kernel.descriptors
        key = (self.base, str(target), *((_key(d.stride), _key(d.size)) for d in self.dimensions))
        if key not in known:
            with ir.InsertionPoint.at_block_begin(entry), self.load.location:
                sizes = [
                    emit({(): _MOST} if d.size is None else d.size, i32) for d in self.dimensions
                ]
                strides = [emit(d.stride, i64) for d in self.dimensions]
                type_ = tt.TensorDescType.get(ir.TypeAttr.get(target), string_attr("zero"))
                known[key] = tt.MakeTensorDescOp(self.base, sizes, strides, type_).result
        descriptor = known[key]
        with before(self.load):
            indices = [emit(d.index, i32, self.load) for d in self.dimensions]
            view = self.load.opview
            value = tt.DescriptorLoadOp(descriptor, indices, view.cache, view.evict, target).result
            order = [d.of_block for d in self.dimensions if d.of_block is not None]
            matrix = ir.RankedTensorType.get([shape[axis] for axis in order], element)
            if len(block) > len(order):
                value = tt.ReshapeOp(value, matrix).result
            if order != sorted(order):
                axes = ir.DenseI64ArrayAttr.get([order.index(axis) for axis in range(len(order))])
                value = tt.TransOp(value, axes, result.type).result
            replace(self.load, [value])


class _Kernel:
    """What is known of the numbers of a kernel."""

    def __init__(self, function: Operation, analysis: StructureAnalysis, infos: AxisInfos) -> None:
        self.function = function
        self.entry: Block = function.regions[0].blocks[0]
        self.analysis, self.infos = analysis, infos
        self.numbers = Polynomials(self.entry, analysis)
        self.descriptors: dict[object, Value] = {}  # by what they are made of

    def described(self, load: Operation) -> _Described | None:
        """None where a load is not of what one descriptor can describe."""
        view = load.opview
        is_plain = not view.volatile.value and view.cache.value == ""
        structure = self.analysis.structure(view.ptr)
        if not is_plain or structure is None or structure.source is None:
            return None
        if view.other is not None and not _is_filled_with_zeros(view.other):
            return None
        strides = self._strides(structure)
        start = self._pointer(structure.source)
        offset = self.numbers.of(structure.scalar)
        limits = [] if view.mask is None else self._limits(view.mask)
        if strides is None or start is None or offset is None or limits is None:
            return None
        base, more = start
        dimensions = self._dimensions(strides, add(offset, more), limits)
        if dimensions is None:
            return None
        made = _Described(self, load, base, dimensions)
        return made if self._fits(made) else None

    def names_of(self, found: list[_Described]) -> list[str]:
        """The arguments that strides are made of."""
        atoms = {a for made in found for d in made.dimensions for m in d.stride for a in m}
        arguments = [ir.DictAttr(a) for a in self.function.attributes["arg_attrs"]]
        pairs = zip(self.entry.arguments, arguments, strict=True)
        return [known[ARGUMENT_NAME].value for value, known in pairs if value in atoms]

    def _fits(self, made: _Described) -> bool:
        """True if TMA can copy it."""
        result = made.load.results[0]
        element = element_of(result)
        if not isinstance(element, ir.FloatType | ir.IntegerType) or element.width < 8:
            return False
        size, shape = stored_bytes(element), shape_of(result)
        block = [1 if d.of_block is None else shape[d.of_block] for d in made.dimensions]
        box = box_of(tuple(block), size)
        if box is None or not box.swizzle or len(block) > _MOST_DIMENSIONS:
            return False
        steps = [self._divisor(d.stride) * size for d in made.dimensions[:-1]]
        steps += [self._divisor(made.dimensions[-1].index) * size]
        steps += [self.infos[made.base].divisibility[0]]
        is_aligned = not any(step % ROW_BYTES for step in steps)
        return is_aligned and all(
            d.may_be_negative or self.numbers.is_index(d.index) for d in made.dimensions
        )

    def _strides(self, structure: Structure) -> list[Polynomial] | None:
        """Those of a block's dimensions; None where one is not the host's, or none is 1."""
        if any(dim.parent is not None or dim.gathers for dim in structure.dims):
            return None
        found = [self.numbers.of(dim.stride) for dim in structure.dims]
        known = [
            stride for stride in found if stride is not None and self.numbers.is_of_host(stride)
        ]
        if len(known) < len(found) or known.count({(): 1}) != 1:
            return None
        return known if all(len(stride) == 1 for stride in known) else None

    def _dimensions(
        self,
        strides: list[Polynomial],
        offset: Polynomial,
        limits: list["_Limit"],
    ) -> list[_Dimension] | None:
        """The dimensions of a tensor, whose blocks begin at the offset; None where a limit is not
        a size of the host's less an index."""
        fast = strides.index({(): 1})
        own = [_Dimension(stride, of_block=axis) for axis, stride in enumerate(strides)]
        for limit in limits:
            if limit.is_lower:
                continue
            dimension = own[limit.axis]
            index = {m: -f for m, f in limit.end.items() if not self.numbers.is_of_host({m: f})}
            # What is constant in it is what the offset says.
            ((unit, factor),) = dimension.stride.items()
            if (known := offset.get(unit, 0)) % factor == 0:
                index = add(index, {(): known // factor})
            size = add(limit.end, index)
            self.numbers.sizes |= _arguments(size)
            if dimension.size is not None and dimension.size != size:
                return None
            if dimension.size is None:
                dimension.size, dimension.index = size, index
                offset = add(offset, negative(self.numbers.product(dimension.stride, index)))
        for limit in limits:
            if limit.is_lower and add(limit.end, own[limit.axis].index) != {}:
                return None
            own[limit.axis].may_be_negative |= limit.is_lower
        rows = own[1 - fast]
        ((row_atoms, row_factor),) = rows.stride.items()
        others: dict[Monomial, list[tuple[Monomial, int]]] = {}
        for monomial, factor in offset.items():
            host = tuple(atom for atom in monomial if self.numbers.is_argument(atom))
            rest = tuple(atom for atom in monomial if not self.numbers.is_argument(atom))
            if rows.size is None and host == row_atoms and factor % row_factor == 0:
                rows.index = add(rows.index, {rest: factor // row_factor})
            elif own[fast].size is None and not host and not rest:
                own[fast].index = add(own[fast].index, {(): factor})
            else:
                others.setdefault(host, []).append((rest, factor))
        made = []
        for host, parts in others.items():
            step = gcd(*(factor for _, factor in parts))
            index = {rest: factor // step for rest, factor in parts}
            made.append(_Dimension({host: step}, index))
        return [*made, rows, own[fast]]

    def _pointer(self, source: sc.Expr) -> tuple[Value, Polynomial] | None:
        """(the argument, the offset from it) of a scalar pointer."""
        if not isinstance(source, sc.Leaf) or not isinstance(source.value, Value):
            return None
        value, offset = source.value, Polynomial()
        while value.owner != self.entry:
            op = defining_op(value)
            if op is None:
                kept = _kept(value)
                if kept is None:
                    return None
                value = kept
                continue
            more = self.numbers.of_value(op.operands[1]) if isa(op, tt.AddPtrOp) else None
            if more is None:
                return None
            value, offset = op.operands[0], add(offset, more)
        return value, offset

    def _limits(self, mask: Value) -> "list[_Limit] | None":
        """Those of a mask; None where it is more than comparisons of indices with numbers."""
        op = defining_op(mask)
        if op is None:
            return None
        if isa(op, arith.AndIOp):
            left, right = (self._limits(operand) for operand in op.operands)
            return None if left is None or right is None else left + right
        if isa(op, tt.BroadcastOp):
            found = self._limits(op.operands[0])
            sizes = shape_of(op.operands[0])
            is_known = found is not None and all(sizes[limit.axis] > 1 for limit in found)
            return found if is_known else None
        if isa(op, tt.ExpandDimsOp):
            new, found = op.attributes["axis"].value, self._limits(op.operands[0])
            return found and [replace_(f, axis=f.axis + (f.axis >= new)) for f in found]
        return self._limit(op) if isa(op, arith.CmpIOp) else None

    def _limit(self, op: Operation) -> "list[_Limit] | None":
        row, limit = (self.analysis.structure(operand) for operand in op.operands)
        name = predicate_of(op).name
        if name in ("sgt", "sge") and row is not None and row.uniform:
            row, limit, name = limit, row, name.replace("g", "l")
        if name in ("sle", "slt") and limit is not None and not limit.uniform:
            row, limit, name = limit, row, name.replace("l", "g")
        if (
            name not in _COMPARED
            or row is None
            or limit is None
            or not limit.uniform
            or row.source is not None
        ):
            return None
        varying = [axis for axis, dim in enumerate(row.dims) if dim.stride != 0]
        plain = not any(dim.parent is not None or dim.gathers for dim in row.dims)
        start, end = self.numbers.of(row.scalar), self.numbers.of(limit.scalar)
        if len(varying) != 1 or not plain or start is None or end is None:
            return None
        if row.dims[varying[0]].stride != 1:
            return None
        found = add(add(end, {(): _COMPARED[name]}), negative(start))
        return [_Limit(varying[0], found, is_lower=name.startswith("sg"))]

    def _divisor(self, polynomial: Polynomial) -> int:
        """A number that divides a sum."""
        found = 0
        for monomial, factor in polynomial.items():
            known = [self.infos[a].divisibility[0] for a in monomial if isinstance(a, Value)]
            found = gcd(found, factor * prod(known))
        return found or 1 << 30


def _arguments(size: Polynomial) -> set[Value]:
    """The argument that a size is: it is taken not to be negative, as divisors are."""
    ((monomial, factor),) = size.items() if len(size) == 1 else [((), 0)]
    return {a for a in monomial if isinstance(a, Value)} if factor == 1 == len(monomial) else set()


def _kept(argument: Value) -> Value | None:
    """What a loop carries unchanged; None for other block arguments."""
    loop = argument.owner.owner.operation
    if not isa(loop, scf.ForOp) or argument == ForLoop(loop).induction_var:
        return None
    number = ForLoop(loop).iter_args.index(argument)
    return ForLoop(loop).init_args[number] if ForLoop(loop).yielded[number] == argument else None


def _key(polynomial: Polynomial | None) -> object:
    return None if polynomial is None else frozenset(polynomial.items())


def _is_filled_with_zeros(value: Value) -> bool:
    op = defining_op(value)
    if isa(op, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp):
        return _is_filled_with_zeros(op.operands[0])
    if shape_of(value):
        return is_zeros(value)
    return bool(isa(op, arith.ConstantOp) and op.attributes["value"].value == 0)
