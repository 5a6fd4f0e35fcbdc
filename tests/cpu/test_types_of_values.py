"""What kernels and programs ask of types: `.type` of every kind of value, names of dtypes, bases of
values and types, `mangle_type`; and what they pass to launches and tuners besides."""

import enum
import types as types_
from typing import Any, NamedTuple

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import BadArguments
from proton.runtime.launch.jit import mangle_type, specialize_impl
from proton.tools.tensor_descriptor import TensorDescriptor

BLOCK = TensorDescriptor(np.zeros((8, 4), np.float32), (8, 4), (4, 1), (2, 4))


class Pair(NamedTuple):
    first: Any
    second: Any


@proton.jit
def types(x_ptr, n, pair, SIZE: tl.constexpr, MODE: tl.constexpr):
    number = 5
    local: tl.constexpr = 4
    mixed = (number, n, (2.5, x_ptr))
    tl.static_print(number.type, SIZE.type, local.type, MODE.type, n.type, mixed.type, pair.type)
    tl.static_print(pair.first.type, x_ptr.type, tl.arange(0, 4).type, tl.load(x_ptr).type)
    tl.static_print(f"{n.dtype} {x_ptr.dtype} {tl.arange(0, 4).type}")
    tl.static_assert(SIZE.type == tl.constexpr_type(8))
    tl.static_assert(SIZE.type != tl.constexpr_type(9))
    tl.static_assert(mixed.type == tl.tuple_type([tl.int32, tl.int32, mixed[2].type]))
    tl.static_assert(isinstance(n, tl.core.base_value) and isinstance(SIZE, tl.core.base_value))
    tl.static_assert(isinstance(mixed, tl.core.base_value) and isinstance(n, tl.tensor))
    tl.static_assert(isinstance(n.type, tl.core.base_type))
    tl.static_assert(isinstance(mixed.type, tl.core.base_type))
    tl.store(x_ptr, SIZE)


@pytest.mark.interpreted
def test_each_value_has_a_type(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(4, np.float32)
    types[(1,)](x, 7, Pair(3, 2.0), 8, "s")
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "int32 constexpr_type[8] constexpr_type[4] constexpr_type['s'] int32 "
        "[int32,int32,[fp32,pointer<fp32>]] [first:int32,second:fp32]",
        "int32 pointer<fp32> <[4], int32> fp32",
        "int32 pointer<fp32> <[4], int32>",
    ]
    assert x[0] == 8


@pytest.mark.parametrize(
    "dtype, name, short",
    [
        (tl.int1, "int1", "i1"),
        (tl.uint8, "uint8", "u8"),
        (tl.int32, "int32", "i32"),
        (tl.uint64, "uint64", "u64"),
        (tl.float16, "fp16", "fp16"),
        (tl.bfloat16, "bf16", "bf16"),
        (tl.float32, "fp32", "fp32"),
        (tl.float8e4nv, "fp8e4nv", "fp8e4nv"),
        (tl.pointer_type(tl.int64), "pointer<int64>", "*i64"),
        (tl.block_type(tl.int32, (4, 8)), "<[4, 8], int32>", "i32[4, 8]"),
        (tl.block_type(tl.pointer_type(tl.float32), (2,)), "<[2], pointer<fp32>>", "*fp32[2]"),
    ],
)
def test_names_of_types(dtype: tl.dtype, name: str, short: str) -> None:
    """`str` is Triton's name, `repr` and messages have the short one."""
    assert str(dtype) == name
    assert repr(dtype) == f"{dtype}" == dtype.mangle() == short
    assert f"{dtype!s:>30}" == f"{dtype:>30}" == name.rjust(30)


def test_bases_of_values_and_types() -> None:
    kinds = (tl.tensor, tl.constexpr, tl.tuple, tl.tensor_descriptor)
    assert all(issubclass(kind, tl.core.base_value) for kind in kinds)
    kinds = (tl.dtype, tl.pointer_type, tl.block_type, tl.tuple_type, tl.constexpr_type)
    assert all(issubclass(kind, tl.core.base_type) for kind in kinds)
    assert not issubclass(tl.dtype, tl.core.base_value)
    assert not issubclass(tl.tensor, tl.core.base_type)


@pytest.mark.parametrize(
    "value, plain, specialized",
    [
        (2, "i32", "i32"),
        (1, "i32", "constexpr"),
        (-(2**40), "i64", "i64"),
        (2**63, "u64", "u64"),
        (1.0, "fp32", "fp32"),
        (True, "u1", "u1"),
        (None, "constexpr", "constexpr"),
        (np.zeros(3, np.float16), "*fp16", "*fp16"),
        (np.zeros(3, np.uint8), "*u8", "*u8"),
        (BLOCK, *["tensordesc<fp32[2, 4]>"] * 2),
        ((1, 2.0, (None, 7)), *[("constexpr", "fp32", ("constexpr", "i32"))] * 2),
        (Pair(1, 2), *[Pair("constexpr", "i32")] * 2),
    ],
)
def test_mangle_type(value: Any, plain: Any, specialized: Any) -> None:
    assert mangle_type(value) == plain
    assert mangle_type(value, specialize=True) == specialized
    assert type(mangle_type(value)) is type(plain)


