"""From a device function and a signature to a cubin for one architecture."""

import dataclasses
import warnings

from proton.analysis import group_registers
from proton.analysis.allocation import allocate
from proton.analysis.barriers import check_barriers
from proton.analysis.call_graph import call_graph
from proton.analysis.chosen_warps import chosen_warps
from proton.analysis.cost import dot_loops
from proton.analysis.role_order import order_of_roles
from proton.analysis.role_rounds import check_rounds
from proton.backends.compiler import CompileResult
from proton.backends.nvidia.cubin import Assembler, Cubin
from proton.backends.nvidia.machine_code import loads_of
from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.pipeline import (
    foreign_passes,
    gluon_front_passes,
    gluon_passes,
    llir_passes,
    ordered_passes,
    record_passes,
    schedule_passes,
)
from proton.backends.nvidia.ptx import (
    copies_by_threads,
    emit_ptx,
    has_dots,
    is_limited,
    with_bases_beside_dots,
    with_groups_of,
    with_least_programs,
    with_loads_together,
    with_most_registers,
    with_stores_behind_loads,
)
from proton.backends.sources import FRONT, first_module
from proton.backends.stages import Stages
from proton.backends.ttir import ttir_passes
from proton.base.errors import OutOfResources, PassError, PerformanceWarning, PTXASError
from proton.base.knobs import knobs
from proton.base.symbols import mangled
from proton.base.targets import WARP_SIZE, GPUTarget, check_threads
from proton.dialect.attributes import (
    ASKS_WARPS,
    DESCRIBES_LOADS,
    GLOBAL_SCRATCH_BYTES,
    REREAD_BYTES,
    SHARED_BYTES,
    SINGLE_BUFFERS,
)
from proton.dialect.context import mlir_context
from proton.dialect.mlir import Module, Operation, ir
from proton.dialect.profile import profile_of
from proton.dialect.tensor_maps import tensor_maps_of
from proton.dialect.walk import functions, gpu_functions, kernel_functions
from proton.frontend import Signature
from proton.language.function import DeviceFunction
from proton.language.ir_text import IRText
from proton.layout.tensor_map import TENSOR_MAP_ALIGNMENT
from proton.passes import Pass
from proton.schedule.plan import take_texts
from proton.trace.profile import KernelProfile
from proton.transforms.hopper.allocate_warp_groups import worker_groups
from proton.transforms.hopper.describe_loads import DescribeLoads
from proton.transforms.hopper.tensor_descriptor_to_tma import TensorDescriptorToTMA
from proton.transforms.records.strip_records import StripRecords
from proton.transforms.tile.widen_scans import WidenScans

# The share of registers that may be given up for one more program.
_FEW_MORE = 1 / 6
# Of an SM's threads: where no more of them run, half as many programs more are worth any number of
# registers that were not needed. Of 1,100 kernels of libraries three change: see decision 221.
_FEW_THREADS, _MANY_MORE = 1 / 8, 1 / 2
# With fewer registers the assembler keeps fewer results under way: of 28 programs of a warp, which
# became 32 for 8 of 72 registers, each exchange waited for the one before it, and the loop of
# fused_recurrent_delta_rule (fla-core) took 1.5 of the time. Of few programs, one more is more.
_GAIN = 2  # times the share of registers given up: the share of programs gained, at least
# Bytes that may be spilled for twice as many programs: a product of int8 with 131 registers and 8
# warps took 0.76 of the time so, with 16. Where less is gained, spills are not worth it: with 104
# bytes for four programs in the place of three a gated SiLU took 1.03 (corpus.py, H200, 03ff931d).
# With 24 for a second program a cross entropy (liger-kernel) spills as little as this allows: with
# one program it took 1.34 of Triton's time with two (c2ff1764).
_FEW_SPILLS = 24
# Of a thread's bytes, under way at once: with more hardly a kernel gains. Of those that gained half
# to a quarter (l2norm_bwd, _reduce_split_kernel) it was 0.38 to 0.60.
_TOGETHER = 2 / 3
# Of a thread's bytes, kept together: with more six kernels took 0.78 to 0.93 of their time, with
# less two took 1.08 and 1.15 (corpus.py --against 5431c6a0, H200, 3cf66462).
_NEARLY_ALL = 3 / 4
_SPILLED = 1 / 8  # of the bytes that a thread loads: so many may be spilled to load them at once
_KEPT = 2 / 3  # of the second-level cache: the rest is for what programs store, and read once
_FEWER = 2  # times the programs that room is left for, at most: some wait while others compute

