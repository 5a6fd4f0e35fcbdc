"""NVIDIA GPUs as a target: what their kernels are, and who compiles them."""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

from proton.backends.compiler import Asm, CompiledKernel, Compiler, CompileResult
from proton.backends.nvidia.machine_code import with_plain_symbol
from proton.backends.nvidia.options import GPUOptions
from proton.base import nvidia_tools as tools
from proton.base.errors import CompilationError
from proton.base.knobs import knobs
from proton.base.targets import Target, gpu_of
from proton.base.words import did_you_mean
from proton.language.function import DeviceFunction
from proton.language.signature import Signature

REGISTER_BYTES = 4
_ENTRY = re.compile(rb"\.entry ([^\s(]+)")


class GPUKernel(CompiledKernel):
    """Its metadata besides: num_warps, num_ctas, shared, n_regs, n_spills."""

    @property
    def n_regs(self) -> int:
        """Registers of a thread."""
        return int(self.metadata["n_regs"])

    @property
    def stride_arguments(self) -> list[str]:
        """The arguments that are strides, or factors of some, of what TMA copies for pointers."""
        return list(self.metadata["stride_arguments"])

    @property
    def n_spills(self) -> int:
        """Bytes that the instructions of a thread store to local memory and load from there, for
        want of registers."""
        return int(self.metadata["n_spills"])

    @property
    def spilled_registers(self) -> int:
        """Registers of a thread that lie in local memory."""
        return int(self.metadata["frame"]) // REGISTER_BYTES if self.n_spills else 0

    @property
    def has_most_registers(self) -> bool:
        """True if its PTX says how many registers a thread has at most."""
        return re.search(r"^\.maxnreg ", self.asm["ptx"], re.M) is not None

    @cached_property
    def shared(self) -> int:
        """Bytes of shared memory of a program."""
        return int(self.metadata["shared"])


class NVIDIACompiler(Compiler[GPUOptions, GPUKernel]):
    """Compiles for the GPU that the options name, which need not be there."""

    levels: ClassVar[dict[str, str]] = {
        "ttir": "ttir.mlir",
        "ttgir": "ttgir.mlir",
        "llir": "llir.mlir",
        "ptx": "code.ptx",
        "cubin": "code.cubin",
        "schedule": "schedule.txt",  # of the loops of ttgir (proton/schedule/plan.py)
    }
    binary = frozenset({"cubin"})
    disassembly = "sass"
    sources = "ttir", "ttgir"
    kernel = GPUKernel

    def identity(self, options: GPUOptions) -> dict[str, object]:
        return {
            "ptxas": tools.identity(tools.ptxas(options.target), tools.PTXAS_WHEEL),
            "libdevice": tools.identity(tools.libdevice(), "nvidia-nvvm"),
        }

    def shown(self, level: str, text: str) -> str:
        """What Triton calls `llir` is LLVM's text."""
        if level != "llir" or not knobs.stands_for_triton:
            return text
        from proton.backends.nvidia.llvm_ir import llvm_ir

        return llvm_ir(text)

    def named(self, code: bytes, files: Mapping[str, bytes]) -> bytes:
        """Launchers of other makers look for the kernel by its name, as Triton's code has it."""
        entry = _ENTRY.search(files[self.levels["ptx"]])
        if entry is None or not knobs.stands_for_triton:
            return code
        return with_plain_symbol(code, entry[1].decode())[0]

    def compile(
        self, fn: DeviceFunction, signature: Signature, options: GPUOptions, label: str
    ) -> CompileResult:
        from proton.backends.nvidia import compiler

        self.check_source(options.text, options.target)
        return compiler.compile_kernel(fn, signature, options, label)

    def chosen(
        self, target: Target, options: dict[str, Any], fn: DeviceFunction | None = None
    ) -> GPUOptions:
        target = gpu_of(target)
        if (arch := options.get("arch")) is not None:
            target = target.of_arch(arch)
            options = {name: value for name, value in options.items() if name != "arch"}
        known = [field.name for field in fields(GPUOptions)[1:] if field.name != "instrumentation"]
        for name in options:
            if name not in known:
                guess = did_you_mean(name, known) or f"; there are {', '.join(known)}"
                raise CompilationError(f"kernels for {target} have no option {name!r}{guess}")
        if chooses := options.get("num_warps") is None:
            options = {name: value for name, value in options.items() if name != "num_warps"}
        return GPUOptions(target, **options | {"chooses_warps": chooses})

    def warm_up(self) -> None:
        from proton.backends.nvidia import compiler  # noqa: F401
        from proton.dialect.context import mlir_context

        with mlir_context():
            pass

    def disassemble(self, asm: Asm) -> str:
        return tools.disassemble(asm["cubin"])


NVIDIA = NVIDIACompiler()
