"""The order of what groups of warps do in a kernel whose author wrote it: `kernel.asm["schedule"]`.

    produce, warp 4
      loop matmul.py:55
        empty/wait arrival matmul.py:76  matmul.py:58
        fill/issue copy matmul.py:62,63
    consume, warps 0 to 3
      loop matmul.py:70
        ...

Work has the names that its slices have in a trace (`record-work`), below the scope it is in; a wait
also has its own place.
"""

from proton.analysis.work import pieces_of_work
from proton.dialect import isa, tt, ttg
from proton.dialect.attributes import ROLES
from proton.dialect.mlir import Block, Operation, scf
from proton.dialect.scopes import place_of, scope_paths
from proton.dialect.walk import functions
from proton.trace.scope_path import ScopePath

_WORDS = ("loads", "dots", "copies", "barriers")
_OTHERS = {ttg.LocalLoadOp: "read", ttg.LocalStoreOp: "write", tt.StoreOp: "store"}


def order_of_roles(module: Operation) -> str:
    """The order of the work of each group of warps, of each function of a module."""
    orders = (str(_Description(function, ttg.num_warps(module))) for function in functions(module))
    return "\n\n".join(dict.fromkeys(orders))


class _Description:
    """The sections of a function, one for each group of warps that does anything."""

    def __init__(self, function: Operation, num_warps: int) -> None:
        self.roles = [str(role.value) for role in function.attributes.get(ROLES, ())]
        self.work = {piece.ops[0]: piece for piece in pieces_of_work(function, _WORDS)}
        self.rest = {op for work in self.work.values() for op in work.ops[1:]}
        self.sections: dict[range, list[str]] = {}
        self._block(function.regions[0].blocks[0], range(num_warps), 1)

    def __str__(self) -> str:
        return "\n".join(
            line
            for warps, lines in self.sections.items()
            if lines
            for line in (self._header(warps), *lines)
        )

    def _header(self, warps: range) -> str:
        of = f"warp {warps[0]}" if len(warps) == 1 else f"warps {warps[0]} to {warps[-1]}"
        roles = set(self.roles[warps.start : warps.stop])
        return f"{roles.pop()}, {of}" if len(roles) == 1 else of

    def _block(self, block: Block, warps: range, depth: int) -> None:
        lines = self.sections.setdefault(warps, [])
        ops = [view.operation for view in block.operations]
        has_groups = any(isa(op, ttg.WarpSpecializeOp) for op in ops)
        for op in ops:
            if isa(op, ttg.MeetOp) and has_groups:  # each of the groups has it, too
                continue
            if (work := self.work.get(op)) is not None:
                lines.append("  " * depth + _line(op, work.name))
            elif isa(op, ttg.WarpSpecializeOp):
                split = warps.start + int(op.attributes["warps"].value)
                for region, part in zip(
                    op.regions, (range(warps.start, split), range(split, warps.stop)), strict=True
                ):
                    self._block(region.blocks[0], part, depth)
            elif op in self.rest:
                continue
            elif isa(op, *_OTHERS):
                lines.append("  " * depth + _line(op, f"{_other(op)} {place_of([op])}"))
            elif isa(op, scf.ForOp, scf.WhileOp, scf.IfOp):
                self._inner(op, warps, depth)

    def _inner(self, op: Operation, warps: range, depth: int) -> None:
        """A loop or a branch, if anything is in it."""
        lines = self.sections[warps]
        lines.append("  " * depth + f"{'if' if isa(op, scf.IfOp) else 'loop'} {place_of([op])}")
        before = len(lines)
        for number, region in enumerate(op.regions):
            for block in region:
                if number and isa(op, scf.IfOp) and len(block.operations) > 1:
                    lines.append("  " * depth + "else")
                self._block(block, warps, depth + 1)
        if not any(line.strip() != "else" for line in lines[before:]):
            del lines[before - 1 :]


def _other(op: Operation) -> str:
    return next(word for kind, word in _OTHERS.items() if isa(op, kind))


def _line(op: Operation, name: str) -> str:
    """The work's name below the scope that it is in, and where it stands if that is elsewhere."""
    paths = scope_paths(op.location)
    path = ScopePath.of((*paths, name)) if len(paths) == 1 else name
    place = place_of([op])
    return str(path) if place in name or name.startswith("issue copy") else f"{path}  {place}"
