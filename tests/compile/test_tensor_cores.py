"""Which instructions products become, on every target; no GPU is needed."""

import inspect
import re
from collections import Counter
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.attention import attention_kernel
from kernels.matmul import matmul_kernel
from kernels.softmax import softmax_kernel
from proton.backends.nvidia.target import GPUKernel
from proton.base.targets import ARCHITECTURES, GPUTarget
from tests.compile import cubins
from tests.compile.ptx.machine import run_on_arrays

INSTRUCTION = re.compile(r"\b(w?g?mma(?:_async)?(?:\.mma_async)?\.sync\.aligned\.m\d+n\d+k\d+\S*)")
ARCHS = sorted(ARCHITECTURES)


def matmul(arch: int, dtype: Any, blocks: str, *, transposed: bool = False, out: Any = tl.float16,
           warps: int = 4, stages: int = 3) -> GPUKernel:  # fmt: skip
    m, n, k = map(int, blocks.split("x"))
    b = (1, 4096) if transposed else (4096, 1)
    kernel = matmul_kernel.warmup(
        dtype, dtype, out, 4096, 4096, 4096, 4096, 1, *b, 4096, 1,
        BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=8, num_warps=warps, num_stages=stages,
        target=GPUTarget("cuda", arch),
    )  # fmt: skip
    assert isinstance(kernel, GPUKernel)
    return kernel


def instructions(kernel: GPUKernel) -> set[str]:
    return {match.rstrip(",") for match in INSTRUCTION.findall(kernel.asm["ptx"])}


