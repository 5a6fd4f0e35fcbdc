"""The order of the work of each group of warps, as `kernel.asm["schedule"]` says it."""

import re
from typing import Any

import numpy as np

from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.ampere import async_copy
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_gpu_records import compiled
from tests.gluon_kernels import described, specialized, three_roles
from tests.gpu.staging import _Copies


def warmed(kernel: Any, arrays: list[Any], rest: tuple[int, ...], **options: Any) -> Any:
    """A kernel that takes descriptors."""
    emulated = Emulation(options["num_warps"], np.random.default_rng(0))
    with emulated.installed():
        given = [_Copies(emulated.emulated).argument(array) for array in arrays]
        return kernel.warmup(*given, *rest, grid=(1,), **options)


def without_places(text: str) -> list[str]:
    return [re.sub(r" +\w+\.py:[\d,]+", "", line) for line in text.splitlines()]


def matmul(**options: Any) -> Any:
    a = np.zeros((64, 64), np.float16)
    arrays = [described(a, [64, 32]), described(a, [32, 64]), described(a, [64, 64])]
    return warmed(specialized, arrays, (64, 64, 32, 2), num_warps=4, **options)


def test_each_role_has_its_waits_copies_dots_and_arrivals_in_order() -> None:
    assert without_places(matmul().asm["schedule"]) == [
        "consume, warps 0 to 3",
        "  barrier",
        "  loop",
        "    ready/wait copy",
        "    multiply/issue dot",
        "    multiply/wait dot",
        "    issue arrival",
        "  barrier",
        "  store/write",
        "  store/issue store",
        "  store/wait store",
        "produce, warp 4",
        "  loop",
        "    empty/wait arrival",
        "    fill/issue copy",
    ]


def test_the_order_has_the_names_that_slices_have() -> None:
    words = ("copies", "dots", "barriers")
    kernel = matmul(profile={"auto": words})
    lines = {line.strip().split("  ")[0] for line in kernel.asm["schedule"].splitlines()}
    found = {scope.path for scope in kernel.profile.table.scopes if scope.queue}
    assert found
    assert {path for path in lines if re.search("(wait|issue) ", path)} == found
    assert kernel.asm["schedule"] == matmul().asm["schedule"]
    assert "proton.schedule" not in kernel.asm["ttgir"]


def test_roles_of_several_workers() -> None:
    x = described(np.zeros((32, 64), np.float32), [32, 64], gl.float32)
    kernel = warmed(three_roles, [x, x], (5, 64, 2), num_warps=8, maxnreg=128)
    heads = [line for line in kernel.asm["schedule"].splitlines() if not line.startswith(" ")]
    assert heads == ["doubled, warps 0 to 7", "fetch, warp 8", "put, warp 9"]


@gluon.jit
def staged(x, y, n, which, S: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    buffers = gl.allocate_shared_memory(gl.int32, [S, 128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    i = gl.arange(0, 128, layout)
    for k in range(n):
        async_copy.async_load(buffers.index(k % S), x + k * 128 + i)
        async_copy.commit_group()
        if which == 1:
            async_copy.wait_group(1)
            gl.store(y + i, buffers.index((k + 1) % S).load(layout))
        else:
            for _ in range(which):
                gl.store(y, k)


def test_a_kernel_without_roles_has_one_order() -> None:
    kernel = compiled(staged, gl.int32, gl.int32, 5, 7, S=2, num_warps=4)
    assert without_places(kernel.asm["schedule"]) == [
        "warps 0 to 3",
        "  loop",
        "    issue copy",
        "    if",
        "      wait copy",
        "      read",
        "      store",
        "    else",
        "      loop",
        "        store",
    ]


@gluon.jit
def alone(out, n):
    total = 0
    for k in range(n):
        if k % 3 == 1:
            total = total * 5 + k
    gl.store(out, total)


def test_loops_without_work_are_left_out() -> None:
    text = compiled(alone, gl.int32, 9, num_warps=1).asm["schedule"]
    assert without_places(text) == ["warp 0", "  store"]
