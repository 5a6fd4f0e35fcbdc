"""The first stage of every back end: the tile IR of the front end, simplified."""

from collections.abc import Sequence

from proton.passes import Pass, Upstream
from proton.trace.instrumentation import Instrumentation
from proton.transforms.records.detach_records import DetachRecords
from proton.transforms.records.name_called_scopes import NameCalledScopes
from proton.transforms.records.number_iterations import NumberIterations
from proton.transforms.records.strip_records import StripRecords
from proton.transforms.tile.across_control_flow import AcrossControlFlow
from proton.transforms.tile.combine import Combine
from proton.transforms.tile.drop_dead_values import DropDeadValues
from proton.transforms.tile.loop_unroll import LoopUnroll
from proton.transforms.tile.mangle_symbols import MangleSymbols
from proton.transforms.tile.reorder_broadcast import ReorderBroadcast
from proton.transforms.tile.rewrite_tensor_descriptor_to_pointer import (
    RewriteTensorDescriptorToPointer,
)
from proton.transforms.tile.rewrite_tensor_pointer import RewriteTensorPointer


def first_passes(instrumentation: Instrumentation | None) -> list[Pass]:
    """What becomes of scopes: first, so that without instrumentation no pass sees anything of
    them."""
    if instrumentation is None:
        return [StripRecords()]
    return [
        NameCalledScopes(auto=bool(instrumentation.auto)),
        NumberIterations(),
        DetachRecords(instrumentation.placement),
    ]


def ttir_passes(
    instrumentation: Instrumentation | None, descriptors: Sequence[Pass] = ()
) -> list[Pass]:
    """Target-independent simplification; without `instrumentation` records go.
    `descriptors` are passes of a back end that has better than pointers for tensor descriptors."""
    return [
        *first_passes(instrumentation),
        RewriteTensorPointer(),
        *descriptors,
        RewriteTensorDescriptorToPointer(),
        Upstream("canonicalize,cse"),
        Combine(),
        ReorderBroadcast(),
        Upstream("canonicalize,cse"),
        AcrossControlFlow(),
        LoopUnroll(),
        DropDeadValues(),
        Upstream("canonicalize,cse"),
        Upstream("symbol-dce"),
        # Before any pass declares a function of a library, whose name a kernel may have.
        MangleSymbols(),
    ]
