"""Pins: empty inline assembly on data, which LLVM and the assembler move no arithmetic across."""

from typing import Any

from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, lowers

MOST_PINNED = 16  # words that one piece of inline assembly takes


@lowers("proton_gpu.pin")
def _pin(ctx: Lowering, site: Site) -> list[Any]:
    return [_pinned(site.operands[0])]


def _pinned(value: Any) -> Any:
    """The value through empty inline assembly, word by word."""
    if not v.is_vector(value.type):
        alone = v.insert(v.poison(v.vector(1, value.type)), value, 0)
        return v.extract(_pinned(alone), 0)
    words = v.to_elements(v.to_words(value))
    kept: list[Any] = []
    for first in range(0, len(words), MOST_PINNED):
        part = words[first : first + MOST_PINNED]
        outputs = ",".join(["=r"] * len(part))
        constraints = f"{outputs},{','.join(map(str, range(len(part))))}"
        if len(part) == 1:
            kept.append(v.assembly("", constraints, v.integer(32), *part, effects=True))
            continue
        type_ = v.struct([v.integer(32)] * len(part))
        result = v.assembly("", constraints, type_, *part, effects=True)
        kept += [v.member(result, number, v.integer(32)) for number in range(len(part))]
    return v.from_words(v.from_elements(kept), value.type)
