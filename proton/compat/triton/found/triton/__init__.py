"""What `import triton` finds in a process that has the `sys.path` of one in which Proton stands for
Triton: Proton, too. Torch's processes that compile are such."""

import importlib
import sys

from proton.compat.triton import install_as_triton

del sys.modules[__name__]
install_as_triton()
importlib.import_module(__name__)
