"""What a message calls the language: rules that Gluon shares with `tl` say `tl`, and an author of
Gluon may not have that name."""

import re
from types import ModuleType

from proton.language import gluon
from proton.language.function import DeviceFunction

_OURS = re.compile(r"\b(?:tl|gl)\.(?=\w)")
_DEFAULT = "gl"


def as_named_in(fn: DeviceFunction, text: str) -> str:
    """A rule or a hint with the name that a function in Gluon has for its language; another
    function's as it is, and that of one which has `tl`, too."""
    known = fn.__globals__
    if not fn.has_layouts or isinstance(known.get("tl"), ModuleType):
        return text
    name = next((name for name, value in known.items() if value is gluon), _DEFAULT)
    return _OURS.sub(f"{name}.", text)
