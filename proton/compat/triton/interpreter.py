"""`triton.runtime.interpreter`, as far as programs ask whether a kernel is interpreted."""

from proton.base.knobs import knobs
from proton.runtime.launch.jit import JITFunction


class _Interpreted(type):
    def __instancecheck__(cls, value: object) -> bool:
        if not isinstance(value, JITFunction):
            return False
        return knobs.interpret if value.interpret is None else value.interpret


class InterpretedFunction(metaclass=_Interpreted):
    """Of kernels that run as Python, with `TRITON_INTERPRET=1`, all are instances."""
