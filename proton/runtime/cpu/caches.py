"""The caches of the processor, as Linux describes them."""

from functools import cache
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20}
_UNKNOWN_CORE = 1 << 20  # bytes of a core's own cache that the system does not tell
_UNKNOWN_LAST = 32 << 20  # bytes of a last-level cache that the system does not tell


def core_cache() -> int:
    """Bytes of the largest cache that a core has to itself, its second level."""
    return _levels().get(2, _UNKNOWN_CORE)


def last_level_cache() -> int:
    """Bytes of the processor's largest cache."""
    return max(_levels().values(), default=_UNKNOWN_LAST)


@cache
def _levels() -> dict[int, int]:
    """The bytes of data that each level has; none where the system does not tell."""
    return levels_below(_CACHES)


def levels_below(folder: Path) -> dict[int, int]:
    """The bytes of data that each level has whose cache has a folder `index0`, `index1`, ... in
    this one, with Linux's files `level`, `type` and `size`."""
    levels = {}
    for index in folder.glob("index*"):
        try:
            texts = {name: (index / name).read_text().strip() for name in ("level", "type", "size")}
        except OSError:
            continue
        if texts["type"] != "Instruction":
            levels[int(texts["level"])] = _bytes(texts["size"])
    return levels


def _bytes(text: str) -> int:
    """The number that `1024K` stands for."""
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1] in _UNITS else int(text)