def test_code_depends_on_nothing_else_of_a_descriptor() -> None:
    found = specialize_impl(BLOCK, lambda *_, **__: "D")
    assert found == ("tensordesc<fp32[2, 4]>", None)


@pytest.mark.parametrize("value", ["text", [1, 2], tl.float32, object(), 1j])
def test_mangle_type_of_what_no_kernel_takes(value: Any) -> None:
    with pytest.raises(TypeError, match="must be an array, a number, a bool or None"):
        mangle_type(value)


@proton.jit
def scale(x_ptr, n, SIZE: tl.constexpr = 4, *, FACTOR: tl.constexpr = 2):
    at = tl.arange(0, SIZE)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * FACTOR, mask=at < n)


def test_positions_of_constexprs() -> None:
    assert scale.constexprs == [2, 3]
    assert types.constexprs == [3, 4]


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "args, kwargs, kind",
    [
        ((), {}, TypeError),
        ((4, 4, 4), {}, TypeError),
        ((3,), {"n": 3}, TypeError),
        (("text",), {}, TypeError),
        (([1],), {}, TypeError),
        ((3, [4]), {}, TypeError),
        ((3,), {"nothing": 3}, KeyError),
    ],
)
def test_launches_that_do_not_fit_are_errors_of_python_too(
    args: tuple[Any, ...], kwargs: dict[str, Any], kind: type[Exception]
) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(proton.LaunchError) as caught:
        scale[(1,)](x, *args, **kwargs)
    assert isinstance(caught.value, kind)
    assert isinstance(caught.value, BadArguments) == (kind is TypeError)
    assert "scale" in str(caught.value) or "argument" in str(caught.value) or args == (3, [4])
    assert not str(caught.value).startswith('"')  # as a KeyError's own text would


class Mode(enum.Enum):
    DOUBLE = 2
    TRIPLE = 3


LIBRARY = types_.ModuleType("library")
LIBRARY.mode, LIBRARY.kind = Mode.TRIPLE, np.dtype("float32")  # type: ignore[attr-defined]


@proton.jit
def asks_a_module(x_ptr, MODE: tl.constexpr, KIND: tl.constexpr):
    if LIBRARY.mode == MODE and LIBRARY.kind == KIND:
        tl.store(x_ptr, MODE.value)


@pytest.mark.interpreted
def test_enumerators_and_dtypes_of_a_module() -> None:
    """As torch.float32 is one of torch."""
    x = np.zeros(1, np.float32)
    asks_a_module[(1,)](x, Mode.DOUBLE, np.dtype("float32"))
    asks_a_module[(1,)](x, Mode.TRIPLE, np.dtype("float64"))
    assert x[0] == 0
    asks_a_module[(1,)](x, Mode.TRIPLE, np.dtype("float32"))
    assert x[0] == 3


@proton.constexpr_function
def logarithm(n: int, *, base: int = 2) -> int:
    assert type(n) is int
    assert type(base) is int
    return int(np.emath.logn(base, n))


def test_a_constexpr_function_gets_plain_values_on_the_host() -> None:
    assert logarithm(tl.constexpr(8)) == logarithm(64, base=tl.constexpr(4)) == 3
    assert proton.cdiv(tl.constexpr(7), 2) == 4
    assert type(proton.cdiv(tl.constexpr(7), tl.constexpr(2))) is int
    assert proton.next_power_of_2(tl.constexpr(17)) == 32


class Counting:
    """What libraries put around a kernel: an object of any class, with `run`."""

    def __init__(self, fn: Any) -> None:
        self.fn, self.arg_names, self.count = fn, fn.arg_names, 0

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self.fn.run(*args, **kwargs)


class Indexed(Counting):
    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)


@pytest.mark.parametrize("kind", [Counting, Indexed])
@pytest.mark.parametrize("sizes", [(4,), (4, 8, 2)])
def test_tuners_and_heuristics_around_objects_of_any_class(
    kind: type[Counting], sizes: tuple[int, ...]
) -> None:
    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        return [1.0] * 3

    around = kind(scale)
    configs = [proton.Config({"SIZE": size}) for size in sizes]
    tuned = proton.autotune(configs, ["n"], do_bench=bench)(around)
    kernel = proton.heuristics({"FACTOR": lambda args: 3})(tuned)
    x = np.ones(8, np.float32)
    kernel[(1,)](x, 1)
    assert x[0] == 3.0 ** (1 + len(sizes) * (len(sizes) > 1))
    assert around.count == 1 + len(sizes) * (len(sizes) > 1)
    compiled = kernel.warmup(x, 1)
    assert len(compiled) == len(sizes)
    assert (tuned.fn, tuned.base_fn, tuned.kernel) == (around, scale.fn, scale)


