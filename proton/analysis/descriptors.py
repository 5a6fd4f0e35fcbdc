"""Where the tensor descriptors of a kernel come from, and which memory they and its pointers name.

A descriptor that goes through loops and branches may be one of several; a pointer that is loaded
from memory points into an array of which nothing else is known, but that it is that one:

    for g in range(groups):
        a = tl.load(table + 2 * g).to(pointer)         array -2
        c = tl.load(table + 2 * g + 1).to(pointer)     array -3

Two such arrays are taken to be two, as two arguments are.
"""

from proton.analysis.alias import UNKNOWN, Roots
from proton.analysis.axis_info import AxisInfos
from proton.analysis.scratch import stored_bytes
from proton.dialect import isa, names_of, tt
from proton.dialect.attributes import DISABLE_LICM
from proton.dialect.mlir import Block, Operation, Value, arith, scf
from proton.dialect.regions import Branch, ForLoop, is_invariant
from proton.dialect.traits import KeepsNumber, PassesPointers, Speculatable, has
from proton.dialect.walk import backward_slice, defining_op

_MAKE, _LOAD, _FROM_INTEGER = tt.MakeTensorDescOp, tt.LoadOp, tt.IntToPtrOp
_SUMS = names_of(arith.AddIOp, arith.SubIOp)


class DescriptorSources(Roots):
    """`of(value)`: the arrays that a pointer or a descriptor may name: arguments by their numbers,
    loaded addresses by negative ones. `makers[value]`: the ops that make what a descriptor may be,
    and the arguments that it may be."""

    def __init__(self, function: Operation) -> None:
        entry = function.regions[0].blocks[0]
        self.makers: dict[Value, frozenset[Value]] = {
            argument: frozenset([argument])
            for argument in entry.arguments
            if isinstance(argument.type, tt.TensorDescType)
        }
        self._numbering = _Numbering(entry)
        super().__init__(function)

    def made_by(self, descriptor: Value) -> frozenset[Value]:
        """The results of `tt.make_tensor_descriptor`, and the arguments, that a descriptor may be;
        none where it is not known."""
        return self.makers.get(descriptor, frozenset())

    def takes_part(self, op: Operation) -> bool:
        """True if an op may give a descriptor, too, or an array that nobody knows."""
        return super().takes_part(op) or isa(op, _MAKE, _LOAD, _FROM_INTEGER)

    def transfer(self, op: Operation, state: None) -> None:
        super().transfer(op, state)
        if isa(op, _MAKE):
            made = op.results[0]
            self.known[made], self.makers[made] = self.of(op.operands[0]), frozenset([made])
        elif isa(op, arith.SelectOp) and isinstance(op.results[0].type, tt.TensorDescType):
            for source in list(op.operands)[1:]:
                self._pass(source, op.results[0])
        elif isa(op, _LOAD, _FROM_INTEGER) and not has(op, PassesPointers):
            for result in op.results:
                if tt.is_pointer_like(result.type):
                    self.known[result] = self._numbering.arrays(result)

    def flow(self, branch: Branch) -> bool:
        is_new = super().flow(branch)
        for source, target in zip(branch.passed, branch.received, strict=True):
            if isinstance(source.type, tt.TensorDescType):
                is_new |= self._pass(source, target)
        return is_new

    def _pass(self, source: Value, target: Value) -> bool:
        arrays = self.known.get(target, frozenset()) | self.of(source)
        makers = self.makers.get(target, frozenset()) | self.made_by(source)
        is_new = (arrays, makers) != (self.known.get(target), self.makers.get(target))
        self.known[target], self.makers[target] = arrays, makers
        return is_new


# What a result is computed by: op, which result, attributes, numbers of the operands; its type.
_Computation = tuple[str, int, tuple[tuple[str, str], ...], tuple[int, ...], str]
_Term = Value | _Computation


class _Numbering:
    """Numbers of loads: those of one address have one."""

    def __init__(self, entry: Block) -> None:
        self.entry = entry
        self._arguments = {argument: n for n, argument in enumerate(entry.arguments)}
        self._values: dict[Value, int] = {}
        self._terms: dict[_Term, int] = {}
        self._arrays: dict[int, int] = {}

    def arrays(self, pointer: Value) -> frozenset[int]:
        """The arrays that a pointer may point into which was loaded, or made of an integer: a
        number for each load, or argument, that the integer is computed from."""
        found: set[int] = set()
        for value, op in backward_slice([pointer], _is_computed):
            if op is None:
                found.add(self._arguments.get(value, UNKNOWN))
            elif isa(op, _LOAD):
                term = self._number(value)
                found.add(self._arrays.setdefault(term, UNKNOWN - 1 - len(self._arrays)))
            elif not _is_computed(op):
                found.add(UNKNOWN)
        return frozenset(found) or frozenset([UNKNOWN])

    def _number(self, value: Value) -> int:
        """Equal numbers are of equal computations."""
        if value not in self._values:
            op = defining_op(value)
            term: _Term = value
            if op is not None and not len(op.regions):
                names = sorted((name, str(op.attributes[name])) for name in op.attributes)
                operands = tuple(self._number(operand) for operand in op.operands)
                place = list(op.results).index(value)
                term = op.name, place, tuple(names), operands, str(value.type)
            self._values[value] = self._terms.setdefault(term, len(self._terms))
        return self._values[value]


def is_steady(value: Value, loop: Operation) -> bool:
    """True if a value is the same in all iterations of a loop, and can be computed before it."""
    if is_invariant(value, loop):
        return True
    if not isa(loop, scf.ForOp):
        return False
    op, view = defining_op(value), ForLoop(loop)
    if op is None:
        arguments = view.iter_args
        return value in arguments and view.yielded[arguments.index(value)] == value
    if DISABLE_LICM in loop.attributes or op.block != view.body or not has(op, Speculatable):
        return False
    return all(is_steady(operand, loop) for operand in op.operands)


def is_multiple(value: Value, number: int, infos: AxisInfos) -> bool:
    """True if an integer is a multiple of a number, or a pointer one of so many bytes: as far as is
    known, and for what comes from memory as is asked of it."""
    if infos[value].divisibility[0] % number == 0:
        return True
    op = defining_op(value)
    if op is None:
        return False
    if isa(op, _LOAD):
        return True
    operands = list(op.operands)
    if has(op, KeepsNumber):
        return is_multiple(operands[0], number, infos)
    if op.name in _SUMS:
        return all(is_multiple(side, number, infos) for side in operands)
    if isa(op, arith.MulIOp):
        return any(is_multiple(side, number, infos) for side in operands)
    if isa(op, tt.AddPtrOp):
        step = max(1, number // stored_bytes(tt.pointee_of(value)))
        return is_multiple(operands[0], number, infos) and is_multiple(operands[1], step, infos)
    return False


def _is_computed(op: Operation) -> bool:
    return not isa(op, _LOAD) and not len(op.regions) and has(op, Speculatable)
