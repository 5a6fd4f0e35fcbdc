"""Kernels in Gluon on a GPU of 9.0: the same source by Proton and by Triton's own Gluon.

    python benchmarks/gpu_gluon.py [--rounds 10] [--json FILE] [--profile FILE]

Kernels are those of gluon_kernels.py. Each is checked against torch, then both alternate, and
medians of the rounds count. A compile time is that of a first launch, with empty caches, behind
that of another kernel. A kernel that one of the two refuses is a row that says so. `--profile`
saves a run of the attention's scopes in place of all that.
"""

import argparse
import importlib.util
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

SOURCE = Path(__file__).parent / "gluon_kernels.py"
ROWS, COLUMNS = 8192, 8192
SIZE = 4096
HEADS, LENGTH, DEPTH = 128, 4096, 128
TILE = {"BM": 128, "BN": 256, "BK": 64, "S": 3, "WARPS": 8}
SIDES = ("Proton", "Triton")
SPENT_S = 100  # no further kernel begins then
# What Triton 3.6 calls otherwise.
RENAMED = {
    "tma.async_load(": "tma.async_copy_global_to_shared(",
    "tma.async_store(": "tma.async_copy_shared_to_global(",
    "async_copy.async_load(": "async_copy.async_copy_global_to_shared(",
    "gl.barrier()": "gl.thread_barrier()",
}


@dataclass(frozen=True)
class Compiler:
    """One side: the kernels as its own, its language, and descriptors."""

    name: str
    kernels: ModuleType
    language: Any
    descriptor: Any

    def described(self, tensor: Any, block: list[int]) -> Any:
        element = self.language.float32 if tensor.element_size() == 4 else self.language.float16
        layout = self.language.NVMMASharedLayout.get_default_for(block, element)
        return self.descriptor.from_tensor(tensor, block, layout)


def proton_side() -> Compiler:
    from proton.gluon import language
    from proton.gluon.nvidia.hopper import TensorDescriptor

    return Compiler("Proton", _loaded(SOURCE.read_text(), "proton"), language, TensorDescriptor)


def triton_side() -> Compiler:
    from triton.experimental.gluon import language
    from triton.experimental.gluon.language.nvidia.ampere import async_copy
    from triton.experimental.gluon.language.nvidia.hopper import tma
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    lines = SOURCE.read_text().splitlines(keepends=True)  # without scopes
    text = "".join(one for one in lines if not one.strip().startswith(("import proton", "proton.")))
    text = text.replace("from proton import", "from triton.experimental import")
    text = text.replace("from proton.gluon", "from triton.experimental.gluon")
    homes = {"tma": tma, "async_copy": async_copy, "gl": language}
    for new, old in RENAMED.items():
        home, name = new.split("(")[0].split(".")
        if not hasattr(homes[home], name):
            text = text.replace(new, old)
    return Compiler("Triton", _loaded(text, "triton"), language, TensorDescriptor)


def _loaded(text: str, name: str) -> ModuleType:
    """The source as a module: both compilers read it from a file."""
    path = Path(tempfile.mkdtemp()) / f"{name}_gluon_kernels.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


# Cases: what makes a launch of a side, and the tensor that it fills

Launch = Callable[[], object]
Case = Callable[[Compiler, dict[str, Any]], tuple[Launch, Any]]