# Options that launches ask for, too.
_OF_LAUNCHES = ("num_ctas", "launch_pdl", "launch_cooperative_grid")


def compile_kernel(
    fn: DeviceFunction, signature: Signature, options: GPUOptions, label: str
) -> CompileResult:
    """Compiles; raises CompilationError for the user's mistakes, OutOfResources where the target
    has too little of something, PassError for mistakes of ours.

    `label` names the folder of the dumps: each variant of a kernel has one of its own.
    """
    try:
        return _compiled(fn, signature, options, label)
    except (OutOfResources, PTXASError):
        if not _chooses(fn, options):
            raise
    # So many warps as were chosen need more than there is.
    options = dataclasses.replace(options, chooses_warps=False)
    return _compiled(fn, signature, options, label)


def _compiled(
    fn: DeviceFunction, signature: Signature, options: GPUOptions, label: str
) -> CompileResult:
    """As `compile_kernel`, with the number of warps that is given or chosen."""
    stages, target, text = Stages(label), options.target, options.text or fn.ir
    name = fn.name_of(signature)
    with mlir_context(), Assembler(target, name, mangled(name)) as assembler:
        module, options = _scheduled(fn, signature, stages, options, text)
        strides = _names(module)
        schedule = take_texts(module.operation, stages.levels["ttgir"])
        reread, loops = _reread_bytes(module), dot_loops(module, target.facts)
        module = stages.run("llir", module, llir_passes(options))
        (kernel,) = [op for op in gpu_functions(module) if "nvvm.kernel" in op.attributes]
        profile, maps = profile_of(kernel), tensor_maps_of(kernel)
        shared, scratch = _bytes(kernel, SHARED_BYTES), _bytes(kernel, GLOBAL_SCRATCH_BYTES)
        _check_shared(fn, shared, profile, target)
        with stages.timed("ptx"):
            plain = emit_ptx(module, target)
            ptx = with_bases_beside_dots(plain)
        with stages.timed("cubin"):
            assembler.feed(ptx)
            texts = stages.texts()  # while the assembler works
            if stages.kept:
                check_barriers(stages.kept["written"])
                schedule = order_of_roles(stages.kept["ordered"])
            cubin = assembler.finish()
            if cubin.spills and ptx != plain:
                other = _assembled(name, plain, options)
                ptx, cubin = (plain, other) if other.spills < cubin.spills else (ptx, cubin)
            ptx, cubin = _unspilled(name, ptx, cubin, options, shared, has_layouts=fn.has_layouts)
            # With records the launcher has a limit for it, by the plain kernel's programs.
            if profile is None:
                ptx, cubin = _one_more(name, ptx, cubin, options, shared)
                ptx, cubin = _loads_together(name, ptx, cubin, options, shared)
                ptx, cubin = _more_loads(name, ptx, cubin, options, shared, reread)
                ptx, cubin = _loads_first(name, ptx, cubin, options, shared)
            shared = _with_room(cubin, options, shared, reread)
            _warn_of_waits(fn, cubin)
    data = {
        "target": str(target),
        **_of_launches(options),
        "num_stages": options.num_stages,
        "own_warps": options.num_warps,
        "dot_loops": loops,
        "shared": shared,
        **cubin.facts(),
        "tensor_maps": maps,
        "stride_arguments": strides,
        "global_scratch_size": scratch,
        "global_scratch_align": TENSOR_MAP_ALIGNMENT,
        "profile": profile and profile.to_plain(),
        "signature": f"{signature}, num_warps={options.num_warps}",
    }
    files = {f"{stage}.mlir": text for stage, text in texts.items()}
    files |= {"schedule.txt": schedule.encode()}
    files |= {"code.ptx": ptx.encode(), "code.cubin": cubin.code}
    return CompileResult(data, files, stages.times)


