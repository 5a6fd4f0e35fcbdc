"""What the arguments of a kernel are in IR, and back: their types, and what is known of them."""

import contextlib

from proton.base.float8 import BY_NAME
from proton.dialect import tt, tt_block
from proton.dialect.attributes import ARGUMENT_NAME, DIVISIBILITY, ELEMENT, NON_NEGATIVE, UNSIGNED
from proton.dialect.builtin import i32_attr, string_attr
from proton.dialect.mlir import Attribute, Type, ir
from proton.frontend.builder import memory_type, to_ir
from proton.language import types as ty
from proton.language.signature import Signature

_BY_MLIR = {type_.mlir: getattr(ty, name) for name, type_ in BY_NAME.items()}
_FLOATS = {"f16": ty.float16, "bf16": ty.bfloat16, "f32": ty.float32, "f64": ty.float64}


def argument_types(signature: Signature) -> list[Type]:
    """The types of the function of a kernel for a signature."""
    return [to_ir(ty.passed_as(type_)) for type_ in signature.types.values()]


def argument_attributes(name: str, type_: ty.dtype, signature: Signature) -> dict[str, Attribute]:
    """What the argument of a name says of itself."""
    attributes: dict[str, Attribute] = {ARGUMENT_NAME: string_attr(name)}
    if name in signature.divisible:
        attributes[DIVISIBILITY] = i32_attr(16)
    if name in signature.non_negative:
        attributes[NON_NEGATIVE] = ir.UnitAttr.get()
    if type_.is_int_unsigned() and not type_.is_bool():
        attributes[UNSIGNED] = ir.UnitAttr.get()
    if isinstance(type_, ty.pointer_type):
        attributes[ELEMENT] = string_attr(type_.element_ty.mangle())
    if isinstance(type_, ty.tensor_descriptor_type):
        attributes[ELEMENT] = string_attr(type_.block_type.element_ty.mangle())
    return attributes


def argument_type(type_: Type, element: str | None, *, unsigned: bool = False) -> ty.dtype | None:
    """The type of the language that a kernel's argument of an MLIR type has. `element` is what it
    says of its elements, if it says it; without that their integers are signed. None where kernels
    have no such arguments."""
    if isinstance(type_, tt.PointerType):
        scalar = scalar_type(type_.target, element)
        return None if scalar is None else ty.pointer_type(scalar)
    if isinstance(type_, tt_block.TensorDescType):
        scalar = scalar_type(type_.target.element_type, element)
        if scalar is None:
            return None
        block = ty.block_type(scalar, tuple(type_.target.shape))
        return ty.tensor_descriptor_type(block, ir.StringAttr(type_.padding).value)
    if unsigned and isinstance(type_, ir.IntegerType):
        return getattr(ty, f"uint{type_.width}", None)
    found = scalar_type(type_)
    return found if found is not None and ty.passed_as(found) == found else None


def scalar_type(type_: Type, name: str | None = None) -> ty.dtype | None:
    """The scalar of an MLIR type; `name` says which one of those with this type."""
    if name is not None:
        with contextlib.suppress(TypeError):
            named = ty.str_to_ty(name)
            return named if not named.is_ptr() and to_ir(memory_type(named)) == type_ else None
        return None
    if isinstance(type_, ir.IntegerType):
        return getattr(ty, f"int{type_.width}", None)
    return _FLOATS.get(str(type_)) or _BY_MLIR.get(str(type_))
