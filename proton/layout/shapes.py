"""What a change of shape makes of a layout: no data moves, elements only get other indices.

Each function takes the layout of the source and gives that of the result, or, where the name
says `source`, the other way round. Inputs of a layout keep their order, so registers keep
their numbers unless a function says otherwise.
"""

import functools
from math import prod

from proton.base.chips.chip import WARP_SIZE
from proton.layout.linear import Basis, LinearLayout, log2
from proton.layout.named import blocked, dim, sliced, spread, standard


@functools.cache
def default(shape: tuple[int, ...], num_warps: int, lanes: int = WARP_SIZE) -> LinearLayout:
    """The layout of a tensor nobody has an opinion about: neighbours in neighbouring lanes."""
    order = tuple(reversed(range(len(shape))))
    return spread(shape, (1,) * len(shape), order, num_warps, lanes=lanes)


@functools.cache
def vectorized(
    shape: tuple[int, ...],
    order: tuple[int, ...],
    vector: int,
    num_warps: int,
    repeats: int = 1,
    lanes: int = WARP_SIZE,
) -> LinearLayout:
    """Threads hold `vector` elements along the fastest dimension `repeats` times at least, and
    lanes follow each other."""
    per_thread = [1] * len(shape)
    per_thread[order[0]] = min(vector, shape[order[0]])
    return spread(shape, per_thread, order, num_warps, repeats, lanes)


@functools.cache
def narrowed(layout: LinearLayout, count: int) -> LinearLayout:
    """The layout in which a thread has `count` elements in a row where it has more: lanes, warps
    and then registers follow. The layout itself where it has no more, or threads have copies."""
    bases = layout.bases("register")
    axis = next((a for a, index in enumerate(bases[0] if bases else ()) if index), 0)
    run = next((n for n, b in enumerate(bases) if b[axis] != 1 << n), len(bases))
    own, names = log2(count), [name for name in layout.in_names if name != "register"]
    every = [*bases[:run], *(b for name in names for b in layout.bases(name)), *bases[run:]]
    if run <= own or not all(map(any, every)):
        return layout
    ins: dict[str, list[Basis]] = {"register": every[:own]}
    start = own
    for name in names:
        ins[name] = every[start : start + layout.in_bits(name)]
        start += layout.in_bits(name)
    ins["register"] += every[start:]
    return LinearLayout.of(ins, dict(layout.outs))


def _mapped(layout: LinearLayout, outs: dict[str, int], basis: object) -> LinearLayout:
    ins = {name: [basis(b) for b in bases] for name, bases in layout.ins}  # type: ignore[operator]
    return LinearLayout.of(ins, outs)


@functools.cache
def expand_dims(source: LinearLayout, axis: int) -> LinearLayout:
    """With a dimension of size 1 at `axis`."""
    sizes = [size for _, size in source.outs]
    sizes.insert(axis, 1)
    outs = {dim(a): size for a, size in enumerate(sizes)}
    return _mapped(source, outs, lambda b: (*b[:axis], 0, *b[axis:]))


@functools.cache
def expand_dims_source(result: LinearLayout, axis: int) -> LinearLayout:
    """Without the dimension of size 1 at `axis`."""
    sizes = [size for a, (_, size) in enumerate(result.outs) if a != axis]
    outs = {dim(a): size for a, size in enumerate(sizes)}
    return _mapped(result, outs, lambda b: (*b[:axis], *b[axis + 1 :]))


