"""Records in loops of products: the same loops with them and without, and whose work a slice is."""

import contextlib
import re
from collections import Counter

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.matmul import matmul_kernel
from proton.backends.cpu import compiler

D = 64  # rows and columns of a block
WORK = re.compile(r"linalg\.\w+|scf\.\w+|vector\.\w+|memref\.(?:alloc|load|store)\b|inline_asm")
INSTRUCTIONS = re.compile(r"llvm\.intr\.\w+|prefetcht\d|!llvm.ptr -> vector")
BUFFERS = re.compile(r"memref\.alloc\(\) : memref<2x64x")  # of what is copied for the next turn


@proton.jit(do_not_specialize=("N",))  # a loop of one turn would be no loop
def own_scopes(a_ptr, b_ptr, c_ptr, N, D: tl.constexpr):
    """c = the sum over i of a[i] @ b[i]; each step in a scope."""
    places = tl.arange(0, D)[:, None] * D + tl.arange(0, D)[None, :]
    with proton.scope("begin"):
        sums = tl.zeros((D, D), dtype=tl.float32)
    with proton.scope("all"):
        for i in range(N):
            with proton.scope("left"):
                a = tl.load(a_ptr + i * D * D + places)
            with proton.scope("right"):
                b = tl.load(b_ptr + i * D * D + places)
            with proton.scope("dot"):
                sums = tl.dot(a, b, sums, input_precision="ieee")
    with proton.scope("end"):
        tl.store(c_ptr + places, sums)


@proton.jit(do_not_specialize=("N",))
def nested_scopes(a_ptr, b_ptr, c_ptr, N, D: tl.constexpr):
    places = tl.arange(0, D)[:, None] * D + tl.arange(0, D)[None, :]
    with proton.scope("program"):
        sums = tl.zeros((D, D), dtype=tl.float32)
        for i in range(N):
            with proton.scope("turn"):
                with proton.scope("load"):
                    a = tl.load(a_ptr + i * D * D + places)
                    b = tl.load(b_ptr + i * D * D + places)
                with proton.scope("dot"):
                    sums = tl.dot(a, b, sums, input_precision="ieee")
        with proton.scope("store"):
            tl.store(c_ptr + places, sums)


@proton.jit(do_not_specialize=("N",))
def scopes_with_payload(a_ptr, b_ptr, c_ptr, N, D: tl.constexpr):
    places = tl.arange(0, D)[:, None] * D + tl.arange(0, D)[None, :]
    sums = tl.zeros((D, D), dtype=tl.float32)
    for i in range(N):
        with proton.scope("load", turn=i):
            a = tl.load(a_ptr + i * D * D + places)
            b = tl.load(b_ptr + i * D * D + places)
        with proton.scope("dot", half=i * 0.5, when=i % 2 == 0):
            sums = tl.dot(a, b, sums, input_precision="ieee")
        proton.mark("done", i)
    with proton.scope("store", n=N):
        tl.store(c_ptr + places, sums)


@proton.jit(do_not_specialize=("N",))
def no_scopes(a_ptr, b_ptr, c_ptr, N, D: tl.constexpr):
    places = tl.arange(0, D)[:, None] * D + tl.arange(0, D)[None, :]
    sums = tl.zeros((D, D), dtype=tl.float32)
    for i in range(N):
        a = tl.load(a_ptr + i * D * D + places)
        b = tl.load(b_ptr + i * D * D + places)
        sums = tl.dot(a, b, sums, input_precision="ieee")
    tl.store(c_ptr + places, sums)


KERNELS = {
    "own scopes": (own_scopes, {}),
    "nested": (nested_scopes, {}),
    "payload": (scopes_with_payload, {}),
    "every other": (own_scopes, {"every": 2}),
    "flush": (own_scopes, {"strategy": "flush"}),
    "auto": (no_scopes, {"auto": ("loads", "dots", "loops")}),
}


def run(kernel, count: int, rng: np.random.Generator):
    """A launch's result, what it should be, and the compiled kernel."""
    a, b = (rng.standard_normal((count, D, D), dtype=np.float32) for _ in range(2))
    c = np.full((D, D), np.nan, np.float32)
    made = kernel[(1,)](a, b, c, count, D=D)
    return c, (a.astype(np.float64) @ b).sum(0), made


def afresh(kernel):
    """The kernel, nothing of it compiled."""
    return proton.jit(kernel.fn, do_not_specialize=("N",))


def work_of(made) -> tuple[Counter, Counter]:
    """How often each kind of work stands in the buffers' level, and in the last one."""
    return Counter(WORK.findall(made.asm["memref"])), Counter(
        INSTRUCTIONS.findall(made.asm["llvm"])
    )


