"""Launching on the CPU: a kernel's machine code by what it is given, and the grid.

Every argument is classified at each launch: its type or constant makes the key of the machine
code, its memory says whether what the kernel writes overlaps anything else.
"""

import ctypes
import functools
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proton.backends.compiler import CompiledKernel
from proton.backends.cpu.options import CPUOptions
from proton.backends.cpu.target import CPU, CPUKernel
from proton.base.errors import DeviceAssertionError, LaunchError
from proton.base.knobs import knobs
from proton.base.targets import DEFAULT_WARPS, CPUTarget, Target, check_num_warps
from proton.compiler import Request, compile_function, compile_lock
from proton.language import types as ty
from proton.language.signature import Signature
from proton.runtime.backend import HOST, KernelFunction, Launcher
from proton.runtime.cpu.arguments import PointerArgument, classify, ctype_of
from proton.runtime.cpu.bounds import BoundsTable
from proton.runtime.cpu.grid import WorkEstimate, check_grid, run_at_once, run_grid
from proton.runtime.cpu.guard import Entry
from proton.runtime.cpu.prepared import Lately, signature
from proton.runtime.cpu.recorder import CPURecorder, LaunchRecording
from proton.runtime.cpu.team import TeamCall
from proton.runtime.launch.arguments import Argument, Parameter, TupleKey, signature_of
from proton.runtime.launch.hooks import loaded
from proton.runtime.session import session as sessions
from proton.runtime.session.launch_budget import TimedLaunches
from proton.trace.instrumentation import Instrumentation


@dataclass
class CPUVariant:
    """Machine code of one kernel, ready to be called."""

    kernel: CPUKernel
    entry: Entry
    written: list[int]  # positions of the kernel's parameters that it writes through
    writes_anywhere: bool
    names: list[str]  # of all parameters
    runtime: list[int]  # positions of the parameters that the code takes
    pointers: list[int]  # those that are pointers, or descriptors
    describes: bool  # whether there are descriptors among them, for which code takes several values
    passed: list[int]  # of each value that code takes the parameter's position
    has_tuples: bool  # whether positions count the elements of tuples
    estimate: WorkEstimate = field(default_factory=WorkEstimate)

    def run(self, grid: tuple[int, int, int], call: TeamCall) -> None:
        """Runs the programs of a grid."""
        programs = grid[0] * grid[1] * grid[2]
        if self.kernel.metadata["waits"]:
            run_at_once(programs, call)
        else:
            run_grid(programs, call, self.estimate)


@dataclass(frozen=True)
class Prepared:
    """Code, and what it is given but for the grid; nothing is asked of such a launch any more."""

    variant: CPUVariant
    given: list[Any]

    def run(self, grid: tuple[int, int, int]) -> None:
        variant = self.variant
        call = TeamCall(variant.entry, [*self.given, *grid], [])
        variant.run(grid, call)


