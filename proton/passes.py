"""Passes and pipelines: a pass is a frozen dataclass, a pipeline runs a list of them in order.

Consecutive upstream passes run as one MLIR pipeline. Between passes a pipeline can dump the
IR (`PROTON_DUMP_TO`, numbered files), take an edited dump in place of a pass's result
(`PROTON_OVERRIDE_FROM`), verify (`PROTON_VERIFY_EACH`) and take times; a pass that fails
leaves a reproducer that `proton-opt` runs.
"""

import dataclasses
import functools
import re
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from proton.base.errors import LocatedError, PassError, ProtonError
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget
from proton.dialect.mlir import Context, Module, PassManager, ir
from proton.dialect.readable import check_readable
from proton.dialect.text import module_text
from proton.dialect.walk import op_names


class Pass(ABC):
    """One rewrite of a module, in place. Subclasses are frozen dataclasses; fields are options."""

    name: ClassVar[str]
    # The ops without which it changes nothing: a pipeline leaves it out where a module has none of
    # them. Empty where that is not all that it looks at.
    only_for: ClassVar[frozenset[str]] = frozenset()
    # The ops that it may make, besides copies of what is there, where it says so: a pipeline then
    # need not look through the module again.
    makes: ClassVar[frozenset[str] | None] = None

    @abstractmethod
    def run(self, module: Module) -> None:
        """Rewrites the `ir.Module`."""

    def __str__(self) -> str:
        """The pass as pipeline text: `name` or `name{option=value ...}`, defaults left out."""
        options = [
            f"{f.name.replace('_', '-')}={_option_text(getattr(self, f.name))}"
            for f in dataclasses.fields(self)  # type: ignore[arg-type]
            if getattr(self, f.name) != f.default
        ]
        return self.name + (f"{{{' '.join(options)}}}" if options else "")


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Upstream(Pass):
    """Passes of MLIR's own, as pipeline text anchored at the module.

    `checked`: of a module that is not valid they end as an error, and not the process. That is
    cheap where all ops are MLIR's own; ours are verified by Python.
    """

    name: ClassVar[str] = "upstream"

    text: str
    checked: bool = False

    def run(self, module: Module) -> None:
        if self.checked:
            module.operation.verify()
        manager = _manager(module.context, self.text)
        manager.enable_verifier(knobs.verify_each)
        manager.run(module.operation)

    def __str__(self) -> str:
        return self.text


_SETTLED = frozenset(("canonicalize", "cse"))


def is_settled(step: Pass) -> bool:
    """True if passes find nothing to do right behind themselves."""
    return isinstance(step, Upstream) and _SETTLED.issuperset(step.text.split(","))


@functools.cache
def _manager(context: Context, text: str) -> PassManager:
    """Passes that are ready to run, kept for the next module: they collect the patterns of all
    dialects of the context before they first run, which takes longer than most runs."""
    return PassManager.parse(f"builtin.module({text})", context)


REGISTRY: dict[str, type[Pass]] = {}


def register(cls: type[Pass]) -> type[Pass]:
    """Makes a pass known to pipeline text by its name."""
    if cls.name in REGISTRY:
        raise ValueError(f"two passes are named {cls.name}")
    REGISTRY[cls.name] = cls
    return cls


