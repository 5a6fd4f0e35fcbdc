"""Random loops, branches and waits whose values are often nobody's: compiled for the CPU and for a
GPU, they do what the interpreter does, which drops nothing."""

import random

import numpy as np
import pytest

import proton
from tests.compile.ptx.emulation import Emulation
from tests.cpu.harness import kernels_once
from tests.draws import times

SCALARS, BLOCKS = ("s0", "s1", "s2", "s3"), ("b0", "b1", "b2", "b3")
HEADER = """
@proton.jit
def kernel(x_ptr, out_ptr, counts_ptr, n, m):
    i = tl.arange(0, 32)
    s0, s1, s2, s3 = n, m, n * 3 + 1, m - 1
    b0 = tl.load(x_ptr + i)
    b1, b2, b3 = b0 * 2, b0 ^ i, i"""
OF_SCALARS = (
    *(
        "{s} + {t}",
        "{s} * 3",
        "{s} ^ {t}",
        "{s} // (({t} & 7) + 1)",
        "tl.where({s} > {t}, {s}, {t})",
    ),
    *("tl.sum({b} & 15, 0)", "tl.max({b} & 31, 0)", "tl.load(x_ptr + ({s} & 31))"),
    "tl.load(x_ptr + ({s} & 31), volatile=True)",
)
OF_BLOCKS = (
    *("{b} + {c}", "{b} + {s}", "{b} ^ {c}", "tl.where({b} > {s}, {b}, {c})", "{c}"),
    *("tl.load(x_ptr + ({b} & 31))", "tl.cumsum({b} & 7, 0)", "tl.flip({b}, 0)"),
)
EFFECTS = (
    "tl.atomic_add(counts_ptr + ({s} & 15), {t} & 255)",
    "tl.store(out_ptr + 32 * ({s} & 3) + i, {b})",
    "tl.device_assert(({s} & 7) < 8)",
)
LOOPS = (
    *("range(3)", "range({s} & 3)", "tl.range({s} & 1, 4, flatten=True)", "tl.static_range(2)"),
    *("tl.range(0, ({s} & 3) + 1, num_stages=2)", "tl.range(0, 4, loop_unroll_factor=2)"),
)


class Source:
    """A kernel, drawn statement by statement."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.left, self.names = rng, 26, 0

    def drawn(self, forms: tuple[str, ...]) -> str:
        choose = self.rng.choice
        names = {
            "s": choose(SCALARS),
            "t": choose(SCALARS),
            "b": choose(BLOCKS),
            "c": choose(BLOCKS),
        }
        return choose(forms).format(**names)

    def assignment(self) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            return f"{self.rng.choice(SCALARS)} = {self.drawn(OF_SCALARS)}"
        if kind < 0.85:
            return f"{self.rng.choice(BLOCKS)} = {self.drawn(OF_BLOCKS)}"
        return self.rng.choice(["b0, b1, b2 = b1, b2, b0", "s0, s3 = s3, s0", "s1, s2 = s2, s1"])

    def statement(self, depth: int) -> list[str]:
        kind = self.rng.random()
        if kind < 0.5 or depth == 3:
            return [self.assignment()]
        if kind < 0.64:
            return [self.drawn(EFFECTS)]
        if kind < 0.84:
            self.names += 1
            return [f"for k{self.names} in {self.drawn(LOOPS)}:", *self.block(depth + 1)]
        if kind < 0.92:
            test = f"if {self.drawn(('{s}', '{t}'))} & 1:"
            return [test, *self.block(depth + 1), "else:", *self.block(depth + 1)]
        self.names += 1
        counter = f"k{self.names}"
        begin = [self.drawn((counter + " = {s} & 3",)), f"while {counter} > 0:"]
        return [*begin, *self.block(depth + 1), f"    {counter} -= 1"]

    def block(self, depth: int) -> list[str]:
        """Statements, one step further in, of which the last is always there."""
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 4)):
            if self.left > 0:
                self.left -= 1
                lines += self.statement(depth)
        return [f"    {line}" for line in (*lines, self.assignment())]

    def text(self) -> str:
        lines: list[str] = []
        while self.left > 8:
            lines += self.block(0)
        ends = self.drawn(("tl.store(out_ptr + 128 + i, {b})", "tl.store(out_ptr + 160, {s})"))
        return "\n".join([HEADER, *lines, f"    {ends}", ""])


@pytest.mark.usefixtures("fuzz_assembler")
def test_what_is_nobodys_is_not_missed(session_seed: int) -> None:
    rng = random.Random(session_seed)
    numbers = np.random.default_rng(session_seed)
    for _ in range(times(15)):
        source = Source(rng).text()
        x = numbers.integers(-40, 40, 32, np.int32)
        n, m = (int(number) for number in numbers.integers(1, 9, 2))
        found = []
        with kernels_once(source) as module:
            for by in ("interpreter", "CPU", "GPU"):
                out, counts = np.zeros(192, np.int32), np.zeros(16, np.int32)
                kernel = proton.jit(module.kernel.fn, interpret=by == "interpreter")
                if by == "GPU":
                    with Emulation(4, numbers).installed():
                        kernel[(1,)](x, out, counts, n, m)
                else:
                    kernel[(1,)](x, out, counts, n, m)
                found.append((by, np.concatenate([out, counts])))
        (_, want), *others = found
        for by, got in others:
            assert np.array_equal(got, want), (
                f"by the {by}, n = {n}, m = {m}, {x.tolist()}:{source}"
            )
