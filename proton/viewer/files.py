"""Writing a file all at once or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends without an error."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with open(draft, "xb") as file:
        try:
            yield file
        except BaseException:
            draft.unlink()
            raise
    os.replace(draft, path)
