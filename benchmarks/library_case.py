"""Cases of a library: its op beside what it computes, in torch, at several sizes.

A `Case` has gradients: its inputs are random numbers, and results are compared number by number. A
`Call` has none: it makes inputs of its own (pages, routes, codes), and results, which may have been
rounded to 8 or 4 bits, are compared in the mean.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from library_results import compare, compare_norms

SMALL, LARGE, WIDE = "small", "large", "wide"
BOTH = (LARGE, WIDE)
HALVES, HALF, FULL = (torch.float16, torch.bfloat16), (torch.float16,), (torch.float32,)
Function = Callable[..., Any]
Tensors = list[Any]  # gradients may be missing


@dataclass(frozen=True)
class Size:
    """A dimension of inputs, or several: ugly where results are all that counts, and what has some
    128 MiB of fp32 in all, in shorter and in longer rows."""

    small: int | tuple[int, ...]
    large: int | tuple[int, ...]
    wide: int | tuple[int, ...]

    def at(self, sizes: str) -> tuple[int, ...]:
        found = {SMALL: self.small, LARGE: self.large, WIDE: self.wide}[sizes]
        return found if isinstance(found, tuple) else (found,)


@dataclass(frozen=True)
class Normal:
    """An input of random numbers. Other dimensions than `Size` are the same at all sizes."""

    shape: tuple[int | Size, ...]

    def make(self, sizes: str) -> torch.Tensor:
        dims = [d.at(sizes) if isinstance(d, Size) else (d,) for d in self.shape]
        return torch.randn(sum(dims, ()))


# Of a model of some 8 billion parameters.
TOKENS, HIDDEN = Size(15, 8192, 16), Size(256, 4096, 4096)
HEADS, SHARED, HEAD = 32, 8, 128


def normal(*shape: int | Size) -> Normal:
    return Normal(shape)


@dataclass(frozen=True)
class Case:
    """An op. `pair` makes of inputs, which it may look at, two functions of tensors like them: the
    op, and what is compared with it. `timed` are the sizes at which its kernels are timed."""

    name: str
    pair: Callable[..., tuple[Function, Function]]
    inputs: tuple[Normal, ...]
    dtypes: tuple[torch.dtype, ...]
    timed: tuple[str, ...]

    def made(self, dtype: torch.dtype, sizes: str) -> tuple[Function, Function, Tensors]:
        """The op, the reference, and inputs."""
        torch.manual_seed(zlib.crc32(self.name.encode()))
        leaves = [one.make(sizes).to(dtype) for one in self.inputs]
        return *self.pair(*leaves), leaves

    def call(self, dtype: torch.dtype, sizes: str) -> Callable[[], object]:
        """What launches the op's kernels."""
        op, _, leaves = self.made(dtype, sizes)
        return lambda: run(op, leaves)

    def check(self) -> int:
        """Compares the op of all dtypes. Returns how many there are."""
        for dtype in self.dtypes:
            self.compare(dtype, SMALL)
        return len(self.dtypes)

    def compare(self, dtype: torch.dtype, sizes: str) -> None:
        """Raises `Wrong` where results, or gradients of an input, are not the reference's."""
        ours, theirs, leaves = self.made(dtype, sizes)
        found, expected = run(ours, leaves), run(theirs, leaves)
        for part, *sides in zip(("forward", "gradients"), found, expected, strict=True):
            compare(*sides, f"{self.name} of {dtype}, {part}", scaled=sizes != SMALL)


def run(function: Function, leaves: Tensors) -> tuple[Tensors, Tensors]:
    """Results that gradients flow from, and the gradients of a sum of them with random weights."""
    given = [leaf.clone().requires_grad_() for leaf in leaves]
    out = function(*given)
    outs = [o for o in (out if isinstance(out, tuple | list) else (out,)) if _counts(o)]
    values = [o.detach().clone() for o in outs]
    device = outs[0].device
    generator = torch.Generator(device).manual_seed(1)
    weights = [torch.randn(o.shape, generator=generator, device=device) for o in outs]
    torch.autograd.backward(outs, [w.to(o.dtype) for o, w in zip(outs, weights, strict=True)])
    return values, [g.grad for g in given]


def _counts(out: Any) -> bool:
    """Whether a result is one that gradients flow from."""
    return isinstance(out, torch.Tensor) and out.requires_grad


@dataclass(frozen=True)
class Call:
    """An op without gradients. `pair` makes of a dtype and dimensions two functions without
    arguments: the op, and what is compared with it."""

    name: str
    pair: Callable[..., tuple[Callable[[], Any], Callable[[], Any]]]
    dims: tuple[Size, ...]
    dtypes: tuple[torch.dtype, ...]
    timed: tuple[str, ...]

    def made(self, dtype: torch.dtype, sizes: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        torch.manual_seed(zlib.crc32(self.name.encode()))
        return self.pair(dtype, *(n for dim in self.dims for n in dim.at(sizes)))

    def call(self, dtype: torch.dtype, sizes: str) -> Callable[[], object]:
        """What launches the op's kernels."""
        return self.made(dtype, sizes)[0]

    def check(self) -> int:
        """Compares the op of all dtypes. Returns how many there are."""
        for dtype in self.dtypes:
            op, reference = self.made(dtype, SMALL)
            compare_norms(op(), reference(), f"{self.name} of {dtype}", dtype)
        return len(self.dtypes)


Declared = Callable[[Callable[..., Any]], Callable[..., Any]]


def cases_in(cases: dict[str, Any]) -> Callable[..., Declared]:
    """A decorator of functions that give (op, reference) for inputs like its arguments; it adds a
    case of the function's name."""

    def case(
        *inputs: Normal,
        dtypes: tuple[torch.dtype, ...] = (torch.float32,),
        timed: tuple[str, ...] = (LARGE, WIDE),
    ) -> Declared:
        return _declaring(cases, Case, inputs, dtypes, timed)

    return case


def calls_in(cases: dict[str, Any]) -> Callable[..., Declared]:
    """A decorator of functions that make an op and its reference of a dtype and of dimensions like
    its arguments; it adds a call of the function's name."""

    def call(
        *dims: Size,
        dtypes: tuple[torch.dtype, ...] = (torch.bfloat16,),
        timed: tuple[str, ...] = (LARGE,),
    ) -> Declared:
        return _declaring(cases, Call, dims, dtypes, timed)

    return call


def _declaring(cases: dict[str, Any], kind: Any, *given: Any) -> Declared:
    def declare(pair: Callable[..., Any]) -> Callable[..., Any]:
        cases[pair.__name__] = kind(pair.__name__, pair, *given)
        return pair

    return declare
