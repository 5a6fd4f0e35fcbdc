"""LLVM IR text to AMDGCN assembly, by the AMDGPU target of llvmlite's LLVM."""

import functools
from typing import Any

import llvmlite.binding as llvm

from proton.base.errors import ProtonError

TRIPLE = "amdgcn-amd-amdhsa"
LEVEL = 3  # of optimisation


@functools.cache
def _machine(chip: str) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(TRIPLE)
    except RuntimeError as problem:
        raise ProtonError(f"the LLVM of llvmlite has no target {TRIPLE}: {problem}") from None
    return target.create_target_machine(cpu=chip, opt=LEVEL)


def emit_assembly(text: str, chip: str) -> tuple[str, str]:
    """(optimised LLVM IR, assembly) of LLVM IR text."""
    machine = _machine(chip)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(module), str(machine.emit_assembly(module))
