"""Tensor maps become arguments of the kernel, which the host makes before each launch."""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.tensor_maps import plan_of
from proton.base.errors import PassError
from proton.dialect import names_of, ttng
from proton.dialect.abi import AddedArgument, add_argument
from proton.dialect.attributes import TENSOR_MAP
from proton.dialect.mlir import Module, Type, Value, ir
from proton.dialect.tensor_maps import add_tensor_map
from proton.dialect.walk import kernel_functions, ops_named, replace
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class AllocateTensorMaps(Pass):
    """An argument for each `ttng.tensor_map`; `ttng.tensor_maps` says what they are made of.

        %t = ttng.tensor_map %a, %m, %n, %stride
    becomes the last argument of `@kernel(%a, %m, %n, %stride, %t)`. Each is prefetched first: else
    the first copy by it would wait for 128 bytes of global memory.
    """

    name: ClassVar[str] = "allocate-tensor-maps"
    only_for: ClassVar[frozenset[str]] = names_of(ttng.TensorMapOp)

    def run(self, module: Module) -> None:
        for kernel in kernel_functions(module):
            known: dict[tuple[str, Type], Value] = {}
            for op in ops_named(kernel, ttng.TensorMapOp):
                plan, type_ = plan_of(op), op.results[0].type
                if plan is None:
                    raise PassError(f"the host cannot make this tensor map (at {op.location})")
                key = str(plan), type_
                if key not in known:
                    known[key] = add_argument(kernel, AddedArgument.TENSOR_MAP, type_)
                    add_tensor_map(kernel, plan)
                    attributes = list(kernel.attributes["arg_attrs"])
                    attributes[-1] = ir.DictAttr.get({TENSOR_MAP: ir.UnitAttr.get()})
                    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
                replace(op, [known[key]])
            block = kernel.regions[0].blocks[0]
            with ir.InsertionPoint.at_block_begin(block), kernel.location:
                for argument in known.values():
                    ttng.PrefetchTensorMapOp(argument)
