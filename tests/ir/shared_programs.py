"""Random programs that use shared memory, and their execution as a sequence of ops.

Two ops use it: `ttg.local_alloc` writes a buffer that `ttg.dot` reads, and an exchange
(`ttg.convert_layout` between warps) writes its scratch memory, has a barrier inside, and reads it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from proton.dialect.mlir import ir

_HEAD = """
#a{n} = #ttg.linear<{reg}, [[1], [2], [4], [8], [16]], [[32], [64]], []>
#b{n} = #ttg.linear<{reg}, [[4], [8], [16], [32], [64]], [[1], [2]], []>
"""
# Edges of the square matrices, and registers of the exchanged blocks of 128 elements a register.
EDGES = {4: "[]", 8: "[[0, 4]]", 16: "[[0, 4], [0, 8], [8, 0]]"}
BLOCKS = {128: "[]", 256: "[[128]]", 512: "[[128], [256]]"}


def _square(edge: int) -> str:
    bases = [f"[0, {1 << b}]" for b in range(edge.bit_length() - 1)]
    bases += [f"[{1 << b}, 0]" for b in range(edge.bit_length() - 1)]
    return f"!ttg.memdesc<[{edge}, {edge}], f32, #ttg.shared<[{', '.join(bases)}]>>"


def _matrix(edge: int) -> str:
    lanes = (
        "[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]"
        if edge > 4
        else ("[0, 1], [0, 2], [1, 0], [2, 0], [0, 0]")
    )
    return f"tensor<{edge}x{edge}xf32, #ttg.linear<{EDGES[edge]}, [{lanes}], [[0, 0], [0, 0]], []>>"


class Program:
    """Writes a module with `callees` functions and a kernel that may call them."""

    def __init__(self, rng: np.random.Generator, callees: int = 0, depth: int = 2) -> None:
        self.rng, self.count, self.most = rng, 0, depth
        self.names: list[str] = []
        aliases = "".join(_HEAD.format(n=n, reg=reg) for n, reg in BLOCKS.items())
        functions = []
        for number in range(callees):
            functions.append(self._function(f"callee{number}", "private "))
            self.names.append(f"callee{number}")
        functions.append(self._function("kernel", ""))
        body = "\n".join(functions)
        self.text = f'{aliases}\nmodule attributes {{"ttg.num-warps" = 4 : i32}} {{\n{body}\n}}'

    def _function(self, name: str, visibility: str) -> str:
        blocks = ", ".join(f"%x{n}: tensor<{n}xf32, #a{n}>" for n in BLOCKS)
        matrices = ", ".join(f"%m{edge}: {_matrix(edge)}" for edge in EDGES)
        values = [*(f"%x{n}" for n in BLOCKS), *(f"%m{edge}" for edge in EDGES), "%n", "%c"]
        self.arguments = ", ".join(values)
        self.types = (
            f"{', '.join(f'tensor<{n}xf32, #a{n}>' for n in BLOCKS)}, "
            f"{', '.join(map(_matrix, EDGES))}, i32, i1"
        )
        lines = "\n".join(self._block(self.most, {}))
        return (
            f"func.func {visibility}@{name}({blocks}, {matrices}, %n: i32, %c: i1) {{\n"
            f"%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n{lines}\nreturn\n}}"
        )

    def _block(self, depth: int, known: dict[str, int]) -> list[str]:
        lines: list[str] = []
        known = dict(known)  # buffers in scope: their edge
        for _ in range(int(self.rng.integers(1, 6))):
            kind = int(self.rng.integers(9 if depth else 6))
            self.count += 1
            number = self.count
            if kind <= 1:
                edge = int(self.rng.choice(list(EDGES)))
                known[f"%p{number}"] = edge
                types = f"({_matrix(edge)}) -> {_square(edge)}"
                lines.append(f'%p{number} = "ttg.local_alloc"(%m{edge}) : {types}')
            elif kind == 2:
                n = int(self.rng.choice(list(BLOCKS)))
                lines.append(
                    f'%e{number} = "ttg.convert_layout"(%x{n}) '
                    f": (tensor<{n}xf32, #a{n}>) -> tensor<{n}xf32, #b{n}>"
                )
            elif kind <= 4 and known:
                name = str(self.rng.choice(list(known)))
                edge = known[name]
                other = str(self.rng.choice([k for k, v in known.items() if v == edge]))
                lines.append(
                    f'%d{number} = "ttg.dot"({name}, {other}, %m{edge}) : '
                    f"({_square(edge)}, {_square(edge)}, {_matrix(edge)}) -> {_matrix(edge)}"
                )
            elif kind == 5 and self.names:
                callee = str(self.rng.choice(self.names))
                lines.append(f"func.call @{callee}({self.arguments}) : ({self.types}) -> ()")
            elif kind == 5 and not self.rng.integers(3):
                lines.append('"tt.debug_barrier"() : () -> ()')
            elif kind == 6:
                inner = self._block(depth - 1, known)
                lines += [f"scf.for %i{number} = %zero to %n step %one : i32 {{", *inner, "}"]
            elif kind == 7:
                inner = self._block(depth - 1, known)
                lines += ["scf.if %c {", *inner, "}"]
            elif kind == 8:
                first, second = self._block(depth - 1, known), self._block(depth - 1, known)
                lines += ["scf.if %c {", *first, "} else {", *second, "}"]
        return lines


def executed(module: Any, rng: np.random.Generator) -> Iterator[tuple[Any, list[Any]]]:
    """The ops of one run, each with the calls that it is in; loops, which come themselves first,
    run 0 to 3 times and branches are taken at random."""
    functions = {
        ir.StringAttr(f.operation.attributes["sym_name"]).value: f.operation
        for f in module.body.operations
    }

    def block(of: Any, calls: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
        for view in of.operations:
            op = view.operation
            if op.name == "scf.for":
                yield op, calls
                for _ in range(int(rng.integers(4))):
                    yield from block(op.regions[0].blocks[0], calls)
            elif op.name == "scf.if":
                regions = list(op.regions)
                chosen = regions[int(rng.integers(2))]
                for inner in chosen.blocks:
                    yield from block(inner, calls)
            elif op.name == "func.call":
                callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                yield op, calls
                yield from block(functions[callee].regions[0].blocks[0], [*calls, op])
            else:
                yield op, calls

    yield from block(functions["kernel"].regions[0].blocks[0], [])
