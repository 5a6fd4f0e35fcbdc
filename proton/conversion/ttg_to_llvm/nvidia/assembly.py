"""Assembly that a kernel's author wrote, on a few elements of a thread at a time."""

from collections.abc import Iterator

from proton.analysis.scratch import stored_bytes
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.elementwise import scalar_type
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, llvm_type
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import isa, tt, ttg
from proton.dialect.mlir import Type, Value, ir
from proton.dialect.ttg import is_tensor

_REGISTER = 32  # bits that elements share


def _bits(type_: Type) -> int:
    return int(type_.width) if isinstance(type_, ir.IntegerType | ir.FloatType) else 64


def _per_register(type_: Type, pack: int) -> int:
    """How many elements of a type lie in one register."""
    return min(max(1, _REGISTER // _bits(type_)), pack)


def _register_type(type_: Type, pack: int) -> Type:
    """What the assembly takes and gives: words of packed elements, halves as their bits."""
    if _per_register(type_, pack) > 1:
        return v.integer(_bits(type_) * _per_register(type_, pack))
    is_half = isinstance(type_, ir.FloatType) and _bits(type_) < _REGISTER
    return v.integer(_bits(type_)) if is_half else type_


def _packed(elements: list[Value], pack: int) -> Iterator[Value]:
    """The registers of `pack` elements."""
    count, type_ = _per_register(elements[0].type, pack), _register_type(elements[0].type, pack)
    for start in range(0, pack, count):
        part = elements[start : start + count]
        yield v.bitcast(part[0] if count == 1 else v.from_elements(part), type_)


def _unpacked(registers: list[Value], type_: Type, pack: int) -> Iterator[Value]:
    """The elements in registers."""
    count = _per_register(type_, pack)
    for register in registers:
        if count == 1:
            yield v.bitcast(register, type_)
        else:
            yield from v.to_elements(v.bitcast(register, v.vector(count, type_)))


def _run(site: Site, operands: list[Value], types: list[Type], pack: int) -> list[list[Value]]:
    """The assembly on registers of `pack` elements of each operand; those of each result."""
    counts = [pack // _per_register(type_, pack) for type_ in types]
    registers = [
        _register_type(t, pack)
        for t, count in zip(types, counts, strict=True)
        for _ in range(count)
    ]
    one = len(registers) == 1
    value = nvidia.assembly(
        site.text("asm_string"),
        site.text("constraints"),
        registers[0] if one else v.struct(registers),
        *operands,
        effects=not isa(site.op, tt.InlineAsmOp),
    )
    given = [value] if one else [v.member(value, n, t) for n, t in enumerate(registers)]
    results = []
    for type_, count in zip(types, counts, strict=True):
        results.append(list(_unpacked(given[:count], type_, pack)))
        given = given[count:]
    return results


@lowers(tt.InlineAsmOp, tt.InlineAsmWithEffectsOp)
def _inline_asm(ctx: Lowering, site: Site) -> list[Value]:
    pack = ir.IntegerAttr(site.op.attributes[ttg.PACKED]).value
    types = [llvm_type(scalar_type(result.type)) for result in site.op.results]
    is_block = [v.is_vector(value.type) for value in site.operands]  # of scalars in a scan, too
    columns = [
        v.to_elements(value) if is_one else [_uniform(value, type_)]
        for value, type_, is_one in zip(site.operands, site.operand_types, is_block, strict=True)
    ]
    if not any(is_block):
        return [values[0] for values in _run(site, [x for (x,) in columns], types, 1)]
    count = max(map(len, columns))
    found: list[list[Value]] = [[] for _ in types]
    for start in range(0, count, pack):
        operands: list[Value] = []
        for column, is_one in zip(columns, is_block, strict=True):
            # A thread may have fewer: the last one stands for those that are missing.
            group = [column[min(n, len(column) - 1)] for n in range(start, start + pack)]
            operands += _packed(group, pack) if is_one else column
        for values, new in zip(found, _run(site, operands, types, pack), strict=True):
            values += new
    return [v.from_elements(values[:count]) for values in found]


def _uniform(value: Value, type_: Type) -> Value:
    """A scalar, or the address where memory begins."""
    if not ttg.is_mem_desc(type_):
        return v.bitcast(value, _register_type(value.type, 1))
    (_, element), view = ttg.mem_desc_block(type_), ttg.mem_desc_view(type_)
    first = v.i32(view.padded(view.start) * stored_bytes(element))
    return v.add(nvidia.shared_address(value), first)


@lowers(ttg.ThreadAssemblyOp)
def _thread_assembly(ctx: Lowering, site: Site) -> list[Value]:
    if ttg.PACKED in site.op.attributes:
        return _inline_asm(ctx, site)
    operands: list[Value] = []
    for value, type_ in zip(site.operands, site.operand_types, strict=True):
        if ttg.is_mem_desc(type_):
            operands.append(_uniform(value, type_))
            continue
        elements = v.to_elements(value) if is_tensor(type_) else [value]
        operands += [v.bitcast(one, _register_type(one.type, 1)) for one in elements]
    types = [llvm_type(result.type) for result in site.op.results]
    kinds = [(t.element_type, int(t.shape[0])) if v.is_vector(t) else (t, 1) for t in types]
    registers = [_register_type(one, 1) for one, count in kinds for _ in range(count)]
    is_one = len(registers) == 1
    whole = None if not registers else registers[0] if is_one else v.struct(registers)
    text, constraints = site.text("asm_string"), site.text("constraints")
    value = nvidia.assembly(text, constraints, whole, *operands)
    given = [value] if is_one else [v.member(value, n, t) for n, t in enumerate(registers)]
    results = []
    for type_, (one, count) in zip(types, kinds, strict=True):
        found = [v.bitcast(register, one) for register in given[:count]]
        results.append(v.from_elements(found) if v.is_vector(type_) else found[0])
        given = given[count:]
    return results
