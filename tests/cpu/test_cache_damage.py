"""Entries of the disk cache that were damaged: each is compiled anew with one warning, or right."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.compiling import cache

ROOT = Path(__file__).parents[2]
DAMAGED, REAL = 1000, 20
KEY, OTHER = "ab" + "0" * 62, "ab" + "1" * 62
FILES = {"ttir.mlir": b"module {}\n" * 20, "code.o": bytes(range(256)) * 4, "empty": b""}
DATA = {"written": [1], "symbol": "k", "profile": None, "text": "größe"}
OTHER_FILES = FILES | {"code.o": b"another one" * 20}
PROCESSES, KILLED = 32, 16

Damage = Callable[[random.Random, Path, Path], None]


def replace(path: Path, content: bytes | None) -> None:
    """Whatever is there becomes a file with this content, or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    if content is not None:
        path.write_bytes(content)


def pick(rng: random.Random, entry: Path) -> Path:
    return rng.choice(sorted(entry.iterdir()))


def flip(rng: random.Random, entry: Path, other: Path) -> None:
    path = pick(rng, entry)
    content = bytearray(path.read_bytes() or b"x")
    for _ in range(rng.choice((1, 1, 1, 5, 50))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def truncate(rng: random.Random, entry: Path, other: Path) -> None:
    path = pick(rng, entry)
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content) or 1)])


def append(rng: random.Random, entry: Path, other: Path) -> None:
    path = pick(rng, entry)
    path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 9)))


def garbage(rng: random.Random, entry: Path, other: Path) -> None:
    pick(rng, entry).write_bytes(rng.choice((b"", b"{}", b"null", b"\0" * 64, rng.randbytes(200))))


def swap(rng: random.Random, entry: Path, other: Path) -> None:
    """Two files of the entry, or one with that of another entry."""
    one = pick(rng, entry)
    two = pick(rng, entry) if rng.random() < 0.5 else other / one.name
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    if two.parent == entry:
        two.write_bytes(contents[0])


def delete(rng: random.Random, entry: Path, other: Path) -> None:
    for path in rng.sample(sorted(entry.iterdir()), rng.randrange(1, 6)):
        path.unlink()


def other_kind(rng: random.Random, entry: Path, other: Path) -> None:
    """A folder, a link, a pipe or a device in the place of a file."""
    path = pick(rng, entry)
    path.unlink()
    kind = rng.randrange(5)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    else:
        path.symlink_to(("/dev/zero", path.name, "absent")[kind - 2])


def whole_entry(rng: random.Random, entry: Path, other: Path) -> None:
    """The entry itself is a file, a link, or that of another kernel."""
    shutil.rmtree(entry)
    kind = rng.randrange(4)
    if kind == 0:
        entry.write_bytes(b"a file")
    elif kind == 1:
        entry.symlink_to(entry.name)
    elif kind == 2:
        shutil.copytree(other, entry)
    else:
        entry.mkdir()


def other_meta(rng: random.Random, entry: Path, other: Path) -> None:
    """Metadata that someone wrote by hand, with its right checksum."""
    meta = json.loads((entry / "meta.json").read_bytes())
    wrong = rng.choice((None, 7, "text", [], {}, {"code.o": 7}, {"code.o": ["x", "y"]}))
    if rng.random() < 0.3:
        meta = wrong
    else:
        name = rng.choice(("key", "files", "data"))
        meta[name] = None if wrong == {} or name == "data" else wrong
    text = json.dumps(meta).encode()
    if rng.random() < 0.2:  # deeper than Python follows
        text = b"[" * 100_000 + b"]" * 100_000
    (entry / "meta.json").write_bytes(text)
    (entry / "meta.sha256").write_text(cache._hash(text))


DAMAGES: tuple[Damage, ...] = (
    flip, truncate, append, garbage, swap, delete, other_kind, whole_entry, other_meta,
)  # fmt: skip


def entry_of(cache_dir: Path, key: str) -> Path:
    return cache_dir / cache.base32(key)


def test_a_thousand_damaged_entries(cache_dir: Path, session_seed: int) -> None:
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    rng = random.Random(session_seed)
    cache.store(OTHER, DATA, OTHER_FILES)
    entry, other = entry_of(cache_dir, KEY), entry_of(cache_dir, OTHER)
    found = {"anew": 0, "right": 0}
    for number in range(DAMAGED):
        cache.store(KEY, DATA, FILES)
        damage = DAMAGES[number % len(DAMAGES)]
        damage(rng, entry, other)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded = cache.load(KEY)
            texts = [str(warning.message) for warning in caught]
            cache.store(KEY, DATA, FILES)
            assert cache.load(KEY) == (DATA, FILES), damage
        assert loaded in (None, (DATA, FILES)), damage
        assert len(caught) == len(texts) == (loaded is None), (damage, texts)
        assert all(f"the cache entry {entry} is damaged" in text for text in texts)
        found["anew" if loaded is None else "right"] += 1
    assert found["right"] < DAMAGED / 10, "truncating nothing, or swapping a file with itself"
    assert sorted(path.name for path in entry.parent.iterdir()) == [entry.name, other.name]
    assert cache.load(OTHER) == (DATA, OTHER_FILES)


def fill(x_ptr, value, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), value)


