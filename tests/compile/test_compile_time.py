"""What keeps compile times down, seen in what is compiled: no clock is read here."""

import re
from typing import Any, ClassVar

import pytest

import proton
import proton.language as tl
from proton.analysis import signs
from proton.backends.nvidia import compiler
from proton.backends.nvidia.cubin import Assembler
from proton.dialect.mlir import Operation, Value
from proton.dialect.walk import defining_op

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


@proton.jit
def sums_of_each_other(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    a, b, c, d, e, f, g = n, n, n, n, n, n, n
    for step in range(n):
        total = a + b + c + d + e + f + g
        a, b, c, d = total % 61, (total + a) % 59, (total + b) % 53, (total + c) % 47
        e, f, g = (total + d) % 43, (total + e) % 41, (total + f) % 37
        tl.store(out_ptr + step * BLOCK + place, tl.load(x_ptr + (a * 16 + place) % 48))


def test_signs_of_what_a_loop_carries_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of seven numbers is a sum of all; in any order of them there are 5,040."""
    asked = []

    def counted(value: Value) -> Operation | None:
        asked.append(value)
        return defining_op(value)

    monkeypatch.setattr(signs, "defining_op", counted)
    compiled(sums_of_each_other, tl.int32, tl.int32, 17, BLOCK=128)
    assert 0 < len(asked) < 5_000, len(asked)


@proton.jit
def written_out(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place, first = tl.arange(0, BLOCK), n
    for step in tl.static_range(400):
        first += tl.program_id(0) // (step + 3)
    tl.store(out_ptr + place, tl.load(x_ptr + (first * 16 + place) % 48))


def test_signs_of_long_sums_are_not_asked_to_their_end() -> None:
    assert "st.global" in compiled(written_out, tl.int32, tl.int32, 17, BLOCK=128).asm["ptx"]
