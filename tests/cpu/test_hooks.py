"""What programs set in Triton's groups of knobs: hooks of launches and compilations, listeners."""

import enum
import functools
import gc
import json
import math
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import knobs
from proton.base.locations import without_locations
from proton.runtime import driver

CONFIGS = [proton.Config({"BLOCK": 16}), proton.Config({"BLOCK": 32})]


@pytest.fixture(autouse=True)
def apart(tmp_path: Path) -> Iterator[None]:
    """A disk cache of its own, and hooks that end with the test."""
    with knobs.scope(cache_dir=tmp_path), knobs.runtime.scope(), knobs.compilation.scope():
        with knobs.autotuning.scope():
            yield


def kernel(**options: Any) -> Any:
    """A kernel that no process has compiled."""

    @proton.jit(**options)
    def fill(x, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(x + at, 1.0, mask=at < n)

    return fill


def test_launches_are_between_their_hooks() -> None:
    heard: list[Any] = []
    computed: list[Any] = []

    def metadata(grid: Any, facts: Any, args: Any) -> dict[str, Any]:
        computed.append(grid)
        shape = f"{facts.num_warps} x {facts.num_stages} x {facts.num_ctas}"  # one thread's
        return {"name": f"{facts.name} of {args['n']}, {shape}", "bytes": 4 * args["n"]}

    x = np.zeros(8, np.float32)
    knobs.runtime.launch_enter_hook = lambda facts: heard.append((facts, x.sum()))
    knobs.runtime.launch_exit_hook = lambda facts: heard.append((facts.get(), x.sum()))
    fill = kernel(launch_metadata=metadata)
    fill[(1,)](x, 5, BLOCK=8)
    (first, before), (facts, after) = heard
    assert (before, after) == (0, 5)
    assert facts == {"name": "fill of 5, 1 x 1 x 1", "bytes": 20, "function": None, "stream": 0}
    assert first.get() is facts
    assert computed == [(1,)]
    knobs.runtime.launch_enter_hook = knobs.runtime.launch_exit_hook = None
    fill[(1,)](x, 6, BLOCK=8)
    assert len(heard) == 2


@pytest.mark.interpreted
def test_one_thread_runs_a_program() -> None:
    facts = kernel()[(1,)](np.zeros(8, np.float32), 5, BLOCK=8).metadata
    assert (facts.num_warps, facts.num_stages, facts.num_ctas) == (1, 1, 1)


def test_several_hooks_of_a_launch_are_a_chain() -> None:
    heard: list[str] = []

    def second(facts: Any) -> None:
        heard.append("second")

    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        assert not chain
        chain.add(lambda facts: heard.append("first"))
        chain.add(second)
        chain.add(second)
    fill, x = kernel(), np.zeros(8, np.float32)
    fill[(1,)](x, 5, BLOCK=8)
    assert heard == ["first", "second", "second", "first"]
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.remove(second)
        knobs.runtime.launch_exit_hook = None
        fill[(1,)](x, 5, BLOCK=8)
    assert heard[4:] == ["first"]
    fill[(1,)](x, 5, BLOCK=8)
    assert heard[5:] == heard[:4]


def test_code_is_loaded_between_its_hooks() -> None:
    heard: list[Any] = []
    knobs.runtime.kernel_load_start_hook.add(lambda *facts: heard.append(facts))
    knobs.runtime.kernel_load_end_hook.add(lambda *facts: heard.append(facts))
    found = kernel()[(1,)](np.zeros(8, np.float32), 5, BLOCK=8)
    (_, nothing, *before), (_, function, *after) = heard
    assert nothing is None
    assert callable(function)
    assert before == after == [found.name, found.metadata, found.hash]


def test_a_hook_of_one_kernel_gets_its_arguments() -> None:
    seen: list[Any] = []
    fill, x = kernel(), np.zeros(8, np.float32)
    fill.add_pre_run_hook(lambda *args, **kwargs: seen.append((args, kwargs, x.sum())))
    fill[(1,)](x, 5, BLOCK=8)
    assert seen == [((x, 5), {"BLOCK": 8}, 0.0)]


def test_a_program_may_veto_compilations() -> None:
    asked: list[dict[str, Any]] = []

    def veto(**facts: Any) -> bool:
        asked.append(facts)
        return True

    knobs.runtime.jit_cache_hook = veto
    fill, x = kernel(), np.zeros(8, np.float32)
    assert fill[(1,)](x, 5, BLOCK=8) is None
    assert fill.warmup(x, 5, BLOCK=8) is None
    assert not x.any()
    facts = asked[0]
    assert facts["repr"] == "fill(x: *fp32, n: i32)"
    assert facts["fn"].jit_function is fill
    assert facts["compile"]["constants"] == {"BLOCK": 8}
    assert facts["compile"]["signature"]["BLOCK"] == "constexpr"
    assert facts["already_compiled"] is False
    done: list[Any] = []
    knobs.runtime.jit_cache_hook = None
    knobs.runtime.jit_post_compile_hook = lambda **facts: done.append(facts["already_compiled"])
    assert fill[(1,)](x, 5, BLOCK=8).name == "fill"
    assert x.sum() == 5
    assert done == [True]


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_while_a_kernel_compiles(is_enabled: bool) -> None:
    during: list[bool] = []

    def hook(**facts: Any) -> bool:
        during.append(gc.isenabled())
        return len(during) == 2  # which is an exception within the compiler

    knobs.runtime.jit_cache_hook = hook
    (gc.enable if is_enabled else gc.disable)()
    try:
        for _ in range(2):
            kernel().warmup(tl.float32, 5, BLOCK=8)
            assert gc.isenabled() is is_enabled
    finally:
        gc.enable()
    assert during == [False, False]


def test_a_listener_hears_of_compilations_and_of_what_is_found_on_disk() -> None:
    heard: list[Any] = []
    knobs.compilation.listener = lambda **facts: heard.append(facts)
    for _ in range(2):
        kernel().warmup(tl.float32, 5, BLOCK=8)
    assert [facts["cache_hit"] for facts in heard] == [False, True]
    assert heard[0]["metadata"]["hash"] == heard[1]["metadata"]["hash"]
    assert heard[0]["metadata"]["target"] == driver.active.get_current_target()
    times = heard[0]["times"]
    assert times.ir_initialization > 0
    assert times.store_results > 0
    assert times.total > times.total_lowering > 0
    assert {"ttir", "llvm"} <= {name for name, _ in times.lowering_stages}
    hit = heard[1]["times"]
    assert hit.total == hit.ir_initialization > 0
    assert heard[0]["metadata"]["name"] == "fill"
    made = kernel().warmup(tl.float32, 16, BLOCK=8, target=proton.GPUTarget("cuda", 90))
    aligned, facts = [["tt.divisibility", 16]], heard.pop()
    assert facts["src"].attrs == {(0,): aligned, (1,): [*aligned, ["tt.non_negative", 1]]}
    assert facts["metadata"]["backend_name"] == "cuda"
    assert facts["metadata"]["hash"] == made.hash == made.metadata.hash
    files = {name: Path(path).read_bytes() for name, path in facts["metadata_group"].items()}
    for level in ("ttir", "ttgir", "llir", "ptx"):
        assert without_locations(files[f"fill.{level}"].decode()) == made.asm[level]
    assert files["fill.cubin"] == made.asm["cubin"]
    assert json.loads(files["fill.json"])["data"]["name"] == "fill"
    for source in (facts["src"] for facts in heard):
        assert (source.fn.__name__, source.name) == ("fill", "fill")
        assert source.fn.cache_key == kernel().cache_key
        assert source.signature == {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        assert source.constants == {(2,): 8}
        assert source.attrs == {}  # what 16 divides is the same code on the CPU


def test_a_listener_hears_what_autotuning_chose() -> None:
    heard: list[Any] = []
    knobs.autotuning.listener = lambda **facts: heard.append(facts)
    fill = kernel()
    tuned = proton.autotune(CONFIGS, key=["n"], do_bench=lambda call, quantiles: [1.0])(fill)
    for _ in range(2):
        tuned[(1,)](np.zeros(8, np.float32), 5)
    (facts,) = heard
    assert facts["fn"] is fill
    assert facts["best_config"] is CONFIGS[0]
    assert list(facts["configs_timings"]) == CONFIGS
    assert facts["cache_hit"] is False


def test_groups_have_our_knobs_by_tritons_names() -> None:
    knobs.compilation.always_compile = True
    assert knobs.always_compile
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        assert knobs.debug
    assert not knobs.debug
    with pytest.raises(
        AttributeError, match=r"no knob is named 'runtime\.speed'; there are .*debug"
    ):
        knobs.runtime.speed
    with pytest.raises(TypeError, match="a hook is a function, got None"):
        knobs.runtime.launch_enter_hook.add(None)
    with pytest.raises(TypeError, match=r"runtime\.launch_enter_hook is a function or None, got 3"):
        knobs.runtime.launch_enter_hook = 3


# AsyncCompileMode


def test_kernels_are_compiled_while_the_program_goes_on() -> None:
    fill, x = kernel(), np.zeros(32, np.float32)
    with ThreadPoolExecutor(2) as executor, proton.AsyncCompileMode(executor):
        futures = [fill.warmup(x, 5, BLOCK=block) for block in (8, 16)]
        assert all(isinstance(future, proton.FutureKernel) for future in futures)
    assert [future.name for future in futures] == ["fill", "fill"]
    futures[0][(1,)](x, 5)
    assert x.sum() == 5
    assert fill.warmup(x, 5, BLOCK=8) is futures[0].result()


class Deferring(Executor):
    """Runs what it is given when it is told to."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Future[Any], Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append((future, functools.partial(fn, *args, **kwargs)))
        return future

    def run_first(self) -> None:
        future, task = self.tasks.pop(0)
        future.set_result(task())


def test_a_kernel_that_is_asked_for_twice_is_compiled_once() -> None:
    fill, x = kernel(), np.zeros(32, np.float32)
    executor = Deferring()
    with proton.AsyncCompileMode(executor):
        asked = [fill.warmup(x, 5, BLOCK=block) for block in (8, 16)]
        fill.warmup(x, 5, BLOCK=8, debug=True)
        assert len(executor.tasks) == 3
        there = fill.device_caches["cpu"][0]
        assert {id(kernel) for kernel in there.values()} >= set(map(id, asked))  # under way
        assert len(there) == 3
        assert fill.warmup(x, 6, BLOCK=8) is asked[0]
        assert fill.warmup(tl.float32, 5, BLOCK=16) is asked[1]
        assert len(executor.tasks) == 3
        executor.run_first()
        fill[(1,)](x, 5, BLOCK=8)
        assert len(there) == 3
        while executor.tasks:
            executor.run_first()
        assert {kernel.key for kernel in there.values()} >= {future.key for future in asked}
        assert not any(isinstance(kernel, proton.FutureKernel) for kernel in there.values())
    assert x.sum() == 5


def test_errors_of_such_kernels_come_at_the_end_unless_they_are_ignored() -> None:
    fill = kernel()
    executor = ThreadPoolExecutor(1)
    with pytest.raises(proton.CompilationError):
        with proton.AsyncCompileMode(executor):
            future = fill.warmup(tl.float32, 5, BLOCK=7)
    with proton.AsyncCompileMode(executor, ignore_errors=True):
        future = fill.warmup(tl.float32, 5, BLOCK=7)
    assert future.result(ignore_errors=True) is None
    with proton.AsyncCompileMode(executor):
        with pytest.raises(RuntimeError, match="active already"):
            with proton.AsyncCompileMode(executor):
                pass
    executor.shutdown()


def test_a_kernel_is_preloaded_from_what_a_hook_was_told(tmp_path: Path) -> None:
    told: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **facts: told.append(facts["compile"])
    fill, x = kernel(), np.zeros(8, np.float32)
    key = fill[(1,)](x, 5, BLOCK=8).key
    facts = told.pop()
    assert fill.device_caches["cpu"][0][facts["key"]].key == key
    data = facts["specialization_data"]
    fill.device_caches["cpu"][0].clear()
    assert facts["key"] not in fill.device_caches["cpu"][0]
    with knobs.scope(cache_dir=tmp_path / "another"):
        assert fill.preload(data).key == key
        assert len(told) == 1
        assert len(fill.device_caches["cpu"][0]) == 1
        assert fill.warmup(tl.float32, 6, BLOCK=8).key == key
        x[:] = 0
        fill[(1,)](x, 7, BLOCK=8)
    assert x.sum() == 7
    assert len(told) == 1, "neither compiles"

    @proton.jit
    def other(x, n, BLOCK: tl.constexpr):
        tl.store(x, n)

    with pytest.raises(proton.LaunchError, match="is for fill, not other"):
        other.preload(data)
    with pytest.raises(proton.LaunchError, match="of another source"):
        kernel().preload(data.replace('"n": "i32"', '"n": "i64"'))
    elsewhere = json.dumps(json.loads(data) | {"target": {"backend": "moon", "arch": 1}})
    with pytest.raises(RuntimeError, match=r"is for the target .*moon"):
        kernel().preload(elsewhere)


def test_preloading_says_what_it_cannot_make() -> None:
    told: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **facts: told.append(facts["compile"])

    @proton.jit
    def typed(x, n, TYPE: tl.constexpr, MORE: tl.constexpr):
        tl.store(x, n.to(TYPE))

    x = np.zeros(8, np.float32)
    for more in ((1, None), (tl.float16, (twice, -0.0, "a")), math.inf):
        key = typed[(1,)](x, 2.5, TYPE=tl.float16, MORE=more).key
        assert typed.preload(told.pop()["specialization_data"]).key == key
    level = enum.IntEnum("level", {"LOW": 1}).LOW  # a number to JSON, and a named tuple is a list
    for more in (len, level, Pair(1, 2), (Pair(1, 2),)):
        typed[(1,)](x, 1 << 40, TYPE=tl.float16, MORE=more)
        with pytest.raises(proton.LaunchError, match="no JSON"):
            typed.preload(told.pop()["specialization_data"])


class Pair(NamedTuple):
    first: Any
    second: Any


@proton.jit
def twice(x):
    return x * 2


@proton.jit
def of_tuples(out, pairs, F: tl.constexpr):
    tl.store(out, F(tl.load(pairs[0].first)) + pairs[0].second + pairs[1][0] + pairs[1][1][0])


def test_tuples_and_kernels_are_preloaded(tmp_path: Path) -> None:
    """Arrays, numbers, 1 and constexprs in tuples of tuples, and a constexpr that is a kernel."""
    told: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **facts: told.append(facts["compile"])
    x, out = np.array([3.0], np.float32), np.zeros(1, np.float32)
    tuples = Pair(x, 5), (1, (tl.constexpr(7), None))
    key = of_tuples[(1,)](out, tuples, twice).key
    assert out[0] == 2 * 3 + 5 + 1 + 7
    data = told[0]["specialization_data"]
    of_tuples.device_caches.clear()
    with knobs.scope(cache_dir=tmp_path / "another"):
        assert of_tuples.preload(data).key == key
        out[:] = 0
        of_tuples[(1,)](out, tuples, twice)
    assert out[0] == 2 * 3 + 5 + 1 + 7
    assert len(told) == 2, "the launch compiles nothing"
    for part, other, why in (
        (twice.source_key(), "0", "twice is another function now"),
        ('"twice"', '"thrice"', "thrice, which is not there: import it before"),
        ('"Pair"', '"Trio"', "Trio, which is not there: import it before"),
    ):
        with pytest.raises(proton.LaunchError, match=why):
            of_tuples.preload(data.replace(part, other))


def test_a_binder_says_what_arguments_are_specialized_for() -> None:
    fill = kernel()
    *_, bind = fill.create_binder()
    bound, specialization, _ = bind(tl.float32, 1, BLOCK=8)
    assert list(bound) == ["x", "n", "BLOCK"]
    assert bound["BLOCK"] == 8
    assert [entry[0] for entry in specialization] == ["*fp32", "constexpr", "constexpr"]
    assert specialization[1:] == [("constexpr", 1), ("constexpr", 8)]
    target = proton.GPUTarget("cuda", 90)
    _, specialization, options = bind(tl.float32, 32, BLOCK=8, num_warps=2, target=target)
    assert specialization == [("*fp32", "D"), ("i32", "DN"), ("constexpr", 8)]
    assert options.num_warps == 2
    for number, letters in ((-32, "D"), (7, "N"), (0, "DN"), (-7, "")):
        assert bind(tl.float32, number, BLOCK=8, target=target)[1][1] == ("i32", letters)


def test_hooks_are_told_what_is_only_compiled(request: pytest.FixtureRequest) -> None:
    """And of which function: by its qualified name, as Triton has it."""

    @proton.jit
    def local(x_ptr, N: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, N), N)

    told: list[tuple[object, ...]] = []

    def hook(**facts: Any) -> None:
        compile_ = facts["compile"]
        told.append((compile_["is_warmup"], facts["is_manual_warmup"], facts["fn"].name))

    with proton.knobs.runtime.scope():
        proton.knobs.runtime.jit_cache_hook = hook
        local.warmup(tl.float32, 8)
        local[(1,)](np.zeros(16, np.float32), 16)
        local[(1,)](np.zeros(16, np.float32), 8)
    name = f"{request.node.name}.<locals>.local"
    assert told == [(True, True, name), (False, False, name)]
