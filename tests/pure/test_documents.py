"""What `--json` prints is the JSON Schema that readers have, version by version."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import gpu, loop
from sides import folder, raw_run
from synthetic import gpu_run, random_run
from test_cli import call
from test_viewer_commands import odd_runs

from proton.viewer import Run
from proton.viewer.documents import FILE, SCHEMA

# Of each version: the SHA-256 of documents.json, without its layout. A change that a reader would
# notice counts SCHEMA up and adds a line; one that none would (a description) replaces the last.
VERSIONS = {
    1: "563cdb036397eb0c2b536164fb0cde748d44e9164ccdbacdd038d9c49943080b",
    2: "9bc8e4a2e75b2653e2c672d6b635a2f2b30e7f38c5525c6ce2d5cab3284a4532",
    3: "297be4b8b236659409412e74900f1fbe4f570981ba02b084238499d2d05d0cd2",
}
SCHEMAS: dict[str, Any] = json.loads(FILE.read_text())
DEFS = SCHEMAS["$defs"]
TYPES: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
KNOWN = {"$schema", "title", "description", "$ref", "oneOf", "anyOf", "const", "enum", "type",
         "properties", "required", "additionalProperties", "items", "$defs"}  # fmt: skip


def faults(value: Any, schema: Any, at: str = "$") -> Iterator[str]:
    """Where a value breaks a schema, of the keywords that documents.json has."""
    if isinstance(schema, bool):
        yield from () if schema else (f"{at} is not in the schema",)
        return
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        yield from faults(value, DEFS[schema["$ref"].removeprefix("#/$defs/")], at)
    for word, right in (("oneOf", lambda n: n == 1), ("anyOf", lambda n: n > 0)):
        found = [list(faults(value, each, at)) for each in schema.get(word, ())]
        if found and not right(sum(not each for each in found)):
            yield min(found, key=len)[0]
    if "const" in schema and value != schema["const"]:
        yield f"{at} is {value!r}, not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is {value!r}, none of {schema['enum']}"
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(TYPES[kind](value) for kind in kinds):
        yield f"{at} is {value!r}, no {' or '.join(kinds)}"
        return
    if isinstance(value, dict):
        named = schema.get("properties", {})
        yield from (f"{at}.{name} is missing" for name in schema.get("required", ())
                    if name not in value)  # fmt: skip
        for name, part in value.items():
            of = named.get(name, schema.get("additionalProperties", True))
            yield from faults(part, of, f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, part in enumerate(value):
            yield from faults(part, schema["items"], f"{at}[{number}]")


def test_a_version_stays_what_it_is() -> None:
    text = json.dumps(SCHEMAS, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert list(VERSIONS) == list(range(1, SCHEMA + 1))
    assert VERSIONS[SCHEMA] == digest, f"documents.json has changed: now it is {digest}"
    kinds = [DEFS[each["$ref"].removeprefix("#/$defs/")] for each in SCHEMAS["oneOf"]]
    assert all(kind["properties"]["schema"] == {"const": SCHEMA} for kind in kinds)


def test_the_validator_finds_faults() -> None:
    good = {"schema": SCHEMA, "kind": "diff", "stat": "p50", "changes": []}
    assert not list(faults(good, SCHEMAS))
    for wrong in ({"schema": 1}, {"changes": [{}]}, {"stat": None}, {"more": 1}, {"kind": "x"}):
        assert list(faults({**good, **wrong}, SCHEMAS)), wrong


def test_every_command_keeps_to_the_schema(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = {"cpu": random_run(3), "gpu": gpu_run(4), "loop": gpu(loop(stages=2))}
    runs |= {name: make() for name, make in odd_runs().items()}
    files = {name: Run(raw).save(tmp_path / f"{n}.proton")
             for n, (name, raw) in enumerate(runs.items())}  # fmt: skip
    add = ("add", "x: *fp32")
    sides = [
        folder(tmp_path / name, [
            raw_run({add: {"load": [ns + i] * 2, name: [5]}, ("copy", ""): {"all": [900 + i]}},
                    2 * i + k)
            for i in range(6)])
        for k, (name, ns) in enumerate((("was", 1000), ("is", 1200)))
    ]  # fmt: skip
    rules = ("--hold", "kernel=add,scope=load,max_regression=5%,reference=copy/all",
             "--hold", "scope=load,stat=count,max_ns=3", "--hold", "max_lost=0",
             "--hold", "scope=load,max_ns=9,where=BLOCK=7")  # fmt: skip
    calls: list[tuple[str, tuple[object, ...]]] = [
        ("diff", ("diff", *sides)),
        ("diff", ("diff", *sides, "--reference", "copy/all", "--warps")),
        ("diff", ("diff", files["cpu"], files["cpu"], "--stat", "count")),
        ("check", ("check", sides[1], "--baseline", sides[0], *rules)),
        ("check", ("check", sides[1], "--hold", "scope=load,max_ns=2000")),
        ("against", ("explain", files["loop"], "--against", files["gpu"])),
    ]
    for file in files.values():
        calls += [(kind, (kind, file)) for kind in ("summary", "stats", "explain")]
    for more in (("--metric", "dur_ns"), ("--metric", "cycles", "--by", "scope,program,launch"),
                 ("--tree",), ("--kind", "launch", "--by", "kernel"), ("--pieces",)):  # fmt: skip
        calls.append(("stats", ("stats", files["gpu"], *more)))
    for kind, words in calls:
        _, out, err = call(monkeypatch, capsys, *words, "--json")
        document = json.loads(out)
        assert document["kind"] == kind, err
        assert not list(faults(document, SCHEMAS)), words


def test_statistics_say_what_they_are_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No two tables call different numbers `mean` without saying so: scopes are less the cost of
    recording, launches as measured."""
    run = Run(gpu_run(4))
    file = run.save(tmp_path / "run.proton")
    summary = json.loads(call(monkeypatch, capsys, "summary", file, "--json")[1])
    for name, metric, by, kind in (("scopes", "corrected_ns", ["kernel", "scope"], "scope"),
                                   ("launches", "dur_ns", ["kernel"], "launch")):  # fmt: skip
        wanted = run.stats(by, metric, kind)["mean"].tolist()
        assert summary[name]["metric"] == metric
        assert [row["mean"] for row in summary[name]["rows"]] == pytest.approx(wanted)
    out = call(monkeypatch, capsys, "summary", file)[1]
    assert "launches, as measured" in out
    assert "scopes, less the cost of recording" in out
    for metric, said in (("corrected_ns", "less the cost of recording"), ("dur_ns", "as measured")):
        assert (
            f"durations {said}" in call(monkeypatch, capsys, "stats", file, "--metric", metric)[1]
        )


def test_the_cost_of_recording_stands_beside_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    raw = gpu(loop(), cost=4.0, registers_off=100, run_ns=900, run_ns_off=850)
    file = Run(raw).save(tmp_path / "run.proton")
    frame = Run(raw).frame
    for kind in ("summary", "stats", "explain"):
        (entry,) = json.loads(call(monkeypatch, capsys, kind, file, "--json")[1])["recording"]
        assert (entry["kernel"], entry["records"]) == ("matmul", int((frame.kind == "scope").sum()))
        assert entry["slice_cost_ns"] == pytest.approx(4.0)
        assert entry["recorded"]["registers"], entry["plain"]["registers"] == (128, 100)
        assert (entry["recorded"]["run_ns"], entry["plain"]["run_ns"]) == (900, 850)
        units = Run(raw).programs["dur_ns"].sum()
        assert entry["percent"] == pytest.approx(100 * 4.0 * entry["records"] / units, rel=0.01)
