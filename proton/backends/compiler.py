"""What a back end is to the compiler: one `Compiler` object, and the kernels that it makes.

`proton/compiler.py` knows the cache and the steps; whatever differs between devices it asks this
object. Nothing here needs MLIR, so a process that finds its kernels on disk does without.
"""

import base64
import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from proton.base import markup
from proton.base.errors import CompilationError, LaunchError, ProtonError
from proton.base.locations import without_locations
from proton.base.targets import GPUTarget as GPUTarget
from proton.base.targets import Target
from proton.language.function import DeviceFunction
from proton.language.ir_text import IRText
from proton.language.signature import Signature
from proton.trace.profile import KernelProfile

LOCATED = frozenset({"ttir", "ttgir", "ttsir"})  # levels whose files have lines of the source
RUN_LEVELS = (*sorted(LOCATED), "ptx", "cubin")  # what runs keep of a kernel that records
# Of a kernel's metadata, what a notebook shows of it.
SHOWN = ("target", "signature", "num_warps", "n_regs", "n_spills", "shared")


@dataclass
class CompileResult:
    """Code and everything worth keeping beside it, as files by name; `data` is JSON: the kernel's
    metadata, but for what all have."""

    data: dict[str, object]
    files: dict[str, bytes]
    times: dict[str, float] = field(default_factory=dict)  # ms by stage


class LevelText(str):
    """The text of a level of a kernel, which shows itself in notebooks."""

    level: str

    @classmethod
    def of(cls, level: str, text: str) -> "LevelText":
        """That of a level."""
        made = cls(text)
        made.level = level
        return made

    def _repr_html_(self) -> str:
        return markup.listing(self.level, self, is_open=True)


class Asm(Mapping[str, Any]):
    """The levels of a kernel by name: text, except machine code (bytes).

    The last level is disassembled on first use, which takes half a second for a GPU, and raises
    ProtonError where the disassembler is not to be found.
    """

    def __init__(
        self, compiler: "Compiler[Any, Any]", files: dict[str, bytes], source: str
    ) -> None:
        self._compiler, self._files, self._source = compiler, files, source
        self._disassembled: str | None = None

    @property
    def binary(self) -> frozenset[str]:
        """The levels that are bytes."""
        return self._compiler.binary

    def __getitem__(self, level: str) -> Any:
        if level == "source":
            return LevelText.of(level, self._source)
        if level == self._compiler.disassembly:
            if self._disassembled is None:
                self._disassembled = self._compiler.disassemble(self)
            return LevelText.of(level, self._disassembled)
        if level not in self._compiler.levels:
            raise KeyError(f"{level}: the levels of this kernel are {', '.join(self)}")
        content = self.kept(level)
        if level in self._compiler.binary:
            return self._compiler.named(content, self._files)
        text = self._compiler.shown(level, content.decode())
        return LevelText.of(level, without_locations(text) if level in LOCATED else text)

    def kept(self, level: str) -> bytes:
        """A level as its file in the cache has it: of machine code what launches load."""
        file = self._compiler.levels[level]
        if file not in self._files:
            raise KeyError(f"{level}: the kernel was compiled from IR that is behind it")
        return self._files[file]

    def for_runs(self) -> dict[str, str]:
        """The levels that runs keep, with their locations; machine code in base 64."""
        kept = {n: self._files[file] for n, file in self.file_names.items() if n in RUN_LEVELS}
        return {
            name: (base64.b64encode(content) if name in self.binary else content).decode()
            for name, content in kept.items()
        }

    @property
    def file_names(self) -> dict[str, str]:
        """Of each level that is kept its file in the cache."""
        return {n: file for n, file in self._compiler.levels.items() if file in self._files}

    def __iter__(self) -> Iterator[str]:
        disassembly = self._compiler.disassembly
        return iter(["source", *self.file_names, *([disassembly] if disassembly else [])])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<Asm: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        """The levels in a notebook, each behind a click; machine code by its size."""
        return "".join(self._listing(level) for level in self)

    def _listing(self, level: str) -> str:
        try:
            content = self[level]
        except ProtonError as error:  # no disassembler
            content = str(error)
        return markup.listing(
            level, f"{len(content)} bytes" if isinstance(content, bytes) else content
        )


