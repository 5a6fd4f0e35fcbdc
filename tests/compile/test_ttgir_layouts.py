"""After the passes that choose layouts, those of every op fit together: random kernels whose loads
and stores want different ones, and every kernel of test_targets.py."""

from typing import Any

import numpy as np
import pytest

import proton.language as tl
from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.pipeline import ordered_passes, schedule_passes
from proton.backends.ttir import ttir_passes
from proton.base.targets import GPUTarget
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.frontend import Signature, build_module
from proton.passes import Pipeline
from tests.compile.layout_checker import check_layouts
from tests.compile.target_kernels import CASES
from tests.cpu.harness import kernels_of
from tests.draws import times

HEAD = """
@proton.jit
def kernel(a_ptr, b_ptr, out_ptr, n, m):
    i = tl.arange(0, {rows})[:, None]
    j = tl.arange(0, {columns})[None, :]
"""
DIVISIBLE = frozenset(["a_ptr", "out_ptr", "m"])


class Source:
    """A random kernel of blocks of one shape, and of its rows and columns."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.count = rng, 0
        self.rows, self.columns = (1 << int(rng.integers(1, 7)) for _ in range(2))
        self.indent = "    "
        self.lines: list[str] = []
        self.blocks: list[str] = []
        for _ in range(2):
            self.load()
        for _ in range(int(rng.integers(3, 12))):
            self.step(2)
        for _ in range(2):
            self.store()
        head = HEAD.format(rows=self.rows, columns=self.columns)
        self.text = head + "\n".join(self.lines) + "\n"

    def pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def put(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def named(self, value: str) -> str:
        self.count += 1
        self.put(f"v{self.count} = {value}")
        self.blocks.append(f"v{self.count}")
        return f"v{self.count}"

    def place(self) -> str:
        """Addresses along rows or columns, aligned or not."""
        pointer = self.pick(["a_ptr", "b_ptr"])
        return self.pick(
            [
                f"{pointer} + i * m + j",
                f"{pointer} + i + j * m",
                f"{pointer} + i * n + j",
                f"{pointer} + i + j * n",
                f"{pointer} + i * 3 + j * 5",
            ]
        )

    def load(self) -> None:
        mask = self.pick(["", ", mask=j < n", ", mask=i < m", ", mask=i + j < n, other=1.0"])
        self.named(f"tl.load({self.place()}{mask})")

    def store(self) -> None:
        mask = self.pick(["", ", mask=j < n", f", mask={self.pick(self.blocks)} > 0"])
        target = self.place().replace("a_ptr", "out_ptr").replace("b_ptr", "out_ptr")
        self.put(f"tl.store({target}, {self.pick(self.blocks)}{mask})")

    def step(self, depth: int) -> None:
        x, y = self.pick(self.blocks), self.pick(self.blocks)
        shape = f"{self.rows}, {self.columns}"
        match int(self.rng.integers(12 if depth else 9)):
            case 0:
                self.load()
            case 1:
                self.named(f"tl.exp({x}) + {y}")
            case 2:
                self.named(f"{x} - tl.max({y}, 1)[:, None]")
            case 3:
                self.named(f"{x} * tl.sum({y}, 0)[None, :]")
            case 4:
                self.named(f"tl.where({x} > {y}, {x}, 0.5)")
            case 5:
                self.named(f"tl.trans(tl.reshape({x}, ({self.columns}, {self.rows})))")
            case 6:
                self.count += 1
                self.put(f"a{self.count}, b{self.count} = tl.split(tl.join({x}, {y}))")
                self.named(f"a{self.count} + b{self.count} * 2")
            case 7:
                self.named(f"tl.cumsum({x}, {int(self.rng.integers(2))})")
            case 8:
                self.named(f"tl.reshape(tl.trans({x}), ({shape}))")
            case 9:
                self.nested("for k in range(n):", depth, x)
            case 10:
                self.nested("if n > 3:", depth, x)
            case _:
                self.pointers(x)

    def nested(self, head: str, depth: int, x: str) -> None:
        self.count += 1
        carried = f"c{self.count}"
        self.put(f"{carried} = {self.pick([x, f'tl.zeros_like({x})'])}")
        self.put(head)
        known = list(self.blocks)
        self.indent += "    "
        self.blocks.append(carried)
        for _ in range(int(self.rng.integers(1, 4))):
            self.step(depth - 1)
        self.put(f"{carried} = {carried} + {self.blocks[-1]}")
        if self.rng.integers(2):
            self.store()
        self.indent = self.indent[:-4]
        self.blocks = [*known, carried]

    def pointers(self, x: str) -> None:
        """A loop that carries addresses, read and written on its way."""
        self.count += 1
        p, total = f"p{self.count}", f"t{self.count}"
        self.put(f"{p} = {self.place()}")
        self.put(f"{total} = {x}")
        self.put("for k in range(n):")
        self.put(f"    {total} += tl.load({p})")
        if self.rng.integers(2):
            self.put(f"    tl.atomic_add({p} + 1, {total})")
        self.put(f"    {p} += {self.pick(['m', 'n', '16'])}")
        self.blocks.append(total)


def check_passes(kernel: Any, signature: Signature, warps: int) -> int:
    """The layouts fit after each pass; how many tensors the last one leaves."""
    with mlir_context():
        module = build_module(kernel, signature, keep_calls=True)
        module = Pipeline(ttir_passes(None)).run(module)
        tensors = 0
        options = GPUOptions(GPUTarget("cuda", 90), num_warps=warps)
        for step in [*schedule_passes(options), *ordered_passes(options)]:
            module = Pipeline([step]).run(module)
            assert module.operation.verify()
            try:
                tensors = check_layouts(module)
            except AssertionError as problem:
                raise AssertionError(f"after {step}: {problem}") from None
        return tensors


def test_layouts_fit_in_random_kernels(rng: np.random.Generator) -> None:
    pointer = tl.pointer_type(tl.float32)
    types = dict.fromkeys(("a_ptr", "b_ptr", "out_ptr"), pointer) | {
        "n": tl.int32,
        "m": tl.int32,
    }
    for _ in range(times(30)):
        source = Source(rng).text
        kernel = kernels_of(source).kernel
        warps = int(rng.choice([1, 2, 4, 8]))
        try:
            assert check_passes(kernel, Signature(types, {}, DIVISIBLE), warps) > 5
        except AssertionError:
            print(source)
            raise


def test_a_constant_that_is_reduced_has_the_layout_of_its_value() -> None:
    source = (
        HEAD.format(rows=64, columns=8)
        + """
    block = tl.load(a_ptr + i * n + j)
    zeros = tl.zeros_like(block)
    if n > 3:
        tl.store(out_ptr + i * m + j, block * tl.sum(zeros, 0)[None, :])
