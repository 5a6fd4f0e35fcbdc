"""tl.rand and its relatives against philox in numpy, and that against the published vectors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import proton
from tests.cpu.harness import kernels_of
from tests.pairs import chosen

MASKS = {32: (1 << 32) - 1, 64: (1 << 64) - 1}
MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
WEYL = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}


def philox(counter: list[int], key: list[int], bits: int, rounds: int = 10) -> list[int]:
    """One counter in Python's integers; after the paper's figure, not after our kernel."""
    left = [counter[1], counter[3]]
    right = [counter[0], counter[2]]
    for number in range(rounds):
        keys = [(k + number * w) & MASKS[bits] for k, w in zip(key, WEYL[bits], strict=True)]
        products = [r * m for r, m in zip(right, MULTIPLIERS[bits], strict=True)]
        high = [p >> bits for p in products]
        low = [p & MASKS[bits] for p in products]
        # Each product's halves go to the other pair.
        right = [high[1] ^ left[0] ^ keys[0], high[0] ^ left[1] ^ keys[1]]
        left = [low[1], low[0]]
    return [right[0], left[0], right[1], left[1]]


# The known answers that come with Random123, the authors' implementation: of zeros, of ones, and
# of the digits of pi. (bits, counter, key, result)
PI = int(
    "243F6A8885A308D313198A2E03707344A4093822299F31D0"
    "082EFA98EC4E6C89452821E638D01377BE5466CF34E90C6C",
    16,
)


def _digits(bits: int) -> Iterator[int]:
    for number in range(384 // bits):
        yield PI >> (384 - bits * (number + 1)) & MASKS[bits]


PI_32, PI_64 = list(_digits(32)), list(_digits(64))
KNOWN: list[tuple[int, list[int], list[int], str]] = [
    (32, [0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (32, [MASKS[32]] * 4, [MASKS[32]] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (32, PI_32[:4], PI_32[4:6], "d16cfe09 94fdcceb 5001e420 24126ea1"),
    (64, [0] * 4, [0] * 2, "16554d9eca36314c db20fe9d672d0fdc d7e772cee186176b 7e68b68aec7ba23b"),
    (
        64,
        [MASKS[64]] * 4,
        [MASKS[64]] * 2,
        "87b092c3013fe90b 438c3c67be8d0224 9cc7d7c69cd777b6 a09caebf594f0ba0",
    ),
    (
        64,
        PI_64[:4],
        PI_64[4:6],
        "a528f45403e61d95 38c72dbd566e9788 a5a1610e72fd18b5 57bd43b5e52b7fe6",
    ),
]


@pytest.mark.parametrize(("bits", "counter", "key", "answer"), KNOWN)
def test_the_reference_gives_the_published_answers(
    bits: int, counter: list[int], key: list[int], answer: str
) -> None:
    assert philox(counter, key, bits) == [int(word, 16) for word in answer.split()]


KERNELS = """
@proton.jit
def words(counter_ptr, key_ptr, out_ptr, SIZE: tl.constexpr, ROUNDS: tl.constexpr):
    offs = tl.arange(0, SIZE)
    c0 = tl.load(counter_ptr + offs)
    c1 = tl.load(counter_ptr + SIZE + offs)
    c2 = tl.load(counter_ptr + 2 * SIZE + offs)
    c3 = tl.load(counter_ptr + 3 * SIZE + offs)
    k0 = tl.load(key_ptr + offs)
    k1 = tl.load(key_ptr + SIZE + offs)
    r0, r1, r2, r3 = tl.philox_impl(c0, c1, c2, c3, k0, k1, ROUNDS)
    tl.store(out_ptr + offs, r0)
    tl.store(out_ptr + SIZE + offs, r1)
    tl.store(out_ptr + 2 * SIZE + offs, r2)
    tl.store(out_ptr + 3 * SIZE + offs, r3)

