"""What libraries ask of triton before they use it: whether it can run here, and its Gluon."""

from pathlib import Path

from tests import processes

PROLOGUE = "import proton\nproton.install_as_triton()\n"

# What vLLM asks, and torch (`has_triton`).
PLUG_INS = """
import subprocess
from triton.backends import backends
import triton
import triton.backends
from triton.backends.compiler import GPUTarget

active = {name for name, plug_in in backends.items() if plug_in.driver.is_active()}
current = triton.runtime.driver.active.get_current_target()
print(active, {GPUTarget: "gpu"}.get(type(current), "cpu"), sorted(triton.backends.backends))
print(all(backends[n].driver().get_current_target() == current for n in active))
print(all(plug_in.compiler.identity for plug_in in backends.values()))
print(hasattr(triton.backends, "nothing"))

from triton.backends.nvidia.compiler import get_ptxas

nvidia = triton.knobs.nvidia
tools = get_ptxas(90), nvidia.ptxas, nvidia.ptxas_blackwell, nvidia.nvdisasm
for tool in tools:
    said = subprocess.run([tool.path, "--version"], capture_output=True, text=True).stdout
    print(f"release {tool.version}," in said)
nvidia.ptxas = "/bin/true"
try:
    print(nvidia.ptxas)
except triton.errors.TritonError as problem:
    print(problem)
"""

# What Helion asks: a product of blocks of the least size takes the tensor cores.
DOTS = """
import triton
import triton.language as tl
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.nvidia.compiler import min_dot_size
from triton.runtime.driver import driver
from triton.testing import _summarize_statistics

@triton.jit
def product(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, at = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + rows[:, None] * K + at)
    y = tl.load(x_ptr + at[:, None] * N + columns)
    tl.store(out_ptr + rows[:, None] * N + columns, tl.dot(x, y))

target = GPUTarget("cuda", 80, 32)
assert all(isinstance(p.compiler, BaseBackend) for p in triton.backends.backends.values())
for type_, out in ((tl.float32, tl.float32), (tl.bfloat16, tl.float32), (tl.int8, tl.int32)):
    sizes = min_dot_size(target)(type_, type_)
    half = (*sizes[:2], sizes[2] // 2)
    for M, N, K in (sizes, half):
        kernel = product.warmup(type_, out, M, N, K, target=target, num_warps=1)
        print("mma.sync" in kernel.asm["ptx"])
print([_summarize_statistics([3.0, 1.0, 2.0], *how) for how in ((None, "max"), ([0.5], "mean"))])
"""

# Modules of Triton's take the place of none of Proton's.
MODULES = """
import importlib
import pkgutil
import sys
from proton.compat import triton as _as_triton

for module in pkgutil.walk_packages(proton.__path__, "proton."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

def misplaced():
    parts = [name.rpartition(".")[::2] for name in sys.modules if name.startswith("proton.")]
    return {
        (parent, name)
        for parent, name in parts
        if getattr(sys.modules[parent], name, None) is not sys.modules[f"{parent}.{name}"]
    }

before = misplaced()
for name in ["triton.backends.nvidia", *_as_triton._HOMES]:
    importlib.import_module(name)
print(misplaced() - before)
"""

