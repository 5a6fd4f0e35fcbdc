"""What atomics become on a GPU: the instructions, their width, and the fences around them."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import ARCHITECTURES
from tests.compile.ptx.machine import run_on_arrays
from tests.cpu.harness import decode, encode

WIDTHS = {  # on 8.0, and from 9.0 on: what PTX says of an addition of a thread's 8 elements
    "float32": ({"add.f32": 8}, {"add.v4.f32": 2}),
    "float16": ({"add.noftz.f16x2": 4}, {"add.noftz.v4.f16x2": 1}),
    "bfloat16": (None, {"add.noftz.v4.bf16x2": 1}),
    "float64": ({"add.f64": 8}, {"add.f64": 8}),
    "int32": ({"add.u32": 8}, {"add.u32": 8}),
    "int64": ({"add.u64": 8}, {"add.u64": 8}),
}
FENCES = {"relaxed": 0, "acquire": 1, "release": 1, "acq_rel": 2}


@proton.jit
def add(x_ptr, out_ptr, n, SEM: tl.constexpr, SCOPE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.atomic_add(out_ptr + offsets, x, mask=mask, sem=SEM, scope=SCOPE)


def ptx_of(kernel: Any, *values: Any, arch: int = 90, **options: Any) -> str:
    target = proton.GPUTarget("cuda", arch)
    return str(kernel.warmup(*values, target=target, **options).asm["ptx"])


def atomics_in(ptx: str) -> dict[str, int]:
    """How often each kind is there, as `add.v4.f32`."""
    found = re.findall(r"\batom\.global\.\w+\.\w+\.([\w.]+)", ptx)
    return {name: found.count(name) for name in found}


@pytest.mark.parametrize("dtype", WIDTHS)
def test_elements_side_by_side_are_added_by_one_instruction(dtype: str) -> None:
    for arch, want in zip((80, 90), WIDTHS[dtype], strict=True):
        type_ = getattr(tl, dtype)
        ptx = ptx_of(add, type_, type_, 1024, "relaxed", "gpu", BLOCK=1024, arch=arch)
        if want is not None:  # without an instruction it is a loop of compare-and-swap
            assert atomics_in(ptx) == want


@pytest.mark.parametrize("n", [1024, 1001])
def test_a_mask_that_differs_within_an_instruction_makes_it_narrow(n: int) -> None:
    found = atomics_in(ptx_of(add, tl.float32, tl.float32, n, "relaxed", "gpu", BLOCK=1024))
    assert found == ({"add.v4.f32": 2} if n % 16 == 0 else {"add.f32": 8})


@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
@pytest.mark.parametrize("sem", FENCES)
def test_the_fences_of_a_block_are_around_all_of_it(sem: str, scope: str) -> None:
    ptx = ptx_of(add, tl.float32, tl.float32, 1024, sem, scope, BLOCK=1024)
    orders = re.findall(rf"\batom\.global\.{scope}\.(\w+)\.|\bfence\.(\w+)\.{scope}\b", ptx)
    names = ["".join(one) for one in orders]
    fence, atomics = ["acq_rel"], ["relaxed"] * 2
    before = fence if sem in ("release", "acq_rel") else []
    behind = fence if sem in ("acquire", "acq_rel") else []
    assert names == [*before, *atomics, *behind]
    assert len(names) - len(atomics) == FENCES[sem]


@pytest.mark.parametrize("sem", FENCES)
def test_one_instruction_has_its_own_ordering(sem: str) -> None:
    ptx = ptx_of(add, tl.float32, tl.float32, 1024, sem, "gpu", BLOCK=512)
    assert re.findall(r"\batom\.global\.gpu\.(\w+)\.", ptx) == [sem]
    assert "fence." not in ptx


@proton.jit
def every_kind(x_ptr, out_ptr, n, FLOAT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    old = tl.atomic_add(out_ptr + offsets, x, mask=offsets < n)
    old = tl.atomic_max(out_ptr + offsets, old)
    old = tl.atomic_min(out_ptr + offsets, old, mask=offsets < n)
    old = tl.atomic_xchg(out_ptr + offsets, old)
    if not FLOAT:
        old = tl.atomic_and(out_ptr + offsets, old)
        old = tl.atomic_or(out_ptr + offsets, old)
        old = tl.atomic_xor(out_ptr + offsets, old)
    tl.store(out_ptr + offsets, old)
    tl.atomic_add(out_ptr, 1)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
def test_every_kind_is_assembled(dtype: str, arch: int) -> None:
    type_ = getattr(tl, dtype)
    values = [type_, type_, 512, dtype.startswith("float")]
    kernel = every_kind.warmup(*values, BLOCK=512, target=proton.GPUTarget("cuda", arch))
    assert kernel.asm["cubin"]  # ptxas takes it


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_narrow_floats_are_assembled(dtype: str, arch: int) -> None:
    type_, target = getattr(tl, dtype), proton.GPUTarget("cuda", arch)
    for n in (1024, 1001):
        kernel = add.warmup(type_, type_, n, "acq_rel", "gpu", BLOCK=1024, target=target)
        assert kernel.asm["cubin"]


@proton.jit
def into_one(x_ptr, out_ptr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    at = out_ptr + tl.zeros_like(x).to(tl.int32)
    if KIND == "max":
        tl.atomic_max(at, x)
    elif KIND == "min":
        tl.atomic_min(at, x)
    else:
        tl.atomic_add(at, x)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("dtype", "kind", "arch"),
    [
        ("float16", "max", 90), ("bfloat16", "max", 90), ("float16", "min", 80),
        ("bfloat16", "add", 80), ("bfloat16", "add", 90),
    ],
)  # fmt: skip
def test_threads_meet_in_half_a_word(
    dtype: str, kind: str, arch: int, rng: np.random.Generator
) -> None:
    """... whose address is known, so that LLVM knows which half: each combines what is there."""
    type_, target = getattr(tl, dtype), proton.GPUTarget("cuda", arch)
    made = into_one.warmup(type_, type_, kind, BLOCK=64, target=target, num_warps=2)
    numbers = rng.integers(-4, 5, 64).astype(np.float32)
    x, out = encode(numbers, dtype), encode(np.zeros(2, np.float32), dtype)
    run_on_arrays(made.asm["ptx"], (1, 1, 1), 64, made.shared, [x, out], rng)
    function = {"add": np.add, "max": np.maximum, "min": np.minimum}[kind]
    np.testing.assert_array_equal(decode(out, dtype), [function.reduce(numbers), 0])


@proton.jit
def counting(x_ptr, count_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + tl.arange(0, BLOCK))
        tl.atomic_add(count_ptr, tl.sum(x, 0))


def test_a_loop_around_an_atomic_is_one_block() -> None:
    ptx = ptx_of(counting, tl.float32, tl.float32, 4096, BLOCK=1024)
    steps = re.findall(r"^(\$L__BB\w+):|\b(atom)\.|^\s*@!?%p\d+ bra\s+(\$\w+);", ptx, re.M)
    place = [atom for _, atom, _ in steps].index("atom")
    assert steps[place - 1][0] == steps[place + 1][2]  # from its label it goes back there


@proton.jit
def poll(flag_ptr, out_ptr, SEM: tl.constexpr):
    tl.store(out_ptr, tl.atomic_poll(flag_ptr, 1, sem=SEM, scope="sys"))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("sem", ["relaxed", "acquire"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float16", "float32"])
def test_an_atomic_load_is_a_load(dtype: str, sem: str) -> None:
    """... at the beginning of the loop that waits, and in it; it writes nothing."""
    type_ = getattr(tl, dtype)
    ptx = ptx_of(poll, type_, tl.int32, sem, num_warps=1)
    assert ptx.count(f"ld.{sem}.sys.global.b{type_.primitive_bitwidth} ") == 2
    assert "atom." not in ptx
    assert "fence" not in ptx


@proton.jit
def read_block(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.atomic_load(x_ptr + offs, mask=offs > 1))


def test_a_fence_is_behind_the_loads_of_a_block() -> None:
    ptx = ptx_of(read_block, tl.int32, tl.int32, 128, num_warps=1)
    last = ptx.rindex("ld.relaxed.gpu.global.b32")
    assert ptx.count("ld.relaxed.gpu.global.b32") == 4
    assert ptx.index("fence.acq_rel.gpu") > last


@proton.jit
def pass_on(x_ptr, out_ptr, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs // GROUP % 2 == 0
    tl.atomic_store(out_ptr + offs, tl.atomic_load(x_ptr + offs, mask=mask), mask=mask)


@pytest.mark.parametrize(
    "dtype, group, access",
    [
        ("int8", 16, "v4.b32"),
        ("int8", 2, "b16"),
        ("int1", 1, "b8"),
        ("float16", 8, "v4.b32"),
        ("float16", 2, "b32"),
        ("int32", 2, "v2.b32"),
        ("float64", 2, "v2.b64"),
    ],
)
def test_neighbours_are_one_atomic_access(dtype: str, group: int, access: str) -> None:
    """... of as many as a mask agrees on; what nobody reads the old value of is a store."""
    type_ = getattr(tl, dtype)
    ptx = ptx_of(pass_on, type_, type_, group, 1024, num_warps=1)
    for kind in ("ld", "st"):
        found = set(re.findall(rf"{kind}\.relaxed\.gpu\.global\.(\S+)", ptx))
        assert found == {access}
    assert "atom." not in ptx
    # One fence is behind the loads, and before the stores.
    assert ptx.rindex("ld.relaxed") < ptx.index("fence.acq_rel.gpu") < ptx.index("st.relaxed")