def _async_copy(side: Compiler, data: dict[str, Any]) -> tuple[Launch, Any]:
    x, out = data["x"], data["x"].new_empty(ROWS, COLUMNS)
    block, steps = 2048, 16
    grid = (x.numel() // (block * steps),)
    kernel = side.kernels.scaled_async_copy
    return lambda: kernel[grid](x, out, steps, block, 4, 4, num_warps=4), out


def _tma(side: Compiler, data: dict[str, Any]) -> tuple[Launch, Any]:
    x, out = data["x"], data["x"].new_empty(ROWS, COLUMNS)
    rows, columns, steps = 64, 32, 8
    given = side.described(x, [rows, columns]), side.described(out, [rows, columns])
    grid = (ROWS // (rows * steps), COLUMNS // columns)
    kernel = side.kernels.scaled_tma
    return lambda: kernel[grid](*given, steps, rows, 4, 4, num_warps=4), out


def _matmul(name: str, is_persistent: bool = False) -> Case:
    def case(side: Compiler, data: dict[str, Any]) -> tuple[Launch, Any]:
        import torch

        out = torch.empty_like(data["product"])
        m, n, k = TILE["BM"], TILE["BN"], TILE["BK"]
        blocks = [(data["a"], [m, k]), (data["b"], [k, n]), (out, [m, n])]
        given = [side.described(tensor, block) for tensor, block in blocks]
        tiles = (SIZE // m) * (SIZE // n)
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        grid = (min(tiles, sms) if is_persistent else tiles,)
        kernel = getattr(side.kernels, name)
        numbers = SIZE // n, *TILE.values()
        return lambda: kernel[grid](*given, *numbers, num_warps=TILE["WARPS"]), out

    return case


def attention(side: Compiler, data: dict[str, Any]) -> tuple[Launch, Any]:
    """64 query rows for each of two groups of warps, 128 keys at a time."""
    import torch

    heads, length, depth = data["q"].shape
    out = torch.empty_like(data["q"])
    arrays = [x.view(-1, depth) for x in (data["q"], data["k"], data["v"], out)]
    given = [side.described(x, [n, depth]) for x, n in zip(arrays, (64, 128, 128, 64), strict=True)]
    scale = math.log2(math.e) * depth**-0.5
    kernel = side.kernels.attention_specialized[length // 128, heads]
    return lambda: kernel(*given, length, scale, 128, 2, num_warps=4), out


# By name: the case, and what it computes.
CASES: dict[str, tuple[Case, str]] = {
    "async copy": (_async_copy, "scaled"),
    "TMA": (_tma, "scaled"),
    "wgmma, pipelined": (_matmul("matmul_pipelined"), "product"),
    "wgmma, persistent": (_matmul("matmul_persistent", is_persistent=True), "product"),
    "wgmma, warp-specialized": (_matmul("matmul_specialized"), "product"),
    "attention, warp-specialized": (attention, "attended"),
}


def compare(case: Case, want: Any, sides: list[Compiler], data: dict[str, Any], rounds: int) -> Any:
    """The row of a case, by side: us, seconds of the first launch, error; or what was refused."""
    import torch
    from in_turns import medians

    row: dict[str, Any] = {}
    launches = []
    for side in sides:
        launch, out = case(side, data)
        out.fill_(float("nan"))
        start = time.perf_counter()
        try:
            launch()
            torch.cuda.synchronize()
        except Exception as problem:  # of either compiler; the table says it
            row[f"{side.name} problem"] = f"{type(problem).__name__}: {problem}"[:300]
            continue
        row[f"{side.name} first_s"] = time.perf_counter() - start
        error = (out.float() - want).abs().max() / want.square().mean().sqrt()
        row[f"{side.name} error"] = float(error)
        launches.append((side.name, launch))
    times = medians([launch for _, launch in launches], rounds, 20)
    return row | {f"{name} us": us for (name, _), us in zip(launches, times, strict=True)}


def cell(row: dict[str, Any], key: str) -> str:
    """What Proton has of Triton's."""
    ours, theirs = (row.get(f"{name} {key}") for name in SIDES)
    return f"{ours / theirs:.3f}" if ours and theirs else "-"


def table(rows: list[dict[str, Any]]) -> str:
    """`time` and `compile` are Proton's over Triton's: less is better."""
    head = f"{'kernel':27} {'Proton us':>10} {'Triton us':>10} {'time':>6} {'compile':>8}  errors"
    lines = [head]
    for row in rows:
        us = " ".join(f"{row.get(f'{name} us', float('nan')):10.1f}" for name in SIDES)
        errors = " ".join(f"{row.get(f'{name} error', float('nan')):.1e}" for name in SIDES)
        ratios = f"{cell(row, 'us'):>6} {cell(row, 'first_s'):>8}"
        lines.append(f"{row['case']:27} {us} {ratios}  {errors}")
        lines += [f"    {key}: {row[key]}" for key in row if key.endswith(" problem")]
    return "\n".join(lines)


def profile(file: Path) -> None:
    """Saves a run of a few launches of attention, after one that compiles it."""
    import torch

    import proton

    data = {name: torch.randn(4, 2048, DEPTH, device="cuda").half() for name in "qkv"}
    launch, _ = attention(proton_side(), data)
    launch()
    with proton.profile("Gluon attention", capacity=512) as run:
        for _ in range(3):
            launch()
    run.save(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--profile", type=Path, help="save a run of attention there, and end")
    arguments = parser.parse_args()
    began = time.perf_counter()
    for name in ("PROTON_CACHE_DIR", "TRITON_CACHE_DIR"):
        os.environ[name] = tempfile.mkdtemp()
    import torch

    torch.manual_seed(0)
    if arguments.profile:
        profile(arguments.profile)
        return
    data = {"x": torch.randn(ROWS, COLUMNS, device="cuda")}
    data |= {name: torch.randn(SIZE, SIZE, device="cuda").half() for name in "ab"}
    data |= {"scaled": data["x"] * 2, "product": (data["a"].float() @ data["b"].float()).half()}
    data |= {name: torch.randn(HEADS, LENGTH, DEPTH, device="cuda").half() for name in "qkv"}
    attend = torch.nn.functional.scaled_dot_product_attention
    data["attended"] = attend(*(data[name] for name in "qkv"))
    sides = [proton_side(), triton_side()]
    rows: list[dict[str, Any]] = []
    for side in sides:  # a first launch loads what all need
        kernel, out = side.kernels.scaled_async_copy, torch.empty_like(data["x"])
        kernel[(1,)](data["x"], out, 4, 1024, 3, 4, num_warps=4)
    for case, (made, wanted) in CASES.items():
        if time.perf_counter() - began > SPENT_S:
            print(f"{case}: left out after {SPENT_S} s")
            continue
        row = {"case": case} | compare(made, data[wanted].float(), sides, data, arguments.rounds)
        rows.append(row)
        print(json.dumps(row), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    print(torch.cuda.get_device_name(), sys.modules["triton"].__version__)
    print(table(rows))


if __name__ == "__main__":
    main()
