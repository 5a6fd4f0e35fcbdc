"""What the front end says of layouts that do not meet, and of what a kernel in Gluon cannot do."""

import re
from types import FunctionType
from typing import Any

import pytest

import proton
from proton import gluon
from proton.frontend.gluon.names import as_named_in
from proton.gluon import language as gl
from proton.gluon.language.nvidia import hopper
from proton.gluon.language.nvidia.ampere import mma_v2
from proton.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma

TARGET = proton.GPUTarget("cuda", 90)
FOUR = gl.constexpr(gl.BlockedLayout([4], [32], [4], [0]))
ONE = gl.constexpr(gl.BlockedLayout([1], [32], [4], [0]))
ROWS = gl.constexpr(gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0]))
CONVERT = "gl.convert_layout"


@gluon.jit
def meeting(x, n):
    four = gl.arange(0, 128, layout=FOUR)
    one = gl.arange(0, 128, layout=ONE)
    gl.store(x + four, four + one)


@gluon.jit
def choosing(x, n):
    one = gl.arange(0, 128, layout=ONE)
    four = gl.arange(0, 128, layout=FOUR)
    gl.store(x + four, gl.where(one > 3, four, 0))


@gluon.jit
def carrying(x, n):
    value = gl.zeros([128], gl.int32, FOUR)
    for _ in range(n):
        value = gl.convert_layout(value, ONE)
    gl.store(x + gl.arange(0, 128, layout=FOUR), value)


@gluon.jit
def branching(x, n):
    if n > 2:
        value = gl.zeros([128], gl.int32, FOUR)
    else:
        value = gl.zeros([128], gl.int32, ONE)
    gl.store(x + gl.arange(0, 128, layout=FOUR), value)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (meeting, r"Layout mismatch .*\[4\].*\(of line 26 of .*vs .*\[1\].*\(of line 27 of "),
        (choosing, r"Layout mismatch .*\[1\].* vs .*\[4\].*\(of line 34 of "),
        (
            carrying,
            r"Loop-carried variable value has initial type .*\[4\].*the loop makes it .*\[1\]",
        ),
        (branching, r"Mismatched type for value: .*\[4\].* and .*\[1\]"),
    ],
)
def test_two_layouts_that_meet_are_both_named(kernel: Any, said: str) -> None:
    text = refused(kernel)
    assert re.search(said, text), text
    assert CONVERT in text.splitlines()[-1]


@gluon.jit
def of_other_warps(x, n):
    gl.store(x + gl.arange(0, 128, layout=gl.BlockedLayout([1], [32], [8], [0])), 1)


@gluon.jit
def of_no_slice(x, n):
    gl.arange(0, 128, layout=FOUR)[:, None]


@gluon.jit
def of_the_other_slice(x, n):
    gl.arange(0, 128, layout=gl.SliceLayout(0, ROWS))[:, None]


@gluon.jit
def nothing(value):
    pass


@gluon.jit
def groups_in_a_loop(x, n):
    for _ in range(n):
        gl.warp_specialize([(nothing, (1,)), (nothing, (1,))], [4], [24])


@gluon.jit
def tensors_for_workers(x, n):
    at = gl.arange(0, 128, layout=FOUR)
    gl.warp_specialize([(nothing, (at,)), (nothing, (at,))], [4], [24])


@gluon.jit
def of_one_dtype(x, n):
    gl.umulhi(gl.zeros([128], gl.float32, FOUR), 4)


@gluon.jit
def of_blackwell(x, n):
    gl.nvidia.blackwell.tcgen05_commit(x)


@gluon.jit
def of_amd(x, n):
    gl.amd.cdna3.buffer_load(x, 0)


@gluon.jit
def of_images(x, n):
    tma.async_copy_global_to_shared_im2col(x)


@gluon.jit
def of_odd_rows(x, n):
    layout: gl.constexpr = gl.NVMMASharedLayout(32, 32, rank=2)
    tma.make_tensor_descriptor(x, [16, 16], [15, 1], [16, 16], layout)


@gluon.jit
def of_columns(x, n):
    layout: gl.constexpr = gl.NVMMASharedLayout(0, 32, rank=2)
    desc = tma.make_tensor_descriptor(x, [32, 64], [64, 1], [32, 32], layout)
    whole = gl.allocate_shared_memory(gl.int32, [32, 64], layout)
    tma.async_store(desc, [0, 0], whole.slice(32, 32, dim=1))


