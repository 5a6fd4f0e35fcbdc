"""Triton's `tt` ops on tiles and scalars: how each is written, and what it is here."""

from dataclasses import replace

from proton.compat.triton.text.made import (
    Context,
    Made,
    Rule,
    Step,
    Value,
    first_of,
    i32,
    segments,
    string,
)
from proton.compat.triton.text.syntax import ParsedOp
from proton.compat.triton.text.types import Pointer, Scalar, TensorType, Type, element_of, like
from proton.dialect.tt import MAX_EXTERN, MAX_PRINTED
from proton.dialect.tt_collective import MAX_REDUCED
from proton.dialect.tt_elementwise import MAX_ELEMENTWISE

_AXES = {"x": 0, "y": 1, "z": 2}
# As Triton numbers them.
_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
_MATRIX = 2  # dimensions
_NARROW = 8  # bits of a float that conversions saturate to


def same(name: str, *operands: str, result: str = "result", **attributes: str) -> Rule:
    """The op of that name with these operands, each of the type with its name or the result's, and
    integers of Triton's attributes: `ours="theirs"`."""

    def rule(context: Context, op: ParsedOp) -> list[Step | Made]:
        given = op.type_of(result)
        taken: list[Value] = []
        for operand in operands:
            known = op.types.get(operand, [given])[0]
            taken.append((op.value(operand), known))
        said = {ours: i32(op.number(theirs)) for ours, theirs in attributes.items()}
        return [Made(name, taken, [given], said)]

    return rule


def _nothing(context: Context, op: ParsedOp) -> list[Step | Made]:
    """A hint that changes nothing."""
    return []


def _program(name: str) -> Rule:
    def rule(context: Context, op: ParsedOp) -> list[Step | Made]:
        axis = op.words["axis"]
        if axis not in _AXES:
            context.cursor.refuse(f"the axis of {op.name} is x, y or z, got {axis}", op.place)
        return [Made(name, [], [op.type_of("result")], {"axis": i32(_AXES[axis])})]

    return rule


def _make_range(context: Context, op: ParsedOp) -> list[Step | Made]:
    said = {name: i32(op.number(name)) for name in ("start", "end")}
    return [Made("tt.make_range", [], [op.type_of("result")], said)]


def _unsplat(context: Context, op: ParsedOp) -> list[Step | Made]:
    source = op.type_of("src")
    return [Made("tt.unsplat", [(op.value("src"), source)], [element_of(source)])]


def _addptr(context: Context, op: ParsedOp) -> list[Step | Made]:
    result = op.type_of("result")
    values = [(op.value("ptr"), result), (op.value("offset"), op.type_of("offset"))]
    return [Made("tt.addptr", values, [result])]


def _trans(context: Context, op: ParsedOp) -> list[Step | Made]:
    order = ", ".join(map(str, op.numbers("order")))
    source = op.value("src"), op.type_of("src")
    return [Made("tt.trans", [source], [op.type_of("result")], {"order": f"array<i64: {order}>"})]


def _cat(context: Context, op: ParsedOp) -> list[Step | Made]:
    """One tensor behind the other."""
    source, result = op.of("lhs", TensorType), op.type_of("result")
    if len(source.shape) != 1:
        context.unsupported(op, "of more than one dimension is not supported", "reshape them first")
    (size,), element = source.shape, source.element
    pairs, turned = context.name(), context.name()
    joined, rows = TensorType((size, 2), element), TensorType((2, size), element)
    sides = [(op.value(name), source) for name in ("lhs", "rhs")]
    order = {"order": "array<i64: 1, 0>"}
    return [
        (pairs, Made("tt.join", sides, [joined])),
        (turned, Made("tt.trans", [(pairs, joined)], [rows], order)),
        Made("tt.reshape", [(turned, rows)], [result]),
    ]


def _split(context: Context, op: ParsedOp) -> list[Step | Made]:
    half = op.type_of("result")
    return [Made("tt.split", [(op.value("src"), op.type_of("src"))], [half, half])]


# Conversions


def _bitcast(context: Context, op: ParsedOp) -> list[Step | Made]:
    source, result = op.type_of("src"), op.type_of("result")
    is_pointer = isinstance(element_of(source), Pointer)
    name = "tt.bitcast" if is_pointer else "arith.bitcast"
    return [Made(name, [(op.value("src"), source)], [result])]


