"""Bytes of MessagePack: what the specification names, what is no value, and without the package."""

import importlib.util
from typing import Any

import pytest

from proton.base.packages import MissingPackage
from proton.viewer.tables.msgpack import packed, unpacked

# From the specification's table of formats.
BYTES: list[tuple[Any, str]] = [
    *[(None, "c0"), (True, "c3"), (-32, "e0"), (256, "cd0100"), (1.5, "cb3ff8000000000000")],
    *[("é", "a2c3a9"), ([1, [2]], "92019102"), ({"a": {"b": 1}}, "81a16181a16201")],
]


@pytest.mark.parametrize(("value", "text"), BYTES, ids=lambda of: str(of)[:20])
def test_the_bytes_of_a_value(value: Any, text: str) -> None:
    assert packed(value).hex() == text
    assert unpacked(bytes.fromhex(text)) == value


@pytest.mark.parametrize("text", ["", "91", "8161", "a561", "c1", "c0c0"])
def test_bytes_of_no_value(text: str) -> None:
    with pytest.raises(ValueError):
        unpacked(bytes.fromhex(text))


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for ask in (lambda: packed([]), lambda: unpacked(b"\xc0")):
        with pytest.raises(MissingPackage, match="proton-tile\\[msgpack\\]"):
            ask()
