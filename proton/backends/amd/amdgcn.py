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


def emit(text: str, chip: str) -> tuple[str, str, bytes]:
    """(optimised LLVM IR, assembly, object code) of LLVM IR text."""
    machine = _machine(chip)
    module = _parsed(text)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    optimised = str(module)
    code = machine.emit_object(_parsed(optimised))  # each uses a module up
    return optimised, str(machine.emit_assembly(module)), code


def _parsed(text: str) -> Any:
    return llvm.parse_assembly(text, llvm.create_context())
