"""What an op does besides computing its results.

The bindings cannot declare an op of ours speculatable, so MLIR's own code motion leaves ours where
they are; our passes ask here.
"""

from typing import Any

_TILE_OPS = frozenset(
    "tt.splat tt.unsplat tt.addptr tt.make_range tt.broadcast tt.expand_dims tt.reshape tt.trans "
    "tt.join tt.split tt.bitcast tt.int_to_ptr tt.ptr_to_int tt.fp_to_fp tt.mulhiui "
    "tt.precise_sqrt tt.precise_divf tt.get_program_id tt.get_num_programs tt.reduce tt.scan "
    "tt.gather tt.histogram ttg.convert_layout".split()
)
# Undefined for some operands: they must not run where the program would not run them.
_PARTIAL = frozenset(
    f"arith.{name}" for name in "divsi divui remsi remui ceildivsi ceildivui floordivsi".split()
)
_WRITES = frozenset(
    "tt.store tt.atomic_rmw tt.atomic_cas tt.print tt.assert tt.debug_barrier func.call".split()
)


def is_speculatable(op: Any) -> bool:
    """Whether the op may run where the program would not run it, any number of times."""
    if op.name == "tt.extern_elementwise":
        return bool(op.attributes["pure"].value)
    is_upstream = op.name.startswith(("arith.", "math.")) and op.name not in _PARTIAL
    return is_upstream or op.name in _TILE_OPS


def may_write(op: Any) -> bool:
    """Whether the op may change memory, or order what others do to it."""
    return op.name in _WRITES
