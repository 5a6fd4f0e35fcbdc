"""Kernels that make or use block pointers and tensor descriptors in ways they do not take."""

import proton.language as tl
from tests.ir.rejected import rejected

_MADE = "tl.make_block_ptr("


@rejected("base must be a pointer, got 1", _MADE, "first element")
def base_is_a_number(x_ptr):
    tl.make_block_ptr(1, (8,), (1,), (0,), (8,), (0,))


@rejected("strides must have 2 entries, one for each dimension", _MADE, "0 or 1")
def too_few_strides(x_ptr):
    tl.make_block_ptr(x_ptr, (8, 8), (1,), (0, 0), (8, 8), (1, 0))


@rejected("order must be a permutation of the dimensions 0 to 1, got (1, 1)", _MADE, "(1, 0)")
def order_repeats(x_ptr):
    tl.make_block_ptr(x_ptr, (8, 8), (8, 1), (0, 0), (8, 8), (1, 1))


@rejected("Shape element 0 must be a power of 2", _MADE, "mask the rest")
def odd_block(x_ptr):
    tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (6,), (0,))


@rejected("offsets[0] must fit in i32, got i64", _MADE, ".to(tl.int32)")
def wide_offset(x_ptr, n):
    tl.make_block_ptr(x_ptr, (8,), (1,), (n.to(tl.int64),), (8,), (0,))


@rejected("shape[0] must fit in i32, got i64", "tl.make_tensor_descriptor(", ".to(tl.int32)")
def wide_number_of_a_shape(x_ptr):
    tl.make_tensor_descriptor(x_ptr, [1 << 40, 8], [8, 1], [8, 8])


@rejected("shape[0] must be an integer scalar, got fp32", _MADE, "convert it first")
def float_shape(x_ptr):
    tl.make_block_ptr(x_ptr, (8.0,), (1,), (0,), (8,), (0,))


@rejected("tl.advance moves a block pointer, got *fp32", "tl.advance(", "add an integer")
def advances_a_pointer(x_ptr):
    x_ptr = tl.advance(x_ptr, (1,))


@rejected("+ is not defined on block pointers", "p + 1", "tl.advance")
def adds_to_a_block_pointer(x_ptr):
    p = tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))
    p + 1


@rejected("a block pointer takes neither mask nor other", "tl.load(p, mask=n > 0)", "boundary_che")
def masks_a_block_pointer(x_ptr, n):
    p = tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))
    tl.load(p, mask=n > 0)


@rejected("a block pointer takes no mask", "tl.store(p, 1, mask=n > 0)", "boundary_check")
def masks_a_block_store(x_ptr, n):
    p = tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))
    tl.store(p, 1, mask=n > 0)


@rejected("boundary_check must list some of the dimensions 0 to 0", "tl.load(p, bound", "(0,)")
def checks_no_dimension(x_ptr):
    p = tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))
    tl.load(p, boundary_check=(1,))


@rejected('padding_option="nan" needs floats', "tl.load(p, bound", '"zero"')
def pads_integers_with_nan(i_ptr):
    p = tl.make_block_ptr(i_ptr, (8,), (1,), (0,), (8,), (0,))
    tl.load(p, boundary_check=(0,), padding_option="nan")


@rejected('padding_option must be "zero" or "nan", got \'one\'', "tl.load(p, bound", "leave it out")
def pads_with_ones(x_ptr):
    p = tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))
    tl.load(p, boundary_check=(0,), padding_option="one")


@rejected("boundary_check is for block pointers", "tl.load(x_ptr, bound", "pass a mask")
def checks_a_pointer(x_ptr):
    tl.load(x_ptr, boundary_check=(0,))


@rejected("tl.atomic_add takes no block pointer", "tl.atomic_add(p, 1)", "tl.arange")
def adds_to_a_block(x_ptr):
    p = tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))
    tl.atomic_add(p, 1)


@rejected("cannot cast", "p.to(tl.int64)", "cast the base")
def casts_a_block_pointer(x_ptr):
    p = tl.make_block_ptr(x_ptr, (8,), (1,), (0,), (8,), (0,))
    p.to(tl.int64)


