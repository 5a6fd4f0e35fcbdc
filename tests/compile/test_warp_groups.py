"""Two groups of warps that run code of their own: IR written by hand, down to machine code."""

import re
from pathlib import Path

import pytest

import proton
import proton.language as tl
from proton.base.errors import PassError
from proton.conversion.ttg_to_llvm import TTGToLLVM
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.passes import Upstream, parse_pipeline
from proton.transforms.compact_turns import CompactTurns
from proton.transforms.membar import Membar
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


def inner_groups(depth: int, warps: int) -> str:
    """Groups of groups, each of a warp and the rest."""
    if not depth:
        return ""
    return f""""ttg.warp_specialize"() ({{ "ttg.barrier"() : () -> ()
      "ttg.warp_return"() : () -> () }}, {{ {inner_groups(depth - 1, warps - 1)}
      "ttg.warp_return"() : () -> () }}) {{warps = 1 : i32}} : () -> ()"""


def test_groups_within_groups() -> None:
    """Each has a barrier of its own, and threads are counted from its first one."""
    text = REGIONS.format(inner=inner_groups(1, 3), warps=3)
    found = re.findall(
        r"nvvm\.barrier id = (%\w+) number_of_threads = (%\w+)", out := lowered(text)
    )
    constants = dict(re.findall(r"(%\w+) = llvm\.mlir\.constant\((\d+) : i32\)", out))
    meet = [(constants[number], constants[threads]) for number, threads in found]
    assert meet == [("1", "96"), ("3", "32"), ("1", "96")]
    with pytest.raises(PassError, match="no group of their own"):
        lowered(REGIONS.format(inner=inner_groups(2, 2), warps=2))


def test_groups_that_nest_too_deeply() -> None:
    text = REGIONS.replace("= 4 : i32", "= 8 : i32").format(inner=inner_groups(4, 7), warps=7)
    with pytest.raises(PassError, match="nest deeper than 16 barriers of hardware allow"):
        lowered(text)


LOOP = """
      scf.for %i = %zero to %n step %one : i32 {
        %t = "proton_gpu.read_counter"() : () -> i64
        "proton_gpu.circular_record"(%s, %t, %t, %i) {scope_id = 0 : i32, kind = 0 : i32,
          operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
          : (!proton_gpu.segment, i64, i64, i32) -> ()
      }
"""
RECORDED = f"""
module attributes {{"ttg.num-warps" = 8 : i32}} {{
  func.func @f(%n: i32, %profile: !llvm.ptr<1>) attributes {{tt.kernel,
      proton.abi = ["profile"], ttg.shared = 8192 : i32, proton.profile = {{
      capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64,
      ring = 0 : i64, sample_programs = 1 : i64, sampled_units = 255 : i64, scopes = [],
      strategy = "circular", unit_warps = 1 : i64, units = 8 : i64}}}} {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %s = "proton_gpu.init"() : () -> !proton_gpu.segment
    "ttg.warp_specialize"() ({{
      {LOOP}
      "ttg.warp_return"() : () -> ()
    }}, {{
      {LOOP}
      "ttg.warp_return"() : () -> ()
    }}) {{warps = 4 : i32}} : () -> ()
    "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
    return
  }}
}}
"""


def test_readings_of_groups_lie_apart() -> None:
    """Each warp of the program has a place for those of its loop, whatever its number in a group:
    256 bytes for 64 turns of one reading."""
    with mlir_context():
        module = ir.Module.parse(RECORDED)
        steps = [CompactTurns(), Membar(), TTGToLLVM(), Upstream("canonicalize,cse")]
        for step in steps:
            step.run(module)
        text = str(module)
    (size,) = re.findall(r"(%\w+) = llvm.mlir.constant\(256 : i32\)", text)
    factors = re.findall(rf"llvm.mul (%\w+), {size} ", text)
    units = re.findall(rf"{factors[0]} = llvm.trunc (%\w+) : i64 to i32", text)
    assert len(factors) == len(units) == 2
    (unit,) = set(units)
    (warp,) = re.findall(rf"{unit} = llvm.zext (%\w+) ", text)
    (thread,) = re.findall(rf"{warp} = llvm.lshr (%\w+), ", text)
    assert f"{thread} = nvvm.read.ptx.sreg.tid.x" in text