def _fp_to_fp(context: Context, op: ParsedOp) -> list[Step | Made]:
    """Of floats of one width the other is by way of fp32."""
    source, result = op.type_of("src"), op.type_of("result")
    value = op.value("src"), source
    before, after = element_of(source), element_of(result)
    rounding = op.words.get("rounding", "")
    if before.bits < after.bits:
        return [Made("arith.extf", [value], [result])]
    steps: list[Step | Made] = []
    if before.bits == after.bits:
        wide = like(source, Scalar("f32"))
        name = context.name()
        steps = [(name, Made("arith.extf", [value], [wide]))]
        value = name, wide
    if rounding in ("", "rtne") and after.bits > _NARROW:
        return [*steps, Made("arith.truncf", [value], [result])]
    said = {"rounding": string(rounding or "rtne")}
    return [*steps, Made("tt.fp_to_fp", [value], [result], said)]


def _clampf(context: Context, op: ParsedOp) -> list[Step | Made]:
    type_ = op.type_of("result")
    keeps_nan = op.words["propagateNan"] == "all"
    larger, smaller = ("maximumf", "minimumf") if keeps_nan else ("maxnumf", "minnumf")
    name = context.name()
    x, least, most = ((op.value(side), type_) for side in ("x", "min", "max"))
    return [
        (name, Made(f"arith.{larger}", [x, least], [type_])),
        Made(f"arith.{smaller}", [(name, type_), most], [type_]),
    ]


# Products, collectives, regions


def _dot(context: Context, op: ParsedOp) -> list[Step | Made]:
    result = op.type_of("result")
    # Ours has layouts of tensor cores where it is lowered; the operands' are Triton's there.
    values = [
        (op.value("a"), op.type_of("a")),
        (op.value("b"), op.type_of("b")),
        (op.value("c"), result),
    ]
    given = op.words.get("inputPrecision") or _named(op, "inputPrecision", _PRECISIONS, "ieee")
    said = {
        "inputPrecision": string(given),
        "maxNumImpreciseAcc": i32(op.number("maxNumImpreciseAcc")),
    }
    tensor = op.of("result", TensorType)
    if tensor.layout is None or len(tensor.shape) == _MATRIX:
        return [Made("tt.dot", values, [result], said)]
    # Several products of matrices, in layouts that are chosen later: those of the text on either
    # side are of one.
    steps: list[Step | Made] = []
    plain: list[Value] = []
    for value, type_ in values:
        assert isinstance(type_, TensorType)
        moved = context.name(), replace(type_, layout=None)
        steps.append((moved[0], Made("ttg.convert_layout", [(value, type_)], [moved[1]])))
        plain.append(moved)
    product = context.name(), replace(tensor, layout=None)
    steps.append((product[0], Made("tt.dot", plain, [product[1]], said)))
    return [*steps, Made("ttg.convert_layout", [product], [tensor])]


def _named(op: ParsedOp, name: str, names: tuple[str, ...], default: str) -> str:
    """An enumerator that stands among the attributes by its number."""
    return names[op.number(name)] if name in op.attributes else default


def _dot_scaled(context: Context, op: ParsedOp) -> list[Step | Made]:
    if context.level != "ttir":
        context.unsupported(
            op, "of tensors with layouts is not supported", "compile the .ttir of the kernel"
        )
    scales = [name for name in ("a_scale", "b_scale") if op.values.get(name)]
    values: list[Value] = [(op.value(name), op.type_of(name)) for name in ("a", "b")]
    values.append((op.value("c"), op.type_of("result")))
    values += [(op.value(name), op.type_of(name)) for name in scales]
    counts = [1, 1, 1, *("a_scale" in scales, "b_scale" in scales)]
    said = {side: string(op.words[side]) for side in ("lhs", "rhs")}
    said |= {name: op.attributes.get(name, "true") for name in ("lhs_k_pack", "rhs_k_pack")}
    said["operandSegmentSizes"] = segments([int(count) for count in counts])
    return [Made("tt.dot_scaled", values, [op.type_of("result")], said)]


def _fp4_to_fp(context: Context, op: ParsedOp) -> list[Step | Made]:
    """In layouts that are chosen later, and not those of the text on either side."""
    source, result = op.of("src", TensorType), op.of("result", TensorType)
    bytes_, numbers = replace(source, layout=None), replace(result, layout=None)
    moved, made = context.name(), context.name()
    said = {"axis": i32(op.number("axis"))}
    return [
        (moved, Made("ttg.convert_layout", [(op.value("src"), source)], [bytes_])),
        (made, Made("tt.fp4_to_fp", [(moved, bytes_)], [numbers], said)),
        Made("ttg.convert_layout", [(made, numbers)], [result]),
    ]


