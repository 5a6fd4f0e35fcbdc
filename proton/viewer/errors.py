"""The one error that a bad file or buffer can cause."""

from proton.base.errors import ProtonError


class TraceFormatError(ProtonError):
    """Bytes that break a rule of a format; the message says where, which rule and which value."""