class CPULauncher(Launcher):
    """The launches of one kernel on the CPU."""

    def __init__(self, kernel: KernelFunction) -> None:
        self.kernel = kernel
        self._classifiers = [functools.partial(classify, p) for p in kernel.params]
        self._variants: dict[object, CPUVariant] = {}
        self._prepared = Lately[Prepared]()

    def launch(
        self, grid: object, values: tuple[object, ...], options: dict[str, object]
    ) -> CompiledKernel:
        """Launches; of `options` `debug`,
        `sanitize_overflow` and `ir_override` mean something here. Only where there is
        no code yet it is asked whether the kernel belongs elsewhere: no array of another device has
        code here.
        """
        session, recorder, times = sessions._current, None, None  # a call takes time, too
        if session is not None:
            gate = session.gates.get(self.kernel.__name__)
            if gate is not None and gate.left > 0:
                gate.left -= 1
            elif self._variants or self._is_home(values):  # else another back end chooses
                recorder, times = chosen_for(self.kernel.__name__, grid)
        if times is None:
            return self._launch(recorder, grid, values, options)
        begin = time.perf_counter_ns()
        kernel = self._launch(recorder, grid, values, options)
        times.add(time.perf_counter_ns() - begin)
        return kernel

    def _is_home(self, values: tuple[object, ...]) -> bool:
        return self.kernel.home(values).name == HOST

    def _launch(
        self,
        recorder: CPURecorder | None,
        grid: object,
        values: tuple[object, ...],
        options: dict[str, object],
    ) -> CompiledKernel:
        instrumentation = recorder and recorder.instrumentation
        suffix = *self._chosen(options), instrumentation, knobs.check_bounds
        seen = signature(values) if recorder is None else None
        if seen is not None:
            prepared = self._prepared.get((seen, suffix))
            if prepared is not None:
                sizes = check_grid(grid)
                self.kernel.check_globals()
                if sizes[0] and sizes[1] and sizes[2]:
                    prepared.run(sizes)
                return prepared.variant.kernel
        keys, given = [], []
        for classifier, value in zip(self._classifiers, values, strict=True):
            key, found = classifier(value)
            keys.append(key)
            given.append(found)
        variant = self._variants.get((*keys, True, *suffix))
        if variant is None:
            home = self.kernel.home(values)
            if home.name != HOST:
                return self.kernel.launcher(home).launch(grid, values, options)
        sizes = check_grid(grid)
        self.kernel.check_globals()
        # Of arguments that overlap a kernel most often writes one, and has no use of other code.
        first = variant is not None or not _overlap(given)
        if variant is None:
            variant = self._compiled((*keys, first, *suffix))
        if variant.has_tuples:
            values, given = self._flat(keys, values, given)
        is_for_all = first and not variant.kernel.metadata["disjoint"]
        fits = is_for_all or is_disjoint(variant, given)
        if fits is not first:
            variant = self._compiled((*keys, fits, *suffix))
        if sizes[0] and sizes[1] and sizes[2]:
            if recorder is not None:
                plain = (*keys, fits, *suffix[:-2], None, suffix[-1])
                without = functools.partial(self._compiled, plain)
                run_recorded(variant, without, values, given, sizes, recorder)
                return variant.kernel
            passed = run_variant(variant, values, given, sizes)
            if seen is not None and not variant.kernel.metadata["extras"]:
                self._prepared.keep((seen, suffix), Prepared(variant, passed))
        return variant.kernel

    def compile(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: Target | None = None,
        records: Instrumentation | None = None,
    ) -> CompiledKernel:
        self.kernel.check_globals()
        return self._compiled(self._key(values, options, records)).kernel

    def compiled(self) -> dict[object, CompiledKernel]:
        return {key: variant.kernel for key, variant in self._variants.items()}

    def forget(self) -> None:
        self._variants.clear()
        self._prepared.clear()

    def request(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: Target | None = None,
        records: Instrumentation | None = None,
    ) -> Request:
        return self._request(self._key(values, options, records))

    def _key(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        records: Instrumentation | None,
    ) -> tuple[object, ...]:
        """The key of code for such arguments, a dtype standing for an array of it."""
        keys = map(_stand_in, self.kernel.params, values)
        records = records and records.on_cpu()
        return (*keys, True, *self._chosen(options), records, knobs.check_bounds)

    def _flat(
        self, keys: list[object], values: tuple[object, ...], given: list[object]
    ) -> tuple[tuple[object, ...], list[object]]:
        """`values` and `given`, with the elements of tuples in their place."""
        pairs = zip(self.kernel.params, values, strict=True)
        leaves = tuple(value for parameter, v in pairs for _, value in parameter.leaves(v))
        return leaves, [found for pair in zip(keys, given, strict=True) for found in _leaves(*pair)]

    def _request(self, key: tuple[Any, ...]) -> Request:
        *keys, fits, checks, ir_override, blocks, instrumentation, check_bounds = key
        disjoint = None if fits else False
        debug, overflow = checks
        return Request(
            CPU,
            self.kernel,  # type: ignore[arg-type]
            signature_of(self.kernel.arg_names, map(Argument.of, keys)),
            CPUOptions(
                disjoint, debug, instrumentation, check_bounds, ir_override, overflow, *blocks
            ),
        )

    def _chosen(self, options: dict[str, Any]) -> tuple[tuple[bool, bool], Any, tuple[int, int]]:
        """Of the options of a launch those that code depends on: what is checked, ir_override, the
        warps and blocks that layouts are for."""
        checks = self.kernel.checks(options)
        return checks, options.get("ir_override"), blocks_of_layouts(self.kernel, options)

    def _compiled(self, key: tuple[object, ...]) -> CPUVariant:
        """The machine code of a key: what each argument is, whether what the code writes overlaps
        nothing else, as far as that can be known, and the options."""
        variant = self._variants.get(key)
        if variant is None:
            with compile_lock:
                variant = self._variants.get(key)
                if variant is None:
                    variant = self._variants[key] = self._compile(key)
        return variant

    def _compile(self, key: tuple[object, ...]) -> CPUVariant:
        links = self.kernel.links()
        request = self._request(key)
        kernel: CPUKernel = compile_function(*request)
        self.kernel.watch_globals(links)
        return variant_of(kernel, _leaf_names(self.kernel.arg_names, request.signature))


