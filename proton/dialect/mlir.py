"""The one door to the MLIR bindings: nothing else in Proton names the wheel.

The upstream `mlir` package is taken where it is installed and new enough; otherwise the copy
inside `numba-cuda-mlir`. That copy's parent package costs 0.8 s of imports that we never use,
so it stands in `sys.modules` unexecuted until somebody else wants it: the first use of
anything in it but the bindings runs its `__init__` as if it had just been imported.
"""

import ctypes
import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proton.base.packages import missing_compiler

_WHEEL = "numba_cuda_mlir"


class _DeferredPackage(types.ModuleType):
    """A package whose `__init__` runs at the first look at an attribute it does not have yet."""

    def __getattr__(self, name: str) -> object:
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

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
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


@functools.cache
def disable_llvm_pass(name: str) -> None:
    """Has the wheel's LLVM leave a pass out, in all of the process from now on: there is no other
    way to say which passes a target runs. Where the bindings are upstream's, nothing is said to
    their LLVM, which may know no such option."""
    if not _root.startswith(_WHEEL):
        return
    words = (b"proton", f"-opt-disable={name}".encode(), b"-opt-bisect-verbose=false")
    options = (ctypes.c_char_p * len(words))(*words)
    _library().LLVMParseCommandLineOptions(len(options), options, b"")


@functools.cache
def _library() -> ctypes.PyDLL:
    """The library of MLIR and LLVM that the wheel's bindings call."""
    package = _module("_mlir_libs").__file__
    assert package is not None
    (path,) = Path(package).parent.glob("libMLIRPythonCAPI.*")
    library, pointer = ctypes.PyDLL(str(path)), ctypes.c_void_p
    library.mlirTranslateModuleToLLVMIRToString.argtypes = [pointer]
    library.mlirTranslateModuleToLLVMIRToString.restype = pointer
    library.LLVMDisposeMessage.argtypes, library.LLVMDisposeMessage.restype = [pointer], None
    return library


def _module(name: str) -> types.ModuleType:
    return importlib.import_module(f"{_root}.{name}")


def _names_only(dialect: str, **ops: str) -> types.SimpleNamespace:
    """Classes that only say what their ops are called, of a dialect that takes long to import."""
    classes = {c: type(c, (), {"OPERATION_NAME": f"{dialect}.{op}"}) for c, op in ops.items()}
    return types.SimpleNamespace(**classes)


if TYPE_CHECKING:  # what the bindings are, for mypy and editors: the wheel does not say
    from proton.dialect.bindings import ext as ext
    from proton.dialect.bindings import ir as ir
    from proton.dialect.bindings.ext import Operand as Operand
    from proton.dialect.bindings.ext import Result as Result
    from proton.dialect.bindings.ir import Attribute as Attribute
    from proton.dialect.bindings.ir import Block as Block
    from proton.dialect.bindings.ir import Context as Context
    from proton.dialect.bindings.ir import InsertionPoint as InsertionPoint
    from proton.dialect.bindings.ir import Location as Location
    from proton.dialect.bindings.ir import Module as Module
    from proton.dialect.bindings.ir import Operation as Operation
    from proton.dialect.bindings.ir import OpView as OpView
    from proton.dialect.bindings.ir import Region as Region
    from proton.dialect.bindings.ir import Type as Type
    from proton.dialect.bindings.ir import Value as Value
    from proton.dialect.bindings.passmanager import PassManager as PassManager
    from proton.dialect.bindings.upstream import *

    AnyType, AnyAttr = Type, Attribute  # of a field: one of any type, any attribute
else:
    ir, ext = _module("ir"), _module("dialects.ext")
    PassManager = _module("passmanager").PassManager
    arith, math = _module("dialects.arith"), _module("dialects.math")
    CmpIPredicate = arith.CmpIPredicate
    func, llvm = _module("dialects.func"), _module("dialects.llvm")
    tensor, memref = _module("dialects.tensor"), _module("dialects.memref")
    vector, gpu = _module("dialects.vector"), _module("dialects.gpu")
    scf, ub = _module("dialects.scf"), _module("dialects.ub")
    bufferization, builtin = _module("dialects.bufferization"), _module("dialects.builtin")
    linalg = _names_only(
        "linalg", CopyOp="copy", FillOp="fill", GenericOp="generic", MatmulOp="matmul"
    )
    nvvm = _names_only(
        "nvvm",
        BarrierOp="barrier",
        ElectSyncOp="elect.sync",
        ShflOp="shfl.sync",
        SyncWarpOp="bar.warp.sync",
    )
    Attribute, Block, Context, Location = ir.Attribute, ir.Block, ir.Context, ir.Location
    InsertionPoint, Module, Operation = ir.InsertionPoint, ir.Module, ir.Operation
    OpView, Region, Type, Value = ir.OpView, ir.Region, ir.Type, ir.Value
    Operand, Result = ext.Operand, ext.Result
    AnyType = AnyAttr = Any  # no constraint, to the bindings


