"""Kernels that call an op with what it does not take."""

import proton.language as tl
from proton.base.errors import CompileTimeAssertionFailure
from proton.language.extra import libdevice
from proton.language.function import DeviceFunction
from tests.ir.rejected import rejected


@DeviceFunction
def largest(a, b):
    return max(a, b)


@DeviceFunction
def first_of_four(a, b, c, d):
    return a


# Shapes and creation


@rejected(
    "arange's range must be a power of 2",
    "tl.arange(0, 6)",
    "end - start is 6: round it up with proton.next_power_of_2",
)
def odd_range(n):
    tl.arange(0, 6)


@rejected("end must be a constexpr integer", "tl.arange(0, n)", "tl.constexpr")
def dynamic_range(n):
    tl.arange(0, n)


@rejected("Shape element 1 must be a power of 2", "tl.zeros((4, 3), tl.int32)", "mask the rest")
def odd_shape(n):
    tl.zeros((4, 3), tl.int32)


@rejected(
    "a block holds at most 1048576 elements", "tl.zeros((2048, 1024), tl.int8)", "smaller blocks"
)
def huge_shape(n):
    tl.zeros((2048, 1024), tl.int8)


@rejected(
    "shapes [4] and [8] cannot be broadcast together",
    "tl.arange(0, 4) + tl.arange(0, 8)",
    "x[:, None]",
)
def shapes_differ(n):
    tl.arange(0, 4) + tl.arange(0, 8)


@rejected(
    "reshape keeps the number of elements, got [8] (8) to [4, 4] (16)",
    "tl.arange(0, 8)",
    "the same product",
)
def reshapes_wrong(n):
    tl.arange(0, 8).reshape(4, 4)


@rejected("unsupported tensor index 0", "x[0]", "through a pointer")
def indexes_block(n):
    x = tl.arange(0, 4)
    x[0]


@rejected(
    "dims must permute 2 dimensions, got (0, 0)", "tl.permute(x, 0, 0)", "each of 0 to 1 once"
)
def permutes_wrong(n):
    x = tl.zeros((4, 8), tl.int32)
    tl.permute(x, 0, 0)


@rejected("program_id axis must be 0, 1, or 2 but got 3", "tl.program_id(3)", "up to three axes")
def program_axis(n):
    tl.program_id(3)


# Memory


@rejected("tl.load: the first argument must be a pointer", "tl.load(n)", "pointer argument")
def loads_number(n):
    tl.load(n)


@rejected(
    "a scalar pointer takes a scalar mask",
    "tl.load(x_ptr, mask=tl.arange(0, 4) < n)",
    "add tl.arange",
)
def masks_scalar(x_ptr, n):
    tl.load(x_ptr, mask=tl.arange(0, 4) < n)


@rejected("shapes [4] and [8] cannot be broadcast", "tl.load(x_ptr + tl.arange(0, 4)", "x[:, None]")
def mask_shape(x_ptr, n):
    tl.load(x_ptr + tl.arange(0, 4), mask=tl.arange(0, 8) < n)


@rejected("a mask is of int1, got i32", "tl.load(x_ptr, mask=n)", "write mask != 0")
def mask_of_integers(x_ptr, n):
    tl.load(x_ptr, mask=n)


@rejected("tl.store: a mask is of int1, got i32[4]", "tl.store(x_ptr + i", "mask != 0")
def mask_of_integers_in_a_store(x_ptr, n):
    i = tl.arange(0, 4)
    tl.store(x_ptr + i, 1.0, mask=i)


@rejected("tl.atomic_add: a mask is of int1", "tl.atomic_add(x_ptr, 1.0, mask=n)", "mask != 0")
def mask_of_integers_in_an_atomic(x_ptr, n):
    tl.atomic_add(x_ptr, 1.0, mask=n)


@rejected("tl.load: other needs a mask", "tl.load(x_ptr, other=0.0)", "pass mask=")
def other_without_mask(x_ptr):
    tl.load(x_ptr, other=0.0)