# How Helion compiles what it tries in another process.
APART = """
import sys
import numpy as np
import triton
import triton.language as tl
from triton.runtime.jit import compute_cache_key

@triton.jit
def scale(x_ptr, out_ptr, n, by, BLOCK: tl.constexpr, ADD: tl.constexpr = 1):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * by + ADD, mask=at < n)

x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
launch = dict(BLOCK=64, num_warps=2, debug=False)
kernels, keys, target, backend, bind = scale.device_caches["cpu"]
bound, specialization, options = bind(x, out, 100, 0.5, **launch)
key = compute_cache_key(keys, specialization, options)
assert kernels.get(key) is None
packed, *parts = scale._pack_args(backend, launch, bound, specialization, options)
source = scale.ASTSource(scale, *parts)
kernels[key] = made = scale.compile(source, target=target, options=packed.__dict__)
assert kernels[key] is made and scale.device_caches["cpu"][0][key] is made
found = scale[(2,)](x, out, 100, 0.5, **launch)
print(found.key == made.key, (out == x * np.float32(0.5) + 1).all())
kernels.clear()
print(len(kernels))

@triton.jit
def of_warps(out_ptr, num_warps: tl.constexpr):
    tl.store(out_ptr, num_warps)

warps = of_warps.create_binder()[-1](out, num_warps=8)
print(of_warps._pack_args(backend, {"num_warps": 8}, *warps)[0].num_warps)
try:
    scale._pack_args(backend, dict(launch, num_wraps=4), bound, specialization, options)
except KeyError as problem:
    print(problem.args[0])
"""

ACTIVE = """
from triton.backends import backends
print([name for name, plug_in in backends.items() if plug_in.driver.is_active()])
"""

GLUON = """
import numpy as np
import triton
import triton.language as tl
import triton.experimental.gluon.language
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

LOG2E = gl.constexpr(1.44)
assert gl.constexpr is tl.constexpr and gl.float16 is tl.float16 and "BlockedLayout" in dir(gl)

@triton.autotune([triton.Config({}, num_warps=4)], key=["n"])
@gluon.jit
def tuned(x_ptr, n, layout: gl.constexpr, BLOCK: gl.constexpr = 64):
    at = gl.arange(0, BLOCK, layout=layout)
    gl.store(x_ptr + at, gl.load(x_ptr + at))

@gluon.jit(noinline=True, version=1)
def helper(x_ptr):
    gl.store(x_ptr, 1.0)

@triton.jit
def caller(x_ptr):
    helper(x_ptr)

@gluon.aggregate
class Strides:
    row: gl.constexpr

    @gluon.constexpr_function
    def __init__(self, row):
        self.row = gl.constexpr(row)

    @gluon.jit
    def at(self, row):
        return row * self.row

@triton.jit
def plain(x_ptr):
    tl.store(x_ptr, 2.0)

@gluon.jit
def tensors():
    gl.nvidia.blackwell.allocate_tensor_memory(gl.float32, [64, 64], None)

assert isinstance(helper, GluonJITFunction) and isinstance(helper, triton.JITFunction)
x = np.zeros(4, np.float32)
plain[(1,)](x)
print(x[0])
uses = {
    "launch": lambda: helper[(1,)](x),
    "tuned": lambda: tuned[(1,)](np.zeros(64), 4, gl.BlockedLayout([1], [32], [4], [0])),
    "warmup": lambda: helper.warmup(x, grid=(1,)),
    "call": lambda: caller[(1,)](x),
    "source": lambda: GluonASTSource(helper, {"x_ptr": "*fp32"}),
    "chip": lambda: gl.nvidia.hopper.warpgroup_mma,
    "tensor memory": lambda: tensors[(1,)](),
}
for name, use in uses.items():
    try:
        use()
        print(name, "works")
    except (triton.TritonError, AttributeError) as problem:
        print(name, type(problem).__name__, str(problem).splitlines()[0].partition(": ")[2])
"""


NAMES = """
import numpy as np
import triton
import triton.language as tl
import triton.profiler.language as pl
from triton.runtime.jit import ConstexprFunction, JITCallable, JITFunction

@triton.constexpr_function
def two():
    return 2

@triton.jit
def store(x_ptr):
    tile = pl.allocate_event("tile")
    pl.start_event(tile)
    tl.store(x_ptr, two())
    pl.end_event(tile)

print([isinstance(f, JITCallable) for f in (two, store, tl.sum, print, tl.load)])
x = np.zeros(1, np.float32)
kernel = store[(1,)](x)
print(isinstance(two, ConstexprFunction), isinstance(store, JITFunction), x[0])
print(kernel.asm.get("ttgir"), "ttgir" in kernel.asm)
try:
    kernel.asm["ttgir"]
except KeyError as problem:
    print(problem.args[0])
"""

