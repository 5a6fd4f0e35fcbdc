"""How the IR of early returns grows, and where it ends. What they mean: test_random_returns.py."""

import itertools

import pytest

from proton.base.errors import CompilationError
from proton.dialect.context import mlir_context
from proton.dialect.walk import all_ops
from proton.frontend.branches import MAX_DEPTH
from tests.cpu.harness import kernels_of
from tests.ir.building import build, text_of

# A guard of each kind, with {n} for its number.
GUARDS = {
    "returns": "    if a > {n}:\n        return\n    tl.store(out + {n}, a)\n",
    "may return": "    if a > {n}:\n        if b > {n}:\n            return\n"
    "    tl.store(out + {n}, a)\n",
    "static, may return": "    if S:\n        if b > {n}:\n            return\n"
    "    tl.store(out + {n}, a)\n",
    "either may return": "    if a > {n}:\n        if b > {n}:\n            return\n"
    "    else:\n        if b < {n}:\n            return\n        a += b\n"
    "    tl.store(out + {n}, a)\n",
}


def guarded(kind: str, count: int) -> str:
    """A kernel's source with so many guards, one after the other."""
    guards = "".join(GUARDS[kind].format(n=n) for n in range(count))
    return f"@proton.jit\ndef kernel(out, a, b, S: tl.constexpr):\n{guards}"


@pytest.mark.parametrize("kind", GUARDS)
def test_ops_grow_linearly_with_the_number_of_early_returns(kind: str) -> None:
    def ops(count: int) -> int:
        with mlir_context():
            return len(all_ops(build(kernels_of(guarded(kind, count)).kernel, S=True)))

    counts = [ops(count) for count in (4, 8, 12, 16)]
    steps = {after - before for before, after in itertools.pairwise(counts)}
    assert len(steps) == 1, counts


@pytest.mark.parametrize("kind", GUARDS)
def test_returns_that_nest_too_deeply_are_an_error(kind: str) -> None:
    # The error is the same wherever Python's stack stands: it comes before the stack is full.
    text_of(kernels_of(guarded(kind, MAX_DEPTH // 2)).kernel, S=True)
    with pytest.raises(CompilationError, match=f"nest deeper than {MAX_DEPTH} blocks"):
        text_of(kernels_of(guarded(kind, MAX_DEPTH + 1)).kernel, S=True)
