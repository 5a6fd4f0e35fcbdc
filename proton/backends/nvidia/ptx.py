"""LLVM dialect to PTX, by the NVPTX target inside the MLIR wheel."""

import re
from pathlib import Path
from typing import Any

from proton.base.errors import PassError
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget
from proton.dialect.mlir import gpu
from proton.dialect.walk import all_ops
from proton.passes import Upstream

_LIBDEVICE = Path("nvvm", "libdevice", "libdevice.10.bc")


def libdevice_path() -> Path:
    """NVIDIA's libdevice bitcode: the knob's, the `nvidia-nvvm` wheel's, or the toolkit's.

    Raises PassError where there is none.
    """
    candidates = []
    if knobs.libdevice is not None:
        candidates.append(Path(knobs.libdevice))
    else:
        import nvidia

        for folder in nvidia.__path__:
            candidates += [Path(folder, "cu13", _LIBDEVICE), Path(folder, "cu12", _LIBDEVICE)]
        if knobs.cuda_home is not None:
            candidates.append(Path(knobs.cuda_home) / _LIBDEVICE)
    for candidate in candidates:
        if candidate.exists():
            return candidate
    looked = ", ".join(map(str, candidates))
    raise PassError(
        f"the kernel calls libdevice, whose bitcode is not there (looked for {looked}); "
        "install nvidia-nvvm or set PROTON_LIBDEVICE"
    )


def _needs_libdevice(module: Any) -> bool:
    return any(
        op.name == "llvm.func" and op.attributes["sym_name"].value.startswith("__nv_")
        for op in all_ops(module)
    )


def emit_ptx(module: Any, target: GPUTarget) -> str:
    """PTX text of a module that holds one `gpu.module`; the module is used up.

    Line tables map instructions to the kernel's source; the mark of a debug build, which would
    turn the assembler's optimisation off, is taken away.
    """
    facts = target.facts
    options = f"chip={facts.chip} features=+ptx{facts.ptx} O=3"
    if _needs_libdevice(module):
        options += f" l={libdevice_path()}"
    Upstream(
        "ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly},"
        f"nvvm-attach-target{{{options}}},gpu-module-to-binary{{format=isa}}"
    ).run(module)
    binary = module.body.operations[0].operation
    text = gpu.ObjectAttr(binary.attributes["objects"][0]).object.decode()
    return re.sub(r"^(\.target [^\n]*?), debug", r"\1", text, count=1, flags=re.MULTILINE)
