"""Launching on a GPU: a function is generated for what a kernel was given, and does little else.

The first launch with new types describes every argument, compiles, and loads the code. Then two
functions are generated:

- one for each *signature* (which parameters are torch tensors, which are integers): it reads
  addresses, makes the key of the variant, looks it up;
- one for each *variant* (machine code in a context): it writes the arguments into a block of
  memory that is laid out once, and calls the driver.

Whatever the generated code does not expect (another kind of argument, a tensor on another device,
a changed global) takes the slow path, which finds the error or generates anew.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from proton.backends.compiler import CompiledKernel
from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.target import NVIDIA, GPUKernel
from proton.base.chips.chip import Chip
from proton.base.errors import LaunchError
from proton.base.knobs import knobs
from proton.base.targets import WARP_SIZE, GPUTarget, Target, gpu_of
from proton.compiler import Request, compile_function, compile_lock
from proton.language import types as ty
from proton.runtime.backend import KernelFunction, Launcher
from proton.runtime.launch.arguments import flat, signature_of
from proton.runtime.launch.hooks import around_launches, loaded
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.arguments import Given, given, stand_in
from proton.runtime.nvidia.fast_path import (
    NAME,
    OPTIONS,
    checked_grid,
    generated,
    known_options,
)
from proton.runtime.nvidia.recorder import GPURecorder
from proton.runtime.nvidia.variant import GPUVariant, InstrumentedVariant, variant_launch
from proton.runtime.session import session as sessions
from proton.trace.instrumentation import Instrumentation

# Options of Triton that ask for what is not there.
_UNSUPPORTED = ("ptx_options", "sched4reg")
# Libraries of bitcode to link, by name. libdevice is linked wherever it is called.
_LIBRARIES, _KNOWN_LIBRARY = "extern_libs", "libdevice"
_BY_POINTERS = "by pointers"  # of a variant: TMA could not have its strides
LAUNCH_OPTIONS = (*OPTIONS, *_UNSUPPORTED, _LIBRARIES)
# What a fast path reads of a launch: the key of its variant, and what that is passed.
_Reader = Callable[..., tuple[tuple[object, ...], tuple[Any, ...]]]
_Variants = dict[tuple[object, ...], GPUVariant]
T = TypeVar("T")  # a kernel, or its code on a device
MOST_SPILLS = 160  # bytes per thread that records may cost for the sake of occupancy
# What an instrumented kernel takes besides: addresses of the profile buffer and, if it takes
# chunks, of a slab, and the number of the launch.
_PROFILE_TYPES = {False: ["u64"], True: ["u64", "u64", "u32"]}


class GPULauncher(Launcher):
    """The launches of one kernel on GPUs."""

    def __init__(self, kernel: KernelFunction) -> None:
        self.kernel = kernel
        # By the key that generated code makes.
        self._variants: _Variants = {}
        self._loaded: dict[
            object, GPUVariant
        ] = {}  # by everything that the machine code depends on
        self._signature: object = None
        self._read: _Reader

    def launch(
        self, grid: object, values: tuple[object, ...], options: dict[str, object]
    ) -> GPUKernel:
        """Describes, compiles, loads, launches; and generates the fast path for next time."""
        sizes = checked_grid(grid)
        described = [given(p, v) for p, v in zip(self.kernel.params, values, strict=True)]
        device = self._device(described)
        self.kernel.check_globals()
        with compile_lock:
            variant = self._variant(device, described, options)
            read, variants = self._generate(described)
        known = [options.get(name) for name in known_options(self.kernel)]
        key, passed = read(device, *values, *known)
        variants[key] = variant
        session = sessions.current()
        stream = cuda.current_stream(device)
        if session is not None:
            if session.instrumentation not in variant.instrumented:
                self._instrument(session, variant, device, described, options)
            if all(sizes):
                instrumented = variant.instrumented[session.instrumentation]
                recorder: GPURecorder = session.recorders[NAME]  # type: ignore[assignment]
                return recorder.launch(variant, instrumented, device, stream, sizes, passed)
        elif all(sizes):
            variant.launch(*sizes, stream, *passed)
        return variant.kernel

    def _instrument(
        self,
        session: sessions.Session,
        plain: GPUVariant,
        device: int,
        described: list[Given],
        options: dict[str, object],
    ) -> None:
        """Compiles the kernel that is launched in its place while the session runs."""
        key = session.instrumentation
        with compile_lock:
            plain.instrumented[key] = instrumented(
                key, plain, lambda more: self._variant(device, described, options | more, key)
            )

    def compile(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: Target | None = None,
        records: Instrumentation | None = None,
    ) -> GPUKernel:
        chip, described = self._stand_ins(values, target)
        plain = self.compile_described(chip, described, options)
        if records is None:
            return plain

        def make(more: dict[str, object]) -> GPUKernel:
            return self.compile_described(chip, described, options | more, records)

        return _keeping_occupancy(plain, make, lambda kernel: kernel, _programs_per_sm)

    def loaded(self, values: tuple[object, ...], options: dict[str, object]) -> GPUKernel:
        described = [given(p, v) for p, v in zip(self.kernel.params, values, strict=True)]
        with compile_lock:
            return self._variant(self._device(described), described, options).kernel

    def compiled(self) -> dict[object, CompiledKernel]:
        return {key: variant.kernel for key, variant in self._loaded.items()}

    def forget(self) -> None:
        self._loaded.clear()
        self._variants.clear()

    def request(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: Target | None = None,
        records: Instrumentation | None = None,
    ) -> Request:
        return self._request(*self._stand_ins(values, target), options, records)

    def _stand_ins(
        self, values: tuple[object, ...], target: Target | None
    ) -> tuple[GPUTarget, list[Given]]:
        """The target, and what values say that nothing is launched with."""
        described = [stand_in(p, v) for p, v in zip(self.kernel.params, values, strict=True)]
        if target is None:
            target = cuda.target_of(cuda.current_device())
        return gpu_of(target), described

    def compile_described(
        self,
        target: GPUTarget,
        described: list[Given],
        options: dict[str, object],
        instrumentation: Instrumentation | None = None,
    ) -> GPUKernel:
        """The kernel for arguments like these; needs no GPU."""
        kernel = self._compile(self._request(target, described, options, instrumentation))
        if self._has_strides(kernel, described):
            return kernel
        plain = self._request(target, described, options, instrumentation, describes=False)
        return self._compile(plain)

    def _compile(self, request: Request) -> GPUKernel:
        kernel: GPUKernel = compile_function(*request)
        return kernel

    def _request(
        self,
        target: GPUTarget,
        described: list[Given],
        options: dict[str, object],
        instrumentation: Instrumentation | None = None,
        describes: bool = True,
    ) -> Request:
        for name in _UNSUPPORTED:
            if options.get(name):
                raise LaunchError(f"{name}={options[name]!r} is not supported on a GPU")
        _check_libraries(options.get(_LIBRARIES))
        given_ = {name: options[name] for name in OPTIONS if options.get(name) is not None}
        chosen: dict[str, Any] = _by_knobs() | given_
        target = target.of_arch(arch) if (arch := chosen.pop("arch", None)) else target
        return Request(
            NVIDIA,
            self.kernel,  # type: ignore[arg-type]
            signature_of(self.kernel.arg_names, [d.argument for d in described]),
            GPUOptions(
                target,
                **{**chosen, "debug": self.kernel.checks(options)[0]},
                instrumentation=instrumentation,
                chooses_warps="num_warps" not in chosen,
                describes_loads=describes,
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
        options: dict[str, object],
        instrumentation: Instrumentation | None = None,
    ) -> GPUVariant:
        """The machine code for these arguments, compiled and loaded if it is new."""
        arguments = tuple(d.argument for d in described)
        chosen = tuple(options.get(name) for name in OPTIONS + _UNSUPPORTED)
        by_knobs = tuple(_by_knobs().items())
        checks = self.kernel.checks(options)
        key: tuple[object, ...]
        key = device, arguments, chosen, by_knobs, checks, instrumentation
        given_ = cuda.target_of(device), described, options, instrumentation
        variant = self._loaded.get(key)
        kernel = self._compile(self._request(*given_)) if variant is None else variant.kernel
        if not self._has_strides(kernel, described):
            key = *key, _BY_POINTERS
            variant = self._loaded.get(key)
            if variant is None:
                kernel = self._compile(self._request(*given_, describes=False))
        if variant is None:
            self.kernel.watch_globals()
            leaves = flat(d.argument for d in described)
            types = [short for argument in leaves for short in _passed(argument.type)]
            variant = variant_of(kernel, device, types)
            self._loaded[key] = variant
        return variant

    def _has_strides(self, kernel: GPUKernel, described: list[Given]) -> bool:
        """True if no argument that a kernel has as a stride of what TMA copies is 0 or negative."""
        needed = {name.partition(".")[0].partition("[")[0] for name in kernel.stride_arguments}
        pairs = zip(self.kernel.params, described, strict=True)
        return all(d.may_be_stride for parameter, d in pairs if parameter.name in needed)

    def _generate(self, described: list[Given]) -> tuple[_Reader, _Variants]:
        """Generates the fast path for arguments of these kinds, unless it is there; what makes a
        key, and where it looks. Neither knobs nor kinds are in the key, and a fast path may have
        been kept, so each has its own variants."""
        kinds = tuple(argument.kind for argument in described)
        signature = kinds, knobs.generation
        if signature != self._signature:
            self._variants = {}
            self._read, self.kernel.fast_path = generated(self.kernel, self._variants, kinds)
            self._signature = signature
            # The long way calls hooks; without them the fast one is made anew.
            if around_launches() or self.kernel.pre_run_hooks:
                self.kernel.fast_path = None
        return self._read, self._variants


def variant_of(kernel: GPUKernel, device: int, types: list[str | None]) -> GPUVariant:
    """A kernel's code, loaded on a device; `types` are of what the values of a launch become."""
    _check_runs_on(kernel.metadata.target, cuda.target_of(device))
    function = _loaded(kernel)
    added = [] if kernel.profile is None else _PROFILE_TYPES[kernel.profile.takes_chunks]

    def load_again() -> Callable[..., None]:
        return variant_launch(kernel, _load(kernel), device, types, added)

    launch = variant_launch(kernel, function, device, types, added)
    return GPUVariant(kernel, launch, function, load_again)


