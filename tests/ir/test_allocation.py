"""Shared memory: buffers that are needed together never share bytes, those that are not do."""

from typing import Any

import numpy as np
import pytest

from proton.analysis.allocation import Allocation, allocate
from proton.analysis.call_graph import call_graph, callee_name, function_name
from proton.analysis.scratch import alignment
from proton.base.errors import CompilationError
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.ttg import mem_desc_parts
from tests.ir.shared_programs import Program, executed

ACCESS = 16  # bytes: what an offset must be a multiple of


def needed_bytes(op: Any) -> int:
    """By the sizes of the tensors alone: all of these exchange 4-byte elements."""
    if op.name == "ttg.local_alloc":
        (rows, columns), _, _ = mem_desc_parts(op.results[0].type)
        return 4 * rows * columns
    if op.name == "ttg.convert_layout":
        return 4 * int(np.prod(op.results[0].type.shape))
    return 0


class Memory:
    """Shared memory as a run fills it: who owns each byte. A buffer that is still to be read and
    has lost a byte was placed badly."""

    def __init__(self, allocations: dict[str, Allocation], size: int) -> None:
        self.allocations, self.size = allocations, size
        self.owner = np.zeros(size, np.int64)
        self.current: dict[Any, int] = {}  # (calls, allocation) -> its stamp
        self.stamp = 0

    def place(self, op: Any, calls: list[Any]) -> slice:
        start = sum(self._offset(call) for call in calls) + self._offset(op)
        assert start % ACCESS == 0
        assert start + needed_bytes(op) <= self.size
        return slice(start, start + needed_bytes(op))

    def _offset(self, op: Any) -> int:
        parent = op.parent
        while parent.name != "func.func":
            parent = parent.parent
        return self.allocations[function_name(parent)].offsets.get(op, 0)

    def step(self, op: Any, calls: list[Any]) -> None:
        if needed_bytes(op):
            self.stamp += 1
            self.owner[self.place(op, calls)] = self.stamp
            self.current[*calls, op] = self.stamp
        elif op.name == "ttg.dot":
            for side in list(op.operands)[:2]:
                made = side.owner.operation
                where = self.place(made, calls)
                assert (self.owner[where] == self.current[*calls, made]).all(), (
                    f"{made} was overwritten before {op}"
                )


@pytest.mark.parametrize("times", [1, 1.5, 8])
@pytest.mark.parametrize("callees", [0, 3])
def test_no_buffer_is_overwritten_before_its_last_read(
    callees: int, times: float, rng: np.random.Generator
) -> None:
    """`times`: of what a function needs it may take."""
    reads = 0
    for _ in range(40):
        program = Program(rng, callees)
        with mlir_context():
            module = ir.Module.parse(program.text)
            least = allocate(call_graph(module))
            allocations = allocate(call_graph(module), lambda _, size: int(times * size))
            if not callees:
                assert allocations["kernel"].size <= times * least["kernel"].size
            for _ in range(5):
                memory = Memory(allocations, allocations["kernel"].size)
                for op, calls in executed(module, rng):
                    memory.step(op, calls)
                    reads += op.name == "ttg.dot"
    assert reads > 100


def test_no_function_takes_more_than_the_sum_of_its_buffers(rng: np.random.Generator) -> None:
    together = apart = 0
    for _ in range(40):
        with mlir_context():
            module = ir.Module.parse(Program(rng, 2).text)
            for allocation in allocate(call_graph(module)).values():
                together += allocation.size
                apart += sum(allocation.sizes.values())
                # One behind the other, with gaps where a buffer has to be aligned.
                most = sum(size + alignment(op) for op, size in allocation.sizes.items())
                assert allocation.size <= most
                assert allocation.size >= max(allocation.sizes.values(), default=0)
    assert together < apart / 2, "hardly anything is used again"


def test_buffers_that_follow_each_other_lie_apart_where_there_is_room() -> None:
    """In a loop the first one follows the last; what is alive over a loop has no neighbours."""
    four = "".join(f"%{n} = {EXCHANGE}\n" for n in range(4))
    loop = f"scf.for %i = %n to %n step %n : i32 {{ {four} }}"
    (found,) = allocated(
        function("kernel", "%n = arith.constant 1 : i32", loop, f"%9 = {EXCHANGE}"), room=2048
    ).values()
    starts = list(found.offsets.values())
    assert sorted(starts[:4]) == [0, 512, 1024, 1536]
    (less,) = allocated(function("kernel", "%n = arith.constant 1 : i32", loop), room=1024).values()
    first, *others = less.offsets.values()
    assert [first != other for other in others] == [True, False, True]
    assert less.size == 1024
    (none,) = allocated(function("kernel", "%n = arith.constant 1 : i32", loop), room=1023).values()
    assert set(none.offsets.values()) == {0}


# By hand

LAYOUTS = """
#a = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [64]], []>
#b = #ttg.linear<[], [[4], [8], [16], [32], [64]], [[1], [2]], []>
"""
EXCHANGE = '"ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>'


def allocated(functions: str, room: int = 0) -> dict[str, Allocation]:
    text = f'{LAYOUTS} module attributes {{"ttg.num-warps" = 4 : i32}} {{ {functions} }}'
    with mlir_context():
        module = ir.Module.parse(text)
        return allocate(call_graph(module), lambda _, size: max(room, size))


def function(name: str, *lines: str) -> str:
    body = "\n".join(lines)
    return f"func.func private @{name}(%x: tensor<128xf32, #a>) {{ {body}\n return }}"


def call(name: str) -> str:
    return f"func.call @{name}(%x) : (tensor<128xf32, #a>) -> ()"


def test_a_function_takes_what_the_deepest_of_its_callees_takes() -> None:
    found = allocated(
        function("kernel", call("outer"), call("inner"))
        + function("outer", f"%0 = {EXCHANGE}", call("inner"), call("nothing"))
        + function("inner", f"%0 = {EXCHANGE}", f"%1 = {EXCHANGE}")
        + function("nothing")
    )
    sizes = {name: allocation.size for name, allocation in found.items()}
    assert sizes == {"inner": 512, "outer": 512, "kernel": 512, "nothing": 0}
    assert list(found.values())[-1] is found["kernel"], "callees come first"


def test_calls_are_virtual_buffers() -> None:
    text = function("kernel", call("inner"), call("inner")) + function("inner", f"%0 = {EXCHANGE}")
    with mlir_context():
        module = ir.Module.parse(f"{LAYOUTS} module {{ {text} }}")
        found = allocate(call_graph(module))["kernel"]
        assert {callee_name(op) for op in found.offsets} == {"inner"}
        assert list(found.offsets.values()) == [0, 0]
        assert list(found.sizes.values()) == [512, 512]


@pytest.mark.parametrize(
    ("functions", "cycle"),
    [
        (function("f", call("f")), "f -> f"),
        (
            function("k", call("f")) + function("f", call("g")) + function("g", call("f")),
            "f -> g -> f",
        ),
    ],
    ids=["itself", "each other"],
)
def test_recursion_has_no_allocation(functions: str, cycle: str) -> None:
    with pytest.raises(CompilationError, match=f"recursion is not supported: {cycle}$|{cycle}\n"):
        allocated(functions)
