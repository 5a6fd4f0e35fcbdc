"""FBGEMM's Triton kernels of jagged tensors, which recommenders have: rows of sequences, one behind
the other, and where each begins.
"""

import itertools

import torch
from fbgemm_case import BOTH, CASES, FULL, call
from fbgemm_gpu.sll import triton as sll
from fbgemm_gpu.triton.jagged import triton_jagged_tensor_ops as ops
from libraries import cpu_as_cuda
from library_case import Size, cases_in, normal
from library_references import lengths

cpu_as_cuda(ops)

case = cases_in(CASES)
WIDTH, OTHER, TARGETS = Size(40, 128, 128), Size(24, 64, 64), Size(21, 64, 64)
SHAPES = ((3, 70), (512, 256), (32, 1024))  # sequences, and the longest
BATCH, LENGTH = (Size(*dims) for dims in zip(*SHAPES, strict=True))
TOTAL = Size(*(sum(lengths(*shape)) for shape in SHAPES))
SQUARES = Size(*(sum(n * n for n in lengths(*shape)) for shape in SHAPES))


class Sequences:
    """Lengths and places in a tensor of so many rows, or of as many squares of numbers."""

    def __init__(self, total):
        powers = {1: TOTAL, 2: SQUARES}
        self.count, self.longest = next(
            shape
            for size in powers.values()
            for shape, n in zip(SHAPES, (size.small, size.large, size.wide), strict=True)
            if n == total
        )
        self.sizes = lengths(self.count, self.longest)
        self.length = torch.tensor(self.sizes)
        self.squares = self.length * self.length
        self.places, self.square_places = places(self.length), places(self.squares)

    def parts(self, *tensors):
        return zip(*(x.split(self.sizes) for x in tensors), strict=True)

    def matrices(self, x):
        parts = zip(x.split(self.squares.tolist()), self.sizes, strict=True)
        return [part.view(n, n) for part, n in parts]


def places(sizes):
    return torch.cat((torch.zeros(1, dtype=sizes.dtype), sizes.cumsum(0)))


def flat(matrices):
    return torch.cat([x.flatten() for x in matrices])


# Products


@case(normal(TOTAL, WIDTH), normal(BATCH, WIDTH, OTHER), timed=BOTH)
def jagged_dense_product(x, _):
    of = Sequences(len(x))
    return (
        lambda x, y: sll.jagged_dense_bmm(x, y, of.places, of.longest, True, False),
        lambda x, y: torch.cat([a @ b for (a,), b in zip(of.parts(x), y, strict=True)]),
    )


@case(normal(TOTAL, WIDTH), normal(TOTAL, OTHER), timed=BOTH)
def jagged_jagged_product(x, _):
    of = Sequences(len(x))
    return (
        lambda x, y: sll.jagged_jagged_bmm(x, y, of.places, of.longest, True, False),
        lambda x, y: torch.stack([a.T @ b for a, b in of.parts(x, y)]),
    )


@case(normal(SQUARES), normal(TOTAL, WIDTH), timed=BOTH)
def matrices_times_rows(_, y):
    of = Sequences(len(y))
    rows, squares = (of.length, of.places), (of.squares, of.square_places)
    return (
        lambda x, y: sll.array_jagged_bmm_jagged_out(x, y, *squares, *rows, *rows, of.longest),
        lambda x, y: torch.cat(
            [a @ b for a, b in zip(of.matrices(x), y.split(of.sizes), strict=True)]
        ),
    )


@case(normal(TOTAL, WIDTH), normal(TOTAL, WIDTH), timed=BOTH)
def rows_times_rows(x, _):
    of = Sequences(len(x))
    rows, squares = (of.length, of.places), (of.squares, of.square_places)
    return (
        lambda x, y: sll.jagged_jagged_bmm_jagged_out(x, y, *rows, *rows, *squares, of.longest),
        lambda x, y: flat(a @ b.T for a, b in of.parts(x, y)),
    )


