"""Objects of `@proton.aggregate` classes, against the same arithmetic in Python."""

import threading
from typing import NamedTuple

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import CompilationError

pytestmark = pytest.mark.interpreted


@proton.aggregate
class Complex:
    re: tl.tensor
    im: tl.tensor

    def __init__(self, re, im):
        self.re = re
        self.im = im

    @proton.jit
    def times(self, other):
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    @proton.jit
    def __add__(self, other):
        return Complex(self.re + other.re, self.im + other.im)

    def imaginary(self):
        return self.im

    @staticmethod
    @proton.jit
    def of(re):
        return Complex(re, 1)


@proton.aggregate
class Tile:
    value: tl.tensor
    SIZE: tl.constexpr

    @proton.jit
    def __init__(self, ptr, SIZE: tl.constexpr):
        self.value = tl.load(ptr + tl.arange(0, SIZE))
        self.SIZE = SIZE

    @proton.constexpr_function
    def half(self):
        return self.SIZE // 2


@proton.aggregate
class Base:
    x: tl.tensor
    scale: tl.constexpr = 2

    @proton.jit
    def scaled(self):
        return self.x * self.scale


@proton.aggregate
class Derived(Base):
    offset: tl.tensor = 0

    @proton.jit
    def scaled(self):
        return self.x * self.scale + self.offset


@proton.jit
def powers(out, re, im, n):
    z, power = Complex(re, im), Complex(1, 0)
    for _ in range(n):
        power = power.times(z)
    if n > 3:
        power = power + Complex.of(re)
    tl.store(out, power.re)
    tl.store(out + 1, power.imaginary())


@pytest.mark.parametrize("n", [0, 3, 5])
def test_methods_operators_loops_and_branches(n: int) -> None:
    out = np.zeros(2, np.int32)
    powers[(1,)](out, 3, -2, n)
    want = (3 - 2j) ** n + (3 + 1j if n > 3 else 0)
    assert out.tolist() == [round(want.real), round(want.imag)]


@proton.jit
def doubled(x, out, n):
    tile = Tile(x, 16)
    while tl.sum(tile.value) < n:
        tile = tl.aggregate_replace(tile, value=tile.value * 2)
    tl.store(out + tl.arange(0, tile.SIZE), tile.value)
    tl.debug_barrier()
    tl.store(out + tl.arange(0, tile.half()), tile.half())


def test_constexpr_fields_stay_known_in_loops() -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    doubled[(1,)](x, out, 1000)
    assert out.tolist() == [8] * 8 + (16 * np.arange(16))[8:].tolist()


@proton.jit
def inherited(out, n):
    tl.store(out, Base(n).scaled())
    tl.store(out + 1, Derived(n, offset=5).scaled())
    tl.store(out + 2, Derived(n, 3).scaled())


def test_inheritance_and_defaults() -> None:
    out = np.zeros(3, np.int32)
    inherited[(1,)](out, 7)
    assert out.tolist() == [14, 19, 21]
    assert repr(Derived(1, offset=2)) == "Derived(x=1, scale=2, offset=2)"
    with pytest.raises(AttributeError, match="cannot assign to field 'x' on immutable aggregate"):
        Derived(1).x = 2

    class Plain:
        pass

    with pytest.raises(TypeError, match=r"only inherit from other aggregates: .* from Plain"):

        @proton.aggregate
        class Mixed(Plain):
            x: tl.tensor


@proton.jit
def sets_a_field(out):
    made = Base(1)
    made.x = 2


@proton.jit
def reads_no_field(out):
    tl.store(out, Base(1).y)


@proton.jit
def runtime_constexpr(out, n):
    tl.store(out, Base(1, n).scaled())


@proton.jit
def misses_a_field(out):
    tl.store(out, Base().scaled())


@pytest.mark.parametrize(
    ("kernel", "args", "rule"),
    [
        (sets_a_field, (), "immutable aggregate Base: make another one with tl.aggregate_replace"),
        (reads_no_field, (), "Base has no attribute 'y'"),
        (runtime_constexpr, (2,), "Base.scale is a constexpr, got"),
        (misses_a_field, (), "missing a required argument: 'x'"),
    ],
    ids=["set", "read", "constexpr", "missing"],
)
def test_mistakes_are_named(kernel: proton.JITFunction, args: tuple[int, ...], rule: str) -> None:
    with pytest.raises(CompilationError, match=rule):
        kernel[(1,)](np.zeros(1, np.int32), *args)


def test_a_changed_method_is_another_kernel() -> None:
    """What the disk cache files a kernel under tells methods apart."""

    def key(sign: int) -> str:
        @proton.aggregate
        class Signed:
            x: tl.tensor

            @proton.jit
            def get(self):
                return self.x * sign

        @proton.jit
        def kernel(out):
            tl.store(out, Signed(1).get())

        return kernel.source_key()

    assert key(tl.constexpr(1)) != key(tl.constexpr(-1))


