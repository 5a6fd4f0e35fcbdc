"""`triton.profiler.specs`: what a device does at most, by its clocks."""

from proton.base.errors import ProfileError
from proton.viewer.tables.metrics import BYTES
from proton.viewer.tables.rates import most


def max_flops(device_type: str, arch: str, width: int, num_sms: int, clock_rate: float) -> float:
    """Operations of numbers of `width` bits in a second; the clock is in kHz. Raises ProfileError
    for a chip, or a width, of which they are not known."""
    facts = {"num_sms": num_sms, "clock_rate": clock_rate}
    return _most(f"flops{width}", device_type, arch, facts)


def max_bps(device_type: str, arch: str, bus_width: int, memory_clock_rate: float) -> float:
    """Bytes of memory in a second; the clock is in kHz, the bus in bits."""
    facts = {"bus_width": bus_width, "memory_clock_rate": memory_clock_rate}
    return _most(BYTES, device_type, arch, facts)


def _most(metric: str, device_type: str, arch: str, facts: dict[str, float]) -> float:
    is_known = device_type == "CUDA" and str(arch).isdecimal()
    found = most(metric, facts | {"arch": float(arch)}) if is_known else 0.0
    if not found:
        raise ProfileError(f"the most {metric} of {device_type} {arch} in a second are not known")
    return found
