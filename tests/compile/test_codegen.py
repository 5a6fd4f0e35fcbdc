"""What the PTX of a kernel looks like: wide accesses, predicates, modifiers, lines, barriers."""

import inspect
import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile import target_kernels
from tests.compile.ptx.machine import run_on_arrays
from tests.compile.target_kernels import CASES, add

HOPPER = GPUTarget("cuda", 90)


def ptx_of(kernel: Any, *arguments: Any, **options: Any) -> str:
    text: str = kernel.warmup(*arguments, target=HOPPER, **options).asm["ptx"]
    return text


def ptx_of_case(case: str, **options: Any) -> str:
    kernel, arguments = CASES[case]
    return ptx_of(kernel, *arguments, **options)


def accesses(ptx: str) -> list[str]:
    """The accesses of global memory: predicate and opcode."""
    found = re.findall(r"^\s*((?:@!?%p\d+ )?(?:ld|st)\.(?:\w+\.)?global\S*)", ptx, re.MULTILINE)
    return [re.sub(r"%p\d+", "%p", access) for access in found]


def branches(ptx: str) -> int:
    return len(re.findall(r"\bbra\b", ptx))


# Accesses


def test_a_masked_block_is_read_in_16_bytes_under_a_predicate() -> None:
    ptx = ptx_of(add, tl.float32, tl.float32, tl.float32, 1024, 1024)
    load, store = "@%p ld.global.v4.b32", "@%p st.global.v4.b32"
    assert sorted(accesses(ptx)) == [load] * 4 + [store] * 2
    assert branches(ptx) == 0


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("dtype", "n", "expected"),
    [
        (tl.float32, 1024, ".v4.b32"),  # four floats
        (tl.float32, 1023, ".b32"),  # the mask may end anywhere
        (tl.float16, 1024, ".v4.b32"),  # eight halves
        (tl.int8, 1024, ".v4.b32"),  # sixteen bytes
        (tl.float64, 1024, ".v4.b32"),  # two doubles
        (tl.int8, 1023, ".b8"),
        (tl.bfloat16, 1023, ".b16"),
    ],
    ids=str,
)
def test_an_access_is_as_wide_as_mask_and_type_allow(dtype: Any, n: int, expected: str) -> None:
    ptx = ptx_of(add, dtype, dtype, dtype, n, 4096)
    assert {access.partition("global")[2] for access in accesses(ptx)} == {expected}
    assert branches(ptx) == 0


HINT = ".L2::cache_hint"


@proton.jit
def copy(
    x_ptr,
    out_ptr,
    n,
    BLOCK: tl.constexpr,
    CACHE: tl.constexpr,
    EVICT: tl.constexpr,
    WRITE: tl.constexpr,
    VOLATILE: tl.constexpr,
):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(
        x_ptr + offsets,
        mask=offsets < n,
        other=1.0,
        cache_modifier=CACHE,
        eviction_policy=EVICT,
        volatile=VOLATILE,
    )
    tl.store(out_ptr + offsets, x, mask=offsets < n, cache_modifier=WRITE, eviction_policy=EVICT)


@pytest.mark.parametrize(
    ("cache", "evict", "write", "load", "store"),
    [
        ("", "", "", "global", "global"),
        (".ca", "", ".wb", "global.ca", "global.wb"),
        (".cg", "", ".cg", "global.cg", "global.cg"),
        (".cv", "", ".wt", "global.cv", "global.wt"),
        ("", "", ".cs", "global", "global.cs"),
        ("", "evict_normal", "", "global.L1::evict_normal", "global.L1::evict_normal"),
        ("", "evict_first", "", f"global.L1::evict_first{HINT}", f"global.L1::evict_first{HINT}"),
        ("", "evict_last", "", f"global.L1::evict_last{HINT}", f"global.L1::evict_last{HINT}"),
        (".cg", "evict_last", ".cs", "global.cg", "global.cs"),  # PTX takes one of the two
    ],
)
def test_modifiers_are_those_of_the_source(
    cache: str, evict: str, write: str, load: str, store: str
) -> None:
    ptx = ptx_of(copy, tl.float32, tl.float32, 512, 512, cache, evict, write, False)
    assert accesses(ptx) == [f"@%p ld.{load}.v4.b32", f"@%p st.{store}.v4.b32"]
    policies = re.findall(r"createpolicy\.fractional\.L2::(\w+)\.b64 (%rd\d+), 1\.0;", ptx)
    hinted = re.findall(r"L2::cache_hint.*, (%rd\d+);", ptx)
    assert [name for name, _ in policies] == [evict] * bool(hinted), "one for all accesses"
    assert set(hinted) == {policy for _, policy in policies}


