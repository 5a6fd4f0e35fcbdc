"""Samples of program counters: in tables, in files, beside the source, against counts by hand."""

import base64
import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from faults import FILE, cubin, gpu, loop, offset_of, sampled
from test_archive import members, plain, repacked
from test_cli import call

from proton.base import nvidia_tools
from proton.base.errors import ProtonError
from proton.trace.errors import TraceFormatError
from proton.trace.join import join
from proton.trace.model import PCSamples, RawRun
from proton.viewer import Run

LOAD, STORE = "    x = load(p)", "    store(p, x)"


def raw_run(part: int = 80) -> RawRun:
    return sampled(gpu(loop()), "long_scoreboard", part)


@pytest.fixture
def viewer(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *words)


def test_samples_by_line_scope_instruction_and_reason() -> None:
    run = Run(raw_run())
    lines = run.pc_samples()
    assert lines[["file", "line", "scope", "samples", "share"]].values.tolist() == [
        [FILE, 14, "softmax", 80, 80.0],
        [FILE, 15, "store", 20, 20.0],
    ]
    assert run.pc_samples("reason")["reason"].tolist() == ["long_scoreboard", "selected"]
    both = run.pc_samples(["scope", "reason"])[["scope", "reason", "samples"]]
    assert both.values.tolist() == [["softmax", "long_scoreboard", 80], ["store", "selected", 20]]
    code = run.pc_samples("instruction")
    assert code["offset"].tolist() == [offset_of("LDG"), offset_of("STG")]
    assert [text.split(".")[0] for text in code["sass"]] == ["LDG", "STG"]
    awaited = run.pc_samples("instruction,reason,awaited").set_index("offset")["awaited"]
    assert awaited[offset_of("STG")] == ""  # it issues
    with pytest.raises(ProtonError, match="did you mean reason"):
        run.pc_samples("reasons")
    assert len(Run(gpu(loop())).pc_samples()) == 0


def test_the_innermost_scope_counts() -> None:
    raw = raw_run()
    text = [
        "with scope('outer'):",
        "    with scope('inner'):",
        "        x = load(p)",
        "    store(p)",
    ]
    raw.sources = {FILE: "\n" * 11 + "\n".join(text) + "\n"}
    (kernel,) = raw.kernels
    names = {12: "outer", 13: "outer/inner"}
    scopes = [replace(scope, path=names.get(scope.line, scope.path), work="", kind="slice",
                      line=scope.line if scope.line in names else 99)
              for scope in kernel.scopes]  # fmt: skip
    raw.kernels = [replace(kernel, scopes=tuple(scopes))]
    found = Run(raw).pc_samples("scope").set_index("scope")["samples"]
    assert found.to_dict() == {"outer/inner": 80, "outer": 20}


def with_samples(raw: RawRun, **change: object) -> RawRun:
    raw.kernels = [replace(of, pc_samples=replace(of.pc_samples, **change)) for of in raw.kernels]
    return raw


def test_joined_runs_add_samples() -> None:
    first, second, none = raw_run(80), raw_run(100), gpu(loop())
    (kernel,) = join([first, second]).kernels
    assert kernel.pc_samples is not None
    counts = {(offset, reason): n for (_, offset, reason), n in kernel.pc_samples.counts.items()}
    assert counts == {
        (offset_of("LDG"), "long_scoreboard"): 180,
        (offset_of("STG"), "selected"): 20,
    }
    assert (kernel.pc_samples.launches, kernel.pc_samples.dropped) == (4, 6)
    full = with_samples(raw_run(), overflows=2)
    assert join([full, second]).kernels[0].pc_samples.overflows == 2
    assert join([none, first]).kernels[0].pc_samples == first.kernels[0].pc_samples
    assert join([first, none]).kernels[0].pc_samples == first.kernels[0].pc_samples


def test_files_keep_them_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    saved = Run(raw_run()).save(tmp_path / "a.proton")
    assert plain(Run.load(saved).raw) == plain(raw_run())
    contents = members(saved.read_bytes())
    for change in (
        {"rows": [[0, 1, 0]]},
        {"rows": [[1, 0, 0, 1]]},
        {"rows": [[0, -16, 0, 1]]},
        {"rows": [[0, 16, 2, 1]]},
        {"rows": [[0, 16, 0, -1]]},
        {"rows": [[0, 16, 0, 0]]},
        {"rows": [[0, 16, 0, 1 << 62], [0, 32, 0, 1 << 62]]},
        {"rows": [[0, 16, 0, 1.5]]},
        {"functions": [1]},
        {"more": 1},
    ):
        document = json.loads(contents["run.json"])
        document["kernels"][0]["pc_samples"][0] |= change
        damaged = contents | {"run.json": json.dumps(document).encode()}
        with pytest.raises(TraceFormatError, match="pc_samples"):
            Run.load(repacked(tmp_path / "b.proton", damaged))


