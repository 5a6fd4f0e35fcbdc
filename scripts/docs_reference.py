"""The pages of the reference, from what the code says of itself: docstrings, options, knobs.

`PAGES` has a function for each page, by its path on the site; mkdocs asks for them when it builds
(scripts/docs_hooks.py), so that none is kept and none is old.
"""

import enum
import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

import proton
import proton.language as tl
from proton.__main__ import app as program_app
from proton.base.errors import ProtonError
from proton.base.knobs import KNOBS, Knob
from proton.language.types import dtype
from proton.tools.compile import app as compile_app
from proton.tools.link import app as link_app
from proton.tools.opt import app as opt_app
from proton.viewer import Run
from proton.viewer.cli import command as viewer_command
from proton.viewer.tables import Summary, Tables
from proton.viewer.tables.stats import Filter, stats

# Groups of `proton`'s names, in the order of the page; the rest is under the last.
GROUPS = {
    "Profiling": (
        "profile start activate deactivate finalize scope enter_scope exit_scope mark "
        "allocate_event start_event end_event state enter_state exit_state cpu_timed_scope"
    ).split(),
    "Kernels": "jit constexpr_function JITFunction GPUTarget cdiv next_power_of_2".split(),
    "Tuning": "autotune Config heuristics compile".split(),
    "More": [],
}


INTRODUCTION = "`import proton`: what `triton` and `triton.profiler` are for Triton."
LONGEST_LINE = 100  # of code


# What a docstring is as Markdown


def markdown(doc: str) -> str:
    """A docstring's text. Paragraphs that are indented or begin with `>>>` are code; of those that
    follow each other one block is made. What is indented and long is a list."""
    found: list[tuple[str, str]] = []  # (what it is, text)
    for part in re.split(r"\n\s*\n", inspect.cleandoc(doc)):
        what, text = _paragraph(part)
        if what == "text" and found and found[-1][0] == what:
            text = f"{found.pop()[1]}\n\n{text}"
        found.append((what, text))
    return "\n\n".join(f"```{what}\n{text}\n```" if what else text for what, text in found)


def _paragraph(text: str) -> tuple[str, str]:
    """The language of what is code, and the text."""
    if text.startswith(">>>"):
        return "python", text
    if not text.startswith("    "):
        return "", escaped(text)
    lines = textwrap.dedent(text).splitlines()
    if max(map(len, lines)) < LONGEST_LINE:
        return "text", "\n".join(lines)
    pairs = (line.partition(": ") for line in lines)
    return "", "\n".join(f"- `{name}`: {escaped(about)}" for name, _, about in pairs)


def escaped(text: str) -> str:
    """Text without what Markdown or typer would take for markup, code left alone."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"\[/?bold\]", "**", text))
    return "".join(
        part if part.startswith("`") else re.sub(r"(?<!\*)\*(?!\*)|<", r"\\\g<0>", part)
        for part in parts
    )


def cell(text: str) -> str:
    """Text that fits in a cell of a table."""
    return " ".join(escaped(text).split()).replace("|", "\\|")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


# The Python interface


def signature(name: str, value: Any) -> str:
    """How it is called; the name alone where it is not."""
    if inspect.isclass(value) and issubclass(value, BaseException | enum.Enum):
        return name
    try:
        found = getattr(value, "signature", None) or inspect.signature(value)
    except (TypeError, ValueError):
        return name
    text = f"{name}{_short(found)}"
    if len(text) <= 96:
        return text
    return f"{name}(\n{textwrap.indent(_parameters(found), '    ')}\n)"


def _plain(parameter: inspect.Parameter) -> str:
    """A parameter with its annotation without modules, and without quotes."""
    if isinstance(parameter.annotation, str):
        bare = str(parameter.replace(annotation=inspect.Parameter.empty))
        name, _, default = bare.partition("=")
        text = f"{name}: {parameter.annotation}" + (f" = {default}" if default else "")
    else:
        text = str(parameter)
    return re.sub(r"\b(?:proton|pathlib|pandas|collections|typing)(?:\.\w+)*\.(\w+)", r"\1", text)


def _arguments(found: inspect.Signature) -> list[str]:
    """The parameters as text, without self."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    words: list[str] = []
    star = False
    for parameter in found.parameters.values():
        star |= parameter.kind is inspect.Parameter.VAR_POSITIONAL
        if parameter.kind is keyword and not star:
            words.append("*")
            star = True
        if parameter.name not in ("self", "cls"):
            words.append(_plain(parameter))
    return words


