"""Names of functions as symbols of object code.

A kernel may have any name that Python allows. As a symbol that name may be a C function's
(`malloc`), libdevice's (`__nv_exp`), a word of PTX (`WARP_SZ`), or no symbol at all (`größe`).
None of those others ends in `$`. What users see has the name as it was written.
"""

import hashlib
import re

END = "$"
# PTX ISA, "Identifiers": implementations take at least 1024 characters; a file's name has 255.
LONGEST = 200
_OTHER = re.compile(r"[^A-Za-z0-9_]|^[0-9]")
_CODE = re.compile(r"\$([0-9a-f]+)\$")


def mangled(name: str) -> str:
    """The symbol of a function, `add$`: letters, digits and `_` as they are, others as `$code$`."""
    plain = _OTHER.sub(lambda found: f"${ord(found[0]):x}$", name) or END
    if len(plain) > LONGEST:
        plain = plain[:LONGEST] + hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16]
    return plain + END


def unmarked(symbol: str) -> str:
    """What a symbol is in finished machine code, where no other is: that of a name of letters,
    digits and `_` is the name. Tools and other launchers go by it."""
    plain = symbol.removesuffix(END)
    return symbol if END in plain else plain


def written(symbol: str) -> str:
    """The name of a function by its symbol; a symbol that is none of ours as it is."""
    if not symbol.endswith(END):
        return symbol
    plain = symbol.removesuffix(END)
    return "" if plain == END else _CODE.sub(lambda found: chr(int(found[1], 16)), plain)
