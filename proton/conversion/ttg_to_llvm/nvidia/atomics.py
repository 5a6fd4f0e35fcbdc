"""Atomics of global memory as PTX has them."""

from collections.abc import Sequence

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.nvidia.inline import LETTERS, assembly, listed, suffix
from proton.dialect.mlir import Type, Value, arith

# tt's kind of an atomic -> what PTX calls it, and its type; of floats elsewhere.
_ATOMICS = {
    "add": "add u{bits}",
    "fadd": "add f{bits}",
    "max": "max s{bits}",
    "umax": "max u{bits}",
    "min": "min s{bits}",
    "umin": "min u{bits}",
    "and": "and b{bits}",
    "or": "or b{bits}",
    "xor": "xor b{bits}",
    "xchg": "exch b{bits}",
}


def atomic(
    kind: str,
    ordering: str,
    scope: str,
    address: Value,
    value: Value,
    predicate: Value | None,
) -> Value:
    """Combines a value, or several side by side, with global memory; what was there before, and 0
    where the predicate does not hold. `kind`, `ordering` and `scope` are those of `tt`."""
    count, element = v.count_of(value), v.element(value)
    name, type_ = _ATOMICS[kind].format(bits=element.width).split()
    packed = min(count, max(1, 32 // int(element.width)))
    if kind == "fadd":
        name, type_ = f"add{'.noftz' * (element.width == 16)}", str(element) + "x2" * (packed > 1)
    word, words = v.integer(element.width * packed), count // packed
    given = v.to_elements(v.bitcast(value, v.vector(words, word))) if count > 1 else [value]
    given = [v.bitcast(one, word) for one in given]
    letter = LETTERS[word.width]
    operands = [address, *given]
    constraints = ",".join([f"={letter}"] * words + ["l"] + [letter] * words)
    guard = ""
    if predicate is not None:
        guard = f"@${2 * words + 1} "
        operands += [predicate, *[v.constant(0, word)] * words]
        constraints += ",b" + "".join(f",{number}" for number in range(words))
    vector = f".v{words}" * (words > 1)
    text = (
        f"{guard}atom.global.{scope}.{ordering}.{name}{vector}.{type_} {listed(0, words)}, "
        f"[${words}], {listed(words + 1, words)};"
    )
    result = assembly(
        text, constraints, word if words == 1 else v.struct([word] * words), *operands
    )
    if words == 1:
        return v.bitcast(result, value.type)
    found = [v.member(result, number, word) for number in range(words)]
    return v.bitcast(v.from_elements(found), value.type)


def atomic_load(
    ordering: str, scope: str, address: Value, type_: Type, predicate: Value | None
) -> Value:
    """An integer of global memory, or several side by side, each read at once; 0 where the
    predicate does not hold."""
    words, width = _atomic_words(type_)
    word = v.integer(max(16, width))  # the narrowest register
    letter, operands, guard = LETTERS[word.width], [address], ""
    constraints = ",".join([f"={letter}"] * words + ["l"])
    if predicate is not None:
        guard = f"@${words + 1} "
        operands += [predicate, *[v.constant(0, word)] * words]
        constraints += ",b" + "".join(f",{number}" for number in range(words))
    kind = f"ld.{ordering}.{scope}.global{suffix(words, width)}"
    text = f"{guard}{kind} {listed(0, words)}, [${words}];"
    result = assembly(
        text, constraints, word if words == 1 else v.struct([word] * words), *operands
    )
    found = [result] if words == 1 else [v.member(result, n, word) for n in range(words)]
    if word.width > width:
        found = [v.create(arith.TruncIOp, v.integer(width), one) for one in found]
    return v.bitcast(found[0] if words == 1 else v.from_elements(found), type_)


def atomic_store(
    ordering: str, scope: str, address: Value, value: Value, predicate: Value | None
) -> None:
    """Writes an integer to global memory, or several side by side, each at once."""
    words, width = _atomic_words(value.type)
    packed = v.bitcast(value, v.integer(width) if words == 1 else v.vector(words, v.integer(width)))
    given = [packed] if words == 1 else v.to_elements(packed)
    if width < 16:
        given = [v.create(arith.ExtUIOp, v.integer(16), one) for one in given]
    operands, guard = [address, *given], ""
    constraints = "l" + f",{LETTERS[max(16, width)]}" * words
    if predicate is not None:
        guard = f"@${words + 1} "
        operands.append(predicate)
        constraints += ",b"
    kind = f"st.{ordering}.{scope}.global{suffix(words, width)}"
    assembly(f"{guard}{kind} [$0], {listed(1, words)};", constraints, None, *operands)


def compare_and_swap(
    ordering: str, scope: str, given: Sequence[Value], predicate: Value | None
) -> Value:
    """`given` is an address, what is expected there, and what replaces that. The value that was
    there, and 0 where the predicate does not hold; `ordering` and `scope` are those of `tt`."""
    type_ = given[1].type
    word = v.integer(v.bits_of(type_))
    letter = LETTERS[word.width]
    operands = [given[0], *[v.bitcast(one, word) for one in given[1:]]]
    constraints, guard = f"={letter},l,{letter},{letter}", ""
    if predicate is not None:
        constraints, guard = f"{constraints},b,0", "@$4 "
        operands += [predicate, v.constant(0, word)]
    text = f"{guard}atom.global.{ordering}.{scope}.cas.b{word.width} $0, [$1], $2, $3;"
    return v.bitcast(assembly(text, constraints, word, *operands), type_)


def fetch_add(address: Value, number: int, note: str) -> Value:
    """Adds to an i32 in global memory; what it was before."""
    text = f"atom.global.add.u32 $0, [$1], {number};"
    return assembly(text, "=r,l", v.integer(32), address, note=note)


def _atomic_words(type_: Type) -> tuple[int, int]:
    """(words, bits of a word) of atomic accesses side by side: words of 32 bits, if elements are
    not wider."""
    is_vector = v.is_vector(type_)
    count = v.count_of_type(type_) if is_vector else 1
    bits = v.bits_of(type_.element_type if is_vector else type_)
    width = max(bits, min(32, bits * count))
    return bits * count // width, width