@dataclass
class Pipeline:
    """Passes in order. `label` names the dumps (one folder per label)."""

    passes: list[Pass]
    label: str = "module"
    timings: list[tuple[Pass, float]] = field(default_factory=list)  # in seconds

    def __str__(self) -> str:
        return ",".join(map(str, self.passes))

    def run(self, module: Module, first_number: int = 0) -> Module:
        """Runs all passes; returns the module (another one where a dump overrides)."""
        names: frozenset[str] | None = None  # that ops of the module may have, where it is known
        last: Pass | None = None  # that ran
        files = knobs.dump_to is not None or knobs.override_from is not None
        for number, step in enumerate(self.passes, first_number):
            start = time.perf_counter()
            if step.only_for and names is None:
                names = op_names(module)
            is_for_it = not step.only_for or not step.only_for.isdisjoint(names or ())
            if is_for_it and not (step == last and is_settled(step)):
                self._run_one(step, module)
                last = step
                names = None if names is None or step.makes is None else names | step.makes
            self.timings.append((step, time.perf_counter() - start))
            if files:
                module = self._dump_and_override(module, number, step)
                names = last = None
        return module

    def _run_one(self, step: Pass, module: Module) -> None:
        # On disk before the pass runs: one that ends the process leaves its input, too.
        reproducer = self._reproducer(step, module)
        try:
            step.run(module)
            if knobs.verify_each:
                module.operation.verify()
        except LocatedError:
            _remove(reproducer)
            raise
        except Exception as error:
            raise PassError(self._failure(step, reproducer, error)) from error
        _remove(reproducer)

    def _reproducer(self, step: Pass, module: Module) -> str | None:
        """A file with the input of a pass, where the knob asks for reproducers."""
        folder = knobs.reproducer_to
        if folder is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=folder, prefix=f"{self.label}.", suffix=".mlir", delete=False
        ) as file:
            file.write(f"// RUN: proton-opt --pipeline='{step}' %s\n{module_text(module)}")
        return file.name

    def _failure(self, step: Pass, reproducer: str | None, error: Exception) -> str:
        where = "set PROTON_REPRODUCER_TO to keep the input of the failing pass"
        if reproducer is not None:
            where = f"reproduce with: proton-opt --pipeline='{step}' {reproducer}"
        notes = getattr(error, "__notes__", ())  # `before(op)` says which op, and where it is from
        what = f"pass {step} failed on {self.label}: {type(error).__name__}: {error}"
        return "\n".join([what, *notes, where])

    def _dump_and_override(self, module: Module, number: int, step: Pass) -> Module:
        file = Path(self.label) / f"{number:02d}_{_file_name(step)}.mlir"
        if knobs.override_from is not None and (Path(knobs.override_from) / file).exists():
            text = (Path(knobs.override_from) / file).read_text()
            check_readable(text, str(file))
            module = ir.Module.parse(text)
        if knobs.dump_to is not None:
            path = Path(knobs.dump_to) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(module_text(module, with_locations=True))
        return module

    def print_timings(self) -> None:
        """Prints one line per pass to stderr: milliseconds, share, name."""
        total = sum(seconds for _, seconds in self.timings) or 1.0
        for step, seconds in self.timings:
            print(
                f"{seconds * 1e3:9.3f} ms {seconds / total:6.1%}  {self.label}: {step}",
                file=sys.stderr,
            )


def _remove(reproducer: str | None) -> None:
    if reproducer is not None:
        Path(reproducer).unlink()


def _file_name(step: Pass) -> str:
    text = str(step) if isinstance(step, Upstream) else step.name
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:60].strip("_")


def parse_pipeline(text: str) -> list[Pass]:
    """The passes that pipeline text names; names that are not ours are upstream passes."""
    passes: list[Pass] = []
    for element in _split_outer(text, ","):
        match = re.fullmatch(r"([\w-]+)(?:\{(.*)\})?", element)
        if match is not None and match[1] in REGISTRY:
            passes.append(_parse_pass(REGISTRY[match[1]], match[2] or ""))
        elif passes and isinstance(passes[-1], Upstream):
            passes[-1] = Upstream(f"{passes[-1].text},{element}")
        else:
            passes.append(Upstream(element))
    return passes


def _split_outer(text: str, separator: str) -> list[str]:
    """Splits where no parenthesis or brace is open."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "({") - (char in ")}")
        if char == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _parse_pass(cls: type[Pass], text: str) -> Pass:
    fields = {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    options: dict[str, object] = {}
    for part in _split_outer(text, " "):
        key, _, value = part.partition("=")
        name = key.replace("-", "_")
        if name not in fields:
            known = ", ".join(f.replace("_", "-") for f in fields) or "none"
            raise PassError(f"pass {cls.name} has no option {key!r}; its options: {known}")
        options[name] = _parse_option(cls, fields[name], value)
    for name, known_field in fields.items():
        if name not in options and known_field.default is dataclasses.MISSING:
            raise PassError(
                f"pass {cls.name} needs the option {name}: {cls.name}{{target=cuda:90}}"
            )
    return cls(**options)


def _parse_option(cls: type[Pass], option: Any, text: str) -> Any:
    parsers: dict[Any, Callable[[str], Any]] = {
        bool: {"true": True, "false": False}.__getitem__,
        int: int,
        str: str,
        GPUTarget: GPUTarget.parse,
    }
    try:
        return parsers[option.type](text)
    except ProtonError as problem:
        raise PassError(f"option {option.name} of pass {cls.name}: {problem}") from None
    except (KeyError, ValueError):
        raise PassError(
            f"option {option.name} of pass {cls.name} is {option.type.__name__}, got {text!r}"
        ) from None