def _keep_falsy_attributes(
    self: "ext.AttributeDef", attribute: "Attribute | None"
) -> "Attribute | None":
    """`AttributeDef.process_attr`, told apart from "not given": `false` and `[]` are values.

    The wheel tests the attribute's truth, so an op could not hold a false or empty one.
    """
    if attribute is not None:
        return attribute
    return self.default_factory() if self.default_factory else None


ext.AttributeDef.process_attr = _keep_falsy_attributes


_erase = ir.Operation.erase


def _erase_unused(self: "Operation | OpView") -> None:
    """`Operation.erase`, which leaves no use of a value that is gone.

    The bindings free the op whoever uses it, and what reads such a use later ends the process.
    Raises RuntimeError, of which a pipeline makes a PassError with the input of the pass.
    """
    op = self.operation
    for result in op.results:
        for use in result.uses:
            user = use.owner.operation
            raise RuntimeError(f"{op.name} is erased while {user.name} uses it")
    _erase(op)


ir.Operation.erase = ir.OpView.erase = _erase_unused  # type: ignore[method-assign]


# The pointer in a capsule, by the name that the bindings give capsules of operations.
_PointerIn = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_pointer_in = _PointerIn(("PyCapsule_GetPointer", ctypes.pythonapi))
_OPERATION = f"{_root}.ir.Operation._CAPIPtr".encode()


def _hash_of_address(self: Any) -> int:
    """The hash of an op: of its address, by which the bindings say whether two are the same.

    That of the bindings is of its operands, attributes, types and location: a set or a dict that
    has an op does not find it when one of these has changed.
    """
    return _pointer_in(self._CAPIPtr, _OPERATION) >> 4  # it is aligned


ir.Operation.__hash__ = ir.OpView.__hash__ = _hash_of_address  # type: ignore[method-assign]


_bound_init = ext.Operation._generate_init_method.__func__


def _quick_init(cls: Any, fields: "Sequence[ext.FieldDef]") -> None:
    """`Operation._generate_init_method` with arguments that are told apart by hand: binding them
    by a signature takes longer than making the op does."""
    _bound_init(cls, fields)
    bound, parameters = cls.__init__, list(cls.__init__.__signature__.parameters.values())[1:]
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    names = {p.name for p in parameters}
    operands, attributes, results, regions = ext.partition_fields(fields)

    def __init__(self: "ext.Operation", /, *args: object, **named: object) -> None:
        given = defaults | dict(zip(positional, args, strict=False)) | named
        twice = named and any(name in named for name in positional[: len(args)])
        if given.keys() != names or len(args) > len(positional) or twice:
            bound(self, *args, **named)  # says what is wrong
        super(ext.Operation, self).__init__(
            self.OPERATION_NAME,
            self._ODS_REGIONS,
            self._ODS_OPERAND_SEGMENTS,
            self._ODS_RESULT_SEGMENTS,
            attributes={field.name: field.process_attr(given[field.name]) for field in attributes},
            results=[field.process_type(given[field.name]) for field in results],
            operands=[given[field.name] for field in operands],
            regions=len(regions) or None,
            loc=given["loc"],
            ip=given["ip"],
        )

    __init__.__signature__ = bound.__signature__  # type: ignore[attr-defined]
    cls.__init__ = __init__


ext.Operation._generate_init_method = classmethod(_quick_init)


def prepare_lookups(package: str) -> None:
    """Tells the bindings where our dialects' classes are; call it once, with a context entered.

    Whenever the bindings make a view of an op they look for the Python module of its dialect.
    A module that is not found is looked for again each time, ten times the cost of everything
    else; `package` holds ours. The modules of `linalg` and `nvvm` are found and take 60 and 30 ms
    to import, and we use none of their classes: empty ones stand in their places for the one
    look-up that the bindings make.
    """
    ext._cext.globals.append_dialect_search_prefix(package)
    empty = {name: types.ModuleType(name) for name in map(_dialect, ("linalg", "nvvm"))}
    empty = {name: module for name, module in empty.items() if name not in sys.modules}
    sys.modules |= empty
    try:
        text = "%0 = arith.constant 0.0 : f32 %1 = tensor.empty() : tensor<1xf32> "
        fill = "%2 = linalg.fill ins(%0 : f32) outs(%1 : tensor<1xf32>) -> tensor<1xf32> "
        for op in ir.Module.parse(f"{text}{fill}nvvm.barrier").body.operations:
            op.opview  # noqa: B018 - makes the view
    finally:
        for name in empty:
            del sys.modules[name]


def _dialect(name: str) -> str:
    """The module of one of MLIR's dialects."""
    return f"{_root}.dialects.{name}"


def translate_to_llvm_ir(module: "Module") -> str:
    """LLVM IR text of a module that is all in the `llvm` dialect. The wheel's binding for this
    calls the same function, and never frees the text."""
    if not _root.startswith(_WHEEL):
        return str(llvm.translate_module_to_llvmir(module.operation))
    pointer = _pointer_in(module.operation._CAPIPtr, _OPERATION)
    text = _library().mlirTranslateModuleToLLVMIRToString(pointer)
    found = ctypes.string_at(text).decode()
    _library().LLVMDisposeMessage(text)
    return found
