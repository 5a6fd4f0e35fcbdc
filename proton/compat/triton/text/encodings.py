"""Triton's layouts, as its text names them, and what they are as linear layouts.

    #blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], ...}>
    #ttg.slice<{dim = 1, parent = #blocked}>

An `Encoding` has a name, and fields. Which thread holds which element depends on the
tensor's shape, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

from proton.compat.triton.text.cursor import Cursor, Token
from proton.layout import LinearLayout
from proton.layout.named import (
    DISTRIBUTED,
    blocked,
    dim,
    fit,
    mma_operand,
    mma_results,
    mma_v2,
    shared_nvmma,
    shared_row_major,
    shared_swizzled,
    sliced,
    wgmma_operand_a,
)
from proton.layout.tensor_cores import warp_group_tiling

REGISTER_BITS = 32
_AMPERE, _HOPPER = 2, 3  # generations of tensor cores, by their `versionMajor`
_ORDERS = {2: (0, 1), 3: (1, 2, 0)}  # in which Hopper's warps go along the dimensions


@dataclass(frozen=True, slots=True)
class Encoding:
    """An attribute such as `#ttg.blocked<{order = [0]}>`: integers, lists and others by name;
    `token` is where it begins."""

    name: str
    fields: dict[str, Any]
    token: Token

    def numbers(self, name: str) -> list[int]:
        """A field that is a list of integers."""
        return list(self.fields[name])

    @property
    def parent(self) -> "Encoding":
        """The layout that this one is of."""
        found = self.fields["parent"]
        if not isinstance(found, Encoding):
            raise ValueError(f"its parent is {found}")
        return found


def parse(cursor: Cursor, known: dict[str, Encoding]) -> Encoding:
    """The encoding that comes next; `known` has those with an alias."""
    token = cursor.next()
    if token.text in known:
        return known[token.text]
    if token.kind != "alias" or "." not in token.text:
        cursor.refuse(f"expected a layout, got {token.text or 'the end'!r}", token)
    fields: dict[str, Any] = {}
    if cursor.accept("<"):
        while not cursor.accept(">"):
            if cursor.at("{", "}", ","):
                cursor.next()
                continue
            name = cursor.next().text
            cursor.expect("=")
            fields[name] = _value(cursor, known)
    return Encoding(token.text, fields, token)


def _value(cursor: Cursor, known: dict[str, Encoding]) -> Any:
    token = cursor.peek()
    if token.kind == "alias":
        return parse(cursor, known)
    if cursor.accept("["):
        items = []
        while not cursor.accept("]"):
            items.append(_value(cursor, known))
            cursor.accept(",")
        return items
    cursor.next()
    if token.kind == "number":
        if not token.text.isdigit():
            cursor.refuse(f"expected an integer, got {token.text}", token)
        return int(token.text)
    return {"true": True, "false": False}.get(token.text, token.text)


def distributed(
    cursor: Cursor, encoding: Encoding, shape: Sequence[int], bits: int, warps: int
) -> LinearLayout:
    """The layout of a tensor with elements of so many bits in a program of `warps` warps; raises
    UnsupportedLanguageConstruct for encodings that have none here."""
    try:
        layout = _distributed(cursor, encoding, shape, bits)
    except (ValueError, KeyError, IndexError, TypeError) as problem:
        _unsound(cursor, encoding, problem)
    has = layout.in_size("warp")
    if has != warps:
        cursor.refuse(
            f"{encoding.name} is for {has} warps, and the module for {warps}", encoding.token
        )
    return layout


def _distributed(
    cursor: Cursor, encoding: Encoding, shape: Sequence[int], bits: int
) -> LinearLayout:
    _check_one_cta(cursor, encoding)
    match encoding.name:
        case "#ttg.blocked":
            names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
            size, lanes, warps, order = (encoding.numbers(name) for name in names)
            return blocked(shape, size, lanes, warps, order)
        case "#ttg.slice":
            axis = encoding.fields["dim"]
            whole = [*shape[:axis], 1, *shape[axis:]]
            return sliced(_distributed(cursor, encoding.parent, whole, bits), axis)
        case "#ttg.linear":
            return _linear({name: encoding.fields[name] for name in DISTRIBUTED}, shape)
        case "#ttg.nvidia_mma":
            return _accumulator(cursor, encoding, shape)
        case "#ttg.dot_op":
            return _operand(cursor, encoding, shape, bits)
    cursor.unsupported(
        f"tensors in the layout {encoding.name} are not supported",
        encoding.token,
        "compile the .ttir of the kernel, which has no layouts",
    )


def _linear(ins: dict[str, list[list[int]]], shape: Sequence[int]) -> LinearLayout:
    """As it stands, for a tensor of its own size; else cut or repeated as other layouts are."""
    bases = [basis for of in ins.values() for basis in of]
    for basis in bases:
        if len(basis) != len(shape):
            raise ValueError(f"basis {basis} is not of {len(shape)} dimensions")
    own = [
        1 << max((basis[axis].bit_length() for basis in bases), default=0)
        for axis, _ in enumerate(shape)
    ]
    layout = LinearLayout.of(ins, {dim(axis): size for axis, size in enumerate(own)})
    return layout if own == list(shape) else fit(layout, shape)


def _check_one_cta(cursor: Cursor, encoding: Encoding) -> None:
    """Bases of a field for blocks of a cluster must be none."""
    clusters = encoding.fields.get("CGALayout", [])
    per_cga = encoding.fields.get("CTAsPerCGA", [])
    if clusters or any(count != 1 for count in per_cga):
        cursor.unsupported(
            f"{encoding.name} spreads a tensor over several CTAs",
            encoding.token,
            "compile the kernel with num_ctas=1",
        )


def _accumulator(cursor: Cursor, encoding: Encoding, shape: Sequence[int]) -> LinearLayout:
    """Of Hopper's the layout of our own products, which the same threads hold in another order."""
    warps, version = encoding.numbers("warpsPerCTA"), encoding.fields["versionMajor"]
    if len(shape) not in _ORDERS or len(warps) != len(shape) or version not in (_AMPERE, _HOPPER):
        return _no_tensor_core(cursor, encoding, shape)
    if version == _AMPERE:
        return mma_v2(shape, warps)
    if len(shape) == 2:
        tiling = warp_group_tiling((shape[0], shape[1]), prod(warps))
        if tiling is not None:
            return tiling.accumulator
    n = encoding.numbers("instrShape")[1]
    return mma_results(shape, n, warps, _ORDERS[len(shape)])


