"""Two groups of warps that run code of their own: IR written by hand, down to machine code."""

import re
from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import PassError
from proton.conversion.allocate_shared_memory import AllocateSharedMemory
from proton.conversion.ttg_to_llvm import TTGToLLVM
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.passes import Upstream
from proton.transforms.layout.membar import Membar
from proton.transforms.records.compact_iterations import CompactIterations
from tests.compile.edited import edited
from tests.compile.ptx.emulation import Emulation

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
        for step in (AllocateSharedMemory(), Membar(), TTGToLLVM(TARGET)):
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
    """Each has a barrier of its own, that of one warp the warp's, and threads are counted from its
    first one."""
    text = REGIONS.format(inner=inner_groups(1, 3), warps=3)
    found = re.findall(
        r"nvvm\.barrier id = (%\w+) number_of_threads = (%\w+)", out := lowered(text)
    )
    constants = dict(re.findall(r"(%\w+) = llvm\.mlir\.constant\((\d+) : i32\)", out))
    meet = [(constants[number], constants[threads]) for number, threads in found]
    assert meet == [("1", "96"), ("1", "96")]
    assert out.count("nvvm.bar.warp.sync") == 1
    with pytest.raises(PassError, match="no group of their own"):
        lowered(REGIONS.format(inner=inner_groups(2, 2), warps=2))


def test_groups_that_nest_too_deeply() -> None:
    """Each group has a barrier besides the program's, those that have groups themselves, too."""
    regions = REGIONS.replace("= 4 : i32", "= 16 : i32")
    out = lowered(regions.format(inner=inner_groups(6, 15), warps=15))
    numbers = re.findall(r"nvvm\.barrier id = (%\w+)", out)
    constants = dict(re.findall(r"(%\w+) = llvm\.mlir\.constant\((\d+) : i32\)", out))
    assert {int(constants[number]) for number in numbers} == {1, *range(4, 14, 2)}
    with pytest.raises(PassError, match="more than 16 barriers of hardware allow"):
        lowered(regions.format(inner=inner_groups(7, 15), warps=15))


SUM = """
  %range{n} = tt.make_range {{start = {start} : i32, end = {end} : i32}}
    : tensor<256xi32, {layout}>
  %all{n} = tt.splat %{x} : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, {layout}>
  %at{n} = tt.addptr %all{n}, %range{n}
    : tensor<256x!tt.ptr<i32>, {layout}>, tensor<256xi32, {layout}>
  %row{n} = tt.load %at{n} : tensor<256x!tt.ptr<i32>, {layout}>
  %sum{n} = "tt.reduce"(%row{n}) ({{
  ^bb0(%l: i32, %r: i32):
    %s = arith.addi %l, %r : i32
    tt.reduce.return %s : i32
  }}) {{axis = 0 : i32}} : (tensor<256xi32, {layout}>) -> i32
  %n{n} = arith.constant {n} : i32
  %place{n} = tt.addptr %{out}, %n{n} : !tt.ptr<i32>, i32
  tt.store %place{n}, %sum{n} : !tt.ptr<i32>
"""  # of 256 numbers


def sums_by_groups(warps: tuple[int, ...]) -> str:
    """Text as Triton prints it, in which each group adds up its own part of the numbers."""

    def part(n: int, x: str, out: str) -> str:
        return SUM.format(
            n=n, start=256 * n, end=256 * (n + 1), x=x, out=out, layout=f"#b{warps[n]}"
        )

    layouts = "".join(
        f"#b{n} = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [{n}], "
        "order = [0]}>\n"
        for n in sorted(set(warps))
    )
    others = "".join(
        f"partition{n - 1}(%x{n}: !tt.ptr<i32>, %o{n}: !tt.ptr<i32>) num_warps({warps[n]}) {{"
        f"{part(n, f'x{n}', f'o{n}')} ttg.warp_return }}\n"
        for n in range(1, len(warps))
    )
    return f"""{layouts}module attributes {{"ttg.num-warps" = {warps[0]} : i32}} {{
      tt.func @sums(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>) {{
        ttg.warp_specialize(%x, %out)
        default {{ {part(0, "x", "out")} ttg.warp_yield }}
        {others} : (!tt.ptr<i32>, !tt.ptr<i32>) -> ()
        tt.return
      }}
    }}"""


@proton.jit
def sums(x, out):
    tl.store(out, tl.load(x))


@pytest.mark.parametrize("warps", [(4, 4, 2, 1), (4, 1), (1, 2, 4, 8), (8, 4, 4)])
def test_groups_of_triton_s_text_add_up_what_is_theirs(
    rng: np.random.Generator, tmp_path: Path, warps: tuple[int, ...]
) -> None:
    path = tmp_path / "sums.ttgir"
    path.write_text(sums_by_groups(warps))
    x = rng.integers(-1000, 1000, 256 * len(warps), dtype=np.int32)
    out = np.zeros(len(warps), np.int32)
    whole = 1 << (sum(warps) - 1).bit_length()
    with Emulation(whole, rng).installed():
        sums[(1,)](x, out, ir_override=path)
    np.testing.assert_array_equal(out, x.reshape(-1, 256).sum(1))


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
        steps = [CompactIterations(), Membar(), TTGToLLVM(TARGET), Upstream("canonicalize,cse")]
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
