"""Reductions and scans, run thread by thread, on warps of 32 lanes and waves of 64."""

import itertools

import numpy as np

from proton.base.targets import GPUTarget
from proton.conversion.allocate_shared_memory import AllocateSharedMemory
from proton.conversion.ttg_to_llvm import TTGToLLVM
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.walk import functions
from proton.layout import LinearLayout, shapes
from proton.layout.named import spread
from proton.passes import Pipeline
from proton.transforms.layout.membar import Membar
from tests.ir.test_shared_exchanges import SHARED_BYTES, by_thread, function, tensor
from tests.ir.thread_interpreter import ThreadInterpreter
from tests.tables import check_rows

TARGETS = (GPUTarget("cuda", 90), GPUTarget("hip", "gfx942"))
WARPS = 4
CASES = (((8, 128), 0), ((8, 128), 1), ((64, 16), 0), ((4096,), 0))
SEGMENTS = "array<i32: 1, 0, 0, 0, 0, 0, 0, 0>"


def summed(kind: str, axis: int, source: LinearLayout, target: LinearLayout, more: str = "") -> str:
    """A module with a function that reduces, or scans, by addition."""
    body = f"""
        %y = "tt.{kind}"(%x) ({{
        ^bb0(%a: i32, %b: i32):
          %s = arith.addi %a, %b : i32
          "tt.{kind}_return"(%s) {{operandSegmentSizes = {SEGMENTS}}} : (i32) -> ()
        }}) {{axis = {axis} : i32{more}, operandSegmentSizes = {SEGMENTS},
              resultSegmentSizes = {SEGMENTS}}}
          : ({tensor(source, "i32")}) -> {tensor(target, "i32")}"""
    return function(source, target, "i32", body)


def ran(text: str, chip: GPUTarget, given: np.ndarray) -> np.ndarray:
    with mlir_context():
        passes = [AllocateSharedMemory(), Membar(), TTGToLLVM(chip)]
        module = Pipeline(passes).run(ir.Module.parse(text))
        program = ThreadInterpreter(WARPS, SHARED_BYTES, chip.warp_size)
        return program.run(functions(module)[0], [given])


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1 << 16, shape)


def test_reductions() -> None:
    def check(chip: GPUTarget, case: tuple[tuple[int, ...], int]) -> None:
        shape, axis = case
        source = spread(shape, (1, 2), (1, 0), WARPS, lanes=chip.warp_size)
        target, x = shapes.reduce(source, axis), numbers(shape)
        text = summed("reduce", axis, source, target)
        got = ran(text, chip, x.ravel()[by_thread(source)])
        np.testing.assert_array_equal(got, x.sum(axis)[by_thread(target)])

    check_rows(check, itertools.product(TARGETS, CASES[:3]))


def test_scans() -> None:
    def check(chip: GPUTarget, case: tuple[tuple[int, ...], int], is_reverse: bool) -> None:
        shape, axis = case
        layout, x = shapes.scan(shape, axis, WARPS, chip.warp_size), numbers(shape)
        text = summed("scan", axis, layout, layout, f", reverse = {str(is_reverse).lower()}")
        got = ran(text, chip, x.ravel()[by_thread(layout)])
        x = np.flip(x, axis) if is_reverse else x
        sums = np.cumsum(x, axis)
        sums = np.flip(sums, axis) if is_reverse else sums
        np.testing.assert_array_equal(got, sums.ravel()[by_thread(layout)])

    check_rows(check, itertools.product(TARGETS, CASES, (False, True)))
