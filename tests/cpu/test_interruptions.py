"""Signals within launches: Ctrl-C ends what never ends, a wild access says where it was."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from proton.runtime.cpu.guard_code import IS_KNOWN
from tests import processes

pytestmark = pytest.mark.skipif(not IS_KNOWN, reason="handlers are written for x86-64 Linux")

KERNELS = '''
import os, signal, sys, threading, time
import numpy as np
import proton, proton.language as tl
from proton import knobs

@proton.jit
def spin(flag_ptr, out_ptr, first, last):
    """Programs in [first, last) end when the flag is set."""
    pid = tl.program_id(0)
    turns = 0
    if (pid >= first) & (pid < last):
        tl.atomic_add(flag_ptr + 1, 1)
        while tl.atomic_add(flag_ptr, 0) == 0:
            turns += 1
    tl.store(out_ptr + pid, turns + 1)

@proton.jit
def spin_in_functions(flag_ptr, out_ptr, BLOCK: tl.constexpr):
    """Most of its time is C's: functions of mathematics, copies."""
    offs = tl.arange(0, BLOCK)
    tl.atomic_add(flag_ptr + 1, 1)
    while tl.atomic_add(flag_ptr, 0) == 0:
        x = tl.load(out_ptr + offs)
        tl.store(out_ptr + offs, tl.extra.libdevice.tgamma(x))

@proton.jit
def spin_and_print(flag_ptr):
    tl.atomic_add(flag_ptr + 1, 1)
    while tl.atomic_add(flag_ptr, 0) == 0:
        tl.device_print("still here")

@proton.jit
def wild(out_ptr, stride):
    tl.store(out_ptr + tl.program_id(0).to(tl.int64) * stride, 1.0)

flag, out = np.zeros(2, np.int32), np.zeros(128, np.int32)

def interrupt():
    """Sends SIGINT when a program has begun to spin."""
    flag[1] = 0
    threading.Thread(target=interrupt_when_it_spins).start()

def interrupt_when_it_spins():
    while flag[1] == 0:
        time.sleep(0.01)
    time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)
