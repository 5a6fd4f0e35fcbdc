"""`IRSource`: a kernel whose IR is in a file."""

from functools import cached_property
from pathlib import Path

from proton.base.symbols import written
from proton.base.targets import GPUTarget, Target
from proton.language.ir_text import IRArgument, IRText
from proton.language.signature import Signature
from proton.language.types import pointer_type


class IRSource:
    """A file of IR, as `kernel.asm` has it, which `proton.compile` makes a kernel of. The file's
    suffix is the level: what is in `.ttir` goes through all passes, a `.ttgir`, of GPUs, through
    those behind it. `context` and `backend` are there since Triton has them, and mean nothing.

    `src` is the text, `ext` the suffix, `name` the kernel's. Raises CompilationError with the place
    of what does not parse, ProtonError for a file that cannot be read.
    """

    def __init__(
        self, path: str | Path | IRText, context: object = None, backend: object = None
    ) -> None:
        self.text = IRText.read(path)
        self.path, self.ext, self.src = self.text.file, self.text.level, self.text.text
        self.name, self.warps, self.arguments = self._read()

    def _read(self) -> tuple[str, int, dict[str, IRArgument]]:
        """The kernel's name, for how many warps it is (0 where nothing says it), its arguments."""
        from proton.backends import parsing, sources
        from proton.dialect.context import mlir_context

        with mlir_context():
            module = parsing.parsed(self.text)
            kernel = sources.kernel_of(module, self.text)
            name = written(kernel.attributes["sym_name"].value)
            warps = sources.warps_of(module, self.text)
            return name, warps, sources.arguments_of(kernel, self.text)

    @cached_property
    def signature(self) -> dict[int, str]:
        """The short names of the arguments' types, by number."""
        return {number: of.type.mangle() for number, of in enumerate(self.arguments.values())}

    def signature_for(self, target: Target) -> Signature:
        """What the kernel is compiled for. On a GPU that is also which addresses are multiples of
        16 bytes, which a CPU does not care for."""
        types = {name: of.type for name, of in self.arguments.items()}
        divisible = {
            name
            for name, of in self.arguments.items()
            if isinstance(of.type, pointer_type) and of.divisor > 1
        }
        return Signature(types, {}, frozenset(divisible if isinstance(target, GPUTarget) else ()))

    def parse_options(self) -> dict[str, int]:
        """The options of a launch that the text has decided."""
        return {"num_warps": self.warps} if self.warps else {}

    def hash(self) -> str:
        """A hash of what code depends on."""
        return self.text.hash
