"""Code runs as it was when the kernel was made: files, closures, globals and objects that change
afterwards are either without effect or an error, never other code."""

import ast
import enum
import importlib.util
import itertools
import linecache
import os
import subprocess
import sys
import types
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import CompilationError, LaunchError, UnsupportedLanguageConstruct
from proton.runtime.launch.arguments import Parameter

HEAD = "import proton, proton.language as tl\n"
KERNEL = HEAD + "@proton.jit\ndef kernel(o):\n    tl.store(o, {value})\n"
_names = (f"changing_{number}" for number in itertools.count())


def load(path: Path) -> Any:
    """The module as the file has it now: bytecode of one as long, of the same second, is taken for
    the file's."""
    spec = importlib.util.spec_from_file_location(next(_names), path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(path.read_text(), path, "exec"), vars(module))
    return module


def stored(kernel: Any, *arguments: Any) -> float:
    out = np.zeros(1, np.float32)
    kernel[(1,)](out, *arguments)
    return float(out[0])


# Files


def test_a_file_that_changes_before_the_first_launch(tmp_path: Path) -> None:
    """Of a kernel, and of a callee in another module; the new text does not even have a kernel."""
    helper, path = tmp_path / "helper.py", tmp_path / "kernels.py"
    helper.write_text(HEAD + "@proton.jit\ndef twice(x):\n    return x * 2\n")
    path.write_text(KERNEL.format(value="twice(tl.load(o) + 1.0)"))
    module = load(path)
    module.twice = load(helper).twice
    for file in (helper, path):
        file.write_text("# nothing\n" * 3)
    linecache.checkcache()
    assert stored(module.kernel) == 2
    assert "twice(tl.load(o) + 1.0)" in module.kernel.src


def test_a_file_that_changes_while_it_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    edited = KERNEL.format(value=-99.0)
    change = f"import pathlib\npathlib.Path({str(path)!r}).write_text({edited!r})\n"
    path.write_text(KERNEL.format(value=1.0).replace("@proton", change + "@proton"))
    module = load(path)
    with pytest.raises(CompilationError, match=r"is not what Python read.*was changed"):
        stored(module.kernel)


def test_an_error_shows_the_line_that_was_compiled(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL.format(value="nowhere"))
    module = load(path)
    path.write_text("# another line\n" * 9)
    linecache.checkcache()
    with pytest.raises(CompilationError, match=r"(?s)tl\.store\(o, nowhere\)\n *\^\^\^"):
        stored(module.kernel)


