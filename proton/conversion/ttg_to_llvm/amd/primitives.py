"""The primitives of an AMD GPU (../core/primitives.py), by LLVM's intrinsics for AMDGPU.

Sources: LLVM's "User Guide for AMDGPU Backend"; AMD Instinct MI300 instruction set architecture.
Predicates are branches, which LLVM makes masks of lanes of.
"""

from collections.abc import Callable, Sequence

from proton.base.errors import CompilationError, PassError
from proton.conversion.ttg_to_llvm.core import atomics
from proton.conversion.ttg_to_llvm.core import values as v
from proton.dialect.builtin import i64_attr, string_attr
from proton.dialect.emit import effect, emit_if, intrinsic
from proton.dialect.mlir import Attribute, Module, Type, Value, arith, ir, llvm
from proton.dialect.walk import source_span

PREDICATES = 1 << 30  # a mask of lanes each, in scalar registers
SCOPES = {"cta": "workgroup", "gpu": "agent", "sys": ""}
LANES = 64
CONSTANT = 4  # the address space of what does not change while a kernel runs
_CALLED: dict[str, type] = {
    "cos": llvm.CosOp,
    "exp": llvm.ExpOp,
    "exp2": llvm.Exp2Op,
    "log": llvm.LogOp,
    "log2": llvm.Log2Op,
    "sin": llvm.SinOp,
    "sqrt": llvm.SqrtOp,
}


def _of(name: str, type_: Type, *operands: Value) -> Value:
    return intrinsic(f"llvm.amdgcn.{name}", type_, *operands)


# Numbers


def thread_number(count: int) -> Value:
    """The thread's number in its program, i32: `count` is known by the kernel's attributes."""
    return _of("workitem.id.x", v.integer(32))


def bit(word: Value, number: int) -> Value:
    """A bit of an i32, as a condition."""
    shifted = v.binary(llvm.LShrOp, word, v.i32(number))
    return v.create(llvm.TruncOp, v.integer(1), shifted)


def program_id(axis: int) -> Value:
    """The program's place in the grid, i32."""
    return _of(f"workgroup.id.{'xyz'[axis]}", v.integer(32))


def program_count(axis: int) -> Value:
    """The grid's size, i32: the first hidden arguments of a kernel (code object version 5)."""
    hidden = _of("implicitarg.ptr", v.pointer(CONSTANT))
    return v.load(v.bytes_behind(hidden, 4 * axis), v.integer(32), 4)


def copied(value: Value) -> Value:
    """The same: no inline assembly, for which llvmlite's LLVM has no parser."""
    return value


def warp_uniform(value: Value) -> Value:
    """An i32 that all lanes have alike, in a scalar register."""
    return _of("readfirstlane", value.type, value)


# What threads do together


def _lane() -> Value:
    """The lane's number: how many lanes are below it."""
    i32, all_ = v.integer(32), v.i32(-1)
    return _of("mbcnt.hi", i32, all_, _of("mbcnt.lo", i32, all_, v.i32(0)))


def shuffle_lanes(kind: str, value: Value, lane: Value, note: str = "") -> Value:
    """`ds_bpermute_b32`: every register from another lane."""
    i32 = v.integer(32)
    source = lane
    if kind == "bfly":
        source = v.binary(llvm.XOrOp, _lane(), lane)
    elif kind != "idx":
        own = _lane()
        source = v.binary(llvm.SubOp if kind == "up" else llvm.AddOp, own, lane)
        source = v.select(v.compare("ult", source, v.i32(LANES)), source, own)
    address = v.binary(llvm.ShlOp, source, v.i32(2))
    words = v.each(lambda word: _of("ds.bpermute", i32, address, word), v.to_words(value))
    return v.from_words(words, value.type)


def reduce_warp(kind: str, value: Value) -> Value | None:
    """No instruction combines all lanes."""
    return None


def _fence(ordering: str) -> None:
    scope = string_attr(SCOPES["cta"])
    effect(llvm.FenceOp, ordering=i64_attr(atomics.ORDERINGS[ordering]), syncscope=scope)


def barrier(number: int = 0, threads: int = 0) -> None:
    """All threads of the program arrive before any goes on: there is one barrier."""
    if number:
        raise PassError(f"a program of an AMD GPU has one barrier, not one of number {number}")
    _fence("release")
    llvm.CallIntrinsicOp(None, "llvm.amdgcn.s.barrier", [], [], [])
    _fence("acquire")