class Metadata(dict[str, Any]):
    """Facts of a kernel, as entries (`metadata["shared"]`) and as attributes: `metadata.shared`,
    and the options that it was compiled with. As an attribute `target` is the Target itself."""

    options: object = None  # of the compiler; set once they are known

    def __getattr__(self, name: str) -> Any:
        if name in self and name != "target":
            return self[name]
        if hasattr(self.options, name):
            return getattr(self.options, name)
        raise AttributeError(f"the metadata of a kernel has no {name!r}; there are {[*self]}")

    def _asdict(self) -> dict[str, Any]:
        """The facts alone: of Triton's kernels the metadata is a named tuple."""
        return dict(self)


class SourceOfKernel(NamedTuple):
    """`kernel.src`: the function and what it was compiled for: types by their short names, of
    constants "constexpr", of a tuple those of its elements; and the constants."""

    fn: Any
    signature: Mapping[str, Any]
    constants: Mapping[str, object]


@dataclass
class CompiledKernel:
    """A kernel for one signature and set of options: `kernel[grid](...)` launches it.

    `metadata` is what the launcher needs, and for every back end has `name`, `symbol`, `target`,
    `signature` and `profile` (a KernelProfile as plain data, or None); `times` the milliseconds of
    each compile stage, empty after a cache hit.
    """

    name: str
    key: str
    metadata: Metadata
    asm: Asm
    times: dict[str, float] = field(default_factory=dict)
    from_cache: bool = False

    def made_of(self, fn: DeviceFunction, signature: Signature, options: object) -> None:
        """Notes what it was compiled from."""
        self.fn, self.signature, self.options = fn, signature, options
        self.metadata.options = options

    @property
    def src(self) -> SourceOfKernel:
        """What it was compiled from, as Triton's kernels say it."""
        types, tuples = self.signature.types, self.signature.tuples

        def said(name: str) -> Any:
            if name in tuples:
                return tuple(map(said, tuples[name].names(name)))
            return types[name].mangle() if name in types else "constexpr"

        signature = {name: said(name) for name in self.fn.arg_names}
        return SourceOfKernel(self.fn, signature, self.signature.constants)

    def __getstate__(self) -> dict[str, object]:
        """What a pickle has of it: all but what a process makes of it when it launches it."""
        kept = (*(f.name for f in fields(CompiledKernel)), "fn", "signature", "options")
        return {name: value for name, value in self.__dict__.items() if name in kept}

    @property
    def hash(self) -> str:
        """What it is filed under on disk."""
        return self.key

    @property
    def kernel(self) -> bytes:
        """The machine code."""
        (level,) = self.asm.binary
        code: bytes = self.asm[level]
        return code

    def _init_handles(self) -> None:
        """Nothing: what Triton's users load the code for (`n_regs`, `n_spills`) is known before.
        A launch loads it."""

    def __getitem__(self, grid: object) -> Any:
        """Launches as `fn[grid]` does, with the constants and options that this was compiled
        with: the launch takes all arguments, or those that are no constexprs."""
        return functools.partial(self._launch, grid)

    def _launch(self, grid: object, *args: object, **named: object) -> object:
        parameters = self.fn.params  # type: ignore[attr-defined]  # of what can be launched
        constexprs = {p.name for p in parameters if p.is_constexpr}
        names = [name for name in self.fn.arg_names if name not in constexprs]
        if len(args) == len(self.fn.arg_names):
            names = self.fn.arg_names
        given = dict(zip(names, args, strict=False))
        if named or len(given) != len(args) or len(args) != len(names):
            raise LaunchError(
                f"{self.name}: a compiled kernel takes its {len(names)} arguments that are no "
                f"constexprs, or all {len(self.fn.arg_names)}, by position, got "
                f"{', '.join([str(len(args)), *named])}"
            )
        given |= {name: self.signature.constants[name] for name in constexprs}
        home = self.fn.home([given[name] for name in self.fn.arg_names])  # type: ignore[attr-defined]
        if not self.metadata["target"].startswith(home.name):
            raise LaunchError(
                f"{self.name} was compiled for {self.metadata['target']}, and its arguments are "
                f"of {home.name}: launch {self.name}[grid](...), which compiles for those"
            )
        known = self.fn.options  # type: ignore[attr-defined]
        return self.fn[grid](**given, **asked_options(self.options, known))  # type: ignore[index]

    @cached_property
    def profile(self) -> KernelProfile | None:
        """What launches of the kernel record; None where they do not."""
        plain = self.metadata["profile"]
        return None if plain is None else KernelProfile.from_plain(plain)

    def _repr_html_(self) -> str:
        """The kernel in a notebook: what it was compiled for, how long that took, its levels."""
        known = {name: self.metadata.get(name) for name in SHOWN}
        times = ", ".join(f"{stage} {ms:.1f}" for stage, ms in self.times.items())
        facts = {**{k: v for k, v in known.items() if v is not None}, "compiled (ms)": times}
        title = f"<div><b>{markup.text(self.name)}</b></div>"
        return f"{title}{markup.facts(facts)}{self.asm._repr_html_()}"


