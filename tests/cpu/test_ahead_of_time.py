"""Kernels as C source: `proton-compile` and `proton-link`, and C programs around them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from proton.compat.triton import nvidia
from proton.tools import compile as compile_tool
from proton.tools import link as link_tool

KERNEL = """
import proton, proton.language as tl

@proton.autotune([proton.Config({"BLOCK": 64})], key=[])
@proton.jit
def blend(x, y, out, n, stride, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.exp(tl.load(x + at * stride, mask=mask)) * scale
    tl.store(out + at, value + tl.load(y + at, mask=mask), mask=mask)
"""
GRID = "(n + BLOCK - 1) / BLOCK, 1, 1"
PROGRAM = """
#include <stdio.h>
#include "blend.h"

int main(void) {
  static float x[200], y[100], out[104];
  for (int i = 0; i < 200; ++i) x[i] = i / 100.0f;
  for (int i = 0; i < 100; ++i) y[i] = (float)i;
  for (int stride = 1; stride < 3; ++stride)
    for (int algorithm = 0; algorithm < blend_get_num_algos(); ++algorithm) {
      for (int i = 0; i < 104; ++i) out[i] = -1.0f;
      int status = load_blend();
      if (!status) status = blend(x, y, out, 100 - 4 * algorithm, stride, 0.5f, algorithm);
      printf("%d", status);
      for (int i = 0; i < 104; ++i) printf(" %.9g", out[i]);
      printf("\\n");
    }
  printf("%d %d\\n", blend(x, y, out, 100, 1, 0.5f, 7), unload_blend());
  return 0;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kernels.py").write_text(KERNEL)
    return tmp_path


def compiled(folder: Path, signature: str, *options: str, grid: str = GRID) -> str:
    """What the tool prints; its exit status is 0."""
    arguments = [str(folder / "kernels.py"), "-n", "blend", "-s", signature, "-g", grid]
    done = CliRunner().invoke(compile_tool.app, [*arguments, "-o", str(folder), *options])
    assert done.exit_code == 0, done.output
    return done.output


def refusal(folder: Path, *arguments: str) -> str:
    tool = link_tool if arguments[0].endswith(".h") else compile_tool
    done = CliRunner().invoke(tool.app, [*arguments, "-o", str(folder / "all")])
    assert done.exit_code == 1
    return done.output


def linked(folder: Path) -> None:
    headers = sorted(map(str, folder.glob("blend_*.h")), key=lambda name: "01234" in name)
    done = CliRunner().invoke(link_tool.app, [*headers, "-o", str(folder / "blend")])
    assert done.exit_code == 0, done.output


def built(folder: Path, program: str, *objects: Path) -> Path:
    """A program that gcc makes of the C files in a folder."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc")
    (folder / "main.c").write_text(program)
    sources = [str(file) for file in [*folder.glob("*.c"), *objects]]
    flags = ["-Wall", "-Wextra", "-Werror", "-O1", "-o", "main"]
    subprocess.run([gcc, *flags, *sources, "-lm", "-ldl", "-lpthread"], cwd=folder, check=True)
    return folder / "main"


def test_objects_of_a_kernels_c_files_lie_beside_its_code(folder: Path) -> None:
    compiled(folder, "*fp32, *fp32, *fp32, i32, i32, fp32, 64")
    (kernel,) = folder.glob("*.o")
    code = kernel.read_bytes()
    gcc = shutil.which("gcc") or pytest.skip("there is no gcc")
    subprocess.run([gcc, "-c", *map(str, folder.glob("*.c"))], cwd=folder, check=True)
    assert kernel.read_bytes() == code
    assert len(list(folder.glob("*.o"))) == 2


def test_a_c_program_runs_kernels_of_the_cpu(folder: Path) -> None:
    for signature in (
        "*fp32, *fp32, *fp32, i32, i32, fp32, 64",
        "*fp32, *fp32, *fp32, i32, i32:1, fp32, 64",
        "*fp32, *fp32, *fp32, i32, i32, fp32, 16",
    ):
        compiled(folder, signature)
    linked(folder)
    program = built(folder, PROGRAM, *folder.glob("*.o"))
    *lines, last = subprocess.run([program], capture_output=True, text=True).stdout.splitlines()
    assert last == "1 0"
    found = np.array([line.split() for line in lines], np.float64)
    assert len(found) == 4
    for row, (stride, n) in zip(found, [(1, 100), (1, 96), (2, 100), (2, 96)], strict=True):
        x = np.arange(200, dtype=np.float32) / np.float32(100)
        expected = np.exp(x[: n * stride : stride]) * np.float32(0.5) + np.arange(n)
        assert row[0] == 0
        np.testing.assert_allclose(row[1 : n + 1], expected, rtol=1e-5)
        assert (row[n + 1 :] == -1).all()


def test_the_most_special_variant_is_asked_first(folder: Path) -> None:
    for hint in ("", ":1"):
        compiled(folder, f"*fp32:16, *fp32, *fp32, i32, i32{hint}, fp32, 64")
    linked(folder)
    source = (folder / "blend.c").read_text()
    conditions = [line.strip() for line in source.splitlines() if line.startswith("  if (")]
    assert conditions[0].startswith("if ((uintptr_t)x % 16 == 0 && stride == 1) return blend_")
    assert conditions[0].endswith("_0d1234c5(x, y, out, n, scale);")
    assert conditions[1].endswith("_0d12345(x, y, out, n, stride, scale);")
    assert "return 1;\n}" in source  # neither: the error of an invalid value


def test_source_for_a_gpu_needs_neither_a_gpu_nor_a_header_of_cuda(folder: Path) -> None:
    signature = "*fp32:16, *fp32:16, *fp32:16, i32, 1, fp32, 64"
    printed = compiled(folder, signature, "-t", "cuda:90:32", "-w", "2", "-on", "mixed")
    name = Path(printed.splitlines()[0]).stem
    assert name.startswith("mixed_")
    head = f'#include <stdio.h>\n#include "{name}.h"\n'
    program = built(folder, head + f'int main(void) {{ printf("%d", load_{name}()); }}')
    loaded = subprocess.run([program], capture_output=True, text=True).stdout
    assert loaded in ("302", "3", "201")  # no libcuda.so.1, or one that is not initialized
    assert "mixed$" not in (folder / f"{name}.h").read_text()
    assert (
        "launch_kernel(proton_loaded, (unsigned)grid_x, (unsigned)grid_y, (unsigned)grid_z,\n"
        in (folder / f"{name}.c").read_text()
    )


NAMES = (
    "int register auto linux NULL int32_t bool new this operator template stream grid_x first last "
    "first_program status module function lock code arguments driver found proton_status algo_id "
    "int_ proton_x blend load_blend β ß naïve x_ _x"
).split()


@pytest.mark.parametrize("target", ["cpu", "cuda:90:32"])
def test_parameters_may_have_any_names(folder: Path, rng: np.random.Generator, target: str) -> None:
    names = rng.permutation(NAMES).tolist()
    total = " + ".join(f"{name} * {number}" for number, name in enumerate(names))
    (folder / "kernels.py").write_text(
        "import proton, proton.language as tl\n\n@proton.jit\n"
        f"def blend(out, {', '.join(names)}, short: tl.constexpr):\n"
        f"    tl.store(out + tl.program_id(0), {total} + short)\n"
    )
    types = ", ".join(
        ["*i32", *["i32:16" if number % 3 == 0 else "i32" for number in range(len(names))]]
    )
    compiled(folder, types + ", 7", "-t", target, grid="short_ - 5")
    linked(folder)
    values = [16 * int(value) for value in rng.integers(0, 99, len(names))]
    stream = "" if target == "cpu" else "0, "
    out = "out" if target == "cpu" else "(uint64_t)(uintptr_t)out"
    call = f"blend_default({stream}{out}, {', '.join(map(str, values))})"
    main = f'int main(void) {{ int32_t out[3] = {{0}}; int s = {call}; printf("%d %d %d %d", s, '
    main += "out[0], out[1], out[2]); return 0; }"
    head = '#include <stdio.h>\n#include "blend.h"\n'
    program = built(folder, head + main, *folder.glob("*.o"))
    printed = subprocess.run([program], capture_output=True, text=True).stdout.split()
    if target == "cpu":
        expected = sum(number * value for number, value in enumerate(values)) + 7
        assert printed == ["0", str(expected), str(expected), "0"]
    if gxx := shutil.which("g++"):
        (folder / "main.cc").write_text(head + main)
        subprocess.run(
            [gxx, "-Wall", "-Werror", "-fsyntax-only", "main.cc"], cwd=folder, check=True
        )


def test_a_kernel_without_parameters_and_constants_of_all_kinds(folder: Path) -> None:
    (folder / "kernels.py").write_text(
        "import proton, proton.language as tl\n\n@proton.jit\ndef empty():\n    pass\n\n"
        "@proton.jit\ndef blend(out, text, big, least):\n    tl.store(out, 3)\n"
    )
    arguments = [str(folder / "kernels.py"), "-g", "1", "-o", str(folder)]
    for name, signature in (
        ("empty", ""),
        ("blend", f"*i32, '*/ 名 \\', {1 << 70}, {-(1 << 63)}"),
    ):
        done = CliRunner().invoke(compile_tool.app, [*arguments, "-n", name, "-s", signature])
        assert done.exit_code == 0, done.output
    linked(folder)
    (empty,) = folder.glob("empty_*.h")
    main = f'#include <stdio.h>\n#include "blend.h"\n#include "{empty.name}"\nint main(void) {{ '
    main += f'int out = 0; printf("%d %d %d", {empty.stem}(), blend(&out, 0), out); return 0; }}'
    program = built(folder, main, *folder.glob("*.o"))
    assert subprocess.run([program], capture_output=True, text=True).stdout[:3] == "0 0"


def test_grids_of_more_than_31_bits_are_refused(folder: Path) -> None:
    compiled(folder, "*fp32, *fp32, *fp32, i32, i32, fp32, 64", grid="(int64_t)n << 32")
    linked(folder)
    main = '#include <stdio.h>\n#include "blend.h"\nint main(void) { printf("%d %d", '
    main += "blend_default(0, 0, 0, 1, 1, 1), blend_default(0, 0, 0, -1, 1, 1)); return 0; }"
    program = built(folder, main, *folder.glob("*.o"))
    assert subprocess.run([program], capture_output=True, text=True).stdout == "1 0"


def test_what_cannot_be_compiled_says_why(folder: Path) -> None:
    file = str(folder / "kernels.py")
    one = [file, "-n", "blend", "-g", "1"]
    six = "*fp32, *fp32, *fp32, i32, i32, fp32, "
    for signature, rule in (
        ("*fp32, i32", "the signature has 2 entries, and the kernel 7 parameters: x, y, out, n,"),
        (six + "i31", "BLOCK: expected a type such as *fp32 or i32, or a constant, got 'i31'"),
        ("*fp32:8, *fp32, *fp32, i32, i32, fp32, 64", "x: a hint is 16 or 1, got '*fp32:8'"),
        ("*fp32:1, *fp32, *fp32, i32, i32, fp32, 64", "x: :16 is for pointers and integers, :1"),
        ("*fp32, *fp32, *fp32, i32, i32, fp32:16, 64", "scale: :16 is for pointers and integers"),
        ("", "the signature has 0 entries, and the kernel 7 parameters"),
        ("*fp32, *fp32, *fp32, i32, i32, fp16, 64", "scale is fp16, which C programs cannot pass"),
    ):
        assert rule in refusal(folder, *one, "-s", signature)
    nobody = [file, "-n", "nobody", "-g", "1", "-s", "i32"]
    assert "has no kernel nobody; there are blend" in refusal(folder, *nobody)
    many = [*one[:-1], "1,1,1,1", "-s", six + "64"]
    assert "a grid has 1 to 3 sizes, got '1,1,1,1'" in refusal(folder, *many)
    assert "a grid has 1 to 3 sizes, got '1,,1'" in refusal(
        folder, *one[:-1], "1,,1", "-s", six + "64"
    )
    assert "num_warps must be a power of 2" in refusal(folder, *one, "-s", six + "64", "-w", "3")
    assert "no target has architecture 91" in refusal(
        folder, *one, "-s", six + "64", "-t", "cuda:91"
    )
    assert "launch kernels for cpu and cuda, not for hip:gfx942" in refusal(
        folder, *one, "-s", six + "64", "-t", "hip:gfx942"
    )


ONE_ARGUMENT = ("-n", "blend", "-s", "*i32", "-g", "1")
HEAD = "import proton, proton.language as tl\n\n@proton.jit\n"


@pytest.mark.parametrize(
    ("source", "rules"),
    [
        (
            HEAD + "def blend(x):\n    while tl.atomic_add(x, 0) < 4:\n        pass\n",
            ["programs of blend wait for others, and the function in C runs them"],
        ),
        (HEAD + "def blend(*x):\n    tl.store(x[0], 1)\n", ["takes any number of arguments: give"]),
        (
            "def f():\n    return 1 // 0\nx = 1\nf()\n",
            ["line 4, in <module>", "ZeroDivisionError: "],
        ),
        ("def f(:\n", ["line 1", "SyntaxError: invalid syntax"]),
        ("import nowhere_at_all\n", ["line 1", "No module named 'nowhere_at_all'"]),
        ("import sys\nsys.exit(0)\n", ["line 2", "SystemExit: 0"]),
    ],
    ids=["waits", "rest", "raises", "syntax", "import", "exits"],
)
def test_a_file_that_nothing_is_made_of_says_why(
    folder: Path, source: str, rules: list[str]
) -> None:
    file = folder / "kernels.py"
    file.write_text(source)
    said = refusal(folder, str(file), *ONE_ARGUMENT)
    for rule in rules:
        assert rule in said
    assert "importlib" not in said
    assert not list(folder.glob("all/*"))


def test_a_file_of_kernels_may_have_the_name_of_a_module(folder: Path) -> None:
    """It took the module's place for all that was imported behind it."""
    (folder / "math.py").write_text(HEAD + "def blend(x):\n    tl.store(x, 1)\n")
    before = sys.modules["math"]
    done = CliRunner().invoke(
        compile_tool.app, [str(folder / "math.py"), *ONE_ARGUMENT, "-o", str(folder)]
    )
    assert done.exit_code == 0, done.output
    assert sys.modules["math"] is before


def test_any_name_is_one_in_c(folder: Path) -> None:
    """Of files and functions; those that are written go into folders that are made."""
    compiled(folder, "*fp32, *fp32, *fp32, i32, i32, fp32, 64", "-on", "1 blend")
    (header,) = folder.glob("*.h")
    assert header.name.startswith("_1_blend_")
    main = "int main(void) { return 0"
    for number, prefix in enumerate(("2nd", "int", "a b")):
        out = folder / "new" / "folder" / f"linked_{number}"
        done = CliRunner().invoke(link_tool.app, [str(header), "-o", str(out), "--prefix", prefix])
        assert done.exit_code == 0, done.output
        main = f'#include "new/folder/linked_{number}.h"\n{main}'
    for name in ("_2nd", "int_", "a_b"):
        main += f" + {name}_get_num_algos() - 1"
    sources = list((folder / "new" / "folder").glob("*.c"))
    for source in sources:
        shutil.copy(header, source.parent)
    program = built(folder, f"{main}; }}", *sources, *folder.glob("*.o"))
    subprocess.run([program], check=True)


def test_what_cannot_be_written_or_read_says_why(folder: Path) -> None:
    compiled(folder, "*fp32, *fp32, *fp32, i32, i32, fp32, 64")
    (header,) = map(str, folder.glob("*.h"))
    (folder / "all").write_text("")  # where a folder is to be
    file, six = str(folder / "kernels.py"), "*fp32, *fp32, *fp32, i32, i32, fp32, 64"
    assert "proton-compile: [Errno 17]" in refusal(
        folder, file, "-n", "blend", "-g", "1", "-s", six
    )
    for out, why in ((folder / "all" / "below", "[Errno"), (Path("."), "names files without")):
        done = CliRunner().invoke(link_tool.app, [header, "-o", str(out)])
        assert done.exit_code == 1
        assert f"proton-link: {'' if out.name else '-o '}{why}" in done.output
    text = Path(header).read_text()
    for broken in (text.replace('"kernel"', '"seed"'), text.replace('{"kernel"', '["kernel"')):
        Path(header).write_text(broken)
        assert "is no header of proton-compile's" in refusal(folder, header)


def test_headers_of_two_kernels_are_not_linked(folder: Path) -> None:
    compiled(folder, "*fp32, *fp32, *fp32, i32, i32, fp32, 64")
    compiled(folder, "*fp32, *fp32, *fp32, i64, i32, fp32, 64")
    headers = sorted(map(str, folder.glob("*.h")))
    assert "the headers are of two parameters: x: *fp32" in refusal(folder, *headers)
    (folder / "other.h").write_text("#pragma once\n")
    assert "is no header of proton-compile's" in refusal(folder, str(folder / "other.h"))


def test_maps_of_tensors_are_only_made_by_launches(folder: Path) -> None:
    (folder / "kernels.py").write_text(
        "import proton, proton.language as tl\n\n"
        "@proton.jit\n"
        "def blend(x, out, M: tl.constexpr):\n"
        "    a = tl.make_tensor_descriptor(x, [M, 64], [64, 1], [M, 64])\n"
        "    b = tl.make_tensor_descriptor(out, [M, 64], [64, 1], [M, 64])\n"
        "    b.store([0, 0], a.load([0, 0]))\n\n"
        "@proton.jit\n"
        "def gathered(table, out, n):\n"
        "    base = tl.load(table).to(tl.pointer_type(tl.float32))\n"
        "    a = tl.make_tensor_descriptor(base, [n, 64], [64, 1], [16, 64])\n"
        "    places = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]\n"
        "    for i in range(0, n, 16):\n"
        "        tl.store(out + i * 64 + places, a.load([i, 0]))\n"
    )
    arguments = [str(folder / "kernels.py"), "-n", "blend", "-s", "*fp32:16, *fp32:16, 16"]
    arguments += ["-g", "1, 1, 1", "-o", str(folder)]
    runner = CliRunner()
    refused = runner.invoke(compile_tool.app, [*arguments, "-t", "cuda:90:32"])
    assert refused.exit_code != 0
    assert "makes tensor descriptors that TMA copies by" in refused.output
    made = [str(folder / "kernels.py"), "-n", "gathered", "-s", "*i64:16, *fp32:16, i32"]
    refused = runner.invoke(compile_tool.app, [*made, *arguments[-4:], "-t", "cuda:90:32"])
    assert refused.exit_code != 0
    assert "memory that only launches give: use pointers" in refused.output
    assert runner.invoke(compile_tool.app, [*arguments, "-t", "cuda:80:32"]).exit_code == 0


IN_TRITON = """
import triton, triton.language as tl
from helpers import twice

@triton.jit
def blend(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, twice(tl.load(x + at, mask=at < n)), mask=at < n)
"""
HELPERS = "import triton\n\n@triton.jit\ndef twice(x):\n    return x + x\n"
TWICE = """
#include <stdio.h>
#include "blend.h"
int main(void) {
  int x[5] = {1, 2, 3, 4, 5}, out[5] = {0};
  printf("%d %d", blend_default(x, out, 4), blend_default(x, out, 3));
  for (int i = 0; i < 5; ++i) printf(" %d", out[i]);
  return 0;
}
"""


def test_the_files_of_the_tools_are_triton_s_commands(tmp_path: Path) -> None:
    """`python .../compile.py`: for where launches go, beside the path of `-o`."""
    (tmp_path / "kernel.py").write_text(IN_TRITON)
    (tmp_path / "helpers.py").write_text(HELPERS)
    for hint in ("", ":16"):
        types = f"*i32, *i32, i32{hint}, 16"
        arguments = ["-n", "blend", "-s", types, "-g", "(n + 15) / 16, 1, 1", "--out-name", "blend"]
        command = [sys.executable, compile_tool.__file__, *arguments, "-o", "blend", "kernel.py"]
        environment = os.environ | {"PROTON_BACKEND": "cpu"}
        subprocess.run(command, cwd=tmp_path, check=True, env=environment, capture_output=True)
    headers = [file.name for file in tmp_path.glob("*.h")]
    assert len(headers) == 2
    command = [sys.executable, link_tool.__file__, *headers, "-o", "blend"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    program = built(tmp_path, TWICE, *tmp_path.glob("*.o"))
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "0 0 2 4 6 8 0"


def test_files_for_c_programs_that_call_cuda() -> None:
    for folder in nvidia.include_dirs:
        assert (Path(folder) / "cuda.h").exists()
    assert nvidia.include_dirs  # of the wheel that the compiler needs
    for folder in nvidia.library_dirs():
        assert (Path(folder) / "libcuda.so.1").exists()