def test_the_command_lists_them(viewer, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = Run(raw_run()).save(tmp_path / "a.proton")
    status, out, err = viewer("samples", file)
    assert (status, "3 samples of program counters dropped" in err) == (0, True)
    assert max(map(len, out.splitlines())) <= 80
    (line,) = [line for line in out.splitlines() if "long_scoreboard" in line]
    assert line.split()[-2:] == ["80", "80.0"]
    _, out, _ = viewer("samples", file, "--by", "scope", "--json")
    assert {row["scope"]: row["samples"] for row in json.loads(out)} == {"softmax": 80, "store": 20}
    assert "and 1 more" in viewer("samples", file, "--limit", "1")[1]
    assert viewer("samples", file, "--by", "scopes")[0] == 2
    empty = Run(gpu(loop())).save(tmp_path / "b.proton")
    status, _, err = viewer("samples", empty)
    assert (status, "pc_sampling=1024" in err) == (2, True)
    short = Run(with_samples(raw_run(), rows=())).save(tmp_path / "c.proton")
    status, _, err = viewer("samples", short)
    assert (status, "ended before one was taken" in err) == (2, True)


def test_code_is_disassembled_once(monkeypatch) -> None:
    """For the samples, by line and by instruction, and for the page."""
    nvidia_tools._disassembled.cache_clear()
    starts, start = [], subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **b: starts.append(a) or start(*a, **b))
    run = Run(raw_run())
    for by in ("line", "instruction"):
        assert len(run.pc_samples(by)) == 2
    assert '"isSourceFirst": true' in run.source().page()
    assert len(starts) == 1


def test_a_full_buffer_is_told(viewer, tmp_path) -> None:
    some = Run(with_samples(raw_run(), overflows=1, dropped=0)).save(tmp_path / "a.proton")
    for command in ("samples", "summary", "explain", "source"):
        status, out, err = viewer(command, some)
        assert status == 0
        assert "1 of 2 launches filled the GPU's buffer" in " ".join((out + err).split())
    none = Run(with_samples(raw_run(), overflows=2, rows=())).save(tmp_path / "b.proton")
    status, _, err = viewer("samples", none)
    assert (status, "buffer of samples was full: a larger pc_sampling" in err) == (2, True)


def test_the_source_has_them_beside_times(viewer, tmp_path) -> None:
    raw = raw_run()
    # Line 15 has no time, and is there for its samples alone.
    (kernel,) = raw.kernels
    raw.kernels = [replace(kernel, scopes=tuple(
        replace(scope, line=14) if scope.line == 15 else scope for scope in kernel.scopes
    ))]  # fmt: skip
    file = Run(raw).save(tmp_path / "a.proton")
    _, out, _ = viewer("source", file)
    text = out.splitlines()
    at = next(n for n, line in enumerate(text) if line.endswith("store(p, x)"))
    assert text[at + 1].split() == ["20.0", "%", "of", "samples:", "selected", "100", "%"]
    _, out, _ = viewer("source", file, "--line", "14", "--level", "samples")
    (line,) = [line for line in out.splitlines() if "LDG" in line]
    assert line.split()[1] == "80"
    page = Run(raw).source().page()
    assert '"isSourceFirst": true' in page


def test_no_samples_are_no_rows() -> None:
    run = Run(raw_run(0))
    (samples,) = [kernel.pc_samples for kernel in run.kernels]
    more = samples.counts + Counter()
    more["matmul", offset_of("LDG"), "wait"] = 0
    rest = {"cycles": 1024, "launches": 1, "dropped": 0, "overflows": 0,
            "cubin": samples.cubin}  # fmt: skip
    assert PCSamples.of(more, **rest).rows == samples.rows
    assert run.pc_samples()["line"].tolist() == [15]


@pytest.mark.parametrize("code", ["", "abc", "\xe9", base64.b64encode(b"no cubin").decode()])
def test_code_that_is_none_is_said(viewer, tmp_path, code: str) -> None:
    raw = raw_run()
    raw.kernels = [replace(of, code={"cubin": code}, pc_samples=replace(of.pc_samples, cubin=code))
                   for of in raw.kernels]  # fmt: skip
    file = Run(raw).save(tmp_path / "a.proton")
    status, _, err = viewer("samples", file)
    assert (status, "nvdisasm failed" in err or "not in base 64" in err) == (2, True)
    for words in (["explain"], ["source"], ["source", "--line", "14"]):
        assert viewer(words[0], file, *words[1:])[0] == 0
    assert "samples are not shown" in viewer("source", file)[1]
    assert '"isSourceFirst": true' in Run.load(file).source().page()


def test_names_may_be_any_bytes(viewer, tmp_path) -> None:
    """Of a file in another encoding, and of a reason."""
    raw = sampled(gpu(loop()), "wa\x1b[31mit\n", 80)
    (kernel,) = raw.kernels
    code = base64.b64decode(cubin()).replace(b"matmul.py", b"m\xe4tmul.py")
    samples = replace(kernel.pc_samples, cubin=base64.b64encode(code).decode())
    raw.kernels = [replace(kernel, pc_samples=samples)]
    file = Run(raw).save(tmp_path / "a.proton")
    for words in (["samples"], ["samples", "--json"], ["source"], ["explain"]):
        status, out, _ = viewer(words[0], file, *words[1:])
        assert (status, "\x1b" in out) == (0, False)
    assert Run.load(file).pc_samples()["file"].tolist() == ["/src/m\ufffdtmul.py"] * 2


def test_without_a_disassembler_the_source_says_so(viewer, tmp_path, monkeypatch) -> None:
    file = Run(raw_run()).save(tmp_path / "a.proton")
    monkeypatch.setenv("PROTON_NVDISASM", "/nowhere/nvdisasm")
    _, out, _ = viewer("source", file)
    assert "samples are not shown: nvdisasm names /nowhere/nvdisasm" in out
    status, _, err = viewer("samples", file)
    assert (status, "/nowhere/nvdisasm" in err) == (2, True)
    assert "/nowhere/nvdisasm" in viewer("explain", file)[1]
