"""The surface of Triton 3.9 that docs/language.md goes through, name by name.

`OPS` has a piece of a kernel for each op that has a dtype: `x` and `y` are blocks of 256 elements
of it, `at` their places, `x_ptr` and `y_ptr` where they lie, `m` is x as 16 x 16. It leaves its
result in `r`. `NAMES` lists what has no dtype, by where it is.
"""

PAIR = "\n".join(
    (
        "@proton.jit",
        "def larger(a, b):",
        "    return tl.maximum(a, b)",
        "",
        "@proton.jit",
        "def halved_if_large(a):",
        "    return a if a < 3 else a - 1",
        "",
    )
)

_ATOMICS = {
    f"atomic_{name}": f"r = tl.atomic_{name}(y_ptr + at, x)"
    for name in ("add", "max", "min", "and", "or", "xor", "xchg")
}
_MATH = "exp exp2 log log2 sin cos sqrt sqrt_rn rsqrt erf floor ceil abs sigmoid".split()
_BINARY = {
    **{f"x {op} y": f"r = x {op} y" for op in "+ - * / // % & | ^ == != < <= > >=".split()},
    **{f"x {op} y": f"r = x {op} (y - 1)" for op in ("<<", ">>")},
    "-x": "r = -x",
    "~x": "r = ~x",
    "not x": "r = not (x.sum() > 0)",
    "x.logical_and(y)": "r = x.logical_and(y)",
    "x.logical_or(y)": "r = x.logical_or(y)",
}
_DESCRIPTOR = "d = tl.make_tensor_descriptor(x_ptr, [16, 16], [16, 1], [16, 16])\n"
_ROWS = "d = tl.make_tensor_descriptor(x_ptr, [16, 16], [16, 1], [1, 16])\n"
_TARGET = "d = tl.make_tensor_descriptor(y_ptr, [16, 16], [16, 1], [16, 16])\n"
_AFTER = "\nr = tl.load(y_ptr + at)"
_BLOCK = "b = tl.make_block_ptr(x_ptr, (16, 16), (16, 1), (0, 0), (16, 16), (1, 0))\n"

