"""Names as a terminal may see them: it obeys control characters, and text that changes direction
shows what is not there."""


def encodable(name: str) -> str:
    """The name of a file with an escape in the place of each byte that is no text (`\\udcff`):
    neither IR nor JSON has such bytes."""
    return name.encode(errors="backslashreplace").decode()


def printable(text: str) -> str:
    """The text with everything that has no shape of its own as an escape: `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