def filled() -> tuple[Any, np.ndarray]:
    """A kernel that this process has not met, and what it writes."""
    x = np.zeros(16, np.float32)
    return proton.jit(fill)[(1,)](x, 2.5, N=16), x


def test_damaged_entries_of_real_kernels(cache_dir: Path, session_seed: int) -> None:
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    rng = random.Random(session_seed)
    kernel, _ = filled()
    entry = entry_of(cache_dir, kernel.key)
    other = entry.parent.parent / "copy"
    for number in range(REAL):
        shutil.copytree(entry, other, dirs_exist_ok=True)
        DAMAGES[number % 8](rng, entry, other)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kernel, x = filled()
        assert (x == 2.5).all()
        assert len(caught) == (not kernel.from_cache), [str(c.message) for c in caught]
    assert filled()[0].from_cache


def load_and_store(times: int) -> None:
    for _ in range(times):
        assert cache.load(KEY) is None
        cache.store(KEY, DATA, FILES)


def test_an_entry_that_cannot_be_replaced_is_a_warning(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another user wrote it: who may not read it compiles, and says once that it cannot
    keep the result."""
    cache.store(KEY, DATA, FILES)
    real = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).startswith(str(cache_dir)):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.warns(RuntimeWarning, match="kernels are not cached in") as caught:
        load_and_store(3)
    assert len(caught) == 1
    monkeypatch.undo()
    assert entry_of(cache_dir, KEY).exists()


@pytest.mark.parametrize("what", ["entry", "code.o", "meta.json"])
def test_what_others_may_write_is_not_loaded(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """... with one warning, and is not removed; where it is shared on purpose it is."""
    old = os.umask(0)
    try:
        cache.store(KEY, DATA, FILES)
    finally:
        os.umask(old)
    entry = entry_of(cache_dir, KEY)
    path = entry if what == "entry" else entry / what
    assert cache.load(KEY) == (DATA, FILES)  # a umask of 0 opens nothing to others
    path.chmod(path.stat().st_mode | 0o020)
    with pytest.warns(RuntimeWarning, match="other users may write") as caught:  # noqa: PT031
        assert cache.load(KEY) is None
        cache.store(KEY, DATA, FILES)
    assert len(caught) == 1
    monkeypatch.setenv("PROTON_CACHE_SHARED", "1")
    assert cache.load(KEY) == (DATA, FILES)


@pytest.mark.parametrize("owner", [0, 1, 4242])
def test_what_another_user_owns_is_not_loaded(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch, owner: int
) -> None:
    """But for root's, who can do everything anyway; `owner` is a user that this is not."""
    cache.store(KEY, DATA, FILES)
    real = os.fstat

    def owned(file: int) -> os.stat_result:
        status = list(real(file))
        status[4] = owner
        return os.stat_result(status)

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "fstat", owned)
    if owner == 0:
        assert cache.load(KEY) == (DATA, FILES)
        return
    with pytest.warns(RuntimeWarning, match=f"the user's with the number {owner}") as caught:
        assert cache.load(KEY) is None
    assert len(caught) == 1


OTHER_USER = """
import os, sys, warnings
import proton, proton.language as tl
from proton.compiling import cache
os.umask({umask})
key = {key!r}
cache.store(key, {{}}, {{"code.o": b"1"}})
os.setgid(65534)
os.setuid(65534)
print(cache.load(key))
cache.store(key, {{}}, {{"code.o": b"1"}})
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_entries_of_another_user(cache_dir: Path, tmp_path: Path, umask: int) -> None:
    """They are read where the umask of who wrote them allows it."""
    for path in (tmp_path, *tmp_path.parents):  # a run's folders are for their user alone
        if (mode := path.stat().st_mode) & 0o055 != 0o055:
            path.chmod(mode | 0o055)
    script = OTHER_USER.format(umask=umask, key=KEY)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PROTON_CACHE_DIR": str(cache_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if umask == 0o022:
        assert done.stdout == "({}, {'code.o': b'1'})\n"
        assert "damaged" not in done.stderr
    else:
        assert done.stdout == "None\n"
        assert done.stderr.count("RuntimeWarning: kernels are not cached in") == 1
        assert "Traceback" not in done.stderr


WRITER = """
import random, sys
from proton.compiling import cache
rng = random.Random(int(sys.argv[1]))
for _ in range(60):
    number = rng.randrange(8)
    key, files = f"{number:064x}", {"code.o": bytes([number]) * 50_000, "x": b"y" * number}
    found = cache.load(key)
    assert found in (None, ({"n": number}, files)), number
    if found is None or rng.random() < 0.2:
        import shutil
        if found is not None:
            shutil.rmtree(cache._folder(key), ignore_errors=True)
        cache.store(key, {"n": number}, files)
print("done")
"""


def test_many_processes_and_kills(cache_dir: Path, session_seed: int) -> None:
    """Half of them are killed in between; others remove entries. Nobody ever reads a wrong one."""
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    rng = random.Random(session_seed)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(rng.randrange(1 << 30))],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]
    for process in processes[:KILLED]:
        time.sleep(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
    for number, process in enumerate(processes):
        stdout, stderr = process.communicate(timeout=120)
        if number >= KILLED:
            assert (process.returncode, stdout) == (0, "done\n"), stderr
    for number in range(8):
        found = cache.load(f"{number:064x}")
        assert found is None or found[0] == {"n": number}
