"""`warmup` gives the kernel that a launch runs while a session is active."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.backends.compiler import Metadata
from proton.backends.nvidia.options import GPUOptions
from proton.base.chips.nvidia import ARCHITECTURES
from proton.base.errors import ProfileError
from proton.runtime.nvidia import launch as gpu_launch

HOPPER = proton.GPUTarget("cuda", 90)


@proton.jit
def scoped(x_ptr, n, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane)
    for _i in range(n):
        with proton.scope("body"):
            x = x * 0.5 + 1.0
    tl.store(x_ptr + lane, x)


def gpu(**more: Any) -> Any:
    return scoped.warmup(tl.float32, 9, BLOCK=256, target=HOPPER, **more)


def test_options_give_the_kernel_that_records() -> None:
    plain, on, sampled = gpu(), gpu(profile={}), gpu(profile={"every": 8})
    assert plain.profile is None
    assert "%clock" not in plain.asm["ptx"]
    for kernel in (on, sampled):
        assert [s["name"] for s in kernel.metadata["profile"]["scopes"]] == ["body"]
        assert "%clock" in kernel.asm["ptx"]
    assert on.asm["ptx"] != sampled.asm["ptx"]
    assert gpu(profile={"name": "other", "compare_run_time": True}).asm["ptx"] == on.asm["ptx"]


def test_an_active_session_says_how() -> None:
    x = np.zeros(256, np.float32)
    plain = scoped.warmup(x, 9, BLOCK=256)
    with proton.profile("warm", every=3):
        warm = scoped.warmup(x, 9, BLOCK=256)
        assert warm is scoped[1,](x, 9, BLOCK=256)
        assert gpu().asm["ptx"] == gpu(profile={"every": 3}).asm["ptx"]
    assert warm is not plain
    assert scoped.warmup(x, 9, BLOCK=256) is plain
    # What means nothing on a CPU makes no other kernel there.
    with proton.profile("warm", every=3):
        asked = scoped.warmup(x, 9, BLOCK=256, profile={"every": 3, "clock_bits": 64})
        assert asked is scoped.warmup(x, 9, BLOCK=256)


def test_other_options_are_refused() -> None:
    with pytest.raises(ProfileError, match=r"no option 'evry'.*every"):
        gpu(profile={"evry": 8})
    with pytest.raises(ProfileError, match="must be a dict"):
        gpu(profile="default")
    with pytest.raises(ProfileError, match="every must be"):
        gpu(profile={"every": 0})


@proton.jit
def of_that_name(x_ptr, profile: tl.constexpr):
    tl.store(x_ptr, profile)


def test_a_parameter_of_that_name_is_the_kernels() -> None:
    kernel = of_that_name.warmup(tl.float32, profile=7, target=HOPPER)
    assert kernel.profile is None


class Made:
    """A kernel of so many registers and bytes of spills, of four warps."""

    def __init__(self, registers: int, spills: int = 0) -> None:
        self.metadata = Metadata(num_warps=4)
        self.metadata.options = GPUOptions(HOPPER)
        self.n_regs, self.n_spills = registers, spills


@pytest.mark.parametrize(
    ("first", "limited", "chosen"),
    [
        (128, None, 128),  # as many programs fit: it stays
        (137, (128, 0), 128),  # one fewer would: the limit is tried
        (137, (128, gpu_launch.MOST_SPILLS), 128),
        (137, (128, gpu_launch.MOST_SPILLS + 1), 137),  # and not at any price
    ],
)
def test_records_keep_occupancy(first: int, limited: tuple[int, int] | None, chosen: int) -> None:
    asked: list[dict[str, object]] = []

    def make(more: dict[str, object]) -> Any:
        asked.append(more)
        return Made(*limited) if more and limited else Made(first)

    def fit(kernel: Any) -> int:
        return int(ARCHITECTURES[90].sm_registers // (-(-kernel.n_regs // 8) * 8 * 128))

    found = gpu_launch._keeping_occupancy(Made(124), make, lambda kernel: kernel, fit)
    assert found.n_regs == chosen
    assert asked == [{}] if limited is None else [{}, {"maxnreg": 128}]
