"""Tables of rules: each op of our dialects has an entry, or a reason to have none."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import proton
from proton.compat.triton.text.tiles import GENERIC
from proton.compat.triton.text.translator import FORMS
from proton.conversion import triton_arith_to_linalg as tiles_on_cpu
from proton.conversion import triton_pointers_to_llvm as pointers_on_cpu
from proton.conversion.ttg_to_llvm.core.lowering import RULES as ON_GPU
from proton.conversion.ttg_to_llvm.nvidia import NVIDIA
from proton.dialect import name_of, proton_gpu, tt, ttg, ttng
from proton.dialect import proton as profiling
from proton.dialect.context import mlir_context
from proton.dialect.mlir import OpView
from proton.interpreter import program as interpreter  # noqa: F401 - fills the tables
from proton.interpreter.plan import MAKERS, REGION_MAKERS

PROTON = Path(str(proton.__file__)).parent


def because(reason: str, *ops: type[OpView]) -> dict[str, str]:
    """Why ops have no rule."""
    return {name_of(op): reason for op in ops}


IN_NO_TABLE = {
    **because(
        "the op around it takes its operands",
        *(tt.ReduceReturnOp, tt.ScanReturnOp, tt.MapElementwiseReturnOp),
    ),
    **because("proton/compat/triton/text/scaled.py replaces it", tt.DotScaledOp, tt.Fp4ToFpOp),
}
AS_POINTERS = because(
    "rewrite-tensor-pointer and rewrite-tensor-descriptor-to-pointer replace it",
    *(tt.MakeTensorPtrOp, tt.AdvanceOp, tt.MakeTensorDescOp, tt.DescriptorLoadOp),
    *(tt.DescriptorStoreOp, tt.DescriptorReduceOp, tt.DescriptorGatherOp),
    *(tt.DescriptorScatterOp, tt.DescriptorSizeOp, tt.DescriptorStrideOp),
)

# table -> (its rules, the dialects, what it lacks, and why)
TABLES: dict[str, tuple[Mapping[str, Any], tuple[Any, ...], dict[str, str]]] = {
    "GPU": (
        ON_GPU | NVIDIA.own,
        (tt.TT, ttg.TTG, ttng.TTNG, proton_gpu.ProtonGPU),
        IN_NO_TABLE
        | AS_POINTERS
        | because("tritongpu-accelerate-matmul chooses an instruction", tt.DotOp)
        | because("membar makes a ttg.barrier of it", tt.DebugBarrierOp)
        | because("allocate-tensor-maps makes an argument of it", ttng.TensorMapOp)
        | because("tma-lowering makes a copy of it", ttng.TMALoadOp, ttng.TMAStoreOp)
        | because("resolve-auto-encodings replaces it", ttg.SetAutoLayoutOp)
        | because(
            "allocate-warp-groups makes a ttg.warp_specialize of it",
            *(ttg.WorkerOp, ttg.StartWorkersOp, ttg.JoinWorkersOp),
        ),
    ),
    "CPU": (
        {**tiles_on_cpu.RULES, **pointers_on_cpu._RULES, **pointers_on_cpu._ACCESSES},
        (tt.TT,),
        IN_NO_TABLE
        | AS_POINTERS
        | because("an argument of the function", tt.GetProgramIdOp, tt.GetNumProgramsOp)
        | because("its lowering takes the kernel's arguments, too", tt.AssertOp, tt.PrintOp),
    ),
    "interpreter": (
        {**MAKERS, **REGION_MAKERS, **tt.IN_ARITH},
        (tt.TT, profiling.Proton),
        IN_NO_TABLE,
    ),
}


@pytest.mark.parametrize("table", TABLES)
def test_each_op_has_a_rule_or_a_reason(table: str) -> None:
    rules, dialects, without = TABLES[table]
    names = {op.OPERATION_NAME for dialect in dialects for op in dialect.operations}
    assert len(names) > 50
    assert names - rules.keys() == without.keys()


def test_each_op_that_triton_prints_is_read() -> None:
    """Of `tt` those that Triton has by the same name."""
    ours = {
        *(tt.DebugBarrierOp, tt.GridDependencyOp, tt.SpecialRegisterOp, *tt.ASSEMBLY),
        *(tt.DescriptorSizeOp, tt.DescriptorStrideOp, tt.Fp4ToFpOp, tt.ReduceReturnOp),
        *(tt.ScanReturnOp, tt.MapElementwiseReturnOp),
    }
    read = FORMS.keys() | GENERIC.keys()
    assert {op.OPERATION_NAME for op in tt.TT.operations} - read <= set(map(name_of, ours))


def test_an_op_is_named_by_its_class() -> None:
    """Its name as text stands in the dialects, in the readers of text, and hardly anywhere else."""
    allowed = ("dialect/", "compat/")
    found: dict[str, list[str]] = {}
    with mlir_context() as context:
        for file in sorted(PROTON.rglob("*.py")):
            place, source = str(file.relative_to(PROTON)), file.read_text()
            if not re.search(r"""["'][a-z_]+\.""", source):
                continue  # no text in it begins as a name does
            for node in ast.walk(ast.parse(source)):
                text = str(node.value) if isinstance(node, ast.Constant) else ""
                is_name = re.fullmatch(r"[a-z_]+\.[a-z_0-9.]+", text)
                if is_name and context.is_registered_operation(text):
                    found.setdefault(place, []).append(text)
    assert sum(len(texts) for texts in found.values()) > 200
    others = {place: texts for place, texts in found.items() if not place.startswith(allowed)}
    assert sum(len(texts) for texts in others.values()) < 10, others
