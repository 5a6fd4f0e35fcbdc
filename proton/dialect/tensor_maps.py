"""The tensor maps that the host makes for a kernel, as an attribute of its function: what each is
made of (proton/analysis/tensor_maps.py), in the order of the arguments."""

import json

from proton.dialect.attributes import TENSOR_MAPS
from proton.dialect.builtin import strings_attr
from proton.dialect.mlir import Operation, ir
from proton.layout.tensor_map import TensorMapPlan


def tensor_maps_of(function: Operation) -> list[TensorMapPlan]:
    """What a launcher makes before it launches the kernel."""
    if TENSOR_MAPS not in function.attributes:
        return []
    return [json.loads(text.value) for text in ir.ArrayAttr(function.attributes[TENSOR_MAPS])]


def add_tensor_map(function: Operation, plan: TensorMapPlan) -> None:
    """Appends one."""
    texts = [json.dumps(known) for known in (*tensor_maps_of(function), plan)]
    function.attributes[TENSOR_MAPS] = strings_attr(texts)