@proton.aggregate
class Row:
    """Python that is handed tensors, and calls ops, as Triton's libraries write it."""

    value: tl.tensor
    SIZE: tl.constexpr

    def __init__(self, SIZE, first=0, _semantic=None):
        offs = tl.arange(0, tl.constexpr(SIZE), _semantic=_semantic)
        self.value = tl.add(offs, first, _semantic=_semantic)
        self.SIZE = tl.constexpr(SIZE)

    @staticmethod
    def summed(value):
        return Total(tl.sum(value), tl.constexpr(42))

    @classmethod
    def of_eight(cls, first, _semantic=None):
        return cls(8, first, _semantic=_semantic)

    def __getitem__(self, what, _semantic=None):
        return self.value if what == "value" else tl.mul(self.value, 2, _semantic=_semantic)

    def plus(self, other: tl.tensor):
        return Total(tl.sum(self.value) if other is None else other, self.SIZE)


@proton.aggregate
class Total:
    value: tl.tensor
    COUNT: tl.constexpr

    @proton.jit
    def all(self):
        return self.value + self.COUNT


@proton.jit
def in_python(out, n):
    row = Row(4, first=n)
    tl.store(out + tl.arange(0, 4), row["value"] + row["twice"])
    tl.store(out + 4, Row.summed(row.value).all())
    tl.store(out + 5, row.summed(row["twice"]).all())
    tl.store(out + 6, row.plus(n).all())
    tl.store(out + 7, row.plus(None).all())
    tl.store(out + 8 + tl.arange(0, 8), Row.of_eight(n).value)


def test_python_of_a_class_takes_tensors_and_calls_ops() -> None:
    n = int(np.random.default_rng(seed := np.random.SeedSequence().entropy).integers(-1000, 1000))
    print(f"seed {seed}")
    out, row = np.zeros(16, np.int32), np.arange(4) + n
    in_python[(1,)](out, n)
    total = row.sum()
    want = [*(3 * row), total + 42, 2 * total + 42, n + 4, total + 4, *(np.arange(8) + n)]
    assert out.tolist() == want


def test_another_thread_makes_objects_of_the_host_while_a_kernel_is_compiled() -> None:
    made = []

    @tl.core.extern
    def slow(value):
        thread = threading.Thread(target=lambda: made.append(Shape(3, 8)))
        thread.start()
        thread.join()
        return value

    @proton.jit
    def kernel(out):
        tl.store(out, slow(7))

    kernel[(1,)](out := np.zeros(1, np.int32))
    assert out[0] == 7
    assert [shape.ROWS.value for shape in made] == [4] * len(made)
    assert made


@proton.aggregate
class Shape:
    ROWS: tl.constexpr
    COLUMNS: tl.constexpr = 4

    def __init__(self, rows, columns=4):
        self.ROWS = tl.constexpr(rows + 1)
        self.COLUMNS = columns

    @proton.constexpr_function
    def size(self):
        return self.ROWS * self.COLUMNS


@proton.jit
def of_the_host(out, shape: tl.constexpr, n):
    for _ in range(n):
        shape = tl.aggregate_replace(shape, COLUMNS=shape.COLUMNS)
    tl.static_assert(shape == Shape(3, 8))
    tl.store(out + tl.arange(0, shape.ROWS), shape.size())


def test_constexpr_fields_of_an_object_of_the_host() -> None:
    shape = Shape(3, columns=8)
    assert isinstance(shape.ROWS, tl.constexpr)
    assert shape.ROWS.value == 4
    assert isinstance(shape.COLUMNS, tl.constexpr)
    assert shape.COLUMNS.value == 8
    assert repr(shape) == "Shape(ROWS=4, COLUMNS=8)"
    assert shape == Shape(3, 8)
    assert hash(shape) == hash(Shape(3, 8))
    assert shape != Shape(3)
    assert not isinstance(Base(1).x, tl.constexpr)
    out = np.zeros(4, np.int32)
    of_the_host[(1,)](out, shape, 3)
    assert out.tolist() == [32] * 4


class Extents(NamedTuple):
    rows: tl.constexpr
    columns: tl.constexpr


@proton.aggregate
class Squared:
    number: tl.constexpr
    square: tl.constexpr
    extents: tl.tuple

    def __init__(self, number, extents):
        self.number = tl.constexpr(number)
        self.square = tl.constexpr(self.times_itself())
        self.extents = extents

    @proton.constexpr_function
    def times_itself(self):
        return self.number * self.number


@proton.jit
def squares(out):
    made = Squared(4, (2, 3))
    tl.static_assert(made.square == 16)
    tl.static_assert(made.times_itself() == 16)
    tl.store(out, made.square + made.extents[1])


def test_constexpr_functions_are_methods_in_init_and_of_the_host() -> None:
    out = np.zeros(1, np.int32)
    squares[(1,)](out)
    assert out.tolist() == [19]
    made = Squared(3, Extents(5, tl.constexpr(7)))
    assert (made.square.value, made.times_itself().value) == (9, 9)
    assert isinstance(made.extents, Extents)
    assert [part.value for part in made.extents] == [5, 7]


def test_objects_of_the_host_are_replaced() -> None:
    made = Squared(3, (1, 2))
    other = tl.aggregate_replace(made, square=5)
    assert (made.square.value, other.square.value, other.number.value) == (9, 5, 3)
    with pytest.raises(TypeError, match="Squared has no field 'z'"):
        tl.aggregate_replace(made, z=1)
    with pytest.raises(TypeError, match="expects an aggregate instance, got 42"):
        tl.aggregate_replace(42, square=1)