def _scheduled(
    fn: DeviceFunction,
    signature: Signature,
    stages: Stages,
    options: GPUOptions,
    text: IRText | None,
) -> tuple[Module, GPUOptions]:
    """The module of `ttgir` in its final order, and the options with the warps that it has. Loads
    by pointers are described to TMA for the sake of a producer: where there is none it is made
    again, without; and so it is without single buffers, where these leave no room for the rest."""
    with stages.timed("frontend"):
        module = first_module(
            fn,
            signature,
            text,
            debug=options.debug,
            sanitize_overflow=options.sanitize_overflow,
            dot_precision=options.default_dot_input_precision,
            keep_calls=True,
            target=options.target,
            num_warps=options.num_warps,
            num_ctas=options.num_ctas,
        )
        asks = ASKS_WARPS in module.operation.attributes
        if asks:
            del module.operation.attributes[ASKS_WARPS]
        if _chooses(fn, options) and not asks:
            options = dataclasses.replace(options, num_warps=chosen_warps(module))
        found = _with_workers(module, options)
    module, found = _on_tiles(module, stages, found, text, fn.has_layouts)
    if DESCRIBES_LOADS in module.operation.attributes and not found.worker_warps:
        without = dataclasses.replace(options, describes_loads=False)
        return _scheduled(fn, signature, stages, without, text)
    if SINGLE_BUFFERS in module.operation.attributes:
        needed = max(one.size for one in allocate(call_graph(module)).values())
        if needed > options.target.facts.shared_bytes:
            without = dataclasses.replace(options, single_buffers=False)
            return _scheduled(fn, signature, stages, without, text)
    return module, found


def _chooses(fn: DeviceFunction, options: GPUOptions) -> bool:
    """True if the warps are the compiler's to choose: layouts and texts are for some, a limit of
    registers is by a thread, and the programs of a cooperative grid have to run at once."""
    is_written = fn.has_layouts or fn.ir is not None or options.text is not None
    is_bound = options.maxnreg is not None or options.launch_cooperative_grid
    return options.chooses_warps and not is_written and not is_bound


def _names(module: Module) -> list[str]:
    """The arguments that strides of what pointers load are made of, where TMA copies it."""
    if DESCRIBES_LOADS not in (attributes := module.operation.attributes):
        return []
    return [ir.StringAttr(name).value for name in attributes[DESCRIBES_LOADS]]


def _of_launches(options: GPUOptions) -> dict[str, object]:
    """What launches must know of the options."""
    found = {name: getattr(options, name) for name in _OF_LAUNCHES}
    return {"num_warps": options.program_warps, **found}


def _bytes(kernel: Operation, name: str) -> int:
    """An attribute of a kernel that counts bytes; 0 where it has none."""
    return int(kernel.attributes[name].value) if name in kernel.attributes else 0


def _warn_of_waits(fn: DeviceFunction, cubin: Cubin) -> None:
    """Warns where the tensor cores wait after each instruction."""
    if cubin.is_serialised:
        warnings.warn(
            f"ptxas serialises the tensor-core instructions of {fn.__name__}: each wgmma waits for "
            f"the one before it (a thread has {cubin.registers} registers and spills "
            f"{cubin.spills} bytes); smaller blocks or more warps leave more registers",
            PerformanceWarning,
            stacklevel=2,
        )


