"""What AMD's GPUs need of the lowering: their primitives, and errors for what they lack."""

from proton.base.errors import CompilationError
from proton.conversion.ttg_to_llvm.amd import primitives
from proton.conversion.ttg_to_llvm.core.lowering import Hardware, Lowering, Rule, Site
from proton.dialect import OpRules, by_name, tt
from proton.dialect.mlir import Value
from proton.dialect.walk import source_span

RULES = OpRules[Rule]()
AMD = Hardware(primitives, RULES)
_LACKING = by_name(
    {
        tt.PrintOp: "tl.device_print",
        tt.AssertOp: "tl.device_assert",
        tt.ExternElementwiseOp: "a function of libdevice",
        tt.InlineAsmOp: "inline PTX",
        tt.InlineAsmWithEffectsOp: "inline PTX",
        tt.SpecialRegisterOp: "a register of PTX",
        tt.GridDependencyOp: "programmatic dependent launch",
    }
)


@RULES.of(*_LACKING)
def _lacking(ctx: Lowering, site: Site) -> list[Value]:
    raise CompilationError(
        f"{_LACKING[site.op.name]} is not supported on AMD GPUs",
        source_span(site.op.location),
        hint="leave it out where tl.target_info.is_hip() holds",
    )
