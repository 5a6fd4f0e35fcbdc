"""From a device function and a signature to object code for this machine."""

import time
from dataclasses import dataclass, field
from typing import Any

from proton.backends.cpu import llvm
from proton.backends.cpu.pipeline import (
    Instrumentation as Instrumentation,
)
from proton.backends.cpu.pipeline import (
    llvm_passes,
    memref_passes,
    ttir_passes,
    ttsir_passes,
)
from proton.base.errors import PassError
from proton.base.knobs import knobs
from proton.conversion.grid_to_loop import RANGE_SUFFIX, extra_arguments
from proton.conversion.proton_gpu_to_llvm import profile_layout
from proton.conversion.triton_pointers_to_llvm import STATUS_ATTRIBUTE
from proton.dialect.context import mlir_context
from proton.dialect.mlir import translate_to_llvm_ir
from proton.dialect.walk import all_ops, kernel_functions
from proton.frontend import Signature, build_module
from proton.language.function import DeviceFunction
from proton.passes import Pipeline
from proton.transforms.mark_written import WRITTEN_ATTRIBUTE


@dataclass(frozen=True)
class CPUOptions:
    """What changes the code of a kernel besides its signature.

    `disjoint` says that the arguments the kernel writes overlap no other argument; the
    launcher checks it. GPU options (num_warps, num_stages, ...) mean nothing here.
    """

    disjoint: bool = True
    debug: bool = False
    instrumentation: Instrumentation | None = None


@dataclass
class CompileResult:
    """Object code and everything worth keeping beside it; `data` is JSON."""

    data: dict[str, Any]
    files: dict[str, bytes]
    times: dict[str, float] = field(default_factory=dict)  # ms by stage


def vector_bits() -> int:
    """The widest float vectors that the host has."""
    return 512 if "+avx512f" in llvm.host_features().split(",") else 256


class _Stages:
    """Runs pipelines one after the other, and keeps the text after each."""

    def __init__(self, label: str) -> None:
        self.label, self.number = label, 1
        self.texts: dict[str, str] = {}
        self.times: dict[str, float] = {}

    def run(self, stage: str, module: Any, passes: list[Any]) -> Any:
        start = time.perf_counter()
        pipeline = Pipeline(passes, self.label)
        module = pipeline.run(module, self.number)
        self.number += len(passes)
        self.times[stage] = (time.perf_counter() - start) * 1e3
        self.texts[stage] = str(module)
        if knobs.pass_timing:
            pipeline.print_timings()
        return module


def compile_kernel(
    fn: DeviceFunction, signature: Signature, options: CPUOptions, label: str
) -> CompileResult:
    """Compiles; raises CompilationError for the user's mistakes, PassError for ours.

    `label` names the folder of the dumps: each variant of a kernel has one of its own.
    """
    stages = _Stages(label)
    with mlir_context():
        start = time.perf_counter()
        module = build_module(fn, signature, debug=options.debug)
        stages.times["frontend"] = (time.perf_counter() - start) * 1e3
        profiled = options.instrumentation
        module = stages.run("ttir", module, ttir_passes(profiled))
        module = stages.run("ttsir", module, ttsir_passes(profiled))
        module = stages.run("memref", module, memref_passes(options.disjoint, profiled))
        data = _describe(module, fn, options)
        module = stages.run(
            "llvm", module, llvm_passes(options.disjoint, vector_bits(), profiled is not None)
        )
        start = time.perf_counter()
        text = _translate(module)
        stages.times["translate"] = (time.perf_counter() - start) * 1e3
    start = time.perf_counter()
    code, optimised = llvm.emit_object(text)
    stages.times["object"] = (time.perf_counter() - start) * 1e3
    stages.texts["llir"] = optimised
    files = {f"{stage}.mlir": t.encode() for stage, t in stages.texts.items() if stage != "llir"}
    files |= {"llir.ll": optimised.encode(), "code.o": code}
    return CompileResult(data, files, stages.times)


def _describe(module: Any, fn: DeviceFunction, options: CPUOptions) -> dict[str, Any]:
    """What a launcher must know about the code."""
    (function,) = kernel_functions(module)
    messages = function.attributes.get(STATUS_ATTRIBUTE, ())
    return {
        "name": fn.__name__,
        "symbol": fn.__name__ + RANGE_SUFFIX,
        "written": sorted(function.attributes[WRITTEN_ATTRIBUTE]),
        "extras": [kind.value for kind in extra_arguments(function)],
        "assertions": [message.value for message in messages],
        "profile": profile_layout(function),
        "disjoint": options.disjoint,
    }


def _translate(module: Any) -> str:
    """LLVM IR text. What is not in the llvm dialect would crash the translation: refuse it."""
    for op in all_ops(module):
        if not op.name.startswith("llvm."):
            raise PassError(f"{op.name} was not lowered to LLVM (at {op.location})")
    return translate_to_llvm_ir(module)
