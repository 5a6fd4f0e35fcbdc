"""What `import triton` finds in a process that was started by one in which Proton stands for Triton,
and has its `sys.path`: Proton, too. Torch's processes that compile are such."""

import importlib
import sys

from proton.compat.triton import install_as_triton

del sys.modules[__name__]
install_as_triton()
importlib.import_module(__name__)
