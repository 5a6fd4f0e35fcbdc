"""The code that moves tensors through shared memory, run thread by thread."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.base.targets import GPUTarget
from proton.conversion.allocate_shared_memory import AllocateSharedMemory
from proton.conversion.ttg_to_llvm import TTGToLLVM
from proton.dialect.attributes import SHARED_BYTES as SHARED
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.walk import functions
from proton.layout import LinearLayout
from proton.layout.conversion import in_parts
from proton.layout.linear import log2
from proton.layout.matrix_memory import matrix_layout, transposing_layout
from proton.layout.named import (
    blocked,
    shared_nvmma,
    shared_row_major,
    spread,
    wgmma_accumulator,
)
from proton.layout.tensor_cores import WarpTiling, warp_group_tiling
from proton.passes import Pipeline
from tests.draws import examples
from tests.ir.thread_interpreter import ThreadInterpreter
from tests.pure.layout_strategies import distributed, flat, shapes_of_rank

BITS = {"i8": 8, "f8E5M2": 8, "f16": 16, "bf16": 16, "f32": 32, "i64": 64}
SHARED_BYTES = 1 << 17
LEAST = 16  # bytes: what is allocated is a multiple of it


def encoding(layout: LinearLayout) -> str:
    names = ("register", "lane", "warp", "block")
    return f"#ttg.linear<{', '.join(str([list(b) for b in layout.bases(n)]) for n in names)}>"


def converted(source: LinearLayout, target: LinearLayout, element: str) -> str:
    return (
        f'%y = "ttg.convert_layout"(%x) : ({tensor(source, element)}) -> {tensor(target, element)}'
    )


def through(source: LinearLayout, shared: LinearLayout, target: LinearLayout, element: str) -> str:
    """By `ttg.local_alloc` and `ttg.local_load`."""
    sizes = [size for _, size in source.outs]
    bases = [list(basis) for basis in shared.bases("offset")]
    memory = f"!ttg.memdesc<{sizes}, {element}, #ttg.shared<{bases}>>"
    return f"""
        %m = "ttg.local_alloc"(%x) : ({tensor(source, element)}) -> {memory}
        "ttg.barrier"() : () -> ()
        %y = "ttg.local_load"(%m) : ({memory}) -> {tensor(target, element)}"""


def tensor(layout: LinearLayout, element: str) -> str:
    sizes = "x".join(str(size) for _, size in layout.outs)
    return f"tensor<{sizes}x{element}, {encoding(layout)}>"


def function(source: LinearLayout, target: LinearLayout, element: str, body: str) -> str:
    """A module with a function whose body makes %y of %x."""
    return f"""module attributes {{"ttg.num-warps" = {source.in_size("warp")} : i32}} {{
        func.func @f(%x: {tensor(source, element)}) -> {tensor(target, element)}
            attributes {{tt.kernel}} {{
          {body}
          return %y : {tensor(target, element)}
        }} }}"""


def shared_bytes(source: LinearLayout, target: LinearLayout, element: str, limit: int) -> int:
    """What a conversion takes, where there is so much."""
    text = function(source, target, element, converted(source, target, element))
    with mlir_context():
        module = Pipeline([AllocateSharedMemory(limit=limit)]).run(ir.Module.parse(text))
        return int(functions(module)[0].attributes[SHARED].value)


def check(
    source: LinearLayout,
    target: LinearLayout,
    element: str,
    body: str,
    arch: int | str,
    limit: int = 0,
) -> Any:
    """Runs the body, which makes %y of %x, and compares every register; the accesses by name."""
    return ran(source, target, element, body, arch, limit).accesses


def ran(
    source: LinearLayout,
    target: LinearLayout,
    element: str,
    body: str,
    arch: int | str,
    limit: int = 0,
) -> ThreadInterpreter:
    """The same; what ran it."""
    warps, text = source.in_size("warp"), function(source, target, element, body)
    rng = np.random.default_rng(flat(target).size)
    bits = min(BITS[element], 62)
    chip = GPUTarget("cuda" if isinstance(arch, int) else "hip", arch)
    elements = rng.integers(0, 1 << bits, 1 << source.total_out_bits)
    with mlir_context():
        passes = [AllocateSharedMemory(limit=limit), TTGToLLVM(chip)]
        module = Pipeline(passes).run(ir.Module.parse(text))
        program = ThreadInterpreter(warps, SHARED_BYTES, chip.warp_size)
        got = program.run(functions(module)[0], [elements[by_thread(source)]])
    np.testing.assert_array_equal(got, elements[by_thread(target)])
    return program


def by_thread(layout: LinearLayout) -> np.ndarray:
    """The number of the element in each register, (threads, registers)."""
    numbers = flat(layout)
    return numbers.reshape(numbers.shape[0], -1, order="F").T


@st.composite
def pairs(draw: st.DrawFn, lanes: int = 32) -> tuple[LinearLayout, LinearLayout]:
    shape = draw(shapes_of_rank(draw(st.integers(1, 3))))
    warps = draw(st.sampled_from([1, 2, 4]))
    return draw(distributed(shape, warps, lanes)), draw(distributed(shape, warps, lanes))


@examples(60)
@given(pairs(), st.sampled_from(sorted(BITS)), st.sampled_from([80, 90]))
def test_any_conversion(pair: tuple[LinearLayout, LinearLayout], element: str, arch: int) -> None:
    source, target = pair
    check(source, target, element, converted(source, target, element), arch)


@examples(40)
@given(pairs(lanes=64), st.sampled_from(sorted(BITS)))
def test_any_conversion_of_waves_of_64_lanes(
    pair: tuple[LinearLayout, LinearLayout], element: str
) -> None:
    source, target = pair
    check(source, target, element, converted(source, target, element), "gfx942")


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("shape, warps", [((64, 64), 4), ((128, 256), 8), ((64, 16), 4)])
def test_rows_of_results_of_tensor_cores(shape: tuple[int, int], warps: int, arch: int) -> None:
    source = wgmma_accumulator(shape, shape[1], (warps, 1))
    target = spread(shape, (1, 8), (1, 0), warps)
    found = check(source, target, "f16", converted(source, target, "f16"), arch)
    accesses = shape[0] * shape[1] // (32 * warps) // 8
    assert found["llvm.load"] == accesses
    four = "stmatrix.sync.aligned.m8n8.x4.shared.b16"
    assert found.get(four, 0) == (accesses if arch == 90 else 0)
    assert ("llvm.store" in found) == (arch == 80)


@pytest.mark.parametrize("arch", [80, 90])
def test_columns_of_results_of_tensor_cores(arch: int) -> None:
    """A store to a transposed matrix: by transposed matrices, from 16-bit elements on."""
    source = wgmma_accumulator((64, 64), 64, (4, 1))
    target = blocked((64, 64), (8, 1), (8, 4), (1, 4), (0, 1))
    for element in ("bf16", "f32"):
        found = check(source, target, element, converted(source, target, element), arch)
        has_matrices = "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in found
        assert has_matrices == (element == "bf16" and arch == 90)


@pytest.mark.parametrize("element", ["f8E5M2", "i8"])
@pytest.mark.parametrize("n, warps", [(64, 8), (256, 4), (32, 4)])
def test_results_as_bytes_become_left_operands_within_the_warp(
    n: int, warps: int, element: str
) -> None:
    """The weights of attention: no shared memory, no barrier, and a shuffle for each word."""
    tiling = warp_group_tiling((128, n), warps)
    assert tiling is not None
    source, target = tiling.accumulator, tiling.operand_a(n, 8)
    found = ran(source, target, element, converted(source, target, element), 90)
    assert not found.accesses
    assert found.shuffles == target.in_size("register") // 4


@examples(20)
@given(st.sampled_from([1, 2, 8]), st.permutations(range(5)), st.permutations(range(5)))
def test_halves_of_words_of_bytes(words: int, sources: list[int], targets: list[int]) -> None:
    """The halves of a word lie in two lanes, in one of two registers, by the number of the lane
    that takes them. A shuffle moves halves of two words; a word that is alone takes two."""
    whole, low, half, choice = log2(words), 1, 2, 4
    more = [8 << n for n in range(whole)]
    others = [8 << whole + n for n in range(4)]
    layouts = []
    for register, lane, order in ((choice, half, sources), (half, choice, targets)):
        lanes = [lane, *others]
        bases = {"register": [low, register, *more], "lane": [lanes[n] for n in order]}
        ins = {name: [(bit,) for bit in bits] for name, bits in bases.items()}
        layouts.append(LinearLayout.of(ins | {"warp": [], "block": []}, {"dim0": 128 * words}))
    source, target = layouts
    found = ran(source, target, "i8", converted(source, target, "i8"), 90)
    assert not found.accesses
    assert found.shuffles == max(words, 2)


@pytest.mark.parametrize("shape", [(64, 128), (128, 64), (64, 32)])
def test_bytes_are_transposed_on_the_way_between_memories(shape: tuple[int, int]) -> None:
    """What a copy brought, by rows, to where rows run along the other dimension."""
    source, target = (spread(shape, run, order, 4) for run, order in
                      (((1, 16), (1, 0)), ((16, 1), (0, 1))))  # fmt: skip
    between = transposing_layout(shape, 1, 1, 4)
    first, second = (matrix_layout(shape, 1, order) for order in ((1, 0), (0, 1)))
    assert first is not None
    assert second is not None
    body = f"""
        {through(source, first, between, "i8").replace("%y", "%z").replace("%m", "%n")}
        {through(between, second, target, "i8").replace("%x", "%z")}"""
    found = check(source, target, "i8", body, 90)
    words = shape[0] * shape[1] // (32 * 4 * 4)
    assert found["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] == words // 4
    wide = shape[0] * shape[1] // (32 * 4 * 16)  # the rows that go in
    assert found["llvm.store"] == words + wide


@pytest.mark.parametrize("element", ["f8E5M2", "f16", "f32"])
@pytest.mark.parametrize("warps", [(1, 1), (2, 2)])
def test_operands_from_shared_memory(element: str, warps: tuple[int, int]) -> None:
    """Along k: by matrices; across: of 16-bit elements by transposed ones, else one by one."""
    bits = BITS[element]
    tiling, k = WarpTiling((64, 64), warps), 512 // bits
    operands = [
        (tiling.operand_a(k, bits), (64, k), 1),
        (tiling.operand_b(k, bits), (k, 64), 0),
    ]
    for (target, shape, along_k), order in itertools.product(operands, ((0, 1), (1, 0))):
        if order[0] == along_k:
            expected = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
        elif bits == 16:
            expected = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
        else:
            expected = "llvm.load"
        run = tuple(128 // bits if axis == order[0] else 1 for axis in (0, 1))
        source = spread(shape, run, order, warps[0] * warps[1])
        swizzle = min(128, shape[order[0]] * bits // 8)
        swizzled = shared_nvmma(shape, bits // 8, swizzle, order)
        for shared in (swizzled, shared_row_major(shape, order)):
            found = check(source, target, element, through(source, shared, target, element), 80)
            assert {name for name in found if name != "llvm.store"} == {expected}


@examples(60)
@given(pairs(), st.sampled_from(sorted(BITS)), st.sampled_from([80, 90]), st.data())
def test_conversions_in_parts(
    pair: tuple[LinearLayout, LinearLayout], element: str, arch: int, data: st.DataObject
) -> None:
    source, target = pair
    whole = shared_bytes(source, target, element, 0)
    limit = data.draw(st.integers(1, max(1, whole)))
    size = shared_bytes(source, target, element, limit)
    most = max(count for count in (1, 2, 4, 8, 16) if in_parts(source, target, count) is not None)
    assert size <= max(limit, whole // most, LEAST) <= max(whole, LEAST)
    check(source, target, element, converted(source, target, element), arch, limit)


def test_the_parts_of_a_transposition() -> None:
    """Of 256 x 256 words half of them fit on 9.0, and a quarter on 8.6."""
    source = spread((256, 256), (1, 4), (1, 0), 4)
    target = spread((256, 256), (4, 1), (0, 1), 4)
    assert shared_bytes(source, target, "f32", 0) == 256 * 1024
    assert shared_bytes(source, target, "f32", 227 * 1024) == 128 * 1024
    assert shared_bytes(source, target, "f32", 99 * 1024) == 64 * 1024
    check(source, target, "f32", converted(source, target, "f32"), 90, 99 * 1024)