OPS: dict[str, dict[str, str]] = {
    "Operators": _BINARY,
    "Creation and shape": {
        "full": "r = tl.full((256,), 2, x.dtype)",
        "zeros": "r = tl.zeros((256,), x.dtype)",
        "zeros_like": "r = tl.zeros_like(x)",
        "cast": "r = tl.cast(x, tl.float32)",
        "to, from fp32": "r = at.to(tl.float32).to(x.dtype)",
        "to, bitcast": "r = x.to(x.dtype, bitcast=True)",
        "to_tensor": "r = tl.to_tensor(x)",
        "broadcast": "r, _ = tl.broadcast(x, y)",
        "broadcast_to": "r = tl.broadcast_to(x[None, :], 2, 256).reshape(512).reshape(2, 256)"
        ".sum(0)",
        "expand_dims": "r = tl.expand_dims(x, 0).reshape(256)",
        "squeeze, unsqueeze": "r = tl.squeeze(tl.unsqueeze(x, 0), 0)",
        "reshape": "r = tl.reshape(m, 256)",
        "view": "r = m.view(256)",
        "ravel": "r = tl.ravel(m)",
        "permute": "r = tl.ravel(tl.permute(m, 1, 0))",
        "trans": "r = tl.ravel(m.T)",
        "join": "r = tl.ravel(tl.join(x, y)).reshape(2, 256).max(0)",
        "split": "a, b = tl.split(x.reshape(128, 2))\nr = tl.cat(a, b, dim=0)",
        "interleave": "r = tl.interleave(x, y).reshape(2, 256).max(0)",
        "cat": "r = tl.cat(x, y, can_reorder=True).reshape(2, 256).max(0)",
        "item": "r = tl.max(x.reshape(1, 256), 1).item()",
        "gather": "r = tl.gather(x, 255 - at, 0)",
        "flip": "r = tl.flip(x)",
    },
    "Memory": {
        "load": "r = tl.load(x_ptr + at, mask=at < 200, other=1, cache_modifier='.ca')",
        "store": "tl.store(y_ptr + at, x, mask=at < 200, cache_modifier='.cs')" + _AFTER,
        "make_block_ptr, advance": _BLOCK
        + "r = tl.ravel(tl.load(tl.advance(b, (0, 4)), boundary_check=(0, 1)))",
        "make_tensor_descriptor, load": _DESCRIPTOR + "r = tl.ravel(d.load([4, 0]))",
        "tensor_descriptor.store": _TARGET + "d.store([4, 0], m)" + _AFTER,
        "load_tensor_descriptor": _DESCRIPTOR
        + "r = tl.ravel(tl.load_tensor_descriptor(d, [0, 0]))",
        "store_tensor_descriptor": _TARGET + "tl.store_tensor_descriptor(d, [0, 0], m)" + _AFTER,
        "tensor_descriptor.gather": _ROWS + "r = tl.ravel(d.gather(15 - tl.arange(0, 16), 0))",
        "tensor_descriptor.scatter": _ROWS.replace("x_ptr", "y_ptr")
        + "d.scatter(m, 15 - tl.arange(0, 16), 0)"
        + _AFTER,
        **{
            f"tensor_descriptor.atomic_{name}": _TARGET + f"d.atomic_{name}([0, 0], m)" + _AFTER
            for name in ("add", "max", "min", "and", "or", "xor")
        },
        **_ATOMICS,
        "atomic_cas": "r = tl.atomic_cas(y_ptr + at, y, x)",
        "atomic_load": "r = tl.atomic_load(x_ptr + at)",
        "atomic_store": "tl.atomic_store(y_ptr + at, x)" + _AFTER,
        "atomic_poll": "tl.atomic_poll(x_ptr, tl.load(x_ptr))\nr = x",
    },
    "Products": {
        "dot": "r = tl.ravel(tl.dot(m, m))",
        "dot, 3 dimensions": "b = x.reshape(1, 16, 16)\nr = tl.dot(b, b).reshape(256)",
        "dot_scaled": "s = tl.full((16, 1), 127, tl.uint8)\n"
        "w = tl.join(m, m).reshape(16, 32)\n"
        "r = tl.ravel(tl.dot_scaled(w, s, FORMAT, w.T, s, FORMAT))",
    },
    "Reductions, scans, order": {
        "sum": "r = tl.sum(tl.where(at < 3, x, x - x), axis=0)",  # of fp8, too, in any order
        **{name: f"r = tl.{name}(x, axis=0)" for name in "max min argmax argmin".split()},
        "xor_sum": "r = tl.xor_sum(x, axis=0)",
        "reduce_or": "r = tl.reduce_or(x, axis=0)",
        "reduce": "r = tl.reduce(x, 0, larger)",
        "cumsum": "r = tl.cumsum(x, axis=0)",
        "cumprod": "r = tl.cumprod(tl.where(at < 3, x, x - x + 1), axis=0)",
        "associative_scan": "r = tl.associative_scan(x, 0, larger)",
        "histogram": "r = tl.histogram(x, 256)",
        "sort": "r = tl.ravel(tl.sort(m, dim=1))",
        "topk": "r = tl.max(tl.topk(m, 4, dim=1))",
        "bitonic_merge": "r = tl.ravel(tl.bitonic_merge(m, dim=1))",
        "softmax": "r = tl.softmax(x)",
    },
    "Element by element": {
        "where": "r = tl.where(at < 100, x, y)",
        "maximum": "r = tl.maximum(x, y)",
        "minimum": "r = tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)",
        "clamp": "r = tl.clamp(x, y, y)",
        "add": "r = tl.add(x, y)",
        "sub": "r = tl.sub(x, y)",
        "mul": "r = tl.mul(x, y, sanitize_overflow=False)",
        **{name: f"r = tl.{name}(x)" for name in _MATH},
        "fma": "r = tl.fma(x, y, x)",
        "fdiv": "r = tl.fdiv(x, y)",
        "div_rn": "r = tl.div_rn(x, y)",
        "umulhi": "r = tl.umulhi(x, y)",
        "cdiv": "r = tl.cdiv(x, y)",
        "map_elementwise": "r = tl.map_elementwise(halved_if_large, x)",
        "inline_asm_elementwise": "r = tl.inline_asm_elementwise("
        "'mov.b32 $0, $1;', '=r,r', [x], dtype=x.dtype, is_pure=True, "
        "pack=4 // max(1, x.dtype.itemsize) if x.dtype.itemsize < 4 else 1)",
        "extra.libdevice.tanh": "r = libdevice.tanh(x)",
        "extra.libdevice.abs": "r = libdevice.abs(x)",
    },
    "Hints and debugging": {
        "multiple_of": "r = tl.multiple_of(x, 1)",
        "max_contiguous": "r = tl.max_contiguous(x, 1)",
        "max_constancy": "r = tl.max_constancy(x, 1)",
        "device_print": "tl.device_print('x', x)\nr = x",
        "device_assert": "tl.device_assert(x == x)\nr = x",
    },
    "Random numbers": {
        "philox": "r, _, _, _ = tl.philox(x, at, at, at, at)",
        "philox_impl": "r, _, _, _ = tl.philox_impl(x, y, x, y, x, y)",
        "randint": "r = tl.randint(x, at)",
        "randint4x": "r, _, _, _ = tl.randint4x(x, at)",
        "rand": "r = tl.rand(x, at)",
        "rand4x": "r, _, _, _ = tl.rand4x(x, at)",
        "randn": "r = tl.randn(x, at)",
        "randn4x": "r, _, _, _ = tl.randn4x(x, at)",
        "uint_to_uniform_float": "r = tl.uint_to_uniform_float(x)",
        "pair_uniform_to_normal": "r, _ = tl.pair_uniform_to_normal(x, y)",
    },
}

