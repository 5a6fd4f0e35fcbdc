"""Draws random kernels whose pointers go through arithmetic, branches, selects and loops.

A kernel is a tree of statements over two blocks of pointers, `p` and `q`, and the sum of what was
loaded through them. Each statement writes itself as the kernel has it and runs itself in numpy,
where a block of pointers is the number of an array and the places of its elements.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

MARGIN = 1 << 14  # elements before and behind the one that an argument points to
ARRAYS = 2
SIZES = (1, 2, 4, 8, 16)
DEPTH = 3  # of loops and branches

State = dict[str, tuple[int, np.ndarray]]  # of p and q


@dataclasses.dataclass(frozen=True)
class Statement:
    """Its lines, and what it does to the pointers and the sum."""

    lines: list[str]
    run: Callable[[State, np.ndarray], None]


@dataclasses.dataclass
class Maker:
    """Draws the statements of one kernel."""

    rng: np.random.Generator
    rows: int = 0
    columns: int = 0
    scalars: dict[str, int] = dataclasses.field(default_factory=dict)
    places: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    counters: int = 0

    def __post_init__(self) -> None:
        self.rows, self.columns = (int(size) for size in self.rng.choice(SIZES, 2))
        for name, size in (("by_row", self.rows), ("by_column", self.columns)):
            self.places[name] = self.rng.integers(-9, 10, size).astype(np.int32)
        shape = ARRAYS, 2 * MARGIN
        self.arrays = self.rng.integers(-1000, 1000, shape).astype(np.int32)

    def number(self, low: int, high: int) -> tuple[str, int]:
        """A number of the source, or a run-time argument."""
        value = int(self.rng.integers(low, high))
        if self.rng.random() < 0.4:
            return f"({value})", value
        name = f"s{len(self.scalars)}"
        self.scalars[name] = value
        return name, value

    def offset(self) -> tuple[str, np.ndarray]:
        """Places of one dimension, or one for all."""
        kind = self.rng.choice(["range", "range", "wrap", "pixel", "gather", "scalar"])
        text, value = ("1", 1) if kind == "pixel" else self.number(-4, 5)
        if kind == "scalar":
            return text, np.full((self.rows, self.columns), value)
        by_row = self.rng.random() < 0.5
        size = self.rows if by_row else self.columns
        place, index = ("r", np.arange(size)) if by_row else ("c", np.arange(size))
        if kind == "wrap":
            (shift, more), (ring, length) = self.number(0, 5), self.number(1, 2 * size + 1)
            place, index = f"(({place} + {shift}) % {ring})", (index + more) % length
        elif kind == "pixel":  # of an image whose rows are longer than they are wide
            (width, many), (row, length) = self.number(1, size + 2), self.number(-9, 10)
            place = f"({place} // {width} * {row} + {place} % {width})"
            index = index // many * length + index % many
        elif kind == "gather":
            place = "by_row" if by_row else "by_column"
            index = self.places[place]
        place = f"{place}[:, None]" if by_row else f"{place}[None, :]"
        line = index[:, None] if by_row else index[None, :]
        line = np.broadcast_to(line.astype(np.int64) * value, (self.rows, self.columns))
        return f"{place} * {text}", line

    def mask(self) -> tuple[str, np.ndarray]:
        """A box, or none."""
        terms = []
        for _ in range(int(self.rng.integers(0, 3))):
            by_row = self.rng.random() < 0.5
            size = self.rows if by_row else self.columns
            text, value = self.number(-1, size + 2)
            kind = self.rng.choice(["{} < {}", "{} >= {}", "({} + {}) % 3 != 1", "gathered"])
            index, name = np.arange(size), "r" if by_row else "c"
            true = {"{} < {}": index < value, "{} >= {}": index >= value}.get(
                kind, np.fmod(index + value, 3) != 1
            )
            if kind == "gathered":
                name = "by_row" if by_row else "by_column"
                kind, true = "{} > {}", self.places[name] > value
            line = true[:, None] if by_row else true[None, :]
            axis = "[:, None]" if by_row else "[None, :]"
            terms.append((f"({kind.format(name, text)}){axis}", line))
        true = np.ones((self.rows, self.columns), bool)
        for _, line in terms:
            true = true & line
        # One that does not broadcast by itself, so that every term is of the block's shape.
        texts = [f"tl.broadcast_to({text}, (R, C))" for text, _ in terms]
        return " & ".join(texts), true

    # Statements

    def block(self, depth: int) -> list[Statement]:
        return [self.statement(depth) for _ in range(int(self.rng.integers(1, 4)))]

    def statement(self, depth: int) -> Statement:
        kinds = [self.load, self.load, self.move, self.move, self.assign, self.select, self.swap]
        kinds += [self.same]
        if depth < DEPTH:
            kinds += [self.branch, self.loop, self.loop]
        return kinds[int(self.rng.integers(len(kinds)))](depth)

    def load(self, depth: int) -> Statement:
        name = str(self.rng.choice(["p", "q"]))
        mask, true = self.mask()
        other = int(self.rng.integers(-5, 5))
        given = f", mask={mask}, other={other}" if mask else ""

        def run(state: State, total: np.ndarray) -> None:
            number, places = state[name]
            total += np.where(true, self.arrays[number][MARGIN + places], other)

        return Statement([f"total += tl.load({name}{given})"], run)

    def move(self, depth: int) -> Statement:
        name, (text, places) = str(self.rng.choice(["p", "q"])), self.offset()

        def run(state: State, total: np.ndarray) -> None:
            state[name] = state[name][0], state[name][1] + places

        return Statement([f"{name} += {text}"], run)

    def assign(self, depth: int) -> Statement:
        name, number = str(self.rng.choice(["p", "q"])), int(self.rng.integers(ARRAYS))
        terms = [self.offset() for _ in range(int(self.rng.integers(1, 4)))]
        text = " + ".join(text for text, _ in terms)
        places = sum((places for _, places in terms), np.zeros((self.rows, self.columns), int))

        def run(state: State, total: np.ndarray) -> None:
            state[name] = number, places

        # A sum of narrower terms is widened last.
        return Statement([f"{name} = tl.broadcast_to(x{number} + ({text}), (R, C))"], run)

    def select(self, depth: int) -> Statement:
        name, (text, value) = str(self.rng.choice(["p", "q"])), self.number(-2, 3)

        def run(state: State, total: np.ndarray) -> None:
            state[name] = state["p"] if value > 0 else state["q"]

        return Statement([f"{name} = tl.where({text} > 0, p, q)"], run)

    def swap(self, depth: int) -> Statement:
        def run(state: State, total: np.ndarray) -> None:
            state["p"], state["q"] = state["q"], state["p"]

        return Statement(["p, q = q, p"], run)

    def same(self, depth: int) -> Statement:
        name, other = self.rng.permutation(["p", "q"])

        def run(state: State, total: np.ndarray) -> None:
            state[name] = state[other]

        return Statement([f"{name} = {other}"], run)

    def branch(self, depth: int) -> Statement:
        text, value = self.number(-2, 3)
        then, other = self.block(depth + 1), self.block(depth + 1)
        has_else = self.rng.random() < 0.6
        lines = [f"if {text} > 0:", *indented(then)]
        if has_else:
            lines += ["else:", *indented(other)]

        def run(state: State, total: np.ndarray) -> None:
            for statement in then if value > 0 else other if has_else else []:
                statement.run(state, total)

        return Statement(lines, run)

    def loop(self, depth: int) -> Statement:
        text, turns = self.number(0, 4)
        body = self.block(depth + 1)
        self.counters += 1
        name = f"k{self.counters}"
        if self.rng.random() < 0.5:
            lines = [f"for {name} in range({text}):", *indented(body)]
        else:
            lines = [f"{name} = 0", f"while {name} < {text}:", *indented(body), f"    {name} += 1"]

        def run(state: State, total: np.ndarray) -> None:
            for _ in range(turns):
                for statement in body:
                    statement.run(state, total)

        return Statement(lines, run)


def indented(statements: list[Statement]) -> list[str]:
    return [f"    {line}" for statement in statements for line in statement.lines]


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A kernel, its arguments, and the sum that it stores."""

    source: str
    maker: Maker
    want: np.ndarray