def asked_options(options: object, names: Iterable[str]) -> dict[str, object]:
    """The options of a launch by name; None for what it left to the compiler."""
    found = {name: getattr(options, name, None) for name in names}
    return found | ({"num_warps": None} if getattr(options, "chooses_warps", False) else {})


Options = TypeVar("Options")
Kernel = TypeVar("Kernel", bound=CompiledKernel)


class Compiler(ABC, Generic[Options, Kernel]):
    """How kernels are compiled for one kind of device. `Options` is a frozen dataclass whose
    `repr` says all that changes the code besides the signature."""

    levels: ClassVar[Mapping[str, str]]  # level of `kernel.asm` -> its file in the cache
    binary: ClassVar[frozenset[str]] = frozenset()  # the levels that are bytes
    disassembly: ClassVar[str | None] = None  # the level that `disassemble` makes, if there is one
    sources: ClassVar[tuple[str, ...]] = ()  # the levels that files of IR may be of
    kernel: type[Kernel] = CompiledKernel  # type: ignore[assignment]  # a subclass names its own

    @abstractmethod
    def identity(self, options: Options) -> dict[str, Any]:
        """What machine code depends on besides Proton, the kernel and the options: part of the
        cache's key."""

    @abstractmethod
    def compile(
        self, fn: DeviceFunction, signature: Signature, options: Options, label: str
    ) -> CompileResult:
        """Compiles; `label` names the folder of the dumps. Raises CompilationError for the user's
        mistakes, PassError for ours."""

    def chosen(
        self, target: Target, options: dict[str, Any], fn: DeviceFunction | None = None
    ) -> Options:
        """The options for a target, from those that a launch may be given by name, as far as the
        code of `fn` may depend on them."""
        raise ProtonError(f"kernels for {target} are compiled by launches and warmup alone")

    def shown(self, level: str, text: str) -> str:
        """The text of a level as `kernel.asm` has it, from that of its file."""
        return text

    def named(self, code: bytes, files: Mapping[str, bytes]) -> bytes:
        """Machine code as `kernel.asm` has it; `files` are those of all levels."""
        return code

    def check_source(self, text: IRText | None, target: Target) -> None:
        """Raises CompilationError where compiling for a target cannot begin at the level of a
        file."""
        if text is not None and text.level not in self.sources:
            names = " and ".join(f".{level}" for level in self.sources) or "no"
            raise CompilationError(
                f"IR for {target} is in {names} files, got {text.file}",
                hint="a file's suffix is the name of its level in kernel.asm",
            )

    def warm_up(self) -> None:
        """Loads what compiling takes, which is not loaded before."""

    def disassemble(self, asm: Asm) -> str:
        """The machine code as text."""
        raise NotImplementedError(f"{type(self).__name__} has no disassembler")


BaseBackend = Compiler  # as Triton calls it