def _with_workers(module: Module, options: GPUOptions) -> GPUOptions:
    """The options with the warps of the groups that the kernel has beside its own, and, where these
    ask for registers, with those that a thread begins with."""
    found = worker_groups(module)
    if found.warps:
        options = dataclasses.replace(options, worker_warps=found.rounded(options.num_warps))
        check_threads(options.program_warps)
    options.check_samples()
    if found.has_registers and options.maxnreg is None:
        most = group_registers.at_first(options.target.facts, options.program_warps)
        options = dataclasses.replace(options, maxnreg=most)
    return options


def _on_tiles(
    module: Module,
    stages: Stages,
    options: GPUOptions,
    text: IRText | None,
    has_layouts: bool,
) -> tuple[Module, GPUOptions]:
    """A module of `ttgir` in its final order, of one of the front end or of a text's level; the
    options with the warps that the schedule added."""
    if text is None and has_layouts:
        stages.kept["written"] = module.operation.clone()
        module = stages.run("ttir", module, gluon_front_passes(options))
        module = stages.run("ttgir", module, gluon_passes(options))
        stages.kept["ordered"] = stages.levels["ttgir"]
        records = record_passes(options)
        return stages.run("ttgir", module, records) if records else module, options
    if text is not None and text.level != FRONT:
        own = record_passes(options) or [StripRecords()]
        passes = foreign_passes(options) if text.is_triton else own
        return stages.run("ttgir", module, passes), options
    # Of two launches that overlap, each would have its maps where the other one has them.
    device, debug = not options.launch_pdl, options.debug
    tma = TensorDescriptorToTMA(options.target, device=device, debug=debug)
    describe: list[Pass] = []
    if options.describes_loads:
        describe.append(DescribeLoads(options.target, options.num_warps))
    simplify = ttir_passes(options.instrumentation, [*describe, tma])
    module = stages.run("ttir", module, [*simplify, WidenScans()])
    module = stages.run("ttgir", module, schedule_passes(options))
    if knobs.verify_each:
        for kernel in kernel_functions(module):
            check_rounds(kernel)  # of the groups of warps that the schedule made
    options = _with_workers(module, options)
    return stages.run("ttgir", module, ordered_passes(options)), options


def _reread_bytes(module: Module) -> int:
    """What a program reads that it will read again."""
    attributes = [op.attributes for op in functions(module)]
    return sum(int(found[REREAD_BYTES].value) for found in attributes if REREAD_BYTES in found)


