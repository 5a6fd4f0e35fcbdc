"""What AMD's GPUs need of the lowering. They have no rules of their own: ops that only other GPUs
have are never made for them."""

from proton.conversion.ttg_to_llvm.amd import primitives
from proton.conversion.ttg_to_llvm.core.lowering import Machine, Rule
from proton.dialect import OpRules

AMD = Machine(primitives, OpRules[Rule]())
