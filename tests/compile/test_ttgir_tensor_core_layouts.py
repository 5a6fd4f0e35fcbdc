"""Layouts of tensor cores in IR as Triton prints it, in two and three dimensions: what goes through
them, and through swizzled memory, comes out as it was, on the machine of PTX."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
from tests.compile.ptx.emulation import Emulation
from tests.pairs import covering

WARPS = 4
BLOCKED = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"  # noqa: E501
DEEP = "#ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 8, 4], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>"  # noqa: E501


def mma(version: int, warps: list[int], instruction: list[int]) -> str:
    return (
        f"#ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, warpsPerCTA = {warps}, "
        f"instrShape = {instruction}}}>"
    )


def operand(parent: str, side: int, width: int) -> str:
    return f"#ttg.dot_op<{{opIdx = {side}, parent = {parent}, kWidth = {width}}}>"


def sliced(parent: str, axis: int) -> str:
    return f"#ttg.slice<{{dim = {axis}, parent = {parent}}}>"


AMPERE, AMPERE_DEEP = mma(2, [2, 2], [16, 8]), mma(2, [4, 1, 1], [1, 16, 8])
HOPPER_DEEP = mma(3, [4, 1, 1], [16, 32, 16])
MATRICES = {
    "ampere": AMPERE,
    "sliced batch": sliced(AMPERE_DEEP, 0),
    "sliced rows": sliced(mma(2, [2, 1, 2], [1, 16, 8]), 1),
    "sliced left operand": sliced(operand(AMPERE_DEEP, 0, 2), 2),
    "sliced right operand": sliced(operand(AMPERE_DEEP, 1, 2), 1),
    "sliced operand of hopper": sliced(operand(HOPPER_DEEP, 0, 2), 1),
    "hopper along columns": mma(3, [1, 4], [16, 32, 16]),
}
DEPTHS = {
    "results": AMPERE_DEEP,
    "left": operand(mma(2, [2, 1, 2], [1, 16, 8]), 0, 2),
    "right": operand(AMPERE_DEEP, 1, 4),
    "hopper": HOPPER_DEEP,
    "hopper's left": operand(HOPPER_DEEP, 0, 2),
}


def number(shape: tuple[int, ...], axis: int, layout: str, name: str) -> list[str]:
    """The lines for `%name`: how far an element lies behind the first, along one axis."""
    rank, kept = len(shape), list(range(len(shape)))
    parents = []
    for other in reversed([a for a in kept if a != axis]):
        parents.append((other, layout))
        layout = sliced(layout, other)
    type_ = f"tensor<{shape[axis]}xi32, {layout}>"
    lines = [f"%{name}0 = tt.make_range {{end = {shape[axis]} : i32, start = 0 : i32}} : {type_}"]
    sizes = [shape[axis]]
    for step, (other, parent) in enumerate(reversed(parents)):
        place = other if other < len(sizes) + 1 else len(sizes)
        sizes.insert(place, 1)
        wider = f"tensor<{'x'.join(map(str, sizes))}xi32, {parent}>"
        lines.append(
            f"%{name}{step + 1} = tt.expand_dims %{name}{step} {{axis = {place} : i32}} "
            f": {type_} -> {wider}"
        )
        type_ = wider
    stride = int(np.prod(shape[axis + 1 :]))
    whole = f"tensor<{'x'.join(map(str, shape))}xi32, {parents[0][1]}>"
    last = f"%{name}{rank - 1}"
    return [
        *lines,
        f"%{name}s = arith.constant dense<{stride}> : {type_}",
        f"%{name}m = arith.muli {last}, %{name}s : {type_}",
        f"%{name} = tt.broadcast %{name}m : {type_} -> {whole}",
    ]


def copy(shape: tuple[int, ...], source: str, target: str, moved: list[str]) -> str:
    """Loads a block in one layout and stores it in another; `moved` makes `%y` of `%x`."""
    sizes = "x".join(map(str, shape))
    lines = []
    for side, layout in (("a", source), ("b", target)):
        ints, pointers = (f"tensor<{sizes}x{t}, {layout}>" for t in ("i32", "!tt.ptr<f16>"))
        names = [f"{side}{chr(105 + axis)}" for axis, _ in enumerate(shape)]
        for axis, name in enumerate(names):
            lines += number(shape, axis, layout, name)
        total = names[0]
        for name in names[1:]:
            lines.append(f"%{side}_{name} = arith.addi %{total}, %{name} : {ints}")
            total = f"{side}_{name}"
        lines.append(f"%{side}p = tt.splat %{side} : !tt.ptr<f16> -> {pointers}")
        lines.append(f"%{side}q = tt.addptr %{side}p, %{total} : {pointers}, {ints}")
        if side == "a":
            lines.append(f"%x = tt.load %aq : {pointers}")
            lines += moved
        else:
            lines.append(f"tt.store %bq, %y : {pointers}")
    body = "\n    ".join(lines)
    return f"""
