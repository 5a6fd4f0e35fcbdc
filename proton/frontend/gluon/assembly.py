"""Rules of assembly for a whole thread."""

from typing import Any

from proton.base.words import shown
from proton.dialect import ttg
from proton.dialect.builtin import string_attr
from proton.dialect.tt_elementwise import MAX_ELEMENTWISE
from proton.frontend.builder import as_tensor, error, to_ir
from proton.frontend.rules import rule
from proton.language import types as ty
from proton.language.function import ConstexprFunction
from proton.language.gluon import core
from proton.language.gluon.core import shared_memory_descriptor
from proton.language.gluon.types import distributed_type
from proton.language.value import tensor


def _count(type_: ty.dtype) -> int:
    """The registers of a thread that a value takes."""
    if not type_.is_block():
        return 1
    if not isinstance(type_, distributed_type) or not type_.layout.is_known:
        raise error(
            "inline_asm requires explicit distributed tensor layouts", "use gl.convert_layout"
        )
    return int(ttg.layout_of(to_ir(type_)).in_size("register"))


@rule(core.inline_asm)
def _inline_asm(
    asm: Any, constraints: Any = "", args: Any = (), result_types: Any = (), is_pure: bool = False
) -> Any:
    is_one = isinstance(result_types, ty.dtype)
    types = (result_types,) if is_one else tuple(result_types)
    for type_ in types:
        if not isinstance(type_, ty.dtype):
            raise error(
                f"inline_asm requires scalar or distributed result types, got {shown(type_)}",
                "pass x.type or gl.int32",
            )
    sources = [as_tensor(arg) for arg in args]
    is_memory = [isinstance(source, shared_memory_descriptor) for source in sources]
    if is_pure and any(is_memory):
        raise error("inline_asm: memory needs is_pure=False", "leave is_pure out")
    if max(len(types), len(sources)) > MAX_ELEMENTWISE:
        raise error(
            f"inline_asm takes and gives at most {MAX_ELEMENTWISE} values each",
            "join some of them, or write several",
        )
    counts = [_count(type_) for type_ in types]
    for source, memory in zip(sources, is_memory, strict=True):
        counts.append(1 if memory else _count(source.type))
    op = ttg.ThreadAssemblyOp(
        string_attr(_text(asm, counts, len(types))),
        string_attr(_constraints(constraints, counts)),
        **{f"result{n}": to_ir(type_) for n, type_ in enumerate(types)},
        **{f"src{n}": source.handle for n, source in enumerate(sources)},
    )
    results = op.operation.results
    found = tuple(tensor(r, t) for r, t in zip(results, types, strict=True))
    return found[0] if is_one else found


def _text(asm: Any, counts: list[int], outputs: int) -> str:
    """The assembly, which a function may make of the names of its operands."""
    if isinstance(asm, ConstexprFunction):
        names = iter(f"${n}" for n in range(sum(counts)))
        groups = [tuple(next(names) for _ in range(count)) for count in counts]
        asm = asm.fn(tuple(groups[:outputs]), tuple(groups[outputs:]))
    if not isinstance(asm, str):
        raise error(
            "inline_asm expects a string or constexpr function returning a string, got "
            f"{shown(asm)}",
            "decorate the function with gluon.constexpr_function",
        )
    return asm


def _constraints(constraints: Any, counts: list[int]) -> str:
    if isinstance(constraints, str):
        return constraints
    if len(constraints) != len(counts):
        raise error(
            "inline_asm requires one constraint per output and input group: got "
            f"{len(constraints)} for {len(counts)}",
            'write ("=r", "r") for one of each',
        )
    repeated = ([text] * count for text, count in zip(constraints, counts, strict=True))
    return ",".join(text for group in repeated for text in group)