def _with_region(name: str, most: int, *attributes: str) -> Rule:
    """A reduction or a scan, whose region combines two elements of each source."""

    def rule(context: Context, op: ParsedOp) -> list[Step | Made]:
        sources, results = op.types["operands"], op.types["results"]
        if max(len(sources), len(results)) > most:
            context.unsupported(
                op, f"of {len(sources)} sources is not supported", f"it takes up to {most}"
            )
        if op.number("pack", 1) != 1:
            context.unsupported(op, "with pack is not supported", "leave pack out")
        said = {key: op.attributes[key] for key in attributes}
        said["operandSegmentSizes"] = first_of(len(sources), most)
        said["resultSegmentSizes"] = first_of(len(results), most)
        values = list(zip(op.values["operands"], sources, strict=True))
        return [Made(name, values, results, said, op.regions)]

    return rule


def _returned(name: str, most: int) -> Rule:
    """The end of a region."""

    def rule(context: Context, op: ParsedOp) -> list[Step | Made]:
        types = op.types.get("values", [])
        values = list(zip(op.values.get("values", []), types, strict=True))
        said = {"operandSegmentSizes": first_of(len(values), most)}
        return [Made(name, values, [], said)]

    return rule


def _histogram(context: Context, op: ParsedOp) -> list[Step | Made]:
    source = op.type_of("src")
    values = [(op.value("src"), source)]
    values += [(mask, like(source, Scalar("i1"))) for mask in op.values.get("mask", [])]
    said = {"operandSegmentSizes": segments([1, len(values) - 1])}
    return [Made("tt.histogram", values, [op.type_of("result")], said)]


def _gather(context: Context, op: ParsedOp) -> list[Step | Made]:
    values = list(zip((op.value("src"), op.value("index")), op.types["operands"], strict=True))
    return [Made("tt.gather", values, op.types["results"], {"axis": i32(op.number("axis"))})]


# What the author of the kernel wrote, and what is seen on the terminal


def _extern(context: Context, op: ParsedOp) -> list[Step | Made]:
    values = list(zip(op.values["args"], op.types["operands"], strict=True))
    if len(values) > MAX_EXTERN or not op.flag("pure"):
        context.unsupported(
            op, "that is not pure, or takes many operands, is not supported", "write it in Python"
        )
    said = {
        "symbol": op.attributes["symbol"],
        # Triton leaves the name of its own library out.
        "libname": string(op.attributes["libname"].strip('"') or "libdevice"),
        "libpath": op.attributes["libpath"],
        "pure": "true",
        "operandSegmentSizes": first_of(len(values), MAX_EXTERN),
    }
    return [Made("tt.extern_elementwise", values, op.types["results"], said)]


def _inline_asm(context: Context, op: ParsedOp) -> list[Step | Made]:
    values = list(zip(op.values.get("args", []), op.types.get("args", []), strict=True))
    results = op.types["results"]
    said = {
        "asm_string": op.words["asm"],
        "constraints": op.attributes["constraints"],
        "packed_element": i32(op.number("packed_element")),
        "operandSegmentSizes": first_of(len(values), MAX_ELEMENTWISE),
        "resultSegmentSizes": first_of(len(results), MAX_ELEMENTWISE),
    }
    name = "tt.inline_asm" if op.flag("pure") else "tt.inline_asm_with_effects"
    return [Made(name, values, results, said)]


def _print(context: Context, op: ParsedOp) -> list[Step | Made]:
    values: list[Value] = list(
        zip(op.values.get("args", []), op.types.get("args", []), strict=True)
    )
    if len(values) > MAX_PRINTED:
        context.unsupported(op, f"of {len(values)} values is not supported", "print them apart")
    steps: list[Step | Made] = []
    for number, (name, type_) in enumerate(values):
        if element_of(type_).text.startswith("f8"):  # a type of memory alone
            shown = context.name()
            wide = like(type_, Scalar("f16"))
            steps.append((shown, Made("arith.extf", [(name, type_)], [wide])))
            values[number] = shown, wide
    said = {
        "prefix": op.words["prefix"],
        "hex": op.attributes.get("hex", "false"),
        "signed": op.attributes.get("isSigned", "array<i32>"),
        "operandSegmentSizes": first_of(len(values), MAX_PRINTED),
    }
    return [*steps, Made("tt.print", values, [], said)]


def _assert(context: Context, op: ParsedOp) -> list[Step | Made]:
    line, _ = context.cursor.place_of(op.place.start)
    said = op.words["message"][1:-1]
    message = f'"{context.cursor.file}:{line}: assertion failed: {said}"'
    value = op.value("condition"), op.type_of("condition")
    return [Made("tt.assert", [value], [], {"message": message})]


def _barrier(context: Context, op: ParsedOp) -> list[Step | Made]:
    return [Made("tt.debug_barrier")]


def _grid(kind: str) -> Rule:
    def rule(context: Context, op: ParsedOp) -> list[Step | Made]:
        return [Made("tt.grid_dependency", attributes={"kind": string(kind)})]

    return rule


