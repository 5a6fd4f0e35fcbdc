"""What GPUs make of block pointers and tensor descriptors: accesses as wide as of pointers."""

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.language import scaled
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation
from tests.cpu import test_block_pointers, test_descriptors, test_dot_scaled

TARGETS = [proton.GPUTarget("cuda", arch) for arch in (80, 90, 120)]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_descriptors_and_block_pointers_are_accessed_16_bytes_at_a_time(
    target: proton.GPUTarget,
) -> None:
    f16, f32, size = tl.float16, tl.float32, 512
    of = [TensorDescriptor(f16, [size, size], [size, 1], [64, 64]) for _ in range(3)]
    for kernel in (
        test_descriptors.matmul.warmup(*of, size, target=target),
        test_block_pointers.matmul.warmup(
            f16, f16, f32, size, size, size, size, 1, size, 1, M=64, N=64, K=64, target=target
        ),
    ):
        ptx = kernel.asm["ptx"]
        assert "ld.global.b16" not in ptx
        assert "st.global.b16" not in ptx
        if kernel.metadata["tensor_maps"]:
            assert target.arch >= 90
            assert "cp.async.bulk.tensor.2d.shared" in ptx
            assert "cp.async.bulk.tensor.2d.global" in ptx
        else:
            assert "ld.global.v4" in ptx or "cp.async" in ptx
            assert "st.global.v4" in ptx
        assert kernel.n_spills == 0


def test_scaled_products_compile_for_a_gpu() -> None:
    kernel = test_dot_scaled.product.warmup(
        tl.uint8, tl.float8e5, tl.uint8, tl.uint8, tl.float32,
        A=(16, 32), B=(64, 32), AS=(16, 2), BS=(32, 2), C=(16, 32),
        A_FORMAT="e2m1", B_FORMAT="e5m2", A_K=True, B_K=True, target=TARGETS[1],
    )  # fmt: skip
    assert not kernel.n_spills


@pytest.mark.parametrize("formats, k_packs", [
    (("e2m1", "bf16"), (True, True)), (("fp16", "e2m1"), (True, True)),
    (("e2m1", "e2m1"), (False, True)), (("e2m1", "e4m3"), (False, True)),
])  # fmt: skip
def test_numbers_of_4_bits_on_a_gpu(
    rng: np.random.Generator, formats: tuple[str, str], k_packs: tuple[bool, bool]
) -> None:
    """By instructions for four bytes: all are exact, so sums are as far off as those of fp32."""
    with Emulation(4, rng).installed():
        got, want, bound = test_dot_scaled.run(rng, formats, k_packs)
    digits = 2.0**-10 if "fp16" in formats else test_dot_scaled.SUMS
    assert (np.abs(got - want) <= bound * digits).all()


@proton.jit
def taken_apart(x_ptr, out, M: tl.constexpr, N: tl.constexpr, A: tl.constexpr, TO: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    y = scaled.from_packed_e2m1(x, A, TO).to(tl.float32)
    rows, columns = tl.arange(0, y.shape[0])[:, None], tl.arange(0, y.shape[1])[None, :]
    tl.store(out + rows * y.shape[1] + columns, y)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=str)
@pytest.mark.parametrize("m, n", [(16, 16), (256, 1), (1, 256), (4, 1), (2, 1), (1, 1)])
def test_every_byte_of_two_numbers_is_exact(
    rng: np.random.Generator, m: int, n: int, dtype: tl.dtype
) -> None:
    """Zeros have a sign, and blocks may have fewer bytes than a register."""
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    numbers = np.concatenate([numbers, -numbers])
    x = rng.permutation(256)[: m * n].astype(np.uint8).reshape(m, n)
    for axis in (-2, -1):
        want = np.stack([numbers[x & 15], numbers[x >> 4]], axis + 3)
        want = want.reshape((2 * m, n) if axis == -2 else (m, 2 * n))
        out = np.zeros_like(want)
        with Emulation(4, rng).installed():
            taken_apart[(1,)](x, out, M=m, N=n, A=axis, TO=dtype)
        np.testing.assert_array_equal(out.view(np.int32), want.view(np.int32))