@rejected("a scalar pointer takes a scalar, got i32[4]", "tl.store(x_ptr", "reduce the value")
def stores_block(x_ptr):
    tl.store(x_ptr, tl.arange(0, 4))


@rejected("Cannot store to a constant pointer", "tl.store(const_ptr, 1.0)", "leave tl.const out")
def stores_const(const_ptr):
    tl.store(const_ptr, 1.0)


@rejected("cache_modifier must be one of", 'tl.load(x_ptr, cache_modifier=".zz")', "leave it out")
def cache_modifier(x_ptr):
    tl.load(x_ptr, cache_modifier=".zz")


@rejected("sem must be one of 'relaxed'", 'tl.atomic_add(i_ptr, 1, sem="seq_cst")', "acq_rel")
def memory_order(i_ptr):
    tl.atomic_add(i_ptr, 1, sem="seq_cst")


@rejected("tl.atomic_and is not defined on fp32", "tl.atomic_and(x_ptr, 1)", "it takes integers")
def atomic_and_float(x_ptr):
    tl.atomic_and(x_ptr, 1)


# Pointer arithmetic


@rejected("two pointers cannot be combined by +", "x_ptr + x_ptr", "an integer offset")
def adds_pointers(x_ptr):
    x_ptr + x_ptr


@rejected("an integer minus a pointer is not defined", "1 - x_ptr", "pointer - integer")
def subtracts_pointer(x_ptr):
    1 - x_ptr


@rejected("a pointer moves by integers, got fp32", "x_ptr + f", ".to(tl.int32)")
def float_offset(x_ptr, f):
    x_ptr + f


@rejected("* is not defined on pointers (*fp32)", "x_ptr * 2", "pointers take + and -")
def multiplies_pointer(x_ptr):
    x_ptr * 2


# Products, reductions, elementwise ops


@rejected("inner sizes must agree, got [16, 32] and [16, 32]", "tl.dot(a, a)", "tl.trans")
def dot_shape(n):
    a = tl.zeros((16, 32), tl.float32)
    tl.dot(a, a)


@rejected("tl.dot takes blocks of two dimensions or more", "tl.dot(a, a)", "x[:, None]")
def dot_rank(n):
    a = tl.zeros((16,), tl.float32)
    tl.dot(a, a)


@rejected("the same ones ahead of the last two", "tl.dot(a, b)", "tl.broadcast_to")
def dot_batches(n):
    a, b = tl.zeros((2, 16, 16), tl.float32), tl.zeros((4, 16, 16), tl.float32)
    tl.dot(a, b)


@rejected("takes input_precision or allow_tf32, and got both", "tl.dot(", "leave allow_tf32 out")
def dot_precisions(n):
    a = tl.zeros((16, 16), tl.float32)
    tl.dot(a, a, input_precision="ieee", allow_tf32=False)


@rejected("max_num_imprecise_acc (32) must be <= K (16)", "tl.dot(", "pass 0")
def dot_imprecise(q):
    a = tl.zeros((16, 16), tl.float8e5)
    tl.dot(a, a, max_num_imprecise_acc=32)


@rejected("rhs_k_pack=False is for", "tl.dot_scaled(", "leave it out")
def dot_scaled_unpacked(n):
    a = tl.zeros((32, 32), tl.float16)
    tl.dot_scaled(a, None, "fp16", a, None, "fp16", rhs_k_pack=False)


@rejected("lhs_scale must be a block of uint8", "tl.dot_scaled(", "tl.dot")
def dot_scaled_by_floats(n):
    a = tl.zeros((32, 32), tl.float16)
    tl.dot_scaled(a, tl.zeros((32, 1), tl.float32), "fp16", a, None, "fp16")


