"""Gathers within a warp: what each result takes from which lane, where shared memory is not needed.

That is where all elements along the axis lie in the warp of the result, each index bit being a bit
of the lane's or of the register's number, and a lane and its results are at the same place along
the other dimensions.
"""

from dataclasses import dataclass

from proton.layout.linear import Basis, LinearLayout, log2

# Registers of a lane that may be what an index names. Each is one shuffle, which costs as much as a
# load from shared memory does; ahead of such a load are stores and a barrier. Where the two are
# equal has not been measured.
MOST = 2


@dataclass(frozen=True)
class WarpGather:
    """Register r of the result takes source register `sources[r][n]`, the bits `registers` of the
    index being n, of a lane: its own, of whose number the index's bits replace some, `lanes`:
    (bit of the index, bit of the lane's number)."""

    sources: tuple[tuple[int, ...], ...]
    registers: tuple[int, ...]
    lanes: tuple[tuple[int, int], ...]

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """`lanes` as (first bit of the index, first bit of the lane's number, count)."""
        found: list[tuple[int, int, int]] = []
        for index, lane in self.lanes:
            first, to, count = found[-1] if found else (0, 0, 0)
            if count and (index, lane) == (first + count, to + count):
                found[-1] = (first, to, count + 1)
            else:
                found.append((index, lane, 1))
        return found


def gather_in_warp(source: LinearLayout, target: LinearLayout, axis: int) -> WarpGather | None:
    """The way of a gather along an axis; None where it takes shared memory."""

    def apart(basis: Basis) -> tuple[int, Basis]:
        return basis[axis], basis[:axis] + basis[axis + 1 :]

    def places(layout: LinearLayout, name: str) -> list[Basis]:
        return [apart(basis)[1] for basis in layout.bases(name)]

    if any(places(source, name) != places(target, name) for name in ("lane", "warp")):
        return None
    if any(basis[axis] for basis in source.bases("warp")):
        return None
    bits: dict[int, tuple[str, int]] = {}
    for name in ("lane", "register"):
        for number, basis in enumerate(source.bases(name)):
            step, others = apart(basis)
            if step and (any(others) or step & (step - 1) or log2(step) in bits):
                return None
            if step:
                bits[log2(step)] = (name, number)
    if len(bits) != log2(source.outs[axis][1]):
        return None
    registers = tuple(sorted(bit for bit, (name, _) in bits.items() if name == "register"))
    if 1 << len(registers) > MOST:
        return None
    chosen = [0]
    for bit in registers:
        chosen += [register | 1 << bits[bit][1] for register in chosen]
    first: dict[Basis, int] = {}
    for register, row in enumerate(source.table("register").tolist()):
        first.setdefault(apart(tuple(row))[1], register & ~chosen[-1])
    wanted = [apart(tuple(row))[1] for row in target.table("register").tolist()]
    if not all(place in first for place in wanted):
        return None
    return WarpGather(
        tuple(tuple(first[place] | bit for bit in chosen) for place in wanted),
        registers,
        tuple(sorted((bit, n) for bit, (name, n) in bits.items() if name == "lane")),
    )