@pytest.mark.parametrize("what", [None, 3, lambda x_ptr: None, Counting.run])
def test_what_is_no_kernel_is_not_tuned(what: Any) -> None:
    for decorate in (proton.autotune([proton.Config({})], []), proton.heuristics({})):
        with pytest.raises(
            TypeError, match=r"decorates a kernel, got .*: put it above @proton.jit"
        ):
            decorate(what)
        with pytest.raises(AttributeError):  # as Triton has it
            decorate(what)


def test_an_object_that_is_around_itself_is_no_kernel() -> None:
    around = Counting(scale)
    around.fn = around
    with pytest.raises(TypeError, match="decorates a kernel"):
        proton.heuristics({})(around)


@proton.jit
def bits_of(x_ptr, out_ptr):
    i = tl.arange(0, 16)
    x = tl.load(x_ptr + i)
    integers = tl.core.get_int_dtype(bitwidth=x.dtype.primitive_bitwidth, signed=True)
    integers = tl.core._unwrap_if_constexpr(integers)
    tl.store(out_ptr + i, x.to(integers, bitcast=True))


@pytest.mark.interpreted
def test_a_kernel_asks_for_integers_of_a_width(rng: np.random.Generator) -> None:
    x, out = rng.normal(size=16).astype(np.float32), np.zeros(16, np.int32)
    bits_of[(1,)](x, out)
    assert (out == x.view(np.int32)).all()


@proton.jit
def types_in_a_call(pair, given, number):
    tl.static_print("call", pair.type, pair[0].type, given.type, number.type)


@proton.jit
def constants_have_types(x_ptr, pair, n, SIZE: tl.constexpr, SIZES: tl.constexpr):
    number = SIZE
    both = (1, SIZE, number, n)
    named = Pair(1, n)
    tl.static_print("a", (10).type, (SIZE + 1).type, (1 + 2).type, (-1).type, (1.5).type)
    tl.static_print("b", number.type, (number + 1).type, both.type, both[0].type, named.type)
    tl.static_print("c", SIZES.type, SIZES[0].type, tl.arange(0, 4).shape.type, named.first.type)
    tl.static_print("d", pair.type, pair[0].type, pair[1].type)
    copy = pair
    tl.static_print("e", copy.type)
    types_in_a_call((1, n), 3, number)
    for i in tl.static_range(1):
        tl.static_print("f", i.type)
    tl.static_assert(pair[1].type == tl.constexpr_type(3))
    tl.store(x_ptr, tl.load(pair[0]) + pair[1])


@pytest.mark.interpreted
def test_a_number_is_a_constexpr_until_a_variable_holds_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What Triton 3.9 prints for the same kernel; in arguments that are tuples, too."""
    x, out = np.array([8], np.int32), np.zeros(1, np.int32)
    constants_have_types[(1,)](out, (x, tl.constexpr(3)), 5, 10, (1, 2))
    assert out[0] == 11
    assert capfd.readouterr().out.splitlines() == [
        "a constexpr_type[10] constexpr_type[11] constexpr_type[3] constexpr_type[-1] "
        "constexpr_type[1.5]",
        "b int32 int32 [int32,int32,int32,int32] int32 [first:int32,second:int32]",
        "c [constexpr_type[1],constexpr_type[2]] constexpr_type[1] [constexpr_type[4]] int32",
        "d [pointer<int32>,constexpr_type[3]] pointer<int32> constexpr_type[3]",
        "e [pointer<int32>,int32]",
        "call [constexpr_type[1],int32] constexpr_type[1] constexpr_type[3] int32",
        "f constexpr_type[0]",
    ]


@proton.jit
def called_constexpr(x_ptr, n, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    shifted = tl.constexpr(at[:, None] // 4 - n)
    known = tl.constexpr(SIZE)
    block = x_ptr + at[:, None] * known + at
    times = tl.constexpr(n)
    for _ in range(times):
        x = tl.load(block)
        tl.store(block, tl.where(shifted >= at[None, :] - 5, x + times, x))


@pytest.mark.interpreted
def test_a_call_of_constexpr_leaves_a_tensor_a_tensor(rng: np.random.Generator) -> None:
    """As an annotation does."""
    for size, n in ((4, 3), (16, 5), (32, 1)):
        before = rng.integers(-100, 100, (size, size)).astype(np.int32)
        x, at = before.copy(), np.arange(size)
        called_constexpr[(1,)](x, n, SIZE=size)
        added = at[:, None] // 4 - n >= at - 5
        np.testing.assert_array_equal(x, before + n * n * added)
