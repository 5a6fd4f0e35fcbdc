"""The primitives of an NVIDIA GPU (../core/primitives.py), and what only its rules here ask for.

What the threads of a warp have to execute together is an op of `nvvm`: LLVM does not know that
inline assembly is convergent, and may copy it into both ways of a branch.
"""

from collections.abc import Sequence

from proton.base.chips.nvidia import MAX_GRID
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.nvidia.atomics import atomic as atomic
from proton.conversion.ttg_to_llvm.nvidia.atomics import atomic_load as atomic_load
from proton.conversion.ttg_to_llvm.nvidia.atomics import atomic_store as atomic_store
from proton.conversion.ttg_to_llvm.nvidia.atomics import compare_and_swap as compare_and_swap
from proton.conversion.ttg_to_llvm.nvidia.atomics import fetch_add as fetch_add
from proton.conversion.ttg_to_llvm.nvidia.inline import LETTERS, listed, suffix
from proton.conversion.ttg_to_llvm.nvidia.inline import assembly as assembly
from proton.conversion.ttg_to_llvm.nvidia.inline import braced as braced
from proton.conversion.ttg_to_llvm.nvidia.libdevice import function as function
from proton.dialect.attributes import EVICT_FIRST_FROM_L1, EVICT_LAST_FROM_L1
from proton.dialect.emit import effect
from proton.dialect.mlir import Type, Value, ir, llvm, nvvm

FULL_MASK = -1  # all lanes of a warp
MOST_IN_BARRIER = 16  # words that one piece of inline assembly takes
PREDICATES = 7  # that a thread has
SCOPES = {"cta": "block", "gpu": "device", "sys": ""}  # tt's -> NVPTX's
_ADDRESSES = {"global": "l", "shared": "r"}  # of an address in a space
_FLOATS = {"f16": "h", "bf16": "h", "f32": "f", "f64": "d"}
# tt's eviction policy -> PTX's (PTX ISA, "Cache Eviction Priority Hints"), of both caches where the
# kernel's author asks, as in Triton: what was loaded to be evicted last is there in a later launch.
_MODIFIERS = {
    "evict_normal": ".L1::evict_normal",
    "evict_first": ".L1::evict_first.L2::cache_hint",
    "evict_last": ".L1::evict_last.L2::cache_hint",
    EVICT_FIRST_FROM_L1: ".L1::evict_first",
    EVICT_LAST_FROM_L1: ".L1::evict_last",
}
_L2_HINT = ".L2::cache_hint"
# Of fp32; docs/math.md has their errors.
_APPROXIMATE = {
    "divide": "div.full.f32",
    "reciprocal": "rcp.approx.ftz.f32",
    "exp2": "ex2.approx.ftz.f32",
    "sqrt": "sqrt.approx.f32",
    "rsqrt": "rsqrt.approx.f32",
}


# Numbers


def thread_number(count: int) -> Value:
    """The thread's number in its program, of `count` at most, i32."""
    return _read("tid.x", 0, count)


def lanes_below() -> Value:
    """A bit for each lane of the warp below the thread's, i32."""
    i32_ = v.integer(32)
    return assembly("mov.u32 $0, %lanemask_lt;", "=r", i32_, effects=False)


def sched_barrier(when: Value | None = None) -> None:
    """`ptxas` moves no work across an event: nothing that comes before is computed behind this, and
    nothing behind it before. There is none under an i1 that never holds."""
    guard, given = ("@$0 ", "b,") if when is not None else ("", "")
    operands = () if when is None else (when,)
    assembly(f"{guard}pmevent 0;", f"{given}~{{memory}}", None, *operands)


def copied(value: Value) -> Value:
    """An i32 as one of which LLVM knows nothing."""
    return assembly("mov.b32 $0, $1;", "=r,r", value.type, value, effects=False)


def bit(word: Value, number: int) -> Value:
    """A bit of an i32, as a condition. `ptxas` makes one instruction (R2P) of seven; LLVM would
    shift the word for each."""
    text = f"{{ .reg .b32 bit; and.b32 bit, $1, {1 << number}; setp.ne.b32 $0, bit, 0; }}"
    return assembly(text, "=b,r", v.integer(1), word, effects=False)


def program_id(axis: int) -> Value:
    """The program's place in the grid, i32."""
    return _read(f"ctaid.{'xyz'[axis]}", 0, MAX_GRID[axis])