def draw(rng: np.random.Generator) -> Drawn:
    maker = Maker(rng)
    count = int(rng.integers(4, 10))
    statements = [maker.assign(0), *(maker.statement(0) for _ in range(count))]
    statements += [maker.load(0)]
    zero = np.zeros((maker.rows, maker.columns), np.int64)
    state: State = {"p": (0, zero), "q": (1, zero)}
    total = np.zeros((maker.rows, maker.columns), np.int64)
    for statement in statements:
        statement.run(state, total)
    head = [
        "r, c = tl.arange(0, R), tl.arange(0, C)",
        "by_row, by_column = tl.load(by_row_ptr + r), tl.load(by_column_ptr + c)",
        "p = tl.broadcast_to(x0 + r[:, None] * 0, (R, C))",
        "q = tl.broadcast_to(x1 + c[None, :] * 0, (R, C))",
        "total = tl.zeros((R, C), tl.int32)",
    ]
    lines = head + [line for statement in statements for line in statement.lines]
    lines.append("tl.store(out_ptr + r[:, None] * C + c[None, :], total)")
    names = ["x0", "x1", "by_row_ptr", "by_column_ptr", "out_ptr", *maker.scalars]
    parameters = ", ".join([*names, "R: tl.constexpr", "C: tl.constexpr"])
    body = "".join(f"    {line}\n" for line in lines)
    return Drawn(f"\n@proton.jit\ndef kernel({parameters}):\n{body}", maker, total.astype(np.int32))