def warp_barrier() -> None:
    """All threads of the wave arrive, and see what the others wrote."""
    _fence("release")
    llvm.CallIntrinsicOp(None, "llvm.amdgcn.wave.barrier", [], [], [])
    _fence("acquire")


# Memory


def _under(predicate: Value | None, types: list[Type], one: Callable[[], list[Value]],
           otherwise: Sequence[Value]) -> list[Value]:  # fmt: skip
    """What `one` gives, or `otherwise` where the predicate does not hold."""
    return one() if predicate is None else emit_if(predicate, types, one, lambda: [*otherwise])


def _in_memory(word: Type, bits: int | None, count: int) -> tuple[Type, int]:
    """(type of an access, its alignment in bytes)"""
    narrow = word if bits in (None, v.bits_of(word)) else v.integer(bits)
    return (v.vector(count, narrow) if count > 1 else narrow), count * v.bits_of(narrow) // 8


def load(
    address: Value,
    word: Type,
    count: int,
    *,
    bits: int | None = None,
    space: str = "global",
    modifiers: str = "",
    predicate: Value | None = None,
    otherwise: Sequence[Value] = (),
    offset: int = 0,
    note: str = "",
) -> list[Value]:
    """Words behind an address, by one access. Cache modifiers are hints, which are not taken."""
    type_, alignment = _in_memory(word, bits, count)
    attributes: dict[str, Attribute] = {"alignment": i64_attr(alignment)}
    if modifiers in ("volatile", ".cv"):
        attributes["volatile_"] = ir.UnitAttr.get()

    def one() -> list[Value]:
        found = v.create(llvm.LoadOp, type_, v.bytes_behind(address, offset), **attributes)
        if v.element(found) != word:
            found = v.create(llvm.ZExtOp, v.like(found, word), found)
        return v.to_elements(found) if count > 1 else [found]

    return _under(predicate, [word] * count, one, otherwise)


def store(
    address: Value,
    words: Sequence[Value],
    *,
    bits: int | None = None,
    space: str = "global",
    modifiers: str = "",
    predicate: Value | None = None,
    offset: int = 0,
    note: str = "",
) -> None:
    """Stores words by one access."""
    type_, alignment = _in_memory(words[0].type, bits, len(words))

    def one() -> None:
        value = v.from_elements(words) if len(words) > 1 else words[0]
        if value.type != type_:
            value = v.create(llvm.TruncOp, type_, value)
        v.store(v.bytes_behind(address, offset), value, alignment)

    v.when(predicate, one)


def address(base: Value, index: Value, size: int) -> Value:
    """The address of the element of `size` bytes at a signed i32 index."""
    i64 = v.integer(64)
    wide = v.binary(llvm.MulOp, v.create(llvm.SExtOp, i64, index), v.constant(size, i64))
    return v.offset_pointer(base, wide, v.integer(8))


def _scope(scope: str) -> dict[str, Attribute]:
    return {"syncscope": string_attr(SCOPES[scope])} if SCOPES[scope] else {}


def atomic(
    kind: str, ordering: str, scope: str, address: Value, value: Value, predicate: Value | None
) -> Value:
    """Combines a value with global memory; what was there before, or 0."""

    def one() -> list[Value]:
        return [atomics.read_modify_write(kind, ordering, address, value, _scope(scope))]

    return _under(predicate, [value.type], one, [v.constant(0, value.type)])[0]