@pytest.mark.parametrize("arch", ARCHS)
def test_the_instruction_of_a_chip(arch: int) -> None:
    found = instructions(matmul(arch, tl.float16, "64x64x32"))
    expected = {
        90: "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
    }.get(arch, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    assert found == {expected}


@pytest.mark.usefixtures("no_assembler")
def test_products_are_at_the_line_of_their_dot() -> None:
    """LLVM would take each further line of a piece of assembly for the next line of the source."""
    ptx = matmul(90, tl.float16, "128x128x64").asm["ptx"]
    lines, first = inspect.getsourcelines(matmul_kernel.fn)
    (dot,) = [number for number, line in enumerate(lines, first) if "tl.dot(" in line]
    *products, _ = ptx.split("wgmma.mma_async")
    assert len(products) >= 4
    for ahead in accumulate(products):
        *_, at = re.findall(r"^\s*\.loc\s+\d+ (\d+)", ahead, re.M)
        assert int(at) == dot


@pytest.mark.parametrize(
    "arch, dtype, expected",
    [
        (90, tl.bfloat16, "m64n64k16.f32.bf16.bf16"),
        (90, tl.float8e4nv, "m64n64k32.f32.e4m3.e4m3"),
        (90, tl.float8e5, "m64n64k32.f32.e5m2.e5m2"),
        (90, tl.float32, "m64n64k8.f32.tf32.tf32"),
        (80, tl.bfloat16, "m16n8k16.row.col.f32.bf16.bf16.f32"),
        (80, tl.float32, "m16n8k8.row.col.f32.tf32.tf32.f32"),
        (80, tl.float8e5, "m16n8k16.row.col.f32.f16.f16.f32"),
        (89, tl.float8e5, "m16n8k32.row.col.f32.e5m2.e5m2.f32"),
    ],
)
def test_the_instruction_of_a_type(arch: int, dtype: Any, expected: str) -> None:
    (found,) = instructions(matmul(arch, dtype, "64x64x64"))
    assert found.endswith(expected)


@pytest.mark.parametrize("arch", [89, 90])
def test_mma_of_fp8_that_is_added_up_in_fp16(arch: int) -> None:
    """PTX has that from 8.7 on, which LLVM does not write for these chips."""
    (found,) = instructions(
        eights.warmup(tl.float8e5, tl.float16, N=32, target=GPUTarget("cuda", arch))
    )
    assert found.endswith("m16n8k16.row.col.f16.f16.f16.f16")


@proton.jit
def eights(a_ptr, c_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + i * N + j)
    tl.store(c_ptr + i * N + j, tl.dot(a, a, out_dtype=tl.float16))


@proton.jit
def integers(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    c = tl.dot(tl.load(a_ptr + i * N + j), tl.load(b_ptr + i * N + j))
    tl.store(c_ptr + i * N + j, c)


@pytest.mark.parametrize("arch, expected", [(80, "m16n8k32.row.col.satfinite.s32.s8.s8.s32"),
                                            (90, "m64n64k32.s32.s8.s8")])  # fmt: skip
def test_integers(arch: int, expected: str) -> None:
    target = GPUTarget("cuda", arch)
    kernel = integers.warmup(tl.int8, tl.int8, tl.int32, N=64, num_warps=4, target=target)
    (found,) = instructions(kernel)
    assert found.endswith(expected)


@pytest.mark.parametrize(
    "dtype, blocks, warps, transposed",
    [
        (tl.float16, "128x256x64", 8, False),
        (tl.bfloat16, "128x128x64", 4, True),
        (tl.float8e4nv, "128x256x128", 8, True),
    ],
)
def test_the_best_configurations_of_matmul(
    dtype: Any, blocks: str, warps: int, transposed: bool
) -> None:
    """No spills, one barrier ahead of a product and one behind, copies of 16 bytes."""
    kernel = matmul(90, dtype, blocks, warps=warps, transposed=transposed)
    assert kernel.n_spills == 0
    assert cubins.instructions(kernel.asm["cubin"]) in ({"HGMMA"}, {"QGMMA"})
    loop = kernel.asm["ptx"].split("wgmma.mma_async", 1)[0].rsplit("$L__BB", 1)[1]
    assert loop.count("bar.sync") == 1
    assert kernel.asm["ptx"].count("wgmma.wait_group.sync.aligned 1;") == 1
    copies = re.findall(r"cp\.async\.c[ag]\.shared\.global \[[^]]*\], \[[^]]*\], (\d+)",
                        kernel.asm["ptx"])  # fmt: skip
    assert copies
    assert set(copies) == {"16"}


FP64 = [
    (89, 4, "m8n8k4", 16), (90, 16, "m16n8k16", 8), (90, 8, "m16n8k8", 8), (90, 4, "m16n8k4", 8),
]  # fmt: skip


@pytest.mark.parametrize("arch, depth, instruction, count, transposed", [
    *((*row, transposed) for row in FP64 for transposed in (False, True)),
    (80, 16, "m8n8k4", 64, False), (120, 32, "m16n8k16", 16, False),
])  # fmt: skip
def test_fp64(arch: int, depth: int, instruction: str, count: int, transposed: bool) -> None:
    """Four warps with 32 x 32 of the result each; copies on their way, and no multiply-adds."""
    kernel = matmul(arch, tl.float64, f"64x64x{depth}", out=tl.float64, transposed=transposed)
    ptx = kernel.asm["ptx"]
    name = f"mma.sync.aligned.{instruction}.row.col.f64.f64.f64.f64"
    assert (instructions(kernel), ptx.count(name)) == ({name}, count)
    assert cubins.instructions(kernel.asm["cubin"]) == {"DMMA"}
    assert "fma.rn.f64" not in ptx
    assert "cp.async" in ptx


@pytest.mark.usefixtures("no_assembler")
def test_stages_are_as_many_as_shared_memory_has_room_for() -> None:
    each = (128 + 256) * 64 * 2
    assert matmul(90, tl.float16, "128x256x64", warps=8, stages=2).shared >= 2 * each
    assert matmul(90, tl.float16, "128x256x64", warps=8, stages=4).shared >= 4 * each
    many = matmul(90, tl.float16, "128x256x64", warps=8, stages=9)
    assert 4 * each <= many.shared <= ARCHITECTURES[90].shared_bytes
    one = matmul(90, tl.float16, "128x256x64", warps=8, stages=1)
    assert "cp.async" not in one.asm["ptx"]


@pytest.mark.parametrize("head, causal, overlap", [(64, True, False), (128, False, True)])
def test_attention(head: int, causal: bool, overlap: bool) -> None:
    """The weights stay in registers as the left operand; with OVERLAP one product is waited for
    while the other goes on."""
    strides = [1 << 20, 1 << 16, 128]
    kernel = attention_kernel.warmup(
        *[tl.float16] * 4, tl.float32, *strides * 4, 32, 4096, 0.1, HEAD=head, BLOCK_M=128,
        BLOCK_N=64, CAUSAL=causal, OVERLAP=overlap, num_warps=8, num_stages=2,
        target=GPUTarget("cuda", 90),
    )  # fmt: skip
    assert kernel.n_spills == 0
    products = re.findall(r"wgmma.mma_async\S+ \{[^}]*\}, (\{|%)", kernel.asm["ptx"])
    assert {"{", "%"} == set(products)
    assert ("wgmma.wait_group.sync.aligned 1;" in kernel.asm["ptx"]) == overlap


@pytest.mark.parametrize("dtype, head, blocks", [
    (tl.float8e4nv, 128, (128, 64, 8, 2, True)), (tl.float8e5, 64, (128, 128, 8, 3, False)),
])  # fmt: skip
@pytest.mark.parametrize("transposed", [False, True])
def test_attention_of_float8(
    dtype: Any, head: int, blocks: tuple[int, int, int, int, bool], transposed: bool
) -> None:
    """Warp groups make both products; a v whose keys lie side by side is copied as it is, another
    one is transposed word by word."""
    block_m, block_n, warps, stages, overlap = blocks
    strides = [1 << 20, 1 << 16, 128]
    turned = [1 << 20, 1 << 16, 1] if transposed else strides
    kernel = attention_kernel.warmup(
        *[dtype] * 3, tl.float16, tl.float32, *strides * 2, *turned, *strides, 32, 4096, 0.1,
        HEAD=head, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=False, OVERLAP=overlap,
        stride_vd=4096 if transposed else 1,
        num_warps=warps, num_stages=stages, target=GPUTarget("cuda", 90),
    )  # fmt: skip
    assert isinstance(kernel, GPUKernel)
    assert kernel.n_spills == 0
    kind = {tl.float8e4nv: "e4m3", tl.float8e5: "e5m2"}[dtype]
    names = {f"wgmma.mma_async.sync.aligned.m64n{n}k32.f32.{kind}.{kind}" for n in (head, block_n)}
    assert instructions(kernel) == names
    loop = max(kernel.asm["ptx"].split("$L__BB"), key=lambda part: part.count("wgmma.mma_async"))
    assert ".shared.b8" not in loop
    assert ("st.shared" in loop) != transposed
    assert f"cvt.rn.satfinite.{kind}x2.f32" in kernel.asm["ptx"]


def test_rows_in_flight() -> None:
    """A loop without products is pipelined where it asks for it; what is masked off is `other`."""

    def softmax(stages: int) -> GPUKernel:
        kernel = softmax_kernel.warmup(
            tl.float32, tl.float32, 8192, 8192, 16384, 8192, 16, BLOCK=8192, STAGES=stages,
            num_warps=8, target=GPUTarget("cuda", 90),
        )  # fmt: skip
        assert isinstance(kernel, GPUKernel)
        return kernel

    one, three = softmax(1), softmax(3)
    assert "cp.async" not in one.asm["ptx"]
    assert three.shared - one.shared >= 3 * 8192 * 4
    assert "cp.async.wait_group 1;" in three.asm["ptx"]
    assert "arith.select" in three.asm["ttgir"], "rows end in -inf"
    assert three.n_spills == 0


def accesses(kernel: GPUKernel) -> Counter[str]:
    """The accesses to shared memory that threads wait for, by instruction."""
    found = re.findall(r"\b(?:[ls][dt]matrix|[ls][dt]\.shared)\S*", kernel.asm["ptx"])
    return Counter(found)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("arch", [80, 90, 120])
@pytest.mark.parametrize("transposed", [False, True])
def test_operands_in_shared_memory_are_loaded_by_matrices(arch: int, transposed: bool) -> None:
    """Each of the four warps has 64 rows of 32 elements of a, and as much of b."""
    found = accesses(matmul(arch, tl.float16, "128x128x32", transposed=transposed))
    four = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
    each = 64 * 32 // (4 * 64)
    if arch == 90:  # which reads shared memory by itself
        assert found[four] == 0
    elif transposed:
        assert found[four] == 2 * each
    else:
        assert found[four] == found[four.replace(".shared", ".trans.shared")] == each
    assert {name for name in found if name.startswith("ld.")} <= {"ld.shared.v4.b32"}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("arch, dtype", [(89, tl.float8e5), (80, tl.float32)])
def test_operands_of_other_widths_are_loaded_by_matrices(arch: int, dtype: Any) -> None:
    """Where k lies side by side."""
    found = accesses(matmul(arch, dtype, "128x128x64", transposed=True))
    bytes_ = 64 * 64 * dtype.primitive_bitwidth // 8
    assert found["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] == 2 * bytes_ // (4 * 128)
    assert {name for name in found if name.startswith("ld.")} <= {"ld.shared.v4.b32"}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "arch, blocks, warps, instruction, count",
    [
        (80, "64x64x64", 4, "st.shared.v2.b32", 8),
        (120, "64x64x64", 4, "stmatrix.sync.aligned.m8n8.x4.shared.b16", 4),
        (90, "64x64x64", 4, "stmatrix.sync.aligned.m8n8.x4.shared.b16", 4),
        (90, "128x256x64", 8, "stmatrix.sync.aligned.m8n8.x4.shared.b16", 16),
        # Each thread has 16 bytes for each of the 16-byte rows that it stores in the end.
        (90, "128x128x64", 4, "st.shared.v4.b32", 16),
    ],
)
def test_results_leave_by_matrices_and_16_bytes(
    arch: int, blocks: str, warps: int, instruction: str, count: int
) -> None:
    """stmatrix is of compute capability 9.0 and later."""
    m, n, _ = map(int, blocks.split("x"))
    found = accesses(matmul(arch, tl.float16, blocks, warps=warps, stages=2))
    stores = {name: n for name, n in found.items() if name.startswith("st")}
    assert stores == {instruction: count}
    assert found["ld.shared.v4.b32"] == m * n // (32 * warps * 8)


@proton.jit
def used_twice(x_ptr, out_ptr, sums_ptr, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    total = tl.zeros((N, N), tl.float32)
    sums = tl.zeros((N, N), tl.float32)
    for start in range(0, n, N):
        x = tl.load(x_ptr + (start + i) * N + j)
        total = tl.dot(x, x, total)
        sums += x.to(tl.float32)
    tl.store(out_ptr + i * N + j, total)
    tl.store(sums_ptr + i * N + j, sums)


@pytest.mark.parametrize("arch", [80, 90])
def test_what_is_multiplied_and_used_otherwise(arch: int) -> None:
    """One copy serves both sides of a product, and a sum."""
    kernel = used_twice.warmup(
        tl.float16, tl.float32, tl.float32, 4096, N=64, target=GPUTarget("cuda", arch)
    )
    assert isinstance(kernel, GPUKernel)
    loop = kernel.asm["ttgir"].split("scf.for", 1)[1].split("scf.yield", 1)[0]
    assert loop.count('"ttg.async_copy_global_to_local"') == 1
    assert kernel.n_spills == 0


@proton.jit
def second_transposed(a_ptr, b_ptr, out_ptr, n, N: tl.constexpr, TRANS: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    total = tl.zeros((N, N), tl.float32)
    for k in range(0, n, N):
        a = tl.load(a_ptr + i * n + k + j)
        if TRANS:
            b = tl.load(b_ptr + i * n + k + j).T
        else:
            b = tl.load(b_ptr + j * n + k + i)
        total = tl.dot(a, b, total)
    tl.store(out_ptr + i * N + j, total)


@pytest.mark.usefixtures("no_assembler")
def test_what_is_transposed_is_read_from_memory_as_it_is_used() -> None:
    """Registers of `mma` are loaded from the copy of b, not from one of its transpose."""
    found = [
        accesses(second_transposed.warmup(tl.float16, tl.float16, tl.float32, 4096, N=64,
                                          TRANS=trans, target=GPUTarget("cuda", 80)))
        for trans in (False, True)
    ]  # fmt: skip
    assert found[0] == found[1]
    assert found[0]["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] == 2 * 32 * 64 // (4 * 64)


# fp32 in parts


@proton.jit
def in_parts(a_ptr, b_ptr, c_ptr, N: tl.constexpr, PRECISION: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + r * N + c), tl.load(b_ptr + r * N + c)
    tl.store(c_ptr + r * N + c, tl.dot(a, b, input_precision=PRECISION))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("precision", "dots", "digits"), [("tf32x3", 3, 19), ("bf16x3", 3, 15), ("bf16x6", 6, 21)]
)
@pytest.mark.parametrize(("n", "warps", "instruction"), [(32, 1, "mma.sync"), (64, 4, "wgmma.mma")])
def test_fp32_in_parts_runs_on_tensor_cores(
    precision: str, dots: int, digits: int, n: int, warps: int, instruction: str,
    rng: np.random.Generator, request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """Infinity, NaN, and the largest numbers, which rounding must not make infinite, are kept. Of
    `wgmma` ptxas would warn where each waits for the one before it."""
    if instruction == "mma.sync":
        request.getfixturevalue("no_assembler")
    options: dict[str, Any] = {"num_warps": warps, "target": GPUTarget("cuda", 90)}
    kernel = in_parts.warmup(*[tl.float32] * 3, n, precision, **options)
    ptx = kernel.asm["ptx"]
    k = 16 if "bf16" in precision else 8
    tiles = (n // 16) * (n // 8) if instruction == "mma.sync" else 1
    assert ptx.count(instruction) == dots * tiles * n // k
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    a[2, 3], a[5, 6], a[7, 7], b[7] = np.inf, np.nan, 3.4e38, 0.5
    c = np.zeros_like(a)
    run_on_arrays(ptx, (1, 1, 1), 32 * warps, kernel.shared, [a.copy(), b.copy(), c], rng)
    assert np.array_equal(c[2], np.inf * np.sign(b[3]))
    assert np.isnan(c[5]).all()
    rest = [row for row in range(n) if row not in (2, 5)]
    error = np.abs(c[rest] - a[rest].astype(np.float64) @ b)
    assert (error <= np.abs(a[rest]).astype(np.float64) @ np.abs(b) * 2.0**-digits).all()


@proton.jit
def rows_by_rows(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c = a @ b, both by rows: `wgmma` takes columns of b."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    c = tl.zeros((M, N), tl.float32)
    for start in range(0, n, K):
        a = tl.load(a_ptr + i[:, None] * n + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * N + j[None, :])
        c = tl.dot(a, b, c)
    tl.store(c_ptr + i[:, None] * N + j[None, :], c)


@proton.jit
def row_by_row(a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The same of one block, without a loop."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = (
        tl.load(a_ptr + i[:, None] * K + k[None, :]),
        tl.load(b_ptr + k[:, None] * N + j[None, :]),
    )
    tl.store(c_ptr + i[:, None] * N + j[None, :], tl.dot(a, b))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize(("kernel", "n"), [(rows_by_rows, 192), (row_by_row, 64)])
def test_fp32_that_lies_the_other_way_is_transposed_16_bytes_at_a_time(
    kernel: Any, n: int, warps: int, rng: np.random.Generator
) -> None:
    """By threads that have squares, which are read and written without selects."""
    sizes = {"M": 64, "N": 64, "K": 64}
    found = kernel.warmup(
        *[tl.float32] * 3, n, **sizes, num_warps=warps, target=GPUTarget("cuda", 90)
    )
    ptx = found.asm["ptx"]
    assert "wgmma.mma_async" in ptx
    ahead = ptx[: ptx.rindex("wgmma.mma_async")]
    assert not re.findall(r"st\.shared\.[bu]32", ahead)
    assert len(re.findall(r"st\.shared\.v(?:4\.b32|2\.b64)", ahead)) >= 64 * 64 // (4 * 32 * warps)
    assert "selp.b32" not in ahead
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, n), (n, 64)))
    c = np.full((64, 64), np.nan, np.float32)
    run_on_arrays(ptx, (1, 1, 1), 32 * warps, found.shared, [a, b, c, n], rng)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-2, atol=0.2)


@proton.jit
def of_float8(a, b, c, n, MOST: tl.constexpr, FUSED: tl.constexpr):
    at = tl.arange(0, 128)
    acc = tl.zeros((128, 128), tl.float32)
    for step in range(n):
        x = tl.load(a + at[:, None] * 4096 + (step * 128 + at)[None, :])
        y = tl.load(b + (step * 128 + at)[:, None] + at[None, :] * 4096)
        if FUSED:
            acc = tl.dot(x, y, acc, max_num_imprecise_acc=MOST)
        else:
            acc += tl.dot(x, y, max_num_imprecise_acc=MOST)
    tl.store(c + at[:, None] * 128 + at[None, :], acc)


@pytest.mark.parametrize(
    ("dtype", "most", "fused", "sums"),
    [
        (tl.float8e4nv, None, True, 0),  # tensor cores' own, of less than fp32
        (tl.float8e4nv, None, False, 64),  # each dot's result is added in fp32
        (tl.float8e4nv, 128, True, 64), (tl.float8e4nv, 64, True, 128),
        (tl.float8e4nv, 32, True, 256), (tl.float8e4nv, 32, False, 256),
        (tl.float8e4nv, 0, True, 256),  # of one instruction each
        (tl.float16, None, False, 0),  # whose own sums are of fp32
    ],
)  # fmt: skip
@pytest.mark.usefixtures("no_assembler")
def test_sums_of_float8_in_fp32(dtype: Any, most: int | None, fused: bool, sums: int) -> None:
    """As many as in Triton 3.8's code, of which each thread has 64 of 128 x 128."""
    target = GPUTarget("cuda", 90)
    found = of_float8.warmup(dtype, dtype, tl.float32, 9, most, fused, target=target, num_warps=8)
    assert len(re.findall(r"add(?:\.rn)?\.f32", found.asm["ptx"])) == sums
