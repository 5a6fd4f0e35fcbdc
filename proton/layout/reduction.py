"""How a dimension of a distributed tensor is combined: in registers, in lanes, across warps.

Along the axis, some bits of an element's index are register bits, some lane bits, some warp bits.
Each thread combines its registers; lanes exchange what they have in a butterfly; then the
partial results of the warps, a tensor with one index a warp, change their layout so that every
thread has some of them in registers, and lanes that would hold copies have the others: registers
and lanes are combined once more. What is left is the layout without the axis.

A butterfly gives all lanes all results, n of them for n shuffles a step. Where lanes need not have
all, each step may leave a lane half of them: two lanes exchange what the other one keeps. So n
results of 32 lanes take n - n/32 shuffles in the place of 5n (`scattered`; a *reduce-scatter*).
"""

import functools
from dataclasses import dataclass

from proton.layout.conversion import Exchange, exchange
from proton.layout.linear import Basis, LinearLayout, log2
from proton.layout.named import dim, sliced

# Registers that a thread reads the partial results into, where lanes can take the rest: one access
# of 16 bytes. More of them are fewer shuffles, and fewer threads that fit on an SM.
GATHERED = 4


@dataclass(frozen=True)
class WarpExchange:
    """The layouts of the warps' partial results before and after: `target` has those of the warps
    in its lowest `registers` register bits, and in the lane bits `lanes`."""

    source: LinearLayout
    target: LinearLayout
    registers: int
    lanes: tuple[int, ...]

    def plan(self, element_bytes: int) -> Exchange:
        """The exchange through shared memory."""
        return exchange(self.source, self.target, element_bytes)


@dataclass(frozen=True)
class Reduction:
    """Bits of the inputs that lie along the axis, lowest index bit first; of the lanes' those that
    leave each lane half of the results come before."""

    registers: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    exchange: WarpExchange | None  # None where one warp has the whole axis
    kept: tuple[Basis | None, ...] = ()  # of each lane bit, what it tells apart in the result


def is_separable(source: LinearLayout, axis: int) -> bool:
    """True if what moves along the axis moves along no other dimension, and no element is there
    twice."""
    bases = [basis for _, found in source.ins for basis in found if basis[axis]]
    is_once = len(bases) == log2(source.out_size(dim(axis)))
    return is_once and all(sum(map(bool, basis)) == 1 for basis in bases)


@functools.cache
def is_scannable(source: LinearLayout, axis: int) -> bool:
    """True if a thread's registers hold a run along the axis, which lanes that follow each other
    continue, and then warps."""
    if not is_separable(source, axis):
        return False
    bits = {name: _along(source, name, axis) for name in ("register", "lane", "warp")}
    steps = [source.bases(name)[bit][axis] for name, found in bits.items() for bit in found]
    first = min(bits["lane"], default=0)
    is_run = list(bits["lane"]) == list(range(first, first + len(bits["lane"])))
    return is_run and steps == [1 << number for number in range(len(steps))]


def plan_reduction(
    source: LinearLayout,
    axis: int,
    ordered: bool = False,
    result: LinearLayout | None = None,
) -> Reduction:
    """The plan for a layout that is separable; ValueError for others.

    `ordered` keeps all partial results in registers, in the order of the axis: for scans. `result`
    is the layout without the axis, or one that is `scattered`.
    """
    if not is_separable(source, axis):
        raise ValueError(f"no layout to combine dimension {axis} in: {source}")
    bits = {name: _along(source, name, axis) for name in ("register", "lane", "warp")}
    warps, lanes = bits["warp"], bits["lane"]
    kept: dict[int, Basis] = {}
    if result is not None:
        bases = result.bases("lane")
        kept = {bit: _with_axis(bases[bit], axis) for bit in lanes if any(bases[bit])}
    partial = _partials(source, axis, warps, ordered, kept) if warps else None
    lanes = tuple(sorted(lanes, key=lambda bit: bit not in kept))  # fewer results for the others
    return Reduction(bits["register"], lanes, warps, partial, tuple(map(kept.get, lanes)))


def _with_axis(basis: Basis, axis: int) -> Basis:
    """A basis of a tensor that lacks the axis, in that which has it."""
    return (*basis[:axis], 0, *basis[axis:])


def scattered(source: LinearLayout, axis: int, target: LinearLayout) -> LinearLayout:
    """A layout of what is reduced, on its way to a target: without the axis, and what the target
    does not want in registers in lanes that would hold copies, in those of the target if they are
    there."""
    whole = sliced(source, axis)
    registers, lanes = list(whole.bases("register")), list(whole.bases("lane"))
    wanted = target.bases("register")
    given = [basis for basis in registers if basis not in wanted]
    free = [bit for bit in _along(source, "lane", axis) if not any(lanes[bit])]
    placed = {bit: target.bases("lane")[bit] for bit in free}
    for bit in sorted(free, key=lambda bit: placed[bit] not in given):
        if given:
            lanes[bit] = placed[bit] if placed[bit] in given else given[-1]
            given.remove(lanes[bit])
            registers.remove(lanes[bit])
    ins = {name: whole.bases(name) for name in whole.in_names}
    return LinearLayout.of(ins | {"register": registers, "lane": lanes}, dict(whole.outs))


def _along(layout: LinearLayout, in_dim: str, axis: int) -> tuple[int, ...]:
    bases = enumerate(layout.bases(in_dim))
    return tuple(
        bit for _, bit in sorted((basis[axis], bit) for bit, basis in bases if basis[axis])
    )


def _partials(
    source: LinearLayout,
    axis: int,
    warps: tuple[int, ...],
    ordered: bool,
    kept: dict[int, Basis],
) -> WarpExchange:
    """Layouts of the tensor that has one element a warp along the axis."""
    outs = dict(source.outs) | {dim(axis): 1 << len(warps)}

    def place(number: int) -> Basis:
        return tuple((1 << number) * (a == axis) for a in range(len(outs)))

    def without(basis: Basis) -> Basis:
        return tuple(0 if a == axis else value for a, value in enumerate(basis))

    registers = [b for b in source.bases("register") if not b[axis] and b not in kept.values()]
    lanes = [kept.get(bit, without(b)) for bit, b in enumerate(source.bases("lane"))]
    own = [
        place(warps.index(bit)) if bit in warps else basis
        for bit, basis in enumerate(source.bases("warp"))
    ]
    everyone = [without(b) for b in source.bases("warp")]
    free = [] if ordered else [bit for bit, basis in enumerate(lanes) if not any(basis)]
    room = max(0, log2(GATHERED) - len(registers))
    spread = free[: max(0, len(warps) - room)]
    count = len(warps) - len(spread)
    gathered = [place(number) for number in range(count)]
    held = list(lanes)
    for number, bit in enumerate(spread, count):
        held[bit] = place(number)
    block = source.bases("block")
    before = {"register": registers, "lane": lanes, "warp": own, "block": block}
    after = {"register": gathered + registers, "lane": held, "warp": everyone, "block": block}
    return WarpExchange(
        LinearLayout.of(before, outs), LinearLayout.of(after, outs), count, tuple(spread)
    )
