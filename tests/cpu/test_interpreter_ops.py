"""The interpreter knows every op that the front end can make."""

import ast
from collections.abc import Iterator
from pathlib import Path

import proton.interpreter.steps  # which fills the tables
from proton.dialect import mlir
from proton.dialect.tt import IN_ARITH, TT
from proton.interpreter.plan import MAKERS, REGION_MAKERS

PROTON = Path(proton.interpreter.steps.__file__).parents[1]
# What makes IR that is interpreted: the front end, and the CPU's rules of library functions.
SOURCES = [
    *(PROTON / "frontend").glob("*.py"),
    PROTON / "dialect/regions.py",
    *(
        PROTON / "conversion/triton_arith_to_linalg" / f"{name}.py"
        for name in ("extern", "special", "directed")
    ),
]
UPSTREAM = ("arith", "math", "scf")
NO_STEPS = {"scf.yield", "scf.condition", "scf.execute_region"}  # the last is gone in the end
OF_TEXT = {"tt.dot_scaled", "tt.fp4_to_fp"}  # only IR from text has these


def ops_of_upstream() -> Iterator[str]:
    """The ops that sources name, in a table or as the bindings' class."""
    classes = {
        (dialect, name): cls.OPERATION_NAME
        for dialect in UPSTREAM
        for name, cls in vars(mlir._module(f"dialects.{dialect}")).items()
        if hasattr(cls, "OPERATION_NAME")
    }
    names = set(classes.values())
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            match node:
                case ast.Constant(value=str(text)) if text in names:
                    yield text
                case ast.Attribute(value=ast.Name(id=dialect), attr=name):
                    if (dialect, name) in classes:
                        yield classes[dialect, name]


def ops_of_tt() -> Iterator[str]:
    for cls in TT.Operation.__subclasses__():
        name: str = cls.OPERATION_NAME
        if not name.endswith("_return"):  # a terminator
            yield name


def test_every_op_has_its_meaning() -> None:
    made = {*ops_of_upstream(), *ops_of_tt()}
    assert {"tt.load", "tt.map_elementwise", "arith.addf", "math.exp", "scf.for"} <= made
    assert sorted(made - {*MAKERS, *REGION_MAKERS, *IN_ARITH} - NO_STEPS - OF_TEXT) == []
