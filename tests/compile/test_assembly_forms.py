"""The instructions that the CPU translates are those that NVIDIA's assembler knows."""

import re
import subprocess
from pathlib import Path

import pytest

import proton
from proton.base.nvidia_tools import ptxas
from proton.conversion.triton_arith_to_linalg.assembly.forms import Form, forms
from proton.conversion.triton_arith_to_linalg.assembly.values import BITS

REGISTERS = {1: "%p", 16: "%h", 32: "%r", 64: "%l"}
HEAD = """.version 8.8
.target {arch}
.address_size 64
.visible .entry kernel() {{
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<9>;
.reg .b64 %l<9>;
"""


def register(type_: str, number: int) -> str:
    bits = 1 if type_ == "pred" else max(BITS[type_], 16)
    return f"{REGISTERS[bits]}{number}"


def line(form: Form) -> str:
    """The instruction on registers of its types."""
    results = [register(type_, number) for number, type_ in enumerate(form.results)]
    operands = [register(type_, 4 + number) for number, type_ in enumerate(form.operands)]
    if form.optional and not {"and", "or", "xor"} & set(form.parts):
        operands.pop()
    if form.parts[0] == "lop3":
        operands[-1] = "0x96"
    return f"{form.name} {'|'.join(results)}, {', '.join(operands)};"


def refused(lines: list[str], arch: int, folder: Path) -> list[str]:
    """Those that ptxas does not take."""
    head, file = HEAD.format(arch=f"sm_{arch}a"), folder / "forms.ptx"
    file.write_text(head + "\n".join(lines) + "\nret;\n}\n")
    tool = ptxas(proton.GPUTarget("cuda", arch))
    command = [str(tool), f"-arch=sm_{arch}a", "-O0", "-o", str(folder / "out.cubin"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    first = head.count("\n") + 1
    numbers = dict.fromkeys(re.findall(r"line (\d+); error", done.stderr))
    found = [lines[int(number) - first] for number in numbers]
    assert bool(found) == bool(done.returncode), done.stderr[:2000]
    return found


@pytest.mark.parametrize("arch", [90, 100])
def test_every_form_is_assembled(arch: int, tmp_path: Path) -> None:
    lines = [line(form) for form in forms().values()]
    assert len(lines) > 3500
    assert not refused(lines, arch, tmp_path)


def test_the_assembler_names_what_it_does_not_take(tmp_path: Path) -> None:
    lines = ["add.s32 %r0, %r1, %r2;", "add.sat.u32 %r0, %r1, %r2;", "mov.b32 %r0, %h1;"]
    assert refused(lines, 90, tmp_path) == lines[1:]
