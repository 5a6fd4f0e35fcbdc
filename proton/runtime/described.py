"""What a run says of its kernels and its machine."""

import platform
from dataclasses import replace
from typing import Any

from proton.backends.compiler import CompiledKernel
from proton.trace.model import Kernel


def kernel_model(kernel: CompiledKernel, noted: dict[str, Any]) -> Kernel:
    """A compiled kernel as the run keeps it; `noted` is what else is said of it."""
    profile = kernel.profile
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
    return replace(
        model,
        strategy=profile.strategy,
        scopes=profile.table.scopes,
        optimized_out=profile.table.optimized_out,
        units=profile.units,
        unit_warps=profile.unit_warps,
        payload_slots=profile.schema.payload_slots,
        clock_bits=profile.schema.clock_bits,
    )


def machine_facts() -> dict[str, object]:
    """The machine, for display."""
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