def cell(name: str, text: str, by_statement: bool = False) -> dict[str, Any]:
    """Runs a text as a notebook does: its lines are in the cache of lines alone."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {}
    for statement in ast.parse(text).body if by_statement else [ast.parse(text)]:
        unit = ast.Module([statement], []) if by_statement else statement
        exec(compile(unit, name, "exec"), namespace)
    return namespace


def test_cells_of_a_notebook() -> None:
    name = "<cell-1>"
    first = cell(name, KERNEL.format(value=1.0))["kernel"]
    second = cell(name, KERNEL.format(value=2.0))["kernel"]
    assert (stored(second), stored(first)) == (2, 1)
    alone = cell("<cell-2>", "x = 1\n" + KERNEL.format(value=4.0) + "y = 1\n", by_statement=True)
    assert stored(alone["kernel"]) == 4
    namespace: dict[str, Any] = {}
    exec(compile(KERNEL.format(value=3.0), name, "exec"), namespace)  # the lines are the second's
    with pytest.raises(CompilationError, match="is not what Python read"):
        stored(namespace["kernel"])


def test_code_without_a_text() -> None:
    namespace: dict[str, Any] = {}
    exec(KERNEL.format(value=1.0), namespace)
    with pytest.raises(UnsupportedLanguageConstruct, match="cannot be read"):
        stored(namespace["kernel"])


def test_code_of_a_text_that_exec_is_given_in_a_variable(rng: np.random.Generator) -> None:
    value = float(rng.integers(1, 100))
    texts = KERNEL.format(value=-1.0), "x = 1\n" + KERNEL.format(value=value) + "y = 1\n"
    first, second = texts  # both have a kernel of this name
    namespaces: list[dict[str, Any]] = [{}, {}]
    exec(first, namespaces[0])
    exec(second, namespaces[1])
    for is_interpreted in (False, True):
        with proton.knobs.scope(interpret=is_interpreted):
            assert [stored(namespace["kernel"]) for namespace in namespaces] == [-1, value]


THIRD = KERNEL.format(value=3.0)  # its text is found in a global of who runs it, too


def test_code_of_a_text_that_exec_is_given_in_a_global() -> None:
    namespace: dict[str, Any] = {}
    exec(THIRD, namespace)
    assert stored(namespace["kernel"]) == 3


# Values


class Settings:
    SCALE = tl.constexpr(2.0)


class Derived(Settings):
    pass


class Options:
    def __init__(self) -> None:
        self.scale, self.inner = 2.0, types.SimpleNamespace(deep={0: 2.0})

    def scaled(self) -> float:
        return self.scale


LATE: Any = None
CONTAINER = tl.constexpr([2.0])
TABLE = tl.constexpr({"scale": 2.0})
OPTIONS = tl.constexpr(Options())
ARRAYS = tl.constexpr(types.SimpleNamespace(scales=np.full(512, 2.0)))
MODULE = types.ModuleType("settings")
MODULE.SCALE = tl.constexpr(2.0)  # type: ignore[attr-defined]
FACTOR = 2.0


def plain_python() -> float:
    return FACTOR


@proton.constexpr_function
def computed() -> float:
    return plain_python()


@proton.jit
def reads_late(o):
    tl.store(o, 2.0 if LATE is None else 3.0)


@proton.jit
def reads_inherited(o):
    tl.store(o, Derived.SCALE)


@proton.jit
def reads_container(o):
    tl.store(o, CONTAINER[0])


@proton.jit
def reads_table(o):
    tl.store(o, TABLE["scale"])


@proton.jit
def reads_object(o):
    tl.store(o, OPTIONS.scale)


@proton.jit
def reads_deep(o):
    tl.store(o, OPTIONS.inner.deep[0])


@proton.jit
def reads_array(o):
    tl.store(o, float(ARRAYS.scales[1]))


@proton.jit
def reads_module(o):
    tl.store(o, MODULE.SCALE)


@proton.jit
def reads_function(o):
    tl.store(o, computed())


@proton.jit
def calls_reader(o):
    reads_object(o)


def rebind(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setitem(globals(), name, value)


NUMBER = tl.constexpr(2.0)
EARLY = tl.constexpr(2.0)
COUNT = tl.constexpr(1)
LATER = tl.constexpr(9.0)


@proton.constexpr_function
def number():
    return NUMBER.value


@proton.jit
def reads_number(o):
    tl.store(o, NUMBER)


@proton.jit
def calls_number(o):
    tl.store(o, number())


@proton.jit
def reads_before_it_assigns(o):
    found = EARLY  # noqa: F823
    _, EARLY = 1, 3.0  # noqa: F841
    tl.store(o, found)


@proton.jit
def adds_to_what_it_reads(o):
    COUNT += 1  # noqa: F823
    tl.store(o, COUNT * 1.0)


@proton.jit
def assigns_before_it_reads(o):
    LATER = 1.0
    LATER += 1.0
    tl.store(o, LATER)


CHANGES: dict[str, tuple[Any, Callable[[pytest.MonkeyPatch], Any]]] = {
    "a name that was None": (reads_late, rebind("LATE", tl.constexpr(1))),
    "an inherited attribute": (
        reads_inherited,
        lambda patch: patch.setattr(Settings, "SCALE", tl.constexpr(3.0)),
    ),
    "another class": (reads_inherited, rebind("Derived", type("Derived", (), {"SCALE": 3.0}))),
    "an element": (reads_container, lambda patch: patch.setattr(CONTAINER, "value", [3.0])),
    "an entry": (reads_table, lambda patch: patch.setitem(TABLE.value, "scale", 3.0)),
    "an attribute": (reads_object, lambda patch: patch.setattr(OPTIONS.value, "scale", 3.0)),
    "an attribute, of a callee": (
        calls_reader,
        lambda patch: patch.setattr(OPTIONS.value, "scale", 3.0),
    ),
    "an object in an object": (
        reads_deep,
        lambda patch: patch.setitem(OPTIONS.value.inner.deep, 0, 3.0),
    ),
    "an attribute of a module": (
        reads_module,
        lambda patch: patch.setattr(MODULE, "SCALE", tl.constexpr(3.0)),
    ),
    "what a constexpr holds": (reads_number, lambda patch: patch.setattr(NUMBER, "value", 3.0)),
    "what one holds that a Python function reads": (
        calls_number,
        lambda patch: patch.setattr(NUMBER, "value", 3.0),
    ),
    "a name that is assigned later": (reads_before_it_assigns, rebind("EARLY", tl.constexpr(5.0))),
    "a name that is added to": (adds_to_what_it_reads, rebind("COUNT", tl.constexpr(5))),
    "another module": (reads_module, rebind("MODULE", types.SimpleNamespace(SCALE=3.0))),
    "a global of a Python function": (reads_function, rebind("FACTOR", 3.0)),
    "a Python function": (reads_function, rebind("plain_python", lambda: 3.0)),
}


@pytest.fixture(params=CHANGES)
def change(request: pytest.FixtureRequest) -> Any:
    return CHANGES[request.param]


def test_what_a_kernel_read_must_not_change(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, apply = change
    key = kernel.source_key()
    assert stored(kernel) == stored(kernel) == 2
    apply(monkeypatch)
    with pytest.raises(LaunchError, match=r"Global variable .* has changed since we compiled"):
        stored(kernel)
    assert kernel.source_key() != key, "another process would take the compiled code"
    monkeypatch.undo()
    assert stored(kernel) == 2
    assert kernel.source_key() == key


def test_elements_of_a_small_array_must_not_change() -> None:
    """An array has no `setitem` that is undone, so this is no row of the table."""
    key = reads_array.source_key()
    assert stored(reads_array) == 2
    ARRAYS.value.scales[1] = 3.0
    with pytest.raises(LaunchError, match="has changed since we compiled"):
        stored(reads_array)
    assert reads_array.source_key() != key, "another process would take the compiled code"
    ARRAYS.value.scales = np.full(512, 2.0)  # another array with the same elements
    assert stored(reads_array) == 2
    assert reads_array.source_key() == key


def test_a_name_that_is_assigned_first_is_none_of_the_surroundings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = assigns_before_it_reads.source_key()
    assert stored(assigns_before_it_reads) == 2
    monkeypatch.setitem(globals(), "LATER", tl.constexpr(7.0))
    assert stored(assigns_before_it_reads) == 2
    assert assigns_before_it_reads.source_key() == key


def test_the_error_names_the_constexpr_that_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored(reads_number) == 2
    monkeypatch.setattr(NUMBER, "value", 3.0)
    said = r"NUMBER has changed .*, from constexpr\[2\.0\] to constexpr\[3\.0\]"
    with pytest.raises(LaunchError, match=said):
        stored(reads_number)


def test_a_constexpr_function_is_told_apart_by_its_text() -> None:
    key, of_caller = number.cache_key, calls_number.cache_key
    assert number.hash == key
    text = number.src
    assert text.startswith("def number")
    number._unsafe_update_src(text.replace("value", "value + 1"))
    assert "value + 1" in number.src
    assert number.cache_key != key
    assert calls_number.cache_key != of_caller
    number._unsafe_update_src(text)
    assert (number.cache_key, calls_number.cache_key) == (key, of_caller)


def variables_of_a_function() -> tuple[Any, Any, Callable[[Any], None]]:
    c: Any = tl.constexpr(2.0)

    @proton.jit
    def kernel(o):
        tl.store(o, c)

    @proton.jit
    def caller(o):
        kernel(o)

    def change(value: Any) -> None:
        nonlocal c
        c = value

    return kernel, caller, change


def test_variables_of_the_function_around() -> None:
    kernel, caller, change = variables_of_a_function()
    assert stored(kernel) == stored(caller) == 2
    change(tl.constexpr(2.0))  # the same value
    assert stored(kernel) == stored(caller) == 2
    change(tl.constexpr(5.0))
    for reader in (kernel, caller):
        with pytest.raises(LaunchError, match=r"variable c has .*, from constexpr\[2.0\]"):
            stored(reader)


def test_a_variable_that_has_no_value_yet() -> None:
    @proton.jit
    def kernel(o):
        tl.store(o, later)

    with pytest.raises(CompilationError, match="later is not defined"):
        stored(kernel)
    later = tl.constexpr(4.0)
    assert stored(kernel) == 4


def test_defaults_are_those_of_the_definition() -> None:
    """Two functions of one text and place, which differ in what their defaults were."""

    def make(default: Any) -> Any:
        @proton.jit
        def helper(x, factor=default):
            return x * factor.scale

        @proton.jit
        def kernel(o):
            tl.store(o, helper(1.0))

        default = None  # is no part of the code
        return kernel

    options = Options()
    first, second = make(options), make(types.SimpleNamespace(scale=3.0))
    assert (stored(first), stored(second)) == (2, 3)
    assert first.source_key() != second.source_key()
    options.scale = 5.0
    with pytest.raises(LaunchError, match=r"factor has changed .*, from .*2\.0"):
        stored(first)


def test_another_variant_does_not_make_a_change_unseen() -> None:
    c: Any = tl.constexpr(4.0)

    @proton.jit
    def kernel(o, N: tl.constexpr):
        tl.store(o, c)

    assert stored(kernel, 1) == 4
    c = tl.constexpr(5.0)
    for compiles in (lambda: kernel.warmup(tl.float32, 2), lambda: stored(kernel, 3)):
        with pytest.raises(LaunchError, match=r"c has .*, from constexpr\[4\.0\] to"):
            compiles()
    with pytest.raises(LaunchError):
        stored(kernel, 1)


def test_a_mistake_that_was_mended_is_compiled() -> None:
    """What a compilation read that failed is in no code."""
    c: Any = 4.0

    @proton.jit
    def kernel(o):
        tl.store(o, c)

    with pytest.raises(CompilationError, match=r"write `c = tl.constexpr\(4\.0\)`"):
        stored(kernel)
    c = tl.constexpr(c)
    assert stored(kernel) == 4


MEMO: dict[str, float] = {}


@proton.constexpr_function
def remembers(x):
    return MEMO.setdefault("x", x)


@proton.jit
def reads_memo(o):
    tl.store(o, remembers(2.0))


def test_what_a_python_function_keeps_for_itself_may_change() -> None:
    assert stored(reads_memo) == 2
    MEMO["y"] = 1.0
    assert stored(reads_memo) == 2


HOLDERS = """
import proton, proton.language as tl, types
class Holder:
    VALUE = {value}.0
    def __init__(self):
        self.value = {value}.0
    def get(self):
        return self.value
