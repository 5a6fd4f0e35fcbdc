"""Builds the IR of a test's kernel, and shows what it knows while compiling."""

from typing import Any

import proton.language as tl
from proton.dialect.context import mlir_context
from proton.frontend import Signature, build_module
from proton.language.function import DeviceFunction

OUT = tl.pointer_type(tl.int32)
SEEN: list[Any] = []


@tl.constexpr_function
def see(*values: Any) -> None:
    SEEN.extend(values)


def build(kernel: DeviceFunction, **constants: Any) -> Any:
    """The verified module; `out` is a pointer and every other runtime parameter an i32."""
    names = [name for name in kernel.arg_names if name not in constants]
    types = {name: OUT if name == "out" else tl.int32 for name in names}
    module = build_module(kernel, Signature(types, constants))
    assert module.operation.verify()
    return module


def text_of(kernel: DeviceFunction, **constants: Any) -> str:
    with mlir_context():
        return str(build(kernel, **constants))