@gluon.jit
def of_few_rows(x, n):
    layout: gl.constexpr = gl.NVMMASharedLayout(128, 32, rank=2)
    desc = tma.make_tensor_descriptor(x, [32, 64], [64, 1], [4, 64], layout)
    tma.async_store(desc, [0, 0], gl.allocate_shared_memory(gl.int32, [4, 64], layout))


@gluon.jit
def of_long_rows(x, n):
    layout: gl.constexpr = gl.NVMMASharedLayout(0, 32, rank=2)
    desc = tma.make_tensor_descriptor(x, [32, 512], [512, 1], [2, 512], layout)
    tma.async_store(desc, [0, 0], gl.allocate_shared_memory(gl.int32, [2, 512], layout))


@gluon.jit
def of_short_blocks(x, n):
    layout: gl.constexpr = gl.NVMMASharedLayout(0, 32, rank=1)
    desc = tma.make_tensor_descriptor(x, [64], [1], [16], layout)
    several = gl.allocate_shared_memory(gl.int32, [2, 16], layout)
    one = gl.allocate_shared_memory(gl.int32, [1, 16], layout)
    tma.async_store(desc, [0], one.index(n))
    tma.async_store(desc, [0], several.index(0))
    tma.async_store(desc, [0], several.index(n))


@gluon.jit
def of_odd_columns(x, n):
    layout: gl.constexpr = gl.NVMMASharedLayout(0, 32, rank=1)
    desc = tma.make_tensor_descriptor(x, [64], [1], [32], layout)
    buffer = gl.allocate_shared_memory(gl.int32, [32], layout)
    tma.async_store(desc, [8], buffer)
    tma.async_store(desc, [n], buffer)
    tma.async_store(desc, [6], buffer)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (of_odd_columns, r"begin at index 6, 24 bytes (.|\n)*desc, \[6\](.|\n)*multiples of 16"),
        (of_odd_rows, "strides must be 16-byte aligned, got 15 x 4 bytes"),
        (of_columns, r"block of \[32, 32\] in .* does not lie in one piece here(.|\n)*whole rows"),
        (of_few_rows, r"TMA copies no blocks of \[4, 64\] to (.|\n)*take 8 rows or more"),
        (of_long_rows, r"TMA copies no blocks of \[2, 512\] (.|\n)*up to 256 columns"),
        (of_short_blocks, r"begins 64 bytes or a multiple(.|\n)*several.index\(n\)"),
        (of_other_warps, "is for 8 warps, and this code runs on 4"),
        (of_no_slice, "expected expand_dims input to have a SliceLayout, but got: BlockedLayout"),
        (of_the_other_slice, "expand_dims input layout to be sliced in axis 1 but got 0"),
        (groups_in_a_loop, "warp_specialize in a loop, in a branch or in a partition is not"),
        (tensors_for_workers, "nothing is a worker, and takes no tensors"),
        (of_one_dtype, r"\bgl.umulhi takes uint32 or int32"),
        (of_blackwell, r"tcgen05_commit is an op of Blackwell \(10.0\), which is not supported"),
        (of_amd, "buffer_load is an op of AMD's GPUs, which is not supported"),
        (of_images, "is a name that Triton has removed(.|\n)*call async_load_im2col"),
    ],
)
def test_what_cannot_be_is_said_where_it_is_written(kernel: Any, said: str) -> None:
    assert re.search(said, refused(kernel))


def test_the_language_has_the_name_that_its_author_gave_it() -> None:
    def kernel(x): ...

    named = FunctionType(kernel.__code__, {"ttgl": gl})
    assert as_named_in(gluon.jit(named), "use tl.full, not gl.zeros") == (
        "use ttgl.full, not ttgl.zeros"
    )
    assert as_named_in(proton.jit(named), "use tl.full") == "use tl.full"


def test_another_makers_gpu_is_refused() -> None:
    with pytest.raises(proton.CompilationError, match="meeting is in Gluon, and hip:gfx942"):
        meeting.warmup(gl.int32, 3, grid=(1,), target=proton.GPUTarget("hip", "gfx942"))


