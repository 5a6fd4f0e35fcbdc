"""What a kernel records, as attributes of its function.

There are two:

    proton.table     the ScopeTable, from where records get their numbers on
    proton.profile   the KernelProfile, from where they get their places on
"""

from typing import Any

from proton.dialect.attributes import KERNEL_PROFILE, SCOPE_TABLE
from proton.dialect.builtin import i64_attr, string_attr
from proton.dialect.mlir import Attribute, Operation, ir
from proton.trace.profile import KernelProfile, ScopeTable


def table_of(function: Operation) -> ScopeTable:
    """The scope table of an instrumented kernel."""
    return ScopeTable.from_plain(_plain(function.attributes[SCOPE_TABLE]))


def set_table(function: Operation, table: ScopeTable) -> None:
    """Gives a kernel its scope table."""
    function.attributes[SCOPE_TABLE] = _attribute(table.to_plain())


def profile_of(function: Operation) -> KernelProfile | None:
    """What a kernel records; None for one without records."""
    if KERNEL_PROFILE not in function.attributes:
        return None
    return KernelProfile.from_plain(_plain(function.attributes[KERNEL_PROFILE]))


def set_profile(function: Operation, profile: KernelProfile) -> None:
    """Gives a kernel its profile."""
    function.attributes[KERNEL_PROFILE] = _attribute(profile.to_plain())


def _attribute(plain: object) -> Attribute:
    """Text, numbers, lists and dictionaries as an attribute; entries that are None are left out."""
    if isinstance(plain, str):
        return string_attr(str(plain))
    if isinstance(plain, bool):
        return ir.BoolAttr.get(plain)
    if isinstance(plain, int):
        return i64_attr(plain)
    if isinstance(plain, list):
        return ir.ArrayAttr.get([_attribute(entry) for entry in plain])
    assert isinstance(plain, dict)
    entries = {name: _attribute(v) for name, v in plain.items() if v is not None}
    return ir.DictAttr.get(entries)


def _plain(attribute: Attribute) -> Any:
    """What an attribute of these kinds says."""
    if isinstance(attribute, ir.ArrayAttr):
        return [_plain(entry) for entry in attribute]
    if isinstance(attribute, ir.DictAttr):
        entries = (attribute[number] for number in range(len(attribute)))
        return {entry.name: _plain(entry.attr) for entry in entries}
    return attribute.value
