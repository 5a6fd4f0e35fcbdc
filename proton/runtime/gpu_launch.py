"""Launching on a GPU: a function is generated for what a kernel was given, and does little else.

The first launch with new types describes every argument, compiles, and loads the code. Then two
functions are generated:

- one for each *signature* (which parameters are torch tensors, which are integers): it reads
  addresses, makes the key of the variant, looks it up;
- one for each *variant* (machine code in a context): it writes the arguments into a block of
  memory that is laid out once, and calls the driver.

Whatever the generated code does not expect (another kind of argument, a tensor on another device,
a changed global) goes the long way, which finds the error or generates anew.
"""

import ctypes
import functools
import inspect
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from proton.backends.nvidia.options import GPUOptions, Instrumentation
from proton.base.errors import LaunchError
from proton.base.knobs import knobs
from proton.base.targets import (
    MAX_REGISTERS,
    REGISTER_UNIT,
    SM_REGISTERS,
    WARP_SIZE,
    GPUTarget,
)
from proton.base.words import shown
from proton.compiler import GPUKernel, Specialization, compile_for_gpu, compile_lock
from proton.language import types as ty
from proton.language.surroundings import Link
from proton.runtime import cuda
from proton.runtime import session as sessions
from proton.runtime.arguments import Parameter
from proton.runtime.gpu_arguments import Given, given
from proton.runtime.grid import grid_sizes

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")
# Options of Triton that ask for what is not there.
_UNSUPPORTED = ("launch_cooperative_grid", "launch_pdl", "ptx_options", "sched4reg")
MOST_SPILLS = 64  # bytes a thread that records may cost for the sake of residency
_INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
_thread = threading.local()  # `has_context`: a launch of this thread was profiled before
_MAX_GRID = (2**31 - 1, 65535, 65535)
_CONFIG = "IIIIIIIxxxxQQIxxxx"  # CUlaunchConfig: grid, block, shared bytes, stream, no attributes
_CONFIG_BYTES = struct.calcsize("<" + _CONFIG)
_FORMATS = {  # how an argument lies in its 8 bytes
    "i1": "?7x",
    "i8": "b7x",
    "i16": "h6x",
    "i32": "i4x",
    "i64": "q",
    "u8": "B7x",
    "u16": "H6x",
    "u32": "I4x",
    "u64": "Q",
    "fp32": "f4x",
    "fp64": "d",
}
# What an instrumented kernel takes besides: addresses of the profile buffer and, if the strategy is
# flush, of a heap, and the number of the launch.
_PROFILE_TYPES = {False: ["u64"], True: ["u64", "u64", "u32"]}


