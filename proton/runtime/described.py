"""What a run says of its kernels and its machine."""

import platform
from typing import Any

from proton.trace.model import Kernel
from proton.trace.profile import KernelProfile


def kernel_model(kernel: Any, profile: KernelProfile, options: dict[str, Any]) -> Kernel:
    """A compiled, instrumented kernel as the run keeps it."""
    return Kernel(
        name=kernel.name,
        key=kernel.key,
        target=kernel.metadata["target"],
        strategy=profile.strategy,
        scopes=profile.table.scopes,
        emptied=profile.table.emptied,
        units=profile.units,
        unit_warps=profile.unit_warps,
        payload_slots=profile.schema.payload_slots,
        clock_bits=profile.schema.clock_bits,
        options={"signature": kernel.metadata.get("signature", ""), **options},
    )


def machine_facts() -> dict[str, object]:
    """The machine, for display."""
    from proton.backends.cpu import llvm

    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "cpu": llvm.host_cpu(),
    }
