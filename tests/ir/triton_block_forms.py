"""More forms of Triton's text, as those of triton_forms.py: blocks of tensors, products of operands
with scales."""

from tests.ir.triton_forms import BLOCK, DESC

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
]