'''
THAT_IT_STOPPED = """
before = flag.copy(), out.copy()
time.sleep(0.05)
assert (out == before[1]).all()
flag[0], out[:] = 1, 0
spin[(grid,)](flag, out, 0, grid)  # and the next launch is as ever
assert (out[:grid] == 1).all()
"""


def run(script: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs the script with the kernels above it, from a file, as kernels need one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(KERNELS + script)
        return processes.python(path, env=environment, timeout=60)


def check(script: str, **environment: str) -> None:
    found = run(script, **environment)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("grid", "threads", "spins"),
    [(1, 1, (0, 1)), (40, 1, (7, 8)), (100, 2, (0, 100)), (40, 3, (1, 2)), (40, 3, (39, 40))],
)
def test_ctrl_c_ends_a_kernel_that_never_ends(
    grid: int, threads: int, spins: tuple[int, int]
) -> None:
    """On the launching thread, on workers, on both: all have left the kernel when it raises."""
    script = (
        f"""
grid = {grid}
flag[0] = 1
import proton.runtime.cpu.grid as grids
grids.LEAST_NS = 1e-3  # so that all threads take part
spin[(grid,)](flag, out, 0, grid)
flag[0] = 0
interrupt()
try:
    spin[(grid,)](flag, out, *{spins})
except KeyboardInterrupt as problem:
    text = str(problem)
    assert "kernel spin, launched with grid ({grid}, 1, 1), was stopped" in text, text
else:
    raise SystemExit("not interrupted")
"""
        + THAT_IT_STOPPED
    )
    check(script, PROTON_NUM_THREADS=str(threads))


def test_a_handler_that_raises_nothing_does_not_end_the_kernel() -> None:
    """It runs while the kernel does, which goes on where it was."""
    check("""
def handler(number, frame):
    flag[0] = 1
flag[0] = 1
spin[(1,)](flag, out, 0, 1)
flag[0], out[0] = 0, 0
signal.signal(signal.SIGINT, handler)
time.sleep(0.01)  # launches look each millisecond who handles SIGINT
interrupt()
spin[(1,)](flag, out, 0, 1)
assert flag[0] == 1
assert out[0] > 1, "it was left"
""")


def test_what_a_handler_raises_ends_the_kernel_and_names_the_launch() -> None:
    check(
        """
class Stop(Exception):
    pass
def handler(number, frame):
    raise Stop("enough")
signal.signal(signal.SIGINT, handler)
grid = 3
interrupt()
try:
    spin[(grid,)](flag, out, 0, grid)
except Stop as problem:
    assert problem.args == ("enough",)
    assert "kernel spin, launched with grid (3, 1, 1)" in problem.__notes__[0]
else:
    raise SystemExit("not interrupted")
"""
        + THAT_IT_STOPPED
    )


@pytest.mark.parametrize("launch", ["spin_in_functions[(1,)](flag, np.ones(64, np.float32), 64)",
                                    "spin_and_print[(1,)](flag)"])  # fmt: skip
def test_a_kernel_in_functions_of_c_is_left_when_it_comes_back(launch: str) -> None:
    """It may hold locks there: printing works afterwards."""
    check(
        f"""
grid = 1
interrupt()
try:
    {launch}
except KeyboardInterrupt:
    flag[0] = 1
    {launch}
    print("printed", flush=True)
else:
    raise SystemExit("not interrupted")
"""
        + THAT_IT_STOPPED
    )


def test_a_forked_child_is_interrupted_too() -> None:
    check("""
import warnings
flag[0] = 1
spin[(8,)](flag, out, 0, 8)
flag[0], grid = 0, 8
warnings.simplefilter("ignore")
if (child := os.fork()) == 0:
    interrupt()
    try:
        spin[(grid,)](flag, out, 0, grid)
    except KeyboardInterrupt:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
flag[0] = 1
spin[(8,)](flag, out, 0, 8)
""")


def test_an_interrupted_launch_within_a_session_leaves_its_records() -> None:
    check(
        """
grid = 1
with proton.profile("spins") as session:
    interrupt()
    try:
        spin[(grid,)](flag, out, 0, grid)
    except KeyboardInterrupt as problem:
        assert "kernel spin" in str(problem)
    else:
        raise SystemExit("not interrupted")
"""
        + THAT_IT_STOPPED
    )


SAID = "proton: SIGSEGV in kernel wild, launched with grid (5, 2, 1). PROTON_CHECK_BOUNDS=1 names"
WILD = """
out = np.zeros(8, np.float32)
wild[(5, 2)](out, 1)
{late}
wild[(5, 2)](out, 1 << 45)
"""


FAULTHANDLER = "import faulthandler; faulthandler.enable()"


@pytest.mark.parametrize(
    ("early", "late", "threads"),
    [("", "", "1"), ("", "", "2"), (FAULTHANDLER, "", "1"), ("", FAULTHANDLER, "2")],
)
def test_a_wild_access_names_the_launch_and_ends_the_process(
    early: str, late: str, threads: str
) -> None:
    found = run(early + WILD.format(late=late), PROTON_NUM_THREADS=threads)
    assert found.returncode == -signal.SIGSEGV
    assert found.stderr.count(SAID) == 1
    assert ("Fatal Python error" in found.stderr) == bool(early or late)


def test_a_fault_outside_of_launches_is_not_named() -> None:
    found = run(WILD.format(late="import ctypes; ctypes.string_at(8)"))
    assert found.returncode == -signal.SIGSEGV
    assert "proton:" not in found.stderr


def test_code_is_linked_where_memory_is_in_small_pieces() -> None:
    """As beside CUDA, which reserves hundreds of GiB: what is left near the top is holes of a few
    pages. All sections of an object must lie within 2 GiB."""
    script = """
import ctypes
from proton.backends.cpu import llvm
from proton.runtime.cpu.guard_code import guard_code

libc = ctypes.CDLL(None)
libc.mmap.restype, word = ctypes.c_void_p, ctypes.c_size_t
libc.mmap.argtypes = [ctypes.c_void_p, word, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, word]
PAGE, RESERVED = 4096, 0x4022  # private, anonymous, without memory behind it

def reserve(size):
    return libc.mmap(None, size, 0, RESERVED, -1, 0)

llvm.linker().link(llvm.emit_object("define void @f() { ret void }")[0], "f")
for size in (*(1 << bits for bits in (32, 31, 30, 28, 26, 24, 22, 20, 18, 16)), 9 * PAGE):
    for _ in range(8 if size >= 1 << 22 else 2000):
        reserve(size)
pieces = [reserve(16 * PAGE) for _ in range(64)]
reserve(16 << 30)
for piece in pieces:
    libc.munmap(piece, 8 * PAGE)
guard_code()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