def _short(found: inspect.Signature) -> str:
    return f"({', '.join(_arguments(found))})"


def _parameters(found: inspect.Signature) -> str:
    return ",\n".join(_arguments(found)) + ","


def entry(name: str, value: Any, level: str = "###", shown: str = "") -> list[str]:
    """A heading, the call, and what its docstring says."""
    doc = inspect.getdoc(value) or ""
    call = signature(shown or name, value)
    return [f"{level} `{name}`", "", "```python", call, "```", "", markdown(doc), ""]


def python() -> str:
    """`import proton`."""
    lines = ["# Python: `proton`", "", INTRODUCTION, ""]
    public = {name: getattr(proton, name) for name in dir(proton)}
    errors = {n: v for n, v in public.items() if _is(v, ProtonError)}
    modules = [name for name, value in public.items() if inspect.ismodule(value)]
    skip = {"__version__", "Run", "knobs", "tools", *modules, *errors}
    grouped = [name for names in GROUPS.values() for name in names]
    for title, names in GROUPS.items():
        chosen = [n for n in (names or public) if n in public and n not in skip]
        chosen = [n for n in chosen if names or n not in grouped]
        lines += [f"## {title}", ""]
        for name in chosen:
            lines += entry(name, public[name], shown=f"proton.{name}")
    for title, of, meaning in (("Modules", modules, "what it has"), ("Errors", errors, "when")):
        lines += [f"## {title}", ""]
        docs = ((n, (inspect.getdoc(public[n]) or "").split("\n\n")[0]) for n in of)
        lines += table((title.lower(), meaning), [(f"`proton.{n}`", cell(d)) for n, d in docs])
        lines += [""]
    return "\n".join(lines)


def _is(value: Any, base: type) -> bool:
    return inspect.isclass(value) and issubclass(value, base)


def run() -> str:
    """`proton.Run` and what it gives."""
    lines = ["# Python: `proton.Run`", ""]
    lines += [
        "What `proton.profile` gives and `Run.load` reads. [Tables and files](../viewer.md) says "
        "what the columns are.",
        "",
    ]
    for owner in (Run, Tables, Summary, Filter):
        if owner is not Tables:
            lines += [f"## `{owner.__name__}`", "", markdown(inspect.getdoc(owner) or ""), ""]
        for name, value in vars(owner).items():
            function = getattr(value, "func", None) or getattr(value, "fget", None) or value
            function = getattr(function, "__func__", function)
            if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
                lines += _member(owner, name, value, function)
    lines += ["## `proton.viewer.stats`", "", markdown(inspect.getdoc(stats) or "")]
    return "\n".join(lines)


def _member(owner: type, name: str, value: Any, function: Any) -> list[str]:
    """A method with its call, or an attribute without."""
    if isinstance(value, classmethod):
        return entry(name, function, shown=f"{owner.__name__}.{name}")
    if value is function:
        return entry(name, function, shown=name if owner is Filter else f"run.{name}")
    return [f"### `{name}`", "", markdown(inspect.getdoc(function) or ""), ""]


def language() -> str:
    """`import proton.language as tl`."""
    names = sorted(name for name in dir(tl) if not name.startswith("_"))
    public = {name: getattr(tl, name) for name in names}
    types = [name for name, value in public.items() if isinstance(value, dtype)]
    documented = {
        name: value
        for name, value in public.items()
        if not inspect.ismodule(value) and inspect.getdoc(value) and name not in types
        if getattr(value, "__module__", "") != "typing" and not isinstance(value, frozenset | int)
    }
    lines = ["# Kernels: `proton.language`", "", "`import proton.language as tl`.", ""]
    lines += [
        "What Triton has and this does not is in [What is not there](../limitations.md).",
        "",
        "Types of elements: " + ", ".join(f"`tl.{name}`" for name in types) + ".",
        "",
    ]
    for name, value in documented.items():
        lines += entry(f"tl.{name}", value)
    return "\n".join(lines)


