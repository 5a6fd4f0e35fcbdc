"""tl.inline_asm_elementwise on the CPU: each instruction of PTX against what NVIDIA's manual says.

Operands are raw bits, so that what the bits are taken as is tested, too.
"""

import functools
import math
import random

import numpy as np
import pytest

from proton.conversion.triton_arith_to_linalg.assembly.forms import Form, forms
from tests.cpu import ptx_reference as reference
from tests.cpu.harness import kernels_once

N = 16  # numbers of each operand
LETTERS = {16: "h", 32: "r", 64: "l"}  # of registers of so many bits
# What instructions approximate is within so many units in the last place of the exact result.
ULP = {"f32": 4, "f64": 2, "f16": 1, "bf16": 1}
SPECIAL_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3e9, -3e9, 1e19)
SPECIAL_FLOATS += (math.inf, -math.inf, math.nan)


@functools.cache
def _specials(kind: str) -> list[float]:
    """SPECIAL_FLOATS as numbers of a type."""
    found = []
    for special in SPECIAL_FLOATS:
        if math.isfinite(special) and abs(special) > 6e4 and kind == "f16":
            special = 65504.0
        found.append(reference._narrowed(special, kind, "rn"))
    return found


class Sample:
    """A form, with random operands in their registers, and what it gives."""

    def __init__(self, form: Form, rng: random.Random) -> None:
        self.form = form
        is_combined = {"and", "or", "xor"} & set(form.parts) and form.parts[0] in ("set", "setp")
        drops = form.optional and not is_combined
        self.types = form.operands[:-1] if drops else form.operands
        self.literal = rng.randrange(256) if form.name == "lop3.b32" else None
        self.rows = [[self._number(t, n, rng) for t in self.types] for n in range(N)]
        if form.parts[0] == "rem":  # by 0 it is unspecified: an H200 gives ones
            self.rows = [[x, y or 1] for x, y in self.rows]

    def _number(self, type_: str, row: int, rng: random.Random) -> int:
        bits, name = reference.BITS[type_], self.form.parts[0]
        if self.literal is not None and type_ == "u32" and name == "lop3":
            return self.literal
        if type_ in ("u32", "s32") and name in ("shl", "shr", "shf", "bfe", "bfi", "szext", "bmsk"):
            # Of bfe and bfi of 64 bits the manual takes 8 bits, an H200 all of them.
            most = 8 if name in ("bfe", "bfi") and "64" in self.form.name else 32
            edges = [rng.randrange(70), rng.randrange(32), rng.getrandbits(most), 0, 31, 32]
            return rng.choice(edges)
        if name == "fns" and type_ == "u32":
            return rng.randrange(32)
        if name == "fns" and type_ == "s32":
            return rng.randrange(-12, 12) & 0xFFFFFFFF
        kind = type_.removesuffix("x2")
        if kind in reference.FLOATS and bits >= 16:
            parts = [self._float(kind, rng) for _ in range(bits // reference.BITS[kind])]
            return sum(part << reference.BITS[kind] * n for n, part in enumerate(parts))
        edges = [0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1]
        small = rng.randrange(-20, 20) & (1 << bits) - 1
        return rng.choice([rng.getrandbits(bits), rng.getrandbits(bits), small, rng.choice(edges)])

    @staticmethod
    def _float(kind: str, rng: random.Random) -> int:
        if kind in ("e4m3", "e5m2"):
            return rng.getrandbits(8)
        width, (fraction, _, _) = reference.BITS[kind], reference.FLOATS[kind]
        raw = rng.getrandbits(width)
        special = rng.choice(_specials(kind))
        nan = ((1 << (width - 1 - fraction)) - 1) << fraction | 1 << (fraction - 1)
        one = ((1 << (width - 2 - fraction)) - 1) << fraction
        bits = reference.encoded(special, kind)
        near_one = one + rng.randrange(-8 << fraction, 8 << fraction)
        tiny = rng.getrandbits(fraction + 1) | rng.getrandbits(1) << (width - 1)
        choices = [raw, near_one, near_one | 1 << (width - 1), tiny, nan if bits is None else bits]
        return rng.choice(choices) & (1 << width) - 1

    @property
    def result_width(self) -> int:
        """Bits of the register that has the result; predicates are bits of one."""
        return max(16, reference.BITS[self.form.results[0]]) if not self._is_predicate() else 32

    def _is_predicate(self) -> bool:
        return self.form.results[0] == "pred"

    def widths(self) -> list[int]:
        """Bits of the operands' registers; a predicate is a number there."""
        taken = self.types[:3] if self.literal is not None else self.types
        return [max(16, reference.BITS[t]) if t != "pred" else 32 for t in taken]

    def call(self, columns: dict[int, int]) -> str:
        """The call; operands are loaded from the next columns of their widths."""
        given = []
        for width in self.widths():
            given.append(f"tl.load(p{width} + {columns[width]} * N + offs)")
            columns[width] += 1
        letters = [LETTERS[width] for width in self.widths()]
        constraints = ",".join([f"={LETTERS[self.result_width]}", *letters])
        return (
            f"tl.inline_asm_elementwise({self._text()!r}, {constraints!r}, [{', '.join(given)}], "
            f"tl.uint{self.result_width}, True, 1)"
        )

    def _text(self) -> str:
        """The instruction, with predicates made of numbers before it, and numbers of predicates
        behind it."""
        lines, names = [], []
        for n, type_ in enumerate(self.types):
            if type_ == "pred":
                lines.append(f".reg .pred p{n}; setp.ne.u32 p{n}, ${n + 1}, 0;")
                names.append(f"p{n}")
            else:
                is_literal = self.literal is not None and n == 3
                names.append(str(self.literal) if is_literal else f"${n + 1}")
        count, target = len(self.form.results), "$0"
        if self._is_predicate():
            target = "|".join(f"q{n}" for n in range(count))
            lines += [f".reg .pred q{n};" for n in range(count)]
        lines.append(f"{self.form.name} {target}, {', '.join(names)};")
        if self._is_predicate():
            lines.append(".reg .b32 t; selp.b32 $0, 1, 0, q0;")
            lines += ["selp.b32 t, 2, 0, q1; or.b32 $0, $0, t;"] * (count == 2)
        return "{ " + " ".join(lines) + " }"

    @functools.cached_property
    def wanted(self) -> list[list[int | None]]:
        """The results of each row."""
        return [reference.result(self.form.parts, row) for row in self.rows]

    def check(self, found: np.ndarray) -> str:
        """What is wrong in the first row that is; empty where nothing is."""
        for row, got, want in zip(self.rows, found.tolist(), self.wanted, strict=True):
            if not self._agrees(got, want):
                given = ", ".join(f"{x:#x}" for x in row)
                return f"{self.form.name} of {given}: {got:#x}, not {want}"
        return ""

    def _agrees(self, got: int, want: list[int | None]) -> bool:
        type_ = self.form.results[0]
        if type_ == "pred":
            return got == sum(
                ((x or 0) & 1) << n for n, x in enumerate(want[: len(self.form.results)])
            )
        (expected,) = want
        width = max(16, reference.BITS[type_])
        kind = "f32" if "tf32" in self.form.parts else type_.removesuffix("x2")
        if expected is not None and not self._approximates():
            return got == expected & (1 << width) - 1
        if kind not in reference.FLOATS:
            return True  # e4m3x2 of NaN and a number: the NaN has a code of its own
        each = reference.BITS[kind]
        parts = [got >> each * n & (1 << each) - 1 for n in range(reference.BITS[type_] // each)]
        if expected is None:
            return any(math.isnan(reference.decoded(part, kind)) for part in parts)
        wanted = [expected >> each * n & (1 << each) - 1 for n in range(len(parts))]
        return all(_is_near(a, b, kind) for a, b in zip(parts, wanted, strict=True))

    def _approximates(self) -> bool:
        return self.form.parts[0] in ("ex2", "lg2", "sin", "cos", "tanh", "rsqrt")


def _is_near(got: int, want: int, kind: str) -> bool:
    a, b = reference.decoded(got, kind), reference.decoded(want, kind)
    if a == b or (math.isnan(a) and math.isnan(b)):
        return True
    fraction, least, _ = reference.FLOATS[kind]
    if not (math.isfinite(a) and math.isfinite(b)):
        return False
    unit = 2.0 ** (max(math.frexp(b)[1] - 1, least) - fraction)
    return abs(a - b) <= ULP[kind] * unit


def run(samples: list[Sample]) -> list[str]:
    """Runs samples in one kernel; what is wrong."""
    columns, results = dict.fromkeys(LETTERS, 0), dict.fromkeys(LETTERS, 0)
    lines, places = [], []
    for sample in samples:
        width = sample.result_width
        lines.append(
            f"    tl.store(o{width} + {results[width]} * N + offs, {sample.call(columns)})"
        )
        places.append(results[width])
        results[width] += 1
    parameters = ", ".join(f"{letter}{width}" for letter in "po" for width in LETTERS)
    body = "\n".join(["    offs = tl.arange(0, N)", *lines])
    source = f"@proton.jit\ndef kernel({parameters}, N: tl.constexpr):\n{body}\n"
    given, out = (
        {width: np.zeros((max(1, n), N), f"u{width // 8}") for width, n in counts.items()}
        for counts in (columns, results)
    )
    used = dict.fromkeys(LETTERS, 0)
    for sample in samples:
        for n, width in enumerate(sample.widths()):
            given[width][used[width]] = [row[n] for row in sample.rows]
            used[width] += 1
    with kernels_once(source) as module:
        module.kernel[(1,)](*given.values(), *out.values(), N=N)
    checks = [
        sample.check(out[sample.result_width][place])
        for sample, place in zip(samples, places, strict=True)
    ]
    return [wrong for wrong in checks if wrong]


def _groups(size: int) -> list[list[str]]:
    """Names of instructions that are tested together."""
    names = list(forms())
    return [names[n : n + size] for n in range(0, len(names), size)]


GROUPS = _groups(192)


@pytest.mark.interpreted
@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_instructions(group: int, session_seed: int) -> None:
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    wrong = run(samples(group, session_seed))
    assert not wrong, "\n".join(wrong)


@functools.cache  # compiled and interpreted ones are the same
def samples(group: int, seed: int) -> list[Sample]:
    rng = random.Random(seed + group)
    return [Sample(forms()[name], rng) for name in GROUPS[group] if is_chosen(name, rng)]


# Of so many forms one, chosen anew with each seed; of those of other names each second.
SHARE = {"set": 24, "setp": 24, "cvt": 6}


def is_chosen(name: str, rng: random.Random) -> bool:
    return not rng.randrange(SHARE.get(name.split(".")[0], 2))
