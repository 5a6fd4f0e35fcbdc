"""What ops that change the shape of a tensor make of its shape, and of its layout.

expanded, axis      a dimension of size 1        permuted, order
broadcast, shape    larger sizes                 reshaped, shape
joined              a last dimension of size 2   halved, without it
reduced, axis       without a dimension
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from proton.language.gluon.layouts import (
    BlockedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    SliceLayout,
)
from proton.layout import shapes

Shape = tuple[int, ...]
SHAPES: dict[str, Callable[..., Shape]] = {
    "expanded": lambda shape, axis: (*shape[:axis], 1, *shape[axis:]),
    "broadcast": lambda shape, new: new,
    "permuted": lambda shape, order: tuple(shape[axis] for axis in order),
    "reshaped": lambda shape, new: new,
    "joined": lambda shape: (*shape, 2),
    "halved": lambda shape: shape[:-1],
    "reduced": lambda shape, axis: (*shape[:axis], *shape[axis + 1 :]),
}


def layout_of(how: str, layout: Any, shape: Shape, *arguments: object) -> Any:
    """The layout of the result, if that of a tensor of a shape is given; one that is still to be
    chosen stays so. Raises ValueError where there is none."""
    return _LAYOUTS[how](layout, shape, *arguments) if layout.is_known else layout


def _expanded(layout: Any, shape: Sequence[int], axis: int) -> Any:
    """With a dimension of size 1 at `axis`: the parent of a slice. Others have none: ValueError."""
    if not isinstance(layout, SliceLayout):
        raise ValueError(f"expected expand_dims input to have a SliceLayout, but got: {layout}")
    if layout.dim != axis:
        raise ValueError(
            f"expected expand_dims input layout to be sliced in axis {axis} but got {layout.dim}"
        )
    return layout.parent


def _permuted(layout: Any, shape: Sequence[int], order: Sequence[int]) -> Any:
    """Dimension i becomes what dimension order[i] was."""
    if isinstance(layout, BlockedLayout):
        inverse = [list(order).index(axis) for axis in range(len(order))]
        parts = (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta)
        own, threads, warps = ([part[axis] for axis in order] for part in parts)
        cga = [[basis[axis] for axis in order] for basis in layout.cga_layout]
        return BlockedLayout(own, threads, warps, [inverse[axis] for axis in layout.order], cga)
    return _through(layout, shape, lambda linear: shapes.trans(linear, tuple(order)))


def _reshaped(layout: Any, shape: Sequence[int], new: Sequence[int]) -> Any:
    """The same row-major index in other dimensions."""
    linear = shapes.reshape(layout.linear(tuple(shape)), tuple(new))
    for named in (_without_unit(layout, shape, new), _with_unit(layout, shape, new)):
        if named is not None and named.linear(tuple(new)) == linear:
            return named
    if isinstance(layout, BlockedLayout) and not layout.cga_layout:
        blocked = _split_and_merged(layout, shape, new)
        if blocked is not None and blocked.linear(tuple(new)) == linear:
            return blocked
    return DistributedLinearLayout.of(linear)


def _without_unit(layout: Any, shape: Sequence[int], new: Sequence[int]) -> Any:
    """Without one dimension of size 1: a slice; None of other changes."""
    if not isinstance(layout, BlockedLayout):
        return None
    without = (a for a in range(len(shape)) if (*shape[:a], *shape[a + 1 :]) == tuple(new))
    axis = next((a for a in without if shape[a] == 1), None)
    return None if axis is None else SliceLayout(axis, layout)


def _with_unit(layout: Any, shape: Sequence[int], new: Sequence[int]) -> Any:
    """With the dimension, of size 1, that a slice lacks: its parent; None of other changes."""
    if not isinstance(layout, SliceLayout):
        return None
    with_it = (*shape[: layout.dim], 1, *shape[layout.dim :])
    return layout.parent if with_it == tuple(new) else None


def _split_and_merged(layout: BlockedLayout, shape: Sequence[int], new: Sequence[int]) -> Any:
    """The blocked layout whose dimensions are parts of those that were there, or several of them in
    one. None where neither holds; it may not be the same place for each element."""
    rank = len(new)
    parts = [[1] * rank for _ in range(3)]  # of a thread, of a warp, of all warps
    sources = (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta)
    inner: dict[int, list[int]] = {}  # of each old dimension the new ones, the fastest first
    for old_axes, new_axes in _groups(shape, new):
        if len(old_axes) > 1 and sum(new[axis] > 1 for axis in new_axes) > 1:
            return None
        for axis in old_axes:
            inner[axis] = new_axes if axis == old_axes[0] else []
        left = [new[axis] for axis in new_axes]
        for part, source in zip(parts, sources, strict=True):
            count = prod(source[axis] for axis in old_axes)
            for n, axis in enumerate(new_axes):
                is_last = all(size == 1 for size in left[n + 1 :]) and n == len(new_axes) - 1
                part[axis] = count if is_last else min(count, left[n])
                count //= part[axis]
                left[n] = max(1, left[n] // part[axis])
    order = [axis for old in layout.order for axis in inner[old]]
    is_whole = all(prod(a) == prod(b) for a, b in zip(parts[1:], sources[1:], strict=True))
    is_ordered = sorted(order) == list(range(rank))
    own, threads, warps = parts
    return BlockedLayout(own, threads, warps, order) if is_whole and is_ordered else None


def _groups(shape: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Dimensions of both shapes with as many elements, as few as can be; the last ones first."""
    old_axes, new_axes = list(range(len(shape))), list(range(len(new)))
    found = []
    while old_axes or new_axes:
        group: tuple[list[int], list[int]] = [], []
        if old_axes:
            group[0].append(old_axes.pop())
        if new_axes:
            group[1].append(new_axes.pop())
        while (a := prod(shape[x] for x in group[0])) != (b := prod(new[x] for x in group[1])):
            side, axes = (0, old_axes) if a < b else (1, new_axes)
            group[side].append(axes.pop())
        units = [axis for axis in reversed(new_axes) if new[axis] == 1]
        while units and new_axes and new_axes[-1] == units[0]:
            group[1].append(new_axes.pop())
            units.pop(0)
        found.append(group)
    return found


