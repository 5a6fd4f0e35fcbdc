"""Instructions for matrices: `ldmatrix`, `stmatrix`, `mma.sync` and `wgmma`.

Where threads have the elements of a fragment, and where shared memory has those of an operand of
`wgmma`, is as the PTX ISA has it ("Warp-level matrix fragments", "Asynchronous warpgroup level
matrix shared memory layout"). What `wgmma` computes is in its registers when it is waited for: they
have garbage before, and its operands in shared memory may not change.
"""

import functools
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.compile.ptx.memory import SHARED, WARP, Memory
from tests.compile.ptx.numbers import float8_numbers, from_bf16, unsigned
from tests.compile.ptx.text import inside

_SWIZZLES = {0: 16, 1: 128, 2: 64, 3: 32}  # bytes of a row of a pattern, by mode
_ELEMENT_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
                 "f64": 64, "f32": 32, "s32": 32}  # fmt: skip
_GROUP = 4 * WARP
_LINE = 16  # bytes of shared memory next to each other that an operand has at least


def numbers_of(bits: np.ndarray, type_: str) -> np.ndarray:
    """Elements as numbers of 64 bits that hold all of them."""
    match type_:
        case "f16":
            return bits.view(np.float16).astype(np.float64)
        case "bf16":
            return from_bf16(bits).astype(np.float64)
        case "tf32":  # the unit does not look at the lower bits
            return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
        case "f32" | "f64":
            return bits.view(f"f{bits.itemsize}").astype(np.float64)
        case "s8" | "s32":
            return bits.view(f"i{bits.itemsize}").astype(np.int64)
        case "u8":
            return bits.astype(np.int64)
    return float8_numbers(type_)[bits]


def bits_of(values: np.ndarray, type_: str) -> np.ndarray:
    """Numbers as the bits of a register's elements."""
    match type_:
        case "f16" | "f32" | "f64":
            return values.astype(f"f{_ELEMENT_BITS[type_] // 8}").view(
                unsigned(_ELEMENT_BITS[type_])
            )
    return values.astype(np.int64).astype(np.int32).view(np.uint32)


@dataclass
class _Places:
    """Where shared memory has the elements of an operand, and the lines that these are in."""

    elements: np.ndarray  # [row, k]
    lines: np.ndarray


@dataclass
class _Product:
    """A `wgmma` under way: which registers get what; what it reads, and what that was."""

    threads: np.ndarray
    registers: list[np.ndarray]  # none where a product behind it adds to this one
    result: np.ndarray  # [64, n]
    type: str
    operands: list[tuple[_Places, np.ndarray]]  # places in shared memory, what they had
    text: str


@dataclass
class _Group:
    """What four warps have under way: products not committed, and committed groups."""

    open: list[_Product] = field(default_factory=list)
    committed: list[list[_Product]] = field(default_factory=list)


