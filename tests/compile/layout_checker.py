"""Whether the layouts of every op of a module fit: what the lowering takes for granted.

The rules are written down here anew, by where elements are; an op that has none is an error.
"""

import functools
from typing import Any

import numpy as np

from proton.dialect.diagnostics import shape_of
from proton.dialect.mlir import ir
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import all_ops
from proton.layout.linear import LinearLayout

# Each thread does the same to its registers, one after the other.
_ALIKE = (
    "tt.addptr tt.bitcast tt.load tt.store tt.atomic_rmw tt.atomic_cas tt.fp_to_fp tt.mulhiui "
    "tt.precise_sqrt tt.precise_divf tt.extern_elementwise tt.int_to_ptr tt.ptr_to_int tt.scan "
    "tt.histogram ttg.async_copy_global_to_local ttng.warp_group_dot_wait"
).split()
# Any layout on each side, or none at all.
_ANY = (
    "ttg.convert_layout ttg.local_alloc tt.splat tt.unsplat tt.make_range tt.print tt.assert "
    "arith.constant tt.get_program_id tt.get_num_programs ttg.barrier tt.debug_barrier "
    "ttg.local_load ttg.local_store"
).split()


def places(value: Any) -> np.ndarray:
    """The index of each register of each lane and warp."""
    return _table(layout_of(value.type))


@functools.lru_cache(256)
def _table(layout: LinearLayout) -> np.ndarray:
    return layout.table("register", "lane", "warp")


def numbers(value: Any) -> np.ndarray:
    """The same, as row-major numbers of elements."""
    shape = shape_of(value)
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    result: np.ndarray = places(value) @ np.array(strides, np.int64)
    return result


def check_layouts(module: Any) -> int:
    """Checks every op; how many tensors there were."""
    ops = [op for op in all_ops(module) if op.name.partition(".")[0] not in ("scf", "func")]
    for op in ops:
        tensors = [v for v in [*op.operands, *op.results] if is_tensor(v.type)]
        if tensors and op.name not in _ANY:
            assert fits(op, tensors), f"the layouts of this op do not fit:\n{op}"
    return sum(len(op.results) for op in ops if op.results and is_tensor(op.results[0].type))


def fits(op: Any, tensors: list[Any]) -> bool:
    """Whether every thread has in its registers what it needs, in the order it needs it."""
    if op.name in _ALIKE or op.name.startswith(("arith.", "math.")):
        same = [v for v in tensors if op.name != "tt.histogram" or v not in list(op.results)]
        return len({v.type.encoding for v in same}) == 1
    first, last = tensors[0], tensors[-1]
    match op.name:
        case "tt.expand_dims" | "tt.reshape":
            return np.array_equal(numbers(first), numbers(last))
        case "tt.trans":
            order = list(ir.DenseI64ArrayAttr(op.attributes["order"]))
            return np.array_equal(places(first)[..., order], places(last))
        case "tt.broadcast":
            return _broadcasts(layout_of(first.type), tuple(shape_of(first)), layout_of(last.type))
        case "tt.join":
            left, right, joined = map(places, tensors)
            return (
                np.array_equal(left, right)
                and all(np.array_equal(joined[side::2, ..., :-1], left) for side in (0, 1))
                and all((joined[side::2, ..., -1] == side).all() for side in (0, 1))
            )
        case "tt.split":
            whole, *halves = map(places, tensors)
            return all(
                np.array_equal(
                    whole[whole[..., -1] == side].reshape(*half.shape[:-1], -1)[..., :-1], half
                )
                for side, half in enumerate(halves)
            )
        case "tt.dot":  # of no layout yet
            return op.operands[2].type == op.results[0].type
        case "ttng.mma_sync":
            return _mma_fits(*op.operands, op.results[0])
        case "ttng.warp_group_dot":
            return op.operands[2].type == op.results[0].type
        case "tt.reduce":
            axis = ir.IntegerAttr(op.attributes["axis"]).value
            sources = list(op.operands)
            results = [v for v in op.results if is_tensor(v.type)]
            return len({v.type.encoding for v in sources}) == 1 and all(
                _reduces(layout_of(sources[0].type), layout_of(result.type), axis)
                for result in results
            )
        case "tt.gather":
            return bool(tensors[1].type.encoding == last.type.encoding)
        case "ttg.dot":
            return bool(first.type == last.type)
    raise AssertionError(f"no rule for {op}")


# Remembered: the same ops are looked at after each pass.


@functools.lru_cache(4096)
def _broadcasts(source: LinearLayout, shape: tuple[int, ...], result: LinearLayout) -> bool:
    """Each thread has of a source of this shape what it needs for its elements of the result."""
    have, need = _table(source), np.where(np.array(shape) > 1, _table(result), 0)
    return all(
        {tuple(i) for i in need[:, lane, warp]} == {tuple(i) for i in have[:, lane, warp]}
        for lane in range(need.shape[1])
        for warp in range(need.shape[2])
    )


@functools.lru_cache(4096)
def _reduces(source_layout: LinearLayout, result_layout: LinearLayout, axis: int) -> bool:
    """Each thread is left with its other indices, or with some of them, each once, in the order of
    its registers; all threads of a warp that differ along the axis have all together."""
    kept, result = np.delete(_table(source_layout), axis, axis=-1), _table(result_layout)
    for warp in range(kept.shape[2]):
        have = dict[Any, set[Any]]()
        for lane in range(kept.shape[1]):
            own = list(dict.fromkeys(tuple(i) for i in kept[:, lane, warp]))
            left = [tuple(i) for i in result[:, lane, warp]]
            if left != [i for i in own if i in set(left)]:
                return False
            have.setdefault(tuple(own), set()).update(left)
        if any(set(own) != left for own, left in have.items()):
            return False
    return True


def _mma_fits(a: Any, b: Any, acc: Any, result: Any) -> bool:
    """A lane of `mma` has rows lane / 4 of a and columns lane / 4 of b; of the result, columns
    2 (lane % 4) and the next one (PTX ISA, "Matrix Fragments for mma.m16n8k16")."""
    left, right, total = places(a)[0], places(b)[0], places(acc)[0]
    lanes = np.arange(32)[:, None]
    return (
        acc.type == result.type
        and ((left[..., 0] % 8) == lanes // 4).all()
        and ((right[..., 1] % 8) == lanes // 4).all()
        and ((total[..., 0] % 8) == lanes // 4).all()
        and ((total[..., 1] % 8) == 2 * (lanes % 4)).all()
        # Warps that share rows of the result share rows of a, and columns those of b.
        and (left[..., 0] == total[..., 0]).all()
        and (right[0, :, 1] // 8 == total[0, :, 1] // 8).all()
    )
