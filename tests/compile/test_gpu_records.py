"""What instrumentation adds to a GPU kernel, and that nothing else changes; no GPU is needed."""

import importlib.util
import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels import arrays
from kernels.cases import CASES, MORE_CASES
from kernels.harness import Case
from kernels.matmul import matmul_kernel
from proton.backends.nvidia.target import GPUKernel
from proton.base.errors import CompilationError, ProfileError
from proton.base.targets import GPUTarget
from proton.runtime.launch.jit import JITFunction
from proton.runtime.nvidia.arguments import stand_in
from proton.runtime.nvidia.backend import BACKEND
from proton.runtime.nvidia.launch import GPULauncher
from proton.trace import wire
from proton.trace.instrumentation import Instrumentation
from tests.compile.ptx_order import RECORDS, work
from tests.cpu.harness import kernels_of
from tests.pairs import chosen

HOPPER = GPUTarget("cuda", 90)
# Instructions whose number and order must not change.
WORK = re.compile(r"\b((?:ld|st)\.(?:volatile\.)?(?:global|shared)|atom|red|shfl|bar|barrier)\.")
PROGRAM = Instrumentation(placement="program")
MODES = {
    "default": Instrumentation(),
    "program": PROGRAM,
    "64 bits": Instrumentation(clock_bits=64),
    "counting": Instrumentation(strategy="counting"),
    "flush": Instrumentation(strategy="flush", capacity=16),
}


def compiled(
    kernel: JITFunction,
    *args: Any,
    instrumentation: Instrumentation | None = None,
    target: GPUTarget = HOPPER,
    **options: Any,
) -> GPUKernel:
    """A kernel for a GPU, an H200; a dtype stands for an aligned array, a numpy array for one of
    its dtype."""
    stand_ins = [getattr(tl, a.dtype.name) if isinstance(a, np.ndarray) else a for a in args]
    bound = kernel._bound(tuple(stand_ins), options)
    described = [stand_in(p, value) for p, value in zip(kernel.params, bound, strict=True)]
    return launcher(kernel).compile_described(target, described, options, instrumentation)


def launcher(kernel: JITFunction) -> GPULauncher:
    """A kernel's launcher on GPUs."""
    found = kernel.launcher(BACKEND)
    assert isinstance(found, GPULauncher)
    return found


def instructions(ptx: str) -> list[str]:
    """The work of a kernel: what WORK names, in order, with its width and modifiers."""
    found = []
    for line in ptx.splitlines():
        if not RECORDS.search(line) and (match := WORK.search(line)):
            found.append(line[match.start() :].split()[0].rstrip(";"))
    return found


