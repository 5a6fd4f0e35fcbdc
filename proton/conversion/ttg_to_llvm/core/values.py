"""Emitting code on a thread's registers: one vector per tensor, a few ops per step.

Functions emit at the insertion point and take and give `llvm`-compatible values. All of it is
LLVM's; the rest of what a thread does is in primitives.py.
"""

import functools
from collections.abc import Callable, Sequence

from proton.dialect import Kind, builtin, emit
from proton.dialect.memory import GLOBAL as GLOBAL
from proton.dialect.memory import SHARED as SHARED
from proton.dialect.memory import pointer_type
from proton.dialect.mlir import Attribute, Type, Value, arith, ir, llvm
from proton.dialect.mlir import vector as vectors

NARROW_BITS = 8, 16  # of integers of which a vector has several in a register
create, effect, integer, pointer = emit.create, emit.effect, builtin.integer, pointer_type
is_pointer = builtin.is_pointer


@functools.cache
def vector(count: int, element: Type) -> Type:
    """`vector<count x element>`."""
    return ir.VectorType.get([count], element)


def floating(bits: int) -> Type:
    """The IEEE type of so many bits."""
    return {16: ir.F16Type, 32: ir.F32Type, 64: ir.F64Type}[bits].get()


def is_vector(type_: Type) -> bool:
    return isinstance(type_, ir.VectorType)


def count_of(value: Value) -> int:
    """The registers of a vector; 1 for a scalar."""
    type_ = value.type
    return int(type_.shape[0]) if is_vector(type_) else 1


def element(value: Value) -> Type:
    """The element type of a vector, or the scalar's own."""
    type_ = value.type
    return type_.element_type if is_vector(type_) else type_


def like(value: Value, element_type: Type) -> Type:
    """A vector type with as many elements as `value`, or the scalar type."""
    type_ = value.type
    return vector(type_.shape[0], element_type) if is_vector(type_) else element_type


@functools.cache
def bits_of(type_: Type) -> int:
    """The width of a scalar type."""
    return 64 if is_pointer(type_) else int(type_.width)


def constant(value: int | float, type_: Type) -> Value:
    """A scalar, or a vector filled with one."""
    scalar = type_.element_type if is_vector(type_) else type_
    attribute: Attribute
    if isinstance(scalar, ir.IntegerType):
        assert isinstance(value, int), f"{value} of type {scalar}"
        attribute = ir.IntegerAttr.get(scalar, value)
    else:
        attribute = ir.FloatAttr.get(scalar, value)
    if is_vector(type_):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return create(llvm.ConstantOp, type_, value=attribute)


def i32(value: int) -> Value:
    return constant(value, integer(32))


def constants(values: Sequence[int]) -> Value:
    """`vector<n x i32>` of known values."""
    i32_ = integer(32)
    attribute = ir.DenseElementsAttr.get(
        [ir.IntegerAttr.get(i32_, value) for value in values], type=vector(len(values), i32_)
    )
    return create(llvm.ConstantOp, vector(len(values), i32_), value=attribute)


def poison(type_: Type) -> Value:
    return create(llvm.PoisonOp, type_)


def extract(value: Value, index: int) -> Value:
    """An element of a vector."""
    return create(llvm.ExtractElementOp, element(value), value, i32(index))


def insert(into: Value, value: Value, index: int) -> Value:
    return create(llvm.InsertElementOp, into.type, into, value, i32(index))


def splat(value: Value, count: int) -> Value:
    """A scalar in every element of a vector."""
    type_ = vector(count, value.type)
    return shuffle(insert(poison(type_), value, 0), [0] * count)


def shuffle(value: Value, picks: Sequence[int], other: Value | None = None) -> Value:
    """Elements of `value`, then `other`, by number, as a vector."""
    if other is None:
        if list(picks) == list(range(count_of(value))):
            return value
        other = value
    mask = ir.DenseI32ArrayAttr.get(list(picks))
    return create(llvm.ShuffleVectorOp, vector(len(picks), element(value)), value, other, mask=mask)


def concatenate(parts: Sequence[Value]) -> Value:
    """Vectors of one length, a power of two of them, one after the other."""
    parts = list(parts)
    while len(parts) > 1:
        both = range(2 * count_of(parts[0]))
        parts = [shuffle(a, both, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def from_elements(values: Sequence[Value]) -> Value:
    """Scalars as a vector."""
    return create(vectors.FromElementsOp, vector(len(values), values[0].type), *values)


def to_elements(value: Value) -> list[Value]:
    """The elements of a vector, in order."""
    types = [element(value)] * count_of(value)
    return list(ir.Operation.create(vectors.ToElementsOp.OPERATION_NAME, types, [value]).results)


def bitcast(value: Value, type_: Type) -> Value:
    return value if value.type == type_ else create(llvm.BitcastOp, type_, value)


def binary(kind: Kind, left: Value, right: Value, **attributes: Attribute) -> Value:
    """An op whose result has the operands' type."""
    return create(kind, left.type, left, right, **attributes)


def add(left: Value, right: Value) -> Value:
    return binary(llvm.AddOp, left, right)


def add_exactly(left: Value, right: Value) -> Value:
    """A sum that never wraps around, with or without a sign."""
    never = ir.Attribute.parse("#arith.overflow<nsw, nuw>")
    return arith.AddIOp(left, right, overflowFlags=never).result


def compare(predicate: str, left: Value, right: Value) -> Value:
    """`arith.cmpi` by the predicate's name, on integers or vectors of them."""
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), left, right).result


