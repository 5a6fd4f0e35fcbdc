"""The rules of ops that only NVIDIA's GPUs have, or whose code is PTX."""

from proton.conversion.ttg_to_llvm.core.lowering import Rule
from proton.dialect import OpRules

RULES = OpRules[Rule]()
lowers = RULES.of
