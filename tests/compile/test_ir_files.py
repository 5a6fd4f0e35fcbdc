"""Kernels from files of IR for GPUs: the code is that of the kernel whose IR it is."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.compiler import IRSource
from proton.runtime.launch.arguments import Argument
from proton.runtime.nvidia.arguments import read_other, stand_in
from proton.runtime.nvidia.backend import BACKEND
from proton.tools.tensor_descriptor import TensorDescriptor
from proton.trace.instrumentation import Instrumentation
from tests.compile.target_kernels import CASES, add

HOPPER = proton.GPUTarget("cuda", 90)
TARGETS = (proton.GPUTarget("cuda", 80), HOPPER)


@proton.jit
def copy(source, to, M: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * M
    for column in range(0, 512, N):
        to.store([row, column], source.load([row, column]) * 2)


def code_of(ptx: str) -> list[str]:
    """Instructions, without places in source files and what a debugger reads."""
    text = ptx.partition(".section")[0]
    lines = [line.partition("//")[0].strip() for line in text.splitlines()]
    marks = r"\.file|\.loc|\$L__(tmp|func|pubNames)|\$L__(info|abbrev)"
    return [line for line in lines if line and not re.match(marks, line)]


@proton.jit
def scoped(x_ptr):
    with proton.scope("load"):
        x = tl.load(x_ptr + tl.arange(0, 64))
    tl.store(x_ptr + tl.arange(0, 64), x * 3)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_both_levels_give_the_code_of_the_kernel(name: str, target: Any, tmp_path: Path) -> None:
    fn, args = CASES[name]
    kernel = fn.warmup(*args, target=target, num_warps=8)
    for level in ("ttir", "ttgir"):
        path = tmp_path / f"{name}.{level}"
        path.write_text(kernel.asm[level])
        # What .ttgir says of warps holds; .ttir says nothing of them.
        options = {"num_warps": 8} if level == "ttir" else {}
        again = proton.compile(str(path), target=target, options=options)
        assert code_of(again.asm["ptx"]) == code_of(kernel.asm["ptx"]), level
        assert (again.shared, again.metadata.num_warps) == (kernel.shared, 8)
        assert str(path) in again.asm["ptx"]
        assert ("ttir" in again.asm) == (level == "ttir")
        if level == "ttgir":
            assert [*again.asm][:3] == ["source", "ttgir", "llir"]
            with pytest.raises(KeyError, match="compiled from IR that is behind it"):
                again.asm["ttir"]


def test_tensor_maps_go_through(tmp_path: Path) -> None:
    """In IR behind the front end a descriptor is its parts."""
    desc = TensorDescriptor(tl.float16, (512, 512), (512, 1), (16, 64))
    kernel = copy.warmup(desc, desc, 16, 64, target=HOPPER)
    assert "cp.async.bulk.tensor" in kernel.asm["ptx"]
    for level in ("ttir", "ttgir"):
        path = tmp_path / f"copy.{level}"
        path.write_text(kernel.asm[level])
        again = proton.compile(path, target=HOPPER)
        assert code_of(again.asm["ptx"]) == code_of(kernel.asm["ptx"])
        assert again.metadata.tensor_maps == kernel.metadata.tensor_maps
        parts = ["*fp16", "i32", "i32", "i64"]
        assert [*IRSource(path).signature.values()] == parts * 2
        # In the place of the kernel, it takes what the kernel does.
        other = copy.warmup(desc, desc, 16, 64, target=HOPPER, ir_override=path)
        assert code_of(other.asm["ptx"]) == code_of(kernel.asm["ptx"])


def test_warps_are_what_the_layouts_are_for(tmp_path: Path) -> None:
    kernel = add.warmup(*[tl.float32] * 3, 1000, 512, target=HOPPER, num_warps=2)
    path = tmp_path / "add.ttgir"
    path.write_text(kernel.asm["ttgir"])
    assert IRSource(path).parse_options() == {"num_warps": 2}
    with pytest.raises(proton.CompilationError, match=r"is for 2 warps .*, and num_warps is 4"):
        proton.compile(path, target=HOPPER, options={"num_warps": 4})
    with pytest.raises(proton.CompilationError, match="is for 2 warps"):
        add.warmup(*[tl.float32] * 3, 1000, 512, target=HOPPER, ir_override=path)
    add.warmup(*[tl.float32] * 3, 1000, 512, target=HOPPER, num_warps=2, ir_override=path)
    path.write_text(re.sub(r' attributes \{"ttg.num-warps" = 2 : i32\}', "", path.read_text()))
    with pytest.raises(proton.CompilationError, match="does not say for how many warps it is"):
        proton.compile(path, target=HOPPER)


def test_levels_that_are_no_source(tmp_path: Path) -> None:
    path = tmp_path / "add.ptx"
    path.write_text(add.warmup(*[tl.float32] * 3, 1000, 512, target=HOPPER).asm["ptx"])
    refusal = r"IR for cuda:90 is in \.ttir and \.ttgir files, got .*add\.ptx"
    with pytest.raises(proton.CompilationError, match=refusal):
        proton.compile(path, target=HOPPER)
    with pytest.raises(proton.CompilationError, match=refusal):
        add.warmup(*[tl.float32] * 3, 1000, 512, target=HOPPER, ir_override=path)


def test_addresses_that_the_ir_counts_on(tmp_path: Path) -> None:
    """A kernel compiled for aligned addresses is not compiled for others."""
    kernel = add.warmup(*[tl.float32] * 3, 1000, 512, target=HOPPER)
    path = tmp_path / "add.ttgir"
    path.write_text(kernel.asm["ttgir"])
    source = IRSource(path)
    assert source.signature_for(HOPPER).divisible == {"x_ptr", "y_ptr", "out_ptr"}
    odd = proton.jit(add.fn, do_not_specialize_on_alignment=["y_ptr"])
    launcher = odd.launcher(BACKEND)
    request = launcher.request((*[tl.float32] * 3, 1000, 512), {"ir_override": path}, HOPPER)
    fewer = request.signature.divisible - {"y_ptr"}
    request = request._replace(signature=replace(request.signature, divisible=fewer))
    with pytest.raises(proton.LaunchError, match="argument y_ptr must lie at a multiple of 16"):
        proton.compiler.compile_function(*request)


@pytest.mark.parametrize("placement", ["schedule", "program"])
def test_ttgir_is_compiled_in_sessions(placement: Any, tmp_path: Path) -> None:
    """A file without records gives the code that it gives outside of a session."""
    kernel = scoped.warmup(tl.float32, target=HOPPER)
    path = tmp_path / "scoped.ttgir"
    path.write_text(kernel.asm["ttgir"])
    function = proton.compile(path, target=HOPPER).fn
    launcher = function.launcher(BACKEND)
    described = [stand_in(p, tl.float32) for p in function.params]
    mode = Instrumentation(placement=placement)
    profiled = launcher.compile_described(HOPPER, described, {}, mode)
    assert profiled.profile is None
    assert code_of(profiled.asm["ptx"]) == code_of(kernel.asm["ptx"])


@proton.jit
def shifted(x_ptr, by, count):
    i = tl.arange(0, 64)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < count) + by)


def test_signs_and_divisors_are_kept(tmp_path: Path) -> None:
    """Of numbers, too: an unsigned one says so, and a divisor is what a launch must keep to."""
    kernel = shifted.warmup(tl.int64, 1 << 63, 48, target=HOPPER)
    path = tmp_path / "shifted.ttir"
    path.write_text(kernel.asm["ttir"])
    assert [*IRSource(path).signature.values()] == ["*i64", "u64", "i32"]
    shifted.warmup(tl.int64, 1 << 63, 16, target=HOPPER, ir_override=path)
    with pytest.raises(proton.LaunchError, match="argument count must be a multiple of 16"):
        shifted.warmup(tl.int64, 1 << 63, 17, target=HOPPER, ir_override=path)
    with pytest.raises(proton.LaunchError, match="argument count must be 0 or above"):
        shifted.warmup(tl.int64, 1 << 63, -16, target=HOPPER, ir_override=path)
    (*_, parameter) = proton.compile(path, target=HOPPER).fn.params
    assert read_other(parameter, 32)[0].type == "i32"
    with pytest.raises(proton.LaunchError, match="count = -32 must be 0 or above"):
        read_other(parameter, -32)


@pytest.mark.parametrize("address", [0, 8, 16, 24, 1 << 40, (1 << 40) + 4])
def test_an_address_may_be_a_number(address: int, tmp_path: Path) -> None:
    path = tmp_path / "scoped.ttir"
    path.write_text(scoped.warmup(tl.float32, target=HOPPER).asm["ttir"])
    (parameter,) = proton.compile(str(path), target=HOPPER).fn.params
    if address % 16:
        with pytest.raises(proton.LaunchError, match="must be a multiple of 16"):
            read_other(parameter, address)
    else:
        assert read_other(parameter, address)[0] == Argument.of("*fp32", divisible=True)