@pytest.fixture(params=[False, True], ids=["", "left copied, too"])
def compiled_anew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """As for processors with a large first-level cache, and as for the others."""
    monkeypatch.setattr(compiler, "has_large_first_level", lambda: request.param)
    with proton.knobs.scope(always_compile=True):
        yield request.param


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_profiled_has_the_loops_of_what_is_not(
    rng: np.random.Generator, compiled_anew: bool, name: str
) -> None:
    kernel, options = KERNELS[name]
    kernel = afresh(kernel)
    for count in (0, 1, 4):
        state = rng.bit_generator.state
        plain, want, made = run(kernel, count, rng)
        rng.bit_generator.state = state
        with proton.profile(name, **options):
            profiled, _, recorded = run(kernel, count, rng)
        np.testing.assert_allclose(plain, want, atol=1e-3)
        np.testing.assert_array_equal(profiled, plain)
        assert "proton_gpu" in recorded.asm["memref"]
        assert "proton.copied_ahead" in made.asm["memref"]
        assert work_of(recorded) == work_of(made)


def test_so_has_the_product_of_matrices(rng: np.random.Generator, compiled_anew: bool) -> None:
    for m, n, k in [(128, 128, 256), (130, 300, 320), (65, 127, 129), (1, 1, 1)]:
        # Its rows lie 8 KiB apart.
        a = rng.standard_normal((m, 2048), dtype=np.float32)[:, :k]
        b = rng.standard_normal((k, n), dtype=np.float32)
        results, work = [], []
        for enabled in (False, True):
            c, kernel = np.full((m, n), np.nan, np.float32), proton.jit(matmul_kernel.fn)
            grid = (proton.cdiv(m, 64) * proton.cdiv(n, 128),)
            session = proton.profile("matmul") if enabled else contextlib.nullcontext()
            with session:
                made = kernel[grid](a, b, c, m, n, k, 2048, 1, n, 1, n, 1, BLOCK_M=64, BLOCK_N=128,
                                    BLOCK_K=64, GROUP_M=2, PRECISION="ieee")  # fmt: skip
            assert ("proton_gpu" in made.asm["memref"]) == enabled
            results.append(c)
            work.append(work_of(made))
        np.testing.assert_allclose(results[0], a.astype(np.float64) @ b, atol=1e-3)
        np.testing.assert_array_equal(*results)
        assert work[0] == work[1]
        if k > 1:
            assert len(BUFFERS.findall(made.asm["memref"])) == 1 + compiled_anew


def test_the_product_is_work_of_what_it_copies(rng: np.random.Generator) -> None:
    """Its slices are named by the scopes of both loads, and each turn has all of its slices."""
    with proton.profile("own") as found:
        run(own_scopes, 4, rng)
    frame = found.frame
    inside = frame[frame["scope"].str.startswith("all/")]
    fused = "left + right + dot"
    assert set(inside["scope"]) <= {"all/left", "all/right", f"all/{fused}"}
    assert list(inside[inside["scope"] == f"all/{fused}"]["iteration"]) == [0, 1, 2, 3]
    assert list(inside[inside["scope"] == "all/right"]["iteration"]) == [0, 1, 2, 3]
    ends = inside[inside["scope"] == "all/right"]["start_ns"].to_numpy()
    starts = inside[inside["scope"] == f"all/{fused}"]["start_ns"].to_numpy()
    assert (ends <= starts).all()
    assert (starts[:-1] <= ends[1:]).all()


def test_payload_and_conditions_are_of_the_turn_that_runs(rng: np.random.Generator) -> None:
    with proton.profile("payload") as found:
        run(scopes_with_payload, 5, rng)
    frame = found.frame
    dots = frame[frame["scope"] == "load + dot"]
    assert [payload["turn"] for payload in frame[frame["scope"] == "load"]["payload"]] == [
        *range(5)
    ]
    assert [payload["half"] for payload in dots["payload"]] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert [payload["n"] for payload in frame[frame["scope"] == "store"]["payload"]] == [5]


def test_placement_program_leaves_the_work_where_its_records_are(rng: np.random.Generator) -> None:
    with proton.profile("in order", placement="program") as found:
        result, want, made = run(own_scopes, 3, rng)
    np.testing.assert_allclose(result, want, atol=1e-3)
    assert "proton.copied_ahead" not in made.asm["memref"]
    scopes = Counter(found.frame["scope"])
    assert scopes["all/left"] == scopes["all/right"] == scopes["all/dot"] == 3
