"""Pins: empty inline assembly on data, which LLVM and the assembler move no arithmetic across."""


from proton.conversion.ttg_to_llvm import nvidia
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, lowers
from proton.dialect.mlir import Value


@lowers("proton_gpu.pin")
def _pin(ctx: Lowering, site: Site) -> list[Value]:
    return [_pinned(site.operands[0])]


def _pinned(value: Value) -> Value:
    """The value through empty inline assembly, word by word."""
    if not v.is_vector(value.type):
        alone = v.insert(v.poison(v.vector(1, value.type)), value, 0)
        return v.extract(_pinned(alone), 0)
    kept = nvidia.pinned(v.to_elements(v.to_words(value)))
    return v.from_words(v.from_elements(kept), value.type)
