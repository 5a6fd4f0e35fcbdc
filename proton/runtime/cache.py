"""Files that libraries keep beside compiled kernels, as they do with `triton.runtime.cache`.

A key names a folder, below that of the kernels, whose cache is `proton.compiling.cache`.
"""

import json
import os
import secrets
from pathlib import Path

from proton.base.knobs import knobs
from proton.compiling.cache import base32 as _base32
from proton.compiling.cache import compiler_version

_FOLDER = "files"  # no kernel's: theirs are of upper case


def triton_key() -> str:
    """The key of compiled code besides the kernel: a hash of the compiler."""
    return compiler_version()


_base64 = _base32  # Triton's earlier name


class FileCacheManager:
    """The files of one key. A file is written at once: readers see all of it or nothing."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        if override or dump:
            raise ValueError("PROTON_DUMP_TO and PROTON_OVERRIDE_FROM dump and override IR")
        self.key = key
        self.cache_dir = str(Path(knobs.cache_dir) / _FOLDER / key)

    def _path(self, filename: str) -> Path:
        return Path(self.cache_dir) / filename

    def has_file(self, filename: str) -> bool:
        """True if there is such a file."""
        return self._path(filename).exists()

    def get_file(self, filename: str) -> str | None:
        """Its path; None where it is not there."""
        return str(self._path(filename)) if self.has_file(filename) else None

    def put(self, data: object, filename: str, binary: bool = True) -> str:
        """Writes a file, and gives its path."""
        path = self._path(filename)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = data if isinstance(data, bytes) else str(data).encode()
        temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        temporary.write_bytes(content)
        os.replace(temporary, path)
        return str(path)

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Notes which files belong together, by their names and paths."""
        return self.put(json.dumps({"child_paths": group}), _group_file(filename))

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group; None where there is no such group, or one of them is gone."""
        path = self.get_file(_group_file(filename))
        if path is None:
            return None
        paths: dict[str, str] = json.loads(Path(path).read_text())["child_paths"]
        return paths if all(Path(where).exists() for where in paths.values()) else None


CacheManager = FileCacheManager


def _group_file(filename: str) -> str:
    return f"__grp__{filename}"


def get_cache_manager(key: str) -> FileCacheManager:
    """The files of a hash in base 16."""
    return FileCacheManager(_base32(key))
