"""LLVM IR text to object code to callable machine code, through llvmlite.

`emit_object` is all of code generation: what it returns is what the disk cache keeps. `Linker`
puts an object into this process; it needs no MLIR, and no LLVM but the linker.
"""

import functools
import itertools
import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from proton.base.packages import missing_compiler

try:
    import llvmlite
    import llvmlite.binding as llvm
    from llvmlite.binding.newpassmanagers import NewPassManager
except ModuleNotFoundError:
    raise missing_compiler("llvmlite") from None

# O3 and unrolling gain nothing here and double the compile time.
SPEED_LEVEL = 2
CODEGEN_LEVEL = 2
# Texts whose code is kept: kernels that differ in the signs of integers alone are often one text.
_KEPT = 32

# Without bf16 instructions LLVM keeps a bf16 value as fp32 and narrows it by a call of this
# function of the compiler's run-time library, which is not in the process. What it narrows was
# widened before, so any correct rounding gives the value back; this one is to nearest even.
_NARROW_BF16 = """
define bfloat @__truncsfbf2(float %wide) {
  %bits = bitcast float %wide to i32
  %last = lshr i32 %bits, 16
  %odd = and i32 %last, 1
  %bias = add i32 %odd, 32767
  %rounded = add i32 %bits, %bias
  %is_nan = fcmp uno float %wide, %wide
  %quiet = or i32 %bits, 4194304
  %kept = select i1 %is_nan, i32 %quiet, i32 %rounded
  %high = lshr i32 %kept, 16
  %narrow = trunc i32 %high to i16
  %result = bitcast i16 %narrow to bfloat
  ret bfloat %result
}
"""

_lock = threading.RLock()


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # inline assembly aborts the process without it


@functools.cache
def host_features() -> str:
    """The host's CPU features, as LLVM writes them: "+avx2,-avx512f,..."."""
    return llvm.get_host_cpu_features().flatten()


@functools.cache
def host_cpu() -> str:
    """The name that LLVM has for the host's CPU; in a virtual machine it may be a relative."""
    return llvm.get_host_cpu_name()


def version() -> str:
    """The versions that object code depends on."""
    return f"llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


@functools.cache
def _target_machine() -> Any:
    _initialize()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=host_cpu(),
        features=host_features(),
        opt=CODEGEN_LEVEL,
        reloc="pic",
        codemodel="default",
    )


@functools.lru_cache(_KEPT)
def emit_object(text: str) -> tuple[bytes, str]:
    """(object code, optimised LLVM IR) of LLVM IR text."""
    with _lock:
        machine = _target_machine()
        module = _for_machine(text + (_NARROW_BF16 if "bfloat" in text else ""), machine)
        _optimize(module, machine)
        return machine.emit_object(module), str(module)


def object_as_written(text: str) -> bytes:
    """The object code of LLVM IR text in which nothing is left to optimise."""
    with _lock:
        machine = _target_machine()
        code: bytes = machine.emit_object(_for_machine(text, machine))
        return code


def _for_machine(text: str, machine: Any) -> Any:
    module = _parsed(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return module


def _parsed(text: str) -> Any:
    """The module, in a context of its own: the global one would keep its constants and metadata."""
    return llvm.parse_assembly(text, llvm.create_context())


def object_with_one_symbol(text: str, symbol: str, name: str) -> bytes:
    """The object code of optimised LLVM IR, in which the function `symbol` is called `name`, and
    nothing else that it defines is seen: objects of several kernels are linked together."""
    with _lock:
        module = _parsed(text)
        for function in module.functions:
            if function.name == symbol:
                function.name = name
            elif not function.is_declaration:
                function.linkage = "internal"
        code: bytes = _target_machine().emit_object(module)
        return code


def disassembly(text: str) -> str:
    """The assembly of optimised LLVM IR."""
    with _lock:
        return str(_target_machine().emit_assembly(_parsed(text)))


def _optimize(module: object, machine: object) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=SPEED_LEVEL)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_interleaving = True
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    # The pipeline would simplify a function before it inlines it, and then once more.
    inliner = llvm.create_new_module_pass_manager()
    inliner.add_always_inliner_pass()
    for manager in (inliner, builder.getModulePassManager()):
        manager.run(module, builder)
        # llvmlite finds a base class's `_dispose`, which does nothing: 80 KB stay for each kernel.
        NewPassManager._dispose(manager)
        manager.detach()


# Objects that one JIT links: of each it keeps 9 KB for good. A new JIT takes 0.4 ms.
_LINKED = 128


class Linker:
    """The process's JIT, which links objects; a new one for every so many of them."""

    def __init__(self) -> None:
        _initialize()
        self.count = itertools.count()

    def link(
        self, code: bytes, symbol: str, imports: Mapping[str, int] | None = None
    ) -> "LinkedCode":
        """Links one object and finds its symbol; `imports` are addresses of what it declares and
        the process has no name for."""
        with _lock:
            number = next(self.count)
            if number % _LINKED == 0:
                # JITLink takes one piece of memory for all sections of an object. RuntimeDyld takes
                # one for each, and ends the process where these lie more than 2 GiB apart, as
                # beside CUDA.
                self.jit = llvm.create_lljit_compiler(_target_machine(), use_jit_link=True)
            builder = llvm.JITLibraryBuilder()
            builder.add_object_img(code)
            builder.add_current_process()
            for name, address in (imports or {}).items():
                builder.import_symbol(name, address)
            builder.export_symbol(symbol)
            tracker = builder.link(self.jit, f"proton{number}")
            tracker.jit = self.jit  # which ends behind the last of what it linked
            return LinkedCode(int(tracker[symbol]), tracker, code)


class LinkedCode:
    """Machine code in this process: `address` is valid while this object lives."""

    def __init__(self, address: int, tracker: Any, code: bytes) -> None:
        self.address, self.tracker, self._code = address, tracker, code

    @cached_property
    def extent(self) -> tuple[int, int]:
        """Addresses between which the object's code lies; the code of others may, too."""
        sections = llvm.ObjectFileRef.from_data(self._code).sections()
        size = sum(section.size() for section in sections if section.is_text())
        return self.address - size, self.address + size


def linker() -> Linker:
    """The one linker of the process, whichever thread asks first."""
    with _lock:
        return _linker()


@functools.cache
def _linker() -> Linker:
    return Linker()
