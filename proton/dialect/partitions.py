"""Roles of groups of warps, and the functions by which groups share a thread of a CPU (their code:
proton/backends/cpu/partition_code.py)."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

# A partition's state has room for any `ucontext_t` of glibc (aarch64: 4560 bytes).
HEAD_BYTES = 64
PARTITION_BYTES = 8192


class Runtime(StrEnum):
    """All take the address of the scheduler first; all values are i64."""

    BEGIN = "proton_partitions_begin"  # ()
    START = "proton_partitions_start"  # (function, its argument)
    JOIN = "proton_partitions_join"  # ()
    INIT = "proton_mbarrier_init"  # (barrier, count)
    UPDATE = "proton_mbarrier_update"  # (barrier, arrivals, bytes to come)
    WAIT = "proton_mbarrier_wait"  # (barrier, phase): 1, or 0 where it would never end


def scheduler_bytes(partitions: int) -> int:
    """Of the state of so many partitions, the one that started the others included."""
    return HEAD_BYTES + partitions * PARTITION_BYTES


def role_names(functions: Sequence[str]) -> list[str]:
    """What groups that run these functions are called: `send`, or `send 0` and `send 1`."""
    count, seen = Counter(functions), Counter[str]()
    names = []
    for function in functions:
        names.append(f"{function} {seen[function]}" if count[function] > 1 else function)
        seen[function] += 1
    return names
