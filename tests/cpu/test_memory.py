"""Loads and stores of every form of address and mask, against numpy's indexing.

Addresses and masks are expressions that the kernel and numpy both evaluate. Each runs with
separate arrays, and with views of one array, for which other code is made. A kernel has accesses of
one address with several masks, each with a region of the result.
"""

import itertools
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import assert_same, kernels_of, ordinary, pointer, quiet, storage
from tests.draws import IS_FUZZ
from tests.tables import check_rows

BLOCK = 32
PROGRAMS = 6
SPAN = BLOCK * PROGRAMS
MARGIN = 4096  # untouched memory on both sides of everything
REGION = 2 * MARGIN  # elements of an array
MASKS_AT_ONCE = 8  # accesses of a kernel, which compile in half the time of kernels of one

ADDRESSES = (
    "i",
    "i + k",
    "i * s",
    "n - 1 - i",
    "k - i * s",
    "(i + k) % n",
    "(i * 3) % n",
    "(i % n) * s",
    "(i + k) % n + k",
    "(i + 5 * n + k) % n * s",
    "i // 3",
    "i & 15",
    "pid * 5 + 0 * i",
    "tl.where(i < n, i, k)",
    "i.to(tl.int64) * s",
)
MASKS = (
    "i < n",
    "i <= n - 1",
    "n > i",
    "n - 1 >= i",
    "i >= k",
    "(i >= k) & (i < n)",
    "(i < n) & (i < n - k) & (i < 100)",
    "(i < n) & (i % 3 == 0)",
    "(i < n) | (i == 2)",
    "~(i < k)",
    "pid == 1",
    "n > k",
    "(pid == 1) & (i < n)",
    "True",
    "False",
)
# The code for views of one array differs little: every third combination runs with them too.
SHARED = 3
OTHERS = ("", ", other=-1", ", other=i", ", other=n", ", other=(i // 2)")


class _Tensor(np.ndarray):
    """numpy's array with the one method that the expressions use."""

    def to(self, dtype: Any) -> "_Tensor":
        return self


class _Language:
    """What the expressions use of the language, in numpy."""

    where = staticmethod(np.where)
    int64 = np.int64


