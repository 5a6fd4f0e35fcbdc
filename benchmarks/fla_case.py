"""Cases of flash-linear-attention (fla-core): its ops beside what they compute, in torch.

References are the library's own (`naive` in each of its folders), in fp32, or torch. What an op
wants of its inputs (keys of length 1, decays below 0, ...) is made of random numbers on both sides,
so that gradients flow through it.
"""

import importlib
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from library_case import SMALL, Case, Normal, normal, run
from library_results import compare_norms

CASES: dict[str, Case] = {}
HALF = (torch.bfloat16,)  # ops that refuse fp32
FULL = (torch.float32,)
# FLA_LENGTH and FLA_HEAD: tokens, and the size of heads, where times are asked for.
HEAD = int(os.environ.get("FLA_HEAD", 0))
B, T, H, HQ = 2, int(os.environ.get("FLA_LENGTH", 100)), 2, 4
K, V, D = HEAD or 32, HEAD or 64, HEAD or 32
MANY = normal(B, T, HQ, K)
KEYS, VALUES, HEADS = normal(B, T, H, K), normal(B, T, H, V), normal(B, T, H)
QKV = (KEYS, KEYS, VALUES)
GATED = (*QKV, normal(B, T, H, K))
ONE_GATE = (*QKV, HEADS)
EQUAL = (KEYS, KEYS, KEYS)


@dataclass(frozen=True)
class Norms(Case):
    """A case whose results are off by a share of their root mean square."""

    def compare(self, dtype: torch.dtype, sizes: str) -> None:
        ours, theirs, leaves = self.made(dtype, sizes)
        found = run(ours, leaves)
        expected = run(theirs, [leaf.float() for leaf in leaves])
        for part, *sides in zip(("forward", "gradients"), found, expected, strict=True):
            compare_norms(*sides, f"{self.name} of {dtype}, {part}", dtype)


def case(
    *inputs: Normal, dtypes: Any = FULL
) -> Callable[[Callable[..., tuple[Any, Any]]], Callable[..., tuple[Any, Any]]]:
    """Declares a case: a function that gives (op, reference). Its name is the case's."""

    def declare(pair: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        CASES[pair.__name__] = Norms(pair.__name__, lambda *_: pair(), inputs, dtypes, (SMALL,))
        return pair

    return declare


def unit(x: torch.Tensor) -> torch.Tensor:
    return F.normalize(x.float(), dim=-1).to(x.dtype)


def decay(x: torch.Tensor) -> torch.Tensor:
    return F.logsigmoid(x.float() + 1)


def first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def heads_first(reference: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """A reference of tensors whose second dimension is that of heads."""
    turned = (a.transpose(1, 2) if isinstance(a, torch.Tensor) else a for a in args)
    return first(reference(*turned, **kwargs)).transpose(1, 2)


def varied(op: Any, reference: Any, change: Any = None) -> tuple[Any, Any]:
    """Two functions of the same arguments, of whose results the first counts."""
    change = change or (lambda *args: args)
    return lambda *a: first(op(*change(*a))), lambda *a: first(reference(*change(*a)))


def lengths() -> torch.Tensor:
    """Of three sequences in one row."""
    return torch.tensor([0, 37, 38, T])


def apart(reference: Any, *args: torch.Tensor) -> torch.Tensor:
    """A reference of the sequences of `lengths`, one by one."""
    ends = lengths().tolist()
    parts = [
        first(reference(*(a[:, begin:end] for a in args)))
        for begin, end in itertools.pairwise(ends)
    ]
    return torch.cat(parts, 1)


def reference(folder: str, name: str) -> Any:
    """A reference of the library's."""
    return getattr(importlib.import_module(f"fla.ops.{folder}"), name)


def gated(q, k, v, g):
    return q, k, v, decay(g)


def forward_only(op, reference, change=None):
    """Of ops that have no gradients: both sides' flow through a product of the result with 1."""

    def weighed(function):
        def call(*args):
            with torch.no_grad():
                out = first(function(*(change or (lambda *a: a))(*args)))
            return out.float() * (1 + 0 * args[0].float().sum())

        return call

    return weighed(op), weighed(reference)
