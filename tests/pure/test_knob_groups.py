"""Triton's groups of knobs: copies, scopes, what the environment says and what it is told."""

import os
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

from proton.base import knobs as module
from proton.base.errors import ProtonError
from proton.base.foreign_knobs import FOREIGN, SETTABLE
from proton.base.knobs import KNOBS, Knobs

TRITONS = {name: knob.triton for name, knob in KNOBS.items() if knob.triton}


@pytest.fixture
def knobs(monkeypatch: pytest.MonkeyPatch) -> Knobs:
    """Knobs with nothing in the environment, which is put back."""
    for knob in KNOBS.values():
        for variable in filter(None, (knob.variable, knob.triton)):
            monkeypatch.setenv(variable, "")  # which notes what it was
            monkeypatch.delenv(variable)
    return Knobs()


def test_a_copy_is_set_on_its_own(knobs: Knobs) -> None:
    knobs.compilation.always_compile = True
    knobs.runtime.launch_enter_hook.add(print)
    copied, runtime = knobs.compilation.copy(), knobs.runtime.copy()
    assert copied.always_compile
    assert copied.knobs["always_compile"] is True
    copied.always_compile = False
    runtime.launch_enter_hook.remove(print)
    runtime.jit_cache_hook = print
    assert knobs.always_compile
    assert knobs.compilation.always_compile
    assert knobs.runtime.launch_enter_hook == [print]
    assert knobs.runtime.jit_cache_hook is None


@pytest.mark.parametrize("how", ["delete", "env", "reset"])
def test_the_environment_says_again_what_a_knob_is(
    knobs: Knobs, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "propagate_env", False)
    monkeypatch.setenv("PROTON_CACHE_DIR", "/there")
    knobs.cache.dir = "/here"
    assert knobs.cache.dir == "/here"
    if how == "delete":
        del knobs.cache.dir
    elif how == "env":
        knobs.cache.dir = module.env
    else:
        assert knobs.cache.reset() is knobs.cache
    assert knobs.cache.dir == "/there"
    with pytest.raises(AttributeError, match=r"no knob is named 'cache\.speed'"):
        del knobs.cache.speed


def test_a_hook_that_is_deleted_is_none(knobs: Knobs) -> None:
    knobs.runtime.jit_cache_hook = print
    del knobs.runtime.jit_cache_hook
    assert knobs.runtime.jit_cache_hook is None


