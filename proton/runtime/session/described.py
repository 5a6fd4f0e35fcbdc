"""The description of kernels and machine in a run."""

import contextlib
import os
import platform
from dataclasses import replace
from pathlib import Path

from proton.backends.compiler import CompiledKernel
from proton.base.knobs import knobs
from proton.trace.model import BOOT, ROLES, Kernel

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def kernel_model(kernel: CompiledKernel, noted: dict[str, object]) -> Kernel:
    """A compiled kernel as the run keeps it; `noted` is what else is said of it."""
    profile = kernel.profile
    stages = kernel.metadata.get("num_stages")
    noted = noted if stages is None else {"num_stages": stages, **noted}
    model = Kernel(
        name=kernel.name,
        key=kernel.key,
        target=kernel.metadata["target"],
        strategy=None,
        scopes=(),
        options={"signature": kernel.metadata.get("signature", ""), **noted},
    )
    if profile is None:
        return model
    roles = {ROLES: list(profile.roles)} if profile.roles else {}
    return replace(
        model,
        options={**model.options, **roles},
        strategy=profile.strategy,
        scopes=profile.table.scopes,
        optimized_out=profile.table.optimized_out,
        units=profile.units,
        unit_warps=profile.unit_warps,
        payload_slots=profile.schema.payload_slots,
        clock_bits=profile.schema.clock_bits,
    )


def machine_facts() -> dict[str, object]:
    """The machine, for display, and to tell which runs share its monotonic clock."""
    facts: dict[str, object] = {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "threads": _threads(),
    }
    with contextlib.suppress(OSError):  # Linux alone has it
        facts[BOOT] = _BOOT_ID.read_text().strip()
    return facts


def _threads() -> int:
    """How many run programs on the processor."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return knobs.num_threads if isinstance(knobs.num_threads, int) else cores
