"""The source of a scope is the line that opens it, whatever its work is and wherever that is."""

from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl


@proton.jit
def helper(v):
    with proton.scope("helped"):  # opens helped
        found = tl.sum(tl.exp(v), axis=0)
    return found


@proton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    offs = tl.arange(0, B)
    with proton.scope("load"):  # opens load
        v = tl.load(x_ptr + offs)
    with proton.scope("reduce"):  # opens reduce
        s = tl.sum(v * v, axis=0)
    with proton.scope("max"):  # opens max
        m = tl.max(v, axis=0)
    proton.enter_scope("outer", n=n)  # opens outer
    for _ in range(n):
        with proton.scope("turn", when=n > 1):  # opens outer/turn
            m += tl.min(v, axis=0) + tl.sum(tl.cdiv(offs, 3).to(tl.float32), axis=0)
            tl.store(out_ptr + offs, m + v)
    proton.exit_scope("outer")
    with proton.scope("gone"):  # opens gone
        tl.load(x_ptr + 1)
    proton.mark("here")  # opens here
    tl.store(out_ptr, s + m + helper(v))


@pytest.mark.parametrize("placement", ["schedule", "program"])
def test_a_scope_is_where_it_is_opened(placement: str) -> None:
    lines = Path(__file__).read_text().splitlines()
    opened = {
        line.partition("# opens ")[2]: number
        for number, line in enumerate(lines, 1)
        if "  # opens " in line
    }
    x, out = np.ones((2, 1024), np.float32)
    with proton.profile("places", placement=placement) as run:
        kernel[1,](x, out, 2, B=1024)
    assert [k.name for k in run.kernels] == ["kernel"], [(k.name, k.options) for k in run.kernels]
    scopes = run.kernels[0].scopes
    paths = {scope.path for scope in scopes}
    assert {"max", "outer/turn", "helped", "here"} <= paths
    assert any("reduce" in path.split(" + ") for path in paths)
    for scope in scopes:
        first = scope.path.split(" + ")[0]
        assert (Path(scope.file).name, scope.line) == (Path(__file__).name, opened[first])