# Where names are -> the names. Those of ops above need not be here.
NAMES: dict[str, str] = {
    "tl": "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float8e5 float8e5b16 float8e4nv "
    "float8e4b8 float8e4b15 float16 bfloat16 float32 float64 void pi32_t dtype str_to_ty "
    "pointer_type block_type tuple_type constexpr_type slice_type tensor_descriptor_type constexpr "
    "tensor tuple slice const tensor_descriptor aggregate_replace PropagateNan "
    "TRITON_MAX_TENSOR_NUMEL program_id num_programs arange swizzle2d range static_range condition "
    "static_assert static_print assume debug_barrier expect_zero extra math core standard random "
    "target_info semantic",
    "tl.dtype": "is_fp8 is_fp8e4nv is_fp8e4b8 is_fp8e4b15 is_fp8e5 is_fp8e5b16 is_fp16 is_bf16 "
    "is_fp32 is_fp64 is_int1 is_int8 is_int16 is_int32 is_int64 is_uint8 is_uint16 is_uint32 "
    "is_uint64 is_floating is_standard_floating is_int is_int_signed is_int_unsigned is_bool "
    "is_void is_ptr is_block is_const is_dtype scalar primitive_bitwidth int_bitwidth itemsize "
    "fp_mantissa_width exponent_bias get_int_min_value get_int_max_value mangle with_element_ty "
    "SINT_TYPES UINT_TYPES FP_TYPES STANDARD_FP_TYPES OTHER_TYPES to_ir codegen_name KIND",
    "tl.core": "extern extern_elementwise builtin is_builtin must_use_result dispatch base_type "
    "base_value get_int_dtype _unwrap_if_constexpr",
    "tl.target_info": "current_target is_cuda cuda_capability_geq is_hip is_hip_cdna3 is_hip_cdna4 "
    "is_hip_gfx1250",
    "tl.extra.cuda": "globaltimer smid num_threads num_warps convert_custom_float8_sm70 "
    "convert_custom_float8_sm80 gdc_wait gdc_launch_dependents libdevice",
    "triton": "jit JITFunction KernelInterface autotune Config heuristics constexpr_function "
    "aggregate must_use_result cdiv next_power_of_2 compile CompilationError TritonError "
    "OutOfResources InterpreterError MockTensor TensorWrapper reinterpret set_allocator "
    "AsyncCompileMode FutureKernel language testing tools runtime compiler knobs",
    "a kernel": "fn src hash cache_key params arg_names device_caches warmup run repr debug "
    "add_pre_run_hook _unsafe_update_src parse module raw_src starting_line_number "
    "do_not_specialize do_not_specialize_on_alignment launch_metadata preload create_binder "
    "used_global_vals constexprs",
    "triton.testing": "do_bench do_bench_cudagraph assert_close Benchmark Mark perf_report "
    "do_bench_proton do_bench_cudagraph_proton get_dram_gbps get_max_tensorcore_tflops "
    "get_max_simd_tflops nvsmi cuda_memcheck set_gpu_clock cublas",
    "triton.compiler": "ASTSource CompiledKernel CompilationError CompileTimeAssertionFailure "
    "UnsupportedLanguageConstruct IRSource AttrsDescriptor LazyDict make_backend",
    "triton.runtime": "JITFunction KernelInterface Autotuner autotune Heuristics heuristics Config "
    "TensorWrapper MockTensor reinterpret OutOfResources AutotunerError driver errors cache "
    "interpreter build",
    "triton.knobs.runtime": "launch_enter_hook launch_exit_hook kernel_load_start_hook "
    "kernel_load_end_hook jit_cache_hook jit_post_compile_hook debug kernel_unload_hook "
    "add_stages_inspection_hook interpret override_arch",
    "triton.knobs.language": "default_fp_fusion fp32_default force_disable_fp_fusion "
    "fp_fusion_enabled",
    "triton.knobs.compilation": "always_compile listener override dump_ir store_binary_only "
    "use_ir_loc enable_asan disable_line_info front_end_debugging allow_non_constexpr_globals "
    "instrumentation_mode",
}

