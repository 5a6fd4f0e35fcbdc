"""What a rule is, and which there are."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from proton.viewer.explain.finding import Said
from proton.viewer.explain.subject import Subject


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule: `find` says what it finds in a run, and what it would need to.

    A module of `proton.viewer.explain.rules` is a rule: it has a `RULE`. `about` is what it looks
    for, in a line. What it finds is shown behind what the rules `behind` find of the same kernel,
    where they say why.
    """

    name: str
    about: str
    find: Callable[[Subject], Said]
    behind: tuple[str, ...] = ()


@cache
def rules(package: str = "proton.viewer.explain.rules") -> dict[str, Rule]:
    """All rules by name."""
    folder: ModuleType = importlib.import_module(package)
    names = sorted(module.name for module in pkgutil.iter_modules(folder.__path__))
    found = (importlib.import_module(f"{package}.{name}").RULE for name in names)
    return {rule.name: rule for rule in found}
