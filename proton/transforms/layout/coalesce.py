"""Gives every memory access the layout in which it is widest."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from proton.analysis.atomics import atomic_elements
from proton.analysis.axis_info import (
    AxisInfos,
    elements,
    order_of,
    step_elements,
    vector_elements,
)
from proton.analysis.axis_rules import AxisInfo, element_bytes
from proton.analysis.handovers import ATOMICS
from proton.analysis.scratch import stored_bytes
from proton.base.chips.chip import ACCESS_BYTES, Chip
from proton.base.targets import GPUTarget
from proton.dialect import isa, tt, ttng
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.layouts import convert, retype_result
from proton.dialect.mlir import Module, Operation, Value
from proton.dialect.traits import Accesses, Elementwise, Loop, Multiplies, has
from proton.dialect.tt_memory import mask_of
from proton.dialect.ttg import is_tensor, num_warps
from proton.dialect.walk import all_ops, before, users
from proton.layout import LinearLayout, shapes
from proton.passes import Pass, register
from proton.schedule.loads import COPY_BYTES


@register
@dataclass(frozen=True)
class Coalesce(Pass):
    """Lays the pointers of an access out along the dimension in which they are contiguous, so
    that lanes follow each other and each thread has 16 bytes in a row.

        %x = tt.load %p : tensor<1024x!tt.ptr<f32>, #one_a_thread>
    becomes
        %q = ttg.convert_layout %p
        %y = tt.load %q : tensor<1024x!tt.ptr<f32>, #four_a_thread>
        %x = ttg.convert_layout %y

    Where nothing is known of an address, lanes follow the dimension along which it would go if its
    index did not wrap around; in a loop, else, that of the other accesses of its shape. Addresses
    in steps, as of two numbers in a byte, count as contiguous. Of the other dimensions those come
    last that a reduction of what is loaded goes along. What a loop with products loads has 4 bytes
    in a row, which is what threads can copy. Where accesses are of single elements, a
    thread has several of each run of contiguous ones, a constant apart: they share an address.

    Accesses of one shape and order get one layout, so that what is loaded in one of them and stored
    in another need not move: that of the widest, but none that is wider than a store in the same
    loops. 8 fp32 numbers of a thread would be two stores, each with gaps between lanes. A store in
    fewer loops has a layout of its own then: what it stores moves once. So has one that takes fewer
    elements at once, as of rows that begin anywhere: memory takes bytes with gaps one by one. Other
    stores do not matter in a kernel with products, whose operands are copied 16 bytes at a time:
    what moves to be stored gets a layout of its own (remove_layout_conversions.py). Atomics on
    neighbours have their own, as wide as an instruction: with gaps between lanes a sum of gradients
    took 2.7 of Triton's time.
    """

    name: ClassVar[str] = "tritongpu-coalesce"

    target: GPUTarget

    def run(self, module: Module) -> None:
        infos = AxisInfos(module)
        ops = all_ops(module)
        accesses = [op for op in ops if has(op, Accesses) and is_tensor(op.operands[0].type)]
        copied = [op for op in ops if isa(op, ttng.TMALoadOp)]
        guess = functools.cache(lambda: AxisInfos(module, guess=True))
        plans = _agreed([_wishes(op, infos, guess, self.target.facts) for op in accesses])
        has_products = any(has(op, Multiplies) for op in ops)
        widest: dict[object, int] = {}
        shortest: dict[object, int] = {}
        inmost: dict[object, int] = {}
        for op, order, vector, _ in plans:
            key, run = (shape_of(op.operands[0]), order), infos[op.operands[0]].contiguity[order[0]]
            widest[key] = max(widest.get(key, 1), vector)
            shortest[key] = min(shortest.get(key, run), run)
            inmost[key] = max(inmost.get(key, 0), _depth(op))
        limits = dict.fromkeys(widest, ACCESS_BYTES)
        for op, order, *_ in plans if not has_products else []:
            key = shape_of(op.operands[0]), order
            if isa(op, tt.StoreOp) and _depth(op) == inmost[key]:
                limits[key] = min(limits[key], _most(op))
        warps, lanes = num_warps(module), self.target.warp_size
        for op, order, widest_own, _ in plans:
            key = shape, order = shape_of(op.operands[0]), order
            share = max(1, elements(op.operands[0]) // (lanes * warps))
            if has_products and isa(op, tt.LoadOp) and _depth(op):
                share = max(share, COPY_BYTES // element_bytes(op.operands[0]))
            vector, repeats = min(widest[key], limits[key], share), 1
            own = vector_elements(op.operands[0], None, infos)[order[0]]
            has_gaps = infos[op.operands[0]].contiguity[order[0]] > own < _most(op)
            if isa(op, tt.StoreOp) and (has_gaps or not has_products):
                vector = min(vector, own if has_gaps else _most(op))
            if isa(op, *ATOMICS) and infos[op.operands[0]].contiguity[order[0]] > 1:
                vector = min(vector, widest_own)
            if vector == 1:
                repeats = min(share, max(1, shortest[key] // lanes))
            _set_layout(op, shapes.vectorized(shape, order, vector, warps, repeats, lanes))
        for op in copied:
            _set_layout(op, _of_block(op.results[0], warps, lanes))


def _of_block(value: Value, warps: int, lanes: int) -> LinearLayout:
    """The layout of a block that TMA brought: rows, read from shared memory 16 bytes at a time."""
    shape = shape_of(value)
    share = max(1, elements(value) // (lanes * warps))
    vector = min(ACCESS_BYTES // stored_bytes(element_of(value)), share)
    order = tuple(reversed(range(len(shape))))
    return shapes.vectorized(shape, order, vector, warps, lanes=lanes)


class _Plan(NamedTuple):
    """What suits an access."""

    op: Operation
    order: tuple[int, ...]  # of dimensions
    vector: int  # elements of one access
    is_known: bool = True  # False: any order suits it as well


def _wishes(op: Operation, infos: AxisInfos, guess: Callable[[], AxisInfos], chip: Chip) -> _Plan:
    pointer = op.operands[0]
    info, is_known = infos[pointer], True
    if not _has_order(info):
        info = guess()[pointer]
        is_known = _has_order(info)
    order = _reduced_last(op, info) if _has_order(info) else order_of(info)
    width, count = step_elements(op, order[0], infos)
    if count > 1:
        return _Plan(op, order, width * count)
    vector = vector_elements(pointer, mask_of(op), infos)[order[0]]
    if isa(op, *ATOMICS):
        return _Plan(op, order, min(vector, atomic_elements(op, chip)), is_known)
    return _Plan(op, order, min(vector, _most(op)), is_known)


def _reduced_last(op: Operation, info: AxisInfo) -> tuple[int, ...]:
    """The order of an access's dimensions, where those come last that nothing is contiguous along
    and that a reduction of what is loaded goes along: so a thread has their elements."""
    order = order_of(info)
    reduced = _reduced_axes(op)
    return tuple(sorted(order, key=lambda axis: axis in reduced and info.contiguity[axis] == 1))


def _reduced_axes(op: Operation) -> set[int]:
    """Dimensions along which reductions go that take what an access loads, element by element."""
    axes, seen, waiting = set[int](), {op}, list(op.results)
    while waiting:
        for user in users(waiting.pop()):
            if isa(user, tt.ReduceOp):
                axes.add(user.attributes["axis"].value)
            elif has(user, Elementwise) and user not in seen:
                seen.add(user)
                waiting += user.results
    return axes


def _has_order(info: AxisInfo) -> bool:
    return max(info.contiguity) > 1 or any(info.steps)


def _agreed(plans: list[_Plan]) -> list[_Plan]:
    """Accesses of a loop that any order suits have that of others of their shape, if these have
    one: what they load, or store, need not move in each iteration then."""
    orders: dict[object, set[tuple[int, ...]]] = {}
    for plan in plans:
        if plan.is_known:
            orders.setdefault(shape_of(plan.op.operands[0]), set()).add(plan.order)

    def agreed(plan: _Plan) -> _Plan:
        found = orders.get(shape_of(plan.op.operands[0]), ())
        if plan.is_known or len(found) != 1 or not _depth(plan.op):
            return plan
        return plan._replace(order=next(iter(found)))

    return list(map(agreed, plans))


def _depth(op: Operation) -> int:
    """How many loops an op is in."""
    parent, count = op.parent, 0
    while parent is not None:
        count, parent = count + has(parent, Loop), parent.parent
    return count


def _most(op: Operation) -> int:
    """The elements of the widest access."""
    return ACCESS_BYTES // element_bytes(op.operands[0])


def _set_layout(op: Operation, layout: LinearLayout) -> None:
    with before(op):
        for number, operand in enumerate(op.operands):
            if is_tensor(operand.type):
                op.operands[number] = convert(operand, layout)
    for number in range(len(op.results)):
        retype_result(op, number, layout)
