"""The one error that a bad file or buffer can cause."""

from proton.base.errors import ProtonError
from proton.base.text import printable


class TraceFormatError(ProtonError):
    """Bytes that break a rule of a format; the message says where, which rule and which value.

    The file's own words are in it: a terminal gets them as text, whatever they are.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))
