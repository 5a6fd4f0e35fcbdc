"""What a run says of its kernels and its machine."""

import platform
from typing import Any

from proton.trace.model import Kernel, PayloadField, Scope, Strategy


def kernel_model(kernel: Any, profile: dict[str, Any], options: dict[str, Any]) -> Kernel:
    """A compiled, instrumented kernel as the run keeps it."""
    scopes = [
        Scope(
            name=entry["name"],
            path=entry["path"],
            kind=entry["kind"],
            fused=entry["fused"],
            payload=tuple(PayloadField(name=n, kind=k) for n, k in entry["payload"]),
            file=entry["file"],
            line=entry["line"],
        )
        for entry in profile["scopes"]
    ]
    return Kernel(
        name=kernel.name,
        key=kernel.key,
        target=kernel.metadata["target"],
        strategy=Strategy(profile["strategy"]) if profile["strategy"] else None,
        scopes=tuple(scopes),
        emptied=tuple(profile["emptied"]),
        units=profile["units"],
        unit_warps=profile["unit_warps"],
        payload_slots=profile["payload_slots"],
        clock_bits=profile["clock_bits"],
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
