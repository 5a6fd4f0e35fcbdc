"""Functions with `noinline=True` are functions of the object code, and mean the same."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import CompilationError
from tests.cpu.harness import decode, encode, ordinary, pointer
from tests.pairs import covering


@proton.jit(noinline=True)
def scaled(x, FACTOR: tl.constexpr):
    return x * FACTOR


@proton.jit(noinline=True)
def sum_and_difference(x, y):
    return x + y, (x - y, 7)


@proton.jit(noinline=True)
def put(ptr, offs, value, mask):
    tl.store(ptr + offs, value, mask=mask)


@proton.jit(noinline=True)
def at_least(x, y):
    if x > y:
        return x
    return (y + tl.program_id(0)).to(x.dtype)


@proton.jit
def calls(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < n)
    total, (difference, seven) = sum_and_difference(scaled(x, 2), y)
    for _ in range(2):
        total = scaled(total, 3) + difference
    put(out_ptr, offs, total + at_least(tl.max(total, 0), 5) * seven, offs < n)


def called(kernel: Any) -> set[str]:
    """The functions of the source that the object code calls."""
    names = re.findall(r"\bcall\w*\s+([\w.]+__\d+)\$", kernel.asm["asm"])
    return {re.sub(r"__\d+$", "", name) for name in names}


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "dtype, size",
    covering(
        {
            "dtype": ["int32", "float32", "float64", "int8", "bfloat16"],
            "size": [(1, 1), (1, 16), (999, 256)],
        }
    ),
    ids=str,
)
def test_blocks_scalars_and_tuples(
    rng: np.random.Generator, dtype: str, size: tuple[int, int]
) -> None:
    n, block = size
    x, y = rng.integers(0, 3, (2, n)).astype(np.float32)
    programs = proton.cdiv(n, block)
    arrays = [encode(values, dtype) for values in (x, y, np.zeros(n, np.float32))]
    kernel = calls[(programs,)](*(pointer(a, dtype) for a in arrays), n, BLOCK=block)
    if not proton.knobs.interpret:
        assert called(kernel) == {"scaled", "sum_and_difference", "put", "at_least"}
    x, y = (np.pad(v, (0, programs * block - n)).reshape(programs, block) for v in (x, y))
    total, difference = x * 2 + y, x * 2 - y
    for _ in range(2):
        total = total * 3 + difference
    best, number = total.max(1), np.arange(programs)
    want = (total + np.where(best > 5, best, 5 + number)[:, None] * 7).ravel()[:n]
    if dtype == "bfloat16":
        assert np.abs(decode(arrays[2], dtype) - want).max() <= want.max() / 64
    else:
        assert (arrays[2] == want.astype(np.int64).astype(dtype)).all()


@proton.jit(noinline=True)
def row_of(ptr, number, stride, N: tl.constexpr):
    return ptr + number * stride, ptr + number * stride + tl.arange(0, N)


@proton.jit(noinline=True)
def is_odd(x):
    return x % 2 != 0


@proton.jit(noinline=True)
def zero_where(ptrs, chosen):
    tl.store(ptrs, tl.load(ptrs) * 0, mask=chosen)


@proton.jit
def through_pointers(x_ptr, out_ptr, stride, N: tl.constexpr):
    row, ptrs = row_of(x_ptr, tl.program_id(0), stride, N)
    before = tl.load(ptrs)
    zero_where(ptrs, is_odd(before))
    after = tl.load(row + tl.arange(0, N))
    tl.store(out_ptr + tl.program_id(0) * N + tl.arange(0, N), before * 1000 + after)


@pytest.mark.interpreted
@pytest.mark.parametrize("n", [1, 8, 64])
def test_pointers_go_in_and_out_and_what_a_function_writes_is_seen(
    rng: np.random.Generator, n: int
) -> None:
    x = rng.integers(0, 100, (3, n + 5)).astype(np.int32)
    first, out = x.copy(), np.zeros((3, n), np.int32)
    through_pointers[(3,)](x, out, n + 5, N=n)
    want = first.copy()
    want[:, :n] = np.where(first[:, :n] % 2, 0, first[:, :n])
    assert (x == want).all()
    assert (out == first[:, :n] * 1000 + want[:, :n]).all()


@proton.jit(noinline=True)
def product(a, b, acc):
    return tl.dot(a, b, acc, input_precision="ieee")


@proton.jit(noinline=True)
def normalized(x):
    x = x - tl.sum(x, 1)[:, None] / x.shape[1]
    return product(x, tl.trans(x), tl.zeros((x.shape[0], x.shape[0]), tl.float32))


@proton.jit
def gram(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros((M, M), tl.float32)
    for i in range(n):
        total += normalized(tl.load(x_ptr + i * M * N + rows[:, None] * N + columns[None, :]))
    tl.store(out_ptr + rows[:, None] * M + rows[None, :], total)


@pytest.mark.parametrize("m, n", [(4, 8), (16, 16), (128, 256)])
def test_blocks_of_any_size_are_passed_and_made_in_functions_of_functions(
    rng: np.random.Generator, m: int, n: int
) -> None:
    x, out = ordinary(rng, "float32", (3, m, n)), np.zeros((m, m), np.float32)
    kernel = gram[(1,)](x, out, 3, M=m, N=n)
    assert called(kernel) == {"normalized", "product"}
    centred = x - x.mean(2, keepdims=True, dtype=np.float64)
    want = np.einsum("kin,kjn->ij", centred, centred)
    assert np.allclose(out, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@proton.jit(noinline=True)
def sum_of_narrow(x, y):
    return (x.to(tl.float32) + y.to(tl.float32)).to(x.dtype)


@proton.jit(noinline=True)
def is_large(x):
    return x > 2


@proton.jit(noinline=True)
def unless_small(ptr, n):
    if n < 3:
        return
    tl.store(ptr, n)


@proton.jit(noinline=True)
def descriptor_of(ptr, n):
    return tl.make_tensor_descriptor(ptr, [n, 8], [8, 1], [4, 8])


@proton.jit(noinline=True)
def rows_at(descriptor, i):
    return descriptor.load([i, 0])


@proton.jit
def passes_everything(f8_ptr, bf16_ptr, out_ptr, table_ptr, n):
    i = tl.arange(0, 8)
    x = sum_of_narrow(tl.load(f8_ptr + i), tl.load(f8_ptr + i + 8))
    tl.store(f8_ptr + i + 16, x)
    tl.store(bf16_ptr + 2, sum_of_narrow(tl.load(bf16_ptr), tl.load(bf16_ptr + 1)))
    unless_small(out_ptr, n)
    turns = 0
    while is_large(n - turns):
        turns += 1
    tl.store(out_ptr + 1, turns)
    table = rows_at(descriptor_of(table_ptr, n), 1)
    tl.store(out_ptr + 2 + tl.arange(0, 4)[:, None] * 8 + i[None, :], table)


@pytest.mark.parametrize("n", [1, 6])
def test_narrow_floats_conditions_and_descriptors(n: int) -> None:
    one, two, three = 0x3C, 0x40, 0x42  # as float8e5
    f8 = np.array([one] * 8 + [two] * 8 + [0] * 8, np.uint8)
    bf16 = encode(np.array([1.5, 2.5, 0], np.float32), "bfloat16")
    out, table = np.zeros(34, np.int32), np.arange(1, 8 * n + 1, dtype=np.int32).reshape(n, 8)
    pointers = proton.reinterpret(f8, tl.float8e5), pointer(bf16, "bfloat16")
    passes_everything[(1,)](*pointers, out, table, n)
    assert (f8[16:] == three).all()
    assert decode(bf16, "bfloat16")[2] == 4
    assert out[:2].tolist() == [n if n >= 3 else 0, max(0, n - 2)]
    want = np.zeros((4, 8), np.int32)
    want[: n - 1] = table[1:5]
    assert (out[2:].reshape(4, 8) == want).all()


@proton.jit(noinline=True)
def positive(x):
    tl.device_assert(x > 0, "x must be positive")
    return x - 1


@proton.jit
def asserts(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.device_assert(tl.program_id(0) < 2, "too many programs")
    tl.store(out_ptr + offs, positive(tl.load(x_ptr + offs)))


def test_assertions_of_functions_are_numbered_with_those_of_the_kernel() -> None:
    x, out = np.arange(1, 9, dtype=np.int32), np.zeros(8, np.int32)
    asserts[(2,)](x, out, N=8, debug=True)
    assert (out == x - 1).all()
    with pytest.raises(AssertionError, match="too many programs"):
        asserts[(3,)](x, out, N=8, debug=True)
    x[3] = 0
    with pytest.raises(AssertionError, match="x must be positive"):
        asserts[(2,)](x, out, N=8, debug=True)


@proton.jit(noinline=True)
def turns(x, n):
    for i in range(n):
        with proton.scope("turn", i=i):
            x = x * 0.5 + tl.sum(x, 0)
    return x


@proton.jit(noinline=True)
def between(x, n):
    with proton.scope("middle"):
        y = turns(x, n) * 2.0
    return y


@proton.jit(noinline=True)
def marked(x):
    with proton.scope("scaled"):
        x = x * 3.0 - tl.max(x, 0)
    proton.mark("here", 5)
    return x


@proton.jit
def measured(x_ptr, out_ptr, n):
    offs = tl.program_id(0) * 64 + tl.arange(0, 64)
    with proton.scope("calls"):
        x = between(marked(tl.load(x_ptr + offs)), n)
    tl.store(out_ptr + offs, marked(x))


@pytest.mark.parametrize("placement", ["schedule", "program"])
@pytest.mark.parametrize("options", [{}, {"strategy": "flush", "capacity": 4}, {"capacity": 3}])
def test_scopes_carry_the_names_around_their_calls(
    rng: np.random.Generator, placement: str, options: dict[str, Any]
) -> None:
    x, n = ordinary(rng, "float32", 5 * 64), 4
    off, on = np.zeros_like(x), np.zeros_like(x)
    measured[(5,)](x, off, n)
    with proton.profile("measured", placement=placement, **options) as run:
        measured[(5,)](x, on, n)
    assert (off == on).all()
    totals = run.totals
    assert totals.written == totals.kept + totals.lost
    if options.get("capacity") == 3:
        assert totals.kept == 5 * 3
        return
    assert totals.lost == 0
    slices = run.frame[run.frame.program >= 0]
    names = ["calls/scaled", *["calls/middle/turn"] * n, "calls/middle", "calls", "scaled"]
    for _, group in slices.groupby("program"):
        assert list(group.scope[-len(names) :]) == names
    assert sorted(run.marks.scope) == ["calls/here"] * 5 + ["here"] * 5
    ends = slices.start_ns + slices.dur_ns
    inner, outer = slices.scope == "calls/middle/turn", slices.scope == "calls/middle"
    assert (slices.start_ns[inner].groupby(slices.program[inner]).min()
            >= slices.start_ns[outer].groupby(slices.program[outer]).min()).all()  # fmt: skip
    assert (ends[inner].groupby(slices.program[inner]).max()
            <= ends[outer].groupby(slices.program[outer]).max()).all()  # fmt: skip


@proton.jit(noinline=True)
def endless(x):
    return endless(x)


@proton.jit
def recurses(out_ptr):
    tl.store(out_ptr, endless(1.0))


@dataclasses.dataclass(frozen=True)
class Holds:
    value: Any


@proton.jit(noinline=True)
def shows(ptr, OBJECT: tl.constexpr):
    tl.store(ptr, 100 if shown_by(OBJECT) else 0)


@proton.constexpr_function
def shown_by(value):
    (held,) = value if isinstance(value, frozenset | tuple) else (value.value,)
    return held is True


@proton.jit
def shows_two(ptr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    shows(ptr, FIRST)
    shows(ptr + 1, SECOND)
    shows(ptr + 2, FIRST)


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", [Holds, lambda x: frozenset([x]), lambda x: (x,)])
def test_constants_that_are_equal_in_python_are_two(kind: Any) -> None:
    x = np.zeros(3, np.int32)
    for held in ((1, True), (True, 1.0), (1.0, 1)):
        shows_two[(1,)](x, *map(kind, held))
        assert x.tolist() == [100 * (value is True) for value in (*held, held[0])]


def test_recursion_is_an_error_at_the_call() -> None:
    with pytest.raises(CompilationError, match="endless calls itself") as caught:
        recurses[(1,)](np.zeros(1, np.float32))
    assert caught.value.hint == "recursion is not supported: write it as a loop"
