"""Two groups of warps that run code of their own: IR written by hand, down to machine code."""

import re
from pathlib import Path

import pytest

import proton
import proton.language as tl
from proton.base.errors import PassError
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.passes import parse_pipeline
from tests.compile.edited import edited

PRODUCER_AND_CONSUMER = Path(__file__).with_name("warp_groups.mlir")
TARGET = proton.GPUTarget("cuda", 90)


@proton.jit
def product(a, b, c, m, n, k):
    """Takes what the IR by hand takes, which stands in its place."""
    tl.store(c + m + n + k, tl.load(a) + tl.load(b))


def test_groups_have_their_own_numbers_and_barriers(tmp_path: Path) -> None:
    """Copies and products lie in different branches; only what both run waits for all threads."""
    values = [tl.float16] * 3 + [1024] * 3
    with edited(
        product, PRODUCER_AND_CONSUMER, tmp_path, *values, num_warps=8, target=TARGET
    ) as kernel:
        compiled = kernel.warmup(*values, num_warps=8, target=TARGET)
    ptx, sass = compiled.asm["ptx"], compiled.asm["sass"]
    barriers = re.findall(r"bar\.sync\s+(.*);", ptx)
    assert barriers == ["0", "1, 128", "2, 128", "0"], "all meet before and behind, groups between"
    first, second = (ptx.index(name) for name in ("wgmma.mma_async", "complete_tx::bytes"))
    between = ptx[min(first, second) : max(first, second)]
    assert "bra" in between
    assert "bar.sync \t0" not in between
    assert sass.count("HGMMA") == 4
    assert sass.count("UTMALDG") == 2
    assert sass.count("UTMASTG") == 1
    assert "BAR.SYNC.DEFER_BLOCKING 0x1, 0x80" in sass
    assert compiled.n_spills == 0


def lowered(text: str) -> str:
    with mlir_context():
        module = ir.Module.parse(text)
        for step in parse_pipeline("allocate-shared-memory,membar,ttg-to-llvm"):
            step.run(module)
        return str(module)


REGIONS = """
module attributes {{"ttg.num-warps" = 4 : i32}} {{
  func.func @f() attributes {{tt.kernel}} {{
    "ttg.warp_specialize"() ({{
      {inner}
      "ttg.warp_return"() : () -> ()
    }}, {{
      "ttg.warp_return"() : () -> ()
    }}) {{warps = {warps} : i32}} : () -> ()
    return
  }}
}}
"""


@pytest.mark.parametrize("warps", [0, 4, 5])
def test_a_group_without_warps(warps: int) -> None:
    with pytest.raises(PassError, match="no group of their own"):
        lowered(REGIONS.format(inner="", warps=warps))


def test_groups_within_groups() -> None:
    inner = """"ttg.warp_specialize"() ({ "ttg.warp_return"() : () -> () },
      { "ttg.warp_return"() : () -> () }) {warps = 1 : i32} : () -> ()"""
    with pytest.raises(PassError, match="no group of their own"):
        lowered(REGIONS.format(inner=inner, warps=2))
