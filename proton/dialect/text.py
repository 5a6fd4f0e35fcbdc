"""The text of modules: layouts, and memory that has them, as aliases at the top.

    #linear = #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128]], []>
    ... tensor<256xf32, #linear> ...

MLIR's printer makes aliases of what a dialect asks it to, which the bindings have no hook for, so
the aliases are put into the text it printed. MLIR parses them as its own.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proton.dialect.mlir import Module, Operation

# What is abbreviated, and the alias that it gets: attributes first, as types have them.
_ALIASED = (
    ("#ttg.linear<", "#linear"),
    ("#ttg.shared<", "#shared"),
    ("!ttg.memdesc<", "!memdesc"),
    ("!ttg.mutable_memdesc<", "!mutable_memdesc"),
)


def module_text(
    module: "Module | Operation", *, with_locations: bool = False, is_valid: bool = False
) -> str:
    """What MLIR prints of a module, with aliases. Printing verifies it first, for ops that are not
    valid have no text of their own; where it is known that it `is_valid`, it does not."""
    asm = module.operation.get_asm(enable_debug_info=with_locations, assume_verified=is_valid)
    return with_aliases(asm)


def with_aliases(text: str) -> str:
    """The text with an alias for each layout, and each type of shared memory."""
    definitions: list[str] = []
    for beginning, alias in _ALIASED:
        names: dict[str, str] = {}
        parts, end = [], 0
        while (start := text.find(beginning, end)) >= 0:
            parts.append(text[end:start])
            end = _closing(text, start + len(beginning))
            whole = text[start:end]
            if whole not in names:
                names[whole] = f"{alias}{len(names) or ''}"
            parts.append(names[whole])
        text = "".join([*parts, text[end:]])
        definitions += [f"{name} = {whole}\n" for whole, name in names.items()]
    return "".join(definitions) + text


def _closing(text: str, start: int) -> int:
    """The place behind the bracket that closes one before `start`."""
    depth = 1
    while depth:
        end = text.index(">", start) + 1
        depth += text.count("<", start, end) - 1
        start = end
    return start
