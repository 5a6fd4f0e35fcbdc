"""Compiled kernels on disk: one folder a key, written at once, read by any number of processes.

The key hashes everything that the code depends on, so an entry never changes and there is
nothing to lock: a writer fills a temporary folder and renames it into place; who comes second
finds the name taken and drops its own.

`meta.json` has the sizes and hashes of the files and the metadata, `meta.sha256` its own hash. An
entry that is not what these say is a warning; it is removed and counts as absent. One that may not
be read (another user's) is absent, too.

Whoever can write an entry runs code as those who load it. So an entry is written for its user alone
to change, and one that another user owns (but for root), or may write, is not loaded, with one
warning, unless `PROTON_CACHE_SHARED` says that the cache is shared on purpose.
"""

import base64
import contextlib
import errno
import functools
import hashlib
import json
import os
import secrets
import shutil
import stat
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import proton
from proton.base.knobs import knobs

_META, _META_HASH = "meta.json", "meta.sha256"
# Of proton/trace, what code depends on; the rest only reads runs.
RECORDED = frozenset(
    f"trace/{name}.py"
    for name in (
        "instrumentation",
        "model",
        "profile",
        "scope_path",
        "strategy",
        "iterations",
        "wire",
    )
)
_WITHOUT_CODE = ("compat", "tools", "trace", "viewer")
_MOST_META = 1 << 26  # bytes: an assertion's message or a scope's name is all that grows


def sources() -> dict[str, Path]:
    """The modules that compiled code depends on, by their paths in the package."""
    root = Path(proton.__path__[0])
    paths = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.py"))}
    without = tuple(f"{folder}/" for folder in _WITHOUT_CODE)
    return {n: path for n, path in paths.items() if not n.startswith(without) or n in RECORDED}


@functools.cache
def compiler_version() -> str:
    """A hash of Proton's own source: a changed compiler makes other code."""
    digest = hashlib.sha256()
    for name, path in sources().items():
        digest.update(name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def make_key(parts: dict[str, object]) -> str:
    """The key of what `parts` describe."""
    text = json.dumps(parts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def base32(key: str) -> str:
    """A hash, in base 16, as the name of a folder: Triton's, where torch looks for a kernel's files
    to keep them with the graph that launches it."""
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def _folder(key: str, within: str = "") -> Path:
    return Path(knobs.cache_dir) / within / base32(key)


# What it is when something else has the name of a folder, or of a file in it. Other problems (no
# permission, too many open files) say nothing about the entry.
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP)
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)


# What reading metadata of another form raises: whoever wrote it by hand gave it its checksum.
_NO_META = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class _Untrusted(Exception):
    """An entry is another user's, or another user may write it; the text says which."""


class _Damage(Exception):
    """An entry is not what was written; the text says what is wrong."""


def load(key: str, within: str = "") -> tuple[dict[str, Any], dict[str, bytes]] | None:
    """(metadata, files by name) of an entry; None where there is none that is whole. Entries that
    are no kernels lie `within` a folder of the cache."""
    folder = _folder(key, within)
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as problem:
        if problem.errno in _NO_FOLDER and folder.parent.is_dir():
            _remove_damaged(folder, str(problem))
        return None
    try:
        _check_trust(folder.name, os.fstat(opened))
        return _read_entry(opened, key)
    except _Untrusted as problem:
        _warn_once(
            f"kernels in the cache {knobs.cache_dir} are not loaded, and compiled anew: {problem}. "
            "PROTON_CACHE_SHARED=1 takes them all the same"
        )
        return None
    except (_Damage, OSError, *_NO_META) as problem:
        is_unreadable = isinstance(problem, OSError) and problem.errno not in _NO_FILE
        # Not here any more: another process has removed it, and may have put a new one there.
        if not is_unreadable and _is_still(folder, opened):
            _remove_damaged(folder, str(problem))
        return None
    finally:
        os.close(opened)