@functools.cache
def broadcast_source(result: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """What is broadcast, so that every thread has what it needs; a register holds no copies."""
    outs = {dim(a): size for a, size in enumerate(shape)}

    def narrow(basis: Basis) -> Basis:
        return tuple(v if size > 1 else 0 for v, size in zip(basis, shape, strict=True))

    source = _mapped(result, outs, narrow)
    return source.without_free_bits("register")


@functools.cache
def trans(source: LinearLayout, order: tuple[int, ...]) -> LinearLayout:
    """Dimension i of the result is dimension order[i] of the source."""
    outs = {dim(a): source.out_size(dim(axis)) for a, axis in enumerate(order)}
    return _mapped(source, outs, lambda b: tuple(b[axis] for axis in order))


def trans_source(result: LinearLayout, order: tuple[int, ...]) -> LinearLayout:
    """The inverse of `trans`."""
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    return trans(result, inverse)


@functools.cache
def reshape(source: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """The same row-major index in other dimensions."""
    minor_first = source.sublayout(source.in_names, tuple(reversed(source.out_names)))
    outs = {dim(axis): shape[axis] for axis in reversed(range(len(shape)))}
    return standard(minor_first.reshaped(outs), len(shape))


@functools.cache
def join(source: LinearLayout) -> LinearLayout:
    """With a last dimension of size 2, in the lowest register bit."""
    rank = len(source.outs)
    outs = {**dict(source.outs), dim(rank): 2}
    wide = _mapped(source, outs, lambda b: (*b, 0))
    first: Basis = (0,) * rank + (1,)
    ins = {name: [first, *bases] if name == "register" else bases for name, bases in wide.ins}
    return LinearLayout.of(ins, outs)


@functools.cache
def split(source: LinearLayout) -> LinearLayout:
    """Without a last dimension of size 2, which is one register bit (`split_bit`)."""
    bit = split_bit(source)
    if bit is None:
        raise ValueError("the last dimension is not in a thread's registers")
    outs = dict(source.outs[:-1])
    ins = {
        name: [b[:-1] for n, b in enumerate(bases) if name != "register" or n != bit]
        for name, bases in source.ins
    }
    return LinearLayout.of(ins, outs)


def split_bit(source: LinearLayout) -> int | None:
    """The register bit that is the last dimension of size 2; None where it is elsewhere."""
    unit = (0,) * (len(source.outs) - 1) + (1,)
    if any(b[-1] for name, bases in source.ins for b in bases if name != "register"):
        return None
    bases = source.bases("register")
    bits = [bit for bit, b in enumerate(bases) if b[-1]]
    return bits[0] if len(bits) == 1 and bases[bits[0]] == unit else None


@functools.cache
def reduce(source: LinearLayout, axis: int) -> LinearLayout:
    """Without `axis`: threads along it hold copies."""
    return sliced(source, axis)


@functools.cache
def scan(
    shape: tuple[int, ...],
    axis: int,
    num_warps: int,
    lanes: int = WARP_SIZE,
    most: int | None = None,
) -> LinearLayout:
    """Along `axis` each thread holds a run, lanes continue it, then warps: so a prefix of the axis
    is registers of a thread, then lanes below, then warps below. Runs of more than `most` elements
    are cut where a warp has lanes for that."""
    order = (axis, *(a for a in reversed(range(len(shape))) if a != axis))
    threads = lanes * num_warps
    others = prod(shape) // shape[axis]
    # Threads that the other dimensions cannot use help along the axis.
    along = max(1, min(shape[axis], threads // min(threads, others)))
    if most is not None:
        along = max(along, min(lanes, shape[axis] // most))
    per_thread = [1] * len(shape)
    per_thread[axis] = shape[axis] // along
    along_lanes = min(lanes, along)
    lane_sizes, warp_sizes = [1] * len(shape), [1] * len(shape)
    lane_sizes[axis], warp_sizes[axis] = along_lanes, along // along_lanes
    left_lanes, left_warps = lanes // along_lanes, num_warps // warp_sizes[axis]
    for a in order[1:]:
        lane_sizes[a] = min(left_lanes, shape[a])
        left_lanes //= lane_sizes[a]
        warp_sizes[a] = min(left_warps, shape[a] // lane_sizes[a])
        left_warps //= warp_sizes[a]
    # Threads that are left over hold copies, above those in use.
    lane_sizes[order[-1]] *= left_lanes
    warp_sizes[order[-1]] *= left_warps
    return blocked(shape, per_thread, lane_sizes, warp_sizes, order, lanes)