def _joined(layout: Any, shape: Sequence[int]) -> Any:
    """With a last dimension of size 2, whose elements a thread has side by side."""
    if isinstance(layout, BlockedLayout):
        rank = layout.rank
        cga = [[*basis, 0] for basis in layout.cga_layout]
        return BlockedLayout(
            [*layout.size_per_thread, 2],
            [*layout.threads_per_warp, 1],
            [*layout.warps_per_cta, 1],
            [rank, *layout.order],
            cga,
        )
    return _through(layout, shape, shapes.join)


def rejoined(layout: Any, shape: Sequence[int]) -> Any:
    """What two halves of a layout had before they were split; None where that is not known."""
    if not isinstance(layout, SliceLayout) or layout.dim != len(shape):
        return None
    whole = layout.parent.linear((*shape, 2))
    is_it = shapes.split_bit(whole) is not None
    return layout.parent if is_it and shapes.split(whole) == layout.linear(tuple(shape)) else None


def _halved(layout: Any, shape: Sequence[int]) -> Any:
    """Without a last dimension of size 2."""
    halves = shapes.split(layout.linear(tuple(shape)))
    named = SliceLayout(len(shape) - 1, layout)
    same = named.linear(tuple(shape[:-1])) == halves
    return named if same else DistributedLinearLayout.of(halves)


def _through(layout: Any, shape: Sequence[int], change: Any) -> Any:
    """What a change of linear layouts makes of a layout."""
    return DistributedLinearLayout.of(change(layout.linear(tuple(shape))))


_LAYOUTS: dict[str, Callable[..., DistributedLayout]] = {
    "expanded": _expanded,
    "broadcast": lambda layout, shape, new: layout,
    "permuted": _permuted,
    "reshaped": _reshaped,
    "joined": _joined,
    "halved": _halved,
    "reduced": lambda layout, shape, axis: SliceLayout(axis, layout),
}