def program_count(axis: int) -> Value:
    """The grid's size, i32."""
    return _read(f"nctaid.{'xyz'[axis]}", 1, MAX_GRID[axis] + 1)


def _read(register: str, first: int, end: int) -> Value:
    """A special register, whose numbers begin at `first` and stay below `end`: so LLVM knows what
    cannot be negative, and which sums do not wrap around."""
    end = end - (1 << 32) if end >= 1 << 31 else end
    range_ = ir.Attribute.parse(f"#llvm.constant_range<i32, {first}, {end}>")
    return v.create(f"nvvm.read.ptx.sreg.{register}", v.integer(32), range=range_)


def special_register(name: str, bits: int, note: str = "") -> Value:
    """A register that may change while the kernel runs, by PTX's name."""
    return assembly(f"mov.u{bits} $0, %{name};", f"={LETTERS[bits]}", v.integer(bits), note=note)


def clock(bits: int, note: str) -> Value:
    """The cycles of the SM so far."""
    return special_register("clock" if bits == 32 else "clock64", bits, note)


def clock_of_lane(bits: int, note: str, predicate: Value) -> Value:
    """The cycles of the SM so far where a predicate of lanes holds, else 0. What not all lanes have
    alike the assembler does not read into a uniform register, which takes ten cycles more."""
    name = "clock" if bits == 32 else "clock64"
    text, constraints = f"@$1 mov.u{bits} $0, %{name};", f"={LETTERS[bits]},b,0"
    type_ = v.integer(bits)
    return assembly(text, constraints, type_, predicate, v.constant(0, type_), note=note)


def timer(note: str) -> Value:
    """The ns of the GPU so far, which all SMs share."""
    return special_register("globaltimer", 64, note)


def multiprocessor(note: str) -> Value:
    """The number of the SM that runs the program."""
    return special_register("smid", 32, note)


# What threads do together


def shuffle_lanes(kind: str, value: Value, lane: Value, note: str = "") -> Value:
    """`shfl.sync`: every register from another lane; `kind` is idx, bfly, up or down. `note`: a
    comment on the instruction, which LLVM then does not know.

    Lanes that `up` and `down` would take from outside of the warp keep their own.
    """
    clamp = v.i32(0 if kind == "up" else 31)
    mode = ir.Attribute.parse(f"#nvvm<shfl_kind {kind}>")
    mask = v.i32(FULL_MASK)

    def one(word: Value) -> Value:
        if note:
            text = f"shfl.sync.{kind}.b32 $0, $1, $2, $3, $4; {note}"
            return assembly(text, "=r,r,r,r,r", v.integer(32), word, lane, clamp, mask)
        return v.create(nvvm.ShflOp, v.integer(32), mask, word, lane, clamp, kind=mode)

    return v.from_words(v.each(one, v.to_words(value)), value.type)


def reduce_warp(kind: str, value: Value) -> Value | None:
    """`redux.sync`, which all chips from 8.0 on have."""
    typed = {"add": "add.s32"}.get(kind, kind if "." in kind else f"{kind}.b32")
    text = f"redux.sync.{typed} $0, $1, $2;"

    def one(word: Value) -> Value:
        return assembly(text, "=r,r,r", v.integer(32), word, v.i32(FULL_MASK))

    return v.each(one, value)


def barrier(number: int = 0, threads: int = 0) -> None:
    """All threads of the program arrive before any goes on, or so many."""
    meet(*([v.i32(number), v.i32(threads)] if threads else []))