@proton.jit
def seeded(offset_ptr, out_ptr, seed, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    offset = tl.load(offset_ptr + offs, mask=mask)
    a, b, c, d = tl.randint4x(seed, offset)
    tl.store(out_ptr + offs, a, mask=mask)
    tl.store(out_ptr + n + offs, b, mask=mask)
    tl.store(out_ptr + 2 * n + offs, c, mask=mask)
    tl.store(out_ptr + 3 * n + offs, d, mask=mask)
    tl.device_assert(tl.randint(seed, offset) == a, "randint is the first word of randint4x")

@proton.jit
def numbers(out_ptr, seed, n, NORMAL: tl.constexpr, FOUR: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if FOUR:
        if NORMAL:
            a, b, c, d = tl.randn4x(seed, offs)
        else:
            a, b, c, d = tl.rand4x(seed, offs)
        tl.store(out_ptr + offs * 4, a, mask=offs < n)
        tl.store(out_ptr + offs * 4 + 1, b, mask=offs < n)
        tl.store(out_ptr + offs * 4 + 2, c, mask=offs < n)
        tl.store(out_ptr + offs * 4 + 3, d, mask=offs < n)
    elif NORMAL:
        tl.store(out_ptr + offs, tl.randn(seed, offs), mask=offs < n)
    else:
        tl.store(out_ptr + offs, tl.rand(seed, offs), mask=offs < n)

@proton.jit
def uniform(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.uint_to_uniform_float(x), mask=offs < n)
"""


def kernel(name: str) -> Any:
    return getattr(kernels_of(KERNELS), name)


def fresh() -> np.random.Generator:
    seed = int(np.random.SeedSequence().entropy) % (1 << 32)
    print("seed", seed)
    return np.random.default_rng(seed)


@pytest.mark.interpreted
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("rounds", [10, 7, 1])
def test_words_are_those_of_the_reference(bits: int, rounds: int) -> None:
    rng, size = fresh(), 16
    kind = np.dtype(f"uint{bits}")
    counter = rng.integers(0, 1 << bits, (4, size), dtype=kind)
    key = rng.integers(0, 1 << bits, (2, size), dtype=kind)
    rows = [row for row in KNOWN if row[0] == bits]
    for column, (_, known_counter, known_key, _) in enumerate(rows):
        counter[:, column], key[:, column] = known_counter, known_key
    out = np.zeros((4, size), kind)
    kernel("words")[(1,)](counter, key, out, SIZE=size, ROUNDS=rounds)
    for column in range(size):
        want = philox(counter[:, column].tolist(), key[:, column].tolist(), bits, rounds)
        assert out[:, column].tolist() == want, (column, counter[:, column], key[:, column])


@pytest.mark.parametrize(
    "seed, kind",
    chosen(
        {
            "seed": [0, 1, 42, -1, (1 << 40) + 5, (1 << 64) - 2],
            "kind": ["int32", "uint32", "int64"],
        },
        least=1,
    ),
)
def test_a_seed_is_the_key_and_an_offset_the_counter(seed: int, kind: str) -> None:
    rng, n = fresh(), 37
    info = np.iinfo(kind)
    offsets = rng.integers(info.min, info.max, n, dtype=kind, endpoint=True)
    out = np.zeros((4, n), np.uint32)
    kernel("seeded")[(2,)](offsets, out, seed, n, BLOCK=32)
    key = [seed & MASKS[32], seed >> 32 & MASKS[32]]
    for column, offset in enumerate(offsets.tolist()):
        high = offset >> 32 & MASKS[32] if kind == "int64" else 0
        want = philox([offset & MASKS[32], high, 0, 0], key, 32)
        assert out[:, column].tolist() == want, (seed, offset)


@pytest.mark.parametrize("bits", [32, 64])
def test_uniform_numbers_lie_in_0_to_1(bits: int) -> None:
    rng, kind = fresh(), np.dtype(f"uint{bits}")
    words = rng.integers(0, 1 << bits, 1001, dtype=kind)
    top = 1 << (bits - 1)
    words[:6] = [0, 1, top - 1, top, top + 1, 2 * top - 1]
    out = np.zeros(words.size, np.float32)
    kernel("uniform")[(8,)](words, out, words.size, BLOCK=128)
    assert (out >= 0).all()
    assert (out < 1).all()
    signed = words.view(f"int{bits}")
    magnitude = np.where(signed < 0, ~signed, signed).astype(np.float64)
    np.testing.assert_allclose(out, magnitude / top, rtol=3e-7, atol=0)


@pytest.mark.parametrize("four", [False, True])
@pytest.mark.parametrize("normal", [False, True])
def test_numbers_have_their_distribution(normal: bool, four: bool) -> None:
    seed = int(fresh().integers(1 << 31))
    n = 1 << 16
    out = np.zeros(4 * n if four else n, np.float32)
    grid = (proton.cdiv(n, 1024),)
    kernel("numbers")[grid](out, seed, n, NORMAL=normal, FOUR=four, BLOCK=1024)
    again = np.zeros_like(out)
    kernel("numbers")[grid](again, seed, n, NORMAL=normal, FOUR=four, BLOCK=1024)
    np.testing.assert_array_equal(out, again)
    values = out.astype(np.float64)
    mean, variance = (0, 1) if normal else (0.5, 1 / 12)
    # Six standard errors: one run in 500 million fails by chance.
    spread = 6 / np.sqrt(values.size)
    assert abs(values.mean() - mean) < spread * np.sqrt(variance)
    fourth = np.mean((values - values.mean()) ** 4)
    assert abs(values.var() - variance) < spread * np.sqrt(fourth)
    assert len(np.unique(out)) > 0.9 * n
    assert np.isfinite(out).all()


def test_another_seed_gives_other_numbers() -> None:
    outs = [np.zeros(256, np.float32) for _ in range(2)]
    for seed, out in enumerate(outs):
        kernel("numbers")[(1,)](out, seed, 256, NORMAL=False, FOUR=False, BLOCK=256)
    assert (outs[0] != outs[1]).mean() > 0.99


@pytest.mark.parametrize("seed", [2.5, np.zeros(1, np.int32)], ids=["a float", "a pointer"])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(proton.CompilationError, match="a seed is an integer"):
        kernel("numbers")[(1,)](
            np.zeros(16, np.float32), seed, 16, NORMAL=False, FOUR=False, BLOCK=16
        )
