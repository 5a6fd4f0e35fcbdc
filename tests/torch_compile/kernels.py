"""Kernels of the program that are launched in compiled functions."""

from typing import Any

import triton
import triton.language as tl
from triton.language import load, store
from triton.language import program_id as number_of
from triton.language.extra import libdevice

FACTOR = tl.constexpr(3)
KIND = tl.constexpr("scaled")


@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.load(a + at, mask=at < n) + tl.load(b + at, mask=at < n)
    tl.store(out + at, sums, mask=at < n)


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def add_if_there(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, mask=at < n)
    if b is not None:
        x += tl.load(b + at, mask=at < n)
    tl.store(out + at, x, mask=at < n)


@triton.jit
def strided(x, out, stride, by, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at * stride, mask=at < n) * by, mask=at < n)


@triton.jit
def converted(x, out, n, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n).to(DTYPE).to(tl.float32), mask=at < n)


@triton.jit
def _inner(x, factor: tl.constexpr):
    return x * factor


@triton.jit
def _outer(x, kind: tl.constexpr):
    if kind == "scaled":
        return _inner(x, FACTOR)
    else:
        return x


@triton.jit(noinline=True)
def _put(where, value, mask):
    tl.store(where, value, mask=mask)


@triton.jit
def with_helpers(x, out, n, BLOCK: tl.constexpr):
    at = number_of(0) * BLOCK + tl.arange(0, BLOCK)
    value = load(x + at, mask=at < n)
    store(out + at, _outer(value, KIND) + libdevice.tanh(value), mask=at < n)
    _put(x + at, value + 1, at < n)


@triton.jit
def rotated(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $1, 8;",
        "=r,r",
        [tl.load(x + at, mask=at < n)],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out + at, word, mask=at < n)


@triton.jit(do_not_specialize=["small"])
def integers(out, wide, narrow, small, flag, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), wide + narrow * tl.arange(0, BLOCK) + small + flag)


@triton.jit
def through_pointers(a, b, out, n, TO_B: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    source = a
    for _ in range(2):
        source += 1
    if TO_B:
        target = b
    else:
        target = out
    tl.store(target + at, tl.load(source + at, mask=at < n), mask=at < n)


@triton.jit
def add_blocks(a, b, out, m, n, M: tl.constexpr, N: tl.constexpr):
    b_desc = tl.make_tensor_descriptor(b, [m, n], [n, 1], [M, N])
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    out.store([i, j], a.load([i, j]) + b_desc.load([i, j]))


SMALL, LARGE = triton.Config({"BLOCK": 32}, num_warps=2), triton.Config({"BLOCK": 64})
tuned_add = triton.autotune([SMALL, LARGE], key=["n"])(add)
seen: list[str] = []


def _pruned(configs: list[Any], arguments: dict[str, Any], **more: Any) -> list[Any]:
    seen.append(f"{len(configs)} {sorted(arguments)}")
    return configs[:1]


@triton.autotune([SMALL, LARGE], key=["n"], reset_to_zero=["out"])
@triton.jit
def summed(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))


@triton.autotune([SMALL, LARGE], key=["n"], restore_value=["x"])
@triton.jit
def counted(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.autotune([SMALL, LARGE], key=["n"], prune_configs_by={"early_config_prune": _pruned})
@triton.jit
def pruned(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + BLOCK, mask=at < n)


def _hook(arguments: dict[str, Any]) -> None:
    arguments["out"].zero_()


@triton.autotune([triton.Config({"BLOCK": 32}, pre_hook=_hook)], key=["n"])
@triton.jit
def hooked(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + at, tl.load(x + at, mask=at < n), mask=at < n)
