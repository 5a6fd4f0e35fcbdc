"""What it costs a GPU to store a record, by the way it is stored: hand-written PTX, no compiler.

    python benchmarks/record_cost.py

132 programs of 4 warps go round 2000 times; a turn is 8 dependent multiply-adds between two
readings of the clock, and the first lane of each warp stores 16 bytes into a ring of 64. Shown are
cycles per turn, and beyond the loop that records nothing and is not unrolled. `nounroll` keeps
ptxas from unrolling: then registers cannot rotate. `delayed` stores the record behind the next
reading, `edge` reads the clock once per turn.
"""

import ctypes
import statistics
from typing import Any

import torch
from cuda.bindings import driver
from rich.console import Console
from rich.table import Table

from proton.backends.nvidia.cubin import Assembler
from proton.base.targets import GPUTarget

PROGRAMS, THREADS, TURNS, REPEATS = 132, 128, 2000, 5
HEAD = """.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 sm[];
.visible .entry k(.param .u64 out, .param .u64 buf, .param .u32 n)
.maxntid 128
{ .reg .b32 %r<60>; .reg .f32 %f<20>; .reg .b64 %rd<30>; .reg .pred %p<8>;
 ld.param.u64 %rd1,[out]; ld.param.u64 %rd2,[buf]; ld.param.u32 %r1,[n];
 mov.u32 %r2,%tid.x; mov.u32 %r3,%ctaid.x; and.b32 %r4,%r2,31; setp.eq.s32 %p1,%r4,0;
 shr.u32 %r5,%r2,5; mad.lo.s32 %r6,%r3,4,%r5; mul.wide.u32 %rd3,%r6,1024; add.s64 %rd4,%rd2,%rd3;
 mov.u32 %r7,sm; mad.lo.s32 %r8,%r5,1024,%r7;
 cvt.rn.f32.u32 %f1,%r2; mov.f32 %f2,%f1; mov.u32 %r10,0; mov.u32 %r11,0; mov.u32 %r20,0;
 mov.u32 %r21,0; mov.u32 %r22,0; mov.u64 %rd8,%rd4; mov.u32 %r30,%r8;
 mov.u64 %rd10,%clock64;
"""
TAIL = """
 add.s32 %r10,%r10,1; setp.lt.s32 %p2,%r10,%r1; @%p2 bra L;
 mov.u64 %rd11,%clock64; sub.s64 %rd12,%rd11,%rd10;
 mad.lo.s32 %r40,%r3,128,%r2; mul.wide.u32 %rd13,%r40,8; add.s64 %rd14,%rd1,%rd13;
 st.global.u64 [%rd14],%rd12; add.s64 %rd15,%rd14,1048576; st.global.f32 [%rd15],%f1;
 st.global.u32 [%rd15+4],%r20; st.global.u32 [%rd15+8],%r21; ret; }
"""
WORK = " fma.rn.f32 %f1,%f1,0f3F000000,%f2;\n" * 8
START, END, PENDING_END = (f" mov.u32 %{register},%clock;\n" for register in ("r15", "r16", "r21"))
SLOT = " shl.b32 %r12,%r11,4; and.b32 %r13,%r12,1008; add.s32 %r11,%r11,1; mov.u32 %r17,7;\n"
# Memory -> (the slot's address, its register, where a pending one is, the store's name)
MEMORIES = {
    "global": (SLOT + " cvt.u64.u32 %rd6,%r13; add.s64 %rd5,%rd4,%rd6;\n", "%rd5", "%rd8", "u64"),
    "shared": (SLOT + " add.s32 %r14,%r8,%r13;\n", "%r14", "%r30", "u32"),
}


def bodies() -> dict[str, str]:
    """The body of the loop for each way of recording."""
    found = {
        "none, nounroll": 'L: .pragma "nounroll";\n' + WORK,
        "none": "L:\n" + WORK,
        "two readings, no store": "L:\n mov.u32 %r20,%clock;\n" + WORK + PENDING_END,
    }
    for memory, (slot, place, pending, word) in MEMORIES.items():
        store = f" @%p1 st.{memory}.v4.b32"
        at_once = START + WORK + END + slot + f"{store} [{place}],{{%r15,%r16,%r17,%r10}};\n"
        found[f"{memory}, at the end"] = "L:\n" + at_once
        found[f"{memory}, at the end, nounroll"] = 'L: .pragma "nounroll";\n' + at_once
        found[f"{memory}, delayed"] = (
            "L:\n" + START + slot + f"{store} [{pending}],{{%r20,%r21,%r17,%r22}};\n" + WORK
            + PENDING_END + " mov.u32 %r20,%r15; mov.u32 %r22,%r10;\n"
            + f" mov.{word} {pending},{place};\n"
        )  # fmt: skip
        found[f"{memory}, edge"] = (
            "L:\n" + WORK + END + slot + f"{store} [{place}],{{%r10,%r16,%r17,%r10}};\n"
        )
    return found


def assembled(body: str) -> bytes:
    """The cubin of a loop with this body, for an H100 or H200."""
    with Assembler(GPUTarget("cuda", 90), "k") as assembler:
        assembler.feed(HEAD + body + TAIL)
        return assembler.finish().code


def called(function: Any, *arguments: Any) -> Any:
    """What a call of the driver gives; an error ends the program."""
    status, *results = function(*arguments)
    if int(status):
        raise SystemExit(f"{function.__name__}: {status}")
    return results[0] if results else None


def cycles(body: str, out: torch.Tensor, ring: torch.Tensor) -> float:
    """Cycles a turn: the median of some launches of the mean over all threads."""
    module = called(driver.cuModuleLoadData, assembled(body))
    function = called(driver.cuModuleGetFunction, module, b"k")
    values = (out.data_ptr(), ring.data_ptr(), TURNS)
    arguments = values, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
    size = PROGRAMS, 1, 1, THREADS, 1, 1, 8192  # bytes of shared memory
    found = []
    for _ in range(REPEATS):
        called(driver.cuLaunchKernel, function, *size, 0, arguments, 0)
        torch.cuda.synchronize()
        found.append(out[: PROGRAMS * THREADS].double().mean().item() / TURNS)
    return statistics.median(found)


def main() -> None:
    out = torch.zeros(1 << 20, dtype=torch.int64, device="cuda")
    ring = torch.zeros(1 << 22, dtype=torch.int32, device="cuda")
    table = Table("record", "cycles per turn", "cost", title=torch.cuda.get_device_name())
    base = None
    for name, body in bodies().items():
        found = cycles(body, out, ring)
        base = found if base is None else base
        table.add_row(name, f"{found:.1f}", f"{found - base:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
