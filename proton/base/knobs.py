"""Every environment variable that Proton reads, and nothing else reads the environment.

A knob is a typed attribute; `knobs.cache_dir` reads the variable now, assignment overrides it,
and `with knobs.scope(dump_to="ir"):` overrides for a while.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from proton.base.errors import ProtonError
from proton.base.foreign_knobs import Foreign
from proton.base.knob_groups import ENV, GROUPS, KnobGroup
from proton.base.knob_groups import CompileTimes as CompileTimes
from proton.base.knob_groups import HookChain as HookChain
from proton.base.words import switch

T = TypeVar("T")
VERSIONS = ("3.9", "3.10")  # of Triton, whose rules there are

env = ENV  # as a value of a knob in a group: what the environment says
propagate_env = True  # whether what is set in a group is for processes that are started, too


def _count(least: int) -> Callable[[str], int]:
    """A parser of integers from `least` on."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise ValueError(f"expected an integer of at least {least}")
        return number

    return parse


def _one_of(*words: str) -> Callable[[str], str]:
    """A parser of one of some words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return text

    return parse


# What CPython keeps the environment in, as bytes; None where it does not.
_variables = getattr(os.environ, "_data", None) if os.name == "posix" else None


def _text(variable: str) -> str | None:
    """What a variable is set to. Each launch asks for some that seldom are set, for which
    `os.environ.get` takes 1.5 us: it raises and catches an exception."""
    if _variables is not None and variable.encode() not in _variables:
        return None
    return os.environ.get(variable)


def environment(**defaults: str) -> dict[str, str]:
    """This process's variables, for one that it starts, with defaults of others."""
    return defaults | dict(os.environ)


def set_environment(variables: dict[str, str], overwrite: bool = True) -> None:
    """Sets variables of this process, which was started for what is done with them; without
    `overwrite` those that are not there."""
    os.environ.update(variables if overwrite else variables | os.environ)


def refresh_knobs() -> None:
    """Nothing: knobs read the environment when they are asked. Programs call it that set variables
    which Triton reads once."""


def _folder(name: str) -> "Callable[[Knobs], Path]":
    """A folder below `home`. Who looks for files of Triton looks for them where it has them."""
    return lambda knobs: (
        Path(knobs.home) / (".triton" if knobs.stands_for_triton else ".proton") / name
    )


def _if(wanted: str, folder: str) -> "Callable[[Knobs], Path | None]":
    """What one knob says, where another one asks for it."""
    return lambda knobs: Path(getattr(knobs, folder)) if getattr(knobs, wanted) else None


@dataclass(frozen=True)
class Knob(Generic[T]):
    """One variable: its name, how its text becomes a value, its default, what it does, and which
    one of Triton's means the same (`Knobs.stands_for_triton`). `derived` is the default where that
    follows from other knobs.

    An attribute of `Knobs`: reading it reads the variable, unless it is overridden.
    """

    variable: str
    parse: Callable[[str], T]
    default: T
    help: str
    triton: str = ""
    derived: "Callable[[Knobs], T] | None" = None
    name: str = field(default="", init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)

    @overload
    def __get__(self, owner: None, cls: type) -> Self: ...
    @overload
    def __get__(self, owner: "Knobs", cls: type) -> T: ...
    def __get__(self, owner: "Knobs | None", cls: type) -> Self | T:
        if owner is None:
            return self
        if self.name in owner.overrides:
            value: T = owner.overrides[self.name]
            return value
        variable, text = self.variable, _text(self.variable)
        if text is None and self.triton and owner.stands_for_triton:
            variable, text = self.triton, _text(self.triton)
        if text is None or (text == "" and self.parse is not switch):
            return self.default if self.derived is None else self.derived(owner)
        try:
            return self.parse(text)
        except ValueError as error:
            raise ProtonError(f"{variable}={text!r}: {error}") from None

    def __set__(self, owner: "Knobs", value: T) -> None:
        owner.overrides[self.name] = value
        owner.generation += 1

    def __delete__(self, owner: "Knobs") -> None:
        owner.overrides.pop(self.name, None)
        owner.generation += 1

    def variables(self, owner: "Knobs") -> list[str]:
        """The variables that it is read from."""
        return [self.variable] + [self.triton] * bool(self.triton and owner.stands_for_triton)