def refused(kernel: Any) -> str:
    """What is said of a kernel that does not compile."""
    with pytest.raises(proton.CompilationError) as problem:
        kernel.warmup(gl.int32, 3, grid=(1,), target=TARGET, num_warps=4)
    assert __file__ in str(problem.value)
    return str(problem.value)


def test_dimensions_that_a_layout_has_not_are_refused_where_it_is_made() -> None:
    for dim in (-1, 2):
        with pytest.raises(AssertionError, match="is not one of 2 dimensions"):
            gl.SliceLayout(dim, ROWS.value)
    with pytest.raises(AssertionError, match="permutation of 0"):
        gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 1])
    assert gl.SliceLayout(1, gl.AutoLayout()).dim == 1


@gluon.jit
def computing_with_memory(x, WHAT: gl.constexpr):
    m = gl.allocate_shared_memory(gl.float32, [64], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    if WHAT == "-":
        y = -m
    elif WHAT == "==":
        y = m == 1
    elif WHAT == "where":
        y = gl.where(m, m, m)
    elif WHAT == "if":
        y = 0
        if m:
            y = 1
    else:
        y = m
    gl.store(x, y)


@pytest.mark.parametrize("target", [None, TARGET], ids=["cpu", "cuda"])
@pytest.mark.parametrize("what", ["-", "==", "where", "if", "store"])
def test_memory_is_no_operand(what: str, target: Any) -> None:
    options = {} if target is None else {"target": target}
    with pytest.raises(proton.CompilationError, match="shared_memory_descriptor") as raised:
        computing_with_memory.warmup(gl.float32, what, num_warps=2, **options)
    assert "load a block" in str(raised.value)


MATRIX = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
ROW = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [0]))
SWIZZLED = gl.constexpr(gl.SwizzledSharedLayout(4, 2, 4, [1, 0]))
OF_BLOCKS = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [0], cga_layout=[[0]]))


@gluon.jit
def of_memory(x, WHAT: gl.constexpr, LAYOUT: gl.constexpr, PART: gl.constexpr):
    memory = gl.allocate_shared_memory(gl.int32, [4, 128], LAYOUT)
    if WHAT == "part":
        memory.index(PART).load(ONE)
    if WHAT == "whole":
        memory.store(gl.zeros([4, 128], gl.int32, ROWS))
    if WHAT == "gather":
        memory.gather(gl.zeros([4, 128], gl.int32, ROWS), 0)
    if WHAT == "blocks":
        memory.reinterpret(shape=[256], layout=OF_BLOCKS)
    if WHAT == "beyond":
        memory.index(PART).reinterpret(shape=[256], layout=ROW)
    if WHAT == "words":
        words = gl.allocate_shared_memory(gl.int32, [9, 1], LAYOUT)
        words.slice(PART, 4).reinterpret(shape=[4], layout=ROW)
    barriers = mbarrier.allocate_mbarrier(batch=2)
    if WHAT == "barriers":
        mbarrier.wait(barriers, 0)
    if WHAT == "count":
        mbarrier.init(barriers.index(0), count=PART)
    if WHAT == "arrive":
        mbarrier.arrive(barriers.index(0), count=PART)
    if WHAT == "bytes":
        mbarrier.expect(barriers.index(0), PART)
    if WHAT == "stores":
        tma.store_wait(PART)
    if WHAT == "named":
        hopper.mbarrier.init(barriers.index(0))
    if WHAT == "method":
        memory.load()
    if WHAT == "function":
        gl.full([4])


