"""PTX in another order computes the same: random blocks by a small interpreter, and a kernel."""

import re

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.backends.nvidia import compiler
from proton.backends.nvidia.ptx_order import at_first_use, pressure

TARGET = proton.GPUTarget("cuda", 90)
PURE = ("add.s32", "mul.lo.s32", "xor.b32", "max.s32")


def drawn(rng: np.random.Generator) -> str:
    """Lines of PTX: computations, predicated loads, stores, shuffles, two blocks, places."""
    lines, registers = [".loc 1 1 1"], ["%r1", "%r2", "%r3"]
    for _ in range(int(rng.integers(5, 60))):
        a, b = rng.choice(registers, 2)
        new = f"%r{len(registers) + 1}"
        kinds = ["pure", "pure", "pure", "wrapped", "load", "store", "shuffle", "again", "label"]
        kind = rng.choice(kinds)
        if rng.random() < 0.2:
            lines.append(f".loc 1 {rng.integers(1, 9)} 1")
        if kind == "pure":
            lines.append(f"\t{rng.choice(PURE)} \t{new}, {a}, {b};")
        elif kind == "wrapped":
            lines += ["\t// begin inline asm", f"\t{rng.choice(PURE)} {new}, {a}, {b};", ""]
            lines.append("\t// end inline asm")
        elif kind == "load":
            lines += [f"\tmov.b32 \t{new}, {a};", "\t// begin inline asm"]
            lines += [f"\t@%p1 ld.global.b32 {{{new}}}, [{b}];", "", "\t// end inline asm"]
        elif kind == "store":
            lines.append(f"\tst.global.b32 \t[{a}], {b};")
        elif kind == "shuffle":
            lines.append(f"\tshfl.sync.bfly.b32 \t{new}, {a}, {b}, 31, -1;")
        elif kind == "again":
            lines.append(f"\tadd.s32 \t{a}, {a}, {b};")
        else:
            lines.append(f"$L__{rng.choice(['BB0_', 'tmp'])}{len(lines)}:")
        if kind in ("pure", "wrapped", "load", "shuffle"):
            registers.append(new)
    return "\n".join([*lines, "\tret;"]) + "\n"


def effects(ptx: str) -> tuple[list[tuple[object, ...]], dict[str, object]]:
    """What instructions with effects are given, in order, and all registers at the end."""
    values: dict[str, object] = {"%r1": 1, "%r2": 2, "%r3": 3, "%p1": 4}
    seen: list[tuple[object, ...]] = []
    for line in ptx.splitlines():
        code = line.strip().rstrip(";")
        if not code or code.startswith(("//", ".loc", "$L__tmp")):
            continue
        name, *operands = re.findall(r"%\w+|\$\w+|[\w.]+", code)
        if name.startswith("%"):
            name, *operands = *operands[:1], *operands[1:], name
        if name.startswith("$"):
            seen.append((name,))
            continue
        stores = name.startswith(("st.", "ret"))
        given = tuple(values.get(one, one) for one in operands[0 if stores else 1 :])
        if not name.startswith((*PURE, "mov")):
            seen.append((name, *given))
        if not stores:
            old = values.get(operands[0]) if name.startswith("ld.") else None
            values[operands[0]] = hash((name, given, old))
    return seen, values


def test_random_blocks_have_the_same_effects(rng: np.random.Generator) -> None:
    for _ in range(300):
        ptx = drawn(rng)
        found = at_first_use(ptx)
        assert effects(found) == effects(ptx), ptx

        def kept(text: str) -> list[str]:
            return sorted(line for line in text.splitlines() if line and ".loc" not in line)

        assert kept(found) == kept(ptx)


def test_a_computation_stands_at_its_first_use() -> None:
    lines = ["ld.global.b32 %r1, [%rd1];", "ld.global.b32 %r2, [%rd2];"]
    lines += ["add.s32 %r3, %r1, 1;", "add.s32 %r4, %r2, 1;", "add.cc.s32 %r7, %r1, %r2;"]
    lines += ["mul.lo.s32 %r5, %r3, %r3;", "mul.lo.s32 %r6, %r4, %r4;"]
    lines += ["st.global.b32 [%rd1], %r5;", "st.global.b32 [%rd2], %r6;", "ret;"]
    order = [0, 1, 4, 2, 5, 7, 3, 6, 8, 9]
    assert at_first_use("\n".join(lines)).splitlines() == [lines[number] for number in order]