module attributes {{"ttg.num-warps" = {WARPS} : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @kernel(%a: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %b: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}) {{
    {body}
    tt.return
  }}
}}
"""  # noqa: E501


@proton.jit
def stand_in(a, b):
    """What the text is compiled in the place of."""


def check(rng: np.random.Generator, folder: Path, shape: tuple[int, ...], text: str) -> None:
    path = folder / "kernel.ttgir"
    path.write_text(text)
    x: Any = rng.standard_normal(shape).astype(np.float16)
    y = np.zeros_like(x)
    with Emulation(WARPS, rng).installed():
        stand_in[(1,)](x, y, ir_override=str(path), num_warps=WARPS)
    assert (x == y).all()


def converted(shape: tuple[int, ...], source: str, target: str) -> list[str]:
    sizes = "x".join(map(str, shape))
    return [
        f"%y = ttg.convert_layout %x : tensor<{sizes}xf16, {source}> -> "
        f"tensor<{sizes}xf16, {target}>"
    ]


SHAPES = {"name": MATRICES, "shape": [(32, 64), (64, 1), (1, 64)]}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("name, shape", covering(SHAPES), ids=str)
def test_matrices(rng: np.random.Generator, tmp_path: Path, name: str, shape: Any) -> None:
    layout = MATRICES[name]
    for source, target in ((BLOCKED, layout), (layout, BLOCKED)):
        text = copy(shape, source, target, converted(shape, source, target))
        folder = tmp_path / str(source == layout)
        folder.mkdir()
        check(rng, folder, shape, text)


ORDERS = {"name": DEPTHS, "order": [(2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1)]}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("name, order", covering(ORDERS), ids=str)
def test_several_matrices_by_way_of_swizzled_memory(
    rng: np.random.Generator, tmp_path: Path, name: str, order: Any
) -> None:
    shape = (4, 16, 32)
    layout, sizes = DEPTHS[name], "4x16x32"
    memory = (
        f"!ttg.memdesc<{sizes}xf16, #ttg.swizzled_shared<{{vec = 4, perPhase = 2, maxPhase = 4, "
        f"order = {list(order)}}}>, #ttg.shared_memory>"
    )
    moved = [
        f"%m = ttg.local_alloc %x : (tensor<{sizes}xf16, {DEEP}>) -> {memory}",
        f"%y = ttg.local_load %m : {memory} -> tensor<{sizes}xf16, {layout}>",
    ]
    check(rng, tmp_path, shape, copy(shape, DEEP, layout, moved))


PRODUCT = """
#results = {results}
#left = #ttg.dot_op<{{opIdx = 0, parent = #results{width}}}>
#right = #ttg.dot_op<{{opIdx = 1, parent = #results{width}}}>
"""


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("results", [AMPERE_DEEP, DEEP], ids=["tensor cores", "multiply-adds"])
def test_a_product_of_several_pairs_of_matrices(
    rng: np.random.Generator, tmp_path: Path, results: str
) -> None:
    """Squares of matrices: they are as many products of one pair."""
    shape = (4, 16, 16)
    width = ", kWidth = 2" if results == AMPERE_DEEP else ""
    tensor = "tensor<4x16x16x{}, {}>".format
    wide, left, right = tensor("f32", "#results"), tensor("f16", "#left"), tensor("f16", "#right")
    moved = [
        f"%l = ttg.convert_layout %x : {tensor('f16', DEEP)} -> {left}",
        f"%r = ttg.convert_layout %x : {tensor('f16', DEEP)} -> {right}",
        f"%c = arith.constant dense<1.0> : {wide}",
        f"%d = tt.dot %l, %r, %c : {left} * {right} -> {wide}",
        f"%y = arith.truncf %d : {wide} to {tensor('f16', '#results')}",
    ]
    path = tmp_path / "kernel.ttgir"
    path.write_text(
        PRODUCT.format(results=results, width=width) + copy(shape, DEEP, results, moved)
    )
    x: Any = rng.standard_normal(shape).astype(np.float16)
    y = np.zeros_like(x)
    with Emulation(WARPS, rng).installed():
        stand_in[(1,)](x, y, ir_override=str(path), num_warps=WARPS)
    wide_x = x.astype(np.float64)
    np.testing.assert_allclose(y, wide_x @ wide_x + 1, rtol=2e-3, atol=2e-3)
