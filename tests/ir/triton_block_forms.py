"""More forms of Triton's text, as those of triton_forms.py: blocks of tensors, products of operands
with scales."""

from tests.ir.triton_forms import BARRIER, BLOCK, DESC, MADE, ROW_MEMORY

BLOCK_PTR = "!tt.ptr<tensor<8x16xf32>>"
POINTED = """\
    %k = arith.constant 1 : i64
    %b = tt.make_tensor_ptr %p, [%k, %k], [%k, %k], [%n, %n] {order = array<i32: 1, 0>} : \
<tensor<8x16xf32>>
"""
SCALED = """\
    %l = arith.constant dense<1.0> : tensor<32x32xf8E4M3FN>
    %r = arith.constant dense<1> : tensor<16x32xi8>
    %f = arith.constant dense<1.0> : tensor<32x2xf8E4M3FN>
    %e = arith.constant dense<1> : tensor<32x1xi8>
    %acc = arith.constant dense<1.0> : tensor<32x32xf32>
"""

SCRATCH = "ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}"
MAPPED = f"""\
    %w = arith.extsi %n : i32 to i64
    %four = arith.constant 4 : i64
    %step = arith.muli %w, %four : i64
    %r = {SCRATCH} : !tt.ptr<i8>
    ttng.tensormap_create %r, %p, [%n, %n], [%n, %n], [STEP], [%n, %n] {{elem_type = 7 : i32, \
fill_mode = 1 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32}} : (!tt.ptr<i8>, \
!tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
    ttng.tensormap_fenceproxy_acquire %r : !tt.ptr<i8>
    %t = ttng.reinterpret_tensor_descriptor %r : !tt.ptr<i8> to !tt.tensordesc<8x16xf32>
"""
OUR_MAP = '(!tt.ptr<f32>, i32, i32, i64) -> !ttng.tensormap<tensor<8x16xf32>, "nan">'

GROUPS = (
    MADE
    + f"""\
    ttg.warp_specialize(%bar, %n) attributes {{requestedRegisters = array<i32: 24>}}
    default {{
      ttng.wait_barrier %bar, %n : {BARRIER}
      ttg.warp_yield
    }}
    partition0(%x: {BARRIER}, %y: i32) num_warps(2) {{
      ttng.wait_barrier %x, %y : {BARRIER}
      ttg.warp_return
    }} : ({BARRIER}, i32) -> ()
"""
)

BLOCK_ROWS: list[tuple[str, str, str]] = [
    ("tt.make_tensor_ptr", POINTED, f"(!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> {BLOCK_PTR}"),
    (
        "tt.advance",
        POINTED + "    %0 = tt.advance %b, [%n, %n] : <tensor<8x16xf32>>",
        f"({BLOCK_PTR}, i32, i32) -> {BLOCK_PTR}",
    ),
    (
        "tt.load",
        POINTED + "    %0 = tt.load %b {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : "
        f"{BLOCK_PTR}",
        'boundaryCheck = array<i32: 0, 1>, cache = "", evict = "", '
        'operandSegmentSizes = array<i32: 1, 0, 0>, padding = "nan"',
    ),
    (
        "tt.load",
        POINTED + f"    %0 = tt.load %b cacheModifier = cg : {BLOCK_PTR}",
        f"volatile = false}} : ({BLOCK_PTR}) -> {BLOCK}",
    ),
    (
        "tt.store",
        POINTED + f"    %0 = tt.load %b : {BLOCK_PTR}\n    tt.store %b, %0 evictionPolicy = "
        f"evict_first {{boundaryCheck = array<i32: 1>}} : {BLOCK_PTR}",
        'boundaryCheck = array<i32: 1>, cache = "", evict = "evict_first"',
    ),
    (
        "tt.descriptor_load",  # two for blocks of one shape
        DESC
        + DESC.replace("%k", "%j").replace("%d", "%f").replace("] :", "] {padding = 2 : i32} :")
        + f"    %0 = tt.descriptor_load %f[%n, %n] : !tt.tensordesc<8x16xf32> -> {BLOCK}",
        f'(!tt.tensordesc<tensor<8x16xf32>, "nan">, i32, i32) -> {BLOCK}',
    ),
    (
        "tt.dot_scaled",
        SCALED + "    %0 = tt.dot_scaled %l scale %e, %r scale %f, %acc lhs = e4m3 rhs = e2m1 "
        "{fastMath = true} : tensor<32x32xf8E4M3FN>, tensor<32x1xi8> * tensor<16x32xi8>, "
        "tensor<32x2xf8E4M3FN> -> tensor<32x32xf32>",
        '{lhs = "e4m3", lhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>, '
        'rhs = "e2m1", rhs_k_pack = true}',
    ),
    (
        "tt.dot_scaled",
        SCALED + "    %0 = tt.dot_scaled %l, %r scale %f, %acc lhs = e4m3 rhs = e2m1 "
        "{rhs_k_pack = false} : tensor<32x32xf8E4M3FN> * tensor<16x32xi8>, "
        "tensor<32x2xf8E4M3FN> -> tensor<32x32xf32>",
        "operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>",
    ),
    (
        "ttg.fp4_to_fp",
        "%l = arith.constant dense<1> : tensor<64xi8, #blocked>\n    %0 = ttg.fp4_to_fp %l {axis = "
        "0 : i32} : tensor<64xi8, #blocked> -> tensor<128xbf16, #blocked>",
        '"tt.fp4_to_fp"(%6) {axis = 0 : i32} : (tensor<64xi8>) -> tensor<128xbf16>',
    ),
    ("ttg.global_scratch_alloc", f"%r = {SCRATCH} : !tt.ptr<i8>", '"tt.make_range"'),
    (
        "ttng.tensormap_create",
        MAPPED.replace("STEP", "%step"),
        f"{{operandSegmentSizes = array<i32: 1, 2, 1, 0>}} : {OUR_MAP}",
    ),
    ("ttng.tensormap_fenceproxy_acquire", MAPPED.replace("STEP", "%w"), "arith.divsi %5, %7 : i64"),
    (
        "ttng.reinterpret_tensor_descriptor",
        MAPPED.replace("STEP", "%four"),
        "arith.constant 1 : i64",
    ),
    (
        "ttng.async_tma_copy_local_to_global",
        MAPPED.replace("STEP", "%step")
        + "    %to = ttg.local_alloc : () -> "
        + ROW_MEMORY.replace("1x32", "8x16")
        + "\n    ttng.async_tma_copy_local_to_global %t[%n, %n] %to : "
        "!tt.tensordesc<8x16xf32>, " + ROW_MEMORY.replace("1x32", "8x16"),
        '(!ttng.tensormap<tensor<8x16xf32>, "nan">, ',
    ),
    (
        "ttng.arrive_barrier",
        MADE + f"    ttng.arrive_barrier %bar, 128 : {BARRIER}",
        '"ttng.arrive_barrier"(%6)',
    ),
    ("ttg.warp_yield", GROUPS, "{warps = 4 : i32} : () -> ()"),
    ("ttg.warp_return", GROUPS, "{warps = 2 : i32} : () -> ()"),
]