def test_what_is_set_is_for_processes_that_are_started(
    knobs: Knobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with knobs.runtime.scope(), knobs.cache.scope():
        knobs.runtime.debug = True
        knobs.cache.dir = "/here"
        assert os.environ["PROTON_DEBUG"] == "1"
        assert os.environ["PROTON_CACHE_DIR"] == "/here"
        assert "TRITON_DEBUG" not in os.environ
        knobs.runtime.debug = False
        assert os.environ["PROTON_DEBUG"] == "0"
        knobs.cache.dir = None
        assert "PROTON_CACHE_DIR" not in os.environ
    assert "PROTON_DEBUG" not in os.environ
    knobs.stands_for_triton = True
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        assert os.environ["TRITON_DEBUG"] == "1"
        assert "PROTON_DEBUG" not in os.environ  # which would count more
        monkeypatch.setenv("PROTON_DEBUG", "0")
        knobs.runtime.debug = True
        assert os.environ["TRITON_DEBUG"] == os.environ["PROTON_DEBUG"] == "1"
        del knobs.runtime.debug
        assert knobs.debug
    monkeypatch.setattr(module, "propagate_env", False)
    knobs.runtime.debug = True
    assert "PROTON_DEBUG" not in os.environ
    assert "TRITON_DEBUG" not in os.environ


def test_a_scope_puts_back_its_own_group_alone(
    knobs: Knobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_DEBUG", "0")
    knobs.runtime.override_arch = "sm80"
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        knobs.runtime.override_arch = "sm90"
        knobs.language.fp32_default = "ieee"
    assert os.environ["PROTON_DEBUG"] == "0"
    assert not knobs.debug
    assert knobs.override_arch == "sm80"
    assert knobs.fp32_default == "ieee"


def test_variables_of_triton_count_where_proton_stands_for_it(
    knobs: Knobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"TRITON_DEBUG", "TRITON_INTERPRET", "TRITON_ALWAYS_COMPILE"} <= {*TRITONS.values()}
    for variable in TRITONS.values():
        monkeypatch.setenv(variable, "1")
    defaults = {name: getattr(knobs, name) for name in TRITONS}
    assert defaults == {name: KNOBS[name].default for name in TRITONS}
    knobs.stands_for_triton = True
    assert all(str(getattr(knobs, name)) in ("1", "True") for name in TRITONS)
    monkeypatch.setenv("PROTON_DEBUG", "n")
    assert not knobs.debug  # our own counts more
    monkeypatch.setenv("TRITON_INTERPRET", "perhaps")
    with pytest.raises(ProtonError, match="TRITON_INTERPRET='perhaps'"):
        _ = knobs.interpret
    module.refresh_knobs()


@pytest.mark.parametrize("group", sorted(FOREIGN))
def test_programs_may_ask_for_what_means_nothing_here(
    knobs: Knobs, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    there = knobs.groups[group]
    for name, knob in FOREIGN[group].items():
        if knob.parse is not None:
            monkeypatch.delenv(knob.variable, raising=False)
        assert getattr(there, name) == there.knobs[name] == knob.default
        other = {bool: not knob.default, int: 17}.get(type(knob.default), "other")
        with there.scope():
            if group in SETTABLE:
                setattr(there, name, other)
                assert getattr(there, name) == other
                assert knob.parse is None or os.environ[knob.variable] in ("0", "1", "17", "other")
            else:
                with pytest.raises(AttributeError, match=rf"knobs\.{group}\.{name} means nothing"):
                    setattr(there, name, other)
                setattr(there, name, knob.default)
            delattr(there, name)
        assert getattr(there, name) == knob.default
        assert knob.variable not in os.environ


def test_what_means_nothing_here_is_what_the_environment_says(
    knobs: Knobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {
        "AMDGCN_USE_BUFFER_OPS": "off",
        "TRITON_REDIS_PORT": "7",
        "TRITON_CACHE_MANAGER": "collections:OrderedDict",
        "TRITON_CUDART_PATH": "/there",
        "TRITON_CUDACRT_PATH": "/here",
    }
    for variable, text in said.items():
        monkeypatch.setenv(variable, text)
    assert knobs.amd.use_buffer_ops is False
    assert knobs.redis.port == 7
    assert knobs.cache.manager_class is OrderedDict
    assert knobs.build.backend_dirs == {"/there", "/here"}
    monkeypatch.setenv("TRITON_REDIS_PORT", "seven")
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "collections:Lost")
    with pytest.raises(ProtonError, match="TRITON_REDIS_PORT='seven'"):
        _ = knobs.redis.port
    with pytest.raises(ProtonError, match="TRITON_CACHE_MANAGER='collections:Lost': expected MODU"):
        _ = knobs.cache.manager_class


@pytest.mark.parametrize("triton, folder", [(False, ".proton"), (True, ".triton")])
def test_folders_lie_at_home(
    knobs: Knobs, monkeypatch: pytest.MonkeyPatch, triton: bool, folder: str
) -> None:
    knobs.stands_for_triton = triton
    assert knobs.cache.home_dir == os.path.expanduser("~/")
    monkeypatch.setenv("TRITON_HOME" if triton else "PROTON_HOME", "/home/of")
    assert knobs.cache_dir == Path("/home/of", folder, "cache")
    assert knobs.cache.dump_dir == f"/home/of/{folder}/dump"
    assert (knobs.dump_to, knobs.override_from) == (None, None)
    with knobs.compilation.scope(), knobs.cache.scope():
        knobs.compilation.dump_ir = knobs.compilation.override = True
        assert knobs.dump_to == Path("/home/of", folder, "dump")
        knobs.cache.override_dir = "/edited"
        assert knobs.override_from == Path("/edited")
        knobs.dump_to = Path("/there")
        assert knobs.dump_to == Path("/there")
        del knobs.dump_to
    assert knobs.dump_to is None


def test_installing_proton_as_triton_reads_them() -> None:
    program = (
        "import proton; print(proton.knobs.interpret); proton.install_as_triton(); import triton;"
        "print(triton.knobs.interpret, triton.knobs.runtime.interpret, proton.knobs.interpret)"
    )
    variables = {n: t for n, t in os.environ.items() if n != "PROTON_INTERPRET"}
    shown = subprocess.run(
        [sys.executable, "-c", program],
        env=variables | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.split() == ["False", "True", "True", "True"]
