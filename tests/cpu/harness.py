"""Kernels from expressions, random data of every dtype, and exact comparisons.

numpy has no bfloat16: its arrays are kept as uint16 (`encode`), and computed with as float32
(`decode`), which holds every bfloat16.
"""

import contextlib
import functools
import hashlib
import importlib.util
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import proton
import proton.language as tl

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
WIDE_FLOATS = ("float32", "float64")
FLOATS = ("float16", "bfloat16", *WIDE_FLOATS)
NUMBERS = INTEGERS + FLOATS
DTYPES = ("bool", *NUMBERS)

_FOLDER = tempfile.TemporaryDirectory(prefix="proton-kernels-")
# A function for sources: its argument, which has to be of a dtype.
OF_TYPE = """
@proton.jit
def of_type(x, dtype: tl.constexpr):
    tl.static_assert(x.dtype == dtype)
    return x
"""
_HEADER = "import proton\nimport proton.language as tl\n\n"


@functools.lru_cache(64)
def kernels_of(source: str) -> Any:
    """A module with this source; kernels must lie in files for their source to be read."""
    return _module(source)


@contextlib.contextmanager
def kernels_once(source: str) -> Iterator[Any]:
    """As `kernels_of`, of a source that nobody asks for again: a test of random programs makes
    hundreds. A kernel and its launchers refer to each other, so that what they have, a megabyte,
    would wait for a collection of garbage."""
    module = _module(source)
    try:
        yield module
    finally:
        for value in vars(module).values():
            if isinstance(value, proton.JITFunction):
                vars(value).clear()
        vars(module).clear()


