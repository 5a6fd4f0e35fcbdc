"""Memory: each element is checked against the array that its pointer came from."""

import ctypes
from collections.abc import Callable, Collection, Sequence

import numpy as np

from proton.base.bounds import Extent, outside
from proton.base.errors import LaunchError
from proton.interpreter.formats import (
    NOBODY,
    POINTER,
    Array,
    Format,
    format_named,
    pointers,
    signed,
    unsigned,
)
from proton.interpreter.interface import Places, RunningProgram

_ADDRESS = format_named("i64")
_FIRST_PAGE = 4096  # bytes that no array lies in: an access there is by a null pointer


class LaunchMemory:
    """The arrays of a launch; an owner's number is its place in the list."""

    def __init__(self, arrays: Sequence[Extent], read_only: Collection[str] = ()) -> None:
        """`read_only` names those that must not be written."""
        self.arrays, self.read_only = list(arrays), read_only
        self.bytes = [_bytes(array.low, array.high - array.low) for array in arrays]

    def load(
        self, program: RunningProgram, pointer: Array, mask: Array, dtype: np.dtype
    ) -> np.ndarray:
        """The elements at the pointers, and zeros where the mask is false."""
        result = np.zeros(pointer.shape, dtype)
        for owner, chosen in _by_owner(pointer, mask):
            address = pointer["address"][chosen]
            self._check(program, "load", owner, address, dtype.itemsize, chosen)
            result[chosen] = self._read(owner, address, dtype)
        return result

    def store(self, program: RunningProgram, pointer: Array, mask: Array, value: Array) -> None:
        """Writes where the mask is true; of elements that share a place the last one."""
        value = np.asarray(value)
        for owner, chosen in _by_owner(pointer, mask):
            address = pointer["address"][chosen]
            self._check_writeable(owner)
            self._check(program, "store", owner, address, value.dtype.itemsize, chosen)
            self._write(owner, address, value[chosen])

    def update(
        self,
        program: RunningProgram,
        pointer: Array,
        mask: Array,
        change: Callable[[Array, object], Array],
        dtype: np.dtype,
    ) -> np.ndarray:
        """Atomics: each element in turn becomes what `change` makes of it and of the places (an
        index of the block) that are changed at once; the elements as they were before."""
        before = np.zeros(pointer.shape, dtype)
        for owner, chosen in _by_owner(pointer, mask):
            address = pointer["address"][chosen]
            self._check_writeable(owner)
            self._check(program, "atomic", owner, address, dtype.itemsize, chosen)
            for now in _rounds(address):
                places = tuple(index[now] for index in chosen)
                found = self._read(owner, address[now], dtype)
                before[places] = found
                self._write(owner, address[now], change(found, places))
        return before

    def _check(
        self,
        program: RunningProgram,
        kind: str,
        owner: int,
        address: Array,
        size: int,
        chosen: tuple[np.ndarray, ...],
    ) -> None:
        """Raises BoundsError for the first access that is outside of its array."""
        if owner == NOBODY:
            wrong = (address >= 0) & (address < _FIRST_PAGE)
        else:
            array = self.arrays[owner]
            wrong = (address < array.low) | (address + size > array.high)
        if not wrong.any():
            return
        number = int(wrong.argmax())
        place = tuple(int(index[number]) for index in chosen)
        where = f", element {place} of the block" if place else ""
        if owner == NOBODY:
            what = f"{kind} by a null pointer in program {program.place}"
        else:
            what = outside(kind, int(address[number]), [self.arrays[owner]], program.place)
        raise program.bounds_error(what + where)

    def _check_writeable(self, owner: int) -> None:
        if owner != NOBODY and self.arrays[owner].name in self.read_only:
            name = self.arrays[owner].name
            raise LaunchError(f"argument {name} is read-only, and the kernel writes through it")

    def _read(self, owner: int, address: Array, dtype: np.dtype) -> np.ndarray:
        size = dtype.itemsize
        if owner == NOBODY:
            texts = [ctypes.string_at(int(a), size) for a in address]
            return np.frombuffer(b"".join(texts), dtype)
        offset = address - self.arrays[owner].low
        data = self.bytes[owner]
        if not (offset % size).any():
            return data[: data.size // size * size].view(dtype)[offset // size]
        return data[offset[:, None] + np.arange(size)].reshape(-1).view(dtype)

    def _write(self, owner: int, address: Array, value: np.ndarray) -> None:
        size = value.dtype.itemsize
        if owner == NOBODY:
            for a, element in zip(address, value, strict=True):
                ctypes.memmove(int(a), element.tobytes(), size)
            return
        offset = address - self.arrays[owner].low
        data = self.bytes[owner]
        if not (offset % size).any():
            data[: data.size // size * size].view(value.dtype)[offset // size] = value
        else:
            places = offset[:, None] + np.arange(size)
            data[places] = np.ascontiguousarray(value).view(np.uint8).reshape(-1, size)


def _bytes(address: int, size: int) -> np.ndarray:
    """Memory as an array."""
    if not size:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _rounds(address: np.ndarray) -> list[np.ndarray]:
    """The elements in groups, of which none has two of one address; these follow in their order."""
    order = np.argsort(address, kind="stable")
    is_first = np.ones(len(order), bool)
    is_first[1:] = address[order][1:] != address[order][:-1]
    if is_first.all():
        return [np.arange(len(order))]
    starts = np.flatnonzero(is_first)
    number = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    by_round = np.argsort(number, kind="stable")
    return np.split(order[by_round], np.flatnonzero(np.diff(number[by_round])) + 1)


def _by_owner(pointer: Array, mask: Array) -> list[tuple[int, tuple[np.ndarray, ...]]]:
    """The elements that are accessed, as indices, by the array that they are in."""
    chosen = np.nonzero(np.broadcast_to(mask, pointer.shape)) if pointer.shape else ()
    if not pointer.shape:
        return [(int(pointer["owner"]), (np.zeros(1, np.intp),))] if mask else []
    owners = pointer["owner"][chosen]
    if not owners.size:
        return []
    if (owners == owners[0]).all():
        return [(int(owners[0]), chosen)]
    found = []
    for owner in np.unique(owners):
        same = owners == owner
        found.append((int(owner), tuple(index[same] for index in chosen)))
    return found


# A scalar is a block of one element here: there is one way to go.


def load_elements(program: RunningProgram, pointer: Array, mask: Array, form: Format) -> Array:
    """The elements at the pointers, in their format; zeros where the mask is false."""
    dtype = _ADDRESS.storage if form.storage == POINTER else form.storage
    block, shape = np.atleast_1d(pointer), np.shape(pointer)
    found = program.memory.load(program, block, np.atleast_1d(mask), dtype).reshape(shape)
    return pointers(found, NOBODY) if form.storage == POINTER else found


def store_elements(program: RunningProgram, pointer: Array, mask: Array, value: Array) -> None:
    """Writes elements in their format."""
    value = np.asarray(value)
    if value.dtype == POINTER:
        value = value["address"]
    program.memory.store(program, np.atleast_1d(pointer), np.atleast_1d(mask), np.atleast_1d(value))


def _of_unsigned(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda a, b: signed(function(unsigned(a), unsigned(b)))


_RMW: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "fadd": np.add,
    "max": np.maximum,
    "umax": _of_unsigned(np.maximum),
    "fmax": np.fmax,
    "min": np.minimum,
    "umin": _of_unsigned(np.minimum),
    "fmin": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, new: new,
}


def combining(kind: str, form: Format) -> Callable[[Array, Array], Array]:
    """(what is in memory, the operand) -> what is there afterwards, in the format."""
    function = _RMW[kind]
    if kind == "xchg" or form.storage.kind == "i":
        return function
    return lambda old, new: form.narrow(function(form.widen(old), form.widen(new)))


def update_elements(
    program: RunningProgram,
    pointer: Array,
    mask: Array,
    value: Array,
    combine: Callable[..., Array],
) -> Array:
    """An atomic on each element; the elements before."""
    block, operand = np.atleast_1d(pointer), np.atleast_1d(value)

    def change(old: Array, places: Places) -> Array:
        return combine(old, operand[places])

    found = program.memory.update(program, block, np.atleast_1d(mask), change, operand.dtype)
    return found.reshape(np.shape(pointer))
