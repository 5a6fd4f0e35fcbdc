"""The rule of `warp_specialize`: functions that groups of warps run at once.

Each worker is an op with a region, which is compiled in place, as the default function is behind
them: what that returns are values like any others.
"""

from collections.abc import Iterable
from typing import Any

from proton.base.words import shown
from proton.dialect import name_of, ttg
from proton.dialect.builtin import i32_attr, string_attr
from proton.dialect.mlir import ir
from proton.frontend.builder import error
from proton.frontend.interface import CodeGenerator
from proton.frontend.rules import generator_rule
from proton.frontend.trees import tensors
from proton.language.function import DeviceFunction
from proton.language.gluon import core


@generator_rule(core.warp_specialize)
def _warp_specialize(
    g: CodeGenerator,
    functions_and_args: Iterable[object],
    worker_num_warps: object,
    worker_num_regs: object = None,
) -> Any:
    what = "warp_specialize"
    pairs = [_checked(pair, what) for pair in functions_and_args]
    if not pairs:
        raise error(
            f"{what}: expected at least one function for the default partition", "write [(f, ())]"
        )
    (default, default_args), *workers = pairs
    warps = _counts(worker_num_warps, len(workers), "warp counts", what)
    asked = [0] * len(workers) if worker_num_regs is None else worker_num_regs
    registers = _counts(asked, len(workers), "register counts", what)
    if g.loop is not None or g.block_depth:
        raise _misplaced(what)
    for (function, args), count, limit in zip(workers, warps, registers, strict=True):
        _check_worker(function, args, count, what)
        _compile_worker(g, function, args, count, limit)
    ttg.StartWorkersOp(string_attr(default.__name__))
    result = g.call(default, list(default_args), {}, in_place=True)
    ttg.JoinWorkersOp()
    return result


def _misplaced(what: str) -> Exception:
    return error(
        f"{what} in a loop, in a branch or in a partition is not supported",
        "call it once from the kernel, with the loop inside of its functions",
    )


def _checked(pair: object, what: str) -> tuple[DeviceFunction, tuple[Any, ...]]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise error(
            f"{what}: pairs of a function and its arguments, got {shown(pair)}", "(f, (x,))"
        )
    function, args = pair
    if not isinstance(function, DeviceFunction):
        raise error(f"{what}: {shown(function)} is no @gluon.jit function", "decorate it")
    if not isinstance(args, tuple | list):
        raise error(
            f"function arguments must be a tuple of arguments, but got {shown(args)}",
            "write (function, (argument,)), or () of none",
        )
    return function, tuple(args)


def _counts(values: object, wanted: int, noun: str, what: str) -> list[int]:
    found: list[Any] = list(values) if isinstance(values, tuple | list) else [values]
    if len(found) != wanted:
        raise error(
            f"{what} got {wanted} partitions but {len(found)} {noun}", "one for each worker"
        )
    if not all(isinstance(value, int) for value in found):
        raise error(f"{what}: {noun} must be constexprs, got {shown(values)}", "[4, 1]")
    return found


def _check_worker(function: DeviceFunction, args: tuple[Any, ...], warps: int, what: str) -> None:
    if warps < 1 or warps & (warps - 1):
        raise error(f"{what}: a worker has a power of two of warps, got {warps}", "1, 2, 4 or 8")
    if any(value.is_block() for value in tensors(args)):
        raise error(
            f"{what}: {function.__name__} is a worker, and takes no tensors",
            "hand them over in shared memory, or make them in the function",
        )


def _compile_worker(
    g: CodeGenerator, function: DeviceFunction, args: tuple[Any, ...], warps: int, registers: int
) -> None:
    op = ir.Operation.create(
        name_of(ttg.WorkerOp),
        attributes={
            "warps": i32_attr(warps),
            "registers": i32_attr(registers),
            "role": string_attr(function.__name__),
        },
        regions=1,
    )
    own, g.num_warps = g.num_warps, warps
    depth = g.block_depth
    try:
        with ir.InsertionPoint(ir.Block.create_at_start(op.regions[0], [])):
            g.block_depth += 1  # it is no place for workers of its own
            result = g.call(function, list(args), {}, in_place=True)
            ttg.WarpReturnOp()
    finally:
        g.num_warps, g.block_depth = own, depth
    if result is not None:
        raise error(
            f"warp_specialize: {function.__name__} is a worker, and returns a value",
            "only the default function returns one",
        )
