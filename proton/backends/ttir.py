"""The first stage of every back end: the tile IR of the front end, simplified."""

from collections.abc import Sequence

from proton.passes import Pass, Upstream
from proton.trace.instrumentation import Instrumentation
from proton.transforms.across_control_flow import AcrossControlFlow
from proton.transforms.combine import Combine
from proton.transforms.detach_records import DetachRecords
from proton.transforms.loop_unroll import LoopUnroll
from proton.transforms.mangle_symbols import MangleSymbols
from proton.transforms.name_called_scopes import NameCalledScopes
from proton.transforms.number_iterations import NumberIterations
from proton.transforms.reorder_broadcast import ReorderBroadcast
from proton.transforms.rewrite_tensor_descriptor_to_pointer import (
    RewriteTensorDescriptorToPointer,
)
from proton.transforms.rewrite_tensor_pointer import RewriteTensorPointer
from proton.transforms.strip_records import StripRecords


def ttir_passes(
    instrumentation: Instrumentation | None, descriptors: Sequence[Pass] = ()
) -> list[Pass]:
    """Target-independent simplification; without `instrumentation` records go.
    `descriptors` are passes of a back end that has better than pointers for tensor descriptors."""
    return [
        # First, so that without instrumentation nothing of a scope is seen by any pass.
        *(
            [StripRecords()]
            if instrumentation is None
            else [
                NameCalledScopes(auto=bool(instrumentation.auto)),
                NumberIterations(),
                DetachRecords(instrumentation.placement),
            ]
        ),
        RewriteTensorPointer(),
        *descriptors,
        RewriteTensorDescriptorToPointer(),
        Upstream("canonicalize,cse"),
        Combine(),
        ReorderBroadcast(),
        Upstream("canonicalize,cse"),
        AcrossControlFlow(),
        LoopUnroll(),
        Upstream("canonicalize,cse"),
        Upstream("symbol-dce"),
        # Before any pass declares a function of a library, whose name a kernel may have.
        MangleSymbols(),
    ]
