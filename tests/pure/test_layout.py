"""Linear layouts: the algebra by its laws, and the named instances by the PTX ISA's tables."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.layout import LinearLayout, NotDivisible, named
from proton.layout.thread_memory import thread_memory


@st.composite
def layouts(draw: st.DrawFn, ins: tuple[str, ...] = ("a", "b"), max_bits: int = 4) -> LinearLayout:
    outs = {name: 1 << draw(st.integers(0, 3)) for name in ("x", "y")}
    return LinearLayout.of(
        {
            name: draw(
                st.lists(
                    st.tuples(*(st.integers(0, size - 1) for size in outs.values())),
                    max_size=max_bits,
                )
            )
            for name in ins
        },
        outs,
    )


@st.composite
def bijections(draw: st.DrawFn) -> LinearLayout:
    """A random invertible layout: the unit vectors, shuffled by elementary operations."""
    bits = draw(st.integers(0, 6))
    columns = [1 << bit for bit in range(bits)]
    if bits > 1:
        for i, j in draw(st.lists(st.tuples(*[st.integers(0, bits - 1)] * 2), max_size=30)):
            if i != j:
                columns[i] ^= columns[j]
    low = draw(st.integers(0, bits))
    cut = draw(st.integers(0, bits))
    split = [(c & ((1 << low) - 1), c >> low) for c in columns]
    return LinearLayout.of(
        {"a": split[:cut], "b": split[cut:]}, {"x": 1 << low, "y": 1 << (bits - low)}
    )


def places(layout: LinearLayout) -> list[dict[str, int]]:
    ranges = [range(layout.in_size(name)) for name in layout.in_names]
    return [dict(zip(layout.in_names, p, strict=True)) for p in itertools.product(*ranges)]


@given(layouts())
def test_a_layout_is_linear(layout: LinearLayout) -> None:
    everywhere = {tuple(p.values()): tuple(layout.apply(**p).values()) for p in places(layout)}
    for left, right in itertools.islice(itertools.product(everywhere, repeat=2), 500):
        both = tuple(a ^ b for a, b in zip(left, right, strict=True))
        expected = tuple(a ^ b for a, b in zip(everywhere[left], everywhere[right], strict=True))
        assert everywhere[both] == expected


@given(layouts())
def test_the_table_is_apply_everywhere(layout: LinearLayout) -> None:
    table = layout.table("a", "b")
    for place in places(layout):
        assert tuple(table[place["a"], place["b"]]) == tuple(layout.apply(**place).values())


@given(layouts())
def test_rank_counts_the_elements_that_are_reached(layout: LinearLayout) -> None:
    reached = {tuple(layout.apply(**place).values()) for place in places(layout)}
    assert len(reached) == 1 << layout.rank
    assert layout.is_surjective == (len(reached) == layout.out_size("x") * layout.out_size("y"))
    assert layout.is_injective == (len(reached) == len(places(layout)))


@given(bijections())
def test_the_inverse_undoes(layout: LinearLayout) -> None:
    inverse = layout.invert()
    for place in places(layout):
        assert inverse.apply(**layout.apply(**place)) == place
    assert inverse.invert() == layout


@given(layouts(), bijections())
def test_composition_applies_one_after_the_other(first: LinearLayout, second: LinearLayout) -> None:
    outer = second.renamed({"a": "x", "b": "y", "x": "u", "y": "v"})
    if any(first.out_size(n) > outer.in_size(n) for n in ("x", "y")):
        with pytest.raises(ValueError, match="does not fit"):
            first.compose(outer)
        return
    composed = first.compose(outer)
    for place in places(first):
        assert composed.apply(**place) == outer.apply(**first.apply(**place))


@given(layouts(), layouts())
def test_a_product_divides_by_its_left_factor(tile: LinearLayout, rest: LinearLayout) -> None:
    product = tile * rest
    assert product.divide_left(tile) == rest
    shift = {name: tile.out_size(name) for name in ("x", "y")}
    for place in places(rest)[:16]:
        for low in places(tile)[:16]:
            whole = {n: low[n] + (place[n] << tile.in_bits(n)) for n in ("a", "b")}
            expected = {
                n: tile.apply(**low)[n] + rest.apply(**place)[n] * shift[n] for n in ("x", "y")
            }
            assert product.apply(**whole) == expected


@given(layouts(), layouts(), layouts())
def test_products_associate(a: LinearLayout, b: LinearLayout, c: LinearLayout) -> None:
    assert (a * b) * c == a * (b * c)
    assert a * LinearLayout.empty() == a


def test_what_does_not_divide_says_why() -> None:
    four = LinearLayout.identity(4, "lane", "x")
    with pytest.raises(NotDivisible, match="smaller than the tile"):
        LinearLayout.identity(2, "lane", "x").divide_left(four)
    strided = LinearLayout.of({"lane": [(2,), (1,)]}, {"x": 4})
    with pytest.raises(NotDivisible, match=r"bit 0 of lane is \(2,\), in the tile \(1,\)"):
        strided.divide_left(four)
    with pytest.raises(NotDivisible, match="reaches into the tile"):
        LinearLayout.of({"lane": [(1,), (2,), (3,)]}, {"x": 8}).divide_left(four)
    with pytest.raises(NotDivisible, match="input warp is not in the layout"):
        four.divide_left(LinearLayout.identity(2, "warp", "x"))


@given(bijections(), bijections())
def test_invert_and_compose_moves_each_element(a: LinearLayout, b: LinearLayout) -> None:
    b = b.renamed({"a": "c", "b": "d"})
    if dict(a.outs) != dict(b.outs):
        with pytest.raises(ValueError, match="outputs differ"):
            a.invert_and_compose(b)
        return
    move = a.invert_and_compose(b)
    for place in places(a):
        assert b.apply(**move.apply(**place)) == a.apply(**place)


@given(layouts(max_bits=6))
def test_a_pseudo_inverse_finds_a_place_of_every_element(layout: LinearLayout) -> None:
    if not layout.is_surjective:
        with pytest.raises(ValueError, match="covers"):
            layout.pseudo_invert()
        return
    back = layout.pseudo_invert()
    for x in range(layout.out_size("x")):
        for y in range(layout.out_size("y")):
            assert layout.apply(**back.apply(x=x, y=y)) == {"x": x, "y": y}


@given(layouts(max_bits=5))
def test_free_bits_are_those_that_add_nothing(layout: LinearLayout) -> None:
    masks = layout.free_bits()
    assert sum(mask.bit_count() for mask in masks.values()) == layout.total_in_bits - layout.rank


def test_bad_sizes_and_places_are_refused() -> None:
    with pytest.raises(ValueError, match="powers of two, got 3"):
        LinearLayout.identity(3, "lane", "x")
    with pytest.raises(ValueError, match="leaves x of size 2"):
        LinearLayout.of({"lane": [(2,)]}, {"x": 2})
    layout = LinearLayout.identity(4, "lane", "x")
    with pytest.raises(ValueError, match=r"lane must lie in \[0, 4\), got 4"):
        layout.apply(lane=4)
    with pytest.raises(ValueError, match="no input dimension is named warp"):
        layout.apply(warp=0)


# Named layouts


def test_blocked_by_hand() -> None:
    """8 x 16, two columns a thread, 4 x 8 threads, 2 x 1 warps, rows of threads first."""
    layout = named.blocked((8, 16), (1, 2), (4, 8), (2, 1), (1, 0))
    for register, lane, warp in itertools.product(range(2), range(32), range(2)):
        expected = {"dim0": warp * 4 + lane // 8, "dim1": lane % 8 * 2 + register}
        assert layout.apply(register=register, lane=lane, warp=warp, block=0) == expected


@given(st.data())
def test_blocked_covers_any_shape(data: st.DataObject) -> None:
    sizes = st.sampled_from([1, 2, 4, 8])
    threads = data.draw(st.sampled_from([(1, 32), (2, 16), (4, 8), (8, 4), (16, 2), (32, 1)]))
    shape = tuple(1 << data.draw(st.integers(0, 7)) for _ in range(2))
    layout = named.blocked(
        shape,
        (data.draw(sizes), data.draw(sizes)),
        threads,
        (data.draw(sizes), data.draw(sizes)),
        data.draw(st.permutations([0, 1])),
    )
    assert layout.is_surjective
    assert tuple(size for _, size in layout.outs) == shape


def test_a_slice_drops_its_dimension_and_keeps_copies_across_threads() -> None:
    parent = named.blocked((16, 64), (1, 4), (2, 16), (4, 1), (1, 0))
    rows = named.sliced(parent, 1)
    assert rows.outs == (("dim0", 16),)
    for lane, warp in itertools.product(range(32), range(4)):
        assert rows.apply(lane=lane, warp=warp)["dim0"] == warp * 2 + lane // 16
    assert rows.is_surjective


def table(layout: LinearLayout) -> dict[tuple[int, int], tuple[int, int]]:
    return {
        (lane, register): tuple(layout.apply(lane=lane, register=register).values())
        for lane in range(32)
        for register in range(layout.in_size("register"))
    }


def test_mma_m16n8k16_as_the_ptx_isa_has_it() -> None:
    """groupID = lane / 4, threadID_in_group = lane % 4 (PTX ISA, matrix fragments for
    mma.m16n8k16 with .f16)."""
    accumulator = table(named.MMA_ACCUMULATOR)
    a, b = table(named.mma_operand_a(16)), table(named.mma_operand_b(16))
    assert (len(accumulator), len(a), len(b)) == (32 * 4, 32 * 8, 32 * 4)
    for (lane, i), place in accumulator.items():
        group, thread = lane // 4, lane % 4
        assert place == (group + 8 * (i >= 2), thread * 2 + i % 2)
    for (lane, i), place in a.items():
        group, thread = lane // 4, lane % 4
        row = group + (8 if i in (2, 3, 6, 7) else 0)
        assert place == (row, thread * 2 + i % 2 + 8 * (i >= 4))
    for (lane, i), place in b.items():
        group, thread = lane // 4, lane % 4
        assert place == (thread * 2 + i % 2 + 8 * (i >= 2), group)


def test_mma_operands_of_8_and_32_bits() -> None:
    """m16n8k32 with .s8 and m16n8k8 with .tf32: the same 32-bit registers."""
    for (lane, i), place in table(named.mma_operand_a(8)).items():
        group, thread = lane // 4, lane % 4
        row = group + (8 if 4 <= i < 8 or i >= 12 else 0)
        assert place == (row, thread * 4 + i % 4 + 16 * (i >= 8))
    for (lane, i), place in table(named.mma_operand_a(32)).items():
        group, thread = lane // 4, lane % 4
        assert place == (group + 8 * (i in (1, 3)), thread + 4 * (i >= 2))


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_mma_operands_of_fp64(steps: int) -> None:
    """m16n8k4, k8 and k16 with .f64: one layout, whose registers of several steps lie one after the
    other. The ISA has the rows of a for k16 as groupID where i is even, its columns as i * 2 +
    threadID_in_group there and (i * 2) - 2 + threadID_in_group where i is odd."""
    a = table(named.fit(named.mma_operand_a(64), (16, 4 * steps)))
    b = table(named.fit(named.mma_operand_b(64), (4 * steps, 8)))
    assert (len(a), len(b)) == (32 * 2 * steps, 32 * steps)
    for (lane, i), place in a.items():
        group, thread = lane // 4, lane % 4
        assert place == (group + 8 * (i % 2), i * 2 - 2 * (i % 2) + thread)
    for (lane, i), place in b.items():
        assert place == (lane % 4 + i * 4, lane // 4)


def test_m8n8k4_is_half_of_m16n8k4() -> None:
    """Its row of a and of the sums is groupID: 8 rows above are the first half of the registers."""
    a, total = table(named.mma_operand_a(64)), table(named.MMA_ACCUMULATOR)
    for lane in range(32):
        group, thread = lane // 4, lane % 4
        for half in (0, 1):
            assert a[lane, half] == (group + 8 * half, thread)
            for i in (0, 1):
                assert total[lane, 2 * half + i] == (group + 8 * half, thread * 2 + i)


@pytest.mark.parametrize("n", [8, 16, 64, 128, 256])
def test_wgmma_accumulator_as_the_ptx_isa_has_it(n: int) -> None:
    """D of wgmma.m64nNk16: warp w has rows 16 w to 16 w + 15; d[i] is at row lane / 4 + 8 (i / 2
    mod 2), column 8 (i / 4) + 2 (lane mod 4) + i mod 2."""
    layout = named.wgmma_accumulator((64, n), n, (4, 1))
    for warp, lane, i in itertools.product(range(4), range(32), range(n // 2)):
        expected = {
            "dim0": 16 * warp + lane // 4 + 8 * (i // 2 % 2),
            "dim1": 8 * (i // 4) + 2 * (lane % 4) + i % 2,
        }
        assert layout.apply(register=i, lane=lane, warp=warp) == expected
    assert layout.is_invertible


def test_mma_v2_tiles_warps_along_both_dimensions() -> None:
    layout = named.mma_v2((32, 16), (2, 2))
    assert layout.is_surjective
    for register, lane, warp in itertools.product(range(4), range(32), range(4)):
        assert layout.apply(register=register, lane=lane, warp=warp) == {
            "dim0": 16 * (warp // 2) + lane // 4 + 8 * (register // 2),
            "dim1": 8 * (warp % 2) + 2 * (lane % 4) + register % 2,
        }


def test_wgmma_left_operand_in_registers() -> None:
    layout = named.wgmma_operand_a((64, 16), 16, (4, 1))
    for warp, lane, i in itertools.product(range(4), range(32), range(8)):
        expected = {
            "dim0": 16 * warp + lane // 4 + 8 * (i // 2 % 2),
            "dim1": 2 * (lane % 4) + i % 2 + 8 * (i // 4),
        }
        assert layout.apply(register=i, lane=lane, warp=warp) == expected


def test_ldmatrix_gives_each_thread_two_neighbours_of_its_row() -> None:
    for (lane, i), place in table(named.LDMATRIX_TILE).items():
        assert place == (lane // 4, 2 * (lane % 4) + i)
    # Four of them are the left operand of mma.m16n8k16, in the order of its registers.
    four = named.mma_operand_a(16).divide_left(named.LDMATRIX_TILE)
    assert four.bases("register") == ((1, 0), (0, 1))


@pytest.mark.parametrize("transposed", [False, True])
def test_stmatrix_as_the_ptx_isa_has_it(transposed: bool) -> None:
    """stmatrix.m8n8.x4: register m of each thread, two 16-bit elements, belongs to matrix m; lane
    i has elements 2 (i mod 4) and the next one of row i / 4, or of that column with .trans."""
    tile = named.LDMATRIX_TILE
    if transposed:
        tile = named.standard(tile.renamed({"dim0": "dim1", "dim1": "dim0"}), 2)
    # Matrices 0 and 1 are one above the other, 2 and 3 to their right: a 16 x 16 block.
    four = tile * named.mma_operand_a(16).divide_left(named.LDMATRIX_TILE)
    for (lane, i), place in table(four).items():
        matrix, half = divmod(i, 2)
        row, column = lane // 4, 2 * (lane % 4) + half
        if transposed:
            row, column = column, row
        assert place == (row + 8 * (matrix % 2), column + 8 * (matrix // 2))
    assert four.is_invertible


def test_stmatrix_stores_accumulators_as_they_are() -> None:
    """Two 16-bit results of mma.m16n8 are four matrices, register by register."""
    wide = named.mma_v2((16, 16), (1, 1))
    rest = wide.divide_left(named.LDMATRIX_TILE)
    assert rest.bases("register") == ((1, 0), (0, 1))
    with pytest.raises(NotDivisible):
        named.mma_operand_b(16).divide_left(named.LDMATRIX_TILE)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_nvmma_swizzles_chunks_of_16_bytes(swizzle: int, element_bytes: int) -> None:
    """In bytes: address bits 4 to 6 are XORed with bits 7 to 9 (as many as the swizzle has)."""
    width = swizzle // element_bytes
    layout = named.shared_nvmma((16, 2 * width), element_bytes, swizzle)
    assert layout.is_invertible
    mask = swizzle // 16 - 1
    for row, column in itertools.product(range(16), range(2 * width)):
        block, inside = divmod(column, width)
        byte = block * 16 * swizzle + row * swizzle + inside * element_bytes
        byte ^= (byte >> 7 & mask) << 4
        place = layout.apply(offset=byte // element_bytes)
        assert place == {"dim0": row, "dim1": column}


def worst_bank(
    distributed: LinearLayout, shared: LinearLayout, element_bytes: int, vector: int
) -> int:
    """By counting: the most distinct words of one bank in any phase, over the least possible."""
    back = shared.invert()
    access = vector * element_bytes
    lanes_in_phase = 32 // {8: 2, 16: 4}.get(access, 1)
    worst = 0
    for phase in range(32 // lanes_in_phase):
        words: set[int] = set()
        for lane in range(phase * lanes_in_phase, (phase + 1) * lanes_in_phase):
            offset = back.apply(**distributed.apply(lane=lane))["offset"]
            first = offset * element_bytes
            words |= {(first + byte) // 4 for byte in range(access)}
        worst = max(worst, max(Counter(word % 32 for word in words).values()))
    return worst


@pytest.mark.parametrize("depth", [4, 8, 16, 64])
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_operands_of_fp64_are_read_without_conflict(order: tuple[int, int], depth: int) -> None:
    for shape, operand in (((16, depth), named.mma_operand_a(64)),
                           ((depth, 16), named.mma_operand_b(64))):  # fmt: skip
        shared = thread_memory(shape, 8, (order,), (named.fit(operand, shape),))
        if shared is not None:
            assert worst_bank(named.fit(operand, shape), shared, 8, 1) == 1
            assert shared.is_invertible
    assert thread_memory((16, 16), 8, (order,), ()) is not None


def test_the_swizzles_of_wgmma_serve_rows_and_columns_without_conflict() -> None:
    shared = named.shared_nvmma((64, 64), 2, 128)
    by_rows = named.blocked((64, 64), (1, 8), (4, 8), (1, 1), (1, 0))
    by_columns = named.blocked((64, 64), (1, 8), (32, 1), (1, 1), (1, 0))
    plain = named.shared_row_major((64, 64), (1, 0))
    assert worst_bank(by_rows, shared, 2, 8) == 1
    assert worst_bank(by_columns, shared, 2, 8) == 1
    assert worst_bank(by_columns, plain, 2, 8) == 8
