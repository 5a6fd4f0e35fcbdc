"""The runs of a monitor in a folder: the newest, of so many bytes in all."""

import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path

from proton.base.errors import ProfileError, ProtonError, reason
from proton.trace import archive
from proton.trace.join import join
from proton.trace.model import Launch, RawRun

PREFIX = "monitor-"
PARTS = 8  # of the folder's bytes one file has no more than one part
LAUNCH_BYTES, SLICE_BYTES = 512, 256  # of a file for a launch besides its records, and a host scope


class Rotation:
    """Writes runs, `most` bytes in all, and deletes the oldest. Those of other monitors count,
    too: processes may share a folder."""

    def __init__(self, folder: Path, most: float) -> None:
        self.folder, self.most, self.most_of_file = folder, most, most / PARTS
        self.parts: list[RawRun] = []  # of the next file
        self.size = 0.0  # of that, at most
        self.bytes_written = self.written = self.lost = 0
        self.problem = ""  # of the last file that was lost

    def prepare(self) -> None:
        """Makes the folder. Raises ProfileError where nothing can be written there."""
        probe = self.folder / f".proton-{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ProfileError(f"{self.folder}: {reason(error)}") from None

    def add(self, raw: RawRun) -> None:
        """Keeps a part for the next file, and writes files that are full."""
        launches: list[Launch] = []
        host_bytes = SLICE_BYTES * len(raw.host)
        if self.size + host_bytes > self.most_of_file:
            self.write()
        if host_bytes > self.most_of_file:
            raw, host_bytes = replace(raw, host=[]), 0  # they are in the statistics
        self.size += host_bytes
        for launch in raw.launches:
            size = LAUNCH_BYTES + launch.buffer.size + sum(c.data.size for c in launch.chunks)
            if self.size + size > self.most_of_file:
                self._keep(replace(raw, launches=launches))
                self.write()
                raw, launches = replace(raw, host=[]), []
            launches.append(launch)
            self.size += size
        self._keep(replace(raw, launches=launches))

    def _keep(self, raw: RawRun) -> None:
        if raw.launches or raw.host:
            self.parts.append(raw)

    def write(self) -> None:
        """Writes what is kept, if anything is; a file that cannot be written, or is larger than one
        may be, is lost."""
        parts, self.parts, self.size = self.parts, [], 0.0
        if not parts:
            return
        raw = join(parts)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        number = self.written + self.lost
        path = self.folder / f"{PREFIX}{stamp}-{os.getpid()}-{number:06}{archive.SUFFIX}"
        try:
            self._make_room()
            archive.save(raw, path)
            size = path.stat().st_size
        except (OSError, ProtonError) as error:
            self.lost, self.problem = self.lost + 1, f"{path}: {reason(error)}"
            return
        if size > self.most_of_file:
            path.unlink(missing_ok=True)
            said = f"{size} bytes are more than an eighth of folder_mb"
            self.lost, self.problem = self.lost + 1, f"{path}: {said}"
            return
        self.written, self.bytes_written = self.written + 1, self.bytes_written + size

    def _make_room(self) -> None:
        """Deletes the oldest files, until another one has room."""
        files = []
        for path in self.folder.glob(f"{PREFIX}*{archive.SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):  # another process rotates, too
                found = path.stat()
                files.append((found.st_mtime_ns, path, found.st_size))
        total = sum(size for *_, size in files)
        for _, path, size in sorted(files):
            if total <= self.most - self.most_of_file:
                return
            path.unlink(missing_ok=True)
            total -= size