def select(condition: Value, yes: Value, no: Value) -> Value:
    return create(llvm.SelectOp, yes.type, condition, yes, no)


def offset_pointer(base: Value, offset: Value, element_type: Type) -> Value:
    """`base` moved by `offset` elements; either of them may be a vector."""
    type_ = base.type
    if is_vector(offset.type) and not is_vector(type_):
        type_ = vector(count_of(offset), type_)
    return create(
        llvm.GEPOp,
        type_,
        base,
        offset,
        rawConstantIndices=ir.DenseI32ArrayAttr.get([-(2**31)]),
        elem_type=ir.TypeAttr.get(element_type),
    )


def bytes_behind(base: Value, count: int) -> Value:
    """`base` moved by a constant number of bytes."""
    return offset_pointer(base, i32(count), integer(8)) if count else base


def load(pointer_: Value, type_: Type, alignment: int) -> Value:
    return create(llvm.LoadOp, type_, pointer_, alignment=builtin.i64_attr(alignment))


def store(pointer_: Value, value: Value, alignment: int) -> None:
    effect(llvm.StoreOp, value, pointer_, alignment=builtin.i64_attr(alignment))


def struct(types: Sequence[Type]) -> Type:
    """`!llvm.struct<(...)>`."""
    return llvm.StructType.get_literal(types)


def member(value: Value, index: int, type_: Type) -> Value:
    """A member of a struct."""
    return create(llvm.ExtractValueOp, type_, value, position=ir.DenseI64ArrayAttr.get([index]))


def each(function: Callable[..., Value], *values: Value) -> Value:
    """A function of scalars, applied to every element of vectors (or once, to scalars)."""
    if not is_vector(values[0].type):
        return function(*values)
    columns = zip(*map(to_elements, values), strict=True)
    return from_elements([function(*column) for column in columns])


# Words: what shuffles and inline assembly can carry


def to_words(value: Value) -> Value:
    """A vector's bits as `vector<n x i32>`: packed where they fill words, else one a word."""
    scalar, count = element(value), count_of(value)
    width = bits_of(scalar)
    if is_pointer(scalar):
        value = create(llvm.PtrToIntOp, vector(count, integer(64)), value)
    if width * count % 32 == 0 and width >= 8:
        return bitcast(value, vector(width * count // 32, integer(32)))
    value = bitcast(value, vector(count, integer(width)))
    return create(llvm.ZExtOp, vector(count, integer(32)), value)


def from_words(words: Value, type_: Type) -> Value:
    """The vector of `type_` that `to_words` made words of."""
    scalar, count = type_.element_type, int(type_.shape[0])
    width = bits_of(scalar)
    if is_pointer(scalar):
        wide = bitcast(words, vector(count, integer(64)))
        return create(llvm.IntToPtrOp, type_, wide)
    if width * count % 32 == 0 and width >= 8:
        return bitcast(words, type_)
    narrow = create(llvm.TruncOp, vector(count, integer(width)), words)
    return bitcast(narrow, type_)


def xor_of_bits(value: Value, bases: Sequence[int], bounded: Value | None = None) -> Value:
    """The linear map of a number: the XOR of `bases[k]` over its set bits k.

    Runs of bases that double are one mask and one shift. `bounded` is the same number, which has
    no bits beyond those: it is taken where no mask is needed.
    """
    total = None
    for start, length in _runs(bases):
        if bounded is not None and start + length == len(bases):
            value = bounded  # the last run
        basis = bases[start]
        shift = basis.bit_length() - 1
        mask = ((1 << length) - 1) << start
        if basis == 1 << shift:
            term = binary(llvm.AndOp, value, i32(mask))
            if shift > start:
                term = binary(llvm.ShlOp, term, i32(shift - start))
            elif shift < start:
                term = binary(llvm.LShrOp, term, i32(start - shift))
        else:  # a basis of several bits: all or none of them
            bit = binary(llvm.AndOp, binary(llvm.LShrOp, value, i32(start)), i32(1))
            term = binary(llvm.MulOp, bit, i32(basis))
        total = term if total is None else binary(llvm.XOrOp, total, term)
    return i32(0) if total is None else total


def _runs(bases: Sequence[int]) -> list[tuple[int, int]]:
    """(first bit, length) of maximal runs in which each basis is twice the one before."""
    runs: list[tuple[int, int]] = []
    for bit, basis in enumerate(bases):
        if not basis:
            continue
        is_power = basis & (basis - 1) == 0
        if runs:
            start, length = runs[-1]
            if is_power and start + length == bit and bases[start] << length == basis:
                runs[-1] = start, length + 1
                continue
        runs.append((bit, 1))
    return runs


def count_of_type(type_: Type) -> int:
    """The elements of a vector type."""
    return int(type_.shape[0])


def repeat(first: Value, end: Value, step: Value, body: Callable[..., object]) -> None:
    """Emits a loop over i32: `body` gets its variable."""
    with emit.loop(first, end, step) as variable:
        body(variable)


def when(condition: Value | None, body: Callable[[], object]) -> None:
    """Emits under a condition; None is true."""
    if condition is None:
        body()
    else:
        emit.emit_when(condition, body)