def instrumented(
    key: Instrumentation, plain: GPUVariant, make: Callable[[dict[str, object]], GPUVariant]
) -> InstrumentedVariant:
    """The kernel that is launched in a plain one's place while a session runs: `make` compiles it,
    with options besides the plain one's."""

    def fit(variant: GPUVariant) -> int:
        threads = WARP_SIZE * int(variant.kernel.metadata["num_warps"])
        return cuda.programs_per_sm(variant.function, threads, variant.kernel.shared)

    variant = _keeping_occupancy(plain, make, lambda variant: variant.kernel, fit)
    return InstrumentedVariant(key, variant, _facts(variant, plain))


def _keeping_occupancy(
    plain: T,
    make: Callable[[dict[str, object]], T],
    kernel: Callable[[T], GPUKernel],
    fit: Callable[[T], int],
) -> T:
    """What `make` compiles with records, by options besides those of the plain one. Where its
    registers cost occupancy, and the kernel does with so few that they do not, and hardly spills,
    it gets those. So it does where the plain one has more than it would, for the sake of its loads.
    `fit` says how many programs an SM holds."""
    options = kernel(plain).metadata.options
    assert isinstance(options, GPUOptions)
    # Those that were chosen for the plain kernel.
    warps = {"num_warps": kernel(plain).metadata["own_warps"]} if options.chooses_warps else {}
    first, wanted = make(warps), fit(plain)
    chip: Chip = kernel(plain).metadata.target.facts
    most = chip.most_registers(wanted, WARP_SIZE * int(kernel(plain).metadata["num_warps"]))
    has_more = fit(first) > wanted and options.maxnreg is None
    has_more = has_more and kernel(plain).has_most_registers
    if not has_more and (fit(first) >= wanted or most >= kernel(first).n_regs):
        return first
    other = make(warps | {"maxnreg": most})
    spills = kernel(other).n_spills - kernel(plain).n_spills
    return other if fit(other) == wanted and spills <= MOST_SPILLS else first