@pytest.mark.parametrize("target", [None, TARGET], ids=["cpu", "cuda"])
def test_memory_and_counts_are_checked(target: Any) -> None:
    rows: list[tuple[str, Any, int, str]] = [
        ("part", MATRIX, 4, r"index 4 is not in memory of 4 parts \(\[4, 128\]\)"),
        ("part", ROW, -1, "index -1 is not in memory of 4 parts"),
        ("part", SWIZZLED, 1, "do not lie one behind the other(.|\n)*slice"),
        ("whole", ROW, 0, r"store: memory of \[4, 128\] .* is 4 parts(.|\n)*memory.index"),
        ("gather", ROW, 0, r"gather: memory of \[4, 128\] .* is 4 parts"),
        ("blocks", MATRIX, 0, "reinterpret: blocks of a cluster would each have"),
        ("beyond", ROW, 3, r"\[256\] elements of i32 are 1024 bytes, and the memory has 512"),
        ("words", ROW, 1, "begins 4 bytes or a multiple behind that of others, and .* of 16"),
        ("barriers", ROW, 0, r"mbarrier.wait: memory of \[2, 1\] .* is 2 parts"),
        ("count", ROW, 0, "mbarrier.init: count must be at least 1, got 0"),
        ("arrive", ROW, -1, "mbarrier.arrive: count must be at least 1, got -1"),
        ("bytes", ROW, -4, "mbarrier.expect: bytes .* must be at least 0, got -4"),
        ("stores", ROW, -1, "tma.store_wait: pendings must be at least 0, got -1"),
        ("named", ROW, 0, r"[0-9]: hopper.mbarrier.init: missing a required argument: 'count'"),
        ("method", ROW, 0, "[0-9]: memory.load: missing a required argument: 'layout'"),
        ("function", ROW, 0, "[0-9]: gl.full: missing a required argument: 'value'"),
    ]
    options = {} if target is None else {"target": target}
    for what, layout, part, said in rows:
        with pytest.raises(proton.CompilationError) as raised:
            of_memory.warmup(gl.int32, what, layout, part, grid=(1,), **options)
        assert re.search(said, str(raised.value)), (what, str(raised.value))
        assert __file__ in str(raised.value)


@gluon.jit
def multiplying(x, BY: gl.constexpr, K: gl.constexpr, A: gl.constexpr, B: gl.constexpr,
                ACC: gl.constexpr):  # fmt: skip
    if BY == "threads":
        layout: gl.constexpr = gl.BlockedLayout([4, 4], [4, 8], [4, 1], [1, 0])
    else:
        layout: gl.constexpr = gl.NVMMADistributedLayout([BY, 0], [4, 1], [16, 8])
    acc = gl.zeros([64, 64], ACC, layout)
    a = gl.zeros([64, K], A, gl.DotOperandLayout(0, layout, 0 if BY == "threads" else 2))
    if BY == 3:
        parts = gl.allocate_shared_memory(B, [17, 16 * K], gl.SwizzledSharedLayout(1, 1, 1, [0]))
        b_layout: gl.constexpr = gl.NVMMASharedLayout(128, 16, transposed=gl.int8 == B)
        warpgroup_mma(a, parts.index(1).reinterpret(B, [K, 64], b_layout), acc)
        return
    b = gl.zeros([K, 64], B, gl.DotOperandLayout(1, layout, 0 if BY == "threads" else 2))
    acc = gl.dot_fma(a, b, acc) if BY == "threads" else mma_v2(a, b, acc)


@pytest.mark.parametrize("target", [None, TARGET], ids=["cpu", "cuda"])
def test_operands_of_dots_are_checked(target: Any) -> None:
    f16, f32, b15 = gl.float16, gl.float32, gl.float8e4b15
    rows: list[tuple[Any, ...]] = [  # by, K, types, what is said
        (2, 32, gl.uint8, gl.uint8, gl.int32, "mma_v2 takes int8 among integers, got u8"),
        (2, 32, f16, gl.bfloat16, f32, "mma_v2: both sides must have one dtype"),
        (2, 32, gl.int8, gl.int8, f32, "mma_v2 of i8 gives i32, and acc is fp32"),
        (2, 32, b15, b15, f32, "mma_v2: no tensor core of .* takes fp8e4b15"),
        (2, 8, f16, f16, f32, r"mma_v2: M, N and K must be at least \[16, 2, 16\], got .* 8\]"),
        ("threads", 32, f16, f16, gl.bfloat16, "dot_fma of fp16 gives float32 or float16"),
        ("threads", 32, gl.int16, gl.int16, gl.int32, "dot_fma takes int8 among integers"),
        (3, 32, gl.uint16, gl.uint16, gl.int32, "warpgroup_mma takes int8 among integers, got u16"),
        (3, 8, f16, f16, f32, r"warpgroup_mma: M, N and K must be at least \[64, 8, 16\]"),
        (3, 8, f32, gl.float64, f32, "warpgroup_mma: both sides must have one dtype"),
        (3, 8, gl.float64, gl.float64, gl.float64, "warpgroup_mma: no tensor core .* takes fp64"),
        (3, 16, f16, f16, f32, "begins 512 bytes or a multiple .* of 1024"),
    ]
    options = {} if target is None else {"target": target}
    for by, k, *types, said in rows:
        with pytest.raises(proton.CompilationError) as raised:
            multiplying.warmup(gl.int32, by, k, *types, grid=(1,), **options)
        assert re.search(said, str(raised.value)), (said, str(raised.value))
        assert __file__ in str(raised.value)


