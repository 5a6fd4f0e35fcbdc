"""Random functions with early returns, and loops with exits, against the same source in Python.

The conditions are known while compiling, at run time, or partly so; ifs nest, and are followed by
more. Nothing of Proton takes part in the reference: its `tl` is a few lines here.
"""

import random
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.cpu.harness import kernels_once
from tests.draws import PROGRAMS

GRID = 6
ROOM = 64  # elements of the output per program
LOOP = "in a loop"
VARIABLES = ("a", "b", "c", "v")  # three scalars and a block of four


class Source:
    """A callee and a kernel that calls it, drawn statement by statement."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.stores, self.loops = rng, 0, 0

    def condition(self) -> str:
        variable, static = self.rng.choice("abc"), self.rng.choice(["S0", "S1", "not S0"])
        dynamic = f"{variable} {self.rng.choice('<>')} {self.rng.randint(-3, 6)}"
        mixed = f"{static} {self.rng.choice(['and', 'or'])} {dynamic}"
        return self.rng.choice([static, static, dynamic, dynamic, dynamic, mixed])

    def statement(self, depth: int, returned: str, indent: str) -> list[str]:
        """`returned` is what a function returns; in a loop, which returns nothing, LOOP."""
        kind = self.rng.choice(["assign", "assign", "store", "if", "if", "if", "return", "loop"])
        if kind == "return" and depth:
            if returned == LOOP:
                return [indent + self.rng.choice(["break", "continue", "continue"])]
            return [f"{indent}return {returned}".rstrip()]
        if kind == "loop" and depth < 3:
            return self.loop(depth, returned, indent)
        if kind == "if" and depth < 4:
            lines = [f"{indent}if {self.condition()}:"]
            lines += self.block(depth + 1, returned, indent + "    ")
            if self.rng.random() < 0.4:
                lines += [f"{indent}elif {self.condition()}:"]
                lines += self.block(depth + 1, returned, indent + "    ")
            if self.rng.random() < 0.4:
                lines += [f"{indent}else:", *self.block(depth + 1, returned, indent + "    ")]
            return lines
        if kind == "store" and self.stores < ROOM // 8:
            self.stores += 1
            place = f"out + {4 * self.stores} + tl.arange(0, 4)"
            return [f"{indent}tl.store({place}, v + {self.rng.choice('abc')})"]
        target = self.rng.choice(VARIABLES)
        left = "v" if target == "v" else self.rng.choice("abc")
        if target == "v" and self.rng.random() < 0.5:  # a block in memory of its own
            return [f"{indent}v = tl.flip(v, 0)"]
        value = f"{left} + {self.rng.choice(['b', 'c', str(self.stores)])}"
        if returned == LOOP:  # numbers stay small
            value = f"({value}) & 255"
        return [f"{indent}{target} = {value}"]

    def loop(self, depth: int, returned: str, indent: str) -> list[str]:
        """A loop of a few turns, with exits."""
        self.loops += 1
        name, turns = f"i{self.loops}", self.rng.randint(0, 4)
        inside, body = indent + "    ", self.block(depth + 1, LOOP, indent + "    ")
        if self.rng.random() < 0.3:
            head = [f"{indent}{name} = 0", f"{indent}while {name} < {turns}:"]
            return [*head, f"{inside}{name} += 1", *body]
        bounds = self.rng.choice([f"{turns}", f"a, a + {turns}", f"{turns}, -1, -2"])
        return [f"{indent}for {name} in range({bounds}):", *body]

    def block(self, depth: int, returned: str, indent: str) -> list[str]:
        count = self.rng.randint(1, 3)
        return [line for _ in range(count) for line in self.statement(depth, returned, indent)]

    def function(self, header: str, first: list[str], returned: str, last: list[str]) -> str:
        body = [line for _ in range(4) for line in self.statement(0, returned, "    ")]
        return "\n".join([header, *first, *body, *last, ""])

    def text(self) -> str:
        jit = self.rng.choice(["@proton.jit", "@proton.jit(noinline=True)"])
        callee = self.function(
            f"{jit}\ndef callee(out, a, b, S0: tl.constexpr, S1: tl.constexpr):",
            ["    c = a - b", "    v = tl.arange(0, 4) * b"],
            "a + 0, v",
            ["    return b + 0, v"],
        )
        kernel = self.function(
            "@proton.jit\ndef kernel(x_ptr, out_ptr, S0: tl.constexpr, S1: tl.constexpr):",
            [
                "    pid = tl.program_id(0)",
                f"    out = out_ptr + pid * {2 * ROOM}",
                "    a = tl.load(x_ptr + pid)",
                f"    b, v = callee(out + {ROOM}, a, pid, S0, S1)",
                "    c = 2",
            ],
            "",
            ["    tl.store(out + tl.arange(0, 4), v + a)"],
        )
        return f"\n{callee}\n\n{kernel}"


def jit(fn: Any = None, **_options: Any) -> Any:
    return fn or jit


def run_in_python(source: str, x: np.ndarray, out: np.ndarray, static: dict[str, bool]) -> None:
    """Runs the kernel's source over numpy, one program after the other: pointers are indices."""
    for program in range(GRID):
        tl = SimpleNamespace(
            constexpr=bool,
            program_id=lambda axis, program=program: program,
            arange=np.arange,
            flip=np.flip,
            load=lambda place: int(x[place]),
            store=lambda place, value: out.__setitem__(place, value),
        )
        names: dict[str, Any] = {"tl": tl, "proton": SimpleNamespace(jit=jit)}
        exec(source, names)
        names["kernel"](0, 0, **static)


def test_early_returns_mean_what_python_means(session_seed: int) -> None:
    rng = random.Random(session_seed)
    for _ in range(PROGRAMS * 3 // 10):
        source = Source(rng).text()
        x = np.array([rng.randint(-4, 8) for _ in range(GRID)], np.int32)
        static = {"S0": rng.random() < 0.5, "S1": rng.random() < 0.5}
        out = np.full(GRID * 2 * ROOM, -99, np.int32)
        want = out.copy()
        run_in_python(source, x, want, static)
        with kernels_once(source) as module:
            module.kernel[(GRID,)](x, out, **static)
        assert np.array_equal(out, want), f"with {x.tolist()}, {static} in\n{source}"
