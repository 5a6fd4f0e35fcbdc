"""Autotuning and heuristics: what is tried, what is chosen, what arguments look like meanwhile.

No test depends on times: what measures is given, and says what the test wants.
"""

import copy
import math
import os
import resource
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import AutotunerError, NotAKernel, OutOfResources, ProtonError
from proton.compiler import compile_function
from proton.compiling import ahead as compile_ahead
from proton.compiling import cache
from proton.runtime.tuning.autotuner import Autotuner
from proton.runtime.tuning.heuristics import Heuristics
from proton.runtime.tuning.kept_runs import LONGEST_STEM, stem
from proton.viewer import Run
from proton.viewer.compare.against import against


@proton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs) + tl.load(y_ptr + offs))
    else:
        mask = offs < n
        x, y = tl.load(x_ptr + offs, mask=mask), tl.load(y_ptr + offs, mask=mask)
        tl.store(out_ptr + offs, x + y, mask=mask)


@proton.jit
def accumulate(x_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    total = tl.load(sum_ptr + offs, mask=mask) + tl.load(x_ptr + offs, mask=mask)
    tl.store(sum_ptr + offs, total, mask=mask)


@proton.jit
def picky(out_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 16, "too small")
    tl.store(out_ptr + tl.arange(0, BLOCK), BLOCK)


class Bench:
    """Measures nothing: calls once, and says the times that it was given, in turns."""

    def __init__(self, *times: float) -> None:
        self.times, self.calls = times, 0

    def __call__(self, call: Callable[[], Any], quantiles: Iterable[float]) -> list[float]:
        call()
        self.calls += 1
        return [self.times[(self.calls - 1) % len(self.times)]] * len(list(quantiles))


def configs(*blocks: int, **options: Any) -> list[proton.Config]:
    return [proton.Config({"BLOCK": block}, **options) for block in blocks]


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (proton.cdiv(meta["n"], meta["BLOCK"]),)


def inputs(rng: np.random.Generator, n: int, dtype: Any = np.float32) -> list[np.ndarray]:
    return [rng.standard_normal(n).astype(dtype) for _ in range(2)] + [np.zeros(n, dtype)]


def test_the_fastest_is_kept_for_each_key(rng: np.random.Generator) -> None:
    bench = Bench(3.0, 1.0, 2.0)
    tuned = proton.autotune(configs(16, 64, 128), key=["n"], do_bench=bench)(add)
    for n, dtype, tried in ((77, "f4", 3), (77, "f4", 3), (1000, "f4", 6), (1000, "f8", 9)):
        x, y, out = inputs(rng, n, dtype)
        tuned[grid](x, y, out, n)
        np.testing.assert_array_equal(out, x + y)
        assert bench.calls == tried
        assert tuned.best_config is not None
        assert tuned.best_config.kwargs == {"BLOCK": 64}
    assert len(tuned.cache) == 3
    assert [timing[0] for timing in tuned.configs_timings.values()] == [3.0, 1.0, 2.0]
    assert [line.split()[0] for line in tuned.table().splitlines()] == [
        "1.000000", "2.000000", "3.000000",
    ]  # fmt: skip
    assert tuned.run(x, y, out, n, grid=grid).name == "add"


def test_one_configuration_is_not_measured(rng: np.random.Generator) -> None:
    bench = Bench(1.0)
    x, y, out = inputs(rng, 50)
    for pruned in (False, True):
        by = {"early_config_prune": lambda found, args, **kwargs: found[1:]} if pruned else {}
        found = configs(16, 32) if pruned else configs(32)
        tuned = proton.autotune(found, ["n"], prune_configs_by=by, do_bench=bench)(add)
        tuned[grid](x, y, out, 50)
        np.testing.assert_array_equal(out, x + y)
        assert tuned.best_config is found[-1]
    assert bench.calls == 0


def test_launches_that_are_the_same_are_measured_once(rng: np.random.Generator) -> None:
    """On a CPU the number of warps means nothing, unless the grid depends on it."""
    found = [proton.Config({"BLOCK": size}, num_warps=n) for size in (16, 32) for n in (2, 4, 8)]
    for launched, tried in ((grid, 2), (lambda meta: (4 * meta["num_warps"],), 6)):
        bench = Bench(*range(tried, 0, -1))
        tuned = proton.autotune(found, ["n"], do_bench=bench)(proton.jit(add.fn))
        x, y, out = inputs(rng, 77)
        tuned[launched](x, y, out, 77)
        np.testing.assert_array_equal(out, x + y)
        assert bench.calls == tried
        assert len(tuned.configs_timings) == len(found)
        assert tuned.best_config == found[3 if tried == 2 else 5]


def test_a_derived_class_sets_what_prunes_and_knows_keys(rng: np.random.Generator) -> None:
    class Mine(proton.runtime.Autotuner):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            assert not self.user_defined_pre_hook
            assert not self.user_defined_post_hook
            self.early_config_prune = lambda found, args, **kwargs: found[1:]

    bench, found = Bench(1.0, 2.0), configs(16, 32, 64)
    tuned = Mine(add, add.arg_names, found, ["n"], None, None, do_bench=bench)
    x, y, out = inputs(rng, 50)
    tuned[grid](x, y, out, 50)
    np.testing.assert_array_equal(out, x + y)
    assert (bench.calls, tuned.best_config) == (2, found[1])
    known = Mine(add, add.arg_names, found, ["n"], None, None, do_bench=bench)
    known.cache[50, "float32", "float32", "float32"] = found[0]
    known[grid](x, y, out, 50)
    assert (bench.calls, known.best_config) == (2, found[0])
    hooked = proton.autotune(found, ["n"], pre_hook=print, post_hook=print)(add)
    assert hooked.user_defined_pre_hook
    assert hooked.user_defined_post_hook


def test_arguments_are_as_before_while_it_tries(rng: np.random.Generator) -> None:
    x, total, _ = inputs(rng, 100)
    before = total.copy()
    for option, start in (("reset_to_zero", np.zeros_like(before)), ("restore_value", before)):
        total[:] = before
        found = configs(16, 32, 64)
        bench = Bench(2.0, 1.0)
        tuned = proton.autotune(found, ["n"], **{option: ["sum_ptr"]}, do_bench=bench)(accumulate)
        tuned[grid](x, total, 100)
        np.testing.assert_array_equal(total, start + x)
        assert bench.calls == 3
        tuned[grid](x, total, 100)  # nothing is reset where nothing is tried
        np.testing.assert_array_equal(total, start + x + x)


def test_hooks_are_called_around_each_call(rng: np.random.Generator) -> None:
    said: list[Any] = []
    found = configs(16, 32, pre_hook=lambda args: said.append(("config", args["BLOCK"])))
    tuned = proton.autotune(
        found,
        key=[],
        pre_hook=lambda args, reset_only=False: said.append(("pre", args["n"], reset_only)),
        post_hook=lambda args, exception: said.append(("post", args["BLOCK"], exception)),
        do_bench=Bench(2.0, 1.0),
    )(add)
    x, y, out = inputs(rng, 10)
    tuned[grid](x, y, out, 10)
    around = [[("config", b), ("pre", 10, False), ("post", b, None)] for b in (16, 32)]
    assert said == [*around[0], *around[1], ("pre", 10, True), ("config", 32)]


def test_a_hook_may_change_the_arguments(rng: np.random.Generator) -> None:
    """... before the launch that follows it, as Triton's tutorials do with descriptors."""
    seen = []

    def hook(args: dict[str, Any]) -> None:
        args["out_ptr"][:] = args["BLOCK"]
        seen.append(args["BLOCK"])

    found = configs(16, 32, pre_hook=hook)
    tuned = proton.autotune(found, ["n"], do_bench=Bench(1.0, 2.0))(accumulate_into_out)
    x, out = rng.standard_normal((2, 40)).astype("f4")
    tuned[grid](x, out, 40)
    np.testing.assert_array_equal(out, 16 + x)
    assert seen == [16, 32, 16]


@proton.jit
def accumulate_into_out(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    accumulate_rows(x_ptr, out_ptr, n, BLOCK)


@proton.jit
def accumulate_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    total = tl.load(out_ptr + offs, mask=mask) + tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, total, mask=mask)


@pytest.mark.parametrize(
    ("by", "tried"),
    [
        ({"perf_model": lambda BLOCK, **_: -BLOCK, "top_k": 2}, [128, 64]),
        ({"perf_model": lambda BLOCK, n, **_: abs(BLOCK - n), "top_k": 0.5}, [64, 32]),
        ({"perf_model": lambda BLOCK, **_: BLOCK, "top_k": 0.1}, [16]),
        ({"perf_model": lambda BLOCK, **_: -BLOCK, "configs_top_k": 3}, [128, 64, 32]),
        ({"perf_model": None, "top_k": None}, [16, 32, 64, 128]),  # as FBGEMM says that it has none
        ({"early_config_prune": lambda found, args, **kw: found[: args["n"] // 20]}, [16, 32, 64]),
    ],
)
def test_pruning_leaves_what_is_worth_a_try(
    by: dict[str, Any], tried: list[int], rng: np.random.Generator
) -> None:
    found = configs(16, 32, 64, 128)
    tuned = proton.autotune(found, ["n"], prune_configs_by=by, do_bench=Bench(1.0))(add)
    x, y, out = inputs(rng, 60)
    tuned[grid](x, y, out, 60)
    assert [config.kwargs["BLOCK"] for config in tuned.configs_timings or [tuned.best_config]] == (
        tried
    )


def test_what_does_not_fit_is_not_chosen() -> None:
    out = np.zeros(64, np.int32)
    tuned = proton.autotune(configs(8, 16, 32, 64), key=[], do_bench=Bench(2.0, 1.0))(picky)
    tuned[(1,)](out)
    np.testing.assert_array_equal(out, 64)
    first = [timing[0] for timing in tuned.configs_timings.values()]
    assert first == [math.inf, math.inf, 2.0, 1.0]
    hopeless = proton.autotune(configs(8, 16), key=[], do_bench=Bench(1.0), cache_results=True)
    with pytest.raises(proton.CompileTimeAssertionFailure, match="too small"):
        hopeless(picky)[(1,)](out)


def test_other_errors_are_told() -> None:
    def refuses(call: Callable[[], Any], quantiles: Any) -> list[float]:
        raise OutOfResources(5, 3, "shared memory")

    out = np.zeros(64, np.int32)
    tuned = proton.autotune(configs(32, 64), key=[], do_bench=refuses)(picky)
    tuned[(1,)](out)
    assert set(map(tuple, tuned.configs_timings.values())) == {(math.inf,) * 3}
    wrong = proton.autotune(configs(32, 33), key=[], do_bench=Bench(1.0))(picky)
    with pytest.raises(proton.CompilationError, match="power of 2"):
        wrong[(1,)](out)


def test_a_program_says_itself_that_resources_are_short() -> None:
    """As with Triton's constructor; processes that compile hand it over by a pickle."""
    made = OutOfResources(5, 3, "shared memory")
    for error in (made, copy.copy(made)):
        assert (error.required, error.limit, error.name) == (5, 3, "shared memory")
        assert str(error).startswith(
            "out of resource: shared memory, Required: 5, Hardware limit: 3\nhint: reduce the block"
        )


@pytest.mark.parametrize("outer", ["autotune", "heuristics"])
def test_heuristics_go_with_autotune_in_either_order(outer: str, rng: np.random.Generator) -> None:
    tune = proton.autotune(configs(16, 64), key=["n"], do_bench=Bench(2.0, 1.0))
    inside = {"EVEN": lambda args: args["n"] % args["BLOCK"] == 0}
    outside = {"EVEN": lambda args: args["n"] % 64 == 0}
    kernel = tune(proton.heuristics(inside)(add))
    if outer == "heuristics":
        kernel = proton.heuristics(outside)(tune(add))
    for n in (128, 100):
        x, y, out = inputs(rng, n)
        kernel[grid](x, y, out, n)
        np.testing.assert_array_equal(out, x + y)
        compiled = kernel.fn.warmup(
            x, y, out, n, **({} if outer == "heuristics" else {"BLOCK": 64})
        )
        compiled = compiled[1] if outer == "heuristics" else compiled
        assert f"EVEN={n == 128}" in compiled.metadata["signature"] or outer == "heuristics"


def test_heuristics_see_those_before_them_and_defaults() -> None:
    @proton.heuristics({"B": lambda args: args["n"] * 2, "C": lambda args: args["B"] + args["D"]})
    @proton.jit
    def kernel(out_ptr, n, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr = 5):
        tl.store(out_ptr, B)
        tl.store(out_ptr + 1, C)

    out = np.zeros(2, np.int32)
    kernel[(1,)](out, 10)
    assert out.tolist() == [20, 25]
    kernel[(1,)](out, n=20, B=1)  # what is computed wins, as in Triton
    assert out.tolist() == [40, 45]


def test_the_choice_is_kept_on_disk(cache_dir: Any, rng: np.random.Generator) -> None:
    x, y, out = inputs(rng, 50)

    def tuned(bench: Bench, *blocks: int) -> Autotuner:
        made = proton.autotune(configs(*blocks), ["n"], do_bench=bench, cache_results=True)(add)
        made[grid](x, y, out, 50)
        return made

    first, second, third = Bench(3.0, 1.0, 2.0), Bench(1.0), Bench(1.0)
    chosen = tuned(first, 16, 32, 64)
    again = tuned(second, 16, 32, 64)
    assert (first.calls, second.calls) == (3, 0)
    assert again.best_config == chosen.best_config == proton.Config({"BLOCK": 32})
    assert again.configs_timings == chosen.configs_timings
    tuned(third, 16, 128)
    assert third.calls == 2  # other configurations are another choice
    with proton.knobs.scope(cache_autotuning=True):
        by_knob = proton.autotune(configs(16, 32, 64), ["n"], do_bench=second)(add)
        by_knob[grid](x, y, out, 50)
    assert second.calls == 0


def test_what_it_tries_is_in_no_profile(rng: np.random.Generator) -> None:
    x, y, out = inputs(rng, 50)
    tuned = proton.autotune(configs(16, 32), ["n"], do_bench=Bench(2.0, 1.0))(add)
    with proton.profile("tuned") as run:
        with proton.scope("around"):
            tuned[grid](x, y, out, 50)
        tuned[grid](x, y, out, 50)
    assert len(run.launches) == 2
    assert "around" in set(run.frame.scope)


def test_runs_of_the_best_and_the_runner_up_are_kept_where_asked(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    """In a session or without one, and its own run has none of their launches."""
    x, y, out = inputs(rng, 50)
    plain = proton.autotune(configs(16, 32), ["n"], do_bench=Bench(2.0, 1.0))(add)
    plain[grid](x, y, out, 50)
    assert plain.kept_runs == {}
    total = np.zeros(50, np.float32)
    tuned = proton.autotune(
        configs(16, 32, 64), ["n"], do_bench=Bench(3.0, 1.0, 2.0), reset_to_zero=["sum_ptr"],
        runs=tmp_path / "asked",
    )(accumulate)  # fmt: skip
    tuned[grid](x, total, 50)
    np.testing.assert_array_equal(total, x)
    same = proton.autotune(
        [proton.Config({"BLOCK": 32}, num_warps=w) for w in (4, 8)], ["n"], do_bench=Bench(1.0)
    )(add)
    with (
        proton.knobs.scope(autotuning_runs=tmp_path / "knob", print_autotuning=True),
        proton.profile("session") as run,
    ):
        same[grid](x, y, out, 50)
    assert len(run.launches) == 1
    (only,) = same.kept_runs.values()
    assert list(only) == ["best"]  # the other configuration is the same work
    (found,) = tuned.kept_runs.values()
    runs = [Run.load(found[rank]) for rank in ("best", "second")]
    for kept in runs:
        assert kept.launches.kernel.tolist() == ["accumulate"] * 5
    said = [str(row["sentence"]) for row in against(*runs)]
    assert said[:3] == [
        "accumulate: BLOCK is 32, was 64",
        "accumulate: a launch has 2 programs, had 1",
        "accumulate: tuning measured 1 ms a launch, without records, and 2 ms (-50 %)",
    ]
    assert {path.parent for path in found.values()} == {tmp_path / "asked"}
    (tmp_path / "file").touch()
    bench = Bench(1.0)
    nowhere = proton.autotune(configs(16, 32), ["n"], do_bench=bench, runs=tmp_path / "file")(add)
    with pytest.raises(ProtonError, match=r"no profiles can be kept in .*file \(runs=, or"):
        nowhere[grid](x, y, out, 50)
    assert bench.calls == 0


def test_files_of_other_keys_have_other_names() -> None:
    many = ("float16",) * 30
    keys = [(-3,), ("_3",), ("a/b",), ("a b",), (*many, "float16"), (*many, "bfloat16")]
    names = [stem("add", key) for key in keys]
    assert len(set(names)) == len(keys)
    assert all(len(name) <= LONGEST_STEM and "/" not in name for name in names)
    assert stem("add", (50, 1.5, "float32")) == "add-50-1.5-float32"


def test_threads_that_come_at_once_tune_once(rng: np.random.Generator) -> None:
    bench = Bench(2.0, 1.0)
    tuned = proton.autotune(configs(16, 32), ["n"], do_bench=bench)(add)
    sets = [inputs(rng, 50) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda found=found: tuned[grid](*found, 50)) for found in sets
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.calls == 2
    for x, y, out in sets:
        np.testing.assert_array_equal(out, x + y)


def test_a_table_is_printed(capsys: pytest.CaptureFixture[str], rng: np.random.Generator) -> None:
    tuned = proton.autotune(configs(16, 32), ["n"], do_bench=Bench(2.0, 1.0))(add)
    with proton.knobs.scope(print_autotuning=True):
        tuned[grid](*inputs(rng, 50), 50)
    first, *rows = capsys.readouterr().err.splitlines()
    assert first.startswith("autotuning add for (50, 'float32', ")
    assert [row.split()[2] for row in rows] == ["32,", "16,"]


# Compiling several at once


def test_processes_fill_the_cache(cache_dir: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[int] = []
    fork = compile_ahead._fork
    monkeypatch.setattr(compile_ahead, "_fork", lambda: note(forks, fork()))
    kernel = proton.jit(add.fn)  # which has no code in memory
    args = [tl.float32, tl.float32, tl.float32, 77]
    found = configs(16, 32, 64, 48)  # 48 cannot be compiled: the program finds out by itself
    with proton.knobs.scope(compile_processes=2), pytest.raises(proton.CompilationError):
        proton.autotune(found, key=["n"])(kernel).warmup(*args)
    assert len(forks) == 2
    made = proton.autotune(found[:3], key=["n"])(kernel).warmup(*args)
    assert len(forks) == 2
    assert all(one.from_cache for one in made)
    requests = [kernel.request(*args, BLOCK=block) for block in (16, 32, 64)]
    assert all(request is not None and cache.has(request.key) for request in requests)


def test_the_largest_kernels_come_first(cache_dir: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    monkeypatch.setattr(
        compile_ahead,
        "_run",
        lambda requests, _: begun.extend(r.signature.constants["BLOCK"] for r in requests),
    )
    with proton.knobs.scope(compile_processes=2):
        tuned = proton.autotune(configs(32, 128, 16, 64), key=["n"])(proton.jit(add.fn))
        tuned.warmup(*[tl.float32] * 3, 77)
    assert begun == [128, 64, 32, 16]


def note(forks: list[int], process: int) -> int:
    forks.append(process)
    return process


def test_a_program_may_have_a_thousand_files_open(cache_dir: Any) -> None:
    """`select` takes no file from number 1024 on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("this process may not have so many")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    held = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while held[-1] < 1024:
            held.append(os.dup(held[0]))
        with proton.knobs.scope(compile_processes=2):
            tuned = proton.autotune(configs(16, 32), key=["n"])(proton.jit(add.fn))
            assert all(made.from_cache for made in tuned.warmup(*[tl.float32] * 3, 77))
    finally:
        for file in held:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_that_hangs_is_given_up(cache_dir: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_ahead, "compile_function", lambda *_: threading.Event().wait())
    monkeypatch.setattr(compile_ahead, "_PATIENCE", 0.2)
    with proton.knobs.scope(compile_processes=2):
        tuned = proton.autotune(configs(16, 32), key=["n"])(proton.jit(add.fn))
        assert len(tuned.warmup(*[tl.float32] * 3, 77)) == 2


def test_a_process_that_computes_is_waited_for(
    cache_dir: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """... itself or by one that it started, however long it takes."""
    patience = 0.5  # so long a busy machine keeps no process from computing

    def computes() -> None:
        end = time.process_time() + 1.5 * patience
        while time.process_time() < end:
            pass

    def compiles(*request: Any) -> Any:
        if request[2].constants["BLOCK"] == 32:
            if (child := os.fork()) == 0:
                computes()
                os._exit(0)
            os.waitpid(child, 0)
            computes()
        return compile_function(*request)

    monkeypatch.setattr(compile_ahead, "compile_function", compiles)
    monkeypatch.setattr(compile_ahead, "_PATIENCE", patience)
    with proton.knobs.scope(compile_processes=2):
        tuned = proton.autotune(configs(16, 32), key=["n"])(proton.jit(add.fn))
        assert all(made.from_cache for made in tuned.warmup(*[tl.float32] * 3, 77))


def test_a_system_that_has_no_process_left(cache_dir: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(compile_ahead, "_fork", refuses)
    with proton.knobs.scope(compile_processes=2):
        tuned = proton.autotune(configs(16, 32), key=["n"])(proton.jit(add.fn))
        assert len(tuned.warmup(*[tl.float32] * 3, 77)) == 2


# Errors


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"key": "n"}, ValueError, "key is a list"),
        ({"reset_to_zero": ["out"]}, ValueError, "no parameter of add; did you mean out_ptr?"),
        ({"restore_value": "out_ptr"}, ValueError, "restore_value is a list"),
        ({"configs": [{"BLOCK": 16}]}, TypeError, "a configuration is a Config"),
        ({"prune_configs_by": {"top": 1}}, ValueError, "no entry 'top'"),
        ({"prune_configs_by": {"top_k": 1.5}}, ValueError, "top_k is a number"),
        ({"prune_configs_by": {"perf_model": len, "top_k": None}}, ValueError, "top_k is a number"),
        ({"prune_configs_by": {"perf_model": 3}}, ValueError, "perf_model is a function"),
    ],
)
def test_a_wrong_option_is_an_error(options: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words.replace("?", r"\?")):
        proton.autotune(**{"configs": configs(16), "key": ["n"]} | options)(add)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        *(
            ({"do_bench": lambda call, quantiles, found=found: found}, ValueError, "a time in ms")
            for found in (None, "fast", [], [math.nan, 1.0], np.zeros(0), {1.0})
        ),
        (
            {"prune_configs_by": {"early_config_prune": lambda *given, **named: [16, 32]}},
            TypeError,
            "a configuration is a Config, got 16",
        ),
    ],
)
def test_a_function_that_gives_something_else_is_an_error(
    rng: np.random.Generator, options: dict[str, Any], error: Any, words: str
) -> None:
    tuned = proton.autotune(configs(16, 32), ["n"], **options)(add)
    for _ in range(2):  # nothing is chosen
        with pytest.raises(error, match=words):
            tuned[grid](*inputs(rng, 50), 50)


def test_times_are_numbers_of_any_library(rng: np.random.Generator) -> None:
    times = iter([3, np.float32(2), np.array([1.0, 4.0, 0.5]), (4.0, 1.0), np.array(5.0)])
    tuned = proton.autotune(
        configs(8, 16, 32, 64, 128), ["n"], do_bench=lambda call, quantiles: next(times)
    )(add)
    x, y, out = inputs(rng, 50)
    tuned[grid](x, y, out, 50)
    np.testing.assert_array_equal(out, x + y)
    assert tuned.best_config.kwargs["BLOCK"] == 32
    assert [line.split()[0] for line in tuned.table().splitlines()] == [
        f"{ms}.000000" for ms in range(1, 6)
    ]


def test_a_copy_of_what_holds_kernels_holds_the_same() -> None:
    """As a model does; an Autotuner has a lock, which nobody copies."""
    tuned = proton.autotune(configs(16, 32), ["n"])(add)
    computed = proton.heuristics({"BLOCK": lambda args: 16})(add)
    for kernel in (add, tuned, computed):
        assert copy.deepcopy({"kernel": [kernel]}) == {"kernel": [kernel]}


def test_an_unknown_name_in_the_key_is_dropped(rng: np.random.Generator) -> None:
    """As libraries have it."""
    x, y, out = inputs(rng, 50)
    with pytest.warns(UserWarning, match="not kernel arguments: 'm' is no parameter of add"):
        tuned = proton.autotune(configs(16, 32), ["m", "n"], do_bench=Bench(2.0, 1.0))(add)
    assert tuned.keys == ["n"]
    tuned[grid](x, y, out, 50)
    np.testing.assert_array_equal(out, x + y)
    assert tuned.best_config.kwargs["BLOCK"] == 32


def test_a_wrong_launch_is_an_error(rng: np.random.Generator) -> None:
    x, y, out = inputs(rng, 50)
    tuned = proton.autotune(configs(16, 32), ["n"], do_bench=Bench(1.0))(add)
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        tuned[grid](x, y, out, 50, BLOCK=16)
    with pytest.raises(ValueError, match="num_warps"):
        tuned[grid](x, y, out, 50, num_warps=8)
    with pytest.raises(ValueError, match="not hashable"):
        tuned[grid](x, y, out, [50])
    none = {"early_config_prune": lambda found, args, **kw: []}
    with pytest.raises(AutotunerError, match=r"Autotuner error: No valid .* at least one"):
        proton.autotune(configs(16, 32), ["n"], prune_configs_by=none)(add)[grid](x, y, out, 50)
    with pytest.raises(RuntimeError, match=r"call it as add\[grid\]"):
        tuned(x, y, out, 50)
    wide = proton.autotune(configs(16, 32), ["n"], reset_to_zero=["n"], do_bench=Bench(1.0))(add)
    with pytest.raises(proton.LaunchError, match="argument n can be neither cleared nor restored"):
        wide[grid](x, y, out, 50)


def test_what_is_decorated_must_be_a_kernel() -> None:
    with pytest.raises(TypeError, match=r"put it above @proton\.jit"):
        proton.autotune(configs(16), key=[])(lambda n: n)
    with pytest.raises(TypeError, match="heuristics decorates a kernel"):
        proton.heuristics({})(print)
    with pytest.raises(ValueError, match="no parameter 'BLCK'; did you mean BLOCK"):
        proton.heuristics({"BLCK": lambda args: 1})(add)
    with pytest.raises(TypeError, match="EVEN must be a function"):
        proton.heuristics({"EVEN": True})(add)
    asks = proton.heuristics({"EVEN": lambda args: args["m"] > 1})(add)
    with pytest.raises(proton.LaunchError, match="asks for 'm', which it is not given"):
        asks[(1,)](*[np.zeros(4, np.float32)] * 3, 4)


def test_options_that_mean_nothing_say_so() -> None:
    with pytest.warns(UserWarning, match="use_cuda_graph=True is ignored"):
        proton.autotune(configs(16), key=["n"], use_cuda_graph=True)


def test_a_config_is_what_it_holds() -> None:
    config = proton.Config({"BLOCK": 16}, num_warps=8, maxnreg=64)
    options = {"BLOCK": 16, "num_warps": 8, "num_ctas": 1, "num_stages": 3, "maxnreg": 64}
    assert config.all_kwargs() == options
    said = "BLOCK: 16, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: 64, ir_override: None"
    assert str(config) == said
    assert config == proton.Config({"BLOCK": 16}, num_warps=8, maxnreg=64)
    assert len({config, proton.Config({"BLOCK": 16}), proton.Config({"BLOCK": 16})}) == 2


class Runnable:
    """What is no kernel, and launches something all the same, as libraries derive."""

    def __init__(self) -> None:
        self.fn, self.seen = lambda: None, list[dict[str, Any]]()

    def run(self, *args: object, **kwargs: Any) -> None:
        self.seen.append({"args": args} | kwargs)


def test_an_object_that_runs_is_tuned_and_needs_no_kernel() -> None:
    inner = Runnable()
    configs = [proton.Config({"BLOCK": block}) for block in (1, 2, 4)]
    times = iter([3.0, 1.0, 2.0])

    def do_bench(call: Callable[[], object], quantiles: object) -> list[float]:
        call()
        return [next(times)] * 3

    tuned = Autotuner(inner, ["n"], configs, key=["n"], do_bench=do_bench)
    known = Heuristics(tuned, {"EVEN": lambda args: args["n"] % 2 == 0})
    known.run(6, grid=(7,), warmup=False)
    assert tuned.best_config is configs[1]
    assert [(seen["args"], seen["BLOCK"], seen["EVEN"]) for seen in inner.seen] == [
        ((6,), 1, True), ((6,), 2, True), ((6,), 4, True), ((6,), 2, True),
    ]  # fmt: skip
    assert all(seen["grid"] == (7,) and seen["warmup"] is False for seen in inner.seen)
    for nothing in (object(), inner.fn):
        with pytest.raises(NotAKernel, match="decorates a kernel"):
            Autotuner(nothing, [], configs, key=[])
