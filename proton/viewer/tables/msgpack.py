"""Trees of `triton.profiler` in MessagePack, by the package `msgpack`."""

from typing import Any

from proton.base.packages import need

_EXTRA = "MessagePack", "msgpack", "msgpack", 'output_format="hatchet" needs no package'


def packed(value: object) -> bytes:
    """A value's bytes. Raises MissingPackage without the package, TypeError for a value that
    MessagePack has not, and OverflowError for an integer of more than 64 bits."""
    need(*_EXTRA)
    import msgpack

    return bytes(msgpack.packb(value))


def unpacked(data: bytes) -> Any:
    """The value of some bytes; raises MissingPackage without the package, and ValueError for what
    is no value, or two."""
    need(*_EXTRA)
    import msgpack

    return msgpack.unpackb(data)
