"""Addresses at indices that all threads of a program have in common stay two instructions, for
which ptxas has uniform registers of its own; at indices of a thread they are one."""

import re
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.backends.nvidia.ptx import _of_threads
from proton.base.targets import GPUTarget

HOPPER = GPUTarget("cuda", 90)

PTX = """
	ld.param.b32 	%r1, [kernel_param_1];
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %tid.x;
	mad.lo.s32 	%r4, %r2, %r1, 7;
	add.s32 	%r5, %r4, %r3;
	setp.lt.s32 	%p1, %r5, %r1;
	selp.b32 	%r6, %r4, %r2, %p1;
	setp.lt.s32 	%p2, %r4, %r1;
	selp.b32 	%r7, %r4, %r2, %p2;
	ld.global.b32 	%r8, [%rd1];
	@%p1 mov.b32 	%r9, 1;
	@%p2 mov.b32 	%r10, 1;
	shfl.sync.bfly.b32 	%r11, %r4, 1, 31, -1;
	ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r12, %r13}, [%r4];
$L__BB0_1:
	mov.b32 	%r14, %r4;
	mov.b32 	%r15, %r4;
	add.s32 	%r14, %r14, 1;
	add.s32 	%r15, %r15, %r8;
	@%p2 bra 	$L__BB0_1;
	add.s32 	%r16, %r15, %r2;
	st.global.b32 	[%rd1], %r14;
"""


def test_what_threads_have_of_their_own() -> None:
    own = {3, 5, 6, 8, 9, 11, 12, 13, 15, 16}
    found = {int(name[2:]) for name in _of_threads(PTX) if name.startswith("%r") and name[2] != "d"}
    assert found == own
    assert "%p1" in _of_threads(PTX)
    assert "%p2" not in _of_threads(PTX)


@proton.jit
def rows(x_ptr, scale_ptr, y_ptr, stride, N: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + row * stride + columns)
    tl.store(y_ptr + row * stride + columns, x * tl.load(scale_ptr + row))


@proton.jit
def pages(x_ptr, table_ptr, y_ptr, stride, N: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, N)
    page = tl.load(table_ptr + row)
    tl.store(y_ptr + row * stride + columns, tl.load(x_ptr + page * stride + columns))


@proton.jit
def halves(x_ptr, y_ptr, z_ptr, stride, N: tl.constexpr):
    base, columns = x_ptr + tl.program_id(1) * stride, tl.arange(0, N)
    for half in range(2):
        tl.store(y_ptr + half * N + columns, tl.load(base + half * N + columns))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("kernel", [rows, pages, halves], ids=lambda kernel: str(kernel.__name__))
def test_no_address_of_a_common_index_is_one_instruction(kernel: Any) -> None:
    ptx = kernel.warmup(
        tl.float32, tl.int32, tl.float32, 1024, N=256, target=HOPPER, num_warps=4
    ).asm["ptx"]
    fused = re.findall(r"\tmad\.wide\.[su]32 \t%rd\d+, (%r\d+),", ptx)
    assert set(fused) <= _of_threads(ptx)
    assert re.search(r"\tmul\.wide\.[su]32 ", ptx)
