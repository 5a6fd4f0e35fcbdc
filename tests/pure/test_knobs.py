"""Knobs read the environment when asked, can be overridden, and refuse what they cannot parse."""

import os
from pathlib import Path

import pytest

from proton.base.errors import ProtonError
from proton.base.knobs import KNOBS, Knobs, environment


def test_a_knob_reads_its_variable_now(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = Knobs()
    monkeypatch.delenv("PROTON_DUMP_TO", raising=False)
    assert knobs.dump_to is None
    monkeypatch.setenv("PROTON_DUMP_TO", "ir")
    assert knobs.dump_to == Path("ir")
    monkeypatch.setenv("PROTON_DUMP_TO", "")
    assert knobs.dump_to is None


@pytest.mark.parametrize(
    "text, value",
    [("1", True), ("on", True), ("TRUE", True), ("0", False), ("no", False), ("", False)],
)
def test_switches_are_words(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv("PROTON_DEBUG", text)
    assert Knobs().debug is value


@pytest.mark.parametrize(
    "variable, text", [("PROTON_DEBUG", "maybe"), ("PROTON_NUM_THREADS", "two")]
)
def test_nonsense_is_refused_with_the_variable_and_the_text(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, text)
    name = next(name for name, knob in KNOBS.items() if knob.variable == variable)
    with pytest.raises(ProtonError, match=f"{variable}='{text}'"):
        getattr(Knobs(), name)


def test_a_scope_overrides_and_restores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_NUM_THREADS", "3")
    knobs = Knobs()
    with knobs.scope(num_threads=1):
        assert knobs.num_threads == 1
        with knobs.scope(num_threads=2):
            assert knobs.num_threads == 2
        assert knobs.num_threads == 1
    assert knobs.num_threads == 3


def test_unknown_names_are_refused() -> None:
    knobs = Knobs()
    with pytest.raises(AttributeError, match="no knob is named 'speed'"):
        knobs.speed
    with pytest.raises(AttributeError, match="no knob is named 'speed'"):
        knobs.speed = 11


def test_a_process_that_is_started_gets_defaults_where_the_user_set_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROTON_TEST_SET", "user's")
    monkeypatch.delenv("PROTON_TEST_UNSET", raising=False)
    found = environment(PROTON_TEST_SET="default", PROTON_TEST_UNSET="default")
    assert found == os.environ | {"PROTON_TEST_UNSET": "default"}
    assert found["PROTON_TEST_SET"] == "user's"
