"""The module of a kernel: a function with typed arguments, whose body `Generator` compiles."""

from collections.abc import Sequence
from typing import Any

from proton.base.errors import CompilationError, SourceSpan
from proton.base.targets import CPUTarget, Target
from proton.dialect.attributes import KERNEL
from proton.dialect.mlir import Block, Location, Module, func, ir
from proton.frontend import calls, scopes
from proton.frontend.arguments import argument_attributes, argument_types
from proton.frontend.codegen import Generator
from proton.frontend.flow import FELL_OFF, Returned
from proton.frontend.interface import DOT_PRECISION
from proton.frontend.promotion import cast
from proton.frontend.rules import GENERATOR_RULES
from proton.language import scaled
from proton.language import types as ty
from proton.language.function import Builtin, DeviceFunction
from proton.language.signature import Signature
from proton.language.value import tensor


def build_module(
    fn: DeviceFunction,
    signature: Signature,
    *,
    debug: bool = False,
    sanitize_overflow: bool = True,
    dot_precision: str = DOT_PRECISION,
    keep_calls: bool = False,
    target: Target | None = None,
    num_warps: int = 0,
    num_ctas: int = 1,
    generator: type[Generator] = Generator,
) -> Module:
    """The `ir.Module` with one public function: the kernel for this signature.

    With `keep_calls`, `@proton.jit(noinline=True)` functions are private functions beside it. The
    kernel may ask what `target` is, by default the CPU, and how many warps it has, there 0 without
    layouts. `dot_precision` is that of products which ask for none.
    Call it inside `mlir_context()`. Raises CompilationError with the place in the source.
    """
    span = SourceSpan(file=fn.file, line=fn.parse().lineno)
    location = ir.Location.file(span.file, span.line, 1)
    module = ir.Module.create(location)
    with ir.InsertionPoint(module.body), location:
        inputs = argument_types(signature)
        function = func.FuncOp(fn.name_of(signature), (inputs, []))
        function.attributes[KERNEL] = ir.UnitAttr.get()
        function.arg_attrs = [
            ir.DictAttr.get(argument_attributes(name, type_, signature))
            for name, type_ in signature.types.items()
        ]
        block = function.add_entry_block([location] * len(inputs))
    functions = calls.Functions(module) if keep_calls else None
    with ir.InsertionPoint(block), location:
        env = signature.assembled(_values(signature, block))
        g = generator(
            fn,
            env,
            debug=debug,
            sanitize_overflow=sanitize_overflow,
            dot_precision=dot_precision,
            functions=functions,
            target=target or CPUTarget(),
            num_warps=num_warps,
            num_ctas=num_ctas,
        )
        outcome = g.run(fn.parse().body, tail=True)
        scopes.check_closed(g)
        if isinstance(outcome, Returned) and outcome.value not in (None, FELL_OFF):
            raise CompilationError(
                f"kernel {fn.__name__} returns a value", span, "store it through a pointer"
            )
        func.ReturnOp([])
    return module


class _Placed(Generator):
    """Compiles what stands for one op of another text, which is all at the place of that."""

    place: Location

    def _plain_location(self) -> Location:
        return self.place if self.caller is None else super()._plain_location()


def emitted(
    fn: Builtin | DeviceFunction,
    arguments: Sequence[object],
    location: Location,
    **options: object,
) -> Any:
    """What a function of the language gives, or an op whose rule asks the generator. It is emitted
    where IR goes now, in the place of an op at `location`. Raises CompilationError."""
    g = _Placed(scaled.dot_scaled, {}, target=CPUTarget())
    g.place = location
    with location:
        if isinstance(fn, DeviceFunction):
            return g.call(fn, arguments, options)
        return GENERATOR_RULES[fn](g, *arguments, **options)


def _values(signature: Signature, block: Block) -> dict[str, object]:
    """What each parameter of the function, or constant, is in the kernel."""
    values: dict[str, object] = {name: ty.unwrap(v) for name, v in signature.constants.items()}
    for (name, type_), value in zip(signature.types.items(), block.arguments, strict=True):
        values[name] = cast(tensor(value, ty.passed_as(type_)), type_)
    return values
