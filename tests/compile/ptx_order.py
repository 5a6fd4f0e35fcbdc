"""The work of a kernel in the order in which it runs, out of its PTX.

LLVM may lay a loop out from its middle, where records have branches of their own, so the order of
the text says less than the order of the blocks.
"""

import re
from collections.abc import Iterator

# An instruction that records: it is marked, or a barrier ahead of the end: that of the program says
# of how many.
RECORDS = re.compile(r"// proton|\bbar\.sync\s+0, \d+;|\bbar\.warp\.sync\b")
WORK = re.compile(
    r"\b((?:cp\.async|wgmma)\.wait_group[.\w]*\s+\d+|wgmma\.mma_async|wgmma\.(?:fence|commit_group)|mma\.sync|ldmatrix|stmatrix|"
    r"cp\.async\.[.\w]*|cp\.reduce[.\w]*|mbarrier\.[.\w]*|fence\.proxy|"
    r"bar\.(?:sync|arrive)|barrier[.\w]*|(?:ld|st|atom|red)\.(?:volatile\.)?global[.\w]*)"
)
LABEL = re.compile(r"\$L__BB\d+_\d+(?=:)")
BRANCH = re.compile(r"(@!?%p\d+\s+)?bra(?:\.uni)?\s+(\$L__BB\d+_\d+);")


def work(ptx: str) -> list[str]:
    """The accesses, copies, products and barriers of a module's functions, those of records left
    out. A block comes behind what falls through or jumps to it, the other side of a branch when
    the way ends."""
    return [name for body in re.split(r"\n\.(?:visible|func)", ptx)[1:] for name in _function(body)]


def _function(body: str) -> Iterator[str]:
    blocks: dict[str, list[str]] = {"": []}
    follows: dict[str, str] = {}
    current = ""
    for line in body.splitlines():
        if label := LABEL.match(line):
            follows[current] = current = label[0]
            blocks[current] = []
        else:
            blocks[current].append(line)
    pending, seen = [""], set[str]()
    while pending:
        label = pending.pop()
        while label is not None and label not in seen:
            seen.add(label)
            following = follows.get(label)
            for line in blocks[label]:
                if branch := BRANCH.search(line):
                    if not branch[1]:
                        following = branch[2]
                        break
                    pending.append(branch[2])
                elif not RECORDS.search(line):
                    yield from WORK.findall(line)
            label = following