def blocks_of_layouts(kernel: Any, options: dict[str, Any]) -> tuple[int, int]:
    """The warps that a kernel hears of and its layouts must be for, and in how many blocks of
    threads: 0 and 1 where it has no layouts and does not ask. There a number of warps means
    nothing, but may be a mistake."""
    asked = options.get("num_warps")
    if asked is not None:
        check_num_warps(asked, CPUTarget.warp_size)
    if not kernel.hears_warps:
        return 0, 1
    return asked or DEFAULT_WARPS, options.get("num_ctas") or 1


def chosen_for(kernel: str, grid: object) -> tuple[CPURecorder | None, TimedLaunches | None]:
    """The recorder of the launch of a kernel that begins, None where nothing is recorded; and where
    its time goes, if anybody asks: all of the call's, as the host runs the kernel."""
    recorder: CPURecorder | None = sessions.recorder_of(HOST)
    if recorder is None:
        return None, None
    times = recorder.state.choose(kernel, grid)
    if times is None:
        return None, None
    is_asked = recorder.state.budget is not None
    return (recorder if times.is_recorded else None), (times if is_asked else None)


def variant_of(kernel: CPUKernel, names: list[str]) -> CPUVariant:
    """A kernel's code, loaded; `names` are those of the values that a launch has."""
    signature = kernel.signature
    runtime = [names.index(name) for name in signature.types]
    parts = [ty.parts_of(type_) for type_ in signature.types.values()]
    passed = [place for place, of in zip(runtime, parts, strict=True) for _ in of]
    extra = {"thread": ctypes.c_int32}
    types = [ctype_of(type_) for of in parts for type_ in of] + [ctypes.c_int32] * 3
    extras = [extra.get(name, ctypes.c_void_p) for name in kernel.metadata["extras"]]
    written = kernel.metadata["written"]
    return CPUVariant(
        kernel,
        loaded(kernel, lambda: _entry(kernel, types, extras)),
        written=sorted({passed[number] for number in written if number >= 0}),
        writes_anywhere=-1 in written,
        names=names,
        runtime=runtime,
        pointers=[p for p, of in zip(runtime, parts, strict=True) if of[0].is_ptr()],
        describes=len(passed) > len(runtime),
        passed=passed,
        has_tuples=bool(signature.tuples),
    )


def _entry(kernel: CPUKernel, types: list[Any], extras: list[Any]) -> Entry:
    """The machine code, linked."""
    return Entry(kernel.name, kernel.code.address, types, extras, kernel.code.extent)


def _stand_in(parameter: Parameter, value: Any) -> Any:
    """The key of an argument where nothing is launched."""
    if parameter.is_tuple(value):
        keys = tuple(map(_stand_in, parameter.elements(value), value))
        return TupleKey(type(value), keys)
    key = parameter.stand_in(value)
    return classify(parameter, value)[0] if key is None else key


def _leaves(key: Any, given: Any) -> list[Any]:
    """What an argument was found to be, or all elements of a tuple."""
    if not isinstance(key, TupleKey):
        return [given]
    pairs = zip(key.elements, given, strict=True)
    return [found for pair in pairs for found in _leaves(*pair)]


def _leaf_names(names: list[str], signature: Signature) -> list[str]:
    """The names of arguments, with the elements of tuples in their place."""
    found: list[str] = []
    for name in names:
        form = signature.tuples.get(name)
        found += [name] if form is None else _leaf_names(form.names(name), signature)
    return found


