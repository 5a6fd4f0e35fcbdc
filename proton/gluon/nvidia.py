"""What the host passes to kernels in Gluon: descriptors of tensors, with the layout of memory that
TMA copies blocks to. `hopper` is where Triton has it."""

import sys

hopper = sys.modules[__name__]
blackwell = hopper
