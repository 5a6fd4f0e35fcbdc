"""Annotations of a kernel's parameters that are text."""

import re
from typing import Any

from proton.language import types as ty
from proton.runtime.launch.arguments import type_canonicalisation_dict

# As Triton's and C's: "*fp32", "*kfp32", "*k", "const *fp32", "const float*", "fp16*".
_POINTER = re.compile(r"(const )? *(?:\*(k?) *([\w.]*)|([\w.]+) *\*)")


def evaluate_annotation(text: str, names: dict[str, Any]) -> object:
    """What the text says: a type's short name, or postponed evaluation of anything, which only says
    something here where it is a type of ours. What has the look of a type and is none is a
    TypeError; words and names of others say nothing."""
    text = text.strip()
    name = text.split(".")[-1]
    if name == "constexpr":
        return ty.constexpr
    if name == "const":
        return ty.const
    value = ty.int1 if name == "uint1" else getattr(ty, name, None)
    if isinstance(value, ty.dtype):
        return value
    if (found := _POINTER.fullmatch(text)) is not None:
        is_const = bool(found[1] or found[2])
        name = (found[3] or found[4] or "").rpartition(".")[2]
        short = type_canonicalisation_dict.get(name.removesuffix("_t"))
        if short is not None and short != "void":
            return ty.pointer_type(ty.str_to_ty(short), const=is_const)
        if is_const:
            return ty.const
    try:
        return eval(text, names)
    except NameError:  # of a module that is imported for type checkers alone, perhaps
        return ty.str_to_ty(text) if "." not in text and ty.LOOK.fullmatch(text) else None
    except (AttributeError, SyntaxError, TypeError):
        return ty.str_to_ty(text) if ty.LOOK.fullmatch(text) else None
