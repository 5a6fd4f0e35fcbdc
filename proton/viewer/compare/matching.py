"""Which kernel of one side is which of the other: by name, and of several by closest constants; and
what tells several of one name apart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from proton.viewer.compare.samples import Group, Variant

# `x_ptr: *fp32, BLOCK=1024`: a comma separates where a name follows it, not inside a tuple
_PARTS = re.compile(r", (?=\w+(?:: |=))")


def arguments(signature: str) -> dict[str, str]:
    """The parts of a signature: the type or the constant of each argument by its name."""
    parts = (re.match(r"(\w+)(?:: |=)(.*)", part) for part in _PARTS.split(signature))
    return {part[1]: part[2] for part in parts if part}


def match(baseline: Sequence[Group], candidate: Sequence[Group]) -> dict[Variant, Variant]:
    """The baseline's variant for each of the candidate that has one: those that are equal, then
    of one name those whose arguments differ least."""
    before = list(dict.fromkeys(group.variant for group in baseline))
    after = list(dict.fromkeys(group.variant for group in candidate))
    found = {variant: variant for variant in after if variant in before}
    left = [variant for variant in before if variant not in found]
    pairs = [
        (distance(old.signature, new.signature), i, k)
        for i, new in enumerate(after)
        for k, old in enumerate(left)
        if new not in found and new.kernel == old.kernel
    ]
    taken: set[int] = set()
    for _, i, k in sorted(pairs):
        if after[i] not in found and k not in taken:
            found[after[i]] = left[k]
            taken.add(k)
    return found


def differences(groups: Iterable[Group]) -> dict[Variant, str]:
    """Of each variant of a kernel that has several: the arguments that not all of them have alike,
    `BLOCK=64`; its number among them where the arguments do not say it."""
    of_kernel: dict[str, dict[Variant, dict[str, str]]] = {}
    for group in groups:
        of_kernel.setdefault(group.variant.kernel, {})[group.variant] = arguments(
            group.variant.signature
        )
    found = {}
    for variants in of_kernel.values():
        names = dict.fromkeys(name for each in variants.values() for name in each)
        telling = [n for n in names if len({each.get(n) for each in variants.values()}) > 1]
        texts = [", ".join(f"{n}={each.get(n, 'none')}" for n in telling)
                 for each in variants.values()]  # fmt: skip
        for number, (variant, text) in enumerate(zip(variants, texts, strict=True), 1):
            if len(variants) > 1:
                found[variant] = text if texts.count(text) == 1 else f"#{number}"
    return found


def distance(one: str, other: str) -> float:
    """How far two signatures are apart: 1 for each argument that differs, less for numbers."""
    first, second = arguments(one), arguments(other)
    return sum(_apart(first.get(name), second.get(name)) for name in {*first, *second})


def _apart(one: str | None, other: str | None) -> float:
    if one == other:
        return 0.0
    try:
        far = abs(math.log2(float(one or "") / float(other or "")))
    except (ValueError, ZeroDivisionError):
        return 1.0
    return (1 + far) / (2 + far)  # more for 4 times than for twice, and never 1
