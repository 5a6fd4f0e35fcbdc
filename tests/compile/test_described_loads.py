"""Loads by pointers that TMA copies (proton/transforms/hopper/describe_loads.py), on the machine
for PTX, against numpy."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation
from tests.draws import times
from tests.tables import check_rows

HOPPER = proton.GPUTarget("cuda", 90)
TMA, THREADS = "cp.async.bulk.tensor", "cp.async.c"


@proton.jit
def sums(
    x_ptr, y_ptr, z_ptr, out_ptr, n, width, heads,
    stride_xh, stride_xm, stride_yh, stride_yn, stride_zb, stride_zh, stride_zn,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr, WIDE: tl.constexpr,
    CARRIED: tl.constexpr, REVERSED: tl.constexpr, TURNED: tl.constexpr, BLOCKS: tl.constexpr,
    OTHER: tl.constexpr,
):  # fmt: skip
    """(x @ y.T) @ z by blocks of rows of y and z, of which n are there, or a multiple of N."""
    block, batch, head = tl.program_id(0), tl.program_id(1) // heads, tl.program_id(1) % heads
    rows, own, columns = tl.arange(0, N), block * M + tl.arange(0, M), tl.arange(0, D)
    x = tl.load(x_ptr + head * stride_xh + own[:, None] * stride_xm + columns[None, :])
    y_base = y_ptr + head.to(tl.int64) * stride_yh
    z_base = z_ptr + batch * stride_zb + head * stride_zh
    y_ptrs = y_base + rows[None, :] * stride_yn + columns[:, None]
    z_block = tl.make_block_ptr(z_base, (n, D), (stride_zn, 1), (0, 0), (N, D), (1, 0))
    out = tl.zeros((M, D), tl.float32)
    for i in tl.range(tl.cdiv(n, N), warp_specialize=True):
        start = (tl.cdiv(n, N) - 1 - i) * N if REVERSED else i * N
        inside = start + rows < n
        if CARRIED:
            y = tl.load(y_ptrs, mask=inside[None, :], other=0.0) if MASKED else tl.load(y_ptrs)
        elif TURNED:
            places = y_base + (start + rows)[None, :] * stride_yn + columns[:, None]
            mask = inside[None, :] & (columns[:, None] < width) if WIDE else inside[None, :]
            y = tl.load(places, mask=mask, other=OTHER) if MASKED else tl.load(places)
        else:
            places = y_base + (start + rows)[:, None] * stride_yn + columns[None, :]
            mask = inside[:, None] & (columns[None, :] < width) if WIDE else inside[:, None]
            y = tl.trans(tl.load(places, mask=mask, other=OTHER) if MASKED else tl.load(places))
        if BLOCKS and MASKED:
            z = tl.load(z_block, boundary_check=(0,), padding_option="zero")
        elif BLOCKS:
            z = tl.load(z_block)
        else:
            z_ptrs = z_base + (start + rows)[:, None] * stride_zn + columns[None, :]
            z = tl.load(z_ptrs, mask=inside[:, None], other=0.0) if MASKED else tl.load(z_ptrs)
        scores = tl.dot(x, y)
        if MASKED:
            scores = tl.where(inside[None, :], scores, 0.0)
        out = tl.dot(scores.to(x.dtype), z, out)
        y_ptrs += N * stride_yn
        z_block = tl.advance(z_block, (N, 0))
    out_ptrs = out_ptr + (tl.program_id(1) * tl.num_programs(0) * M + own)[:, None] * D
    tl.store(out_ptrs + columns[None, :], out)


def run(rng: np.random.Generator, *, length: int = 96, flip: bool = False, repeat: bool = False,
        warps: int = 4, size: int = 64, **flags: Any) -> str:  # fmt: skip
    """The PTX of a launch whose result is numpy's. `flip`: rows of y lie in falling order, and
    `repeat`: all are one."""
    batches, heads, block, width = 2, 2, 16 * warps, 48
    on = dict.fromkeys(("MASKED", "WIDE", "CARRIED", "REVERSED", "TURNED", "BLOCKS"), False) | flags
    new: Any = lambda *shape: (rng.standard_normal(shape) / 8).astype(np.float16)  # noqa: E731
    rows = proton.cdiv(max(length, 1), 32) * 32
    x, y, z = new(heads, block, size), new(heads, rows, size), new(batches, rows, heads, size)
    if on["MASKED"]:  # nothing there is read
        y[:, length:], z[:, length:] = np.nan, np.nan
    if on["WIDE"] and on["MASKED"]:
        y[..., width:] = np.nan
    if flip:
        y = y[:, ::-1]
    if repeat:
        y = np.broadcast_to(y[:, :1], y.shape)
    out = np.full((batches * heads, block, size), np.nan, np.float32)
    strides = [array.strides[axis] // 2 for array, axis in
               ((x, 0), (x, 1), (y, 0), (y, 1), (z, 0), (z, 2), (z, 1))]  # fmt: skip
    seen: list[str] = []
    edit = lambda ptx: seen.append(ptx) or ptx  # noqa: E731
    with Emulation(warps, rng, edit, checks_races=False, apart=128).installed():
        sums[(1, batches * heads)](
            x, y, z, out, length, width, heads, *strides, M=block, N=32, D=size, **on,
            OTHER=flags.get("OTHER", 0.0), num_warps=warps, num_stages=2,
        )  # fmt: skip
    a, b, c = (array.astype(np.float64) for array in (x, y[:, :length], z[:, :length]))
    if on["WIDE"] and on["MASKED"]:
        a, b = a[..., :width], b[..., :width]
    c = c.transpose(0, 2, 1, 3)
    want = (a @ b.transpose(0, 2, 1)) @ c
    error = np.abs(out.reshape(want.shape) - want).max(initial=0)
    assert error <= 4e-3 * max(1, np.abs(want).max(initial=0)), (length, flags)
    return seen[0]


FLAGS = "MASKED", "WIDE", "CARRIED", "REVERSED", "TURNED", "BLOCKS"


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("number", range(times(6)))
def test_random_loads(session_seed: int, number: int) -> None:
    """All are described: masked or not, in falling order, transposed, of block pointers."""
    rng = np.random.default_rng([session_seed, number])
    on = {name: bool(rng.integers(2)) for name in FLAGS}
    on["CARRIED"] &= not on["REVERSED"]  # its pointers go on
    on["BLOCKS"] &= not on["REVERSED"]
    on["WIDE"] &= not on["CARRIED"]
    length = int(rng.choice([2, 31, 33, 77])) if on["MASKED"] else int(rng.choice([32, 96]))
    warps, size = int(rng.choice([4, 8])), int(rng.choice([64, 128]))
    ptx = run(rng, length=length, warps=warps, size=size, **on)
    assert TMA in ptx
    assert THREADS not in ptx


@pytest.mark.usefixtures("no_assembler")
def test_what_stays_by_pointers(rng: np.random.Generator) -> None:
    """Rows in falling order, and one row again and again, whose strides TMA does not have."""
    rows: list[tuple[dict[str, Any], bool]] = [
        ({"flip": True}, False),
        ({"repeat": True}, False),
        ({"length": 0, "MASKED": True}, True),  # no row: 0 is a size, and no stride
    ]

    def check(flags: dict[str, Any], is_described: bool) -> None:
        ptx = run(rng, **flags)
        assert (THREADS not in ptx) == is_described

    check_rows(check, rows)


@proton.jit
def windows(
    x_ptr, y_ptr, z_ptr, out_ptr, n, given, shift, window, stride,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """(x @ y.T) @ z of rows of y and z near those of x, by a program for several blocks of x."""
    rows, columns, j = tl.arange(0, M), tl.arange(0, D), tl.arange(0, N)
    for tile in range(tl.program_id(0), tl.cdiv(n, M), tl.num_programs(0)):
        own = tile * M + rows
        places = own[:, None] * D + columns[None, :]
        x = tl.load(x_ptr + places, mask=own[:, None] < n, other=0.0)
        out = tl.zeros((M, D), tl.float32)
        first, last = 0, n
        if HOW == "window":
            first, last = tl.maximum(0, tile * M - window) // N * N, tl.minimum(n, tile * M + M)
        if HOW == "given" or HOW == "shifted":
            first = given
        y_ptrs = y_ptr + first * stride + j[:, None] * stride + columns[None, :]
        for start in tl.range(first, last, N, warp_specialize=True):
            at = start + j
            if HOW == "ahead":  # of the first row there is nothing
                at = start - 8 + j
                inside = (at[:, None] >= 0) & (at[:, None] < n)
                y = tl.load(y_ptr + at[:, None] * stride + columns[None, :], inside, 0.0)
            elif HOW == "shifted":
                inside = at[:, None] < n
                y = tl.load(y_ptr + (at + shift)[:, None] * stride + columns[None, :], inside, 0.0)
            else:
                inside = at[:, None] < n
                y = tl.load(y_ptrs, mask=inside, other=0.0)
            z = tl.load(z_ptr + at[:, None] * D + columns[None, :], mask=inside, other=0.0)
            out = tl.dot(tl.dot(x, tl.trans(y)).to(tl.float16), z, out)
            y_ptrs += N * stride
        tl.store(out_ptr + places, out, mask=own[:, None] < n)


@pytest.mark.usefixtures("no_assembler")
def test_rows_that_are_not_all(rng: np.random.Generator) -> None:
    """A window, a first row of the launch's, rows ahead of the first one, and others of y than of z
    by a number that is negative or not; NaN lies between y's rows."""
    size, block, step, given, window = 64, 64, 32, 32, 48

    def check(how: str, n: int, shift: int, is_described: bool) -> None:
        new: Any = lambda: (rng.standard_normal((n, size)) / 8).astype(np.float16)  # noqa: E731
        x, z, wide = new(), new(), np.full((n + 1, size + 16), np.nan, np.float16)
        wide[:n, :size] = new()
        wide[n, :size] = 0
        out, seen = np.full((n, size), np.nan, np.float32), list[str]()
        edit = lambda ptx: seen.append(ptx) or ptx  # noqa: E731
        with Emulation(4, rng, edit, checks_races=False, apart=128).installed():
            windows[2,](
                x, wide, z, out, n, given, shift, window, size + 16, block, step, size, how,
                num_warps=4, num_stages=2,
            )  # fmt: skip
        a, b, c = (array.astype(np.float64) for array in (x, wide[:, :size], z))
        for first in range(0, n, block):
            start, end = 0, n
            if how == "window":
                start, end = max(0, first - window) // step * step, min(n, first + block)
                end = min(n, start + -(-(end - start) // step) * step)
            if how == "ahead":
                end = min(n, -(-n // step) * step - 8)
            if how in ("given", "shifted"):
                start = given
            of = slice(start + shift, end + shift)
            want = (a[first : first + block] @ b[of].T) @ c[start:end]
            assert np.abs(out[first : first + block] - want).max() < 4e-3
        assert (THREADS not in seen[0]) == is_described

    rows: list[tuple[str, int, int, bool]] = [
        *(("plain", 70, 0, True), ("window", 200, 0, True), ("given", 130, 0, True)),
        *(("ahead", 130, 0, True), ("shifted", 70, 1, True), ("shifted", 130, -1, False)),
        ("shifted", 130, -16, False),
    ]
    check_rows(check, rows)
