"""What came with Ampere (8.0): copies that go on, barriers in shared memory, `mma`."""

from dataclasses import dataclass

from proton.language.function import builtin
from proton.language.gluon.core import CACHE_MODIFIERS
from proton.language.gluon.layouts import plain
from proton.language.gluon.nvidia.ampere import async_copy as async_copy
from proton.language.gluon.nvidia.ampere import mbarrier as mbarrier

_PRIORITIES = ("evict_normal", "evict_unchanged", "evict_first", "evict_last")
_SECOND = ("evict_unchanged", "evict_first")


@dataclass(frozen=True)
class FractionalEvictionPolicy:
    """A hint to the second-level cache: `fraction` of the lines get the priority `primary`, the
    others `secondary`."""

    primary: str
    fraction: float
    secondary: str = "evict_unchanged"

    def __post_init__(self) -> None:
        for name in ("primary", "fraction", "secondary"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        if self.primary not in _PRIORITIES:
            raise ValueError(f"Unsupported L2 primary eviction priority {self.primary!r}")
        if self.secondary not in _SECOND:
            raise ValueError(f"Unsupported L2 secondary eviction priority {self.secondary!r}")
        fraction: object = self.fraction  # of any type: who calls need not be typed
        if not isinstance(fraction, int | float) or fraction == float("inf"):
            raise ValueError("L2 eviction fraction must be finite")
        if not 0 < self.fraction <= 1:
            raise ValueError("L2 eviction fraction must be in (0, 1]")


@dataclass(frozen=True)
class NVIDIACachePolicy:
    """How an access is cached; priorities of the caches are hints, which TMA takes for L2."""

    cache_modifier: str | None = None
    l1: str | None = None
    l2: FractionalEvictionPolicy | None = None
    l2_prefetch_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("cache_modifier", "l1", "l2", "l2_prefetch_size"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        if self.cache_modifier is not None:
            object.__setattr__(self, "cache_modifier", self.cache_modifier.removeprefix("."))
            if self.cache_modifier not in CACHE_MODIFIERS:
                raise ValueError(f"Unsupported cache modifier {self.cache_modifier!r}")
        if self.l1 is not None and self.l1 not in (*_PRIORITIES, "no_allocate"):
            raise ValueError(f"Unsupported L1 eviction priority {self.l1!r}")
        if self.l2 is not None and not isinstance(self.l2, FractionalEvictionPolicy):
            raise TypeError("l2 must be a FractionalEvictionPolicy")
        size: object = self.l2_prefetch_size
        if size is not None and (type(size) is not int or size not in (64, 128, 256)):
            raise ValueError("L2 prefetch size must be 64, 128, or 256")
        if all(part is None for part in vars(self).values()):
            raise ValueError(
                "CachePolicy requires a cache modifier, L1 policy, L2 policy, or L2 prefetch size"
            )


CachePolicy = NVIDIACachePolicy


@builtin
def mma_v2(a, b, acc, input_precision=None):
    """The dot of `a` and `b` on tensor cores, added to `acc`, which has an
    NVMMADistributedLayout of version [2, 0], and whose operands' layouts are of that."""
