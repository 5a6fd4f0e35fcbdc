"""The public names of Triton 3.9, and which of them Proton has.

    TRITON_PYTHON scripts/triton_names.py list > tests/pure/triton_names.json
    python scripts/triton_names.py page

The first is run by a Python with Triton, and reads its sources; the second prints the page of the
site's reference (scripts/docs_reference.py asks for it). A name is public if a module defines it at
its top level, or a package's `__init__.py` takes it over from its modules, and it does not begin
with an underscore.
"""

import ast
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ROOT / "tests/pure/triton_names.json"
# Modules with an underscore that programs import all the same.
PRIVATE = ("_allocation", "_async_compile", "_filecheck", "_internal_testing", "_utils")
HEAD = """# Names of Triton

What `import triton` of `install_as_triton` (`--as-triton`) has of the public names of Triton 3.9,
by module. What a name means: [The language, op by op](../language.md),
[Move from Triton](../from-triton.md).

| module | there | not there, and why |
|---|---|---|
"""
MODULES = """
| modules that are not there (public names) | why |
|---|---|
"""


def defined(file: Path) -> list[str]:
    """The public names that a file of Triton defines or, in a package, takes over."""
    is_package = file.name == "__init__.py"
    found: set[str] = set()
    for node in ast.walk(ast.Module(_level(ast.parse(file.read_text()).body), [])):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.ImportFrom) and is_package and node.level:
            found |= {alias.asname or alias.name for alias in node.names}
    # One letter is a type's variable.
    return sorted(name for name in found if not name.startswith("_") and len(name) > 1)


def _level(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a module's top level, without what is in functions and classes."""
    flat: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inside = {"body": [], "decorator_list": []}
            flat.append(type(node)(**dict(ast.iter_fields(node)) | inside))
        elif isinstance(node, ast.If | ast.Try):
            flat += _level(node.body)
        elif not isinstance(node, ast.For | ast.With):
            flat.append(node)
    return flat


def listed() -> dict[str, list[str]]:
    """The names of every module of the Triton that this Python has."""
    spec = importlib.util.find_spec("triton")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    found = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        is_private = any(p.startswith("_") and p not in PRIVATE for p in module.split("."))
        if not is_private and (names := defined(file)):
            found[module] = names
    return found


def there(module: str, names: list[str]) -> list[str] | None:
    """Those of a module's names that Proton has, in whose place it stands; None without it."""
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError:
        return None
    return [name for name in names if _has(found, name)]


def _has(module: object, name: str) -> bool:
    try:
        getattr(module, name)
    except AttributeError:
        return False
    return True


def rows() -> Iterator[tuple[str, list[str] | None, list[str]]]:
    """(module, names that are there, those that are not), None for a module that is not there."""
    for module, names in json.loads(NAMES.read_text()).items():
        has = there(module, names)
        yield module, has, [name for name in names if has is None or name not in has]


def page() -> str:
    """The page; to be called where Proton stands for Triton."""
    from proton.compat.triton.absent import reason

    lines, absent = [], {}
    for module, has, lacks in rows():
        if has is None:
            absent.setdefault(reason(module), []).append(f"`{module}` ({len(lacks)})")
            continue
        reasons: dict[str, list[str]] = {}
        for name in lacks:
            reasons.setdefault(reason(f"{module}.{name}"), []).append(f"`{name}`")
        said = "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
        lines.append(f"| `{module}` | {' '.join(f'`{name}`' for name in has)} | {said} |")
    parts = [HEAD, *(f"{line}\n" for line in lines), MODULES]
    parts += [f"| {' '.join(modules)} | {why} |\n" for why, modules in absent.items()]
    return "".join(parts)


if __name__ == "__main__":
    if sys.argv[1:] == ["list"]:
        json.dump(listed(), sys.stdout, indent=0)
    else:
        import proton

        proton.install_as_triton()
        sys.stdout.write(page())
