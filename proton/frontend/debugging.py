"""Rules of what a kernel tells its author, and of barriers: while compiling and while running."""

from proton.base.errors import CompileTimeAssertionFailure
from proton.base.targets import WARP_SIZE, GPUTarget
from proton.base.words import shown
from proton.dialect import tt
from proton.dialect.attributes import ASKS_WARPS
from proton.dialect.builtin import integer, string_attr
from proton.dialect.mlir import ir
from proton.frontend.builder import as_tensor, at_compile_time, error, truth
from proton.frontend.interface import CodeGenerator
from proton.frontend.promotion import cast
from proton.frontend.rules import generator_rule, rule
from proton.language import core
from proton.language import types as ty
from proton.language.extra import cuda
from proton.language.value import tensor


@generator_rule(core.static_print)
def _static_print(g: CodeGenerator, *values: object, **kwargs: object) -> None:
    if g.prints:
        at_compile_time("tl.static_print", "it takes what print takes", print, *values, **kwargs)


@rule(core.static_assert)
def _static_assert(cond: object, msg: object = "") -> None:
    if isinstance(cond, tensor):
        raise error("tl.static_assert takes a constexpr", "use tl.device_assert for tensors")
    if not truth(cond):
        raise CompileTimeAssertionFailure(
            f"static assertion failed{f': {msg}' if msg else ''}",
            hint="the condition is known while compiling: see the constexpr arguments",
        )


@generator_rule(core.device_assert)
def _device_assert(g: CodeGenerator, cond: object, msg: object = "", mask: object = None) -> None:
    g.device_assert(cond, msg, mask)


@rule(core.device_print)
def device_print(prefix: object = "", *args: object, hex: object = False) -> None:
    """A line for each element of each argument."""
    if not isinstance(prefix, str) or not prefix.isprintable():
        found = prefix.type if isinstance(prefix, tensor) else shown(prefix)
        raise error(
            f"tl.device_print: the first argument must be a printable constexpr str, got {found}",
            'write tl.device_print("name", value), or tl.static_print for constexprs',
        )
    if len(args) > tt.MAX_PRINTED:
        raise error(
            f"tl.device_print shows up to {tt.MAX_PRINTED} values, got {len(args)}",
            "print them in several calls",
        )
    values = [as_tensor(value, "a value of tl.device_print") for value in args]
    signed = [value.dtype.is_int_signed() for value in values]
    # fp8 is a type of memory: its values are shown as those of fp16, which has them all.
    values = [cast(v, ty.float16) if v.dtype.is_fp8() else v for v in values]
    tt.PrintOp(
        string_attr(_prefix(prefix, bool(values))),
        ir.BoolAttr.get(truth(hex)),
        ir.DenseI32ArrayAttr.get([int(flag) for flag in signed]),
        **{f"value{n}": value.handle for n, value in enumerate(values)},
    )


def _prefix(text: str, has_values: bool) -> str:
    """What stands in front of values, as Triton writes it: it ends in ": ", and begins with a blank
    if it is more than that."""
    if has_values:
        stem = text.removesuffix(" ")
        text = f"{stem} " if stem.endswith(":") else f"{stem}: "
    return f" {text}" if len(text) > len(": ") and not text.startswith(" ") else text


@rule(core.assume)
def _assume(cond: object) -> None:
    if not isinstance(cond, tensor) and not cond:
        raise error("tl.assume: the condition is false", "see the constexpr arguments")
    as_tensor(cond)


@rule(core.condition)
def _condition(arg1: object, disable_licm: object = False) -> object:
    if isinstance(disable_licm, tensor):
        raise error("tl.condition: disable_licm must be a constexpr bool", "pass True or False")
    return arg1


@rule(core.debug_barrier)
def _debug_barrier() -> None:
    tt.DebugBarrierOp()


@rule(cuda.gdc_wait)
def _gdc_wait() -> None:
    tt.GridDependencyOp(string_attr("wait"))


@rule(cuda.gdc_launch_dependents)
def _gdc_launch_dependents() -> None:
    tt.GridDependencyOp(string_attr("launch_dependents"))


@rule(cuda.globaltimer)
def _globaltimer() -> tensor:
    return _special_register("globaltimer", ty.int64)


@generator_rule(cuda.num_warps)
def _num_warps(g: CodeGenerator) -> int:
    if not g.num_warps:
        raise error(
            "how many warps the launch has is not known in a function that the kernel is given",
            "call tl.extra.cuda.num_warps() in the kernel, and pass the number on",
        )
    if isinstance(g.target, GPUTarget):
        module = ir.InsertionPoint.current.block.owner
        while (around := module.parent) is not None:
            module = around
        module.operation.attributes[ASKS_WARPS] = ir.UnitAttr.get()
    return g.num_warps


@generator_rule(cuda.num_threads)
def _num_threads(g: CodeGenerator) -> int:
    return WARP_SIZE * _num_warps(g)


@rule(cuda.smid)
def _smid() -> tensor:
    return _special_register("smid", ty.int32)


def _special_register(name: str, type_: ty.dtype) -> tensor:
    result = integer(type_.primitive_bitwidth)
    return tensor(tt.SpecialRegisterOp(string_attr(name), result).result, type_)
