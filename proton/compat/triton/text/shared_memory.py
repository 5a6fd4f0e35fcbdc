"""Triton's `ttg` and `ttng` ops, which move data and feed tensor cores: how each is written, and
what it is here."""

from proton.compat.triton.text.made import Context, Made, Rule, Step, Value, i32, segments
from proton.compat.triton.text.syntax import ParsedOp
from proton.compat.triton.text.tiles import same
from proton.compat.triton.text.types import TOKEN, MemDesc, Scalar, TensorType, like
from proton.layout.tensor_cores import warp_group_tiling

_I1, _I32 = Scalar("i1"), Scalar("i32")
_BYTE = 8


def _local_alloc(context: Context, op: ParsedOp) -> list[Step | Made]:
    """Memory that something changes begins with nothing in it."""
    memory = op.of("results", MemDesc)
    values = list(zip(op.values.get("src", []), op.types["operands"], strict=True))
    if not values:
        return [Made("ttg.local_reserve", [], [memory])]
    if not memory.is_mutable:
        return [Made("ttg.local_alloc", values, [memory])]
    (name,), op.results = op.result_names(), []
    stored = [*values, (name, memory)]
    return [(name, Made("ttg.local_reserve", [], [memory])), Made("ttg.local_store", stored)]


def _nothing(context: Context, op: ParsedOp) -> list[Step | Made]:
    """Memory is free behind its last use."""
    return []


def _local_store(context: Context, op: ParsedOp) -> list[Step | Made]:
    values = [(op.value("src"), op.type_of("src")), (op.value("dst"), op.type_of("dst"))]
    return [Made("ttg.local_store", values)]


def _memdesc_index(context: Context, op: ParsedOp) -> list[Step | Made]:
    values = [(op.value("src"), op.type_of("src")), (op.value("index"), _I32)]
    return [Made("ttg.memdesc_index", values, [op.type_of("result")])]


def _async_copy(context: Context, op: ParsedOp) -> list[Step | Made]:
    source, memory = op.type_of("src"), op.type_of("dst")
    if not context.zeros.issuperset(op.values.get("other", [])):
        context.unsupported(
            op, "of something else than zeros is not supported", "load it, and store it then"
        )
    masks = op.values.get("mask", [])
    values: list[Value] = [(op.value("src"), source), (op.value("dst"), memory)]
    values += [(mask, like(source, _I1)) for mask in masks]
    said = {"operandSegmentSizes": segments([1, 1, len(masks)])}
    return [Made("ttg.async_copy_global_to_local", values, [TOKEN], said)]


def _async_commit_group(context: Context, op: ParsedOp) -> list[Step | Made]:
    return [_group(op.values.get("tokens", []))]


def _group(tokens: list[str]) -> Made:
    said = {"operandSegmentSizes": segments([len(tokens), 0])}
    return Made("ttg.async_commit_group", [(token, TOKEN) for token in tokens], [TOKEN], said)


def _async_wait(context: Context, op: ParsedOp) -> list[Step | Made]:
    """For each of the groups: at most so many are under way behind the last of these waits. Without
    a group it is for one that ends with the wait, and has nothing in it."""
    pendings = op.number("num")
    tokens, steps = op.values.get("tokens", []), list[Step | Made]()
    if not tokens:
        tokens = [context.name()]
        steps.append((tokens[0], _group([])))
        pendings += pendings > 0
    for name in op.result_names():
        context.aliases[name] = tokens[0]
    op.results = []
    said = {"pendings": i32(pendings)}
    return [*steps, *(Made("ttg.async_wait", [(token, TOKEN)], [], said) for token in tokens)]


# Products


def _warp_group_dot(context: Context, op: ParsedOp) -> list[Step | Made]:
    result, left, right = op.of("result", TensorType), op.type_of("a"), op.of("b", MemDesc)
    if result.layout is None:
        raise ValueError(f"the result, {result.text}, has no layout")
    rows, columns = result.shape
    tiling = warp_group_tiling((rows, columns), result.layout.in_size("warp"))
    if tiling is None:
        context.unsupported(op, f"of {rows} x {columns} is not supported", "take larger blocks")
    steps: list[Step | Made] = []
    a: Value = op.value("a"), left
    if isinstance(left, TensorType):
        wanted = tiling.operand_a(left.shape[1], left.element.bits)
        if wanted != left.layout:
            moved = TensorType(left.shape, left.element, wanted)
            name = context.name()
            steps.append((name, Made("ttg.convert_layout", [a], [moved])))
            a = name, moved
    adds = op.values.get("useC", [])
    values = [a, (op.value("b"), right), (op.value("c"), result), *((add, _I1) for add in adds)]
    at_most = op.number("maxNumImpreciseAcc") if right.element.bits == _BYTE else 0
    said = {
        "imprecise": i32(at_most),
        "operandSegmentSizes": segments([1, 1, 1, len(adds)]),
    }
    product = Made("ttng.warp_group_dot", values, [result], said)
    if op.flag("isAsync"):
        return [*steps, product]
    issued = context.name()
    return [*steps, (issued, product), _waited(issued, result, 0)]


def _waited(name: str, type_: TensorType, pendings: int) -> Made:
    said = {"pendings": i32(pendings)}
    return Made("ttng.warp_group_dot_wait", [(name, type_)], [type_], said)


def _warp_group_dot_wait(context: Context, op: ParsedOp) -> list[Step | Made]:
    """Its results are the sums, each of which waits; memory that it is given is what it was."""
    names, op.results = op.result_names(), []
    steps: list[Step | Made] = []
    inputs = list(zip(op.values["inputs"], op.types["inputs"], strict=True))
    for result, (name, type_) in zip(
        names or [context.name() for _ in inputs], inputs, strict=True
    ):
        if isinstance(type_, TensorType):
            new = context.name()
            steps.append((new, _waited(name, type_, op.number("pendings"))))
            name = new
        context.aliases[result] = name
    return steps


def _fence(context: Context, op: ParsedOp) -> list[Step | Made]:
    return [Made("ttng.fence_async_shared")]


FORMS: dict[str, tuple[str, Rule]] = {
    "ttg.convert_layout": ("$src {} : <src> -> <result>", same("ttg.convert_layout", "src")),
    "ttg.local_alloc": ("($src)? {} : <->", _local_alloc),
    "ttg.local_dealloc": ("$src {} : <src>", _nothing),
    "ttg.local_load": (
        "$src (token $token)? {} : <src> -> <result>",
        same("ttg.local_load", "src"),
    ),
    "ttg.local_store": ("$src , $dst {} : <src> -> <dst>", _local_store),
    "ttg.memdesc_index": ("$src [ $index ] {} : <src> -> <result>", _memdesc_index),
    "ttg.memdesc_trans": ("$src {} : <src> -> <result>", same("ttg.memdesc_trans", "src")),
    "ttg.async_copy_global_to_local": (
        "$src , $dst (mask $mask)? (other $other)? {} : <src> -> <dst:!ttg.memdesc>",
        _async_copy,
    ),
    "ttg.async_commit_group": ("(tokens $tokens*)? {}", _async_commit_group),
    "ttg.async_wait": ("($tokens*)? {}", _async_wait),
    "ttng.warp_group_dot": (
        "$a , $b , $c (, $useC)? {} : <a> * <b> -> <result>",
        _warp_group_dot,
    ),
    "ttng.warp_group_dot_wait": ("$inputs* {} : <inputs*>", _warp_group_dot_wait),
    "ttng.fence_async_shared": ("{}", _fence),
}
