"""The fast path: functions generated for a kernel and a *signature*, the kinds of its arguments.

`launch` reads addresses, makes the key of the variant, looks it up and launches it. Whatever it
does not expect (another kind of argument, a tensor on another device, a changed global) takes the
slow path, which finds the error or generates anew. `read` makes the same key, by the same
statements, for the variant to be filed under.
"""

import functools
import struct
import sys
from collections.abc import Callable
from typing import Any

from proton.base.chips.nvidia import MAX_GRID
from proton.base.errors import LaunchError, ProtonError
from proton.base.knobs import knobs
from proton.base.tracebacks import shorten
from proton.base.words import shown
from proton.runtime.backend import KernelFunction
from proton.runtime.launch.grid import grid_sizes
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.arguments import (
    TORCH,
    ArgumentKind,
    Reading,
    read_constant,
    read_descriptor,
    read_other,
    read_pointer,
)
from proton.runtime.nvidia.variant import GPUVariant, run_generated
from proton.runtime.session import session as sessions

NAME = "cuda"  # of the back end
# The launch options that machine code depends on.
OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "debug",
    "sanitize_overflow",
    "launch_pdl",
    "launch_cooperative_grid",
    "default_dot_input_precision",
    "arch",
    "ir_override",
)


def checked_grid(grid: object) -> tuple[int, int, int]:
    sizes = grid_sizes(grid)
    for axis, (size, most) in enumerate(zip(sizes, MAX_GRID, strict=True)):
        if size > most:
            raise LaunchError(f"grid[{axis}] must not exceed {most} on a GPU, got {shown(size)}")
    return sizes


def rest_of(kernel: KernelFunction) -> str | None:
    """The parameter that takes any number of arguments, if there is one."""
    parameters = kernel.signature.parameters.values()
    return next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)


def known_options(kernel: KernelFunction) -> list[str]:
    """The launch options that the machine code depends on, but for those that are parameters of the
    kernel, too."""
    return [option for option in kernel.options if option in OPTIONS]


_MISSING = object()
# Both make the key of the machine code in the same way: one files it, the other looks it up.
_TEMPLATE = """
def read($device, {names}{options}):
    {read}
    return ({key}), ({listed})

def launch($grid, {parameters}{rest}{options}**$unknown):
    try:
        try:
            $device = {device}
            {statements}
            $variant = $variants[{key}]
            $long = {conditions}
        except (KeyError, AttributeError, TypeError):
            $long = True
        for $namespace, $name, $value in $watched:
            if $namespace.get($name) is not $value:
                $long = True
        if $long:
            return $slow_path($grid, {bound}, $rest, $unknown)
        if $grid.__class__ is not tuple:
            try:
                $grid = $checked($grid({known}) if callable($grid) else $grid)
            except (KeyError, TypeError):  # the slow path says what is wrong with the function
                return $slow_path($grid, {bound}, $rest, $unknown)
        try:
            $x, $y, $z = $grid if len($grid) == 3 else (*$grid, 1, 1)[:3]
            $bad = (
                not 0 < $x <= 0x7FFFFFFF
                or not 0 < $y < 65536
                or not 0 < $z < 65536
                or len($grid) > 3
            )
        except (TypeError, ValueError):
            $bad = True
        if $bad and not all($checked($grid)):
            return $variant.kernel
        $session = $sessions._current
        if $session is not None:
            $instrumented = $variant.last_instrumented
            if $instrumented is None or $instrumented.key is not $session.instrumentation:
                $instrumented = $variant.find_instrumented($session.instrumentation)
                if $instrumented is None:
                    return $slow_path($grid, {bound}, $rest, $unknown)
            return $session.recorders["{back_end}"].launch(
                $variant, $instrumented, $device, $stream($device), ($x, $y, $z), ({listed})
            )
        try:
            $variant.launch($x, $y, $z, $stream($device), {values})
        except $StructError:  # a size that is no integer: the check says so
            $checked($grid)
            raise
        return $variant.kernel
    except $ProtonError as $error:
        $shorten($error)
        raise
"""


def _names(
    kernel: KernelFunction, variants: dict[tuple[object, ...], GPUVariant]
) -> dict[str, object]:
    """What generated code knows, by its own names."""
    ours: dict[str, object] = {
        "MISSING": _MISSING,
        "StructError": struct.error,
        "ProtonError": ProtonError,
        "shorten": shorten,
        "variants": variants,
        "knobs": knobs,
        "sessions": sessions,
        "watched": kernel.watched,
        "pointer": read_pointer,
        "descriptor": read_descriptor,
        "other": read_other,
        "constant": read_constant,
        "checked": checked_grid,
        "current_device": cuda.device_query(),
        "stream": cuda.current_stream,
        "said": functools.partial(_said, kernel),
        "slow_path": functools.partial(_slow_path, kernel),
    }
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        ours["stream"] = torch._C._cuda_getCurrentRawStream
    return ours