@proton.jit
def shifted(x_ptr, out_ptr, n, TIMES: tl.constexpr):
    """Sums of neighbours that are far apart: an address of x for each."""
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    total = tl.load(x_ptr + at)
    for k in tl.static_range(1, TIMES):
        total += tl.load(x_ptr + at * k % n)
    tl.store(out_ptr + at, total)


@pytest.mark.parametrize(("times", "fused"), [(1, 2), (2, 3), (5, 1)])
def test_addresses_of_few_begin_at_uniform_registers(times: int, fused: int) -> None:
    """One instruction adds to a parameter, which ptxas keeps in a uniform register then."""
    ptx = ptx_of(shifted, tl.float32, tl.float32, 1000, times)
    parameters = re.findall(r"ld\.param\.b64 \t(%rd\d+)", ptx)
    bases = re.findall(r"mad\.wide\.[su]32 \t%rd\d+, %r\d+, 4, (%rd\d+);", ptx)
    assert set(bases) <= set(parameters)
    assert len(bases) == fused, "of x unless there are more than two, and of out"


def test_a_volatile_load_is_one() -> None:
    ptx = ptx_of(copy, tl.float32, tl.float32, 512, 512, "", "", "", True)
    assert accesses(ptx)[0].startswith("@%p ld.volatile.global")


@proton.jit
def plain_copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


def test_without_a_mask_there_is_no_predicate_unless_threads_hold_copies() -> None:
    assert not any("@" in access for access in accesses(ptx_of(plain_copy, *[tl.float32] * 2, 512)))
    loads, stores = accesses(ptx_of(plain_copy, *[tl.float32] * 2, 64, num_warps=4))
    assert "@" not in loads
    assert stores == "@%p st.global.b32", "one of the warps stores"


# Arithmetic


@proton.jit
def square_and_one(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x * x + 1.0)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("dtype", "name"), [(tl.float32, "f32"), (tl.float16, "f16x2"), (tl.bfloat16, "bf16x2")]
)
def test_multiply_adds_are_fused_where_it_is_allowed(dtype: Any, name: str) -> None:
    given = (square_and_one, dtype, dtype, 128 if name == "f32" else 256)
    for fused in (True, False):
        ptx = ptx_of(*given, num_warps=4, enable_fp_fusion=fused)
        ops = re.findall(rf"\b(fma|mul|add)\.(?:rn\.)?{name}\b", ptx)
        assert ops == (["fma"] if fused else ["mul", "add"])
    assert f"fma.rn.{name}" in ptx_of(*given, num_warps=4)


@pytest.mark.parametrize("bound", [32, 40, 64])
def test_maxnreg_bounds_registers(bound: int) -> None:
    kernel, arguments = CASES["matmul"]
    compiled = kernel.warmup(*arguments, target=HOPPER, maxnreg=bound)
    assert compiled.n_regs <= bound
    assert f".maxnreg {bound}\n" in compiled.asm["ptx"]
    assert ".maxnreg" not in ptx_of_case("matmul")


# Lines


def test_lines_are_those_of_the_source() -> None:
    ptx = ptx_of_case("add")
    (number,) = re.findall(r'\.file\s+(\d+) ".*/target_kernels\.py"', ptx)
    source, first = inspect.getsourcelines(add.fn)
    lines = {first + n: text for n, text in enumerate(source)}
    where, found = 0, {}
    for line in ptx.splitlines():
        if match := re.match(r"\s*\.loc\s+(\d+) (\d+)", line):
            assert match[1] == number
            where = int(match[2])
        elif match := re.search(r"\b(ld\.global|st\.global|add\.rn|setp)", line):
            found.setdefault(match[1], set()).add(lines[where].strip())
    assert found == {
        "ld.global": {lines[first + 4].strip(), lines[first + 5].strip()},
        "st.global": {"tl.store(out_ptr + offsets, x + y, mask=mask)"},
        "add.rn": {"tl.store(out_ptr + offsets, x + y, mask=mask)"},
        "setp": {"mask = offsets < n"},
    }
    assert found["ld.global"] == {
        "x = tl.load(x_ptr + offsets, mask=mask)",
        "y = tl.load(y_ptr + offsets, mask=mask)",
    }