def _with_room(cubin: Cubin, options: GPUOptions, shared: int, reread: int) -> int:
    """The shared memory of a program: more than it needs, where so many programs would run on an SM
    that the second-level cache lost what they will read again. Nothing else limits their number."""
    threads, facts = options.program_warps * WARP_SIZE, options.target.facts
    room = cubin.threads(options.target, threads) // threads
    room = min(room, facts.programs_per_sm(threads, shared))
    if not reread or not facts.sm_l2_bytes or options.launch_cooperative_grid:
        return shared  # of a cooperative grid all programs have to run at once
    fit = max(int(_KEPT * facts.sm_l2_bytes) // reread, -(-room // _FEWER))
    return shared if fit >= room else max(shared, facts.most_shared(fit))


def _unspilled(
    name: str, ptx: str, cubin: Cubin, options: GPUOptions, shared: int, *, has_layouts: bool
) -> tuple[str, Cubin]:
    """The PTX with the number of programs that have to fit on an SM, and its machine code, where
    less is spilled with that: as many as shared memory leaves an SM, of which ptxas does not know,
    if these are fewer than it made room for, or one. What does not fit into all registers of a
    program may be given a quarter of them, so that more programs run at once, and all of them
    spill."""
    threads = options.program_warps * WARP_SIZE
    if cubin.spills and options.worker_warps and not has_layouts:
        return _with_other_groups(name, ptx, cubin, options)
    if not cubin.spills or options.maxnreg is not None:
        return ptx, cubin
    most = options.target.facts.most_registers(1, threads)
    if cubin.registers >= most or is_limited(ptx):
        return ptx, cubin
    fit = max(1, options.target.facts.programs_per_sm(threads, shared))
    room = cubin.threads(options.target, threads) // threads
    best = ptx, cubin
    for programs in dict.fromkeys((fit, 1) if fit < room else (1,)):
        if not best[1].spills or best[1].registers >= most:  # fewer programs leave it no more
            break
        fewer = with_least_programs(ptx, programs)
        found = _assembled(name, fewer, options)
        if found.spills < best[1].spills:
            best = fewer, found
    left = best[1].threads(options.target, threads) // threads
    is_worth_it = cubin.spills <= _FEW_SPILLS and min(room, fit) >= 2 * left
    return (ptx, cubin) if is_worth_it else best


def _with_other_groups(name: str, ptx: str, cubin: Cubin, options: GPUOptions) -> tuple[str, Cubin]:
    """The PTX with another number of registers for the producer, and its machine code, where less
    is spilled with that."""
    copies = copies_by_threads(ptx)
    producer = group_registers.COPYING_INSTEAD if copies else group_registers.INSTEAD
    consumers = group_registers.of_consumers(options.target.facts, options.num_warps, producer)
    other = with_groups_of(ptx, consumers, producer)
    found = _assembled(name, other, options)
    return (other, found) if found.spills < cubin.spills else (ptx, cubin)


def _one_more(
    name: str, ptx: str, cubin: Cubin, options: GPUOptions, shared: int
) -> tuple[str, Cubin]:
    """The PTX with a limit of registers, and its machine code, where an SM runs one more program
    with a few registers fewer, nothing is spilled for that, or next to nothing for twice as many
    programs, and no product waits: tried where registers leave room for less than half of what an
    SM takes, and the programs are two at most, or the registers few that are given up."""
    threads, facts = options.program_warps * WARP_SIZE, options.target.facts
    room = cubin.threads(options.target, threads)
    programs = room // threads + 1
    if options.maxnreg is not None:
        return ptx, cubin
    if 2 * room >= facts.sm_threads or programs > facts.programs_per_sm(threads, shared):
        return ptx, cubin
    most = facts.most_registers(programs, threads)
    gained = facts.programs_by_registers(most, threads) * threads / room - 1
    given_up = cubin.registers / most - 1
    takes_few = given_up <= min(_FEW_MORE, gained / _GAIN)
    are_few = room <= facts.sm_threads * _FEW_THREADS and gained >= _MANY_MORE
    if cubin.spills or not (takes_few or are_few):
        return ptx, cubin
    limited = with_most_registers(ptx, most)
    try:
        found = _assembled(name, limited, options)
    except (PTXASError, PassError):  # an instruction takes more, or waits for others with so few
        return ptx, cubin
    few = _FEW_SPILLS if takes_few and gained >= 1 else 0
    is_worse = found.spills > few or (found.is_serialised and not cubin.is_serialised)
    return (ptx, cubin) if is_worse else (limited, found)


def _loads_together(
    name: str, ptx: str, cubin: Cubin, options: GPUOptions, shared: int
) -> tuple[str, Cubin]:
    """The PTX with loads together, and its machine code, where it waits half as often for them
    then, or nearly all are under way at once, as many threads of an SM do so, and nothing is
    spilled: tried where no more than two thirds of a thread's bytes are under way at once, and no
    dots are, which would not overlap with the rest: a kernel with both took 1.11 of its time."""
    if cubin.spills or has_dots(ptx):
        return ptx, cubin
    before = loads_of(cubin.code, mangled(name))
    if before.waits < 2 or before.most_bytes > _TOGETHER * before.all_bytes:
        return ptx, cubin
    together = with_loads_together(ptx)
    if together == ptx:
        return ptx, cubin
    found = _assembled(name, together, options)
    after, threads = loads_of(found.code, mangled(name)), options.program_warps * WARP_SIZE
    most = options.target.facts.programs_per_sm(threads, shared) * threads
    has_fewer = found.threads(options.target, threads) < min(
        most, cubin.threads(options.target, threads)
    )
    is_unrolled_less = after.all_bytes < before.all_bytes
    are_nearly_all = after.most_bytes > _NEARLY_ALL * after.all_bytes
    waits_less = 2 * after.waits <= before.waits or (after.waits < before.waits and are_nearly_all)
    is_worse = found.spills or has_fewer or is_unrolled_less or not waits_less
    return (ptx, cubin) if is_worse else (together, found)


def _more_loads(
    name: str, ptx: str, cubin: Cubin, options: GPUOptions, shared: int, reread: int
) -> tuple[str, Cubin]:
    """The PTX with the registers of fewer threads, and its machine code, where ptxas put loads
    behind waits for others, to fit more threads: with the next lower power of two, of half of an
    SM's threads at most. Tried where no more than two thirds of a thread's bytes are under way
    at once, and nothing else limits them. Taken where it waits less often then, and so do all that
    an SM runs, with more bytes under way."""
    threads, facts = options.program_warps * WARP_SIZE, options.target.facts
    if is_limited(ptx) or cubin.spills or options.launch_cooperative_grid:
        return ptx, cubin  # of a cooperative grid all programs have to run at once
    room = cubin.threads(options.target, threads)
    fewer = min(1 << (room - 1).bit_length() - 1, facts.sm_threads // 2)
    if threads > fewer:
        return ptx, cubin
    before = loads_of(cubin.code, mangled(name))
    if before.waits < 2 or before.most_bytes > _TOGETHER * before.all_bytes:
        return ptx, cubin
    limited = with_most_registers(ptx, facts.most_registers(fewer // threads, threads))
    found = _assembled(name, limited, options)
    after = loads_of(found.code, mangled(name))
    rooms = [_with_room(one, options, shared, reread) for one in (cubin, found)]
    more, less = (
        min(one.threads(options.target, threads), threads * facts.programs_per_sm(threads, room))
        for one, room in zip((cubin, found), rooms, strict=True)
    )
    waits_less = after.waits < before.waits and after.waits * more <= before.waits * less
    has_more = after.most_bytes * less > before.most_bytes * more
    return (limited, found) if waits_less and has_more and not found.spills else (ptx, cubin)


def _loads_first(
    name: str, ptx: str, cubin: Cubin, options: GPUOptions, shared: int
) -> tuple[str, Cubin]:
    """The PTX with stores in place behind the loads ahead of them, and its machine code, where each
    wait for loads brings an SM more bytes then, and next to nothing is spilled for that."""
    threads, facts = options.program_warps * WARP_SIZE, options.target.facts
    ordered = with_stores_behind_loads(ptx)
    if ordered == ptx or cubin.spills or options.launch_cooperative_grid:
        return ptx, cubin  # of a cooperative grid all programs have to run at once
    before = loads_of(cubin.code, mangled(name))
    if before.waits < 2:
        return ptx, cubin
    found = _assembled(name, ordered, options)
    after = loads_of(found.code, mangled(name))
    most = facts.programs_per_sm(threads, shared) * threads
    bytes_before, bytes_after = (
        min(one.threads(options.target, threads), most) * loads.all_bytes / max(1, loads.waits)
        for one, loads in ((cubin, before), (found, after))
    )
    is_worse = found.spills > _SPILLED * after.all_bytes or bytes_after <= bytes_before
    return (ptx, cubin) if is_worse else (ordered, found)


def _assembled(name: str, ptx: str, options: GPUOptions) -> Cubin:
    with Assembler(options.target, name, mangled(name)) as assembler:
        assembler.feed(ptx)
        return assembler.finish()


def _check_shared(
    fn: DeviceFunction, shared: int, profile: KernelProfile | None, target: GPUTarget
) -> None:
    limit = target.facts.shared_bytes
    if shared <= limit:
        return
    what = f"{fn.__name__} needs so many bytes, and a program on {target.facts.name} has no more"
    error = OutOfResources(shared, limit, "shared memory", what)
    if profile is not None and (first := profile.first_shared) is not None:
        error.hint = (
            f'{shared - first} of them are for records: pass buffer="global" or a smaller capacity'
        )
    raise error