def meet(*given: Value) -> None:
    """Waits at a barrier of hardware, of a number and so many threads; the program's by default."""
    segments = ir.DenseI32ArrayAttr.get([len(given) // 2, len(given) // 2, 0])
    effect(nvvm.BarrierOp, *given, operandSegmentSizes=segments)


def trap(predicate: Value) -> None:
    """Ends the kernel with an error where the predicate holds."""
    assembly("@$0 trap;", "b", None, predicate)


def grid_dependency(kind: str) -> None:
    """`griddepcontrol`: "wait" or "launch_dependents"."""
    assembly(f"griddepcontrol.{kind};", "~{memory}", None)


def warp_barrier() -> None:
    """All threads of the warp arrive, and see what the others wrote."""
    effect(nvvm.SyncWarpOp, v.i32(FULL_MASK))


def warp_uniform(value: Value) -> Value:
    """An i32 that all lanes have alike, so that the assembler knows."""
    return v.extract(shuffle_lanes("idx", v.splat(value, 1), v.i32(0)), 0)


def elected() -> Value:
    """Whether this thread is the one of its warp that was elected: the same each time. All threads
    of the warp ask."""
    return v.create(nvvm.ElectSyncOp, v.integer(1))


# Memory


def shared_address(pointer: Value) -> Value:
    """A pointer to shared memory as the i32 that instructions take."""
    return v.create(llvm.PtrToIntOp, v.integer(32), pointer)


def commit_copies() -> None:
    """The copies begun since the last time are a group."""
    assembly("cp.async.commit_group;", "", None)


def wait_copies(pendings: int) -> None:
    """Until at most so many groups of this thread's copies are under way."""
    assembly(f"cp.async.wait_group {pendings};", "~{memory}", None)


def fence_async() -> None:
    """What this thread wrote anywhere is ahead of what the asynchronous proxy does later."""
    assembly("fence.proxy.async;", "~{memory}", None)


def fence_async_shared() -> None:
    """What this thread wrote to shared memory is seen by the asynchronous proxy."""
    assembly("fence.proxy.async.shared::cta;", "~{memory}", None)


def load_matrices(address: Value, count: int, is_transposed: bool) -> list[Value]:
    """`ldmatrix`: 8 x 8 matrices of 16-bit elements, one register of each; the address is
    that of the row which the lane is responsible for."""
    trans = ".trans" if is_transposed else ""
    text = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {braced(0, count)}, [${count}];"
    i32 = v.integer(32)
    type_ = i32 if count == 1 else v.struct([i32] * count)
    result = assembly(
        text, ",".join(["=r"] * count + ["r", "~{memory}"]), type_, shared_address(address)
    )
    return [result] if count == 1 else [v.member(result, n, i32) for n in range(count)]


def store_matrices(address: Value, words: list[Value], is_transposed: bool) -> None:
    """`stmatrix`: what `load_matrices` gets, from compute capability 9.0 on."""
    trans = ".trans" if is_transposed else ""
    count = len(words)
    text = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [$0], {braced(1, count)};"
    assembly(
        text, ",".join("r" * (count + 1)) + ",~{memory}", None, shared_address(address), *words
    )


# Warp groups


def address(base: Value, index: Value, size: int) -> Value:
    """The address of the element of `size` bytes at a signed i32 index."""
    text = f"mad.wide.s32 $0, $1, {size}, $2;"
    return assembly(text, "=l,r,l", base.type, index, base, effects=False)


def _letter(word: Type) -> str:
    """Of the registers that hold a word in inline assembly."""
    return _FLOATS["f32"] if isinstance(word, ir.F32Type) else LETTERS[word.width]


def cache_policy(priorities: str, share: float = 1.0) -> Value:
    """What an access tells the second-level cache of its lines, such as ".L2::evict_last" for a
    share of them."""
    text = f"createpolicy.fractional{priorities}.b64 $0, {share};"
    return assembly(text, "=l", v.integer(64), effects=False)


def _l2_hint(policy: str, number: int, operands: list[Value]) -> str:
    """The text of an operand of that number, which it appends to the others, with what tt's
    eviction policy tells the second-level cache; empty without."""
    if not _MODIFIERS.get(policy, "").endswith(_L2_HINT):
        return ""
    operands.append(cache_policy(f".L2::{policy}"))
    return f", ${number}"


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
    """Words `offset` bytes behind an address, by one access. `bits` is their width in memory, where
    that is not the word's; under a predicate that does not hold they are `otherwise`, and nothing
    is read."""
    letter = _letter(word)
    outputs = ",".join([f"={letter}"] * count)
    operands, constraints, guard = [address], f"{outputs},{_ADDRESSES[space]}", ""
    if predicate is not None:
        # Registers that are masked off keep what is tied to them.
        guard = f"@${count + 1} "
        operands += [predicate, *otherwise]
        constraints += ",b" + "".join(f",{number}" for number in range(count))
    hint = _l2_hint(modifiers, count + len(operands), operands)
    modifiers = _MODIFIERS.get(modifiers, modifiers)
    kind = f"ld.volatile.{space}" if modifiers == "volatile" else f"ld.{space}{modifiers}"
    place = f"${count}+{offset}" if offset else f"${count}"
    kind += suffix(count, bits or word.width)
    text = f"{guard}{kind} {listed(0, count)}, [{place}]{hint};"
    constraints += ",l" if hint else ""
    type_ = word if count == 1 else v.struct([word] * count)
    result = assembly(text, constraints, type_, *operands, note=note)
    return [result] if count == 1 else [v.member(result, n, word) for n in range(count)]


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
    """Stores words by one access, `offset` bytes behind the address, if the predicate holds."""
    count, width = len(words), words[0].type.width
    operands, guard = [address, *words], ""
    constraints = _ADDRESSES[space] + f",{_letter(words[0].type)}" * count
    if predicate is not None:
        guard = f"@${count + 1} "
        operands.append(predicate)
        constraints += ",b"
    kind = f"st.{space}{_MODIFIERS.get(modifiers, modifiers)}{suffix(count, bits or width)}"
    place = f"$0+{offset}" if offset else "$0"
    hint = _l2_hint(modifiers, len(operands), operands)
    text = f"{guard}{kind} [{place}], {listed(1, count)}{hint};"
    constraints += ",l" if hint else ""
    assembly(text, constraints, None, *operands, note=note)


# Arithmetic


def approximate(function: str, *values: Value) -> Value:
    """divide, reciprocal, exp2, sqrt or rsqrt of fp32, by the instruction that there is for it."""
    return _of_float32(_APPROXIMATE[function], *values)


def clamp(value: Value, bound: Value) -> Value:
    """fp32 numbers between the negative of a bound and the bound, on a chip that has it."""
    return _of_float32("min.xorsign.abs.f32", value, bound)


def _of_float32(instruction: str, *values: Value) -> Value:
    """An instruction on each of fp32 numbers."""
    listed = ", ".join(f"${number}" for number in range(len(values) + 1))
    text, constraints = f"{instruction} {listed};", "=f" + ",f" * len(values)

    def one(*scalars: Value) -> Value:
        return assembly(text, constraints, scalars[0].type, *scalars, effects=False)

    return v.each(one, *values)


def narrowed_towards_zero(scalar: Value, target: Type) -> Value:
    """A float as a narrower one, rounded towards zero."""
    source, kind = str(scalar.type), str(target)
    bits = v.integer(16) if _FLOATS[kind] == "h" else target
    text = f"cvt.rz.{kind}.{source} $0, $1;"
    constraints = f"={_FLOATS[kind]},{_FLOATS[source]}"
    return v.bitcast(assembly(text, constraints, bits, scalar, effects=False), target)


def permuted_bytes(low: Value, high: Value, selector: Value) -> Value:
    """Four of the eight bytes of two words, each chosen by four bits (`prmt`)."""
    given, text = (low, high, selector), "prmt.b32 $0, $1, $2, $3;"
    return assembly(text, "=r,r,r,r", v.integer(32), *given, effects=False)


def narrowed_to_float8(low: Value, high: Value, name: str) -> Value:
    """Two fp32 as the 8-bit floats that PTX calls so, to nearest and saturating, in an i16."""
    text = f"cvt.rn.satfinite.{name}x2.f32 $0, $1, $2;"
    return assembly(text, "=h,f,f", v.integer(16), high, low, effects=False)


def widened_from_float8(pair: Value, name: str) -> Value:
    """Two 8-bit floats in an i16 as two fp16 in an i32."""
    return assembly(f"cvt.rn.f16x2.{name}x2 $0, $1;", "=r,h", v.integer(32), pair, effects=False)


def optimization_barrier(words: Sequence[Value]) -> list[Value]:
    """Words through empty inline assembly, which LLVM and the assembler move nothing across."""
    kept: list[Value] = []
    for first in range(0, len(words), MOST_IN_BARRIER):
        part = words[first : first + MOST_IN_BARRIER]
        outputs = ",".join(["=r"] * len(part))
        constraints = f"{outputs},{','.join(map(str, range(len(part))))}"
        if len(part) == 1:
            kept.append(assembly("", constraints, v.integer(32), *part))
            continue
        type_ = v.struct([v.integer(32)] * len(part))
        result = assembly("", constraints, type_, *part)
        kept += [v.member(result, number, v.integer(32)) for number in range(len(part))]
    return kept