class Kernel(Protocol):
    """What a launcher needs of a kernel function (proton.runtime.jit.JITFunction)."""

    __name__: str
    signature: inspect.Signature
    arg_names: list[str]
    params: list[Parameter]
    options: tuple[str, ...]
    watched: list[Link]

    def check_globals(self) -> None: ...
    def watch_globals(self) -> None: ...
    def is_debug(self) -> bool: ...
    def run_any(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


@dataclass
class _Variant:
    """Machine code in a context, ready to be launched."""

    kernel: GPUKernel
    launch: Callable[..., None]  # (grid x, y, z, stream, *all values of parameters)
    function: int  # the driver's handle
    twins: dict[Any, "_Twin"] = field(default_factory=dict)  # by the session's key


@dataclass
class _Twin:
    """The instrumented kernel of a variant, and what instrumentation did to it."""

    variant: _Variant
    perturbation: dict[str, int]


class GPULauncher:
    """The launches of one kernel on GPUs. `launch(grid, *args, **options)` is the short way."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.launch: Callable[..., Any] | None = None
        self._variants: dict[Any, _Variant] = {}  # by the key that generated code makes
        self._loaded: dict[Any, _Variant] = {}  # by everything that the machine code depends on
        self._signature: Any = None

    def first_launch(
        self, grid: Any, values: tuple[Any, ...], options: dict[str, Any]
    ) -> GPUKernel:
        """Describes, compiles, loads, launches; and generates the short way for next time."""
        sizes = _checked_grid(grid)
        described = [given(p, v) for p, v in zip(self.kernel.params, values, strict=True)]
        device = self._device(described)
        self.kernel.check_globals()
        with compile_lock:
            variant = self._variant(device, described, options)
            self._generate(described)
        self._remember(device, described, values, options, variant)
        passed = [
            d.address if d.kind in ("torch", "pointer") else v
            for d, v in zip(described, values, strict=True)
        ]
        session = sessions.current()
        stream = cuda.current_stream(device)
        if session is not None:
            if session.key not in variant.twins:
                self._instrument(session, variant, device, described, options)
            if all(sizes):
                twin = variant.twins[session.key]
                return _launch_profiled(variant, twin, session, device, stream, sizes, passed)
        elif all(sizes):
            variant.launch(*sizes, stream, *passed)
        return variant.kernel

    def _instrument(
        self,
        session: sessions.Session,
        plain: _Variant,
        device: int,
        described: list[Given],
        options: dict[str, Any],
    ) -> None:
        """Compiles the kernel that is launched in its place while the session runs.

        Where its registers cost residency, and the kernel does with so few that they do not, and
        hardly spills, it gets those.
        """
        with compile_lock:
            variant = self._variant(device, described, options, session.key)
            found = _perturbation(variant, plain)
            most = _most_registers(plain.kernel, found["blocks_per_sm_off"])
            if found["blocks_per_sm"] < found["blocks_per_sm_off"] and most < variant.kernel.n_regs:
                fewer = options | {"maxnreg": most}
                other = self._variant(device, described, fewer, session.key)
                instead = _perturbation(other, plain)
                spills = instead["spills"] - instead["spills_off"]
                is_resident = instead["blocks_per_sm"] == instead["blocks_per_sm_off"]
                if is_resident and spills <= MOST_SPILLS:
                    variant, found = other, instead
        plain.twins[session.key] = _Twin(variant, found)

    def compile(
        self,
        target: GPUTarget,
        described: list[Given],
        options: dict[str, Any],
        instrumentation: Instrumentation | None = None,
    ) -> GPUKernel:
        """The kernel for arguments like these; needs no GPU."""
        for name in _UNSUPPORTED:
            if options.get(name):
                raise LaunchError(f"{name}={options[name]!r} is not supported on a GPU")
        chosen = {name: options[name] for name in OPTIONS if options.get(name) is not None}
        types, constants, divisible = [], [], []
        for name, argument in zip(self.kernel.arg_names, described, strict=True):
            if argument.type is None:
                assert argument.constant is not None
                constants.append((name, argument.constant.value))
            else:
                types.append((name, ty.str_to_ty(argument.type)))
                if argument.divisible:
                    divisible.append(name)
        return compile_for_gpu(
            self.kernel,  # type: ignore[arg-type]
            Specialization(tuple(types), tuple(constants), tuple(divisible)),
            GPUOptions(
                target, **chosen, debug=self.kernel.is_debug(), instrumentation=instrumentation
            ),
        )

    def _device(self, described: list[Given]) -> int:
        """The device of all arrays, which must be the current one."""
        current = cuda.current_device()
        for parameter, argument in zip(self.kernel.params, described, strict=True):
            if argument.device is not None and argument.device != current:
                raise LaunchError(
                    f"argument {parameter.name} is on GPU {argument.device}, and the current "
                    f"device is GPU {current}; make its device the current one "
                    "(torch.cuda.device), or move it"
                )
        return current

    def _variant(
        self,
        device: int,
        described: list[Given],
        options: dict[str, Any],
        instrumentation: Instrumentation | None = None,
    ) -> _Variant:
        """The machine code for these arguments, compiled and loaded if it is new."""
        arguments = tuple((d.type, d.constant, d.divisible) for d in described)
        chosen = tuple(options.get(name) for name in OPTIONS + _UNSUPPORTED)
        key = device, arguments, chosen, self.kernel.is_debug(), instrumentation
        variant = self._loaded.get(key)
        if variant is None:
            target = cuda.target_of(device)
            kernel = self.compile(target, described, options, instrumentation)
            self.kernel.watch_globals()
            function = cuda.load(kernel.asm["cubin"], kernel.metadata["symbol"], kernel.shared)
            types = [argument.type for argument in described]
            if kernel.metadata["profile"] is not None:
                types += _PROFILE_TYPES[kernel.metadata["profile"]["strategy"] == "flush"]
            launch = _variant_launch(kernel, function, device, types)
            variant = _Variant(kernel, launch, function)
            self._loaded[key] = variant
        return variant

    def _remember(
        self,
        device: int,
        described: list[Given],
        values: tuple[Any, ...],
        options: dict[str, Any],
        variant: _Variant,
    ) -> None:
        """Files a variant under the key that the generated code makes of these arguments."""
        parts: list[Any] = [device]
        for parameter, argument, value in zip(self.kernel.params, described, values, strict=True):
            parts += _key_parts(parameter, argument, value)
        parts += [options.get(name) for name in self.kernel.options if name in OPTIONS]
        self._variants[tuple(parts)] = variant

    def _generate(self, described: list[Given]) -> None:
        """Generates the short way for arguments of these kinds, unless it is there."""
        kinds = tuple(argument.kind for argument in described)
        signature = kinds, knobs.generation
        if signature != self._signature:
            self._variants.clear()  # what knobs change is not in the key
            self.launch = _signature_launch(self.kernel, self._variants, kinds)
            self._signature = signature


def _launch_profiled(
    plain: _Variant,
    twin: _Twin,
    session: sessions.Session,
    device: int,
    stream: int,
    sizes: tuple[int, int, int],
    passed: Sequence[Any],
) -> GPUKernel:
    """A launch within a session: of the instrumented kernel, if it has scopes."""
    if not hasattr(_thread, "has_context"):
        cuda.enter_primary_context(device)
        _thread.has_context = True
    kernel, recording = twin.variant.kernel, None
    if kernel.metadata["profile"] is not None:
        recording = session.begin_gpu_launch(kernel, sizes, device, stream, twin.perturbation)
    timing = None
    if session.compare_run_time:
        timing = session.begin_timing(kernel, recording, device, stream)
    launched, start = None, time.perf_counter_ns()  # it is not known, if this is interrupted
    try:
        if recording is None:
            plain.launch(*sizes, stream, *passed)
        else:
            twin.variant.launch(*sizes, stream, *passed, *recording.arguments)
        launched = True
    except Exception:
        launched = False
        raise
    finally:
        if timing is not None:
            session.end_timing(timing, stream, launched is True)
        if recording is not None:
            session.end_gpu_launch(recording, launched)
    if kernel.metadata["profile"] is None:
        session.plain_gpu_launch(plain.kernel, sizes, device, start, twin.perturbation)
    return plain.kernel if recording is None else kernel


def _perturbation(profiled: _Variant, plain: _Variant) -> dict[str, int]:
    """What instrumentation did to a kernel: resources with it, and without (`_off`)."""
    found: dict[str, int] = {}
    for suffix, variant in (("", profiled), ("_off", plain)):
        kernel = variant.kernel
        threads = WARP_SIZE * int(kernel.metadata["num_warps"])
        found |= {
            f"registers{suffix}": kernel.n_regs,
            f"spills{suffix}": kernel.n_spills,
            f"shared{suffix}": kernel.shared,
            f"blocks_per_sm{suffix}": cuda.programs_per_sm(
                variant.function, threads, kernel.shared
            ),
        }
    return found


def _most_registers(kernel: GPUKernel, programs: int) -> int:
    """The most registers of a thread with which so many programs fit on an SM."""
    threads = WARP_SIZE * int(kernel.metadata["num_warps"])
    most = SM_REGISTERS // (max(1, programs) * threads)
    return min(MAX_REGISTERS, most - most % REGISTER_UNIT)


def _checked_grid(grid: Any) -> tuple[int, int, int]:
    sizes = grid_sizes(grid)
    for axis, (size, most) in enumerate(zip(sizes, _MAX_GRID, strict=True)):
        if size > most:
            raise LaunchError(f"grid[{axis}] must not exceed {most} on a GPU, got {shown(size)}")
    return sizes


# One signature: how generated code reads an argument of each kind


def _key_parts(parameter: Parameter, argument: Given, value: Any) -> list[Any]:
    """What generated code puts into the key for an argument; it mirrors `_read`."""
    match argument.kind:
        case "torch":
            return [value.dtype, argument.address & 15]
        case "pointer":
            return [argument.type, argument.address & 15]
        case "int":
            return [1 if value == 1 else 3 if value & 15 else 16]
        case "number":
            return []
        case "constexpr":
            return [value if value.__class__ is int else _constant(parameter, value)]
    return [_other(parameter, value)]


def _other(parameter: Parameter, value: Any) -> Any:
    """The key of an argument that generated code does not look into."""
    described = given(parameter, value)
    return described.type, described.constant, described.divisible


def _constant(parameter: Parameter, value: Any) -> Any:
    return parameter.classify(value)[0]


def _pointer(parameter: Parameter, value: Any) -> tuple[int, str | None, int | None]:
    """(address, type, device) of an array that is not a torch tensor."""
    described = given(parameter, value)
    return described.address, described.type, described.device


def _read(name: str, number: int, kind: str) -> tuple[list[str], list[str], str, str]:
    """(statements, parts of the key, what is passed on, a condition for the long way)

    Names of generated code begin with a "$" here.
    """
    match kind:
        case "torch":
            address = f"$a{number}"
            return (
                [f"{address} = {name}.data_ptr()"],
                [f"{name}.dtype", f"{address} & 15"],
                address,
                # Without memory it is empty, or was freed: who has the time finds out.
                f"{name}.get_device() != $device or not {address}",
            )
        case "pointer":
            return (
                [f"$a{number}, $t{number}, $d{number} = $pointer($p{number}, {name})"],
                [f"$t{number}", f"$a{number} & 15"],
                f"$a{number}",
                f"$d{number} != $device",
            )
        case "int":
            test = f"{name}.__class__ is not int or not -0x80000000 <= {name} <= 0x7FFFFFFF"
            part = f"1 if {name} == 1 else 3 if {name} & 15 else 16"
            return [f"if {test}: raise TypeError"], [part], name, ""
        case "number":
            return [f"if {name}.__class__ is not float: raise TypeError"], [], name, ""
        case "constexpr":
            part = f"{name} if {name}.__class__ is int else $constant($p{number}, {name})"
            return [], [part], name, ""
    return [], [f"$other($p{number}, {name})"], name, ""


_MISSING = object()
_TEMPLATE = """
def launch($grid, {parameters}*$rest, {options}**$unknown):
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
        return $long_way($grid, {bound}, $rest, $unknown)
    if $grid.__class__ is not tuple:
        $grid = $checked($grid({bound}) if callable($grid) else $grid)
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
        $twin = $variant.twins.get($session.key)
        if $twin is None:
            return $long_way($grid, {bound}, $rest, $unknown)
        $place = $device, $stream($device), ($x, $y, $z)
        return $profiled($variant, $twin, $session, *$place, ({listed}))
    try:
        $variant.launch($x, $y, $z, $stream($device), {values})
    except $StructError:  # a size that is no integer: the check says so
        $checked($grid)
        raise
    return $variant.kernel
"""


def _signature_launch(
    kernel: Kernel, variants: dict[Any, _Variant], kinds: tuple[str, ...]
) -> Callable[..., Any]:
    """The generated function of a signature: `_TEMPLATE` with what `_read` gives for each kind."""
    names = kernel.arg_names
    reads = [_read(name, n, kind) for n, (name, kind) in enumerate(zip(names, kinds, strict=True))]
    conditions = [condition for *_, condition in reads if condition]
    ours: dict[str, Any] = {
        "MISSING": _MISSING,
        "StructError": struct.error,
        "variants": variants,
        "knobs": knobs,
        "sessions": sessions,
        "watched": kernel.watched,
        "pointer": _pointer,
        "other": _other,
        "constant": _constant,
        "checked": _checked_grid,
        "current_device": cuda.current_device,
        "stream": cuda.current_stream,
        "profiled": _launch_profiled,
        "long_way": functools.partial(_long_way, kernel),
    }
    device = "$current_device()"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        ours["current_device"] = torch._C._cuda_getDevice
        ours["stream"] = torch._C._cuda_getCurrentRawStream
    if "torch" in kinds:
        device = f"{names[kinds.index('torch')]}.get_device()"
        conditions.append("$device != $current_device()")
    conditions += [
        f"$knobs.generation != {knobs.generation}",
        "bool($rest or $unknown)",
    ]
    parameters = ""
    for number, (name, parameter) in enumerate(kernel.signature.parameters.items()):
        ours[f"p{number}"] = kernel.params[number]
        has_default = parameter.default is not parameter.empty
        ours[f"v{number}"] = parameter.default if has_default else _MISSING
        parameters += f"{name}=$v{number}, "
    options = [option for option in kernel.options if option in OPTIONS]
    bound = ", ".join(f"{name!r}: {name}" for name in (*names, *options))
    source = _TEMPLATE.format(
        parameters=parameters,
        options="".join(f"{option}=None, " for option in options),
        device=device,
        statements="\n        ".join(line for lines, *_ in reads for line in lines) or "pass",
        key=", ".join(["$device", *(part for _, parts, *_ in reads for part in parts), *options]),
        conditions=" or ".join(conditions),
        bound=f"{{{bound}}}",
        values=", ".join(value for *_, value, _ in reads),
        listed="".join(f"{value}, " for *_, value, _ in reads),
    )
    prefix = _free_prefix(names)
    namespace = {prefix + name: value for name, value in ours.items()}
    exec(source.replace("$", prefix), namespace)
    launch: Callable[..., Any] = namespace["launch"]
    return launch


def _free_prefix(names: list[str]) -> str:
    """A prefix for our names in generated code: one that no parameter begins with."""
    prefix = "_"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def _long_way(
    kernel: Kernel,
    grid: Any,
    bound: dict[str, Any],
    rest: tuple[Any, ...],
    unknown: dict[str, Any],
) -> Any:
    """What generated code does with a launch that it does not expect."""
    given_ = {
        name: value
        for name, value in bound.items()
        if value is not _MISSING and (value is not None or name not in kernel.options)
    }
    if rest:
        taken = len(kernel.arg_names)
        raise LaunchError(f"{kernel.__name__}() takes {taken} arguments, got {taken + len(rest)}")
    return kernel.run_any(grid, (), given_ | unknown)


# One variant


class _Block:
    """Memory of a launch: the configuration, the arguments (8 bytes each), their addresses."""

    def __init__(self, count: int) -> None:
        size = _CONFIG_BYTES + 8 * count
        self.memory = (ctypes.c_char * (size + 8 * count))()
        self.config = ctypes.addressof(self.memory)
        self.parameters = self.config + size
        addresses = [self.config + _CONFIG_BYTES + 8 * number for number in range(count)]
        struct.pack_into(f"<{count}Q", self.memory, size, *addresses)


def _variant_launch(
    kernel: GPUKernel, function: int, device: int, types: list[str | None]
) -> Callable[..., None]:
    """The generated function of a variant. A block of memory belongs to one call at a time; the
    driver has copied what is in it when it returns."""
    passed = [(number, short) for number, short in enumerate(types) if short is not None]
    pack = struct.Struct("<" + _CONFIG + "".join(_format(short) for _, short in passed))
    free: list[_Block] = []

    def again(block: _Block, status: int) -> None:
        """After a failure: a thread that is new to CUDA has no context yet."""
        if status == _INVALID_CONTEXT:
            cuda.enter_primary_context(device)
            status = cuda.launch_function()(block.config, function, block.parameters, None)
        if status:
            cuda.raise_error(status, f"launch of {kernel.name}")

    namespace = {
        "pop": free.pop,
        "push": free.append,
        "new": lambda: _Block(len(passed)),
        "pack": pack.pack_into,
        "call": cuda.launch_function(),
        "again": again,
        "single": lambda value: ctypes.c_float(value).value,
    }
    threads = WARP_SIZE * int(kernel.metadata["num_warps"])
    taken = "".join(f", a{number}" for number in range(len(types)))
    packed = "".join(f", a{number}" for number, _ in passed)
    # Where a number is too large for fp32 it is infinite.
    rounded = "".join(f", single(a{n})" if s == "fp32" else f", a{n}" for n, s in passed)
    head = f"block.memory, 0, x, y, z, {threads}, 1, 1, {kernel.shared}, stream, 0, 0"
    source = f"""
def launch(x, y, z, stream{taken}):
    try:
        block = pop()
    except IndexError:
        block = new()
    try:
        pack({head}{packed})
    except OverflowError:
        pack({head}{rounded})
    status = call(block.config, {function}, block.parameters, None)
    if status:
        again(block, status)
    push(block)
"""
    exec(source, namespace)
    launch: Callable[..., None] = namespace["launch"]
    return launch


def _format(short: str) -> str:
    if short.startswith("*"):
        return "Q"
    if short not in _FORMATS:
        raise LaunchError(f"a scalar argument cannot be {short}; pass it as fp32")
    return _FORMATS[short]
