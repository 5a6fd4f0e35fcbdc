"""Each form of an op in Triton's text, beside what MLIR prints of ours."""

T, PS, QS = "tensor<64xf32>", "tensor<64x!tt.ptr<f32>>", "tensor<64x!tt.ptr<i32>>"
LAYOUT = "#ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [0]], []>"
L = f"tensor<64xf32, {LAYOUT}>"
SHARED = (
    "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory"
)
MEMORY = f"!ttg.memdesc<64xf32, {SHARED}, mutable>"
OURS = "!ttg.mutable_memdesc<[64], f32, #ttg.shared<[[1], [2], [4], [8], [16], [32]]>>"
ACC = (
    "tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], "
    "instrShape = [16, 64, 16]}>>"
)
NVMMA = (
    "!ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = %s, "
    "elementBitWidth = 16}>, #ttg.shared_memory>"
)
MATRIX, TURNED = NVMMA % "false", NVMMA % "true"
SQUARE = "    %l = arith.constant dense<1.0> : tensor<64x64xf16>\n"
WITH_LAYOUT = "    %l = arith.constant dense<1.0> : tensor<64xf32, #blocked>\n"
RESERVED = f"    %mem = ttg.local_alloc : () -> {MEMORY}\n"
HELD = SQUARE.replace(
    "16>",
    "16, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], "
    "warpsPerCTA = [4, 1], order = [1, 0]}>>",
) + (
    f"    %h = ttg.local_alloc %l : (tensor<64x64xf16, #ttg.blocked<{{sizePerThread = [1, 8], "
    f"threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}}>>) -> {MATRIX}\n"
    f"    %acc = arith.constant dense<0.0> : {ACC}\n"
)
COPIED = RESERVED + (
    "    %b = arith.constant dense<true> : tensor<64xi1, #blocked>\n"
    "    %o = arith.constant dense<0.000000e+00> : tensor<64xf32, #blocked>\n"
    "    %a = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked>\n"
    f"    %t = ttg.async_copy_global_to_local %a, %mem mask %b other %o {{contiguity = 1 : i32}} : "
    f"tensor<64x!tt.ptr<f32>, #blocked> -> <64xf32, {SHARED}, mutable>\n"
)
DESC = (
    "    %k = arith.constant 1 : i64\n"
    "    %d = tt.make_tensor_descriptor %p, [%n, %n], [%k, %k] : <f32>, <8x16xf32>\n"
)
BLOCK = "tensor<8x16xf32>"
BARRIER = MEMORY.replace("64xf32", "1xi64")
MADE = f"    %bar = ttg.local_alloc : () -> {BARRIER}\n"
ROW_MEMORY = MEMORY.replace("64xf32", "1x32xf32").replace("[0]", "[1, 0]")
ROW = f"    %to = ttg.local_alloc : () -> {ROW_MEMORY}\n"
DESC_TYPE = "!tt.tensordesc<1x32xf32>"
REGION = """({
    ^bb0(%a: f32, %b: f32):
      %z = arith.addf %a, %b : f32
      NAME %z : f32
    })"""

