"""Errors, where Triton has them; they are at home in `proton.base.errors`."""

from proton.base.errors import AutotunerError as AutotunerError
from proton.base.errors import OutOfResources as OutOfResources
from proton.base.errors import ProtonError
from proton.base.errors import PTXASError as PTXASError
from proton.base.errors import TritonError as TritonError

InterpreterError = ProtonError  # interpreted kernels raise what compiled ones do, and BoundsError