def test_a_sum_of_loaded_values_does_not_wait_behind_a_barrier() -> None:
    """The products of %r1 and %r2 would be eight registers until the end: %r1 is read again, %r2 is
    not. The double of %r1 frees nothing, and waits."""
    loads = "".join(f"ld.global.b32 %r{n}{e}, [%rd{n}{e}];\n" for n in (1, 2) for e in range(4))
    products = "".join(f"mul.f32 %r3{e}, %r1{e}, %r2{e};\n" for e in range(4))
    sums = "add.f32 %r40, %r30, %r31;\nadd.f32 %r41, %r32, %r33;\nadd.f32 %r42, %r40, %r41;\n"
    doubles = "".join(f"add.f32 %r5{e}, %r1{e}, %r1{e};\n" for e in range(4))
    stores = "".join(f"st.global.b32 [%rd5{e}], %r5{e};\n" for e in range(4))
    for behind in ("bar.sync 0;\n", "st.global.b32 [%rd9], %r9;\n"):
        ordered = at_first_use(
            f"{loads}{doubles}{products}{sums}{behind}{stores}st.global.b32 [%rd42], %r42;\nret;\n"
        )
        place = ordered.index
        assert place("%r42, %r40") < place(behind) < place("%r50, %r10")
        assert pressure(ordered) < pressure(loads + doubles + products + sums + behind + stores)


def test_inline_assembly_of_one_computation_is_one() -> None:
    def wrapped(text: str) -> str:
        return f"// begin inline asm\n{text}\n\n// end inline asm"

    lines = ["ld.global.b32 %r1, [%rd1];", "ld.global.b32 %r2, [%rd2];"]
    lines += [wrapped("ex2.approx.ftz.f32 %r3, %r1;"), wrapped("div.full.f32 %r4, %r2, %r1;")]
    lines += [wrapped("{ .reg .b32 t; add.s32 t, %r1, 1; mov.b32 %r7, t; }")]
    lines += ["mul.rn.f32 %r5, %r3, %r3;", "st.global.b32 [%rd1], %r5;"]
    lines += ["st.global.b32 [%rd2], %r4;", "st.global.b32 [%rd2], %r7;", "ret;"]
    order = [0, 1, 4, 2, 5, 6, 3, 7, 8, 9]
    assert at_first_use("\n".join(lines)) == "".join(f"{lines[number]}\n" for number in order)


def test_pressure_is_what_is_alive_at_once() -> None:
    lines = ["ld.global.b32 %r1, [%rd1];", "ld.global.b32 %r2, [%rd1+4];", "add.s32 %r3, %r1, %r2;"]
    lines += ["mul.wide.s32 %rd2, %r3, 4;", "setp.eq.s64 %p1, %rd2, 0;", "@%p1 bra $L__BB0_1;"]
    # A line ends what it names last ahead of what it makes: %rd1 with %r1, %rd2 alone.
    assert [pressure("\n".join(lines[:count])) for count in (1, 2, 4, 6)] == [0, 2, 3, 3]
    wide = [f"mov.b32 %r{n}, 0;" for n in range(9)] + [f"st.b32 [%rd1], %r{n};" for n in range(9)]
    narrow = [line for pair in zip(wide[:9], wide[9:], strict=True) for line in pair]
    assert (pressure("\n".join(wide)), pressure("\n".join(narrow))) == (10, 3)


@pytest.mark.parametrize("clock", ["%clock", "%clock64", "%globaltimer"])
def test_nothing_crosses_a_reading_of_the_clock(clock: str) -> None:
    reading = f"// begin inline asm\nmov.u32 %r9, {clock}; // proton\n// end inline asm"
    lines = ["ld.global.b32 %r1, [%rd1];", "add.s32 %r3, %r1, 1;", *reading.splitlines()]
    lines += ["st.global.b32 [%rd1], %r3;", "ret;"]
    assert at_first_use("\n".join(lines)).splitlines() == lines
    other = [*lines[:2], "// begin inline asm", "// end inline asm", *lines[5:]]
    assert at_first_use("\n".join(other)).splitlines() != other


@proton.jit
def divergence(y_ptr, x_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    total = 0.0
    for i in range(0, n, BLOCK):
        places = i + tl.arange(0, BLOCK)
        y = tl.load(y_ptr + places, mask=places < n, other=0.0)
        x = tl.load(x_ptr + places, mask=places < n, other=0.0)
        total += tl.sum(x * (tl.log(tl.maximum(x, eps)) - y))
    tl.store(out_ptr, total)


def test_more_programs_of_a_long_chain_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's order of 32 logarithms of a thread keeps parts of all alive at once."""
    wide = [tl.float32] * 3

    def registers() -> tuple[int, int]:
        with proton.knobs.scope(always_compile=True):
            kernel = divergence.warmup(
                *wide, 1 << 16, 1e-9, BLOCK=16384, num_warps=16, target=TARGET
            )
        return kernel.n_regs, kernel.n_spills

    ordered = registers()
    monkeypatch.setattr(compiler, "at_first_use", lambda ptx: ptx)
    plain = registers()
    assert plain[0] > 64
    assert ordered[0] <= 64
    assert ordered[1] == plain[1] == 0