# Names that are not there -> why, and what to use. What is an error in itself says the same.
ABSENT = {
    "semantic": "the rules of ops are not Python's to call",
    "to_ir": "types of the IR are made inside",
    "codegen_name": "`mangle()` is the short name",
    "KIND": "`kind` is a word: int, uint, float, ...",
    "dispatch": "`extern_elementwise` does it by its table",
    "convert_custom_float8_sm70": "`.to` converts every format",
    "convert_custom_float8_sm80": "`.to` converts every format",
    "do_bench_proton": "`do_bench`, or a session: `proton.profile`",
    "do_bench_cudagraph_proton": "`do_bench_cudagraph`",
    "cuda_memcheck": "`PROTON_CHECK_BOUNDS=1` on the CPU, compute-sanitizer on a GPU",
    "set_gpu_clock": "`nvidia-smi -lgc`",
    "AttrsDescriptor": "`attrs` of `ASTSource` is a dict",
    "LazyDict": "`proton.runtime.launch.hooks.LazyDict`",
    "make_backend": "`proton.runtime.backend.backend_named`",
    "interpreter": "`proton.jit(interpret=True)`",
    "build": "no C is compiled at run time",
    "add_stages_inspection_hook": "`PROTON_DUMP_TO` and `PROTON_OVERRIDE_FROM`",
    "force_disable_fp_fusion": "`default_fp_fusion`, and `enable_fp_fusion` of a launch",
    "fp_fusion_enabled": "a kernel's `metadata.enable_fp_fusion`",
    "store_binary_only": "the cache keeps every level",
    "use_ir_loc": "`proton-opt` keeps locations",
    "enable_asan": "`PROTON_CHECK_BOUNDS=1`",
    "disable_line_info": "line information is always there",
    "instrumentation_mode": "`proton.profile` instruments",
}