def _overlap(given: list[Any]) -> bool:
    """True if two arguments, those in tuples left out, share a byte."""
    arrays = sorted((a.low, a.high) for a in given if isinstance(a, PointerArgument))
    arrays = [(low, high) for low, high in arrays if low < high]
    return any(low < before for (_, before), (low, _) in itertools.pairwise(arrays))


def is_disjoint(variant: CPUVariant, values: list[Any]) -> bool:
    """True if no argument that the kernel writes shares a byte with another argument."""
    if variant.writes_anywhere:
        return False
    for position in variant.written:
        target = values[position]
        low, high = target.low, target.high
        for other_position in variant.pointers:
            other = values[other_position]
            if low < other.high and other.low < high and other_position != position:
                return False
    return True


def run_recorded(
    variant: CPUVariant,
    plain: Callable[[], CPUVariant],
    values: tuple[object, ...],
    given: list[Any],
    sizes: tuple[int, int, int],
    recorder: CPURecorder,
) -> None:
    """A launch in a session; where nobody keeps its records the code of `plain` runs, which makes
    none."""
    recording = recorder.begin(variant.kernel, sizes)
    try:
        if recording.kept:
            run_variant(variant, values, given, sizes, recording)
        else:
            run_variant(plain(), values, given, sizes)
    finally:
        recorder.end(recording)


def run_variant(
    variant: CPUVariant,
    bound: tuple[object, ...],
    values: list[Any],
    grid: tuple[int, int, int],
    recording: LaunchRecording | None = None,
) -> list[Any]:
    """Runs a grid; `bound` is what the caller gave, `values` what it was found to be. Returns what
    the code was given."""
    bounds = None
    if variant.kernel.metadata["bounds"]:
        bounds = BoundsTable(variant.kernel, _by_name(variant, bound, values))
    for position in variant.written:
        if not values[position].writeable:
            name = variant.names[position]
            raise LaunchError(f"argument {name} is read-only, and the kernel writes through it")
    if variant.describes:
        given = _flat(variant, values)
    else:
        for position in variant.pointers:
            values[position] = values[position].address
        given = [values[position] for position in variant.runtime]
    if not variant.kernel.metadata["extras"] and recording is None:
        Prepared(variant, given).run(grid)
    else:
        _run_with_extras(variant, [*given, *grid], grid, recording, bounds)
    return given


def _flat(variant: CPUVariant, values: list[Any]) -> list[Any]:
    """What the code takes, where it takes several values for an argument."""
    flat: list[Any] = []
    for position in variant.runtime:
        value = values[position]
        is_memory = isinstance(value, PointerArgument)
        flat += (value.described or (value.address,)) if is_memory else (value,)
    return flat


def _by_name(
    variant: CPUVariant, bound: tuple[object, ...], values: list[Any]
) -> list[tuple[str, object, object]]:
    """Of each value that the code takes: the parameter's name, what it was given, and the memory of
    an array; of the numbers of a descriptor none."""
    found, seen = [], None
    for position in variant.passed:
        memory = values[position] if position != seen else None
        found.append((variant.names[position], bound[position], memory))
        seen = position
    return found


def _run_with_extras(
    variant: CPUVariant,
    given: list[Any],
    grid: tuple[int, int, int],
    recording: LaunchRecording | None,
    bounds: BoundsTable | None,
) -> None:
    """A launch within a session, or of code with assertions or checks in it."""
    metadata = variant.kernel.metadata
    extras = metadata["extras"]
    status = ctypes.c_int64(0)
    fixed = {"status": ctypes.addressof(status)}
    if bounds is not None:
        fixed["bounds"] = bounds.address
    if recording is not None:
        fixed |= {"profile": recording.address, "flush": recording.flush_address}
    call = TeamCall(variant.entry, given, [fixed.get(name) for name in extras])
    if recording is not None:
        recording.start = time.perf_counter_ns()
    variant.run(grid, call)
    if bounds is not None:
        bounds.check()
    if status.value:
        raise DeviceAssertionError(metadata["assertions"][status.value - 1])