def _check_trust(name: str, status: os.stat_result) -> None:
    """Raises _Untrusted for a folder or file that others than this user and root could have
    written."""
    if knobs.cache_shared or not hasattr(os, "geteuid"):
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise _Untrusted(f"{name} is the user's with the number {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _Untrusted(f"other users may write {name}")


def has(key: str) -> bool:
    """True if there is an entry, whole or not."""
    return (_folder(key) / _META).exists()


def paths(key: str, names: Mapping[str, str]) -> dict[str, str]:
    """Paths of an entry's files by what they are called in `names`, and of its metadata as `json`;
    none where there is no entry."""
    if not has(key):
        return {}
    return {name: str(_folder(key) / file) for name, file in {**names, "json": _META}.items()}


def _read_entry(folder: int, key: str) -> tuple[dict[str, object], dict[str, bytes]]:
    """The entry in an open folder; raises _Damage where it is not what was written."""
    text = _read(folder, _META, None)
    if _read(folder, _META_HASH, None) != _hash(text).encode():
        raise _Damage(f"{_META} does not have its checksum")
    meta = json.loads(text)  # as it was written, so it has what _store puts there
    if meta["key"] != key:
        raise _Damage("it is another kernel's")
    if not isinstance(meta["data"], dict):
        raise _Damage(f"{_META} has no data")
    files = {}
    for name, (size, digest) in meta["files"].items():
        files[name] = _read(folder, name, size)
        if _hash(files[name]) != digest:
            raise _Damage(f"{name} does not have its checksum")
    return meta["data"], files


def _read(folder: int, name: str, size: int | None) -> bytes:
    """A plain file of that size; one that would block or never end is not read."""
    file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise _Damage(f"{name} is no plain file")
        _check_trust(name, status)
        if status.st_size > _MOST_META if size is None else status.st_size != size:
            raise _Damage(f"{name} has {status.st_size} bytes")
        with open(file, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(file)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_still(folder: Path, opened: int) -> bool:
    """True if a path still leads to a folder that was opened there."""
    try:
        return os.path.samestat(os.stat(folder), os.fstat(opened))
    except OSError:
        return False


def _remove_damaged(folder: Path, why: str) -> None:
    """Removes an entry at once for all who look for it, and says so."""
    aside = _temporary(folder.parent)
    try:
        os.rename(folder, aside)
    except OSError:
        aside = folder  # it may not be moved; what goes, goes
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            aside.unlink()
    warnings.warn(
        f"the cache entry {folder} is damaged ({why}): it is compiled anew",
        RuntimeWarning,
        stacklevel=2,
    )


def store(key: str, data: dict[str, object], files: dict[str, bytes], within: str = "") -> None:
    """Writes an entry; where another process was faster, its entry stays.

    A cache that cannot be written (a read-only home, a full disk, an entry of another user) is a
    warning, once: the kernel runs, and the next process compiles it again.
    """
    try:
        _store(key, data, files, within)
    except OSError as problem:
        _warn_once(f"kernels are not cached in {knobs.cache_dir}: {problem}")


_warned: set[str] = set()  # the caches that a warning has named


def _warn_once(text: str) -> None:
    """Warns of a cache; a second problem of the same one is most often the first one's."""
    if (folder := str(knobs.cache_dir)) not in _warned:
        _warned.add(folder)
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def _temporary(parent: Path) -> Path:
    """A name for a folder of this process."""
    return parent / f"tmp.{os.getpid()}.{secrets.token_hex(8)}"


def _store(key: str, data: dict[str, object], files: dict[str, bytes], within: str) -> None:
    if load(key, within) is not None:  # compiled anew all the same
        return
    folder = _folder(key, within)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(folder.parent)
    closed = 0 if knobs.cache_shared else stat.S_IWGRP | stat.S_IWOTH
    temporary.mkdir(0o777 & ~closed)  # who may read it is for the umask to say
    try:
        for name, content in files.items():
            _write(temporary / name, content, 0o666 & ~closed)
        listed = {name: (len(content), _hash(content)) for name, content in files.items()}
        meta = json.dumps({"key": key, "files": listed, "data": data}).encode()
        _write(temporary / _META, meta, 0o666 & ~closed)
        _write(temporary / _META_HASH, _hash(meta).encode(), 0o666 & ~closed)
        try:
            os.rename(temporary, folder)
        except OSError:
            if load(key, within) is None:  # not another process's; what was damaged is gone now
                os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Writes a new file, with what the umask leaves of the mode."""
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(content)
