"""`triton._C.libtriton`, as far as torch asks it: which arguments of a kernel are read and written.

torch walks the IR of a kernel to find that out (`triton_kernel_wrap`). It gets a module that says
nothing but that: a function with the kernel's arguments, in which they are loaded from and stored
to as the kernel does, by Proton's own analysis of pointers.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

from proton.base.knobs import KNOBS, knobs
from proton.base.targets import Target
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.language.signature import Signature

if TYPE_CHECKING:  # what asks for no IR loads no MLIR
    from proton.dialect.mlir import Module

libtriton = ir = sys.modules[__name__]  # Triton has modules here

_INLINE_ASSEMBLY = "tt.elementwise_inline_asm"


def get_cache_invalidating_env_vars() -> dict[str, str]:
    """Variables of the environment that are set and that compiled code may depend on: of all
    knobs."""
    return {name: text for name, text in knobs.variables(KNOBS).items() if text is not None}


def context() -> object:
    """What IR is made in: nothing, since Proton has its own."""
    return None


def load_dialects(context: object) -> None:
    """Nothing: they are loaded where IR is made."""


@dataclass(frozen=True)
class _Named:
    """A value, a block or a region: something with a number."""

    number: int
    arguments: tuple["_Named", ...] = ()
    parent: "_Named | None" = None

    def id(self) -> int:
        return self.number

    def get_num_arguments(self) -> int:
        return len(self.arguments)

    def get_argument(self, number: int) -> "_Named":
        return self.arguments[number]

    def get_parent(self) -> "_Named | None":
        return self.parent


@dataclass(frozen=True)
class BuilderOp:
    """An op of such a module."""

    name: str
    block: _Named | None
    operands: tuple[_Named, ...] = ()
    results: tuple[_Named, ...] = ()
    regions: tuple[_Named, ...] = ()
    attributes: dict[str, object] = field(default_factory=dict)

    def get_name(self) -> str:
        return self.name

    def get_block(self) -> _Named | None:
        return self.block

    def get_num_operands(self) -> int:
        return len(self.operands)

    def get_operand(self, number: int) -> _Named:
        return self.operands[number]

    def get_num_results(self) -> int:
        return len(self.results)

    def get_result(self, number: int) -> _Named:
        return self.results[number]

    def get_num_regions(self) -> int:
        return len(self.regions)

    def get_region(self, number: int) -> _Named:
        return self.regions[number]

    def get_str_attr(self, name: str) -> object:
        return self.attributes.get(name)

    get_bool_attr = get_flat_symbol_ref_attr = get_str_attr


@dataclass(frozen=True)
class Uses:
    """How a kernel uses its arguments: of each access in the source that loads or stores the
    numbers of those that it may reach, and whether there is assembly with effects."""

    loads: tuple[frozenset[int], ...]
    stores: tuple[frozenset[int], ...]
    has_effects: bool = False


class AccessModule:
    """A function that loads and stores through its arguments as a kernel does."""

    def __init__(self, name: str, arguments: list[str], uses: Uses) -> None:
        self.name, self.arguments, self.uses = name, arguments, uses
        count = len(arguments)
        values = tuple(_Named(number) for number in range(count))
        region = _Named(count)
        self._region, self._block = region, _Named(count + 1, values, region)
        self._free = count + 2

    def verify(self) -> bool:
        """True if it is IR."""
        return True

    def walk(self, visit: Callable[[BuilderOp], None]) -> None:
        """Calls `visit` with each op, those inside of one before it."""
        for reached in self.uses.loads:
            for number in sorted(reached):
                visit(self._op("tt.load", number, results=1))
        for reached in self.uses.stores:
            for number in sorted(reached):
                visit(self._op("tt.store", number))
        if self.uses.has_effects:
            visit(BuilderOp(_INLINE_ASSEMBLY, self._block, attributes={"pure": False}))
        visit(BuilderOp("tt.return", self._block))
        function: dict[str, object] = {"sym_name": self.name}
        visit(BuilderOp("tt.func", None, regions=(self._region,), attributes=function))

    def _op(self, name: str, argument: int, results: int = 0) -> BuilderOp:
        made = tuple(_Named(self._free + number) for number in range(results))
        self._free += results
        return BuilderOp(name, self._block, (self._block.arguments[argument],), made)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(dict.fromkeys(self.arguments))}): {self.uses}"


def access_module(fn: DeviceFunction, signature: Signature, target: Target) -> AccessModule:
    """The module of a kernel for a signature. Raises CompilationError where it does not compile."""
    from proton.dialect.context import mlir_context
    from proton.frontend import build_module
    from proton.passes import Pipeline
    from proton.transforms.tile.rewrite_tensor_descriptor_to_pointer import (
        RewriteTensorDescriptorToPointer,
    )
    from proton.transforms.tile.rewrite_tensor_pointer import RewriteTensorPointer

    arguments = _arguments(signature)
    with mlir_context():
        module = build_module(fn, signature, target=target, num_warps=4)
        passes = [RewriteTensorPointer(), RewriteTensorDescriptorToPointer()]
        uses = _uses(Pipeline(passes, fn.__name__).run(module), arguments)
    types = signature.types.items()
    names = [name for name, type_ in types for _ in range(_torch_count(type_))]
    return AccessModule(fn.__name__, names, uses)


def _torch_count(type_: ty.dtype) -> int:
    """How many arguments torch counts a parameter as: a descriptor is one, with as many strides
    and sizes as it has dimensions."""
    return 1 + 2 * type_.rank if isinstance(type_, ty.tensor_descriptor_type) else 1


def _arguments(signature: Signature) -> list[int]:
    """Of each argument of the IR the number by which torch counts its parameter."""
    found: list[int] = []
    number = 0
    for type_ in signature.types.values():
        found += [number] * len(ty.parts_of(type_))
        number += _torch_count(type_)
    return found


def _uses(module: "Module", arguments: list[int]) -> Uses:
    """How the kernel of a module uses its arguments."""
    from proton.analysis.alias import UNKNOWN, Roots
    from proton.dialect import traits
    from proton.dialect.traits import has
    from proton.dialect.tt import is_pointer_like
    from proton.dialect.walk import all_ops, kernel_functions

    (kernel,) = kernel_functions(module)
    roots = Roots(kernel)
    entry = kernel.regions[0].blocks[0]
    pointers = [n for n, of in enumerate(entry.arguments) if is_pointer_like(of.type)]
    loads, stores, has_effects = [], [], False
    for op in all_ops(kernel):
        has_effects |= op.name == "tt.inline_asm_with_effects"
        if not has(op, traits.Accesses):
            continue
        found = roots.of(op.operands[0])
        found = frozenset(pointers) if UNKNOWN in found else found
        reached = frozenset(arguments[number] for number in found)
        if op.results:
            loads.append(reached)
        if has(op, traits.Writes):
            stores.append(reached)
    return Uses(tuple(loads), tuple(stores), has_effects)


def __getattr__(name: str) -> ModuleType:
    if name in ("gluon_ir", "nvidia"):
        return importlib.import_module(f"proton.compat.triton.{name}")
    raise AttributeError(f"triton._C.libtriton has no {name!r}: it is Triton's own compiler in C++")