Launched = list[tuple[JITFunction, tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Launched:
    """The launches of a wrapper, which takes numpy arrays for those of a GPU."""
    found: Launched = []

    def getitem(kernel: JITFunction, grid: tuple[int, ...]) -> Callable[..., None]:
        return lambda *args, **options: found.append((kernel, args, options))

    monkeypatch.setattr(JITFunction, "__getitem__", getitem)
    monkeypatch.setattr(arrays, "on_gpu", lambda array: True)
    return found


SIZES = {1: (1 << 14,), 2: (256, 1000), 3: (128, 128, 128)}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "case, mode",
    chosen({"case": [*CASES, *MORE_CASES], "mode": MODES}, least=1),
    ids=lambda x: getattr(x, "name", x),
)
def test_the_same_work_remains_where_records_are_taken_away(
    rng: np.random.Generator, launched: Launched, case: Case, mode: str
) -> None:
    rank = next(r for r in SIZES if _takes(case, r))
    case.launch(*case.inputs(rng, *SIZES[rank]))
    assert launched
    for kernel, args, options in launched:
        off = compiled(kernel, *args, **options)
        on = compiled(kernel, *args, instrumentation=MODES[mode], **options)
        assert off.metadata["profile"] is None
        profile = on.metadata["profile"]
        assert profile["scopes"]
        assert profile["optimized_out"] == []
        work = instructions(on.asm["ptx"])
        assert work == instructions(off.asm["ptx"])
        assert any("global" in line for line in work)
        assert on.asm["ptx"].count("// proton") > 10
        assert on.n_spills == off.n_spills == 0


def _takes(case: Case, rank: int) -> bool:
    try:
        case.shapes(*SIZES[rank])
    except TypeError:
        return False
    return True


SOURCE = """
@proton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {load}
        x = tl.load(x_ptr + offs, mask=offs < n)
        {inner}
            y = tl.exp(x)
    {mark}
    {store}
        tl.store(out_ptr + offs, y, mask=offs < n)
"""
ANNOTATED = {
    "load": 'with proton.scope("load", n=n * 3):',
    "inner": 'with proton.scope("inner"):',
    "mark": 'proton.mark("m", n)',
    "store": 'with proton.scope("store"):',
}
PLAIN = {"load": "if True:", "inner": "if True:", "mark": "pass", "store": "if True:"}


def test_without_instrumentation_the_cubin_is_that_of_the_kernel_without_annotations(
    tmp_path: Path,
) -> None:
    """Byte for byte: debug information has the file's name in it, so both lie in one file."""
    cubins = []
    for texts in (ANNOTATED, PLAIN):
        file = tmp_path / "kernels.py"
        file.write_text("import proton\nimport proton.language as tl\n" + SOURCE.format(**texts))
        linecache.clearcache()
        spec = importlib.util.spec_from_file_location("kernels", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        exec(compile(file.read_text(), file, "exec"), module.__dict__)
        with proton.knobs.scope(always_compile=True):
            kernel = compiled(module.kernel, tl.float32, tl.float32, 1000, BLOCK=256)
        assert ("scope" in kernel.asm["source"]) == (texts is ANNOTATED)
        cubins.append(kernel.asm["cubin"])
    assert cubins[0] == cubins[1]


def test_a_kernel_without_scopes_is_the_same_under_a_session() -> None:
    kernel = kernels_of(SOURCE.format(**PLAIN)).kernel
    arguments = (kernel, tl.float32, tl.float32, 1000, 256)
    with proton.knobs.scope(always_compile=True):  # the cache may have it from another file
        off, on = compiled(*arguments), compiled(*arguments, instrumentation=Instrumentation())
    assert on.asm["cubin"] == off.asm["cubin"]
    assert on.metadata["profile"] is None


@proton.jit
def one_scope(x_ptr, out_ptr):
    lane = tl.arange(0, 128)
    x = tl.load(x_ptr + lane) * 3.0
    with proton.scope("work"):
        y = (x + 7.0) * (x + 11.0) * (x + 13.0)
    tl.store(out_ptr + lane, y * 5.0)


@pytest.mark.parametrize("mode", ["default", "program", "64 bits", "flush"])
def test_arithmetic_stays_between_the_readings_of_its_scope(mode: str) -> None:
    """In the machine code: constants tell what is inside and what is not."""
    kernel = compiled(one_scope, tl.float32, tl.float32, instrumentation=MODES[mode])
    sass = kernel.asm["sass"]
    places = {c: sass.index(f", {c} ;") for c in ("7", "11", "13", "3", "5")}
    clocks = [match.start() for match in re.finditer(r"SR_CLOCKLO", sass)]
    # At the beginning, around the scope, at the end.
    _, start, end, _ = clocks
    assert all(start < places[c] < end for c in ("7", "11", "13"))
    assert places["3"] < start
    assert places["5"] > end


@proton.jit
def nested(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    with proton.scope("outer"):
        for i in range(n):
            with proton.scope("turn", i=i, first=i * 0.5):
                x = x * 0.5 + 1.0
        x = x * 2.0
    proton.mark("done", n)
    tl.store(out_ptr + offs, x)


def test_the_table_of_scopes_and_the_sizes_of_a_block() -> None:
    kernel = compiled(
        nested, tl.float32, tl.float32, 9, BLOCK=256, num_warps=8, instrumentation=Instrumentation()
    )
    profile = kernel.metadata["profile"]
    paths = {scope["path"]: scope for scope in profile["scopes"]}
    assert set(paths) == {"outer", "outer/turn", "done"}
    assert [name for name, _ in paths["outer/turn"]["payload"]] == ["i", "first"]
    assert (profile["units"], profile["clock_bits"], profile["payload_slots"]) == (8, 32, 2)
    assert profile["capacity"] == 64
    assert kernel.profile is not None
    assert kernel.profile.block.bytes == wire.Block(8, 64, wire.RecordSchema(2, 32)).bytes


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize("given_, expected", [(1, 1), (5, 8), (64, 64), (1000, 1024)])
def test_a_capacity_is_rounded_up_to_a_power_of_two(given_: int, expected: int) -> None:
    kernel = compiled(
        nested,
        tl.float32,
        tl.float32,
        9,
        BLOCK=256,
        instrumentation=Instrumentation(capacity=given_),
    )
    assert kernel.metadata["profile"]["capacity"] == expected


@pytest.mark.parametrize(
    ("granularity", "num_warps", "units", "unit_warps"),
    [
        ("warp", 8, 8, 1),
        ("warp_2", 8, 4, 2),
        ("warp_4", 8, 2, 4),
        ("warp_8", 8, 1, 8),
        ("warp_8", 4, 1, 4),
        ("warp_group", 8, 2, 4),
        ("warp_group_2", 16, 2, 8),
        ("warp_group_4", 16, 1, 16),
        ("cta", 8, 1, 8),
        ("cta", 1, 1, 1),
    ],
)
def test_units_of_several_warps(
    granularity: str, num_warps: int, units: int, unit_warps: int
) -> None:
    mode = Instrumentation(granularity=granularity)
    kernel = compiled(one_scope, tl.float32, tl.float32, num_warps=num_warps, instrumentation=mode)
    profile = kernel.metadata["profile"]
    assert (profile["units"], profile["unit_warps"]) == (units, unit_warps)
    # The first lane of the first warp of a unit writes: threads whose low bits are 0.
    mask = 32 * unit_warps - 1
    ptx = kernel.asm["ptx"]
    if units > 1:  # elsewhere all of a thread's number are low bits
        assert re.search(rf"and\.b32 \s*%r\d+, %r\d+, {mask};", ptx)
    assert kernel.n_spills == 0


def test_a_granularity_that_there_is_not() -> None:
    with pytest.raises(ProfileError, match="granularity must be one of warp, warp_2"):
        Instrumentation(granularity="thread")


def test_without_loops_the_capacity_is_what_a_warp_records() -> None:
    kernel = compiled(one_scope, tl.float32, tl.float32, instrumentation=Instrumentation())
    assert kernel.metadata["profile"]["capacity"] == 1


@proton.jit
def optimized_out_scope(x_ptr, out_ptr):
    lane = tl.arange(0, 128)
    x = tl.load(x_ptr + lane)
    with proton.scope("nothing"):
        x * 2.0
    with proton.scope("store"):
        tl.store(out_ptr + lane, x)


def test_a_scope_without_work_is_reported() -> None:
    kernel = compiled(
        optimized_out_scope, tl.float32, tl.float32, instrumentation=Instrumentation()
    )
    profile = kernel.metadata["profile"]
    assert profile["optimized_out"] == ["nothing"]
    assert [scope["path"] for scope in profile["scopes"]] == ["store"]


@proton.jit(noinline=True)
def innermost(x, n):
    for i in range(n):
        with proton.scope("turn", i=i):
            x = x * 0.5 + tl.sum(x, 0)
    return x


@proton.jit(noinline=True)
def between(x, n):
    return innermost(x, n) * 2.0


@proton.jit(noinline=True)
def with_scope(x):
    with proton.scope("scaled"):
        x = x * 3.0 - tl.max(x, 0)
    return x


@proton.jit
def calls(x_ptr, out_ptr, n):
    lane = tl.arange(0, 256)
    with proton.scope("load"):
        x = tl.load(x_ptr + lane)
    with proton.scope("calls"):
        x = between(with_scope(x), n)
    tl.store(out_ptr + lane, x)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("mode", MODES)
def test_functions_that_are_called_record_where_their_caller_does(mode: str) -> None:
    off = compiled(calls, tl.float32, tl.float32, 9, num_warps=4)
    on = compiled(calls, tl.float32, tl.float32, 9, instrumentation=MODES[mode], num_warps=4)
    ptx, profile = on.asm["ptx"], on.metadata["profile"]
    paths = [scope["path"] for scope in profile["scopes"]]
    assert sorted(paths) == ["calls", "calls/scaled", "calls/turn", "load"]
    assert profile["optimized_out"] == []
    if mode != "counting":
        room = 64 if mode == "64 bits" else 128  # in shared memory
        assert profile["capacity"] == (MODES[mode].capacity or room), "calls may be any number"
    assert instructions(ptx) == instructions(off.asm["ptx"])
    bodies = dict(re.findall(r"\.func [^{]*?([\w$]+)\([^{]*\{(.*?)\n\}", ptx, re.DOTALL))
    clock = "%clock64;" if mode == "64 bits" else "%clock;"
    for name, body in bodies.items():
        assert (clock in body) == (not name.startswith("between")), name
    assert {name.split("_")[0] for name in bodies} >= {"innermost", "between", "with"}


@pytest.mark.parametrize("arch", [80, 86, 89, 90, 100, 120])
def test_instrumented_code_for_every_architecture(arch: int) -> None:
    described = [stand_in(p, tl.float32) for p in one_scope.params]
    target = GPUTarget("cuda", arch)
    kernel = launcher(one_scope).compile_described(target, described, {}, Instrumentation())
    assert kernel.n_regs > 0
    assert "%clock;" in kernel.asm["ptx"]


@proton.jit
def ending_together(x_ptr, n):
    lane = tl.arange(0, 128)
    for i in range(n):
        with proton.scope("outer", i=i):
            x = tl.load(x_ptr + lane)
            with proton.scope("inner"):
                x = tl.exp(x)
        proton.mark("turn", i)
        tl.store(x_ptr + lane, x)
    proton.mark("end", n)
    proton.mark("very end", n)


@pytest.mark.parametrize(("strategy", "memory"), [("circular", "shared"), ("flush", "global")])
def test_each_record_of_one_reading_is_stored(strategy: str, memory: str) -> None:
    """Slices and marks that end together share a clock sample, and nothing else: each record is
    stored, whole, once."""
    options = Instrumentation(strategy=strategy, placement="program")
    kernel = compiled(ending_together, tl.float32, 5, instrumentation=options)
    store = rf'"@\$\d st\.{memory}\.([a-z0-9.]+) \[\$0(\+\d+)?\], .*// proton", "[^"]*" (%\d+),'
    found = re.findall(store, kernel.asm["llir"])
    if strategy == "flush":  # the heads of chunks and the table have an address for each store
        whole = {address for _, offset, address in found if offset}
        found = [part for part in found if part[2] in whole]
        assert len(whole) == len(found) // 3
        assert [offset for _, offset, _ in found] == ["", "+8", "+16"] * len(whole)
    # inner, outer, turn, end and very end; turn twice, in the next iteration and behind the loop.
    # LLVM has made no copies yet.
    assert [width for width, _, _ in found] == ["v2.b32", "v2.b32", "b64"] * (5 + 1)


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize(
    ("granularity", "num_warps", "warps", "units"),
    [
        ("warp", 4, (), 0b1111),
        ("warp", 4, (0, 3), 0b1001),
        ("warp", 4, (1, 9), 0b10),
        ("warp_2", 8, (0, 5), 0b101),
        ("cta", 8, (7,), 0b1),
        ("warp", 32, (31,), 1 << 31),
    ],
)
def test_units_that_are_sampled(
    granularity: str, num_warps: int, warps: tuple[int, ...], units: int
) -> None:
    mode = Instrumentation(granularity=granularity, sample_warps=warps)
    kernel = compiled(one_scope, tl.float32, tl.float32, num_warps=num_warps, instrumentation=mode)
    assert kernel.metadata["profile"]["sampled_units"] == units


def test_warps_that_a_kernel_has_not() -> None:
    mode = Instrumentation(sample_warps=(4, 5))
    with pytest.raises(CompilationError, match=r"sample_warps must be of warps below 4, got \(4"):
        compiled(one_scope, tl.float32, tl.float32, instrumentation=mode)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("sampling", [{"sample_warps": (1,)}, {"sample_programs": 3}], ids=str)
def test_what_is_not_sampled_runs_the_kernel_without_records(sampling: dict[str, Any]) -> None:
    off = compiled(nested, tl.float32, tl.float32, 9, BLOCK=256)
    mode = Instrumentation(**sampling)
    some = compiled(nested, tl.float32, tl.float32, 9, BLOCK=256, instrumentation=mode)
    recorded, plain = some.asm["ttgir"].split("\n    } else {\n")
    ops = re.findall(r"\"proton_gpu\.(\w+)\"", plain)
    assert set(ops) <= {"finalize"}
    assert "read_counter" in recorded
    work = instructions(off.asm["ptx"])
    number_of_warp = "shfl.sync.idx.b32"
    assert [op for op in instructions(some.asm["ptx"]) if op != number_of_warp] == work * 2
    every = Instrumentation(sample_warps=(0, 1, 2, 3))
    assert not every.is_sampled(4)
    assert mode.is_sampled(4)


@proton.jit(noinline=True)
def ends_an_event(event, x):
    x = x * 3.0 - tl.max(x, 0)
    proton.end_event(event)
    return x


@proton.jit
def events(x_ptr, out_ptr, n):
    tile = proton.allocate_event("tile")
    lane = tl.arange(0, 128)
    x = tl.load(x_ptr + lane)
    for _i in range(n):
        proton.start_event(tile)
        x = x * 0.5 + 1.0
    for _i in range(n):
        x = ends_an_event(tile, x)
    tl.store(out_ptr + lane, x)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("mode", MODES)
def test_the_edges_of_an_event_are_records_of_one_name(mode: str) -> None:
    off = compiled(events, tl.float32, tl.float32, 9)
    on = compiled(events, tl.float32, tl.float32, 9, instrumentation=MODES[mode])
    ptx = on.asm["ptx"]
    (entry,) = on.metadata["profile"]["scopes"]
    assert (entry["name"], entry["kind"], entry["payload"]) == ("tile", "event", [])
    assert instructions(ptx) == instructions(off.asm["ptx"])
    tags = [str(wire.tag(wire.RecordKind[f"EVENT_{end}"], 0)) for end in ("START", "END")]
    assert all((tag in ptx) == (mode != "counting") for tag in tags)


@proton.jit
def returns_early(x_ptr, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    offs = pid * 128 + tl.arange(0, 128)
    with proton.scope("load"):
        x = tl.load(x_ptr + offs)
    if tl.sum(x) < 0.0:
        proton.mark("negative")
        return
    with proton.scope("store"):
        tl.store(x_ptr + offs, tl.exp(x))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("mode", MODES)
def test_early_returns(mode: str) -> None:
    off = compiled(returns_early, tl.float32, 9)
    on = compiled(returns_early, tl.float32, 9, instrumentation=MODES[mode])
    assert instructions(on.asm["ptx"]) == instructions(off.asm["ptx"])
    profile = on.metadata["profile"]
    assert {scope["path"] for scope in profile["scopes"]} == {"load", "negative", "store"}
    assert profile["optimized_out"] == []
    # Every program that began ends, whichever way it took: it leaves one last clock.
    assert on.asm["ptx"].count("%globaltimer; // proton") == 2


@proton.jit
def conditional(x_ptr, n, k):
    lane = tl.arange(0, 128)
    x = tl.load(x_ptr + lane)
    for i in range(n):
        with proton.scope("turn", when=i % k == 1):
            x = x * 0.5 + 1.0
    tl.store(x_ptr + lane, x)


@pytest.mark.parametrize("mode", MODES)
def test_conditions_leave_the_work_as_it_is(mode: str) -> None:
    off = compiled(conditional, tl.float32, 9, 4)
    on = compiled(conditional, tl.float32, 9, 4, instrumentation=MODES[mode])
    assert instructions(on.asm["ptx"]) == instructions(off.asm["ptx"])
    assert on.n_spills == 0


@proton.jit
def unrolled(x_ptr, n, FACTOR: tl.constexpr):
    lane = tl.arange(0, 128)
    x = tl.load(x_ptr + lane)
    for i in tl.range(0, n, loop_unroll_factor=FACTOR):
        with proton.scope("turn", i=i):
            x = x * 0.5 + 1.0
            tl.store(x_ptr + lane, x)


@pytest.mark.parametrize("mode", MODES)
def test_scopes_of_unrolled_loops(mode: str) -> None:
    """Each copy of the body has a slice of its own."""
    off = compiled(unrolled, tl.float32, 9, FACTOR=4)
    on = compiled(unrolled, tl.float32, 9, FACTOR=4, instrumentation=MODES[mode])
    # Neighbours share a reading: five for the four copies, and two for what is left over.
    assert on.asm["ttgir"].count("proton_gpu.read_counter") == 7
    assert len(re.findall(r"proton_gpu\.\w+_record", on.asm["ttgir"])) == 5
    (scope,) = on.metadata["profile"]["scopes"]
    assert [name for name, _ in scope["payload"]] == ["i"]
    assert off.n_spills == on.n_spills == 0


@proton.jit
def one_operation(x_ptr, n):
    """As body (a) of benchmarks/gpu_profiling.py."""
    place = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    x = tl.load(x_ptr + place)
    y = x
    for _ in range(n):
        with proton.scope("body"):
            x = x * 0.5 + y
    tl.store(x_ptr + place, x)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "flush"])
def test_a_short_loop_takes_eight_turns_at_once(mode: str) -> None:
    """What records cost there depends on it: 12 cycles a slice, and 20 with two turns at once."""
    ptx = compiled(one_operation, tl.float32, 9, instrumentation=MODES[mode]).asm["ptx"]
    loops = ptx.split("$L__BB")
    clocks = [len(re.findall(r"%clock(?:64)?;", block)) for block in loops]
    assert max(clocks) == 16, clocks


@pytest.mark.usefixtures("no_ptx")
def test_every_choice_is_part_of_the_key() -> None:
    choices = [
        None,
        Instrumentation(),
        Instrumentation(strategy="flush"),
        Instrumentation(capacity=16),
        Instrumentation(placement="program"),
        Instrumentation(clock_bits=64),
        Instrumentation(granularity="cta"),
        Instrumentation(buffer="global"),
        Instrumentation(sample_warps=(1,)),
        Instrumentation(sample_programs=2),
        Instrumentation(every=2),
    ]
    keys = {
        compiled(nested, tl.float32, tl.float32, 9, BLOCK=256, instrumentation=choice).key
        for choice in choices
    }
    assert len(keys) == len(choices)


@proton.jit
def in_a_row(x_ptr, is_marked):
    place = x_ptr + tl.arange(0, 128)
    with proton.scope("load"):
        x = tl.load(place)
    if is_marked:
        proton.mark("here")
    with proton.scope("store"):
        tl.store(place, x * 2)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("capacity", [0, 1, 2, 4])
def test_a_kernel_that_fills_no_segment_takes_no_chunks(capacity: int) -> None:
    """Three records at most: with room for them flush is the code of the ring buffer, and what the
    launch passes is that, too; else, and in a loop, each unit takes chunks of a slab."""
    flush = Instrumentation(strategy="flush", capacity=capacity)
    found = compiled(in_a_row, tl.float32, tl.int32, instrumentation=flush)
    profile = found.profile
    assert profile is not None
    assert profile.takes_chunks == (capacity in (1, 2))
    ring = Instrumentation(capacity=capacity)
    circular = compiled(in_a_row, tl.float32, tl.int32, instrumentation=ring)
    is_same = found.asm["ptx"].split(".entry")[1] == circular.asm["ptx"].split(".entry")[1]
    assert is_same == (not profile.takes_chunks)
    looped = compiled(nested, tl.float32, tl.float32, 9, BLOCK=256, instrumentation=flush)
    assert looped.profile is not None
    assert looped.profile.takes_chunks


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("blocks", [(128, 128, 64, 8), (32, 64, 32, 2)], ids=["wgmma", "mma"])
def test_records_leave_a_pipeline_as_it_is(blocks: tuple[int, int, int, int], mode: str) -> None:
    """The same work in the same order, with as many copies under way."""
    m, n, k, warps = blocks

    def kernel(instrumentation: Instrumentation | None) -> GPUKernel:
        return compiled(
            matmul_kernel, *[tl.float16] * 3, 4096, 4096, 4096, 4096, 1, 4096, 1, 4096, 1,
            BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=8, num_warps=warps, num_stages=3,
            instrumentation=instrumentation,
        )  # fmt: skip

    plain, recorded = kernel(None), kernel(MODES[mode])
    expected, found = work(plain.asm["ptx"]), work(recorded.asm["ptx"])
    assert expected.count("cp.async.commit_group") == 3
    barriers = found.count("bar.sync") - expected.count("bar.sync")
    assert barriers <= 1, "one, ahead of what is written at the end"
    assert [w for w in found if w != "bar.sync"] == [w for w in expected if w != "bar.sync"]
    profile = recorded.metadata["profile"]
    assert {scope["path"] for scope in profile["scopes"]} == {"load", "dot", "store"}
