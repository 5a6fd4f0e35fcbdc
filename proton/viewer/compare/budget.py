"""Budgets: what a scope, a warp or a kernel may take, as a TOML file says it.

false_alarms = "1%"          # of checks of unchanged code, over all budgets together

[[budget]]
kernel = "softmax"           # a name or a pattern (`*`, `?`); all kernels if none is named
scope = "load"               # a path or a pattern; the kernel's launches if none is named
stat = "p50"
max_regression = "5%"        # against the baseline
max_ns = 50_000              # of the candidate alone
where = "BLOCK=1024"         # constants and types of arguments, target, machine facts
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from proton.base.errors import ProtonError
from proton.base.symbols import shortened
from proton.base.text import printable
from proton.base.words import did_you_mean, shown
from proton.trace.tiles import FIELD as TILE
from proton.viewer.compare.matching import arguments
from proton.viewer.compare.samples import ALL_WARPS, STATS, Group
from proton.viewer.compare.structure import MEASURES, Asked

FALSE_ALARMS = 0.01
MIN_PROCESSES = 5  # fewer give intervals that nobody can use: Student's t at 1 % is 4.5 for 4
EACH = "each"


class BudgetError(ProtonError):
    """A budget that breaks a rule; the message says where, which rule and which value."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """One rule. `warp` is a number, "each" for every warp by itself, or None for all together."""

    kernel: str = "*"
    scope: str = ""
    warp: int | str | None = None
    stat: str = "p50"
    max_ns: float | None = None
    max_regression: float | None = None
    min_change_ns: float = 0.0  # less than this is no regression, whatever part it is
    reference: str = ""  # KERNEL or KERNEL/SCOPE that is measured beside, to divide by
    where: str = ""
    hidden_by: str = ""  # what min_overlap is of: a scope, or "copies" or "dots" in flight
    order: tuple[str, ...] = ()  # of phases, in each unit and iteration
    per: str = ""  # "tile": of phases, in each unit and tile
    role: str = ""  # of groups of warps, for limits of structure; a name or a pattern
    min_overlap: float | None = None
    min_visits: int | None = None
    max_visits: int | None = None
    max_share: float | None = None
    max_critical: float | None = None
    max_imbalance: float | None = None
    min_occupancy: float | None = None
    max_registers: int | None = None
    max_spills: int | None = None
    max_shared_bytes: int | None = None
    max_lost: int | None = None

    def __post_init__(self) -> None:
        if not self.is_timed and not self.structure:
            known = ", ".join(("max_ns", "max_regression", *MEASURES))
            raise BudgetError(f"a budget needs one of {known}")
        self._check_structure()
        if self.stat not in STATS:
            rule = f"stat must be one of {', '.join(STATS)}"
            raise BudgetError(f"{rule}, got {shown(self.stat)}{did_you_mean(self.stat, STATS)}")
        for name in ("max_ns", "max_regression"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise BudgetError(f"{name} must be more than 0, got {shown(value)}")
        conditions(self.where)

    def _check_structure(self) -> None:
        """Raises BudgetError for a measure that lacks what it is of."""
        for name in self.structure:
            if MEASURES[name].needs_scope and not self.scope:
                raise BudgetError(f"{name} needs a scope")
            if self.warp == EACH and name != "order":
                raise BudgetError(f"{name} is of one warp or of all, got warp = {shown(EACH)}")
        if self.per not in ("", TILE) or (self.per and not self.order):
            raise BudgetError(f'per is "{TILE}", of an order, got {shown(self.per)}')
        if self.role and (self.is_timed or self.warp is not None):
            raise BudgetError("role is of limits of structure, and of no warp by itself")
        if (self.min_overlap is None) != (not self.hidden_by):
            raise BudgetError("min_overlap and hidden_by go together: a scope, and what hides it")
        if len(self.order) == 1:
            raise BudgetError(f"order must name two phases or more, got {shown(self.order)}")
        if len(set(self.order)) < len(self.order):
            raise BudgetError(f"order must name each phase once, got {shown(self.order)}")

    @property
    def is_timed(self) -> bool:
        """Whether it limits a time."""
        return self.max_ns is not None or self.max_regression is not None

    @property
    def structure(self) -> dict[str, float]:
        """The measures of structure that it limits, and the limits; `order` allows no disorder."""
        values = {name: getattr(self, name) for name in MEASURES if name != "order"}
        found = {name: float(value) for name, value in values.items() if value is not None}
        return found | ({"order": 0.0} if self.order else {})

    @property
    def asked(self) -> Asked:
        """What its measures are of."""
        warp = self.warp if isinstance(self.warp, int) else None
        return Asked(scope=self.scope, hidden_by=self.hidden_by, order=self.order, per=self.per,
                     warp=warp, role=self.role)  # fmt: skip

    def is_of_kernel(self, name: str) -> bool:
        """Whether it names a kernel."""
        return _like(self.kernel, name)

    def covers(self, group: Group) -> bool:
        """Whether the rule is about it, `where` aside."""
        warp = group.warp
        if self.warp is None or not self.scope:
            fits = warp == ALL_WARPS
        else:
            fits = warp >= 0 if self.warp == EACH else warp == self.warp
        same = _like(self.scope, group.scope) if self.scope else not group.scope
        return fits and same and _like(self.kernel, group.variant.kernel)

    def holds_for(self, group: Group, facts: dict[str, str]) -> bool:
        """Whether `where` is true of a kernel's variant on a machine of these facts."""
        known = {**facts, **arguments(group.variant.signature)}
        found = conditions(self.where)
        return all(_fits(known.get(name), sign, value) for name, sign, value in found)

    @property
    def title(self) -> str:
        """What the rule is about, on a line."""
        name = f"{self.kernel}/{self.scope}" if self.scope else self.kernel
        warp = "" if self.warp is None else f", warp {self.warp}"
        stat = f" {self.stat}" if self.is_timed else ""
        return f"{name}{warp}{stat}" + (f" where {self.where}" if self.where else "")


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """All rules of a check. `false_alarms` is the part of checks that fail where nothing changed,
    of all rules together, and `min_processes` what a side must have for an answer."""

    budgets: Sequence[Budget]
    false_alarms: float = FALSE_ALARMS
    min_processes: int = MIN_PROCESSES
    allow_losses: bool = False
    allow_partial: bool = False
    reference: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether one run answers: no budget is of a time."""
        return not any(
            rule.is_timed or not all(MEASURES[name].is_exact for name in rule.structure)
            for rule in self.budgets
        )

    @property
    def warps(self) -> bool:
        """Whether any rule is of warps by themselves."""
        return any(rule.warp is not None for rule in self.budgets)

    @staticmethod
    def load(path: Path) -> Budgets:
        """Reads a TOML file; raises BudgetError for one that breaks a rule."""
        try:
            with open(path, "rb") as file:
                document = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BudgetError(f"{path}: not TOML: {error}") from error
        return budgets_of(document, str(path))


def budgets_of(document: dict[str, object], where: str) -> Budgets:
    """The rules that a TOML document says."""
    tables = document.pop("budget", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise BudgetError(f"{where}: budgets are tables, each below a line [[budget]]")
    if not tables:
        raise BudgetError(f"{where}: there is no [[budget]]")
    rest = _checked(document, Budgets, where)
    reference = rest.get("reference", "")
    rules = []
    for number, table in enumerate(tables, 1):
        here = f"{where}, budget {number}"
        values = _checked({"reference": reference, **table}, Budget, here)
        try:
            rules.append(Budget(**values))
        except BudgetError as error:
            raise BudgetError(f"{here}: {error}") from None
    return Budgets(budgets=tuple(rules), **rest)


def parse(text: str) -> dict[str, object]:
    """`scope=load, max_visits=8, order=load>dot>store` as the table of a budget."""
    found: dict[str, object] = {}
    for item in filter(None, (each.strip() for each in text.split(","))):
        name, sign, value = (part.strip() for part in item.partition("="))
        if not sign or not name:
            raise BudgetError(f"a budget is NAME=VALUE, separated by commas, got {shown(item)}")
        if name == "order":
            found[name] = [phase.strip() for phase in value.split(">")]
        elif value.isdecimal():
            found[name] = int(value)
        else:
            found[name] = float(value) if re.fullmatch(r"\d+\.\d+", value) else value
    return found


def part(value: object) -> float:
    """`"10%"` or 0.1 as a number; raises ValueError for anything else: for a number above 1, which
    may be meant as percents, with how they are written."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value)
        if found is None:
            raise ValueError
        return float(found[1]) / 100
    number = _number(value)
    if number > 1:
        raise ValueError(f': write {number / 100:g} or "{number:g}%"')
    return number


