"""What the front end decides while compiling: branches, values, shapes, attributes."""

import re

import pytest

import proton.language as tl
from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.pipeline import ordered_passes, schedule_passes
from proton.backends.ttir import ttir_passes
from proton.base.targets import GPUTarget
from proton.dialect.context import mlir_context
from proton.frontend import Signature, build_module
from proton.language.function import DeviceFunction
from proton.passes import Pipeline
from tests.ir.building import OUT, SEEN, build, see, text_of
from tests.ir.scalar_interpreter import stored_values


@DeviceFunction
def static_if(out, MODE: tl.constexpr):
    if MODE == "one":
        tl.store(out, 1)
    elif MODE is None:
        tl.store(out, 2)
    else:
        tl.store(out, 3)


@pytest.mark.parametrize("mode, stored", [("one", 1), (None, 2), ("other", 3)])
def test_a_static_if_compiles_one_branch(mode: str | None, stored: int) -> None:
    with mlir_context():
        module = build(static_if, MODE=mode)
        assert "scf.if" not in str(module)
        assert stored_values(module, []) == [stored]


@DeviceFunction
def static_return(out, EMPTY: tl.constexpr):
    if EMPTY:
        return
    tl.store(out, 1)


def test_a_static_return_ends_the_function() -> None:
    assert "tt.store" not in text_of(static_return, EMPTY=True)
    assert "tt.store" in text_of(static_return, EMPTY=False)


@DeviceFunction
def invalid_in_the_dead_branch(out, SIZE: tl.constexpr):
    if SIZE > 4:
        tl.arange(0, 3)
    tl.store(out, 1 if SIZE > 4 else tl.cdiv(SIZE, 3))


def test_a_dead_branch_is_not_compiled() -> None:
    with mlir_context():
        assert stored_values(build(invalid_in_the_dead_branch, SIZE=4), []) == [2]


WIDTH = tl.constexpr(16)
PAIR = (tl.constexpr(2), tl.constexpr(3))


@tl.constexpr_function
def area(shape):
    return shape[0] * shape[1]


@DeviceFunction
def constexprs(out, N: tl.constexpr):
    half: tl.constexpr = N // 2
    see(half, WIDTH + N, PAIR, [i * i for i in range(N) if i % 2], area((N, half)))
    see(min(N, 3), max(1, N, 3), len(PAIR), abs(-N), float(N), int(2.9), bool(N))
    see(f"{N:03d}-{WIDTH}", N if N > 100 else -N, N > 3 and "yes", N < 3 or "no", not N, ~N, -N)
    see(N**2, 1 << N, N % 3, N / 8, N in (4, 5), None is None, isinstance(N, int), N.value)
    see(tl.next_power_of_2(N + 1), tl.float32.primitive_bitwidth, tl.int8 == tl.int8)


def test_constexprs_are_python_values() -> None:
    SEEN.clear()
    text = text_of(constexprs, N=4)
    assert [
        *(2, 20, (2, 3), (1, 9), 8),
        *(3, 4, 2, 4, 4.0, 2, True),
        *("004-16", -4, "yes", "no", False, -5, -4),
        *(16, 16, 1, 0.5, True, True, True, 4),
        *(8, 32, True),
    ] == SEEN
    assert "arith" not in text, "nothing is left to compute at run time"


SPLIT = tl.constexpr(((2,), (1, 2), (1, 1, 2), (4, 2)))


@DeviceFunction
def shapes(out):
    x = tl.zeros((4, 8), tl.float16)
    see(x.shape, x.dtype, x.numel, x.T.shape, x[None, :, :].shape, tl.arange(0, 4)[:, None].shape)
    see((x + tl.zeros((4, 1), tl.float32)).shape, x.reshape(2, 16).shape, len(x))
    see(tl.sum(x, axis=0).shape, tl.sum(x, axis=1, keep_dims=True).shape, tl.max(x).shape)
    see(tl.join(x, x).shape, x.trans().shape, x.to(tl.int8).dtype, tl.ravel(x).shape)
    for shape in tl.static_range(4):
        halves = tl.split(tl.zeros(SPLIT[shape], tl.int32))
        see(halves[0].shape, halves[1].shape, tl.join(halves[0], halves[1]).shape)


def test_shapes_and_dtypes_are_known_while_compiling() -> None:
    SEEN.clear()
    text_of(shapes)
    assert [
        *((4, 8), tl.float16, 32, (8, 4), (1, 4, 8), (4, 1)),
        *((4, 8), (2, 16), 4),
        *((8,), (4, 1), ()),
        *((4, 8, 2), (8, 4), tl.int8, (32,)),
        *((), (), (2,)),
        *((1,), (1,), (1, 2)),
        *((1, 1), (1, 1), (1, 1, 2)),
        *((4,), (4,), (4, 2)),
    ] == SEEN


@DeviceFunction
def carries_a_block(out, n):
    x = tl.arange(0, 4)
    for _i in range(n):
        x = x + 1
    tl.store(out + tl.arange(0, 4), x)


def test_a_block_is_carried_through_a_loop() -> None:
    text = text_of(carries_a_block)
    assert "scf.for" in text
    assert "-> (tensor<4xi32>)" in text


@DeviceFunction
def reduces_with_index(out, n):
    tl.store(out, tl.argmax(tl.arange(0, 4).to(tl.float32) + n, axis=0))


def test_a_reduction_carries_its_index() -> None:
    assert ") -> (f32, i32)" in text_of(reduces_with_index)


@DeviceFunction
def loop_hints(out, n):
    for i in tl.range(
        0, n, num_stages=3, flatten=True, disallow_acc_multi_buffer=True, warp_specialize=False,
        disable_licm=True,
    ):  # fmt: skip
        for j in tl.range(0, n, num_stages=0, loop_unroll_factor=4, warp_specialize=True):
            tl.store(out, i + j)


def test_hints_are_attributes_of_the_loop() -> None:
    """As the front end makes them and, but for the unrolled loop, as a back end gets them."""
    outer = "{tt.disable_licm, tt.disallow_acc_multi_buffer, tt.flatten, tt.num_stages = 3 : i32}"
    inner = "{tt.loop_unroll_factor = 4 : i32, tt.num_stages = 0 : i32, tt.warp_specialize}"
    unrolled = "{tt.num_stages = 0 : i32, tt.unrolled = 4 : i32, tt.warp_specialize}"
    rest = "{tt.num_stages = 1 : i32, tt.warp_specialize}"
    with mlir_context():
        module = build(loop_hints)
        assert _loop_attributes(str(module)) == [inner, outer]
        gpu = GPUOptions(GPUTarget("cuda", 90))
        passes = [*ttir_passes(None), *schedule_passes(gpu), *ordered_passes(gpu)]
        module = Pipeline(passes, "hints").run(module)
        assert _loop_attributes(str(module)) == [unrolled, rest, outer]


def _loop_attributes(text: str) -> list[str]:
    return re.findall(r"\} (\{tt\..*\})", text)


@DeviceFunction
def three_parameters(out, a, b):
    tl.store(out, a + b)


def test_parameters_carry_what_the_signature_says() -> None:
    signature = Signature({"out": OUT, "a": tl.int32, "b": tl.int32}, divisible=frozenset({"out"}))
    with mlir_context():
        text = str(build_module(three_parameters, signature))
    assert '%arg0: !tt.ptr<i32> {tt.divisibility = 16 : i32, tt.element = "i32"' in text
    assert '%arg1: i32 {tt.name = "a"}' in text