# The op that a row is about, Triton's text, and a part of what MLIR prints of ours.
ROWS: list[tuple[str, str, str]] = [
    ("tt.get_program_id", "%0 = tt.get_program_id y : i32", '"tt.get_program_id"() {axis = 1'),
    ("tt.get_num_programs", "%0 = tt.get_num_programs z : i32", 'programs"() {axis = 2'),
    (
        "tt.make_range",
        "%0 = tt.make_range {end = 8 : i32, start = 4 : i32} : tensor<4xi32>",
        "{end = 8 : i32, start = 4 : i32}",
    ),
    ("tt.splat", f"%0 = tt.splat %s : f32 -> {T}", f'"tt.splat"(%arg3) : (f32) -> {T}'),
    (
        "tt.unsplat",
        "%0 = tt.splat %s : f32 -> tensor<1xf32>\n    %1 = tt.unsplat %0 : tensor<1xf32>",
        '"tt.unsplat"(%5) : (tensor<1xf32>) -> f32',
    ),
    (
        "tt.addptr",
        f"%0 = tt.addptr %ps, %i : {PS}, tensor<64xi32>",
        f"({PS}, tensor<64xi32>) -> {PS}",
    ),
    (
        "tt.broadcast",
        "%0 = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"
        "    %1 = tt.broadcast %0 : tensor<1x64xi32> -> tensor<2x64xi32>",
        '"tt.broadcast"(%5) : (tensor<1x64xi32>) -> tensor<2x64xi32>',
    ),
    (
        "tt.expand_dims",
        "%0 = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>",
        '"tt.expand_dims"(%0) {axis = 1 : i32}',
    ),
    (
        "tt.reshape",
        f"%0 = tt.reshape %x allow_reorder efficient_layout : {T} -> tensor<8x8xf32>",
        f'"tt.reshape"(%cst_0) : ({T}) -> tensor<8x8xf32>',
    ),
    (
        "tt.trans",
        f"%0 = tt.reshape %x : {T} -> tensor<4x2x8xf32>\n    %1 = tt.trans %0 "
        "{order = array<i32: 2, 0, 1>} : tensor<4x2x8xf32> -> tensor<8x4x2xf32>",
        "{order = array<i64: 2, 0, 1>}",
    ),
    (
        "tt.cat",
        f"%0 = tt.cat %x, %x : {T} -> tensor<128xf32>",
        '"tt.trans"(%5) {order = array<i64: 1, 0>} : (tensor<64x2xf32>) -> tensor<2x64xf32>',
    ),
    (
        "tt.join",
        f"%0 = tt.join %x, %x : {T} -> tensor<64x2xf32>",
        f"({T}, {T}) -> tensor<64x2xf32>",
    ),
    (
        "tt.split",
        f"%0 = tt.reshape %x : {T} -> tensor<32x2xf32>\n"
        "    %1, %2 = tt.split %0 : tensor<32x2xf32> -> tensor<32xf32>",
        '"tt.split"(%5) : (tensor<32x2xf32>) -> (tensor<32xf32>, tensor<32xf32>)',
    ),
    (
        "tt.int_to_ptr",
        "%0 = arith.extsi %i : tensor<64xi32> to tensor<64xi64>\n"
        f"    %1 = tt.int_to_ptr %0 : tensor<64xi64> -> {PS}",
        f"(tensor<64xi64>) -> {PS}",
    ),
    (
        "tt.ptr_to_int",
        f"%0 = tt.ptr_to_int %ps : {PS} -> tensor<64xi64>",
        f"({PS}) -> tensor<64xi64>",
    ),
    ("tt.bitcast", f"%0 = tt.bitcast %ps : {PS} -> {QS}", f'"tt.bitcast"(%2) : ({PS}) -> {QS}'),
    ("tt.bitcast", f"%0 = tt.bitcast %x : {T} -> tensor<64xi32>", f"arith.bitcast %cst_0 : {T} to"),
    (
        "tt.bitcast",
        f"%0 = tt.bitcast %ps : {PS} -> tensor<64x!tt.ptr<i1>>",
        "-> tensor<64x!tt.ptr<i8>>",
    ),
    (
        "tt.fp_to_fp",
        f"%0 = tt.fp_to_fp %x, rounding = rtz : {T} -> tensor<64xbf16>",
        f'"tt.fp_to_fp"(%cst_0) {{rounding = "rtz"}} : ({T}) -> tensor<64xbf16>',
    ),
    (
        "tt.fp_to_fp",
        f"%0 = tt.fp_to_fp %x, rounding = rtne : {T} -> tensor<64xf16>",
        f"arith.truncf %cst_0 : {T} to tensor<64xf16>",
    ),
    (
        "tt.fp_to_fp",
        f"%0 = tt.fp_to_fp %x, rounding = rtne : {T} -> tensor<64xf8E4M3FN>",
        f'"tt.fp_to_fp"(%cst_0) {{rounding = "rtne"}} : ({T}) -> tensor<64xf8E4M3FN>',
    ),
    ("tt.clampf", f"%0 = tt.clampf %x, %x, %x, propagateNan = all : {T}", "arith.minimumf"),
    ("tt.clampf", f"%0 = tt.clampf %x, %x, %x, propagateNan = none : {T}", "arith.minnumf"),
    (
        "tt.precise_sqrt",
        f"%0 = tt.precise_sqrt %x : {T}",
        f'"tt.precise_sqrt"(%cst_0) : ({T}) -> {T}',
    ),
    ("tt.precise_divf", f"%0 = tt.precise_divf %x, %x : {T}", f"({T}, {T}) -> {T}"),
    ("tt.approx_divf", f"%0 = tt.approx_divf %x, %x : {T}", f"arith.divf %cst_0, %cst_0 : {T}"),
    (
        "tt.mulhiui",
        "%0 = tt.mulhiui %i, %n1 : tensor<64xi32>".replace("%n1", "%i"),
        '"tt.mulhiui"(%0, %0)',
    ),
    (
        "tt.dot",
        SQUARE + "    %0 = arith.constant dense<0.0> : tensor<64x64xf32>\n    %1 = tt.dot %l, "
        "%l, %0, inputPrecision = tf32x3 {maxNumImpreciseAcc = 32 : i32} : tensor<64x64xf16> * "
        "tensor<64x64xf16> -> tensor<64x64xf32>",
        '{inputPrecision = "tf32x3", maxNumImpreciseAcc = 32 : i32}',
    ),
    (
        "tt.dot",
        SQUARE + "    %0 = arith.constant dense<0.0> : tensor<64x64xf32>\n    %1 = tt.dot %l, "
        "%l, %0 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>",
        '{inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32}',
    ),
    (
        "tt.reduce",
        f'%0 = "tt.reduce"(%x) <{{axis = 0 : i32}}> {REGION} : ({T}) -> f32'.replace(
            "NAME", "tt.reduce.return"
        ),
        "resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>",
    ),
    (
        "tt.reduce.return",
        f'%0 = "tt.reduce"(%x) ({{\n    ^bb0(%a: f32, %b: f32):\n      '
        f"tt.reduce.return %a : f32\n    }}) {{axis = 0 : i32}} : ({T}) -> f32",
        '"tt.reduce_return"(%arg6)',
    ),
    (
        "tt.scan",
        f'%0 = "tt.scan"(%x) <{{axis = 0 : i32, reverse = true}}> {REGION} : ({T}) -> {T}'.replace(
            "NAME", "tt.scan.return"
        ),
        "reverse = true",
    ),
    (
        "tt.scan.return",
        f'%0 = "tt.scan"(%x) <{{axis = 0 : i32, reverse = false}}> {REGION} : ({T}) -> {T}'.replace(
            "NAME", "tt.scan.return"
        ),
        '"tt.scan_return"(%6)',
    ),
    (
        "tt.map_elementwise",
        f'%0 = "tt.map_elementwise"(%x, %x) <{{pack = 1 : i32}}> {REGION} : '
        f"({T}, {T}) -> {T}".replace("NAME", "tt.map_elementwise.return"),
        '"tt.map_elementwise"(',
    ),
    (
        "tt.map_elementwise.return",
        f'%0 = "tt.map_elementwise"(%x, %x) <{{pack = 1 : i32}}> {REGION} '
        f": ({T}, {T}) -> {T}".replace("NAME", "tt.map_elementwise.return"),
        '"tt.map_elementwise_return"(%6)',
    ),
    (
        "tt.histogram",
        "%0 = tt.histogram %i, %m : tensor<64xi32> -> tensor<32xi32>",
        '"tt.histogram"(%0, %cst) {operandSegmentSizes = array<i32: 1, 1>}',
    ),
    (
        "tt.gather",
        f"%0 = tt.gather %x[%i] {{axis = 0 : i32}} : ({T}, tensor<64xi32>) -> {T}",
        '"tt.gather"(%cst_0, %0) {axis = 0 : i32}',
    ),
    (
        "tt.extern_elementwise",
        '%0 = tt.extern_elementwise %x, %x {libname = "", libpath = "", '
        f'pure = true, symbol = "__nv_powf"}} : ({T}, {T}) -> {T}',
        'libname = "libdevice"',
    ),
    (
        "tt.elementwise_inline_asm",
        '%0:2 = tt.elementwise_inline_asm "{ mov.b32 $0, $2; }" '
        '{constraints = "=r,=r,r", packed_element = 1 : i32, pure = false} %x : '
        f"{T} -> {T}, tensor<64xi32>",
        '"tt.inline_asm_with_effects"(%cst_0) {asm_string = "{ mov',
    ),
    (
        "tt.elementwise_inline_asm",
        '%0 = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = '
        f'"=r,r", packed_element = 4 : i32, pure = true}} %x : {T} -> {T}',
        "packed_element = 4 : i32",
    ),
    (
        "tt.elementwise_inline_asm",
        '%0 = tt.elementwise_inline_asm "mov.b32 $0, 1;" {constraints = '
        '"=r", packed_element = 1 : i32, pure = true} -> i32',
        '"tt.inline_asm"() {asm_string = "mov.b32 $0, 1;"',
    ),
    (
        "tt.print",
        'tt.print " x: " {hex = true, isSigned = array<i32: 0, 1>} : %x, %i : '
        f"{T}, tensor<64xi32>",
        'prefix = " x: ", signed = array<i32: 0, 1>',
    ),
    ("tt.print", 'tt.print " here" {hex = false, isSigned = array<i32>}', 'prefix = " here"'),
    (
        "tt.assert",
        'tt.assert %m, "a \\"b\\"" : tensor<64xi1>',
        'message = "k.ttir:9: assertion failed: a \\22b\\22"',
    ),
    ("tt.grid_dependency_wait", "tt.grid_dependency_wait", 'kind = "wait"'),
    (
        "tt.grid_dependency_launch_dependents",
        "tt.grid_dependency_launch_dependents",
        'kind = "launch_dependents"',
    ),
    ("ttg.barrier", "ttg.barrier all", '"tt.debug_barrier"()'),
    ("ttg.barrier", "ttg.barrier local|global_read", '"tt.debug_barrier"()'),
    ("gpu.barrier", "gpu.barrier", '"tt.debug_barrier"()'),
    ("llvm.intr.assume", "llvm.intr.assume %c : i1", '"tt.splat"(%arg0)'),
    (
        "tt.load",
        f"%0 = tt.load %ps : {PS}",
        'cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false}',
    ),
    (
        "tt.load",
        f"%0 = tt.load %ps, %m, %x {{isVolatile = true, cachePolicy = #tt.cache_policy"
        f"<cache_modifier = ca, eviction_policy = evict_first>}} : {PS}",
        'cache = ".ca", evict = "evict_first", operandSegmentSizes = array<i32: 1, 1, 1>, '
        "volatile = true}",
    ),
    (
        "tt.load",
        f"%0 = tt.load %ps, %m cacheModifier = cg evictionPolicy = evict_last : {PS}",
        'cache = ".cg", evict = "evict_last"',
    ),
    ("tt.load", "%0 = tt.load %p : !tt.ptr<f32>", "(!tt.ptr<f32>) -> f32"),
    (
        "tt.load",
        f"%0 = tt.load %qs {{tt.divisibility = dense<8> : tensor<1xi32>}} : {QS}\n    %1 = "
        "arith.addi %0, %0 {tt.contiguity = dense<[4]> : tensor<1xi32>} : tensor<64xi32>",
        "tt.contiguity = array<i64: 4>",
    ),
    ("tt.store", f"tt.store %ps, %x, %m : {PS}", "array<i32: 1, 1, 1>"),
    (
        "tt.store",
        "tt.store %p, %s {cachePolicy = #tt.cache_policy<cache_modifier = wt, "
        "eviction_policy = evict_normal>} : !tt.ptr<f32>",
        'cache = ".wt", evict = ""',
    ),
    (
        "tt.atomic_rmw",
        f"%0 = tt.atomic_rmw exch, release, sys, %qs, %i, %m : ({QS}, tensor<64xi32>, "
        "tensor<64xi1>) -> tensor<64xi32>",
        'rmw_op = "xchg", scope = "sys", sem = "release"',
    ),
    (
        "tt.atomic_rmw",
        "%0 = tt.atomic_rmw fadd, relaxed, cta, %p, %s : (!tt.ptr<f32>, f32) -> f32",
        'array<i32: 1, 1, 0>, rmw_op = "fadd"',
    ),
    (
        "tt.atomic_cas",
        "%0 = tt.atomic_cas acq_rel, gpu, %q, %n, %n : (!tt.ptr<i32>, i32, i32) -> i32",
        '{scope = "gpu", sem = "acq_rel"}',
    ),
    ("tt.make_tensor_descriptor", DESC, '!tt.tensordesc<tensor<8x16xf32>, "zero">'),
    (
        "tt.make_tensor_descriptor",
        DESC.replace("[%k, %k]", "[%k, %k] {padding = 2 : i32}"),
        '!tt.tensordesc<tensor<8x16xf32>, "nan">',
    ),
    (
        "tt.descriptor_load",
        DESC + f"    %0 = tt.descriptor_load %d[%n, %n] : !tt.tensordesc<8x16xf32> -> {BLOCK}",
        "operandSegmentSizes = array<i32: 1, 2>",
    ),
    (
        "tt.descriptor_load",  # as 3.6 has it
        DESC.replace("8x16xf32", "tensor<8x16xf32>")
        + "    %0 = tt.descriptor_load %d[%n, %n] cacheModifier = cg : "
        f"!tt.tensordesc<{BLOCK}> -> {BLOCK}",
        'cache = ".cg"',
    ),
    (
        "tt.descriptor_store",
        DESC + f"    %0 = arith.constant dense<1.0> : {BLOCK}\n    "
        f"tt.descriptor_store %d[%n, %n], %0 : !tt.tensordesc<8x16xf32>, {BLOCK}",
        '"tt.descriptor_store"(%6, %cst_1, %arg2, %arg2)',
    ),
    (
        "tt.descriptor_reduce",
        DESC + f"    %0 = arith.constant dense<1.0> : {BLOCK}\n    "
        f"tt.descriptor_reduce min, %d[%n, %n], %0 : !tt.tensordesc<8x16xf32>, {BLOCK}",
        'is_unsigned = false, kind = "min"',
    ),
    (
        "tt.descriptor_gather",
        "%0 = arith.trunci %i : tensor<64xi32> to tensor<64xi16>\n    %1 = "
        "tt.descriptor_gather %desc[%0, %n] : (!tt.tensordesc<1x32xf32>, tensor<64xi16>, i32) -> "
        "tensor<64x32xf32>",
        '"tt.descriptor_gather"(%arg5, %6, %arg2)',
    ),
    (
        "tt.descriptor_scatter",
        "%0 = arith.constant dense<1.0> : tensor<64x32xf32>\n    "
        "tt.descriptor_scatter %desc[%i, %n], %0 : !tt.tensordesc<1x32xf32>, tensor<64xi32>, i32, "
        "tensor<64x32xf32>",
        '"tt.descriptor_scatter"(%arg5, %0, %arg2, %cst_1)',
    ),
    (
        "ttg.convert_layout",
        WITH_LAYOUT + "    %0 = ttg.convert_layout %l : tensor<64xf32, #blocked> "
        "-> tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [2, 1], "
        "threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>}>>",
        f"({L}) -> tensor<64xf32, #ttg.linear<[[1]], [[2], [4], [8], [16], [32]], [[0], [0]], []>>",
    ),
    ("ttg.local_alloc", RESERVED, f'"ttg.local_reserve"() : () -> {OURS}'),
    (
        "ttg.local_alloc",
        WITH_LAYOUT + f"    %0 = ttg.local_alloc %l : (tensor<64xf32, #blocked>) -> {MEMORY}",
        f'"ttg.local_store"(%cst_1, %5) : ({L}, {OURS})',
    ),
    (
        "ttg.local_alloc",
        WITH_LAYOUT
        + f"    %0 = ttg.local_alloc %l : (tensor<64xf32, #blocked>) -> {MEMORY}".replace(
            ", mutable", ""
        ),
        f'"ttg.local_alloc"(%cst_1) : ({L}) -> !ttg.memdesc<',
    ),
    ("ttg.local_dealloc", RESERVED + f"    ttg.local_dealloc %mem : {MEMORY}", "local_reserve"),
    (
        "ttg.local_load",
        RESERVED + f"    %0 = ttg.local_load %mem : {MEMORY} -> tensor<64xf32, #blocked>",
        f'"ttg.local_load"(%5) : ({OURS}) -> {L}',
    ),
    (
        "ttg.local_load",
        COPIED + f"    %0 = ttg.local_load %mem token %t : {MEMORY} -> tensor<64xf32, #blocked>",
        '"ttg.local_load"(%5)',
    ),
    (
        "ttg.local_store",
        RESERVED + WITH_LAYOUT + "    ttg.local_store %l, %mem : "
        f"tensor<64xf32, #blocked> -> {MEMORY}",
        f"({L}, {OURS}) -> ()",
    ),
    (
        "ttg.memdesc_index",
        RESERVED.replace("<64xf32", "<3x64xf32") + "    %0 = ttg.memdesc_index "
        f"%mem[%n] : {MEMORY.replace('<64', '<3x64')} -> {MEMORY}",
        '"ttg.memdesc_index"(%5, %arg2)',
    ),
    (
        "ttg.memdesc_trans",
        HELD + f"    %0 = ttg.memdesc_trans %h {{order = array<i32: 1, 0>}} : {MATRIX} -> {TURNED}",
        '"ttg.memdesc_trans"(',
    ),
    ("ttg.async_copy_global_to_local", COPIED, "operandSegmentSizes = array<i32: 1, 1, 1>"),
    (
        "ttg.async_commit_group",
        COPIED + "    %0 = ttg.async_commit_group tokens %t",
        '"ttg.async_commit_group"(%7) {operandSegmentSizes = array<i32: 1, 0>} : '
        "(!ttg.async_token) -> !ttg.async_token",
    ),
    (
        "ttg.async_wait",
        COPIED + "    %0 = ttg.async_commit_group tokens %t\n    %1 = ttg.async_wait "
        "%0, %t {num = 2 : i32}",
        '"ttg.async_wait"(%8) {pendings = 2 : i32}',
    ),
    (
        "ttg.async_wait",
        COPIED + "    ttg.async_wait {num = 0 : i32}",
        '"ttg.async_commit_group"() {operandSegmentSizes = array<i32: 0, 0>} : '
        "() -> !ttg.async_token",
    ),
    (
        "ttng.warp_group_dot",
        HELD + f"    %0 = ttng.warp_group_dot %h, %h, %acc {{inputPrecision = "
        f"0 : i32, isAsync = true}} : {MATRIX} * {MATRIX} -> {ACC}",
        "{imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>}",
    ),
    (
        "ttng.warp_group_dot",
        HELD + "    %r = ttg.convert_layout %l : tensor<64x64xf16, #ttg.blocked<"
        "{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], "
        "order = [1, 0]}>> -> "
        "tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 3, "
        "versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>, kWidth = 1}>>\n"
        "    %0 = ttng.warp_group_dot %r, %h, %acc, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, "
        "parent = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], "
        f"instrShape = [16, 64, 16]}}>, kWidth = 1}}>> * {MATRIX} -> {ACC}",
        '"ttng.warp_group_dot_wait"(%8) {pendings = 0 : i32}',
    ),
    (
        "ttng.warp_group_dot_wait",
        HELD + f"    %0 = ttng.warp_group_dot %h, %h, %acc {{isAsync = "
        f"true}} : {MATRIX} * {MATRIX} -> {ACC}\n    %1:2 = ttng.warp_group_dot_wait %0, %h "
        f"{{pendings = 1 : i32}} : {ACC}, {MATRIX}\n    %2 = arith.addf %1#0, %1#0 : {ACC}",
        '"ttng.warp_group_dot_wait"(%6) {pendings = 1 : i32}',
    ),
    (
        "ttng.fence_async_shared",
        "ttng.fence_async_shared {bCluster = false}",
        'fence_async_shared"()',
    ),
    (
        "ttng.init_barrier",
        MADE + f"    ttng.init_barrier %bar, 2 : {BARRIER}",
        '"ttng.init_barrier"(%6) {count = 2 : i32}',
    ),
    (
        "ttng.inval_barrier",
        MADE + f"    ttng.inval_barrier %bar : {BARRIER}",
        '"ttng.inval_barrier"(%6)',
    ),
    (
        "ttng.barrier_expect",
        MADE + f"    ttng.barrier_expect %bar, 128, %c : {BARRIER}",
        "{bytes = 128 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}",
    ),
    (
        "ttng.wait_barrier",
        MADE + ROW + f"    ttng.wait_barrier %bar, %n deps %to : {BARRIER}, {ROW_MEMORY}",
        '"ttng.wait_barrier"(%6, %arg2)',
    ),
    (
        "ttng.async_tma_copy_global_to_local",
        MADE + ROW + "    ttng.async_tma_copy_global_to_local %desc[%n, %n] %to, %bar, %c : "
        f"{DESC_TYPE}, {BARRIER} -> {ROW_MEMORY}",
        "operandSegmentSizes = array<i32: 1, 1, 1, 1, 2>",
    ),
    (
        "ttng.async_tma_copy_local_to_global",
        ROW + f"    ttng.async_tma_copy_local_to_global %desc[%n, %n] %to : {DESC_TYPE}, "
        f"{ROW_MEMORY}",
        '{operandSegmentSizes = array<i32: 1, 1, 2>, reduction = "none"}',
    ),
    (
        "ttng.async_tma_reduce",
        ROW + f"    ttng.async_tma_reduce add, %desc[%n, %n] %to : {DESC_TYPE}, {ROW_MEMORY}",
        'reduction = "fadd"',
    ),
    (
        "ttng.async_tma_store_wait",
        "ttng.async_tma_store_wait {pendings = 1 : i32, read_only}",
        "{landed = false, pendings = 1 : i32}",
    ),
]
