"""What ops that change the shape of a tensor make of its shape, and of its layout.

expanded, axis      a dimension of size 1        permuted, order
broadcast, shape    larger sizes                 reshaped, shape
joined              a last dimension of size 2   halved, without it
reduced, axis       without a dimension
"""

from collections.abc import Callable, Sequence
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
    return _through(layout, shape, lambda linear: shapes.reshape(linear, tuple(new)))


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


def _halved(layout: Any, shape: Sequence[int]) -> Any:
    """Without a last dimension of size 2."""
    is_pair = isinstance(layout, BlockedLayout) and layout.size_per_thread[-1] == 2
    if is_pair and layout.threads_per_warp[-1] == layout.warps_per_cta[-1] == 1:
        rank = layout.rank - 1
        return BlockedLayout(
            layout.size_per_thread[:-1],
            layout.threads_per_warp[:-1],
            layout.warps_per_cta[:-1],
            [axis for axis in layout.order if axis != rank],
            [basis[:-1] for basis in layout.cga_layout],
        )
    return _through(layout, shape, shapes.split)


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
