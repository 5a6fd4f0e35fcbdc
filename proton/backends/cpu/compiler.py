"""From a device function and a signature to object code for this machine."""

from proton.analysis.alias import UNKNOWN
from proton.analysis.barriers import check_barriers
from proton.backends.compiler import CompileResult
from proton.backends.cpu import llvm
from proton.backends.cpu.options import CPUOptions
from proton.backends.cpu.partition_code import with_partitions
from proton.backends.cpu.pipeline import llvm_passes, memref_passes, ttsir_passes
from proton.backends.sources import first_module
from proton.backends.stages import Stages
from proton.backends.ttir import ttir_passes
from proton.base.errors import PassError
from proton.base.symbols import mangled
from proton.base.targets import DEFAULT_WARPS, CPUTarget
from proton.conversion.gluon_to_triton import GluonToTriton
from proton.conversion.grid_to_loop import RANGE_SUFFIX, extra_arguments
from proton.conversion.triton_pointers_to_llvm.bounds import checked_accesses
from proton.dialect.attributes import ASSERTIONS, WAITS, WRITTEN
from proton.dialect.context import mlir_context
from proton.dialect.mlir import Module, translate_to_llvm_ir
from proton.dialect.profile import profile_of
from proton.dialect.walk import all_ops, kernel_functions, op_names
from proton.frontend import Signature
from proton.language.function import DeviceFunction


def vector_bits() -> int:
    """The widest float vectors that the host has."""
    return 512 if "+avx512f" in llvm.host_features().split(",") else 256


def has_large_first_level() -> bool:
    """True if the host's first-level cache has room for more than what a product's tiles read,
    32 KiB: the processors with arithmetic of fp16 vectors have 48 KiB."""
    return "+avx512fp16" in llvm.host_features().split(",")


def compile_kernel(
    fn: DeviceFunction, signature: Signature, options: CPUOptions, label: str
) -> CompileResult:
    """Compiles; raises CompilationError for the user's mistakes, PassError for ours.

    `label` names the folder of the dumps: each variant of a kernel has one of its own.
    """
    stages, text = Stages(label), options.text or fn.ir
    with mlir_context():
        with stages.timed("frontend"):
            module = first_module(
                fn,
                signature,
                text,
                debug=options.debug,
                sanitize_overflow=options.sanitize_overflow,
                # Bounds are those of the kernel's arguments, which a function does not know.
                keep_calls=not options.check_bounds,
                target=CPUTarget(),
                num_warps=options.warps,
                num_ctas=options.num_ctas,
            )
            if fn.has_layouts and text is None:
                check_barriers(module)
        profiled = options.instrumentation
        of_layouts = (
            [GluonToTriton(num_warps=options.warps or DEFAULT_WARPS)] if fn.has_layouts else []
        )
        module = stages.run("ttir", module, [*of_layouts, *ttir_passes(profiled)])
        module = stages.run("ttsir", module, ttsir_passes(profiled, options.check_bounds))
        (function,) = kernel_functions(module)
        disjoint = options.disjoint
        if disjoint is None:
            disjoint = UNKNOWN not in function.attributes[WRITTEN]
        module = stages.run(
            "memref",
            module,
            memref_passes(disjoint, profiled, vector_bits(), has_large_first_level()),
        )
        data = _describe(module, fn.name_of(signature), disjoint)
        module = stages.run(
            "llvm", module, llvm_passes(disjoint, vector_bits(), profiled is not None)
        )
        with stages.timed("translate"):
            translated = _translate(module)
        texts = stages.texts()
    with stages.timed("object"):
        code, optimised = llvm.emit_object(translated)
    files = {f"{stage}.mlir": text for stage, text in texts.items()}
    files |= {"llir.ll": optimised.encode(), "code.o": code}
    return CompileResult(data, files, stages.times)


def _describe(module: Module, name: str, disjoint: bool) -> dict[str, object]:
    """What a launcher must know about the code."""
    (function,) = kernel_functions(module)
    messages = function.attributes.get(ASSERTIONS, ())
    profile = profile_of(function)
    return {
        "symbol": mangled(name) + RANGE_SUFFIX,
        "target": "cpu",
        "written": sorted(function.attributes[WRITTEN]),
        "extras": [kind.value for kind in extra_arguments(function)],
        "assertions": [message.value for message in messages],
        "bounds": checked_accesses(function),
        "profile": profile and profile.to_plain(),
        "disjoint": disjoint,
        "waits": WAITS in function.attributes,
    }


def _translate(module: Module) -> str:
    """LLVM IR text. What is not in the llvm dialect would crash the translation: refuse it."""
    if any(not name.startswith("llvm.") for name in op_names(module)):
        op = next(op for op in all_ops(module) if not op.name.startswith("llvm."))
        raise PassError(f"{op.name} was not lowered to LLVM (at {op.location})")
    return with_partitions(translate_to_llvm_ir(module))