def generated(
    kernel: KernelFunction,
    variants: dict[tuple[object, ...], GPUVariant],
    kinds: tuple[ArgumentKind, ...],
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`read` and `launch`: `_TEMPLATE` with how each kind is read. Within a session `launch` hands
    over to the recorder (recorder.py)."""
    names = kernel.arg_names
    reads = [kind.reading(name, n) for n, (name, kind) in enumerate(zip(names, kinds, strict=True))]
    conditions = [reading.unexpected for reading in reads if reading.unexpected]
    ours, device = _names(kernel, variants), "$current_device()"
    if TORCH in kinds:
        device = f"{names[kinds.index(TORCH)]}.get_device()"
        conditions.append("$device != $current_device()")
    conditions += [
        f"$knobs.generation != {knobs.generation}",
        "bool($rest or $unknown)",
    ]
    parameters, takes_rest = "", rest_of(kernel) is not None
    if takes_rest:
        ours["rest"] = ()
    for number, (name, parameter) in enumerate(kernel.signature.parameters.items()):
        ours |= kinds[number].names(kernel.params[number], number)
        has_default = parameter.default is not parameter.empty
        ours[f"v{number}"] = parameter.default if has_default else _MISSING
        is_rest = parameter.kind is parameter.VAR_POSITIONAL
        parameters += f"*{name}, " if is_rest else f"{name}=$v{number}, "
    options = known_options(kernel)
    has_no_options = " is ".join((*options, "None"))  # where a grid is asked this is quickest
    statements = [line for reading in reads for line in reading.statements] or ["pass"]
    source = _TEMPLATE.format(
        names="".join(f"{name}, " for name in names),
        parameters=parameters,
        rest="" if takes_rest else "*$rest, ",
        options="".join(f"{option}=None, " for option in options),
        device=device,
        read="\n    ".join(statements),
        statements="\n            ".join(statements),
        back_end=NAME,
        key="".join(f"{part}, " for part in ["$device", *_parts(reads), *options]),
        conditions=" or ".join(conditions),
        known=f"{_dict(names)} if {has_no_options} else $said({_dict([*names, *options])})",
        bound=_dict([*names, *options]),
        values=", ".join(reading.passed for reading in reads),
        listed="".join(f"{reading.passed}, " for reading in reads),
    )
    prefix = _free_prefix(names)
    namespace: dict[str, Any] = {prefix + name: value for name, value in ours.items()}
    run_generated(source.replace("$", prefix), namespace)
    launch = namespace["launch"]
    launch.__qualname__ = kernel.__name__  # for Python's errors of a call
    return namespace["read"], launch


def _dict(names: list[str]) -> str:
    """The code of a dict of variables by name."""
    return f"{{{', '.join(f'{name!r}: {name}' for name in names)}}}"


def _parts(reads: list[Reading]) -> list[str]:
    return [part for reading in reads for part in reading.key]


def _free_prefix(names: list[str]) -> str:
    """A prefix for our names in generated code: one that no parameter begins with."""
    prefix = "_"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def _said(kernel: KernelFunction, bound: dict[str, object]) -> dict[str, object]:
    """What a launch was given, of all that it may be."""
    return {
        name: value
        for name, value in bound.items()
        if value is not _MISSING and (value is not None or name not in kernel.options)
    }


def _slow_path(
    kernel: KernelFunction,
    grid: object,
    bound: dict[str, object],
    rest: tuple[object, ...],
    unknown: dict[str, object],
) -> Any:
    """What generated code does with a launch that it does not expect."""
    given_ = _said(kernel, bound)
    if rest:
        taken = len(kernel.arg_names)
        raise LaunchError(f"{kernel.__name__}() takes {taken} arguments, got {taken + len(rest)}")
    rest_name = rest_of(kernel)
    args: tuple[object, ...] = ()
    if rest_name is not None:  # what comes before it has no names, where there is more
        before = kernel.arg_names[: kernel.arg_names.index(rest_name)]
        more = given_.pop(rest_name)
        assert isinstance(more, tuple)
        args = (*(given_.pop(name) for name in before if name in given_), *more)
    return kernel.run_any(grid, args, given_ | unknown)
