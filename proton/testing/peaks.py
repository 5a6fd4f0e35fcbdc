"""What a GPU can do at most, as models of a kernel's run time want it: bandwidth and operations.

Numbers of operations are those of compute capability 8.0, which such models are made for; with
others they rank configurations, and are not what the chip reaches.
"""

import subprocess
from collections.abc import Sequence
from typing import Any

from proton.base.errors import ProtonError
from proton.runtime.backend import HOST
from proton.runtime.driver import driver

_PARTS = 4  # of an SM, each with a scheduler, a tensor core and its own ALUs
# Operations, a multiply-add being two, that a part does in a cycle, by size of elements.
_OF_TENSOR_CORES = {"float32": 256, "int32": 256, "float16": 512, "bfloat16": 512, "int16": 512}
_OF_TENSOR_CORES |= dict.fromkeys(("int8", "float8e4nv", "float8e4b15", "float8e5"), 1024)
_OF_TENSOR_CORES |= dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), 1024)
_OF_ALUS = {"float32": 32, "float16": 64, "bfloat16": 64}


def get_dram_gbps(device: int | None = None) -> float:
    """The bandwidth of a GPU's memory, GB/s, from its clock and the width of its bus."""
    found = _properties("get_dram_gbps", device)
    transfers = 2 * found["mem_clock_rate"]  # 1000/s; both edges of the clock
    return float(transfers * found["mem_bus_width"] / 8 / 1e6)


def get_max_tensorcore_tflops(dtype: object, clock_rate: float, device: int | None = None) -> float:
    """What tensor cores do at most at a clock rate in kHz; `dtype` is torch's or the language's."""
    return _tflops("get_max_tensorcore_tflops", _OF_TENSOR_CORES, dtype, clock_rate, device)


def get_max_simd_tflops(dtype: object, clock_rate: float, device: int | None = None) -> float:
    """What the other units do at most at a clock rate in kHz."""
    return _tflops("get_max_simd_tflops", _OF_ALUS, dtype, clock_rate, device)


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """What nvidia-smi says of the first GPU; FileNotFoundError where it is not installed."""
    query = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attrs)}"]
    said = subprocess.check_output([*query, "--format=csv,noheader,nounits"], text=True)
    return [int(number) for number in said.split(",")]


def _tflops(
    what: str, operations: dict[str, int], dtype: object, clock_rate: float, device: int | None
) -> float:
    name = str(getattr(dtype, "name", dtype)).removeprefix("torch.")
    if name not in operations:
        raise ValueError(f"{what}: no number for {name}; there are {', '.join(operations)}")
    parts = _PARTS * _properties(what, device)["multiprocessor_count"]
    return float(parts * operations[name] * clock_rate * 1e-9)


def _properties(what: str, device: int | None) -> dict[str, Any]:
    if driver.active.backend.name == HOST:
        raise ProtonError(
            f"{what} is for GPUs, and kernels run on the CPU here: leave `perf_model` out of "
            "prune_configs_by"
        )
    return driver.active.utils.get_device_properties(device)