class Matrices:
    """What a machine does with matrices."""

    shared: Memory
    rng: np.random.Generator

    def start_matrices(self) -> None:
        self.groups: dict[int, _Group] = {}
        self.described: dict[tuple[int, ...], _Places] = {}  # by what says where they are

    # ldmatrix and stmatrix

    def _rows(self, op: Any, operand: str, count: int, mask: np.ndarray) -> list[Any]:
        """For each matrix of each warp: (its number, the warp's threads, places of its rows)."""
        address, found = op.address(operand), []
        for first in np.flatnonzero(mask)[::WARP] // WARP * WARP:
            threads = np.arange(first, first + WARP)
            for number in range(count):
                rows = threads[8 * number : 8 * number + 8]
                found.append((number, threads, self.shared.places(address[rows], 16, rows), rows))
        return found

    def ldmatrix(self, op: Any, mask: np.ndarray) -> None:
        registers = [op.register(name) for name in inside(op.operands[0])]
        assert "b16" in op.parts, op.text
        for number, threads, places, rows in self._rows(op, op.operands[1], len(registers), mask):
            matrix = self.shared.load(places, 4, 4, rows).T.copy().view(np.uint16)
            if "trans" in op.parts:
                matrix = matrix.T
            registers[number][threads] = np.ascontiguousarray(matrix).view(np.uint32).reshape(-1)

    def stmatrix(self, op: Any, mask: np.ndarray) -> None:
        registers = [op.register(name) for name in inside(op.operands[1])]
        assert "b16" in op.parts, op.text
        for number, threads, places, rows in self._rows(op, op.operands[0], len(registers), mask):
            matrix = registers[number][threads].reshape(8, 4).view(np.uint16)
            if "trans" in op.parts:
                matrix = matrix.T
            words = np.ascontiguousarray(matrix).view(np.uint32)
            self.shared.store(places, 4, list(words.T), rows)
            self.stored("shared", places, 16, rows)  # type: ignore[attr-defined]

    # mma.sync

    def mma(self, op: Any, mask: np.ndarray) -> None:
        shape = re.search(r"m(\d+)n(\d+)k(\d+)", op.text)
        assert shape is not None, op.text
        assert {"row", "col"} <= {*op.parts}, op.text
        m, n, k = map(int, shape.groups())
        to, left, right, of = op.parts[-4:]
        values = [[op.register(r) if r.startswith("%") else op.array(r, "b32") for r in inside(o)]
                  for o in op.operands]  # fmt: skip
        fragments = [
            (_of_operand(m, k, _ELEMENT_BITS[left]), (m, k), left),
            (_of_operand(n, k, _ELEMENT_BITS[right]), (n, k), right),
            (_of_result(m, n, _ELEMENT_BITS[of]), (m, n), of),
        ]
        for first in np.flatnonzero(mask)[::WARP] // WARP * WARP:
            threads = slice(first, first + WARP)
            a, b, c = (
                _collected([r[threads] for r in registers], *fragment)
                for registers, fragment in zip(values[1:], fragments, strict=True)
            )
            found = _distributed(bits_of(a @ b.T + c, to), _of_result(m, n, _ELEMENT_BITS[to]))
            for register, numbers in zip(values[0], found, strict=True):
                register[threads] = numbers

    # wgmma

    def wgmma(self, op: Any, mask: np.ndarray) -> None:
        for first in np.flatnonzero(mask)[::_GROUP] // _GROUP * _GROUP:
            group = self.groups.setdefault(int(first), _Group())
            threads = np.arange(first, first + _GROUP)
            match op.parts[1]:
                case "mma_async":
                    group.open.append(self._multiply(op, threads, group))
                case "commit_group":
                    group.committed.append(group.open)
                    group.open = []
                case "wait_group":
                    assert not group.open, "wgmma.wait_group before the commit_group"
                    count = len(group.committed) - int(op.operands[0])
                    for products in group.committed[: max(0, count)]:
                        for product in products:
                            self._retire(product)
                    del group.committed[: max(0, count)]
                case "fence":  # registers are in order here
                    pass
                case _:
                    raise AssertionError(f"no rule for {op.text}")

    def _multiply(self, op: Any, threads: np.ndarray, group: _Group) -> _Product:
        shape = re.search(r"m64n(\d+)k(\d+)", op.text)
        assert shape is not None
        n, k = int(shape[1]), int(shape[2])
        to, left, right = op.parts[-3:]
        assert _ELEMENT_BITS[left] * k == 256, op.text
        registers = [op.register(name) for name in inside(op.operands[0])]
        is_transposed = [int(text) for text in op.operands[6:]] or [0, 0]
        signs = [int(text) for text in op.operands[4:6]] or [1, 1]
        operands = []
        if op.operands[1].startswith("{"):
            given = [op.register(name) for name in inside(op.operands[1])]
            a = _of_group(given, threads, _of_operand(16, k, _ELEMENT_BITS[left]), (16, k), left)
            is_transposed = [0, *is_transposed[-1:]]
        else:
            places = self._described(op, op.operands[1], threads, 64, k, left, is_transposed[0])
            a, was = self._operand(places, left, threads)
            operands.append((places, was))
        places = self._described(op, op.operands[2], threads, n, k, right, is_transposed[1])
        b, was = self._operand(places, right, threads)
        operands.append((places, was))
        found = (signs[0] * a) @ (signs[1] * b).T
        sums = self._sums(registers, threads, group, n, to)
        if bool(op.array(op.operands[3], "pred")[threads[0]]):
            found = found + sums
        if to == "f32":
            found = found.astype(np.float32)
        garbage = self.rng.integers(0, 1 << 32, (len(registers), _GROUP), np.uint32)
        for register, values in zip(registers, garbage, strict=True):
            register[_all(threads)] = values  # nobody may look before the wait
        return _Product(threads, registers, found, to, operands, op.text)

    def _described(
        self, op: Any, operand: str, threads: np.ndarray, rows: int, k: int, type_: str,
        is_transposed: int,
    ) -> _Places:  # fmt: skip
        """Where shared memory has an operand, by its descriptor."""
        descriptors = op.array(operand, "u64")[threads]
        assert (descriptors == descriptors[0]).all(), f"{op.text}: threads differ in {operand}"
        size = _ELEMENT_BITS[type_] // 8
        key = int(descriptors[0]), int(threads[0]), rows, k, size, is_transposed
        if key not in self.described:
            self.described[key] = self._places(op, *key)
        return self.described[key]

    def _places(
        self, op: Any, bits: int, thread: int, rows: int, k: int, size: int, is_transposed: int
    ) -> _Places:
        """The same, by the bits of the descriptor."""
        start, leading, stride = ((bits >> at & 0x3FFF) << 4 for at in (0, 16, 32))
        assert bits >> 49 & 7 == 0, f"{op.text}: a base offset"
        width = _SWIZZLES[bits >> 62]
        row, depth = np.arange(rows)[:, None], np.arange(k)[None, :]
        if not is_transposed:
            place = row // 8 * stride + row % 8 * width + depth * size
            if width == 16:
                place = row // 8 * stride + row % 8 * 16
                place = place + depth * size // 16 * leading + depth * size % 16
        elif width == 16:
            along = row * size
            place = along // 16 * stride + along % 16 + depth // 8 * leading + depth % 8 * 16
        else:
            along = row * size
            place = along // width * leading + along % width
            place = place + depth // 8 * stride + depth % 8 * width
        place = start + place
        if width > 16:  # bits 4 and up are xored with those that say the row of the pattern
            place = place ^ ((place >> 7 & width // 16 - 1) << 4)
        address = (place + SHARED - (SHARED & 0x3FFFF)).reshape(-1)
        lead = np.full(address.size, thread)
        elements = self.shared.places(address, size, lead).reshape(place.shape)
        return _Places(elements, np.unique(elements // _LINE) * _LINE)

    def _operand(
        self, places: _Places, type_: str, threads: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Numbers [row, k], and their bits."""
        size = _ELEMENT_BITS[type_] // 8
        self.shared.check_read(*_by_warps(places, threads))
        self.check_visible(places.elements, size)  # type: ignore[attr-defined]
        bits = self.shared.numbers(places.elements.reshape(-1), size, 1)[0].copy()
        return numbers_of(bits, type_).reshape(places.elements.shape), bits

    def _sums(
        self, registers: list[np.ndarray], threads: np.ndarray, group: _Group, n: int, type_: str
    ) -> np.ndarray:
        """What the registers have, or what is under way into them, which ends with the product that
        takes its place."""
        own = set(map(id, registers))
        for product in [p for ps in group.committed for p in ps] + group.open:
            if not own.isdisjoint(map(id, product.registers)):
                same = [a is b for a, b in zip(product.registers, registers, strict=True)]
                assert all(same), f"a product under way has some of the registers of {product.text}"
                product.registers = []
                return product.result.astype(np.int64 if type_[0] in "su" else np.float64)
        fragment = _of_result(16, n, _ELEMENT_BITS[type_])
        return _of_group(registers, threads, fragment, (16, n), type_)

    def _retire(self, product: _Product) -> None:
        for places, was in product.operands:
            now = self.shared.numbers(places.elements.reshape(-1), was.itemsize, 1)[0]
            assert (now == was).all(), f"shared memory changed under {product.text[:80]}"
            self.shared.note_read(*_by_warps(places, product.threads))
        if product.registers:
            bits, n = bits_of(product.result, product.type), product.result.shape[1]
            fragment = _of_result(16, n, _ELEMENT_BITS[product.type])
            warps = [_distributed(bits[at : at + 16], fragment) for at in range(0, 64, 16)]
            found = np.concatenate(warps, axis=1)
            for register, values in zip(product.registers, found, strict=True):
                register[_all(product.threads)] = values


def _all(group: np.ndarray) -> slice:
    """The threads of a group, which follow each other: numpy takes a slice in a part of the time
    that it takes so many places."""
    return slice(group[0], group[-1] + 1)


def _by_warps(places: _Places, threads: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Who reads what: each warp all of the lines, for itself."""
    lines, readers = places.lines, threads[::WARP]
    return np.tile(lines, len(readers)), _LINE, np.repeat(readers, len(lines))


def _of_group(
    registers: list[np.ndarray],
    threads: np.ndarray,
    fragment: "Fragment",
    shape: tuple[int, int],
    type_: str,
) -> np.ndarray:
    """The matrix that the registers of four warps have, each a quarter of its rows."""
    numbers = np.stack([register[_all(threads)] for register in registers])
    quarters = [list(numbers[:, at : at + WARP]) for at in range(0, _GROUP, WARP)]
    return np.concatenate([_collected(each, fragment, shape, type_) for each in quarters])


# Fragments: where in a matrix the elements are that the registers of a warp have, as indices of
# rows and columns, [register, lane, element of the register].

Fragment = tuple[np.ndarray, np.ndarray]
_LANE = np.arange(WARP)


@functools.cache
def _of_operand(rows: int, depth: int, bits: int) -> Fragment:
    """Of a matrix [rows, k]: thread t has row t // 4 of each eight."""
    count = max(1, 32 // bits)
    return _indices(
        [
            (row, column + _LANE % 4 * count)
            for column in range(0, depth, 4 * count)
            for row in range(0, rows, 8)
        ],
        count,
    )


@functools.cache
def _of_result(rows: int, columns: int, bits: int) -> Fragment:
    """Of a result: two elements next to each other, in one register where they are of 16 bits."""
    count = max(1, 32 // bits)
    return _indices(
        [
            (row, column + _LANE % 4 * 2 + part)
            for column in range(0, columns, 8)
            for row in range(0, rows, 8)
            for part in range(0, 2, count)
        ],
        count,
    )


def _indices(registers: list[tuple[int, np.ndarray]], count: int) -> Fragment:
    rows = np.array([row + _LANE // 4 for row, _ in registers])[..., None]
    columns = np.array([column for _, column in registers])[..., None] + np.arange(count)
    return np.broadcast_to(rows, columns.shape), columns


def _collected(
    registers: list[np.ndarray], fragment: Fragment, shape: tuple[int, int], type_: str
) -> np.ndarray:
    """The matrix that the registers of a warp have."""
    rows, columns = fragment
    assert len(registers) == len(rows), f"{len(registers)} registers for {len(rows)}"
    bits = np.stack(registers).view(unsigned(_ELEMENT_BITS[type_]))
    found = np.zeros(shape, np.int64 if type_[0] in "su" else np.float64)
    found[rows, columns] = numbers_of(bits, type_).reshape(rows.shape)
    return found


def _distributed(bits: np.ndarray, fragment: Fragment) -> np.ndarray:
    """What the registers of a warp have of a matrix: [register, lane]."""
    parts = np.ascontiguousarray(bits[fragment])
    found: np.ndarray = parts.view(unsigned(8 * bits.itemsize * parts.shape[2]))[..., 0]
    return found