def _programs_per_sm(kernel: GPUKernel) -> int:
    """How many programs of a kernel an SM of its target holds, which need not be there."""
    threads = WARP_SIZE * int(kernel.metadata["num_warps"])
    target: GPUTarget = kernel.metadata.target
    by_registers = target.facts.programs_by_registers(kernel.n_regs, threads)
    return min(by_registers, target.facts.programs_per_sm(threads, kernel.shared))


def _check_runs_on(made_for: GPUTarget, target: GPUTarget) -> None:
    """Raises LaunchError unless a GPU runs machine code that is for another one: that of an earlier
    GPU of its generation, before 9.0, whose code is for itself alone."""
    made, own = made_for.capability, target.capability
    is_alike = made // 10 == own // 10 and made < min(own, 90)
    if made != own and not is_alike:
        raise LaunchError(
            f"code for sm{made} does not run on this GPU, {target}: leave arch out, or "
            "compile only, with warmup(..., arch=...)"
        )


def _by_knobs() -> dict[str, object]:
    """The options of launches that do not say otherwise."""
    options: dict[str, object] = {"enable_fp_fusion": knobs.default_fp_fusion}
    for name, value in (
        ("default_dot_input_precision", knobs.fp32_default),
        ("arch", knobs.override_arch),
    ):
        if value is not None:
            options[name] = value
    return options