def _module(source: str) -> Any:
    name = "kernels_" + hashlib.sha256(source.encode()).hexdigest()[:16]
    path = Path(_FOLDER.name) / f"{name}.py"
    path.write_text(_HEADER + source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def elementwise(expressions: tuple[str, ...], inputs: int) -> Any:
    """The kernel out_i[...] = expression i, of the inputs a, b, c, d (pointers a_ptr, ...).

    It has one function to compile where a kernel an expression has many.
    """
    names = "abcd"[:inputs]
    pointers = [f"{x}_ptr, " for x in names] + [f"out_{i}, " for i in range(len(expressions))]
    loads = "".join(f"    {x} = tl.load({x}_ptr + offs, mask=mask)\n" for x in names)
    stores = "".join(
        f"    tl.store(out_{i} + offs, {expression}, mask=mask)\n"
        for i, expression in enumerate(expressions)
    )
    source = (
        "@proton.jit\n"
        f"def kernel({''.join(pointers)}n, BLOCK: tl.constexpr):\n"
        "    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    mask = offs < n\n"
        f"{loads}{stores}"
    )
    return kernels_of(source).kernel


def apply_all(
    expressions: dict[str, str], *inputs: tuple[np.ndarray, str], block: int = 256
) -> dict[str, np.ndarray]:
    """The expressions of (array, dtype) inputs, each with the dtype of its result, as computed by
    one kernel."""
    size = inputs[0][0].size
    results = {e: np.zeros(size, storage(out)) for e, out in expressions.items()}
    kernel = elementwise(tuple(expressions), len(inputs))
    pointers = [pointer(array, dtype) for array, dtype in inputs]
    pointers += [pointer(results[e], out) for e, out in expressions.items()]
    kernel[(proton.cdiv(size, block),)](*pointers, size, BLOCK=block)
    return results


def apply(
    expression: str, *inputs: tuple[np.ndarray, str], out: str, block: int = 256
) -> np.ndarray:
    """The expression of (array, dtype) inputs, as computed by a kernel; `out` is its dtype."""
    return apply_all({expression: out}, *inputs, block=block)[expression]


Inputs = Sequence[tuple[np.ndarray, str]]  # with their dtypes


def apply_each(rows: Iterable[tuple[str, Inputs, str]], block: int = 256) -> list[np.ndarray]:
    """What expressions give, each of inputs of its own, all of one size, and with the dtype of its
    result: as computed by one kernel. Each is a loop of its own, as in a kernel of its own."""
    parameters, given, lines, results = [], [], [], []
    for number, (expression, inputs, out) in enumerate(rows):
        size = inputs[0][0].size
        assert not results or results[0].size == size
        for name, (array, dtype) in zip("abcd", inputs, strict=False):
            parameters.append(f"{name}{number}, ")
            given.append(pointer(array, dtype))
            lines.append(f"    {name} = tl.load({name}{number} + offs, mask=mask)\n")
        parameters.append(f"out{number}, ")
        results.append(np.zeros(size, storage(out)))
        given.append(pointer(results[-1], out))
        lines.append(f"    tl.store(out{number} + offs, {expression}, mask=mask)\n")
    source = (
        "@proton.jit\n"
        f"def kernel({''.join(parameters)}n, BLOCK: tl.constexpr):\n"
        "    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        f"    mask = offs < n\n{''.join(lines)}"
    )
    kernels_of(source).kernel[(proton.cdiv(size, block),)](*given, size, BLOCK=block)
    return results


_BLOCK = """
@proton.jit
def kernel(x_ptr, {pointers}A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    place = (i[:, None, None] * B + j[None, :, None]) * C + k[None, None, :]
    x = tl.load(x_ptr + tl.reshape(place, {shape}))
{stores}"""
_STORE = """
    tl.store({out} + tl.arange(0, {size}), tl.reshape(tl.broadcast_to({value}, {shape}), ({size},)))
"""


def of_block(
    x: np.ndarray, dtype: str, results: dict[str, tuple[np.ndarray, str]], helpers: str = ""
) -> None:
    """Runs the expressions of a block x by one kernel; each array has its result's shape, and its
    dtype is beside it. `helpers` is the source of functions that the expressions call."""
    a, b, c = (1, 1, *x.shape)[-3:]
    names = [f"out_{n}" for n in range(len(results))]
    stores = "".join(
        _STORE.format(out=name, size=max(1, out.size), value=value, shape=out.shape or (1,))
        for name, (value, (out, _)) in zip(names, results.items(), strict=True)
    )
    pointers = "".join(f"{name}, " for name in names)
    source = _BLOCK.format(pointers=pointers, shape=x.shape, stores=stores)
    given = [pointer(out, out_dtype) for out, out_dtype in results.values()]
    x_ptr = pointer(np.ascontiguousarray(x), dtype)
    kernels_of(OF_TYPE + helpers + source).kernel[(1,)](x_ptr, *given, A=a, B=b, C=c)


# Dtypes


def storage(dtype: str) -> np.dtype[Any]:
    """numpy's dtype for the bits of one."""
    return np.dtype("uint16" if dtype == "bfloat16" else dtype)


def sum_type(dtype: str) -> str:
    """Narrow integers are summed in 32 bits; a bool is unsigned."""
    if dtype == "bool" or (dtype in INTEGERS and np.dtype(dtype).itemsize < 4):
        return "int32" if dtype in SIGNED else "uint32"
    return dtype


def pointer(array: np.ndarray, dtype: str) -> Any:
    """The array as an argument that points to `dtype`."""
    return proton.reinterpret(array, tl.bfloat16) if dtype == "bfloat16" else array


def decode(array: np.ndarray, dtype: str) -> np.ndarray:
    """Stored bits as numbers: bfloat16 as float32, the rest as they are."""
    if dtype != "bfloat16":
        return array
    return (array.astype(np.uint32) << 16).view(np.float32)


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers in their stored form, rounded once to nearest even."""
    if dtype != "bfloat16":
        with np.errstate(all="ignore"):
            return values.astype(dtype)
    if values.dtype != np.float32:
        values = _to_float32_odd(values.astype(np.float64))
    bits = values.view(np.uint32)
    rounded = ((bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def _to_float32_odd(values: np.ndarray) -> np.ndarray:
    """float64 to float32, rounded to odd: a second rounding to fewer bits is then exact."""
    with np.errstate(all="ignore"):
        near = values.astype(np.float32)
        inexact = near.astype(np.float64) != values
        away = np.abs(near.astype(np.float64)) > np.abs(values)
    bits = near.view(np.uint32)
    bits = np.where(inexact & away & np.isfinite(values), bits - 1, bits)
    odd = np.where(inexact & np.isfinite(values), bits | 1, bits)
    return odd.astype(np.uint32).view(np.float32)


# Data


def sample(rng: np.random.Generator, dtype: str, size: int) -> np.ndarray:
    """Stored values of a dtype: half random bits, half ordinary numbers, and the specials."""
    if dtype == "bool":
        return rng.integers(0, 2, size).astype(bool)
    kind = storage(dtype)
    bits = rng.integers(0, 256, size * kind.itemsize, dtype=np.uint8).view(kind)
    if dtype in INTEGERS:
        small = rng.integers(0 if dtype in UNSIGNED else -20, 20, size).astype(kind)
        info = np.iinfo(kind)
        specials = np.array([0, 1, info.min, info.max], kind)
    else:
        small = encode((rng.standard_normal(size) * 8).astype(np.float32), dtype)
        specials = special_floats(dtype)
    values = np.where(rng.random(size) < 0.5, bits, small)
    if dtype in FLOATS:
        values = quiet(values, dtype)
    places = rng.permutation(size)[: specials.size]
    values[places] = specials[: places.size]
    return values


def quiet(values: np.ndarray, dtype: str) -> np.ndarray:
    """Signalling NaNs made quiet: which of the two an operation gives is nobody's promise."""
    bits = {"float16": 9, "bfloat16": 6, "float32": 22, "float64": 51}
    kind = f"u{values.itemsize}"
    quieted = (values.view(kind) | np.array(1 << bits[dtype], kind)).view(values.dtype)
    return np.where(np.isnan(decode(values, dtype)), quieted, values)


def special_floats(dtype: str) -> np.ndarray:
    """NaN, infinities, zeros, halves, and the ends of the normal and denormal ranges."""
    info = {"bfloat16": np.finfo(np.float32)}.get(dtype) or np.finfo(dtype)
    numbers = [0.0, 0.5, 1.0, 1.5, 2.5, np.inf, float(info.smallest_normal)]
    if dtype == "bfloat16":
        numbers += [float(info.smallest_normal) / 128, 2.0**127 * (2 - 2**-7)]
    else:
        numbers += [float(info.smallest_subnormal), float(info.max)]
    both = np.array([*numbers, *(-x for x in numbers), np.nan], np.float64)
    return encode(both if dtype != "bfloat16" else both.astype(np.float32), dtype)


def ordinary(rng: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Stored values without surprises: no NaN, no overflow in a sum of a few thousand."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return rng.integers(0 if dtype in UNSIGNED else -50, 50, shape).astype(dtype)
    return encode(rng.standard_normal(shape).astype(np.float32), dtype)


# Comparison


def assert_same(got: np.ndarray, want: np.ndarray, dtype: str, context: Sequence[Any] = ()) -> None:
    """Bit for bit, but that any NaN equals any other. `context`: arrays shown on failure."""
    assert got.shape == want.shape
    assert got.dtype == want.dtype == storage(dtype), (got.dtype, want.dtype)
    bits = f"u{got.dtype.itemsize}"
    same = np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(want).view(bits)
    if dtype in FLOATS:
        same |= np.isnan(decode(got, dtype)) & np.isnan(decode(want, dtype))
    if not same.all():
        place = tuple(int(i) for i in np.argwhere(~same)[0])
        inputs = [np.asarray(x)[place] for x in context]
        raise AssertionError(
            f"{(~same).sum()} of {same.size} {dtype} differ, first at {place}: got "
            f"{decode(got, dtype)[place]!r}, want {decode(want, dtype)[place]!r}, inputs {inputs}"
        )


def assert_number(
    got: np.ndarray, want: np.ndarray, dtype: str, context: Sequence[Any] = ()
) -> None:
    """As `assert_same`, but 0 equals -0."""
    zero = (decode(got, dtype) == 0) & (decode(want, dtype) == 0)
    without = (np.where(zero, 0, x).astype(got.dtype) for x in (got, want))
    assert_same(*without, dtype, context)


def truncated_division(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a // b rounded towards zero, as C has it."""
    quotient = a // b
    return quotient + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