class Knobs:
    """Attribute access to all knobs. `generation` counts the overrides so far: who remembers what
    a knob was need only compare it. Where Proton `stands_for_triton`, Triton's variables count, if
    Proton's own are not set."""

    cache_dir = Knob(
        "PROTON_CACHE_DIR",
        Path,
        Path.home() / ".proton" / "cache",
        "where compiled kernels lie",
        triton="TRITON_CACHE_DIR",
        derived=_folder("cache"),
    )
    cache_shared = Knob(
        "PROTON_CACHE_SHARED",
        switch,
        False,
        "take kernels from the disk cache that other users wrote or may change: whoever can write "
        "there runs code as you",
    )
    home = Knob(
        "PROTON_HOME",
        str,
        os.path.expanduser("~/"),
        "where `.proton` lies, with compiled kernels; `.triton` where Proton stands for triton",
        triton="TRITON_HOME",
    )
    always_compile = Knob(
        "PROTON_ALWAYS_COMPILE",
        switch,
        False,
        "ignore the disk cache and compile anew",
        triton="TRITON_ALWAYS_COMPILE",
    )
    dump_to = Knob(
        "PROTON_DUMP_TO",
        Path,
        None,
        "write the IR after each pass there, in numbered files",
        derived=_if("dump_ir", "dump_dir"),
    )
    dump_ir = Knob(
        "PROTON_DUMP_IR",
        switch,
        False,
        "write the IR after each pass to dump_dir, unless dump_to is set",
        triton="TRITON_KERNEL_DUMP",
    )
    dump_dir = Knob(
        "PROTON_DUMP_DIR",
        Path,
        Path.home() / ".proton" / "dump",
        "where dump_ir writes",
        triton="TRITON_DUMP_DIR",
        derived=_folder("dump"),
    )
    override_from = Knob(
        "PROTON_OVERRIDE_FROM",
        Path,
        None,
        "read edited copies of dumped files from there in place of a pass's own result",
        derived=_if("override_ir", "override_dir"),
    )
    override_ir = Knob(
        "PROTON_OVERRIDE_IR",
        switch,
        False,
        "read edited copies of dumped files from override_dir, unless override_from is set",
        triton="TRITON_KERNEL_OVERRIDE",
    )
    override_dir = Knob(
        "PROTON_OVERRIDE_DIR",
        Path,
        Path.home() / ".proton" / "override",
        "where override_ir reads",
        triton="TRITON_OVERRIDE_DIR",
        derived=_folder("override"),
    )
    reproducer_to = Knob(
        "PROTON_REPRODUCER_TO", Path, None, "where a failing pass leaves its reproducer"
    )
    commit = Knob(
        "PROTON_COMMIT",
        str,
        "",
        "the commit that runs say they are of; default: that of the program's repository",
    )
    pass_timing = Knob("PROTON_PASS_TIMING", switch, False, "print the time of each pass")
    verify_each = Knob("PROTON_VERIFY_EACH", switch, False, "verify the IR after each pass")
    num_threads = Knob(
        "PROTON_NUM_THREADS",
        _count(1),
        None,
        "threads that run a grid on the CPU, no more than programs; default: all cores",
    )
    compile_processes = Knob(
        "PROTON_COMPILE_PROCESSES",
        _count(1),
        None,
        "processes that compile at once what autotuning tries; 1: none besides the program's own; "
        "default: all cores",
    )
    cache_autotuning = Knob(
        "PROTON_CACHE_AUTOTUNING",
        switch,
        False,
        "keep what autotuning measured in the cache",
        triton="TRITON_CACHE_AUTOTUNING",
    )
    print_autotuning = Knob(
        "PROTON_PRINT_AUTOTUNING",
        switch,
        False,
        "print a table of what autotuning measured",
        triton="TRITON_PRINT_AUTOTUNING",
    )
    autotuning_runs = Knob(
        "PROTON_AUTOTUNING_RUNS",
        Path,
        None,
        "a folder for short profiles of the best configuration and the runner-up of each choice",
    )
    debug = Knob(
        "PROTON_DEBUG",
        switch,
        False,
        "compile device assertions in, of all kernels",
        triton="TRITON_DEBUG",
    )
    full_traceback = Knob(
        "PROTON_FULL_TRACEBACK",
        switch,
        False,
        "show the frames of Proton in tracebacks of errors in kernels and launches",
        triton="TRITON_FRONT_END_DEBUGGING",
    )
    triton_version = Knob(
        "PROTON_TRITON_VERSION",
        _one_of(*VERSIONS),
        VERSIONS[0],
        "whose rules hold where versions of Triton differ: from 3.10 on no multiply-adds by "
        "default, and no can_reorder; triton.__version__ says it",
    )
    default_fp_fusion = Knob(
        "PROTON_DEFAULT_FP_FUSION",
        switch,
        True,
        "on a GPU, make multiply-adds of products and sums where a launch does not say "
        "enable_fp_fusion; default: PROTON_TRITON_VERSION says it",
        triton="TRITON_DEFAULT_FP_FUSION",
        derived=lambda knobs: knobs.triton_version == VERSIONS[0],
    )
    fp32_default = Knob(
        "PROTON_F32_DEFAULT",
        str,
        None,
        "on a GPU, the input_precision of tl.dot where it is not given; default: tf32",
        triton="TRITON_F32_DEFAULT",
    )
    allow_non_constexpr_globals = Knob(
        "PROTON_ALLOW_NON_CONSTEXPR_GLOBALS",
        switch,
        False,
        "take globals of kernels for constants that are no constexprs",
        triton="TRITON_ALLOW_NON_CONSTEXPR_GLOBALS",
    )
    override_arch = Knob(
        "PROTON_OVERRIDE_ARCH",
        str,
        None,
        "compile for this GPU, as sm90, where a launch does not say arch",
        triton="TRITON_OVERRIDE_ARCH",
    )
    interpret = Knob(
        "PROTON_INTERPRET",
        switch,
        False,
        "run kernels as Python over numpy, op by op: breakpoint() and print work in them",
        triton="TRITON_INTERPRET",
    )
    check_bounds = Knob(
        "PROTON_CHECK_BOUNDS",
        switch,
        False,
        "on the CPU, check each access against the array that its pointer argument points to",
    )
    backend = Knob(
        "PROTON_BACKEND",
        str,
        None,
        "where a kernel without array arguments runs, cpu or cuda; default: cuda if there is a GPU",
    )
    libdevice = Knob(
        "PROTON_LIBDEVICE", Path, None, "NVIDIA's libdevice bitcode; default: the nvvm wheel's"
    )
    ptxas = Knob("PROTON_PTXAS", Path, None, "the assembler; default: the nvcc wheel's")
    nvdisasm = Knob("PROTON_NVDISASM", Path, None, "the disassembler; default: its wheel's")
    cuda_home = Knob("CUDA_HOME", Path, None, "the toolkit, for what the wheels do not have")
    profile_memory = Knob(
        "PROTON_PROFILE_MEMORY", _count(0), 1 << 30, "bytes of records one run may keep in memory"
    )
    profile_flush_memory = Knob(
        "PROTON_PROFILE_FLUSH_MEMORY",
        _count(0),
        32 << 20,
        "bytes of a slab that GPU launches share under strategy flush",
    )
    github_actions = Knob(
        "GITHUB_ACTIONS", switch, False, "a job of GitHub: checks leave annotations"
    )
    github_step_summary = Knob(
        "GITHUB_STEP_SUMMARY", Path, None, "where a job of GitHub wants the summary of a step"
    )
    profile_disable = Knob(
        "PROTON_PROFILE_DISABLE",
        switch,
        False,
        "record nothing, whatever the program asks for",
        triton="TRITON_PROTON_DISABLE",
    )

    __slots__ = ("generation", "groups", "overrides", "stands_for_triton")

    def __init__(self) -> None:
        self.overrides: dict[str, Any] = {}
        self.generation = 0
        self.stands_for_triton = False
        self.groups = {name: KnobGroup(name, self) for name in GROUPS}

    # As Triton has them: groups of knobs, and hooks.
    amd = property(lambda self: self.groups["amd"])
    autotuning = property(lambda self: self.groups["autotuning"])
    build = property(lambda self: self.groups["build"])
    cache = property(lambda self: self.groups["cache"])
    compilation = property(lambda self: self.groups["compilation"])
    language = property(lambda self: self.groups["language"])
    nvidia = property(lambda self: self.groups["nvidia"])
    proton = property(lambda self: self.groups["proton"])
    redis = property(lambda self: self.groups["redis"])
    runtime = property(lambda self: self.groups["runtime"])

    if not TYPE_CHECKING:  # mypy knows which there are

        def __getattr__(self, name: str) -> Any:
            there = ", ".join((*KNOBS, *GROUPS))
            raise AttributeError(f"no knob is named {name!r}; there are {there}")

        def __setattr__(self, name: str, value: object) -> None:
            if name not in KNOBS and name not in self.__slots__:
                self.__getattr__(name)
            object.__setattr__(self, name, value)

    def copy(self) -> "Knobs":
        """Knobs with the same values, of which each may be set on its own."""
        copied = Knobs()
        copied.overrides.update(self.overrides)
        copied.stands_for_triton = self.stands_for_triton
        return copied

    def variables(self, names: Iterable[str]) -> dict[str, str | None]:
        """What the variables of some knobs are set to."""
        return {v: os.environ.get(v) for n in names for v in KNOBS[n].variables(self)}

    def pass_on(self, name: str, value: object) -> None:
        """Sets the variables of a knob, for processes that are started; None unsets them. A value
        that no text stands for leaves them."""
        if propagate_env and isinstance(value, bool | int | str | Path | None):
            text = str(int(value)) if isinstance(value, bool) else str(value)
            names = KNOBS[name].variables(self)
            if len(names) > 1 and names[0] not in os.environ:
                del names[0]  # which would count more than what the program sets the other one to
            self.put_variables(dict.fromkeys(names, None if value is None else text))

    def foreign(self, knob: Foreign) -> object:
        """What the environment says that a knob of Triton is which has no meaning here."""
        text = _text(knob.variable) if knob.parse is not None else None
        if text is None or knob.parse is None:
            return knob.default
        try:
            return knob.parse(text)
        except ValueError as error:
            raise ProtonError(f"{knob.variable}={text!r}: {error}") from None

    def foreign_variables(self, knobs: Iterable[Foreign]) -> dict[str, str | None]:
        """What their variables are set to."""
        return {k.variable: os.environ.get(k.variable) for k in knobs if k.parse is not None}

    def pass_on_foreign(self, knob: Foreign, value: object) -> None:
        """Sets its variable, for processes that are started; None unsets it."""
        if propagate_env and knob.parse is not None:
            text = str(int(value)) if isinstance(value, bool) else str(value)
            self.put_variables({knob.variable: None if value is None else text})

    def put_variables(self, variables: Mapping[str, str | None]) -> None:
        """Sets variables of this process; None unsets one."""
        for name, text in variables.items():
            if text is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = text

    @contextlib.contextmanager
    def scope(self, **values: Any) -> Iterator[None]:
        """Overrides knobs inside a `with` block."""
        before = dict(self.overrides)
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            self.overrides.clear()
            self.overrides.update(before)
            self.generation += 1


KNOBS = {name: knob for name, knob in vars(Knobs).items() if isinstance(knob, Knob)}
knobs = Knobs()


if not TYPE_CHECKING:  # `import triton.knobs`: the module has what the object has

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):  # what Python asks of modules
            raise AttributeError(name)
        return getattr(knobs, name)