def test_the_code_is_not_a_debug_build() -> None:
    ptx = ptx_of_case("add")
    assert ", debug" not in ptx
    assert target_kernels.__file__ in ptx


# Threads


@pytest.mark.usefixtures("no_assembler")
def test_no_barrier_where_one_warp_does_the_work() -> None:
    assert "bar.sync" in ptx_of_case("softmax", num_warps=4)
    alone = ptx_of_case("softmax", num_warps=1)
    assert "bar.sync" not in alone
    assert "shfl.sync.bfly" in alone
    assert "ld.shared" not in alone


def test_arithmetic_needs_no_barrier_however_many_warps() -> None:
    for warps in (1, 4, 16):
        ptx = ptx_of_case("add", num_warps=warps)
        assert "bar.sync" not in ptx
        assert "shared" not in re.sub(r"global_smem", "", ptx)


def test_a_transposition_meets_once() -> None:
    ptx = ptx_of_case("transpose")
    assert ptx.count("bar.sync") == 1
    assert re.search(r"st\.shared", ptx)
    assert re.search(r"ld\.shared", ptx)
    assert branches(ptx) == 0


# Prints and assertions


@proton.jit
def prints(x_ptr, HEX: tl.constexpr):
    tl.device_print("x", tl.load(x_ptr + tl.arange(0, 64)), hex=HEX)


