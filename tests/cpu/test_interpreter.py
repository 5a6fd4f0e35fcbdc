"""Kernels that run as Python: what a debugger sees, what is checked, and that they mean the same.

That the language is the same is shown by its own tests, which are marked `interpreted`, and by
random programs (test_random_programs.py).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import kernels_of
from tests.processes import python

STEPPED = """
import numpy as np
import proton
import proton.language as tl

@proton.jit
def doubled(x):
    twice = x * 2
    return twice

@proton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=-1)
    breakpoint()
    total = 0
    for i in range(2):
        total += tl.sum(x) * i
    y = doubled(x)
    print("y is", y)
    tl.store(out_ptr + offs, y + total, mask=offs < n)

x = np.arange(3, dtype=np.int32)
out = np.zeros_like(x)
kernel[(1,)](x, out, x.size, BLOCK=4)
print("out is", out)
"""


@pytest.fixture
def interpreted() -> Iterator[None]:
    with proton.knobs.scope(interpret=True):
        yield


def debugged(script: Path, *commands: str) -> list[str]:
    """The lines that a script prints while a debugger gets these commands."""
    said = script.with_suffix(".txt")
    said.write_text("\n".join([*commands, "continue", ""]))
    with said.open() as stream:
        done = python(script, env={"PROTON_INTERPRET": "1"}, stdin=stream.fileno())
    assert done.returncode == 0, done.stderr
    return [line.replace("(Pdb) ", "") for line in done.stdout.splitlines()]


def test_a_debugger_steps_through_the_lines_and_shows_blocks(tmp_path: Path) -> None:
    script = tmp_path / "stepped.py"
    script.write_text(STEPPED)
    commands = ["p x", "p x.max(axis=0) + 1", *["next"] * 6, "p total", "p i", *["step"] * 6]
    lines = debugged(script, *commands)
    stops = [line[3:].strip() for line in lines if line.startswith("-> ")]
    if stops[0] == "breakpoint()":  # from Python 3.13 on
        stops.pop(0)
    assert stops[:6] == [
        "total = 0",
        *["for i in range(2):", "total += tl.sum(x) * i"] * 2,
        "for i in range(2):",
    ]
    assert stops[6:12] == [  # nothing of what runs between the kernel's lines and its callee's
        "y = doubled(x)",
        "def doubled(x):",
        "twice = x * 2",
        *["return twice"] * 2,
        'print("y is", y)',
    ]
    assert "tensor(i32[4], [ 0,  1,  2, -1])" in lines
    assert "tensor(i32, 3)" in lines
    assert "tensor(i32, 2)" in lines  # the total, as a tensor: it was a number before the loop
    assert "y is tensor(i32[4], [ 0,  2,  4, -2])" in lines
    assert lines[-1] == "out is [2 4 6]"


def test_a_breakpoint_in_a_callee_is_one_of_the_debugger(tmp_path: Path) -> None:
    script = tmp_path / "stepped.py"
    script.write_text(STEPPED)
    line = STEPPED.splitlines().index("    return twice") + 1
    lines = debugged(script, f"break {script}:{line}", "continue", "p twice", "up 99", "where")
    assert "tensor(i32[4], [ 0,  2,  4, -2])" in lines
    assert any(line.endswith("kernel()") and "stepped.py" in line for line in lines)


def test_a_debugger_begins_after_an_error_in_the_line_that_made_it() -> None:
    kernel = kernels_of(
        "@proton.jit\ndef inner(p, i):\n    j = i + 1\n    return tl.load(p + j)\n"
        "@proton.jit(interpret=True)\ndef kernel(x_ptr):\n    i = tl.arange(0, 2)\n"
        '    with proton.scope("load"):\n        inner(x_ptr, i)\n'
    ).kernel
    with pytest.raises(proton.BoundsError) as problem:
        kernel[(1,)](np.zeros(2, np.float32))
    last = problem.traceback[-1].frame
    assert (last.code.name, list(last.f_locals["j"].numpy())) == ("inner", [1, 2])
    assert "p + j" in str(problem.value)


def test_a_compiled_kernel_says_how_to_get_its_breakpoint() -> None:
    with pytest.raises(proton.CompilationError, match=r"(?s)breakpoint.*PROTON_INTERPRET=1"):
        stops[(1,)](np.zeros(1, np.float32))


@proton.jit
def stops(x_ptr):
    breakpoint()
    tl.store(x_ptr, 1.0)


# What is checked


@proton.jit
def forgets_the_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x, mask=offs < n)


@proton.jit
def masked(x_ptr, out_ptr, n, shift, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs + shift, x, mask=offs < n)


def test_an_access_outside_is_reported_by_line_and_index(interpreted: None) -> None:
    x, out = np.ones(6, np.float32), np.zeros(6, np.float32)
    with pytest.raises(proton.BoundsError) as caught:
        forgets_the_mask[(2,)](x, out, 6, BLOCK=4)
    first = forgets_the_mask.fn.__code__.co_firstlineno
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == (__file__, first + 3)
    assert "load outside of the array, at x_ptr[6] (x_ptr has elements 0 to 5)" in str(caught.value)
    assert "in program (1, 0, 0), element (2,) of the block" in str(caught.value)
    masked[(2,)](x, out, 6, 0, BLOCK=4)
    assert (out == 1).all()
    with pytest.raises(proton.BoundsError, match=r"store outside of the array, at out_ptr\[6\]"):
        masked[(2,)](x, out, 6, 2, BLOCK=4)


def test_a_view_is_checked_as_what_it_is_a_view_of_or_by_itself(interpreted: None) -> None:
    buffer, out = np.arange(8, dtype=np.float32), np.zeros(6, np.float32)
    masked[(1,)](buffer[4:], out, 6, 0, BLOCK=4)
    assert list(out[:4]) == [4, 5, 6, 7]
    forgets_the_mask[(1,)](buffer[:2], out, 2, BLOCK=4)
    with (
        proton.knobs.scope(check_bounds=True),
        pytest.raises(proton.BoundsError, match=r"x_ptr\[2\] \(x_ptr has elements 0 to 1\)"),
    ):
        forgets_the_mask[(1,)](buffer[:2], out, 2, BLOCK=4)


@proton.jit(noinline=True)
def chosen_at(x, index):
    return tl.gather(x, index, 0)


@proton.jit
def gathers(x_ptr, index_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x_ptr + i, chosen_at(tl.load(x_ptr + i), tl.load(index_ptr + i)))


def test_a_wrong_index_in_a_callee_has_both_lines(interpreted: None) -> None:
    index = np.array([0, 1, 2, 4], np.int32)
    with pytest.raises(proton.BoundsError, match="index 4 is outside of axis 0") as caught:
        gathers[(1,)](np.zeros(4, np.float32), index, N=4)
    assert "return tl.gather(x, index, 0)" in str(caught.value)
    assert "called from" in str(caught.value)


def test_arrays_that_are_read_only_stay_as_they_are(interpreted: None) -> None:
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    out.flags.writeable = False
    with pytest.raises(proton.LaunchError, match="argument out_ptr is read-only"):
        masked[(1,)](x, out, 4, 0, BLOCK=4)
    assert not out.any()


@proton.jit
def asserts(x_ptr):
    value = tl.load(x_ptr)
    assert value > 0, "values are positive"
    tl.store(x_ptr, value + 1)


def test_an_assertion_fails_before_the_next_line(interpreted: None) -> None:
    x = np.zeros(1, np.int32)
    with proton.knobs.scope(debug=True):
        with pytest.raises(AssertionError, match="values are positive"):
            asserts[(1,)](x)
        assert x[0] == 0
    asserts[(1,)](x)
    assert x[0] == 1


# That kernels mean what they mean compiled


@proton.jit
def meets(x_ptr, out_ptr, n):
    x = tl.load(x_ptr).to(tl.float16)
    y = 7
    if n > 0:
        y = x
    tl.store(out_ptr, y / 3)  # of fp16 in fp32, of a number in fp16's place, too
    z = -7
    if n > 5:
        z = 3
    tl.store(out_ptr + 1, z // 2)  # of a tensor towards zero
    w = x if n > 5 else 2.0003
    tl.store(out_ptr + 2, w * 1.5)
    total = 0
    for _ in range(n + 2):
        total = total + x.to(tl.int32) * 0 + (1 << 30)
    tl.store(out_ptr + 3, total)  # 32 bits
    tl.store(out_ptr + 4, narrow(n))


@proton.jit
def narrow(n):
    if n > 5:
        return n.to(tl.int8)
    else:
        return n * 100000


@pytest.mark.parametrize("n", [0, 3, 6])
def test_where_paths_meet_numbers_have_the_compiler_s_types(n: int) -> None:
    x = np.full(1, 1.7, np.float32)
    found = []
    for interpret in (False, True):
        out = np.zeros(5)
        with proton.knobs.scope(interpret=interpret):
            meets[(1,)](x, out, n)
        found.append(out)
    assert list(found[0]) == list(found[1])


@proton.jit
def mixes(x_ptr):
    tl.store(x_ptr, tl.arange(0, 4) + tl.arange(0, 8))


@proton.jit
def changes(x_ptr, n):
    acc = 0
    for _ in range(n):
        acc = acc + 1.5
    tl.store(x_ptr, acc)


@proton.jit
def unknown(x_ptr):
    tl.store(x_ptr, tl.lod(x_ptr))


@pytest.mark.parametrize("kernel", [mixes, changes, unknown], ids=lambda k: k.__name__)
def test_what_the_compiler_refuses_is_refused_in_its_words(kernel: Any) -> None:
    arguments = [np.zeros(8, np.float32), 2][: len(kernel.arg_names)]
    texts = []
    for interpret in (False, True):
        with proton.knobs.scope(interpret=interpret), pytest.raises(Exception) as caught:
            kernel[(1,)](*arguments)
        texts.append((caught.type, str(caught.value)))
    assert texts[0] == texts[1]


@proton.jit(interpret=True)
def always(x_ptr):
    tl.store(x_ptr, tl.num_programs(0))


def test_a_kernel_may_ask_for_it_by_itself() -> None:
    x = np.zeros(1, np.int32)
    with proton.knobs.scope(interpret=False):
        kernel = always[(3,)](x)
        assert always[(3,)](x) is kernel
        always.device_caches.clear()
        assert always[(3,)](x) is not kernel, "what was made of it is kept"
    assert x[0] == 3
    assert "_proton_.call" in kernel.asm["python"]
    assert "tt.get_num_programs" in kernel.asm["ttir"]
    with pytest.raises(TypeError, match="interpret must be a bool"):
        proton.jit(interpret="yes")  # type: ignore[call-overload]


# Records


@proton.jit
def recorded(x_ptr, n):
    with proton.scope("outer", rows=n):
        for i in range(n):
            with proton.scope("load", when=i != 1):
                x = tl.load(x_ptr + i)
            proton.mark("seen", x, when=i > 0)
    proton.enter_scope("after")
    tl.store(x_ptr, 2)
    proton.exit_scope("after")


def test_scopes_and_marks_are_those_of_a_compiled_run() -> None:
    tables = []
    columns = ["kind", "scope", "iteration", "payload", "program"]
    for interpret in (False, True):
        with (
            proton.knobs.scope(interpret=interpret),
            proton.profile("records", placement="program") as run,
        ):
            recorded[(2,)](np.arange(4, dtype=np.int32), 4)
        frame = run.frame[run.frame["kind"].isin(["slice", "mark"])]
        assert (frame["dur_ns"] >= 0).all()
        tables.append(sorted(map(str, frame[columns].values.tolist())))
    assert tables[0] == tables[1]


# Names that the compiler forgets behind a statement


@proton.jit
def rebound(x_ptr, out_ptr, n, WHILE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    left = n
    if WHILE:
        while left > 0:
            part = tl.load(x_ptr + left - 1 + at)
            total += part
            left -= 1
    else:
        for i in range(n):
            part = tl.load(x_ptr + i + at)
            total += part
    if n > 2:
        part = tl.load(x_ptr)
        total += part
    if n > 3:
        part = at
        total += part
    tl.store(out_ptr + at, total)


@pytest.mark.parametrize("is_while", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_a_name_of_a_loop_is_free_behind_it(
    rng: np.random.Generator, n: int, is_while: bool
) -> None:
    x = rng.standard_normal(16).astype(np.float32)
    expected = sum((x[i : i + 8] for i in range(n)), np.zeros(8, np.float32))
    expected = expected + (n > 2) * x[0] + (n > 3) * np.arange(8)
    for interpret in (False, True):
        with proton.knobs.scope(interpret=interpret):
            out = np.zeros(8, np.float32)
            proton.jit(rebound.fn)[(1,)](x, out, n, WHILE=is_while, BLOCK=8)
            np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@proton.jit
def left_of_loop(x_ptr, n):
    for _ in range(n):
        part = tl.load(x_ptr)
    tl.store(x_ptr, part)


@proton.jit
def left_of_branch(x_ptr, n):
    if n > 0:
        part = tl.load(x_ptr)
    other = part
    tl.store(x_ptr, other + 1)


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (left_of_loop, "part may be undefined here: it is assigned inside a loop"),
        (left_of_branch, "part may be undefined here: only one branch of an if assigns it"),
    ],
)
def test_a_name_that_may_be_undefined_is_an_error(kernel: Any, why: str) -> None:
    for interpret in (False, True):
        with (
            proton.knobs.scope(interpret=interpret),
            pytest.raises(proton.CompilationError, match=why),
        ):
            proton.jit(kernel.fn)[(1,)](np.ones(1, np.float32), 3)
