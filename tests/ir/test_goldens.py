"""The IR of whole kernels, as files. `make bless` writes them anew after a change on purpose."""

import os
from pathlib import Path

import pytest

import proton.language as tl
from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.pipeline import ordered_passes, schedule_passes
from proton.backends.ttir import ttir_passes
from proton.base.targets import GPUTarget
from proton.dialect.context import mlir_context
from proton.dialect.text import module_text
from proton.frontend import Signature, build_module
from proton.language.function import DeviceFunction
from proton.language.profiling import scope
from proton.passes import Pipeline

FOLDER = Path(__file__).parent / "golden"
F32, F16, I32 = tl.pointer_type(tl.float32), tl.pointer_type(tl.float16), tl.int32


@DeviceFunction
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    with scope("load", n=n):
        a = tl.load(x + offsets, mask=mask)
        b = tl.load(y + offsets, mask=mask, other=1.0)
    with scope("store"):
        tl.store(out + offsets, a + b, mask=mask)


@DeviceFunction
def softmax_rows(x, out, stride, n_rows, n_columns, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=2):
        values = tl.load(x + row * stride + columns, mask=mask, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * stride + columns, powers / tl.sum(powers, axis=0), mask=mask)


@DeviceFunction
def matmul(a, b, c, K, stride_a, stride_b, stride_c, SIZE: tl.constexpr):
    rows, columns, inner = tl.arange(0, SIZE), tl.arange(0, SIZE), tl.arange(0, SIZE)
    a_ptrs = a + rows[:, None] * stride_a + inner[None, :]
    b_ptrs = b + inner[:, None] * stride_b + columns[None, :]
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for _k in range(tl.cdiv(K, SIZE)):
        total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total)
        a_ptrs += SIZE
        b_ptrs += SIZE * stride_b
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16))


@DeviceFunction
def larger(a, i, b, j):
    return tl.where(b > a, b, a), tl.where(b > a, j, i)


@DeviceFunction
def collectives(x, q, out, n, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask, other=0.0)
    sums = tl.cumsum(values, reverse=True)
    _, where = tl.associative_scan((values, offsets), 0, larger)
    counts = tl.histogram(where, 16, mask=mask)
    picked = tl.gather(values, where, 0) + tl.extra.libdevice.pow(sums, 2.0)
    tl.device_print("counts", counts, n)
    tl.debug_barrier()
    tl.store(q + offsets, picked.to(tl.float8e4nv), mask=mask)
    tl.store(out + offsets, tl.load(q + offsets).to(tl.float32), mask=mask)


KERNELS = {
    collectives: Signature(
        {"x": F32, "q": tl.pointer_type(tl.float8e4nv), "out": F32, "n": I32}, {"SIZE": 64}
    ),
    add: Signature({"x": F32, "y": F32, "out": F32, "n": I32}, {"BLOCK": 1024}),
    softmax_rows: Signature(
        {"x": F32, "out": F32, "stride": I32, "n_rows": I32, "n_columns": I32}, {"BLOCK": 256}
    ),
    matmul: Signature(
        {"a": F16, "b": F16, "c": F16, "K": I32}
        | dict.fromkeys(["stride_a", "stride_b", "stride_c"], I32),
        {"SIZE": 32},
    ),
}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_a_kernel_gives_the_ir_of_its_golden(kernel: DeviceFunction) -> None:
    golden = FOLDER / f"{kernel.__name__}.mlir"
    with mlir_context():
        text = f"{build_module(kernel, KERNELS[kernel])}"
    if os.environ.get("BLESS"):
        golden.write_text(text)
    assert text == golden.read_text(), "if this is meant: make bless"


STEPS = (
    "convert-triton-to-tritongpu",
    "tritongpu-coalesce",
    "tritongpu-accelerate-matmul",
    "tritongpu-remove-layout-conversions",
    "tritongpu-schedule-loops",
    "triton-nvidia-gpu-fence-insertion",
)


def test_a_product_on_its_way_to_tensor_cores() -> None:
    """What the steps of the NVIDIA recipe make of `matmul` on Hopper, one behind the other."""
    pointers = frozenset(("a", "b", "c"))
    names = ("K", "stride_a", "stride_b", "stride_c")
    signature = Signature(
        dict.fromkeys("abc", F16) | dict.fromkeys(names, I32),
        {"SIZE": 64},
        pointers | frozenset(names),
    )
    parts = []
    with mlir_context():
        module = build_module(matmul, signature)
        module = Pipeline(ttir_passes(None)).run(module)
        options = GPUOptions(GPUTarget("cuda", 90), num_stages=3)
        for step in [*schedule_passes(options), *ordered_passes(options)]:
            module = Pipeline([step]).run(module)
            if str(step).partition("{")[0] in STEPS:
                parts.append(f"// -----// after {step} //----- //\n{module_text(module)}")
    golden = FOLDER / "ttgir" / "matmul.mlir"
    if os.environ.get("BLESS"):
        golden.write_text("\n".join(parts))
    assert len(parts) == len(STEPS)
    assert "\n".join(parts) == golden.read_text(), "if this is meant: make bless"


def test_no_golden_is_without_its_kernel() -> None:
    found = {file.stem for file in FOLDER.iterdir() if file.is_file()}
    assert found == {kernel.__name__ for kernel in KERNELS}
