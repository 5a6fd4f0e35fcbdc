"""The instructions of tensor cores: `mma` and `wgmma`, as inline PTX.

Names, registers and rules are those of the PTX ISA, "Warp Level Matrix Multiply-Accumulate
Instructions" and "Asynchronous Warpgroup Level Matrix Instructions".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from proton.base.chips.chip import MatrixInstruction
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.nvidia.primitives import assembly, braced
from proton.dialect.mlir import Type, Value, ir
from proton.layout.tensor_cores import MMA_ROWS

_NAMES = {
    "f16": "f16",
    "bf16": "bf16",
    "f32": "tf32",
    "f64": "f64",
    "f8E4M3FN": "e4m3",
    "f8E5M2": "e5m2",
    "i8": "s8",
}
_RESULTS = {"f16": "f16", "f32": "f32", "f64": "f64", "i32": "s32"}
# Of registers in inline assembly; all others are "r".
_LETTERS: dict[type[Type], str] = {ir.F32Type: "f", ir.F64Type: "d"}
STEP_BYTES = 32  # along k


def operand_name(element: Type) -> str:
    """PTX's name of an operand's type."""
    return _NAMES[str(element)]


@dataclass(frozen=True)
class Types:
    """PTX's names of the types of a product: of the sum, and of both sides."""

    total: str
    a: str
    b: str

    @classmethod
    def of(cls, total: object, a: Type, b: Type) -> "Types":
        return cls(_RESULTS[str(total)], operand_name(a), operand_name(b))

    def __str__(self) -> str:
        return f"{self.total}.{self.a}.{self.b}"

    @property
    def k(self) -> int:
        """How much of the inner dimension one instruction takes: 32 bytes."""
        return 256 // self.bits

    @property
    def bits(self) -> int:
        """Of an operand's element."""
        return {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64}.get(self.a, 8)

    @property
    def registers(self) -> tuple[int, int]:
        """Of a thread for the sides of one instruction, a 256-bit row of each of 16 and 8 rows: of
        32 bits, or fp64."""
        size = max(32, self.bits)
        return 128 // size, 64 // size


def registers_of(value: Value) -> list[Value]:
    """A thread's part of a matrix as the registers of an instruction: 32 bits of an operand, fp64
    as it is."""
    is_f64 = v.bits_of(v.element(value)) == 64
    return v.to_elements(value if is_f64 else v.to_words(value))


def accumulator_words(total: Value) -> list[Value]:
    """A thread's sums as the registers of an instruction: fp32, fp64 and i32 are one each, two fp16
    are a word."""
    return v.to_elements(total if v.bits_of(v.element(total)) >= 32 else v.to_words(total))


def from_accumulator_words(words: list[Value], type_: Type) -> Value:
    """The inverse of `accumulator_words`."""
    packed = v.from_elements(words)
    return packed if packed.type == type_ else v.from_words(packed, type_)


def _letter(word: Value) -> str:
    return _LETTERS.get(type(word.type), "r")


def _updated(
    text: str, words: Sequence[Value], *operands: Value, letters: str = "", is_new: bool = False
) -> list[Value]:
    """Inline PTX that reads and writes the registers `$0...` (only writes them, if they are new);
    the other operands follow."""
    count = len(words)
    outputs = [f"={_letter(word)}" for word in words]
    tied = [] if is_new else [str(number) for number in range(count)]
    constraints = ",".join([*outputs, *tied, *letters])
    given = [] if is_new else list(words)
    types = [word.type for word in words]
    type_ = types[0] if count == 1 else v.struct(types)
    result = assembly(text, constraints, type_, *given, *operands)
    return [result] if count == 1 else [v.member(result, n, t) for n, t in enumerate(types)]


# One warp


Sides = tuple[Sequence[Value], Sequence[Value]]  # the registers of a and b for one step along k