# A number in a kernel that is no constexpr, as programs have it that set the variable.
GLOBALS = """
import sys
import numpy as np
import triton
import triton.language as tl

SCALE = int(sys.argv[1])

@triton.jit
def scaled(x_ptr):
    tl.store(x_ptr, SCALE)

x = np.zeros(1, np.float32)
for change in (0, 1):
    SCALE += change
    try:
        scaled[(1,)](x)
        print(x[0])
    except triton.TritonError as problem:
        said = str(problem).splitlines()[0]
        print(said.partition(", from ")[-1].partition(";")[0] or said)
"""


def run(code: str, folder: Path, *arguments: str, **variables: str) -> list[str]:
    (folder / "program.py").write_text(PROLOGUE + code)
    done = processes.python("program.py", *arguments, cwd=folder, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


HOOKS = """
import numpy as np
import triton
import triton.language as tl
from triton.profiler.hooks import Hook, HookManager

@triton.jit
def one(x_ptr):
    tl.store(x_ptr, 1.0)

heard = []

class Heard(Hook):
    def __init__(self, name, priority=0):
        self.name, self.priority = name, priority
    def activate(self):
        heard.append(f"{self.name}+")
    def deactivate(self):
        heard.append(f"{self.name}-")
    def enter(self, metadata):
        heard.append(f"{self.name} {metadata.get()['name']}")
    def exit(self, metadata):
        heard.append(f"{self.name} end")

def launched():
    one[(1,)](np.zeros(1, np.float32))
    print(*heard, sep=", ")
    heard.clear()

low, high = Heard("low"), Heard("high", 9)
HookManager.register(low, 0)
HookManager.register(high, 0)
HookManager.register(high, 1)
launched()
HookManager.deactivate(0)
launched()
HookManager.activate()
HookManager.unregister(1)
launched()
HookManager.unregister()
launched()
print(triton.knobs.runtime.launch_enter_hook.calls)
"""


TARGETS = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend

@triton.jit
def fill(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)

types = {"x_ptr": "*fp32", "BLOCK": "constexpr"}
source = triton.compiler.ASTSource(fill, types, {"BLOCK": 16})
for name, arch, lanes in (
    ("cpu", "", 1), ("cuda", 90, 32), ("hip", "gfx942", 64), ("hip", "gfx90a", 64), ("xpu", "", 32),
    ("cuda", 107, 32),
):
    target = GPUTarget(name, arch, lanes)
    try:
        metadata = triton.compile(source, target=target).metadata
        options = make_backend(target).parse_options({"num_warps": 8, "of_others": 1})
        print(isinstance(target, GPUTarget), metadata.num_warps, options.num_warps)
    except triton.errors.TritonError as problem:
        print(str(problem).partition(" (sm_80)")[0])
    try:
        print(len(make_backend(target).hash()))
    except triton.errors.TritonError as problem:
        print(str(problem).partition(" (sm_80)")[0])
cuda = make_backend(GPUTarget("cuda", 90, 32))
numbers = 32, 7, 0, -16, -7, 1 << 63, True
print(",".join(cuda.get_arg_specialization(number, "int", align=True) for number in numbers))
print(cuda.parse_attr("DN"))
"""


def test_targets_of_every_device_can_be_named(tmp_path: Path) -> None:
    assert run(TARGETS, tmp_path) == [
        "True 1 1",  # a CPU's program has one warp, whatever is asked for
        "64",
        "True 4 8",
        "64",
        "True 4 8",
        "64",
        "of AMD GPUs kernels are compiled for gfx942 alone",
        "of AMD GPUs kernels are compiled for gfx942 alone",
        "no back end is named 'xpu'; there are cpu, cuda, hip",
        "kernels are compiled for cpu and cuda and hip, not for xpu",
        *["no target has architecture 107; there are 80"] * 2,
        "DN,N,DN,D,,D,",
        "[['tt.divisibility', 16], ['tt.non_negative', 1]]",
    ]


NO_DRIVER = """
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

@triton.jit
def fill(x_ptr):
    triton.language.store(x_ptr, 1.0)

kept, asked = type(driver).active, []
type(driver).active = property(lambda self: asked.append(self))
source = triton.compiler.ASTSource(fill, {"x_ptr": "*fp32"})
print("st.global" in triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"])
print(asked)
print(driver.active, asked == [driver])
type(driver).active = kept
driver.set_active(triton.backends.backends["cpu"].driver())
print(driver.active.get_current_target().backend)
"""


def test_a_target_that_is_named_asks_no_driver(tmp_path: Path) -> None:
    assert run(NO_DRIVER, tmp_path) == ["True", "[]", "None True", "cpu"]


def test_hooks_of_sessions_hear_of_launches(tmp_path: Path) -> None:
    assert run(HOOKS, tmp_path) == [
        "low+, high+, high one, low one, low end, high end",
        "low-, high one, high end",
        "low+, high one, low one, low end, high end",
        "high-, low-",
        "[]",
    ]


def test_one_plug_in_is_active_and_it_is_where_kernels_run(tmp_path: Path) -> None:
    there = "['amd', 'cpu', 'nvidia']"
    no_version = "/bin/true does not say its version, as ptxas does"
    facts = ["True", "True", "False", *["True"] * 4, no_version]
    assert run(PLUG_INS, tmp_path, PROTON_BACKEND="cpu") == [f"{{'cpu'}} cpu {there}", *facts]
    assert run(ACTIVE, tmp_path, PROTON_BACKEND="cuda") == ["['nvidia']"]


def test_kernels_in_gluon_run_beside_those_of_tiles(tmp_path: Path) -> None:
    wanted = [
        "2.0",
        *(f"{name} works" for name in ("launch", "tuned", "warmup", "call", "source", "chip")),
        "tensor memory CompilationError allocate_tensor_memory is an op of Blackwell (10.0), which "
        "is not supported",
    ]
    assert run(GLUON, tmp_path) == wanted
    assert run(GLUON, tmp_path, PROTON_INTERPRET="1") == wanted


def test_products_of_the_least_size_take_the_tensor_cores(tmp_path: Path) -> None:
    *found, statistics = run(DOTS, tmp_path)
    assert found == ["True", "False"] * 3
    assert statistics == "[3.0, 2.0]"


def test_modules_of_triton_take_no_module_s_place(tmp_path: Path) -> None:
    assert run(MODULES, tmp_path) == ["set()"]


def test_a_launch_can_be_taken_apart_and_finds_what_was_compiled(tmp_path: Path) -> None:
    unknown = "scale has no parameter or option 'num_wraps'"
    assert run(APART, tmp_path, PROTON_BACKEND="cpu") == ["True True", "0", "8", unknown]


def test_what_may_be_called_has_its_name_and_levels_that_are_not_there_are_said(
    tmp_path: Path,
) -> None:
    levels = "source, ttir, ttsir, memref, llvm, llir, obj, asm"
    assert run(NAMES, tmp_path, PROTON_BACKEND="cpu") == [
        "[True, True, True, False, False]",
        "True True 2.0",
        "None False",
        f"ttgir: the levels of this kernel are {levels}",
    ]


def test_globals_may_be_numbers_where_the_variable_says_so(tmp_path: Path) -> None:
    allowed = {"TRITON_ALLOW_NON_CONSTEXPR_GLOBALS": "1"}
    for number in (5, 6, 5):  # each process compiles what it says, or finds that
        lines = run(GLOBALS, tmp_path, str(number), **allowed)
        assert lines == [f"{number}.0", f"{number} to {number + 1}"]
    refused, _ = run(GLOBALS, tmp_path, "8")
    assert refused.endswith("the global variable SCALE = 8 is not a constexpr")
