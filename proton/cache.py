"""Compiled kernels on disk: one folder a key, written at once, read by any number of processes.

The key hashes everything that the code depends on, so an entry never changes and there is
nothing to lock: a writer fills a temporary folder and renames it into place; who comes second
finds the name taken and drops its own. An entry whose checksums do not match its files is
removed and counts as absent.
"""

import functools
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

from proton.base.knobs import knobs

_META = "meta.json"


@functools.cache
def compiler_version() -> str:
    """A hash of Proton's own source: a changed compiler makes other code."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in ("viewer", "tools", "trace"):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    digest.update((root / "trace" / "wire.py").read_bytes())
    return digest.hexdigest()


def make_key(parts: dict[str, Any]) -> str:
    """The key of what `parts` describe."""
    text = json.dumps(parts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _folder(key: str) -> Path:
    return Path(knobs.cache_dir) / key[:2] / key


def load(key: str) -> tuple[dict[str, Any], dict[str, bytes]] | None:
    """(metadata, files by name) of an entry; None where there is none that is whole."""
    folder = _folder(key)
    if not (folder / _META).exists():
        return None
    try:
        meta = json.loads((folder / _META).read_text())
        files = {name: (folder / name).read_bytes() for name in meta["sha256"]}
    except (OSError, ValueError, KeyError, TypeError):
        _remove_damaged(folder)
        return None
    if any(hashlib.sha256(files[name]).hexdigest() != h for name, h in meta["sha256"].items()):
        _remove_damaged(folder)
        return None
    return meta["data"], files


def _remove_damaged(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def store(key: str, data: dict[str, Any], files: dict[str, bytes]) -> None:
    """Writes an entry; where another process was faster, its entry stays.

    A cache that cannot be written (a read-only home, a full disk) is a warning, once: the
    kernel runs, and the next process compiles it again.
    """
    try:
        _store(key, data, files)
    except OSError as problem:
        _warn_once(f"kernels are not cached in {knobs.cache_dir}: {problem}")


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _store(key: str, data: dict[str, Any], files: dict[str, bytes]) -> None:
    folder = _folder(key)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not (folder / _META).exists():
        _remove_damaged(folder)  # what is left of an entry
    temporary = Path(tempfile.mkdtemp(prefix=f"tmp.{os.getpid()}.", dir=folder.parent))
    try:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        (temporary / _META).write_text(json.dumps({"sha256": hashes, "data": data}))
        os.rename(temporary, folder)
    except OSError:
        if not folder.exists():  # not the race, but a real problem (full disk, no permission)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
