"""The registers of warp groups that give some to each other (PTX: `setmaxnreg`)."""

from proton.base.chips.chip import Chip
from proton.base.targets import WARP_SIZE
from proton.layout.tensor_cores import GROUP_WARPS

MOST_AT_FIRST = 248  # registers of a thread before groups change them
MOST_OF_GROUP = 240  # what a group is given at most: the rest is for what ptxas needs itself
LEAST_OF_GROUP = 24  # what `setmaxnreg` takes at least, in steps
STEP = 8
PRODUCER = 40
# Where less is spilled with these. With the fewest, consumers have 8 more each: attention takes
# 1.09 of the time, and two of four other kernels 0.95 and 0.97 (H200, 7fb79282). A producer whose
# threads copy has addresses: with 40, one that copies two blocks of 128 x 128 of fp16 spills 104
# bytes beside 4 warps and 88 beside 8, and none with 56 (ptxas, 86585073).
INSTEAD, COPYING_INSTEAD = LEAST_OF_GROUP, 56


def at_first(chip: Chip, warps: int) -> int:
    """What a thread of a program of so many warps begins with."""
    return min(chip.most_registers(1, warps * WARP_SIZE), MOST_AT_FIRST)


def of_consumers(chip: Chip, warps: int, producer: int = PRODUCER) -> int:
    """What a producer, which has a warp group, leaves a thread of so many warps."""
    groups = warps // GROUP_WARPS
    left = (at_first(chip, warps + GROUP_WARPS) * (groups + 1) - producer) // groups
    return min(left - left % STEP, MOST_OF_GROUP)