def _check_libraries(libraries: Any) -> None:
    """Raises LaunchError for libraries other than the one that is known."""
    others = sorted(set(dict(libraries or {})) - {_KNOWN_LIBRARY})
    if others:
        raise LaunchError(
            f"extern_libs: only {_KNOWN_LIBRARY} is linked (PROTON_LIBDEVICE says which file), got "
            f"{', '.join(others)}; tl.inline_asm_elementwise has instructions of one's own"
        )


def _loaded(kernel: GPUKernel) -> Any:
    """The function of the driver's."""
    return loaded(kernel, lambda: _load(kernel))


def _load(kernel: GPUKernel) -> int:
    return cuda.load(kernel.asm.kept("cubin"), kernel.metadata["symbol"], kernel.shared)


def _passed(short: str | None) -> list[str | None]:
    """The types of what machine code takes for an argument; None for a constant."""
    return [None] if short is None else [type_.short for type_ in ty.parts_of(ty.str_to_ty(short))]


def _facts(profiled: GPUVariant, plain: GPUVariant) -> dict[str, object]:
    """Its loops with dots, and what instrumentation did to a kernel: resources with it, and without
    (`_off`)."""
    found: dict[str, object] = {"dot_loops": plain.kernel.metadata["dot_loops"]}
    for suffix, variant in (("", profiled), ("_off", plain)):
        kernel = variant.kernel
        threads = WARP_SIZE * int(kernel.metadata["num_warps"])
        found |= {
            f"registers{suffix}": kernel.n_regs,
            f"spills{suffix}": kernel.spilled_registers,
            f"shared{suffix}": kernel.shared,
            f"blocks_per_sm{suffix}": cuda.programs_per_sm(
                variant.function, threads, kernel.shared
            ),
        }
    return found
