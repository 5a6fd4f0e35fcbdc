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
from proton.layout import LinearLayout, encodings
from proton.layout.encodings import HOPPER, REGISTER_BITS
from proton.layout.named import DISTRIBUTED, blocked, dim, sliced
from proton.layout.tensor_cores import warp_group_tiling


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
            return encodings.of_bases({name: encoding.fields[name] for name in DISTRIBUTED}, shape)
        case "#ttg.nvidia_mma":
            return _accumulator(cursor, encoding, shape)
        case "#ttg.dot_op":
            return _operand(cursor, encoding, shape, bits)
    cursor.unsupported(
        f"tensors in the layout {encoding.name} are not supported",
        encoding.token,
        "compile the .ttir of the kernel, which has no layouts",
    )


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
    """Of Hopper's the layout of our own dots, which the same threads hold in another order."""
    warps, version = encoding.numbers("warpsPerCTA"), encoding.fields["versionMajor"]
    if not encodings.is_tensor_core(shape, version, warps):
        return _no_tensor_core(cursor, encoding, shape)
    if version == HOPPER and len(shape) == 2:
        tiling = warp_group_tiling((shape[0], shape[1]), prod(warps))
        if tiling is not None:
            return tiling.accumulator
    n = encoding.numbers("instrShape")[1] if version == HOPPER else 0
    return encodings.tensor_core_result(shape, version, warps, n)


def _no_tensor_core(cursor: Cursor, encoding: Encoding, shape: Sequence[int]) -> LinearLayout:
    cursor.unsupported(
        f"{encoding.name} of version {encoding.fields.get('versionMajor')} for {len(shape)} "
        "dimensions is not supported",
        encoding.token,
        "compile the .ttir of the kernel, which has no layouts",
    )


def _operand(cursor: Cursor, encoding: Encoding, shape: Sequence[int], bits: int) -> LinearLayout:
    """An operand of a dot: the left one where `opIdx` is 0."""
    parent, side = encoding.parent, encoding.fields["opIdx"]
    if parent.name == "#ttg.blocked":
        names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
        return encodings.blocked_operand(shape, side, *(parent.numbers(name) for name in names))
    version = parent.fields.get("versionMajor", 0)
    warps = parent.fields.get("warpsPerCTA", [])
    is_known = parent.name == "#ttg.nvidia_mma" and encodings.is_tensor_core(shape, version, warps)
    if not is_known or (version == HOPPER and side):
        return _no_tensor_core(cursor, encoding, shape)
    k_width = encoding.fields.get("kWidth", max(1, REGISTER_BITS // bits))
    return encodings.tensor_core_operand(shape, side, version, warps, k_width)


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
        case "#ttg.swizzled_shared" if fields["maxPhase"] == 1 or len(shape) > 1:
            vec, per_phase, max_phase = (int(fields[n]) for n in ("vec", "perPhase", "maxPhase"))
            order = encoding.numbers("order")
            return encodings.swizzled_memory(shape, vec, per_phase, max_phase, order)
        case "#ttg.nvmma_shared" if is_matrix and not fields.get("fp4Padded"):
            swizzle, is_transposed = int(fields["swizzlingByteWidth"]), bool(fields["transposed"])
            return encodings.nvmma_memory(shape, max(1, bits // 8), swizzle, is_transposed)
        case "#ttg.shared_linear":
            outs = {dim(axis): size for axis, size in enumerate(shape)}
            return LinearLayout.of({"offset": fields["offset"]}, outs)
    return None


def _unsound(cursor: Cursor, encoding: Encoding, problem: Exception) -> NoReturn:
    said = f"is without {problem}" if isinstance(problem, KeyError) else f"is not sound: {problem}"
    cursor.refuse(f"{encoding.name} {said}", encoding.token)