def _no_tensor_core(cursor: Cursor, encoding: Encoding, shape: Sequence[int]) -> LinearLayout:
    cursor.unsupported(
        f"{encoding.name} of version {encoding.fields.get('versionMajor')} for {len(shape)} "
        "dimensions is not supported",
        encoding.token,
        "compile the .ttir of the kernel, which has no layouts",
    )


def _operand(cursor: Cursor, encoding: Encoding, shape: Sequence[int], bits: int) -> LinearLayout:
    """An operand of a product: the left one where `opIdx` is 0."""
    parent, side = encoding.parent, encoding.fields["opIdx"]
    if parent.name == "#ttg.blocked":
        return _blocked_operand(parent, side, shape)
    version = parent.fields.get("versionMajor")
    warps = parent.fields.get("warpsPerCTA", [])
    if parent.name != "#ttg.nvidia_mma" or len(shape) not in _ORDERS or len(warps) != len(shape):
        return _no_tensor_core(cursor, encoding, shape)
    # A register holds so many elements side by side, of whatever type: conversions of types keep
    # the layout.
    in_register = REGISTER_BITS // encoding.fields.get("kWidth", max(1, REGISTER_BITS // bits))
    if version == _HOPPER and side == 0:
        if len(shape) == 2:
            return wgmma_operand_a(shape, in_register, warps)
        return mma_operand(shape, side, in_register, warps, _ORDERS[len(shape)])
    if version != _AMPERE:
        return _no_tensor_core(cursor, encoding, shape)
    return mma_operand(shape, side, in_register, warps, tuple(reversed(range(len(shape)))))


def _blocked_operand(parent: Encoding, side: int, shape: Sequence[int]) -> LinearLayout:
    """Each thread has all of the inner dimension, for the rows or columns that are its results."""
    rank = len(shape)
    inner = rank - 1 if side == 0 else rank - 2
    per_thread = parent.numbers("sizePerThread")
    per_thread[inner] = shape[inner]
    layout = blocked(
        [
            size if axis != inner else _covered(parent, inner, size)
            for axis, size in enumerate(shape)
        ],
        per_thread,
        parent.numbers("threadsPerWarp"),
        parent.numbers("warpsPerCTA"),
        parent.numbers("order"),
    )
    return fit(layout, shape)


def _covered(parent: Encoding, axis: int, size: int) -> int:
    """The size of a dimension that the threads and warps along it would cover."""
    threads, warps = parent.numbers("threadsPerWarp"), parent.numbers("warpsPerCTA")
    return size * threads[axis] * warps[axis]


def shared(cursor: Cursor, encoding: Encoding, shape: Sequence[int], bits: int) -> LinearLayout:
    """The layout of a tensor in shared memory; raises UnsupportedLanguageConstruct for encodings
    that have none here."""
    _check_one_cta(cursor, encoding)
    try:
        layout = _shared(encoding, shape, bits)
    except (ValueError, KeyError, IndexError, TypeError) as problem:
        _unsound(cursor, encoding, problem)
    if layout is None:
        cursor.unsupported(
            f"shared memory of {len(shape)} dimensions in the layout {encoding.name} is not "
            "supported",
            encoding.token,
            "compile the .ttir of the kernel, which has no shared memory",
        )
    return layout


def _shared(encoding: Encoding, shape: Sequence[int], bits: int) -> LinearLayout | None:
    fields, is_matrix = encoding.fields, len(shape) == 2
    match encoding.name:
        case "#ttg.swizzled_shared" if fields["maxPhase"] == 1:
            return shared_row_major(shape, encoding.numbers("order"))
        case "#ttg.swizzled_shared" if len(shape) > 1:
            vec, per_phase, max_phase = (int(fields[n]) for n in ("vec", "perPhase", "maxPhase"))
            return shared_swizzled(shape, vec, per_phase, max_phase, encoding.numbers("order"))
        case "#ttg.nvmma_shared" if is_matrix and not fields.get("fp4Padded"):
            order = [0, 1] if fields["transposed"] else [1, 0]
            swizzle = int(fields["swizzlingByteWidth"])
            if not swizzle:
                return shared_row_major(shape, order)
            return shared_nvmma(shape, max(1, bits // 8), swizzle, order)
        case "#ttg.shared_linear":
            outs = {dim(axis): size for axis, size in enumerate(shape)}
            return LinearLayout.of({"offset": fields["offset"]}, outs)
    return None


def _unsound(cursor: Cursor, encoding: Encoding, problem: Exception) -> NoReturn:
    said = f"is without {problem}" if isinstance(problem, KeyError) else f"is not sound: {problem}"
    cursor.refuse(f"{encoding.name} {said}", encoding.token)