"""
    )
    types = dict.fromkeys(("a_ptr", "b_ptr", "out_ptr"), tl.pointer_type(tl.float32))
    signature = Signature(types | {"n": tl.int32, "m": tl.int32}, {}, DIVISIBLE)
    assert check_passes(kernels_of(source).kernel, signature, 4) > 5


@pytest.mark.parametrize("warps", [1, 4, 16])
@pytest.mark.parametrize("case", CASES)
def test_layouts_fit_in_every_kernel_of_the_targets(case: str, warps: int) -> None:
    kernel, arguments = CASES[case]
    types, constants = {}, {}
    for parameter, value in zip(kernel.params, arguments, strict=True):
        if parameter.constexpr:
            constants[parameter.name] = value
        else:
            is_dtype = isinstance(value, tl.dtype)
            types[parameter.name] = tl.pointer_type(value) if is_dtype else tl.int32
    pointers = frozenset(name for name, type_ in types.items() if type_.is_ptr())
    assert check_passes(kernel, Signature(types, constants, pointers), warps) > 2


CONVERT = """
#a = #ttg.linear<[], [[1], [2], [4], [8], [16]], [], []>
#b = #ttg.linear<[], [[2], [1], [4], [8], [16]], [], []>
func.func @f(%x: tensor<32xf32, #a>, %p: tensor<32x!tt.ptr<f32>, #b>) {
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>}
    : (tensor<32x!tt.ptr<f32>, #b>, tensor<32xf32, #a>) -> ()
  return
}
"""


def test_the_checker_sees_an_operand_in_another_layout() -> None:
    with mlir_context():
        module = ir.Module.parse(CONVERT)
        with pytest.raises(AssertionError, match=r"(?s)do not fit:.*tt\.store"):
            check_layouts(module)
        module = ir.Module.parse(CONVERT.replace("[2], [1], [4]", "[1], [2], [4]"))
        assert check_layouts(module) == 0