def _regression(value: object) -> float:
    """... which may be more than all, if it is written so."""
    try:
        return part(value)
    except ValueError as error:
        more = f', or "{100 * _number(value):g}%" if that is meant' if str(error) else ""
        raise ValueError(f"{error}{more}") from None


_CONDITION = re.compile(r"\s*([\w.]+)\s*(!=|=)\s*(.*?)\s*")


def conditions(where: str) -> list[tuple[str, str, str]]:
    """`BLOCK=1024, target!=cpu` as names, signs and patterns."""
    found = []
    for text in where.split(",") if where.strip() else []:
        condition = _CONDITION.fullmatch(text)
        if condition is None:
            rule = "where must be NAME=VALUE or NAME!=VALUE, separated by commas"
            raise BudgetError(f"{rule}, got {shown(text)}")
        found.append((condition[1], condition[2], condition[3]))
    return found


def _fits(value: str | None, sign: str, pattern: str) -> bool:
    return (value is not None and _like(pattern, value)) == (sign == "=")


def _like(pattern: str, text: str) -> bool:
    """Whether it is the text, or a pattern of it."""
    return any(pattern == name or fnmatchcase(name, pattern) for name in (text, shortened(text)))


def _checked(values: Mapping[str, object], of: type, where: str) -> dict[str, Any]:
    """The values with the types that the fields of a class have."""
    names = [field.name for field in fields(of) if field.name != "budgets"]
    found = {}
    for name, value in values.items():
        if name not in names:
            hint = did_you_mean(name, names)
            known = ", ".join(names)
            raise BudgetError(f"{where}: {printable(name)} is no key; there are {known}{hint}")
        kind, convert = _TYPES.get(name, ("text", _text))
        try:
            found[name] = convert(value)
        except ValueError as error:
            rule = f"{name} must be {kind}, got {shown(value)}{error}"
            raise BudgetError(f"{where}: {rule}") from None
    return found


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return float(value)