@rejected("is for 16 elements each, rhs_scale for 32", "tl.dot_scaled(", "one of the sizes")
def dot_scaled_of_unlike_groups(n):
    a = tl.zeros((32, 64), tl.uint8)
    few, many = tl.zeros((32, 2), tl.uint8), tl.zeros((32, 4), tl.uint8)
    tl.dot_scaled(a, many, "e5m2", tl.zeros((64, 32), tl.uint8), few, "e5m2")


@rejected("the inner size must be 16 elements or more", "tl.dot_scaled(", "more of K")
def dot_scaled_of_eight(n):
    a = tl.zeros((8, 8), tl.float16)
    tl.dot_scaled(a, tl.zeros((8, 1), tl.uint8), "fp16", a, None, "fp16")


@rejected(
    "both sides must have one dtype, got fp32 and fp16",
    "tl.dot(a, a.to(tl.float16))",
    "cast one side",
)
def dot_dtype(n):
    a = tl.zeros((16, 16), tl.float32)
    tl.dot(a, a.to(tl.float16))


@rejected("acc must have shape [16, 16], got fp32[16]", "tl.dot(a, a, ", "tl.zeros((16, 16)")
def dot_acc(n):
    a = tl.zeros((16, 16), tl.float32)
    tl.dot(a, a, tl.zeros((16,), tl.float32))


@rejected(
    "invalid axis 1, which must lie in [-1, 1)",
    "core.reduce(input, axis, _add, keep_dims)",
    "negative axes",
)
def reduce_axis(n):
    tl.sum(tl.arange(0, 4), axis=1)


@rejected(
    "invalid axis 1, which must lie in [-1, 1)",
    "core.static_assert(-rank <= axis < rank, wrong)",
    "known while compiling",
    kind=CompileTimeAssertionFailure,
)
def index_axis(n):
    tl.argmax(tl.arange(0, 4), axis=1)


@rejected(
    "combine_fn must be a @proton.jit function", "tl.reduce(tl.arange(0, 4), 0, max)", "decorate"
)
def reduce_function(n):
    tl.reduce(tl.arange(0, 4), 0, max)


@rejected("tl.exp takes floating point, got i32", "tl.exp(n)", "tl.float32")
def exp_of_int(n):
    tl.exp(n)


@rejected("tl.exp takes fp32 or fp64, got fp16", "tl.exp(tl.load(h_ptr))", "tl.float32")
def exp_of_half(h_ptr):
    tl.exp(tl.load(h_ptr))


@rejected("~ is not defined on fp32", "~f", "`not`")
def inverts_float(f):
    ~f


@rejected("bitcast keeps the width", "f.to(tl.int16, bitcast=True)", "without bitcast")
def bitcast_width(f):
    f.to(tl.int16, bitcast=True)


@rejected("tl.reduce takes 1 to 8 blocks at once, got 9", "tl.reduce(", "in several steps")
def reduces_nine(n):
    x = tl.arange(0, 4)
    tl.reduce((x, x, x, x, x, x, x, x, x), 0, largest)


@rejected("fp8 cannot be mixed with integers (fp8e5 and i32)", "q + n", ".to(tl.float16)")
def adds_integer_to_fp8(q, n):
    q + n


@rejected("fp8 cannot be mixed with integers (i32 and fp8e5)", "n + q", ".to(tl.float16)")
def adds_integer_and_fp8(q, n):
    n + q


@rejected("a constant cannot be a pointer", "tl.load(p_ptr, mask=n > 0", "cast an integer")
def other_of_pointers(p_ptr, n):
    tl.load(p_ptr, mask=n > 0, other=1)


# Scans, histograms, gathers


@rejected(
    "scan: invalid axis 1, which must lie in [-1, 1)", "core.associative_scan(input", "negative"
)
def scan_axis(n):
    tl.cumsum(tl.arange(0, 4), axis=1)


@rejected("tl.associative_scan: a scalar cannot be scanned", "core.associative_scan(", "as it is")
def scans_scalar(n):
    tl.cumsum(n)