def mma_chain(
    types: Types, instruction: MatrixInstruction, steps: Sequence[Sides], total: Sequence[Value]
) -> list[Value]:
    """16 rows and 8 columns of a dot, 32 bytes along k in each step. Where the instruction takes
    more along k, the registers of several steps are one instruction's."""
    if instruction.rows < MMA_ROWS:
        return _in_halves(types, steps, total)
    sums = list(total)
    while steps:
        most = min(len(steps), instruction.inner_bytes // STEP_BYTES)
        count = 1 << most.bit_length() - 1
        a, b = ([word for step in steps[:count] for word in step[side]] for side in (0, 1))
        sums = _mma(f"m16n8k{count * types.k}", types, a, b, sums)
        steps = steps[count:]
    return sums


def _in_halves(types: Types, steps: Sequence[Sides], total: Sequence[Value]) -> list[Value]:
    """`m8n8k4`: the upper 8 rows are the first half of a and of the accumulator."""
    half = len(total) // 2
    upper, lower = list(total[:half]), list(total[half:])
    for (above, below), b in steps:
        upper = _mma(f"m8n8k{types.k}", types, [above], b, upper)
        lower = _mma(f"m8n8k{types.k}", types, [below], b, lower)
    return upper + lower


def _mma(
    shape: str, types: Types, a: Sequence[Value], b: Sequence[Value], total: Sequence[Value]
) -> list[Value]:
    first = 2 * len(total)
    bound = ".satfinite" if types.total == "s32" else ""  # sums of integers saturate, as in Triton
    text = (
        f"mma.sync.aligned.{shape}.row.col{bound}.{types}.{types.total} "
        f"{braced(0, len(total))}, "
        f"{braced(first, len(a))}, {braced(first + len(a), len(b))}, {braced(0, len(total))};"
    )
    return _updated(text, total, *a, *b, letters="".join(map(_letter, (*a, *b))))


def wgmma_fence() -> None:
    """What was written to registers is seen by the products issued from here on."""
    assembly("wgmma.fence.sync.aligned;", "", None)


def wgmma_commit() -> None:
    """The products issued since the last time are a group."""
    assembly("wgmma.commit_group.sync.aligned;", "", None)


def wgmma_wait(words: list[Value], pendings: int) -> list[Value]:
    """Until at most so many groups are under way; the sums, which nothing reads before."""
    text = f"wgmma.wait_group.sync.aligned {pendings}; // wait"
    if words:
        return _updated(text, words)
    assembly(text, "", None)
    return []


@dataclass(frozen=True)
class Step:
    """One `wgmma` of a chain: its left operand is a descriptor (one i64) or four registers."""

    a: tuple[Value, ...]
    b: Value

    @property
    def in_registers(self) -> bool:
        return len(self.a) > 1


def wgmma(
    types: Types,
    n: int,
    steps: Sequence[Step],
    transposed: tuple[bool, bool],
    total: Sequence[Value],
    adds: Value | bool,
) -> list[Value]:
    """`wgmma.m64nN` along k, one after the other into the same registers, whose contents are
    overwritten unless `adds`: a number known here, or i1. `transposed`: whether the sides in memory
    are MN-major, which 16 bits only may be."""
    is_new = adds is False
    base = len(total) * (1 if is_new else 2)
    operands: list[Value] = []
    letters = ""
    lines = ["{", ".reg .pred first, next;", "setp.ne.b32 next, 1, 0;"]
    if isinstance(adds, bool):
        lines.append(f"setp.ne.b32 first, {int(adds)}, 0;")
    else:
        lines.append(f"mov.pred first, ${base};")
        operands, letters = [adds], "b"
    for number, step in enumerate(steps):
        place = base + len(operands)
        left = braced(place, len(step.a)) if step.in_registers else f"${place}"
        operands += [*step.a, step.b]
        letters += ("r" * len(step.a) if step.in_registers else "l") + "l"
        predicate = "next" if number else "first"
        lines.append(
            f"wgmma.mma_async.sync.aligned.m64n{n}k{types.k}.{types} {braced(0, len(total))}, "
            f"{left}, ${place + len(step.a)}, {predicate}{_modifiers(types, step, transposed)};"
        )
    # On one line: LLVM takes each further line of assembly for a further line of the source.
    return _updated(" ".join([*lines, "}"]), total, *operands, letters=letters, is_new=is_new)


def _modifiers(types: Types, step: Step, transposed: tuple[bool, bool]) -> str:
    """Signs of the operands, and which of them are transposed."""
    if types.a == "s8":
        return ""
    if types.bits != 16:
        return ", 1, 1"
    left, right = map(int, transposed)
    return f", 1, 1, {right}" if step.in_registers else f", 1, 1, {left}, {right}"
