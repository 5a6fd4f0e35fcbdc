"""Launches of which a test knows which are recorded."""

from proton.runtime.session.launch_budget import KernelGate, LaunchBudget, TimedLaunches


def each_second(self: LaunchBudget, kernel: str, grid: object) -> TimedLaunches:
    """In the place of `LaunchBudget.choose`: of each kernel each second launch is recorded, and the
    others are timed."""
    gate, of = self.gates.setdefault(kernel, KernelGate()), self.of(kernel, grid)
    assert of is not None
    gate.number += 1
    gate.left, gate.counted = 0, gate.number
    return of.recorded if gate.number % 2 else of.plain