@rejected("combine_fn must be a @proton.jit function", "tl.associative_scan(", "decorate")
def scan_function(n):
    tl.associative_scan(tl.arange(0, 4), 0, max)


@rejected("reverse must be a constexpr bool, got i32", "tl.associative_scan(", "True or False")
def scan_direction(n):
    tl.associative_scan(tl.arange(0, 4), 0, largest, reverse=n)


@rejected("first_of_four must return 2 values, got 1", "tl.associative_scan(", "one value")
def scan_results(n):
    x = tl.arange(0, 4)
    tl.associative_scan((x, x), 0, first_of_four)


@rejected("tl.histogram takes a row of integers, got fp32[4]", "tl.histogram(", ".to(tl.int32)")
def histogram_of_floats(n):
    tl.histogram(tl.zeros((4,), tl.float32), 8)


@rejected("tl.histogram takes integers of 32 bits, got i16[4]", "tl.histogram(", ".to(tl.int32)")
def histogram_of_short(n):
    tl.histogram(tl.zeros((4,), tl.int16), 8)


@rejected("tl.histogram takes a row of integers, got i32[4, 4]", "tl.histogram(", ".ravel()")
def histogram_of_rows(n):
    tl.histogram(tl.zeros((4, 4), tl.int32), 8)


@rejected("Shape element 0 must be a power of 2", "tl.histogram(tl.arange(0, 4), 6)", "mask")
def histogram_bins(n):
    tl.histogram(tl.arange(0, 4), 6)


@rejected("tl.gather: index must be integers, got fp32[4]", "tl.gather(", ".to(tl.int32)")
def gather_index(n):
    tl.gather(tl.arange(0, 4), tl.zeros((4,), tl.float32), 0)


@rejected("must be blocks of one rank, got i32[4] and i32", "tl.gather(", "x[:, None]")
def gather_rank(n):
    tl.gather(tl.arange(0, 4), n, 0)


@rejected("only sizes along axis 0 may differ, got [4, 4] and [8, 2]", "tl.gather(", "broadcast")
def gather_sizes(n):
    tl.gather(tl.zeros((4, 4), tl.float32), tl.zeros((8, 2), tl.int32), 0)


# Printing, libraries, fp8


@rejected("tl.device_print shows up to 8 values, got 9", "tl.device_print(", "several calls")
def prints_nine(n):
    tl.device_print("n", n, n, n, n, n, n, n, n, n)


@rejected("a value of tl.device_print must be a tensor or a number, got 'n'", "print(", "number")
def prints_text(n):
    print("n", "n")


@rejected("libdevice.tanh takes (fp32) or (fp64), got (i32)", "libdevice.tanh(", ".to(...)")
def tanh_of_integer(n):
    libdevice.tanh(n)


@rejected("or (fp32, i32) or (fp64, i32), got (i32, fp32)", "tl.extra", ".to(...)")
def power_of_mixed(f, n):
    tl.extra.libdevice.pow(n, f)


@rejected("libdevice.ffs takes (i32) or (i64), got (1.0)", "libdevice.ffs(1.0)", ".to(...)")
def ffs_of_float(n):
    libdevice.ffs(1.0)


@rejected("libdevice.tanh: missing a required argument: 'arg0'", "libdevice.tanh()", "parameters")
def tanh_of_nothing(n):
    libdevice.tanh()


@rejected("duplicate axes, normalized axes = [0, 0]", "tl.expand_dims(", "once")
def expands_an_axis_twice(n):
    tl.expand_dims(tl.arange(0, 16), (0, -3))


@rejected("fp_downcast_rounding is for conversions to narrower floats", "f.to(", "leave")
def rounds_to_a_wider_float(f):
    f.to(tl.float64, fp_downcast_rounding="rtne")


@rejected("fp_downcast_rounding is for conversions to narrower floats", "n.to(", "leave")
def truncates_an_integer_to_fp8(n):
    n.to(tl.float8e5, fp_downcast_rounding="rtz")