def evaluate(expression: str, names: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """An expression's value in numpy, in 64 bits: nothing here overflows in 32."""
    return np.broadcast_to(np.asarray(eval(expression, {"tl": _Language}, names)), shape)


def line_names(n: int, k: int, s: int) -> dict[str, Any]:
    i = np.arange(SPAN).view(_Tensor)
    return {"i": i, "pid": i // BLOCK, "n": n, "k": k, "s": s}


def memory(
    rng: np.random.Generator, dtype: str, shared: bool, results: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays with margins, the second of so many regions: of their own, or views of one."""
    if not shared:
        return ordinary(rng, dtype, REGION), ordinary(rng, dtype, results * REGION)
    both = ordinary(rng, dtype, (1 + results) * REGION)
    return both[:REGION], both[REGION:]


def cases() -> list[tuple[int, int, int]]:
    """(n, k, s)"""
    return [(0, 7, 3), (1, 0, 1), (150, 7, 3), (SPAN, 50, 0), (130, 1000, -2), (20, 17, 2)]


def combinations(masks: tuple[str, ...], addresses: tuple[str, ...]) -> list[Any]:
    """(masks of a kernel, address, shared) with `shared` false, and true for some of them. An
    address meets each second mask, and the next one the others; under `make fuzz` all."""
    product = itertools.product(enumerate(masks), enumerate(addresses))
    pairs = [(mask, of) for (i, mask), (j, of) in product if IS_FUZZ or (i + j) % 2 == 0]
    found = []
    for chosen, shared in ((pairs, False), (pairs[::SHARED], True)):
        for address in addresses:
            own = [mask for mask, of in chosen if of == address]
            parts = range(0, len(own), MASKS_AT_ONCE)
            found += [(tuple(own[n : n + MASKS_AT_ONCE]), address, shared) for n in parts]
    return found


LINE = """
@proton.jit(do_not_specialize=("n", "k", "s"))
def kernel(x_ptr, out_ptr, n, k, s, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
"""


def load_kernel(*accesses: tuple[str, str, str]) -> Any:
    """A kernel that loads what each (address, mask, other) says, into a region each."""
    lines = (
        f"    tl.store(out_ptr + {n * REGION} + i, "
        f"tl.load(x_ptr + ({address}), mask={mask}{other}))\n"
        for n, (address, mask, other) in enumerate(accesses)
    )
    return kernels_of(LINE + "".join(lines)).kernel


def store_kernel(address: str, masks: tuple[str, ...]) -> Any:
    lines = (
        f"    tl.store(out_ptr + {n * REGION} + ({address}), "
        f"tl.load(x_ptr + i) + {n + 1}, mask={mask})\n"
        for n, mask in enumerate(masks)
    )
    return kernels_of(LINE + "".join(lines)).kernel


@pytest.mark.parametrize("masks, address, shared", combinations(MASKS, ADDRESSES))
def test_load(rng: np.random.Generator, masks: tuple[str, ...], address: str, shared: bool) -> None:
    of = {m: OTHERS[(ADDRESSES.index(address) + MASKS.index(m)) % len(OTHERS)] for m in masks}
    kernel = load_kernel(*((address, mask, other) for mask, other in of.items()))
    for n, k, s in cases():
        if "%" in address and n == 0:
            continue  # test_wrap_around_nothing
        x, out = memory(rng, "int32", shared, len(masks))
        names = line_names(n, k, s)
        kernel[(PROGRAMS,)](x[MARGIN:], out[MARGIN:], n, k, s, BLOCK=BLOCK)
        for region, (mask, other) in zip(out.reshape(-1, REGION), of.items(), strict=True):
            taken = evaluate(mask, names, (SPAN,))
            values = x[MARGIN + np.where(taken, evaluate(address, names, (SPAN,)), 0)]
            otherwise = evaluate(other.removeprefix(", other=") or "0", names, (SPAN,))
            want = np.where(taken, values, otherwise)
            assert (region[MARGIN : MARGIN + SPAN] == want).all(), (mask, other, n, k, s)


STORED = ("i", "i + k", "n - 1 - i", "i * 3", "i * s", "(i * 5) % 256")


@pytest.mark.parametrize("masks, address, shared", combinations(MASKS, STORED))
def test_store(
    rng: np.random.Generator, masks: tuple[str, ...], address: str, shared: bool
) -> None:
    kernel = store_kernel(address, masks)
    for n, k, s in cases():
        if s == 0 and "s" in address:
            continue  # all to one place
        x, out = memory(rng, "int32", shared, len(masks))
        names, want = line_names(n, k, s), out.reshape(-1, REGION).copy()
        kernel[(PROGRAMS,)](x[MARGIN:], out[MARGIN:], n, k, s, BLOCK=BLOCK)
        for number, mask in enumerate(masks):
            taken = evaluate(mask, names, (SPAN,))
            places = evaluate(address, names, (SPAN,))[taken]
            want[number, MARGIN + places] = x[MARGIN : MARGIN + SPAN][taken] + number + 1
            region = out[number * REGION : (number + 1) * REGION]
            assert (region == want[number]).all(), (mask, n, k, s)


# Two and three dimensions

PLANE = """
@proton.jit(do_not_specialize=("n", "m", "k"))
def kernel(x_ptr, out_ptr, n, m, k, s, t, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.arange(0, C)[None, :]
"""
PLANE_ADDRESSES = (
    "r * s + c",
    "r + c * s",
    "r * s + c * t",
    "(n - 1 - r) * s + (m - 1 - c)",
    "((r + k) % n) * s + c",
    "r * s + (c + k) % m",
    "((r + k) % n) * s + ((c + k) % m) * t",
    "c + 0 * r",
    "r * s + 0 * c",
    "(r * 16 + c) % n",
    "(r % n) * s + (c // 2)",
    "(r ^ 1) * s + c",
)
PLANE_STORED = ("r * s + c", "r + c * s", "(n - 1 - r) * s + (m - 1 - c)", "(r ^ 1) * s + c")
PLANE_MASKS = (
    "(r < n) & (c < m)",
    "r < n",
    "c < m",
    "(r < n) & (c >= k)",
    "r + c < n",
    "(m > c) & (n - 1 >= r) & (c < 5)",
    "(r < n) & True",
    "True",
)


PLANE_SIZES = ((11, 13, 3), (16, 16, 50), (1, 1, 0), (7, 16, 2))  # n, m, k
Strides = tuple[tuple[int, int], ...]  # of s and t: each makes a kernel of its own
LOADED: Strides = ((16, 2), (1, 16), (0, 0), (-16, 1))
STORED_APART: Strides = ((16, 2), (17, 16), (30, 0), (-20, 1))


def planes(addresses: tuple[str, ...], strides: Strides) -> list[Any]:
    """(masks of a kernel, address, shared, strides): an address meets all masks. Half of the masks
    meet half of the strides, of the next address the other half; but for `make fuzz` the first of
    them, and of the next address but one the second."""
    found: list[Any] = []
    for number, address in enumerate(addresses):
        for half in range(2):
            own = strides[(number + half) % 2 :: 2] if "s" in address else strides[:1]
            own = own if IS_FUZZ else own[number // 2 % len(own) :][:1]
            is_shared = (2 * number + half) % SHARED == 0
            for shared in (False, True)[: 1 + is_shared]:
                found.append((PLANE_MASKS[half::2], address, shared, own))
    return found


def plane_names(n: int, m: int, k: int, s: int, t: int) -> dict[str, Any]:
    r, c = np.arange(16)[:, None].view(_Tensor), np.arange(16)[None, :].view(_Tensor)
    return {"r": r, "c": c, "n": n, "m": m, "k": k, "s": s, "t": t}


@pytest.mark.parametrize("masks, address, shared, strides", planes(PLANE_ADDRESSES, LOADED))
def test_load_of_a_plane(
    rng: np.random.Generator, masks: tuple[str, ...], address: str, shared: bool, strides: Strides
) -> None:
    source = PLANE + "".join(
        f"    value = tl.load(x_ptr + ({address}), mask={mask}, other=-9)\n"
        f"    tl.store(out_ptr + {n * REGION} + r * C + c, value)\n"
        for n, mask in enumerate(masks)
    )
    kernel = kernels_of(source).kernel
    for case in [(*sizes, *steps) for steps in strides for sizes in PLANE_SIZES]:
        x, out = memory(rng, "float32", shared, len(masks))
        names = plane_names(*case)
        kernel[(2,)](x[MARGIN:], out[MARGIN:], *case, R=8, C=16)
        for region, mask in zip(out.reshape(-1, REGION), masks, strict=True):
            taken = evaluate(mask, names, (16, 16))
            values = x[MARGIN + np.where(taken, evaluate(address, names, (16, 16)), 0)]
            got = region[MARGIN : MARGIN + 256].reshape(16, 16)
            assert (got == np.where(taken, values, np.float32(-9))).all(), (mask, case)


@pytest.mark.parametrize("masks, address, shared, strides", planes(PLANE_STORED, STORED_APART))
def test_store_of_a_plane(
    rng: np.random.Generator, masks: tuple[str, ...], address: str, shared: bool, strides: Strides
) -> None:
    source = PLANE + "".join(
        f"    value = tl.load(x_ptr + r * C + c)\n"
        f"    tl.store(out_ptr + {n * REGION} + ({address}), value, mask={mask})\n"
        for n, mask in enumerate(masks)
    )
    kernel = kernels_of(source).kernel
    for case in [(*sizes, *steps) for steps in strides for sizes in PLANE_SIZES]:
        x, out = memory(rng, "float32", shared, len(masks))
        names, want = plane_names(*case), out.reshape(-1, REGION).copy()
        kernel[(2,)](x[MARGIN:], out[MARGIN:], *case, R=8, C=16)
        for number, mask in enumerate(masks):
            taken = evaluate(mask, names, (16, 16))
            values = x[MARGIN : MARGIN + 256].reshape(16, 16)
            want[number, MARGIN + evaluate(address, names, (16, 16))[taken]] = values[taken]
            region = out[number * REGION : (number + 1) * REGION]
            assert (region == want[number]).all(), (mask, case)


WIDENED = """
@proton.jit
def kernel(x_ptr, out_ptr, n, m, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    pointers = {pointers}
    value = tl.load(pointers, mask={mask}, other={other})
    tl.store(out_ptr + r * C + c, value)
"""


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "pointers, mask, other",
    [
        ("x_ptr + r", "(r < n) & (c < m)", "-9.0"),
        ("x_ptr + r", "r < n", "(c * 1.0)"),
        ("x_ptr + tl.arange(0, C)", "(r < n) & (c < m)", "(r * 1.0)"),
        ("x_ptr + tl.arange(0, C)", "tl.arange(0, C) < m", "(r * 1.0)"),
        ("x_ptr + r + c * 0", "tl.arange(0, C) < m", "-9.0"),
    ],
)
def test_a_load_has_the_common_shape_of_pointers_mask_and_other(
    rng: np.random.Generator, pointers: str, mask: str, other: str
) -> None:
    kernel = kernels_of(WIDENED.format(pointers=pointers, mask=mask, other=other)).kernel
    r, c = np.arange(8)[:, None], np.arange(16)[None, :]
    for n, m in ((5, 11), (8, 16), (0, 3)):
        x = rng.standard_normal(16).astype(np.float32)
        out = np.zeros((8, 16), np.float32)
        kernel[(1,)](x, out, n, m, R=8, C=16)
        given = x[np.broadcast_to(c if "arange" in pointers else r, (8, 16))]
        taken = (r < n if "r < n" in mask else True) & (c < m if "< m" in mask else True)
        instead = {"-9.0": -9.0, "(c * 1.0)": c, "(r * 1.0)": r}[other]
        np.testing.assert_array_equal(out, np.where(taken, given, instead).astype(np.float32))


CUBE = """
@proton.jit
def kernel(x_ptr, out_ptr, a, b, c, s, t, u, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, A)[:, None, None]
    j = tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    mask = (i < a) & (j < b) & (k < c)
    value = tl.load(x_ptr + i * s + j * t + k * u, mask=mask, other=0)
    {store}
"""


@pytest.mark.interpreted
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_cubes_and_their_permutations(rng: np.random.Generator, order: tuple[int, ...]) -> None:
    store = f"""value = tl.permute(value, {order})
    flat = tl.arange(0, A * B * C)
    tl.store(out_ptr + flat, value.ravel())"""
    kernel = kernels_of(CUBE.format(store=store)).kernel
    x = rng.standard_normal((4, 8, 16))
    others = list(itertools.permutations(range(3)))
    for axes in others[others.index(order) % 2 :: 2]:  # each meets half of the orders
        view = x.transpose(axes)[::-1]  # any order of strides, and a negative one
        block = tuple(view.shape)
        sizes = (block[0] - 1, block[1], block[2] - 3 if block[2] > 4 else 1)
        out = np.zeros(x.size)
        strides = [stride // 8 for stride in view.strides]
        kernel[(1,)](view, out, *sizes, *strides, A=block[0], B=block[1], C=block[2])
        want = np.zeros(block)
        part = tuple(slice(size) for size in sizes)
        want[part] = view[part]
        assert (out == want.transpose(order).ravel()).all(), axes


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "int64"])
def test_every_width_of_element(rng: np.random.Generator, dtype: str) -> None:
    """... at addresses of several forms."""
    addresses, (n, k, s) = ("i", "i * s", "(i + k) % n", "i // 3"), (150, 7, 3)
    x, out = memory(rng, dtype, False, len(addresses))
    load_kernel(*((a, "i < n", ", other=0") for a in addresses))[(PROGRAMS,)](
        pointer(x[MARGIN:], dtype), pointer(out[MARGIN:], dtype), n, k, s, BLOCK=BLOCK
    )
    names = line_names(n, k, s)

    def check(address: str) -> None:
        got = out.reshape(-1, REGION)[addresses.index(address)]
        values = x[MARGIN + evaluate(address, names, (SPAN,))]
        want = np.where(names["i"] < n, values, np.zeros(1, storage(dtype)))
        assert (got[MARGIN : MARGIN + SPAN] == want).all()

    check_rows(check, [(address,) for address in addresses])


def test_wrap_around_nothing(rng: np.random.Generator) -> None:
    addresses = [a for a in ADDRESSES if "% n" in a]
    x, out = memory(rng, "int32", False, len(addresses))
    kernel = load_kernel(*((a, "i < n", ", other=5") for a in addresses))
    kernel[(PROGRAMS,)](x[MARGIN:], out[MARGIN:], 0, 7, 3, BLOCK=BLOCK)

    regions = dict(zip(addresses, out.reshape(-1, REGION), strict=True))

    def check(address: str) -> None:
        assert (regions[address][MARGIN : MARGIN + SPAN] == 5).all()

    check_rows(check, [(address,) for address in addresses])


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 200])
@pytest.mark.parametrize("k", [0, 1, 31, 32, 12345])
def test_blocks_larger_than_the_ring_go_round_several_times(
    rng: np.random.Generator, n: int, k: int
) -> None:
    x, out = memory(rng, "int32", False)
    load_kernel(("(i + k) % n", "True", ""))[(PROGRAMS,)](
        x[MARGIN:], out[MARGIN:], n, k, 0, BLOCK=BLOCK
    )
    want = x[MARGIN + (np.arange(SPAN) + k) % n]
    assert (out[MARGIN : MARGIN + SPAN] == want).all()


def test_an_empty_array_is_an_argument_like_any_other() -> None:
    kernel = load_kernel(("i", "i < n", ", other=3"))
    out = np.zeros(SPAN, np.int32)
    kernel[(PROGRAMS,)](np.zeros(0, np.int32), out, 0, 0, 0, BLOCK=BLOCK)
    assert (out == 3).all()


@pytest.mark.interpreted
@pytest.mark.parametrize("grid", [(0,), (0, 5), (3, 0, 2), 0, [0]])
def test_an_empty_grid_runs_nothing(grid: Any) -> None:
    out = np.zeros(SPAN, np.int32)
    x = np.ones(SPAN, np.int32)
    load_kernel(("i", "True", ""))[grid](x, out, SPAN, 0, 0, BLOCK=BLOCK)
    assert (out == 0).all()


GRID = """
@proton.jit
def kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    X, Y, Z = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    place = out_ptr + ((z * Y + y) * X + x)
    tl.store(place, tl.load(place) + x + 100 * y + 10000 * z + 1000000 * Z)
"""


@pytest.mark.parametrize("grid", [(1,), (70,), (7, 5), (1, 9), (3, 4, 5), (2, 1, 6), [4, 4], 9])
def test_each_program_of_a_grid_runs_once(grid: Any) -> None:
    sizes = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    x, y, z = (*sizes, 1, 1)[:3]
    for launched in (grid, lambda arguments: grid):
        out = np.zeros((z, y, x), np.int64)
        kernels_of(GRID).kernel[launched](out)
        k, j, i = np.indices(out.shape)
        assert (out == i + 100 * j + 10000 * k + 1000000 * z).all()


def test_a_callable_grid_sees_the_arguments() -> None:
    out = np.zeros(SPAN, np.int32)
    x = np.arange(SPAN, dtype=np.int32)
    kernel = load_kernel(("i", "i < n", ", other=0"))
    kernel[lambda a: (proton.cdiv(a["n"], a["BLOCK"]),)](x, out, 100, 0, 0, BLOCK=BLOCK)
    assert (out[:100] == x[:100]).all()
    assert (out[128:] == 0).all()


# Moving is not computing: denormals and infinities come through whatever way a number takes.

MOVES = {
    "gather": ["tl.store(o + i, tl.load(x + (i ^ 1), mask=i % 5 != n))"],
    "branch": [
        "v = tl.load(x + pid)",
        "if n > 0:",
        "    v = tl.load(x + pid + 1)",
        "tl.store(o + pid, v)",
    ],
    "loop": [
        "v = tl.load(x + pid)",
        "for k in range(n):",
        "    v = tl.where(k < n - 1, v, tl.load(x + pid + k))",
        "tl.store(o + pid, v)",
    ],
    "buffer": [
        "v = tl.load(x + i)",
        "for k in range(n):",
        "    v = tl.where(i % 2 == k, v, -v)",
        "tl.store(o + i, v)",
    ],
}


@pytest.mark.parametrize("way", MOVES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_that_are_moved_keep_their_bits(
    rng: np.random.Generator, way: str, dtype: str
) -> None:
    lines = ["pid = tl.program_id(0)", "i = tl.arange(0, B)", *MOVES[way]]
    body = "".join(f"    {line}\n" for line in lines)
    kernel = kernels_of(f"@proton.jit\ndef kernel(x, o, n, B: tl.constexpr):\n{body}").kernel
    size, steps, kind = 1024, 7, storage(dtype)
    x = rng.integers(0, 256, (size + steps) * kind.itemsize, np.uint8).view(kind)
    if kind.itemsize == 2:
        x.view(np.uint16)[::4] &= {"float16": 0x83FF, "bfloat16": 0x807F}[dtype]  # denormals
    x, out = quiet(x, dtype), np.zeros(size, kind)
    programs = size if way in ("branch", "loop") else 1
    kernel[(programs,)](pointer(x, dtype), pointer(out, dtype), steps, B=size)
    i = np.arange(size)
    # Of an even number of negations nothing is left.
    places = {"gather": i ^ 1, "branch": i + 1, "loop": i + steps - 1, "buffer": i}
    assert_same(out, x[places[way]], dtype)


@proton.jit
def masked_out(x_ptr, out_ptr, OTHERS: tl.constexpr):
    offs = tl.arange(0, 4)
    for n in tl.static_range(len(OTHERS)):
        out = out_ptr + 5 * n
        tl.store(out + offs, tl.load(x_ptr + offs, mask=offs < 2, other=OTHERS[n]))
        tl.store(out + 4 + tl.arange(0, True), 5)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_a_float_stands_for_integers_as_a_conversion_has_it(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([1, 2, 3, 4], dtype)
    infinity, nan = float("inf"), float("nan")
    wanted = {-infinity: info.min, infinity: info.max, nan: 0, 1e30: info.max, 2.75: 2}
    out = np.zeros((len(wanted), 5), dtype)
    masked_out[(1,)](x, out, tuple(wanted))
    found = dict(zip(wanted, out.tolist(), strict=True))
    assert found == {other: [1, 2, want, want, 5] for other, want in wanted.items()}
