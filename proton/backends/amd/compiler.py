"""From a device function and a signature to assembly for one chip."""

from proton.backends.amd import amdgcn
from proton.backends.amd.options import AMDOptions
from proton.backends.amd.pipeline import llvm_passes, ttgir_passes
from proton.backends.compiler import CompileResult
from proton.backends.sources import first_module
from proton.backends.stages import Stages
from proton.backends.ttir import ttir_passes
from proton.base.errors import CompilationError, OutOfResources
from proton.base.symbols import mangled
from proton.dialect import isa
from proton.dialect.attributes import KERNEL, SHARED_BYTES
from proton.dialect.builtin import strings_attr
from proton.dialect.context import mlir_context
from proton.dialect.mlir import Module, Operation, ir, llvm, translate_to_llvm_ir
from proton.frontend import Signature
from proton.language.function import DeviceFunction
from proton.transforms.tile.widen_scans import WidenScans


def compile_kernel(
    fn: DeviceFunction, signature: Signature, options: AMDOptions, label: str
) -> CompileResult:
    """Compiles; raises CompilationError for the user's mistakes, OutOfResources where the chip has
    too little of something, PassError for mistakes of ours."""
    if fn.has_layouts:
        raise CompilationError(
            f"{fn.__name__} is in Gluon, and {options.target} is not supported for it",
            hint="compile it for NVIDIA's GPUs or a CPU, or write it in tiles",
        )
    stages, target = Stages(label), options.target
    with mlir_context():
        with stages.timed("frontend"):
            module = first_module(
                fn,
                signature,
                None,
                debug=False,
                sanitize_overflow=False,
                keep_calls=True,
                target=target,
                num_warps=options.num_warps,
            )
        simplify = [*ttir_passes(None), WidenScans()]
        module = stages.run("ttir", module, simplify)
        module = stages.run("ttgir", module, ttgir_passes(options))
        module = stages.run("llvm", module, llvm_passes(options))
        shared = _described(module, options.num_warps * target.warp_size)
        limit = target.facts.shared_bytes
        if shared > limit:
            raise OutOfResources(
                shared, limit, "shared memory", f"of {fn.__name__}", "reduce the block sizes"
            )
        with stages.timed("llir"):
            translated = translate_to_llvm_ir(module)
        texts = stages.texts()
    with stages.timed("amdgcn"):
        llir, assembly, code = amdgcn.emit(translated, target.facts.name)
    data = {
        "target": str(target),
        "symbol": mangled(fn.name_of(signature)),
        "num_warps": options.num_warps,
        "shared": shared,
        "profile": None,
        "signature": f"{signature}, num_warps={options.num_warps}",
    }
    files = {f"{stage}.mlir": text for stage, text in texts.items()}
    files |= {"llir.ll": llir.encode(), "code.amdgcn": assembly.encode(), "code.o": code}
    return CompileResult(data, files, stages.times)


def _described(module: Module, threads: int) -> int:
    """Says of each function what LLVM must know; the bytes of shared memory of the kernel."""
    shared = 0
    for view in module.body.operations:
        op = view.operation
        if not isa(op, llvm.LLVMFuncOp) or not len(op.regions[0].blocks):
            continue
        if KERNEL in op.attributes:
            shared = int(op.attributes[SHARED_BYTES].value) if SHARED_BYTES in op.attributes else 0
            op.attributes["CConv"] = ir.Attribute.parse("#llvm.cconv<amdgpu_kernelcc>")
            size = strings_attr(["amdgpu-flat-work-group-size", f"{threads},{threads}"])
            op.attributes["passthrough"] = ir.ArrayAttr.get([size])
        else:
            op.attributes["passthrough"] = strings_attr(["noinline"])
            op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        _forget_own(op)
    return shared


def _forget_own(op: Operation) -> None:
    """Drops the attributes that passes left for each other."""
    for name in list(op.attributes):
        if name.startswith(("tt.", "ttg.", "proton.")):
            del op.attributes[name]
