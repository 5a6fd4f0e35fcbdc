"""The rule of `tt.inline_asm` in `triton-arith-to-linalg`: PTX on a CPU.

The text is parsed (`text.py`), and each of its instructions becomes ops of `arith` and `math` on
scalars: `forms.py` has the instructions, `integers.py`, `floats.py` and `conversions.py` what they
compute, `instructions.py` how they read and write registers, `constraints.py` how elements get
there. What has no translation is an error that names it.
"""

from proton.base.errors import CompilationError
from proton.conversion.triton_arith_to_linalg.assembly.constraints import (
    packed,
    per_register,
    read_constraints,
    unpacked,
)
from proton.conversion.triton_arith_to_linalg.assembly.instructions import HINT, Machine
from proton.conversion.triton_arith_to_linalg.assembly.text import (
    CallOperand,
    Untranslatable,
    parse,
)
from proton.conversion.triton_arith_to_linalg.assembly.values import Int
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.linalg import generic, index_of, reshaped
from proton.dialect.mlir import Operation, Type, Value, arith, ir
from proton.dialect.walk import replace, source_span


def lower_assembly(op: Operation) -> None:
    """Replaces a `tt.inline_asm`; the insertion point is before it.

    Elements are packed as they follow each other in the block. Raises CompilationError for what
    has no translation.
    """
    sources, types = list(op.operands), [element_of(result) for result in op.results]
    shape = shape_of(op.results[0])
    if not shape:
        found = run_assembly(op, [[source] for source in sources])
        replace(op, [values[0] for values in found])
        return
    pack = packed_elements(op)
    if pack == 1:
        maps = [ir.AffineMap.get_identity(len(shape))] * len(sources)
        blocks: list[Type] = [ir.RankedTensorType.get(shape, type_) for type_ in types]
        replace(
            op,
            generic(
                sources,
                maps,
                blocks,
                lambda inputs, _: [values[0] for values in run_assembly(op, [[x] for x in inputs])],
            ),
        )
        return
    replace(op, _of_groups(op, sources, types, pack))


def _of_groups(op: Operation, sources: list[Value], types: list[Type], pack: int) -> list[Value]:
    """The results of blocks of which `pack` elements at a time are given.

    The loop goes over elements, and computes all of its group for each: LLVM, which unrolls the
    inner loop, computes them once.
    """
    shape = shape_of(op.results[0])
    count = _product(shape) // pack
    rows = [reshaped(source, [count, pack]) for source in sources]
    dimension, places = ir.AffineDimExpr.get(0), range(pack)
    maps = [
        ir.AffineMap.get(2, 0, [dimension, ir.AffineConstantExpr.get(place)])
        for _ in rows
        for place in places
    ]

    def body(inputs: list[Value], outputs: list[Value]) -> list[Value]:
        groups = [inputs[n : n + pack] for n in range(0, len(inputs), pack)]
        own = Int(arith.IndexCastOp(ir.IntegerType.get_signless(32), index_of(1)).result)
        chosen = []
        for values in run_assembly(op, groups):
            value = values[-1]
            for place in range(pack - 1):
                is_it = own.compare("eq", place)
                value = arith.SelectOp(is_it.value, values[place], value).result
            chosen.append(value)
        return chosen

    repeated = [row for row in rows for _ in places]
    blocks: list[Type] = [ir.RankedTensorType.get([count, pack], type_) for type_ in types]
    found = generic(repeated, maps, blocks, body)
    return [reshaped(value, list(shape)) for value in found]


def _product(shape: tuple[int, ...]) -> int:
    return _product(shape[1:]) * shape[0] if shape else 1


def packed_elements(op: Operation) -> int:
    """How many elements a `tt.inline_asm` works on at a time."""
    return int(ir.IntegerAttr(op.attributes["packed_element"]).value)


def run_assembly(op: Operation, elements: list[list[Value]]) -> list[list[Value]]:
    """Emits the ops of a `tt.inline_asm` on scalars: of each operand as many elements as are
    packed, of each result as many. Raises CompilationError for what has no translation."""
    texts = [ir.StringAttr(op.attributes[name]).value for name in ("asm_string", "constraints")]
    types = [element_of(result) for result in op.results]
    try:
        return _run(texts[0], texts[1], elements, types, packed_elements(op))
    except Untranslatable as error:
        raise CompilationError(
            f"tl.inline_asm_elementwise: {error.rule}", source_span(op.location), error.hint or HINT
        ) from None


def _run(
    text: str, constraints: str, elements: list[list[Value]], types: list[Type], pack: int
) -> list[list[Value]]:
    limits = read_constraints(constraints)
    counts = [pack // per_register(type_, pack) for type_ in types]
    if sum(counts) != len(limits.results):
        raise Untranslatable(
            f"there are {sum(counts)} registers of results, and {len(limits.results)} constraints "
            "of results",
            "write =r or the like for each",
        )
    registers: list[Int] = []
    for group in elements:
        count = pack // per_register(group[0].type, pack)
        bits = limits.arguments[len(registers) : len(registers) + count]
        if len(bits) < count:
            break
        registers += packed(group, list(bits))
    if len(registers) != len(limits.arguments) or len(registers) != sum(
        pack // per_register(group[0].type, pack) for group in elements
    ):
        raise Untranslatable(
            "constraints of arguments and the arguments' registers are not as many",
            "write r or the like for each",
        )
    first = len(limits.results)
    widths = dict(enumerate((*limits.results, *limits.arguments)))
    values = {first + number: value for number, value in enumerate(registers)}
    for value, result in zip(registers, limits.tied, strict=True):
        if result is not None:
            values[result] = value
    machine = Machine(widths, values)
    for instruction in parse(text):
        machine.run(instruction)
    found = []
    for number in range(first):
        if CallOperand(number) not in machine.registers:
            raise Untranslatable(f"the result ${number} is never written", "write it")
        found.append(machine.registers[CallOperand(number)])
    results = []
    for type_, count in zip(types, counts, strict=True):
        results.append(unpacked(found[:count], type_, pack))
        found = found[count:]
    return results
