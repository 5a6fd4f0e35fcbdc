"""What kernels print while they run, read back line by line."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import kernels_of

KERNELS = """
@proton.jit
def values(x_ptr, HEX: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_print("x", tl.load(x_ptr + offs), hex=HEX)

@proton.jit
def several(x_ptr, n, f):
    offs = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.device_print("  both:", tl.load(x_ptr + offs), n, f, 7, n > 0)

@proton.jit
def plain():
    print("100% of", tl.program_id(2))
    print("done")

@proton.jit
def titles(x_ptr, TITLE: tl.constexpr):
    tl.device_print(TITLE)
    tl.device_print(TITLE, tl.load(x_ptr + tl.arange(0, 2)))

@proton.jit
def addresses(x_ptr):
    tl.device_print("at", x_ptr, x_ptr + tl.arange(0, 2))

@proton.jit
def sometimes(x_ptr, n):
    for i in range(n):
        value = tl.load(x_ptr + i)
        if value > 2:
            print("large", value)

@proton.jit
def fflush(x_ptr):
    print("x", tl.load(x_ptr))
"""
LINE = re.compile(r"pid \((\d+), (\d+), (\d+)\) idx \(([\d, ]*)\) ?(.*)")
WARP = 32  # threads of a GPU that run together


def launch(name: str, capfd: pytest.CaptureFixture[str], grid: Any, *args: Any, **kw: Any) -> Any:
    """The lines that a launch prints: (program, index, text)."""
    getattr(kernels_of(KERNELS), name)[grid](*args, **kw)
    found = []
    for line in printed(capfd):
        match = LINE.fullmatch(line)
        assert match is not None, line
        index = tuple(int(i) for i in match[4].split(", ") if i)
        found.append((tuple(map(int, match.groups()[:3])), index, match[5]))
    return found


def printed(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The lines, each once: what is no block each thread of a GPU's program prints."""
    lines = capfd.readouterr().out.splitlines()
    for line in lines:
        count = lines.count(line)
        assert count == 1 or (count % WARP == 0 and re.search(r"idx \([\d, ]+\)", line) is None)
    return list(dict.fromkeys(lines))


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_a_line_for_each_element(
    rng: np.random.Generator, dtype: str, capfd: pytest.CaptureFixture[str]
) -> None:
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 16, dtype=dtype, endpoint=True)
    x[:2] = info.min, info.max
    lines = launch("values", capfd, (2,), x, HEX=False, BLOCK=8)
    want = [((n // 8, 0, 0), (n % 8,), f"x: {value}") for n, value in enumerate(x)]
    assert sorted(lines) == sorted(want)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
def test_integers_in_hex(
    rng: np.random.Generator, dtype: str, capfd: pytest.CaptureFixture[str]
) -> None:
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, 8, dtype=dtype, endpoint=True)
    x[0] = -1 if info.min else 1
    bits = info.bits
    lines = launch("values", capfd, (1,), x, HEX=True, BLOCK=8)
    shown = [f"x: 0x{int(value) & ((1 << bits) - 1):0{bits // 4}x}" for value in x]
    assert [text for _, _, text in lines] == shown


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats(rng: np.random.Generator, dtype: str, capfd: pytest.CaptureFixture[str]) -> None:
    x = rng.standard_normal(8).astype(dtype)
    x[:2] = np.inf, np.nan
    lines = launch("values", capfd, (1,), x, HEX=False, BLOCK=8)
    assert [text for _, _, text in lines] == [f"x: {float(value):f}" for value in x]


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_in_hex(
    rng: np.random.Generator, dtype: str, capfd: pytest.CaptureFixture[str]
) -> None:
    info = np.finfo(dtype)
    x = rng.standard_normal(16).astype(dtype)
    x[:8] = 0, -0.0, 1, -1.5, info.max, info.tiny, info.smallest_subnormal, -np.inf
    lines = launch("values", capfd, (2,), x, HEX=True, BLOCK=8)
    texts = [text.removeprefix("x: ") for _, _, text in sorted(lines)]
    assert [float.fromhex(text) for text in texts] == list(map(float, x))
    assert np.signbit(float.fromhex(texts[1]))
    normal = [text for text, value in zip(texts, x, strict=True) if 1e-300 < abs(value) < np.inf]
    assert all(re.fullmatch(r"-?0x1(\.[0-9a-f]*[1-9a-f])?p[+-]\d+", text) for text in normal), texts
    assert (texts[0], texts[3], texts[7]) == ("0x0p+0", "-0x1.8p+0", "-inf")


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [tl.float8e5, tl.float8e4nv, tl.bfloat16])
def test_floats_that_numpy_lacks(dtype: Any, capfd: pytest.CaptureFixture[str]) -> None:
    bits = {tl.float8e5: 0x3E, tl.float8e4nv: 0x3C, tl.bfloat16: 0x3FC0}[dtype]  # each is 1.5
    x = np.full(4, bits, np.uint8 if dtype.itemsize == 1 else np.uint16)
    lines = launch("values", capfd, (1,), proton.reinterpret(x, dtype), HEX=False, BLOCK=4)
    assert [text for _, _, text in lines] == ["x: 1.500000"] * 4


@pytest.mark.interpreted
def test_several_values(rng: np.random.Generator, capfd: pytest.CaptureFixture[str]) -> None:
    x = rng.integers(-9, 9, (2, 4), dtype=np.int32)
    lines = launch("several", capfd, (1,), x, -3, 0.25)
    blocks = [
        ((0, 0, 0), (i, j), f" both: (operand 0) {x[i, j]}") for i in range(2) for j in range(4)
    ]
    scalars = ["(operand 1) -3", "(operand 2) 0.250000", "(operand 3) 7", "(operand 4) 0"]
    assert lines == blocks + [((0, 0, 0), (), f" both: {text}") for text in scalars]


def test_python_s_print_and_text_alone(capfd: pytest.CaptureFixture[str]) -> None:
    kernels_of(KERNELS).plain[(1, 1, 3)]()
    lines = printed(capfd)
    numbers = [f"pid (0, 0, {z}) idx () 100% of: {z}" for z in range(3)]
    assert sorted(lines) == sorted(numbers + [f"pid (0, 0, {z}) done" for z in range(3)])


# What Triton prints: the blank in front of it, what it ends in before a value, and without one.
TITLES = {
    "": (": ", ""), "x": (" x: ", "x"), "x:": (" x: ", "x:"), "x ": (" x: ", "x "),
    "x: ": (" x: ", " x: "), "x  ": (" x : ", " x  "), "x::": (" x:: ", " x::"),
    " x": (" x: ", " x"), "two words": (" two words: ", " two words"), "50%": (" 50%: ", " 50%"),
}  # fmt: skip


@pytest.mark.interpreted
@pytest.mark.parametrize("title", TITLES)
def test_titles(title: str, capfd: pytest.CaptureFixture[str]) -> None:
    before_values, alone = TITLES[title]
    kernels_of(KERNELS).titles[(1,)](np.array([7, -8], np.int32), title)
    wanted = [f" idx ({n}){before_values}{value}" for n, value in enumerate((7, -8))]
    assert sorted(printed(capfd)) == sorted(f"pid (0, 0, 0){text}" for text in (alone, *wanted))


@pytest.mark.interpreted
def test_addresses(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(2)
    lines = launch("addresses", capfd, (1,), x)
    at = [f"at: (operand {n}) 0x{x.ctypes.data + 8 * k:016x}" for n, k in ((0, 0), (1, 0), (1, 1))]
    assert [text for _, _, text in lines] == at


def test_prints_in_loops_and_branches_keep_their_order(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.array([1, 5, 2, 3, 9], np.int32)
    lines = launch("sometimes", capfd, (1,), x, x.size)
    assert [text for _, _, text in lines] == ["large: 5", "large: 3", "large: 9"]


def test_a_kernel_may_have_the_name_of_a_c_function_that_it_calls(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines = launch("fflush", capfd, (1,), np.ones(1, np.int32))
    assert [text for _, _, text in lines] == ["x: 1"]


@proton.jit
def prints_places(x_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.device_print("x", tl.load(x_ptr + i * N + j))


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (2, 16), (16, 128)])
def test_indices_line_up(capfd: Any, interpret: bool, shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = np.arange(rows * columns, dtype=np.int32)
    with proton.knobs.scope(interpret=interpret):
        prints_places[(1,)](x, rows, columns)
    lines = capfd.readouterr().out.splitlines()
    wide, narrow = len(str(rows - 1)), len(str(columns - 1))
    wanted = [
        f"pid (0, 0, 0) idx ({i:{wide}}, {j:{narrow}}) x: {i * columns + j}"
        for i in range(rows)
        for j in range(columns)
    ]
    assert sorted(lines) == sorted(wanted)  # threads of a GPU print in any order


@proton.jit
def shows_types(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.static_print("", x, tl.load(x_ptr), x_ptr, x[:, None].to(tl.float32), sep="|")


def test_static_print_shows_tensors_as_triton_does(capfd: pytest.CaptureFixture[str]) -> None:
    with proton.knobs.scope(always_compile=True):
        proton.jit(shows_types.fn).warmup(tl.int16, 8)
    said = "|int16[constexpr[8]]|int16[]|pointer<int16>[]|fp32[constexpr[8], constexpr[1]]\n"
    assert capfd.readouterr().out == said