_CAST = "$src {} : <src> -> <result>"
_PAIR = "$x , $y {} : <result>"

FORMS: dict[str, tuple[str, Rule]] = {
    "tt.get_program_id": ("@axis {} : <result>", _program("tt.get_program_id")),
    "tt.get_num_programs": ("@axis {} : <result>", _program("tt.get_num_programs")),
    "tt.make_range": ("{} : <result>", _make_range),
    "tt.splat": (_CAST, same("tt.splat", "src")),
    "tt.unsplat": ("$src {} : <src>", _unsplat),
    "tt.addptr": ("$ptr , $offset {} : <result> , <offset>", _addptr),
    "tt.broadcast": (_CAST, same("tt.broadcast", "src")),
    "tt.expand_dims": (_CAST, same("tt.expand_dims", "src", axis="axis")),
    "tt.reshape": (
        "$src (allow_reorder)? (efficient_layout)? {} : <src> -> <result>",
        same("tt.reshape", "src"),
    ),
    "tt.trans": (_CAST, _trans),
    "tt.cat": ("$lhs , $rhs {} : <lhs> -> <result>", _cat),
    "tt.join": (
        "$lhs , $rhs {} : <lhs> -> <result>",
        lambda context, op: same("tt.join", "lhs", "rhs")(context, _alike(op, "lhs", "rhs")),
    ),
    "tt.split": (_CAST, _split),
    "tt.int_to_ptr": (_CAST, same("tt.int_to_ptr", "src")),
    "tt.ptr_to_int": (_CAST, same("tt.ptr_to_int", "src")),
    "tt.bitcast": (_CAST, _bitcast),
    "tt.fp_to_fp": ("$src {} (, rounding = @rounding)? {} : <src> -> <result>", _fp_to_fp),
    "tt.clampf": ("$x , $min , $max , propagateNan = @propagateNan {} : <result>", _clampf),
    "tt.precise_sqrt": ("$x {} : <result>", same("tt.precise_sqrt", "x")),
    "tt.precise_divf": (_PAIR, same("tt.precise_divf", "x", "y")),
    "tt.approx_divf": (_PAIR, same("arith.divf", "x", "y")),
    "tt.mulhiui": (_PAIR, same("tt.mulhiui", "x", "y")),
    "tt.dot": (
        "$a , $b , $c (, inputPrecision = @inputPrecision)? {} : <a> * <b> -> <result>",
        _dot,
    ),
    "tt.dot_scaled": (
        "$a (scale $a_scale)? , $b (scale $b_scale)? , $c lhs = @lhs rhs = @rhs {} : "
        "<a> (, <a_scale>)? * <b> (, <b_scale>)? -> <result>",
        _dot_scaled,
    ),
    "ttg.fp4_to_fp": (_CAST, _fp4_to_fp),
    "tt.reduce.return": ("$values* {} : <values*>", _returned("tt.reduce_return", MAX_REDUCED)),
    "tt.scan.return": ("$values* {} : <values*>", _returned("tt.scan_return", MAX_REDUCED)),
    "tt.map_elementwise.return": (
        "{} ($values* : <values*>)?",
        _returned("tt.map_elementwise_return", MAX_ELEMENTWISE),
    ),
    "tt.histogram": ("$src (, $mask)? {} : <src> -> <result>", _histogram),
    "tt.gather": ("$src [ $index ] {} : <->", _gather),
    "tt.extern_elementwise": ("$args* {} : <->", _extern),
    "tt.elementwise_inline_asm": ("&asm {} ($args* : <args*>)? -> <results*>", _inline_asm),
    "tt.print": ("&prefix {} (: $args* : <args*>)?", _print),
    "tt.assert": ("$condition , &message {} : <condition>", _assert),
    "tt.grid_dependency_wait": ("{}", _grid("wait")),
    "tt.grid_dependency_launch_dependents": ("{}", _grid("launch_dependents")),
    "ttg.barrier": ("(local)? (all)? (| @other)* {}", _barrier),
    "gpu.barrier": ("{}", _barrier),
    "llvm.intr.assume": ("$condition {} : <condition>", _nothing),
}

# Ops that are written in MLIR's generic form: those with regions.
GENERIC: dict[str, Rule] = {
    "tt.reduce": _with_region("tt.reduce", MAX_REDUCED, "axis"),
    "tt.scan": _with_region("tt.scan", MAX_REDUCED, "axis", "reverse"),
    "tt.map_elementwise": _with_region("tt.map_elementwise", MAX_ELEMENTWISE),
}


def _alike(op: ParsedOp, *names: str) -> ParsedOp:
    """The op with the type of the first name for the others, too."""
    types: list[Type] = op.types[names[0]]
    for name in names:
        op.types[name] = types
    return op
