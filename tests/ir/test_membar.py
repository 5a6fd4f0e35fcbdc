"""Barriers: on random runs of random programs no two ops that meet in shared memory go unordered,
and a barrier less leaves two that do."""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pytest

from proton.analysis.allocation import Allocation, allocate
from proton.analysis.call_graph import call_graph, function_name
from proton.analysis.membar import missing_barriers
from proton.conversion.allocate_shared_memory import AllocateSharedMemory
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.transforms.layout.membar import Membar
from tests.ir.shared_programs import Program, executed

Trace = list[tuple[Any, list[Any]]]
Bytes = tuple[int, int]


def start_of(allocations: dict[str, Allocation], op: Any) -> int:
    parent = op.parent
    while parent.name != "func.func":
        parent = parent.parent
    return allocations[function_name(parent)].offsets.get(op, 0)


def size_of(op: Any) -> int:
    if op.name == "ttg.local_alloc":
        return 4 * int(np.prod(op.operands[0].type.shape))
    return 4 * int(np.prod(op.results[0].type.shape))


def events(
    trace: Trace, allocations: dict[str, Allocation], barriers: Collection[Any]
) -> Iterator[tuple[str, Any, Bytes]]:
    """("read" | "write" | "meet", op, bytes) in the order of each thread."""
    for op, calls in trace:
        if op in barriers or op.name in ("tt.debug_barrier", "ttg.barrier"):
            yield "meet", op, (0, 0)
        base = sum(start_of(allocations, call) for call in calls)

        def where(made: Any, base: int = base) -> Bytes:
            start = base + start_of(allocations, made)
            return start, start + size_of(made)

        match op.name:
            case "ttg.local_alloc":
                yield "write", op, where(op)
            case "ttg.convert_layout":
                yield "write", op, where(op)
                yield "meet", op, (0, 0)
                yield "read", op, where(op)
            case "ttg.dot":
                for side in list(op.operands)[:2]:
                    yield "read", op, where(side.owner.operation)


def hazard(
    trace: Trace, allocations: dict[str, Allocation], barriers: Collection[Any]
) -> str | None:
    """Two accesses of common bytes, one of them a write, with no meeting of all threads between:
    some interleaving of the threads has them in the other order."""
    since: list[tuple[str, Any, Bytes]] = []
    for kind, op, (start, end) in events(trace, allocations, barriers):
        if kind == "meet":
            since = []
            continue
        for other, before, (low, high) in since:
            if "write" in (kind, other) and low < end and start < high:
                return f"{other} of {before}\n{kind} of {op}"
        since.append((kind, op, (start, end)))
    return None


def traces(module: Any, rng: np.random.Generator, count: int) -> list[Trace]:
    return [list(executed(module, rng)) for _ in range(count)]


@pytest.mark.parametrize("callees", [0, 3])
def test_no_hazard_is_left(callees: int, rng: np.random.Generator) -> None:
    found = needed = 0
    for _ in range(60):
        with mlir_context():
            module = ir.Module.parse(Program(rng, callees).text)
            graph = call_graph(module)
            allocations = allocate(graph)
            barriers = missing_barriers(graph, allocations)
            found += len(barriers)
            for trace in traces(module, rng, 8):
                left = hazard(trace, allocations, barriers)
                assert left is None, f"{left}\n{module}"
                needed += hazard(trace, allocations, []) is not None
    assert found > 100
    assert needed > 100, "hardly any program needs a barrier"


@pytest.mark.parametrize(("callees", "depth"), [(0, 0), (2, 0)], ids=["one function", "calls"])
def test_every_barrier_is_needed(callees: int, depth: int, rng: np.random.Generator) -> None:
    """Without control flow there is one run, so "needed" has one meaning."""
    checked = 0
    for _ in range(150):
        with mlir_context():
            module = ir.Module.parse(Program(rng, callees, depth).text)
            graph = call_graph(module)
            allocations = allocate(graph)
            barriers = missing_barriers(graph, allocations)
            (trace,) = traces(module, rng, 1)
            ran = {op for op, _ in trace}
            for barrier in barriers:
                if barrier in ran:
                    others = [other for other in barriers if other != barrier]
                    assert hazard(trace, allocations, others), f"{barrier}\n{module}"
                    checked += 1
    assert checked > 50


def test_a_barrier_of_a_loop_is_needed_by_some_run(rng: np.random.Generator) -> None:
    """With loops a barrier may be needed on some ways through them only."""
    needed = checked = 0
    for _ in range(40):
        with mlir_context():
            module = ir.Module.parse(Program(rng, 0, 1).text)
            graph = call_graph(module)
            allocations = allocate(graph)
            barriers = missing_barriers(graph, allocations)
            runs = traces(module, rng, 40)
            for barrier in barriers:
                others = [other for other in barriers if other != barrier]
                needed += any(hazard(run, allocations, others) for run in runs)
                checked += 1
    assert checked > 40
    assert needed > 0.95 * checked, f"{needed} of {checked}"


def test_memory_apart_takes_fewer_barriers(rng: np.random.Generator) -> None:
    """And none that is missing."""
    counts = {1: 0, 4: 0}
    for _ in range(40):
        with mlir_context():
            module = ir.Module.parse(Program(rng, 1, 1).text)
            graph = call_graph(module)
            for times in counts:
                allocations = allocate(graph, lambda _, size, times=times: times * size)
                barriers = missing_barriers(graph, allocations)
                counts[times] += len(barriers)
                for trace in traces(module, rng, 10):
                    assert hazard(trace, allocations, barriers) is None
    assert counts[4] < 0.9 * counts[1]


def test_the_pass_puts_them_where_the_analysis_says(rng: np.random.Generator) -> None:
    for _ in range(20):
        with mlir_context():
            module = ir.Module.parse(Program(rng, 2).text)
            AllocateSharedMemory().run(module)
            Membar().run(module)
            assert module.operation.verify()
            graph = call_graph(module)
            allocations = allocate(graph)
            assert missing_barriers(graph, allocations) == [], "the pass may run twice"
            for trace in traces(module, rng, 5):
                assert hazard(trace, allocations, []) is None
                assert all(op.name != "tt.debug_barrier" for op, _ in trace)
