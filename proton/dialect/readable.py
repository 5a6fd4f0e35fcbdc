"""What MLIR cannot read without harm is refused before it reads it.

MLIR takes the iterator types of a `linalg.generic` in its own form for strings, and does not ask:
`iterator_types = [3]` ends the process, or asks for more memory than there is.
"""

import re

from proton.base.errors import CompilationError, SourceSpan

_ITERATORS = re.compile(r'\biterator_types"?\s*=\s*(?:\[([^\]]*)\]|#)')
_STRINGS = re.compile(r'\s*(?:"[^"\n]*"\s*(?:,\s*"[^"\n]*"\s*)*)?')
_TYPED = re.compile(r"\s*#linalg\.iterator_type<\w+>\s*(?:,\s*#linalg\.iterator_type<\w+>\s*)*")


def check_readable(text: str, file: str) -> None:
    """Raises CompilationError, with its place in the file, for text that MLIR must not be given."""
    for found in _ITERATORS.finditer(text):
        types, start = found[1], found.start()
        if "//" in text[text.rfind("\n", 0, start) + 1 : start]:
            continue
        if types is not None and _STRINGS.fullmatch(types):
            continue
        is_generic = text[: max(text.rfind("linalg.generic", 0, start), 0)].endswith('"')
        if types is not None and is_generic and _TYPED.fullmatch(types):
            continue
        line = text.count("\n", 0, start) + 1
        column = start - text.rfind("\n", 0, start) - 1
        end = column + len(found[0])
        span = SourceSpan(
            file=file, line=line, column=column, end_line=line, end_column=end,
            lines=text.splitlines(),
        )  # fmt: skip
        raise CompilationError("iterator_types of linalg.generic must be a list of strings", span)