@call(BATCH, LENGTH, WIDTH, dtypes=FULL, timed=BOTH)
def weights_times_rows(dtype, count, longest, width, heads=4):
    of = Sequences(sum(lengths(count, longest)))
    x, weights = torch.randn(sum(of.sizes), heads * width), torch.randn(count * heads, longest)

    def reference():
        for (part,), w in zip(of.parts(x), weights.view(count, heads, longest), strict=True):
            w = w[:, : len(part)].double()
            yield torch.einsum("hn,nhd->hd", w, part.double().view(-1, heads, width))

    return (
        lambda: ops.batched_dense_vec_jagged_2d_matmul(weights, x, of.places),
        lambda: torch.cat(list(reference())),
    )


# Attention, of which the weights are divided by the longest length; that is undone, and the scores
# are made small.

SQUARE_ROOT = 8.0
HEAD = Size(40, 64, 64)


@case(*[normal(TOTAL, HEAD)] * 3, timed=BOTH)
def attention(q, k, v):
    return _attention(q, False)


@case(*[normal(TOTAL, HEAD)] * 3)
def attention_with_mask(q, k, v):
    """Which leaves keys that are not before the query."""
    return _attention(q, True)


def _attention(q, masked):
    of = Sequences(len(q))

    def op(q, k, v):
        out = sll.jagged_flash_attention_basic(
            q / SQUARE_ROOT, k, v, of.places, of.longest, use_mask=masked
        )
        return out * of.longest

    def reference(q, k, v):
        for a, b, c in of.parts(q, k, v):
            weights = (a / SQUARE_ROOT @ b.T).softmax(-1)
            yield (weights.triu() if masked else weights) @ c

    return op, lambda *given: torch.cat(list(reference(*given)))


@case(*[normal(4, TOTAL, HEAD)] * 3, timed=BOTH)
def attention_of_heads(q, k, v):
    of = Sequences(q.shape[1])

    def op(q, k, v):
        out = sll.multi_head_jagged_flash_attention(q / SQUARE_ROOT, k, v, of.places, of.longest)
        return out * of.longest

    def reference(*given):
        for q, k, v in zip(*(x.split(of.sizes, 1) for x in given), strict=True):
            yield (q / SQUARE_ROOT @ k.transpose(1, 2)).softmax(-1) @ v

    return op, lambda *given: torch.cat(list(reference(*given)), 1)


@case(
    normal(TOTAL, 64),
    normal(BATCH, 64, TARGETS),
    normal(TOTAL, 64),
    normal(BATCH, LENGTH, TARGETS),
    timed=BOTH,
)
def attention_to_targets(q, *_):
    of = Sequences(len(q))

    def op(q, k, v, bias):
        return sll.jagged_dense_flash_attention(q / SQUARE_ROOT, k, v, bias, of.places, of.longest)

    def reference(q, k, v, bias):
        for (a, c), b, more in zip(of.parts(q, v), k, bias, strict=True):
            yield (a / SQUARE_ROOT @ b + more[: len(a)]).softmax(0).T @ c

    return op, lambda *given: torch.stack(list(reference(*given)))


@case(normal(TOTAL, WIDTH), timed=BOTH)
def softmax(x):
    of = Sequences(len(x))
    return (
        lambda x: sll.jagged_softmax(x, of.places, of.longest, False),
        lambda x: torch.cat([part.softmax(0) for (part,) in of.parts(x)]),
    )


def _softmax_of_matrices(x, transpose):
    of = Sequences(len(x))
    dim = 0 if transpose else 1
    return (
        lambda x: sll.jagged2_softmax(x, of.places, of.square_places, of.longest, transpose),
        lambda x: flat(part.softmax(dim) for part in of.matrices(x)),
    )


@case(normal(SQUARES), timed=BOTH)
def softmax_of_matrices(x):
    return _softmax_of_matrices(x, False)


@case(normal(SQUARES), timed=BOTH)
def softmax_of_columns(x):
    return _softmax_of_matrices(x, True)


# Number by number


@case(normal(SQUARES), normal(LENGTH, LENGTH))
def matrices_times_matrix(x, _):
    of = Sequences(len(x))

    def op(x, y):
        return sll.jagged_dense_elementwise_mul_jagged_out(
            x, y, of.length, of.square_places, of.longest
        )

    def reference(x, y):
        y = y.detach()  # which gets no gradient
        return flat(part * y[: len(part), : len(part)] for part in of.matrices(x))

    return op, reference