HOLDER, SPACE = Holder(), types.SimpleNamespace(inner=types.SimpleNamespace(value={value}.0))
LIST, DICT, TUPLE, METHOD = [{value}.0], {{"x": {value}.0}}, (Holder(),), HOLDER.get
MODULE = types.ModuleType("settings")
MODULE.value = NUMBER = {value}.0
SLOGAN = "a constant that no function reads: {value}"

@proton.constexpr_function
def read():
    return {expression}

@proton.jit
def kernel(o):
    tl.store(o, read())
"""


@pytest.mark.parametrize(
    "expression",
    [
        *("HOLDER.value", "Holder.VALUE", "HOLDER.VALUE", "HOLDER.get()", "SPACE.inner.value"),
        *("LIST[0]", "DICT['x']", "TUPLE[0].value", "METHOD()", "MODULE.value"),
        *("max(NUMBER for _ in range(2))", "(lambda: NUMBER)()", "getattr(HOLDER, 'value')"),
    ],
)
def test_code_on_disk_is_for_what_python_functions_read(tmp_path: Path, expression: str) -> None:
    """Also what launches do not look at: a program that is edited, and started again, has another
    value there."""
    for value in (2, 3, 2):
        path = tmp_path / "held.py"
        path.write_text(HOLDERS.format(value=value, expression=expression))
        kernel = load(path).kernel
        assert stored(kernel) == value


def test_an_object_as_an_argument_is_what_it_is_now() -> None:
    @proton.jit
    def kernel(o, OPTIONS: tl.constexpr):
        tl.store(o, OPTIONS.scale)

    options = Options()
    assert stored(kernel, options) == 2
    options.scale = 3.0
    assert stored(kernel, options) == 3
    assert stored(kernel, Options()) == 2

    @proton.jit
    def calls(o, SCALE: tl.constexpr):
        tl.store(o, SCALE())

    for options.scale in (3.0, 4.0, 3.0):
        assert stored(calls, options.scaled) == options.scale


class _Hidden(enum.Enum):
    def __repr__(self) -> str:
        return self.name


class _Number(int):
    def __repr__(self) -> str:
        return "a number"


def _same_names(scale: int) -> dict[str, Any]:
    """Constants with `real` = `scale`, of classes that are named alike each time, as those of a
    cell that a notebook runs again are."""
    fields = ("real", "imag") if scale < 2 else ("imag", "real")
    both = namedtuple("pair", fields)(1, 2)  # type: ignore[misc]
    return {
        "a named tuple": both,
        "one in a tuple": (both,),
        "an enumeration that hides its value": _Hidden("_Mode", {"A": scale}).A,  # type: ignore[attr-defined]
        "an enumeration of a module": enum.global_enum(enum.IntEnum("_Level", {"A": scale})).A,
        "a number that hides its value": _Number(scale),
    }


@proton.constexpr_function
def real_of(value):
    value = value[0] if type(value) is tuple else value
    return getattr(value, "value", value).real


@proton.jit
def stores_real(o, C: tl.constexpr):
    tl.store(o, real_of(C))


@pytest.mark.parametrize("kind", list(_same_names(1)))
def test_constants_of_classes_that_are_named_alike(kind: str) -> None:
    """Launches, by way of the disk, too, and what a kernel reads tell them apart."""
    for scale in (1, 2, 1):
        assert stored(stores_real, _same_names(scale)[kind]) == scale
        stores_real.forget()
        assert stored(stores_real, _same_names(scale)[kind]) == scale
    held = tl.constexpr(_same_names(1)[kind])

    @proton.jit
    def kernel(o):
        tl.store(o, real_of(held))

    assert stored(kernel) == 1
    held = tl.constexpr(_same_names(2)[kind])
    with pytest.raises(LaunchError, match="held has changed"):
        stored(kernel)


def test_constants_that_are_equal_in_python() -> None:
    """Tuples and sets are equal where their classes and elements are; 1, 1.0 and True are."""
    pairs = [
        namedtuple("pair", fields)(*values)  # type: ignore[misc]
        for fields in ("a b", "b a")
        for values in ((1, 2), (1, 2.0), (True, 2))
    ]
    constants = [*pairs, (1, 2), *(frozenset({one}) for one in (1, 1.0, True)), (pairs[0],)]
    keys = {Parameter.plain("x").constant(constant) for constant in constants}
    assert len(keys) == len(constants)


SETS = """
import proton
import proton.language as tl

