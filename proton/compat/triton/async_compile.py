"""`triton.runtime._async_compile`."""

from proton.runtime.tuning import async_compile
from proton.runtime.tuning.async_compile import AsyncCompileMode as AsyncCompileMode
from proton.runtime.tuning.async_compile import FutureKernel as FutureKernel


class _ActiveMode:
    """Triton has a ContextVar here."""

    def get(self, default: AsyncCompileMode | None = None) -> AsyncCompileMode | None:
        """The mode of the `with` block that is open, if one is."""
        found = async_compile.active_mode()
        return default if found is None else found


active_mode = _ActiveMode()