@case(normal(TOTAL, WIDTH), normal(BATCH, LENGTH, WIDTH))
def jagged_plus_dense(x, _):
    of = Sequences(len(x))
    return (
        lambda x, y: sll.jagged_dense_elementwise_add(x, of.places, y, of.longest, False),
        lambda x, y: torch.cat([a + b[: len(a)] for (a,), b in zip(of.parts(x), y, strict=True)]),
    )


@call(BATCH, LENGTH, WIDTH, dtypes=FULL)
def jagged_and_dense(dtype, count, longest, width):
    of = Sequences(sum(lengths(count, longest)))
    x, y = torch.randn(2, sum(of.sizes), width)
    dense = torch.randn(count, longest, width)
    taken = [part[:n] for part, n in zip(dense, of.sizes, strict=True)]
    return (
        lambda: [
            ops.triton_jagged_add_jagged(x, y),
            ops.triton_jagged_mul_jagged(x, y),
            ops.jagged_dense_elementwise_mul_jagged_output(x, [of.places], dense)[0],
            ops.jagged_dense_elementwise_add_dense_output(x, [of.places], dense),
        ],
        lambda: [
            *(x + y, x * y, x * torch.cat(taken)),
            dense + padded(x.split(of.sizes), longest, 0.0),
        ],
    )


@call(BATCH, LENGTH, dtypes=FULL)
def differences(dtype, count, longest):
    """Of each number with those that come after the first."""
    of = Sequences(sum(lengths(count, longest)))
    x = torch.randn(sum(of.sizes) + count)
    rows = x.split([n + 1 for n in of.sizes])
    starts = places(of.length + 1)
    return (
        lambda: sll.triton_jagged_self_substraction_jagged_out(
            x, starts, of.square_places, of.longest
        ),
        lambda: flat(row[:-1, None] - row[1:] for row in rows),
    )


# Other shapes


def padded(parts, longest, value):
    """Of the same length all."""
    room = [part.new_full((longest - len(part), *part.shape[1:]), value) for part in parts]
    return torch.stack([torch.cat(pair) for pair in zip(parts, room, strict=True)])


@call(BATCH, LENGTH, dtypes=FULL)
def one_before_each(dtype, count, longest):
    of = Sequences(sum(lengths(count, longest)))
    ones, x = torch.randn(count), torch.randn(sum(of.sizes))
    pairs = zip(ones.split(1), x.split(of.sizes), strict=True)
    rows = torch.cat(list(itertools.chain(*pairs)))
    return (
        lambda: sll.dense_jagged_cat_jagged_out(ones, x, of.places, of.longest),
        lambda: (rows, places(of.length + 1)),
    )


@case(normal(SQUARES))
def padded_matrices(x):
    of = Sequences(len(x))

    def reference(x):
        for part in of.matrices(x):
            room = (0, of.longest - len(part)) * 2
            yield torch.nn.functional.pad(part, room, value=-2.0)

    return (
        lambda x: sll.jagged2_to_padded_dense(x, of.square_places, of.longest, -2.0),
        lambda x: torch.stack(list(reference(x))),
    )


@call(BATCH, LENGTH, WIDTH, dtypes=FULL, timed=BOTH)
def to_dense_and_back(dtype, count, longest, width):
    of = Sequences(sum(lengths(count, longest)))
    x = torch.randn(sum(of.sizes), width)

    def op():
        dense = ops.jagged_to_dense(x, [of.places], [longest], padding_value=-2.0)
        return dense, ops.dense_to_jagged(dense, [of.places])[0]

    return op, lambda: (padded(x.split(of.sizes), longest, -2.0), x)


@call(Size(3, 16, 16), Size(9, 32, 32), Size(20, 64, 64), WIDTH, dtypes=FULL)
def to_dense_and_back_of_two_levels(dtype, count, most, longest, width):
    """Groups of sequences."""
    groups = lengths(count, most)
    sizes = lengths(sum(groups), longest)
    x = torch.randn(sum(sizes), width)
    starts = [places(torch.tensor(n)) for n in (groups, sizes)]

    def op():
        dense = ops.jagged_to_dense(x, starts, [most, longest], padding_value=-2.0)
        return dense, ops.dense_to_jagged(dense, starts)[0]

    def reference():
        inner = padded(x.split(sizes), longest, -2.0)
        return padded(inner.split(groups), most, -2.0), x

    return op, reference
