"""What keeps compile times down, seen in what is compiled: no clock is read here."""

import re
from typing import Any, ClassVar

import pytest

import proton
import proton.language as tl
from proton.backends.nvidia import compiler
from proton.backends.nvidia.cubin import Assembler

TARGET = proton.GPUTarget("cuda", 90)


def compiled(kernel: Any, *values: Any, **options: Any) -> Any:
    with proton.knobs.scope(always_compile=True):
        return kernel.warmup(*values, **options, target=TARGET)


@proton.jit
def multiples(out_ptr, a, s):
    tl.store(out_ptr, (a + 2) * s)
    tl.store(out_ptr + 1, (a + 4) * s)
    tl.store(out_ptr + 2, (a + 6) * s)


def test_llvm_leaves_straight_line_strength_reduction_out_and_says_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It would make one product and two sums of these, in time quadratic in their number."""
    ptx = compiled(multiples, tl.int32, 5, 7).asm["ptx"]
    assert len(re.findall(r"\b(?:mul|mad)\.lo\.s32", ptx)) == 3, ptx
    assert capfd.readouterr() == ("", "")


@proton.jit
def rows_of_any_stride(x_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        inside = column[None, :] < columns
        total += tl.load(x_ptr + row[:, None] * columns + column[None, :], inside, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, 1))


@pytest.mark.parametrize(("rows", "columns", "warps"), [(8, 1024, 4), (4, 512, 2), (8, 512, 8)])
def test_loads_of_a_row_share_an_address(rows: int, columns: int, warps: int) -> None:
    """A lane's place has a mask, which LLVM leaves out where a register's place has all bits
    above: such loads would have addresses of their own."""
    kernel = compiled(
        rows_of_any_stride,
        tl.float32,
        tl.float32,
        999,
        ROWS=rows,
        COLUMNS=columns,
        num_warps=warps,
    )
    ptx = kernel.asm["ptx"]
    apart = dict(re.findall(r"add\.s64 \t(%rd\d+), (%rd\d+), \d+;", ptx))
    found = [apart.get(one, one) for one in re.findall(r"ld\.global\.b32 %r\d+, \[(%rd\d+)\]", ptx)]
    assert len(found) == rows * columns // (32 * warps), ptx
    assert len(set(found)) == max(1, rows // warps), ptx


@proton.jit
def causal(x_ptr, out_ptr, stride, length, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < length) & (column < length)
    x = tl.load(x_ptr + row * stride + column, inside & (column <= row), other=-1e9)
    tl.store(out_ptr + row * stride + column, x, inside)


class _Counted(compiler.Assembler):
    """Assemblers, which are counted."""

    started: ClassVar[list[Assembler]] = []

    def __init__(self, *given: Any) -> None:
        self.started.append(self)
        super().__init__(*given)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Assembler]:
    """The assemblers that a test starts."""
    monkeypatch.setattr(compiler, "Assembler", _Counted)
    _Counted.started.clear()
    return _Counted.started


def test_what_spills_in_any_case_is_assembled_once(started: list[Assembler]) -> None:
    values = (tl.float32, tl.float32, 999, 1000)
    kernel = compiled(causal, *values, BLOCK=64, num_warps=1)
    assert kernel.n_spills
    assert kernel.n_regs == 255
    assert len(started) == 1
