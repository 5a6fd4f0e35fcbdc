"""From a device function and a signature to a cubin for one architecture."""

import re
from dataclasses import replace

from proton.backends.compiler import CompileResult
from proton.backends.nvidia.cubin import Assembler, Cubin, most_registers
from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.pipeline import llir_passes, ttgir_passes
from proton.backends.nvidia.ptx import emit_ptx
from proton.backends.nvidia.ptx_order import at_first_use, pressure
from proton.backends.stages import Stages
from proton.backends.ttir import ttir_passes
from proton.base.errors import OutOfResources
from proton.base.symbols import mangled
from proton.base.targets import WARP_SIZE, GPUTarget
from proton.dialect.attributes import SHARED_BYTES
from proton.dialect.context import mlir_context
from proton.dialect.profile import profile_of
from proton.dialect.tensor_maps import tensor_maps_of
from proton.dialect.walk import gpu_functions
from proton.frontend import Signature, build_module
from proton.language.function import DeviceFunction
from proton.transforms.split_batched_dot import SplitBatchedDot
from proton.transforms.tensor_descriptor_to_tma import TensorDescriptorToTMA

_LESS = 0.9  # of the values that are alive at once, for assembling another order to be worth it
_THREADS = re.compile(r"^\.maxntid .*$", re.MULTILINE)
# Of 33 kernels of liger-kernel and flag-gems for which another order was assembled, those for which
# it was worth it took this share of the registers that their values let one expect, or more.
_LUCK = 0.85
_TOO_MANY = 2  # times the registers of a thread: any order spills then
_TENSOR_CORES = re.compile(r"\b(?:wgmma|mma)\.")


def compile_kernel(
    fn: DeviceFunction, signature: Signature, options: GPUOptions, label: str
) -> CompileResult:
    """Compiles; raises CompilationError for the user's mistakes, OutOfResources where the target
    has too little of something, PassError for mistakes of ours.

    `label` names the folder of the dumps: each variant of a kernel has one of its own.
    """
    stages, target = Stages(label), options.target
    with mlir_context(), Assembler(target, fn.__name__, mangled(fn.__name__)) as assembler:
        with stages.timed("frontend"):
            module = build_module(
                fn, signature, debug=options.debug, keep_calls=True, target=target
            )
        profiled = options.instrumentation
        tma = TensorDescriptorToTMA(arch=target.arch)
        simplify = ttir_passes(profiled, [tma])
        module = stages.run("ttir", module, [*simplify, SplitBatchedDot()])
        module = stages.run("ttgir", module, ttgir_passes(options))
        module = stages.run("llir", module, llir_passes(options))
        (kernel,) = [op for op in gpu_functions(module) if "nvvm.kernel" in op.attributes]
        profile, maps = profile_of(kernel), tensor_maps_of(kernel)
        shared = int(kernel.attributes[SHARED_BYTES].value)
        _check_shared(fn, shared, target)
        with stages.timed("ptx"):
            ptx = emit_ptx(module, target)
        with stages.timed("cubin"):
            assembler.feed(ptx)
            texts = stages.texts()  # while the assembler works
            cubin = assembler.finish()
            ptx, cubin = _alone(fn, ptx, cubin, options)
            ptx, cubin = _denser(fn, ptx, cubin, options)
    data = {
        "target": str(target),
        "num_warps": options.num_warps,
        "num_ctas": options.num_ctas,
        "launch_pdl": options.launch_pdl,
        "shared": shared,
        "n_regs": cubin.registers,
        "n_spills": cubin.spills,
        "tensor_maps": maps,
        "profile": profile and profile.to_plain(),
        "signature": f"{signature}, num_warps={options.num_warps}",
    }
    files = {f"{stage}.mlir": text.encode() for stage, text in texts.items()}
    files |= {"code.ptx": ptx.encode(), "code.cubin": cubin.code}
    return CompileResult(data, files, stages.times)


def _denser(fn: DeviceFunction, ptx: str, cubin: Cubin, options: GPUOptions) -> tuple[str, Cubin]:
    """The PTX in another order, and its machine code, where more threads fit on an SM with that:
    tried where registers leave room for less than half of what an SM takes, or do not suffice, and
    where so many fewer values are alive at once that it may help."""

    def cost(code: Cubin) -> tuple[int, int]:
        return code.spills, -code.threads(options.target, options.num_warps * WARP_SIZE)

    spills, room = cost(cubin)
    if not spills and -room >= options.target.facts.sm_threads // 2:
        return ptx, cubin
    if _TENSOR_CORES.search(ptx):  # their sums take the registers, whatever the order
        return ptx, cubin
    other = at_first_use(ptx)
    alive, before = pressure(other), pressure(ptx)
    if alive > _LESS * before:
        return ptx, cubin
    if spills and alive > _TOO_MANY * most_registers(options.num_warps):
        return ptx, cubin
    expected = replace(cubin, registers=max(1, int(_LUCK * cubin.registers * alive / before)))
    if not spills and cost(expected) >= cost(cubin):
        return ptx, cubin
    found = _assembled(fn, other, options.target)
    return (other, found) if cost(found) < cost(cubin) else (ptx, cubin)


def _alone(fn: DeviceFunction, ptx: str, cubin: Cubin, options: GPUOptions) -> tuple[str, Cubin]:
    """The PTX of a program that need not share its SM, and its machine code, where that spills
    less. What does not fit into all registers of a program may be given a quarter of them, so that
    more programs run at once, and all of them spill."""
    if not cubin.spills or options.maxnreg is not None:
        return ptx, cubin
    if cubin.registers >= most_registers(options.num_warps):
        return ptx, cubin
    other = _THREADS.sub(r"\g<0>\n.minnctapersm 1", ptx, count=1)
    found = _assembled(fn, other, options.target)
    return (other, found) if found.spills < cubin.spills else (ptx, cubin)


def _assembled(fn: DeviceFunction, ptx: str, target: GPUTarget) -> Cubin:
    with Assembler(target, fn.__name__, mangled(fn.__name__)) as assembler:
        assembler.feed(ptx)
        return assembler.finish()


def _check_shared(fn: DeviceFunction, shared: int, target: GPUTarget) -> None:
    limit = target.facts.shared_bytes
    if shared > limit:
        raise OutOfResources(
            f"{fn.__name__} needs {shared} bytes of shared memory, and a program on "
            f"{target.facts.chip} has {limit}",
            hint="reduce the block sizes",
        )