# The command lines


def command(name: str, found: Any, level: str) -> list[str]:
    """A command: what it does, its arguments and its options."""
    arguments = [p for p in found.params if not p.opts[0].startswith("-")]
    called = " ".join(_argument(p) for p in arguments)
    lines = [f"{level} `{name}`", "", "```text", f"{name} [OPTIONS] {called}".rstrip(), "```", ""]
    lines += [markdown(found.help or ""), ""]
    rows = [(f"`{_argument(p)}`", cell(p.help or "")) for p in arguments if p.help]
    rows += [(_option(p), _about(p)) for p in found.params if p not in arguments]
    return [*lines, *table(("argument, option", "meaning"), rows), ""] if rows else lines


def _argument(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper()).strip("[]{}").removesuffix("...")
    return f"{name}..." if parameter.nargs == -1 else name


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_bool_flag else f"{names} {cell(_value(parameter))}"


def _value(parameter: Any) -> str:
    """What an option takes."""
    of = parameter.type_descriptor.annotation
    if parameter.metavar:
        return str(parameter.metavar)
    if _is(of, enum.Enum):
        return " or ".join(f"`{choice.value}`" for choice in of)
    return {"str": "TEXT", "Path": "PATH", "int": "N", "float": "X"}.get(
        getattr(of, "__name__", ""), "VALUE"
    )


def _about(parameter: Any) -> str:
    default = parameter.default
    default = default.value if isinstance(default, enum.Enum) else default
    said = cell(parameter.help or "")
    plain = isinstance(default, str | int | float) and not isinstance(default, bool)
    return f"{said} Default: `{default}`." if plain and default != "" else said


def cli() -> str:
    """`proton-tile`, `python -m proton` and the tools."""
    main = viewer_command()
    lines = ["# Command lines", "", "## `proton-tile`", "", markdown(main.help or ""), ""]
    lines += ["A file without a command means `summary`. Exit status: 0 fine, 1 a regression, "
              "2 bad usage or a file that cannot be read, 3 inconclusive.", ""]  # fmt: skip
    for name, found in sorted(main.commands.items()):
        lines += command(f"proton-tile {name}", found, "###")
    lines += command("python -m proton", typer.main.get_command(program_app), "##")
    for name, app in (("opt", opt_app), ("compile", compile_app), ("link", link_app)):
        lines += command(f"proton-{name}", typer.main.get_command(app), "##")
    return "\n".join(lines)


# Environment variables


def environment() -> str:
    """Every variable that is read."""
    rows = [
        (f"`{k.variable}`", f"`{n}`", cell(k.help), _default(k), f"`{k.triton}`" * bool(k.triton))
        for n, k in KNOBS.items()
    ]
    return "\n".join(
        [
            "# Environment variables",
            "",
            '`proton.knobs` has each as an attribute: `proton.knobs.dump_to = "ir"` overrides the '
            'variable, `with proton.knobs.scope(dump_to="ir"):` does so for a while. Triton\'s '
            "variables count where Proton stands for triton (`install_as_triton`, `--as-triton`) "
            "and its own are not set.",
            "",
            *table(("variable", "attribute", "meaning", "default", "Triton's"), rows),
        ]
    )


def _default(knob: Knob[Any]) -> str:
    # At the home of whoever reads, not of who built the page.
    text = str(knob.default).replace(str(Path.home()), "~")
    return "" if knob.default is None else f"`{text}`"


def triton_names() -> str:
    """Triton's public names; of a process of its own, in which `import triton` gives Proton."""
    command = [sys.executable, Path(__file__).with_name("triton_names.py"), "page"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


PAGES: dict[str, Callable[[], str]] = {
    "reference/python.md": python,
    "reference/run.md": run,
    "reference/language.md": language,
    "reference/cli.md": cli,
    "reference/environment.md": environment,
    "reference/triton-names.md": triton_names,
}
