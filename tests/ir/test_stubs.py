"""The stubs of the bindings say nothing that the bindings do not have."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import proton
from proton.dialect import mlir
from proton.dialect.mlir import func
from proton.dialect.tt import TT

STUBS = Path(proton.__file__).parent / "dialect" / "bindings"
# Classes whose members those have that derive from them.
DERIVED = {"OpView": func.FuncOp, "Dialect": TT}
# Of a class whose stub has `__getattr__` subclasses have the rest, and some are sequences.
OPEN = {"__getattr__", "__iter__", "__len__", "__getitem__"}


def bindings(name: str) -> ModuleType:
    """The module that a stub stands for."""
    root = mlir.ir.__name__.removesuffix(".ir")
    return importlib.import_module(f"{root}.{'dialects.ext' if name == 'ext' else name}")


def members(stub: ast.ClassDef) -> Iterator[str]:
    """What a stub says that a class has."""
    for node in stub.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def there(stub: ast.ClassDef, real: type) -> set[str]:
    """What a class has, or may have by its stub."""
    real = DERIVED.get(stub.name, real)
    found = {*dir(real), *getattr(real, "__annotations__", ())}
    if "__getitem__" in found:  # Python iterates by it
        found.add("__iter__")
    return found | OPEN if "__getattr__" in members(stub) else found


def unknown(text: str, module: ModuleType) -> list[str]:
    """What a stub's text has and a module has not; its own classes begin with an underscore."""
    found = []
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if not hasattr(module, node.name):
            found.append(node.name)
        elif isinstance(node, ast.ClassDef):
            known = there(node, getattr(module, node.name))
            found += [f"{node.name}.{name}" for name in members(node) if name not in known]
    return found


@pytest.mark.parametrize("name", ["ir", "ext", "passmanager"])
def test_the_bindings_have_what_their_stubs_say(name: str) -> None:
    text = (STUBS / f"{name}.pyi").read_text()
    assert text.count("\nclass ") >= 1
    assert unknown(text, bindings(name)) == []


def test_a_stub_of_what_is_not_there_is_found() -> None:
    text = (
        "class Value:\n    no_such_field: int\n    def get_name(self): ...\nclass NoSuchClass: ..."
    )
    assert unknown(text, bindings("ir")) == ["Value.no_such_field", "NoSuchClass"]