# What C's printf is asked for: (numbers, in hex). An `l` too few, and what follows is garbage.
FORMATS = {
    tl.int1: ("%u", "0x%01x"),
    tl.int8: ("%d", "0x%02x"),
    tl.uint16: ("%u", "0x%04x"),
    tl.int32: ("%d", "0x%08x"),
    tl.int64: ("%lld", "0x%016llx"),
    tl.uint64: ("%llu", "0x%016llx"),
    tl.float8e5: ("%f", "%a"),
    tl.float16: ("%f", "%a"),
    tl.bfloat16: ("%f", "%a"),
    tl.float64: ("%f", "%a"),
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", FORMATS)
def test_formats_of_prints(dtype: Any) -> None:
    for in_hex, form in enumerate(FORMATS[dtype]):
        ptx = ptx_of(prints, dtype, bool(in_hex))
        arrays = re.findall(r"\.b8 \S+ = \{([\d, ]+)\}", ptx)
        texts = [bytes(map(int, array.split(","))).rstrip(b"\0").decode() for array in arrays]
        assert f"pid (%u, %u, %u) idx (%2u) x: {form}\n" in texts, (dtype, in_hex, texts)


@proton.jit
def doubles(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, x + x)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", [tl.int8, tl.uint32, tl.int64])
def test_overflows_are_checked_in_debug_mode_unless_told_otherwise(dtype: Any) -> None:
    asserted = {
        (debug, sanitize): "__assertfail" in ptx_of(doubles, dtype, debug=debug, **sanitize_)
        for debug in (False, True)
        for sanitize, sanitize_ in (
            (None, {}),
            *((value, {"sanitize_overflow": value}) for value in (False, True)),
        )
    }
    checked = dtype != tl.int64
    wanted = {(True, None): checked, (True, True): checked}
    assert asserted == {key: wanted.get(key, False) for key in asserted}


# Integers


@proton.jit
def divided(a_ptr, b_ptr, quotient_ptr, rest_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    tl.store(quotient_ptr + at, a // b)
    tl.store(rest_ptr + at, a % b)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", [tl.int64, tl.uint64], ids=str)
def test_divisions_of_64_bits_are_of_32_where_no_number_has_more(
    dtype: Any, rng: np.random.Generator
) -> None:
    """On the way of each size: below 2**31, below 2**32, beyond, and of either sign."""
    kernel = divided.warmup(*[dtype] * 4, SIZE=256, num_warps=1, target=HOPPER)
    assert "rem.u32" in kernel.asm["ptx"]
    numpy_type = np.int64 if dtype == tl.int64 else np.uint64
    lowest = -(1 << 62) if dtype == tl.int64 else 0
    for low, high in ((0, 1 << 31), (0, 1 << 32), (lowest, 1 << 62)):
        a, b = (rng.integers(low, high, 256).astype(numpy_type) for _ in range(2))
        a[:3], b[b == 0] = (0, 1, high - 1), 1
        b[3:6] = 1, high - 1, a[5] or 1
        quotient, rest = np.zeros_like(a), np.zeros_like(a)
        given = [a, b, quotient, rest]
        run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32, kernel.shared, given, rng)
        toward_zero = [abs(x) // abs(y) * (-1) ** ((x < 0) != (y < 0)) for x, y in rows(a, b)]
        assert quotient.tolist() == toward_zero
        assert rest.tolist() == [
            x - q * y for (x, y), q in zip(rows(a, b), toward_zero, strict=True)
        ]


@proton.jit
def divided_by_known(a_ptr, quotient_ptr, rest_ptr, BY: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    a = tl.load(a_ptr + at)
    tl.store(quotient_ptr + at, a // BY)
    tl.store(rest_ptr + at, a % BY)


@pytest.mark.parametrize("by", [40, 1 << 33, (1 << 40) + 1])
def test_known_divisors_of_64_bits_are_products(by: int, rng: np.random.Generator) -> None:
    """... or shifts, and no condition asks how large the numbers are."""
    kernel = divided_by_known.warmup(
        tl.int64, tl.int64, tl.int64, BY=by, SIZE=256, num_warps=1, target=HOPPER
    )
    assert not re.search(r"\b(bra|div|rem)\b", kernel.asm["ptx"])
    a = rng.integers(-(1 << 62), 1 << 62, 256)
    a[:4] = 0, -1, by, -by
    quotient, rest = np.zeros_like(a), np.zeros_like(a)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32, kernel.shared, [a, quotient, rest], rng)
    toward_zero = [abs(x) // by * (-1) ** (x < 0) for x in a.tolist()]
    assert quotient.tolist() == toward_zero
    assert rest.tolist() == [x - q * by for x, q in zip(a.tolist(), toward_zero, strict=True)]


def rows(*arrays: np.ndarray) -> list[tuple[int, ...]]:
    return list(zip(*(array.tolist() for array in arrays), strict=True))


@proton.jit
def held(x_ptr, out_ptr, LEAST: tl.constexpr, MOST: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out_ptr + at, tl.clamp(tl.load(x_ptr + at), LEAST, MOST))


@pytest.mark.parametrize(
    ("capability", "least", "most", "is_one"),
    [(90, -448.0, 448.0, True), (90, -448.0, 447.0, False), (90, 448.0, -448.0, False),
     (90, 0.0, 0.0, False), (80, -448.0, 448.0, False), (86, -1e-40, 1e-40, True)],
)  # fmt: skip
def test_a_clamp_around_zero_is_one_instruction(
    rng: np.random.Generator, capability: int, least: float, most: float, is_one: bool
) -> None:
    kernel = held.warmup(
        tl.float32, tl.float32, least, most, 256, num_warps=1, target=GPUTarget("cuda", capability)
    )
    assert ("min.xorsign.abs.f32" in kernel.asm["ptx"]) == is_one
    x = (rng.standard_normal(256) * 600).astype(np.float32)
    x[:8] = 0, -0.0, least, most, np.inf, -np.inf, 1e-39, -1e-39
    x[8:10] = np.nan, -np.nan
    out = np.zeros_like(x)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32, kernel.shared, [x, out], rng)
    want = np.fmin(np.fmax(x, np.float32(least)), np.float32(most))
    if is_one:
        want[8:10] = most, -most  # NaN is the bound of its sign
    assert out.tolist() == want.tolist()


@proton.jit
def larger(left, right):
    return tl.maximum(left, right)


@proton.jit
def absolute_largest(x_ptr, out_ptr, BOTH: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at).to(tl.float32)
    found = tl.reduce(tl.abs(x), 0, larger)
    tl.store(out_ptr, found)
    if BOTH:
        tl.store(out_ptr + 1, tl.sum(x, 0))


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("dtype", [tl.bfloat16, tl.float16], ids=str)
def test_the_largest_of_narrow_numbers_is_found_as_they_are(
    rng: np.random.Generator, dtype: Any, both: bool
) -> None:
    """... unless they are widened for something else anyway."""
    kernel = absolute_largest.warmup(dtype, tl.float32, both, 512, num_warps=2, target=HOPPER)
    name = "bf16" if dtype == tl.bfloat16 else "f16"
    assert (f"max.{name}x2" in kernel.asm["ptx"]) != both
    assert ("max.f32" in kernel.asm["ptx"]) == both
    values = rng.standard_normal(512).astype(np.float32)
    values[3], values[77] = np.nan, -5.5
    x = (values.view(np.uint32) >> 16).astype(np.uint16) if dtype == tl.bfloat16 else (
        values.astype(np.float16))  # fmt: skip
    out = np.zeros(2, np.float32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 64, kernel.shared, [x, out], rng)
    assert out[0] == 5.5


@proton.jit
def combined(x_ptr, out_ptr, KIND: tl.constexpr, SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, SIZE))
    if KIND == "sum":
        found = tl.sum(x, 0)
    elif KIND == "max":
        found = tl.max(x, 0)
    elif KIND == "min":
        found = tl.min(x, 0)
    else:
        found = tl.xor_sum(x, 0)
    tl.store(out_ptr, found)


@pytest.mark.parametrize("dtype", [tl.int32, tl.uint32], ids=str)
@pytest.mark.parametrize("kind", ["sum", "max", "min", "xor"])
def test_one_instruction_combines_integers_of_a_warp(
    kind: str, dtype: Any, rng: np.random.Generator
) -> None:
    kernel = combined.warmup(dtype, dtype, kind, 256, num_warps=2, target=HOPPER)
    assert kernel.asm["ptx"].count("redux.sync") == 1
    bits = rng.integers(0, 1 << 32, 256, np.uint64).astype(np.uint32)
    x, out = bits.view(np.int32 if dtype == tl.int32 else np.uint32), np.zeros(1, np.uint32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 64, kernel.shared, [x.copy(), out], rng)
    functions = {"sum": np.add, "max": np.maximum, "min": np.minimum, "xor": np.bitwise_xor}
    assert out.view(x.dtype)[0] == functions[kind].reduce(x, dtype=x.dtype)


@proton.jit
def first_with_bits(left, right):
    return left | 5


@proton.jit
def combined_by_one(x_ptr, out_ptr, SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, SIZE))
    tl.store(out_ptr, tl.reduce(x, 0, first_with_bits))


def test_reductions_that_leave_an_argument_out_keep_the_order(rng: np.random.Generator) -> None:
    kernel = combined_by_one.warmup(tl.int32, tl.int32, 64, num_warps=2, target=HOPPER)
    assert "redux.sync" not in kernel.asm["ptx"]
    x, out = np.arange(3, 67, dtype=np.int32), np.zeros(1, np.int32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 64, kernel.shared, [x, out], rng)
    assert out[0] == 3 | 5


# Copies that a pipeline begins early


@proton.jit
def masked_rows(x_ptr, out_ptr, n, m, R: tl.constexpr, C: tl.constexpr):
    """Blocks of rows, cut in both dimensions: of each copy of a thread another condition."""
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    total = tl.zeros((R, C), tl.float32)
    for start in tl.range(0, n, R, num_stages=3):
        inside = (start + r < n) & (c < m)
        total += tl.load(x_ptr + (start + r) * C + c, mask=inside, other=0.0)
    tl.store(out_ptr + r * C + c, total)


def test_conditions_of_copies_are_computed_where_they_are_asked_for() -> None:
    """A thread has seven: more at once are packed into registers bit by bit."""
    ptx = ptx_of(masked_rows, tl.float32, tl.float32, 1000, 48, 64, 64, num_warps=1)
    opcodes = re.findall(r"\b(setp|cp\.async\.c[ag])\b", ptx)
    assert opcodes.count("cp.async.cg") >= 64
    runs = "".join("s" if opcode == "setp" else "c" for opcode in opcodes).split("c")
    assert max(map(len, runs)) <= 8
