"""Records leave the schedule of every shipped kernel as it is: the same accesses, copies, products
and barriers in the same order, for any number of stages; no GPU and no assembler is needed."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.attention import attention
from kernels.attention_backward import attention_backward
from kernels.attention_backward_fused import gradients_kernel
from kernels.cases import CASES, MORE_CASES
from kernels.grouped_gemm import grouped_gemm
from kernels.harness import Case
from kernels.matmul import matmul
from kernels.matmul_fused import matmul_fused
from kernels.matmul_persistent import matmul_persistent
from proton.base.targets import GPUTarget
from proton.tools.tensor_descriptor import TensorDescriptor
from proton.trace.instrumentation import AUTO, Instrumentation
from tests.compile.ptx_order import work
from tests.compile.test_gpu_records import SIZES, Launched, _takes, compiled, launched

__all__ = ["launched"]  # a fixture

pytestmark = pytest.mark.usefixtures("no_assembler")

MODES = {"default": Instrumentation(), "auto": Instrumentation(auto=AUTO)}


def assert_same_work(found: list[str], expected: list[str], where: str) -> None:
    """But for one barrier, ahead of what is written at the end."""
    assert found.count("bar.sync") - expected.count("bar.sync") <= 1, where
    *found_parts, last = _between_barriers(found)
    if len(found_parts) == expected.count("bar.sync") + 1:
        assert not last, where
        found_parts, last = found_parts[:-1], found_parts[-1]
    assert [*found_parts, last] == _between_barriers(expected), where


def _single(load: str) -> list[str]:
    return [load.replace(".v2.b64", ".b64")] * (2 if ".v2.b64" in load else 1)


def _between_barriers(names: list[str]) -> list[list[str]]:
    """Loads that follow each other are in no order: LLVM moves a load of a scalar to its use, where
    no record is stored in between, and takes two that lie side by side in one."""
    parts: list[list[str]] = [[]]
    for is_load, run in itertools.groupby(names, lambda name: name.startswith("ld.global")):
        if is_load:
            parts[-1] += sorted(one for name in run for one in _single(name))
            continue
        for name in run:
            if name == "bar.sync":
                parts.append([])
            else:
                parts[-1].append(name)
    return parts


@pytest.mark.parametrize("case", [*CASES, *MORE_CASES], ids=lambda case: case.name)
def test_records_leave_kernels_as_they_are(
    rng: np.random.Generator, launched: Launched, case: Case
) -> None:
    rank = next(r for r in SIZES if _takes(case, r))
    case.launch(*case.inputs(rng, *SIZES[rank]))
    for kernel, args, options in launched:
        given = {"target": GPUTarget("cuda", 80), **options}
        expected = work(compiled(kernel, *args, **given).asm["ptx"])
        recorded = compiled(kernel, *args, instrumentation=MODES["auto"], **given)
        assert_same_work(work(recorded.asm["ptx"]), expected, f"{kernel.__name__}")


def _attention(causal: bool) -> None:
    q, k, v, dout = np.empty((4, 2, 3, 1000, 64), "float16")
    out, lse = attention(q, k, v, causal)
    attention_backward(q, k, v, out, dout, lse, causal)


def _half(*shape: int) -> np.ndarray:
    return np.empty(shape, "float16")


PIPELINES: dict[str, Callable[[], Any]] = {
    "matmul": lambda: matmul(_half(512, 512), _half(512, 512)),
    "matmul_persistent": lambda: matmul_persistent(_half(512, 512), _half(512, 512), host=False),
    "matmul_fused": lambda: matmul_fused(_half(512, 512), _half(512, 512), _half(512), "relu"),
    "grouped_gemm": lambda: grouped_gemm([_half(512, 256)], [_half(256, 512)]),
    "attention": lambda: _attention(False),
}


ALL = [(80, 1), (80, 3), (80, 4), (90, 1), (90, 2), (90, 3)]
FEW = [(80, 3), (90, 2)]


@pytest.mark.parametrize("name", PIPELINES)
def test_records_leave_pipelines_as_they_are(launched: Launched, name: str) -> None:
    """As many stages, too; records by scopes and by the compiler in turns."""
    PIPELINES[name]()
    assert launched
    for kernel, args, options in launched:
        depths = set()
        for arch, stages in ALL if name == "matmul" else FEW:
            given = {**options, "num_stages": stages, "target": GPUTarget("cuda", arch)}
            mode = ("default", "auto")[(stages // 2 + (arch == 90)) % 2]
            plain = work(compiled(kernel, *args, **given).asm["ptx"])
            recorded = compiled(kernel, *args, instrumentation=MODES[mode], **given)
            where = f"{kernel.__name__}, {arch}, {stages} stages, {mode}"
            assert_same_work(work(recorded.asm["ptx"]), plain, where)
            depths.add(plain.count("cp.async.commit_group"))
        assert max(depths) > 1 or kernel.__name__ == "delta_kernel"


@proton.jit
def sum_of_products(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 2048))
    with proton.scope("multiply"):
        y = x * x
    with proton.scope("sum"):
        s = tl.sum(y, 0)
    tl.store(out_ptr, s)


@pytest.mark.parametrize("mode", [*MODES.values(), Instrumentation(placement="program")])
def test_a_product_stays_with_its_sum(mode: Instrumentation) -> None:
    """They are one instruction, whatever is recorded between them."""
    plain, recorded = (
        compiled(sum_of_products, tl.float32, tl.float32, instrumentation=i) for i in (None, mode)
    )
    counts = [kernel.asm["ptx"].count("fma.rn.f32") for kernel in (plain, recorded)]
    assert counts[0] == counts[1] > 8


@proton.jit
def two_dots(q, k, v, out, n, M: tl.constexpr, D: tl.constexpr):
    with proton.scope("load q"):
        block = q.load([0, 0])
    acc, total = tl.zeros((M, D), tl.float32), tl.zeros((M,), tl.float32)
    for at in tl.range(0, n, 64, warp_specialize=True):
        with proton.scope("load"):
            keys = k.load([at, 0])
        values = v.load([at, 0])
        scores = tl.dot(block, tl.trans(keys))
        if at > 64:
            with proton.scope("half"):
                acc = acc * 0.5
        with proton.scope("weights"):
            weights = tl.exp2(scores)
        if at > 128:
            total += tl.sum(weights, 1)
        acc = tl.dot(weights.to(tl.float16), values, acc)
    out.store([0, 0], (acc + total[:, None]).to(tl.float16))


def test_records_leave_roles_as_they_are() -> None:
    """A producer's loop is short, and is not unrolled for its records."""
    own, other = (TensorDescriptor(tl.float16, (4096, 128), (128, 1), (64, 128)) for _ in range(2))
    options = {"M": 64, "D": 128, "num_stages": 2}
    given = own, other, other, own, 4096
    plain = work(compiled(two_dots, *given, **options).asm["ptx"])
    assert any(name.startswith("mbarrier.try_wait") for name in plain)
    recorded = compiled(two_dots, *given, instrumentation=MODES["default"], **options)
    assert_same_work(work(recorded.asm["ptx"]), plain, "two dots")


@pytest.mark.parametrize(("roles", "mode"), [(True, "default"), (False, "auto")])
def test_records_leave_gradients_as_they_are(roles: bool, mode: str) -> None:
    """A loop of five dots that adds by TMA."""
    strides = (2**19, 2**17, 128, 1)
    keys, rows = (
        TensorDescriptor(tl.float16, (2, 4, 1024, 128), strides, (1, 1, n, 128)) for n in (128, 64)
    )
    of_rows = TensorDescriptor(tl.float32, (8, 1024), (1024, 1), (1, 64))
    sums = TensorDescriptor(tl.float32, (8, 1024, 128), (2**17, 128, 1), (1, 64, 128))
    given = rows, keys, keys, rows, of_rows, of_rows, sums, keys, keys, 4, 1024, 0.1
    options = {
        "CAUSAL": not roles,
        "RAGGED": False,
        "ROLES": roles,
        "num_warps": 8,
        "num_stages": 2,
    }
    plain = work(compiled(gradients_kernel, *given, **options).asm["ptx"])
    assert any(name.startswith("cp.reduce") for name in plain)
    recorded = compiled(gradients_kernel, *given, instrumentation=MODES[mode], **options)
    assert_same_work(work(recorded.asm["ptx"]), plain, mode)