def test_a_cpu_asks_for_how_many_warps_a_layout_is() -> None:
    for warps in (1, 8):
        with pytest.raises(proton.CompilationError, match=f"for 4 warps, and .* runs on {warps}"):
            meeting.warmup(gl.int32, 3, grid=(1,), num_warps=warps)
    of_other_warps.warmup(gl.int32, 3, grid=(1,), num_warps=8)
    with pytest.raises(proton.CompilationError, match="is for 8 warps, and this code runs on 4"):
        of_other_warps.warmup(gl.int32, 3, grid=(1,))


PLAIN = gl.BlockedLayout([1], [32], [4], [0])  # no constexpr


@gluon.jit
def hinting(x, WHAT: gl.constexpr, POLICY: gl.constexpr, MODIFIER: gl.constexpr):
    at = gl.arange(0, 32, layout=PLAIN)
    memory = gl.allocate_shared_memory(gl.int32, [32], gl.NVMMASharedLayout(0, 32, rank=1))
    desc = tma.make_tensor_descriptor(x, [32], [1], [32], memory.layout)
    if WHAT == "load":
        gl.load(x + at, cache_policy=POLICY, cache_modifier=MODIFIER)
    elif WHAT == "store":
        gl.store(x + at, at, cache_policy=POLICY, cache_modifier=MODIFIER)
    elif WHAT == "get":
        bar = mbarrier.allocate_mbarrier()
        tma.async_load(desc, [0], bar, memory, cache_policy=POLICY)
    else:
        tma.async_store(desc, [0], memory, cache_policy=POLICY)


@pytest.mark.parametrize("target", [None, TARGET], ids=["cpu", "cuda"])
def test_hints_that_do_not_go_together_are_refused(target: Any) -> None:
    with_both = hopper.CachePolicy(cache_modifier="cg", l1="evict_last")
    rows: list[tuple[str, Any, str]] = [
        ("load", hopper.CachePolicy(l1="evict_last"), "cache_policy and cache_modifier are mutua"),
        ("store", gl.CachePolicy(), "cache_policy and cache_modifier are mutually exclusive"),
        ("load", with_both, "cache modifier cannot be combined with an L1 eviction priority"),
        ("get", with_both, "TMA operations do not support cache modifiers"),
        ("put", gl.CachePolicy("cg"), "TMA operations do not support cache modifiers"),
        ("get", hopper.CachePolicy(l1="evict_last"), "do not support L1 eviction policies"),
        ("put", hopper.CachePolicy(l2_prefetch_size=64), "do not support L2 prefetch size"),
        ("put", "evict_last", "TMA cache_policy must be a CachePolicy, got 'evict_last'"),
    ]
    options = {} if target is None else {"target": target}
    for what, policy, said in rows:
        modifier = None if policy is with_both else ".cg"
        with pytest.raises(proton.CompilationError, match=said) as raised:
            hinting.warmup(gl.int32, what, policy, modifier, grid=(1,), **options)
        assert __file__ in str(raised.value)
    for what in ("load", "store", "get", "put"):
        hinting.warmup(gl.int32, what, gl.CachePolicy(), None, grid=(1,), **options)


def test_hints_are_checked_where_they_are_made() -> None:
    assert gl.CachePolicy() == gl.CachePolicy("none", "evict_normal") == gl.CachePolicy(None, None)
    assert gl.CachePolicy(".cg").cache_modifier == "cg"
    for wrong in ({"cache_modifier": "xx"}, {"eviction_policy": "no_allocate"}):
        with pytest.raises(ValueError, match=r"Unsupported (cache modifier 'xx'|eviction)"):
            gl.CachePolicy(**wrong)
    for size in (32, 64.0, True):
        with pytest.raises(ValueError, match="L2 prefetch size must be 64, 128, or 256"):
            hopper.CachePolicy(l2_prefetch_size=size)  # type: ignore[arg-type]
