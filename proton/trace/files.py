"""Writing a file all at once or not at all."""

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

READER_WAIT, READER_POLL = 10.0, 0.01  # s that a pipe may be without a reader, and between looks


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file whose content is at `path` when the block ends without an error.

    A regular file is replaced as a whole and keeps its mode, and its owner where that is allowed;
    a symbolic link stays, and what it points to is replaced. A pipe or a device is written to.
    Raises OSError with the name that the caller gave, also where the block has no room to write.
    """
    try:
        with _replacing(path) as file:
            yield file
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """The same; what has no name in the system's error has none here."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        found = None
    target = path.resolve()
    if found is None or (stat.S_ISREG(found.st_mode) and _is_there(target, found)):
        with _replacing_file(path, target, found) as file:
            yield file
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with tempfile.TemporaryFile() as whole:  # what reads a pipe sees all of it or nothing
        yield cast(BinaryIO, whole)
        whole.seek(0)
        with _open_special(path, stat.S_ISFIFO(found.st_mode)) as special:
            shutil.copyfileobj(whole, special)


def _open_special(path: Path, is_pipe: bool) -> BinaryIO:
    """A pipe or a device, to write to; a pipe that nobody reads is waited for, but not for ever."""
    if not is_pipe:
        return open(path, "wb")
    until = time.monotonic() + READER_WAIT
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                reason = f"nobody reads this pipe (for {READER_WAIT:.0f} s); start its reader first"
                raise OSError(errno.ENXIO, reason, str(path)) from None
            time.sleep(READER_POLL)
            continue
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "wb")


@contextlib.contextmanager
def _replacing_file(path: Path, target: Path, found: os.stat_result | None) -> Iterator[BinaryIO]:
    """The same for what is a regular file or nothing yet; `path` leads to `target`."""
    if found is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    draft = target.with_name(f".proton-{secrets.token_hex(8)}")
    mode = 0o666 if found is None else 0o600  # of a private file nobody else sees the draft
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            if found is not None:
                _keep_rights(file.fileno(), found)
        os.replace(draft, target)
    except BaseException:
        draft.unlink()
        raise


def _is_there(target: Path, found: os.stat_result) -> bool:
    """Whether the file has that name; an open one that was deleted has none (`/dev/stdout`)."""
    try:
        return os.path.samestat(os.stat(target), found)
    except OSError:
        return False


def _keep_rights(descriptor: int, found: os.stat_result) -> None:
    """Gives a file the owner, if that is allowed, and the mode of another one."""
    if not hasattr(os, "fchown"):  # Windows has neither
        return
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, found.st_uid, found.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