def _whole(least: int) -> Callable[[object], int]:
    def convert(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError
        return value

    return convert


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _warp(value: object) -> int | str:
    return EACH if value == EACH else _whole(0)(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _probability(value: object) -> float:
    found = part(value)
    if not 0 < found < 0.5:
        raise ValueError
    return found


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError
    return tuple(value)


def _part(value: object) -> float:
    found = part(value)
    if not 0 <= found <= 1:
        raise ValueError
    return found


_TYPES: dict[str, tuple[str, Callable[[object], object]]] = {
    "warp": ('a number or "each"', _warp),
    "max_ns": ("a number of ns", _number),
    "min_change_ns": ("a number of ns", _number),
    "order": ("a list of scopes", _names),
    **dict.fromkeys(
        ("min_overlap", "max_share", "max_critical", "min_occupancy"),
        ('a part such as "60%" or 0.6', _part),
    ),
    "max_imbalance": ("a number such as 1.2", _number),
    **{
        name: ("a whole number", _whole(0))
        for name in (
            "min_visits",
            "max_visits",
            "max_registers",
            "max_spills",
            "max_shared_bytes",
            "max_lost",
        )
    },
    "max_regression": ('a part such as "10%" or 0.1', _regression),
    "false_alarms": ('a part such as "1%", below a half', _probability),
    "min_processes": ("an integer of at least 2", _whole(2)),
    "allow_losses": ("true or false", _switch),
    "allow_partial": ("true or false", _switch),
}
