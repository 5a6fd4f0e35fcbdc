"""MessagePack: bytes that its specification names, random values, and what is no value."""

import random
from typing import Any

import pytest

from proton.viewer.tables.msgpack import packed, unpacked

# From the specification's table of formats: the shortest form of each value.
BYTES: list[tuple[Any, str]] = [
    *[(None, "c0"), (False, "c2"), (True, "c3"), (0, "00"), (127, "7f"), (128, "cc80")],
    *[(255, "ccff"), (256, "cd0100"), (65536, "ce00010000"), (1 << 32, "cf0000000100000000")],
    *[((1 << 64) - 1, "cf" + 8 * "ff"), (-1, "ff"), (-32, "e0"), (-33, "d0df"), (-128, "d080")],
    *[(-129, "d1ff7f"), (-32769, "d2ffff7fff"), (-(1 << 31) - 1, "d3ffffffff7fffffff")],
    *[(-(1 << 63), "d38000000000000000"), (1.5, "cb3ff8000000000000"), ("", "a0")],
    *[("é", "a2c3a9"), (31 * "x", "bf" + 31 * "78"), (32 * "x", "d920" + 32 * "78")],
    *[(256 * "x", "da0100" + 256 * "78"), (65536 * "x", "db00010000" + 65536 * "78")],
    *[([], "90"), ([1, [2]], "92019102"), (15 * [0], "9f" + 15 * "00")],
    *[(16 * [0], "dc0010" + 16 * "00"), (65536 * [0], "dd00010000" + 65536 * "00")],
    *[({}, "80"), ({"a": {"b": 1}}, "81a16181a16201")],
    ({str(n): n for n in range(16)}, "de0010" + "".join(f"a1{48 + n:02x}{n:02x}" for n in range(10))
     + "".join(f"a2313{n - 10}{n:02x}" for n in range(10, 16))),
]  # fmt: skip


@pytest.mark.parametrize("value, text", BYTES, ids=lambda of: str(of)[:20])
def test_the_bytes_of_a_value(value: Any, text: str) -> None:
    assert packed(value).hex() == text
    assert unpacked(bytes.fromhex(text)) == value


def test_a_float_of_32_bits_is_read() -> None:
    assert unpacked(bytes.fromhex("ca3fc00000")) == 1.5


def test_random_values_come_back() -> None:
    draw = random.Random(7)

    def value(depth: int) -> Any:
        kinds = [
            lambda: draw.choice([None, True, False]),
            lambda: draw.randint(-(1 << 63), (1 << 64) - 1) >> draw.randrange(64),
            lambda: draw.uniform(-1e9, 1e9),
            lambda: draw.randrange(300) * draw.choice("aé\U0001f600"),
            lambda: [value(depth + 1) for _ in range(draw.randrange(20))],
            lambda: {str(n): value(depth + 1) for n in range(draw.randrange(20))},
        ]
        return draw.choice(kinds if depth < 3 else kinds[:4])()

    for _ in range(50):
        given = value(0)
        assert unpacked(packed(given)) == given


@pytest.mark.parametrize("text", ["", "d9", "d90561", "91", "8161", "cd01", "a561", 3000 * "91"])
def test_bytes_that_end_too_soon(text: str) -> None:
    with pytest.raises(ValueError, match="ends within a value, or lies too deep"):
        unpacked(bytes.fromhex(text))


@pytest.mark.parametrize("text", ["c1", "c40161", "d40000", "c7010061"])
def test_bytes_of_what_json_has_not(text: str) -> None:
    with pytest.raises(ValueError, match=f"byte 0 is 0x{text[:2]}, of no value of JSON"):
        unpacked(bytes.fromhex(text))


def test_what_cannot_be_packed_or_goes_on() -> None:
    for number in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(OverflowError, match=f"up to 64 bits, got {number}"):
            packed(number)
    with pytest.raises(TypeError, match="no bytes: b'x'"):
        packed(b"x")
    with pytest.raises(ValueError, match="goes on behind its value, at byte 1"):
        unpacked(b"\x01\x02")
