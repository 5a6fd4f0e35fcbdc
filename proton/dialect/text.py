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
    (b"#ttg.linear<", b"#linear"),
    (b"#ttg.shared<", b"#shared"),
    (b"!ttg.memdesc<", b"!memdesc"),
    (b"!ttg.mutable_memdesc<", b"!mutable_memdesc"),
)


def module_text(module: "Module | Operation", *, with_locations: bool = False) -> str:
    """What MLIR prints of a module, with aliases. Printing verifies it first, for ops that are not
    valid have no text of their own."""
    return with_aliases(module.operation.get_asm(enable_debug_info=with_locations))


def module_file(module: "Module | Operation", *, with_locations: bool) -> bytes:
    """The same of a module that is known to be valid, as a file has it."""
    return _with_aliases(
        module.operation.get_asm(
            binary=True, assume_verified=True, enable_debug_info=with_locations
        )
    )


def with_aliases(text: str) -> str:
    """The text with an alias for each layout, and each type of shared memory."""
    return _with_aliases(text.encode()).decode()


def _with_aliases(text: bytes) -> bytes:
    definitions: list[bytes] = []
    for beginning, alias in _ALIASED:
        names: dict[bytes, bytes] = {}
        parts, end = [], 0
        while (start := text.find(beginning, end)) >= 0:
            parts.append(text[end:start])
            end = _closing(text, start + len(beginning))
            whole = text[start:end]
            if whole not in names:
                names[whole] = alias + (b"%d" % len(names) if names else b"")
            parts.append(names[whole])
        text = b"".join([*parts, text[end:]])
        definitions += [name + b" = " + whole + b"\n" for whole, name in names.items()]
    return b"".join(definitions) + text


def _closing(text: bytes, start: int) -> int:
    """The place behind the bracket that closes one before `start`."""
    depth = 1
    while depth:
        end = text.index(b">", start) + 1
        depth += text.count(b"<", start, end) - 1
        start = end
    return start
