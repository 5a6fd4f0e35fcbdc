"""AMD's chips by their names in LLVM.

Sources: AMD Instinct MI300 instruction set architecture; LLVM's user guide for AMDGPU.
"""

from proton.base.chips.chip import Chip

CHIPS: dict[str, Chip] = {
    "gfx942": Chip(
        name="gfx942",
        shared_bytes=64 * 1024,
        sm_shared_bytes=64 * 1024,
        sm_threads=2048,
        sm_programs=32,
        shared_unit=512,
        max_registers=512,
        sm_registers=4 * 512 * 64,
        warp_size=64,
    )
}
