"""The layout of the profile buffer against sizes computed by hand, and by struct."""

import json
import struct
from functools import cached_property

import numpy as np
import pytest

from proton.trace.model import PayloadField, Scope
from proton.trace.profile import KernelProfile, ScopeTable
from proton.trace.scope_path import ScopePath, fused, is_name
from proton.trace.strategy import Strategy
from proton.trace.wire import Block, Field, RecordSchema, chunks


@pytest.mark.parametrize(
    "units, capacity, slots, bits, size",
    [
        (1, 1, 0, 64, 192),  # 128 + 8, padded to 144, + 24 = 168
        (1, 16, 0, 64, 576),  # 144 + 16 * 24 = 528
        (1, 0, 2, 64, 192),
        (1, 2, 2, 64, 256),  # 144 + 2 * 40 = 224
        (4, 8, 0, 32, 704),  # 128 + 4 * 8 + 4 * 8 * 16 = 672
        (3, 5, 1, 32, 576),  # 128 + 3 * 8 = 152, padded to 160, + 3 * 5 * 24 = 520
    ],
)
def test_the_size_of_a_block(units: int, capacity: int, slots: int, bits: int, size: int) -> None:
    assert Block(units, capacity, RecordSchema(slots, bits)).bytes == size


class WithInstructions(RecordSchema):
    """A record that has another counter's value at both edges."""

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        more = Field("instructions_start", 64), Field("instructions_end", 64)
        return *RecordSchema(self.payload_slots, self.clock_bits).fields, *more


def test_a_record_has_room_for_another_counter() -> None:
    schema = WithInstructions(1, 32)
    rows = [(10 + n, 20 + n, n, 7, 1 << 40 | n, 1 << 50 | n, 99 + n) for n in range(3)]
    data = b"".join(struct.pack("<4I3Q", *row) for row in rows)
    assert (schema.bytes, schema.dtype.itemsize) == (40, 40)
    assert schema.stores == [
        (0, ("start", "end")),
        (8, ("tag", "iteration")),
        *((16 + 8 * n, (name,)) for n, name in enumerate(list(schema.offsets)[4:])),
    ]
    words = np.frombuffer(bytes(8) + data, "<u8")
    index = np.array([11, 1, 6])
    columns = schema.columns(words, index)
    expected = [rows[2], rows[0], rows[1]]
    for number, field in enumerate(schema.fields):
        assert columns[field.name].tolist() == [row[number] for row in expected]
    assert schema.payload(words, index).tolist() == [[row[6]] for row in expected]
    assert np.frombuffer(data, schema.dtype)["instructions_end"].tolist() == [r[5] for r in rows]
    assert Block(2, 3, schema).bytes == 384  # 144 + 2 * 3 * 40 = 384


def test_chunks_of_a_slab_that_was_too_small() -> None:
    """Two chunks of 48 bytes, one of 64, and one that found no room."""

    def chunk(program: int, size: int) -> bytes:
        return struct.pack("<IIQIIQ", program, 1, 2, 3, size, 0) + bytes([program]) * (size - 32)

    body = chunk(5, 48) + chunk(6, 48) + chunk(7, 64)
    taken, room = (len(body) + 48) // 16, len(body) // 16 + 1
    slab = np.frombuffer(struct.pack("<IIQ", taken, room, 0) + body + bytes(16), np.uint8)
    found = [(heads["program"].tolist(), records.tolist()) for heads, records in chunks(slab)]
    assert found == [([5, 6], [[5] * 16, [6] * 16]), ([7], [[7] * 32])]


def test_a_profile_survives_the_cache() -> None:
    payload = (PayloadField(name="n", kind="int"), PayloadField(name="x", kind="float"))
    scope = Scope(name="b", path=ScopePath("a/b"), payload=payload, file="k.py", line=3)
    profile = KernelProfile(
        strategy=Strategy.FLUSH,
        block=Block(4, 16, RecordSchema(2, 32)),
        table=ScopeTable(scopes=(scope,), optimized_out=("a",)),
        unit_warps=2,
        ring=64,
        sampled_units=5,
        sample_programs=3,
    )
    assert KernelProfile.from_plain(json.loads(json.dumps(profile.to_plain()))) == profile


def test_scope_paths() -> None:
    path = ScopePath.of(["a", "", "b", "c"])
    assert (path, path.name, path.first, path.rest) == ("a/b/c", "c", "a", "b/c")
    assert path.parts == ("a", "b", "c")
    assert [path.below(outer) for outer in ("", "a", "a/b", "a/b/c", "a/bx")] == [
        "a/b/c", "b/c", "c", "", "a/b/c",
    ]  # fmt: skip
    assert path.inside("x") == "x/a/b/c"
    assert ScopePath("").parts == ()
    assert fused([path, ScopePath("x/y"), ScopePath("z")]) == "a: b: c + x: y + z"
    assert fused([path, ScopePath("a/y"), ScopePath("a/b/d"), path]) == "b: c + y + b: d"
    assert fused([path, ScopePath("a/b/c/d")]) == "c + c: d"
    assert [is_name(text) for text in ("a", "a b", "", "a/b", "a + b", "a+b")] == [
        True, True, False, False, False, True,
    ]  # fmt: skip
