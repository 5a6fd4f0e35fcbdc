"""The one door to the MLIR bindings: nothing else in Proton names the wheel.

The upstream `mlir` package is taken where it is installed and new enough; otherwise the copy
inside `numba-cuda-mlir`. That copy's parent package costs 0.8 s of imports that we never use,
so it stands in `sys.modules` unexecuted until somebody else wants it: the first use of
anything in it but the bindings runs its `__init__` as if it had just been imported.
"""

import importlib
import importlib.util
import sys
import types
from collections.abc import MutableSequence, Sequence
from typing import TYPE_CHECKING, Any

from proton.base.packages import missing_compiler

_WHEEL = "numba_cuda_mlir"


class _DeferredPackage(types.ModuleType):
    """A package whose `__init__` runs at the first look at an attribute it does not have yet."""

    def __getattr__(self, name: str) -> Any:
        if name == "_mlir":  # a namespace package: the import system adds it
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.complete()
        return getattr(self, name)

    def complete(self) -> None:
        """Runs the package's own `__init__`, once."""
        if self.__class__ is _DeferredPackage:
            spec = self.__spec__
            self.__class__ = types.ModuleType  # type: ignore[assignment]
            assert spec is not None
            assert spec.loader is not None
            spec.loader.exec_module(self)


class _CompletesOnImport:
    """A finder that finds nothing: it completes the package when a submodule of it (other than
    the bindings) is imported by name."""

    def __init__(self, package: _DeferredPackage) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith(f"{_WHEEL}.") and not name.startswith(f"{_WHEEL}._mlir"):
            sys.meta_path.remove(self)
            self.package.complete()


def _upstream() -> str | None:
    """The name of the upstream package, where it has what we need (`dialects.ext`)."""
    if importlib.util.find_spec("mlir") is None:
        return None
    try:
        importlib.import_module("mlir.dialects.ext")
    except ImportError:
        return None
    return "mlir"


def _wheel() -> str:
    """The name of the wheel's package, importable without running its parent."""
    if _WHEEL not in sys.modules:
        spec = importlib.util.find_spec(_WHEEL)
        if spec is None or spec.submodule_search_locations is None:
            raise missing_compiler(_WHEEL)
        package = _DeferredPackage(_WHEEL)
        package.__spec__, package.__loader__ = spec, spec.loader
        package.__path__ = list(spec.submodule_search_locations)
        package.__package__, package.__file__ = _WHEEL, spec.origin
        sys.modules[_WHEEL] = package
        sys.meta_path.insert(0, _CompletesOnImport(package))
    return f"{_WHEEL}._mlir"


_root = _upstream() or _wheel()


def _module(name: str) -> Any:
    return importlib.import_module(f"{_root}.{name}")


ir: Any = _module("ir")
PassManager: Any = _module("passmanager").PassManager
ext: Any = _module("dialects.ext")
irdl: Any = _module("dialects.irdl")
arith: Any = _module("dialects.arith")
math: Any = _module("dialects.math")
scf: Any = _module("dialects.scf")
func: Any = _module("dialects.func")
tensor: Any = _module("dialects.tensor")
memref: Any = _module("dialects.memref")
llvm: Any = _module("dialects.llvm")
vector: Any = _module("dialects.vector")
gpu: Any = _module("dialects.gpu")


if TYPE_CHECKING:
    # The bindings have no types of their own. These tell operations, values, types and attributes
    # apart; what only a subclass has, such as a tensor type's shape, stays unchecked.
    class _Open:
        def __getattr__(self, name: str) -> Any: ...

    class Type(_Open): ...

    class Attribute(_Open): ...

    class Location(_Open):
        def __enter__(self) -> "Location": ...

        def __exit__(self, *raised: object) -> None: ...

    class Value(_Open):
        type: Any  # of some subclass of Type
        location: Location

    class Block(_Open):
        arguments: Sequence[Value]

    class Region(_Open):
        blocks: Sequence[Block]

    class Operation(_Open):
        name: str
        operands: MutableSequence[Value]
        results: Sequence[Value]
        regions: Sequence[Region]
        location: Location
        block: Block

    class Module(_Open):
        body: Block
else:
    Attribute, Block, Location, Module = ir.Attribute, ir.Block, ir.Location, ir.Module
    Operation, Region, Type, Value = ir.Operation, ir.Region, ir.Type, ir.Value


def _keep_falsy_attributes(self: Any, attribute: Any) -> Any:
    """`AttributeDef.process_attr`, told apart from "not given": `false` and `[]` are values.

    The wheel tests the attribute's truth, so an op could not hold a false or empty one.
    """
    if attribute is not None:
        return attribute
    return self.default_factory() if self.default_factory else None


ext.AttributeDef.process_attr = _keep_falsy_attributes


def prepare_lookups(package: str) -> None:
    """Tells the bindings where our dialects' classes are; call it once, with a context entered.

    Whenever the bindings make a view of an op they look for the Python module of its dialect.
    A module that is not found is looked for again each time, ten times the cost of everything
    else; `package` holds ours. The module of `linalg` is found and takes 60 ms to import, and
    we use none of its classes: an empty one stands in its place for the one look-up that the
    bindings make.
    """
    ext._cext.globals.append_dialect_search_prefix(package)
    name = f"{_root}.dialects.linalg"
    if name in sys.modules:
        return
    sys.modules[name] = types.ModuleType(name)
    try:
        text = "%0 = arith.constant 0.0 : f32 %1 = tensor.empty() : tensor<1xf32> "
        fill = "%2 = linalg.fill ins(%0 : f32) outs(%1 : tensor<1xf32>) -> tensor<1xf32>"
        for op in ir.Module.parse(text + fill).body.operations:
            op.opview  # noqa: B018 - makes the view
    finally:
        del sys.modules[name]


def translate_to_llvm_ir(module: Any) -> str:
    """LLVM IR text of a module that is all in the `llvm` dialect."""
    return str(llvm.translate_module_to_llvmir(module.operation))