class Settings:
    def __init__(self):
        self.names, self.by_name = {"one", "two", "five"}, {"x": [1, 2.0], proton: None}

SETTINGS = Settings()

@proton.constexpr_function
def known(name):
    return name in {"one", "two", "three", "four"} and len(SETTINGS.names) and repr(SETTINGS)

NAMES = tl.constexpr(frozenset(("five", "six", "seven")))

@proton.jit
def kernel(o):
    tl.store(o, known("one") and "six" in NAMES)

@proton.jit
def carried(o, n):
    for i in range(n):
        one, two, three, four, five, six = i, i + 1, i + 2, i + 3, i + 4, i + 5
        tl.store(o + i, one + two + three + four + five + six)
    one, two, three, four, five, six = n, n, n, n, n, n
    for i in range(n):
        if i < 2:
            one, two, three, four, five, six = two, three, four, five, six, one
    tl.store(o, one - two * three - four * five - six)

print(kernel.source_key())
target = proton.GPUTarget("cuda", 90)
print(carried.warmup(tl.int32, 9, target=target).asm["ttgir"])
"""


def test_a_key_and_code_are_the_same_in_each_process(tmp_path: Path) -> None:
    path = tmp_path / "sets.py"
    path.write_text(SETS)
    root = str(Path(proton.__file__).parents[1])
    keys = {
        subprocess.run(
            [sys.executable, path],
            env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": seed}
            | {"PROTON_CACHE_DIR": str(tmp_path / seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(keys) == 1