# Tensor descriptors

_DESCRIPTOR = "tl.make_tensor_descriptor("


@rejected("base must be a pointer, got i32", _DESCRIPTOR, "first element")
def describes_a_number(n):
    tl.make_tensor_descriptor(n, [8], [1], [8])


@rejected("the last stride must be 1, and known while compiling, got 2", _DESCRIPTOR, "transpose")
def describes_columns(x_ptr):
    tl.make_tensor_descriptor(x_ptr, [8, 8], [1, 2], [8, 8])


@rejected("the last stride must be 1, and known while compiling, got", _DESCRIPTOR, "write 1")
def describes_by_a_tensor(x_ptr, n):
    tl.make_tensor_descriptor(x_ptr, [8], [n], [8])


@rejected("a tensor descriptor has 1 to 5 dimensions, got 6", _DESCRIPTOR, "use pointers")
def describes_six_dimensions(x_ptr):
    tl.make_tensor_descriptor(x_ptr, [1] * 6, [1] * 6, [1, 1, 1, 1, 1, 8])


@rejected('padding_option="nan" needs floats, got i32', _DESCRIPTOR, '"zero"')
def describes_integers_with_nan(i_ptr):
    tl.make_tensor_descriptor(i_ptr, [8], [1], [8], padding_option="nan")


@rejected("offsets must have 1 entries", "d.load([0, 0])", "0 or 1")
def loads_at_two_indices(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8], [1], [8])
    d.load([0, 0])


@rejected("a block of [8] is written, got i32[4]", "d.store([0], tl.arange(0, 4))", "reshape")
def stores_another_block(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8], [1], [8])
    d.store([0], tl.arange(0, 4))


@rejected("the descriptor's block must be one row, got [8]", "d.gather(", "[1, columns]")
def gathers_from_rows(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8], [1], [8])
    d.gather(tl.arange(0, 8), 0)


@rejected("8 rows at least, got 4", "d.gather(tl.arange(0, 4), 0)", "desc.load")
def gathers_four_rows(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8, 8], [8, 1], [1, 8])
    d.gather(tl.arange(0, 4), 0)


@rejected("x_offsets must be a row of i32, got i32", "d.scatter(", ".to(tl.int32)")
def scatters_to_one_row(x_ptr, n):
    d = tl.make_tensor_descriptor(x_ptr, [8, 8], [8, 1], [1, 8])
    d.scatter(tl.zeros((8, 8), tl.float32), n, 0)


@rejected("desc.atomic_and is not defined on fp32", "d.atomic_and(", "integers")
def ands_floats(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8], [1], [8])
    d.atomic_and([0], tl.zeros((8,), tl.float32))


@rejected("a tensor descriptor has no attribute 'lod'; did you mean load?", "d.lod", "it has shape")
def misspells_load(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8], [1], [8])
    d.lod([0])


@rejected("+ is not defined on tensor descriptors", "d + 1", "load a block")
def adds_to_a_descriptor(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8], [1], [8])
    d + 1


@rejected("the first argument must be a pointer", "tl.load(d)", "add offsets")
def loads_a_descriptor(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8], [1], [8])
    tl.load(d)


@rejected("a load takes a tensor descriptor, got *fp32", "tl.load_tensor_desc", "make_tensor_desc")
def loads_a_pointer(x_ptr):
    tl.load_tensor_descriptor(x_ptr, [0])


# Their minima and maxima


@rejected("desc.atomic_min is not defined on fp32", "d.atomic_min(", "of pointers")
def minimum_of_fp32(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [8], [1], [8])
    d.atomic_min([0], tl.zeros((8,), tl.float32))


@rejected("desc.atomic_max of fp16 needs TMA", "d.atomic_max(", "use integers, or pointers")
def maximum_of_fp16(h_ptr):
    d = tl.make_tensor_descriptor(h_ptr, [8], [1], [8])
    d.atomic_max([0], tl.zeros((8,), tl.float16))
