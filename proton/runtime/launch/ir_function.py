"""The function of a kernel that was compiled from IR: its arguments are those of the IR."""

import inspect
from typing import Any

from proton.base.errors import LaunchError, UnsupportedLanguageConstruct
from proton.base.words import shown
from proton.compiling.ir_source import IRSource
from proton.language import types as ty
from proton.language.ir_text import IRArgument
from proton.language.surroundings import Link
from proton.runtime.backend import Backend, backend_named
from proton.runtime.launch.arguments import Parameter
from proton.runtime.launch.jit import JITFunction


class IRParameter(Parameter):
    """An argument of such a kernel: its type is fixed, and its values are as the IR counts on.

    Elements of an array need the size, and to be floats where the IR has floats: it may not say
    their signs. A number in the place of a pointer is an address.
    """

    def __init__(self, name: str, of: IRArgument, number: int) -> None:
        is_aligned = of.divisor > 1 and of.type.is_ptr()
        super().__init__(
            name,
            constexpr=False,
            type=of.type,
            const_pointer=False,
            specialize=False,
            align=is_aligned,
            num=number,
        )
        self.divisor, self.non_negative = of.divisor, of.non_negative

    def scalar(self, value: Any) -> tuple[Any, Any] | None:
        found = None if value is None else super().scalar(value)
        number = None if found is None else found[1]
        is_multiple = not isinstance(number, int) or number % self.divisor == 0
        if not is_multiple or (isinstance(number, int) and self.non_negative and number < 0):
            wanted = "0 or above" if is_multiple else f"a multiple of {self.divisor}"
            raise LaunchError(
                f"argument {self.name} = {shown(value)} must be {wanted}: the IR counts on it"
            )
        return found

    def _number(self, type_: str | None, number: Any) -> tuple[str, Any]:
        assert self.type is not None
        is_int = isinstance(number, int) and not isinstance(number, bool)
        if is_int and self.type.is_ptr() and 0 <= number < 1 << 64:
            return self.type.short, number
        return super()._number(type_, number)

    def pointer(self, element: ty.dtype) -> str:
        assert self.type is not None
        wanted = self.type.element_ty if isinstance(self.type, ty.pointer_type) else ty.void
        is_alike = wanted.is_floating() == element.is_floating() or element.itemsize == 1
        is_memory = wanted != ty.void and wanted.itemsize == element.itemsize and is_alike
        return super().pointer(wanted if is_memory else element)


class IRFunction(JITFunction):
    """The kernel of an IR source on one back end, where a launch without arrays runs, too."""

    params: list[Any]

    def __init__(self, source: IRSource, backend: Backend) -> None:
        self.ir, self._arguments, self._backend = source.text, source.arguments, backend.name

        def kernel(*args: object) -> None: ...

        kernel.__name__ = kernel.__qualname__ = source.name
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature([inspect.Parameter(n, kind) for n in source.arguments])
        kernel.__signature__ = signature  # type: ignore[attr-defined]
        super().__init__(kernel, debug=False, interpret=False)

    def parameters(self) -> list[Parameter]:
        return [
            IRParameter(name, of, number)
            for number, (name, of) in enumerate(self._arguments.items())
        ]

    @property
    def src(self) -> str:
        """The text of the IR."""
        assert self.ir is not None
        return self.ir.text

    @property
    def file(self) -> str:
        assert self.ir is not None
        return self.ir.file

    def parse(self) -> Any:
        raise UnsupportedLanguageConstruct(
            f"{self.__name__} is IR, of {self.file}: it is launched, and kernels do not call it"
        )

    def dependencies(self) -> dict[str, object]:
        return {}

    def links(self, _seen: tuple[object, ...] = ()) -> list[Link]:
        return []

    def source_key(self, _open: tuple[object, ...] = ()) -> str:
        assert self.ir is not None
        return self.ir.hash

    def home(self, values: Any) -> Backend:
        has_array = any(p.is_array(v) for p, v in zip(self.params, values, strict=True))
        return super().home(values) if has_array else backend_named(self._backend)
