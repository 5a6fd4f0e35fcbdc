"""Where a run is written: through links, into pipes and devices, over files of all modes."""

import os
import stat
import threading
from pathlib import Path

import pytest
from synthetic import gpu_run, random_run

from proton.base import progress
from proton.trace import files
from proton.trace.files import replacing
from proton.viewer import Run
from tests import processes

SUFFIXES = (".proton", ".pftrace", ".pftrace.gz", ".json", ".csv")


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pipe_gets_what_a_file_gets_and_stays_a_pipe(tmp_path: Path, suffix: str) -> None:
    whole, pipe = Run(random_run(4)), tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    whole.save(pipe)
    reader.join(60)
    assert found == [whole.save(tmp_path / f"file{suffix}").read_bytes()]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


@pytest.mark.parametrize("suffix", [".pftrace", ".csv", ".speedscope.json", ".html"])
def test_what_takes_long_counts_all_of_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """So that an estimate of the rest ends where the work does."""
    counters: list[progress.StepCounter] = []
    step = progress.StepCounter.step

    def counted(self: progress.StepCounter, count: int = 1) -> None:
        counters.extend([self] if self not in counters else [])
        step(self, count)

    monkeypatch.setattr(progress.StepCounter, "step", counted)
    Run(gpu_run(4)).save(tmp_path / f"run{suffix}")
    assert counters
    assert [(c.done, c.total) for c in counters] == [(c.total, c.total) for c in counters]


def test_a_pipe_that_nobody_reads_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READER_WAIT", 0.05)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(OSError, match=r"start its reader first.*pipe\.csv"):
        Run(random_run(4)).save(tmp_path / "pipe.csv")
    assert left(tmp_path) == {"pipe.csv"}


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "far"
    folder.mkdir()
    target, link, second = folder / "target.csv", tmp_path / "link.csv", tmp_path / "second.csv"
    if there:
        target.write_text("old")
    link.symlink_to(Path("far") / "target.csv")
    second.symlink_to("link.csv")
    Run(random_run(4)).save(second)
    assert second.is_symlink()
    assert link.is_symlink()
    assert target.read_text().startswith("kind,")
    assert left(folder) == {"target.csv"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666, 0o755])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(mode)
    if os.access(path, os.W_OK):
        Run(random_run(4)).save(path)
        assert path.read_text() != "old"
    else:
        with pytest.raises(PermissionError, match=r"a\.csv"):
            Run(random_run(4)).save(path)
        assert path.read_text() == "old"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert left(tmp_path) == {"a.csv"}


def test_a_new_file_has_the_mode_that_open_gives(tmp_path: Path) -> None:
    (tmp_path / "open").touch()
    Run(random_run(4)).save(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "open").stat().st_mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    os.chown(path, 12345, 54321)
    Run(random_run(4)).save(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def fail_halfway(path: Path) -> None:
    with replacing(path) as draft:
        draft.write(b"half of it")
        raise KeyboardInterrupt


def test_a_block_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("old")
    for path in (pipe, file, tmp_path / "new"):
        with pytest.raises(KeyboardInterrupt):
            fail_halfway(path)
    assert file.read_text() == "old"
    assert left(tmp_path) == {"pipe", "file"}


def test_devices_and_folders(tmp_path: Path) -> None:
    whole = Run(random_run(4))
    assert whole.save("/dev/null", "csv") == Path("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    for path in (tmp_path, tmp_path / "none" / "a.csv", tmp_path / "loop.csv", "/dev/full"):
        with pytest.raises(OSError) as caught:
            whole.save(path, "csv")
        assert caught.value.filename == str(path)
    long = tmp_path / f"{'x' * 251}.csv"  # as long as a name may be
    assert whole.save(long).stat().st_size


def test_standard_output_gets_the_content_where_it_goes(tmp_path: Path) -> None:
    whole = Run(random_run(4))
    run = whole.save(tmp_path / "run.proton")
    command = ["-m", "proton.viewer.cli", "export", run, "/dev/stdout", "--format", "csv"]
    wanted = whole.save(tmp_path / "wanted.csv").read_bytes()
    reader, writer = os.pipe()
    with open(reader, "rb") as pipe:
        parts: list[bytes] = []
        thread = threading.Thread(target=lambda: parts.append(pipe.read()))
        thread.start()
        piped = processes.python(*command, stdout=writer)
        os.close(writer)
        thread.join()
    assert (piped.returncode, parts) == (0, [wanted])
    with open(tmp_path / "out", "wb") as file:
        assert processes.python(*command, stdout=file.fileno()).returncode == 0
    assert (tmp_path / "out").read_bytes() == wanted
