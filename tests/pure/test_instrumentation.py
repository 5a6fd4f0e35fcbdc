"""The options of a session, said once, and what follows from them."""

import inspect
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import proton
from proton.__main__ import main
from proton.base.errors import ProfileError
from proton.trace.instrumentation import Instrumentation, SessionOptions, option_of
from proton.trace.monitor_options import MonitorOptions

TRITONS = {"mode": None, "backend": None, "context": "shadow", "data": "tree", "hook": None}


def parameters(function: Any) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(function).parameters.values()}


def test_who_takes_options_takes_all_of_them() -> None:
    options = {of.name: of.default for of in fields(SessionOptions)}
    for function in (proton.start, proton.profile):
        assert parameters(function) == options | TRITONS
        doc = inspect.getdoc(function)
        assert doc is not None
        for of in fields(SessionOptions):
            assert f"{of.name}={of.default!r}" in doc
            assert option_of(of).help in doc
    assert options.keys() <= parameters(main).keys()
    monitor = {of.name: of.default for of in fields(MonitorOptions)}
    assert parameters(proton.monitor) == monitor
    assert next(iter(parameters(proton.monitor))) == "folder"
    assert monitor.keys() <= parameters(main).keys()
    page = (Path(__file__).parents[2] / "docs/sessions.md").read_text()
    said = (options | monitor).keys() - {"name", "folder"}
    assert all(f"{name}=" in page for name in said)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"strategy": "all"}, "strategy must be one of circular, flush, counting, got 'all'"),
        ({"placement": 1}, "placement must be one of schedule, program, got 1"),
        ({"capacity": -1}, r"capacity must lie in \[0, 16777216\] records per program, got -1"),
        ({"every": True}, r"every must be an integer in \[1, 2147483647\], got True"),
        ({"clock_bits": 48}, r"clock_bits must be one of \(32, 64\), got 48"),
        ({"granularity": "lane"}, "granularity must be one of warp, .*, cta, got 'lane'"),
        ({"sample_warps": (1, "2")}, r"sample_warps must be numbers of warps from 0 to 31, got"),
        (
            {"auto": ("loads", "dot")},
            "auto takes words of loads, .*, got 'dot'; did you mean",
        ),
        ({"auto": 3}, "auto takes words of loads, .* got 3"),
        ({"buffer": "shared", "strategy": "flush"}, "'flush' has no buffer in shared memory"),
    ],
)
def test_a_value_that_breaks_a_rule(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        Instrumentation(**options)


def test_words_are_kept_in_one_order() -> None:
    """Kernels are found in the cache by them."""
    for given in (("loops", "loads"), ["loads", "loops", "loops"], "loops,loads"):
        assert Instrumentation(auto=given) == Instrumentation(auto=("loads", "loops"))


def test_code_for_the_cpu_depends_on_nothing_of_a_gpu() -> None:
    given = SessionOptions("run", every=3, clock_bits=64, granularity="cta", sample_warps=[2, 1, 2])
    assert given.instrumentation.sample_warps == (1, 2)
    assert given.instrumentation.on_cpu() == Instrumentation(every=3)
    assert hash(given.instrumentation.on_cpu()) == hash(Instrumentation(every=3))
    assert replace(given, name="other").instrumentation == given.instrumentation
    assert replace(given, name="other") != given