def atomic_load(
    ordering: str, scope: str, address: Value, type_: Type, predicate: Value | None
) -> Value:
    """An integer of global memory, read at once; or 0."""
    size, order = i64_attr(v.bits_of(type_) // 8), i64_attr(atomics.ORDERINGS[ordering])

    def one() -> list[Value]:
        given = {"alignment": size, "ordering": order, **_scope(scope)}
        return [v.create(llvm.LoadOp, type_, address, **given)]

    return _under(predicate, [type_], one, [v.constant(0, type_)])[0]


def atomic_store(
    ordering: str, scope: str, address: Value, value: Value, predicate: Value | None
) -> None:
    """Writes an integer to global memory at once."""
    size, order = i64_attr(v.bits_of(value.type) // 8), i64_attr(atomics.ORDERINGS[ordering])

    def one() -> list[Value]:
        given = {"alignment": size, "ordering": order, **_scope(scope)}
        v.effect(llvm.StoreOp, value, address, **given)
        return []

    _under(predicate, [], one, [])


def compare_and_swap(
    ordering: str, scope: str, given: Sequence[Value], predicate: Value | None
) -> Value:
    """`given`: an address, what is expected there, what replaces that. What was there, or 0."""
    type_ = given[1].type
    word = v.integer(v.bits_of(type_))
    operands = [given[0], *(v.bitcast(value, word) for value in given[1:])]
    failing = "acquire" if ordering in ("acquire", "acq_rel") else "relaxed"

    def one() -> list[Value]:
        pair = v.create(
            llvm.AtomicCmpXchgOp,
            v.struct([word, v.integer(1)]),
            *operands,
            success_ordering=i64_attr(atomics.ORDERINGS[ordering]),
            failure_ordering=i64_attr(atomics.ORDERINGS[failing]),
            **_scope(scope),
        )
        return [v.member(pair, 0, word)]

    return v.bitcast(_under(predicate, [word], one, [v.constant(0, word)])[0], type_)


def _absent(what: str) -> PassError:
    return PassError(f"an AMD GPU has no {what}, which its facts say (proton/base/chips/amd.py)")


def load_matrices(address: Value, count: int, is_transposed: bool) -> list[Value]:
    """Never asked for: a chip says so."""
    raise _absent("loads of matrices")


def store_matrices(address: Value, words: list[Value], is_transposed: bool) -> None:
    """Never asked for: a chip says so."""
    raise _absent("stores of matrices")


# Arithmetic


def approximate(function: str, *values: Value) -> Value:
    """divide, reciprocal, exp2, sqrt or rsqrt of fp32: `divide` is exact, as is `sqrt`."""
    match function:
        case "divide":
            return v.binary(llvm.FDivOp, *values)
        case "exp2" | "sqrt":
            return v.create(_CALLED[function], values[0].type, *values)
    name = {"reciprocal": "rcp", "rsqrt": "rsq"}[function]
    return v.each(lambda scalar: _of(name, scalar.type, scalar), *values)


def function(module: Module, name: str, *scalars: Value) -> Value:
    """A function that LLVM has code for; CompilationError for the others, as no library is
    linked."""
    type_ = scalars[0].type
    if name == "fmod":
        return v.binary(llvm.FRemOp, *scalars)
    if name == "rsqrt":
        return v.binary(llvm.FDivOp, v.constant(1.0, type_), function(module, "sqrt", *scalars))
    if name not in _CALLED or (type_.width == 64 and name != "sqrt"):
        raise CompilationError(
            f"{name} of fp{type_.width} is not supported on AMD GPUs",
            source_span(ir.Location.current),
            hint="compute it from exp2, log2, sin, cos, sqrt and rsqrt of fp32",
        )
    return v.create(_CALLED[name], type_, *scalars)


def narrowed_towards_zero(scalar: Value, target: Type) -> Value:
    """A float as a narrower one: to nearest, and one unit less where that is too large."""
    narrow = v.create(llvm.FPTruncOp, target, scalar)
    wide = v.create(llvm.FPExtOp, scalar.type, narrow)
    far, near = (v.create(llvm.FAbsOp, scalar.type, value) for value in (wide, scalar))
    is_beyond = arith.CmpFOp(arith.CmpFPredicate.OGT, far, near).result
    bits = v.integer(target.width)
    less = v.create(llvm.ZExtOp, bits, is_beyond)
    return v.bitcast(v.binary(llvm.SubOp, v.bitcast(narrow, bits), less), target)


def clamp(value: Value, bound: Value) -> Value:
    """Never asked for."""
    raise _absent("instruction to clamp")


def narrowed_to_float8(low: Value, high: Value, name: str) -> Value:
    """Never asked for: the 8-bit floats of gfx942 are others."""
    raise _absent(f"instruction for {name}")


def widened_from_float8(pair: Value, name: str) -> Value:
    """Never asked for, as `narrowed_to_float8`."""
    raise _absent(f"instruction for {name}")


def permuted_bytes(low: Value, high: Value, selector: Value) -> Value:
    """`v_perm_b32`, whose selector has a byte where the given one has four bits."""
    for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F)):
        moved = v.binary(llvm.ShlOp, selector, v.i32(shift))
        selector = v.binary(llvm.AndOp, v.binary(llvm.OrOp, selector, moved), v.i32(mask))
    return _of("perm", v.integer(32), high, low, selector)
