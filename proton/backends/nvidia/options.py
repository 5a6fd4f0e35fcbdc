"""The options of a launch that change the code of a GPU kernel."""

from dataclasses import dataclass, field
from pathlib import Path

from proton.base.chips.nvidia import CLUSTER_SIZES
from proton.base.errors import CompilationError, InvalidOption
from proton.base.knobs import knobs
from proton.base.targets import DEFAULT_WARPS, GPUTarget, check_num_warps
from proton.language.ir_text import IRText
from proton.trace.instrumentation import Instrumentation


@dataclass(frozen=True)
class GPUOptions:
    """What changes the code of a kernel besides its signature; names are Triton's.

    Raises CompilationError for a value outside of its range. `num_stages` is the depth of
    the software pipelines of loops that feed tensor cores; 0 and 1 are none. With `launch_pdl`
    (programmatic dependent launch) the kernel may begin before the one before it has ended.
    With `launch_cooperative_grid` all programs run at once, or the launch fails. `num_ctas`, from
    9.0 on, changes nothing: a program runs in one block of threads, and no clusters are made.
    With `debug`, overflows of integers are asserted against, too, unless `sanitize_overflow` is
    False.
    `default_dot_input_precision` is that of products which ask for none.
    `ir_override`, a file of IR, is compiled in the place of the kernel; it is read at once.
    """

    target: GPUTarget
    num_warps: int = DEFAULT_WARPS
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = field(default_factory=lambda: knobs.default_fp_fusion)
    debug: bool = False
    sanitize_overflow: bool = True
    launch_pdl: bool = False
    launch_cooperative_grid: bool = False
    default_dot_input_precision: str = "tf32"
    ir_override: IRText | str | Path | None = None
    instrumentation: Instrumentation | None = None
    chooses_warps: bool = False  # whoever launches gave no `num_warps`
    describes_loads: bool = False  # who launches makes maps of what pointers load
    single_buffers: bool = True  # where shared memory has room for no more
    worker_warps: int = 0  # of groups beside the program's own: the kernel says how many

    def __post_init__(self) -> None:
        if self.ir_override is not None:
            object.__setattr__(self, "ir_override", IRText.read(self.ir_override))
        check_num_warps(self.num_warps)
        if not _is_int(self.num_stages) or self.num_stages < 0:
            raise _invalid("num_stages", "an integer that is not negative", self.num_stages)
        if not self.target.facts.has_clusters and self.num_ctas != 1:
            raise _invalid("num_ctas", f"1 on {self.target.facts.name}", self.num_ctas)
        if not _is_int(self.num_ctas) or self.num_ctas not in CLUSTER_SIZES:
            raise _invalid("num_ctas", f"one of {CLUSTER_SIZES}", self.num_ctas)
        if self.launch_pdl and not self.target.facts.has_dependent_launch:
            raise _invalid("launch_pdl", f"False on {self.target.facts.name}", self.launch_pdl)
        most = self.target.facts.max_registers
        if self.maxnreg is not None and (
            not _is_int(self.maxnreg) or not 1 <= self.maxnreg <= most
        ):
            raise _invalid("maxnreg", f"from 1 to {most}", self.maxnreg)

    def check_samples(self) -> None:
        """Raises InvalidOption where no warp of a program records."""
        profiled, warps = self.instrumentation, self.program_warps
        if profiled is not None and not profiled.sampled_units(warps):
            raise _invalid("sample_warps", f"of warps below {warps}", profiled.sample_warps)

    @property
    def program_warps(self) -> int:
        """All warps of a program."""
        return self.num_warps + self.worker_warps

    @property
    def arch(self) -> str:
        """The architecture, as Triton writes it."""
        return f"sm{self.target.arch}"

    @property
    def text(self) -> IRText | None:
        """What `ir_override` has."""
        return self.ir_override if isinstance(self.ir_override, IRText) else None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid(name: str, rule: str, value: object) -> CompilationError:
    return InvalidOption(f"{name} must be {rule}, got {value!r}")
